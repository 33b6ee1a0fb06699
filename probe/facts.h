/* Everything that is known of this system's GPUs without measuring: what the kernel says (sysfs.h),
 * filled in by the vendors' runtimes and by ROCm SMI where they are there. Those are asked in
 * processes of their own with a time limit; what one of them does wrong becomes a text in the
 * facts, never a failure.
 *
 * With VRAMPLAN_SYSFS (a made-up system) libraries are asked only where VRAMPLAN_GPU_LIBRARIES
 * names folders of them. */
#ifndef VP_PROBE_FACTS_H
#define VP_PROBE_FACTS_H

#include "planner/base/ctx.h"
#include "planner/base/text.h"
#include "planner/model/device_facts.h"

/* limit_s: for one answer of a library; more than 10 counts as 10. */
void vp_facts_collect(struct vp_ctx *ctx, struct vp_device_facts *out, double limit_s);
/* As JSON, schema "vramplan.facts/1"; keys are the names in planner/model/device_facts.def, what is
 * not known is left out. */
void vp_facts_json(struct vp_buf *out, const struct vp_device_facts *facts);

#endif
