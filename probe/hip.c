#include "probe/gpu.h"

static enum vp_dev_status open_hip(struct vp_dev *device) {
    return vp_dev_fail(device, VP_DEV_NO_LIBRARY, "not built yet");
}

static void close_hip(struct vp_dev *device) { (void)device; }

const struct vp_dev_backend vp_hip_backend = {.name = "hip", .open = open_hip, .close = close_hip};
