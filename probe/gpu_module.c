/* Our kernels on a GPU: loading, checking, launching. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probe/fp8.h"
#include "probe/gpu_driver.h"
#include "probe/method.h"

/* ---- launching ---- */

static enum vp_dev_status launch_one(struct vp_dev *device, const struct vp_kernel_launch *l) {
    struct vp_gpu *gpu = device->state;
    struct vp_kernel_launch copy = *l; /* arguments are given by their addresses */
    void *parameters[VP_KERNEL_BUFFERS + 1];

    if (!gpu->function[l->entry])
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "the kernels have no %s",
                           vp_kernel_entry_name(l->entry));
    for (unsigned i = 0; i < VP_KERNEL_BUFFERS; i++)
        parameters[i] = &copy.buffer[i];
    parameters[VP_KERNEL_BUFFERS] = &copy.numbers;
    return VP_GPU_CALL(device, gpu, launch, gpu->function[l->entry], l->blocks, 1, 1, l->lanes, 1,
                       1, 0, gpu->stream, parameters, NULL);
}

static enum vp_dev_status need_scratch(struct vp_dev *device, uint64_t bytes) {
    struct vp_gpu *gpu = device->state;

    if (bytes <= gpu->scratch_bytes)
        return VP_DEV_OK;
    if (gpu->capturing)
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "no memory is taken while recording");
    enum vp_dev_status status = vp_gpu_sync(device); /* what is queued may still use it */
    vp_gpu_release(device, gpu->scratch);
    gpu->scratch = NULL;
    gpu->scratch_bytes = 0;
    if (status == VP_DEV_OK)
        status = vp_gpu_alloc(device, &gpu->scratch, bytes);
    if (status == VP_DEV_OK)
        gpu->scratch_bytes = bytes;
    return status;
}

/* The product inside RECOMPUTE: the vendor's where there is one, as in an engine. */
static enum vp_dev_status multiply(struct vp_dev *device, const struct vp_kernel_launch *l) {
    const struct vp_dev_work product = {.kernel = VP_KERNEL_GEMM,
                                        .type = VP_TYPE_BF16,
                                        .m = l->numbers.m,
                                        .n = l->numbers.n,
                                        .k = l->numbers.k,
                                        .buffer = {l->buffer[0], l->buffer[1], l->buffer[2]}};
    enum vp_dev_status status = vp_gpu_gemm(device, &product);
    return status == VP_DEV_UNSUPPORTED ? launch_one(device, l) : status;
}

static bool multiplies(const struct vp_dev_work *w) {
    return w->kernel == VP_KERNEL_GEMM || w->kernel == VP_KERNEL_RECOMPUTE;
}

enum vp_dev_status vp_gpu_launch(struct vp_dev *device, const struct vp_dev_work *work) {
    struct vp_gpu *gpu = device->state;
    struct vp_kernel_plan plan;
    enum vp_dev_status status = need_scratch(device, vp_kernel_scratch_bytes(work));

    if (status == VP_DEV_OK && multiplies(work) && gpu->wrong[work->type])
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "%s", gpu->wrong[work->type]);
    if (status == VP_DEV_OK)
        status = vp_kernel_plan(device, &plan, work, &gpu->traits, gpu->scratch);
    for (uint32_t i = 0; status == VP_DEV_OK && i < plan.launches; i++) {
        bool product = plan.launch[i].entry == VP_ENTRY_vp_gemm_bf16;
        status = work->kernel == VP_KERNEL_RECOMPUTE && product
                     ? multiply(device, &plan.launch[i])
                     : launch_one(device, &plan.launch[i]);
    }
    return status;
}

/* ---- checking ----
 * Nobody ran these kernels on every GPU: before one of our products is believed, a small one, whose
 * sides are no multiples of a block, is compared with sums in double. Done for the vendor's library
 * too, whose arguments are ours. */

enum { CHECK_M = 144, CHECK_N = 144, CHECK_K = 256, CHECK_SEED = 5 };

struct check {
    struct vp_dev_work work;
    float *a, *b; /* values of the operands */
    uint8_t *bytes;
    uint64_t a_bytes, b_bytes, c_bytes;
};

/* Rounds values to the type and stores their codes. */
static void store(uint8_t *to, float *values, uint64_t count, enum vp_dev_type type, bool fnuz) {
    for (uint64_t i = 0; i < count; i++) {
        if (type == VP_TYPE_FP32) {
            memcpy(to + 4 * i, &values[i], sizeof values[i]);
        } else if (type == VP_TYPE_FP8) {
            to[i] = vp_fp8_code(values[i], fnuz);
            values[i] = vp_fp8_value(to[i], fnuz);
        } else {
            uint16_t code = vp_bf16_code(values[i]);
            memcpy(to + 2 * i, &code, sizeof code);
            values[i] = vp_bf16_value(code);
        }
    }
}

static float *normal(struct vp_arena *arena, uint64_t count, struct vp_noise *random) {
    float *values = VP_NEW_ARRAY(arena, count, float);
    for (uint64_t i = 0; i < count; i++)
        values[i] = vp_noise_normal(random);
    return values;
}

/* Operands on the device; their memory is that of buffer[0]. */
static enum vp_dev_status prepare(struct vp_dev *device, struct check *c, enum vp_dev_type type) {
    const struct vp_gpu *gpu = device->state;
    struct vp_noise random = {.state = CHECK_SEED};
    uint64_t size = vp_dev_type_bytes(type);
    void *memory = NULL;

    *c = (struct check){.work = {.kernel = VP_KERNEL_GEMM,
                                 .type = type,
                                 .m = CHECK_M,
                                 .n = CHECK_N,
                                 .k = CHECK_K,
                                 .scale = {0.5F, 0.25F}}};
    if (type != VP_TYPE_FP8)
        c->work.scale[0] = c->work.scale[1] = 1;
    c->a_bytes = CHECK_M * CHECK_K * size;
    c->b_bytes = CHECK_N * CHECK_K * size;
    c->c_bytes = (uint64_t)CHECK_M * CHECK_N * (type == VP_TYPE_FP32 ? 4 : 2);
    c->a = normal(device->arena, CHECK_M * CHECK_K, &random);
    c->b = normal(device->arena, CHECK_N * CHECK_K, &random);
    uint64_t all = c->a_bytes + c->b_bytes + c->c_bytes;
    c->bytes = VP_NEW_ARRAY(device->arena, all, uint8_t);
    store(c->bytes, c->a, CHECK_M * CHECK_K, type, gpu->traits.fp8_fnuz);
    store(c->bytes + c->a_bytes, c->b, CHECK_N * CHECK_K, type, gpu->traits.fp8_fnuz);
    enum vp_dev_status status = vp_gpu_alloc(device, &memory, all);
    c->work.buffer[0] = memory;
    c->work.buffer[1] = (uint8_t *)memory + c->a_bytes;
    c->work.buffer[2] = (uint8_t *)memory + c->a_bytes + c->b_bytes;
    if (status == VP_DEV_OK)
        status = vp_gpu_copy(device, memory, c->bytes, all, VP_COPY_TO_DEVICE);
    return status == VP_DEV_OK ? vp_gpu_sync(device) : status;
}

static double result_at(const struct check *c, uint64_t i) {
    const uint8_t *result = c->bytes + c->a_bytes + c->b_bytes;
    uint16_t code;
    float value;

    if (c->work.type == VP_TYPE_FP32) {
        memcpy(&value, result + 4 * i, sizeof value);
        return (double)value;
    }
    memcpy(&code, result + 2 * i, sizeof code);
    return (double)vp_bf16_value(code);
}

static enum vp_dev_status compare(struct vp_dev *device, const struct check *c) {
    double scale = (double)c->work.scale[0] * (double)c->work.scale[1];

    for (uint64_t i = 0; i < CHECK_M; i++)
        for (uint64_t j = 0; j < CHECK_N; j++) {
            double sum = 0, size = 0, got = result_at(c, i * CHECK_N + j);
            for (uint64_t l = 0; l < CHECK_K; l++) {
                double one = (double)c->a[i * CHECK_K + l] * (double)c->b[j * CHECK_K + l];
                sum += one;
                size += fabs(one);
            }
            /* 8 bits of a bf16 result; tensor cores for FP8 and fp32 sum in 14 and 11 bits */
            if (!(fabs(got - sum * scale) <= (fabs(sum) / 128 + size / 1024) * scale))
                return vp_dev_fail(device, VP_DEV_UNSUPPORTED,
                                   "a %s product gives wrong results on this GPU: %g, not %g, in "
                                   "row %u, column %u",
                                   vp_dev_type_name(c->work.type), got, sum * scale, (unsigned)i,
                                   (unsigned)j);
        }
    return VP_DEV_OK;
}

enum vp_dev_status vp_gpu_check_product(struct vp_dev *device, enum vp_dev_type type,
                                        enum vp_dev_status (*run)(struct vp_dev *,
                                                                  const struct vp_dev_work *)) {
    struct check c;
    enum vp_dev_status status = prepare(device, &c, type);

    if (status == VP_DEV_OK)
        status = run(device, &c.work);
    if (status == VP_DEV_OK)
        status = vp_gpu_copy(device, c.bytes + c.a_bytes + c.b_bytes, c.work.buffer[2], c.c_bytes,
                             VP_COPY_TO_HOST);
    if (status == VP_DEV_OK)
        status = vp_gpu_sync(device);
    if (status == VP_DEV_OK)
        status = compare(device, &c);
    vp_gpu_release(device, c.work.buffer[0]);
    return status;
}

/* ---- loading ---- */

static enum vp_dev_status load_module(struct vp_dev *device, void **module) {
    struct vp_gpu *gpu = device->state;
    const struct vp_gpu_kind *kind = gpu->kind;
    const void *image = NULL;
    enum vp_dev_status status = kind->image(device, gpu->arch, &image, gpu->kernels);

    if (status == VP_DEV_OK)
        status = VP_GPU_CALL(device, gpu, module_load, module, image);
    else
        return status;
    if (status == VP_DEV_FAILED && kind->compiled_image) {
        /* An old loader does not take our images; its own compiler's it does. */
        char why[VP_DEV_WHY];
        memcpy(why, device->why, sizeof why);
        if (kind->compiled_image(device, gpu->arch, &image, gpu->kernels) == VP_DEV_OK)
            status = VP_GPU_CALL(device, gpu, module_load, module, image);
        else
            memcpy(device->why, why, sizeof why);
    }
    return status;
}

static enum vp_dev_status read_traits(struct vp_dev *device) {
    struct vp_gpu *gpu = device->state;
    const struct vp_kernel_launch describe = {
        .entry = VP_ENTRY_vp_describe, .blocks = 1, .lanes = 64};
    struct vp_kernel_launch l = describe;
    uint64_t units = gpu->traits.compute_units;
    uint32_t numbers[8] = {0};
    void *memory = NULL;
    enum vp_dev_status status = vp_gpu_alloc(device, &memory, sizeof numbers);

    l.buffer[2] = memory;
    if (status == VP_DEV_OK)
        status = launch_one(device, &l);
    if (status == VP_DEV_OK)
        status = vp_gpu_copy(device, numbers, memory, sizeof numbers, VP_COPY_TO_HOST);
    if (status == VP_DEV_OK)
        status = vp_gpu_sync(device);
    if (status == VP_DEV_OK && !vp_kernel_traits_read(&gpu->traits, numbers))
        status = vp_dev_fail(device, VP_DEV_FAILED,
                             "the kernels run and do not give what they should (%08x)", numbers[0]);
    gpu->traits.compute_units = units;
    vp_gpu_release(device, memory);
    return status;
}

enum vp_dev_status vp_gpu_load_kernels(struct vp_dev *device) {
    static const enum vp_dev_type TYPES[] = {VP_TYPE_BF16, VP_TYPE_FP8};
    struct vp_gpu *gpu = device->state;
    void *module = NULL;
    enum vp_dev_status status = load_module(device, &module);

    for (unsigned i = 0; status == VP_DEV_OK && i < VP_KERNEL_ENTRIES; i++)
        if (gpu->call.module_function(&gpu->function[i], module, vp_kernel_entry_name(i)) != 0)
            gpu->function[i] = NULL;
    if (status == VP_DEV_OK)
        status = read_traits(device);
    for (unsigned i = 0; status == VP_DEV_OK && gpu->traits.products && i < 2; i++) {
        status = vp_gpu_check_product(device, TYPES[i], vp_gpu_launch);
        if (status == VP_DEV_UNSUPPORTED) {
            gpu->wrong[TYPES[i]] = vp_arena_printf(device->arena, "%s", device->why);
            status = VP_DEV_OK;
        }
    }
    return status;
}
