/* What the measuring process tells the one that waits for it: records of one size through a pipe.
 * Both are the same program, so plain structs will do. Also the sample files that they end in.
 *
 * A folder of samples holds one CSV per kind, in the formats that `vramplan calibrate` reads
 * (docs/FORMATS.md): gemm, decode-attention, prefill-attention, allreduce, bandwidth, launch,
 * constants; and, for people and tests, kernels, errors, blocks, device. A file is there once it
 * has a row. Every row says how good its figure is: p10, p90, repeats, outliers, drift, noisy (1:
 * not to be built on), clock and power where known. */
#ifndef VP_PROBE_RECORD_H
#define VP_PROBE_RECORD_H

#include "probe/bench_items.h"
#include "probe/method.h"

enum vp_record_kind {
    VP_RECORD_DEVICE, /* what it is */
    VP_RECORD_BEGIN,  /* an item is about to be measured */
    VP_RECORD_SAMPLE,
    VP_RECORD_NOTE,  /* an item is left out, and why */
    VP_RECORD_FATAL, /* nothing can be measured, and why */
    VP_RECORD_END    /* all is done */
};

/* Errors of a number format on seeded data, of values v and what they come back as w. */
struct vp_quant_errors {
    char data[24], format[24], scale[24]; /* "weights", "fp8_e4m3", "per_tensor" */
    double largest;                       /* of |v - w| */
    double rms_relative;                  /* root of sum (v - w)^2 over sum v^2 */
    double largest_relative;              /* of |v - w| over the largest |v| */
    double below;                         /* share of values with |v - w| < 0.01 */
};

struct vp_sample {
    char source[VP_DEV_TEXT];     /* whose kernel: "hipBLASLt 0.10", "C, avx2" */
    double value;                 /* microseconds; GB/s of rates, bytes of constants */
    struct vp_timing timing;      /* in the units of value; repeats 0: not timed */
    uint64_t copies;              /* of its operands that were gone through */
    uint64_t clock_khz, power_mw; /* right after it; 0: not known */
    uint64_t past;                /* BLOCK */
    struct vp_quant_errors errors;
};

struct vp_record {
    enum vp_record_kind kind;
    uint32_t item;             /* its number in the list */
    enum vp_dev_status status; /* NOTE, FATAL */
    union {
        struct vp_dev_info device;
        struct vp_sample sample;
        char text[VP_DEV_WHY];
    } as;
};

struct vp_sample_files;

/* NULL when the folder can neither be made nor written to (errno). */
struct vp_sample_files *vp_sample_files_open(struct vp_arena *arena, const char *folder);
/* False: writing failed (errno). */
bool vp_sample_files_device(struct vp_sample_files *files, const struct vp_dev_info *device,
                            const char *backend);
bool vp_sample_files_add(struct vp_sample_files *files, const struct vp_bench_item *item,
                         const struct vp_sample *sample);
bool vp_sample_files_close(struct vp_sample_files *files);

#endif
