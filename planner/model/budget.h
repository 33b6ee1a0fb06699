/* What a scenario may take (`budget:`), as plain values: limits of one GPU (its worst rank), growth
 * against another version of the same scenario, waivers for a time, records of real runs. `plan`
 * holds its answer against the limits; `gate` (planner/plan/gate.h) against all of it. */
#ifndef VP_MODEL_BUDGET_H
#define VP_MODEL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/diag.h"
#include "planner/model/component.h"

struct vp_limit {
    bool given;
    uint64_t value; /* bytes, tokens or sequences */
    struct vp_pos pos;
};

enum vp_bound {
    VP_BOUND_MEMORY,      /* need of one GPU, at most, bytes */
    VP_BOUND_HEADROOM,    /* what the engine's policy leaves beside the need, at least, bytes */
    VP_BOUND_HOST,        /* host memory of one machine, at most, bytes */
    VP_BOUND_CONTEXT,     /* tokens that one sequence can have, at least */
    VP_BOUND_CONCURRENCY, /* sequences of serve.context that fit at once, at least */
    VP_BOUND_COUNT
};

/* Fails only when both are exceeded. */
struct vp_growth_limit {
    bool given;
    uint64_t percent_ppb; /* of the base's value, in 1e-9 of it: 0.5 % is 5000000 */
    uint64_t min_bytes;
    struct vp_pos pos;
};

/* What a limit inside of a figure's interval amounts to. */
enum vp_at_risk {
    VP_AT_RISK_INCONCLUSIVE, /* not decided; exit 3 */
    VP_AT_RISK_FAIL,         /* the high figure decides */
    VP_AT_RISK_WARN,         /* told, but passes */
    VP_AT_RISK_LIKELY        /* the likely figure decides */
};

enum vp_waiver_kind { VP_WAIVER_GROWS_BY, VP_WAIVER_UP_TO, VP_WAIVER_DOWN_TO };

/* A check that may fail until a day. */
struct vp_waiver {
    const char *check; /* "growth.kv_cache", "memory" */
    enum vp_waiver_kind kind;
    uint64_t amount; /* bytes, tokens or sequences */
    const char *reason;
    uint32_t expires;         /* the last day that it holds: 20270131 */
    const char *expires_text; /* "2027-01-31" */
    struct vp_pos pos;
};

struct vp_tolerance {
    const char *key; /* "weights_gib"; NULL: every other one */
    uint64_t ppb;    /* of the measured value */
    struct vp_pos pos;
};

/* One figure as the engine printed it. */
struct vp_record_value {
    const char *key, *place; /* place "GPU0"; NULL: the key has none */
    uint64_t value;          /* bytes, a count, thousandths or 1e-9, as planner/plan/figures.h */
    uint64_t step;           /* what one in the last printed place is worth */
    struct vp_pos pos;
};

/* What a real run showed: a file that `import-log --measured-out` made, or values as they are. */
struct vp_record {
    const char *path;                    /* from the current directory; NULL: values were given */
    const char *engine, *engine_version; /* of that run; NULL: not said */
    struct vp_record_value *values;
    uint32_t value_count;
    struct vp_tolerance *tolerances;
    uint32_t tolerance_count;
    struct vp_pos pos;
};

struct vp_budget {
    struct vp_limit bound[VP_BOUND_COUNT];
    uint64_t headroom_ppb; /* headroom given in per cent; resolved into its bound */
    struct vp_limit component[VP_COMPONENT_COUNT]; /* bytes of one GPU at its peak, at most */
    struct vp_growth_limit growth;                 /* of the need of one GPU */
    struct vp_growth_limit component_growth[VP_COMPONENT_COUNT];
    enum vp_at_risk at_risk;
    const char **warn_only; /* checks that are told but do not fail; "growth": all of that kind */
    uint32_t warn_only_count;
    struct vp_waiver *waivers;
    uint32_t waiver_count;
    struct vp_record *records;
    uint32_t record_count;
};

const char *vp_bound_name(enum vp_bound bound); /* "memory", "min_context" */
/* At most, or at least. */
bool vp_bound_is_upper(enum vp_bound bound);
/* "inconclusive", "fail", "warn", "likely" */
bool vp_at_risk_parse(enum vp_at_risk *out, const char *text);
/* "2026-11-30" -> 20261130; false: not a day of the calendar. */
bool vp_parse_day(uint32_t *out, const char *text);

#endif
