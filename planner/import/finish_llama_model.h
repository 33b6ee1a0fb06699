/* The models of a llama.cpp scenario: stored formats, where single tensors go, the encoder of
 * images, and what llama.cpp's cache of a model is not known for. */
#ifndef VP_IMPORT_FINISH_LLAMA_MODEL_H
#define VP_IMPORT_FINISH_LLAMA_MODEL_H

#include "planner/import/finish_parts.h"

/* The settings are there. */
enum vp_status vp_finish_llama_model(struct vp_ctx *ctx, struct vp_scenario *scenario);

#endif
