/* Two scenarios -> the settings that differ and what each of them moved
 * (planner/plan/difference.h).
 *
 * What is compared are the trees that the user wrote: key paths of the scenario file, of the
 * model's description (config.json, or a map), of the command line. A model given by name, or one
 * whose tensors are known (safetensors, GGUF), is replaced as a whole; the keys in which its
 * description differs are named all the same. Values are compared as written: "32k" and 32768
 * differ, and move nothing.
 *
 * From the old scenario to the new one, changes are applied in the order of vp_cause_group, within
 * a group by key path, and each scenario on the way is planned in full. One that is refused is
 * joined with the next change. What differs otherwise (a profile of the user's own, a draft model's
 * file) is a last step of its own, "files beside the scenario". */
#ifndef VP_API_DIFF_H
#define VP_API_DIFF_H

#include "planner/import/input.h"
#include "planner/plan/difference.h"

/* One of the two. ctx: how its files are read, which may be another table of calls than the other
 * side's; its memo, where it has one, must be of that side alone. */
struct vp_diff_side {
    struct vp_ctx *ctx;
    const struct vp_node *root; /* struct vp_found_item */
    const char *base;           /* struct vp_found */
    const struct vp_setting *settings;
    size_t setting_count;
    const struct vp_result *result; /* its plan; NULL: it has none, so causes are named alone */
};

/* What is found lives in ctx's arena, texts of it in those of the two sides. */
void vp_diff_make(struct vp_ctx *ctx, struct vp_difference *out, const struct vp_diff_side *before,
                  const struct vp_diff_side *after);

#endif
