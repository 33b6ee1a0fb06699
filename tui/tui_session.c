#include "tui/tui_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/slo.h"
#include "planner/base/text.h"
#include "planner/plan/plan.h"
#include "reports/words.h"
#include "tui/session_parts.h"

/* ---- planning ---- */

struct vp_ctx vp_session_ctx(const struct vp_session *session, struct vp_arena *arena,
                             struct vp_diags *diags) {
    struct vp_ctx ctx = *session->ctx;
    *diags = (struct vp_diags){.arena = arena};
    ctx.arena = arena;
    ctx.diags = diags;
    return ctx;
}

bool vp_session_plan_into(const struct vp_session *session, struct vp_session_room *room,
                          const struct vp_setting *changes, size_t count) {
    vp_arena_free(&room->arena);
    struct vp_ctx ctx = vp_session_ctx(session, &room->arena, &room->diags);
    const struct vp_scenario *scenario;
    struct vp_result *plan = VP_NEW(&room->arena, struct vp_result);

    room->plan = NULL;
    if (vp_variants_make(session->variants, &ctx, &scenario, changes, count) != VP_OK ||
        vp_plan_answer(&ctx, plan, scenario) != VP_OK)
        return false;
    vp_slo_note(&ctx, plan);
    room->plan = plan;
    return true;
}

const struct vp_result *vp_session_plan(const struct vp_session *session) {
    return session->room[session->now].plan;
}

uint64_t vp_session_serial(const struct vp_session *session) { return session->serial; }

const char *vp_session_input(const struct vp_session *session) { return session->input; }

const struct vp_catalogue *vp_session_catalogue(struct vp_session *session) {
    if (!session->catalogue) {
        struct vp_diags diags;
        struct vp_ctx ctx = vp_session_ctx(session, session->ctx->arena, &diags);
        session->catalogue = VP_NEW(ctx.arena, struct vp_catalogue);
        vp_catalogue_read(&ctx, session->catalogue); /* what can be read is there all the same */
    }
    return session->catalogue;
}

/* ---- messages ---- */

void vp_session_hush(struct vp_session *session) {
    vp_arena_free(&session->message_arena);
    session->messages = 0;
}

static const char *keep(struct vp_arena *arena, const char *text) {
    return text ? vp_arena_text(arena, text, strlen(text)) : NULL;
}

void vp_session_add_message(struct vp_session *session, enum vp_severity severity, const char *code,
                            const char *text, const char *hint) {
    struct vp_arena *arena = &session->message_arena;
    if (session->messages == VP_SESSION_MESSAGES)
        return;
    session->message[session->messages++] = (struct vp_session_message){
        severity, keep(arena, code), keep(arena, text), keep(arena, hint)};
}

void vp_session_say(struct vp_session *session, enum vp_severity severity, const char *text) {
    char copy[512]; /* the text may be one of the messages */
    snprintf(copy, sizeof copy, "%s", text);
    vp_session_hush(session);
    vp_session_add_message(session, severity, NULL, copy, NULL);
}

uint32_t vp_session_messages(const struct vp_session *session,
                             const struct vp_session_message **out) {
    *out = session->message;
    return session->messages;
}

/* Why a room holds no plan. */
static void tell_refusal(struct vp_session *session, const struct vp_session_room *room) {
    vp_session_hush(session);
    for (uint32_t i = 0; i < room->diags.count; i++) {
        const struct vp_diag *d = &room->diags.items[i];
        if (vp_diag_severity(d->id) == VP_ERROR)
            vp_session_add_message(session, VP_ERROR, vp_diag_code(d->id), d->message, d->hint);
    }
    if (session->messages == 0)
        vp_session_add_message(session, VP_ERROR, NULL, "refused", NULL);
}

/* ---- the present state ---- */

/* The room that was tried is the present plan from now on. */
static void take_room(struct vp_session *session) {
    session->now = !session->now;
    session->serial++;
    vp_session_drop_details(session);
}

static bool try_changes(struct vp_session *session, const struct vp_setting *changes,
                        size_t count) {
    return vp_session_plan_into(session, &session->room[!session->now], changes, count);
}

struct vp_setting *vp_session_copy(struct vp_arena *arena, const struct vp_setting *settings,
                                   size_t count) {
    struct vp_setting *copy = VP_NEW_ARRAY(arena, count + 1, struct vp_setting);

    for (size_t i = 0; i < count; i++)
        copy[i] = (struct vp_setting){keep(arena, settings[i].path), keep(arena, settings[i].value),
                                      keep(arena, settings[i].key)};
    return copy;
}

/* A new state after the present one; what was undone is forgotten. */
static void push(struct vp_session *session, const struct vp_setting *changes, size_t count,
                 const char *text) {
    struct vp_arena *arena = session->ctx->arena;

    session->states = session->at + 1;
    if (session->saved > session->at)
        session->saved = SIZE_MAX; /* it cannot be reached any more */
    if (session->states == session->state_room) {
        size_t room = 2 * session->state_room + 64;
        struct vp_session_state *all = VP_NEW_ARRAY(arena, room, struct vp_session_state);
        for (size_t i = 0; i < session->states; i++)
            all[i] = session->state[i];
        session->state = all;
        session->state_room = room;
    }
    session->state[session->states] =
        (struct vp_session_state){vp_session_copy(arena, changes, count), count, keep(arena, text)};
    session->at = session->states++;
}

size_t vp_session_changes(const struct vp_session *session, const struct vp_setting **out) {
    *out = session->state[session->at].changes;
    return session->state[session->at].count;
}

/* ---- opening ---- */

/* Where to begin when no GPU is said: any will do, as it can be turned; this one is current, and
 * large enough for most models. */
static const char START_GPU[] = "mi300x";

static bool lacks_gpu(const struct vp_diags *diags) {
    for (uint32_t i = 0; i < diags->count; i++)
        if (diags->items[i].id == VP_D_MISSING_VALUE &&
            strstr(diags->items[i].message, "hardware.gpu"))
            return true;
    return false;
}

static void start_history(struct vp_session *session) {
    session->state_room = 64;
    session->state =
        VP_NEW_ARRAY(session->ctx->arena, session->state_room, struct vp_session_state);
    session->states = 1;
}

/* The first plan; with a GPU where that is all that is missing. */
static enum vp_status first_plan(struct vp_session *session, struct vp_diags *opening) {
    const struct vp_setting gpu = {"hardware.gpu", START_GPU, "hardware.gpu"};
    if (try_changes(session, NULL, 0)) {
        take_room(session);
        return VP_OK;
    }
    if (lacks_gpu(opening) && try_changes(session, &gpu, 1)) {
        take_room(session);
        session->state[0] =
            (struct vp_session_state){vp_session_copy(session->ctx->arena, &gpu, 1), 1, NULL};
        vp_session_say(session, VP_WARNING,
                       "no GPU was given: this is for a mi300x; choose another one");
        return VP_OK;
    }
    vp_diags_merge(session->ctx->diags, opening);
    vp_diags_merge(session->ctx->diags, &session->room[!session->now].diags);
    return VP_ERR_INPUT;
}

enum vp_status vp_session_open(struct vp_ctx *ctx, struct vp_session **out, const char *input,
                               const struct vp_setting *settings, size_t setting_count) {
    struct vp_session *session = VP_NEW(ctx->arena, struct vp_session);
    struct vp_diags *opening = VP_NEW(ctx->arena, struct vp_diags);
    struct vp_ctx quiet = *ctx;

    *out = session;
    *session = (struct vp_session){
        .ctx = ctx, .input = input, .settings = settings, .setting_count = setting_count};
    struct vp_arena *arenas[] = {&session->room[0].arena, &session->room[1].arena,
                                 &session->message_arena, &session->details.arena};
    for (size_t i = 0; i < sizeof arenas / sizeof *arenas; i++)
        *arenas[i] = (struct vp_arena){.oom = ctx->arena->oom, .take = ctx->arena->take};
    for (int i = 0; i < VP_PINS; i++)
        session->pin_room[i].arena =
            (struct vp_arena){.oom = ctx->arena->oom, .take = ctx->arena->take};
    start_history(session);
    opening->arena = ctx->arena;
    quiet.diags = opening;
    enum vp_status status =
        vp_variants_open(&quiet, &session->variants, input, settings, setting_count);
    if (status == VP_ERR_ENV || !vp_variants_readable(session->variants)) {
        vp_diags_merge(ctx->diags, opening);
        return status == VP_OK ? VP_ERR_INPUT : status;
    }
    return first_plan(session, opening);
}

void vp_session_close(struct vp_session *session) {
    if (!session)
        return;
    vp_session_end_jobs(session);
    vp_variants_close(session->variants);
    vp_arena_free(&session->room[0].arena);
    vp_arena_free(&session->room[1].arena);
    vp_arena_free(&session->message_arena);
    vp_arena_free(&session->details.arena);
    for (int i = 0; i < VP_PINS; i++)
        vp_arena_free(&session->pin_room[i].arena);
}

/* ---- changes ---- */

/* What a path is in a scenario: "32768"; NULL: it is no field (such as a map). */
static const char *value_in(struct vp_arena *arena, const struct vp_scenario *s, const char *path) {
    enum vp_field field = vp_field_find_for(s->engine.kind, path);
    if (vp_text_eq(path, "model"))
        return vp_words_model(s);
    return field == VP_FIELD_COUNT ? NULL : vp_field_value(arena, s, field);
}

struct list {
    struct vp_setting *item;
    size_t count;
};

static void lay(struct list *list, const struct vp_setting *set) {
    size_t at = 0;
    while (at < list->count && !vp_text_eq(list->item[at].path, set->path))
        at++;
    list->item[at] = *set;
    list->count += at == list->count;
}

static void leave_out(struct list *list, const char *path) {
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (!vp_text_eq(list->item[i].path, path))
            list->item[kept++] = list->item[i];
    list->count = kept;
}

static struct list present(struct vp_session *session, size_t more, struct vp_arena *arena) {
    const struct vp_session_state *now = &session->state[session->at];
    struct list list = {VP_NEW_ARRAY(arena, now->count + more + 1, struct vp_setting), now->count};
    for (size_t i = 0; i < now->count; i++)
        list.item[i] = now->changes[i];
    return list;
}

static bool same_list(const struct vp_session_state *state, const struct list *list) {
    bool same = state->count == list->count;
    for (size_t i = 0; same && i < list->count; i++)
        same = vp_text_eq(state->changes[i].path, list->item[i].path) &&
               vp_text_eq(state->changes[i].value, list->item[i].value);
    return same;
}

/* Whether the room that was tried has the value that was asked for, though nothing asks for it. */
static bool has_value(const struct vp_session_room *room, struct vp_arena *arena,
                      const struct vp_setting *set) {
    const char *value = room->plan ? value_in(arena, room->plan->scenario, set->path) : NULL;
    return value && vp_text_eq(value, set->value);
}

/* Values that are there without the change, as the input has them, are no changes: going back to
 * where one was leaves nothing behind. */
static void drop_idle(struct vp_session *session, struct list *list, struct vp_arena *arena,
                      const struct vp_setting *settings, size_t count) {
    const struct vp_scenario *base = vp_variants_base(session->variants);
    for (size_t i = 0; base && i < count; i++) {
        if (!vp_text_eq(value_in(arena, base, settings[i].path), settings[i].value))
            continue;
        struct list without = {VP_NEW_ARRAY(arena, list->count + 1, struct vp_setting),
                               list->count};
        memcpy(without.item, list->item, list->count * sizeof *list->item);
        leave_out(&without, settings[i].path);
        if (try_changes(session, without.item, without.count) &&
            has_value(&session->room[!session->now], arena, &settings[i]))
            *list = without;
    }
}

static const char *change_text(struct vp_session *session, struct vp_arena *arena,
                               const char *label, const struct vp_setting *set) {
    const char *from = value_in(arena, vp_session_plan(session)->scenario, set->path);
    const char *to = value_in(arena, session->room[!session->now].plan->scenario, set->path);
    if (from && to)
        return vp_arena_printf(arena, "%s %s -> %s", label ? label : set->path, from, to);
    return vp_arena_printf(arena, "%s = %s", label ? label : set->path, set->value);
}

/* Plans the list and takes it as the present state. text: how it came about. */
static bool accept(struct vp_session *session, const struct list *list, const char *text) {
    push(session, list->item, list->count, text); /* before what the settings may live in goes */
    take_room(session);
    vp_session_hush(session);
    vp_session_add_message(session, VP_INFO, NULL, text, NULL);
    return true;
}

static bool change(struct vp_session *session, struct vp_arena *arena,
                   const struct vp_setting *settings, size_t count, const char *label) {
    struct list list = present(session, count, arena);
    for (size_t i = 0; i < count; i++)
        lay(&list, &settings[i]);
    if (same_list(&session->state[session->at], &list)) {
        vp_session_say(session, VP_INFO, "nothing changes");
        return true;
    }
    drop_idle(session, &list, arena, settings, count);
    if (same_list(&session->state[session->at], &list)) {
        vp_session_say(session, VP_INFO, "nothing changes");
        return true;
    }
    if (!try_changes(session, list.item, list.count)) {
        tell_refusal(session, &session->room[!session->now]);
        return false;
    }
    const char *text = count > 0 ? change_text(session, arena, label, &settings[0]) : label;
    return accept(session, &list, text);
}

bool vp_session_change(struct vp_session *session, const struct vp_setting *settings, size_t count,
                       const char *label) {
    struct vp_arena arena = {.oom = session->ctx->arena->oom, .take = session->ctx->arena->take};
    bool done = change(session, &arena, settings, count, label);
    vp_arena_free(&arena);
    return done;
}

bool vp_session_set(struct vp_session *session, const char *path, const char *value) {
    const struct vp_setting set = {path, value, path};
    return vp_session_change(session, &set, 1, NULL);
}

bool vp_session_first_of(struct vp_session *session, const struct vp_lever_value *tries,
                         uint32_t count, const char *label) {
    for (uint32_t i = 0; i < count; i++)
        if (vp_session_change(session, tries[i].set, tries[i].sets, label))
            return true;
    if (count > 1) /* why the nearest one is not taken */
        vp_session_change(session, tries[0].set, tries[0].sets, label);
    return false;
}

bool vp_session_replace(struct vp_session *session, const struct vp_setting *settings, size_t count,
                        const char *label) {
    struct list list = {VP_NEW_ARRAY(session->ctx->arena, count + 1, struct vp_setting), 0};
    for (size_t i = 0; i < count; i++)
        lay(&list, &settings[i]);
    if (same_list(&session->state[session->at], &list)) {
        vp_session_say(session, VP_INFO, "nothing changes");
        return true;
    }
    if (try_changes(session, list.item, list.count))
        return accept(session, &list, label);
    tell_refusal(session, &session->room[!session->now]);
    return false;
}

bool vp_session_reset(struct vp_session *session, const char *path) {
    struct vp_arena arena = {.oom = session->ctx->arena->oom, .take = session->ctx->arena->take};
    struct list list = present(session, 0, &arena);
    bool done = false;

    leave_out(&list, path);
    if (list.count == session->state[session->at].count) {
        vp_session_say(session, VP_INFO, "it is as the input says");
    } else if (try_changes(session, list.item, list.count)) {
        const struct vp_setting set = {path, "", path};
        done = accept(session, &list, change_text(session, &arena, NULL, &set));
    } else {
        tell_refusal(session, &session->room[!session->now]);
    }
    vp_arena_free(&arena);
    return done;
}

/* ---- history ---- */

/* A state that was a plan once is one again. */
static bool go_to(struct vp_session *session, size_t at, const char *what, const char *text) {
    const struct vp_session_state *state = &session->state[at];
    struct vp_arena arena = {.oom = session->ctx->arena->oom, .take = session->ctx->arena->take};

    if (!try_changes(session, state->changes, state->count)) {
        tell_refusal(session, &session->room[!session->now]);
        return false;
    }
    take_room(session);
    session->at = at;
    vp_session_say(session, VP_INFO, vp_arena_printf(&arena, "%s: %s", what, text ? text : ""));
    vp_arena_free(&arena);
    return true;
}

bool vp_session_undo(struct vp_session *session) {
    if (session->at > 0)
        return go_to(session, session->at - 1, "undone", session->state[session->at].text);
    vp_session_say(session, VP_INFO, "there is nothing to undo");
    return false;
}

bool vp_session_redo(struct vp_session *session) {
    if (session->at + 1 < session->states)
        return go_to(session, session->at + 1, "done again", session->state[session->at + 1].text);
    vp_session_say(session, VP_INFO, "there is nothing to do again");
    return false;
}

bool vp_session_reset_all(struct vp_session *session) {
    const struct vp_session_state *first = &session->state[0];

    if (session->at == 0) {
        vp_session_say(session, VP_INFO, "there are no changes");
        return false;
    }
    return vp_session_replace(session, first->changes, first->count, "all changes undone");
}

size_t vp_session_undos(const struct vp_session *session) { return session->at; }

size_t vp_session_redos(const struct vp_session *session) {
    return session->states - 1 - session->at;
}

const char *vp_session_history(const struct vp_session *session, size_t back) {
    return back < session->at ? session->state[session->at - back].text : NULL;
}

bool vp_session_unsaved(const struct vp_session *session) { return session->at != session->saved; }
