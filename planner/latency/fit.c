#include "planner/latency/fit.h"

#include <math.h>
#include <string.h>

#include "planner/base/quantile.h"
#include "planner/latency/anchors.h"
#include "planner/latency/least_squares.h"

enum { FEW_ROWS = 100 }; /* below, nobody is an outlier */

/* An error from which on a row pulls with constant force. */
static const double SCALE = 0.08;

struct vp_form_case vp_fit_case(const struct vp_calibration *calibration,
                                const struct vp_kernel_samples *samples,
                                const struct vp_kernel_sample *sample) {
    double kv_bytes = samples->variant == VP_KV_8 ? 1 : 2;
    return (struct vp_form_case){
        .form = samples->form,
        .shape = sample->shape,
        .units = calibration->units,
        .cache_bytes = calibration->cache_bytes,
        .fine = vp_form_is_fine(calibration),
        .copies = sample->copies,
        .weight_bytes = samples->form == VP_FORM_GEMM
                            ? vp_rate_bytes((enum vp_rate)samples->variant)
                            : kv_bytes,
    };
}

/* ---- what is believed ---- */

static bool is_narrow(const struct vp_kernel_samples *samples) {
    return samples->form == VP_FORM_GEMM && vp_rate_bytes((enum vp_rate)samples->variant) < 2;
}

/* The data sheet's rate of a product, 10^12 FLOP/s; where it has none, a plain guess. */
static double sheet_rate(const struct vp_gpu *gpu, const struct vp_kernel_samples *samples) {
    double half = gpu->tflops_bf16 > 0   ? gpu->tflops_bf16
                  : gpu->tflops_fp16 > 0 ? gpu->tflops_fp16
                                         : 100;
    if (samples->form != VP_FORM_GEMM)
        return half;
    switch ((enum vp_rate)samples->variant) {
    case VP_RATE_FP32:
        return gpu->tflops_fp32 > 0 ? gpu->tflops_fp32 : half / 8;
    case VP_RATE_FP8:
    case VP_RATE_FP8_BLOCK:
        return gpu->tflops_fp8 > 0 ? gpu->tflops_fp8 : half;
    case VP_RATE_INT8:
        return gpu->tflops_int8 > 0 ? gpu->tflops_int8 : half;
    case VP_RATE_FP4:
        return gpu->tflops_fp4 > 0 ? gpu->tflops_fp4 : half;
    default:
        return half;
    }
}

static struct vp_lsq_unknown believed(const struct vp_gpu *gpu,
                                      const struct vp_kernel_samples *samples,
                                      enum vp_form_constant constant) {
    enum { ONE, BANDWIDTH, UNITS };
    static const struct {
        int of;
        double factor, spread, ceiling;
    } BELIEFS[VP_FORM_CONSTANT_COUNT] = {
#define X(name, of, factor, spread, ceiling) [VP_C_##name] = {of, factor, spread, ceiling},
#include "planner/latency/beliefs.def"
#undef X
    };
    const double base[] = {1, gpu->bandwidth_gbs > 0 ? gpu->bandwidth_gbs : 1000,
                           sheet_rate(gpu, samples)};
    bool on_sheet = BELIEFS[constant].of == BANDWIDTH ? gpu->bandwidth_gbs > 0
                                                      : gpu->tflops_bf16 + gpu->tflops_fp16 > 0;
    double of = base[BELIEFS[constant].of], most = vp_constants[constant].most;
    if (BELIEFS[constant].ceiling > 0 && on_sheet)
        most = fmin(most, BELIEFS[constant].ceiling * of);
    return (struct vp_lsq_unknown){.start = BELIEFS[constant].factor * of,
                                   .least = vp_constants[constant].least,
                                   .most = most,
                                   .spread = BELIEFS[constant].spread};
}

/* ---- constants ---- */

struct rows {
    struct vp_form_case *cases;
    const struct vp_kernel_sample **samples;
    double *log_us;
    bool *outlier; /* corrects nothing */
    uint32_t count;
    enum vp_form_constant which[VP_LSQ_MAX_UNKNOWNS]; /* constants that are looked for */
    struct vp_lsq_unknown unknown[VP_LSQ_MAX_UNKNOWNS];
    uint32_t unknowns;
    const double *fixed; /* all of them */
};

static void model(double *out, const void *data, const double *constants) {
    const struct rows *rows = data;
    double all[VP_FORM_CONSTANT_COUNT];
    memcpy(all, rows->fixed, sizeof all);
    for (uint32_t i = 0; i < rows->unknowns; i++)
        all[rows->which[i]] = constants[i];
    for (uint32_t i = 0; i < rows->count; i++)
        out[i] = log(vp_form_us(&rows->cases[i], all));
}

static double solve(struct vp_arena *arena, double *constants, struct rows *rows, uint32_t steps) {
    double found[VP_LSQ_MAX_UNKNOWNS];
    struct vp_arena_mark mark = vp_arena_mark(arena);
    const struct vp_lsq problem = {.unknown = rows->unknown,
                                   .unknowns = rows->unknowns,
                                   .log_measured = rows->log_us,
                                   .rows = rows->count,
                                   .scale = SCALE,
                                   .steps = steps,
                                   .model = model,
                                   .data = rows};
    rows->fixed = constants;
    double cost = vp_lsq_solve(arena, found, &problem);
    for (uint32_t i = 0; i < rows->unknowns; i++)
        constants[rows->which[i]] = found[i];
    vp_arena_rewind(arena, mark);
    return cost;
}

/* The sizes of a tile are tried, on some of the rows. */
static void choose_tile(struct vp_arena *arena, double *constants, struct rows *rows) {
    enum { SOME = 300, STEPS = 40 };
    static const double TILES[][2] = {{128, 128}, {128, 256}, {256, 128},
                                      {64, 128},  {64, 64},   {128, 64}};
    struct rows some = *rows;
    double best = INFINITY;
    some.count = some.count < SOME ? some.count : SOME;
    for (size_t t = 0; t < sizeof TILES / sizeof *TILES; t++) {
        double trial[VP_FORM_CONSTANT_COUNT] = {0};
        trial[VP_C_GEMM_TILE_M] = TILES[t][0];
        trial[VP_C_GEMM_TILE_N] = TILES[t][1];
        double cost = solve(arena, trial, &some, STEPS);
        if (cost < best) {
            best = cost;
            memcpy(constants, trial, sizeof trial);
        }
    }
}

/* To five digits; by powers of ten that are exact, so that it is the double of a short text. */
double vp_fit_rounded(double v) {
    int digits = 4 - (int)floor(log10(v));
    if (!(v > 0))
        return 0;
    return digits >= 0 ? round(v * pow(10, digits)) / pow(10, digits)
                       : round(v / pow(10, -digits)) * pow(10, -digits);
}

static void fit_constants(struct vp_arena *arena, double *constants, struct rows *rows) {
    enum { STEPS = 60 };
    memset(constants, 0, VP_FORM_CONSTANT_COUNT * sizeof *constants);
    if (rows->cases[0].form == VP_FORM_GEMM)
        choose_tile(arena, constants, rows);
    solve(arena, constants, rows, STEPS);
    for (int c = 0; c < VP_FORM_CONSTANT_COUNT; c++)
        constants[c] = vp_fit_rounded(constants[c]);
}

static bool is_norm(enum vp_form_constant c) {
    return c == VP_C_GEMM_NORM || c == VP_C_PREFILL_NORM || c == VP_C_DECODE_NORM;
}

/* The exponent of a processor: a core computes with what it has fetched, and fetches nothing
 * meanwhile. */
static const double ONE_AFTER_THE_OTHER = 1.05;

/* The rows with those of a stride apart side by side, so that any first part is a fair choice. */
static void take_rows(struct vp_arena *arena, struct rows *rows,
                      const struct vp_calibration *calibration, const struct vp_gpu *gpu,
                      const struct vp_kernel_samples *samples) {
    enum { STRIDE = 7 };
    *rows = (struct rows){.cases = VP_NEW_ARRAY(arena, samples->count, struct vp_form_case),
                          .samples =
                              VP_NEW_ARRAY(arena, samples->count, const struct vp_kernel_sample *),
                          .log_us = VP_NEW_ARRAY(arena, samples->count, double),
                          .outlier = VP_NEW_ARRAY(arena, samples->count, bool)};
    for (uint32_t first = 0; first < STRIDE; first++)
        for (uint32_t i = first; i < samples->count; i += STRIDE) {
            rows->samples[rows->count] = &samples->items[i];
            rows->cases[rows->count] = vp_fit_case(calibration, samples, &samples->items[i]);
            rows->log_us[rows->count++] = log(samples->items[i].us);
        }
    for (int c = 0; c < VP_FORM_CONSTANT_COUNT; c++) {
        bool tile = c == VP_C_GEMM_TILE_M || c == VP_C_GEMM_TILE_N;
        if (vp_constants[c].form != samples->form || tile ||
            ((c == VP_C_GEMM_QUANTISE || c == VP_C_GEMM_QUANTISE_FAR) && !is_narrow(samples)))
            continue;
        struct vp_lsq_unknown *unknown = &rows->unknown[rows->unknowns];
        *unknown = believed(gpu, samples, (enum vp_form_constant)c);
        if (is_norm((enum vp_form_constant)c) && vp_form_is_fine(calibration))
            unknown->start = ONE_AFTER_THE_OTHER;
        rows->which[rows->unknowns++] = (enum vp_form_constant)c;
    }
}

/* ---- anchors ---- */

/* The form's errors at all rows but outliers. */
static void find_errors(struct vp_form_fit *fit, const struct rows *rows) {
    fit->anchor_count = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct vp_form_case *c = &rows->cases[i];
        if (!rows->outlier[i])
            fit->anchors[fit->anchor_count++] = vp_anchor_at(
                c->form, &c->shape, rows->log_us[i] - log(vp_form_us(c, fit->constant)));
    }
}

/* log(measured / predicted) of a row */
static double log_error(const struct vp_form_fit *fit, const struct rows *rows, uint32_t i) {
    return rows->log_us[i] - log(vp_fitted_us(fit, &rows->cases[i]));
}

/* The same as all others predict it, while every row has its anchor. */
static double error_without(struct vp_form_fit *fit, const struct rows *rows, uint32_t i) {
    struct vp_anchor *last = &fit->anchors[fit->anchor_count - 1];
    struct vp_anchor own = fit->anchors[i], moved = *last;
    fit->anchors[i] = moved; /* the one that is left out stands at the end */
    *last = own;
    fit->anchor_count--;
    double factor = vp_anchor_factor(fit, rows->cases[i].form, &rows->cases[i].shape);
    fit->anchor_count++;
    *last = moved;
    fit->anchors[i] = own;
    return (double)own.log_ratio - log(factor);
}

/* How far rows are off as all others predict them: median and a part of the tail. */
static double badness(struct vp_arena *arena, struct vp_form_fit *fit, const struct rows *rows,
                      uint32_t stride) {
    struct vp_arena_mark mark = vp_arena_mark(arena);
    double *errors = VP_NEW_ARRAY(arena, rows->count, double);
    uint32_t n = 0;
    for (uint32_t i = 0; i < rows->count; i += stride)
        errors[n++] = fabs(exp(-error_without(fit, rows, i)) - 1);
    double median = vp_quantile(errors, n, 0.5), p90 = vp_quantile(errors, n, 0.9);
    vp_arena_rewind(arena, mark);
    return median + p90 / 4;
}

static void choose_reach(struct vp_arena *arena, struct vp_form_fit *fit, const struct rows *rows) {
    enum { SOME = 400 };
    static const double REACHES[] = {0.3, 0.5, 0.7, 1, 1.4, 2, 2.8};
    double best = INFINITY, chosen = 0;
    for (size_t i = 0; i < sizeof REACHES / sizeof *REACHES; i++) {
        fit->reach = REACHES[i];
        double bad = badness(arena, fit, rows, rows->count / SOME + 1);
        if (bad < best) {
            best = bad;
            chosen = REACHES[i];
        }
    }
    fit->reach = chosen;
}

/* Rows that all others predict wrongly by far more than most rows: measured badly, or a kernel that
 * no neighbour runs. A neighbour of such a row may look wrong because of it: what the rows that are
 * left predict well is taken back. */
static void find_outliers(struct vp_arena *arena, struct vp_form_fit *fit,
                          const struct rows *rows) {
    static const double LEAST = 1.5, TIMES_P90 = 3;
    double *errors = VP_NEW_ARRAY(arena, rows->count, double);
    double *sorted = VP_NEW_ARRAY(arena, rows->count, double);
    for (uint32_t i = 0; i < rows->count; i++)
        sorted[i] = fabs(errors[i] = error_without(fit, rows, i));
    double limit = fmax(log(LEAST), TIMES_P90 * vp_quantile(sorted, rows->count, 0.9));
    for (uint32_t i = 0; i < rows->count; i++)
        rows->outlier[i] = fabs(errors[i]) > limit;
    find_errors(fit, rows);
    for (uint32_t i = 0; i < rows->count; i++)
        if (rows->outlier[i])
            rows->outlier[i] = fabs(log_error(fit, rows, i)) > limit;
    find_errors(fit, rows);
}

static void name_outliers(struct vp_arena *arena, struct vp_fit_outliers *out,
                          const struct vp_form_fit *fit, const struct rows *rows) {
    out->items = VP_NEW_ARRAY(arena, rows->count, struct vp_fit_outlier);
    for (uint32_t i = 0; i < rows->count; i++)
        if (rows->outlier[i])
            out->items[out->count++] =
                (struct vp_fit_outlier){rows->samples[i]->at, exp(log_error(fit, rows, i))};
}

static double distance(const struct vp_anchor *a, const struct vp_anchor *b) {
    double sum = 0;
    for (int d = 0; d < VP_SHAPE_SIZES; d++)
        sum += (double)((a->at[d] - b->at[d]) * (a->at[d] - b->at[d]));
    return sum;
}

/* Each next anchor is the one farthest from those that are kept; its error becomes that of its
 * surroundings. */
static void thin(struct vp_arena *arena, struct vp_form_fit *fit, enum vp_form form,
                 uint32_t most) {
    if (fit->anchor_count <= most)
        return;
    struct vp_anchor *kept = VP_NEW_ARRAY(arena, most, struct vp_anchor);
    double *far = VP_NEW_ARRAY(arena, fit->anchor_count, double);
    uint32_t next = 0;
    for (uint32_t i = 0; i < fit->anchor_count; i++)
        far[i] = INFINITY;
    for (uint32_t n = 0; n < most; n++) {
        struct vp_shape shape = {{0}};
        kept[n] = fit->anchors[next];
        for (uint32_t d = 0; d < vp_shape_sizes(form); d++)
            shape.size[d] = exp2((double)kept[n].at[d]);
        kept[n].log_ratio = (float)log(vp_anchor_factor(fit, form, &shape));
        uint32_t farthest = 0;
        for (uint32_t i = 0; i < fit->anchor_count; i++) {
            far[i] = fmin(far[i], distance(&fit->anchors[i], &kept[n]));
            if (far[i] > far[farthest])
                farthest = i;
        }
        next = farthest;
    }
    fit->anchors = kept;
    fit->anchor_count = most;
}

static void find_range(struct vp_form_fit *fit, const struct rows *rows) {
    fit->least = fit->most = rows->cases[0].shape;
    for (uint32_t i = 1; i < rows->count; i++)
        for (uint32_t d = 0; d < vp_shape_sizes(rows->cases[0].form); d++) {
            double size = rows->cases[i].shape.size[d];
            fit->least.size[d] = fmin(fit->least.size[d], size);
            fit->most.size[d] = fmax(fit->most.size[d], size);
        }
}

/* ---- how good it is ---- */

enum { FOLDS = 5 }; /* groups of rows that are held out in turn */

/* Rows of all groups but one. */
static struct rows without(struct vp_arena *arena, const struct rows *rows, uint32_t fold) {
    struct rows part = *rows;
    part.cases = VP_NEW_ARRAY(arena, rows->count, struct vp_form_case);
    part.log_us = VP_NEW_ARRAY(arena, rows->count, double);
    part.outlier = VP_NEW_ARRAY(arena, rows->count, bool);
    part.count = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        if (i % FOLDS == fold)
            continue;
        part.cases[part.count] = rows->cases[i];
        part.log_us[part.count] = rows->log_us[i];
        part.outlier[part.count++] = rows->outlier[i];
    }
    return part;
}

/* |predicted / measured - 1| of the rows of a group, fitted to all others. Of many rows the
 * constants do not depend on a fifth of them; the anchors always do. */
static void predict_group(struct vp_arena *arena, double *errors, const struct vp_form_fit *fit,
                          const struct rows *rows, uint32_t fold) {
    enum { FEW = 200, STEPS = 60 };
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct rows part = without(arena, rows, fold);
    struct vp_form_fit other = *fit;
    if (part.count && part.count < FEW)
        solve(arena, other.constant, &part, STEPS);
    other.anchors = VP_NEW_ARRAY(arena, part.count + 1, struct vp_anchor);
    find_errors(&other, &part);
    thin(arena, &other, rows->cases[0].form, VP_MAX_ANCHORS);
    for (uint32_t i = fold; i < rows->count; i += FOLDS)
        errors[i] = fabs(vp_fitted_us(&other, &rows->cases[i]) / exp(rows->log_us[i]) - 1);
    vp_arena_rewind(arena, mark);
}

/* The same rows sorted by range; few of one range say less than all rows. */
static void judge(struct vp_arena *arena, struct vp_form_fit *fit, const struct rows *rows) {
    enum { LEAST_ROWS = 10 };
    double *errors = VP_NEW_ARRAY(arena, rows->count, double);
    double *some = VP_NEW_ARRAY(arena, rows->count, double);
    for (uint32_t fold = 0; fold < FOLDS && fold < rows->count; fold++)
        predict_group(arena, errors, fit, rows, fold);
    memcpy(some, errors, rows->count * sizeof *some);
    fit->quality =
        (struct vp_fit_quality){rows->count, vp_fit_rounded(vp_quantile(some, rows->count, 0.5)),
                                vp_fit_rounded(vp_quantile(some, rows->count, 0.9))};
    for (uint32_t r = 0; r < VP_FORM_RANGES; r++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < rows->count; i++)
            if (vp_form_range(rows->cases[i].form, &rows->cases[i].shape) == r)
                some[n++] = errors[i];
        fit->range_p90[r] =
            n < LEAST_ROWS ? fit->quality.p90 : vp_fit_rounded(vp_quantile(some, n, 0.9));
    }
}

void vp_fit_form(struct vp_arena *arena, struct vp_form_fit *out,
                 const struct vp_calibration *calibration, const struct vp_gpu *gpu,
                 const struct vp_kernel_samples *samples, struct vp_fit_outliers *outliers) {
    struct rows rows;
    *outliers = (struct vp_fit_outliers){0};
    *out = (struct vp_form_fit){.known = samples->count > 0};
    if (!out->known)
        return;
    take_rows(arena, &rows, calibration, gpu, samples);
    fit_constants(arena, out->constant, &rows);
    out->anchors = VP_NEW_ARRAY(arena, rows.count, struct vp_anchor);
    find_errors(out, &rows);
    choose_reach(arena, out, &rows);
    find_range(out, &rows);
    if (rows.count >= FEW_ROWS) {
        find_outliers(arena, out, &rows);
        name_outliers(arena, outliers, out, &rows);
    }
    judge(arena, out, &rows);
    thin(arena, out, samples->form, VP_MAX_ANCHORS);
}
