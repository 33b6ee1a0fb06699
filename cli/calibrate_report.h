/* What `calibrate` fitted, and how a profile predicts samples, for people and as JSON
 * (docs/FORMATS.md, schema "vramplan.calibrate/1"). */
#ifndef VP_CLI_CALIBRATE_REPORT_H
#define VP_CLI_CALIBRATE_REPORT_H

#include "api/fit_serving.h"
#include "planner/latency/calibrate.h"
#include "reports/layout.h"

struct vp_calibrate_result {
    const struct vp_calibration *calibration;
    const struct vp_samples *samples;
    const char *written; /* path of the profile */
    struct vp_calibrate_report kernels;
    struct vp_serving_report serving;
    bool served; /* rows of served requests were among the samples */
};
void vp_calibrate_report_text(const struct vp_page *page, const struct vp_calibrate_result *result,
                              bool verbose);
void vp_calibrate_report_json(struct vp_buf *out, const struct vp_calibrate_result *result,
                              const struct vp_diags *diags);

/* Checks in the order of their kinds. */
void vp_calibrate_check_text(const struct vp_page *page, const struct vp_calibration *calibration,
                             const struct vp_check *checks, uint32_t count);
void vp_calibrate_check_json(struct vp_buf *out, const struct vp_calibration *calibration,
                             const struct vp_check *checks, uint32_t count,
                             const struct vp_diags *diags);

#endif
