#include "api/gate_run.h"

#include <string.h>

#include "planner/base/memo.h"
#include "planner/base/text.h"
#include "planner/import/record_reader.h"

/* One scenario of one side, before it has found its other half. */
struct half {
    const char *name, *file;
    size_t input; /* which input it is of */
    struct vp_gate_side side;
    struct vp_scenario *own; /* side.scenario, to be completed; NULL: has faults */
    struct vp_diags *diags;
    enum vp_status status;
    bool paired;
};

struct halves {
    struct half *items;
    size_t count, capacity;
    bool *unreadable; /* by input: the file as a whole */
};

struct opening {
    struct vp_ctx *ctx;
    const struct vp_gate_options *options;
    struct vp_gate_run *run;
    struct halves head, base;
};

static struct vp_diags *new_diags(struct vp_ctx *ctx) {
    struct vp_diags *diags = VP_NEW(ctx->arena, struct vp_diags);
    diags->arena = ctx->arena;
    return diags;
}

/* ---- reading one side ---- */

static struct half *add_half(struct vp_ctx *ctx, struct halves *all) {
    if (all->count == all->capacity) {
        size_t capacity = all->capacity ? 2 * all->capacity : 16;
        struct half *items = VP_NEW_ARRAY(ctx->arena, capacity, struct half);
        if (all->count)
            memcpy(items, all->items, all->count * sizeof *items);
        all->items = items;
        all->capacity = capacity;
    }
    return &all->items[all->count++];
}

static const char *item_name(const struct vp_found_item *item) {
    const char *said = vp_node_text(vp_node_get(item->root, "name"));
    return said ? said : item->name;
}

/* Keeps what --only names, and what stands behind the # of FILE#name. */
static void choose(struct vp_found *found, const char *only, const char *wanted) {
    size_t kept = 0;
    for (size_t i = 0; i < found->count; i++) {
        const char *name = item_name(&found->items[i]);
        if ((!only || (name && vp_text_glob(only, name))) && (!wanted || vp_text_eq(name, wanted)))
            found->items[kept++] = found->items[i];
    }
    found->count = kept;
}

/* Without the budget, so that the verdict is the device's. */
static void plan(struct vp_ctx *side, struct half *half) {
    struct vp_scenario *plain = VP_NEW(side->arena, struct vp_scenario);
    struct vp_result *result = VP_NEW(side->arena, struct vp_result);
    struct vp_ctx ctx = *side;
    *plain = *half->own;
    plain->budget = (struct vp_budget){0};
    ctx.diags = half->diags;
    half->status = vp_plan_run(&ctx, result, plain);
    if (half->status == VP_OK)
        half->side.result = result;
}

/* All scenarios of one file, planned; of one that cannot be read, one half that says so. */
static void read_input(struct vp_ctx *side, struct halves *all, size_t input, const char *path,
                       const char *wanted, const struct opening *o) {
    struct vp_found *found = VP_NEW(side->arena, struct vp_found);
    struct vp_scenarios scenarios = {0};
    struct vp_ctx ctx = *side;
    ctx.diags = new_diags(side); /* merged ones; each scenario has its own as well */
    vp_input_find(&ctx, found, path);
    if (found->status == VP_OK)
        choose(found, o->options->only, wanted);
    vp_input_finish(&ctx, &scenarios, found, o->options->settings, o->options->setting_count);
    if (found->status != VP_OK) {
        struct half *half = add_half(side, all);
        *half = (struct half){path, path, input, .diags = found->diags, .status = found->status};
        all->unreadable[input] = true;
        return;
    }
    for (size_t i = 0; i < scenarios.each_count; i++) {
        const struct vp_scenario_read_result *each = &scenarios.each[i];
        struct half *half = add_half(side, all);
        *half =
            (struct half){.name = each->name, .file = path, .input = input, .status = each->status};
        half->side = (struct vp_gate_side){found, &found->items[i], each->scenario, NULL};
        half->own = each->scenario;
        half->diags = new_diags(side);
        vp_diags_merge(half->diags, found->diags);
        vp_diags_merge(half->diags, each->diags);
        if (half->own)
            plan(side, half);
    }
}

static void load_records(struct opening *o, struct half *half) {
    struct vp_ctx ctx = o->run->head_ctx;
    ctx.diags = half->diags;
    for (uint32_t i = 0; half->own && i < half->own->budget.record_count; i++) {
        enum vp_status status = vp_record_load(&ctx, &half->own->budget.records[i]);
        half->status = status > half->status ? status : half->status;
    }
}

/* ---- pairing ---- */

static struct half *find_half(struct halves *all, const char *name, size_t input, bool any_input) {
    for (size_t i = 0; i < all->count; i++) {
        struct half *half = &all->items[i];
        if (!half->paired && half->side.item && vp_text_eq(half->name, name) &&
            (any_input || half->input == input))
            return half;
    }
    return NULL;
}

/* The one scenario of an input; NULL: it has none, or several. */
static struct half *lone_half(struct halves *all, size_t input) {
    struct half *lone = NULL;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].input == input) {
            if (lone)
                return NULL;
            lone = &all->items[i];
        }
    return lone && lone->side.item ? lone : NULL;
}

/* By name in the same file, then in another one of the run: a scenario that moved. A file that
 * holds one scenario on both sides means the same one, though its name may have changed with the
 * file's. */
static void pair(struct opening *o, struct half **partner) {
    for (int pass = 0; pass < 3; pass++)
        for (size_t i = 0; i < o->head.count; i++) {
            struct half *half = &o->head.items[i], *other = NULL;
            if (half->paired || !half->side.item)
                continue;
            if (pass == 1 && lone_half(&o->head, half->input) == half)
                other = lone_half(&o->base, half->input);
            else if (pass != 1)
                other = find_half(&o->base, half->name, half->input, pass == 2);
            if (!other || other->paired)
                continue;
            half->paired = other->paired = true;
            partner[i] = other;
        }
}

/* ---- checks ---- */

static void one_check(struct opening *o, struct vp_gate_scenario *s, enum vp_check_state state,
                      enum vp_diag_id id, const char *message) {
    s->checks = VP_NEW(o->ctx->arena, struct vp_check);
    s->check_count = 1;
    *s->checks = (struct vp_check){.kind = VP_CHECK_SCENARIO,
                                   .component = VP_COMPONENT_COUNT,
                                   .name = "scenario",
                                   .state = state,
                                   .pos = s->pos,
                                   .id = id,
                                   .message = message};
}

/* The first error, as the message of a scenario that has no plan. */
static void invalid(struct opening *o, struct vp_gate_scenario *s) {
    const struct vp_diags *diags = s->head_diags;
    for (uint32_t i = 0; i < diags->count; i++)
        if (vp_diag_severity(diags->items[i].id) == VP_ERROR) {
            one_check(o, s, VP_CHECK_INVALID, diags->items[i].id, diags->items[i].message);
            s->checks->pos = diags->items[i].pos;
            s->checks->hint = diags->items[i].hint;
            return;
        }
    one_check(o, s, VP_CHECK_INVALID, VP_D_IO, "it could not be planned");
}

static void note_base_fault(struct opening *o, const struct vp_gate_scenario *s) {
    const struct vp_diags *diags = s->base_diags;
    for (uint32_t i = 0; diags && i < diags->count; i++)
        if (vp_diag_severity(diags->items[i].id) == VP_ERROR) {
            vp_diag_add(o->ctx->diags, VP_D_GATE_BASE_FAULT, &diags->items[i].pos,
                        "the base's %s cannot be planned: %s", s->name, diags->items[i].message);
            return;
        }
}

/* Standard input was nowhere before: it is not new, there is nothing to compare it with. */
static bool from_pipe(const struct opening *o, const struct half *head) {
    return vp_text_eq(o->options->inputs[head->input].head, "-");
}

static void put(struct opening *o, const struct half *head, const struct half *base) {
    struct vp_gate *gate = &o->run->gate;
    uint32_t at = gate->scenario_count++;
    struct vp_gate_scenario *s = &gate->scenarios[at];
    const struct half *shown = head ? head : base;
    bool lost = head && o->options->base_io && o->base.unreadable[head->input];
    *s = (struct vp_gate_scenario){.name = shown->name,
                                   .file = shown->file,
                                   .base_file = base ? base->file : NULL,
                                   .head_diags = head ? head->diags : NULL,
                                   .base_diags = base ? base->diags : NULL,
                                   .in_base = base || lost};
    if (head)
        o->run->head[at] = head->side;
    if (base)
        o->run->base[at] = base->side;
    if (shown->side.item)
        s->pos = shown->side.item->root->pos;
    s->base = base ? base->side.result : NULL;
    if (!head) {
        one_check(o, s, VP_CHECK_REMOVED, VP_D_GATE_REMOVED, "removed: it is in the base only");
        return;
    }
    if (head->status != VP_OK || !head->side.result) {
        o->run->status = head->status > o->run->status ? head->status : o->run->status;
        invalid(o, s);
        return;
    }
    s->head = head->side.result;
    if (base && !s->base)
        note_base_fault(o, s);
    struct vp_gate_question question = {.scenario = s->name,
                                        .budget = &head->side.scenario->budget,
                                        .head = s->head,
                                        .base = s->base,
                                        .have_base = o->options->base_io && !from_pipe(o, head),
                                        .in_base = s->in_base,
                                        .today = o->run->today,
                                        .at_risk = o->options->at_risk};
    if (base && base->own)
        vp_gate_loosened(o->ctx, s->name, question.budget, &base->own->budget);
    if (question.budget->waiver_count > 0)
        gate->date = o->options->date;
    vp_gate_check(o->ctx, &s->checks, &s->check_count, &question);
}

static void tell_unreadable_bases(struct opening *o) {
    for (size_t i = 0; i < o->base.count; i++) {
        const struct half *half = &o->base.items[i];
        if (half->side.item || !half->diags->count)
            continue;
        const struct vp_diag *first = &half->diags->items[0];
        vp_diag_add(o->ctx->diags, VP_D_GATE_BASE_FAULT, &first->pos,
                    "the base's %s cannot be read: %s", half->file, first->message);
    }
}

/* --only that names nothing would pass silently. */
static void check_only(struct opening *o) {
    struct vp_gate *gate = &o->run->gate;
    if (gate->scenario_count > 0)
        return;
    vp_diag_add(o->ctx->diags, VP_D_NO_SUCH_SCENARIO, NULL, "no scenario is called %s",
                o->options->only ? o->options->only : "so");
    o->run->status = VP_ERR_INPUT;
}

static void check_all(struct opening *o) {
    struct vp_gate *gate = &o->run->gate;
    size_t most = o->head.count + o->base.count;
    struct half **partner = VP_NEW_ARRAY(o->ctx->arena, o->head.count, struct half *);
    gate->scenarios = VP_NEW_ARRAY(o->ctx->arena, most, struct vp_gate_scenario);
    o->run->head = VP_NEW_ARRAY(o->ctx->arena, most, struct vp_gate_side);
    o->run->base = VP_NEW_ARRAY(o->ctx->arena, most, struct vp_gate_side);
    pair(o, partner);
    tell_unreadable_bases(o);
    for (size_t i = 0; i < o->head.count; i++)
        put(o, &o->head.items[i], partner[i]);
    for (size_t i = 0; i < o->base.count; i++)
        if (!o->base.items[i].paired && o->base.items[i].side.item)
            put(o, NULL, &o->base.items[i]);
    check_only(o);
    vp_gate_sum(gate);
}

/* ---- the whole ---- */

/* The scenario that an input names; NULL: all. */
static const char *wanted_of(struct vp_ctx *ctx, const char *input) {
    const char *name;
    vp_input_split(ctx, &name, input);
    return name;
}

void vp_gate_open(struct vp_ctx *ctx, struct vp_gate_run **out,
                  const struct vp_gate_options *options) {
    struct vp_gate_run *run = VP_NEW(ctx->arena, struct vp_gate_run);
    struct opening o = {.ctx = ctx, .options = options, .run = run};
    *out = run;
    run->settings = options->settings;
    run->setting_count = options->setting_count;
    run->head_ctx = run->base_ctx = *ctx;
    run->head_ctx.memo = vp_memo_new();
    run->base_ctx.memo = vp_memo_new();
    run->base_ctx.io = options->base_io;
    run->gate = (struct vp_gate){.base_label = options->base_label,
                                 .base_commit = options->base_commit,
                                 .date = options->date_given ? options->date : NULL,
                                 .notes = ctx->diags};
    vp_parse_day(&run->today, options->date);
    o.head.unreadable = VP_NEW_ARRAY(ctx->arena, options->input_count, bool);
    o.base.unreadable = VP_NEW_ARRAY(ctx->arena, options->input_count, bool);
    for (size_t i = 0; i < options->input_count; i++) {
        const struct vp_gate_input *input = &options->inputs[i];
        read_input(&run->head_ctx, &o.head, i, input->head, NULL, &o);
        if (options->base_io && input->base)
            read_input(&run->base_ctx, &o.base, i, input->base, wanted_of(ctx, input->head), &o);
    }
    for (size_t i = 0; i < o.head.count; i++)
        load_records(&o, &o.head.items[i]);
    check_all(&o);
}

void vp_gate_close(struct vp_gate_run *run) {
    if (!run)
        return;
    vp_memo_free(run->head_ctx.memo);
    vp_memo_free(run->base_ctx.memo);
}

enum vp_exit vp_gate_exit(const struct vp_gate_run *run) {
    if (run->status != VP_OK)
        return vp_exit_of_status(run->status);
    return run->gate.worst == VP_CHECK_FAIL           ? VP_EXIT_NO
           : run->gate.worst == VP_CHECK_INCONCLUSIVE ? VP_EXIT_INCONCLUSIVE
                                                      : VP_EXIT_YES;
}
