/* A multimodal encoder under vLLM's profile run: as many of the largest images as a batch admits
 * go through it, and what it made of them stays while the decoder's run follows. The budget of
 * tokens is that of the encoder cache when the engine serves.
 * Source: vLLM multimodal/encoder_budget.py, v1/worker/gpu_model_runner.py (profile_run). */
#ifndef VP_MEMORY_ENCODER_H
#define VP_MEMORY_ENCODER_H

#include "planner/memory/ledger.h"
#include "planner/memory/stage.h"

struct vp_encoder_run {
    bool known;               /* the encoder's sizes are; else the figures are 0 */
    uint64_t items;           /* images of the largest size */
    uint64_t budget_tokens;   /* of the encoder cache */
    uint64_t kept_bytes;      /* outputs and pixels, beside all that follows */
    struct vp_amount forward; /* on top of them while the encoder runs */
    bool overflow;
};

/* Zeros where no profile run of an encoder takes place. */
void vp_encoder_run(struct vp_encoder_run *out, const struct vp_scenario *scenario);
/* The row for what is kept (component VISION). */
void vp_encoder_add(struct vp_ledger *ledger, const struct vp_encoder_run *run,
                    const struct vp_scenario *scenario, uint32_t device);

#endif
