#include "probe/gpu_driver.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Codes that both drivers use: hip_runtime_api.h and cuda.h. */
enum { OUT_OF_MEMORY = 2, NO_DEVICE = 100, NOT_SUPPORTED = 801 };

static const struct vp_library_symbol SYMBOLS[] = {
#define VP_DRIVER(result, member, parameters, need, hip, cuda)                                     \
    {{hip, cuda}, offsetof(struct vp_driver_calls, member), need},
#include "probe/gpu_symbols.def"
};

/* ---- errors ---- */

enum vp_dev_status vp_gpu_check(struct vp_dev *device, int code, enum vp_driver_call call) {
    const struct vp_gpu *gpu = device->state;
    const char *name = SYMBOLS[call].name[gpu->kind->family], *error = NULL;

    if (code == 0)
        return VP_DEV_OK;
    if (gpu->call.error_name)
        error = gpu->call.error_name(code);
    else if (gpu->call.error_name_at && gpu->call.error_name_at(code, &error) != 0)
        error = NULL;
    return vp_dev_fail(device,
                       code == OUT_OF_MEMORY   ? VP_DEV_NO_MEMORY
                       : code == NO_DEVICE     ? VP_DEV_NO_DEVICE
                       : code == NOT_SUPPORTED ? VP_DEV_UNSUPPORTED
                                               : VP_DEV_FAILED,
                       "%s: error %d%s%.80s", name, code, error ? ", " : "", error ? error : "");
}

static enum vp_dev_status missing(struct vp_dev *device, enum vp_driver_call call) {
    const struct vp_gpu *gpu = device->state;
    return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "this driver has no %s",
                       SYMBOLS[call].name[gpu->kind->family]);
}

const char *const *vp_gpu_folders(struct vp_dev *device) {
    const struct vp_gpu *gpu = device->state;
    const char **own;

    if (!gpu->kind->beside)
        return gpu->folders;
    own = VP_NEW_ARRAY(device->arena, 2, const char *);
    own[0] = gpu->library.folder;
    return own;
}

/* ---- finding devices ---- */

enum vp_dev_status vp_gpu_open(struct vp_dev *device, const struct vp_gpu_kind *kind) {
    struct vp_gpu *gpu = VP_NEW(device->arena, struct vp_gpu);
    const char *init = SYMBOLS[VP_CALL_init].name[kind->family], *why;

    gpu->kind = kind;
    gpu->folders = vp_library_folders(device->arena, kind->folders);
    device->state = gpu;
    why = vp_library_open(device->arena, &gpu->library, gpu->folders, &kind->library);
    if (why)
        return vp_dev_fail(device, VP_DEV_NO_LIBRARY, "%s", why);
    vp_library_about(&gpu->library, init);
    why = vp_library_load(&gpu->call, SYMBOLS, VP_DRIVER_CALLS, &gpu->library, kind->family);
    if (why)
        return vp_dev_fail(device, VP_DEV_NO_LIBRARY, "%s of %.100s has no %s", kind->library.stem,
                           gpu->library.folder, why);
    /* Without a device this ends with one of several codes, also with that of a bad device; any
     * means that nothing can be measured. */
    enum vp_dev_status status = VP_GPU_CALL(device, gpu, init, 0);
    if (status == VP_DEV_OK)
        return status;
    const char *error = vp_arena_printf(device->arena, "%s", device->why);
    if (access(kind->node, F_OK) == 0 && access(kind->node, R_OK | W_OK) != 0)
        return vp_dev_fail(device, VP_DEV_NO_DEVICE, "%.100s; you may not open %s", error,
                           kind->node);
    return VP_DEV_NO_DEVICE;
}

void vp_gpu_close(struct vp_dev *device) { device->state = NULL; }

enum vp_dev_status vp_gpu_count(struct vp_dev *device, uint32_t *out) {
    struct vp_gpu *gpu = device->state;
    int count = 0;
    enum vp_dev_status status = VP_GPU_CALL(device, gpu, count, &count);

    *out = count > 0 ? (uint32_t)count : 0;
    if (status == VP_DEV_OK && *out == 0)
        status =
            vp_dev_fail(device, VP_DEV_NO_DEVICE, "the %s driver finds no device", gpu->kind->name);
    return status;
}

/* The driver's handle of a device; in HIP its number. */
static enum vp_dev_status handle_of(struct vp_dev *device, uint32_t index, int *out) {
    struct vp_gpu *gpu = device->state;

    *out = (int)index;
    return gpu->call.device_get ? VP_GPU_CALL(device, gpu, device_get, out, (int)index) : VP_DEV_OK;
}

static uint64_t attribute(const struct vp_gpu *gpu, int number, int handle) {
    int value = 0;
    return gpu->call.attribute(&value, number, handle) == 0 && value > 0 ? (uint64_t)value : 0;
}

enum vp_dev_status vp_gpu_info(struct vp_dev *device, uint32_t index, struct vp_dev_info *out) {
    struct vp_gpu *gpu = device->state;
    const struct vp_gpu_kind *kind = gpu->kind;
    size_t total = 0;
    int handle;
    enum vp_dev_status status = handle_of(device, index, &handle);

    *out = (struct vp_dev_info){0};
    if (status == VP_DEV_OK)
        status = VP_GPU_CALL(device, gpu, device_name, out->name, sizeof out->name, handle);
    if (status == VP_DEV_OK)
        status = VP_GPU_CALL(device, gpu, total_bytes, &total, handle);
    if (status == VP_DEV_OK)
        status = kind->arch(device, index, out->arch);
    if (status != VP_DEV_OK)
        return status;
    out->name[sizeof out->name - 1] = '\0';
    out->total_bytes = total;
    if (gpu->call.bus_id)
        gpu->call.bus_id(out->pci, sizeof out->pci, handle);
    kind->versions(gpu, out->driver);
    out->compute_units = attribute(gpu, kind->attribute.compute_units, handle);
    out->clock_khz = attribute(gpu, kind->attribute.clock_khz, handle);
    out->memory_clock_khz = attribute(gpu, kind->attribute.memory_clock_khz, handle);
    out->cache_bytes = attribute(gpu, kind->attribute.cache_bytes, handle);
    out->fp8_emulated = kind->fp8_type(out->arch) == 0;
    vp_gpu_monitor_info(device, out);
    if (gpu->used && index == gpu->index) {
        uint64_t all;
        status = vp_gpu_memory(device, &out->free_bytes, &all);
        out->fp8_fnuz = gpu->traits.fp8_fnuz;
        out->fp8_emulated = !gpu->traits.fp8_units;
        snprintf(out->kernels, sizeof out->kernels, "%s", gpu->kernels);
        snprintf(out->library, sizeof out->library, "%s", gpu->blas_name);
    }
    return status;
}

enum vp_dev_status vp_gpu_use(struct vp_dev *device, uint32_t index) {
    enum { NON_BLOCKING = 1 };
    struct vp_gpu *gpu = device->state;
    struct vp_dev_info info;
    enum vp_dev_status status = vp_gpu_info(device, index, &info);

    if (status == VP_DEV_OK)
        status = gpu->kind->make_current(device, index);
    if (status == VP_DEV_OK)
        status = VP_GPU_CALL(device, gpu, stream_create, &gpu->stream, NON_BLOCKING);
    for (unsigned i = 0; status == VP_DEV_OK && i < 2; i++)
        status = VP_GPU_CALL(device, gpu, event_create, &gpu->mark[i], 0);
    if (status != VP_DEV_OK)
        return status;
    gpu->index = index;
    memcpy(gpu->arch, info.arch, sizeof gpu->arch);
    memcpy(gpu->pci, info.pci, sizeof gpu->pci);
    gpu->traits.compute_units = info.compute_units;
    status = vp_gpu_load_kernels(device);
    gpu->used = status == VP_DEV_OK;
    vp_gpu_find_blas(device);
    return status;
}

/* ---- memory ---- */

enum vp_dev_status vp_gpu_memory(struct vp_dev *device, uint64_t *free_bytes,
                                 uint64_t *total_bytes) {
    struct vp_gpu *gpu = device->state;
    size_t left = 0, all = 0;
    enum vp_dev_status status = VP_GPU_CALL(device, gpu, memory_info, &left, &all);

    *free_bytes = left;
    *total_bytes = all;
    return status;
}

enum vp_dev_status vp_gpu_alloc(struct vp_dev *device, void **out, uint64_t bytes) {
    struct vp_gpu *gpu = device->state;
    *out = NULL;
    return VP_GPU_CALL(device, gpu, malloc_, out, bytes);
}

void vp_gpu_release(struct vp_dev *device, void *memory) {
    struct vp_gpu *gpu = device->state;
    if (memory)
        gpu->call.free_(memory);
}

enum vp_dev_status vp_gpu_alloc_host(struct vp_dev *device, void **out, uint64_t bytes) {
    struct vp_gpu *gpu = device->state;
    *out = NULL;
    return VP_GPU_CALL(device, gpu, host_malloc, out, bytes, 0);
}

void vp_gpu_release_host(struct vp_dev *device, void *memory) {
    struct vp_gpu *gpu = device->state;
    if (memory)
        gpu->call.host_free(memory);
}

enum vp_dev_status vp_gpu_copy(struct vp_dev *device, void *to, const void *from, uint64_t bytes,
                               enum vp_dev_copy kind) {
    struct vp_gpu *gpu = device->state;

    switch (kind) {
    case VP_COPY_TO_DEVICE:
        return VP_GPU_CALL(device, gpu, to_device, to, from, bytes, gpu->stream);
    case VP_COPY_TO_HOST:
        return VP_GPU_CALL(device, gpu, to_host, to, from, bytes, gpu->stream);
    case VP_COPY_ON_DEVICE:
        break;
    }
    return VP_GPU_CALL(device, gpu, on_device, to, from, bytes, gpu->stream);
}

/* ---- time ---- */

enum vp_dev_status vp_gpu_start(struct vp_dev *device) {
    struct vp_gpu *gpu = device->state;
    return VP_GPU_CALL(device, gpu, event_record, gpu->mark[0], gpu->stream);
}

enum vp_dev_status vp_gpu_stop(struct vp_dev *device, double *us) {
    struct vp_gpu *gpu = device->state;
    float ms = 0;
    enum vp_dev_status status = VP_GPU_CALL(device, gpu, event_record, gpu->mark[1], gpu->stream);

    if (status == VP_DEV_OK)
        status = VP_GPU_CALL(device, gpu, event_wait, gpu->mark[1]);
    if (status == VP_DEV_OK)
        status = VP_GPU_CALL(device, gpu, event_elapsed, &ms, gpu->mark[0], gpu->mark[1]);
    *us = (double)ms * 1e3;
    return status;
}

enum vp_dev_status vp_gpu_sync(struct vp_dev *device) {
    struct vp_gpu *gpu = device->state;
    return VP_GPU_CALL(device, gpu, stream_wait, gpu->stream);
}

/* ---- graphs ---- */

enum vp_dev_status vp_gpu_graph_begin(struct vp_dev *device) {
    enum { THREAD_LOCAL = 1 };
    struct vp_gpu *gpu = device->state;
    const struct vp_driver_calls *call = &gpu->call;

    if (!call->capture_begin || !call->capture_end)
        return missing(device, VP_CALL_capture_begin);
    if (!call->graph_make || !call->graph_launch || !call->graph_free ||
        !call->graph_executable_free)
        return missing(device, VP_CALL_graph_make);
    enum vp_dev_status status = VP_GPU_CALL(device, gpu, capture_begin, gpu->stream, THREAD_LOCAL);
    gpu->capturing = status == VP_DEV_OK;
    return status;
}

enum vp_dev_status vp_gpu_graph_end(struct vp_dev *device, void **graph) {
    struct vp_gpu *gpu = device->state;
    void *recorded = NULL;
    enum vp_dev_status status = VP_GPU_CALL(device, gpu, capture_end, gpu->stream, &recorded);

    *graph = NULL;
    gpu->capturing = false;
    if (status == VP_DEV_OK)
        status = VP_GPU_CALL(device, gpu, graph_make, graph, recorded, 0);
    if (recorded)
        gpu->call.graph_free(recorded);
    return status;
}

enum vp_dev_status vp_gpu_graph_launch(struct vp_dev *device, void *graph) {
    struct vp_gpu *gpu = device->state;
    return VP_GPU_CALL(device, gpu, graph_launch, graph, gpu->stream);
}

void vp_gpu_graph_release(struct vp_dev *device, void *graph) {
    struct vp_gpu *gpu = device->state;
    if (graph)
        gpu->call.graph_executable_free(graph);
}

/* ---- links ---- */

enum vp_dev_status vp_gpu_link(struct vp_dev *device, uint32_t index, char out[VP_DEV_TEXT]) {
    struct vp_gpu *gpu = device->state;
    uint32_t type = 0, hops = 0;
    const char *name;

    if (!gpu->call.link_type || !gpu->kind->link_name)
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "the %s driver does not name links",
                           gpu->kind->name);
    enum vp_dev_status status = VP_GPU_CALL(device, gpu, link_type, 0, (int)index, &type, &hops);
    if (status != VP_DEV_OK)
        return status;
    name = gpu->kind->link_name(type);
    if (!name)
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "a link of unknown type %u", type);
    snprintf(out, VP_DEV_TEXT, "%s", name);
    return VP_DEV_OK;
}
