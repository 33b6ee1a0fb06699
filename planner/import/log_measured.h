/* What a log says in the words of a scenario: the figures under their keys in `measured:` and in
 * the engine report, and the settings that the engine echoes as fields. */
#ifndef VP_IMPORT_LOG_MEASURED_H
#define VP_IMPORT_LOG_MEASURED_H

#include "planner/base/ctx.h"
#include "planner/model/run_log.h"

struct vp_log_figure {
    const char *key;   /* "weights_gib" */
    const char *place; /* "GPU0"; NULL: the key has no places */
    enum vp_log_kind kind;
    int64_t value, least, most; /* of all ranks; in the unit of run_log.h */
    int64_t step;               /* of the last printed place */
    uint32_t seen;              /* lines that print it */
    uint64_t line;              /* 0: computed from other lines */
    const char *how;            /* then: from which */
    bool pins;                  /* a key of `measured:`; the others follow from those */
};

/* In the order of the contract. Takes the engine that the log names, else `engine`. */
size_t vp_log_measured(struct vp_arena *arena, struct vp_log_figure **out,
                       const struct vp_log_start *start, enum vp_engine_kind engine);
/* The figure as the log wrote it, without unit: "14.9889", "29751", "0.9". */
const char *vp_log_figure_text(struct vp_arena *arena, const struct vp_log_figure *figure);

/* A setting that the log shows: "engine.args.max_model_len", "8192". */
struct vp_log_setting {
    const char *path, *value;
    uint64_t line; /* 0: among the echoed arguments */
};

/* Settings that a scenario of this engine has a field for; others are left out. */
size_t vp_log_settings(struct vp_ctx *ctx, struct vp_log_setting **out,
                       const struct vp_log_start *start, enum vp_engine_kind engine);
/* An echoed argument's value; NULL: not echoed, or None. */
const char *vp_log_argument(struct vp_arena *arena, const struct vp_log_start *start,
                            const char *name);

#endif
