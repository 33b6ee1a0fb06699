/* Samples of one GPU -> its calibration, and a calibration against samples. */
#ifndef VP_LATENCY_CALIBRATE_H
#define VP_LATENCY_CALIBRATE_H

#include "planner/latency/fit.h"

/* One kind of kernel of the samples, as it was fitted. */
struct vp_calibrated {
    enum vp_form form;
    int variant;
    const char *dtype; /* as the samples say */
    const struct vp_form_fit *fit;
    struct vp_fit_outliers outliers;
};
struct vp_calibrate_report {
    struct vp_calibrated *items;
    uint32_t count;
};

/* Sets the parts of *out that the samples measure, with `source` for each; the others stay as they
 * are, so that several runs add up. report: one item for each of samples->kernels, in their order.
 * Served requests are fitted elsewhere (api/fit_serving.h). */
void vp_calibrate(struct vp_arena *arena, struct vp_calibration *out,
                  struct vp_calibrate_report *report, const struct vp_gpu *gpu,
                  const struct vp_samples *samples, const struct vp_fit_source *source);

/* The fit of a kind of kernel. */
struct vp_form_fit *vp_calibration_fit(struct vp_calibration *calibration, enum vp_form form,
                                       int variant);

/* How a calibration predicts samples of one kind, over a range of a size. */
struct vp_check_range {
    const char *name; /* "all", "m<=16" */
    uint32_t rows;
    double median, p90; /* of |predicted / measured - 1| */
    double within;      /* share of rows inside the intervals that a plan would state */
};
enum { VP_CHECK_RANGES = 1 + VP_FORM_RANGES };
struct vp_check {
    enum vp_form form;
    bool reduce; /* all-reduces: no form */
    const char *dtype;
    bool known; /* the calibration has a form of that kind; false: rows only */
    struct vp_check_range range[VP_CHECK_RANGES];
    uint32_t ranges;
};
void vp_calibration_check(struct vp_arena *arena, struct vp_check *out,
                          const struct vp_calibration *calibration,
                          const struct vp_kernel_samples *samples);
/* All-reduces of all sizes; known: for all groups that occur. */
void vp_calibration_check_reduce(struct vp_arena *arena, struct vp_check *out,
                                 const struct vp_calibration *calibration,
                                 const struct vp_samples *samples);

#endif
