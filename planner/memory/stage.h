/* Pipeline stages: which layers a rank holds, and how a scenario's layout divides tensors. */
#ifndef VP_MEMORY_STAGE_H
#define VP_MEMORY_STAGE_H

#include "planner/model/scenario.h"
#include "planner/ops/ops.h"

struct vp_stage {
    uint32_t index, count;        /* this stage of how many */
    uint32_t first_layer, layers; /* range of the model's layers */
};

/* vLLM's split: layers / stages each, the remainder one by one to the stages before the last,
 * from the back. stage < count; count <= layers. Source: vLLM distributed/utils.py. */
struct vp_stage vp_stage_split(uint32_t layers, uint32_t count, uint32_t stage);
/* Layers of a block kind on the stage. */
uint32_t vp_stage_layers(const struct vp_model *model, const struct vp_stage *stage,
                         uint32_t block);
/* How the engine divides tensors: dense matrices and heads over the tensor-parallel ranks; experts
 * by their width, or with expert parallelism whole experts over the ranks. SGLang's data-parallel
 * attention leaves attention, embedding and head with tensor / attention_data ranks. */
struct vp_layout vp_stage_layout(const struct vp_scenario *scenario);

#endif
