/* What the outputs of the gate have in common: words for states, where a check points to, what
 * would let it pass, which checks say something and in which order. */
#ifndef VP_REPORTS_GATE_WORDS_H
#define VP_REPORTS_GATE_WORDS_H

#include "planner/plan/difference.h"
#include "planner/plan/gate.h"

/* "FAIL", "ok", "inconclusive" */
const char *vp_gate_word(enum vp_check_state state);
/* "1 failed, 2 inconclusive, 3 passed": scenarios by their worst check. */
const char *vp_gate_counts(struct vp_arena *arena, const struct vp_gate *gate);
/* "merge base of HEAD and origin/main (1f3c2ab0)"; "none" */
const char *vp_gate_base_text(struct vp_arena *arena, const struct vp_gate *gate);

/* A check of a run. */
struct vp_finding {
    const struct vp_gate_scenario *scenario;
    const struct vp_check *check;
    const struct vp_difference_step *cause; /* what moved it most; NULL: not known */
    struct vp_pos pos;       /* the change that did it, else the limit, else the scenario; line >= 1
                                where there is a file, file never NULL */
    const char *fingerprint; /* of scenario and check, whatever the figures are */
    const char *folder;      /* of struct vp_gate */
    uint32_t order;
};

/* A file of a finding as CI systems want it: from the top of the repository. */
const char *vp_finding_path(struct vp_arena *arena, const struct vp_finding *finding,
                            const char *file);
/* All checks that did not simply pass, the worst first, else in the order of the run. */
uint32_t vp_gate_findings(struct vp_arena *arena, struct vp_finding **out,
                          const struct vp_gate *gate);
/* Scenarios, the worst first; places in gate->scenarios. */
const uint32_t *vp_gate_order(struct vp_arena *arena, const struct vp_gate *gate);
/* "prod-70b: memory 176.70 GiB, ... (serve.context 32768 -> 40960)": one line. */
const char *vp_finding_line(struct vp_arena *arena, const struct vp_finding *finding);
/* "a context of about 34,112 tokens, or precision.kv_cache auto -> fp8, or ..."; NULL: nothing is
 * known that would. */
const char *vp_gate_to_pass(struct vp_arena *arena, const struct vp_gate_scenario *scenario);

#endif
