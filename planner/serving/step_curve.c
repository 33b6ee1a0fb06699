#include "planner/serving/step_curve.h"

#include <math.h>

/* ---- the grid ---- */

/* A round size: size << octave, of at most bits + 1 binary digits, or below 2^(bits+1). With steps,
 * each that has a gap behind it is two nodes. */
static uint32_t octave_of(uint32_t bits, uint64_t size) {
    if (size >> (bits + 1) == 0)
        return 0;
    return 63U - (uint32_t)__builtin_clzll(size) - bits;
}

double vp_axis_at(const struct vp_axis *axis, uint32_t node) {
    uint32_t dense = 2U << axis->bits; /* nodes of the sizes without gaps */
    bool behind = false;

    if (axis->steps && node > dense) {
        behind = (node - dense) % 2;
        node = dense + (node - dense) / 2;
    }
    if (node < dense)
        return node;
    uint32_t octave = (node >> axis->bits) - 1;
    uint64_t digits = (node & (dense / 2 - 1)) + dense / 2;
    return (double)((digits << octave) + behind);
}

static const double LARGEST = 0x1p40;

struct vp_axis_place vp_axis_find(const struct vp_axis *axis, double size) {
    uint32_t dense = 2U << axis->bits, last = axis->nodes - 2;
    double in = size < LARGEST ? (size > 0 ? size : 0) : LARGEST;
    uint64_t whole = (uint64_t)in;
    uint32_t octave = octave_of(axis->bits, whole);
    uint32_t node = (octave << axis->bits) + (uint32_t)(whole >> octave);
    double from = (double)(whole >> octave << octave), width = (double)(1ULL << octave);

    if (axis->steps && node >= dense) {
        node = dense + 2 * (node - dense);
        if (octave > 0 && in - from >= 1) {
            node++;
            from += 1;
            width -= 1;
        } else {
            width = 1;
        }
    }
    if (node > last) {
        node = last;
        from = vp_axis_at(axis, node);
        width = vp_axis_at(axis, node + 1) - from;
    }
    return (struct vp_axis_place){node, (in - from) / width};
}

struct vp_axis vp_axis_to(uint32_t bits, bool steps, double most) {
    struct vp_axis axis = {bits, steps, UINT32_MAX};
    double size = fmax(ceil(most), 1);
    struct vp_axis_place p = vp_axis_find(&axis, size);

    axis.nodes = p.node + (p.share > 0 ? 2 : 1);
    axis.nodes = axis.nodes < 2 ? 2 : axis.nodes;
    return axis;
}

/* ---- one size ---- */

struct vp_curve vp_curve_new(struct vp_arena *arena, struct vp_axis x) {
    return (struct vp_curve){x, VP_NEW_ARRAY(arena, x.nodes, double)};
}

/* What the last node must have: values `stride` apart along the axis. */
static double steep_end(const struct vp_axis *axis, const double *us, size_t stride) {
    uint32_t last = axis->nodes - 1, half = vp_axis_find(axis, vp_axis_at(axis, last) / 2).node;
    double at = vp_axis_at(axis, last), before = vp_axis_at(axis, last - 1);
    double slope = (us[last * stride] - us[half * stride]) / (at - vp_axis_at(axis, half));

    return fmax(us[last * stride], us[(last - 1) * stride] + slope * (at - before));
}

void vp_curve_raise(struct vp_curve *curve) {
    uint32_t last = curve->x.nodes - 1;

    for (uint32_t i = 1; i <= last; i++)
        curve->us[i] = fmax(curve->us[i], curve->us[i - 1]);
    curve->us[last] = steep_end(&curve->x, curve->us, 1);
}

double vp_curve_us(const struct vp_curve *curve, double size) {
    struct vp_axis_place p = vp_axis_find(&curve->x, size);
    const double *us = curve->us + p.node;

    return us[0] + p.share * (us[1] - us[0]);
}

/* ---- two sizes ---- */

struct vp_sheet vp_sheet_new(struct vp_arena *arena, struct vp_axis x, struct vp_axis y) {
    return (struct vp_sheet){x, y, VP_NEW_ARRAY(arena, (size_t)x.nodes * y.nodes, double)};
}

double *vp_sheet_node(const struct vp_sheet *sheet, uint32_t x, uint32_t y) {
    return &sheet->us[(size_t)x * sheet->y.nodes + y];
}

static void raise_nodes(struct vp_sheet *sheet) {
    for (uint32_t x = 0; x < sheet->x.nodes; x++)
        for (uint32_t y = 0; y < sheet->y.nodes; y++) {
            double *us = vp_sheet_node(sheet, x, y);
            if (x > 0)
                *us = fmax(*us, *vp_sheet_node(sheet, x - 1, y));
            if (y > 0)
                *us = fmax(*us, *vp_sheet_node(sheet, x, y - 1));
        }
}

void vp_sheet_raise(struct vp_sheet *sheet) {
    raise_nodes(sheet);
    for (uint32_t y = 0; y < sheet->y.nodes; y++)
        *vp_sheet_node(sheet, sheet->x.nodes - 1, y) =
            steep_end(&sheet->x, vp_sheet_node(sheet, 0, y), sheet->y.nodes);
    for (uint32_t x = 0; x < sheet->x.nodes; x++)
        *vp_sheet_node(sheet, x, sheet->y.nodes - 1) =
            steep_end(&sheet->y, vp_sheet_node(sheet, x, 0), 1);
    raise_nodes(sheet); /* the ends may have passed their neighbours */
}

struct vp_sheet_line vp_sheet_line_at(const struct vp_sheet *sheet, double x, double y) {
    struct vp_axis_place px = vp_axis_find(&sheet->x, x), py = vp_axis_find(&sheet->y, y);
    const double *low = vp_sheet_node(sheet, px.node, py.node);
    const double *high = low + sheet->y.nodes;
    double from = low[0] + px.share * (high[0] - low[0]);
    double to = low[1] + px.share * (high[1] - low[1]);
    double left = vp_axis_at(&sheet->y, py.node), right = vp_axis_at(&sheet->y, py.node + 1);
    bool last = py.node + 2 >= sheet->y.nodes;

    return (struct vp_sheet_line){from + py.share * (to - from), (to - from) / (right - left),
                                  last ? INFINITY : right};
}

double vp_sheet_us(const struct vp_sheet *sheet, double x, double y) {
    return vp_sheet_line_at(sheet, x, y).us;
}
