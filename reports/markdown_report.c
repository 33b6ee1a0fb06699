/* A section for a wiki page, an issue or a pull request (GitHub's and GitLab's tables). */
#include <inttypes.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/layout.h"
#include "reports/latency_text.h"
#include "reports/markdown_text.h"
#include "reports/report.h"
#include "reports/train_report.h"
#include "reports/words.h"

static void row(struct vp_buf *out, const char *name, uint64_t bytes, uint64_t card,
                const char *sure) {
    vp_buf_printf(out, "| %s | %s | %s | %s |\n", name, vp_format_gib(out->arena, bytes, 2),
                  vp_words_share(out->arena, bytes, card), sure);
}

static void table(struct vp_buf *out, const struct vp_result *result) {
    struct vp_arena *arena = out->arena;
    const struct vp_device *worst = &result->devices[result->worst];
    uint64_t card = worst->capacity_bytes;
    const char *pool = vp_words_pool(arena, result);
    vp_buf_printf(out, "| on %s | GiB | of the card | how sure |\n|---|---:|---:|---|\n",
                  vp_markdown_text(arena, worst->id));
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        struct vp_amount amount = worst->component[c];
        const char *sure = vp_confidence_name(worst->confidence[c]);
        if (!worst->present[c] || amount.high == 0)
            continue;
        if (!vp_words_is_exact(amount))
            sure = vp_arena_printf(arena, "%s %s", sure, vp_words_interval(arena, amount, 2));
        row(out, vp_words_component(arena, (enum vp_component)c), amount.likely, card, sure);
    }
    row(out, "**needed**", worst->need.likely, card,
        vp_words_is_exact(worst->need) ? "" : vp_words_interval(arena, worst->need, 2));
    row(out, "usable", worst->usable_bytes, card, "");
    if (worst->reserved_bytes && vp_words_has_policy(result->scenario))
        row(out,
            vp_arena_printf(
                arena, "%s takes",
                vp_markdown_text(arena, vp_words_engine(result->scenario->engine.name))),
            worst->reserved_bytes, card, "by its policy, needed or not");
    if (pool)
        row(out, "its KV pool", result->report.available_kv.likely, card, pool);
    vp_buf_add(out, "\n");
}

static void device_table(struct vp_buf *out, const struct vp_result *result) {
    struct vp_arena *arena = out->arena;
    if (result->device_count < 2)
        return;
    vp_buf_add(out,
               "| device | stage | ranks | need, GiB | spare, GiB |\n|---|---:|---:|---:|---:|\n");
    for (uint32_t i = 0; i < result->device_count; i++) {
        const struct vp_device *device = &result->devices[i];
        const char *mark = i == result->worst ? "**" : "";
        const char *need = vp_format_gib(arena, device->need.likely, 2);
        if (device->host) {
            vp_buf_printf(out, "| %s | | | %s | |\n", vp_markdown_text(arena, device->id), need);
            continue;
        }
        vp_buf_printf(out, "| %s%s%s | %" PRIu32 " | %" PRIu32 " | %s | %s |\n", mark,
                      vp_markdown_text(arena, device->id), mark, device->stage, device->ranks, need,
                      vp_words_signed_gib(arena, vp_words_headroom(device)));
    }
    vp_buf_add(out, "\n");
}

static void lists(struct vp_buf *out, const struct vp_result *result) {
    struct vp_arena *arena = out->arena;
    struct vp_fact fact[VP_FACTS];
    uint32_t count = vp_words_prices(arena, fact, result);
    for (uint32_t i = 0; i < count; i++)
        vp_buf_printf(out, "- %s: %s\n", fact[i].label, fact[i].value);
    for (uint32_t i = 0; i < result->suggestion_count; i++) {
        const struct vp_suggestion *s = &result->suggestions[i];
        vp_buf_printf(out, "- possible: %s", vp_markdown_text(arena, s->change));
        if (s->from && s->to)
            vp_buf_printf(out, ", %s to %s", vp_markdown_text(arena, s->from),
                          vp_markdown_text(arena, s->to));
        vp_buf_printf(out, ": needs %s GiB, spare %s\n", vp_format_gib(arena, s->need_bytes, 2),
                      vp_words_signed_gib(arena, s->headroom_bytes));
    }
    for (uint32_t i = 0; i < result->assumption_count; i++) {
        const struct vp_assumption *a = &result->assumptions[i];
        vp_buf_printf(out, "- assumed: %s = %s (%s%s%s)\n", vp_markdown_text(arena, a->field),
                      vp_markdown_text(arena, a->value), vp_origin_name(a->origin),
                      a->why && *a->why ? ": " : "", vp_markdown_text(arena, a->why));
    }
    for (uint32_t i = 0; result->diags && i < result->diags->count; i++) {
        const struct vp_diag *diag = &result->diags->items[i];
        vp_buf_printf(out, "- %s %s: %s\n", vp_severity_name(vp_diag_severity(diag->id)),
                      vp_diag_code(diag->id), vp_markdown_text(arena, diag->message));
    }
}

void vp_report_markdown(struct vp_buf *out, const struct vp_result *result) {
    struct vp_arena *arena = out->arena;
    const char *name = result->scenario->name;
    const char *weights = vp_words_weights_alone(arena, result);
    if (!name || !*name)
        name = vp_words_model(result->scenario);
    vp_buf_printf(out, "### %s: %s\n\n", vp_markdown_text(arena, name),
                  vp_verdict_name(result->verdict));
    vp_buf_printf(out, "**%s**", vp_words_need(arena, result));
    if (result->verdict != VP_FITS && result->reason_text && *result->reason_text)
        vp_buf_printf(out, "; %s", vp_markdown_text(arena, result->reason_text));
    if (weights)
        vp_buf_printf(out, " (%s)", weights);
    vp_buf_printf(out, "\n\n%s, %s; ", vp_markdown_text(arena, vp_words_model(result->scenario)),
                  vp_markdown_text(arena, result->training.stage ? vp_train_setup(arena, result)
                                                                 : vp_words_setup(arena, result)));
    vp_buf_printf(out, "%s\n\n", vp_markdown_text(arena, vp_words_devices(arena, result)));
    table(out, result);
    device_table(out, result);
    vp_latency_markdown(out, result);
    lists(out, result);
}
