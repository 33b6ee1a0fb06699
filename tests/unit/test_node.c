#include "tests/unit/fixture.h"

#include <math.h>
#include <string.h>

#include "planner/doc/node.h"
#include "planner/doc/yaml.h"

static int setup(void **state) {
    static struct fixture f;
    fixture_begin(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture_end(*state);
    return 0;
}

static struct vp_node *yaml(struct fixture *f, const char *text) {
    struct vp_node *node;
    struct vp_bytes bytes = {text, strlen(text)};
    assert_int_equal(vp_yaml_read(&f->ctx, &node, bytes, "test.yaml"), VP_OK);
    return node;
}

static bool u64_of(uint64_t *out, const char *text) {
    struct vp_node node = {.kind = vp_yaml_scalar_kind(text), .text = text};
    return vp_node_u64(out, &node);
}

static void whole_numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t v;
    } GOOD[] = {
        {"0", 0},
        {"7", 7},
        {"+7", 7},
        {"-0", 0},
        {"1e6", 1000000},
        {"1.5e3", 1500},
        {"4096.0", 4096},
        {"-0.0", 0},
        {"0x1F", 31},
        {"0o17", 15},
        {"007", 7},
        {"9007199254740991e0", 9007199254740991},
        {"18446744073709551615", UINT64_MAX},
        {"0xFFFFFFFFFFFFFFFF", UINT64_MAX},
    };
    static const char *const BAD[] = {
        "-1",
        "1.5",
        "18446744073709551616",
        "0x10000000000000000",
        "1e300",
        "9007199254740992e0",
        ".inf",
        "NaN",
        "text",
        "null",
        "true",
        "-1e3",
        "1e-3",
        "",
        "0o2000000000000000000000",
    };
    uint64_t v;
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        assert_true(u64_of(&v, GOOD[i].text));
        assert_int_equal(v, GOOD[i].v);
    }
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
        assert_false(u64_of(&v, BAD[i]));
    assert_false(vp_node_u64(&v, NULL));
    struct vp_node quoted = {.kind = VP_NODE_TEXT, .text = "7"};
    assert_false(vp_node_u64(&v, &quoted));
}

static double real_of(const char *text) {
    double v;
    struct vp_node node = {.kind = vp_yaml_scalar_kind(text), .text = text};
    assert_true(vp_node_real(&v, &node));
    return v;
}

static void numbers(void **state) {
    (void)state;
    double v;
    assert_true(real_of("0.5") == 0.5);
    assert_true(real_of("3") == 3);
    assert_true(real_of("-3") == -3);
    assert_true(real_of("0x10") == 16);
    assert_true(real_of("99999999999999999999") == 1e20);
    assert_true(isinf(real_of(".inf")) && real_of("Infinity") > 0);
    assert_true(isinf(real_of("-.INF")) && real_of("-Infinity") < 0);
    assert_true(isnan(real_of("NaN")) && isnan(real_of(".nan")));
    assert_false(vp_node_real(&v, NULL));
    struct vp_node huge = {.kind = VP_NODE_REAL, .text = "1e999"};
    assert_false(vp_node_real(&v, &huge));
    struct vp_node text = {.kind = VP_NODE_TEXT, .text = "1"};
    assert_false(vp_node_real(&v, &text));
    huge = (struct vp_node){.kind = VP_NODE_INT, .text = "0x10000000000000000"};
    assert_false(vp_node_real(&v, &huge));
}

static void the_other_scalars(void **state) {
    struct fixture *f = *state;
    bool b;
    struct vp_node *map = yaml(f, "{t: true, f: FALSE, n: null, x: text, l: [1], m: {}}");
    assert_true(vp_node_bool(&b, vp_node_get(map, "t")) && b);
    assert_true(vp_node_bool(&b, vp_node_get(map, "f")) && !b);
    assert_false(vp_node_bool(&b, vp_node_get(map, "x")));
    assert_false(vp_node_bool(&b, NULL));
    assert_true(vp_node_is_null(vp_node_get(map, "n")));
    assert_true(vp_node_is_null(vp_node_get(map, "missing")));
    assert_false(vp_node_is_null(vp_node_get(map, "x")));
    assert_string_equal(vp_node_text(vp_node_get(map, "x")), "text");
    assert_string_equal(vp_node_text(vp_node_get(map, "t")), "true");
    assert_null(vp_node_text(vp_node_get(map, "l")));
    assert_null(vp_node_text(NULL));
    assert_null(vp_node_get(vp_node_get(map, "l"), "x"));
    assert_null(vp_node_get(NULL, "x"));
    assert_false(vp_node_is_scalar(map));
    assert_string_equal(vp_node_kind_name(map->kind), "a map");
    assert_string_equal(vp_node_kind_name(VP_NODE_NULL), "null");
    assert_string_equal(vp_node_kind_name(VP_NODE_BOOL), "true or false");
    assert_string_equal(vp_node_kind_name(VP_NODE_INT), "an integer");
    assert_string_equal(vp_node_kind_name(VP_NODE_REAL), "a number");
    assert_string_equal(vp_node_kind_name(VP_NODE_TEXT), "text");
    assert_string_equal(vp_node_kind_name(VP_NODE_LIST), "a list");
}

static void setting_keys(void **state) {
    struct fixture *f = *state;
    struct vp_pos pos = {"here", 1, 2}, other = {"there", 3, 4};
    struct vp_node *map = vp_node_new(&f->ctx, VP_NODE_MAP, pos);
    for (int i = 0; i < 20; i++)
        vp_node_set(&f->ctx, map, vp_arena_printf(&f->arena, "k%d", i), pos,
                    vp_node_scalar(&f->ctx, VP_NODE_INT, "1", pos));
    vp_node_set(&f->ctx, map, "k3", other, vp_node_scalar(&f->ctx, VP_NODE_TEXT, "x", other));
    assert_int_equal(map->count, 20);
    assert_string_equal(map->keys[3], "k3");
    assert_string_equal(vp_node_text(map->items[3]), "x");
    assert_int_equal(map->key_pos[3].line, 3);
    assert_string_equal(vp_node_text(vp_node_get(map, "k19")), "1");
    assert_string_equal(vp_node_new(&f->ctx, VP_NODE_NULL, pos)->text, "");
}

static void merging(void **state) {
    struct fixture *f = *state;
    struct vp_node *base = yaml(f, "a: 1\nb: {c: 1, d: [1, 2], e: {x: 1}}\n");
    struct vp_node *over = yaml(f, "b: {d: [3], e: {y: 2}, g: 4}\nh: {i: 5}\na: {z: 6}\n");
    struct vp_node *merged = vp_node_merge(&f->ctx, base, over), *b = vp_node_get(merged, "b");
    assert_int_equal(merged->count, 3);
    assert_int_equal(vp_node_get(merged, "a")->kind, VP_NODE_MAP);
    assert_int_equal(b->count, 4);
    assert_int_equal(vp_node_get(b, "d")->count, 1);
    assert_string_equal(vp_node_text(vp_node_get(vp_node_get(b, "e"), "x")), "1");
    assert_string_equal(vp_node_text(vp_node_get(vp_node_get(b, "e"), "y")), "2");
    assert_string_equal(merged->keys[2], "h");

    /* neither side changes, also when the result is changed */
    struct vp_pos pos = {0};
    vp_node_set(&f->ctx, vp_node_get(b, "e"), "x", pos, vp_node_new(&f->ctx, VP_NODE_NULL, pos));
    vp_node_set(&f->ctx, vp_node_get(merged, "h"), "i", pos,
                vp_node_new(&f->ctx, VP_NODE_NULL, pos));
    assert_string_equal(vp_node_text(vp_node_get(vp_node_get(vp_node_get(base, "b"), "e"), "x")),
                        "1");
    assert_string_equal(vp_node_text(vp_node_get(vp_node_get(over, "h"), "i")), "5");
    assert_int_equal(base->count, 2);
    assert_int_equal(vp_node_get(base, "b")->count, 3);
}

static void merging_with_nothing(void **state) {
    struct fixture *f = *state;
    struct vp_node *map = yaml(f, "{a: [1]}"), *list = yaml(f, "[1, 2]");
    assert_null(vp_node_merge(&f->ctx, NULL, NULL));
    assert_int_equal(vp_node_merge(&f->ctx, map, NULL)->count, 1);
    assert_int_equal(vp_node_merge(&f->ctx, NULL, map)->count, 1);
    assert_int_equal(vp_node_merge(&f->ctx, map, list)->kind, VP_NODE_LIST);
    assert_int_equal(vp_node_merge(&f->ctx, list, map)->kind, VP_NODE_MAP);
    assert_int_equal(vp_node_merge(&f->ctx, yaml(f, "{}"), yaml(f, "{}"))->count, 0);
    assert_int_equal(vp_node_merge(&f->ctx, yaml(f, "{}"), map)->count, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(numbers),
        cmocka_unit_test_setup_teardown(the_other_scalars, setup, teardown),
        cmocka_unit_test_setup_teardown(setting_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(merging, setup, teardown),
        cmocka_unit_test_setup_teardown(merging_with_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
