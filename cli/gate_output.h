/* Where a run of the gate goes: standard output (or --output) in the form of --format, further
 * files in theirs, annotations to standard error. */
#ifndef VP_CLI_GATE_OUTPUT_H
#define VP_CLI_GATE_OUTPUT_H

#include "cli/args.h"
#include "planner/plan/gate.h"

/* Writes all of them, though one may fail: the worst status. exit_code: told by text and JSON. */
enum vp_status vp_gate_output(struct vp_ctx *ctx, const struct vp_args *args,
                              const struct vp_gate *gate, int exit_code);

#endif
