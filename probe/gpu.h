/* A device to be measured, behind one table of functions: `hip`, `cuda`, `cpu`, `fake`. What is
 * measured, how often and in which order is bench.h's business; a back end only does one thing at
 * a time and says how it went.
 *
 * Rules for a back end:
 *   - every call returns a status; what went wrong is one line in device->why (vp_dev_fail). No
 *     printing, no abort, no exit. A crash of a driver is caught outside (child.h);
 *   - it runs in one thread of a process of its own, that may die at any call;
 *   - work is queued in one stream, in order. launch, gemm and copy may return before the work is
 *     done, and faults may show as late as `stop` or `sync`;
 *   - what it cannot do is VP_DEV_UNSUPPORTED (with the reason), never a guess: that benchmark is
 *     left out;
 *   - functions marked optional may be NULL;
 *   - memory for its state comes from device->arena.
 *
 * Device memory is void *, also where a driver calls it a number. Bytes are bytes, times are
 * microseconds. */
#ifndef VP_PROBE_GPU_H
#define VP_PROBE_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/arena.h"

enum vp_dev_status {
    VP_DEV_OK,
    VP_DEV_NO_LIBRARY,  /* the driver's library is not there, or lacks a function */
    VP_DEV_NO_DEVICE,   /* the library is there, a device is not */
    VP_DEV_NO_MEMORY,   /* the device has not that much free */
    VP_DEV_UNSUPPORTED, /* this device or back end does not do that */
    VP_DEV_FAILED       /* a call failed */
};
const char *vp_dev_status_name(enum vp_dev_status status);

enum { VP_DEV_TEXT = 96, VP_DEV_WHY = 240, VP_DEV_BUFFERS = 4 };

/* 0 and "": not known. */
struct vp_dev_info {
    char name[VP_DEV_TEXT];    /* as the driver says it: "AMD Instinct MI300X" */
    char arch[VP_DEV_TEXT];    /* "gfx942", "sm_90", "x86-64 avx2"; without feature suffixes */
    char pci[VP_DEV_TEXT];     /* "0000:c1:00.0" */
    char driver[VP_DEV_TEXT];  /* driver and runtime versions: "HIP 6.2.41133" */
    char library[VP_DEV_TEXT]; /* of the vendor's matrix products: "hipBLASLt 0.10"; "": none */
    char
        kernels[VP_DEV_TEXT]; /* where ours come from: "built ahead for gfx942", "C, avx2" */
    uint64_t total_bytes, free_bytes;
    uint64_t compute_units;
    uint64_t cache_bytes; /* last-level */
    uint64_t clock_khz, memory_clock_khz, power_cap_mw;
    bool fp8_fnuz;     /* its FP8 is E4M3 FNUZ; else OCP */
    bool fp8_emulated; /* no units for FP8: bytes are decoded to 16 bit first */
};

/* How operands are stored. Scales are one float per tensor unless a kernel says otherwise. */
enum vp_dev_type { VP_TYPE_BF16, VP_TYPE_FP32, VP_TYPE_FP8, VP_TYPE_INT8, VP_DEV_TYPES };
const char *vp_dev_type_name(enum vp_dev_type type); /* as in samples: "bfloat16", "fp8" */
uint64_t vp_dev_type_bytes(enum vp_dev_type type);

/* Kernels: X(NAME, "name", meaning of m, n, k, batch and of the buffers) in
 * probe_kernels.def. */
enum vp_dev_kernel {
#define X(name, text, meaning) VP_KERNEL_##name,
#include "probe/probe_kernels.def"
#undef X
    VP_DEV_KERNELS
};
const char *vp_dev_kernel_name(enum vp_dev_kernel kernel);

/* One launch. Matrices are row-major. */
struct vp_dev_work {
    enum vp_dev_kernel kernel;
    enum vp_dev_type type;
    uint64_t m, n, k, batch;
    uint64_t heads, kv_heads, head_dim; /* attention */
    void *buffer[VP_DEV_BUFFERS];       /* device memory; inputs first, the result last */
    float scale[2];                     /* of 8-bit operands: value = code x scale */
};

enum vp_dev_copy { VP_COPY_TO_DEVICE, VP_COPY_TO_HOST, VP_COPY_ON_DEVICE };

struct vp_dev;

struct vp_dev_backend {
    const char *name; /* "hip" */
    bool host;        /* the device is the processor: smaller sizes, no host link */

    /* Finds and loads the libraries and initialises them. */
    enum vp_dev_status (*open)(struct vp_dev *device);
    void (*close)(struct vp_dev *device);
    enum vp_dev_status (*count)(struct vp_dev *device, uint32_t *out);
    /* Of any device; does not create a context where the driver allows that. */
    enum vp_dev_status (*info)(struct vp_dev *device, uint32_t index, struct vp_dev_info *out);
    /* Makes it the one that all later calls mean: context and stream. Called once. */
    enum vp_dev_status (*use)(struct vp_dev *device, uint32_t index);

    enum vp_dev_status (*memory)(struct vp_dev *device, uint64_t *free_bytes,
                                 uint64_t *total_bytes);
    enum vp_dev_status (*alloc)(struct vp_dev *device, void **out, uint64_t bytes);
    void (*release)(struct vp_dev *device, void *memory); /* NULL is fine */
    /* Pinned host memory for copies. */
    enum vp_dev_status (*alloc_host)(struct vp_dev *device, void **out, uint64_t bytes);
    void (*release_host)(struct vp_dev *device, void *memory);
    enum vp_dev_status (*copy)(struct vp_dev *device, void *to, const void *from, uint64_t bytes,
                               enum vp_dev_copy kind);

    /* Loads the kernels when they are needed first. */
    enum vp_dev_status (*launch)(struct vp_dev *device, const struct vp_dev_work *work);
    /* The vendor's product, shaped like VP_KERNEL_GEMM. Plans a shape when it is seen first, so
     * that a warm-up covers it. Optional. */
    enum vp_dev_status (*gemm)(struct vp_dev *device, const struct vp_dev_work *work);
    /* Creates the library's handle and workspace, as `gemm` does otherwise. Optional. */
    enum vp_dev_status (*open_blas)(struct vp_dev *device);

    /* Time of what is queued between the two: start queues a mark, stop another one and waits. */
    enum vp_dev_status (*start)(struct vp_dev *device);
    enum vp_dev_status (*stop)(struct vp_dev *device, double *us);
    enum vp_dev_status (*sync)(struct vp_dev *device);

    /* Between begin and end launches are recorded, not run. All optional. */
    enum vp_dev_status (*graph_begin)(struct vp_dev *device);
    enum vp_dev_status (*graph_end)(struct vp_dev *device, void **graph);
    enum vp_dev_status (*graph_launch)(struct vp_dev *device, void *graph);
    void (*graph_release)(struct vp_dev *device, void *graph);

    /* Clock and power now, from the driver; 0: not known. Optional. */
    void (*clocks)(struct vp_dev *device, uint64_t *clock_khz, uint64_t *power_mw);
    /* How device 0 reaches `index`: "xgmi", "nvlink", "pcie". Optional. */
    enum vp_dev_status (*link)(struct vp_dev *device, uint32_t index, char out[VP_DEV_TEXT]);
    /* Mean time of one all-reduce of 16-bit elements over the first `ranks` devices, and what one
     * communicator takes of a device. Optional. */
    enum vp_dev_status (*all_reduce)(struct vp_dev *device, uint32_t ranks, uint64_t bytes,
                                     double *us, uint64_t *communicator_bytes);
};

/* Zeroed by its owner, who sets backend and arena, and keeps it at one place. */
struct vp_dev {
    const struct vp_dev_backend *backend;
    struct vp_arena *arena;
    void *state; /* the back end's own */
    char why[VP_DEV_WHY];
};

/* Sets device->why and returns `status`. */
enum vp_dev_status vp_dev_fail(struct vp_dev *device, enum vp_dev_status status, const char *format,
                               ...) __attribute__((format(printf, 3, 4)));

/* probe/hip.c, cuda.c, cpu.c, fake.c */
extern const struct vp_dev_backend vp_hip_backend, vp_cuda_backend, vp_cpu_backend, vp_fake_backend;
/* NULL when there is none of that name. */
const struct vp_dev_backend *vp_dev_backend_find(const char *name);

#endif
