/* How traffic is to be simulated, as the command line says it: shared by `simulate` and `fit`. */
#ifndef VP_CLI_SIMULATE_ASK_H
#define VP_CLI_SIMULATE_ASK_H

#include "api/simulate.h"
#include "cli/args.h"

/* Reads --duration, --warmup, --seeds, --seed, --rate-scale, --time-scale, --threads and --slo;
 * faults are diagnostics. *slo is what ask->slo points to when --slo is given. */
void vp_simulate_ask_read(struct vp_ctx *ctx, struct vp_simulate_ask *ask, struct vp_slo *slo,
                          const struct vp_args *args);

#endif
