/* The peaks of a training step: its events, tensor by tensor where the framework is PyTorch, by the
 * stage's numbers where it plans its buffers itself, through the caching allocator. */
#ifndef VP_PLAN_TRAIN_PEAKS_H
#define VP_PLAN_TRAIN_PEAKS_H

#include "planner/timeline/walk.h"

/* The allocator as the scenario's environment and arguments set it. */
struct vp_allocator_settings vp_train_allocator(struct vp_arena *arena,
                                                const struct vp_scenario *scenario,
                                                const struct vp_train_stage *stage);
/* Writes the events of two steps of this stage to the sink. False: a size is too large. */
bool vp_train_write(struct vp_arena *arena, const struct vp_scenario *scenario,
                    const struct vp_train_stage *stage, const struct vp_event_sink *sink);
/* Whether a stage is replayed tensor by tensor: of PyTorch, and no larger than the allocator's
 * model goes. */
bool vp_train_is_torch(const struct vp_scenario *scenario, const struct vp_train_stage *stage);
/* Replays such a stage, whose moments become those of the replay. Returns the reserved peak as an
 * interval; sets *first_step_peak. */
struct vp_amount vp_train_peaks(struct vp_arena *arena, const struct vp_scenario *scenario,
                                struct vp_train_stage *stage, uint64_t *first_step_peak);

/* Reports what torch would refuse or ignore in PYTORCH_ALLOC_CONF (engine.env). */
void vp_train_check_allocator(struct vp_ctx *ctx, const struct vp_scenario *scenario);

#endif
