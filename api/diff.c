#include "api/diff.h"

#include <string.h>

#include "api/diff_parts.h"
#include "planner/base/memo.h"
#include "planner/base/text.h"
#include "planner/import/model_reader.h"
#include "planner/import/settings.h"
#include "planner/plan/plan.h"

struct diff {
    struct vp_ctx *ctx;
    struct vp_difference *out;
    struct vp_diff_tree before, after; /* before.root becomes the scenario on the way */
    struct vp_diff_changes changes;
    struct vp_setting *settings; /* of the scenario on the way */
    size_t setting_count;
    struct vp_memo *memo; /* of scenarios on the way */
    struct vp_arena scratch;
    struct vp_cause *cause; /* out->cause */
};

static const char BESIDE[] = "files beside the scenario";

/* ---- what differs ---- */

/* "vllm@0.19" as the whole of `engine:`. */
static void spell_engine(struct vp_ctx *ctx, struct vp_node *root) {
    const struct vp_node *engine = vp_node_get(root, "engine");
    const char *text = engine && engine->kind == VP_NODE_TEXT ? engine->text : NULL;
    const char *at = text ? strchr(text, '@') : NULL;

    if (!text || !*text)
        return;
    struct vp_pos pos = engine->pos;
    struct vp_node *map = vp_node_new(ctx, VP_NODE_MAP, pos);
    const char *name = vp_arena_text(ctx->arena, text, at ? (size_t)(at - text) : strlen(text));
    vp_node_set(ctx, map, "name", pos, vp_node_scalar(ctx, VP_NODE_TEXT, name, pos));
    if (at)
        vp_node_set(ctx, map, "version", pos, vp_node_scalar(ctx, VP_NODE_TEXT, at + 1, pos));
    vp_node_set(ctx, root, "engine", pos, map);
}

static struct vp_diff_tree tree_of(struct diff *d, const struct vp_diff_side *side, bool place) {
    struct vp_diff_tree tree = {
        .side = side, .root = vp_node_clone(d->ctx, side->root), .base = side->base};

    if (tree.root->kind != VP_NODE_MAP)
        tree.root = vp_node_new(d->ctx, VP_NODE_MAP, tree.root->pos);
    spell_engine(d->ctx, tree.root);
    if (place)
        vp_diff_place(d->ctx, &tree);
    return tree;
}

static void compare_trees(struct diff *d) {
    struct vp_diff_changes all = {.arena = d->ctx->arena};

    vp_diff_models(d->ctx, &d->changes, &d->before, &d->after);
    vp_diff_compare(d->ctx, &all, d->before.root, d->after.root, NULL);
    for (size_t i = 0; i < all.count; i++) {
        const struct vp_diff_change *change = &all.items[i];
        bool of_model = change->depth > 0 && vp_text_eq(change->key[0].name, "model");
        if (!of_model || !d->before.replaced)
            *vp_diff_add(&d->changes) = *change;
    }
}

static const struct vp_setting *setting_of(const struct vp_setting *settings, size_t count,
                                           const char *path) {
    const struct vp_setting *found = NULL;

    for (size_t i = 0; i < count; i++)
        if (vp_text_eq(settings[i].path, path))
            found = &settings[i]; /* the last one holds */
    return found;
}

static void compare_settings(struct diff *d) {
    const struct vp_diff_side *a = d->before.side, *b = d->after.side;

    for (size_t i = 0; i < b->setting_count; i++) {
        const struct vp_setting *new = &b->settings[i];
        const struct vp_setting *old = setting_of(a->settings, a->setting_count, new->path);
        if (new != setting_of(b->settings, b->setting_count, new->path) ||
            (old && vp_text_eq(old->value, new->value)))
            continue;
        *vp_diff_add(&d->changes) = (struct vp_diff_change){
            .cause = {.path = new->path, .from = old ? old->value : NULL, .to = new->value},
            .setting = new};
    }
    for (size_t i = 0; i < a->setting_count; i++) {
        const struct vp_setting *old = &a->settings[i];
        if (old == setting_of(a->settings, a->setting_count, old->path) &&
            !setting_of(b->settings, b->setting_count, old->path))
            *vp_diff_add(&d->changes) =
                (struct vp_diff_change){.cause = {.path = old->path, .from = old->value}};
    }
}

/* ---- the scenario on the way ---- */

static void apply_setting(struct diff *d, const struct vp_diff_change *change) {
    size_t kept = 0;

    for (size_t i = 0; i < d->setting_count; i++)
        if (!vp_text_eq(d->settings[i].path, change->cause.path))
            d->settings[kept++] = d->settings[i];
    d->setting_count = kept;
    if (change->setting)
        d->settings[d->setting_count++] = *change->setting;
}

static void apply(struct diff *d, const struct vp_diff_change *change) {
    if (change->key)
        vp_diff_apply(d->ctx, d->before.root, change, d->after.root);
    else if (!change->detail)
        apply_setting(d, change);
}

static struct vp_ctx quiet_of(const struct vp_ctx *ctx, struct vp_arena *arena,
                              struct vp_memo *memo) {
    struct vp_ctx own = *ctx;

    own.arena = arena;
    own.memo = memo;
    own.diags = VP_NEW(arena, struct vp_diags);
    own.diags->arena = arena;
    return own;
}

/* Its plan; false: it is refused. */
static bool plan(struct diff *d, struct vp_worst_bytes *out) {
    struct vp_arena_mark mark = vp_arena_mark(&d->scratch);
    struct vp_ctx ctx = quiet_of(d->before.side->ctx, &d->scratch, d->memo);
    struct vp_found_item item = {.root = d->before.root, .name = "on the way"};
    struct vp_found found = {
        .items = &item, .count = 1, .base = d->before.base, .diags = ctx.diags};
    struct vp_scenarios scenarios = {0};
    struct vp_result result;
    bool made = vp_input_finish(&ctx, &scenarios, &found, d->settings, d->setting_count) == VP_OK &&
                vp_plan_evaluate(&d->scratch, &result, scenarios.items[0]) &&
                result.reason != VP_REASON_REFUSED;

    if (made)
        vp_worst_bytes_of(d->ctx->arena, out, &result);
    vp_arena_rewind(&d->scratch, mark);
    return made;
}

/* The new model's files are read with the new side's calls, and remembered: scenarios on the way
 * are read with the old side's. Its node gets a position of its own, which is part of what it is
 * remembered by. */
static void remember_model(struct diff *d) {
    const struct vp_diff_side *side = d->after.side;
    struct vp_ctx ctx = quiet_of(side->ctx, &d->scratch, d->memo);
    struct vp_node *node = vp_node_get(d->after.root, "model"), *flags;
    struct vp_model *model;

    if (!d->before.replaced || side->ctx->io == d->before.side->ctx->io || vp_node_is_null(node))
        return;
    node->pos.file = "the new model";
    for (size_t i = 0; i < d->changes.count; i++)
        if (d->changes.items[i].key && vp_text_eq(d->changes.items[i].cause.path, "model"))
            d->changes.items[i].value = node;
    if (vp_settings_tree(&ctx, &flags, side->settings, side->setting_count) != VP_OK)
        return;
    node = vp_settings_model(&ctx, node, vp_node_get(flags, "model"));
    vp_model_read(&ctx, &model, node, d->before.base);
}

/* ---- the steps ---- */

static void add_step(struct diff *d, const struct vp_worst_bytes *from,
                     const struct vp_worst_bytes *to, size_t first, size_t end) {
    struct vp_difference_step *step = &d->out->step[d->out->steps++];

    vp_difference_step_of(d->ctx->arena, step, from, to);
    step->cause = &d->cause[first];
    step->causes = (uint32_t)(end - first);
    step->whole_model = end > first + 1 && d->changes.items[first + 1].detail;
}

static bool same_bytes(struct vp_arena *arena, const struct vp_worst_bytes *a,
                       const struct vp_worst_bytes *b) {
    struct vp_difference_step step;

    vp_difference_step_of(arena, &step, a, b);
    return !vp_difference_moves(&step);
}

/* From the old plan to the new one. What the last change leaves over belongs to files that are no
 * part of the trees. */
static void walk(struct diff *d) {
    struct vp_worst_bytes now = d->out->before, next = now;
    const struct vp_worst_bytes *last = &d->out->after;
    size_t count = d->changes.count, first = 0, end = 0;

    d->out->step = VP_NEW_ARRAY(d->ctx->arena, count + 1, struct vp_difference_step);
    while (end < count) {
        bool made = false;
        do {
            apply(d, &d->changes.items[end++]);
            if (end == count || !d->changes.items[end].detail)
                made = plan(d, &next);
        } while (!made && end < count);
        if (!made || (end == count && same_bytes(d->ctx->arena, &next, last)))
            next = *last;
        add_step(d, &now, &next, first, end);
        now = next;
        first = end;
    }
    if (same_bytes(d->ctx->arena, &now, last))
        return;
    d->cause[count] = (struct vp_cause){.path = BESIDE, .group = VP_CAUSE_REST};
    d->out->causes = (uint32_t)count + 1;
    add_step(d, &now, last, count, count + 1);
}

static void begin_walk(struct diff *d) {
    const struct vp_diff_side *a = d->before.side, *b = d->after.side;

    d->settings =
        VP_NEW_ARRAY(d->ctx->arena, a->setting_count + b->setting_count + 1, struct vp_setting);
    for (size_t i = 0; i < a->setting_count; i++)
        d->settings[d->setting_count++] = a->settings[i];
    d->scratch.oom = d->ctx->arena->oom;
    d->memo = a->ctx->memo ? a->ctx->memo : vp_memo_new();
    remember_model(d);
    walk(d);
    if (d->memo != a->ctx->memo)
        vp_memo_free(d->memo);
    vp_arena_free(&d->scratch);
}

/* ---- the whole ---- */

static enum vp_engine_kind engine_of(const struct vp_diff_side *before,
                                     const struct vp_diff_side *after) {
    const struct vp_result *result = after->result ? after->result : before->result;

    return result ? result->scenario->engine.kind : VP_ENGINE_VLLM;
}

static void list_causes(struct diff *d) {
    d->cause = VP_NEW_ARRAY(d->ctx->arena, d->changes.count + 1, struct vp_cause);
    for (size_t i = 0; i < d->changes.count; i++)
        d->cause[i] = d->changes.items[i].cause;
    d->out->cause = d->cause;
    d->out->causes = (uint32_t)d->changes.count;
}

void vp_diff_make(struct vp_ctx *ctx, struct vp_difference *out, const struct vp_diff_side *before,
                  const struct vp_diff_side *after) {
    struct diff d = {.ctx = ctx, .out = out, .changes = {.arena = ctx->arena}};
    bool place = !vp_text_eq(before->base, after->base);

    *out = (struct vp_difference){0};
    d.before = tree_of(&d, before, place);
    d.after = tree_of(&d, after, place);
    compare_trees(&d);
    compare_settings(&d);
    vp_diff_sort(ctx, &d.changes, engine_of(before, after));
    list_causes(&d);
    if (before->result)
        vp_worst_bytes_of(ctx->arena, &out->before, before->result);
    if (after->result)
        vp_worst_bytes_of(ctx->arena, &out->after, after->result);
    out->planned = before->result && after->result;
    if (out->planned)
        begin_walk(&d);
}
