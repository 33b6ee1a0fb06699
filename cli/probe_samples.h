/* A folder of samples as the probe left it: which of them `calibrate` reads, the other tables, and
 * which card they are of. */
#ifndef VP_CLI_PROBE_SAMPLES_H
#define VP_CLI_PROBE_SAMPLES_H

#include "planner/base/ctx.h"
#include "planner/doc/csv.h"
#include "planner/model/samples.h"
#include "planner/model/scenario.h"

struct vp_probe_folder {
    const char *path;
    /* NULL: there is no such file */
    const struct vp_csv *device, *bandwidth, *launch, *gemm, *kernels, *errors, *blocks;
    const char **fitted; /* paths of what calibrate reads */
    size_t fitted_count;
};
enum vp_status vp_probe_folder_read(struct vp_ctx *ctx, struct vp_probe_folder *out,
                                    const char *path);
/* Removes the files that a probe writes, and the folder if nothing else is in it. */
void vp_probe_folder_remove(struct vp_ctx *ctx, const char *path);

/* Of the device; "" when it did not say. */
const char *vp_probe_property(const struct vp_probe_folder *folder, const char *name);

/* The profile of the measured card, with the sizes that the device itself says where the profile
 * has none. A processor is the GPU of scenarios without one (hardware.count: 0). Not known:
 * VP_ERR_INPUT. */
enum vp_status vp_probe_card(struct vp_ctx *ctx, struct vp_gpu *out,
                             const struct vp_probe_folder *folder,
                             const struct vp_samples *samples);

/* A number in a row of a table; 0 when the cell has none. */
double vp_probe_number(const struct vp_csv *csv, uint32_t row, const char *column);
const char *vp_probe_text(const struct vp_csv *csv, uint32_t row, const char *column);

#endif
