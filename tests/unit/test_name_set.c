#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/import/name_set.h"

static enum vp_name_match match(const char *const *entries, size_t count, const char *module) {
    struct vp_arena arena = {.head = NULL};
    struct vp_name_set set = {.names = NULL};
    struct vp_module_name name;
    const char *why;
    for (size_t i = 0; i < count; i++)
        assert_true(vp_name_set_add(&arena, &set, &why, entries[i]));
    vp_name_set_finish(&set);
    assert_true(vp_module_name(&name, module));
    enum vp_name_match result = vp_name_set_match(&set, &name);
    vp_arena_free(&arena);
    return result;
}

static enum vp_name_match one(const char *entry, const char *module) {
    return match(&entry, 1, module);
}

static void names(void **state) {
    (void)state;
    static const char *const LIST[] = {"model.layers.0.mlp.gate", "lm_head", "visual",
                                       "model.layers.1.self_attn", "e_score_correction_bias"};
    assert_int_equal(match(LIST, 5, "lm_head"), VP_NAME_BY_NAME);
    assert_int_equal(match(LIST, 5, "model.layers.0.mlp.gate"), VP_NAME_BY_NAME);
    assert_int_equal(match(LIST, 5, "model.layers.0.mlp.gate_proj"), VP_NAME_OTHER);
    assert_int_equal(match(LIST, 5, "model.layers.10.mlp.gate"), VP_NAME_OTHER);
    assert_int_equal(match(LIST, 5, "model.layers.1.self_attn.q_proj"), VP_NAME_BY_NAME);
    assert_int_equal(match(LIST, 5, "model.visual.blocks.0.attn.qkv"), VP_NAME_BY_NAME);
    assert_int_equal(match(LIST, 5, "layers.0.mlp.gate.e_score_correction_bias"), VP_NAME_BY_NAME);
    assert_int_equal(one("gate", "model.layers.3.block_sparse_moe.gate"), VP_NAME_BY_NAME);
    assert_int_equal(one("", "lm_head"), VP_NAME_OTHER);
}

static void prefixes_and_words_of_families(void **state) {
    (void)state;
    static const char *const SAME[] = {
        "model.layers.7.mlp.experts", "model.language_model.layers.7.mlp.experts",
        "language_model.model.layers.7.mlp.experts", "layers.7.ffn.experts",
        "model.layers.7.block_sparse_moe.experts"};
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 5; j++)
            assert_int_equal(one(SAME[i], SAME[j]), VP_NAME_BY_NAME);
    assert_int_equal(one("language_model.lm_head", "lm_head"), VP_NAME_BY_NAME);
    assert_int_equal(one("model.layers.2.self_attn.qkv_proj", "model.layers.2.self_attn.k_proj"),
                     VP_NAME_BY_NAME);
}

static void globs(void **state) {
    (void)state;
    static const struct {
        const char *glob, *module;
        bool match;
    } CASES[] = {
        {"model.layers.0.self_attn*", "model.layers.0.self_attn.q_proj", true},
        {"model.layers.1.self_attn*", "model.layers.11.self_attn.q_proj", false},
        {"model.layers.*.self_attn", "model.layers.11.self_attn.q_proj", true},
        {"model.layers.*.self_attn", "model.layers.11.mlp.up_proj", false},
        {"language_model.model.layers.1.*", "model.layers.1.mlp.up_proj", true},
        {"language_model.*", "model.layers.1.mlp.up_proj", true},
        {"language_model.*", "lm_head", true},
        {"model.*", "model.layers.1.mlp.up_proj", true},
        {"model.*", "lm_head", false},
        {"*.attn.*", "model.layers.1.self_attn.q_proj", true},
        {"*.ffn.shared_experts.*", "model.layers.1.mlp.shared_experts.up_proj", true},
        {"*.ffn.shared_experts.*", "model.layers.1.mlp.experts.0.up_proj", false},
        {"*layers.1.*", "model.layers.1.mlp.up_proj", true},
        {"*lm_head", "lm_head", true},
        {"model.layers.[0-2].mlp*", "model.layers.2.mlp.up_proj", true},
        {"model.layers.[!0-2].mlp*", "model.layers.2.mlp.up_proj", false},
        {"layers.?.mlp", "model.layers.2.mlp.up_proj", true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        enum vp_name_match expected = CASES[i].match ? VP_NAME_BY_PATTERN : VP_NAME_OTHER;
        if (one(CASES[i].glob, CASES[i].module) != expected)
            fail_msg("%s on %s", CASES[i].glob, CASES[i].module);
    }
}

static void regular_expressions(void **state) {
    (void)state;
    static const struct {
        const char *regex, *module;
        bool match;
    } CASES[] = {
        {"re:.*self_attn.*", "model.layers.0.self_attn.q_proj", true},
        {"re:.*lm_head", "lm_head", true},
        {"re:.*mlp.gate$", "model.layers.0.mlp.gate", true},
        {"re:.*mlp.gate$", "model.layers.0.mlp.gate_proj", false},
        {"re:model\\.layers\\.1\\..*", "model.layers.1.mlp.up_proj", true},
        {"re:model\\.layers\\.1\\..*", "model.layers.11.mlp.up_proj", false},
        {"re:.*\\.mlp\\.(gate|up)_proj", "model.layers.11.mlp.up_proj", true},
        {"re:self_attn", "model.layers.11.self_attn.q_proj", false}, /* anchored */
        {"re:language_model.*(up|down)_proj", "model.layers.1.mlp.up_proj", true},
        {"re:.*block_sparse_moe.gate", "model.layers.1.block_sparse_moe.gate", true},
        {"re:(?!.*experts).*", "model.layers.1.mlp.experts.0.up_proj", false},
        {"re:(?!.*experts).*", "model.layers.1.self_attn.q_proj", true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        enum vp_name_match expected = CASES[i].match ? VP_NAME_BY_PATTERN : VP_NAME_OTHER;
        if (one(CASES[i].regex, CASES[i].module) != expected)
            fail_msg("%s on %s", CASES[i].regex, CASES[i].module);
    }
}

static void what_cannot_be_used(void **state) {
    (void)state;
    struct vp_arena arena = {.head = NULL};
    struct vp_name_set set = {.names = NULL};
    struct vp_module_name name;
    const char *why;
    char text[VP_MODULE_NAME + 1];
    assert_false(vp_name_set_add(&arena, &set, &why, "re:(model"));
    assert_non_null(strstr(why, "missing closing parenthesis"));
    assert_false(vp_name_set_add(&arena, &set, &why, "model.[0-9"));
    memset(text, 'x', VP_MODULE_NAME);
    text[VP_MODULE_NAME] = '\0';
    assert_false(vp_module_name(&name, text));
    text[VP_MODULE_NAME - 1] = '\0';
    assert_false(vp_module_name(&name, text)); /* no room for the prefixes */
    vp_arena_free(&arena);
}

/* Names that grow: "h" becomes "layers". */
static void entries_of_any_length(void **state) {
    (void)state;
    struct vp_arena arena = {.head = NULL};
    struct vp_name_set set = {.names = NULL};
    struct vp_module_name name;
    const char *why;
    char text[1001] = "";
    for (int i = 0; i < 500; i++)
        memcpy(text + 2 * i, "h.", 3);
    for (int i = 0; i < 100; i++)
        assert_true(vp_name_set_add(&arena, &set, &why, text));
    vp_name_set_finish(&set);
    assert_int_equal(strlen(set.names[99]), 500 * 7 - 1);
    assert_true(vp_module_name(&name, "h.1.attn.c_attn"));
    assert_string_equal(name.canonical, "layers.1.self_attn.c_attn");
    assert_int_equal(vp_name_set_match(&set, &name), VP_NAME_OTHER);
    vp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(prefixes_and_words_of_families),
        cmocka_unit_test(globs),
        cmocka_unit_test(regular_expressions),
        cmocka_unit_test(what_cannot_be_used),
        cmocka_unit_test(entries_of_any_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
