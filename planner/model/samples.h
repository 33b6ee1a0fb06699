/* Measured times of single kernels and other figures of one GPU, as files of samples say them
 * (docs/CALIBRATION.md lists the columns). What `calibrate` fits to and checks against. Plain
 * values, in the arena of the reader (planner/import/samples_reader.h). */
#ifndef VP_MODEL_SAMPLES_H
#define VP_MODEL_SAMPLES_H

#include "planner/base/diag.h"
#include "planner/model/calibration.h"

/* Where a row stands. */
struct vp_sample_row {
    uint32_t file; /* index into vp_samples.files */
    uint32_t row;  /* of the file's table, from 0 */
    uint32_t line;
};

/* A kernel's time. gemm: variant is an enum vp_rate; attention: an enum vp_kv_width. */
struct vp_kernel_sample {
    struct vp_shape shape;
    double us;
    double copies; /* of the operands that were cycled through: small ones stay in the cache */
    struct vp_sample_row at;
};

struct vp_kernel_samples {
    enum vp_form form;
    int variant;
    const char *dtype; /* as the file says: "bfloat16" */
    struct vp_kernel_sample *items;
    uint32_t count, capacity;
};

struct vp_reduce_sample {
    uint64_t gpus;
    bool graph;
    double bytes, us;
    struct vp_sample_row at;
};

/* Any other figure: "read", "copy", ... of bandwidths; "launch"; names of memory constants. */
struct vp_figure_sample {
    const char *name;
    double value; /* GB/s, microseconds or bytes */
    struct vp_sample_row at;
};

struct vp_sample_file {
    const char *path;
    const void
        *table;   /* struct vp_csv of planner/doc/csv.h: for those who print or read it again */
    bool serving; /* rows of served requests: api/fit_serving.h reads them */
};

struct vp_samples {
    struct vp_sample_file *files;
    uint32_t file_count;
    struct vp_kernel_samples
        *kernels; /* one for each form and variant, in the order of the files */
    uint32_t kernel_count;
    struct vp_reduce_sample *reduces;
    uint32_t reduce_count;
    struct vp_figure_sample *figures;
    uint32_t figure_count;
    uint32_t noisy; /* rows that the probe marked as noisy: left out */
};

#endif
