/* fit over several inputs: which of them is the largest that fits, and all of them side by side. */
#ifndef VP_CLI_FIT_SEVERAL_H
#define VP_CLI_FIT_SEVERAL_H

#include "api/search.h"
#include "cli/args.h"

/* What the command line asks of `fit`, read and checked. */
struct vp_fit_question_asked {
    const struct vp_args *args;
    struct vp_setting *settings; /* with one GPU where --gpu names several */
    size_t setting_count;
    const char **gpus; /* all of them */
    size_t gpu_count;
    struct vp_prices_given prices;
    struct vp_slo slo;
};

/* The inputs ranked: those that fit by their number of parameters, then the others. */
int vp_fit_rank(struct vp_ctx *ctx, const struct vp_fit_question_asked *question);
/* The inputs on the GPUs of one node (--gpu, --count), in phases where --phase says so. */
int vp_fit_pack(struct vp_ctx *ctx, const struct vp_fit_question_asked *question);

#endif
