/* Words beside markers, placed so that they can be read. */
#include "reports/chart.h"
#include "reports/layout.h"

/* In letters from the left and lines from the top of the frame. */
struct box {
    double x0, x1, y0, y1;
};

/* Right of the marker above and below, left, the same a line further away. */
enum { WAYS = 8 };
static const int LINE_OF[WAYS] = {-1, 1, -1, 1, -2, 2, -2, 2};

static bool meets(const struct box *a, const struct box *b) {
    return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

static struct box box_of(double x, double y, double letters, bool left, int line) {
    const double GAP = 1;
    double from = left ? x - GAP - letters : x + GAP, top = line > 0 ? y + line - 1 : y + line;
    return (struct box){from, from + letters, top, top + 1};
}

static bool is_free(const struct box *box, const struct box *placed, uint32_t count, double cells) {
    if (box->x0 < 0 || box->x1 > cells)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (meets(box, &placed[i]))
            return false;
    return true;
}

static uint32_t count_words(const struct vp_chart *chart) {
    uint32_t n = 0;
    for (uint32_t s = 0; s < chart->series_count; s++)
        for (uint32_t i = 0; i < chart->series[s].count; i++)
            n += chart->series[s].kind == VP_CHART_POINTS && chart->series[s].point[i].word &&
                 vp_chart_shows(&chart->series[s].point[i]);
    return n;
}

uint32_t vp_chart_words(const struct vp_chart *chart, struct vp_chart_word **out,
                        const struct vp_scale *x, const struct vp_scale *y, double cells,
                        double lines) {
    uint32_t most = count_words(chart), n = 0;
    struct box *placed = VP_NEW_ARRAY(chart->arena, most, struct box);
    *out = VP_NEW_ARRAY(chart->arena, most, struct vp_chart_word);
    for (uint32_t s = 0; s < chart->series_count; s++) {
        const struct vp_chart_series *series = &chart->series[s];
        for (uint32_t i = 0; series->kind == VP_CHART_POINTS && i < series->count; i++) {
            const struct vp_chart_point *p = &series->point[i];
            if (!p->word || !vp_chart_shows(p))
                continue;
            int letters = vp_text_cells(vp_text_clean(chart->arena, p->word, true));
            double column = vp_scale_at(x, p->x) * cells, line = (1 - vp_scale_at(y, p->y)) * lines;
            for (int way = 0; way < WAYS; way++) {
                bool left = way / 2 % 2;
                placed[n] = box_of(column, line, letters, left, LINE_OF[way]);
                if (!is_free(&placed[n], placed, n, cells))
                    continue;
                (*out)[n++] = (struct vp_chart_word){p, left, LINE_OF[way]};
                break;
            }
        }
    }
    return n;
}
