/* The iterations of a stretch of a simulated day, one by one: what a trace of them is drawn from.
 */
#ifndef VP_API_SIMULATE_WINDOW_H
#define VP_API_SIMULATE_WINDOW_H

#include "api/simulate.h"

enum { VP_WINDOW_MOST = 200000 };

struct vp_window {
    struct vp_iteration_record *item;
    uint64_t count;
    bool cut; /* there were more than VP_WINDOW_MOST */
};

/* Of the first seed at the likely figures, simulated anew up to to_s. */
enum vp_status vp_simulation_window(struct vp_ctx *ctx, struct vp_window *out,
                                    const struct vp_simulation *simulation, double from_s,
                                    double to_s);

#endif
