#include "tests/unit/fixture.h"

#include <string.h>
#include <sys/stat.h>

#include "planner/doc/yaml.h"
#include "planner/import/gpu_profile.h"

static struct fixture f;
static struct vp_gpu gpu;

static int begin(void **state) {
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    return 0;
}

static int end(void **state) {
    (void)state;
    fixture_end(&f);
    return 0;
}

static enum vp_status read(const char *text) {
    struct vp_node *node;
    fixture_clear(&f);
    assert_int_equal(vp_yaml_read(&f.ctx, &node, (struct vp_bytes){text, strlen(text)}, "run.yaml"),
                     VP_OK);
    return vp_gpu_read(&f.ctx, &gpu, node);
}

/* A folder of the user's own profiles. */
static void own_profile(const char *name, const char *text) {
    const char *root = fixture_folder(&f);
    mkdir(vp_io_join(&f.ctx, root, "gpus"), 0700);
    fixture_text_file(&f, vp_arena_printf(&f.arena, "gpus/%s", name), text);
    f.ctx.user_profiles = root;
}

static void by_id(void **state) {
    (void)state;
    assert_int_equal(read("mi300x"), VP_OK);
    assert_string_equal(gpu.id, "mi300x");
    assert_string_equal(gpu.vendor, "amd");
    assert_string_equal(gpu.arch, "gfx942");
    assert_string_equal(gpu.family, "cdna3");
    assert_true(gpu.runtime_mib == 196592 && gpu.runtime_mib_low == 196592);
    assert_true(gpu.driver_mib == 196592);
    assert_true(gpu.compute_units == 304);
    assert_true(gpu.fp8);
    assert_string_equal(gpu.fp8_formats, "e4m3fnuz e5m2fnuz");
    assert_true(gpu.bandwidth_gbs > 5299 && gpu.bandwidth_gbs < 5301);
    assert_true(gpu.tflops_fp8 > gpu.tflops_bf16);
    assert_null(gpu.runtime_device);
}

static void by_alias_however_it_is_written(void **state) {
    (void)state;
    static const char *const NAMES[] = {"RTX 4090", "rtx_4090", "4090", "GeForce-RTX-4090",
                                        "nvidia geforce rtx 4090"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        assert_int_equal(read(NAMES[i]), VP_OK);
        assert_string_equal(gpu.id, "rtx4090");
    }
    assert_string_equal(gpu.family, ""); /* absent, not NULL */
    assert_true(gpu.compute_units == 128);
}

static void unknown_names(void **state) {
    (void)state;
    assert_int_equal(read("rtx4009"), VP_ERR_INPUT);
    const struct vp_diag *d = fixture_expect(&f, VP_D_GPU_UNKNOWN, "\"rtx4009\"");
    assert_int_equal(d->pos.line, 1);
    assert_non_null(strstr(d->hint, "did you mean rtx4090?"));
    assert_int_equal(read("mi300"), VP_ERR_INPUT);
    assert_non_null(strstr(f.diags.items[0].hint, "did you mean one of mi300a, mi300x?"));
    static const char *const ODD[] = {"../mi300x", "'  '", "'---'", ".", "'/etc/passwd'"};
    for (size_t i = 0; i < sizeof ODD / sizeof *ODD; i++) {
        assert_int_equal(read(ODD[i]), VP_ERR_INPUT);
        fixture_expect(&f, VP_D_GPU_UNKNOWN, "no GPU");
    }
    assert_int_equal(read("[a]"), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_BAD_VALUE, "hardware.gpu must be a name or a map");
}

static void inline_maps(void **state) {
    (void)state;
    assert_int_equal(read("{arch: gfx1100, runtime_mib: {likely: 24560, low: 24000}}"), VP_OK);
    assert_string_equal(gpu.id, "custom");
    assert_string_equal(gpu.vendor, "amd");
    assert_true(gpu.runtime_mib_low == 24000 && gpu.runtime_mib_high == 24560);
    assert_int_equal(read("{id: x, vendor: NVIDIA, driver_mib: 1000, fp8_formats: [e4m3fn]}"),
                     VP_OK);
    assert_string_equal(gpu.vendor, "nvidia");
    assert_true(gpu.fp8);
    static const char *const BAD[] = {"{vendor: intel}",
                                      "{vendor: amd, runtime_mib: -1}",
                                      "{vendor: amd, runtime_mib: {low: 3}}",
                                      "{vendor: amd, runtime_mib: {likely: 3, low: 4}}",
                                      "{vendor: amd, driver_mib: 1.5}",
                                      "{vendor: amd, bandwidth_gbs: 0}",
                                      "{vendor: amd, fp8_formats: e4m3}",
                                      "{vendor: amd, fp8_formats: [[a]]}",
                                      "{vendor: amd, name: [a]}"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        assert_int_equal(read(BAD[i]), VP_ERR_INPUT);
        fixture_expect(&f, VP_D_BAD_VALUE, "GPU profile:");
    }
    assert_int_equal(read("{id: x, memmory_gb: 3}"), VP_ERR_INPUT); /* both faults at once */
    assert_string_equal(fixture_expect(&f, VP_D_UNKNOWN_KEY, "memmory_gb")->hint,
                        "did you mean memory_gb?");
    fixture_expect(&f, VP_D_MISSING_VALUE, "vendor is missing");
}

static void the_users_profiles_come_first(void **state) {
    (void)state;
    own_profile("mi300x.yaml", "vramplan_gpu: 1\nid: mi300x\nvendor: amd\ndriver_mib: 7\n");
    own_profile("mine.yaml", "vramplan_gpu: 1\nid: mine\naliases: [\"My\n    Card\"]\n"
                             "vendor: amd\ndriver_mib: 8\n");
    assert_int_equal(read("MI300X"), VP_OK);
    assert_true(gpu.driver_mib == 7);
    assert_int_equal(read("my card"), VP_OK);
    assert_true(gpu.driver_mib == 8);
    assert_int_equal(read("mi210"), VP_OK); /* the shipped ones are still there */
    assert_string_equal(gpu.id, "mi210");
}

static void broken_profiles(void **state) {
    (void)state;
    own_profile("a.yaml", "vramplan_gpu: 1\nid: b\n");
    own_profile("c.yaml", "id: c\n");
    own_profile("d.yaml", "[");
    own_profile("e.yaml", "- e\n");
    own_profile("g.yaml", "vramplan_gpu: 1\nid: g\nvendor: amd\nmemory: 3\n");
    static const char *const NAMES[] = {"a", "c", "d", "e", "g"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        assert_int_equal(read(NAMES[i]), VP_ERR_INPUT);
        const struct vp_diag *d = fixture_expect(&f, VP_D_PROFILE_BROKEN, "cannot be used");
        assert_non_null(strstr(d->pos.file, vp_arena_printf(&f.arena, "/%s.yaml", NAMES[i])));
    }
    assert_int_equal(read("mi300x"), VP_OK); /* the broken ones do not answer to it */
}

static void without_profiles(void **state) {
    (void)state;
    f.ctx.profiles = NULL;
    assert_int_equal(read("mi300x"), VP_ERR_ENV);
    fixture_expect(&f, VP_D_NO_PROFILES, "GPU profiles");
    assert_int_equal(read("{vendor: amd}"), VP_OK);
}

/* ---- partitions ---- */

static enum vp_status partition(const char *name, const char *mode, const char *memory_mode) {
    struct vp_pos pos = {.file = "run.yaml", .line = 3};
    assert_int_equal(read(name), VP_OK);
    return vp_gpu_partition(&f.ctx, &gpu, mode, memory_mode, &pos);
}

static void partitions(void **state) {
    (void)state;
    assert_int_equal(partition("mi300x", NULL, NULL), VP_OK);
    assert_true(gpu.runtime_mib == 196592);
    assert_int_equal(partition("mi300x", "SPX", "NPS1"), VP_OK);
    assert_true(gpu.runtime_mib == 196592);
    assert_int_equal(partition("mi300x", "cpx", "nps4"), VP_OK);
    assert_true(gpu.runtime_mib == 24574 && gpu.runtime_mib_high == 24574);
    assert_true(gpu.driver_mib == 24574 && gpu.compute_units == 38);
    assert_true(gpu.bandwidth_gbs < 663);
    assert_int_equal(partition("mi325x", "CPX", NULL), VP_OK);
    assert_true(gpu.runtime_mib == 0 && gpu.driver_mib > 0 && gpu.driver_mib < 40000);

    assert_int_equal(partition("mi300x", "TPX", NULL), VP_ERR_INPUT);
    const struct vp_diag *d = fixture_expect(&f, VP_D_BAD_VALUE, "no partition mode TPX");
    assert_int_equal(d->pos.line, 3);
    assert_string_equal(d->hint, "its modes are SPX, DPX, QPX, CPX");
    assert_int_equal(partition("mi300x", "DPX", "NPS4"), VP_ERR_INPUT);
    assert_string_equal(fixture_expect(&f, VP_D_BAD_VALUE, "NPS4")->hint,
                        "with it goes NPS1, NPS2");
    assert_int_equal(partition("mi300x", NULL, "NPS4"), VP_ERR_INPUT); /* SPX has NPS1 only */
    assert_int_equal(partition("rtx4090", "CPX", NULL), VP_ERR_INPUT);
    assert_non_null(strstr(f.diags.items[0].hint, "hardware.memory"));
}

static void an_apu_takes_its_profiles_total(void **state) {
    (void)state;
    assert_int_equal(read("mi300a"), VP_OK);
    assert_true(gpu.driver_mib == 98304);
    assert_int_equal(read("strix-halo"), VP_OK);
    assert_true(gpu.driver_mib == 0 && gpu.runtime_mib == 0);
}

/* ---- list ---- */

static void every_shipped_profile_is_listed(void **state) {
    (void)state;
    struct vp_gpus gpus;
    assert_int_equal(vp_gpu_list(&f.ctx, &gpus), VP_OK);
    assert_true(gpus.count > 70);
    for (size_t i = 1; i < gpus.count; i++) {
        int c = strcmp(gpus.items[i - 1].vendor, gpus.items[i].vendor);
        assert_true(c < 0 || (c == 0 && strcmp(gpus.items[i - 1].id, gpus.items[i].id) < 0));
    }
    for (size_t i = 0; i < gpus.count; i++) {
        const char *device = gpus.items[i].runtime_device;
        assert_true(gpus.items[i].memory_gb > 0 && gpus.items[i].bandwidth_gbs > 0);
        if (device) {
            assert_int_equal(read(device), VP_OK);
            assert_null(gpu.runtime_device);
        }
    }
    assert_int_equal(f.diags.count, 0);
    own_profile("zzz.yaml", "vramplan_gpu: 1\nid: zzz\nvendor: amd\n");
    own_profile("mi300x.yaml", "vramplan_gpu: 1\nid: mi300x\nvendor: amd\ndriver_mib: 7\n");
    size_t shipped = gpus.count;
    assert_int_equal(vp_gpu_list(&f.ctx, &gpus), VP_OK);
    assert_int_equal(gpus.count, shipped + 1);
}

static void reading_may_fail(void **state) {
    (void)state;
    struct vp_node *node = vp_node_scalar(&f.ctx, VP_NODE_TEXT, "RTX 4090", (struct vp_pos){0});
    for (int n = 1;; n++) {
        fixture_clear(&f);
        f.ctx.io = failing_io(n);
        enum vp_status status = vp_gpu_read(&f.ctx, &gpu, node);
        if (failing_io_calls() < n) {
            assert_int_equal(status, VP_OK);
            break;
        }
        /* a failing close of a file that was only read is no fault */
        assert_int_equal(status == VP_OK, f.diags.errors == 0);
        assert_true(status == VP_OK || status == VP_ERR_ENV);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(by_id),
        TEST(by_alias_however_it_is_written),
        TEST(unknown_names),
        TEST(inline_maps),
        TEST(the_users_profiles_come_first),
        TEST(broken_profiles),
        TEST(without_profiles),
        TEST(partitions),
        TEST(an_apu_takes_its_profiles_total),
        TEST(every_shipped_profile_is_listed),
        TEST(reading_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
