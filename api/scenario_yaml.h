/* A variant written out as a scenario file of its own: what the input says with settings and
 * changes laid in. Read back, it gives the same plan, wherever it is put: relative paths are made
 * to start from there. Comments of the input are not kept. */
#ifndef VP_API_SCENARIO_YAML_H
#define VP_API_SCENARIO_YAML_H

#include "api/variants.h"
#include "planner/base/text.h"
#include "planner/doc/node.h"

/* path: the file that it will be written to; NULL: one in the current folder. */
enum vp_status vp_scenario_yaml(struct vp_ctx *ctx, struct vp_buf *out,
                                const struct vp_variants *variants,
                                const struct vp_setting *changes, size_t count, const char *path);
/* The same as a tree, `vramplan: 1` first. */
enum vp_status vp_scenario_tree(struct vp_ctx *ctx, struct vp_node **out,
                                const struct vp_variants *variants,
                                const struct vp_setting *changes, size_t count, const char *path);

#endif
