/* The list of what is measured, and what the measuring process tells when a call of the device
 * fails: it always comes to an end, and every item is a figure or a reason. */
#include "tests/unit/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/bench.h"
#include "probe/quant_error.h"

static struct vp_bench_list list;

static void lists(void **state) {
    (void)state;
    for (int host = 0; host < 2; host++)
        for (int quick = 0; quick < 2; quick++) {
            struct vp_bench_options options = {.host = host, .quick = quick};
            uint32_t kinds = 0;
            vp_bench_list(&list, &options);
            assert_true(list.count > 20 && list.count < VP_BENCH_ITEMS);
            for (uint32_t i = 0; i < list.count; i++) {
                const struct vp_bench_item *item = &list.item[i];
                char text[160];
                kinds |= 1U << item->kind;
                assert_true(item->kind < VP_BENCH_KINDS && item->name);
                vp_bench_describe(text, sizeof text, item);
                assert_true(*text);
                if (item->kind == VP_BENCH_GEMM || item->kind == VP_BENCH_STREAM)
                    assert_true(vp_bench_traffic(item) > 0);
            }
            assert_false(kinds >> VP_BENCH_BLOCK & 1); /* only when asked for */
            options.only = 1U << VP_BENCH_BLOCK;
            vp_bench_list(&list, &options);
            assert_int_equal(list.count, 6);
        }
}

/* A quick run measures fewer shapes of the same range, so that its forms reach as far. */
static void quick_has_the_range(void **state) {
    (void)state;
    uint64_t most[2][3] = {{0}}, least[2][3];
    memset(least, 0xff, sizeof least);
    for (int quick = 0; quick < 2; quick++) {
        const struct vp_bench_options options = {
            .host = true, .quick = quick, .only = 1U << VP_BENCH_GEMM};
        vp_bench_list(&list, &options);
        for (uint32_t i = 0; i < list.count; i++) {
            const uint64_t size[] = {list.item[i].m, list.item[i].n, list.item[i].k};
            for (int d = 0; d < 3; d++) {
                most[quick][d] = size[d] > most[quick][d] ? size[d] : most[quick][d];
                least[quick][d] = size[d] < least[quick][d] ? size[d] : least[quick][d];
            }
        }
    }
    assert_memory_equal(most[0], most[1], sizeof most[0]);
    assert_memory_equal(least[0], least[1], sizeof least[0]);
}

static void traffic(void **state) {
    (void)state;
    struct vp_bench_item item = {.kernel = VP_KERNEL_TRIAD, .n = 1000};
    assert_int_equal(vp_bench_traffic(&item), 12000);
    item = (struct vp_bench_item){.kernel = VP_KERNEL_LAYERNORM_GELU, .m = 100, .n = 1000};
    uint64_t fused = vp_bench_traffic(&item);
    assert_int_equal(fused, 4 * 100 * 1000 + 4 * 1000);
    item.kernel = VP_KERNEL_LAYERNORM;
    item.chain = VP_CHAIN_NORM_GELU;
    assert_int_equal(vp_bench_traffic(&item), fused + 4 * 100 * 1000); /* written and read */
}

/* ---- a device that fails ---- */

static struct { uint32_t begun, samples, notes, fatal, ended; } told;

static void tell(int fd, const struct vp_record *record) {
    (void)fd;
    told.begun += record->kind == VP_RECORD_BEGIN;
    told.samples += record->kind == VP_RECORD_SAMPLE;
    told.notes += record->kind == VP_RECORD_NOTE;
    told.fatal += record->kind == VP_RECORD_FATAL;
    told.ended += record->kind == VP_RECORD_END;
    if (record->kind == VP_RECORD_NOTE || record->kind == VP_RECORD_FATAL)
        assert_true(record->as.text[0] && record->status != VP_DEV_OK);
}

static void run(const char *script) {
    static const struct vp_method SHORT = {
        .least_repeats = 3, .most_repeats = 3, .few_repeats = 3, .warm_us = 10, .batch_us = 1};
    const struct vp_bench_options options = {.quick = true,
                                             .only = 1U << VP_BENCH_MEMORY | 1U << VP_BENCH_LAUNCH |
                                                     1U << VP_BENCH_COPY | 1U << VP_BENCH_STREAM |
                                                     1U << VP_BENCH_DECODE | 1U << VP_BENCH_REDUCE};
    const struct vp_bench_run bench = {
        .backend = &vp_fake_backend, .list = &list, .method = &SHORT, .tell = tell};
    vp_bench_list(&list, &options);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list.count; i++) /* those are slow, and no device takes part */
        if (list.item[i].kind != VP_BENCH_ERRORS)
            list.item[kept++] = list.item[i];
    list.count = kept;
    setenv("VRAMPLAN_FAKE", script, 1);
    memset(&told, 0, sizeof told);
    assert_int_equal(vp_bench_run(&bench), 0);
    assert_int_equal(told.fatal + told.ended, 1);
    if (told.ended) {
        assert_int_equal(told.begun, list.count);
        assert_true(told.samples + told.notes <= list.count);
    }
}

static void every_call_may_fail(void **state) {
    (void)state;
    static const char *const CALLS[] = {
        "open", "use",   "memory",     "alloc", "alloc_host", "copy",   "blas",  "start", "stop",
        "sync", "graph", "all_reduce", "gemm",  "open_blas",  "decode", "empty", "triad"};
    run("");
    uint32_t all = told.samples;
    assert_int_equal(told.notes, 0);
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
        static const char *const HOW[] = {"fail=", "unsupported="};
        for (size_t h = 0; h < 2; h++) {
            char script[64];
            snprintf(script, sizeof script, "%s%s", HOW[h], CALLS[i]);
            run(script);
            assert_true(told.fatal || told.samples <= all);
        }
    }
}

static void little_memory(void **state) {
    (void)state;
    run("memory=1000000000"); /* 1 GB: what is larger is left out, with the reason */
    assert_true(told.ended && told.notes > 0 && told.samples > 5);
    run("devices=2");
    uint32_t two = told.samples;
    run("devices=1");
    assert_true(told.samples < two); /* no all-reduce, no communicator */
}

/* ---- errors of formats ---- */

static void errors(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    for (uint32_t i = 0; i < VP_BENCH_ERROR_CASES; i++) {
        struct vp_quant_errors e, again;
        vp_quant_errors(&e, &arena, i);
        if (i == 0) { /* the same every time */
            vp_quant_errors(&again, &arena, i);
            assert_memory_equal(&e, &again, sizeof e);
        }
        bool int8 = !strcmp(e.format, "int8");
        /* half a step at the top: 1/254 of the range, or 1/16 of the binade below it, of which up
         * to the whole range may be one */
        assert_true(e.largest_relative <= (int8 ? 1 / 253.0 : 1 / 28.0));
        assert_true(e.rms_relative > 0.001 && e.rms_relative < 0.1);
        assert_true(e.below >= 0 && e.below <= 1);
    }
    vp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),         cmocka_unit_test(quick_has_the_range),
        cmocka_unit_test(traffic),       cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(little_memory), cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
