/* One training step of a pipeline stage as memory that comes and goes, from the numbers of its
 * vp_train_stage: the layers' tapes, what stands beside them, gradients, gathered weights, head and
 * loss, the schedule's micro batches in flight, the optimizer's step. For frameworks that plan
 * their buffers themselves (Megatron), and wherever no finer account exists (torch_step.h: PyTorch,
 * tensor by tensor).
 *
 * Order inside a layer: its weights are gathered, its tape is written, its output made, temporary
 * bytes are there at the end. Backward: the segment's tapes are rebuilt; everything temporary
 * stands beside the whole tape; the tape goes, the gradients of weights and input come. What the
 * tape's numbers do not tell (which temporary lives when) is not told here either.
 *
 * Schedules: all forward passes first (as many micro batches in flight as there are), 1F1B,
 * interleaved 1F1B (virtual stages by turns, for as many micro batches as there are stages).
 * Zero-bubble schedules keep what 1F1B keeps; their delayed weight gradients are not modelled. */
#ifndef VP_TIMELINE_STEP_H
#define VP_TIMELINE_STEP_H

#include "planner/memory/train_stage.h"
#include "planner/timeline/event.h"

/* Marks (VP_EVENT_MARK) by id. */
enum vp_mark {
    VP_MARK_STEP,  /* a step ends and the next one begins */
    VP_MARK_REPEAT /* `bytes` micro batches are left out, see vp_step_write */
};

/* Writes the events of two optimizer steps: the first begins without optimizer states, the second
 * is as all later ones.
 *
 * Micro batches of a full pipeline are alike: each takes and gives the same bytes in the same
 * order, so that from the second backward pass on every one (with virtual stages, every turn) has
 * the same instants as the one before, and no peak of what is allocated is missed by leaving some
 * out. What is reserved depends on where things lie as well. Hence micro batches are left out only
 * after all that are in flight have been replaced once without a call to the driver; a call that
 * would come later is missed. False: a size or a number of storages is too large. */
bool vp_step_write(struct vp_arena *arena, const struct vp_scenario *scenario,
                   const struct vp_train_stage *stage, const struct vp_event_sink *sink);

#endif
