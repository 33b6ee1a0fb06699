/* The points of a set that no other point beats: a point is beaten by one that is as good in every
 * objective and better in at least one. Of equal points none beats the other, so all of them stay.
 *
 * Every objective is to be small; negate what is to be large. A value that is not known is given as
 * a NaN and counts as worse than any number. */
#ifndef VP_PLAN_PARETO_H
#define VP_PLAN_PARETO_H

#include <stdbool.h>

#include "planner/base/arena.h"

/* values: `count` rows of `objectives` numbers. keep[i]: nothing beats row i. Returns how many are
 * kept. The arena is left as it was. Takes count x front comparisons at most. */
size_t vp_pareto_front(struct vp_arena *arena, bool *keep, const double *values, size_t count,
                       size_t objectives);

#endif
