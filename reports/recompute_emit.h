/* A recompute plan as the text that a training framework reads: Python for PyTorch, Trainer and
 * DeepSpeed, YAML for torchtune, Primus and scenarios, options for Megatron-LM. In front, as
 * comments: what it needs, what it costs, where it is tightest. */
#ifndef VP_REPORTS_RECOMPUTE_EMIT_H
#define VP_REPORTS_RECOMPUTE_EMIT_H

#include "planner/base/text.h"
#include "planner/plan/recompute_frameworks.h"

/* plan: not refused. best: the fastest plan that anything can run. */
void vp_recompute_emit(struct vp_buf *out, const struct vp_recompute_problem *problem,
                       const struct vp_framework_plan *plan, const struct vp_framework_plan *best);
/* The setting in words: "the first 12 layers of each stage", "layers 0-3, 7". */
const char *vp_recompute_setting_words(struct vp_arena *arena,
                                       const struct vp_framework_plan *plan);
/* The same in at most 40 cells, for tables: "12 layers, 4 pieces; 20 in part". */
const char *vp_recompute_setting_brief(struct vp_arena *arena,
                                       const struct vp_framework_plan *plan);
/* What train.recompute of a scenario says: "{layers: [24, 25]}"; for plans of the framework
 * "vramplan". */
const char *vp_recompute_setting_value(struct vp_arena *arena,
                                       const struct vp_framework_plan *plan);
/* "mlp, layernorm"; "" for none. select: set of enum vp_selective */
const char *vp_recompute_parts(struct vp_arena *arena, uint32_t select);
/* A share of a whole, rounded half up: "12.34 %". */
const char *vp_recompute_percent(struct vp_arena *arena, uint64_t part, uint64_t whole);

#endif
