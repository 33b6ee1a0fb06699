#include "probe/gpu.h"

static enum vp_dev_status open_cuda(struct vp_dev *device) {
    return vp_dev_fail(device, VP_DEV_NO_LIBRARY, "not built yet");
}

static void close_cuda(struct vp_dev *device) { (void)device; }

const struct vp_dev_backend vp_cuda_backend = {.name = "cuda", .open = open_cuda, .close = close_cuda};
