/* Records of real runs in a budget (`budget.measured`): values under the keys of the engine report,
 * in the units that these name, from the budget itself or from a scenario file that `import-log
 * --measured-out` made. Which keys an engine has is asked where they are compared (plan/gate.h). */
#ifndef VP_IMPORT_RECORD_READER_H
#define VP_IMPORT_RECORD_READER_H

#include "planner/doc/node.h"
#include "planner/model/budget.h"

/* {weights_gib: 14.99, model_mib: {GPU0: 4096}}; faults are diagnostics. */
void vp_record_values(struct vp_ctx *ctx, struct vp_record *out, const struct vp_node *node);
/* "vllm@0.19", or {name: vllm, version: "0.19"}. */
void vp_record_engine(struct vp_ctx *ctx, struct vp_record *out, const struct vp_node *node);
/* Reads the file of a record into it; nothing to do when it has none. */
enum vp_status vp_record_load(struct vp_ctx *ctx, struct vp_record *record);

#endif
