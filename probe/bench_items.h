/* The list of what is measured: one item is one figure of one shape. The same list comes out for
 * the same device and options, so that a process that died can be followed by one that goes on
 * behind the item that killed it. */
#ifndef VP_PROBE_BENCH_ITEMS_H
#define VP_PROBE_BENCH_ITEMS_H

#include "probe/gpu.h"

enum vp_bench_kind {
#define X(name, text, meaning) VP_BENCH_##name,
#include "probe/bench_kinds.def"
#undef X
    VP_BENCH_KINDS
};
const char *vp_bench_kind_name(enum vp_bench_kind kind);
const char *vp_bench_kind_meaning(enum vp_bench_kind kind);

/* Several launches that count as one. */
enum vp_bench_chain {
    VP_CHAIN_NONE,
    VP_CHAIN_QUANTISED, /* the 16-bit activation is quantised first */
    VP_CHAIN_NORM_GELU, /* LAYERNORM, then GELU: what the fused kernel does in one */
};

struct vp_bench_item {
    enum vp_bench_kind kind;
    enum vp_dev_kernel kernel;
    enum vp_dev_type type;
    enum vp_bench_chain chain;
    const char *name;        /* of its row: "triad", "layernorm_gelu", "decode"; static */
    uint64_t m, n, k, batch; /* as struct vp_dev_work has them */
    uint64_t heads, kv_heads, head_dim;
    uint64_t width; /* BLOCK: of the feed-forward; m: tokens, n: the model's width. ERRORS: n is the
                       number of the case */
};

enum { VP_BENCH_ITEMS = 768, VP_BENCH_ERROR_CASES = 12 };

struct vp_bench_list {
    struct vp_bench_item item[VP_BENCH_ITEMS];
    uint32_t count;
};

struct vp_bench_options {
    bool quick;
    uint32_t only; /* sum of 1 << kind; 0: all but BLOCK */
    bool host;     /* the device is the processor: shapes that it does in seconds */
};
void vp_bench_list(struct vp_bench_list *out, const struct vp_bench_options *options);

/* One line for people: "gemm bfloat16 16 x 4096 x 4096". */
void vp_bench_describe(char *out, size_t size, const struct vp_bench_item *item);

/* Buffers of a launch: bytes of each, and which of them go through copies that no cache holds
 * together (weights, caches, what streams). */
struct vp_bench_buffers {
    uint64_t bytes[VP_DEV_BUFFERS];
    bool rotates[VP_DEV_BUFFERS];
};
void vp_bench_buffers(struct vp_bench_buffers *out, const struct vp_bench_item *item);

/* Bytes of device memory that a launch cannot avoid to read and write, each once. */
uint64_t vp_bench_traffic(const struct vp_bench_item *item);

#endif
