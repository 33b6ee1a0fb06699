/* What the back ends for AMD and NVIDIA GPUs have in common, which is nearly all: the two drivers
 * have the same calls by other names (gpu_symbols.def). hip.c and cuda.c say what differs: where
 * libraries are, numbers of attributes, how a device is chosen, what its architecture is called.
 * For these files and gpu_*.c only; others see gpu.h. */
#ifndef VP_PROBE_GPU_DRIVER_H
#define VP_PROBE_GPU_DRIVER_H

#include "probe/gpu_launch.h"
#include "probe/gpu_library.h"

/* ---- the libraries' functions ---- */

#define VP_GPU_POINTER(result, member, parameters, need, hip, cuda) result(*member) parameters;
struct vp_driver_calls {
#define VP_DRIVER VP_GPU_POINTER
#include "probe/gpu_symbols.def"
};
struct vp_blas_calls {
#define VP_BLAS VP_GPU_POINTER
#include "probe/gpu_symbols.def"
};
struct vp_collective_calls {
#define VP_COLLECTIVE VP_GPU_POINTER
#include "probe/gpu_symbols.def"
};

enum vp_driver_call {
#define VP_DRIVER(result, member, parameters, need, hip, cuda) VP_CALL_##member,
#include "probe/gpu_symbols.def"
    VP_DRIVER_CALLS
};

/* ---- what differs ---- */

struct vp_gpu;

/* Numbers of the vendor's library of matrix products (hipblaslt.h, cublasLt.h). */
struct vp_blas_numbers {
    struct vp_library_name library;
    const char *name;   /* "hipBLASLt" */
    const char *symbol; /* one of its functions */
    int compute_fp32;
    int attribute_transpose_a, attribute_scale_a, attribute_scale_b;
    int wish_workspace;
    int transpose; /* value that means so */
    uint64_t workspace_bytes;
};

struct vp_gpu_kind {
    const char *name;           /* "HIP", "CUDA" */
    unsigned family;            /* column of gpu_symbols.def */
    const char *const *folders; /* patterns, see gpu_library.h */
    struct vp_library_name library;
    const char *node; /* what the driver opens: "/dev/kfd" */
    struct {
        int compute_units, clock_khz, memory_clock_khz, cache_bytes;
    } attribute;
    struct vp_blas_numbers blas;
    struct vp_library_name collective;
    bool beside; /* its other libraries must come from the driver's own folder */

    void (*versions)(const struct vp_gpu *gpu, char out[VP_DEV_TEXT]);
    /* "gfx942", "sm_90"; VP_DEV_UNSUPPORTED when it is none that we can name. */
    enum vp_dev_status (*arch)(struct vp_dev *device, uint32_t index, char out[VP_DEV_TEXT]);
    /* Later calls of this thread mean that device. */
    enum vp_dev_status (*make_current)(struct vp_dev *device, uint32_t index);
    /* Code for it: `source` says whose. */
    enum vp_dev_status (*image)(struct vp_dev *device, const char *arch, const void **out,
                                char source[VP_DEV_TEXT]);
    /* A second try when the driver refused the first image; NULL: none. */
    enum vp_dev_status (*compiled_image)(struct vp_dev *device, const char *arch, const void **out,
                                         char source[VP_DEV_TEXT]);
    /* hipDataType or cudaDataType of its FP8; 0: its matrix units have none. */
    int (*fp8_type)(const char *arch);
    /* Names of links, from the driver's number; NULL: it does not tell. */
    const char *(*link_name)(uint32_t type);
};

/* ---- state ---- */

struct vp_gpu_blas;    /* gpu_blas.c */
struct vp_gpu_monitor; /* gpu_monitor.c */

struct vp_gpu {
    const struct vp_gpu_kind *kind;
    const char *const *folders;
    struct vp_library library;
    struct vp_driver_calls call;

    bool used; /* the rest is there */
    uint32_t index;
    char arch[VP_DEV_TEXT], pci[VP_DEV_TEXT], kernels[VP_DEV_TEXT];
    void *stream, *mark[2];
    void *function[VP_KERNEL_ENTRIES]; /* NULL: the module has none */
    struct vp_kernel_traits traits;
    const char *wrong[VP_DEV_TYPES]; /* why our product of that type is not to be used */
    void *scratch;
    uint64_t scratch_bytes;
    bool capturing;

    char blas_name[VP_DEV_TEXT];
    struct vp_gpu_blas *blas;
    struct vp_gpu_monitor *monitor;
};

/* VP_DEV_OK when the code of a call is 0; else the status and text that belong to it. */
enum vp_dev_status vp_gpu_check(struct vp_dev *device, int code, enum vp_driver_call call);
#define VP_GPU_CALL(device, gpu, member, ...)                                                      \
    vp_gpu_check(device, (gpu)->call.member(__VA_ARGS__), VP_CALL_##member)

/* Where its other libraries are looked for. */
const char *const *vp_gpu_folders(struct vp_dev *device);

/* ---- what a back end consists of ---- */

enum vp_dev_status vp_gpu_open(struct vp_dev *device, const struct vp_gpu_kind *kind);
void vp_gpu_close(struct vp_dev *device);
enum vp_dev_status vp_gpu_count(struct vp_dev *device, uint32_t *out);
enum vp_dev_status vp_gpu_info(struct vp_dev *device, uint32_t index, struct vp_dev_info *out);
enum vp_dev_status vp_gpu_use(struct vp_dev *device, uint32_t index);
enum vp_dev_status vp_gpu_memory(struct vp_dev *device, uint64_t *free_bytes,
                                 uint64_t *total_bytes);
enum vp_dev_status vp_gpu_alloc(struct vp_dev *device, void **out, uint64_t bytes);
void vp_gpu_release(struct vp_dev *device, void *memory);
enum vp_dev_status vp_gpu_alloc_host(struct vp_dev *device, void **out, uint64_t bytes);
void vp_gpu_release_host(struct vp_dev *device, void *memory);
enum vp_dev_status vp_gpu_copy(struct vp_dev *device, void *to, const void *from, uint64_t bytes,
                               enum vp_dev_copy kind);
enum vp_dev_status vp_gpu_start(struct vp_dev *device);
enum vp_dev_status vp_gpu_stop(struct vp_dev *device, double *us);
enum vp_dev_status vp_gpu_sync(struct vp_dev *device);
enum vp_dev_status vp_gpu_graph_begin(struct vp_dev *device);
enum vp_dev_status vp_gpu_graph_end(struct vp_dev *device, void **graph);
enum vp_dev_status vp_gpu_graph_launch(struct vp_dev *device, void *graph);
void vp_gpu_graph_release(struct vp_dev *device, void *graph);
enum vp_dev_status vp_gpu_link(struct vp_dev *device, uint32_t index, char out[VP_DEV_TEXT]);
/* gpu_module.c */
enum vp_dev_status vp_gpu_launch(struct vp_dev *device, const struct vp_dev_work *work);
enum vp_dev_status vp_gpu_load_kernels(struct vp_dev *device);
/* Compares a small product that `run` makes with sums in double. VP_DEV_UNSUPPORTED: it is wrong.
 */
enum vp_dev_status vp_gpu_check_product(struct vp_dev *device, enum vp_dev_type type,
                                        enum vp_dev_status (*run)(struct vp_dev *,
                                                                  const struct vp_dev_work *));
/* gpu_compiler.c: compiles the kernels' text, in memory of the arena. */
enum vp_dev_status vp_gpu_compile(struct vp_dev *device, const struct vp_library *compiler,
                                  const char *const *options, int count, const void **out);
/* gpu_blas.c */
enum vp_dev_status vp_gpu_gemm(struct vp_dev *device, const struct vp_dev_work *work);
enum vp_dev_status vp_gpu_open_blas(struct vp_dev *device);
/* Finds the library and its version; does not touch the device. */
void vp_gpu_find_blas(struct vp_dev *device);
/* gpu_collective.c */
enum vp_dev_status vp_gpu_all_reduce(struct vp_dev *device, uint32_t ranks, uint64_t bytes,
                                     double *us, uint64_t *communicator_bytes);
/* gpu_monitor.c: 0 is left where nothing is known. Info: of the device at out->pci. */
void vp_gpu_monitor_info(struct vp_dev *device, struct vp_dev_info *out);
void vp_gpu_clocks(struct vp_dev *device, uint64_t *clock_khz, uint64_t *power_mw);

/* The members of a back end that both have. */
#define VP_GPU_BACKEND                                                                             \
    .close = vp_gpu_close, .count = vp_gpu_count, .info = vp_gpu_info, .use = vp_gpu_use,          \
    .memory = vp_gpu_memory, .alloc = vp_gpu_alloc, .release = vp_gpu_release,                     \
    .alloc_host = vp_gpu_alloc_host, .release_host = vp_gpu_release_host, .copy = vp_gpu_copy,     \
    .launch = vp_gpu_launch, .gemm = vp_gpu_gemm, .open_blas = vp_gpu_open_blas,                   \
    .start = vp_gpu_start, .stop = vp_gpu_stop, .sync = vp_gpu_sync,                               \
    .graph_begin = vp_gpu_graph_begin, .graph_end = vp_gpu_graph_end,                              \
    .graph_launch = vp_gpu_graph_launch, .graph_release = vp_gpu_graph_release,                    \
    .clocks = vp_gpu_clocks, .link = vp_gpu_link, .all_reduce = vp_gpu_all_reduce

#endif
