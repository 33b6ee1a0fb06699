/* What there is to choose from: the models, GPUs and engines that have a profile, shipped or the
 * user's own. What lists of choices on a screen are made of. */
#ifndef VP_API_CATALOGUE_H
#define VP_API_CATALOGUE_H

#include "planner/import/gpu_profile.h"

struct vp_catalogue {
    char **models, **engines; /* ids, sorted */
    size_t model_count, engine_count;
    const char **newest; /* version of each engine that its rules cover; NULL: they have none */
    struct vp_gpus gpus; /* by vendor, then memory, then id; what a runtime lists: no packages */
};

/* In the context's arena. Profiles that cannot be used are diagnostics, and left out. */
enum vp_status vp_catalogue_read(struct vp_ctx *ctx, struct vp_catalogue *out);

#endif
