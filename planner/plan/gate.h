/* The checks of a gate, pure: a plan (head), the plan of the same scenario before the change (base,
 * or none), its budget and a day -> a list of checks with states. No files, no clock, no git: who
 * finds the base is cli/git_tree.h, who pairs scenarios is api/gate_run.h, who renders is
 * reports/gate_*.h.
 *
 * Computed figures have no noise: the tolerance is zero. Where a figure is an interval (low,
 * likely, high), a limit below low is exceeded, one from high on is kept, one inside is
 * inconclusive unless `budget.at_risk` says otherwise. Growth compares likely with likely, because
 * both come from the same formulas. */
#ifndef VP_PLAN_GATE_H
#define VP_PLAN_GATE_H

#include "planner/plan/budget_values.h"

struct vp_difference; /* which change moved which bytes: planner/plan/difference.h */

/* The later ones are worse. */
enum vp_check_state {
    VP_CHECK_PASS,
    VP_CHECK_NEW,     /* the scenario is not in the base: growth is not held against anything */
    VP_CHECK_REMOVED, /* the scenario is in the base only */
    VP_CHECK_WAIVED,  /* would fail, but a waiver that is still valid allows it */
    VP_CHECK_WARN, /* would fail or is at risk, but budget.warn_only or at_risk says: tell only */
    VP_CHECK_INCONCLUSIVE, /* exit 3 */
    VP_CHECK_FAIL,         /* exit 1 */
    VP_CHECK_INVALID,      /* the scenario could not be planned: exit 2, or 4 */
    VP_CHECK_STATES
};

enum vp_check_kind {
    VP_CHECK_SCENARIO,         /* "scenario": new, removed, or without a plan */
    VP_CHECK_FITS,             /* "fits": the plan's own verdict, whatever the budget says */
    VP_CHECK_BOUND,            /* "memory", "headroom", "host_memory", "min_context", ... */
    VP_CHECK_COMPONENT,        /* "components.kv_cache" */
    VP_CHECK_GROWTH,           /* "growth": the need of one GPU */
    VP_CHECK_COMPONENT_GROWTH, /* "growth.kv_cache" */
    VP_CHECK_MEASURED          /* "measured.weights_gib", "measured.kv_mib.GPU0" */
};

enum vp_check_unit {
    VP_UNIT_NONE,
    VP_UNIT_BYTES,
    VP_UNIT_TOKENS,
    VP_UNIT_SEQUENCES,
    VP_UNIT_COUNT,
    VP_UNIT_MILLI, /* thousandths: max_concurrency of a log */
    VP_UNIT_SHARE  /* 1e-9 of one */
};

struct vp_check {
    enum vp_check_kind kind;
    enum vp_bound bound;         /* of VP_CHECK_BOUND */
    enum vp_component component; /* of the component checks; else VP_COMPONENT_COUNT */
    const char *name;            /* unique within the scenario, stable: what waivers and
                                    fingerprints name */
    enum vp_check_state state;
    enum vp_check_unit unit;
    bool upper; /* the limit is the most that is allowed; else the least */
    bool value_known, limit_known, base_known;
    struct vp_quantity value;       /* of growth: how much more than the base, may be below zero */
    int64_t limit;                  /* of growth: how much more is allowed */
    struct vp_quantity base;        /* the value of the base, of growth: the base's bytes */
    struct vp_pos pos;              /* of the limit in the budget file; line 0: not known */
    enum vp_diag_id id;             /* VP_DIAG_COUNT: passes, nothing to say */
    const char *message;            /* one sentence without a full stop; never NULL */
    const char *hint;               /* NULL: none */
    const struct vp_waiver *waiver; /* that was used, or would have been; NULL: none */
};

/* One scenario of the gate: a row of what is rendered. */
struct vp_gate_scenario {
    const char *name;
    const char *file;             /* as the user named it: the head's, or of a removed one the
                                     base's */
    const char *base_file;        /* NULL: none; other than `file` after a renaming */
    struct vp_pos pos;            /* of the scenario in its file */
    const struct vp_result *head; /* NULL: removed, or could not be planned (see head_diags) */
    const struct vp_result *base; /* NULL: new, no base, or could not be planned there */
    const struct vp_diags *head_diags, *base_diags; /* NULL: none */
    bool in_base;                                   /* there is a scenario of that name */
    struct vp_check *checks;
    uint32_t check_count;
    enum vp_check_state worst;              /* of its checks */
    const struct vp_difference *difference; /* NULL: not made; filled by api/diff */
};

/* All of a run. */
struct vp_gate {
    const char *base_label;  /* "merge base of HEAD and origin/main", "folder old"; NULL: no base */
    const char *base_commit; /* full id; NULL: not from git */
    const char *folder;      /* the current one within its repository, "a/b/"; NULL: the top, or
                                no repository */
    const char *date;        /* "2026-11-30", that waivers were held against; NULL: there is none,
                                and no day was asked for, so that the bytes are those of any day */
    struct vp_gate_scenario *scenarios;
    uint32_t scenario_count;
    uint32_t checks[VP_CHECK_STATES];       /* how many, by state */
    uint32_t scenarios_of[VP_CHECK_STATES]; /* scenarios, by the worst state of their checks */
    enum vp_check_state worst;
    const struct vp_diags *notes; /* of the run: unused waivers, no base; errors of inputs too */
};

struct vp_gate_question {
    const char *scenario;           /* its name, for notes */
    const struct vp_budget *budget; /* its records have been read (import/measured_record.h) */
    const struct vp_result *head;   /* made without the budget: its verdict is the device's; never
                                       NULL */
    const struct vp_result *base;   /* NULL: none */
    bool have_base;                 /* there is a base to compare with */
    bool in_base;                   /* the scenario stands there, planned or not */
    uint32_t today;                 /* 20261130 */
    const enum vp_at_risk *at_risk; /* in place of the budget's own; NULL: that */
};

/* Adds what is worth knowing of waivers to ctx->diags; everything lives in its arena. */
void vp_gate_check(struct vp_ctx *ctx, struct vp_check **out, uint32_t *count,
                   const struct vp_gate_question *question);
/* Notes on ctx->diags where the budget of head allows more than that of base did: a limit that is
 * higher, or gone. Who raises a limit with the same change as the memory should be seen doing it.
 */
void vp_gate_loosened(struct vp_ctx *ctx, const char *scenario, const struct vp_budget *head,
                      const struct vp_budget *base);
/* Sums up: states by count, the worst. */
void vp_gate_sum(struct vp_gate *gate);

const char *vp_check_state_name(enum vp_check_state state); /* "pass", "inconclusive", ... */
/* A value of a check as reports show it: "12.35 GiB", "-1.20 GiB", "32,768 tokens". */
const char *vp_check_show(struct vp_arena *arena, enum vp_check_unit unit, int64_t value);
#endif
