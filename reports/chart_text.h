/* Charts as characters. Series are told apart by their letters; a legend says which is which. */
#ifndef VP_REPORTS_CHART_TEXT_H
#define VP_REPORTS_CHART_TEXT_H

#include "reports/chart.h"

/* A grid of characters, ASCII, for a user interface that colours it: the picture alone, without
 * title, subtitle, legend and note. It is never smaller than 24 x 5, whatever is asked for. */
struct vp_chart_grid {
    int width, height;
    const char *glyph;  /* [height * width], blanks included */
    const int8_t *look; /* [height * width]: the look of the series; -1: frame and words */
};
struct vp_chart_grid vp_chart_grid(struct vp_arena *arena, const struct vp_chart *chart, int width,
                                   int height);

/* The whole: title, subtitle, picture, legend, note. No line is wider than width. height: of the
 * picture in lines; 0: what suits it. */
void vp_chart_text(struct vp_buf *out, const struct vp_chart *chart, int width, int height);

#endif
