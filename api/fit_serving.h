/* Served requests that somebody measured -> constants of an engine on a GPU. Rows come from CSV
 * files with the columns of either of two tables (docs/CALIBRATION.md):
 *
 *   model,gpu,gpus,engine,engine_version,mode,weights,input_tokens,output_tokens,length_sampling,
 *   concurrency,tensor,attention_data,expert,layout,speculative,ttft_ms,tpot_ms
 *   model,gpu,gpus,engine,precision,tensor,attention_data,expert,batch | concurrency,input_tokens,
 *   output_tokens,metric,value,ttft_ms,tpot_ms
 *
 * Each row is planned like any scenario (so the model must be a profile or in the local cache),
 * and its sums (planner/latency/serve_time.h) are fitted by planner/latency/serve_fit.h. Rows of
 * other engines, of disaggregated set-ups, with an uncertain layout or with speculative decoding
 * that the row does not rule out are left out and counted. Releases of different generations
 * (planner/latency/serving_generations.def) are fitted apart. */
#ifndef VP_API_FIT_SERVING_H
#define VP_API_FIT_SERVING_H

#include "planner/base/ctx.h"
#include "planner/doc/csv.h"
#include "planner/model/calibration.h"

/* Why rows were not used. */
enum vp_served_skip {
    VP_SERVED_USED,
    VP_SERVED_GPU,     /* of another card */
    VP_SERVED_ENGINE,  /* an engine without constants here */
    VP_SERVED_KIND,    /* disaggregated, layout not certain, perhaps speculative, open loop */
    VP_SERVED_REFUSED, /* its scenario is refused: model not known, layout impossible */
    VP_SERVED_SKIPS
};
const char *vp_served_skip_name(enum vp_served_skip skip);

struct vp_serving_report {
    uint32_t rows[VP_SERVED_SKIPS];
    const char *refused; /* the first message of a refused row; NULL: none */
    uint32_t outliers;   /* used, but off by more than a factor of two */
};

/* Fits every engine that has rows of calibration->gpu in the tables; the kernels of `calibration`
 * are used as far as they are there, so it must be filled before. Sets its `serving` list; none
 * when there are too few rows. */
enum vp_status vp_fit_serving(struct vp_ctx *ctx, struct vp_calibration *calibration,
                              struct vp_serving_report *report, const struct vp_csv *const *tables,
                              size_t count);

/* The same over all cards of a class, with the kernels of their class, as if none of them had been
 * measured: what profiles/engines/ENGINE.yaml says under `latency` for cards without serving rows.
 * Groups that are left out are cards, so the spreads are those of a card that was not measured. */
struct vp_serving_class {
    const char *engine;
    int generation;     /* vp_serving_generation() of planner/latency/engine_constants.h */
    const char *vendor; /* "amd"; NULL: all cards */
};
enum vp_status vp_fit_serving_class(struct vp_ctx *ctx, struct vp_serving_fit *out,
                                    struct vp_serving_report *report,
                                    const struct vp_serving_class *of,
                                    const struct vp_csv *const *tables, size_t count);

#endif
