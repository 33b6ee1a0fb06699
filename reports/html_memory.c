/* Where the bytes go: components, devices, the cache, what more would cost. */
#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/html_page.h"
#include "reports/html_report.h"
#include "reports/words.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- components ---- */

static void component_row(struct vp_buf *out, const struct vp_device *device,
                          enum vp_component component) {
    struct vp_amount amount = device->component[component];
    vp_html_row_begin(out, NULL);
    vp_html_head_cell(out, vp_words_component(out->arena, component), NULL);
    vp_html_bytes(out, amount.likely);
    vp_html_interval(out, amount);
    vp_html_number(out, vp_words_share(out->arena, amount.likely, device->capacity_bytes));
    vp_html_cell(out, vp_confidence_name(device->confidence[component]));
    vp_html_cell(out, vp_component_meaning(component));
    vp_html_row_end(out);
}

static void sum_row(struct vp_buf *out, const struct vp_device *device, const char *name,
                    struct vp_amount amount, const char *meaning) {
    vp_html_row_begin(out, "sum");
    vp_html_head_cell(out, name, NULL);
    vp_html_bytes(out, amount.likely);
    vp_html_interval(out, amount);
    vp_html_number(out, vp_words_share(out->arena, amount.likely, device->capacity_bytes));
    vp_html_cell(out, "");
    vp_html_cell(out, meaning);
    vp_html_row_end(out);
}

static void components(struct vp_buf *out, const struct vp_result *result, uint32_t index) {
    static const char *const HEADS[] = {"component",    "#GiB",     "#low..high, GiB",
                                        "#of the card", "how sure", "what it is"};
    const struct vp_device *device = &result->devices[index];
    vp_html_table_begin(out,
                        vp_arena_printf(out->arena, "%s, by component, at the instant \"%s\"",
                                        device->id, vp_step_name(device->peak_step)),
                        HEADS, COUNT(HEADS));
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        if (device->present[c] && device->component[c].high > 0)
            component_row(out, device, (enum vp_component)c);
    sum_row(out, device, "needed", device->need, "what the workload needs at its peak");
    if (!device->host && device->usable_bytes > 0)
        sum_row(out, device, "usable", vp_exactly(device->usable_bytes),
                "what the engine's policy leaves for it");
    if (device->reserved_bytes > 0 && vp_words_has_policy(result->scenario))
        sum_row(
            out, device,
            vp_arena_printf(out->arena, "%s takes", vp_words_engine(result->scenario->engine.name)),
            vp_exactly(device->reserved_bytes), "by its policy, needed or not");
    vp_html_table_end(out);
}

/* ---- devices ---- */

static void devices(struct vp_buf *out, const struct vp_result *result) {
    static const char *const HEADS[] = {"device",     "#stage",          "#ranks",
                                        "#need, GiB", "#low..high, GiB", "#usable",
                                        "#capacity",  "#spare",          "fullest at"};
    vp_html_table_begin(out, "Devices; those that carry the same stand for each other", HEADS,
                        COUNT(HEADS));
    for (uint32_t i = 0; i < result->device_count; i++) {
        const struct vp_device *device = &result->devices[i];
        bool worst = i == result->worst && result->device_count > 1;
        vp_html_row_begin(out, NULL);
        vp_html_head_cell(
            out, worst ? vp_arena_printf(out->arena, "%s, the fullest", device->id) : device->id,
            NULL);
        vp_html_number(out, device->host ? "" : vp_format_u64(out->arena, device->stage));
        vp_html_number(out, device->host ? "" : vp_format_u64(out->arena, device->ranks));
        vp_html_bytes(out, device->need.likely);
        vp_html_interval(out, device->need);
        if (device->capacity_bytes > 0) {
            vp_html_bytes(out, device->usable_bytes);
            vp_html_bytes(out, device->capacity_bytes);
            vp_html_signed_bytes(out, vp_words_headroom(device));
        } else {
            for (int k = 0; k < 3; k++)
                vp_html_number(out, "");
        }
        vp_html_cell(out, vp_step_name(device->peak_step));
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
}

/* ---- the cache ---- */

static const char *count_of(struct vp_arena *arena, uint64_t n) {
    return n ? vp_format_count(arena, n) : "";
}

static void cache_facts(struct vp_buf *out, const struct vp_result *result) {
    static const char *const HEADS[] = {"fact", "#value"};
    const struct vp_kv_report *kv = &result->kv;
    struct vp_arena *arena = out->arena;
    const struct {
        const char *name, *value;
    } FACTS[] = {
        {"bytes per token, on one rank", count_of(arena, kv->bytes_per_token)},
        {"bytes per sequence that do not grow", count_of(arena, kv->state_bytes_per_sequence)},
        {"tokens in a block", count_of(arena, kv->block_size)},
        {"blocks", count_of(arena, kv->blocks)},
        {"tokens that the pool holds", count_of(arena, kv->tokens)},
        {"sequences of this context at once",
         kv->max_concurrency_milli ? vp_words_milli(arena, kv->max_concurrency_milli) : ""},
        {"longest single sequence, tokens", count_of(arena, kv->max_context)},
    };
    vp_html_table_begin(out, "The pool", HEADS, COUNT(HEADS));
    for (size_t i = 0; i < COUNT(FACTS); i++) {
        if (!*FACTS[i].value)
            continue;
        vp_html_row_begin(out, NULL);
        vp_html_head_cell(out, FACTS[i].name, NULL);
        vp_html_number(out, FACTS[i].value);
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
}

static void cache_groups(struct vp_buf *out, const struct vp_kv_report *kv) {
    static const char *const HEADS[] = {"layers that keep",    "#layers", "#bytes per token",
                                        "#bytes per sequence", "#window", "#pages per sequence"};
    struct vp_arena *arena = out->arena;
    if (kv->group_count == 0)
        return;
    vp_html_table_begin(out, "By kind of layer; bytes of one layer on one rank", HEADS,
                        COUNT(HEADS));
    for (uint32_t i = 0; i < kv->group_count && i < VP_KV_GROUPS; i++) {
        const struct vp_kv_group *group = &kv->group[i];
        vp_html_row_begin(out, NULL);
        vp_html_head_cell(out, group->kind, NULL);
        vp_html_number(out, vp_format_count(arena, group->layers));
        vp_html_number(out, count_of(arena, group->bytes_per_token));
        vp_html_number(out, count_of(arena, group->state_bytes));
        vp_html_number(out, count_of(arena, group->window));
        vp_html_number(out, count_of(arena, group->pages_per_sequence));
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
}

static void prices(struct vp_buf *out, const struct vp_result *result) {
    static const char *const HEADS[] = {"fact", "#value"};
    struct vp_fact fact[VP_FACTS];
    uint32_t count = vp_words_prices(out->arena, fact, result);
    if (count == 0)
        return;
    vp_html_table_begin(out, "What more would cost, and how far it goes", HEADS, COUNT(HEADS));
    for (uint32_t i = 0; i < count; i++) {
        vp_html_row_begin(out, NULL);
        vp_html_head_cell(out, fact[i].label, NULL);
        vp_html_number(out, fact[i].value);
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
}

void vp_html_memory(struct vp_buf *out, const struct vp_html_plan *plan, const char *prefix) {
    const struct vp_result *result = plan->result;
    const char *rule = vp_words_first_order(out->arena, result);
    vp_html_section(out, plan, "Where the bytes go");
    vp_html_plan_chart(out, plan, VP_PLAN_BREAKDOWN, prefix);
    components(out, result, result->worst);
    for (uint32_t i = 0; i < result->device_count; i++)
        if (i != result->worst) {
            vp_html_fold_begin(
                out, vp_arena_printf(out->arena, "%s by component", result->devices[i].id));
            components(out, result, i);
            vp_html_fold_end(out);
        }
    devices(out, result);
    if (rule)
        vp_html_paragraph(out, "soft", rule);
    prices(out, result);
    if (!result->kv.known)
        return;
    vp_html_section(out, plan, "KV cache");
    vp_html_plan_chart(out, plan, VP_PLAN_KV, prefix);
    cache_facts(out, result);
    cache_groups(out, &result->kv);
}
