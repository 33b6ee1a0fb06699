/* AMD GPUs by the HIP runtime, ROCm 5 to 10. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "probe/gpu_driver.h"
#include "probe/kernel_images.h"

/* A later major number first. Newer layouts have a folder "core-7.12" below /opt/rocm. */
static const char *const FOLDERS[] = {
    "", "$ROCM_PATH/lib", "/opt/rocm/lib", "/opt/rocm/core-*/lib", "/opt/rocm-*/lib", NULL};

static void versions(const struct vp_gpu *gpu, char out[VP_DEV_TEXT]) {
    int number = 0;

    if (gpu->call.runtime_version && gpu->call.runtime_version(&number) == 0 && number > 0)
        snprintf(out, VP_DEV_TEXT, "HIP %d.%d.%d", number / 10000000, number / 100000 % 100,
                 number % 100000);
}

/* The name of the architecture stands in a structure that grew: from ROCm 6 on the call of a new
 * name fills the new one, and the old call the old one. Nothing else is read from it (attributes
 * have kept their numbers). */
enum { PROPERTIES_BYTES = 4096, NAME_R0600 = 1160, NAME_R0000 = 396, NAME_BYTES = 256 };

static enum vp_dev_status arch(struct vp_dev *device, uint32_t index, char out[VP_DEV_TEXT]) {
    struct vp_gpu *gpu = device->state;
    bool renamed = gpu->call.properties_r0600 != NULL;
    size_t length = 0;

    if (!renamed && !gpu->call.properties)
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED,
                           "this HIP runtime does not say the architecture");
    char *buffer = VP_NEW_ARRAY(device->arena, PROPERTIES_BYTES, char);
    enum vp_dev_status status = renamed
                                    ? VP_GPU_CALL(device, gpu, properties_r0600, buffer, (int)index)
                                    : VP_GPU_CALL(device, gpu, properties, buffer, (int)index);
    if (status != VP_DEV_OK)
        return status;
    const char *name = buffer + (renamed ? NAME_R0600 : NAME_R0000);
    while (length < NAME_BYTES && isalnum((unsigned char)name[length]))
        length++; /* features follow a colon */
    if (length < 4 || length >= VP_DEV_TEXT || strncmp(name, "gfx", 3) != 0)
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED,
                           "the HIP runtime names no architecture where it should");
    snprintf(out, VP_DEV_TEXT, "%.*s", (int)length, name);
    return VP_DEV_OK;
}

static enum vp_dev_status make_current(struct vp_dev *device, uint32_t index) {
    struct vp_gpu *gpu = device->state;
    return VP_GPU_CALL(device, gpu, set_device, (int)index);
}

/* hipRTC of the same ROCm: a library of its own beside the runtime, or (until 6) in the runtime. */
static enum vp_dev_status compiled_image(struct vp_dev *device, const char *name, const void **out,
                                         char source[VP_DEV_TEXT]) {
    static const struct vp_library_name RTC = {"libhiprtc", 16, 5};
    const struct vp_gpu *gpu = device->state;
    const char *options[] = {vp_arena_printf(device->arena, "--offload-arch=%s", name), "-O3"};
    const char *folders[] = {gpu->library.folder, NULL};
    struct vp_library compiler;

    if (vp_library_open(device->arena, &compiler, folders, &RTC))
        compiler = gpu->library;
    snprintf(source, VP_DEV_TEXT, "compiled by hipRTC for %.40s", name);
    return vp_gpu_compile(device, &compiler, options, 2, out);
}

static enum vp_dev_status image(struct vp_dev *device, const char *name, const void **out,
                                char source[VP_DEV_TEXT]) {
    const struct vp_kernel_image *ahead = vp_kernel_image_find(name);

    if (!ahead)
        return compiled_image(device, name, out, source);
    *out = ahead->words;
    snprintf(source, VP_DEV_TEXT, "built ahead for %.40s", name);
    return VP_DEV_OK;
}

/* hipDataType: E4M3 FNUZ, OCP E4M3. */
static int fp8_type(const char *name) {
    if (!strncmp(name, "gfx94", 5))
        return 1000;
    return !strncmp(name, "gfx95", 5) || !strncmp(name, "gfx12", 5) ? 28 : 0;
}

/* HSA's numbers (hsa_amd_link_info_type_t). */
static const char *link_name(uint32_t type) {
    enum { PCIE = 2, XGMI = 4 };
    return type == XGMI ? "xgmi" : type == PCIE ? "pcie" : NULL;
}

static const struct vp_gpu_kind HIP = {
    .name = "HIP",
    .family = 0,
    .folders = FOLDERS,
    .library = {"libamdhip64", 16, 5},
    .node = "/dev/kfd",
    /* hipDeviceAttribute_t of HIP 5.0 and later */
    .attribute = {.compute_units = 63, .clock_khz = 5, .memory_clock_khz = 60, .cache_bytes = 19},
    .blas = {.library = {"libhipblaslt", 4, 0},
             .name = "hipBLASLt",
             .symbol = "hipblasLtCreate",
             .compute_fp32 = 2,
             .attribute_transpose_a = 0,
             .attribute_scale_a = 5,
             .attribute_scale_b = 6,
             .wish_workspace = 1,
             .transpose = 112,
             .workspace_bytes = 128 << 20},
    .collective = {"librccl", 2, 1},
    .beside = true,
    .versions = versions,
    .arch = arch,
    .make_current = make_current,
    .image = image,
    .compiled_image = compiled_image,
    .fp8_type = fp8_type,
    .link_name = link_name};

static enum vp_dev_status open_hip(struct vp_dev *device) { return vp_gpu_open(device, &HIP); }

const struct vp_dev_backend vp_hip_backend = {.name = "hip", .open = open_hip, VP_GPU_BACKEND};
