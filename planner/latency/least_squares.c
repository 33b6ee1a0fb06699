#include "planner/latency/least_squares.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { N = VP_LSQ_MAX_UNKNOWNS };

static const double DERIVATIVE_STEP = 1e-5; /* of a logarithm */
static const double ENOUGH = 1e-7; /* relative gain of a step after which no other follows */

struct state {
    const struct vp_lsq *problem;
    double *model, *moved; /* log(model) at the point, and beside it */
    double *slope;         /* rows x unknowns */
};

static double cost(const struct vp_lsq *p, const double *model, const double *at) {
    double sum = 0;
    for (uint32_t i = 0; i < p->rows; i++) {
        double z = (model[i] - p->log_measured[i]) / p->scale;
        sum += 2 * (sqrt(1 + z * z) - 1);
    }
    for (uint32_t j = 0; j < p->unknowns; j++)
        if (p->unknown[j].spread > 0) {
            double z = (at[j] - log(p->unknown[j].start)) / p->unknown[j].spread;
            sum += z * z;
        }
    return isfinite(sum) ? sum : INFINITY;
}

static void evaluate(const struct vp_lsq *p, double *out, const double *at) {
    double constants[N];
    for (uint32_t j = 0; j < p->unknowns; j++)
        constants[j] = exp(at[j]);
    p->model(out, p->data, constants);
}

static void find_slopes(struct state *s, const double *at) {
    const struct vp_lsq *p = s->problem;
    double beside[N];
    memcpy(beside, at, p->unknowns * sizeof *at);
    for (uint32_t j = 0; j < p->unknowns; j++) {
        bool at_top = at[j] + DERIVATIVE_STEP > log(p->unknown[j].most);
        double step = at_top ? -DERIVATIVE_STEP : DERIVATIVE_STEP;
        beside[j] = at[j] + step;
        evaluate(p, s->moved, beside);
        beside[j] = at[j];
        for (uint32_t i = 0; i < p->rows; i++)
            s->slope[(size_t)i * p->unknowns + j] = (s->moved[i] - s->model[i]) / step;
    }
}

/* The normal equations of the weighted, linearised problem. */
static void accumulate(double a[N][N], double b[N], const struct state *s, const double *at) {
    const struct vp_lsq *p = s->problem;
    memset(a, 0, sizeof(double) * N * N);
    memset(b, 0, sizeof(double) * N);
    for (uint32_t i = 0; i < p->rows; i++) {
        const double *slope = &s->slope[(size_t)i * p->unknowns];
        double z = (s->model[i] - p->log_measured[i]) / p->scale;
        double weight = 1 / (sqrt(1 + z * z) * p->scale * p->scale);
        double error = p->log_measured[i] - s->model[i];
        for (uint32_t j = 0; j < p->unknowns; j++) {
            b[j] += weight * slope[j] * error;
            for (uint32_t k = 0; k <= j; k++)
                a[j][k] += weight * slope[j] * slope[k];
        }
    }
    for (uint32_t j = 0; j < p->unknowns; j++)
        if (p->unknown[j].spread > 0) {
            double weight = 1 / (p->unknown[j].spread * p->unknown[j].spread);
            a[j][j] += weight;
            b[j] += weight * (log(p->unknown[j].start) - at[j]);
        }
}

/* (A + damping x diagonal) x = b by Cholesky; false: not positive definite. */
static bool solve(double x[N], double a[N][N], const double b[N], double damping, uint32_t n) {
    double l[N][N];
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t k = 0; k <= j; k++) {
            double sum = a[j][k] + (j == k ? damping * a[j][j] + 1e-9 : 0);
            for (uint32_t i = 0; i < k; i++)
                sum -= l[j][i] * l[k][i];
            if (j == k && !(sum > 0))
                return false;
            l[j][k] = j == k ? sqrt(sum) : sum / l[k][k];
        }
    for (uint32_t j = 0; j < n; j++) {
        x[j] = b[j];
        for (uint32_t k = 0; k < j; k++)
            x[j] -= l[j][k] * x[k];
        x[j] /= l[j][j];
    }
    for (uint32_t j = n; j-- > 0;) {
        for (uint32_t k = j + 1; k < n; k++)
            x[j] -= l[k][j] * x[k];
        x[j] /= l[j][j];
    }
    return true;
}

static double within(double v, const struct vp_lsq_unknown *unknown) {
    return fmin(fmax(v, log(unknown->least)), log(unknown->most));
}

/* Shorter and shorter steps until one gains. False: none does. */
static bool step(struct state *s, double *at, double *best, double *damping) {
    enum { TRIES = 12 };
    const struct vp_lsq *p = s->problem;
    double a[N][N], b[N], x[N], to[N];
    find_slopes(s, at);
    accumulate(a, b, s, at);
    for (int i = 0; i < TRIES; i++, *damping *= 4) {
        if (!solve(x, a, b, *damping, p->unknowns))
            continue;
        for (uint32_t j = 0; j < p->unknowns; j++) /* no more than a factor of 7 at once */
            to[j] = within(at[j] + fmin(fmax(x[j], -2), 2), &p->unknown[j]);
        evaluate(p, s->moved, to);
        double reached = cost(p, s->moved, to);
        if (!(reached < *best))
            continue;
        double gain = (*best - reached) / (*best + 1e-12);
        *best = reached;
        *damping = fmax(*damping / 8, 1e-9);
        memcpy(at, to, p->unknowns * sizeof *at);
        memcpy(s->model, s->moved, p->rows * sizeof *s->model);
        return gain > ENOUGH;
    }
    return false;
}

double vp_lsq_solve(struct vp_arena *arena, double *out, const struct vp_lsq *problem) {
    struct state s = {.problem = problem};
    double at[N], damping = 1e-2;
    assert(problem->unknowns <= N);
    s.model = VP_NEW_ARRAY(arena, problem->rows, double);
    s.moved = VP_NEW_ARRAY(arena, problem->rows, double);
    s.slope = VP_NEW_ARRAY(arena, (size_t)problem->rows * problem->unknowns, double);
    for (uint32_t j = 0; j < problem->unknowns; j++)
        at[j] = within(log(problem->unknown[j].start), &problem->unknown[j]);
    evaluate(problem, s.model, at);
    double best = cost(problem, s.model, at);
    for (uint32_t i = 0; i < problem->steps && step(&s, at, &best, &damping); i++)
        ;
    for (uint32_t j = 0; j < problem->unknowns; j++)
        out[j] = exp(at[j]);
    return best;
}
