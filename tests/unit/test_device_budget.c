/* What a process may take of a device: arithmetic at its limits. */
#include "tests/unit/fixture.h"

#include "planner/plan/device_budget.h"

static const uint64_t GIB = UINT64_C(1) << 30, MIB = UINT64_C(1) << 20;
static struct vp_arena arena;

static struct vp_device_budget budget(struct vp_device_facts facts, struct vp_fact_gpu card,
                                      bool apu) {
    struct vp_gpu gpu = {.gtt_ppb = apu ? 500000000 : 0};
    struct vp_device_budget out;
    vp_device_budget(&arena, &out, &facts, &card, &gpu);
    assert_true(out.usable.low <= out.usable.likely && out.usable.likely <= out.usable.high);
    assert_true(out.usable.high <= out.total_bytes);
    return out;
}

static void page_tables(void **state) {
    (void)state;
    assert_int_equal(vp_page_table_bytes(192 * GIB), 12 * MIB);
    assert_int_equal(vp_page_table_bytes(24 * GIB), 8 * MIB);
    assert_int_equal(vp_page_table_bytes(0), 8 * MIB);
}

static void a_card(void **state) {
    (void)state;
    struct vp_fact_gpu card = {
        .vendor = "amd", .vram_total_bytes = 16 * GIB, .vram_used_bytes = GIB + 1, .devices = 1};
    struct vp_device_budget b = budget((struct vp_device_facts){.gpu_count = 0}, card, false);
    assert_true(b.known);
    assert_int_equal(b.usable.low, 15 * GIB - 10 * MIB); /* 8 MiB and a byte, in steps of 2 MiB */
    assert_int_equal(b.usable.high, b.usable.low);
    card.vram_used_bytes = 17 * GIB; /* nonsense */
    assert_int_equal(budget((struct vp_device_facts){.gpu_count = 0}, card, false).usable.high, 0);
    card = (struct vp_fact_gpu){.vendor = "amd"};
    b = budget((struct vp_device_facts){.gpu_count = 0}, card, false);
    assert_false(b.known);
    assert_int_equal(b.usable.high, 0);
}

static void who_says_the_total(void **state) {
    (void)state;
    struct vp_device_facts none = {.gpu_count = 0};
    struct vp_fact_gpu card = {.vendor = "amd", .vram_total_bytes = 64 * GIB, .devices = 8};
    assert_int_equal(budget(none, card, false).total_bytes, 8 * GIB);
    card.node_bytes = 64 * GIB; /* the whole card for each part */
    assert_int_equal(budget(none, card, false).total_bytes, 8 * GIB);
    card.node_bytes = 7 * GIB;
    assert_int_equal(budget(none, card, false).total_bytes, 7 * GIB);
    card.runtime_bytes = 9 * GIB;
    assert_int_equal(budget(none, card, false).total_bytes, 9 * GIB);
    assert_string_equal(budget(none, card, false).total_by, "HIP");
}

static void nvidia(void **state) {
    (void)state;
    struct vp_device_facts none = {.gpu_count = 0};
    struct vp_fact_gpu card = {
        .vendor = "nvidia", .runtime_bytes = 80 * GIB, .runtime_free_bytes = 79 * GIB + 5};
    struct vp_device_budget b = budget(none, card, false);
    assert_int_equal(b.usable.likely, 79 * GIB);
    assert_string_equal(b.total_by, "CUDA");
}

static void an_apu(void **state) {
    (void)state;
    struct vp_device_facts facts = {.ttm_pages_limit = 25165824, .host_available_bytes = 200 * GIB};
    struct vp_fact_gpu card = {.vendor = "amd",
                               .vram_total_bytes = 4 * GIB,
                               .gtt_total_bytes = 103079215104,
                               .gtt_used_bytes = GIB};
    struct vp_device_budget b = budget(facts, card, true);
    assert_int_equal(b.total_bytes, 103079215104);
    assert_int_equal(b.usable.likely, 95 * GIB);
    assert_int_equal(b.pool, VP_POOL_GTT);
    facts.ttm_pages_limit = UINT64_MAX; /* no limit that can be counted with */
    assert_int_equal(budget(facts, card, true).limit_bytes, 0);
    card.vram_total_bytes = 100 * GIB;
    assert_int_equal(budget(facts, card, true).pool, VP_POOL_VRAM);
}

static int no_memory_left(void **state) {
    (void)state;
    vp_arena_free(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(page_tables), cmocka_unit_test(a_card),
                                       cmocka_unit_test(who_says_the_total),
                                       cmocka_unit_test(nvidia), cmocka_unit_test(an_apu)};
    return cmocka_run_group_tests(tests, NULL, no_memory_left);
}
