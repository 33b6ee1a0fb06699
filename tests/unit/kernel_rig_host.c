#include "tests/unit/kernel_rig.h"

#include <math.h>
#include <string.h>

#include "probe/kernels/kernel_all.h"

static const struct {
    const char *name;
    void (*run)(void *, void *, void *, void *, void *, struct vp_numbers);
} KERNELS[] = {
#define X(name) {#name, name},
#include "probe/kernel_entries.def"
#undef X
};

bool rig_run_host(const struct rig_launch *l) {
    struct vp_numbers p;

    memcpy(&p, &l->numbers, sizeof p);
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++) {
        if (strcmp(KERNELS[i].name, l->kernel))
            continue;
        vp_host_blocks = l->blocks;
        for (vp_host_block = 0; vp_host_block < l->blocks; vp_host_block++)
            KERNELS[i].run(l->buffer[0], l->buffer[1], l->buffer[2], l->buffer[3], l->buffer[4], p);
        return true;
    }
    return false;
}
