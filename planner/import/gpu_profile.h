/* GPU profiles: profiles/gpus/NAME.yaml and the user's own. */
#ifndef VP_IMPORT_GPU_PROFILE_H
#define VP_IMPORT_GPU_PROFILE_H

#include "planner/doc/node.h"
#include "planner/model/scenario.h"

/* By id or alias (case, spaces, dashes and underscores do not matter), or from an inline map with
 * the profile's fields. Unknown: VP_D_GPU_UNKNOWN with the nearest names. */
enum vp_status vp_gpu_read(struct vp_ctx *ctx, struct vp_gpu *out, const struct vp_node *node);
/* The same by its name alone. */
enum vp_status vp_gpu_named(struct vp_ctx *ctx, struct vp_gpu *out, const char *name);
/* One device of a partition mode ("CPX"): memory and compute units replaced. */
enum vp_status vp_gpu_partition(struct vp_ctx *ctx, struct vp_gpu *gpu, const char *mode,
                                const char *memory_mode, const struct vp_pos *pos);
struct vp_gpus {
    struct vp_gpu *items; /* sorted by vendor, then id */
    size_t count;
};
enum vp_status vp_gpu_list(struct vp_ctx *ctx, struct vp_gpus *out);

#endif
