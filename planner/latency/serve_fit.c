#include "planner/latency/serve_fit.h"

#include <math.h>

#include "planner/base/quantile.h"

enum { MAX_TERMS = VP_PASS_TERMS, ROUNDS = 12, SWEEPS = 400 };

static const double ROBUST = 0.15; /* relative error beyond which a row pulls with constant force */
/* Weight of a constant of the class beside rows: as one row whose error would be 0.5 where those of
 * rows are 0.1. */
static const double BELIEF = 0.04;
enum { NONE_LEFT_OUT = UINT32_MAX };

/* ---- non-negative least squares ---- */

/* factor . constants = 1, in units of the measured value. */
struct equation {
    double factor[MAX_TERMS];
    double value;
};

struct system {
    struct equation *rows;
    uint32_t count;
    int terms;
    double prior[MAX_TERMS]; /* 0: nothing believed */
    double least[MAX_TERMS];
};

static double residual(const struct system *s, const struct equation *e, const double *x) {
    double sum = -e->value;
    for (int j = 0; j < s->terms; j++)
        sum += e->factor[j] * x[j];
    return sum;
}

/* Minimises x'Gx/2 - h'x over x >= least by coordinates; G is small and positive on its diagonal.
 */
static void descend(double *x, double g[MAX_TERMS][MAX_TERMS], const double *h, const double *least,
                    int n) {
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double moved = 0;
        for (int j = 0; j < n; j++) {
            double slope = h[j];
            if (!(g[j][j] > 0))
                continue;
            for (int k = 0; k < n; k++)
                slope -= g[j][k] * x[k];
            double next = fmax(x[j] + slope / g[j][j], least[j]);
            moved = fmax(moved, fabs(next - x[j]));
            x[j] = next;
        }
        if (moved < 1e-9)
            break;
    }
}

static void solve(double *x, const struct system *s) {
    double scale[MAX_TERMS], least[MAX_TERMS];

    for (int j = 0; j < s->terms; j++) {
        scale[j] = 0;
        for (uint32_t i = 0; i < s->count; i++)
            scale[j] = fmax(scale[j], s->rows[i].factor[j]);
        scale[j] = scale[j] > 0 ? 1 / scale[j] : 1;
        least[j] = s->least[j] / scale[j];
        x[j] = s->least[j];
    }
    for (int round = 0; round < ROUNDS; round++) {
        double g[MAX_TERMS][MAX_TERMS] = {{0}}, h[MAX_TERMS] = {0}, y[MAX_TERMS];
        for (uint32_t i = 0; i < s->count; i++) {
            const struct equation *e = &s->rows[i];
            double off = round > 0 ? fabs(residual(s, e, x)) : 0;
            double weight = off > ROBUST ? ROBUST / off : 1;
            for (int j = 0; j < s->terms; j++) {
                double fj = e->factor[j] * scale[j];
                h[j] += weight * fj * e->value;
                for (int k = 0; k < s->terms; k++)
                    g[j][k] += weight * fj * e->factor[k] * scale[k];
            }
        }
        for (int j = 0; j < s->terms; j++) {
            if (s->prior[j] > 0) {
                double f = scale[j] / s->prior[j];
                g[j][j] += BELIEF * f * f;
                h[j] += BELIEF * f;
            }
            y[j] = x[j] / scale[j];
        }
        descend(y, g, h, least, s->terms);
        for (int j = 0; j < s->terms; j++)
            x[j] = y[j] * scale[j];
    }
}

/* ---- the two systems ---- */

/* Factors of the constants of a pass in an end-to-end time; what the others make of it. */
static double total_factors(double *out, const struct vp_served *r,
                            const struct vp_serving_fit *fit) {
    double first[VP_PASS_TERMS], prompt[VP_PASS_TERMS], rest[VP_FIRST_TERMS], of_passes;
    double waves = 1 + r->terms.waiting, known = 0;
    struct vp_serving_fit constants = *fit;

    vp_tpot_factors(out, &r->terms);
    vp_pass_factors(first, &r->terms.first);
    vp_pass_factors(prompt, &r->terms.prompt);
    for (int j = 0; j < VP_PASS_TERMS; j++)
        out[j] = waves * (out[j] * (r->load.output - 1) + first[j] +
                          (r->load.batch ? r->terms.ahead * prompt[j] : 0));
    vp_ttft_factors(rest, &of_passes, &r->terms, &r->load, fit);
    for (int j = 0; j < VP_FIRST_TERMS; j++)
        known += rest[j] * *vp_first_constant(&constants, j);
    return waves * known;
}

static void set_passes(struct system *s, const struct vp_serve_fit_rows *rows, uint32_t without,
                       const struct vp_serving_fit *fit) {
    *s = (struct system){.rows = s->rows, .terms = VP_PASS_TERMS, .least = {VP_LEAST_KERNEL_SCALE}};
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct vp_served *r = &rows->row[i];
        struct equation *e = &s->rows[s->count];
        double measured = r->tpot_us > 0 ? r->tpot_us : r->total_us;
        double known = 0;
        if (!(measured > 0) || r->group == without)
            continue;
        if (r->tpot_us > 0)
            vp_tpot_factors(e->factor, &r->terms);
        else
            known = total_factors(e->factor, r, fit);
        for (int j = 0; j < VP_PASS_TERMS; j++)
            e->factor[j] /= measured;
        e->value = fmax(1 - known / measured, 0.1);
        s->count++;
    }
}

static void set_firsts(struct system *s, const struct vp_serve_fit_rows *rows, uint32_t without,
                       const struct vp_serving_fit *fit) {
    *s = (struct system){.rows = s->rows, .terms = VP_FIRST_TERMS};
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct vp_served *r = &rows->row[i];
        struct equation *e = &s->rows[s->count];
        double known;
        if (!(r->ttft_us > 0) || r->group == without || r->terms.waiting > 0)
            continue; /* what waits for others tells nothing of the constants */
        vp_ttft_factors(e->factor, &known, &r->terms, &r->load, fit);
        for (int j = 0; j < VP_FIRST_TERMS; j++)
            e->factor[j] /= r->ttft_us;
        e->value = 1 - known / r->ttft_us;
        s->count++;
    }
}

/* Solves for constants that a function names, those of `believed` deciding where rows say nothing.
 */
static void solve_for(struct system *s, struct vp_serving_fit *out,
                      double *constant(struct vp_serving_fit *, int),
                      const struct vp_serving_fit *believed) {
    struct vp_serving_fit prior = *believed;
    double x[MAX_TERMS];

    for (int j = 0; j < s->terms; j++)
        s->prior[j] = *constant(&prior, j);
    solve(x, s);
    for (int j = 0; j < s->terms; j++)
        *constant(out, j) = x[j];
}

static bool solve_all(struct system *s, struct vp_serving_fit *out,
                      const struct vp_serve_fit_rows *rows, uint32_t without,
                      const struct vp_serving_fit *prior) {
    static const struct vp_serving_fit NOTHING;
    const struct vp_serving_fit *p = prior ? prior : &NOTHING;
    struct vp_serving_fit from = *p;

    for (int j = 0; j < VP_FIRST_TERMS; j++)
        *vp_first_constant(out, j) = *vp_first_constant(&from, j);
    set_passes(s, rows, without, out);
    if (s->count < VP_SERVE_FIT_LEAST_ROWS)
        return false;
    solve_for(s, out, vp_pass_constant, p);
    set_firsts(s, rows, without, out);
    if (s->count >= VP_SERVE_FIT_LEAST_ROWS) /* else those of the class stay */
        solve_for(s, out, vp_first_constant, p);
    return true;
}

/* ---- how good it is ---- */

static double predicted_total(const struct vp_served *r, const struct vp_serving_fit *fit) {
    double wave =
        vp_ttft_us(&r->terms, &r->load, fit) + (r->load.output - 1) * vp_tpot_us(&r->terms, fit);
    return wave * (1 + r->terms.waiting);
}

/* predicted / measured of the time between tokens, of the end-to-end time where only that is known;
 * 0: not measured */
static double tpot_ratio(const struct vp_served *r, const struct vp_serving_fit *fit) {
    if (r->tpot_us > 0)
        return vp_tpot_us(&r->terms, fit) / r->tpot_us;
    return r->total_us > 0 ? predicted_total(r, fit) / r->total_us : 0;
}

static double ttft_ratio(const struct vp_served *r, const struct vp_serving_fit *fit) {
    double waiting = vp_waiting_us(&r->terms, &r->load, fit);
    return r->ttft_us > 0 ? (vp_ttft_us(&r->terms, &r->load, fit) + waiting) / r->ttft_us : 0;
}

typedef double (*ratio_of)(const struct vp_served *, const struct vp_serving_fit *);

static struct vp_fit_quality judged(double *scratch, const struct vp_serve_fit_rows *rows,
                                    const struct vp_serving_fit *fit, ratio_of ratio) {
    struct vp_fit_quality q = {0};

    for (uint32_t i = 0; i < rows->count; i++) {
        double r = ratio(&rows->row[i], fit);
        if (r > 0)
            scratch[q.rows++] = fabs(r - 1);
    }
    q.median = vp_quantile(scratch, q.rows, 0.5);
    q.p90 = vp_quantile(scratch, q.rows, 0.9);
    return q;
}

/* Errors |predicted / measured - 1| of a fit on rows; an end-to-end time counts as one between
 * tokens. */
static void judge(struct vp_arena *arena, struct vp_fit_quality *tpot, struct vp_fit_quality *ttft,
                  const struct vp_serve_fit_rows *rows, const struct vp_serving_fit *fit) {
    double *scratch = VP_NEW_ARRAY(arena, rows->count, double);

    *tpot = judged(scratch, rows, fit, tpot_ratio);
    *ttft = judged(scratch, rows, fit, ttft_ratio);
}

static const double LEAST_SPREAD = 1.1; /* no claim is better: same card, same model, two machines
                                           differ by 5 % and more (MLPerf 5.1 submissions) */

static const double NOTHING_MEASURED = 2; /* of times that no row has */

/* Nine in ten of |log ratio| of the rows themselves, and of rows whose group was left out. */
struct scatter {
    double own, left_out;
};

/* What was left out says how other models are met. The constants of the class would do as well as
 * their own spread says, so no more is needed than that; where no group could be left out, half of
 * it stands in. */
static double spread_of(struct scatter scatter, bool held_out, double prior) {
    double log_ratio = scatter.left_out;

    if (prior > 1)
        log_ratio = held_out ? fmin(log_ratio, log(prior)) : fmax(log_ratio, log(prior) / 2);
    return fmax(exp(fmax(log_ratio, scatter.own)), LEAST_SPREAD);
}

/* Of rows in `group`, or of all of them; appends to `out`. */
static uint32_t add_ratios(double *out, uint32_t count, const struct vp_serve_fit_rows *rows,
                           uint32_t group, const struct vp_serving_fit *fit, ratio_of ratio) {
    for (uint32_t i = 0; i < rows->count; i++) {
        double r = ratio(&rows->row[i], fit);
        if ((group == NONE_LEFT_OUT || rows->row[i].group == group) && r > 0)
            out[count++] = fabs(log(r));
    }
    return count;
}

/* The constants of the class with those of a pass times one factor, the median of what the rows
 * took over what the class says. */
static bool scale_prior(struct vp_arena *arena, struct system *s, struct vp_serving_fit *out,
                        const struct vp_serve_fit_rows *rows, const struct vp_serving_fit *prior) {
    double *ratios = VP_NEW_ARRAY(arena, rows->count, double), factor;
    struct vp_serving_fit scaled = *prior;
    uint32_t count = 0;

    for (uint32_t i = 0; i < rows->count; i++) {
        double ratio = tpot_ratio(&rows->row[i], prior);
        if (ratio > 0)
            ratios[count++] = 1 / ratio;
    }
    if (count < VP_SERVE_FIT_SCALE_ROWS)
        return false;
    factor = vp_quantile(ratios, count, 0.5);
    for (int j = 0; j < VP_PASS_TERMS; j++)
        *vp_pass_constant(&scaled, j) *= factor;
    set_firsts(s, rows, NONE_LEFT_OUT, &scaled);
    if (s->count >= VP_SERVE_FIT_SCALE_ROWS)
        solve_for(s, &scaled, vp_first_constant, prior);
    scaled.engine = out->engine;
    *out = scaled;
    judge(arena, &out->tpot, &out->ttft, rows, out);
    return true;
}

bool vp_serve_fit(struct vp_arena *arena, struct vp_serving_fit *out,
                  const struct vp_serve_fit_rows *rows, const struct vp_serving_fit *prior) {
    static const ratio_of RATIO[] = {tpot_ratio, ttft_ratio};
    struct system system = {.rows = VP_NEW_ARRAY(arena, rows->count + 1, struct equation)};
    double *ratios[] = {VP_NEW_ARRAY(arena, rows->count + 1, double),
                        VP_NEW_ARRAY(arena, rows->count + 1, double)};
    double *const spread[] = {&out->tpot_spread, &out->ttft_spread};
    const double believed[] = {prior ? prior->tpot_spread : 0, prior ? prior->ttft_spread : 0};
    struct scatter scatter[2];
    uint32_t count[2] = {0, 0};
    struct vp_serving_fit other = *out;
    bool held_out = rows->groups > 1;

    if (!solve_all(&system, out, rows, NONE_LEFT_OUT, prior))
        return prior && rows->count > 0 && scale_prior(arena, &system, out, rows, prior);
    judge(arena, &out->tpot, &out->ttft, rows, out);
    for (int k = 0; k < 2; k++)
        scatter[k].own = vp_quantile(
            ratios[k], add_ratios(ratios[k], 0, rows, NONE_LEFT_OUT, out, RATIO[k]), 0.9);
    for (uint32_t g = 0; g < rows->groups; g++) {
        if (!held_out)
            other = *out;
        else if (!solve_all(&system, &other, rows, g, prior))
            other = prior ? *prior : *out;
        for (int k = 0; k < 2; k++)
            count[k] = add_ratios(ratios[k], count[k], rows, g, &other, RATIO[k]);
    }
    for (int k = 0; k < 2; k++) {
        scatter[k].left_out = vp_quantile(ratios[k], count[k], 0.9);
        *spread[k] = count[k] ? spread_of(scatter[k], held_out, believed[k])
                              : fmax(believed[k], NOTHING_MEASURED);
    }
    for (uint32_t i = 0; i < rows->count; i++) {
        double a = tpot_ratio(&rows->row[i], out);
        rows->row[i].outlier = a > 0 && (a > 2 || a < 0.5);
    }
    return true;
}
