#include "api/fit_serving.h"

#include <math.h>
#include <string.h>

#include "api/served_rows.h"
#include "planner/base/memo.h"
#include "planner/base/text.h"
#include "planner/latency/serve_fit.h"
#include "planner/latency/engine_constants.h"
#include "planner/plan/plan.h"
#include "planner/plan/serve_latency.h"

const char *vp_served_skip_name(enum vp_served_skip skip) {
    static const char *const NAMES[] = {
        "used", "another card", "an engine without constants",
        "disaggregated, uncertain, perhaps speculative, or no time of a request",
        "refused: model or layout not known"};
    return NAMES[skip];
}

/* ---- rows -> sums ---- */

/* What is known of a row beside its sums. */
struct origin {
    const char *engine, *version; /* NULL: no version is said */
    int generation;
    const struct vp_serving_fit *prior; /* of its class; NULL: none */
};

struct fitting {
    struct vp_ctx *ctx;
    struct vp_serving_report *report;
    const struct vp_calibration *kernels; /* NULL: those of each card's class */
    const char *gpu, *vendor;             /* wanted; NULL: any */
    bool by_card;                         /* groups are cards, not models */
    struct vp_serve_fit_rows rows;
    struct origin *origin; /* of each row */
    const char **group;    /* names of the groups */
    struct vp_arena scratch;
};

/* How a scheme is called in such tables. */
static const char *format_of(const struct vp_scheme *scheme) {
    switch (scheme->data) {
    case VP_DTYPE_FP4:
        return scheme->scale_dtype == VP_DTYPE_E8M0 ? "mxfp4" : "nvfp4";
    default:
        return vp_dtype_name(scheme->data);
    }
}

/* The format of most weights: of experts where there are some, else of the feed-forward. */
static const char *stored_format(const struct vp_model *model) {
    const struct vp_block *block = &model->blocks[model->layers[model->layer_count - 1]];
    enum vp_role role = block->moe.kind != VP_MLP_NONE ? VP_ROLE_EXPERT_DOWN : VP_ROLE_DOWN;
    return format_of(&model->schemes[block->scheme[role]]);
}

static const struct vp_scenario *scenario_of(struct vp_ctx *ctx, struct vp_served_row *row) {
    for (int asked = 0; asked < 2; asked++) {
        struct vp_scenarios found = {0};
        if (asked)
            row->setting[row->settings++] =
                (struct vp_setting){"precision.weights", row->weights, "precision.weights"};
        if (vp_input_read(ctx, &found, row->model, row->setting, row->settings) != VP_OK ||
            found.count != 1)
            return NULL;
        if (asked || vp_text_eq(stored_format(found.items[0]->model), row->weights))
            return found.items[0];
    }
    return NULL;
}

static uint32_t group_of(struct fitting *f, const char *engine, const char *name) {
    char *key = vp_arena_printf(f->ctx->arena, "%s %s", engine, name);
    for (uint32_t i = 0; i < f->rows.groups; i++)
        if (strcmp(f->group[i], key) == 0)
            return i;
    f->group[f->rows.groups] = key;
    return f->rows.groups++;
}

/* The sums of one row, planned in scratch memory. */
static enum vp_served_skip add_row(struct fitting *f, struct vp_ctx *ctx,
                                   struct vp_served_row *row) {
    const struct vp_scenario *read = scenario_of(ctx, row);
    struct vp_served *out = &f->rows.row[f->rows.count];
    struct vp_result result = {0};
    struct vp_scenario scenario;

    if (!read)
        return VP_SERVED_REFUSED;
    if (f->vendor && !vp_text_eq(read->hardware.gpu.vendor, f->vendor))
        return VP_SERVED_GPU;
    scenario = *read;
    scenario.measured_gpu = f->kernels;
    if (!vp_plan_evaluate(ctx->arena, &result, &scenario))
        return VP_SERVED_REFUSED;
    vp_serve_load_of(&out->load, &result);
    vp_serve_terms(&out->terms, &out->load);
    out->load.scenario = NULL; /* scratch */
    out->tpot_us = row->tpot_us;
    out->ttft_us = row->ttft_us;
    out->total_us = row->total_us;
    out->group = group_of(
        f, row->engine,
        f->by_card ? row->gpu : vp_arena_printf(ctx->arena, "%s %s", row->model, row->weights));
    struct origin *origin = &f->origin[f->rows.count++];
    origin->engine = row->engine;
    if (row->version)
        origin->version = vp_arena_printf(f->ctx->arena, "%s", row->version);
    origin->generation = vp_serving_generation(row->engine, &scenario.engine.version);
    if (scenario.engine.rules.latency.engine) {
        struct vp_serving_fit *prior = VP_NEW(f->ctx->arena, struct vp_serving_fit);
        *prior = scenario.engine.rules.latency;
        origin->prior = prior;
    }
    return VP_SERVED_USED;
}

static void read_row(struct fitting *f, const struct vp_csv *table, uint32_t index) {
    struct vp_arena_mark mark = vp_arena_mark(&f->scratch);
    struct vp_ctx ctx = *f->ctx;
    struct vp_served_row row;
    enum vp_served_skip skip;

    ctx.arena = &f->scratch;
    ctx.diags = VP_NEW(ctx.arena, struct vp_diags);
    ctx.diags->arena = ctx.arena;
    vp_served_row_read(&ctx, &row, &skip, table, index, f->gpu);
    if (skip == VP_SERVED_USED)
        skip = add_row(f, &ctx, &row);
    if (skip == VP_SERVED_REFUSED && !f->report->refused)
        f->report->refused = vp_arena_printf(
            f->ctx->arena, "%s:%u: %s", table->name, table->lines[index],
            ctx.diags->count > 0 ? ctx.diags->items[0].message : "no profile of this model");
    f->report->rows[skip]++;
    vp_arena_rewind(&f->scratch, mark);
}

static void read_all(struct fitting *f, const struct vp_csv *const *tables, size_t count) {
    size_t rows = 0;

    for (size_t i = 0; i < count; i++)
        rows += tables[i]->rows;
    f->rows.row = VP_NEW_ARRAY(f->ctx->arena, rows + 1, struct vp_served);
    f->origin = VP_NEW_ARRAY(f->ctx->arena, rows + 1, struct origin);
    f->group = VP_NEW_ARRAY(f->ctx->arena, rows + 1, const char *);
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < tables[i]->rows; k++)
            read_row(f, tables[i], k);
    vp_arena_free(&f->scratch);
}

/* ---- one generation of an engine ---- */

/* Rows of it, with groups counted from 0. */
struct generation {
    const char *engine;
    int number;
    struct vp_serve_fit_rows rows;
    const struct vp_serving_fit *prior;
    const char *release; /* "vllm 0.19.0", the newest of them */
};

static bool is_newer(const char *version, const char *than) {
    struct vp_version a, b;

    return !than || (vp_version_parse(&a, version) && vp_version_parse(&b, than) &&
                     a.kind == b.kind && vp_version_compare(a, b) > 0);
}

static void take_rows(struct fitting *f, struct generation *out) {
    uint32_t *number = VP_NEW_ARRAY(f->ctx->arena, f->rows.groups + 1, uint32_t);
    const char *newest = NULL;

    out->rows.row = VP_NEW_ARRAY(f->ctx->arena, f->rows.count + 1, struct vp_served);
    for (uint32_t i = 0; i < f->rows.count; i++) {
        const struct origin *origin = &f->origin[i];
        struct vp_served *row = &f->rows.row[i];
        if (strcmp(origin->engine, out->engine) != 0 || origin->generation != out->number)
            continue;
        if (number[row->group] == 0)
            number[row->group] = ++out->rows.groups;
        out->rows.row[out->rows.count] = *row;
        out->rows.row[out->rows.count++].group = number[row->group] - 1;
        out->prior = origin->prior;
        if (origin->version && is_newer(origin->version, newest))
            newest = origin->version;
    }
    out->release =
        newest ? vp_arena_printf(f->ctx->arena, "%s %s", out->engine, newest) : out->engine;
}

static bool fit_generation(struct fitting *f, struct vp_serving_fit *out,
                           const struct generation *of, const char *files) {
    *out = (struct vp_serving_fit){.engine = of->engine};
    if (!vp_serve_fit(f->ctx->arena, out, &of->rows, of->prior))
        return false;
    for (uint32_t i = 0; i < of->rows.count; i++)
        f->report->outliers += of->rows.row[i].outlier;
    out->source = (struct vp_fit_source){of->release, files};
    return true;
}

static const char *names_of(struct vp_ctx *ctx, const struct vp_csv *const *tables, size_t count) {
    struct vp_buf buf = {.arena = ctx->arena};

    for (size_t i = 0; i < count; i++)
        vp_buf_printf(&buf, "%s%s", i > 0 ? ", " : "", vp_text_file_name(tables[i]->name));
    return vp_buf_text(&buf);
}

/* Profiles and models are read once for all rows. */
static struct vp_ctx with_memo(const struct vp_ctx *ctx, struct vp_memo **own) {
    struct vp_ctx out = *ctx;

    *own = ctx->memo ? NULL : vp_memo_new();
    if (*own)
        out.memo = *own;
    return out;
}

enum vp_status vp_fit_serving(struct vp_ctx *outer, struct vp_calibration *calibration,
                              struct vp_serving_report *report, const struct vp_csv *const *tables,
                              size_t count) {
    static const char *const ENGINES[] = {"vllm", "sglang"};
    enum { ENGINE_COUNT = 2, GENERATIONS = 2 };
    struct vp_memo *memo;
    struct vp_ctx ctx = with_memo(outer, &memo);
    struct fitting f = {
        .ctx = &ctx, .report = report, .kernels = calibration, .gpu = calibration->gpu};

    *report = (struct vp_serving_report){{0}, NULL, 0};
    read_all(&f, tables, count);
    calibration->serving =
        VP_NEW_ARRAY(ctx.arena, (size_t)ENGINE_COUNT * GENERATIONS, struct vp_serving_fit);
    calibration->serving_count = 0;
    for (int i = 0; i < ENGINE_COUNT * GENERATIONS; i++) {
        struct generation of = {
            ENGINES[i / GENERATIONS], GENERATIONS - 1 - i % GENERATIONS, {NULL, 0, 0}, NULL, NULL};
        take_rows(&f, &of);
        if (fit_generation(&f, &calibration->serving[calibration->serving_count], &of,
                           names_of(&ctx, tables, count)))
            calibration->serving_count++;
    }
    vp_memo_free(memo);
    return VP_OK;
}

/* A class of one card says little about the others of its kind: kernels of a class differ by that
 * much (planner/latency/classes.def). */
static const double ONE_CARD_SPREAD = 1.7;

static bool fit_class(struct vp_ctx *ctx, struct vp_serving_fit *out,
                      struct vp_serving_report *report, const struct vp_serving_class *of,
                      const struct vp_serving_fit *prior, const struct vp_csv *const *tables,
                      size_t count) {
    struct fitting f = {.ctx = ctx, .report = report, .vendor = of->vendor, .by_card = true};
    struct generation generation = {of->engine, of->generation, {NULL, 0, 0}, NULL, NULL};

    *report = (struct vp_serving_report){{0}, NULL, 0};
    read_all(&f, tables, count);
    take_rows(&f, &generation);
    generation.prior = prior;
    if (!fit_generation(&f, out, &generation, names_of(ctx, tables, count)))
        return false;
    if (generation.rows.groups == 1) {
        out->tpot_spread = fmax(out->tpot_spread, ONE_CARD_SPREAD);
        out->ttft_spread = fmax(out->ttft_spread, ONE_CARD_SPREAD);
    }
    return true;
}

enum vp_status vp_fit_serving_class(struct vp_ctx *outer, struct vp_serving_fit *out,
                                    struct vp_serving_report *report,
                                    const struct vp_serving_class *of,
                                    const struct vp_csv *const *tables, size_t count) {
    const struct vp_serving_class all = {of->engine, of->generation, NULL};
    struct vp_serving_fit engine;
    struct vp_memo *memo;
    struct vp_ctx ctx = with_memo(outer, &memo);
    bool done = fit_class(&ctx, &engine, report, &all, NULL, tables, count);

    *out = engine;
    if (done && of->vendor) /* what hosts do is alike: it counts where the vendor has few rows */
        done = fit_class(&ctx, out, report, of, &engine, tables, count);
    vp_memo_free(memo);
    if (done)
        return VP_OK;
    vp_diag_add(outer->diags, VP_D_BAD_OPTION, NULL, "too few rows of %s%s%s to fit anything",
                of->engine, of->vendor ? " on cards of " : "", of->vendor ? of->vendor : "");
    return VP_ERR_INPUT;
}
