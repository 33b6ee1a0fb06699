#include "reports/rank_report.h"

#include "planner/base/units.h"
#include "reports/changes_report.h"
#include "reports/layout.h"
#include "reports/sections.h"
#include "reports/words.h"

enum { NUMBER = 3, NAME = 30, COUNT = 9, WORD = 14, FIGURE = 12, INDENT = 5 };

static const char *name_of(const struct vp_ranked *item) {
    return item->name ? item->name : item->input;
}

/* ---- the order ---- */

static bool comes_before(const struct vp_ranked *a, const struct vp_ranked *b) {
    if (!a->plan || !b->plan)
        return a->plan && !b->plan;
    if (a->verdict != b->verdict)
        return a->verdict < b->verdict;
    return a->plan->params_total > b->plan->params_total;
}

/* A few dozen inputs at most. */
void vp_ranked_sort(struct vp_ranked *items, size_t count) {
    for (size_t i = 1; i < count; i++) {
        struct vp_ranked item = items[i];
        size_t k = i;
        for (; k > 0 && comes_before(&item, &items[k - 1]); k--)
            items[k] = items[k - 1];
        items[k] = item;
    }
}

/* ---- for people ---- */

/* "70.6B", "596M": parameters are not known better by anybody. */
static const char *params_text(struct vp_arena *arena, uint64_t n) {
    const char *unit = n >= 1000000000 ? "B" : "M";
    double value = (double)n / (n >= 1000000000 ? 1e9 : 1e6);

    return vp_arena_printf(arena, "%.*f%s", value < 100 ? 1 : 0, value, unit);
}

static void row(const struct vp_page *page, const struct vp_ranked *item, size_t number) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_result *plan = item->plan;

    vp_page_right(page, vp_arena_printf(arena, "%zu", number), NUMBER);
    vp_page_spaces(page, INDENT - NUMBER);
    vp_page_left(page, vp_page_shorten(page, name_of(item), NAME - 1), NAME);
    if (!plan) {
        vp_buf_add(page->out, "could not be planned, see the messages\n");
        return;
    }
    const struct vp_device *worst = &plan->devices[plan->worst];
    vp_page_right(page, params_text(arena, plan->params_total), COUNT);
    vp_page_right(page, vp_verdict_name(item->verdict), WORD);
    vp_page_right(page, vp_format_gib(arena, worst->need.likely, 2), FIGURE);
    vp_page_right(page, vp_words_signed_gib(arena, plan->headroom_bytes), FIGURE - 2);
    vp_buf_add(page->out, "\n");
    if (item->verdict == VP_FITS || !item->outcome || item->outcome->count == 0)
        return;
    for (uint32_t c = 0; c < item->outcome->item[0].changes; c++) {
        const struct vp_change *change = &item->outcome->item[0].change[c];
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, INDENT + 2, "%s %s: %s -> %s", c == 0 ? "with" : "and",
                       change->what, change->from, change->to);
    }
}

void vp_rank_text(struct vp_buf *out, const struct vp_ranked *items, size_t count,
                  const struct vp_report_options *options) {
    struct vp_page page = vp_section_page(out, options);

    for (size_t i = 0; i < count; i++)
        if (items[i].plan) {
            vp_page_wrap(&page, 0, 2, vp_words_devices(out->arena, items[i].plan));
            break;
        }
    if (count > 0 && items[0].plan && items[0].verdict == VP_FITS)
        vp_page_printf(&page, 0, 2, "the largest that fits: %s", name_of(&items[0]));
    else
        vp_page_wrap(&page, 0, 2, "none of them fits for sure");
    vp_buf_add(out, "\n");
    vp_page_spaces(&page, INDENT);
    vp_page_left(&page, "model", NAME);
    vp_page_right(&page, "params", COUNT);
    vp_page_right(&page, "as it is", WORD);
    vp_page_right(&page, "needs GiB", FIGURE);
    vp_page_right(&page, "to spare", FIGURE - 2);
    vp_buf_add(out, "\n");
    for (size_t i = 0; i < count; i++)
        row(&page, &items[i], i + 1);
}

/* ---- for programs ---- */

static void item_json(struct vp_json *json, const struct vp_ranked *item) {
    const struct vp_result *plan = item->plan;

    vp_json_map(json);
    vp_json_key_text(json, "input", item->input);
    vp_json_key_text(json, "scenario", plan ? plan->scenario->name : item->name);
    vp_json_key_text(json, "verdict", plan ? vp_verdict_name(item->verdict) : NULL);
    if (plan) {
        vp_json_key_text(json, "engine", plan->scenario->engine.name);
        vp_json_key_u64(json, "params_total", plan->params_total);
        vp_json_key_u64(json, "need_bytes", plan->devices[plan->worst].need.likely);
        vp_json_key_i64(json, "headroom_bytes", plan->headroom_bytes);
        vp_json_key_text(json, "reason_text", plan->reason_text);
        vp_json_key(json, "smallest_change");
        if (item->verdict != VP_FITS && item->outcome && item->outcome->count > 0)
            vp_changes_json_proposal(json, item->outcome, &item->outcome->item[0]);
        else
            vp_json_null(json);
    }
    vp_json_key(json, "diagnostics");
    vp_report_json_diagnostics(json, item->diags);
    vp_json_end(json, '}');
}

void vp_rank_json(struct vp_json *json, const struct vp_ranked *items, size_t count) {
    bool planned = count > 0 && items[0].plan;

    vp_json_map(json);
    vp_json_key_text(json, "schema", "vramplan.fit/1");
    vp_json_key_text(json, "question", "largest");
    vp_json_key_text(json, "verdict", planned ? vp_verdict_name(items[0].verdict) : NULL);
    vp_json_key(json, "ranking");
    vp_json_list(json);
    for (size_t i = 0; i < count; i++)
        item_json(json, &items[i]);
    vp_json_end(json, ']');
    vp_json_end(json, '}');
}
