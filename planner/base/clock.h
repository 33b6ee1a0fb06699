/* Elapsed time, for progress and for measuring. Nothing that is planned depends on it. */
#ifndef VP_BASE_CLOCK_H
#define VP_BASE_CLOCK_H

double vp_clock_seconds(void); /* since some instant; never goes back */

#endif
