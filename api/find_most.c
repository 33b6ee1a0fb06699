/* How far a quantity goes: bisection, up and down from what the scenario says. */
#include "api/find.h"

enum { MOST_SEQUENCES = 1 << 16, MOST_CONTEXT = 1 << 24 };

struct walk {
    struct vp_search *search;
    const struct vp_pick *pick;
    enum vp_field field;
    uint64_t unit; /* numbers below are multiples of it */
    bool length;   /* of a sequence, else a count */
    bool (*holds)(const struct vp_trial *);
};

static void try_number(const struct walk *w, struct vp_trial *out, uint64_t number) {
    struct vp_setting set[VP_PATCHES_MOST];
    struct vp_arena *arena = w->search->ctx->arena;
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct vp_lever_value value =
        vp_lever_workload(arena, w->search->base, w->field, number * w->unit);
    size_t count = vp_pick_settings(set, w->pick, &value);

    vp_search_try(w->search, out, set, count);
    vp_arena_rewind(arena, mark);
}

static bool holds(const struct walk *w, uint64_t number) {
    struct vp_trial trial;

    try_number(w, &trial, number);
    return w->holds(&trial);
}

/* The largest number that holds, between one that does and one that does not. */
static uint64_t bisect(const struct walk *w, uint64_t yes, uint64_t no) {
    while (no - yes > 1) {
        uint64_t middle = yes + (no - yes) / 2;
        if (holds(w, middle))
            yes = middle;
        else
            no = middle;
    }
    return yes;
}

static uint64_t furthest(const struct walk *w, uint64_t start, uint64_t cap) {
    uint64_t yes = start, no = cap;

    if (holds(w, cap))
        return cap;
    if (start >= cap || !holds(w, start)) {
        for (no = start < cap ? start : cap, yes = no / 2; yes > 0 && !holds(w, yes); yes /= 2)
            no = yes;
        return yes == 0 ? 0 : bisect(w, yes, no);
    }
    for (uint64_t next = 2 * yes; next < no; next *= 2) {
        if (!holds(w, next)) {
            no = next;
            break;
        }
        yes = next;
    }
    return bisect(w, yes, no);
}

static uint64_t present(const struct vp_scenario *base, enum vp_field field) {
    switch (field) {
    case VP_F_CONTEXT:
        return base->serve.context;
    case VP_F_CONCURRENCY:
        return base->serve.concurrency;
    case VP_F_SEQUENCE_LENGTH:
        return base->train.sequence;
    default:
        return base->train.micro_batch;
    }
}

/* Sequences of a training step are divided over so many ranks. */
static uint64_t unit_of(const struct vp_scenario *base, enum vp_field field) {
    const struct vp_parallel *p = &base->parallel;

    if (field != VP_F_SEQUENCE_LENGTH)
        return 1;
    return vp_max(p->context, 1) * (p->sequence ? vp_max(p->tensor, 1) : 1);
}

static bool has_room(const struct vp_trial *t) { return t->made && t->verdict == VP_FITS; }

static bool may_have_room(const struct vp_trial *t) {
    return t->made && t->verdict != VP_DOES_NOT_FIT;
}

/* How far memory lets it go, and with a promise about latency, how far that holds: times need not
 * grow with the number (longer answers are interrupted less often), so every one is looked at;
 * lengths in steps of LENGTHS. */
static uint64_t furthest_kept(struct walk *w, uint64_t start, uint64_t cap,
                              bool (*room)(const struct vp_trial *),
                              bool (*kept)(const struct vp_trial *)) {
    enum { LENGTHS = 256 };
    uint64_t step = w->length ? vp_max(LENGTHS / w->unit, 1) : 1;

    w->holds = room;
    uint64_t n = furthest(w, start, cap);
    w->holds = kept;
    while (w->search->slo.count > 0 && n > 0 && !holds(w, n))
        n = n > step ? (n - 1) / step * step : n - 1;
    return n;
}

struct vp_reach vp_find_reach(struct vp_search *search, const struct vp_pick *pick,
                              enum vp_field field) {
    const struct vp_scenario *base = search->base;
    bool length = field == VP_F_CONTEXT || field == VP_F_SEQUENCE_LENGTH;
    uint64_t longest = base->model->max_position, unit = unit_of(base, field);
    uint64_t cap = (length ? (longest > 0 ? longest : MOST_CONTEXT) : MOST_SEQUENCES) / unit;
    struct walk walk = {search, pick, field, unit, length, NULL};
    struct vp_reach reach = {0};

    reach.sure =
        furthest_kept(&walk, vp_max(present(base, field) / unit, 1), cap, has_room, vp_trial_fits);
    reach.capped = reach.sure == cap;
    reach.likely = reach.capped ? cap
                                : furthest_kept(&walk, vp_max(reach.sure, 1), cap, may_have_room,
                                                vp_trial_may_fit);
    if (search->slo.count > 0 && !reach.capped) {
        struct vp_trial beyond;
        try_number(&walk, &beyond, reach.sure + 1);
        reach.by_time = has_room(&beyond);
    }
    reach.sure *= unit;
    reach.likely *= unit;
    return reach;
}

/* ---- with changes ---- */

static const char *goal_name(enum vp_field field) {
    bool length = field == VP_F_CONTEXT || field == VP_F_SEQUENCE_LENGTH;

    return length ? "context" : field == VP_F_CONCURRENCY ? "concurrency" : "batch";
}

/* Levers that are the question itself, or another machine. */
static bool is_left_out(enum vp_lever_id id) {
    return id == VP_LEVER_CONTEXT || id == VP_LEVER_CONCURRENCY || id == VP_LEVER_LENGTH ||
           id == VP_LEVER_MICRO || id == VP_LEVER_GPUS || id == VP_LEVER_GPU ||
           id == VP_LEVER_ADMISSION;
}

static void add(struct vp_search *search, struct vp_outcome *out, const struct vp_pick *pick,
                enum vp_field field, uint64_t above) {
    struct vp_reach reach = vp_find_reach(search, pick, field);
    struct vp_setting set[VP_PATCHES_MOST];
    struct vp_trial trial;

    if (reach.likely <= above)
        return;
    struct vp_lever_value value = vp_lever_workload(search->ctx->arena, search->base, field,
                                                    reach.sure > 0 ? reach.sure : reach.likely);
    size_t count = vp_pick_settings(set, pick, &value);
    vp_search_try(search, &trial, set, count);
    struct vp_proposal *p = &out->item[out->count++];
    *p = vp_pick_proposal(search, pick, &value, &trial);
    p->most = reach.sure > 0 ? reach.sure : reach.likely;
    p->most_likely = reach.likely;
    p->capped = reach.capped;
    p->by_time = reach.by_time;
    p->kept = 1; /* the workload is the question */
}

void vp_find_most(struct vp_search *search, struct vp_outcome *out, const struct vp_result *base,
                  enum vp_field field) {
    struct vp_arena *arena = search->ctx->arena;
    struct vp_lever *levers = VP_NEW_ARRAY(arena, VP_LEVER_COUNT, struct vp_lever);
    uint32_t count = vp_find_levers(search, levers, NULL);
    struct vp_pick pick = {0};

    vp_outcome_begin(search, out, VP_ASK_MOST, goal_name(field), base);
    out->item = VP_NEW_ARRAY(arena, 1024, struct vp_proposal);
    add(search, out, &pick, field, 0);
    uint64_t now = out->count > 0 ? out->item[0].most : 0;
    for (uint32_t i = 0; i < count && !(out->count > 0 && out->item[0].capped); i++) {
        if (is_left_out(levers[i].id))
            continue;
        for (uint32_t v = 0; v < levers[i].values && out->count < 1024; v++) {
            pick =
                (struct vp_pick){.lever = {&levers[i]}, .value = {levers[i].value[v]}, .count = 1};
            add(search, out, &pick, field, now);
        }
    }
    vp_proposals_rank(search, out);
    vp_outcome_end(search, out);
}
