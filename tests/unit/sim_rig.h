/* A simulation to try: linear step times, random or fixed requests, a small pool. */
#ifndef VP_TESTS_SIM_RIG_H
#define VP_TESTS_SIM_RIG_H

#include "planner/base/random.h"
#include "planner/serving/simulator.h"

struct sim_clock { /* microseconds */
    double step, sequence, context, prompt, pair, front;
};

struct sim_stream {
    const struct vp_request *fixed; /* these in turn; NULL: random ones */
    uint64_t count, given;
    double mean_gap_us; /* of Poisson arrivals */
    double scale;       /* on all of them */
    double mean_prompt, mean_output;
    bool exponential; /* prompts; else between half of the mean and one and a half */
    uint32_t prefixes, classes, priorities;
    uint64_t seed;
    /* inside */
    double now_us;
    struct vp_random gaps, lengths, kinds;
};

struct sim_seen { /* of requests that ended, in that order */
    struct vp_request_record *record;
    uint64_t count, room;
    double output, iterations;
};

struct sim_rig {
    struct vp_arena arena;
    struct sim_clock clock;
    struct sim_stream stream;
    struct sim_seen seen;
    struct vp_sim_settings settings;
    bool quiet; /* nothing is seen: for millions */
    struct vp_sim_result result;
};

/* vLLM V1, 64 sequences, 2048 tokens a step, 4096 blocks of 16 tokens, 4000 requests. */
void sim_rig_init(struct sim_rig *rig);
/* Another scheduler with settings that suit it; the pool stays as large in tokens. */
void sim_rig_scheduler(struct sim_rig *rig, enum vp_scheduler_kind kind);
void sim_rig_run(struct sim_rig *rig);
void sim_rig_free(struct sim_rig *rig);
double sim_rig_mean(const struct sim_rig *rig, const float *values);

#endif
