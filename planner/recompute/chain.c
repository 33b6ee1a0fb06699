#include "planner/recompute/chain.h"

#include "planner/base/sum.h"

/* Sums of bytes stay below 2^60 and of times below 2^60, so that the bounds of dual.c, products of
 * a price with either, stay inside 128 bits, and no sum of solvers and judge needs a check of its
 * own. */
static const uint64_t MOST = (uint64_t)1 << 60;

static struct vp_sum stage_bytes(const struct vp_chain *c, uint32_t i) {
    uint64_t tape = 0;
    struct vp_sum sum = vp_sum(c->wn[i]);
    for (uint32_t j = 0; j < c->option_counts[i]; j++) {
        const struct vp_tape_option *o = &c->options[i][j];
        struct vp_sum one = vp_sum_add(vp_sum_add(vp_sum(o->t), o->wf), o->wb);
        sum.overflow |= one.overflow;
        tape = vp_max(tape, one.v);
    }
    sum = vp_sum_add(sum, tape);
    return c->held ? vp_sum_add(sum, c->held[i]) : sum;
}

static struct vp_sum stage_time(const struct vp_chain *c, uint32_t i) {
    uint64_t extra = 0;
    for (uint32_t j = 0; j < c->option_counts[i]; j++)
        extra = vp_max(extra, c->options[i][j].r);
    return vp_sum_add(vp_sum_add(vp_sum(c->f[i]), c->b[i]), extra);
}

const char *vp_chain_overflow(const struct vp_chain *c, uint64_t inflight) {
    struct vp_sum bytes = vp_sum(c->x[c->n]), time = vp_sum(0);
    bytes = vp_sum_add(bytes, c->g[c->n]);
    for (uint32_t i = 0; i < c->n; i++) {
        bytes = vp_sum_add(vp_sum_add(bytes, c->x[i]), c->g[i]);
        bytes = vp_sum_plus(bytes, stage_bytes(c, i));
        time = vp_sum_plus(time, stage_time(c, i));
    }
    bytes = vp_sum_mul(bytes, inflight);
    /* No schedule runs a stage's forward more often than there are stages, and once. */
    time = vp_sum_mul(time, (uint64_t)c->n + 1);
    if (bytes.overflow || bytes.v > MOST)
        return "bytes";
    return time.overflow || time.v > MOST ? "times" : NULL;
}

uint64_t vp_pipeline_inflight(enum vp_pipeline_schedule schedule, uint64_t ranks, uint64_t rank,
                              uint64_t microbatches, uint64_t chunks) {
    uint64_t behind = vp_above(ranks, rank + 1);
    switch (schedule) {
    case VP_SCHEDULE_GPIPE:
        return microbatches * chunks;
    case VP_SCHEDULE_1F1B:
        return vp_min(microbatches, behind + 1);
    case VP_SCHEDULE_INTERLEAVED:
        return vp_min(microbatches * chunks, 2 * behind + (chunks - 1) * ranks + 1);
    }
    return microbatches;
}
