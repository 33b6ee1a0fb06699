/* Hand-written `blocks:` -> struct vp_model (contract 1.1). Nothing is guessed: a missing size is
 * an error; attention alone, without mlp and heads, is enough for the cache. */
#ifndef VP_IMPORT_BLOCKS_H
#define VP_IMPORT_BLOCKS_H

#include "planner/doc/node.h"
#include "planner/model/model.h"

enum vp_status vp_blocks_read(struct vp_ctx *ctx, struct vp_model *out, const struct vp_node *node);

#endif
