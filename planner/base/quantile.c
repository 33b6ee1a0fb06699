#include "planner/base/quantile.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void vp_reals_sort(double *values, uint32_t count) {
    qsort(values, count, sizeof *values, ascending);
}

double vp_quantile(double *values, uint32_t count, double share) {
    if (count == 0)
        return 0;
    vp_reals_sort(values, count);
    return values[(uint32_t)(share * (count - 1) + 0.5)];
}

double vp_quantile_between(const double *sorted, uint32_t count, double share) {
    double at = share * (double)(count - 1);
    uint32_t below = (uint32_t)at, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}
