#include "tests/unit/kernel_rig.h"

#include <stdio.h>

#include "probe/gpu_library.h"

/* The part of OpenCL 1.2 that is used, declared here so that no header is needed. Handles are
 * pointers, numbers of type cl_int and cl_uint 32 bits, bit fields 64. */
static struct {
    int32_t (*clGetPlatformIDs)(uint32_t, void **, uint32_t *);
    int32_t (*clGetDeviceIDs)(void *, uint64_t, uint32_t, void **, uint32_t *);
    void *(*clCreateContext)(const intptr_t *, uint32_t, void *const *, void *, void *, int32_t *);
    void *(*clCreateCommandQueue)(void *, void *, uint64_t, int32_t *);
    void *(*clCreateProgramWithSource)(void *, uint32_t, const char **, const size_t *, int32_t *);
    int32_t (*clBuildProgram)(void *, uint32_t, void *const *, const char *, void *, void *);
    int32_t (*clGetProgramBuildInfo)(void *, void *, uint32_t, size_t, void *, size_t *);
    void *(*clCreateKernel)(void *, const char *, int32_t *);
    int32_t (*clReleaseKernel)(void *);
    void *(*clCreateBuffer)(void *, uint64_t, size_t, void *, int32_t *);
    int32_t (*clReleaseMemObject)(void *);
    int32_t (*clSetKernelArg)(void *, uint32_t, size_t, const void *);
    int32_t (*clEnqueueNDRangeKernel)(void *, void *, uint32_t, const size_t *, const size_t *,
                                      const size_t *, uint32_t, void *, void *);
    int32_t (*clEnqueueReadBuffer)(void *, void *, uint32_t, size_t, size_t, void *, uint32_t,
                                   void *, void *);
    int32_t (*clFinish)(void *);
} cl;

static void *context, *queue, *program;

enum { DEVICE_TYPE_CPU = 2, READ_WRITE = 1, COPY_HOST = 32, BUILD_LOG = 0x1183 };

static bool load(void) {
    void *library = vp_library_io->open("libOpenCL.so.1");

    if (!library)
        return false;
/* Through a pointer to the pointer: ISO C has no conversion from void * to a function. */
#define LOAD(name)                                                                                 \
    do {                                                                                           \
        *(void **)&cl.name = vp_library_io->symbol(library, #name);                                \
        if (!cl.name)                                                                              \
            return false;                                                                          \
    } while (0)
    LOAD(clGetPlatformIDs);
    LOAD(clGetDeviceIDs);
    LOAD(clCreateContext);
    LOAD(clCreateCommandQueue);
    LOAD(clCreateProgramWithSource);
    LOAD(clBuildProgram);
    LOAD(clGetProgramBuildInfo);
    LOAD(clCreateKernel);
    LOAD(clReleaseKernel);
    LOAD(clCreateBuffer);
    LOAD(clReleaseMemObject);
    LOAD(clSetKernelArg);
    LOAD(clEnqueueNDRangeKernel);
    LOAD(clEnqueueReadBuffer);
    LOAD(clFinish);
#undef LOAD
    return true;
}

static bool run(const struct rig_launch *l) {
    int32_t error;
    void *kernel = cl.clCreateKernel(program, l->kernel, &error), *memory[RIG_BUFFERS] = {0};
    size_t lanes = l->lanes, all = (size_t)l->blocks * l->lanes;
    bool good = kernel && !error;

    for (uint32_t b = 0; good && b < RIG_BUFFERS; b++) {
        if (l->buffer[b])
            memory[b] = cl.clCreateBuffer(context, READ_WRITE | COPY_HOST, l->bytes[b],
                                          l->buffer[b], &error);
        good = (!l->buffer[b] || memory[b]) &&
               !cl.clSetKernelArg(kernel, b, sizeof(void *), memory[b] ? &memory[b] : NULL);
    }
    good = good && !cl.clSetKernelArg(kernel, RIG_BUFFERS, sizeof l->numbers, &l->numbers) &&
           !cl.clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &all, &lanes, 0, NULL, NULL);
    for (uint32_t b = 0; b < RIG_BUFFERS; b++) {
        if (!memory[b])
            continue;
        good = good && !cl.clEnqueueReadBuffer(queue, memory[b], 1, 0, l->bytes[b], l->buffer[b], 0,
                                               NULL, NULL);
        cl.clReleaseMemObject(memory[b]);
    }
    if (kernel)
        cl.clReleaseKernel(kernel);
    return good && !cl.clFinish(queue);
}

rig_run rig_opencl(const char *source, const char **why) {
    static char log[4096];
    void *platform, *device;
    uint32_t count = 0;
    int32_t error;

    *why = "libOpenCL.so.1 is not installed";
    if (!load())
        return NULL;
    *why = "OpenCL has no platform for the processor (PoCL)";
    if (cl.clGetPlatformIDs(1, &platform, &count) || !count ||
        cl.clGetDeviceIDs(platform, DEVICE_TYPE_CPU, 1, &device, &count) || !count)
        return NULL;
    *why = "OpenCL's processor cannot be used";
    context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    queue = context ? cl.clCreateCommandQueue(context, device, 0, &error) : NULL;
    program = queue ? cl.clCreateProgramWithSource(context, 1, &source, NULL, &error) : NULL;
    if (!program)
        return NULL;
    if (cl.clBuildProgram(program, 1, &device, "-cl-std=CL1.2", NULL, NULL)) {
        cl.clGetProgramBuildInfo(program, device, BUILD_LOG, sizeof log - 1, log, NULL);
        *why = log;
        fprintf(stderr, "%s\n", log);
    }
    return run;
}
