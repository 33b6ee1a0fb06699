/* What the files of the gate share: private to gate.c, gate_waivers.c and gate_measured.c. */
#ifndef VP_PLAN_GATE_PARTS_H
#define VP_PLAN_GATE_PARTS_H

#include "planner/plan/gate.h"

struct vp_gating {
    struct vp_ctx *ctx;
    const struct vp_gate_question *question;
    enum vp_at_risk at_risk;
    struct vp_check *checks;
    uint32_t count, capacity;
    bool *waiver_used; /* parallel to the budget's waivers */
};

/* A check that passes so far; valid until the next call. */
struct vp_check *vp_gate_new(struct vp_gating *g, enum vp_check_kind kind, const char *name);
/* Looks for a waiver of a check that does not pass: waived, or inconclusive where only an expired
 * one allows it. */
void vp_gate_waive(struct vp_gating *g, struct vp_check *check);
/* Notes about waivers that no check needed. */
void vp_gate_unused_waivers(struct vp_gating *g);
/* Checks of the plan against measured records. */
void vp_gate_measured(struct vp_gating *g);

#endif
