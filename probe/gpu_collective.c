/* All-reduce by RCCL or NCCL, which share their names: one process, a stream per device. */
#include <string.h>

#include "planner/base/clock.h"
#include "probe/gpu_driver.h"

enum { MOST_RANKS = 16, BFLOAT16 = 9, SUM = 0, WARM_UPS = 5, REPEATS = 20 };

static const struct vp_library_symbol SYMBOLS[] = {
#define VP_COLLECTIVE(result, member, parameters, need, hip, cuda)                                 \
    {{hip, cuda}, offsetof(struct vp_collective_calls, member), need},
#include "probe/gpu_symbols.def"
};

struct ring {
    struct vp_collective_calls call;
    uint32_t ranks;
    uint64_t bytes;
    void *communicator[MOST_RANKS], *stream[MOST_RANKS], *memory[MOST_RANKS];
};

static enum vp_dev_status check(struct vp_dev *device, const struct ring *r, int code,
                                const char *what) {
    return code ? vp_dev_fail(device, VP_DEV_FAILED, "%s: %.120s", what, r->call.error_text(code))
                : VP_DEV_OK;
}

static enum vp_dev_status load(struct vp_dev *device, struct ring *r) {
    const struct vp_gpu *gpu = device->state;
    struct vp_library library;
    const char *why =
        vp_library_open(device->arena, &library, vp_gpu_folders(device), &gpu->kind->collective);
    if (why)
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "%s", why);
    why = vp_library_load(&r->call, SYMBOLS, sizeof SYMBOLS / sizeof *SYMBOLS, &library,
                          gpu->kind->family);
    return why ? vp_dev_fail(device, VP_DEV_UNSUPPORTED, "%s has no %s", gpu->kind->collective.stem,
                             why)
               : VP_DEV_OK;
}

static enum vp_dev_status reduce_once(struct vp_dev *device, const struct ring *r) {
    int code = r->call.group_start();

    for (uint32_t i = 0; code == 0 && i < r->ranks; i++)
        code = r->call.all_reduce(r->memory[i], r->memory[i], r->bytes / 2, BFLOAT16, SUM,
                                  r->communicator[i], r->stream[i]);
    if (code == 0)
        code = r->call.group_end();
    return check(device, r, code, "all-reduce");
}

static enum vp_dev_status wait_all(struct vp_dev *device, const struct ring *r) {
    struct vp_gpu *gpu = device->state;
    enum vp_dev_status status = VP_DEV_OK;

    for (uint32_t i = 0; status == VP_DEV_OK && i < r->ranks; i++)
        status = VP_GPU_CALL(device, gpu, stream_wait, r->stream[i]);
    return status;
}

static enum vp_dev_status repeat(struct vp_dev *device, const struct ring *r, unsigned times) {
    enum vp_dev_status status = VP_DEV_OK;

    while (status == VP_DEV_OK && times-- > 0)
        status = reduce_once(device, r);
    return status == VP_DEV_OK ? wait_all(device, r) : status;
}

/* Memory and a stream on every device; what a communicator takes of device 0. */
static enum vp_dev_status prepare(struct vp_dev *device, struct ring *r,
                                  uint64_t *communicator_bytes) {
    struct vp_gpu *gpu = device->state;
    int index[MOST_RANKS];
    uint64_t before = 0, after = 0, total;
    enum vp_dev_status status = VP_DEV_OK;

    for (uint32_t i = 0; status == VP_DEV_OK && i < r->ranks; i++) {
        index[i] = (int)i;
        status = gpu->kind->make_current(device, i);
        if (status == VP_DEV_OK)
            status = VP_GPU_CALL(device, gpu, stream_create, &r->stream[i], 1);
        if (status == VP_DEV_OK)
            status = vp_gpu_alloc(device, &r->memory[i], r->bytes);
    }
    if (status == VP_DEV_OK)
        status = gpu->kind->make_current(device, 0);
    if (status == VP_DEV_OK)
        status = vp_gpu_memory(device, &before, &total);
    if (status == VP_DEV_OK)
        status = check(device, r, r->call.init_all(r->communicator, (int)r->ranks, index),
                       "communicator");
    if (status == VP_DEV_OK)
        status = repeat(device, r, WARM_UPS); /* buffers are taken at the first use */
    if (status == VP_DEV_OK)
        status = vp_gpu_memory(device, &after, &total);
    *communicator_bytes = before > after ? before - after : 0;
    return status;
}

enum vp_dev_status vp_gpu_all_reduce(struct vp_dev *device, uint32_t ranks, uint64_t bytes,
                                     double *us, uint64_t *communicator_bytes) {
    struct vp_gpu *gpu = device->state;
    struct ring ring = {.ranks = ranks, .bytes = bytes}, *r = &ring;
    enum vp_dev_status status = load(device, r);

    if (status == VP_DEV_OK && (ranks < 2 || ranks > MOST_RANKS))
        status = vp_dev_fail(device, VP_DEV_UNSUPPORTED, "all-reduce over %u devices", ranks);
    if (status != VP_DEV_OK)
        return status;
    status = prepare(device, r, communicator_bytes);
    double began = vp_clock_seconds();
    if (status == VP_DEV_OK)
        status = repeat(device, r, REPEATS);
    *us = (vp_clock_seconds() - began) * 1e6 / REPEATS;
    for (uint32_t i = 0; i < ranks; i++) {
        if (r->communicator[i])
            r->call.destroy(r->communicator[i]);
        if (gpu->kind->make_current(device, i) != VP_DEV_OK)
            continue;
        vp_gpu_release(device, r->memory[i]);
        if (r->stream[i])
            gpu->call.stream_destroy(r->stream[i]);
    }
    if (gpu->kind->make_current(device, gpu->index) != VP_DEV_OK && status == VP_DEV_OK)
        status = VP_DEV_FAILED;
    return status;
}
