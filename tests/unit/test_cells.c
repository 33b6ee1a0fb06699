/* The grid of cells: clipping, widths, fields, boxes, bars, printing. */
#include "tui/cells.h"

#include <string.h>

#include "tests/unit/fixture.h"

struct grid {
    struct vp_arena arena;
    struct vp_cells *cells;
    struct vp_view all;
};

static struct grid grid(int width, int height, bool utf8) {
    struct grid g = {0};
    g.cells = vp_cells_make(&g.arena, width, height, utf8);
    g.all = vp_view_all(g.cells);
    return g;
}

/* What the grid shows, as text. */
static void shows(struct grid *g, const char *want) {
    struct vp_buf out = {.arena = &g->arena};
    vp_cells_print(&out, g->cells, false, VP_THEME_DARK);
    assert_string_equal(vp_buf_text(&out), want);
    vp_arena_free(&g->arena);
}

static void text_is_cut_at_the_view(void **state) {
    (void)state;
    struct grid g = grid(8, 2, true);
    struct vp_view part = vp_view_part(g.all, 2, 0, 4, 1);
    assert_int_equal(vp_view_text(part, -1, 0, VP_LOOK_PLAIN, "abcdefgh"), 7);
    vp_view_text(part, 0, 1, VP_LOOK_PLAIN, "below");
    vp_view_text(part, 0, -1, VP_LOOK_PLAIN, "above");
    shows(&g, "  bcde\n\n");
}

static void parts_of_parts_stay_inside(void **state) {
    (void)state;
    struct grid g = grid(6, 3, true);
    struct vp_view part = vp_view_part(vp_view_part(g.all, 1, 1, 100, 100), -5, -5, 100, 100);
    assert_int_equal(part.width, 5);
    assert_int_equal(part.height, 2);
    assert_int_equal(vp_view_part(g.all, 10, 10, 5, 5).width, 0);
    assert_int_equal(vp_view_part(g.all, 2, 0, -3, 1).width, 0);
    vp_view_text(part, 0, 0, VP_LOOK_PLAIN, "123456");
    shows(&g, "\n 12345\n\n");
}

static void empty_grids_take_anything(void **state) {
    (void)state;
    struct grid g = grid(0, 5, true);
    vp_view_text(g.all, 0, 0, VP_LOOK_PLAIN, "x");
    vp_view_box(g.all, VP_LOOK_EDGE, "t", "n", "f");
    vp_view_bar(g.all, 0, 0, 10, NULL, 0, 0, 0);
    vp_view_scrollbar(g.all, 0, 100);
    shows(&g, "");
}

/* A character of two cells: at an edge it is not drawn by half, and overwriting one half blanks the
 * other. */
static void wide_characters(void **state) {
    (void)state;
    struct grid g = grid(5, 4, true);
    vp_view_text(g.all, 0, 0, VP_LOOK_PLAIN, "\xE6\xA8\xA1\xE5\x9E\x8B\xE6\xA8\xA1");
    vp_view_text(g.all, 0, 1, VP_LOOK_PLAIN, "\xE6\xA8\xA1\xE5\x9E\x8B");
    vp_view_text(g.all, 1, 1, VP_LOOK_PLAIN, "x");
    vp_view_text(g.all, 0, 2, VP_LOOK_PLAIN, "\xE6\xA8\xA1\xE5\x9E\x8B");
    vp_view_text(g.all, 2, 2, VP_LOOK_PLAIN, "y");
    vp_view_text(g.all, -1, 3, VP_LOOK_PLAIN, "\xE6\xA8\xA1z");
    assert_int_equal(vp_cells_of("\xE6\xA8\xA1z"), 3);
    shows(&g, "\xE6\xA8\xA1\xE5\x9E\x8B\n x\xE5\x9E\x8B\n\xE6\xA8\xA1y\n z\n");
}

static void text_from_outside_is_harmless(void **state) {
    (void)state;
    struct grid g = grid(12, 1, true);
    vp_view_text(g.all, 0, 0, VP_LOOK_PLAIN,
                 "a\033[2Jb\xFF"
                 "c\td\xE2\x80\xAE");
    shows(&g, "a?[2Jb?c d?\n");
    g = grid(6, 1, false);
    vp_view_text(g.all, 0, 0, VP_LOOK_PLAIN, "\xC3\xA9t\xC3\xA9");
    shows(&g, "?t?\n");
}

static void fields(void **state) {
    (void)state;
    struct grid g = grid(10, 4, true);
    vp_view_left(g.all, 0, 0, 6, VP_LOOK_PLAIN, "abc");
    vp_view_right(g.all, 0, 1, 6, VP_LOOK_PLAIN, "abc");
    vp_view_left(g.all, 0, 2, 7, VP_LOOK_PLAIN, "llama-3.1-70b");
    vp_view_right(g.all, 0, 3, 2, VP_LOOK_PLAIN, "12345");
    shows(&g, "abc\n   abc\nlla\xE2\x80\xA6"
              "70b\n12\n");
    g = grid(8, 1, false);
    vp_view_left(g.all, 0, 0, 7, VP_LOOK_PLAIN, "llama-3.1-70b");
    shows(&g, "lla..0b\n");
}

static void words_are_wrapped(void **state) {
    (void)state;
    struct grid g = grid(10, 3, true);
    const char *text = "the engine starts and waits for more";
    assert_int_equal(vp_view_wrap(g.all, 0, 0, 10, 9, VP_LOOK_COUNT, text), 4);
    assert_int_equal(vp_view_wrap(g.all, 0, 0, 10, 3, VP_LOOK_PLAIN, text), 3);
    shows(&g, "the engine\nstarts and\nwaits for\xE2\x80\xA6\n");
    g = grid(8, 2, true);
    assert_int_equal(vp_view_wrap(g.all, 0, 0, 8, 2, VP_LOOK_PLAIN, "a_word_that_is_longer b"), 2);
    shows(&g, "a_wo\xE2\x80\xA6ger\nb\n");
    g = grid(4, 1, true);
    assert_int_equal(vp_view_wrap(g.all, 0, 0, 4, 1, VP_LOOK_PLAIN, "  "), 0);
    assert_int_equal(vp_view_wrap(g.all, 0, 0, 0, 1, VP_LOOK_PLAIN, "x"), 0);
    shows(&g, "\n");
}

static void boxes(void **state) {
    (void)state;
    struct grid g = grid(20, 3, false);
    struct vp_view in = vp_view_box(g.all, VP_LOOK_EDGE, "title", "note", "foot");
    assert_int_equal(in.width, 18);
    assert_int_equal(in.height, 1);
    vp_view_text(in, 0, 0, VP_LOOK_PLAIN, "inside, but not beyond");
    shows(&g, "+- title --- note -+\n|inside, but not be|\n+- foot -----------+\n");
    g = grid(3, 2, false);
    vp_view_box(g.all, VP_LOOK_EDGE, "title", "note", NULL);
    shows(&g, "+-+\n+-+\n");
}

static void bars_keep_their_shares(void **state) {
    (void)state;
    const struct vp_segment segment[] = {
        {50, 'W', VP_LOOK_WEIGHTS}, {24, 'K', VP_LOOK_CACHE}, {1, 'A', VP_LOOK_WORK}};
    struct grid g = grid(12, 4, false);
    vp_view_bar(g.all, 0, 0, 12, segment, 3, 100, 90); /* what has anything is seen */
    vp_view_bar(g.all, 0, 1, 12, segment, 3, 100, 0);
    vp_view_bar(g.all, 0, 2, 12, segment, 3, 60, 60); /* more than the whole: the bar is longer */
    vp_view_bar(g.all, 0, 3, 12, segment, 0, 0, 0);
    shows(&g, "[WWWWWKKA.|]\n[WWWWWKKA..]\n[WWWWWWKK|A]\n[..........]\n");
}

static void a_tiny_bar_does_not_overflow(void **state) {
    (void)state;
    struct vp_segment segment[20];
    for (int i = 0; i < 20; i++)
        segment[i] = (struct vp_segment){UINT64_C(1) << (2 * i), (char)('A' + i), VP_LOOK_WORK};
    struct grid g = grid(5, 1, false);
    vp_view_bar(g.all, 0, 0, 5, segment, 20, 1, 1);
    assert_true(g.cells->cell[4].code == ']');
    vp_arena_free(&g.arena);
}

static void rows_and_heads_line_up(void **state) {
    (void)state;
    static const struct vp_column COLUMNS[] = {{"name", 6, false}, {"GiB", 5, true}};
    struct grid g = grid(13, 2, false);
    vp_view_head(g.all, 0, 0, COLUMNS, 2, 1);
    vp_view_row(g.all, 0, 1, VP_LOOK_PLAIN, COLUMNS, 2, 1, (const char *[]){"a", "1.5"});
    shows(&g, "name     GiB\na        1.5\n");
}

/* Colours and marks only where asked for; every line ends as it began. */
static void printed_colours(void **state) {
    (void)state;
    struct grid g = grid(4, 1, false);
    struct vp_buf out = {.arena = &g.arena};
    vp_view_text(g.all, 0, 0, VP_LOOK_GOOD, "ok");
    vp_view_mark(g.all, 3, 0, 1);
    vp_cells_print(&out, g.cells, true, VP_THEME_DARK);
    assert_string_equal(vp_buf_text(&out), "\033[0;1;32mok\033[0m \033[0;7m \033[0m\n");
    out = (struct vp_buf){.arena = &g.arena};
    vp_cells_print(&out, g.cells, true, VP_THEME_MONO);
    assert_string_equal(vp_buf_text(&out), "\033[0;1mok\033[0m \033[0;7m \033[0m\n");
    vp_arena_free(&g.arena);
}

static void themes_have_names(void **state) {
    (void)state;
    for (int i = 0; i < VP_THEME_COUNT; i++)
        assert_int_equal(vp_theme_find(vp_theme_text((enum vp_theme_name)i)), i);
    assert_int_equal(vp_theme_find("neon"), VP_THEME_COUNT);
    for (int i = 0; i < VP_LOOK_COUNT; i++)
        assert_int_equal(vp_theme_look(VP_THEME_MONO, (enum vp_tui_style)i).colour,
                         VP_COLOUR_DEFAULT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_cut_at_the_view),
        cmocka_unit_test(parts_of_parts_stay_inside),
        cmocka_unit_test(empty_grids_take_anything),
        cmocka_unit_test(wide_characters),
        cmocka_unit_test(text_from_outside_is_harmless),
        cmocka_unit_test(fields),
        cmocka_unit_test(words_are_wrapped),
        cmocka_unit_test(boxes),
        cmocka_unit_test(bars_keep_their_shares),
        cmocka_unit_test(a_tiny_bar_does_not_overflow),
        cmocka_unit_test(rows_and_heads_line_up),
        cmocka_unit_test(printed_colours),
        cmocka_unit_test(themes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
