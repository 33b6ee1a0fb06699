/* The reader of the kernel's files: numbers that are none, and every reading call made to fail. */
#include "tests/unit/fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "planner/base/text.h"
#include "probe/facts.h"
#include "probe/sysfs.h"

static struct fixture f;

static void make_folders(const char *path) {
    char *copy = vp_arena_printf(&f.arena, "%s/%s", fixture_folder(&f), path);
    for (char *slash = copy + strlen(fixture_folder(&f)) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        mkdir(copy, 0700);
        *slash = '/';
    }
}

static void put(const char *path, const char *text) {
    make_folders(path);
    fixture_text_file(&f, path, text);
}

static int begin(void **state) {
    (void)state;
    fixture_begin(&f);
    put("sys/class/drm/card0/device/vendor", "0x1002\n");
    put("sys/class/drm/card0/device/device", "0x744c\n");
    put("sys/class/drm/card0/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n");
    put("sys/class/drm/card0/device/mem_info_vram_total", "25753026560\n");
    put("sys/class/drm/card0/device/mem_info_vram_used", "12 or so\n");
    put("sys/class/drm/card0/device/product_name", "  Radeon\x01 RX\n");
    put("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "77\n");
    put("sys/class/kfd/kfd/topology/nodes/1/properties",
        "simd_count 192\nsimd_per_cu 2\nlocation_id 768\ndomain 0\ngfx_target_version 110000\n");
    put("sys/class/kfd/kfd/proc/123/vram_77", "1048576\n");
    put("proc/123/comm", "server\n");
    put("proc/meminfo", "MemTotal:  99999999999999999999 kB\nMemAvailable: 17 kB\n");
    setenv("VRAMPLAN_SYSFS", vp_arena_printf(&f.arena, "%s/sys", fixture_folder(&f)), 1);
    return 0;
}

static int end(void **state) {
    (void)state;
    unsetenv("VRAMPLAN_SYSFS");
    fixture_end(&f);
    return 0;
}

static void names(void **state) {
    (void)state;
    static const struct {
        uint64_t version;
        const char *name;
    } ROWS[] = {{90010, "gfx90a"},   {90402, "gfx942"},   {90500, "gfx950"},
                {110501, "gfx1151"}, {120001, "gfx1201"}, {0, NULL},
                {99, NULL},          {901600, NULL},      {UINT64_MAX, NULL}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *got = vp_sysfs_arch(&f.arena, ROWS[i].version);
        assert_true(vp_text_eq(got, ROWS[i].name));
    }
}

static void reads(void **state) {
    (void)state;
    struct vp_device_facts facts;
    vp_sysfs_read(&f.ctx, &facts);
    assert_int_equal(facts.gpu_count, 1);
    const struct vp_fact_gpu *g = &facts.gpus[0];
    assert_string_equal(g->pci, "0000:03:00.0");
    assert_string_equal(g->name, "Radeon? RX");
    assert_string_equal(g->arch, "gfx1100");
    assert_int_equal(g->compute_units, 96);
    assert_int_equal(g->vram_total_bytes, 25753026560);
    assert_int_equal(g->vram_used_bytes, 12); /* up to the blank */
    assert_int_equal(g->holder_count, 1);
    assert_string_equal(g->holders[0].program, "server");
    assert_int_equal(facts.host_total_bytes, 0);
    assert_int_equal(facts.host_available_bytes, 17 * 1024);
    assert_int_equal(f.diags.count, 0);
}

/* Whatever call fails: an answer, and what is in it is true. */
static void failing_calls(void **state) {
    (void)state;
    struct vp_device_facts facts;
    int n = 0;
    do {
        struct vp_buf out = {.arena = &f.arena};
        f.ctx.io = failing_io(++n);
        vp_sysfs_read(&f.ctx, &facts);
        vp_facts_json(&out, &facts);
        assert_true(facts.gpu_count <= 1);
        if (facts.gpu_count && facts.gpus[0].vram_total_bytes)
            assert_int_equal(facts.gpus[0].vram_total_bytes, 25753026560);
        assert_int_equal(f.diags.count, 0);
    } while (failing_io_calls() >= n);
    assert_true(n > 50);
    f.ctx.io = &vp_io_posix;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(names, begin, end),
                                       cmocka_unit_test_setup_teardown(reads, begin, end),
                                       cmocka_unit_test_setup_teardown(failing_calls, begin, end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
