/* Charts: scales, stacking, tables, and what every renderer has to hold to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "reports/chart_gnuplot.h"
#include "reports/chart_svg.h"
#include "reports/chart_text.h"

static struct vp_arena arena;

static int teardown(void **state) {
    (void)state;
    vp_arena_free(&arena);
    return 0;
}

static const char *const DEVICES[] = {"gpu0", "gpu1"};

/* Two stacked pieces on each of two devices, a limit on one, a rule. */
static struct vp_chart *bars(void) {
    struct vp_chart *chart = vp_chart_new(&arena, "b", "Title", "subtitle");
    chart->x = (struct vp_chart_axis){.label = "memory", .unit = "GiB", .from_zero = true};
    chart->y = (struct vp_chart_axis){.names = DEVICES, .name_count = 2};
    for (int s = 0; s < 2; s++) {
        struct vp_chart_series *series =
            vp_chart_add(chart, VP_CHART_BARS, s ? "cache" : "weights");
        series->letter = s ? 'K' : 'W';
        vp_chart_point(chart, series, s ? 10 : 30, 0);
        if (s)
            vp_chart_point(chart, series, 20, 1);
    }
    struct vp_chart_series *limit = vp_chart_add(chart, VP_CHART_LIMIT, "usable");
    vp_chart_point(chart, limit, 64, 0);
    return chart;
}

static void stacks(void **state) {
    (void)state;
    struct vp_chart *chart = bars();
    assert_true(vp_chart_lies(chart));
    assert_true(vp_chart_base(chart, 0, 0) == 0);
    assert_true(vp_chart_base(chart, 1, 0) == 30);
    assert_true(vp_chart_base(chart, 1, 1) == 0); /* nothing of the first on that device */
    struct vp_scale x = vp_chart_scale_x(chart, 8);
    assert_true(x.low == 0 && x.high >= 64);
}

static void scales(void **state) {
    (void)state;
    struct vp_chart *chart = vp_chart_new(&arena, "s", "t", NULL);
    struct vp_chart_series *line = vp_chart_add(chart, VP_CHART_LINE, "l");
    chart->x = (struct vp_chart_axis){.base = 2, .tokens = true};
    chart->y = (struct vp_chart_axis){.from_zero = true};
    for (int k = 0; k < 6; k++)
        vp_chart_point(chart, line, 1024 << k, 7.3 * k);
    vp_chart_limit(chart, true, 80, "limit");
    struct vp_scale x = vp_chart_scale_x(chart, 10), y = vp_chart_scale_y(chart, 6);
    assert_int_equal(x.ticks, 6);
    assert_string_equal(x.text[0], "1K");
    assert_string_equal(x.text[5], "32K");
    assert_true(fabs(vp_scale_at(&x, 1024)) < 1e-9 && fabs(vp_scale_at(&x, 32768) - 1) < 1e-9);
    assert_true(y.low == 0 && y.high >= 80 && y.ticks >= 3 && y.ticks <= 7);
    for (uint32_t i = 1; i < y.ticks; i++)
        assert_true(y.tick[i] > y.tick[i - 1]);
}

static const double ANYTHING[] = {0, 1, -5, 1e-9, 1e15, (double)NAN, (double)INFINITY, 3.3333};
enum { ANY = sizeof ANYTHING / sizeof ANYTHING[0] };

/* What no picture may hold, in any size. */
static void draw_everywhere(const struct vp_chart *chart) {
    struct vp_buf out = {.arena = &arena};
    vp_chart_text(&out, chart, 80, 0);
    vp_chart_grid(&arena, chart, 1, 1);
    vp_chart_svg_file(&out, chart);
    vp_chart_gnuplot_script(&out, chart, "d", "i", VP_GNUPLOT_PNG);
    assert_null(strstr(vp_buf_text(&out), "inf"));
    assert_null(strstr(vp_buf_text(&out), "\"nan"));
    assert_null(strstr(vp_buf_text(&out), "-nan"));
    struct vp_buf data = {.arena = &arena};
    vp_chart_gnuplot_data(&data, chart);
    assert_null(strstr(vp_buf_text(&data), "inf"));
    vp_chart_table(chart);
}

/* Any values give finite scales with ends apart: none, one, equal, tiny, huge, not a number. */
static void scales_of_anything(void **state) {
    (void)state;
    for (int base = 0; base <= 10; base += base ? 8 : 2)
        for (int i = 0; i < ANY * ANY; i++) {
            double a = ANYTHING[i / ANY], b = ANYTHING[i % ANY];
            struct vp_chart *chart = vp_chart_new(&arena, "s", "t", NULL);
            chart->x = chart->y = (struct vp_chart_axis){.base = base};
            struct vp_chart_series *line = vp_chart_add(chart, VP_CHART_LINE, "l");
            vp_chart_point(chart, line, a, b);
            vp_chart_point(chart, line, b, a);
            struct vp_scale scale[] = {vp_chart_scale_x(chart, 8), vp_chart_scale_y(chart, 8)};
            for (int s = 0; s < 2; s++) {
                assert_true(isfinite(scale[s].low) && isfinite(scale[s].high));
                assert_true(scale[s].low < scale[s].high);
                assert_true(!base || scale[s].low > 0);
            }
            draw_everywhere(chart);
        }
}

/* The same of every kind of series, on numbers and on names; and of nothing at all. */
static void kinds_of_anything(void **state) {
    (void)state;
    for (int kind = VP_CHART_LINE; kind <= VP_CHART_CELLS; kind++)
        for (int i = 0; i <= ANY * ANY; i++) {
            struct vp_chart *chart = vp_chart_new(&arena, "s", "t", "u");
            bool names = kind == VP_CHART_BARS || kind == VP_CHART_CELLS || i % 3 == 0;
            chart->y = (struct vp_chart_axis){.names = names ? DEVICES : NULL,
                                              .name_count = names ? 2 : 0};
            if (kind == VP_CHART_CELLS)
                chart->x = chart->y;
            vp_chart_divide(chart, !names, ANYTHING[i % ANY], "rule");
            for (int s = 0; s < 2 && i < ANY * ANY; s++) {
                struct vp_chart_series *series = vp_chart_add(chart, (enum vp_chart_kind)kind, "a");
                double a = ANYTHING[i / ANY], b = ANYTHING[i % ANY];
                vp_chart_point(chart, series, a, names ? 0 : b)->z = b;
                vp_chart_point(chart, series, b, names ? 1 : a)->word = "word";
            }
            draw_everywhere(chart);
        }
}

static void numbers(void **state) {
    (void)state;
    assert_string_equal(vp_chart_number(&arena, 0), "0");
    assert_string_equal(vp_chart_number(&arena, 1234567), "1,234,567");
    assert_string_equal(vp_chart_number(&arena, 67.7131), "67.71");
    assert_string_equal(vp_chart_number(&arena, 0.012345), "0.01235");
    assert_string_equal(vp_chart_number(&arena, NAN), "");
}

static void tables(void **state) {
    (void)state;
    struct vp_chart_table table = vp_chart_table(bars());
    assert_int_equal(table.columns, 4);
    assert_int_equal(table.rows, 2);
    assert_string_equal(table.cell[0], "gpu0");
    assert_string_equal(table.head[1], "weights, GiB");
    assert_string_equal(table.cell[1], "30.000");
    assert_string_equal(table.cell[4 + 1], ""); /* gpu1 has none */
    assert_string_equal(table.cell[4 + 2], "20.000");
    assert_string_equal(table.cell[3], "64.000");
}

/* Every line within the width, the letters in proportion, the limit where it is. */
static void text(void **state) {
    (void)state;
    struct vp_buf out = {.arena = &arena};
    vp_chart_text(&out, bars(), 80, 0);
    for (const char *line = vp_buf_text(&out); *line;) {
        size_t n = strcspn(line, "\n");
        assert_true(n <= 80);
        line += n + (line[n] == '\n');
    }
    struct vp_chart_grid grid = vp_chart_grid(&arena, bars(), 80, 6);
    int weights = 0, cache = 0;
    for (int i = 0; i < grid.width * grid.height; i++) {
        weights += grid.glyph[i] == 'W';
        cache += grid.glyph[i] == 'K';
    }
    assert_true(weights > 20 && cache > 15 && cache <= weights);
    assert_non_null(strstr(vp_buf_text(&out), "gpu0"));
    assert_non_null(strstr(vp_buf_text(&out), "| usable"));
}

/* Names from outside are text, whatever they hold. */
static void names(void **state) {
    (void)state;
    static const char *const NASTY[] = {"<b>'&\"`x`", "it's\n$(id)"};
    struct vp_chart *chart = bars();
    struct vp_buf svg = {.arena = &arena}, script = {.arena = &arena};
    chart->title = NASTY[0];
    chart->subtitle = NASTY[1];
    chart->y.names = NASTY;
    vp_chart_svg_file(&svg, chart);
    assert_null(strstr(vp_buf_text(&svg), "<b>"));
    assert_non_null(strstr(vp_buf_text(&svg), "&lt;b&gt;&#39;&amp;&quot;"));
    vp_chart_gnuplot_script(&script, chart, "d'at", "i.png", VP_GNUPLOT_PNG);
    assert_non_null(strstr(vp_buf_text(&script), "'<b>''&\"`x`'"));
    assert_non_null(strstr(vp_buf_text(&script), "'it''s $(id)'"));
    assert_non_null(strstr(vp_buf_text(&script), "'d''at'"));
    assert_null(strchr(vp_buf_text(&script), '\r'));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks),
        cmocka_unit_test(scales),
        cmocka_unit_test(scales_of_anything),
        cmocka_unit_test(kinds_of_anything),
        cmocka_unit_test(numbers),
        cmocka_unit_test(tables),
        cmocka_unit_test(text),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
