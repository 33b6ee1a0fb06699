/* Measured kernel times -> the constants and anchors of a form.
 *
 * Constants: robust least squares on log(time) (least_squares.h) from what is believed of such
 * cards (beliefs.def). Anchors: the form's errors at measured shapes, smoothed, at most
 * VP_MAX_ANCHORS of them, spread evenly over the shapes; their reach is the one that predicts rows
 * held out in turn best. The same rows in any order of files give the same fit up to rounding. */
#ifndef VP_LATENCY_FIT_H
#define VP_LATENCY_FIT_H

#include "planner/base/arena.h"
#include "planner/latency/forms.h"
#include "planner/model/samples.h"
#include "planner/model/scenario.h"

enum { VP_MAX_ANCHORS = 600 };

/* Rows that the others contradict: they correct nothing. */
struct vp_fit_outlier {
    struct vp_sample_row at;
    double ratio; /* measured over what all other rows predict */
};
struct vp_fit_outliers {
    struct vp_fit_outlier *items;
    uint32_t count;
};

/* The form's case for a sample of a device. */
struct vp_form_case vp_fit_case(const struct vp_calibration *calibration,
                                const struct vp_kernel_samples *samples,
                                const struct vp_kernel_sample *sample);
/* Fits one kind of kernel, on the calibration's units and cache. Sets all of *out but its source.
 * Without rows it is not known. */
void vp_fit_form(struct vp_arena *arena, struct vp_form_fit *out,
                 const struct vp_calibration *calibration, const struct vp_gpu *gpu,
                 const struct vp_kernel_samples *samples, struct vp_fit_outliers *outliers);
/* v to five digits; 0 for what is not above 0. */
double vp_fit_rounded(double v);

#endif
