/* Resolves what the user left out: hardware from its profile, engine rules by version and card,
 * engine defaults, dtypes, context. Every value set here gets an origin (default, derived,
 * profile) and a reason, which reports list as assumptions. Checks what must hold between fields
 * (layout against devices and model, context against max_model_len). */
#ifndef VP_IMPORT_FINISH_H
#define VP_IMPORT_FINISH_H

#include "planner/model/scenario.h"

/* scenario->model NULL: one that could not be read; what does not depend on it is checked all the
 * same, and the status is not VP_OK. */
enum vp_status vp_scenario_finish(struct vp_ctx *ctx, struct vp_scenario *scenario);

#endif
