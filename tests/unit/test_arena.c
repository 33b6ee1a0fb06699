#include "tests/unit/fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void allocations_are_zeroed_and_aligned(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    for (size_t n = 0; n < 300; n++) {
        unsigned char *p = vp_arena_alloc(&arena, n);
        assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xAA, n);
    }
    vp_arena_free(&arena);
    assert_int_equal(arena.total_bytes, 0);
}

static void large_blocks_get_their_own_chunk(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    char *small = vp_arena_text(&arena, "kept", 4);
    char *large = vp_arena_alloc(&arena, 10 * 1024 * 1024);
    large[10 * 1024 * 1024 - 1] = 'x';
    assert_string_equal(small, "kept");
    vp_arena_free(&arena);
}

static void a_rewind_gives_back_and_clears(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    char *before = vp_arena_text(&arena, "before", 6);
    size_t bytes = arena.total_bytes;
    struct vp_arena_mark mark = vp_arena_mark(&arena);
    char *first = vp_arena_text(&arena, "after", 5);
    for (int i = 0; i < 100; i++)
        vp_arena_alloc(&arena, 100000);
    vp_arena_rewind(&arena, mark);
    assert_int_equal(arena.total_bytes, bytes);
    assert_string_equal(before, "before");
    char *again = vp_arena_alloc(&arena, 6);
    assert_ptr_equal(again, first);
    assert_int_equal(again[0], 0);
    vp_arena_free(&arena);
}

static void a_rewind_to_an_empty_arena(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    struct vp_arena_mark mark = vp_arena_mark(&arena);
    vp_arena_alloc(&arena, 1);
    vp_arena_rewind(&arena, mark);
    assert_int_equal(arena.total_bytes, 0);
    assert_non_null(vp_arena_alloc(&arena, 1));
    vp_arena_free(&arena);
}

static void printf_and_text(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    assert_string_equal(vp_arena_printf(&arena, "%s-%d", "a", 7), "a-7");
    assert_string_equal(vp_arena_text(&arena, "abcdef", 3), "abc");
    assert_string_equal(vp_arena_text(&arena, NULL, 0), "");
    vp_arena_free(&arena);
}

/* Some formats are written here, the others by the system: the same text. */
static void printf_is_the_system_s(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    char text[1000], longer[400];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
#define CHECK(...)                                                                                 \
    do {                                                                                           \
        snprintf(text, sizeof text, __VA_ARGS__);                                                  \
        assert_string_equal(vp_arena_printf(&arena, __VA_ARGS__), text);                           \
    } while (0)
    CHECK("a");
    CHECK("%s%s|%s", "", "b", "c d");
    CHECK("%u %u", 0U, UINT32_MAX);
    CHECK("%" PRIu64 ":%" PRIu64 "/%" PRIu64, UINT64_C(0), UINT64_MAX, UINT64_C(10));
    CHECK("%d %d %d", 0, INT32_MAX, INT32_MIN);
    CHECK("%s %d %s", "before", -7, "behind");
    CHECK("%5.1f%% of %-8s|%08x|%.2s|%lld|%c", 12.34, "ab", 255U, "abc", -1LL, 'z');
    CHECK("%s %u %s", longer, 7U, longer);
    CHECK("%.255s", longer);
    CHECK("%.256s%s", longer, "");
#undef CHECK
    vp_arena_free(&arena);
}

static void without_memory_control_goes_to_the_owner(void **state) {
    (void)state;
    struct vp_arena arena = {.take = failing_take(2)};
    jmp_buf oom;
    arena.oom = &oom;
    if (setjmp(oom) == 0) {
        vp_arena_alloc(&arena, 1);
        vp_arena_alloc(&arena, 1 << 20);
        fail();
    }
    vp_arena_free(&arena);
}

static void expect_no_memory(size_t count, size_t size) {
    struct vp_arena arena = {0};
    jmp_buf oom;
    arena.oom = &oom;
    if (setjmp(oom) == 0) {
        vp_arena_array(&arena, count, size);
        fail();
    }
    vp_arena_free(&arena);
}

static void an_overflowing_array_counts_as_no_memory(void **state) {
    (void)state;
    expect_no_memory(SIZE_MAX, 2);
    expect_no_memory(SIZE_MAX, 1);
    expect_no_memory(SIZE_MAX / 2, 2);
}

static void diagnostics_are_counted_beyond_their_room(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    struct vp_pos pos = {"file.yaml", 3, 4};
    vp_diag_hint(&f.diags, "for nobody");
    vp_diag_add(&f.diags, VP_D_SYNTAX, &pos, "number %d", 1);
    vp_diag_hint(&f.diags, "try %s", "this");
    vp_diag_add(&f.diags, VP_D_HEADER_ONLY, NULL, "a warning");
    for (int i = 2; i < VP_DIAG_MAX + 20; i++)
        vp_diag_add(&f.diags, VP_D_SYNTAX, NULL, "number %d", i);
    vp_diag_hint(&f.diags, "for a dropped one");
    assert_int_equal(f.diags.count, VP_DIAG_MAX);
    assert_int_equal(f.diags.dropped, 20);
    assert_int_equal(f.diags.errors, VP_DIAG_MAX + 19);
    assert_string_equal(f.diags.items[0].message, "number 1");
    assert_string_equal(f.diags.items[0].hint, "try this");
    assert_int_equal(f.diags.items[0].pos.line, 3);
    assert_null(f.diags.items[1].pos.file);
    assert_null(f.diags.items[VP_DIAG_MAX - 1].hint);
    fixture_end(&f);
}

static void every_diagnostic_has_a_code_of_its_own(void **state) {
    (void)state;
    for (enum vp_diag_id i = (enum vp_diag_id)0; i < VP_DIAG_COUNT; i++) {
        assert_int_equal(strlen(vp_diag_code(i)), 5);
        assert_true(strlen(vp_diag_meaning(i)) > 0);
        for (enum vp_diag_id j = (enum vp_diag_id)0; j < i; j++)
            assert_string_not_equal(vp_diag_code(i), vp_diag_code(j));
    }
    assert_string_equal(vp_severity_name(vp_diag_severity(VP_D_SYNTAX)), "error");
    assert_string_equal(vp_severity_name(vp_diag_severity(VP_D_HEADER_ONLY)), "warning");
    assert_string_equal(vp_severity_name(vp_diag_severity(VP_D_KV_REPLICATED)), "info");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_zeroed_and_aligned),
        cmocka_unit_test(large_blocks_get_their_own_chunk),
        cmocka_unit_test(a_rewind_gives_back_and_clears),
        cmocka_unit_test(a_rewind_to_an_empty_arena),
        cmocka_unit_test(printf_and_text),
        cmocka_unit_test(printf_is_the_system_s),
        cmocka_unit_test(without_memory_control_goes_to_the_owner),
        cmocka_unit_test(an_overflowing_array_counts_as_no_memory),
        cmocka_unit_test(diagnostics_are_counted_beyond_their_room),
        cmocka_unit_test(every_diagnostic_has_a_code_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
