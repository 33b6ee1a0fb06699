#include "tui/chart_view.h"

#include "reports/chart_text.h"

static enum vp_tui_style style_of(int look, bool components) {
    static const enum vp_tui_style SERIES[] = {VP_LOOK_GOOD, VP_LOOK_WARN, VP_LOOK_LABEL,
                                               VP_LOOK_KEY, VP_LOOK_STRONG};
    if (look < 0)
        return VP_LOOK_DIM;
    if (look == VP_LOOK_INK)
        return VP_LOOK_STRONG;
    if (look >= VP_LOOKS)
        return VP_LOOK_PLAIN;
    if (components && look < VP_COMPONENT_COUNT)
        return vp_theme_component((enum vp_component)look);
    return SERIES[(size_t)look % (sizeof SERIES / sizeof *SERIES)];
}

void vp_view_chart(struct vp_view view, struct vp_arena *arena, const struct vp_chart *chart,
                   bool components) {
    if (view.width < 20 || view.height < 4)
        return;
    struct vp_chart_grid grid = vp_chart_grid(arena, chart, view.width, view.height);
    for (int y = 0; y < grid.height && y < view.height; y++)
        for (int x = 0; x < grid.width && x < view.width; x++) {
            char glyph[2] = {grid.glyph[y * grid.width + x], '\0'};
            if (*glyph > ' ')
                vp_view_text(view, x, y, style_of(grid.look[y * grid.width + x], components),
                             glyph);
        }
}
