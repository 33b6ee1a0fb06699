/* GGUF metadata, with or without a tensor table -> struct vp_model, the same that a config.json
 * gives. An architecture is a row of gguf_archs.def; the keys are the same for all of them. With a
 * tensor table the tensors say what a layer has, and the sums are the file's.
 *
 * An architecture without a row, but with a tensor table, gets a model whose weights are right and
 * whose cache is not known (model->cache_unknown says why). */
#ifndef VP_IMPORT_GGUF_READER_H
#define VP_IMPORT_GGUF_READER_H

#include "planner/doc/gguf.h"
#include "planner/model/model.h"

/* map: of full key names ("llama.block_count"). file: of the same metadata, NULL for keys that a
 * user wrote. tied: what the user said beside the keys, -1: nothing. Faults are VP_D_MODEL_FIELD
 * and VP_D_FAMILY_UNKNOWN. */
enum vp_status vp_gguf_model(struct vp_ctx *ctx, struct vp_model *out, const struct vp_node *map,
                             const struct vp_gguf *file, int tied);

#endif
