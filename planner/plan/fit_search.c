/* One candidate sized, and one quantity driven as far as it goes. */
#include <string.h>

#include "planner/plan/fit_search.h"

enum { CONTEXT_STEP = 256 /* cells of a cache are rounded up to it */ };

/* ---- one candidate ---- */

uint64_t vp_fit_wanted(const struct vp_fit_search *s, const struct vp_device *device,
                       const struct vp_llama_place *place) {
    uint64_t buffers = vp_above(device->need.high, place->pool.high);

    if (device->need.high == 0)
        return 0; /* not used */
    return vp_max(device->need.high, vp_sum_add(vp_sum(buffers), s->out->margin_bytes).v);
}

static void keep_nearest(struct vp_fit_search *s, const struct vp_fit_settings *set,
                         uint32_t device, uint64_t short_bytes) {
    if (s->any_nearest && s->nearest_bytes <= short_bytes)
        return;
    s->any_nearest = true;
    s->nearest_bytes = short_bytes;
    s->out->nearest = *set;
    s->out->short_device = device;
    s->out->short_bytes = short_bytes;
}

static void judge(struct vp_fit_search *s, struct vp_fit_trial *out, const struct vp_result *plan,
                  const struct vp_fit_settings *set) {
    uint32_t gpus = plan->llama->gpus, short_device = gpus;
    const struct vp_device *host = &plan->devices[gpus];
    uint64_t most =
        plan->reason == VP_REASON_HOST ? vp_above(host->need.high, host->usable_bytes) : 0;

    out->fits[VP_FIT_LIKELY] = plan->verdict != VP_DOES_NOT_FIT;
    out->fits[VP_FIT_SURE] = plan->verdict == VP_FITS;
    for (uint32_t g = 0; g < gpus; g++) {
        const struct vp_device *device = &plan->devices[g];
        const struct vp_llama_place *place = &plan->llama->place[g];
        uint64_t over = vp_above(vp_fit_wanted(s, device, place), device->usable_bytes);
        out->fits[VP_FIT_SURE] = out->fits[VP_FIT_SURE] && over == 0;
        out->fits[VP_FIT_LIKELY] =
            out->fits[VP_FIT_LIKELY] && device->need.likely <= device->usable_bytes;
        out->resident_bytes += place->buffer[VP_LLAMA_MODEL].low + place->buffer[VP_LLAMA_KV].low +
                               place->buffer[VP_LLAMA_STATE].low;
        if (over > most) {
            most = over;
            short_device = g;
        }
    }
    if (!out->fits[VP_FIT_SURE])
        keep_nearest(s, set, short_device, plan->llama->refused ? UINT64_MAX : most);
}

struct vp_fit_trial vp_fit_try(struct vp_fit_search *s, const struct vp_fit_settings *set) {
    struct vp_arena_mark mark = vp_arena_mark(s->arena);
    struct vp_scenario scenario = vp_fit_llama_scenario(&s->base, &s->fixed, set);
    struct vp_fit_trial out = {.resident_bytes = UINT64_MAX};
    struct vp_result plan;

    s->out->tried++;
    if (vp_plan_evaluate(s->arena, &plan, &scenario)) {
        const struct vp_device *worst =
            &plan.devices[plan.llama->gpus > 0 ? plan.worst : plan.llama->gpus];
        out.resident_bytes = 0;
        judge(s, &out, &plan, set);
        out.figures.set = *set;
        out.figures.set.gpu_layers = plan.llama->gpu_layers; /* 999 is all of them */
        out.figures.worst = (uint32_t)(worst - plan.devices);
        out.figures.need = worst->need;
        out.figures.spare_bytes = (int64_t)worst->usable_bytes - (int64_t)worst->need.high;
        out.figures.host_bytes = plan.devices[plan.llama->gpus].need.likely;
    }
    vp_arena_rewind(s->arena, mark);
    return out;
}

bool vp_fit_holds(struct vp_fit_search *s, struct vp_fit_settings *set, enum vp_fit_sureness how) {
    set->shares = 0;
    if (vp_fit_try(s, set).fits[how])
        return true;
    return s->dividing && vp_fit_divide(s, set, how, 0);
}

/* What grows with every layer exceeds all GPUs together. */
static bool is_beyond(struct vp_fit_search *s, struct vp_fit_settings *set) {
    struct vp_sum room = vp_sum(0);
    const struct vp_hardware *hardware = &s->base.hardware;

    for (uint32_t i = 0; i < hardware->group_count; i++)
        room = vp_sum_plus(
            room, vp_sum_mul(vp_sum(hardware->groups[i].memory_bytes), hardware->groups[i].count));
    if (hardware->group_count == 0)
        room = vp_sum_mul(vp_sum(hardware->memory_bytes), hardware->count);
    set->shares = 0;
    return !room.overflow && vp_fit_try(s, set).resident_bytes > room.v;
}

/* ---- quantities ---- */

/* A longer context never lowers a need. Tried are the ends and the multiples between them. */
bool vp_fit_longest(struct vp_fit_search *s, struct vp_fit_settings *set, uint64_t least,
                    uint64_t most, enum vp_fit_sureness how) {
    uint64_t low = least, high = most;

    set->context = most;
    if (vp_fit_holds(s, set, how))
        return true;
    set->context = least;
    if (most <= least || !vp_fit_holds(s, set, how))
        return false;
    for (;;) {
        uint64_t middle = (low + (high - low) / 2) / CONTEXT_STEP * CONTEXT_STEP;
        if (middle <= low)
            middle = (low / CONTEXT_STEP + 1) * CONTEXT_STEP;
        if (middle >= high)
            break;
        set->context = middle;
        if (vp_fit_holds(s, set, how))
            low = middle;
        else
            high = middle;
    }
    set->context = low;
    return true;
}

/* Nor do more sequences of the same context. */
bool vp_fit_most_slots(struct vp_fit_search *s, struct vp_fit_settings *set,
                       enum vp_fit_sureness how) {
    uint64_t low = 0, high = s->most_slots;

    while (low < high) {
        set->slots = low + (high - low + 1) / 2;
        if (vp_fit_holds(s, set, how))
            low = set->slots;
        else
            high = set->slots - 1;
    }
    set->slots = low;
    return low > 0;
}

bool vp_fit_most_layers(struct vp_fit_search *s, struct vp_fit_settings *set, uint64_t most,
                        enum vp_fit_sureness how) {
    uint64_t low = 0, high = most;

    set->gpu_layers = most;
    if (vp_fit_holds(s, set, how))
        return true;
    while (low < high) {
        set->gpu_layers = low + (high - low + 1) / 2;
        if (is_beyond(s, set))
            high = set->gpu_layers - 1;
        else
            low = set->gpu_layers;
    }
    for (set->gpu_layers = low; !vp_fit_holds(s, set, how); set->gpu_layers--)
        if (set->gpu_layers == 0)
            return false;
    return true;
}

bool vp_fit_fewest_experts(struct vp_fit_search *s, struct vp_fit_settings *set,
                           enum vp_fit_sureness how) {
    uint64_t low = 0, high = s->base.model->layer_count;

    while (low < high) {
        set->host_experts = low + (high - low) / 2;
        if (is_beyond(s, set))
            low = set->host_experts + 1;
        else
            high = set->host_experts;
    }
    for (set->host_experts = low; set->host_experts <= s->base.model->layer_count;
         set->host_experts++)
        if (vp_fit_holds(s, set, how))
            return true;
    return false;
}
