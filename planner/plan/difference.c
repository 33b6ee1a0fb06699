#include "planner/plan/difference.h"

#include <string.h>

/* ---- the bytes of a plan ---- */

static int order_of(const struct vp_owner_bytes *a, enum vp_component component,
                    const char *owner) {
    if (a->component != component)
        return a->component < component ? -1 : 1;
    return strcmp(a->owner, owner);
}

/* The owner's place in the sorted list, made when it is missing. */
static struct vp_owner_bytes *place_of(struct vp_worst_bytes *out, struct vp_arena *arena,
                                       enum vp_component component, const char *owner) {
    uint32_t at = 0;

    while (at < out->owners && order_of(&out->owner[at], component, owner) < 0)
        at++;
    if (at < out->owners && order_of(&out->owner[at], component, owner) == 0)
        return &out->owner[at];
    memmove(&out->owner[at + 1], &out->owner[at], (out->owners - at) * sizeof *out->owner);
    out->owners++;
    out->owner[at] = (struct vp_owner_bytes){.component = component,
                                             .owner = vp_arena_text(arena, owner, strlen(owner))};
    return &out->owner[at];
}

void vp_worst_bytes_of(struct vp_arena *arena, struct vp_worst_bytes *out,
                       const struct vp_result *result) {
    const struct vp_device *device = &result->devices[result->worst];
    uint32_t rows = 0;

    *out = (struct vp_worst_bytes){.verdict = result->verdict,
                                   .need = device->need,
                                   .usable_bytes = device->usable_bytes,
                                   .headroom_bytes = result->headroom_bytes};
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        out->component[c] = device->component[c].likely;
    for (uint32_t i = 0; i < result->ledger.count; i++)
        rows += result->ledger.rows[i].device == result->worst;
    out->owner = VP_NEW_ARRAY(arena, rows + 1, struct vp_owner_bytes);
    for (uint32_t i = 0; i < result->ledger.count; i++) {
        const struct vp_row *row = &result->ledger.rows[i];
        if (row->device == result->worst && row->from <= device->peak_step &&
            row->to >= device->peak_step)
            place_of(out, arena, row->component, row->owner ? row->owner : "")->bytes +=
                row->bytes.likely;
    }
}

/* ---- the difference of two ---- */

static int64_t minus(uint64_t a, uint64_t b) { return (int64_t)a - (int64_t)b; }

void vp_difference_step_of(struct vp_arena *arena, struct vp_difference_step *out,
                           const struct vp_worst_bytes *before,
                           const struct vp_worst_bytes *after) {
    uint32_t a = 0, b = 0;

    *out = (struct vp_difference_step){.need_bytes = minus(after->need.likely, before->need.likely),
                                       .usable_bytes =
                                           minus(after->usable_bytes, before->usable_bytes),
                                       .verdict = after->verdict};
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        out->component[c] = minus(after->component[c], before->component[c]);
    out->moved = VP_NEW_ARRAY(arena, before->owners + after->owners, struct vp_moved);
    while (a < before->owners || b < after->owners) {
        const struct vp_owner_bytes *old = a < before->owners ? &before->owner[a] : NULL;
        const struct vp_owner_bytes *new = b < after->owners ? &after->owner[b] : NULL;
        int order = !old ? 1 : !new ? -1 : order_of(old, new->component, new->owner);
        const struct vp_owner_bytes *named = order <= 0 ? old : new;
        int64_t bytes = minus(order >= 0 ? new->bytes : 0, order <= 0 ? old->bytes : 0);
        if (bytes != 0)
            out->moved[out->moved_count++] =
                (struct vp_moved){named->component, named->owner, bytes};
        a += order <= 0;
        b += order >= 0;
    }
}

bool vp_difference_moves(const struct vp_difference_step *step) {
    return step->moved_count > 0 || step->need_bytes != 0 || step->usable_bytes != 0;
}

const struct vp_difference_step *vp_difference_main(const struct vp_difference *difference,
                                                    int component) {
    const struct vp_difference_step *found = NULL;
    int64_t all = 0, most = 0;

    for (uint32_t i = 0; i < difference->steps; i++) {
        const struct vp_difference_step *step = &difference->step[i];
        all += component < VP_COMPONENT_COUNT ? step->component[component] : step->need_bytes;
    }
    for (uint32_t i = 0; i < difference->steps; i++) {
        const struct vp_difference_step *step = &difference->step[i];
        int64_t bytes =
            component < VP_COMPONENT_COUNT ? step->component[component] : step->need_bytes;
        int64_t towards = all < 0 ? -bytes : bytes;
        if (towards > most) {
            most = towards;
            found = step;
        }
    }
    return found;
}

const char *vp_cause_group_name(enum vp_cause_group group) {
    static const char *const NAMES[] = {
        [VP_CAUSE_MODEL] = "model",       [VP_CAUSE_DTYPE] = "dtype",
        [VP_CAUSE_CONTEXT] = "context",   [VP_CAUSE_REQUESTS] = "requests",
        [VP_CAUSE_PARALLEL] = "parallel", [VP_CAUSE_ENGINE] = "engine",
        [VP_CAUSE_SETTINGS] = "settings", [VP_CAUSE_DEVICE] = "device",
        [VP_CAUSE_REST] = "rest"};
    return NAMES[group];
}
