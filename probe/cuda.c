/* NVIDIA GPUs by the driver's own interface, CUDA 11 to 13. Kernels are compiled by NVRTC. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/gpu_driver.h"

/* The driver stands where the loader finds it (under WSL in a folder of its own), the toolkit's
 * libraries often do not. */
static const char *const FOLDERS[] = {"",
                                      "$CUDA_PATH/lib64",
                                      "$CUDA_HOME/lib64",
                                      "/usr/local/cuda/lib64",
                                      "/usr/local/cuda-*/lib64",
                                      "/usr/lib/wsl/lib",
                                      NULL};

static void versions(const struct vp_gpu *gpu, char out[VP_DEV_TEXT]) {
    int number = 0;

    if (gpu->call.driver_version && gpu->call.driver_version(&number) == 0 && number > 0)
        snprintf(out, VP_DEV_TEXT, "CUDA %d.%d", number / 1000, number % 1000 / 10);
}

static enum vp_dev_status arch(struct vp_dev *device, uint32_t index, char out[VP_DEV_TEXT]) {
    enum { MAJOR = 75, MINOR = 76 }; /* CUdevice_attribute: compute capability */
    struct vp_gpu *gpu = device->state;
    int handle = 0, major = 0, minor = 0;
    enum vp_dev_status status = VP_GPU_CALL(device, gpu, device_get, &handle, (int)index);

    if (status == VP_DEV_OK)
        status = VP_GPU_CALL(device, gpu, attribute, &major, MAJOR, handle);
    if (status == VP_DEV_OK)
        status = VP_GPU_CALL(device, gpu, attribute, &minor, MINOR, handle);
    snprintf(out, VP_DEV_TEXT, "sm_%d%d", major, minor);
    return status;
}

/* The context that libraries for this device use as well. */
static enum vp_dev_status make_current(struct vp_dev *device, uint32_t index) {
    struct vp_gpu *gpu = device->state;
    void *context = NULL;
    int handle = 0;
    enum vp_dev_status status = VP_GPU_CALL(device, gpu, device_get, &handle, (int)index);

    if (status == VP_DEV_OK)
        status = VP_GPU_CALL(device, gpu, context_retain, &context, handle);
    return status == VP_DEV_OK ? VP_GPU_CALL(device, gpu, context_current, context) : status;
}

static enum vp_dev_status image(struct vp_dev *device, const char *name, const void **out,
                                char source[VP_DEV_TEXT]) {
    static const struct vp_library_name RTC = {"libnvrtc", 16, 11};
    const struct vp_gpu *gpu = device->state;
    const char *options[] = {vp_arena_printf(device->arena, "--gpu-architecture=%s", name)};
    struct vp_library compiler;
    const char *why = vp_library_open(device->arena, &compiler, gpu->folders, &RTC);

    if (why)
        return vp_dev_fail(device, VP_DEV_NO_LIBRARY,
                           "%s; the kernels for NVIDIA GPUs are compiled by it", why);
    snprintf(source, VP_DEV_TEXT, "compiled by NVRTC for %.40s", name);
    return vp_gpu_compile(device, &compiler, options, 1, out);
}

/* cudaDataType: E4M3 of Ada, Hopper and later. */
static int fp8_type(const char *name) { return strlen(name) > 3 && atoi(name + 3) >= 89 ? 28 : 0; }

static const struct vp_gpu_kind CUDA = {
    .name = "CUDA",
    .family = 1,
    .folders = FOLDERS,
    .library = {"libcuda", 1, 1},
    .node = "/dev/nvidiactl",
    /* CUdevice_attribute */
    .attribute = {.compute_units = 16, .clock_khz = 13, .memory_clock_khz = 36, .cache_bytes = 38},
    .blas = {.library = {"libcublasLt", 16, 11},
             .name = "cuBLASLt",
             .symbol = "cublasLtCreate",
             .compute_fp32 = 68,
             .attribute_transpose_a = 3,
             .attribute_scale_a = 17,
             .attribute_scale_b = 18,
             .wish_workspace = 1,
             .transpose = 1,
             .workspace_bytes = 32 << 20},
    .collective = {"libnccl", 2, 2},
    .versions = versions,
    .arch = arch,
    .make_current = make_current,
    .image = image,
    .fp8_type = fp8_type};

static enum vp_dev_status open_cuda(struct vp_dev *device) { return vp_gpu_open(device, &CUDA); }

const struct vp_dev_backend vp_cuda_backend = {.name = "cuda", .open = open_cuda, VP_GPU_BACKEND};
