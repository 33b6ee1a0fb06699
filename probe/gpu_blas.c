/* Matrix products by the vendor's library: hipBLASLt or cuBLASLt, which have the same calls. They
 * think in columns: our row-major C[m, n] = A[m, k] B[n, k] transposed is to them the product of
 * B (k x n, transposed) and A (k x m), n x m, which is the one order that FP8 is made for. */
#include <stdio.h>
#include <string.h>

#include "probe/gpu_driver.h"

static const struct vp_library_symbol SYMBOLS[] = {
#define VP_BLAS(result, member, parameters, need, hip, cuda)                                       \
    {{hip, cuda}, offsetof(struct vp_blas_calls, member), need},
#include "probe/gpu_symbols.def"
};

/* A result of the heuristic is 96 bytes in cuBLASLt, 56 in hipBLASLt, and begins with the
 * algorithm in both; later versions may be longer. */
enum { RESULT_BYTES = 256, MOST_SHAPES = 512 };

/* A shape that has been planned. */
struct shape {
    enum vp_dev_type type;
    uint64_t m, n, k;
    void *product, *a, *b, *c;
    uint64_t algorithm[RESULT_BYTES / sizeof(uint64_t)];
    const char *refused; /* why it cannot be done; NULL: it can */
};

struct vp_gpu_blas {
    struct vp_library library;
    const char *missing; /* why there is none; NULL: there is */
    bool opened;
    struct vp_blas_calls call;
    void *handle, *wish, *workspace;
    float *scales; /* two, on the device */
    float scale[2];
    struct shape *shape[MOST_SHAPES];
    uint32_t shapes;
    bool checked[VP_DEV_TYPES];
    const char *wrong[VP_DEV_TYPES];
};

static enum vp_dev_status check(struct vp_dev *device, int code, const char *call) {
    const struct vp_gpu *gpu = device->state;
    return code ? vp_dev_fail(device, VP_DEV_FAILED, "%s: %s failed with status %d",
                              gpu->kind->blas.name, call, code)
                : VP_DEV_OK;
}

/* ---- the library ---- */

void vp_gpu_find_blas(struct vp_dev *device) {
    struct vp_gpu *gpu = device->state;
    const struct vp_blas_numbers *numbers = &gpu->kind->blas;
    struct vp_gpu_blas *blas = VP_NEW(device->arena, struct vp_gpu_blas);

    gpu->blas = blas;
    blas->missing =
        vp_library_open(device->arena, &blas->library, vp_gpu_folders(device), &numbers->library);
    if (blas->missing)
        return;
    const char *symbol = vp_library_load(&blas->call, SYMBOLS, sizeof SYMBOLS / sizeof *SYMBOLS,
                                         &blas->library, gpu->kind->family);
    if (symbol) {
        blas->missing = vp_arena_printf(device->arena, "%s has no %s", numbers->name, symbol);
        return;
    }
    vp_library_about(&blas->library, numbers->symbol);
    snprintf(gpu->blas_name, sizeof gpu->blas_name, "%s%s%.60s", numbers->name,
             blas->library.version[0] ? " " : "", blas->library.version);
}

enum vp_dev_status vp_gpu_open_blas(struct vp_dev *device) {
    struct vp_gpu *gpu = device->state;
    struct vp_gpu_blas *blas = gpu->blas;
    const struct vp_blas_numbers *numbers = &gpu->kind->blas;
    void *scales = NULL;

    if (blas->missing)
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "%s", blas->missing);
    if (blas->opened)
        return VP_DEV_OK;
    enum vp_dev_status status = check(device, blas->call.create(&blas->handle), "create");
    if (status == VP_DEV_OK)
        status = check(device, blas->call.wish_create(&blas->wish), "preference create");
    if (status == VP_DEV_OK)
        status = check(device,
                       blas->call.wish_set(blas->wish, numbers->wish_workspace,
                                           &numbers->workspace_bytes, sizeof(uint64_t)),
                       "preference set");
    if (status == VP_DEV_OK)
        status = vp_gpu_alloc(device, &blas->workspace, numbers->workspace_bytes);
    if (status == VP_DEV_OK)
        status = vp_gpu_alloc(device, &scales, sizeof blas->scale);
    blas->scales = scales;
    blas->opened = status == VP_DEV_OK;
    if (!blas->opened) /* it will not go better the next time */
        blas->missing = vp_arena_printf(device->arena, "%s", device->why);
    return status;
}

/* ---- shapes ---- */

/* hipDataType and cudaDataType agree but for FNUZ. 0: it has none (and fp32 is 0 as well). */
static int type_number(const struct vp_gpu *gpu, enum vp_dev_type type) {
    enum { R_32F = 0, R_16BF = 14 };
    return type == VP_TYPE_FP8    ? gpu->kind->fp8_type(gpu->arch)
           : type == VP_TYPE_FP32 ? R_32F
                                  : R_16BF;
}

static enum vp_dev_status describe(struct vp_dev *device, struct shape *s) {
    enum { R_32F = 0, R_16BF = 14 };
    struct vp_gpu *gpu = device->state;
    struct vp_gpu_blas *blas = gpu->blas;
    const struct vp_blas_numbers *numbers = &gpu->kind->blas;
    const struct vp_blas_calls *call = &blas->call;
    int type = type_number(gpu, s->type), out = s->type == VP_TYPE_FP32 ? R_32F : R_16BF;
    int32_t transpose = numbers->transpose;
    const float *scale[2] = {blas->scales, blas->scales + 1};
    enum vp_dev_status status =
        check(device, call->product_create(&s->product, numbers->compute_fp32, R_32F), "create");

    if (status == VP_DEV_OK)
        status = check(device,
                       call->product_set(s->product, numbers->attribute_transpose_a, &transpose,
                                         sizeof transpose),
                       "set transpose");
    /* The library's first operand is our second. */
    for (unsigned i = 0; status == VP_DEV_OK && s->type == VP_TYPE_FP8 && i < 2; i++)
        status = check(device,
                       call->product_set(
                           s->product, i ? numbers->attribute_scale_b : numbers->attribute_scale_a,
                           &scale[1 - i], sizeof scale[0]),
                       "set scale");
    if (status == VP_DEV_OK)
        status = check(device, call->layout_create(&s->a, type, s->k, s->n, (int64_t)s->k),
                       "layout create");
    if (status == VP_DEV_OK)
        status = check(device, call->layout_create(&s->b, type, s->k, s->m, (int64_t)s->k),
                       "layout create");
    if (status == VP_DEV_OK)
        status = check(device, call->layout_create(&s->c, out, s->n, s->m, (int64_t)s->n),
                       "layout create");
    return status;
}

/* Asks for an algorithm. That there is none for a shape is no failure. */
static void choose(struct vp_dev *device, struct shape *s) {
    struct vp_gpu *gpu = device->state;
    struct vp_gpu_blas *blas = gpu->blas;
    int count = 0; /* some versions leave it as it is when they fail */
    enum vp_dev_status status = describe(device, s);

    if (status != VP_DEV_OK) {
        s->refused = vp_arena_printf(device->arena, "%s", device->why);
        return;
    }
    int code = blas->call.choose(blas->handle, s->product, s->a, s->b, s->c, s->c, blas->wish, 1,
                                 s->algorithm, &count);
    if (code || count < 1)
        s->refused = vp_arena_printf(device->arena, "%s has no algorithm for this (status %d)",
                                     gpu->kind->blas.name, code);
}

static struct shape *shape_of(struct vp_dev *device, const struct vp_dev_work *w) {
    struct vp_gpu *gpu = device->state;
    struct vp_gpu_blas *blas = gpu->blas;

    for (uint32_t i = 0; i < blas->shapes; i++) {
        struct shape *s = blas->shape[i];
        if (s->type == w->type && s->m == w->m && s->n == w->n && s->k == w->k)
            return s;
    }
    if (blas->shapes == MOST_SHAPES)
        return NULL;
    struct shape *s = VP_NEW(device->arena, struct shape);
    *s = (struct shape){.type = w->type, .m = w->m, .n = w->n, .k = w->k};
    choose(device, s);
    return blas->shape[blas->shapes++] = s;
}

/* ---- running ---- */

static enum vp_dev_status set_scales(struct vp_dev *device, const float scale[2]) {
    struct vp_gpu *gpu = device->state;
    struct vp_gpu_blas *blas = gpu->blas;

    if (!memcmp(blas->scale, scale, sizeof blas->scale))
        return VP_DEV_OK;
    memcpy(blas->scale, scale, sizeof blas->scale);
    enum vp_dev_status status =
        vp_gpu_copy(device, blas->scales, blas->scale, sizeof blas->scale, VP_COPY_TO_DEVICE);
    return status == VP_DEV_OK ? vp_gpu_sync(device) : status;
}

static enum vp_dev_status run(struct vp_dev *device, const struct vp_dev_work *w) {
    static const float ONE = 1, ZERO = 0;
    struct vp_gpu *gpu = device->state;
    struct vp_gpu_blas *blas = gpu->blas;
    const struct shape *s = shape_of(device, w);
    enum vp_dev_status status = VP_DEV_OK;

    if (!s || s->refused)
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "%s", s ? s->refused : "too many shapes");
    if (w->type == VP_TYPE_FP8)
        status = set_scales(device, w->scale);
    if (status != VP_DEV_OK)
        return status;
    return check(device,
                 blas->call.run(blas->handle, s->product, &ONE, w->buffer[1], s->a, w->buffer[0],
                                s->b, &ZERO, w->buffer[2], s->c, w->buffer[2], s->c, s->algorithm,
                                blas->workspace, gpu->kind->blas.workspace_bytes, gpu->stream),
                 "product");
}

enum vp_dev_status vp_gpu_gemm(struct vp_dev *device, const struct vp_dev_work *w) {
    struct vp_gpu *gpu = device->state;
    struct vp_gpu_blas *blas = gpu->blas;
    enum vp_dev_status status = vp_gpu_open_blas(device);

    if (status != VP_DEV_OK)
        return status;
    if (w->type == VP_TYPE_INT8)
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "products of INT8 are not measured");
    if (w->type == VP_TYPE_FP8 && !type_number(gpu, w->type))
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "the matrix units of %.20s take no FP8",
                           gpu->arch);
    if (!blas->checked[w->type]) {
        blas->checked[w->type] = true;
        status = vp_gpu_check_product(device, w->type, run);
        if (status == VP_DEV_UNSUPPORTED)
            blas->wrong[w->type] =
                vp_arena_printf(device->arena, "%s: %s", gpu->kind->blas.name, device->why);
        else if (status != VP_DEV_OK)
            return status;
    }
    if (blas->wrong[w->type])
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "%s", blas->wrong[w->type]);
    return run(device, w);
}
