/* --vary, --where and --objectives: what their texts mean, and where they are wrong. */
#include "tests/unit/fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/objectives.h"
#include "api/vary.h"
#include "api/where.h"
#include "planner/base/text.h"

static struct fixture f;
static struct vp_grid grid;

static int begin(void **state) {
    (void)state;
    fixture_begin(&f);
    return 0;
}

static int end(void **state) {
    (void)state;
    fixture_end(&f);
    return 0;
}

/* "a=1 b=x; a=1 b=y; ": all combinations */
static const char *combinations(const char *one, const char *two) {
    const char *texts[2] = {one, two};
    struct vp_setting settings[VP_GRID_FIELDS];
    struct vp_buf out = {.arena = &f.arena};
    fixture_clear(&f);
    assert_int_equal(vp_grid_read(&f.ctx, &grid, "--vary", texts, two ? 2 : 1), VP_OK);
    for (uint64_t i = 0; i < grid.total; i++) {
        vp_grid_settings(&grid, settings, i);
        for (size_t k = 0; k < grid.field_count; k++)
            vp_buf_printf(&out, "%s%s=%s", k ? " " : "", settings[k].path, settings[k].value);
        vp_buf_add(&out, "; ");
    }
    return vp_buf_text(&out);
}

static void lists_and_ranges(void **state) {
    (void)state;
    assert_string_equal(combinations("a=1,x , y z", NULL), "a=1; a=x; a=y z; ");
    assert_string_equal(combinations("a=8k..32k*2", NULL), "a=8192; a=16384; a=32768; ");
    assert_string_equal(combinations("a=3..20*3", NULL), "a=3; a=9; ");
    assert_string_equal(combinations("a=1..7+3", NULL), "a=1; a=4; a=7; ");
    assert_string_equal(combinations("a=0..1+1", NULL), "a=0; a=1; ");
    assert_string_equal(combinations("a=0.8..0.95+0.05", NULL), "a=0.8; a=0.85; a=0.9; a=0.95; ");
    assert_string_equal(combinations("a=1 GiB..2 GiB+1 GiB", NULL), "a=1073741824; a=2147483648; ");
    assert_string_equal(combinations("a=1,2,4..16*2", NULL), "a=1; a=2; a=4; a=8; a=16; ");
    assert_string_equal(combinations("a=5..5+1", NULL), "a=5; ");
    assert_string_equal(combinations("a=[1, 2],{x: 1, y: 2},\"b,c\"", NULL),
                        "a=[1, 2]; a={x: 1, y: 2}; a=\"b,c\"; ");
    assert_string_equal(combinations("a=../x,./y..z", NULL), "a=../x; a=./y..z; ");
    /* a step that runs beyond 64 bits ends the range */
    assert_string_equal(combinations("a=9223372036854775807..18446744073709551615*2", NULL),
                        "a=9223372036854775807; a=18446744073709551614; ");
}

static void products_and_pairs(void **state) {
    (void)state;
    assert_string_equal(combinations("a=1,2", "b=x,y"), "a=1 b=x; a=1 b=y; a=2 b=x; a=2 b=y; ");
    assert_string_equal(combinations("a,b=1:x,2:y", NULL), "a=1 b=x; a=2 b=y; ");
    assert_string_equal(combinations("a,b=1:x,2:y", "c=0,1"),
                        "a=1 b=x c=0; a=1 b=x c=1; a=2 b=y c=0; a=2 b=y c=1; ");
    struct vp_pos pos = vp_axis_pos(&f.arena, &grid.axes[0], 1);
    assert_string_equal(pos.file, "--vary a,b=1:x,2:y");
    assert_int_equal(pos.column, 9);
}

/* The column of the one fault that a text has. */
static void is_fault(const char *text, uint32_t column, const char *words) {
    fixture_clear(&f);
    assert_int_equal(vp_grid_read(&f.ctx, &grid, "--vary", &text, 1), VP_ERR_INPUT);
    const struct vp_diag *diag = fixture_expect(&f, VP_D_BAD_OPTION, words);
    assert_int_equal(f.diags.errors, 1);
    assert_int_equal(diag->pos.column, column);
    assert_non_null(strstr(diag->pos.file, text));
}

static void nonsense(void **state) {
    static const char *const TWICE[] = {"a=1", "b,a=1:2"};
    static const char *const MANY[] = {"a=1..1000000+1", "b=1..1001+1"};
    (void)state;
    is_fault("a", 2, "no '='");
    is_fault("a=", 3, "a value is missing");
    is_fault("a=1,,2", 5, "a value is missing");
    is_fault("a=1,", 5, "a value is missing");
    is_fault("=1", 1, "a field is missing");
    is_fault("a,=1", 3, "a field is missing");
    is_fault("a,a=1:2", 1, "varies in two places");
    is_fault("a=8k..4k*2", 7, "ends before it begins");
    is_fault("a=8k..16k", 10, "has no step");
    is_fault("a=8k..x*2", 7, "ends with no number");
    is_fault("a=8q..9*2", 3, "begins with no number");
    is_fault("a=1..8*1", 8, "the factor");
    is_fault("a=1..8*1.5", 8, "the factor");
    is_fault("a=1..8*x", 8, "is no number");
    is_fault("a=0..8*2", 3, "nothing grows from 0");
    is_fault("a=1..8+0", 8, "is 0");
    is_fault("a=1..2000000+1", 3, "more than a million");
    is_fault("a=1..99999999999999999999+1", 6, "ends with no number");
    is_fault("a,b=1:2,3", 10, "fewer values");
    is_fault("a,b=1:2:3", 8, "more values");
    fixture_clear(&f);
    assert_int_equal(vp_grid_read(&f.ctx, &grid, "--vary", TWICE, 2), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_BAD_OPTION, "a varies in two places");
    fixture_clear(&f);
    assert_int_equal(vp_grid_read(&f.ctx, &grid, "--vary", MANY, 2), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_BAD_OPTION, "10^9");
}

/* ---- where ---- */

/* '+' and '-' for the combinations of a=1,2,4 and b=x,fp-8 */
static void holds(const char *text, const char *expected) {
    static const char *const TEXTS[] = {"parallel.tensor=1,2,4", "precision.weights=bf16,fp8"};
    struct vp_setting settings[VP_GRID_FIELDS];
    const struct vp_where *where;
    fixture_clear(&f);
    assert_int_equal(vp_grid_read(&f.ctx, &grid, "--vary", TEXTS, 2), VP_OK);
    assert_int_equal(vp_where_read(&f.ctx, &where, text, &grid, NULL), VP_OK);
    for (uint64_t i = 0; i < grid.total; i++) {
        vp_grid_settings(&grid, settings, i);
        assert_int_equal(vp_where_holds(where, settings) ? '+' : '-', expected[i]);
    }
}

static void expressions(void **state) {
    (void)state;
    holds("parallel.tensor <= 2", "++++--");
    holds("parallel.tensor*2==4", "--++--");
    holds("precision.weights == FP8", "-+-+-+");
    holds("precision.weights != 'bf16' && parallel.tensor > 1", "---+-+");
    holds("parallel.tensor < 2 || parallel.tensor >= 4 && precision.weights==fp8", "++---+");
    holds("!(parallel.tensor % 4 == 0)", "++++--");
    holds("1 + 2 * 3 == 7 && 8k == 8192 && 10 - 2 - 3 == 5 && 8 / 4 / 2 == 1", "++++++");
    holds("parallel.tensor / 0 == 1", "------");
    holds("precision.weights < 3", "------");  /* a text and a number */
    holds("parallel.pipeline == 1", "------"); /* not known without a base */
}

static void is_wrong(const char *text, uint32_t column, const char *words) {
    const struct vp_where *where;
    fixture_clear(&f);
    assert_int_equal(vp_where_read(&f.ctx, &where, text, &grid, NULL), VP_ERR_INPUT);
    assert_int_equal(fixture_expect(&f, VP_D_BAD_OPTION, words)->pos.column, column);
}

static void wrong_expressions(void **state) {
    char deep[300];
    (void)state;
    combinations("a=1,2", NULL);
    is_wrong("a <", 4, "ends where");
    is_wrong("a = 1", 3, "'=='");
    is_wrong("(a < 1", 7, "')' is missing");
    is_wrong("a 1", 3, "an operator is wanted");
    is_wrong("< 1", 1, "a field or a value is wanted");
    is_wrong("serve.contxt < 1", 1, "");
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    fixture_clear(&f);
    const struct vp_where *where;
    assert_int_equal(vp_where_read(&f.ctx, &where, deep, &grid, NULL), VP_ERR_INPUT);
}

/* ---- objectives ---- */

static const char *const COLUMNS[] = {"devices",       "need_likely_bytes", "headroom_bytes",
                                      "serve.context", "parallel.tensor",   "step_likely_ms"};

static const char *objectives(const char *text) {
    struct vp_objectives o;
    struct vp_buf out = {.arena = &f.arena};
    fixture_clear(&f);
    if (vp_objectives_read(&f.ctx, &o, text, COLUMNS, 6) != VP_OK)
        return "wrong";
    for (size_t i = 0; i < o.count; i++)
        vp_buf_printf(&out, "%c%s ", o.item[i].most ? '+' : '-', o.item[i].column);
    return vp_buf_text(&out);
}

static void objectives_by_name(void **state) {
    (void)state;
    assert_string_equal(objectives(NULL),
                        "-devices +headroom_bytes -step_likely_ms +serve.context ");
    assert_string_equal(objectives("need,headroom,context,tensor,step"),
                        "-need_likely_bytes +headroom_bytes +serve.context -parallel.tensor "
                        "-step_likely_ms ");
    assert_string_equal(objectives("need:max,serve.context:min"),
                        "+need_likely_bytes -serve.context ");
    assert_string_equal(objectives("neid"), "wrong");
    assert_string_equal(objectives("need,need_likely_bytes"), "wrong");
    fixture_expect(&f, VP_D_BAD_OPTION, "twice");
    assert_string_equal(objectives("need:up"), "wrong");
    assert_int_equal(fixture_expect(&f, VP_D_BAD_OPTION, "direction")->pos.column, 5);
}

/* Points come one by one or together; the front is that of all of them, in their order. */
static void fronts(void **state) {
    struct vp_objectives o;
    struct vp_front front = {.objectives = &o};
    struct vp_front_point points[] = {{{9, 9}, "a", 1}, {{1, 5}, "b", 1}, {{2, 7}, "c", 1},
                                      {{1, 5}, "d", 1}, {{0, 1}, "e", 1}, {{3, 6}, "f", 1}};
    (void)state;
    vp_objectives_read(&f.ctx, &o, "devices,headroom", COLUMNS, 6);
    for (int step = 1; step <= 6; step += 5) {
        char kept[8] = "";
        for (size_t i = 0; i < 6; i += (size_t)step)
            vp_front_add(&front, &f.arena, points + i, (size_t)step);
        for (size_t i = 0; i < front.count; i++)
            strncat(kept, front.points[i].line, 1);
        assert_string_equal(kept, "abcde");
        vp_front_free(&front);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_and_ranges, begin, end),
        cmocka_unit_test_setup_teardown(products_and_pairs, begin, end),
        cmocka_unit_test_setup_teardown(nonsense, begin, end),
        cmocka_unit_test_setup_teardown(expressions, begin, end),
        cmocka_unit_test_setup_teardown(wrong_expressions, begin, end),
        cmocka_unit_test_setup_teardown(objectives_by_name, begin, end),
        cmocka_unit_test_setup_teardown(fronts, begin, end)};
    return cmocka_run_group_tests_name("vary", tests, NULL, NULL);
}
