/* A calibration as the profile that planner/import/calibration_reader.h reads. Constants are
 * written with as many digits as they have (fits round theirs), so that a plan from the file is the
 * plan from the fit. */
#ifndef VP_REPORTS_CALIBRATION_YAML_H
#define VP_REPORTS_CALIBRATION_YAML_H

#include "planner/base/text.h"
#include "planner/model/calibration.h"

void vp_calibration_yaml(struct vp_buf *out, const struct vp_calibration *calibration);

#endif
