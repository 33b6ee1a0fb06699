/* Runs vramplan-probe: finds the program, shows how far it is, keeps what it says. The figures
 * themselves go into the folder of samples (docs/PROBE.md). */
#ifndef VP_CLI_PROBE_RUN_H
#define VP_CLI_PROBE_RUN_H

#include "cli/args.h"
#include "planner/base/text.h"

struct vp_probe_order {
    const char *backend, *device, *only; /* NULL: not said */
    const char *folder;                  /* for the samples; NULL: only the list is wanted */
    bool facts;                          /* or what the system says about its GPUs, as JSON */
    bool quick;
    bool loud; /* every figure as a line on standard error, also where that is no terminal */
};

/* What became of it. Notes on figures are diagnostics. */
struct vp_probe_outcome {
    struct vp_buf list; /* of what would be measured, or the facts */
    uint64_t figures, noisy, left_out, troubles;
};

/* VP_ERR_INPUT: an option that it does not take; VP_ERR_ENV: no program, no device, or no figures.
 */
enum vp_status vp_probe_run(struct vp_ctx *ctx, struct vp_probe_outcome *out,
                            const struct vp_probe_order *order);

#endif
