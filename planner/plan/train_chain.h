/* A pipeline stage of a training step as the chain that the placement optimizer solves, and its
 * plans as settings of the scenario.
 *
 * A stage of the chain is a layer; the last one is what stands behind the layers (head and loss on
 * the last pipeline stage). Tape option 0 is the full tape, the further ones leave out what
 * selective recomputation of some regions leaves out; the last one keeps nothing. Times are
 * nanoseconds, the likely ones of planner/latency/train_op.h: kernels and the collectives in their
 * way. Bytes are those of one micro batch. */
#ifndef VP_PLAN_TRAIN_CHAIN_H
#define VP_PLAN_TRAIN_CHAIN_H

#include "planner/latency/kernels.h"
#include "planner/memory/train_stage.h"
#include "planner/recompute/chain.h"

enum { VP_CHAIN_TAPES = 16 };

struct vp_train_chain {
    struct vp_chain chain;
    uint32_t layers;               /* stages that are layers, from 0 */
    const uint32_t *layer;         /* their indices in the model */
    const uint32_t *const *select; /* by stage and option: set of enum vp_selective that is
                                      recomputed; UINT32_MAX: all of it */
    enum vp_basis basis;           /* of the times; NONE: all layers count alike */
    uint64_t static_bytes;         /* allocated all the time, gradients that persist included */
    uint64_t in_flight;   /* micro batches whose tapes are held at once; of an interleaved schedule
                             those of the chunk that has most */
    bool apart;           /* chunks of an interleaved schedule, which no segment spans */
    const char *overflow; /* NULL, or what is too large to be solved */
};

/* stage: as vp_train_stage_make fills it for a scenario without recomputation. */
void vp_train_chain_make(struct vp_arena *arena, struct vp_train_chain *out,
                         const struct vp_scenario *scenario, const struct vp_train_stage *stage);
/* A layer of which a set of regions (enum vp_selective) is recomputed, whether a plan would want
 * that or not. */
struct vp_tape_option vp_train_chain_option(const struct vp_scenario *scenario,
                                            const struct vp_train_layer *layer, uint32_t select);
/* Writes the plan of this stage into out->plan, which has room for all layers of the model. */
void vp_train_chain_apply(struct vp_recompute *out, const struct vp_train_chain *chain,
                          const struct vp_recompute_plan *plan);

#endif
