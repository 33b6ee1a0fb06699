/* The knobs of a session: listing them, turning them. */
#include "planner/base/text.h"
#include "tui/session_parts.h"

uint32_t vp_session_knobs(struct vp_session *session, const struct vp_knob **out) {
    struct vp_session_details *d = &session->details;
    const struct vp_setting *changes;
    size_t count = vp_session_changes(session, &changes);

    if (d->knobs == 0) {
        d->knobs = vp_knobs_of(&d->arena, d->knob, vp_session_plan(session)->scenario);
        for (uint32_t i = 0; i < d->knobs; i++)
            for (size_t k = 0; k < count; k++)
                d->knob[i].changed |= vp_text_eq(changes[k].path, d->knob[i].path);
    }
    *out = d->knob;
    return d->knobs;
}

static const struct vp_knob *find(struct vp_session *session, enum vp_knob_id id) {
    const struct vp_knob *all;
    uint32_t count = vp_session_knobs(session, &all);

    for (uint32_t i = 0; i < count; i++)
        if (all[i].id == id)
            return &all[i];
    vp_session_say(session, VP_INFO, "this scenario has no such setting");
    return NULL;
}

/* ---- turning ---- */

/* The tries live in an arena of their own: taking one drops all that belongs to the plan. */
static bool turn(struct vp_session *session, enum vp_knob_id id, int by, const char *text) {
    struct vp_arena arena = {.oom = session->ctx->arena->oom, .take = session->ctx->arena->take};
    const struct vp_scenario *now = vp_session_plan(session)->scenario;
    const struct vp_knob *knob = find(session, id);
    struct vp_lever_value *tries = VP_NEW_ARRAY(&arena, VP_KNOB_TRIES, struct vp_lever_value);
    bool done = false;

    if (knob) {
        const struct vp_catalogue *catalogue = vp_session_catalogue(session);
        const char *label = knob->label;
        uint32_t count = text ? vp_knob_typed(&arena, tries, now, catalogue, id, text)
                              : vp_knob_steps(&arena, tries, now, catalogue, id, by);
        if (count > 0)
            done = vp_session_first_of(session, tries, count, label);
        else
            vp_session_say(session, VP_INFO,
                           vp_arena_printf(&arena, "%s: no further value %s", label,
                                           by > 0 ? "above" : "below"));
    }
    vp_arena_free(&arena);
    return done;
}

bool vp_session_step(struct vp_session *session, enum vp_knob_id knob, int by) {
    return turn(session, knob, by, NULL);
}

bool vp_session_choose(struct vp_session *session, enum vp_knob_id knob, int by) {
    return turn(session, knob, by > 0 ? 1 : -1, NULL);
}

bool vp_session_type(struct vp_session *session, enum vp_knob_id knob, const char *text) {
    return turn(session, knob, 0, text);
}

/* A number is set to what it was, so that what went along with it goes back, too (the longest
 * sequence with the context, GPUs with ranks); what then is as the input says is no change any
 * more. */
bool vp_session_reset_knob(struct vp_session *session, enum vp_knob_id id) {
    const struct vp_scenario *base = vp_variants_base(session->variants);
    const struct vp_knob *knob = find(session, id);
    struct vp_arena arena = {.oom = session->ctx->arena->oom, .take = session->ctx->arena->take};
    struct vp_knob was;

    if (!knob)
        return false;
    bool number = knob->how == VP_KNOB_TOKENS || knob->how == VP_KNOB_NUMBER, done;
    if (knob->changed && number && base && vp_knob_of(&arena, &was, base, id))
        done = turn(session, id, 0, was.value);
    else
        done = vp_session_reset(session, knob->path);
    vp_arena_free(&arena);
    return done;
}

/* ---- choices ---- */

/* Why a value is refused; NULL: it is not. */
static const char *refusal(struct vp_session *session, enum vp_knob_id id, const char *value) {
    struct vp_session_details *d = &session->details;
    struct vp_arena arena = {.oom = session->ctx->arena->oom, .take = session->ctx->arena->take};
    struct vp_lever_value *tries = VP_NEW_ARRAY(&arena, VP_KNOB_TRIES, struct vp_lever_value);
    struct vp_session_room *room = VP_NEW(&arena, struct vp_session_room);
    const struct vp_setting *changes;
    size_t count = vp_session_changes(session, &changes);
    const char *why = NULL;
    uint32_t n = vp_knob_typed(&arena, tries, vp_session_plan(session)->scenario,
                               vp_session_catalogue(session), id, value);
    struct vp_setting *all =
        VP_NEW_ARRAY(&arena, count + (n ? tries[0].sets : 0) + 1, struct vp_setting);
    const struct vp_scenario *scenario;
    size_t total = 0;

    for (size_t i = 0; i < count; i++)
        all[total++] = changes[i];
    for (uint32_t i = 0; n > 0 && i < tries[0].sets; i++)
        all[total++] = tries[0].set[i];
    struct vp_ctx ctx = vp_session_ctx(session, &arena, &room->diags);
    if (vp_variants_make(session->variants, &ctx, &scenario, all, total) != VP_OK) {
        why = "refused";
        for (uint32_t i = room->diags.count; i-- > 0;)
            if (vp_diag_severity(room->diags.items[i].id) == VP_ERROR)
                why = room->diags.items[i].message;
        why = vp_arena_printf(&d->arena, "%s", why);
    }
    vp_arena_free(&arena);
    return why;
}

uint32_t vp_session_choices(struct vp_session *session, enum vp_knob_id id,
                            const struct vp_knob_choice **out) {
    struct vp_session_details *d = &session->details;

    *out = NULL;
    if (!d->listed[id]) {
        d->listed[id] = true;
        d->choices[id] =
            vp_knob_words(&d->arena, &d->choice[id], vp_session_plan(session)->scenario,
                          vp_session_catalogue(session), id);
        for (uint32_t i = 0; i < d->choices[id]; i++)
            if (!d->choice[id][i].present)
                d->choice[id][i].refused = refusal(session, id, d->choice[id][i].value);
    }
    *out = d->choice[id];
    return d->choices[id];
}
