/* `model:` of a scenario, or a model named on the command line -> struct vp_model. Dispatches to
 * the importers (hf_config, blocks, checkpoint) and validates. No network, ever. */
#ifndef VP_IMPORT_MODEL_READER_H
#define VP_IMPORT_MODEL_READER_H

#include "planner/doc/node.h"
#include "planner/model/model.h"

/* node: a text (name, path or hub id) or a map (config.json keys, gguf:, blocks:, from:). */
enum vp_status vp_model_read(struct vp_ctx *ctx, struct vp_model **out, const struct vp_node *node,
                             const char *base);
/* The merged description (config.json keys) without interpreting it, for `import`. */
enum vp_status vp_model_description(struct vp_ctx *ctx, struct vp_node **out, const char **source,
                                    const struct vp_node *node, const char *base);
/* Names of the shipped and the user's model profiles, sorted. */
enum vp_status vp_model_profiles(struct vp_ctx *ctx, char ***names, size_t *count);

#endif
