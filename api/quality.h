/* What quantised weights and caches cost in quality, from profiles/quality.yaml: measurements of
 * independent publishers. A format that fewer than two of them measured is not known. */
#ifndef VP_API_QUALITY_H
#define VP_API_QUALITY_H

#include "planner/base/ctx.h"
#include "planner/plan/changes.h"

struct vp_node;

struct vp_quality {
    const struct vp_node *root; /* NULL: there is no such file */
};

/* A file that cannot be read is VP_D_PROFILE_BROKEN; none at all is VP_OK with root NULL. */
enum vp_status vp_quality_read(struct vp_ctx *ctx, struct vp_quality *out);
/* part: "weights" or "kv_cache"; format as precision.weights says it. */
struct vp_risk vp_quality_risk(struct vp_arena *arena, const struct vp_quality *quality,
                               const char *part, const char *format);

#endif
