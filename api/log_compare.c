#include "api/log_compare.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"

/* ---- figures ---- */

static void find_figures(struct vp_ctx *ctx, struct vp_log_comparison *out) {
    const struct vp_log_start *start = &out->log->start;
    out->figures = vp_log_measured(ctx->arena, &out->figure, start, out->engine);
    out->row = VP_NEW_ARRAY(ctx->arena, out->figures, struct vp_log_row);
    for (size_t i = 0; i < out->figures; i++)
        out->row[i].logged = &out->figure[i];
}

void vp_log_compare_none(struct vp_ctx *ctx, struct vp_log_comparison *out,
                         const struct vp_run_log *log) {
    *out = (struct vp_log_comparison){
        .log = log, .engine = log->start.engine, .engine_known = log->start.known};
    find_figures(ctx, out);
}

static int64_t capped(uint64_t v) { return v > INT64_MAX ? INT64_MAX : (int64_t)v; }

static bool is_inside(const struct vp_figure *predicted, const struct vp_log_figure *logged) {
    int64_t slack = logged->step / 2 + 1;
    return logged->value >= capped(predicted->amount.low) - slack &&
           logged->value <= capped(predicted->amount.high) + slack;
}

static void put_predicted(struct vp_ctx *ctx, struct vp_log_comparison *out) {
    struct vp_figure *figures = VP_NEW_ARRAY(ctx->arena, VP_FIGURES, struct vp_figure);
    size_t count = vp_figures_of(figures, out->result);
    for (size_t i = 0; i < out->figures; i++)
        for (size_t k = 0; k < count; k++) {
            const char *a = figures[k].place, *b = out->figure[i].place;
            if (!vp_text_eq(figures[k].key, out->figure[i].key) ||
                !vp_text_eq(a ? a : "", b ? b : ""))
                continue;
            out->row[i].predicted = &figures[k];
            out->row[i].inside = is_inside(&figures[k], &out->figure[i]);
        }
}

bool vp_log_row_deviation(int64_t *out_millionths, const struct vp_log_row *row) {
    if (!row->predicted || row->logged->value == 0)
        return false;
    __int128 off = (__int128)capped(row->predicted->amount.likely) - row->logged->value;
    __int128 base = row->logged->value < 0 ? -(__int128)row->logged->value : row->logged->value;
    __int128 millionths = off * 1000000 / base;
    *out_millionths = millionths > INT64_MAX    ? INT64_MAX
                      : millionths < -INT64_MAX ? -INT64_MAX
                                                : (int64_t)millionths;
    return true;
}

/* ---- settings ---- */

/* "0.19" of a scenario is "0.19.1rc2" of a log. */
static bool same_version(const char *ours, const char *logged) {
    return vp_text_starts(logged, ours) &&
           !(logged[strlen(ours)] >= '0' && logged[strlen(ours)] <= '9');
}

enum { ALL_LAYERS = 999 }; /* of llama.cpp: more than any model has */

static bool same_value(const char *path, const char *ours, const char *logged) {
    double a, b;
    uint64_t x, y;
    if (vp_text_eq(ours, logged) || vp_name_eq(ours, logged))
        return true;
    if (vp_text_eq(path, "engine.version"))
        return same_version(ours, logged);
    if (vp_text_eq(path, "engine.args.n_gpu_layers") && vp_parse_u64(&x, ours) && x >= ALL_LAYERS)
        return true; /* the log says how many those are */
    if (vp_parse_real(&a, ours) && vp_parse_real(&b, logged))
        return a == b;
    if (vp_parse_size(&x, ours) && vp_parse_size(&y, logged)) /* printed with two decimals */
        return (x > y ? x - y : y - x) <= (UINT64_C(1) << 30) / 100;
    return false;
}

/* What the scenario has there, and who said so. */
static bool scenario_value(struct vp_ctx *ctx, const char **out, enum vp_origin *origin,
                           const struct vp_scenario *scenario, const char *path) {
    enum vp_field field = vp_text_eq(path, "engine.version")
                              ? VP_F_VERSION
                              : vp_field_find_for(scenario->engine.kind, path);
    if (field == VP_FIELD_COUNT)
        return false;
    *origin = scenario->source[field].origin;
    *out = vp_field_value(ctx->arena, scenario, field);
    return true;
}

static enum vp_log_setting_use judge(const struct vp_log_setting *setting, const char *ours,
                                     enum vp_origin origin) {
    if (ours && same_value(setting->path, ours, setting->value))
        return VP_LOG_SETTING_AGREES;
    if (origin >= VP_ORIGIN_FILE)
        return VP_LOG_SETTING_DIFFERS;
    return vp_text_eq(setting->value, "auto") ? VP_LOG_SETTING_LEFT : VP_LOG_SETTING_FILLED;
}

static void tell_differences(struct vp_ctx *ctx, const struct vp_log_comparison *out) {
    for (size_t i = 0; i < out->checked_count; i++) {
        const struct vp_log_checked *c = &out->checked[i];
        struct vp_pos pos = {.file = out->log->path, .line = (uint32_t)c->setting.line};
        if (c->use != VP_LOG_SETTING_DIFFERS)
            continue;
        vp_diag_add(ctx->diags, VP_D_LOG_DISAGREES, &pos,
                    "the log was made with %s %.60s, the scenario says %.60s", c->setting.path,
                    c->setting.value, c->ours ? c->ours : "nothing");
        vp_diag_hint(ctx->diags, "--set %s=%.60s plans what was run", c->setting.path,
                     c->setting.value);
    }
}

static void check_settings(struct vp_ctx *ctx, struct vp_log_comparison *out,
                           const struct vp_scenario *scenario) {
    struct vp_log_setting *settings;
    size_t count = vp_log_settings(ctx, &settings, &out->log->start, out->engine);
    out->checked = VP_NEW_ARRAY(ctx->arena, count, struct vp_log_checked);
    for (size_t i = 0; i < count; i++) {
        enum vp_origin origin = VP_ORIGIN_UNSET;
        const char *ours = NULL;
        if (!scenario_value(ctx, &ours, &origin, scenario, settings[i].path))
            continue;
        out->checked[out->checked_count++] =
            (struct vp_log_checked){settings[i], ours, judge(&settings[i], ours, origin)};
    }
}

/* ---- planning ---- */

static enum vp_status plan_once(struct vp_ctx *ctx, const struct vp_result **out,
                                struct vp_diags **diags, const char *scenario,
                                const struct vp_setting *settings, size_t count) {
    struct vp_ctx own = *ctx;
    own.diags = VP_NEW(ctx->arena, struct vp_diags);
    own.diags->arena = ctx->arena;
    *diags = own.diags;
    return vp_answers_one(&own, out, "import-log", scenario, settings, count);
}

/* With the log's settings where the scenario has none. A value that cannot be planned with (of a
 * version that is not known, say) leaves the plan as it was. */
static enum vp_status plan_filled(struct vp_ctx *ctx, struct vp_log_comparison *out,
                                  const char *scenario, const struct vp_setting *settings,
                                  size_t setting_count) {
    struct vp_setting *all =
        VP_NEW_ARRAY(ctx->arena, setting_count + out->checked_count, struct vp_setting);
    const struct vp_result *filled;
    struct vp_diags *diags;
    size_t count = setting_count;
    if (setting_count)
        memcpy(all, settings, setting_count * sizeof *all);
    for (size_t i = 0; i < out->checked_count; i++)
        if (out->checked[i].use == VP_LOG_SETTING_FILLED)
            all[count++] = (struct vp_setting){out->checked[i].setting.path,
                                               out->checked[i].setting.value, "the log"};
    if (count == setting_count)
        return VP_OK;
    enum vp_status status = plan_once(ctx, &filled, &diags, scenario, all, count);
    if (status == VP_OK)
        out->result = filled;
    for (size_t i = 0; i < out->checked_count && status != VP_OK; i++)
        if (out->checked[i].use == VP_LOG_SETTING_FILLED)
            out->checked[i].use = VP_LOG_SETTING_LEFT;
    return status == VP_ERR_ENV ? status : VP_OK;
}

static enum vp_status check_engine(struct vp_ctx *ctx, struct vp_log_comparison *out) {
    const struct vp_log_start *start = &out->log->start;
    const struct vp_scenario *scenario = out->result->scenario;
    bool trains = start->engine == VP_ENGINE_PYTORCH || start->engine == VP_ENGINE_MEGATRON;
    bool llama = vp_engine_is_llama(start->engine) && vp_engine_is_llama(scenario->engine.kind);
    out->engine = scenario->engine.kind;
    out->engine_known = true;
    if (!start->known || start->engine == scenario->engine.kind || llama ||
        (trains && scenario->training))
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_CONTRADICTION, NULL, "the log is of %s, the scenario of %s",
                vp_engine_name(start->engine), scenario->engine.name);
    vp_diag_hint(ctx->diags, "--engine %s plans that one", vp_engine_name(start->engine));
    return VP_ERR_INPUT;
}

/* ---- what a profile could learn ---- */

static const struct vp_log_row *row_of(const struct vp_log_comparison *c, const char *key) {
    for (size_t i = 0; i < c->figures; i++)
        if (vp_text_eq(c->figure[i].key, key) && c->row[i].predicted && c->figure[i].value >= 0)
            return &c->row[i];
    return NULL;
}

static struct vp_refit_term term_of(const struct vp_log_row *row) {
    if (!row)
        return (struct vp_refit_term){.known = false};
    return (struct vp_refit_term){true, row->predicted->amount.likely, (uint64_t)row->logged->value,
                                  row->logged->how};
}

/* Versions that print neither: what was asked for, less weights and cache, is activations and what
 * is outside torch; the plan's activations are the surer of the two. */
static struct vp_refit_term implied_non_torch(const struct vp_log_comparison *c) {
    const struct vp_log_row *kv = row_of(c, "available_kv_cache_gib");
    const struct vp_log_row *weights = row_of(c, "weights_gib");
    const struct vp_engine_report *report = &c->result->report;
    if (!kv || !weights || c->result->scenario->engine.kind != VP_ENGINE_VLLM)
        return (struct vp_refit_term){.known = false};
    int64_t left = capped(report->requested_bytes) - weights->logged->value - kv->logged->value -
                   capped(report->activation_peak.likely);
    if (report->graphs_in_budget) {
        const struct vp_log_fact *graphs =
            vp_log_find(&c->log->start, VP_LOG_GRAPHS_ESTIMATED, NULL);
        left -= graphs ? graphs->value : capped(report->graph.likely);
    }
    if (left < 0)
        return (struct vp_refit_term){.known = false};
    return (struct vp_refit_term){true, report->non_torch.likely, (uint64_t)left,
                                  "what was asked for, less weights, cache and the plan's "
                                  "activations"};
}

static bool pinned(const struct vp_log_comparison *c, enum vp_measure what) {
    return c->result->scenario->measured.known[what];
}

static void find_refit(struct vp_ctx *ctx, struct vp_log_comparison *c) {
    const struct vp_scenario *s = c->result->scenario;
    const struct vp_log_row *weights = row_of(c, "weights_gib");
    if (!pinned(c, VP_M_NON_TORCH)) {
        c->refit.non_torch = term_of(row_of(c, "non_torch_gib"));
        if (!c->refit.non_torch.known && !pinned(c, VP_M_AVAILABLE_KV) &&
            !pinned(c, VP_M_ACTIVATION))
            c->refit.non_torch = implied_non_torch(c);
    }
    if (!pinned(c, VP_M_GRAPHS))
        c->refit.graphs = term_of(row_of(c, "graph_gib"));
    if (!pinned(c, VP_M_WEIGHTS) && weights && s->engine.rules.load_excess.high > 0)
        c->refit.load = term_of(weights);
    c->refit.provenance =
        vp_arena_printf(ctx->arena, "%s %s on %s, %s", s->engine.name, s->engine.version_text,
                        s->hardware.gpu.name, s->model->name);
}

/* Weights are computed to a few per cent: further off, something else was run. */
static void tell_other_model(struct vp_ctx *ctx, const struct vp_log_comparison *c) {
    const int64_t most =
        200000; /* of a million: more than "loading took" adds to any but tiny models */
    const struct vp_log_row *row = row_of(c, "weights_gib");
    const char *model = vp_log_argument(ctx->arena, &c->log->start, "model");
    int64_t off;
    if (!row || row->inside || !vp_log_row_deviation(&off, row) || (off < most && off > -most))
        return;
    struct vp_pos pos = {.file = c->log->path, .line = (uint32_t)row->logged->line};
    vp_diag_add(
        ctx->diags, VP_D_LOG_DISAGREES, &pos,
        "the weights that were loaded are %s, those of the plan %s: another model or format",
        vp_format_bytes(ctx->arena, (uint64_t)row->logged->value),
        vp_format_bytes(ctx->arena, row->predicted->amount.likely));
    if (model)
        vp_diag_hint(ctx->diags, "the log is of %.100s", model);
}

enum vp_status vp_log_compare(struct vp_ctx *ctx, struct vp_log_comparison *out,
                              const struct vp_run_log *log, const char *scenario,
                              const struct vp_setting *settings, size_t setting_count) {
    struct vp_diags *diags;
    *out = (struct vp_log_comparison){.log = log};
    enum vp_status status = plan_once(ctx, &out->result, &diags, scenario, settings, setting_count);
    if (status == VP_OK)
        status = check_engine(ctx, out);
    if (status != VP_OK) {
        vp_diags_merge(ctx->diags, diags);
        return status;
    }
    check_settings(ctx, out, out->result->scenario);
    tell_differences(ctx, out);
    status = plan_filled(ctx, out, scenario, settings, setting_count);
    find_figures(ctx, out);
    put_predicted(ctx, out);
    tell_other_model(ctx, out);
    find_refit(ctx, out);
    return status;
}
