/* Times tabulated over sizes: on a grid that has every size up to 2^(bits+1) and 2^bits of them per
 * octave above, straight lines between. Kernels work in tiles, so that a time jumps behind a round
 * size: an axis with steps has the next size as a node of its own, too. Never falling: a node that
 * lies below an earlier one is raised to it. Beyond the last node the last line goes on, which is
 * as steep as the last octave at least: a table that ends on a flat piece must not go on like that.
 */
#ifndef VP_SERVING_STEP_CURVE_H
#define VP_SERVING_STEP_CURVE_H

#include "planner/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct vp_axis {
    uint32_t bits;
    bool steps;
    uint32_t nodes;
};
/* Nodes from 0 to the first at or above `most`; at least two. */
struct vp_axis vp_axis_to(uint32_t bits, bool steps, double most);
double vp_axis_at(const struct vp_axis *axis, uint32_t node);

/* Where a size lies: between this node and the next, and how far on the way. */
struct vp_axis_place {
    uint32_t node;
    double share;
};
struct vp_axis_place vp_axis_find(const struct vp_axis *axis, double size);

struct vp_curve {
    struct vp_axis x;
    double *us; /* [node] */
};
struct vp_curve vp_curve_new(struct vp_arena *arena, struct vp_axis x);
/* Once all nodes are filled. */
void vp_curve_raise(struct vp_curve *curve);
double vp_curve_us(const struct vp_curve *curve, double size);

struct vp_sheet {
    struct vp_axis x, y;
    double *us; /* [x node][y node] */
};
struct vp_sheet vp_sheet_new(struct vp_arena *arena, struct vp_axis x, struct vp_axis y);
double *vp_sheet_node(const struct vp_sheet *sheet, uint32_t x, uint32_t y);
void vp_sheet_raise(struct vp_sheet *sheet);
double vp_sheet_us(const struct vp_sheet *sheet, double x, double y);
/* The straight line in y at this x: time at y, slope, and how far y may go until it bends. */
struct vp_sheet_line {
    double us, slope, until;
};
struct vp_sheet_line vp_sheet_line_at(const struct vp_sheet *sheet, double x, double y);

#endif
