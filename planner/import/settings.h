/* Settings of the command line as a scenario tree, so that one reader serves both. */
#ifndef VP_IMPORT_SETTINGS_H
#define VP_IMPORT_SETTINGS_H

#include "planner/doc/node.h"
#include "planner/import/input.h"

/* A path is split at its dots, except in engine.args and engine.env, whose names may hold some.
 * A later setting replaces an earlier one of the same path. "model" may be given as a name and
 * changed by "model.KEY": it becomes {from: NAME, KEY: ...}. */
enum vp_status vp_settings_tree(struct vp_ctx *ctx, struct vp_node **out,
                                const struct vp_setting *settings, size_t count);
/* The model that the command line leaves of the file's (either may be NULL). */
struct vp_node *vp_settings_model(struct vp_ctx *ctx, const struct vp_node *file,
                                  const struct vp_node *flags);

#endif
