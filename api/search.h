/* Trying changes of one scenario: what `fit` and its questions are made of. A try finishes a
 * variant of the scenario, evaluates it in full and keeps a handful of figures; everything else is
 * given back, so that any number of tries takes no more memory than one. */
#ifndef VP_API_SEARCH_H
#define VP_API_SEARCH_H

#include "api/quality.h"
#include "api/slo.h"
#include "api/variants.h"

/* Prices of GPUs that the command line gives: --price. */
struct vp_prices_given {
    const char **gpu; /* NULL in an item: whatever the GPU is */
    double *price;    /* of one device and hour */
    size_t count;
};

struct vp_search {
    struct vp_ctx *ctx; /* of the results */
    struct vp_ctx scratch;
    struct vp_arena arena;
    struct vp_diags diags;
    struct vp_variants *variants;
    const struct vp_scenario *base;
    const char *input;
    const struct vp_setting *settings; /* of the command line */
    size_t setting_count;
    struct vp_quality quality;
    struct vp_slo slo;
    struct vp_prices_given prices;
    const char *keep; /* names of levers that are not to be pulled: "gpus,weights"; NULL: none */
    uint64_t tried;
};

/* Faults of the input are in the context's diagnostics; to be closed in either case. Base and its
 * plan are not to be used after that. */
enum vp_status vp_search_open(struct vp_ctx *ctx, struct vp_search *out, const char *input,
                              const struct vp_setting *settings, size_t setting_count);
/* The same over an input that was read: the settings are laid over it, and are the scenario as it
 * is. `variants` must stay open. */
enum vp_status vp_search_over(struct vp_ctx *ctx, struct vp_search *out,
                              const struct vp_variants *variants, const char *input,
                              const struct vp_setting *settings, size_t setting_count);
void vp_search_close(struct vp_search *search);
/* One candidate. */
void vp_search_try(struct vp_search *search, struct vp_trial *out, const struct vp_setting *set,
                   size_t count);
/* The whole plan of one candidate, in the context's arena; NULL: it was refused. */
const struct vp_result *vp_search_plan(struct vp_search *search, const struct vp_setting *set,
                                       size_t count);
/* Why a candidate is refused: text in the context's arena; NULL: it is not. */
const char *vp_search_refusal(struct vp_search *search, const struct vp_setting *set, size_t count);
/* The scenario has that value already, given or by a default that depends on nothing: the setting
 * changes nothing. */
bool vp_search_says(const struct vp_search *search, const struct vp_setting *set);
/* For sure; a promise about latency, if there is one, is kept by the likely figures, or nothing but
 * a bound is known. */
bool vp_trial_fits(const struct vp_trial *trial);
/* By the likely figures at least; a promise is not broken for sure. */
bool vp_trial_may_fit(const struct vp_trial *trial);
/* "vramplan plan INPUT --set ...": what was typed, and the patch. */
const char *vp_search_command(const struct vp_search *search, const struct vp_patch *patch,
                              uint32_t count);

#endif
