/* What makes a scenario fit: single changes, then pairs, then triples. */
#include "api/find.h"

enum { ROOM = 8192, MOST_TRIES = 400000 };

struct kept {
    struct vp_pick pick;
    uint32_t grade[VP_CHANGES_MOST];
    struct vp_trial trial;
};

struct state {
    struct vp_search *search;
    struct vp_outcome *out;
    const struct vp_lever *lever; /* all */
    uint32_t levers;
    struct kept *item; /* what fits, or may */
    uint32_t count;
    uint32_t set_begin; /* first of the present set of levers */
    bool sure;          /* something fits for sure */
    struct vp_pick nearest;
    struct vp_trial nearest_trial;
};

static void try_pick(const struct state *st, struct vp_trial *out, const struct vp_pick *pick) {
    struct vp_setting set[VP_PATCHES_MOST];

    vp_search_try(st->search, out, set, vp_pick_settings(set, pick, NULL));
}

/* ---- one candidate ---- */

/* A milder choice of the same levers does already: each value the same or of a smaller grade. */
static bool is_needless(const struct state *st, const struct vp_pick *pick) {
    for (uint32_t i = st->set_begin; i < st->count; i++) {
        const struct kept *k = &st->item[i];
        bool milder = vp_trial_fits(&k->trial);
        for (uint32_t c = 0; c < pick->count && milder; c++) {
            uint32_t grade = pick->value[c].grade;
            milder = k->grade[c] < grade ||
                     (k->grade[c] == grade && k->pick.value[c].to == pick->value[c].to);
        }
        if (milder)
            return true;
    }
    return false;
}

static void note_nearest(struct state *st, const struct vp_pick *pick, const struct vp_trial *t) {
    if (!t->made ||
        (st->nearest_trial.made && t->headroom_bytes <= st->nearest_trial.headroom_bytes))
        return;
    st->nearest = *pick;
    st->nearest_trial = *t;
}

/* Need never grows towards its later values; with a promise about latency only fewer sequences are
 * sure to be faster (tests/unit/test_find.c). */
static bool is_monotone(const struct state *st, const struct vp_lever *lever) {
    if (st->search->slo.count > 0)
        return lever->id == VP_LEVER_CONCURRENCY;
    return lever->how == VP_HOW_HALVES || lever->id == VP_LEVER_SEQUENCES ||
           lever->id == VP_LEVER_MICRO;
}

/* With another number of one lever: where it fits, that is the pick now. */
static bool try_number(const struct state *st, struct vp_pick *pick, struct vp_trial *trial,
                       uint32_t at, uint64_t number) {
    struct vp_pick next = *pick;
    struct vp_trial tried;

    next.value[at] = vp_lever_number(st->search->ctx->arena, pick->lever[at], st->search->base,
                                     number * pick->lever[at]->step);
    try_pick(st, &tried, &next);
    if (!vp_trial_fits(&tried))
        return false;
    *pick = next;
    *trial = tried;
    return true;
}

/* The largest number of one lever that still fits, between this value and the next milder one: by
 * bisection; where times decide that need not shrink with the number, one by one. */
static void refine(const struct state *st, struct vp_pick *pick, struct vp_trial *trial,
                   uint32_t at) {
    const struct vp_lever *lever = pick->lever[at];
    uint64_t yes = pick->value[at].number, no = lever->present;

    if (lever->how != VP_HOW_HALVES || (!is_monotone(st, lever) && pick->count > 1))
        return;
    for (uint32_t v = 0; v < lever->values && lever->value[v].number > yes; v++)
        no = lever->value[v].number;
    yes /= lever->step;
    no = vp_ceil_div(no, lever->step);
    if (!is_monotone(st, lever)) {
        for (uint64_t n = no - 1; n > yes && !try_number(st, pick, trial, at, n);)
            n--;
        return;
    }
    while (no - yes > 1) {
        uint64_t middle = yes + (no - yes) / 2;
        if (try_number(st, pick, trial, at, middle))
            yes = middle;
        else
            no = middle;
    }
}

static void consider(struct state *st, const struct vp_pick *pick) {
    struct kept k = {.pick = *pick};

    if (st->count == ROOM || st->search->tried >= MOST_TRIES) {
        st->out->stopped = true;
        return;
    }
    try_pick(st, &k.trial, pick);
    if (!vp_trial_may_fit(&k.trial)) {
        note_nearest(st, pick, &k.trial);
        return;
    }
    for (uint32_t c = 0; c < pick->count; c++)
        k.grade[c] = pick->value[c].grade;
    if (vp_trial_fits(&k.trial)) {
        st->sure = true;
        for (uint32_t c = 0; c < pick->count; c++)
            refine(st, &k.pick, &k.trial, c);
    }
    st->item[st->count++] = k;
}

/* ---- all of them ---- */

/* Values are walked lever by lever, monotone ones innermost: where the strongest of those does not
 * fit, none does. */
struct walk {
    struct state *st;
    struct vp_pick *pick;
    uint32_t order[VP_CHANGES_MOST];
    uint32_t plain; /* levers before the monotone ones */
};

static struct walk walk_of(struct state *st, struct vp_pick *pick) {
    struct walk w = {.st = st, .pick = pick};
    uint32_t count = 0;

    for (uint32_t i = 0; i < pick->count; i++)
        if (!is_monotone(st, pick->lever[i]))
            w.order[count++] = i;
    w.plain = count;
    for (uint32_t i = 0; i < pick->count; i++)
        if (is_monotone(st, pick->lever[i]))
            w.order[count++] = i;
    return w;
}

/* Levers from `at` on are monotone: whether anything of them can fit. */
static bool is_hopeless(const struct walk *w, uint32_t at) {
    struct vp_trial trial;

    for (uint32_t i = at; i < w->pick->count; i++) {
        const struct vp_lever *lever = w->pick->lever[w->order[i]];
        w->pick->value[w->order[i]] = lever->value[lever->values - 1];
    }
    try_pick(w->st, &trial, w->pick);
    if (vp_trial_may_fit(&trial) || !trial.made)
        return false;
    note_nearest(w->st, w->pick, &trial);
    return true;
}

static void walk_values(const struct walk *w, uint32_t at) {
    uint32_t place = w->order[at];
    const struct vp_lever *lever = w->pick->lever[place];

    if (at >= w->plain && lever->values > 1 && is_hopeless(w, at))
        return;
    for (uint32_t v = 0; v < lever->values && !w->st->out->stopped; v++) {
        w->pick->value[place] = lever->value[v];
        if (lever->value[v].alone && w->pick->count > 1)
            continue;
        if (at + 1 < w->pick->count)
            walk_values(w, at + 1);
        else if (!is_needless(w->st, w->pick))
            consider(w->st, w->pick);
    }
}

static bool is_excluded(const struct vp_pick *pick, const struct vp_lever *lever) {
    for (uint32_t i = 0; i < pick->count; i++)
        if (vp_levers_exclude(pick->lever[i]->id, lever->id))
            return true;
    return false;
}

/* Sets of `more` further levers from `first` on. */
static void walk_sets(struct state *st, struct vp_pick *pick, uint32_t first, uint32_t more) {
    if (more == 0) {
        struct walk walk = walk_of(st, pick);
        st->set_begin = st->count;
        walk_values(&walk, 0);
        return;
    }
    for (uint32_t i = first; i < st->levers && !st->out->stopped; i++) {
        if (is_excluded(pick, &st->lever[i]))
            continue;
        pick->lever[pick->count++] = &st->lever[i];
        walk_sets(st, pick, i + 1, more - 1);
        pick->count--;
    }
}

/* ---- the answer ---- */

static void set_limits(struct vp_search *search, struct vp_outcome *out) {
    static const struct vp_pick NONE = {0};

    if (search->base->training) {
        out->max_micro_batch = vp_find_reach(search, &NONE, VP_F_MICRO_BATCH).sure;
        return;
    }
    struct vp_reach context = vp_find_reach(search, &NONE, VP_F_CONTEXT);
    struct vp_reach sequences = vp_find_reach(search, &NONE, VP_F_CONCURRENCY);
    out->max_context = context.sure;
    out->context_capped = context.capped;
    out->max_sequences = sequences.sure;
    out->sequences_capped = sequences.capped;
}

/* What fits for sure; without any, what may, with the fewest changes. */
static void collect(struct state *st) {
    struct vp_outcome *out = st->out;

    out->item = VP_NEW_ARRAY(st->search->ctx->arena, st->count + 1, struct vp_proposal);
    for (uint32_t i = 0; i < st->count; i++) {
        const struct kept *k = &st->item[i];
        if (st->sure ? !vp_trial_fits(&k->trial) : k->pick.count > st->item[0].pick.count)
            continue;
        out->item[out->count++] = vp_pick_proposal(st->search, &k->pick, NULL, &k->trial);
    }
    out->needed = out->count > 0 ? out->item[0].changes : 0;
    vp_proposals_rank(st->search, out);
    if (out->count > 0 || !st->nearest_trial.made)
        return;
    out->nearest = VP_NEW(st->search->ctx->arena, struct vp_proposal);
    *out->nearest = vp_pick_proposal(st->search, &st->nearest, NULL, &st->nearest_trial);
}

void vp_find_changes(struct vp_search *search, struct vp_outcome *out, const struct vp_result *base,
                     const struct vp_gpus *gpus) {
    struct vp_arena *arena = search->ctx->arena;
    struct vp_lever *levers = VP_NEW_ARRAY(arena, VP_LEVER_COUNT, struct vp_lever);
    struct state st = {.search = search, .out = out, .lever = levers};

    vp_outcome_begin(search, out, VP_ASK_CHANGES, NULL, base);
    set_limits(search, out);
    if (!vp_trial_fits(&out->now)) {
        st.levers = vp_find_levers(search, levers, gpus);
        st.item = VP_NEW_ARRAY(arena, ROOM, struct kept);
        for (uint32_t n = 1; n <= VP_CHANGES_MOST && !st.sure; n++) {
            struct vp_pick pick = {0};
            walk_sets(&st, &pick, 0, n);
        }
        collect(&st);
    }
    vp_outcome_end(search, out);
}
