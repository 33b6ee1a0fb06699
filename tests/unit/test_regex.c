#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/import/regex.h"

static bool matches(const char *pattern, const char *text) {
    struct vp_arena arena = {.head = NULL};
    const struct vp_regex *regex;
    const char *why;
    if (!vp_regex_compile(&arena, &regex, &why, pattern))
        fail_msg("%s: %s", pattern, why);
    bool result = vp_regex_match(regex, text);
    vp_arena_free(&arena);
    return result;
}

/* What Python's re.match says; made with it. */
static const struct {
    const char *pattern, *text;
    bool match;
} CASES[] = {
    {"", "", true},
    {"", "abc", true},
    {"abc", "abcd", true},
    {"abc", "xabc", false},
    {"a.c", "abc", true},
    {"a\\.c", "abc", false},
    {"a\\.c", "a.c", true},
    {"a$", "ab", false},
    {"a$", "a", true},
    {"^a", "a", true},
    {"b|a", "abc", true},
    {"(a|bc)d", "bcd", true},
    {"(?:a|bc)d", "bd", false},
    {"(?P<name>a|b)+c", "abac", true},
    {"(a|)b", "b", true},
    {"a*b", "aaab", true},
    {"a*b", "b", true},
    {"a+b", "b", false},
    {"a?b", "aab", false},
    {"a*?b", "aaab", true},
    {"(ab)*c", "ababc", true},
    {"(a*)*b", "aaac", false},
    {"(a*)+$", "aaa", true},
    {"a{2}b", "aab", true},
    {"a{2}b", "aaab", false},
    {"a{2,}b", "aaaab", true},
    {"a{1,3}b", "aaaab", false},
    {"a{x}", "a{x}", true},
    {"[abc]+d", "cabd", true},
    {"[^abc]d", "ad", false},
    {"[a-c0-2]+$", "a1c", true},
    {"[]a]+$", "]a", true},
    {"[a\\]]+$", "a]", true},
    {"[a-]+$", "a-", true},
    {"[\\d_]+$", "12_", true},
    {"\\d+\\.\\w+", "12.mlp", true},
    {"\\D", "1", false},
    {"\\s", " ", true},
    {"\\S+$", "a b", false},
    {"a\\b.b", "a.b", true},
    {"a\\bb", "ab", false},
    {"a\\Bb", "ab", true},
    {"(?=.*proj).*mlp", "mlp.gate_proj", true},
    {"(?!.*vision).*proj", "vision.q_proj", false},
    {"(?!.*vision).*proj", "model.q_proj", true},
    {".*mlp\\.(?!gate$).*", "model.mlp.gate", false},
    {".*mlp\\.(?!gate$).*", "model.mlp.gate_proj", true},
    {"\\Aa\\Z", "a", true},
    /* from checkpoints */
    {".*self_attn.*", "model.layers.3.self_attn.q_proj", true},
    {".*mlp\\.(gate|up|gate_up|down)_proj.*", "model.layers.0.mlp.gate_proj", true},
    {".*mlp\\.(gate|up|gate_up|down)_proj.*", "model.layers.3.mlp.experts.0.gate_proj", false},
    {"model\\.layers\\.(?:[0-9]|1[0-1])\\.", "model.layers.11.mlp", true},
    {"model\\.layers\\.(?:[0-9]|1[0-1])\\.", "model.layers.12.mlp", false},
};

static void like_python(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (matches(CASES[i].pattern, CASES[i].text) != CASES[i].match)
            fail_msg("%s on %s: expected %d", CASES[i].pattern, CASES[i].text, CASES[i].match);
}

static void what_is_refused(void **state) {
    (void)state;
    static const char *const BAD[] = {"(a",  "a)",    "[a",     "*a",       "a\\",
                                      "\\1", "[z-a]", "a{3,2}", "(?P=name)"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct vp_arena arena = {.head = NULL};
        const struct vp_regex *regex;
        const char *why;
        if (vp_regex_compile(&arena, &regex, &why, BAD[i]))
            fail_msg("%s was accepted", BAD[i]);
        assert_null(regex);
        assert_non_null(why);
        vp_arena_free(&arena);
    }
}

static void hostile_patterns_end_soon(void **state) {
    (void)state;
    struct vp_arena arena = {.head = NULL};
    const struct vp_regex *regex;
    const char *why;
    char text[2001], nested[201], *lengthy = vp_arena_alloc(&arena, VP_REGEX_MAX_LENGTH + 2);
    memset(nested, '(', 200);
    nested[200] = '\0';
    assert_false(vp_regex_compile(&arena, &regex, &why, nested));
    memset(lengthy, 'a', VP_REGEX_MAX_LENGTH + 1);
    assert_false(vp_regex_compile(&arena, &regex, &why, lengthy));
    /* unbounded, backtracking would take 2^2000 steps */
    memset(text, 'a', 2000);
    text[2000] = '\0';
    assert_false(matches("(a|a)*(a|a)*(a*)*b", text));
    vp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_python),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(hostile_patterns_end_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
