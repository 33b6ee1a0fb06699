/* Why the scenarios of a gate differ from their base: fills vp_gate_scenario.difference. */
#ifndef VP_API_GATE_EXPLAIN_H
#define VP_API_GATE_EXPLAIN_H

#include "api/gate_run.h"

/* Of every scenario that is on both sides; ctx: where what is found lives. */
void vp_gate_explain(struct vp_ctx *ctx, struct vp_gate_run *run);

#endif
