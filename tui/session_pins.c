/* Pinned plans: each is planned anew into a room of its own, so that it stays as it is. */
#include <stdio.h>
#include <string.h>

#include "planner/base/text.h"
#include "tui/session_parts.h"

const struct vp_pin *vp_session_pin(const struct vp_session *session, uint32_t slot) {
    return slot < VP_PINS && session->pin[slot].plan ? &session->pin[slot] : NULL;
}

uint32_t vp_session_pins(const struct vp_session *session) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < VP_PINS; i++)
        count += session->pin[i].plan != NULL;
    return count;
}

static bool same(const struct vp_pin *pin, const struct vp_setting *changes, size_t count) {
    bool same = pin->plan && pin->change_count == count;
    for (size_t i = 0; same && i < count; i++)
        same = vp_text_eq(pin->changes[i].path, changes[i].path) &&
               vp_text_eq(pin->changes[i].value, changes[i].value);
    return same;
}

uint32_t vp_session_pinned(const struct vp_session *session) {
    const struct vp_setting *changes;
    size_t count = vp_session_changes(session, &changes);
    uint32_t slot = 0;
    while (slot < VP_PINS && !same(&session->pin[slot], changes, count))
        slot++;
    return slot;
}

/* ---- labels ---- */

static const char *tokens_text(struct vp_arena *arena, uint64_t n) {
    return n >= 1024 && n % 1024 == 0 ? vp_arena_printf(arena, "%luK", (unsigned long)(n / 1024))
                                      : vp_arena_printf(arena, "%lu", (unsigned long)n);
}

/* "32K x16": what plans most often differ in; the rest stands in the table. */
static const char *label_of(struct vp_arena *arena, const struct vp_result *plan) {
    const struct vp_scenario *s = plan->scenario;
    uint64_t length = s->training ? s->train.sequence : s->serve.context;
    uint64_t batch = s->training ? s->train.micro_batch : s->serve.concurrency;

    return vp_arena_printf(arena, "%s x%lu", tokens_text(arena, length), (unsigned long)batch);
}

/* ---- pinning ---- */

bool vp_session_unpin(struct vp_session *session, uint32_t slot) {
    char text[64];
    if (!vp_session_pin(session, slot))
        return false;
    session->pin[slot] = (struct vp_pin){0};
    session->pin_room[slot].plan = NULL;
    vp_arena_free(&session->pin_room[slot].arena);
    snprintf(text, sizeof text, "pin %c taken out", 'A' + (int)slot);
    vp_session_say(session, VP_INFO, text);
    return true;
}

bool vp_session_pin_toggle(struct vp_session *session) {
    const struct vp_setting *changes;
    size_t count = vp_session_changes(session, &changes);
    uint32_t slot = vp_session_pinned(session);
    char text[256];

    if (slot < VP_PINS)
        return vp_session_unpin(session, slot);
    for (slot = 0; slot < VP_PINS && session->pin[slot].plan;)
        slot++;
    if (slot == VP_PINS) {
        vp_session_say(session, VP_WARNING,
                       "four plans are pinned: take one out on the compare screen first");
        return false;
    }
    struct vp_session_room *room = &session->pin_room[slot];
    if (!vp_session_plan_into(session, room, changes, count)) {
        vp_session_say(session, VP_ERROR, "this plan cannot be made again");
        return false;
    }
    session->pin[slot] = (struct vp_pin){.label = label_of(&room->arena, room->plan),
                                         .plan = room->plan,
                                         .changes = vp_session_copy(&room->arena, changes, count),
                                         .change_count = count};
    snprintf(text, sizeof text, "pinned as %c: %s", 'A' + (int)slot, session->pin[slot].label);
    vp_session_say(session, VP_INFO, text);
    return true;
}

bool vp_session_pin_rename(struct vp_session *session, uint32_t slot, const char *label) {
    if (!vp_session_pin(session, slot) || !*label)
        return false;
    session->pin[slot].label = vp_arena_printf(&session->pin_room[slot].arena, "%s", label);
    return true;
}

bool vp_session_pin_recall(struct vp_session *session, uint32_t slot) {
    const struct vp_pin *pin = vp_session_pin(session, slot);
    char text[256];
    if (!pin)
        return false;
    snprintf(text, sizeof text, "pin %c: %s", 'A' + (int)slot, pin->label);
    return vp_session_replace(session, pin->changes, pin->change_count, text);
}
