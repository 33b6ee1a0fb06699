#include "cli/deploy_report.h"

#include <inttypes.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "reports/layout.h"
#include "reports/sections.h"
#include "reports/shell_words.h"
#include "reports/simulate_report.h"
#include "reports/words.h"

/* "one GPU", "tensor 4 x pipeline 2, max_num_seqs 64" */
static const char *shape_text(struct vp_arena *arena, const struct vp_deployment *d) {
    const struct {
        const char *name;
        uint64_t ranks;
    } PARTS[] = {
        {"tensor", d->tensor}, {"pipeline", d->pipeline}, {"data", d->data}, {"expert", d->expert}};
    struct vp_buf out = {.arena = arena};

    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        if (PARTS[i].ranks > 1)
            vp_buf_printf(&out, "%s%s %" PRIu64, out.size ? " x " : "", PARTS[i].name,
                          PARTS[i].ranks);
    if (!out.size)
        vp_buf_add(&out, "one GPU");
    if (*d->settings)
        vp_buf_printf(&out, ", %s", d->settings);
    return vp_buf_text(&out);
}

static const char *layout_text(struct vp_arena *arena, const struct vp_deployment *d) {
    if (d->copies == 1)
        return vp_arena_printf(arena, "one replica of %s", shape_text(arena, d));
    return vp_arena_printf(arena, "%" PRIu64 " replicas of %s", d->copies, shape_text(arena, d));
}

/* The settings of the command line that this deployment keeps, then its own. */
static const char *command(struct vp_arena *arena, const struct vp_deploy_report *r,
                           const struct vp_deployment *d) {
    struct vp_buf out = {.arena = arena};

    vp_buf_printf(&out, "vramplan simulate %s", vp_shell_word(arena, r->input));
    for (size_t i = 0; i < r->sets; i++) {
        bool replaced = vp_text_eq(r->set[i].path, "serve.replicas");
        for (uint32_t k = 0; k < d->sets; k++)
            replaced |= vp_text_eq(d->set[k].path, r->set[i].path);
        if (!replaced)
            vp_buf_printf(&out, " --set %s",
                          vp_shell_word(arena, vp_arena_printf(arena, "%s=%s", r->set[i].path,
                                                               r->set[i].value)));
    }
    for (uint32_t k = 0; k < d->sets; k++)
        vp_buf_printf(
            &out, " --set %s",
            vp_shell_word(arena, vp_arena_printf(arena, "%s=%s", d->set[k].path, d->set[k].value)));
    vp_buf_printf(&out, " --set serve.replicas=%" PRIu64, d->copies);
    if (r->slo)
        vp_buf_printf(&out, " --slo %s", vp_shell_word(arena, r->slo));
    return vp_buf_text(&out);
}

/* ---- text ---- */

static const char *against(struct vp_arena *arena, const struct vp_deployments *found,
                           const struct vp_deployment *d) {
    const struct vp_slo_limit *l = &found->slo.limit[d->tightest];

    return vp_arena_printf(arena, "%s %s of %s, %.0f%% to spare%s%s%s", l->name,
                           vp_simulate_ms(arena, d->tightest_ms), vp_simulate_ms(arena, l->ms),
                           d->margin * 100, d->tightest_slow_ms > 0 ? " (slow end: " : "",
                           d->tightest_slow_ms > 0 ? vp_simulate_ms(arena, d->tightest_slow_ms)
                                                   : "",
                           d->tightest_slow_ms > 0 ? ")" : "");
}

static void head(const struct vp_page *page, const struct vp_deploy_report *r) {
    const struct vp_deployments *f = r->found;
    struct vp_arena *arena = page->out->arena;

    if (f->best_count == 0) {
        vp_page_styled(page, VP_STYLE_BAD, "NONE");
        vp_page_spaces(page, 2);
        vp_page_printf(page, 6, 2, "no deployment of up to %d GPUs keeps the promise",
                       VP_DEPLOY_MOST_GPUS);
        return;
    }
    const struct vp_deployment *d = &f->item[f->best[0]];
    bool sure = d->state == VP_DEPLOY_KEPT;
    const char *word = sure ? "SMALLEST" : d->state == VP_DEPLOY_OPEN ? "OPEN" : "AT RISK";
    vp_page_styled(page, sure ? VP_STYLE_GOOD : VP_STYLE_WARN, word);
    vp_page_spaces(page, 2);
    vp_page_printf(page, vp_text_cells(word) + 2, 2, "%" PRIu64 " x %s: %s%s; %s", d->gpus, d->gpu,
                   layout_text(arena, d),
                   sure                         ? ""
                   : d->state == VP_DEPLOY_OPEN ? ", at least: only bounds are known"
                                                : ", likely but not for sure",
                   against(arena, f, d));
}

static void row(const struct vp_page *page, const struct vp_deployment *d) {
    struct vp_arena *arena = page->out->arena;

    vp_page_left(page, d->gpu, 14);
    vp_page_right(page, d->gpus ? vp_arena_printf(arena, "%" PRIu64, d->gpus) : "-", 5);
    vp_page_right(page, d->copies ? vp_arena_printf(arena, "%" PRIu64, d->copies) : "-", 9);
    vp_page_right(page, d->copies ? vp_simulate_ms(arena, d->tightest_ms) : "-", 10);
    vp_page_right(page, d->tightest_slow_ms > 0 ? vp_simulate_ms(arena, d->tightest_slow_ms) : "-",
                  10);
    vp_page_right(
        page, d->cost_per_million > 0 ? vp_arena_printf(arena, "%.3g", d->cost_per_million) : "-",
        9);
    vp_page_spaces(page, 2);
    vp_page_wrap(
        page, 60, 60,
        vp_arena_printf(arena, "%s: %s", vp_deploy_state_name(d->state), shape_text(arena, d)));
}

/* GPUs of which nothing keeps the promise, and why the last of their shapes does not. */
static void failures(const struct vp_page *page, const struct vp_deploy_report *r) {
    const struct vp_deployments *f = r->found;

    for (uint32_t i = 0; i < f->count; i++) {
        const struct vp_deployment *d = &f->item[i];
        bool first = true, answered = false;
        for (uint32_t k = 0; k < f->count; k++) {
            bool same = vp_text_eq(f->item[k].gpu, d->gpu);
            first &= !(same && k < i);
            answered |= same && f->item[k].copies > 0;
        }
        if (!first || answered)
            continue;
        const struct vp_deployment *why = d;
        for (uint32_t k = 0; k < f->count; k++) /* what came nearest says most */
            if (vp_text_eq(f->item[k].gpu, d->gpu) && f->item[k].state < why->state)
                why = &f->item[k];
        vp_page_printf(page, 0, 2, "%s: none of its shapes up to %d GPUs (%s%s%s)", d->gpu,
                       VP_DEPLOY_MOST_GPUS, vp_deploy_state_name(why->state), why->why ? ": " : "",
                       why->why ? why->why : "");
    }
}

void vp_deploy_text(struct vp_buf *out, const struct vp_deploy_report *r,
                    const struct vp_report_options *options) {
    static const char *const HEADS[] = {"GPUs", "replicas", "likely", "slow end", "cost/Mtok"};
    static const int CELLS[] = {5, 9, 10, 10, 10};
    const struct vp_deployments *f = r->found;
    struct vp_page page = vp_section_page(out, options);

    head(&page, r);
    vp_buf_add(out, "\n");
    if (f->best_count > 0) {
        vp_page_left(&page, "Of each GPU", 14);
        for (int i = 0; i < 5; i++)
            vp_page_right(&page, HEADS[i], CELLS[i]);
        vp_buf_add(out, "\n");
    }
    for (uint32_t i = 0; i < f->best_count; i++)
        row(&page, &f->item[f->best[i]]);
    failures(&page, r);
    if (f->best_count > 0)
        vp_buf_printf(out, "\n  %s\n", command(out->arena, r, &f->item[f->best[0]]));
    vp_buf_add(out, "\n");
    vp_page_printf(&page, 0, 2, "Traffic: %s", r->traffic);
    vp_page_printf(&page, 0, 2,
                   "%" PRIu32 " shapes (GPU, layout, engine settings), %s deployments simulated, "
                   "%s others left alone",
                   f->count, vp_format_count(out->arena, f->simulated),
                   vp_format_count(out->arena, f->left_alone));
}

/* ---- JSON ---- */

static void item(struct vp_json *json, struct vp_arena *arena, const struct vp_deploy_report *r,
                 const struct vp_deployment *d) {
    vp_json_map(json);
    vp_json_key_text(json, "state", vp_deploy_state_name(d->state));
    vp_json_key_text(json, "gpu", d->gpu);
    vp_json_key_u64(json, "gpus", d->gpus);
    vp_json_key_u64(json, "replicas", d->copies);
    vp_json_key_u64(json, "likely_replicas", d->likely_copies);
    vp_json_key_u64(json, "least_replicas", d->least_copies);
    vp_json_key_u64(json, "gpus_per_replica", d->each);
    vp_json_key_u64(json, "tensor", d->tensor);
    vp_json_key_u64(json, "pipeline", d->pipeline);
    vp_json_key_u64(json, "data", d->data);
    vp_json_key_u64(json, "expert", d->expert);
    vp_json_key_text(json, "settings", d->settings);
    vp_json_key_text(json, "promise", r->found->slo.limit[d->tightest].name);
    vp_report_json_number(json, "margin", d->margin);
    vp_report_json_number(json, "likely_ms", d->tightest_ms);
    if (d->tightest_slow_ms > 0)
        vp_report_json_number(json, "slow_ms", d->tightest_slow_ms);
    if (d->price_per_hour > 0) {
        vp_report_json_number(json, "price_per_hour", d->price_per_hour);
        vp_report_json_number(json, "cost_per_million_output_tokens", d->cost_per_million);
    }
    vp_report_json_number(json, "output_tokens_per_s", d->output_tokens_per_s);
    vp_json_key_text(json, "command", command(arena, r, d));
    vp_json_end(json, '}');
}

void vp_deploy_json(struct vp_json *json, const struct vp_deploy_report *r,
                    const struct vp_diags *diags) {
    const struct vp_deployments *f = r->found;
    struct vp_arena *arena = json->out->arena;

    vp_json_map(json);
    vp_json_key_text(json, "schema", "vramplan.fit/1");
    vp_json_key_text(json, "scenario", r->scenario->name);
    vp_json_key_text(json, "question", "deployment");
    vp_json_key_text(json, "goal", r->goal);
    vp_json_key_text(json, "traffic", r->traffic);
    vp_json_key_u64(json, "shapes", f->count);
    vp_json_key_u64(json, "simulated", f->simulated);
    vp_json_key(json, "deployments");
    vp_json_list(json);
    for (uint32_t i = 0; i < f->best_count; i++)
        item(json, arena, r, &f->item[f->best[i]]);
    vp_json_end(json, ']');
    vp_json_key(json, "diagnostics");
    vp_report_json_diagnostics(json, diags);
    vp_json_end(json, '}');
}

/* ---- rows ---- */

static void cell(struct vp_buf *out, double v, bool known) {
    vp_buf_add(out, ",");
    if (known)
        vp_report_csv_number(out, v);
}

static void count(struct vp_buf *out, uint64_t v) {
    vp_buf_add(out, ",");
    if (v > 0)
        vp_buf_printf(out, "%" PRIu64, v);
}

void vp_deploy_csv(struct vp_buf *out, const struct vp_deploy_report *r, const char *id) {
    const struct vp_deployments *f = r->found;

    vp_buf_add(out, "row,gpu,tensor,pipeline,data,expert,settings,verdict,state,devices,replicas,"
                    "likely_replicas,price,cost_per_million,promise,margin,likely_ms,slow_ms,"
                    "output_tokens_per_s,reason,sweep\n");
    for (uint32_t i = 0; i < f->count; i++) {
        const struct vp_deployment *d = &f->item[i];
        bool seen = d->copies > 0;
        vp_buf_printf(out, "%" PRIu32 ",", d->row);
        vp_report_csv_cell(out, d->gpu);
        count(out, d->tensor);
        count(out, d->pipeline);
        count(out, d->data);
        count(out, d->expert);
        vp_buf_add(out, ",");
        vp_report_csv_cell(out, d->settings);
        vp_buf_printf(out, ",%s,%s",
                      d->state == VP_DEPLOY_KEPT                                   ? "fits"
                      : d->state == VP_DEPLOY_LIKELY || d->state == VP_DEPLOY_OPEN ? "at-risk"
                      : d->state == VP_DEPLOY_REFUSED                              ? "refused"
                                                                                   : "does-not-fit",
                      vp_deploy_state_name(d->state));
        count(out, d->gpus);
        count(out, d->copies);
        count(out, d->likely_copies);
        cell(out, d->price_per_hour, d->price_per_hour > 0);
        cell(out, d->cost_per_million, d->cost_per_million > 0);
        vp_buf_printf(out, ",%s", seen ? f->slo.limit[d->tightest].name : "");
        cell(out, d->margin, seen);
        cell(out, d->tightest_ms, seen);
        cell(out, d->tightest_slow_ms, d->tightest_slow_ms > 0);
        cell(out, d->output_tokens_per_s, seen);
        vp_buf_add(out, ",");
        vp_report_csv_cell(out, d->why);
        vp_buf_printf(out, ",%s\n", id);
    }
}
