/* A run of the gate: inputs as they are now (head) and as they were (base), planned, paired by
 * name, checked. Knows no git: where the base's files come from is a table of file calls. */
#ifndef VP_API_GATE_RUN_H
#define VP_API_GATE_RUN_H

#include "api/answers.h"
#include "planner/plan/gate.h"

struct vp_memo;

/* One input of the gate. */
struct vp_gate_input {
    const char *head; /* as the user named it: FILE, FILE#name */
    const char *base; /* the file's path in the base; NULL: it was not there */
};

struct vp_gate_options {
    const struct vp_gate_input *inputs;
    size_t input_count;
    const struct vp_io *base_io;          /* reads the base's files; NULL: there is no base */
    const char *base_label, *base_commit; /* as in struct vp_gate */
    const char *date;                     /* "2026-11-30" */
    bool date_given;                      /* by the user: told, though no waiver needs it */
    const char *only;                     /* a scenario's name, or a pattern with *; NULL: all */
    const enum vp_at_risk *at_risk;       /* in place of what budgets say; NULL: those */
    const struct vp_setting *settings;    /* of the command line, for both sides */
    size_t setting_count;
};

/* One side of a scenario, for those who ask further (api/diff.h). */
struct vp_gate_side {
    const struct vp_found *input;       /* NULL: the scenario is not on this side */
    const struct vp_found_item *item;   /* its tree, with positions of its own file */
    const struct vp_scenario *scenario; /* finished, its budget as said; NULL: has faults */
    const struct vp_result *result;     /* NULL: none */
};

struct vp_gate_run {
    struct vp_gate gate;
    uint32_t today;                   /* 20261130 */
    enum vp_status status;            /* the worst of what could not be planned */
    struct vp_gate_side *head, *base; /* parallel to gate.scenarios */
    struct vp_ctx head_ctx, base_ctx; /* each reads its own side: file calls, memo */
    const struct vp_setting *settings;
    size_t setting_count;
};

/* Everything lives in the context's arena, but for what vp_gate_close gives back. Faults of inputs
 * are those of their scenarios (head_diags); an input that cannot be read stands there as one
 * without a plan. */
void vp_gate_open(struct vp_ctx *ctx, struct vp_gate_run **out,
                  const struct vp_gate_options *options);
void vp_gate_close(struct vp_gate_run *run); /* NULL is allowed */
/* 0 passed, 1 a check failed, 2 an input is wrong, 3 inconclusive, 4 the environment failed. */
enum vp_exit vp_gate_exit(const struct vp_gate_run *run);

#endif
