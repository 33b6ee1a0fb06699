/* What a probe found, for people and as JSON (docs/FORMATS.md, schema "vramplan.probe/1"). */
#ifndef VP_CLI_PROBE_REPORT_H
#define VP_CLI_PROBE_REPORT_H

#include "cli/calibrate_report.h"
#include "cli/probe_run.h"
#include "cli/probe_samples.h"
#include "cli/probe_verify.h"

struct vp_probe_result {
    const struct vp_probe_folder *folder;
    const struct vp_probe_outcome *outcome;
    const struct vp_calibrate_result *fitted;   /* NULL: no profile was made */
    const struct vp_verification *verification; /* NULL: not asked for */
    const struct vp_calibration *verified_by;
};

void vp_probe_report_text(const struct vp_page *page, const struct vp_probe_result *result,
                          bool verbose);
void vp_probe_report_json(struct vp_buf *out, const struct vp_probe_result *result,
                          const struct vp_diags *diags);

#endif
