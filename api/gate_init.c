#include "api/gate_init.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "api/gate_run.h"
#include "api/scenario_yaml.h"
#include "api/yaml_writer.h"
#include "planner/base/units.h"
#include "planner/plan/budget_values.h"

/* Room above the high figure, in per cent: what a change of the engine's version or of the
 * planner's constants may move without being a regression. Growth is held to GROWTH_PERCENT all the
 * same. */
enum { ROOM_PERCENT = 5, COMMENT_COLUMN = 36 };
static const uint64_t MIB = UINT64_C(1) << 20, GIB = UINT64_C(1) << 30;

static const char HEAD[] =
    "# Memory budgets: `vramplan gate` holds every scenario against its own, and against the "
    "merge\n"
    "# base. Figures are of one GPU, the worst rank; limits are today's high figure and 5 %, so "
    "that\n"
    "# they pass: make them what you are ready to pay. What else a budget can say: docs/GATE.md\n"
    "vramplan: 1\n"
    "\n";

static const char GROWTH[] =
    "defaults:\n"
    "  budget:\n"
    "    growth: {percent: 0.5, min: 64 MiB} # against the base; fails when both are exceeded\n"
    "\n";

static const char NO_GROWTH[] = "# In a git repository, what a change may add to the base of a "
                                "pull request, when it exceeds both:\n"
                                "# defaults: {budget: {growth: {percent: 0.5, min: 64 MiB}}}\n"
                                "\n";

struct making {
    struct vp_ctx *ctx;
    struct vp_buf *out;
    const char *path;
    const struct vp_setting *settings;
    size_t setting_count;
    const char **names; /* that are taken */
    size_t name_count;
};

/* ---- limits ---- */

/* A size that YAML readers and people read: tenths of GiB, below that whole MiB; rounded up. */
static const char *size_text(struct vp_arena *arena, uint64_t bytes) {
    if (bytes < GIB)
        return vp_arena_printf(arena, "%" PRIu64 " MiB", vp_ceil_div(bytes, MIB));
    uint64_t tenths = vp_ceil_div(bytes, GIB / 10);
    return vp_arena_printf(arena, "%" PRIu64 ".%" PRIu64 " GiB", tenths / 10, tenths % 10);
}

static uint64_t with_room(int64_t high) {
    return (uint64_t)high + vp_ceil_div((uint64_t)high * ROOM_PERCENT, 100);
}

static void put_limit(struct making *m, int indent, const char *key, const char *value,
                      const char *comment) {
    const char *line = vp_arena_printf(m->ctx->arena, "%*s%s: %s", indent, "", key, value);
    vp_buf_printf(m->out, "%-*s # %s\n", COMMENT_COLUMN, line, comment);
}

static const char *today(struct vp_arena *arena, struct vp_quantity value) {
    const char *likely = vp_format_bytes(arena, (uint64_t)value.likely);
    if (value.low == value.high)
        return vp_arena_printf(arena, "today %s", likely);
    return vp_arena_printf(arena, "today %s (%s to %s)", likely,
                           vp_format_bytes(arena, (uint64_t)value.low),
                           vp_format_bytes(arena, (uint64_t)value.high));
}

/* The engine's own limit where room would go beyond it. */
static void put_memory(struct making *m, const struct vp_result *result) {
    struct vp_arena *arena = m->ctx->arena;
    struct vp_quantity need = vp_budget_bound(result, VP_BOUND_MEMORY);
    uint64_t usable = result->devices[result->worst].usable_bytes / MIB * MIB;
    uint64_t limit = with_room(need.high);
    if (limit > usable && usable >= (uint64_t)need.high)
        put_limit(m, 6, "memory", vp_arena_printf(arena, "%" PRIu64 " MiB", usable / MIB),
                  vp_arena_printf(arena, "%s; all that the engine may take", today(arena, need)));
    else
        put_limit(m, 6, "memory", size_text(arena, limit), today(arena, need));
}

static void put_components(struct making *m, const struct vp_result *result) {
    vp_buf_add(m->out, "      components:\n");
    for (enum vp_component c = 0; c < VP_COMPONENT_COUNT; c++) {
        struct vp_quantity value = vp_budget_component(result, c);
        if (value.high > 0)
            put_limit(m, 8, vp_component_name(c), size_text(m->ctx->arena, with_room(value.high)),
                      today(m->ctx->arena, value));
    }
}

/* What is asked for today stays possible. */
static void put_least(struct making *m, const struct vp_result *result) {
    struct vp_arena *arena = m->ctx->arena;
    const struct vp_serve *serve = &result->scenario->serve;
    if (result->scenario->training)
        return;
    if (vp_budget_bound(result, VP_BOUND_CONTEXT).low >= (int64_t)serve->context)
        put_limit(m, 6, "min_context", vp_format_u64(arena, serve->context),
                  "tokens that one sequence can have, at least");
    if (vp_budget_bound(result, VP_BOUND_CONCURRENCY).low >= (int64_t)serve->concurrency)
        put_limit(m, 6, "min_concurrency", vp_format_u64(arena, serve->concurrency),
                  "sequences of serve.context at once, at least");
}

/* ---- scenarios ---- */

static const char *free_name(struct making *m, const char *wanted) {
    const char *name = wanted;
    for (size_t i = 0, n = 2; i < m->name_count;) {
        if (!vp_text_eq(m->names[i], name)) {
            i++;
            continue;
        }
        name = vp_arena_printf(m->ctx->arena, "%s-%zu", wanted, n++);
        i = 0;
    }
    m->names[m->name_count++] = name;
    return name;
}

/* All but what stands elsewhere in the new file. */
static struct vp_node *body_of(struct vp_ctx *ctx, const struct vp_node *root) {
    static const char *const LEFT_OUT[] = {"vramplan", "name", "budget"};
    struct vp_node *body = vp_node_new(ctx, VP_NODE_MAP, root->pos);
    for (uint32_t i = 0; i < root->count; i++) {
        bool out = false;
        for (size_t k = 0; k < sizeof LEFT_OUT / sizeof *LEFT_OUT; k++)
            out |= strcmp(LEFT_OUT[k], root->keys[i]) == 0;
        if (!out)
            vp_node_set(ctx, body, root->keys[i], root->key_pos[i], root->items[i]);
    }
    return body;
}

/* input: of this scenario alone, "FILE#name" where the file has more. */
static enum vp_status add_scenario(struct making *m, const char *input,
                                   const struct vp_result *result) {
    struct vp_variants *variants;
    struct vp_node *root;
    struct vp_ctx quiet = *m->ctx; /* what there is to say was said when it was planned */
    quiet.diags = VP_NEW(m->ctx->arena, struct vp_diags);
    quiet.diags->arena = m->ctx->arena;
    enum vp_status status =
        vp_variants_open(&quiet, &variants, input, m->settings, m->setting_count);
    if (status == VP_OK)
        status = vp_scenario_tree(&quiet, &root, variants, NULL, 0, m->path);
    vp_variants_close(variants);
    if (status != VP_OK) {
        vp_diags_merge(m->ctx->diags, quiet.diags);
        return status;
    }
    vp_buf_add(m->out, "  ");
    vp_yaml_write_text(m->out, free_name(m, result->scenario->name));
    vp_buf_add(m->out, ":\n");
    vp_yaml_write_map(m->out, body_of(m->ctx, root), 4);
    vp_buf_add(m->out, "    budget:\n");
    put_memory(m, result);
    put_least(m, result);
    put_components(m, result);
    return VP_OK;
}

/* The scenario's own input among those of a file with several. */
static const char *input_of(struct vp_arena *arena, const struct vp_gate *gate, uint32_t i) {
    const struct vp_gate_scenario *s = &gate->scenarios[i];
    bool several = (i > 0 && gate->scenarios[i - 1].file == s->file) ||
                   (i + 1 < gate->scenario_count && gate->scenarios[i + 1].file == s->file);
    return several ? vp_arena_printf(arena, "%s#%s", s->file, s->name) : s->file;
}

static enum vp_status write_all(struct making *m, const struct vp_gate *gate, bool growth) {
    enum vp_status status = VP_OK;
    m->names = VP_NEW_ARRAY(m->ctx->arena, gate->scenario_count, const char *);
    vp_buf_printf(m->out, "%s%sscenarios:\n", HEAD, growth ? GROWTH : NO_GROWTH);
    for (uint32_t i = 0; i < gate->scenario_count && status == VP_OK; i++) {
        if (i > 0)
            vp_buf_add(m->out, "\n");
        assert(gate->scenarios[i].head); /* else the run's status said so */
        status = add_scenario(m, input_of(m->ctx->arena, gate, i), gate->scenarios[i].head);
    }
    return status;
}

/* Planned by the gate's own reader: without budgets, so that an old one does not spoil a verdict.
 */
enum vp_status vp_gate_init(struct vp_ctx *ctx, struct vp_buf *out, enum vp_exit *verdicts,
                            const char *const *inputs, size_t count,
                            const struct vp_setting *settings, size_t setting_count,
                            const char *path, bool growth) {
    struct making m = {
        .ctx = ctx, .out = out, .path = path, .settings = settings, .setting_count = setting_count};
    struct vp_gate_input *all = VP_NEW_ARRAY(ctx->arena, count, struct vp_gate_input);
    struct vp_gate_run *run;
    for (size_t i = 0; i < count; i++)
        all[i].head = inputs[i];
    struct vp_gate_options options = {.inputs = all,
                                      .input_count = count,
                                      .date = "9999-12-31", /* of no waiver */
                                      .settings = settings,
                                      .setting_count = setting_count};
    vp_gate_open(ctx, &run, &options);
    *verdicts = VP_EXIT_YES;
    for (uint32_t i = 0; i < run->gate.scenario_count; i++) {
        const struct vp_gate_scenario *s = &run->gate.scenarios[i];
        if (s->head)
            *verdicts = vp_exit_of_both(*verdicts, vp_exit_of_verdict(s->head->verdict));
        else
            vp_diags_merge(ctx->diags, s->head_diags);
    }
    enum vp_status status = run->status;
    if (status == VP_OK)
        status = write_all(&m, &run->gate, growth);
    vp_gate_close(run);
    return status;
}
