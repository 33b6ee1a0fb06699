/* What a process takes of a device's memory, as differences of what is free. Others that use the
 * device at the same time disturb them. */
#include <string.h>

#include "probe/bench_parts.h"

static enum vp_dev_status free_now(struct vp_bench_session *s, uint64_t *out) {
    uint64_t total;
    enum vp_dev_status status = s->run->backend->sync(&s->device);
    return status == VP_DEV_OK ? s->run->backend->memory(&s->device, out, &total) : status;
}

static enum vp_dev_status context(struct vp_bench_session *s, uint64_t *out) {
    if (!s->context_bytes)
        return vp_dev_fail(&s->device, VP_DEV_UNSUPPORTED,
                           "what was free before the first call is not known");
    *out = s->context_bytes;
    return VP_DEV_OK;
}

/* Handle, workspace and the code of one product. */
static enum vp_dev_status blas(struct vp_bench_session *s, uint64_t *out) {
    enum { SIDE = 512 };
    const struct vp_bench_item item = {.kernel = VP_KERNEL_GEMM, .m = SIDE, .n = SIDE, .k = SIDE};
    struct vp_dev_work work = {.kernel = item.kernel, .m = SIDE, .n = SIDE, .k = SIDE};
    struct vp_bench_buffers buffers;
    uint64_t before = 0, after = 0, at = 0;

    if (!s->run->backend->gemm)
        return vp_dev_fail(&s->device, VP_DEV_UNSUPPORTED, "there is no vendor's library");
    vp_bench_buffers(&buffers, &item);
    enum vp_dev_status status =
        vp_bench_pool_need(s, buffers.bytes[0] + buffers.bytes[1] + buffers.bytes[2]);
    for (unsigned i = 0; i < 3; i++) {
        work.buffer[i] = s->pool.memory + at;
        at += buffers.bytes[i];
    }
    if (status == VP_DEV_OK)
        status = free_now(s, &before);
    if (status == VP_DEV_OK && s->run->backend->open_blas)
        status = s->run->backend->open_blas(&s->device);
    if (status == VP_DEV_OK)
        status = s->run->backend->gemm(&s->device, &work);
    if (status == VP_DEV_OK)
        status = free_now(s, &after);
    *out = before > after ? before - after : 0;
    return status;
}

static enum vp_dev_status graph(struct vp_bench_session *s, uint64_t *out) {
    enum { KERNELS = 1000 };
    const struct vp_dev_backend *b = s->run->backend;
    const struct vp_dev_work empty = {.kernel = VP_KERNEL_EMPTY};
    uint64_t before = 0, after = 0;
    void *recorded = NULL;

    if (!b->graph_begin || !b->graph_end || !b->graph_launch || !b->graph_release)
        return vp_dev_fail(&s->device, VP_DEV_UNSUPPORTED, "this back end records no graphs");
    enum vp_dev_status status = free_now(s, &before);
    if (status == VP_DEV_OK)
        status = b->graph_begin(&s->device);
    if (status == VP_DEV_OK) {
        for (unsigned i = 0; status == VP_DEV_OK && i < KERNELS; i++)
            status = b->launch(&s->device, &empty);
        /* also when a launch failed: what follows must not be recorded */
        enum vp_dev_status ended = b->graph_end(&s->device, &recorded);
        status = status == VP_DEV_OK ? ended : status;
    }
    if (status == VP_DEV_OK)
        status = b->graph_launch(&s->device, recorded);
    if (status == VP_DEV_OK)
        status = free_now(s, &after);
    if (recorded)
        b->graph_release(&s->device, recorded);
    *out = before > after ? before - after : 0;
    return status;
}

/* How much goes at once when single bytes are taken, once the piece at hand is used up. */
static enum vp_dev_status granularity(struct vp_bench_session *s, uint64_t *out) {
    enum { TRIES = 8192 };
    void **taken = VP_NEW_ARRAY(s->device.arena, TRIES, void *);
    uint64_t before = 0, after = 0;
    unsigned n = 0, drops = 0;
    enum vp_dev_status status = free_now(s, &before);

    while (status == VP_DEV_OK && n < TRIES && drops < 2) {
        status = s->run->backend->alloc(&s->device, &taken[n], 1);
        if (status == VP_DEV_OK) {
            n++;
            status = free_now(s, &after);
        }
        if (status == VP_DEV_OK && after < before) {
            *out = before - after;
            before = after;
            drops++;
        }
    }
    while (n > 0)
        s->run->backend->release(&s->device, taken[--n]);
    if (status == VP_DEV_OK && drops < 2)
        return vp_dev_fail(&s->device, VP_DEV_UNSUPPORTED,
                           "small allocations do not show in what is free");
    return status;
}

/* By halving, to 16 MiB. Of what the pool leaves. */
static enum vp_dev_status largest(struct vp_bench_session *s, uint64_t *out) {
    static const uint64_t STEP = 16 << 20;
    const struct vp_dev_backend *b = s->run->backend;
    uint64_t high = 0, low = 0;

    b->release(&s->device, s->pool.memory);
    s->pool = (struct vp_bench_pool){0};
    enum vp_dev_status status = free_now(s, &high);
    high = high / STEP + 1;
    while (status == VP_DEV_OK && high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        void *memory = NULL;
        status = b->alloc(&s->device, &memory, middle * STEP);
        if (status == VP_DEV_OK)
            b->release(&s->device, memory);
        *(status == VP_DEV_OK ? &low : &high) = middle;
        if (status == VP_DEV_NO_MEMORY)
            status = VP_DEV_OK;
    }
    *out = low * STEP;
    return status;
}

static enum vp_dev_status communicator(struct vp_bench_session *s, uint64_t *out) {
    enum { RANKS = 2, BYTES = 1 << 20 };
    double us;

    if (!s->run->backend->all_reduce)
        return vp_dev_fail(&s->device, VP_DEV_UNSUPPORTED, "this back end has no all-reduce");
    return s->run->backend->all_reduce(&s->device, RANKS, BYTES, &us, out);
}

enum vp_dev_status vp_bench_memory(struct vp_bench_session *s, struct vp_sample *out,
                                   const struct vp_bench_item *item) {
    static const struct {
        const char *name;
        enum vp_dev_status (*measure)(struct vp_bench_session *s, uint64_t *out);
    } CONSTANT[] = {{"context", context}, {"blas", blas},
                    {"graph", graph},     {"granularity", granularity},
                    {"largest", largest}, {"communicator", communicator}};

    for (size_t i = 0; i < sizeof CONSTANT / sizeof *CONSTANT; i++)
        if (!strcmp(CONSTANT[i].name, item->name)) {
            uint64_t bytes = 0;
            enum vp_dev_status status = CONSTANT[i].measure(s, &bytes);
            out->value = (double)bytes;
            return status;
        }
    return vp_dev_fail(&s->device, VP_DEV_UNSUPPORTED, "\"%s\" cannot be measured", item->name);
}
