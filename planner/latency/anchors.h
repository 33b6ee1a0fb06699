/* What is left of measured times beside a form, interpolated between shapes: the weighted mean of
 * log(measured / predicted) at the anchors around a shape, the weights falling with the sixth power
 * of the distance in doublings of the sizes. Far from all anchors the mean goes to 0: the form
 * alone answers. */
#ifndef VP_LATENCY_ANCHORS_H
#define VP_LATENCY_ANCHORS_H

#include "planner/base/arena.h"
#include "planner/latency/forms.h"

/* The factor on the form's time for a shape; 1 without anchors. */
double vp_anchor_factor(const struct vp_form_fit *fit, enum vp_form form,
                        const struct vp_shape *shape);
/* Form and anchors together, microseconds. */
double vp_fitted_us(const struct vp_form_fit *fit, const struct vp_form_case *c);
struct vp_anchor vp_anchor_at(enum vp_form form, const struct vp_shape *shape, double log_ratio);

#endif
