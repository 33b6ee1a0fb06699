/* What the evaluations by accounting share: evaluate_pool.c, evaluate_llama.c, evaluate_train.c.
 * Private to them and evaluate.c. */
#ifndef VP_PLAN_EVALUATE_PARTS_H
#define VP_PLAN_EVALUATE_PARTS_H

#include "planner/plan/plan.h"

/* What a device's rows add up to: components, their confidence, the peak. */
void vp_device_fold(struct vp_device *device, const struct vp_ledger *ledger, uint32_t index);
/* usable - need, by the likely figure */
int64_t vp_device_headroom(const struct vp_device *device);
/* A need held against a limit: 0 it fits for sure, 1 it may not, 2 it does not. */
int vp_need_over(struct vp_amount need, uint64_t limit);
/* Keeps the first reason of the worst kind; shortage as above. */
void vp_verdict_settle(struct vp_result *out, enum vp_reason reason, int shortage);
/* What the scenario sets itself (budget:). */
void vp_verdict_budget(struct vp_result *out);

/* The folds over the ledger add without checks, and headroom is a signed number. */
bool vp_ledger_too_large(const struct vp_ledger *ledger);

/* Fill a zeroed result whose ledger has its arena; false: a size exceeds 64 bits. */
bool vp_evaluate_pool(struct vp_arena *arena, struct vp_result *out);
bool vp_evaluate_llama(struct vp_arena *arena, struct vp_result *out);
bool vp_evaluate_train(struct vp_arena *arena, struct vp_result *out);

#endif
