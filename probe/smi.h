/* AMD's librocm_smi64, where it is installed: a second witness of what sysfs says, never needed.
 * Its plain calls only: structures of it grow by version, and amd_smi's names change every year. In
 * CPX mode it lists every partition with the bytes of the whole card: whoever asks has to divide.
 *
 * To be used in a process of its own (child.h). VRAMPLAN_GPU_LIBRARIES as in gpu_library.h. */
#ifndef VP_PROBE_SMI_H
#define VP_PROBE_SMI_H

#include "probe/gpu.h"

struct vp_smi_calls {
    int (*init)(uint64_t flags);
    int (*shut_down)(void);
    int (*count)(uint32_t *out);
    int (*pci_id)(uint32_t index, uint64_t *out);
    int (*total)(uint32_t index, int kind, uint64_t *out);
    int (*used)(uint32_t index, int kind, uint64_t *out);
    int (*name)(uint32_t index, char *out, size_t size);
    int (*power_cap)(uint32_t index, uint32_t sensor, uint64_t *out_uw);
};

struct vp_smi {
    struct vp_smi_calls call;
    bool initialised;
    uint32_t count;
    char version[VP_DEV_TEXT];
};

/* NULL, or why it cannot be asked: text in the arena. */
const char *vp_smi_open(struct vp_arena *arena, struct vp_smi *out);
/* Fills pci, name, driver, total_bytes, free_bytes, power_cap_mw, as far as it is told. False:
 * nothing about that device. */
bool vp_smi_info(const struct vp_smi *smi, uint32_t index, struct vp_dev_info *out);
void vp_smi_close(struct vp_smi *smi);

#endif
