/* calibrate --serving-class: the constants of an engine over all cards of a class, as a row of
 * `latency` in profiles/engines/ENGINE.yaml. */
#ifndef VP_CLI_SERVING_CLASS_H
#define VP_CLI_SERVING_CLASS_H

#include "planner/base/ctx.h"
#include "planner/base/text.h"
#include "planner/model/samples.h"

/* what: ENGINE[@VERSION][:VENDOR]; the version names a generation of releases, the newest when it
 * is left out; no vendor: all cards. */
enum vp_status vp_serving_class_row(struct vp_ctx *ctx, struct vp_buf *out,
                                    const struct vp_samples *samples, const char *what);

#endif
