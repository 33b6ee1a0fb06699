/* Layers divided over several GPUs otherwise than by their free memory, which llama.cpp goes by: it
 * does not see that the experts of some layers stay on the host, that the output layer is larger
 * than a block, that cards differ in what else they hold.
 *
 * GPUs hold consecutive layers, the output layer on the last one. What a GPU needs grows with its
 * layers and does not depend on how the others divide theirs; so when each in turn takes as many as
 * it holds and the last one holds the rest, there is a division, and otherwise there is none. */
#include <string.h>

#include "planner/plan/fit_search.h"

static uint64_t usable(const struct vp_fit_search *s, uint32_t gpu, enum vp_fit_sureness how) {
    const struct vp_hardware *hardware = &s->base.hardware;
    const struct vp_amount *memory = &hardware->memory;
    uint64_t reserved = hardware->reserved_bytes, rest = gpu;

    for (uint32_t i = 0; i < hardware->group_count; i++) {
        const struct vp_device_group *group = &hardware->groups[i];
        if (rest < group->count) {
            memory = &group->memory;
            reserved = group->reserved_bytes;
            break;
        }
        rest -= group->count;
    }
    return vp_above(how == VP_FIT_SURE ? memory->low : memory->likely, reserved);
}

/* One GPU by itself, whatever the others hold. */
static bool holds(struct vp_fit_search *s, const struct vp_fit_settings *set, uint32_t gpu,
                  enum vp_fit_sureness how, uint64_t spare_bytes) {
    struct vp_arena_mark mark = vp_arena_mark(s->arena);
    struct vp_scenario scenario = vp_fit_llama_scenario(&s->base, &s->fixed, set);
    struct vp_result plan;
    bool is = false;

    s->out->tried++;
    if (vp_plan_evaluate(s->arena, &plan, &scenario)) {
        const struct vp_device *device = &plan.devices[gpu];
        uint64_t need = how == VP_FIT_SURE ? vp_fit_wanted(s, device, &plan.llama->place[gpu])
                                           : device->need.likely;
        uint64_t room = vp_min(device->usable_bytes, usable(s, gpu, how));
        is = need + spare_bytes <= room;
    }
    vp_arena_rewind(s->arena, mark);
    return is;
}

/* Layers that GPU g takes of those left, the others on the last GPU. */
static bool takes(struct vp_fit_search *s, struct vp_fit_settings *set, uint32_t g, uint64_t layers,
                  uint64_t left, enum vp_fit_sureness how, uint64_t spare_bytes) {
    set->share[g] = (uint16_t)layers;
    set->share[s->base.hardware.count - 1] = (uint16_t)(left - layers);
    return layers == 0 || holds(s, set, g, how, spare_bytes);
}

/* The most of them; begins at what it took last time, which is seldom far off. */
static uint64_t most(struct vp_fit_search *s, struct vp_fit_settings *set, uint32_t g,
                     uint64_t left, enum vp_fit_sureness how, uint64_t spare_bytes) {
    uint64_t low = 0, high = left, step = 1, at = vp_min(s->taken[g], left);

    while (low < high) {
        if (takes(s, set, g, at, left, how, spare_bytes))
            low = at;
        else
            high = at - 1;
        if (low >= high)
            break;
        if (low == at && at + step < high)
            at += step;
        else if (high + 1 == at && at > low + step)
            at -= step;
        else
            at = low + (high - low + 1) / 2;
        step *= 2;
    }
    s->taken[g] = low;
    return low;
}

/* Weights and caches alone exceed what all GPUs together may hold beside their margins. */
static bool is_hopeless(struct vp_fit_search *s, struct vp_fit_settings *set,
                        enum vp_fit_sureness how, uint64_t spare_bytes) {
    uint64_t kept = spare_bytes + (how == VP_FIT_SURE ? s->out->margin_bytes : 0), room = 0;

    for (uint32_t g = 0; g < s->base.hardware.count; g++)
        room += vp_above(usable(s, g, how), kept);
    set->shares = 0;
    return vp_fit_try(s, set).resident_bytes > room;
}

bool vp_fit_divide(struct vp_fit_search *s, struct vp_fit_settings *set, enum vp_fit_sureness how,
                   uint64_t spare_bytes) {
    uint32_t last = (uint32_t)s->base.hardware.count - 1;
    uint64_t left = set->gpu_layers;

    if (left == 0 || left > UINT16_MAX || is_hopeless(s, set, how, spare_bytes))
        return false;
    set->shares = last + 1;
    memset(set->share, 0, sizeof set->share);
    for (uint32_t g = 0; g < last; g++) {
        uint64_t taken = most(s, set, g, left, how, spare_bytes);
        set->share[g] = (uint16_t)taken;
        left -= taken;
        set->share[last] = (uint16_t)left;
    }
    return (left == 0 || holds(s, set, last, how, spare_bytes)) && vp_fit_try(s, set).fits[how];
}

void vp_fit_divide_evenly(struct vp_fit_search *s, struct vp_fit_settings *set,
                          enum vp_fit_sureness how) {
    enum { ROUNDS = 8 };
    struct vp_fit_settings best = *set;
    uint64_t low = 0, high = 0;

    for (uint32_t g = 0; g < s->base.hardware.count; g++)
        high = vp_max(high, usable(s, g, how));
    high /= 2; /* more than half a card to spare is not looked for */
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t middle = low + (high - low) / 2;
        if (vp_fit_divide(s, set, how, middle)) {
            best = *set;
            low = middle;
        } else {
            high = middle;
        }
    }
    *set = best;
}
