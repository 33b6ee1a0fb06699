/* "--gpu local": this system's first GPU as settings of a scenario. */
#ifndef VP_CLI_DEVICE_LOCAL_H
#define VP_CLI_DEVICE_LOCAL_H

#include "cli/args.h"

/* Where hardware.gpu is set to "local": its profile's name, the total that the runtime reports,
 * what others hold now, its partition mode, in place of that; what the command line itself says
 * stays. Otherwise nothing is done, and the system not asked. No GPU: VP_ERR_ENV; one whose profile
 * is not sure: VP_ERR_INPUT with the candidates. */
enum vp_status vp_device_local(struct vp_ctx *ctx, struct vp_args *args);

#endif
