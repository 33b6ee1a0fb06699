/* fit: what is asked, and the answer for one scenario. Shared by the questions about one input and
 * about several. */
#ifndef VP_CLI_FIT_FOUND_H
#define VP_CLI_FIT_FOUND_H

#include "api/find.h"
#include "cli/args.h"
#include "planner/plan/fit_llama.h"
#include "reports/report.h"

/* What the command line asks, read and checked. */
struct vp_fit_ask {
    const struct vp_args *args;
    struct vp_setting *settings; /* with one GPU where --gpu names several */
    size_t setting_count;
    const char **gpus; /* all of them */
    size_t gpu_count;
    struct vp_prices_given prices;
    struct vp_slo slo;
};

struct vp_fit_found {
    const char *input; /* FILE, or FILE#NAME where it holds several */
    const char *name;  /* NULL: like the input */
    struct vp_diags *diags;
    enum vp_status status; /* not VP_OK: there is no answer, and diags say why */
    struct vp_search search;
    struct vp_result *result;   /* as it is; NULL: none */
    struct vp_fit_llama *llama; /* of llama.cpp and ollama */
    struct vp_outcome *outcome; /* of the others */
};

/* A question that makes no sense: VP_D_BAD_OPTION; hint: NULL for none. */
void vp_fit_refuse(struct vp_ctx *ctx, const char *message, const char *hint);
/* All scenarios of an input, as inputs of their own; standard input and pipes hold one. */
size_t vp_fit_split(struct vp_ctx *ctx, struct vp_fit_found **out, const char *input);
/* Answers one; to be closed with vp_search_close(&found->search) after it was shown. */
void vp_fit_find(struct vp_ctx *ctx, struct vp_fit_found *found, const struct vp_fit_ask *ask);
enum vp_verdict vp_fit_found_verdict(const struct vp_fit_found *found);
enum vp_exit vp_fit_found_exit(const struct vp_fit_found *found);
/* Diagnostics of all, each told once: errors, with --verbose all. */
void vp_fit_show_diagnostics(struct vp_ctx *ctx, const struct vp_fit_found *found, size_t count,
                             const struct vp_args *args);
struct vp_report_options vp_fit_report_options(const struct vp_args *args);

#endif
