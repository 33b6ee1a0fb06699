#include "probe/gpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const STATUS[] = {"done",      "no library",    "no device",
                                     "no memory", "not supported", "failed"};
static const char *const KERNELS[] = {
#define X(name, text, meaning) text,
#include "probe/probe_kernels.def"
#undef X
};
/* as in the columns of sample files */
static const char *const TYPES[] = {"bfloat16", "float32", "fp8", "int8"};

const char *vp_dev_status_name(enum vp_dev_status status) { return STATUS[status]; }

const char *vp_dev_kernel_name(enum vp_dev_kernel kernel) { return KERNELS[kernel]; }

const char *vp_dev_type_name(enum vp_dev_type type) { return TYPES[type]; }

uint64_t vp_dev_type_bytes(enum vp_dev_type type) {
    return type == VP_TYPE_FP32 ? 4 : type == VP_TYPE_BF16 ? 2 : 1;
}

enum vp_dev_status vp_dev_fail(struct vp_dev *device, enum vp_dev_status status, const char *format,
                               ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(device->why, sizeof device->why, format, arguments);
    va_end(arguments);
    return status;
}

const struct vp_dev_backend *vp_dev_backend_find(const char *name) {
    static const struct vp_dev_backend *const ALL[] = {&vp_hip_backend, &vp_cuda_backend,
                                                       &vp_cpu_backend, &vp_fake_backend};
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
        if (!strcmp(ALL[i]->name, name))
            return ALL[i];
    return NULL;
}
