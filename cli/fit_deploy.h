/* fit, with traffic: the smallest deployment that keeps a promise. */
#ifndef VP_CLI_FIT_DEPLOY_H
#define VP_CLI_FIT_DEPLOY_H

#include "cli/fit_found.h"

/* The question is one about traffic: --trace or --arrivals is given, or the scenario describes
 * requests that come by themselves and a promise, and --minimize asks for the least. */
bool vp_fit_is_deploy(struct vp_ctx *ctx, const struct vp_fit_ask *ask);
int vp_fit_deploy(struct vp_ctx *ctx, const struct vp_fit_ask *ask);

#endif
