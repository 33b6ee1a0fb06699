/* hipRTC and NVRTC: the kernels' text becomes code at run time. */
#include <string.h>

#include "probe/gpu_driver.h"
#include "probe/kernel_images.h"

struct compiler_calls {
#define VP_COMPILER VP_GPU_POINTER
#include "probe/gpu_symbols.def"
};

static const struct vp_library_symbol SYMBOLS[] = {
#define VP_COMPILER(result, member, parameters, need, hip, cuda)                                   \
    {{hip, cuda}, offsetof(struct compiler_calls, member), need},
#include "probe/gpu_symbols.def"
};

/* The first line of the compiler's log that names an error, else the first line. */
static const char *complaint(struct vp_arena *arena, const struct compiler_calls *call,
                             void *program) {
    size_t bytes = 0;

    if (call->log_size(program, &bytes) != 0 || bytes == 0 || bytes > 1 << 20)
        return "no reason given";
    char *log = VP_NEW_ARRAY(arena, bytes + 1, char);
    if (call->log(program, log) != 0)
        return "no reason given";
    char *line = strstr(log, "error");
    while (line && line > log && line[-1] != '\n')
        line--;
    line = line ? line : log;
    line[strcspn(line, "\n")] = '\0';
    return line;
}

enum vp_dev_status vp_gpu_compile(struct vp_dev *device, const struct vp_library *compiler,
                                  const char *const *options, int count, const void **out) {
    const struct vp_gpu *gpu = device->state;
    struct compiler_calls call;
    const char *missing = vp_library_load(&call, SYMBOLS, sizeof SYMBOLS / sizeof *SYMBOLS,
                                          compiler, gpu->kind->family);
    void *program = NULL;
    size_t bytes = 0;
    char *code = NULL;

    if (missing)
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "the compiler library has no %s", missing);
    if (call.create(&program, vp_kernel_text(device->arena), "vramplan_kernels", 0, NULL, NULL))
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "the compiler library does not start");
    int error = call.compile(program, count, options);
    if (error)
        vp_dev_fail(device, VP_DEV_UNSUPPORTED, "the kernels do not compile for %.20s: %.150s",
                    gpu->arch, complaint(device->arena, &call, program));
    else if ((error = call.code_size(program, &bytes)) != 0 || bytes == 0)
        vp_dev_fail(device, VP_DEV_UNSUPPORTED, "the compiler library gives no code");
    else {
        code = VP_NEW_ARRAY(device->arena, bytes, char);
        error = call.code(program, code);
        if (error)
            vp_dev_fail(device, VP_DEV_UNSUPPORTED, "the compiler library gives no code");
    }
    call.destroy(&program);
    *out = code;
    return error || !code ? VP_DEV_UNSUPPORTED : VP_DEV_OK;
}
