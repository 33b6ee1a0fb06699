/* What measurements of one GPU say, as plain values: constants of the forms in planner/latency/,
 * tables that are interpolated, what a process takes of its memory. Made by `calibrate`
 * (planner/latency/fit_*.h), written as profiles/calibration/NAME.yaml, read by
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

/* How well a form meets rows: those it was fitted to, and each held out in turn where that was
 * done. */
struct vp_fit_quality {
    uint32_t rows;
    double median, p90; /* of |predicted / measured - 1| */
};

/* Where the rows came from. */
struct vp_fit_source {
    const char *release; /* engine and version of the kernels: "vLLM 0.19.0"; "" when not said */
    const char *origin;  /* file, table or probe */
};

/* A measured case that its form misses, and by how much: log(measured / predicted). Neighbours of a
 * shape correct the form's answer. */
struct vp_anchor {
    double at[3]; /* log2 of m, n, k; or of what spans the attention's shapes */
    double log_ratio;
};

/* One matrix product [m, k] x [k, n], microseconds. */
struct vp_gemm_fit {
    bool known;
    double launch_us;
    double quantise_ps; /* per element of the activation; 0: it comes in its format */
    double tflops;      /* reached with tiles enough */
    double memory_gbs;  /* of weights that come from device memory */
    double cache_gbs;   /* of weights that stay in the last-level cache */
    double ctas;        /* tiles that saturate the memory, as a share of the compute units */
    double wave;        /* share of the whole-wave cost; 0: waves are hidden */
    double serial_ns;   /* per element of k: the loop of one tile */
    double norm;        /* exponent that joins compute, memory and serial time */
    double tile_m, tile_n;
    struct vp_anchor *anchors;
    uint32_t anchor_count;
    double least[3], most[3]; /* m, n, k of the rows */
    struct vp_fit_quality quality;
    struct vp_fit_source source;
};

enum { VP_ATTENTION_CONSTANTS = 10 };

/* Attention of one layer, microseconds. The constants are named in planner/latency/attention.def.
 */
struct vp_attention_fit {
    bool known;
    double constant[VP_ATTENTION_CONSTANTS];
    struct vp_anchor *anchors;
    uint32_t anchor_count;
    double least[3], most[3];
    struct vp_fit_quality quality;
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
    const char *engine;    /* "vllm" */
    double step_us;        /* host time of one step */
    double layer_us;       /* per layer: small kernels, launches, gaps */
    double sequence_us;    /* per sequence and step: sampling, scheduling */
    double kernel_scale;   /* kernels in the engine over kernels alone */
    double first_us;       /* per request before its first token: HTTP, tokenizer, scheduling */
    double first_token_us; /* per token of its prompt beside the kernels */
    struct vp_fit_quality tpot, ttft;
    struct vp_fit_source source;
};

/* What a process takes of a device. 0: not measured. */
struct vp_memory_constants {
    uint64_t context_bytes;     /* with the first kernel loaded */
    uint64_t blas_bytes;        /* the library's handle and workspace */
    uint64_t graph_bytes;       /* a captured graph of a thousand kernels */
    uint64_t granularity_bytes; /* of an allocation */
    uint64_t largest_bytes;     /* largest single allocation on an idle device */
    uint64_t communicator_bytes;
};

struct vp_calibration {
    const char *gpu;  /* id of a GPU profile */
    const char *path; /* for messages */
    const char *made; /* how: the command, without paths */
    struct vp_gemm_fit gemm[VP_RATES];
    struct vp_attention_fit prefill[VP_KV_WIDTHS], decode[VP_KV_WIDTHS];
    struct vp_reduce_fit *reduces;
    uint32_t reduce_count;
    double read_gbs, copy_gbs; /* streaming; copy counts bytes read and written; 0: not measured */
    double launch_us;          /* of an empty kernel, back to back; 0: not measured */
    double host_to_device_gbs, device_to_host_gbs;
    struct vp_serving_fit *serving;
    uint32_t serving_count;
    struct vp_memory_constants memory;
};

const char *vp_rate_name(enum vp_rate rate); /* "bf16", as in a profile */

#endif
