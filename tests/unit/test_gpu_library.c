/* Loading the drivers' libraries, with every step made to fail in turn through the table. */
#include "tests/unit/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/gpu_driver.h"

static const struct {
    const char *name[2];
    bool needed;
} CALLS[] = {
#define VP_DRIVER(result, member, parameters, need, hip, cuda) {{hip, cuda}, need},
#include "probe/gpu_symbols.def"
};

static struct vp_arena arena;

/* ---- a system that does as it is told ---- */

static struct {
    const char *has;     /* the one file that can be opened */
    const char *broken;  /* one that is there and cannot be loaded */
    const char *missing; /* the one function that is not there */
    char tried[4096], error[256];
} told;

static int no_device(void) { return 100; }
static const char *hip_name(int code) { return code == 100 ? "told" : NULL; }
static int cuda_name(int code, const char **name) {
    *name = "told";
    return code != 100;
}

static void *open_told(const char *path) {
    size_t length = strlen(told.tried);
    snprintf(told.tried + length, sizeof told.tried - length, "%s ", path);
    if (told.broken && !strcmp(path, told.broken))
        snprintf(told.error, sizeof told.error,
                 "libnuma.so.1: cannot open shared object file: No such file or directory");
    else
        snprintf(told.error, sizeof told.error,
                 "%s: cannot open shared object file: No such file or directory", path);
    return told.has && !strcmp(path, told.has) ? &told : NULL;
}

static const char *error_told(void) { return told.error; }

static void *symbol_told(void *library, const char *name) {
    int (*call)(void) = no_device;
    const char *(*hip)(int) = hip_name;
    int (*cuda)(int, const char **) = cuda_name;
    void *address;

    assert_ptr_equal(library, &told);
    if (told.missing && !strcmp(name, told.missing))
        return NULL;
    /* ISO C has no conversion from a function to void * */
    if (!strcmp(name, "hipGetErrorName"))
        memcpy(&address, &hip, sizeof address);
    else if (!strcmp(name, "cuGetErrorName"))
        memcpy(&address, &cuda, sizeof address);
    else
        memcpy(&address, &call, sizeof address);
    return address;
}

static const struct vp_library_io TOLD = {open_told, error_told, symbol_told};
static const struct vp_library_io *system_io;

static int set_up(void **state) {
    (void)state;
    unsetenv("VRAMPLAN_GPU_LIBRARIES");
    unsetenv("ROCM_PATH");
    unsetenv("CUDA_PATH");
    unsetenv("CUDA_HOME");
    memset(&told, 0, sizeof told);
    system_io = vp_library_io;
    vp_library_io = &TOLD;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    vp_library_io = system_io;
    vp_arena_free(&arena);
    return 0;
}

/* ---- the tests ---- */

static void test_order(void **state) {
    static const struct vp_library_name NAME = {"libx", 3, 2};
    static const char *const PATTERNS[] = {"", "$ROCM_PATH/lib", "$NOT_SET_ANYWHERE/lib", NULL};
    struct vp_library library;
    (void)state;

    setenv("ROCM_PATH", "/r", 1);
    const char *const *folders = vp_library_folders(&arena, PATTERNS);
    const char *why = vp_library_open(&arena, &library, folders, &NAME);
    assert_string_equal(told.tried, "libx.so.3 /r/lib/libx.so.3 libx.so.2 /r/lib/libx.so.2 libx.so "
                                    "/r/lib/libx.so ");
    assert_string_equal(why, "libx.so was not found");
    assert_null(library.handle);

    told.has = "/r/lib/libx.so.2";
    assert_null(vp_library_open(&arena, &library, folders, &NAME));
    assert_string_equal(library.folder, "/r/lib");

    setenv("VRAMPLAN_GPU_LIBRARIES", "/only::/these", 1);
    told.tried[0] = '\0';
    assert_non_null(vp_library_open(&arena, &library, vp_library_folders(&arena, PATTERNS), &NAME));
    assert_string_equal(told.tried, "/only/libx.so.3 /these/libx.so.3 /only/libx.so.2 "
                                    "/these/libx.so.2 /only/libx.so /these/libx.so ");
}

/* Version 0 is a number like others. */
static void test_zero(void **state) {
    static const struct vp_library_name NAME = {"libx", 1, 0};
    static const char *const HERE[] = {"", NULL};
    struct vp_library library;
    (void)state;

    told.has = "libx.so.0";
    assert_null(vp_library_open(&arena, &library, HERE, &NAME));
}

/* A library that is there and cannot be loaded is another trouble than none. */
static void test_broken(void **state) {
    struct vp_dev device = {.backend = &vp_hip_backend, .arena = &arena};
    (void)state;

    told.broken = "libamdhip64.so.6";
    assert_int_equal(vp_hip_backend.open(&device), VP_DEV_NO_LIBRARY);
    assert_non_null(strstr(device.why, "libamdhip64.so.6 cannot be loaded: libnuma.so.1"));
}

static void test_absent(void **state) {
    struct vp_dev device = {.backend = &vp_hip_backend, .arena = &arena};
    (void)state;

    assert_int_equal(vp_hip_backend.open(&device), VP_DEV_NO_LIBRARY);
    assert_string_equal(device.why, "libamdhip64.so was not found");
    assert_non_null(strstr(told.tried, "libamdhip64.so.10 "));
    assert_non_null(strstr(told.tried, "libamdhip64.so.5 "));
    assert_null(strstr(told.tried, "libamdhip64.so.4 "));
    assert_int_equal(vp_cuda_backend.open(&device), VP_DEV_NO_LIBRARY);
    assert_string_equal(device.why, "libcuda.so was not found");
}

/* Each function missing in turn: one that is needed is named, without the others it goes on, and
 * then there is no device. */
static void test_missing_functions(void **state) {
    static const struct vp_dev_backend *const BACKENDS[] = {&vp_hip_backend, &vp_cuda_backend};
    static const char *const LIBRARIES[] = {"libamdhip64.so.7", "libcuda.so.1"};
    (void)state;

    for (unsigned family = 0; family < 2; family++)
        for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
            struct vp_dev device = {.backend = BACKENDS[family], .arena = &arena};
            if (!CALLS[i].name[family])
                continue;
            told.has = LIBRARIES[family];
            told.missing = CALLS[i].name[family];
            /* nothing may be called before all of it is known to be there */
            enum vp_dev_status status = device.backend->open(&device);
            if (CALLS[i].needed) {
                assert_int_equal(status, VP_DEV_NO_LIBRARY);
                assert_non_null(strstr(device.why, told.missing));
            } else {
                bool named = !strstr(told.missing, "ErrorName");
                assert_int_equal(status, VP_DEV_NO_DEVICE);
                assert_non_null(
                    strstr(device.why, named ? "Init: error 100, told" : "Init: error 100"));
            }
        }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_order), TEST(test_zero), TEST(test_broken),
                                       TEST(test_absent), TEST(test_missing_functions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
