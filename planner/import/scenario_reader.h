/* A scenario's node tree -> struct vp_scenario: fields by planner/model/fields.def, engine.args and
 * engine.env, measured, budget. Unknown keys are errors with a "did you mean", except in
 * engine.args and engine.env, where they are kept and listed as ignored. */
#ifndef VP_IMPORT_SCENARIO_READER_H
#define VP_IMPORT_SCENARIO_READER_H

#include "planner/doc/node.h"
#include "planner/import/input.h"

/* base: folder against which relative model paths resolve. root: a whole scenario map (defaults
 * already merged in). Collects as many faults as it can before it fails. The result still lacks
 * defaults: see finish.h. */
enum vp_status vp_scenario_read(struct vp_ctx *ctx, struct vp_scenario *out,
                                const struct vp_node *root, const char *base,
                                const struct vp_setting *settings, size_t setting_count);

#endif
