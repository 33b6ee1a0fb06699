/* What the kernel's driver (AMD: sysfs) or NVML (NVIDIA) says without a context: memory in use by
 * anybody, clock, power. Nothing here is needed; what is not told stays 0. VRAMPLAN_SYSFS is read
 * instead of /sys. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/gpu_driver.h"

/* nvml.h */
struct nvml_memory {
    unsigned long long total, free_bytes, used;
};
enum { NVML_CLOCK_SM = 1 };

struct monitor_calls {
#define VP_MONITOR VP_GPU_POINTER
#include "probe/gpu_symbols.def"
};

static const struct vp_library_symbol SYMBOLS[] = {
#define VP_MONITOR(result, member, parameters, need, hip, cuda)                                    \
    {{hip, cuda}, offsetof(struct monitor_calls, member), need},
#include "probe/gpu_symbols.def"
};

struct vp_gpu_monitor {
    bool loaded; /* NVML, and initialised */
    struct monitor_calls call;
};

/* ---- AMD ---- */

/* A number in a file of the device's folder; the name may be a pattern. */
static uint64_t sysfs_number(const char *pci, const char *name) {
    const char *root = getenv("VRAMPLAN_SYSFS");
    char pattern[512];
    unsigned long long value = 0;
    glob_t found;

    snprintf(pattern, sizeof pattern, "%.300s/bus/pci/devices/%.32s/%.64s", root ? root : "/sys",
             pci, name);
    if (!pci[0] || glob(pattern, 0, NULL, &found) != 0)
        return 0;
    FILE *f = fopen(found.gl_pathv[0], "r");
    if (f) {
        if (fscanf(f, "%llu", &value) != 1)
            value = 0;
        fclose(f);
    }
    globfree(&found);
    return value;
}

static void amd_info(const char *pci, struct vp_dev_info *out) {
    uint64_t total = sysfs_number(pci, "mem_info_vram_total");
    uint64_t used = sysfs_number(pci, "mem_info_vram_used");

    if (total > used)
        out->free_bytes = total - used;
    out->power_cap_mw = sysfs_number(pci, "hwmon/hwmon*/power1_cap") / 1000;
}

static void amd_clocks(const char *pci, uint64_t *clock_khz, uint64_t *power_mw) {
    *clock_khz = sysfs_number(pci, "hwmon/hwmon*/freq1_input") / 1000;
    *power_mw = sysfs_number(pci, "hwmon/hwmon*/power1_average") / 1000;
    if (!*power_mw) /* the name of newer chips */
        *power_mw = sysfs_number(pci, "hwmon/hwmon*/power1_input") / 1000;
}

/* ---- NVIDIA ---- */

static const struct monitor_calls *nvml(struct vp_dev *device) {
    static const struct vp_library_name NAME = {"libnvidia-ml", 1, 1};
    struct vp_gpu *gpu = device->state;
    struct vp_library library;

    if (!gpu->monitor) {
        gpu->monitor = VP_NEW(device->arena, struct vp_gpu_monitor);
        gpu->monitor->loaded =
            !vp_library_open(device->arena, &library, gpu->folders, &NAME) &&
            !vp_library_load(&gpu->monitor->call, SYMBOLS, sizeof SYMBOLS / sizeof *SYMBOLS,
                             &library, gpu->kind->family) &&
            gpu->monitor->call.init() == 0;
    }
    return gpu->monitor->loaded ? &gpu->monitor->call : NULL;
}

static void nvidia_info(struct vp_dev *device, const char *pci, struct vp_dev_info *out) {
    const struct monitor_calls *call = nvml(device);
    struct nvml_memory memory;
    unsigned limit_mw = 0;
    void *handle = NULL;

    if (!call || call->by_bus_id(pci, &handle) != 0)
        return;
    if (call->memory(handle, &memory) == 0)
        out->free_bytes = memory.free_bytes;
    if (call->power_limit(handle, &limit_mw) == 0)
        out->power_cap_mw = limit_mw;
}

static void nvidia_clocks(struct vp_dev *device, const char *pci, uint64_t *clock_khz,
                          uint64_t *power_mw) {
    const struct monitor_calls *call = nvml(device);
    unsigned mhz = 0, mw = 0;
    void *handle = NULL;

    if (!call || call->by_bus_id(pci, &handle) != 0)
        return;
    if (call->clock(handle, NVML_CLOCK_SM, &mhz) == 0)
        *clock_khz = (uint64_t)mhz * 1000;
    if (call->power(handle, &mw) == 0)
        *power_mw = mw;
}

/* ---- both ---- */

void vp_gpu_monitor_info(struct vp_dev *device, struct vp_dev_info *out) {
    const struct vp_gpu *gpu = device->state;

    if (gpu->kind->family == 0)
        amd_info(out->pci, out);
    else
        nvidia_info(device, out->pci, out);
}

void vp_gpu_clocks(struct vp_dev *device, uint64_t *clock_khz, uint64_t *power_mw) {
    const struct vp_gpu *gpu = device->state;

    *clock_khz = *power_mw = 0;
    if (gpu->kind->family == 0)
        amd_clocks(gpu->pci, clock_khz, power_mw);
    else
        nvidia_clocks(device, gpu->pci, clock_khz, power_mw);
}
