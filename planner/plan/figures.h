/* The engine report of a plan: the quantities that the engine's own log prints, under their keys,
 * as this plan predicts them. One list for the result's JSON, for comparisons with logs and for
 * tests. Per worst rank; llama.cpp's per place. */
#ifndef VP_PLAN_FIGURES_H
#define VP_PLAN_FIGURES_H

#include "planner/plan/result.h"

enum vp_figure_unit {
    VP_FIGURE_GIB,   /* bytes, shown in GiB */
    VP_FIGURE_MIB,   /* bytes, shown in MiB */
    VP_FIGURE_BYTES, /* bytes, shown as such */
    VP_FIGURE_COUNT,
    VP_FIGURE_MILLI, /* thousandths */
    VP_FIGURE_SHARE  /* 1e-9 of one */
};

struct vp_figure {
    const char *key;   /* "weights_gib" */
    const char *place; /* "GPU0"; NULL: the key has no places */
    enum vp_figure_unit unit;
    struct vp_amount amount;
};

enum { VP_FIGURES = VP_LLAMA_PLACES * VP_LLAMA_BUFFERS + 16 };

/* Fills out[VP_FIGURES] and returns how many there are. Places point into the result. */
size_t vp_figures_of(struct vp_figure out[VP_FIGURES], const struct vp_result *result);
/* The same of one pipeline stage of a training step. */
size_t vp_figures_of_stage(struct vp_figure out[VP_FIGURES],
                           const struct vp_training_stage *stage);

#endif
