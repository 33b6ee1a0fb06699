/* On how few GPUs: counts from one up, every layout of a count. */
#include "api/find.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/text.h"

enum { ROOM = 4096 };

/* What a candidate of this question changes: which GPU, how many of them in which layout. */
static struct vp_proposal proposal(struct vp_search *search, const struct vp_setting *set,
                                   size_t count, const struct vp_lever_value *layout,
                                   const struct vp_trial *trial) {
    static const struct vp_pick NONE = {0};
    struct vp_lever_value all = {.set = VP_NEW_ARRAY(search->ctx->arena, count, struct vp_setting),
                                 .sets = (uint32_t)count};

    memcpy(all.set, set, count * sizeof *set);
    struct vp_proposal p = vp_pick_proposal(search, &NONE, &all, trial);
    p.changes = 1;
    p.change[0] = (struct vp_change){.lever = "gpus",
                                     .what = layout->to,
                                     .field = "hardware.gpu",
                                     .from = search->base->hardware.gpu.id,
                                     .to = trial->gpu,
                                     .quality = "none",
                                     .speed = "none",
                                     .money = "none"};
    return p;
}

/* All layouts of `n` cards; true when one fits for sure. */
static bool try_count(struct vp_search *search, struct vp_outcome *out, const char *gpu,
                      uint64_t n) {
    struct vp_layouts layouts = vp_layouts_of(search->ctx->arena, search->base, n, true);
    bool sure = false;

    for (uint32_t i = 0; i < layouts.count; i++) {
        struct vp_setting set[VP_PATCHES_MOST] = {{"hardware.gpu", gpu, "--gpu"}};
        struct vp_trial trial;
        size_t count = gpu != NULL;
        for (uint32_t k = 0; k < layouts.item[i].sets; k++)
            set[count++] = layouts.item[i].set[k];
        vp_search_try(search, &trial, set, count);
        if (trial.made &&
            (!out->nearest || trial.headroom_bytes > out->nearest->trial.headroom_bytes)) {
            out->nearest = VP_NEW(search->ctx->arena, struct vp_proposal);
            *out->nearest = proposal(search, set, count, &layouts.item[i], &trial);
        }
        if (!vp_trial_may_fit(&trial) || out->count == ROOM)
            continue;
        sure |= vp_trial_fits(&trial);
        out->item[out->count++] = proposal(search, set, count, &layouts.item[i], &trial);
    }
    return sure;
}

/* Why there is none of a card: too little memory, or the engine refuses it. */
static const char *nothing_text(struct vp_search *search, const char *gpu, bool any) {
    struct vp_setting set = {"hardware.gpu", gpu, "--gpu"};
    const char *name = gpu ? gpu : search->base->hardware.gpu.id;
    const char *why = any ? NULL : vp_search_refusal(search, &set, gpu != NULL);

    if (why)
        return vp_arena_printf(search->ctx->arena, "%s: %s", name, why);
    return vp_arena_printf(search->ctx->arena, "%s: no layout of up to %d of them fits", name,
                           VP_MOST_GPUS);
}

/* Of one card: the fewest for sure, and nothing that is only at risk with as many or more. */
static void try_gpu(struct vp_search *search, struct vp_outcome *out, const char *gpu) {
    struct vp_outcome of = {.item = VP_NEW_ARRAY(search->ctx->arena, ROOM, struct vp_proposal)};
    bool sure = false;

    for (uint64_t n = 1; n <= VP_MOST_GPUS && !sure; n += n < 8 ? 1 : 8)
        sure = try_count(search, &of, gpu, n);
    for (uint32_t i = 0, left = 0; i < of.count;
         i++) { /* the fewest at risk, the fewest for sure */
        const struct vp_trial *t = &of.item[i].trial;
        bool more = !vp_trial_fits(t) && (t->gpus > of.item[0].trial.gpus ||
                                          (sure && t->gpus >= of.item[of.count - 1].trial.gpus));
        if (!more)
            of.item[left++] = of.item[i];
        if (i + 1 == of.count)
            of.count = left;
    }
    vp_proposals_rank(search, &of);
    if (of.count == 0)
        out->notes[out->note_count++] = nothing_text(search, gpu, of.nearest != NULL);
    for (uint32_t i = 0; i < of.count && out->count < ROOM; i++)
        out->item[out->count++] = of.item[i];
    out->beaten += of.beaten;
    if (of.nearest &&
        (!out->nearest || of.nearest->trial.headroom_bytes > out->nearest->trial.headroom_bytes))
        out->nearest = of.nearest;
}

static int by_key(const struct vp_proposal *a, const struct vp_proposal *b, bool cost) {
    double x = cost ? a->trial.price_per_hour : (double)a->trial.gpus;
    double y = cost ? b->trial.price_per_hour : (double)b->trial.gpus;

    if ((x > 0) != (y > 0)) /* a price that is not known is no low price */
        return x > 0 ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Few hundred at most, and stable: the order within a card is that of vp_proposals_rank. */
static void sort(struct vp_outcome *out, bool cost) {
    for (uint32_t i = 1; i < out->count; i++) {
        struct vp_proposal p = out->item[i];
        uint32_t k = i;
        for (; k > 0; k--) {
            const struct vp_proposal *before = &out->item[k - 1];
            bool first = vp_trial_fits(&before->trial), second = vp_trial_fits(&p.trial);
            bool worse = first != second ? second : by_key(before, &p, cost) > 0;
            if (!worse)
                break;
            out->item[k] = *before;
        }
        out->item[k] = p;
    }
}

void vp_find_fewest(struct vp_search *search, struct vp_outcome *out, const struct vp_result *base,
                    const char *const *names, size_t count, bool cost) {
    struct vp_arena *arena = search->ctx->arena;
    bool priced = false;

    vp_outcome_begin(search, out, VP_ASK_FEWEST, cost ? "cost" : "gpus", base);
    out->item = VP_NEW_ARRAY(arena, ROOM, struct vp_proposal);
    out->notes = VP_NEW_ARRAY(arena, count + 1, const char *);
    for (size_t i = 0; i < count; i++)
        try_gpu(search, out, names[i]);
    sort(out, cost);
    for (uint32_t i = 0; i < out->count; i++)
        priced |= out->item[i].trial.price_per_hour > 0;
    if (cost && !priced && out->count > 0)
        out->notes[out->note_count++] = "no price is known: say --price GPU=PRICE,... (of one "
                                        "device and hour); ranked by count";
    vp_outcome_end(search, out);
}
