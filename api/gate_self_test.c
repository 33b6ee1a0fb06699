#include "api/gate_self_test.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"

struct testing {
    struct vp_ctx *ctx;
    const struct vp_gate_run *run;
    const struct vp_gate_scenario *scenario;
    const struct vp_gate_side *side;
    struct vp_planted *planted;
    size_t count;
};

/* ---- checking a plan against the one as it is ---- */

static uint32_t check(struct testing *t, struct vp_check **checks, const struct vp_result *head) {
    uint32_t count;
    struct vp_ctx quiet = *t->ctx;
    quiet.diags = VP_NEW(t->ctx->arena, struct vp_diags);
    quiet.diags->arena = t->ctx->arena;
    struct vp_gate_question question = {.scenario = t->scenario->name,
                                        .budget = &t->side->scenario->budget,
                                        .head = head,
                                        .base = t->side->result,
                                        .have_base = true,
                                        .in_base = true,
                                        .today = t->run->today};
    vp_gate_check(&quiet, checks, &count, &question);
    return count;
}

static bool fails(const struct vp_check *check) {
    return check->state == VP_CHECK_FAIL || check->state == VP_CHECK_INCONCLUSIVE;
}

/* Checks that fail with the planted plan, and more so than without it. */
static void judge(struct testing *t, const char *what, const struct vp_result *head) {
    struct vp_check *plain, *planted;
    struct vp_buf by = {.arena = t->ctx->arena};
    uint32_t plain_count = check(t, &plain, t->side->result);
    uint32_t count = check(t, &planted, head);
    for (uint32_t i = 0; i < count; i++) {
        bool before = false;
        for (uint32_t k = 0; k < plain_count; k++)
            before |=
                vp_text_eq(plain[k].name, planted[i].name) && plain[k].state >= planted[i].state;
        if (fails(&planted[i]) && !before)
            vp_buf_printf(&by, "%s%s", by.size ? ", " : "", planted[i].name);
    }
    t->planted[t->count++] =
        (struct vp_planted){t->scenario->name, what, by.size > 0, vp_buf_text(&by)};
}

/* ---- what is planted ---- */

static void grow(struct vp_amount *a, uint64_t bytes) {
    *a = (struct vp_amount){a->low + bytes, a->likely + bytes, a->high + bytes};
}

/* The same on every GPU, as a change of the model or the engine would be. */
static struct vp_result *larger(struct testing *t, enum vp_component component, uint64_t bytes) {
    struct vp_arena *arena = t->ctx->arena;
    const struct vp_result *plain = t->side->result;
    struct vp_result *r = VP_NEW(arena, struct vp_result);
    *r = *plain;
    r->devices = VP_NEW_ARRAY(arena, plain->device_count, struct vp_device);
    memcpy(r->devices, plain->devices, plain->device_count * sizeof *r->devices);
    r->headroom_bytes -= (int64_t)bytes;
    for (uint32_t i = 0; i < r->device_count; i++) {
        struct vp_device *d = &r->devices[i];
        if (d->host)
            continue;
        grow(&d->component[component], bytes);
        grow(&d->need, bytes);
        enum vp_verdict verdict = d->need.low > d->usable_bytes    ? VP_DOES_NOT_FIT
                                  : d->need.high > d->usable_bytes ? VP_AT_RISK
                                                                   : VP_FITS;
        r->verdict = verdict > r->verdict ? verdict : r->verdict;
    }
    return r;
}

static void plant_components(struct testing *t) {
    const struct vp_result *plain = t->side->result;
    int64_t need = vp_budget_bound(plain, VP_BOUND_MEMORY).likely;
    uint64_t bytes = vp_max(UINT64_C(1) << 30, (uint64_t)need / 100);
    for (enum vp_component c = 0; c < VP_COMPONENT_COUNT; c++) {
        if (vp_budget_component(plain, c).high == 0)
            continue;
        const char *what = vp_arena_printf(t->ctx->arena, "%s +%s", vp_component_name(c),
                                           vp_format_bytes(t->ctx->arena, bytes));
        judge(t, what, larger(t, c, bytes));
    }
}

/* A change as a user would make it. */
static void plant_length(struct testing *t) {
    struct vp_ctx ctx = t->run->head_ctx;
    const struct vp_scenario *s = t->side->scenario;
    uint64_t now = s->training ? s->train.sequence : s->serve.context;
    struct vp_found one = *t->side->input;
    struct vp_found_item item = *t->side->item;
    struct vp_scenarios scenarios = {0};
    size_t n = t->run->setting_count;
    struct vp_setting *all = VP_NEW_ARRAY(t->ctx->arena, n + 1, struct vp_setting);
    if (n)
        memcpy(all, t->run->settings, n * sizeof *all);
    all[n].path = s->training ? "train.sequence_length" : "serve.context";
    all[n].value = vp_format_u64(t->ctx->arena, 2 * now);
    all[n].key = "--self-test";
    one.items = &item;
    one.count = 1;
    ctx.diags = VP_NEW(t->ctx->arena, struct vp_diags);
    ctx.diags->arena = t->ctx->arena;
    const char *what =
        vp_arena_printf(t->ctx->arena, "%s %" PRIu64 " -> %s", all[n].path, now, all[n].value);
    struct vp_result *result = VP_NEW(t->ctx->arena, struct vp_result);
    enum vp_status status = vp_input_finish(&ctx, &scenarios, &one, all, n + 1);
    if (status == VP_OK) {
        scenarios.items[0]->budget = (struct vp_budget){0};
        status = vp_plan_run(&ctx, result, scenarios.items[0]);
    }
    if (status == VP_OK)
        judge(t, what, result);
    else
        t->planted[t->count++] =
            (struct vp_planted){t->scenario->name, what, true, "refused: it cannot be planned"};
}

size_t vp_gate_self_test(struct vp_ctx *ctx, struct vp_planted **out,
                         const struct vp_gate_run *run) {
    const struct vp_gate *gate = &run->gate;
    struct testing t = {.ctx = ctx, .run = run};
    t.planted = VP_NEW_ARRAY(ctx->arena, gate->scenario_count * (VP_COMPONENT_COUNT + 1),
                             struct vp_planted);
    for (uint32_t i = 0; i < gate->scenario_count; i++) {
        if (!gate->scenarios[i].head)
            continue;
        t.scenario = &gate->scenarios[i];
        t.side = &run->head[i];
        plant_components(&t);
        plant_length(&t);
    }
    *out = t.planted;
    return t.count;
}
