#include "probe/gpu_launch.h"

/* Blocks of 256 lanes; eight of them keep a compute unit busy with memory, on all that we know. Of
 * attention of one token a block takes so many heads and tokens: kernels/kernel_gemv.h. */
enum {
    LANES = 256,
    BLOCKS_PER_UNIT = 8,
    READ_BLOCKS = 4096, /* results that VP_KERNEL_READ has room for */
    WORD = 16,          /* bytes that a lane takes at once */
    VECTOR = 8,         /* elements of a 16-byte word of bf16 */
    HEADS = 8,
    CHUNK = 256,
    MOST_HEAD_DIM = 256
};

const char *vp_kernel_entry_name(enum vp_kernel_entry entry) {
    static const char *const NAMES[] = {
#define X(name) #name,
#include "probe/kernel_entries.def"
#undef X
    };
    return NAMES[entry];
}

bool vp_kernel_traits_read(struct vp_kernel_traits *out, const uint32_t numbers[8]) {
    enum { MAGIC = 0x56504b31 };

    *out = (struct vp_kernel_traits){.wave = numbers[1],
                                     .side = numbers[2],
                                     .fp8_units = numbers[3] != 0,
                                     .fp8_fnuz = numbers[4] != 0,
                                     .products = numbers[5] != 0,
                                     .step_bytes = numbers[6]};
    return numbers[0] == MAGIC && out->wave > 0 && out->side > 0 &&
           (!out->products || out->step_bytes > 0);
}

struct planning {
    struct vp_dev *device;
    struct vp_kernel_plan *plan;
    const struct vp_dev_work *work;
    const struct vp_kernel_traits *traits;
    uint8_t *scratch;
};

static enum vp_dev_status refuse(const struct planning *p, const char *reason) {
    return vp_dev_fail(p->device, VP_DEV_UNSUPPORTED, "%s: %s", vp_dev_kernel_name(p->work->kernel),
                       reason);
}

/* A kernel that any number of blocks serves gets enough to keep the device busy, and no more than
 * `most`. */
static uint32_t enough_blocks(const struct planning *p, uint64_t most) {
    uint64_t units = p->traits->compute_units ? p->traits->compute_units : 1;
    uint64_t blocks = units * BLOCKS_PER_UNIT;

    blocks = most < blocks ? most : blocks;
    return blocks ? (uint32_t)blocks : 1;
}

static struct vp_kernel_launch *add(const struct planning *p, enum vp_kernel_entry entry,
                                    uint64_t blocks) {
    struct vp_kernel_launch *l = &p->plan->launch[p->plan->launches++];

    *l = (struct vp_kernel_launch){.entry = entry, .blocks = (uint32_t)blocks, .lanes = LANES};
    for (unsigned i = 0; i < VP_DEV_BUFFERS; i++)
        l->buffer[i] = p->work->buffer[i];
    l->numbers.scale0 = p->work->scale[0];
    l->numbers.scale1 = p->work->scale[1];
    return l;
}

/* One pass over `count` things, `each` of which are a 16-byte word of the first operand. */
static enum vp_dev_status stream(const struct planning *p, enum vp_kernel_entry entry,
                                 uint64_t count, uint64_t each, uint32_t option) {
    uint64_t words = count / each;

    if (count % each || words == 0 || words > INT32_MAX)
        return refuse(p, "the size is no number of 16-byte words, or too large");
    uint64_t most = (words + LANES - 1) / LANES;
    if (entry == VP_ENTRY_vp_read && most > READ_BLOCKS)
        most = READ_BLOCKS;
    struct vp_kernel_launch *l = add(p, entry, enough_blocks(p, most));
    l->numbers.n = (uint32_t)words;
    l->numbers.option = option;
    return VP_DEV_OK;
}

/* Rows of n elements of bf16, a block per row. */
static enum vp_dev_status rows(const struct planning *p, enum vp_kernel_entry entry, uint64_t m,
                               uint64_t n, uint32_t option) {
    if (n % VECTOR || m == 0 || n == 0 || m > UINT32_MAX || n / VECTOR > UINT32_MAX)
        return refuse(p, "rows are no multiple of 8 elements");
    struct vp_kernel_launch *l = add(p, entry, enough_blocks(p, m));
    l->numbers.m = (uint32_t)m;
    l->numbers.n = (uint32_t)(n / VECTOR);
    l->numbers.option = option;
    return VP_DEV_OK;
}

static bool in_range(const struct vp_dev_work *w) {
    const uint64_t MOST = UINT32_MAX / 2;
    return w->m > 0 && w->n > 0 && w->k > 0 && w->m < MOST && w->n < MOST && w->k < MOST;
}

static enum vp_dev_status product(const struct planning *p, enum vp_dev_type type) {
    const struct vp_dev_work *w = p->work;
    const struct vp_kernel_traits *t = p->traits;
    bool fp8 = type == VP_TYPE_FP8;

    if (!t->products)
        return refuse(p, "the matrix units of this GPU are not known to us");
    if (!fp8 && type != VP_TYPE_BF16)
        return refuse(p, "our kernels multiply bf16 and FP8");
    /* bytes of a row as the units take it: decoded FP8 has twice those in memory */
    uint64_t row_bytes = w->k * (fp8 && t->fp8_units ? 1 : 2);
    if (!in_range(w) || w->n % VECTOR || row_bytes % t->step_bytes)
        return refuse(p, "our kernels take n in steps of 8 and k in steps of 128 bytes");
    uint64_t tall = (w->m + t->side - 1) / t->side, wide = (w->n + t->side - 1) / t->side;
    if (tall * wide > UINT32_MAX / LANES)
        return refuse(p, "too large");
    struct vp_kernel_launch *l =
        add(p, fp8 ? VP_ENTRY_vp_gemm_fp8 : VP_ENTRY_vp_gemm_bf16, tall * wide);
    l->lanes = 4 * t->wave;
    l->numbers.m = (uint32_t)w->m;
    l->numbers.n = (uint32_t)w->n;
    l->numbers.k = (uint32_t)w->k;
    if (!fp8)
        l->numbers.scale0 = l->numbers.scale1 = 1;
    return VP_DEV_OK;
}

static enum vp_dev_status gemv(const struct planning *p) {
    enum { ROWS = 4 }; /* of the weight, by a block */
    const struct vp_dev_work *w = p->work;
    bool fp8 = w->type == VP_TYPE_FP8;

    if (!fp8 && w->type != VP_TYPE_BF16)
        return refuse(p, "our kernels multiply bf16 and FP8");
    if (!in_range(w) || w->m != 1 || w->n % ROWS || w->k % VECTOR)
        return refuse(p, "it takes m = 1, n in steps of 4 and k in steps of 8");
    struct vp_kernel_launch *l =
        add(p, fp8 ? VP_ENTRY_vp_gemv_fp8 : VP_ENTRY_vp_gemv_bf16, enough_blocks(p, w->n / ROWS));
    l->numbers.n = (uint32_t)w->n;
    l->numbers.k = (uint32_t)w->k;
    if (!fp8)
        l->numbers.scale0 = l->numbers.scale1 = 1;
    return VP_DEV_OK;
}

/* Norm, projection, activation: three launches, queued at once. */
static enum vp_dev_status recompute(const struct planning *p) {
    const struct vp_dev_work *w = p->work;
    uint8_t *normed = p->scratch, *projected = p->scratch + w->m * w->k * 2;
    enum vp_dev_status status = rows(p, VP_ENTRY_vp_norm, w->m, w->k, 0);

    if (status == VP_DEV_OK)
        status = product(p, VP_TYPE_BF16);
    if (status == VP_DEV_OK)
        status = stream(p, VP_ENTRY_vp_activate, w->m * w->n, VECTOR, 1);
    if (status != VP_DEV_OK)
        return status;
    struct vp_kernel_launch *l = p->plan->launch;
    l[0].buffer[2] = normed;
    l[1].buffer[0] = normed;
    l[1].buffer[1] = w->buffer[2];
    l[1].buffer[2] = projected;
    l[2].buffer[0] = projected;
    l[2].buffer[1] = w->buffer[3];
    return VP_DEV_OK;
}

static uint64_t chunks(const struct vp_dev_work *w) { return (w->n + CHUNK - 1) / CHUNK; }

static enum vp_dev_status decode(const struct planning *p) {
    const struct vp_dev_work *w = p->work;
    bool fp8 = w->type == VP_TYPE_FP8;

    if (!fp8 && w->type != VP_TYPE_BF16)
        return refuse(p, "our kernels read keys and values of bf16 and FP8");
    if (!w->batch || !w->n || !w->kv_heads || w->heads % w->kv_heads || !w->head_dim ||
        w->head_dim % VECTOR || w->head_dim > MOST_HEAD_DIM || w->n > UINT32_MAX / 2)
        return refuse(p, "it takes heads of at most 256 elements, in steps of 8");
    uint64_t passes = (w->heads / w->kv_heads + HEADS - 1) / HEADS;
    uint64_t blocks = w->batch * w->kv_heads * passes * chunks(w);
    if (blocks > UINT32_MAX / LANES)
        return refuse(p, "too large");
    for (unsigned pass = 0; pass < 2; pass++) {
        enum vp_kernel_entry entry = pass  ? VP_ENTRY_vp_combine
                                     : fp8 ? VP_ENTRY_vp_decode_fp8
                                           : VP_ENTRY_vp_decode_bf16;
        struct vp_kernel_launch *l = add(p, entry, pass ? w->batch * w->heads : blocks);
        l->buffer[4] = p->scratch;
        l->numbers.n = (uint32_t)w->n;
        l->numbers.heads = (uint32_t)w->heads;
        l->numbers.kv_heads = (uint32_t)w->kv_heads;
        l->numbers.head_dim = (uint32_t)w->head_dim;
        if (!fp8)
            l->numbers.scale0 = l->numbers.scale1 = 1;
    }
    return VP_DEV_OK;
}

uint64_t vp_kernel_scratch_bytes(const struct vp_dev_work *w) {
    if (w->kernel == VP_KERNEL_RECOMPUTE)
        return w->m * (w->k + w->n) * 2;
    if (w->kernel == VP_KERNEL_DECODE)
        return w->batch * w->heads * chunks(w) * (w->head_dim + 2) * sizeof(float);
    return 0;
}

enum vp_dev_status vp_kernel_plan(struct vp_dev *device, struct vp_kernel_plan *out,
                                  const struct vp_dev_work *w,
                                  const struct vp_kernel_traits *traits, void *scratch) {
    const struct planning planning = {device, out, w, traits, scratch}, *p = &planning;
    uint32_t int8 = w->type == VP_TYPE_INT8;

    out->launches = 0;
    switch (w->kernel) {
    case VP_KERNEL_EMPTY:
        add(p, VP_ENTRY_vp_empty, 1);
        return VP_DEV_OK;
    case VP_KERNEL_READ:
        return stream(p, VP_ENTRY_vp_read, w->n, WORD, 0);
    case VP_KERNEL_COPY:
        return stream(p, VP_ENTRY_vp_copy, w->n, WORD, 0);
    case VP_KERNEL_TRIAD:
        return stream(p, VP_ENTRY_vp_triad, w->n, WORD / sizeof(float), 0);
    case VP_KERNEL_ADD:
        return stream(p, VP_ENTRY_vp_add, w->n, VECTOR, 0);
    case VP_KERNEL_GELU:
        return stream(p, VP_ENTRY_vp_activate, w->n, VECTOR, 0);
    case VP_KERNEL_QUANTISE:
    case VP_KERNEL_DEQUANTISE:
        if (!int8 && w->type != VP_TYPE_FP8)
            return refuse(p, "codes are FP8 or INT8");
        return stream(
            p, w->kernel == VP_KERNEL_QUANTISE ? VP_ENTRY_vp_quantise : VP_ENTRY_vp_dequantise,
            w->m * w->n, VECTOR, int8);
    case VP_KERNEL_NORM:
        return rows(p, VP_ENTRY_vp_norm, w->m, w->n, 0);
    case VP_KERNEL_LAYERNORM:
        return rows(p, VP_ENTRY_vp_layernorm, w->m, w->n, 0);
    case VP_KERNEL_LAYERNORM_GELU:
        return rows(p, VP_ENTRY_vp_layernorm, w->m, w->n, 1);
    case VP_KERNEL_SWIGLU:
        return rows(p, VP_ENTRY_vp_swiglu, w->m, w->n, 0);
    case VP_KERNEL_GEMM:
        return product(p, w->type);
    case VP_KERNEL_GEMV:
        return gemv(p);
    case VP_KERNEL_RECOMPUTE:
        return recompute(p);
    case VP_KERNEL_DECODE:
        return decode(p);
    case VP_KERNEL_PREFILL:
        return refuse(p, "we have no kernel for it that would say anything of an engine's");
    case VP_DEV_KERNELS:
        break;
    }
    return refuse(p, "not known");
}
