/* A training step of PyTorch, tensor by tensor: which storages come and go while its operators run,
 * as eager code and autograd make and free them (with torch.compile: what is left when point-wise
 * operators are fused). The caching allocator replays these events; what is allocated and reserved
 * at most, and when, follows from them.
 *
 * One rank of one pipeline stage. For own loops, Trainer and PEFT, DDP, FSDP 1 and 2, DeepSpeed;
 * Megatron plans its buffers itself and is told by its own rules.
 *
 * Sources: pytorch tools/autograd/derivatives.yaml (what is kept), aten/src/ATen/native/cuda
 * (temporaries, e.g. SoftMax.cu: the backward makes grad * output), torch/distributed/fsdp;
 * transformers modeling files; PEFT lora/layer.py; bitsandbytes autograd/_functions.py. Held
 * against 25 measured runs (T4, Trainer + PEFT): allocated peak within 2 %, reserved within 14 %.
 */
#ifndef VP_TIMELINE_TORCH_STEP_H
#define VP_TIMELINE_TORCH_STEP_H

#include "planner/memory/train_stage.h"
#include "planner/timeline/event.h"

/* Writes the events of two optimizer steps: the first begins without optimizer states and
 * gradients, the second is as all later ones. A VP_EVENT_MARK stands between them, another one
 * (VP_MARK_REPEAT, step.h) where micro batches are left out: those that add to gradients as the one
 * before did. False: a size exceeds 64 bits. */
bool vp_torch_step(struct vp_arena *arena, const struct vp_scenario *scenario,
                   const struct vp_train_stage *stage, const struct vp_event_sink *sink);

#endif
