/* Engine profiles: profiles/engines/NAME.yaml -> the rules of one version on one card. */
#ifndef VP_IMPORT_ENGINE_PROFILE_H
#define VP_IMPORT_ENGINE_PROFILE_H

#include "planner/doc/node.h"
#include "planner/model/scenario.h"

/* A profile once it was read: a scenario asks it twice. Starts as zeroes. */
struct vp_engine_profile {
    const struct vp_node *root;
    const char *path;
};

/* Picks the rules for the scenario's engine version, card, tensor-parallel size and total memory.
 * scenario->hardware and ->parallel must be resolved. A version that the profile does not cover is
 * VP_D_VERSION_UNKNOWN with the range that it does. */
enum vp_status vp_rules_read(struct vp_ctx *ctx, struct vp_rules *out,
                             struct vp_engine_profile *profile, const struct vp_scenario *scenario);
/* The newest version that the profile knows, for a scenario without engine.version. */
enum vp_status vp_engine_newest(struct vp_ctx *ctx, const char **out,
                                struct vp_engine_profile *profile, const char *engine);
/* The row of `overheads` that the rules of this scenario come from. */
enum vp_status vp_engine_overheads_row(struct vp_ctx *ctx, const struct vp_node **out,
                                       struct vp_engine_profile *profile,
                                       const struct vp_scenario *scenario);
enum vp_status vp_engine_list(struct vp_ctx *ctx, char ***names, size_t *count);

#endif
