#include "planner/latency/choose_shapes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct point {
    double at[VP_SHAPE_SIZES];
};

static double distance(const struct point *a, const struct point *b) {
    double sum = 0;
    for (int d = 0; d < VP_SHAPE_SIZES; d++)
        sum += (a->at[d] - b->at[d]) * (a->at[d] - b->at[d]);
    return sum;
}

/* Logarithms of the sizes, each from 0 to 1 over all samples; one that does not vary is 0. */
static struct point *place(struct vp_arena *arena, const struct vp_kernel_samples *samples) {
    struct point *points = VP_NEW_ARRAY(arena, samples->count, struct point);
    for (uint32_t d = 0; d < vp_shape_sizes(samples->form); d++) {
        double least = INFINITY, most = 0;
        for (uint32_t i = 0; i < samples->count; i++) {
            least = fmin(least, samples->items[i].shape.size[d]);
            most = fmax(most, samples->items[i].shape.size[d]);
        }
        for (uint32_t i = 0; i < samples->count && most > least; i++)
            points[i].at[d] = log(samples->items[i].shape.size[d] / least) / log(most / least);
    }
    return points;
}

/* The point nearest to the middle of all, then always the one farthest from those chosen. */
static void spread_out(struct vp_arena *arena, uint32_t *chosen, uint32_t wanted,
                       const struct point *points, uint32_t count) {
    double *far = VP_NEW_ARRAY(arena, count, double);
    struct point middle = {{0}};
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        far[i] = INFINITY;
        for (int d = 0; d < VP_SHAPE_SIZES; d++)
            middle.at[d] += points[i].at[d] / count;
    }
    for (uint32_t i = 1; i < count; i++)
        if (distance(&points[i], &middle) < distance(&points[next], &middle))
            next = i;
    for (uint32_t n = 0; n < wanted; n++) {
        chosen[n] = next;
        uint32_t farthest = 0;
        for (uint32_t i = 0; i < count; i++) {
            far[i] = fmin(far[i], distance(&points[i], &points[chosen[n]]));
            if (far[i] > far[farthest])
                farthest = i;
        }
        next = farthest;
    }
}

/* Each chosen point moves to the middle of the points that it is the nearest to. */
static void settle(struct vp_arena *arena, uint32_t *chosen, uint32_t wanted,
                   const struct point *points, uint32_t count) {
    struct point *sums = VP_NEW_ARRAY(arena, wanted, struct point);
    uint32_t *members = VP_NEW_ARRAY(arena, wanted, uint32_t);
    uint32_t *owner = VP_NEW_ARRAY(arena, count, uint32_t);
    memset(sums, 0, wanted * sizeof *sums);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t n = 1; n < wanted; n++)
            if (distance(&points[i], &points[chosen[n]]) <
                distance(&points[i], &points[chosen[owner[i]]]))
                owner[i] = n;
        members[owner[i]]++;
        for (int d = 0; d < VP_SHAPE_SIZES; d++)
            sums[owner[i]].at[d] += points[i].at[d];
    }
    for (uint32_t n = 0; n < wanted; n++)
        for (int d = 0; d < VP_SHAPE_SIZES; d++)
            sums[n].at[d] /= members[n] ? members[n] : 1;
    for (uint32_t i = 0; i < count; i++)
        if (distance(&points[i], &sums[owner[i]]) <
            distance(&points[chosen[owner[i]]], &sums[owner[i]]))
            chosen[owner[i]] = i;
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

uint32_t vp_choose_shapes(struct vp_arena *arena, uint32_t *out,
                          const struct vp_kernel_samples *samples, uint32_t wanted) {
    enum { ROUNDS = 8 };
    uint32_t count = samples->count;
    if (wanted >= count) {
        for (uint32_t i = 0; i < count; i++)
            out[i] = i;
        return count;
    }
    if (wanted == 0)
        return 0;
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct point *points = place(arena, samples);
    spread_out(arena, out, wanted, points, count);
    for (int i = 0; i < ROUNDS; i++)
        settle(arena, out, wanted, points, count);
    qsort(out, wanted, sizeof *out, ascending);
    vp_arena_rewind(arena, mark);
    return wanted;
}
