#include "planner/plan/pareto.h"

#include <math.h>
#include <stdlib.h>

/* One point; `at` is its place in the caller's array. */
struct point {
    const double *values;
    size_t objectives, at;
};

static int compare(double a, double b) {
    if (isnan(a) || isnan(b))
        return (isnan(a) != 0) - (isnan(b) != 0);
    return (a > b) - (a < b);
}

static int compare_points(const void *a, const void *b) {
    const struct point *p = a, *q = b;
    for (size_t k = 0; k < p->objectives; k++) {
        int order = compare(p->values[k], q->values[k]);
        if (order)
            return order;
    }
    return (p->at > q->at) - (p->at < q->at);
}

/* p as good as q everywhere and better somewhere. */
static bool beats(const struct point *p, const struct point *q) {
    bool better = false;
    for (size_t k = 0; k < p->objectives; k++) {
        int order = compare(p->values[k], q->values[k]);
        if (order > 0)
            return false;
        better |= order < 0;
    }
    return better;
}

/* In sorted order a point can be beaten only by one before it, and if by any, then by one of the
 * front, since beating is transitive. */
size_t vp_pareto_front(struct vp_arena *arena, bool *keep, const double *values, size_t count,
                       size_t objectives) {
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct point *points = VP_NEW_ARRAY(arena, count, struct point);
    size_t front = 0;
    for (size_t i = 0; i < count; i++)
        points[i] = (struct point){values + i * objectives, objectives, i};
    if (count)
        qsort(points, count, sizeof *points, compare_points);
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < front && !beats(&points[k], &points[i]))
            k++;
        keep[points[i].at] = k == front;
        if (k == front)
            points[front++] = points[i];
    }
    vp_arena_rewind(arena, mark);
    return front;
}
