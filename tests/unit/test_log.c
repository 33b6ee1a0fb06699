/* Patterns of log lines, the table of them, the reader's caps and failing reads. What whole logs
 * say is tested by tests/cli/import-log.t and doctor.t. */
#include "planner/import/log_match.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "planner/import/log_measured.h"
#include "planner/import/log_reader.h"
#include "tests/unit/fixture.h"

/* ---- patterns ---- */

static struct vp_log_capture got[VP_LOG_CAPTURES];
static size_t count, end;

static bool match(const char *pattern, const char *line) {
    return vp_log_match(got, &count, &end, pattern, line, strlen(line));
}

static void test_amounts(void **state) {
    static const struct {
        const char *text;
        int64_t bytes, step;
    } CASES[] = {{"14.99 GiB", 16095389942, 10737418},
                 {"14.99GB", 16095389942, 10737418},
                 {"24077MiB", 25246564352, 1048576},
                 {"0 bytes", 0, 1},
                 {"512 KiB", 524288, 1024},
                 {"-0.25 GiB", -268435456, 10737418},
                 {"1.5 TiB", 1649267441664, 109951162777}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char line[80];
        snprintf(line, sizeof line, "it took %s of memory", CASES[i].text);
        assert_true(match("took %b", line));
        assert_int_equal(count, 1);
        assert_int_equal(got[0].value, CASES[i].bytes);
        assert_int_equal(got[0].step, CASES[i].step);
    }
    assert_false(match("took %b", "it took 14.99"));
    assert_false(match("took %b", "it took 4 seconds"));
    assert_false(match("took %b", "it took GiB"));
    assert_true(match("took %g", "it took 2"));
    assert_int_equal(got[0].value, INT64_C(2) << 30);
}

static void test_numbers(void **state) {
    (void)state;
    assert_true(match("size: %n tokens", "size: 1,188,816 tokens"));
    assert_int_equal(got[0].value, 1188816);
    assert_true(match("%n, %n", "a 12, 345, 678"));
    assert_int_equal(got[0].value, 12);
    assert_int_equal(got[1].value, 345);
    assert_true(match("is %d of", "is 0.85 of"));
    assert_int_equal(got[0].value, 850000000);
    assert_true(match("is %n", "is 999999999999999999"));
    assert_true(match("is %b", "is 99999999 TiB") == false || got[0].value > 0);
}

static void test_words(void **state) {
    (void)state;
    assert_true(match("version %w", "server version 0.19.0 (main)"));
    assert_int_equal(got[0].n, 6);
    assert_true(match("args: %r", "args: {'a': 1, 'b': [2]}"));
    assert_int_equal(got[0].n, 18);
    assert_true(match("^| %i %* %a/NPS%n |", "|   3       0       7        CPX/NPS4 | 0 %"));
    assert_int_equal(got[0].value, 3);
    assert_memory_equal(got[1].text, "CPX", 3);
    assert_false(match("^abc", "xabc"));
    assert_false(match("abc$", "abcx"));
    assert_true(match("a %* d", "a b c d"));
    assert_false(match("took %w", "took "));
}

static void test_skip_is_short(void **state) {
    char line[600];
    (void)state;
    memset(line, 'x', sizeof line);
    memcpy(line, "begin", 5);
    memcpy(line + 590, "endofit", 8);
    assert_false(match("begin%*endofit", line));
    memcpy(line + 200, "endofit", 8);
    assert_true(match("begin%*endofit", line));
}

static void test_matcher(void **state) {
    static const char *const PATTERNS[] = {"Model loading took %b", "KV cache size: %n", "took %b"};
    struct vp_arena arena = {0};
    size_t rows[4];
    (void)state;
    struct vp_log_matcher *m = vp_log_matcher_make(&arena, PATTERNS, 3);
    const char *line = "INFO Model loading took 14.99 GiB";
    assert_int_equal(vp_log_matcher_find(m, rows, 4, line, strlen(line)), 2);
    assert_int_equal(rows[0], 0);
    assert_int_equal(rows[1], 2);
    assert_int_equal(vp_log_matcher_find(m, rows, 1, line, strlen(line)), 1);
    assert_int_equal(vp_log_matcher_find(m, rows, 4, "to", 2), 0);
    vp_arena_free(&arena);
}

/* A pattern is only tried where its longest word stands: each must have one of three letters. */
static void test_every_row_can_match(void **state) {
    static const char *const PATTERNS[] = {
#define X(engine, action, target, priority, ...) X_(__VA_ARGS__, 0)
#define X_(pattern, ...) pattern,
#include "planner/import/log_lines.def"
#undef X_
#undef X
    };
    (void)state;
    for (size_t i = 0; i < sizeof PATTERNS / sizeof *PATTERNS; i++) {
        size_t longest = 0;
        for (const char *p = PATTERNS[i]; *p;) {
            size_t n = strcspn(p, " %^$");
            longest = n > longest ? n : longest;
            p += n;
            p += *p == '%' && p[1] ? 2 : *p != '\0';
        }
        if (longest < 3)
            print_message("%s\n", PATTERNS[i]);
        /* details are tried on a message's text without looking for their words first */
        assert_true(longest >= 3 || strstr(PATTERNS[i], "%b"));
    }
}

/* ---- the reader ---- */

static const char *text;
static size_t text_at, fail_after;

static long read_text(int fd, void *buffer, size_t n) {
    size_t left = strlen(text) - text_at;
    (void)fd;
    if (fail_after && text_at >= fail_after) {
        errno = EIO;
        return -1;
    }
    n = n < left ? n : left;
    n = n < 7 ? n : 7;
    memcpy(buffer, text + text_at, n);
    text_at += n;
    return (long)n;
}

static int stat_text(const char *path, enum vp_file_kind *kind, uint64_t *size) {
    (void)path;
    *kind = VP_FILE_REGULAR;
    *size = 0;
    return 0;
}

static int open_text(const char *path) {
    (void)path;
    text_at = 0;
    return 9;
}

static int close_text(int fd) {
    (void)fd;
    return 0;
}

static enum vp_status read_log(struct vp_arena *arena, struct vp_run_log **log) {
    static struct vp_io io;
    struct vp_diags *diags = VP_NEW(arena, struct vp_diags);
    struct vp_ctx ctx = {.arena = arena, .diags = diags, .io = &io};
    io = vp_io_posix;
    io.open = open_text;
    io.read = read_text;
    io.close = close_text;
    io.stat = stat_text;
    diags->arena = arena;
    enum vp_status status = vp_log_read(&ctx, log, "x.log");
    assert_int_equal(status != VP_OK, diags->errors > 0);
    return status;
}

static void test_reading(void **state) {
    struct vp_arena arena = {0};
    struct vp_run_log *log;
    (void)state;
    text =
        "vLLM API server version 0.19.0\nModel loading took 2.5 GiB\nGPU KV cache size: 10 tokens";
    fail_after = 0;
    assert_int_equal(read_log(&arena, &log), VP_OK);
    assert_int_equal(log->lines, 3);
    assert_int_equal(log->matched, 3);
    assert_true(log->start.complete && log->start.known);
    assert_string_equal(log->start.version, "0.19.0");
    assert_int_equal(vp_log_find(&log->start, VP_LOG_WEIGHTS, NULL)->value, INT64_C(5) << 29);
    assert_null(vp_log_find(&log->start, VP_LOG_GRAPHS, NULL));
    fail_after = 40;
    assert_int_equal(read_log(&arena, &log), VP_ERR_ENV);
    text = "";
    fail_after = 0;
    assert_int_equal(read_log(&arena, &log), VP_OK);
    assert_int_equal(log->lines, 0);
    vp_arena_free(&arena);
}

static void test_caps(void **state) {
    struct vp_arena arena = {0};
    struct vp_run_log *log;
    char *many = vp_arena_alloc(&arena, 400 * 64), *p = many;
    (void)state;
    for (int i = 0; i < 400; i++)
        p += sprintf(p, "load_tensors: ROCm%d model buffer size = 1.00 MiB\n", i);
    text = many;
    fail_after = 0;
    assert_int_equal(read_log(&arena, &log), VP_OK);
    assert_int_equal(log->start.facts, VP_LOG_MAX_FACTS);
    assert_int_equal(log->start.facts_dropped, 400 - VP_LOG_MAX_FACTS);
    for (p = many, many[0] = '\0'; p < many + 400 * 60;)
        p += sprintf(p, "CUDA out of memory. Tried to allocate %d.00 MiB.\n", (int)(p - many) + 1);
    assert_int_equal(read_log(&arena, &log), VP_OK);
    assert_int_equal(log->messages, VP_LOG_MAX_MESSAGES);
    assert_true(log->messages_dropped > 300);
    assert_int_equal(log->message[0].line, 1);
    assert_int_equal(log->message[VP_LOG_MAX_MESSAGES - 1].line, log->lines);
    vp_arena_free(&arena);
}

static void test_arguments(void **state) {
    struct vp_arena arena = {0};
    struct vp_log_start *start = VP_NEW(&arena, struct vp_log_start);
    (void)state;
    strcpy(start->args,
           "{'model': 'a/b', 'x': None, 'list': [1, 'max_model_len=5'], 'flag': True}\n"
           "model='c', max_model_len=8192, dtype=torch.bfloat16, s='it\\'s, so'\n");
    assert_string_equal(vp_log_argument(&arena, start, "model"), "a/b");
    assert_string_equal(vp_log_argument(&arena, start, "max_model_len"), "8192");
    assert_string_equal(vp_log_argument(&arena, start, "dtype"), "bfloat16");
    assert_string_equal(vp_log_argument(&arena, start, "flag"), "true");
    assert_null(vp_log_argument(&arena, start, "x"));
    assert_null(vp_log_argument(&arena, start, "list"));
    assert_null(vp_log_argument(&arena, start, "nothing"));
    vp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amounts),  cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_words),    cmocka_unit_test(test_skip_is_short),
        cmocka_unit_test(test_matcher),  cmocka_unit_test(test_every_row_can_match),
        cmocka_unit_test(test_reading),  cmocka_unit_test(test_caps),
        cmocka_unit_test(test_arguments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
