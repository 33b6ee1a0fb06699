#include "planner/plan/placing.h"

#include <string.h>

#include "planner/base/sum.h"

enum { MOST_STEPS = 1000000 };

/* Lexicographic, the smaller the better. */
struct score {
    uint64_t part[3];
};

struct search {
    const struct vp_placing_program *programs;
    uint32_t order[VP_PLACING_PROGRAMS]; /* the largest first */
    uint32_t count, gpus, phases;
    uint64_t capacity;
    bool any; /* no capacity */
    uint32_t residents[VP_PLACING_GPUS];
    uint64_t ranks;
    struct vp_placing now, *best;
    struct score best_score;
};

static struct score score_of(const struct search *s) {
    uint64_t shared = 0, fullest = 0;

    for (uint32_t g = 0; g < s->gpus; g++) {
        shared += s->residents[g] > 1 ? s->residents[g] - 1 : 0;
        for (uint32_t p = 0; p < s->phases; p++)
            fullest = vp_max(fullest, s->now.load[g][p]);
    }
    return s->any ? (struct score){{fullest, shared, s->ranks}}
                  : (struct score){{shared, s->ranks, fullest}};
}

static bool is_better(const struct score *a, const struct score *b) {
    for (int i = 0; i < 3; i++)
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i];
    return false;
}

/* Nothing in a score ever falls when a program is added. */
static bool is_hopeless(const struct search *s) {
    struct score score = score_of(s);

    return s->best->found && !is_better(&score, &s->best_score);
}

/* ---- one GPU more, one less ---- */

static bool put(struct search *s, uint32_t gpu, const struct vp_placing_option *option) {
    uint64_t *load = s->now.load[gpu];

    for (uint32_t p = 0; p < s->phases; p++)
        if (load[p] > s->capacity || option->bytes[p] > s->capacity - load[p])
            return false;
    for (uint32_t p = 0; p < s->phases; p++)
        load[p] += option->bytes[p];
    s->residents[gpu]++;
    return true;
}

static void take_off(struct search *s, uint32_t gpu, const struct vp_placing_option *option) {
    for (uint32_t p = 0; p < s->phases; p++)
        s->now.load[gpu][p] -= option->bytes[p];
    s->residents[gpu]--;
}

static bool are_alike(const struct search *s, uint32_t a, uint32_t b) {
    return s->residents[a] == s->residents[b] &&
           memcmp(s->now.load[a], s->now.load[b], s->phases * sizeof(uint64_t)) == 0;
}

/* ---- depth first ---- */

static void place(struct search *s, uint32_t depth);

/* GPU by GPU from `gpu` on; one that is like an earlier GPU that was left out is left out too. */
static void choose(struct search *s, uint32_t depth, const struct vp_placing_option *option,
                   uint32_t gpu, uint32_t left) {
    uint32_t program = s->order[depth];

    if (s->now.steps++ >= MOST_STEPS) {
        s->best->complete = false;
        return;
    }
    if (left == 0) {
        place(s, depth + 1);
        return;
    }
    for (; gpu + left <= s->gpus && s->best->complete; gpu++) {
        bool skipped = false;
        for (uint32_t g = 0; g < gpu && !skipped; g++)
            skipped = !(s->now.gpus[program] >> g & 1) && are_alike(s, g, gpu);
        if (skipped || !put(s, gpu, option))
            continue;
        s->now.gpus[program] |= UINT64_C(1) << gpu;
        choose(s, depth, option, gpu + 1, left - 1);
        s->now.gpus[program] &= ~(UINT64_C(1) << gpu);
        take_off(s, gpu, option);
    }
}

static void keep(struct search *s) {
    struct score score = score_of(s);
    bool complete = s->best->complete;

    if (s->best->found && !is_better(&score, &s->best_score))
        return;
    *s->best = s->now;
    s->best->found = true;
    s->best->complete = complete;
    s->best->fullest = score.part[s->any ? 0 : 2];
    s->best_score = score;
}

static void place(struct search *s, uint32_t depth) {
    if (is_hopeless(s))
        return;
    if (depth == s->count) {
        keep(s);
        return;
    }
    const struct vp_placing_program *program = &s->programs[s->order[depth]];
    for (uint32_t i = 0; i < program->options && s->best->complete; i++) {
        const struct vp_placing_option *option = &program->option[i];
        if (option->width == 0 || option->width > s->gpus)
            continue;
        s->now.option[s->order[depth]] = i;
        s->ranks += option->width;
        choose(s, depth, option, 0, option->width);
        s->ranks -= option->width;
    }
}

/* The least that a program takes over all GPUs, in its fullest phase. */
static uint64_t least_bytes(const struct vp_placing_program *program, uint32_t phases) {
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < program->options; i++) {
        uint64_t most = 0;
        for (uint32_t p = 0; p < phases; p++)
            most = vp_max(most, program->option[i].bytes[p]);
        least = vp_min(least, vp_sum_mul(vp_sum(most), program->option[i].width).v);
    }
    return least;
}

void vp_placing_find(struct vp_placing *out, const struct vp_placing_program *programs,
                     uint32_t count, uint32_t gpus, uint32_t phases, uint64_t capacity_bytes) {
    struct search s = {.programs = programs,
                       .count = count,
                       .gpus = gpus,
                       .phases = phases,
                       .capacity = capacity_bytes,
                       .any = capacity_bytes == UINT64_MAX,
                       .best = out};

    *out = (struct vp_placing){.complete = true};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = i;
        uint64_t bytes = least_bytes(&programs[i], phases);
        for (; k > 0 && least_bytes(&programs[s.order[k - 1]], phases) < bytes; k--)
            s.order[k] = s.order[k - 1];
        s.order[k] = i;
    }
    place(&s, 0);
    out->steps = s.now.steps;
}
