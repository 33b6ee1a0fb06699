/* ollama's Modelfile -> the scenario that it asks for: FROM names the model, PARAMETER lines are
 * arguments; templates, system texts and messages move no bytes and are passed over. */
#ifndef VP_IMPORT_MODELFILE_H
#define VP_IMPORT_MODELFILE_H

#include "planner/doc/node.h"

/* "Modelfile", "x.modelfile": by its name. */
bool vp_modelfile_is(const char *path);
/* *out: a map with model and engine. VP_ERR_INPUT: no FROM, a faulty line. */
enum vp_status vp_modelfile_read(struct vp_ctx *ctx, struct vp_node **out, const char *path);

#endif
