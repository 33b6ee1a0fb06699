#include "planner/import/regex.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct vp_regex {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
};

/* PCRE2's memory comes from the arena and goes with it. */
static void *take(size_t n, void *arena) { return vp_arena_alloc(arena, n); }

static void keep(void *block, void *arena) {
    (void)block;
    (void)arena;
}

bool vp_regex_compile(struct vp_arena *arena, const struct vp_regex **out, const char **why,
                      const char *pattern) {
    struct vp_regex *regex = VP_NEW(arena, struct vp_regex);
    pcre2_general_context *memory = pcre2_general_context_create(take, keep, arena);
    pcre2_compile_context *rules = pcre2_compile_context_create(memory);
    int error;
    PCRE2_SIZE where;

    *out = NULL;
    pcre2_set_max_pattern_length(rules, VP_REGEX_MAX_LENGTH);
    pcre2_set_parens_nest_limit(rules, VP_REGEX_MAX_NESTING);
    regex->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C, &error, &where, rules);
    if (!regex->code) {
        char *text = vp_arena_alloc(arena, 256);
        pcre2_get_error_message(error, (PCRE2_UCHAR *)text, 256);
        *why = vp_arena_printf(arena, "%s, at character %zu", text, where + 1);
        return false;
    }
    regex->data = pcre2_match_data_create_from_pattern(regex->code, memory);
    regex->limits = pcre2_match_context_create(memory);
    pcre2_set_match_limit(regex->limits, VP_REGEX_MAX_STEPS);
    *out = regex;
    return true;
}

bool vp_regex_match(const struct vp_regex *regex, const char *text) {
    return pcre2_match(regex->code, (PCRE2_SPTR)text, strlen(text), 0, 0, regex->data,
                       regex->limits) >= 0;
}
