/* A progress bar with the time that is left, on standard error when that is a terminal, else
 * nothing. One line, renewed five times a second at most. */
#ifndef VP_CLI_PROGRESS_H
#define VP_CLI_PROGRESS_H

#include "planner/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct vp_progress {
    bool shown;
    uint64_t first, total; /* steps done before this run; steps in all */
    double began, last;    /* seconds; when the bar was written last */
};

/* wanted: false where the result goes to the same terminal. */
void vp_progress_begin(struct vp_progress *p, bool wanted, uint64_t first, uint64_t total);
void vp_progress_step(struct vp_progress *p, uint64_t done);
/* Takes the bar away. */
void vp_progress_end(struct vp_progress *p);

#endif
