/* The public C API as a program outside the tree would use it. */
#include "tests/unit/fixture.h"

#include <string.h>

#include "include/vramplan.h"

static void plans(void **state) {
    (void)state;
    struct vramplan *vp = vramplan_new("profiles");
    const char *settings[] = {"hardware.gpu=mi300x", "serve.context=32768"};
    const char *json = NULL;
    assert_non_null(vp);
    assert_int_equal(vramplan_plan(vp, "llama-3.1-8b", settings, 2, &json), 0);
    assert_non_null(strstr(json, "\"verdict\": \"fits\""));
    assert_non_null(strstr(json, "\"total\": 8030261248"));
    /* the context serves again, and an answer that is no stays an answer */
    assert_int_equal(vramplan_plan(vp, "examples.yaml#mi210-30b-16k", NULL, 0, &json), 1);
    assert_non_null(strstr(json, "\"verdict\": \"does-not-fit\""));
    vramplan_free(vp);
}

static void tells_what_is_wrong(void **state) {
    (void)state;
    struct vramplan *vp = vramplan_new("profiles");
    const char *no_value[] = {"hardware.gpu"}, *no_card[] = {"hardware.gpu=mi300y"};
    const char *json = NULL;
    assert_int_equal(vramplan_plan(vp, "llama-3.1-8b", no_value, 1, &json), 2);
    assert_non_null(strstr(json, "'hardware.gpu' is not field=value"));
    assert_int_equal(vramplan_plan(vp, "llama-3.1-8b", no_card, 1, &json), 2);
    assert_non_null(strstr(json, "VP301"));
    assert_int_equal(vramplan_plan(vp, "no-such-model", NULL, 0, &json), 2);
    assert_non_null(strstr(json, "\"verdict\": null"));
    vramplan_free(vp);
    vramplan_free(NULL);
}

static void contexts_are_independent(void **state) {
    (void)state;
    struct vramplan *a = vramplan_new("profiles"), *b = vramplan_new("profiles");
    const char *settings[] = {"hardware.gpu=h100-sxm"}, *first = NULL, *second = NULL;
    vramplan_plan(a, "qwen3-8b", settings, 1, &first);
    vramplan_plan(b, "qwen3-8b", settings, 1, &second);
    assert_string_equal(first, second);
    vramplan_free(b);
    assert_non_null(strstr(first, "8190735360"));
    vramplan_free(a);
    assert_string_equal(vramplan_version(), VP_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans),
        cmocka_unit_test(tells_what_is_wrong),
        cmocka_unit_test(contexts_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
