/* Calibration profiles: what measurements of one GPU say (planner/model/calibration.h), as a file.
 * Written by reports/calibration_yaml.h; format: docs/CALIBRATION.md. */
#ifndef VP_IMPORT_CALIBRATION_READER_H
#define VP_IMPORT_CALIBRATION_READER_H

#include "planner/base/io.h"
#include "planner/model/calibration.h"
#include "planner/model/scenario.h"

enum {
    VP_CALIBRATION_MAX_BYTES = 8 * 1024 * 1024,
    VP_CALIBRATION_MAX_ANCHORS = 4096, /* of one kind of kernel */
    VP_CALIBRATION_MAX_POINTS = 256,   /* of one collective */
    VP_CALIBRATION_MAX_FITS = 64       /* collectives; engines */
};

enum vp_status vp_calibration_parse(struct vp_ctx *ctx, struct vp_calibration *out,
                                    struct vp_bytes text, const char *name);
enum vp_status vp_calibration_read(struct vp_ctx *ctx, struct vp_calibration *out,
                                   const char *path);
/* The user's or the shipped profile of a GPU; *out NULL: there is none. */
enum vp_status vp_calibration_find(struct vp_ctx *ctx, struct vp_calibration **out,
                                   const char *gpu);

#endif
