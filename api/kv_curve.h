/* The KV cache of a scenario against its context, for each format that the engine can keep it in:
 * every point is a variant of the scenario, evaluated in full. For charts. */
#ifndef VP_API_KV_CURVE_H
#define VP_API_KV_CURVE_H

#include "api/variants.h"
#include "reports/charts.h"

/* base: the plan of the scenario without changes, which serves. Formats that are refused, or that
 * the scenario gives no choice of, are left out; there may be none. */
void vp_kv_curve(struct vp_ctx *ctx, struct vp_kv_lines *out, const struct vp_variants *variants,
                 const struct vp_result *base);

#endif
