/* Tables: quotes, line ends, blank lines; faults with their lines; caps. */
#include "planner/doc/csv.h"

#include <string.h>

#include "fixture.h"

static enum vp_status parse(struct fixture *f, struct vp_csv *out, const char *text) {
    return vp_csv_parse(&f->ctx, out, (struct vp_bytes){text, strlen(text)}, "t.csv");
}

static void plain_rows(void **state) {
    struct fixture f;
    struct vp_csv t;
    (void)state;
    fixture_begin(&f);
    assert_int_equal(parse(&f, &t,
                           "\xef\xbb\xbf"
                           "a,b,c\r\n1,,3\n\n4,5,6"),
                     VP_OK);
    assert_int_equal(t.columns, 3);
    assert_int_equal(t.rows, 2);
    assert_string_equal(t.column[0], "a");
    assert_string_equal(vp_csv_cell(&t, 0, 1), "");
    assert_string_equal(vp_csv_cell(&t, 1, 2), "6");
    assert_int_equal(t.lines[0], 2);
    assert_int_equal(t.lines[1], 4);
    assert_int_equal(vp_csv_column(&t, "c"), 2);
    assert_int_equal(vp_csv_column(&t, "d"), -1);
    fixture_end(&f);
}

static void quoted_fields(void **state) {
    struct fixture f;
    struct vp_csv t;
    (void)state;
    fixture_begin(&f);
    assert_int_equal(parse(&f, &t, "a,b\n\"x, y\",\"say \"\"so\"\"\"\n\"two\nlines\",2\n"), VP_OK);
    assert_int_equal(t.rows, 2);
    assert_string_equal(vp_csv_cell(&t, 0, 0), "x, y");
    assert_string_equal(vp_csv_cell(&t, 0, 1), "say \"so\"");
    assert_string_equal(vp_csv_cell(&t, 1, 0), "two\nlines");
    assert_int_equal(t.lines[1], 3);
    fixture_end(&f);
}

static void one_column_keeps_blank_rows(void **state) {
    struct fixture f;
    struct vp_csv t;
    (void)state;
    fixture_begin(&f);
    assert_int_equal(parse(&f, &t, "a\n1\n\n2\n"), VP_OK);
    assert_int_equal(t.rows, 3);
    fixture_end(&f);
}

static void faults(void **state) {
    static const struct {
        const char *text;
        enum vp_diag_id id;
        const char *words;
        uint32_t line;
    } CASES[] = {
        {"", VP_D_SYNTAX, "name the columns", 1},
        {"\n1,2\n", VP_D_SYNTAX, "name the columns", 1},
        {"a,b,a\n", VP_D_DUPLICATE_KEY, "called a", 1},
        {"a,b\n1,2\n1\n", VP_D_SYNTAX, "1 fields", 3},
        {"a,b\n1,2,3\n", VP_D_SYNTAX, "3 fields", 2},
        {"a,b\n1,\"2\n", VP_D_SYNTAX, "not closed", 2},
        {"a,b\n\"1\"x,2\n", VP_D_SYNTAX, "comma is missing", 2},
        {"a,b\n1,\xff\n", VP_D_SYNTAX, "0xff", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct fixture f;
        struct vp_csv t;
        fixture_begin(&f);
        assert_int_equal(parse(&f, &t, CASES[i].text), VP_ERR_INPUT);
        assert_int_equal(fixture_expect(&f, CASES[i].id, CASES[i].words)->pos.line, CASES[i].line);
        fixture_end(&f);
    }
}

static void too_many_columns(void **state) {
    struct fixture f;
    struct vp_csv t;
    char text[4 * VP_CSV_MAX_COLUMNS + 16];
    size_t n = 0;
    (void)state;
    fixture_begin(&f);
    for (int i = 0; i <= VP_CSV_MAX_COLUMNS; i++, n += 2)
        memcpy(text + n, "x,", 2);
    text[n] = '\0';
    assert_int_equal(parse(&f, &t, text), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_CAP, "256 columns");
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_rows),
        cmocka_unit_test(quoted_fields),
        cmocka_unit_test(one_column_keeps_blank_rows),
        cmocka_unit_test(faults),
        cmocka_unit_test(too_many_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
