/* The processor as a device: every figure is a real timing (cpu_kernels.h says of what), FP8 is
 * emulated. Queues nothing: a launch returns when it is done. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/cpu_kernels.h"

struct state {
    struct vp_cpu cpu;
    double started_us;
};

static enum vp_dev_status open_cpu(struct vp_dev *device) {
    struct state *state = VP_NEW(device->arena, struct state);
    vp_cpu_init(&state->cpu);
    device->state = state;
    return VP_DEV_OK;
}

static void close_cpu(struct vp_dev *device) {
    struct state *state = device->state;
    if (state)
        vp_cpu_free(&state->cpu);
    device->state = NULL;
}

static enum vp_dev_status count(struct vp_dev *device, uint32_t *out) {
    (void)device;
    *out = 1;
    return VP_DEV_OK;
}

/* First line of a small file under /sys or /proc that begins with `key`, behind it and a colon; key
 * NULL: the first line. False: there is none. */
static bool line_of(char *out, size_t size, const char *path, const char *key) {
    FILE *f = fopen(path, "r");
    char line[512];
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f)) {
        char *text = line, *colon = strchr(line, ':');
        line[strcspn(line, "\n")] = '\0';
        if (key) {
            if (strncmp(line, key, strlen(key)) != 0 || !colon)
                continue;
            text = colon + 1;
            text += strspn(text, " \t");
        }
        snprintf(out, size, "%.*s", (int)size - 1, text);
        found = true;
    }
    if (f)
        fclose(f);
    return found;
}

/* The largest cache that a core sees; "32768K" in sysfs. 0: not told. */
static uint64_t cache_bytes(void) {
    uint64_t largest = 0;
    for (unsigned i = 0; i < 8; i++) {
        char path[96], text[64];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/size", i);
        if (!line_of(text, sizeof text, path, NULL))
            continue;
        char *end;
        uint64_t size = strtoull(text, &end, 10);
        size <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
        largest = size > largest ? size : largest;
    }
    return largest;
}

static uint64_t meminfo(const char *key) {
    char text[64];
    return line_of(text, sizeof text, "/proc/meminfo", key) ? strtoull(text, NULL, 10) << 10 : 0;
}

static enum vp_dev_status memory(struct vp_dev *device, uint64_t *free_bytes,
                                 uint64_t *total_bytes) {
    *free_bytes = meminfo("MemAvailable");
    *total_bytes = meminfo("MemTotal");
    if (*total_bytes)
        return VP_DEV_OK;
    return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "the system does not say what memory it has");
}

static enum vp_dev_status info(struct vp_dev *device, uint32_t index, struct vp_dev_info *out) {
    const struct state *state = device->state;
    (void)index;

    *out = (struct vp_dev_info){.fp8_emulated = true};
    if (!line_of(out->name, sizeof out->name, "/proc/cpuinfo", "model name"))
        snprintf(out->name, sizeof out->name, "processor");
#if defined __x86_64__
    snprintf(out->arch, sizeof out->arch, "x86-64");
#elif defined __aarch64__
    snprintf(out->arch, sizeof out->arch, "aarch64");
#endif
    snprintf(out->kernels, sizeof out->kernels, "C%s, %u thread%s",
             state->cpu.avx2 ? " with AVX2" : "", state->cpu.threads,
             state->cpu.threads == 1 ? "" : "s");
    memory(device, &out->free_bytes, &out->total_bytes);
    out->compute_units = state->cpu.threads;
    out->cache_bytes = cache_bytes();
    return VP_DEV_OK;
}

static enum vp_dev_status use(struct vp_dev *device, uint32_t index) {
    (void)device, (void)index;
    return VP_DEV_OK;
}

static enum vp_dev_status alloc(struct vp_dev *device, void **out, uint64_t bytes) {
    enum { LINE = 4096 };
    *out = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
    return *out ? VP_DEV_OK
                : vp_dev_fail(device, VP_DEV_NO_MEMORY, "the host has no memory for that");
}

static void release(struct vp_dev *device, void *memory_) {
    (void)device;
    free(memory_);
}

static enum vp_dev_status copy(struct vp_dev *device, void *to, const void *from, uint64_t bytes,
                               enum vp_dev_copy kind) {
    struct state *state = device->state;
    (void)kind;
    vp_cpu_copy(&state->cpu, to, from, bytes);
    return VP_DEV_OK;
}

static enum vp_dev_status launch(struct vp_dev *device, const struct vp_dev_work *work) {
    struct state *state = device->state;
    return vp_cpu_launch(device, &state->cpu, work);
}

static enum vp_dev_status start(struct vp_dev *device) {
    struct state *state = device->state;
    state->started_us = state->cpu.busy_us;
    return VP_DEV_OK;
}

static enum vp_dev_status stop(struct vp_dev *device, double *us) {
    const struct state *state = device->state;
    *us = state->cpu.busy_us - state->started_us;
    return VP_DEV_OK;
}

static enum vp_dev_status sync_cpu(struct vp_dev *device) {
    (void)device;
    return VP_DEV_OK;
}

const struct vp_dev_backend vp_cpu_backend = {.name = "cpu",
                                              .host = true,
                                              .open = open_cpu,
                                              .close = close_cpu,
                                              .count = count,
                                              .info = info,
                                              .use = use,
                                              .memory = memory,
                                              .alloc = alloc,
                                              .release = release,
                                              .alloc_host = alloc,
                                              .release_host = release,
                                              .copy = copy,
                                              .launch = launch,
                                              .start = start,
                                              .stop = stop,
                                              .sync = sync_cpu};
