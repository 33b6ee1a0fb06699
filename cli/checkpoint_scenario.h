/* `checkpoint` for a scenario that trains: where it should recompute, as a report, as the setting
 * of a framework, as a frontier or a drawing. */
#ifndef VP_CLI_CHECKPOINT_SCENARIO_H
#define VP_CLI_CHECKPOINT_SCENARIO_H

#include "cli/args.h"

/* Returns the exit code: 0 a plan fits, 3 it may not, 1 none does. */
int vp_checkpoint_scenario(struct vp_ctx *ctx, const struct vp_args *args);

#endif
