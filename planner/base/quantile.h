/* Order statistics of measured numbers. */
#ifndef VP_BASE_QUANTILE_H
#define VP_BASE_QUANTILE_H

#include <stdint.h>

void vp_reals_sort(double *values, uint32_t count); /* ascending */
/* The value nearest to rank `share` (0.5: the median) of the values, which are sorted. 0: none. */
double vp_quantile(double *values, uint32_t count, double share);
/* Of sorted values, between neighbours linearly. At least one. */
double vp_quantile_between(const double *sorted, uint32_t count, double share);

#endif
