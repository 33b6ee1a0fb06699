#include "probe/smi.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "probe/gpu_library.h"

enum { VRAM = 0 }; /* rsmi_memory_type_t */

static const char *const FOLDERS[] = {
    "", "$ROCM_PATH/lib", "/opt/rocm/lib", "/opt/rocm/core-*/lib", "/opt/rocm-*/lib", NULL};

static const struct vp_library_symbol SYMBOLS[] = {
#define SYMBOL(member, name, needed)                                                               \
    { {name, NULL}, offsetof(struct vp_smi_calls, member), needed }
    SYMBOL(init, "rsmi_init", true),
    SYMBOL(shut_down, "rsmi_shut_down", true),
    SYMBOL(count, "rsmi_num_monitor_devices", true),
    SYMBOL(pci_id, "rsmi_dev_pci_id_get", true),
    SYMBOL(total, "rsmi_dev_memory_total_get", true),
    SYMBOL(used, "rsmi_dev_memory_usage_get", true),
    SYMBOL(name, "rsmi_dev_name_get", false),
    SYMBOL(power_cap, "rsmi_dev_power_cap_get", false),
#undef SYMBOL
};

const char *vp_smi_open(struct vp_arena *arena, struct vp_smi *out) {
    /* the number follows ROCm's, or was 1 where that was not known when it was built */
    static const struct vp_library_name NAME = {"librocm_smi64", 16, 1};
    struct vp_library library;

    *out = (struct vp_smi){.count = 0};
    const char *why = vp_library_open(arena, &library, vp_library_folders(arena, FOLDERS), &NAME);
    if (why)
        return why;
    const char *missing =
        vp_library_load(&out->call, SYMBOLS, sizeof SYMBOLS / sizeof *SYMBOLS, &library, 0);
    if (missing)
        return vp_arena_printf(arena, "librocm_smi64 has no %s", missing);
    vp_library_about(&library, "rsmi_init");
    snprintf(out->version, sizeof out->version, "librocm_smi64 %.60s", library.version);
    int code = out->call.init(0);
    if (code)
        return vp_arena_printf(arena, "rsmi_init: status %d", code);
    out->initialised = true;
    code = out->call.count(&out->count);
    return code ? vp_arena_printf(arena, "rsmi_num_monitor_devices: status %d", code) : NULL;
}

/* Domain in the upper half; a partition's number in the bits 28 to 31. */
static void address(char out[VP_DEV_TEXT], uint64_t id) {
    snprintf(out, VP_DEV_TEXT, "%04" PRIx64 ":%02" PRIx64 ":%02" PRIx64 ".%" PRIx64,
             id >> 32 & 0xffff, id >> 8 & 0xff, id >> 3 & 0x1f, id & 7);
}

bool vp_smi_info(const struct vp_smi *smi, uint32_t index, struct vp_dev_info *out) {
    uint64_t id = 0, total = 0, used = 0, cap_uw = 0;

    *out = (struct vp_dev_info){.total_bytes = 0};
    if (smi->call.pci_id(index, &id) != 0 || smi->call.total(index, VRAM, &total) != 0 || !total)
        return false;
    address(out->pci, id);
    snprintf(out->driver, sizeof out->driver, "%s", smi->version);
    out->total_bytes = out->free_bytes = total;
    if (smi->call.used(index, VRAM, &used) == 0 && used <= total)
        out->free_bytes = total - used;
    if (!smi->call.name || smi->call.name(index, out->name, sizeof out->name - 1) != 0 ||
        strncmp(out->name, "0x", 2) == 0) /* its number, where the system has no table of names */
        out->name[0] = '\0';
    out->name[sizeof out->name - 1] = '\0';
    if (smi->call.power_cap && smi->call.power_cap(index, 0, &cap_uw) == 0)
        out->power_cap_mw = cap_uw / 1000;
    return true;
}

void vp_smi_close(struct vp_smi *smi) {
    if (smi->initialised)
        smi->call.shut_down();
    smi->initialised = false;
}
