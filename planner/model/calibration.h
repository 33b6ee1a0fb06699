/* What measurements of one GPU say, as plain values: constants of the forms in planner/latency/,
 * tables that are interpolated, what a process takes of its memory. Made by `calibrate`
 * (planner/latency/fit.h), written as profiles/calibration/NAME.yaml, read by
 * planner/import/calibration_reader.h; belongs to the arena it was made in. A part that was not
 * measured is not known: its user falls back to the card's class (planner/latency/kernels.h). */
#ifndef VP_MODEL_CALIBRATION_H
#define VP_MODEL_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

/* Which units do a matrix product, and how its operands are stored. */
enum vp_rate {
    VP_RATE_BF16,
    VP_RATE_FP16,
    VP_RATE_FP32,
    VP_RATE_FP8,       /* 8-bit weight and activation, a scale per tensor (or channel) */
    VP_RATE_FP8_BLOCK, /* scales per 128 x 128 weights and 1 x 128 activations */
    VP_RATE_INT8,
    VP_RATE_FP4, /* 4-bit weight and activation: NVFP4, MXFP4 on units that have it */
    VP_RATES
};

/* How well a form meets rows that it was not fitted to (groups of the rows held out in turn). */
struct vp_fit_quality {
    uint32_t rows;
    double median, p90; /* of |predicted / measured - 1| */
};

/* Where the rows came from. */
struct vp_fit_source {
    const char *release; /* engine and version of the kernels: "vLLM 0.19.0"; "" when not said */
    const char *origin;  /* file, table or probe */
};

enum vp_form { VP_FORM_GEMM, VP_FORM_PREFILL, VP_FORM_DECODE, VP_FORMS };
const char *vp_form_name(enum vp_form form); /* "gemm", "prefill_attention", "decode_attention" */

enum vp_form_constant {
#define X(form, name, text, least, most, what) VP_C_##name,
#include "planner/model/calibration.def"
#undef X
    VP_FORM_CONSTANT_COUNT
};

struct vp_constant_info {
    enum vp_form form;
    const char *name;
    double least, most;
    const char *what;
};
extern const struct vp_constant_info vp_constants[VP_FORM_CONSTANT_COUNT];

/* A shape that a form was fitted to. gemm: m, n, k. Attention: sequences, tokens (fresh ones of a
 * prefill, cached ones of a decode), heads, KV heads, head size. */
enum { VP_SHAPE_SIZES = 5 };
struct vp_shape {
    double size[VP_SHAPE_SIZES];
};
/* 3 or 5 */
uint32_t vp_shape_sizes(enum vp_form form);
const char *vp_shape_size_name(enum vp_form form, uint32_t i); /* "m", "batch", ... */

/* Regions of a form's shapes whose errors are told apart: decode steps, prefills, what is between.
 */
enum { VP_FORM_RANGES = 3 };
uint32_t vp_form_range(enum vp_form form, const struct vp_shape *shape);
const char *vp_form_range_name(enum vp_form form, uint32_t range); /* "m<=16"; NULL: none */

/* A measured shape that the form misses, and by how much: log(measured / predicted). Neighbours of
 * a shape correct the form's answer (planner/latency/anchors.h). */
struct vp_anchor {
    float at[VP_SHAPE_SIZES]; /* log2 of its sizes */
    float log_ratio;
};

/* The time of one kind of kernel: its form's constants and how the form is corrected. */
struct vp_form_fit {
    bool known;
    double constant[VP_FORM_CONSTANT_COUNT]; /* those of its own form */
    struct vp_anchor *anchors;
    uint32_t anchor_count;
    double reach; /* of an anchor, in doublings of a size; 0: none */
    struct vp_shape least, most;
    struct vp_fit_quality quality;
    double range_p90[VP_FORM_RANGES]; /* the same of each range; of all where it has few rows */
    struct vp_fit_source source;
};

enum vp_kv_width { VP_KV_16, VP_KV_8, VP_KV_WIDTHS };

/* One collective over `gpus`: log-log interpolated. */
struct vp_reduce_point {
    double bytes, us;
};
struct vp_reduce_fit {
    uint64_t gpus;
    bool graph;                     /* captured in a graph; false: launched one by one */
    struct vp_reduce_point *points; /* ascending */
    uint32_t count;
    struct vp_fit_source source;
};

/* What an engine's process adds to its kernels, fitted to served requests of one GPU. Microseconds.
 */
struct vp_serving_fit {
    const char *engine; /* "vllm" */
#define X(member, what) double member;
#include "planner/model/serving_constants.def"
#undef X
    struct vp_fit_quality tpot, ttft;
    struct vp_fit_source source;
};

/* What a process takes of a device. 0: not measured. */
struct vp_memory_constants {
#define X(member, text, what) uint64_t member;
#include "planner/model/memory_constants.def"
#undef X
};

struct vp_calibration {
    const char *gpu;    /* id of a GPU profile */
    const char *path;   /* for messages */
    const char *made;   /* how: the command, without paths */
    double units;       /* compute units (or multiprocessors) of the device that was measured */
    double cache_bytes; /* its last-level cache; 0: none, or not known */
    struct vp_form_fit gemm[VP_RATES];
    struct vp_form_fit prefill[VP_KV_WIDTHS], decode[VP_KV_WIDTHS];
    struct vp_reduce_fit *reduces;
    uint32_t reduce_count;
    double read_gbs, copy_gbs; /* streaming; copy counts bytes read and written; 0: not measured */
    double launch_us;          /* of an empty kernel, back to back; 0: not measured */
    double host_to_device_gbs, device_to_host_gbs;
    struct vp_serving_fit *serving;
    uint32_t serving_count;
    struct vp_memory_constants memory;
};

const char *vp_rate_name(enum vp_rate rate);    /* "bf16", as in a profile */
double vp_rate_bytes(enum vp_rate rate);        /* of a weight */
const char *vp_kv_name(enum vp_kv_width width); /* "kv16", "kv8" */

#endif
