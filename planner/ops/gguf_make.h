/* The tensor table of a model that no GGUF file describes (a config.json, GGUF keys, blocks by
 * hand), made up from its operators as llama.cpp's converters write them: shapes and names, norms
 * and biases in f32, routers in f32, matrices as the model's schemes say, after the rules of
 * llama.cpp's quantizer (vp_gguf_stored_type). A tied head has no tensor. Encoders and token
 * prediction are left out: they are files or contexts of their own. */
#ifndef VP_OPS_GGUF_MAKE_H
#define VP_OPS_GGUF_MAKE_H

#include "planner/model/model.h"

/* model->gguf where there is one, else a table in the arena; NULL when a size exceeds 64 bits. */
const struct vp_gguf_table *vp_gguf_make(struct vp_arena *arena, const struct vp_model *model);

#endif
