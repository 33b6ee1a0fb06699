/* A device without hardware, for tests: a clock that only work moves, times by a roofline, and a
 * script of troubles. VRAMPLAN_FAKE holds words "name=value", separated by blanks:
 *
 *   name=TEXT     of the device ("fake")
 *   devices=N     how many there are (1; 0: none)
 *   library=0     the driver's library is missing
 *   memory=BYTES  of the device (8589934592)
 *   tflops=X      of 16-bit products (100); gbs=X of its memory (1000); launch=US (5)
 *   noise=X       every second batch takes that share longer (0)
 *   drift=X       every batch takes that share longer than the one before (0)
 *   fail=NAME     KERNEL or call of that name ends with an error: "gemm", "decode", "open", "alloc"
 *   crash=NAME, abort=NAME, hang=NAME   the same, but the process dies, or waits for ever
 *   after=N       the trouble begins with the N-th such call (1)
 *   unsupported=NAME
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/gpu.h"

struct state {
    double now_us, started_us;
    uint64_t free_bytes, calls, marks;
    bool graph;
};

/* Value of a word of the script, copied; "" when it is not there. */
static const char *word(const char *name, char out[VP_DEV_TEXT]) {
    const char *script = getenv("VRAMPLAN_FAKE");
    size_t length = strlen(name);

    out[0] = '\0';
    while (script && *script) {
        size_t n = strcspn(script, " ");
        if (n > length && !strncmp(script, name, length) && script[length] == '=')
            snprintf(out, VP_DEV_TEXT, "%.*s", (int)(n - length - 1), script + length + 1);
        script += n + strspn(script + n, " ");
    }
    return out;
}

static double figure(const char *name, double otherwise) {
    char text[VP_DEV_TEXT];
    return *word(name, text) ? strtod(text, NULL) : otherwise;
}

static bool is(const char *trouble, const char *call) {
    char text[VP_DEV_TEXT];
    return !strcmp(word(trouble, text), call);
}

/* What the script wants of this call. */
static enum vp_dev_status trouble(struct vp_dev *device, const char *call) {
    static const char *const KINDS[] = {"fail", "crash", "abort", "hang", "unsupported"};
    static uint64_t calls; /* of the one that makes trouble; the process has one device */
    unsigned kind = 0;

    while (kind < sizeof KINDS / sizeof *KINDS && !is(KINDS[kind], call))
        kind++;
    if (kind == sizeof KINDS / sizeof *KINDS || (double)++calls < figure("after", 1))
        return VP_DEV_OK;
    switch (kind) {
    case 0:
        return vp_dev_fail(device, VP_DEV_FAILED, "fake error 719 in %s", call);
    case 1:
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would end the process its own way */
        raise(SIGSEGV);
        break;
    case 2:
        fprintf(stderr, "munmap_chunk(): invalid pointer\n");
        abort();
    case 3:
        for (;;)
            pause();
    default:
        break;
    }
    return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "%s is not done by this fake", call);
}

static enum vp_dev_status open_fake(struct vp_dev *device) {
    struct state *state = VP_NEW(device->arena, struct state);
    state->free_bytes = (uint64_t)figure("memory", 8.0 * (1 << 30));
    device->state = state;
    if (figure("library", 1) == 0)
        return vp_dev_fail(device, VP_DEV_NO_LIBRARY, "libfake.so was not found");
    return trouble(device, "open");
}

static void close_fake(struct vp_dev *device) { device->state = NULL; }

static enum vp_dev_status count(struct vp_dev *device, uint32_t *out) {
    *out = (uint32_t)figure("devices", 1);
    return *out ? VP_DEV_OK : vp_dev_fail(device, VP_DEV_NO_DEVICE, "the driver finds no device");
}

static enum vp_dev_status info(struct vp_dev *device, uint32_t index, struct vp_dev_info *out) {
    const struct state *state = device->state;
    char name[VP_DEV_TEXT];

    *out = (struct vp_dev_info){.arch = "gfx942",
                                .driver = "fake 1.0",
                                .library = "fakeBLAS 1.0",
                                .kernels = "fake",
                                .total_bytes = (uint64_t)figure("memory", 8.0 * (1 << 30)),
                                .free_bytes = state->free_bytes,
                                .compute_units = 304,
                                .cache_bytes = 256 << 20,
                                .clock_khz = 2100000,
                                .power_cap_mw = 750000,
                                .fp8_fnuz = true};
    snprintf(out->name, sizeof out->name, "%s", *word("name", name) ? name : "fake");
    snprintf(out->pci, sizeof out->pci, "0000:c%u:00.0", index + 1);
    return VP_DEV_OK;
}

static enum vp_dev_status use(struct vp_dev *device, uint32_t index) {
    struct state *state = device->state;
    (void)index;
    state->free_bytes -= 300 << 20; /* a context */
    return trouble(device, "use");
}

static enum vp_dev_status memory(struct vp_dev *device, uint64_t *free_bytes,
                                 uint64_t *total_bytes) {
    const struct state *state = device->state;
    *free_bytes = state->free_bytes;
    *total_bytes = (uint64_t)figure("memory", 8.0 * (1 << 30));
    return trouble(device, "memory");
}

/* Memory is addresses; the size stands in front of what is handed out. Nothing is ever touched
 * beyond that, so gigabytes cost nothing. */
enum { GRANULE = 2 << 20 };

static enum vp_dev_status alloc(struct vp_dev *device, void **out, uint64_t bytes) {
    struct state *state = device->state;
    uint64_t taken = (bytes + GRANULE - 1) / GRANULE * GRANULE;
    enum vp_dev_status status = trouble(device, "alloc");

    if (status != VP_DEV_OK)
        return status;
    if (taken > state->free_bytes)
        return vp_dev_fail(device, VP_DEV_NO_MEMORY, "fake error 2: out of memory");
    uint64_t *header = VP_NEW(device->arena, uint64_t);
    *header = taken;
    state->free_bytes -= taken;
    *out = header;
    return VP_DEV_OK;
}

static void release(struct vp_dev *device, void *taken) {
    struct state *state = device->state;
    if (taken)
        state->free_bytes += *(uint64_t *)taken;
}

static enum vp_dev_status alloc_host(struct vp_dev *device, void **out, uint64_t bytes) {
    (void)bytes;
    *out = VP_NEW(device->arena, uint64_t);
    return trouble(device, "alloc_host");
}

static void release_host(struct vp_dev *device, void *taken) { (void)device, (void)taken; }

/* A batch is what lies between two marks. */
static void pass(struct vp_dev *device, double us) {
    struct state *state = device->state;
    double noise = state->marks % 2 ? figure("noise", 0) : 0;
    double drift = figure("drift", 0) * (double)state->marks;
    state->now_us += us * (1 + noise) * (1 + drift);
}

static enum vp_dev_status copy(struct vp_dev *device, void *to, const void *from, uint64_t bytes,
                               enum vp_dev_copy kind) {
    (void)to, (void)from;
    pass(device, 2 + (double)bytes / (kind == VP_COPY_ON_DEVICE ? 1e6 : 50e3));
    return trouble(device, "copy");
}

/* FLOPs and bytes of a launch, coarsely. */
static double roofline_us(const struct vp_dev_work *w) {
    double m = (double)w->m, n = (double)w->n, k = (double)w->k, bytes = 0, flops = 0;
    double size = (double)vp_dev_type_bytes(w->type);

    switch (w->kernel) {
    case VP_KERNEL_GEMM:
    case VP_KERNEL_GEMV:
    case VP_KERNEL_RECOMPUTE:
        flops = 2 * m * n * k * size / 2;
        bytes = (m * k + n * k) * size + 2 * m * n;
        break;
    case VP_KERNEL_DECODE:
    case VP_KERNEL_PREFILL:
        bytes = 2 * (double)(w->batch * w->kv_heads * w->head_dim) * n * size;
        flops = w->kernel == VP_KERNEL_PREFILL
                    ? 2 * n * n * (double)(w->batch * w->heads * w->head_dim)
                    : 0;
        break;
    case VP_KERNEL_EMPTY:
        break;
    default:
        bytes = 4 * (m > 0 ? m : 1) * n;
        break;
    }
    double compute = flops / (figure("tflops", 100) * 1e6),
           memory_us = bytes / (figure("gbs", 1000) * 1e3);
    return figure("launch", 5) + (compute > memory_us ? compute : memory_us);
}

static enum vp_dev_status launch(struct vp_dev *device, const struct vp_dev_work *work) {
    const struct state *state = device->state;
    if (!state->graph)
        pass(device, roofline_us(work));
    return trouble(device, vp_dev_kernel_name(work->kernel));
}

static enum vp_dev_status gemm(struct vp_dev *device, const struct vp_dev_work *work) {
    pass(device, 0.9 * roofline_us(work));
    return trouble(device, "blas");
}

static enum vp_dev_status open_blas(struct vp_dev *device) {
    struct state *state = device->state;
    state->free_bytes -= 64 << 20;
    return trouble(device, "open_blas");
}

static enum vp_dev_status start(struct vp_dev *device) {
    struct state *state = device->state;
    state->marks++;
    state->started_us = state->now_us;
    return trouble(device, "start");
}

static enum vp_dev_status stop(struct vp_dev *device, double *us) {
    const struct state *state = device->state;
    *us = state->now_us - state->started_us;
    return trouble(device, "stop");
}

static enum vp_dev_status sync_fake(struct vp_dev *device) {
    pass(device, 1);
    return trouble(device, "sync");
}

static enum vp_dev_status graph_begin(struct vp_dev *device) {
    struct state *state = device->state;
    state->graph = true;
    return trouble(device, "graph");
}

static enum vp_dev_status graph_end(struct vp_dev *device, void **graph) {
    struct state *state = device->state;
    state->graph = false;
    return alloc(device, graph, 1);
}

static enum vp_dev_status graph_launch(struct vp_dev *device, void *graph) {
    (void)graph;
    pass(device, 10);
    return VP_DEV_OK;
}

static enum vp_dev_status all_reduce(struct vp_dev *device, uint32_t ranks, uint64_t bytes,
                                     double *us, uint64_t *communicator_bytes) {
    double share = 2.0 * (ranks - 1) / ranks;
    *us = 10 + share * (double)bytes / 300e3;
    *communicator_bytes = 200 << 20;
    return trouble(device, "all_reduce");
}

static void clocks(struct vp_dev *device, uint64_t *clock_khz, uint64_t *power_mw) {
    (void)device;
    *clock_khz = 1900000;
    *power_mw = 500000;
}

const struct vp_dev_backend vp_fake_backend = {.name = "fake",
                                               .open = open_fake,
                                               .close = close_fake,
                                               .count = count,
                                               .info = info,
                                               .use = use,
                                               .memory = memory,
                                               .alloc = alloc,
                                               .release = release,
                                               .alloc_host = alloc_host,
                                               .release_host = release_host,
                                               .copy = copy,
                                               .launch = launch,
                                               .gemm = gemm,
                                               .open_blas = open_blas,
                                               .start = start,
                                               .stop = stop,
                                               .sync = sync_fake,
                                               .graph_begin = graph_begin,
                                               .graph_end = graph_end,
                                               .graph_launch = graph_launch,
                                               .graph_release = release,
                                               .clocks = clocks,
                                               .all_reduce = all_reduce};
