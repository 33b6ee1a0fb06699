#include "planner/memory/train_stage.h"

void vp_train_stage_make(struct vp_arena *arena, struct vp_train_stage *out,
                         const struct vp_scenario *scenario, uint32_t index) {
    (void)arena;
    (void)scenario;
    *out = (struct vp_train_stage){.index = index, .count = 1};
}

void vp_train_stage_rows(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                         const struct vp_train_stage *stage, uint32_t device) {
    (void)ledger;
    (void)scenario;
    (void)stage;
    (void)device;
}
