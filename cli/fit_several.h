/* fit over several inputs: which of them is the largest that fits, and all of them side by side. */
#ifndef VP_CLI_FIT_SEVERAL_H
#define VP_CLI_FIT_SEVERAL_H

#include "cli/fit_found.h"

/* The inputs ranked: those that fit by their number of parameters, then the others. Ends with 0
 * when one fits. */
int vp_fit_largest(struct vp_ctx *ctx, const struct vp_fit_ask *ask);
/* The inputs on the GPUs of one node (--gpu, --count), in phases where --phase says so. */
int vp_fit_pack(struct vp_ctx *ctx, const struct vp_fit_ask *ask);

#endif
