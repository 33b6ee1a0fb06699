#include "planner/latency/anchors.h"

#include <math.h>

struct vp_anchor vp_anchor_at(enum vp_form form, const struct vp_shape *shape, double log_ratio) {
    struct vp_anchor anchor = {.log_ratio = (float)log_ratio};
    for (uint32_t i = 0; i < vp_shape_sizes(form); i++)
        anchor.at[i] = (float)log2(shape->size[i]);
    return anchor;
}

double vp_anchor_factor(const struct vp_form_fit *fit, enum vp_form form,
                        const struct vp_shape *shape) {
    const float near = 0.05F; /* squared reaches; keeps an anchor from deciding alone */
    const double nothing = 1; /* the weight of "as the form says": that of an anchor a reach away */
    struct vp_anchor to = vp_anchor_at(form, shape, 0);
    float scale = (float)(1 / (fit->reach * fit->reach));
    double sum = 0, weights = nothing;
    if (!fit->anchor_count || !(fit->reach > 0))
        return 1;
    for (uint32_t i = 0; i < fit->anchor_count; i++) {
        const struct vp_anchor *anchor = &fit->anchors[i];
        float square = 0;
        for (int d = 0; d < VP_SHAPE_SIZES; d++)
            square += (anchor->at[d] - to.at[d]) * (anchor->at[d] - to.at[d]);
        float x = square * scale + near;
        float weight = 1 / (x * x * x);
        sum += (double)(weight * anchor->log_ratio);
        weights += (double)weight;
    }
    return exp(sum / weights);
}

double vp_fitted_us(const struct vp_form_fit *fit, const struct vp_form_case *c) {
    return vp_form_us(c, fit->constant) * vp_anchor_factor(fit, c->form, &c->shape);
}
