#include "probe/bench_items.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const KINDS[] = {
#define X(name, text, meaning) text,
#include "probe/bench_kinds.def"
#undef X
};
static const char *const MEANINGS[] = {
#define X(name, text, meaning) meaning,
#include "probe/bench_kinds.def"
#undef X
};

const char *vp_bench_kind_name(enum vp_bench_kind kind) { return KINDS[kind]; }

const char *vp_bench_kind_meaning(enum vp_bench_kind kind) { return MEANINGS[kind]; }

/* ---- shapes ---- */

struct pair {
    uint64_t a, b;
};

/* Of a GPU: shared with `calibrate --choose-shapes`. */
static const uint64_t TOKENS[] = {
#define PROBE_TOKENS(m) m,
#include "planner/model/probe_shapes.def"
};
static const struct pair MATRICES[] = {
#define PROBE_MATRIX(n, k) {n, k},
#include "planner/model/probe_shapes.def"
};
static const struct pair DECODE[] = {
#define PROBE_DECODE(batch, past) {batch, past},
#include "planner/model/probe_shapes.def"
};
static const struct pair DECODE_HEADS[] = {
#define PROBE_DECODE_HEADS(heads, kv_heads) {heads, kv_heads},
#include "planner/model/probe_shapes.def"
};
static const struct pair PREFILL[] = {
#define PROBE_PREFILL(batch, fresh) {batch, fresh},
#include "planner/model/probe_shapes.def"
};
static const struct pair PREFILL_HEADS[] = {
#define PROBE_PREFILL_HEADS(heads, kv_heads) {heads, kv_heads},
#include "planner/model/probe_shapes.def"
};
static const uint64_t REDUCE[] = {
#define PROBE_REDUCE(elements) elements,
#include "planner/model/probe_shapes.def"
};

/* Of a processor, whose rates are a hundredth and less: the same spread, two decades smaller. Every
 * second one, which a quick run takes, spans the whole range too. */
static const uint64_t HOST_TOKENS[] = {1, 4, 16, 64, 256};
static const struct pair HOST_MATRICES[] = {{128, 1024},  {512, 512},   {768, 3072},
                                            {1024, 1024}, {1024, 256},  {3072, 768},
                                            {2048, 512},  {2048, 2048}, {8192, 512}};
static const struct pair HOST_DECODE[] = {{1, 255},  {1, 1023}, {1, 8191}, {4, 511},
                                          {8, 2047}, {32, 31},  {32, 255}};
static const struct pair HOST_PREFILL[] = {{1, 4},   {1, 16},  {1, 64}, {4, 128},
                                           {1, 256}, {16, 32}, {1, 512}};
static const struct pair HOST_HEADS[] = {{8, 2}, {16, 8}};

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { HEAD_DIM = 128, HOST_HEAD_DIM = 64 };

/* ---- the list ---- */

struct building {
    struct vp_bench_list *list;
    const struct vp_bench_options *options;
};

static void add(const struct building *b, const struct vp_bench_item *item) {
    uint32_t only = b->options->only;
    bool wanted = only ? only >> item->kind & 1 : item->kind != VP_BENCH_BLOCK;
    if (wanted && b->list->count < VP_BENCH_ITEMS)
        b->list->item[b->list->count++] = *item;
}

/* A quick run takes every second shape: the extremes stay, as tables begin and end with them. */
static bool left_out(const struct building *b, size_t i) { return b->options->quick && i % 2 == 1; }

static void add_constants(const struct building *b) {
    static const char *const MEMORY[] = {"context",     "blas",    "graph",
                                         "granularity", "largest", "communicator"};
    const uint64_t copied = 64 << 20;

    for (size_t i = 0; i < COUNT(MEMORY) && !b->options->host; i++)
        add(b, &(struct vp_bench_item){.kind = VP_BENCH_MEMORY, .name = MEMORY[i]});
    add(b, &(struct vp_bench_item){
               .kind = VP_BENCH_LAUNCH, .kernel = VP_KERNEL_EMPTY, .name = "launch"});
    if (b->options->host)
        return;
    add(b, &(struct vp_bench_item){
               .kind = VP_BENCH_LAUNCH, .kernel = VP_KERNEL_EMPTY, .name = "launch_alone"});
    add(b, &(struct vp_bench_item){.kind = VP_BENCH_COPY, .name = "host_to_device", .n = copied});
    add(b, &(struct vp_bench_item){.kind = VP_BENCH_COPY, .name = "device_to_host", .n = copied});
}

static void add_streams(const struct building *b) {
    uint64_t bytes = b->options->host ? 32 << 20 : 256 << 20;
    add(b, &(struct vp_bench_item){
               .kind = VP_BENCH_STREAM, .kernel = VP_KERNEL_READ, .name = "read", .n = bytes});
    add(b, &(struct vp_bench_item){
               .kind = VP_BENCH_STREAM, .kernel = VP_KERNEL_COPY, .name = "copy", .n = bytes});
    add(b,
        &(struct vp_bench_item){
            .kind = VP_BENCH_STREAM, .kernel = VP_KERNEL_TRIAD, .name = "triad", .n = bytes / 4});
}

static void add_gemms(const struct building *b) {
    bool host = b->options->host;
    const uint64_t *tokens = host ? HOST_TOKENS : TOKENS;
    const struct pair *matrices = host ? HOST_MATRICES : MATRICES;
    size_t heights = host ? COUNT(HOST_TOKENS) : COUNT(TOKENS);
    size_t shapes = host ? COUNT(HOST_MATRICES) : COUNT(MATRICES);

    for (enum vp_dev_type type = VP_TYPE_BF16; type <= VP_TYPE_FP8; type++)
        for (size_t s = 0; s < shapes; s++)
            for (size_t t = 0; t < heights; t++) {
                struct vp_bench_item item = {.kind = VP_BENCH_GEMM,
                                             .kernel = VP_KERNEL_GEMM,
                                             .type = type,
                                             .name = "gemm",
                                             .m = tokens[t],
                                             .n = matrices[s].a,
                                             .k = matrices[s].b};
                if (type == VP_TYPE_FP8)
                    item.chain = VP_CHAIN_QUANTISED;
                /* single precision on a GPU, or in a hurry: enough to know its rate */
                bool few = type == VP_TYPE_FP32 && (!host || b->options->quick);
                if (!left_out(b, s) && !left_out(b, t) && !(few && (s % 3 || t % 2)))
                    add(b, &item);
            }
}

static void add_attention(const struct building *b, enum vp_bench_kind kind,
                          enum vp_dev_type type) {
    bool host = b->options->host, decode = kind == VP_BENCH_DECODE;
    const struct pair *loads =
        host ? (decode ? HOST_DECODE : HOST_PREFILL) : (decode ? DECODE : PREFILL);
    const struct pair *heads = host ? HOST_HEADS : decode ? DECODE_HEADS : PREFILL_HEADS;
    size_t n = host ? (decode ? COUNT(HOST_DECODE) : COUNT(HOST_PREFILL))
                    : (decode ? COUNT(DECODE) : COUNT(PREFILL));
    size_t head_kinds = host     ? COUNT(HOST_HEADS)
                        : decode ? COUNT(DECODE_HEADS)
                                 : COUNT(PREFILL_HEADS);

    for (size_t h = 0; h < head_kinds; h++)
        for (size_t i = 0; i < n; i++)
            if (!left_out(b, i))
                add(b,
                    &(struct vp_bench_item){.kind = kind,
                                            .kernel = decode ? VP_KERNEL_DECODE : VP_KERNEL_PREFILL,
                                            .type = type,
                                            .name = decode ? "decode" : "prefill",
                                            .n = loads[i].b,
                                            .batch = loads[i].a,
                                            .heads = heads[h].a,
                                            .kv_heads = heads[h].b,
                                            .head_dim = host ? HOST_HEAD_DIM : HEAD_DIM});
}

static void add_reduces(const struct building *b) {
    for (uint64_t ranks = 2; ranks <= 8 && !b->options->host; ranks *= 2)
        for (size_t i = 0; i < COUNT(REDUCE); i++)
            if (!left_out(b, i))
                add(b, &(struct vp_bench_item){.kind = VP_BENCH_REDUCE,
                                               .type = VP_TYPE_BF16,
                                               .name = "allreduce",
                                               .n = REDUCE[i],
                                               .batch = ranks});
}

/* Rows and columns of hidden states; k: the width that recomputed columns come from. */
static void add_states(const struct building *b) {
    static const struct {
        enum vp_dev_kernel kernel;
        enum vp_dev_type type;
        enum vp_bench_chain chain;
        const char *name;
    } KERNEL[] = {{VP_KERNEL_NORM, VP_TYPE_BF16, VP_CHAIN_NONE, "norm"},
                  {VP_KERNEL_ADD, VP_TYPE_BF16, VP_CHAIN_NONE, "add"},
                  {VP_KERNEL_SWIGLU, VP_TYPE_BF16, VP_CHAIN_NONE, "swiglu"},
                  {VP_KERNEL_LAYERNORM_GELU, VP_TYPE_BF16, VP_CHAIN_NONE, "layernorm_gelu"},
                  {VP_KERNEL_LAYERNORM, VP_TYPE_BF16, VP_CHAIN_NORM_GELU, "layernorm_then_gelu"},
                  {VP_KERNEL_QUANTISE, VP_TYPE_FP8, VP_CHAIN_NONE, "quantise"},
                  {VP_KERNEL_DEQUANTISE, VP_TYPE_FP8, VP_CHAIN_NONE, "dequantise"},
                  {VP_KERNEL_QUANTISE, VP_TYPE_INT8, VP_CHAIN_NONE, "quantise"},
                  {VP_KERNEL_DEQUANTISE, VP_TYPE_INT8, VP_CHAIN_NONE, "dequantise"}};
    bool host = b->options->host;
    const uint64_t rows[] = {host ? 64 : 256, host ? 1024 : 8192};
    uint64_t columns = host ? 1024 : 4096;

    for (size_t r = 0; r < COUNT(rows); r++) {
        struct vp_bench_item item = {.kind = VP_BENCH_KERNEL, .m = rows[r], .n = columns};
        for (size_t i = 0; i < COUNT(KERNEL); i++) {
            item.kernel = KERNEL[i].kernel;
            item.type = KERNEL[i].type;
            item.chain = KERNEL[i].chain;
            item.name = KERNEL[i].name;
            add(b, &item);
        }
        item = (struct vp_bench_item){.kind = VP_BENCH_KERNEL,
                                      .kernel = VP_KERNEL_RECOMPUTE,
                                      .name = "recompute",
                                      .m = host ? rows[r] / 4 : rows[r],
                                      .n = columns,
                                      .k = columns / 4};
        add(b, &item);
        item.kernel = VP_KERNEL_READ; /* the same tape, kept and read back */
        item.name = "tape_read";
        item.n = item.m * item.n * 2;
        item.m = item.k = 0;
        add(b, &item);
    }
}

/* More than any cache holds, so that what lies between two kernels goes through memory. */
static void add_joined(const struct building *b) {
    struct vp_bench_item pair = {.kind = VP_BENCH_KERNEL,
                                 .kernel = VP_KERNEL_LAYERNORM_GELU,
                                 .name = "layernorm_gelu",
                                 .m = b->options->host ? 16384 : 65536,
                                 .n = b->options->host ? 1024 : 4096};
    add(b, &pair);
    pair.kernel = VP_KERNEL_LAYERNORM;
    pair.chain = VP_CHAIN_NORM_GELU;
    pair.name = "layernorm_then_gelu";
    add(b, &pair);
}

static void add_gemvs(const struct building *b) {
    bool host = b->options->host;
    struct vp_bench_item gemv = {.kind = VP_BENCH_KERNEL,
                                 .kernel = VP_KERNEL_GEMV,
                                 .name = "gemv",
                                 .m = 1,
                                 .n = host ? 2048 : 16384,
                                 .k = host ? 2048 : 8192};
    for (enum vp_dev_type type = VP_TYPE_BF16; type <= VP_TYPE_FP8; type++) {
        gemv.type = type;
        add(b, &gemv);
    }
}

/* Of no shape that is fitted to. */
static void add_blocks(const struct building *b) {
    static const struct vp_bench_item BLOCK[] = {
        {.m = 8, .n = 640, .width = 1792, .heads = 10, .kv_heads = 5},
        {.m = 40, .n = 640, .width = 1792, .heads = 10, .kv_heads = 5},
        {.m = 96, .n = 640, .width = 1792, .heads = 10, .kv_heads = 5},
        {.m = 192, .n = 896, .width = 2432, .heads = 14, .kv_heads = 2},
        {.m = 24, .n = 896, .width = 2432, .heads = 14, .kv_heads = 2},
        {.m = 128, .n = 512, .width = 1408, .heads = 8, .kv_heads = 8}};

    for (size_t i = 0; i < COUNT(BLOCK); i++) {
        struct vp_bench_item item = BLOCK[i];
        item.kind = VP_BENCH_BLOCK;
        item.name = "block";
        item.head_dim = HOST_HEAD_DIM;
        if (!b->options->host) { /* eight times as wide, four times the heads */
            item.n *= 8;
            item.width *= 8;
            item.heads *= 4;
            item.kv_heads *= 4;
            item.head_dim = HEAD_DIM;
        }
        add(b, &item);
    }
}

void vp_bench_list(struct vp_bench_list *out, const struct vp_bench_options *options) {
    struct building b = {out, options};

    out->count = 0;
    add_constants(&b);
    add_streams(&b);
    add_gemms(&b);
    for (enum vp_bench_kind kind = VP_BENCH_DECODE; kind <= VP_BENCH_PREFILL; kind++) {
        add_attention(&b, kind, VP_TYPE_BF16);
        add_attention(&b, kind, VP_TYPE_FP8);
    }
    add_states(&b);
    add_joined(&b);
    add_gemvs(&b);
    for (uint64_t i = 0; i < VP_BENCH_ERROR_CASES; i++)
        add(&b, &(struct vp_bench_item){.kind = VP_BENCH_ERRORS, .name = "errors", .n = i});
    add_reduces(&b);
    add_blocks(&b);
}

void vp_bench_describe(char *out, size_t size, const struct vp_bench_item *item) {
    const char *type = vp_dev_type_name(item->type);

    if (item->kind == VP_BENCH_GEMM || (item->kind == VP_BENCH_KERNEL && item->k))
        snprintf(out, size, "%s %s %" PRIu64 " x %" PRIu64 " x %" PRIu64, item->name, type, item->m,
                 item->n, item->k);
    else if (item->kind == VP_BENCH_DECODE || item->kind == VP_BENCH_PREFILL)
        snprintf(out, size, "%s %s %" PRIu64 " x %" PRIu64 " tokens, %" PRIu64 "/%" PRIu64 " heads",
                 item->name, type, item->batch, item->n, item->heads, item->kv_heads);
    else if (item->kind == VP_BENCH_KERNEL && item->m)
        snprintf(out, size, "%s %s %" PRIu64 " x %" PRIu64, item->name, type, item->m, item->n);
    else if (item->kind == VP_BENCH_KERNEL || item->kind == VP_BENCH_STREAM)
        snprintf(out, size, "%s %" PRIu64 " MiB", item->name,
                 (item->kernel == VP_KERNEL_TRIAD ? 4 : 1) * item->n >> 20);
    else if (item->kind == VP_BENCH_REDUCE)
        snprintf(out, size, "%s %" PRIu64 " devices, %" PRIu64 " elements", item->name, item->batch,
                 item->n);
    else if (item->kind == VP_BENCH_BLOCK)
        snprintf(out, size, "%s %s %" PRIu64 " tokens, width %" PRIu64, item->name, type, item->m,
                 item->n);
    else
        snprintf(out, size, "%s", item->name);
}

/* ---- buffers ---- */

static void put(struct vp_bench_buffers *out, unsigned i, uint64_t bytes, bool rotates) {
    out->bytes[i] = bytes;
    out->rotates[i] = rotates;
}

static void attention_buffers(struct vp_bench_buffers *out, const struct vp_bench_item *w) {
    uint64_t fresh = w->kernel == VP_KERNEL_DECODE ? 1 : w->n;
    uint64_t query = w->batch * fresh * w->heads * w->head_dim * 2;
    uint64_t cache = w->batch * w->n * w->kv_heads * w->head_dim * vp_dev_type_bytes(w->type);
    put(out, 0, query, false);
    put(out, 1, cache, true);
    put(out, 2, cache, true);
    put(out, 3, query, false);
}

void vp_bench_buffers(struct vp_bench_buffers *out, const struct vp_bench_item *w) {
    uint64_t size = vp_dev_type_bytes(w->type), cells = w->m * w->n;

    *out = (struct vp_bench_buffers){0};
    switch (w->kernel) {
    case VP_KERNEL_READ:
        put(out, 0, w->n, true);
        put(out, 1, 4096 * sizeof(float), false);
        break;
    case VP_KERNEL_COPY:
        put(out, 0, w->n, true);
        put(out, 1, w->n, true);
        break;
    case VP_KERNEL_TRIAD:
        for (unsigned i = 0; i < 3; i++)
            put(out, i, w->n * sizeof(float), true);
        break;
    case VP_KERNEL_GEMM:
    case VP_KERNEL_GEMV:
        put(out, 0, w->m * w->k * size, false);
        put(out, 1, w->n * w->k * size, true);
        put(out, 2, cells * (w->type == VP_TYPE_FP32 ? 4 : 2), false);
        if (w->chain == VP_CHAIN_QUANTISED)
            put(out, 3, w->m * w->k * 2, false);
        break;
    case VP_KERNEL_NORM:
    case VP_KERNEL_LAYERNORM:
    case VP_KERNEL_LAYERNORM_GELU:
        put(out, 0, cells * 2, true);
        put(out, 1, w->n * 2 * 2, false);
        put(out, 2, cells * 2, true);
        if (w->chain == VP_CHAIN_NORM_GELU)
            put(out, 3, cells * 2, true);
        break;
    case VP_KERNEL_GELU:
        put(out, 0, w->n * 2, true);
        put(out, 1, w->n * 2, true);
        break;
    case VP_KERNEL_SWIGLU:
        put(out, 0, cells * 4, true);
        put(out, 1, cells * 2, true);
        break;
    case VP_KERNEL_ADD:
        for (unsigned i = 0; i < 3; i++)
            put(out, i, (w->m ? cells : w->n) * 2, true);
        break;
    case VP_KERNEL_RECOMPUTE:
        put(out, 0, w->m * w->k * 2, true);
        put(out, 1, w->k * 2, false);
        put(out, 2, w->n * w->k * 2, true);
        put(out, 3, cells * 2, true);
        break;
    case VP_KERNEL_QUANTISE:
        put(out, 0, cells * 2, true);
        put(out, 1, cells * size, true);
        break;
    case VP_KERNEL_DEQUANTISE:
        put(out, 0, cells * size, true);
        put(out, 1, cells * 2, true);
        break;
    case VP_KERNEL_DECODE:
    case VP_KERNEL_PREFILL:
        attention_buffers(out, w);
        break;
    case VP_KERNEL_EMPTY:
    case VP_DEV_KERNELS:
        break;
    }
}

uint64_t vp_bench_traffic(const struct vp_bench_item *item) {
    struct vp_bench_buffers buffers;
    uint64_t bytes = 0;

    vp_bench_buffers(&buffers, item);
    for (unsigned i = 0; i < VP_DEV_BUFFERS; i++)
        bytes += buffers.bytes[i];
    if (item->chain == VP_CHAIN_NORM_GELU) /* what is between the two is written and read */
        bytes += buffers.bytes[3];
    if (item->kernel == VP_KERNEL_READ)
        bytes = buffers.bytes[0];
    return bytes;
}
