#include "probe/cpu_kernels.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "probe/cpu_vector.h"

static double clock_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Thread t's part, and its time. */
static void run_part(const struct job *job, range_kernel kernel, unsigned t) {
    unsigned threads = job->cpu->threads;
    double started = clock_us(CLOCK_THREAD_CPUTIME_ID);
    kernel(job, t, job->items * t / threads, job->items * (t + 1) / threads);
    job->cpu->spent_us[t] = clock_us(CLOCK_THREAD_CPUTIME_ID) - started;
}

static void run(const struct job *job, const range_kernel kernels[2]) {
    struct vp_cpu *cpu = job->cpu;
    range_kernel kernel = kernels[cpu->avx2];
    double longest = 0;
#ifdef _OPENMP
    if (cpu->threads > 1) {
#pragma omp parallel num_threads((int)cpu->threads)
        run_part(job, kernel, (unsigned)omp_get_thread_num());
    } else
#endif
        run_part(job, kernel, 0);
    for (unsigned t = 0; t < cpu->threads; t++)
        longest = cpu->spent_us[t] > longest ? cpu->spent_us[t] : longest;
    cpu->busy_us += longest + cpu->start_us;
}

static void nothing(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    (void)job, (void)thread, (void)from, (void)to;
}
static const range_kernel nothing_kernels[2] = {nothing, nothing};

/* The quickest of many empty launches, less what it counts as work. */
static double measure_start(struct vp_cpu *cpu) {
    enum { TRIES = 200 };
    struct job job = {.cpu = cpu};
    double least = 1e9;
    for (unsigned i = 0; i < TRIES; i++) {
        double busy = cpu->busy_us, started = clock_us(CLOCK_MONOTONIC);
        run(&job, nothing_kernels);
        double us = clock_us(CLOCK_MONOTONIC) - started - (cpu->busy_us - busy);
        least = us < least ? us : least;
    }
    return least > 0 ? least : 0;
}

void vp_cpu_init(struct vp_cpu *cpu) {
    *cpu = (struct vp_cpu){.threads = 1};
#ifdef _OPENMP
    unsigned threads = (unsigned)omp_get_max_threads();
    cpu->threads = threads < VP_CPU_THREADS_MOST ? threads : VP_CPU_THREADS_MOST;
#endif
#ifdef AVX2
    cpu->avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    cpu->own = calloc(cpu->threads, sizeof *cpu->own);
    cpu->spent_us = calloc(cpu->threads, sizeof *cpu->spent_us);
    if (cpu->spent_us)
        cpu->start_us = measure_start(cpu);
}

void vp_cpu_free(struct vp_cpu *cpu) {
    for (unsigned t = 0; cpu->own && t < cpu->threads; t++)
        free(cpu->own[t]);
    free(cpu->own);
    free(cpu->spent_us);
    free(cpu->shared);
    *cpu = (struct vp_cpu){0};
}

static float *floats(uint64_t count) {
    enum { LINE = 64 };
    return aligned_alloc(LINE, (count * sizeof(float) + LINE - 1) / LINE * LINE);
}

static enum vp_dev_status room(struct vp_dev *device, struct vp_cpu *cpu, uint64_t shared,
                               uint64_t own) {
    bool good = cpu->own && cpu->spent_us;

    if (good && shared > cpu->shared_floats) {
        free(cpu->shared);
        cpu->shared = floats(shared);
        cpu->shared_floats = cpu->shared ? shared : 0;
        good = cpu->shared != NULL;
    }
    for (unsigned t = 0; good && own > cpu->own_floats && t < cpu->threads; t++) {
        free(cpu->own[t]);
        cpu->own[t] = floats(own);
        good = cpu->own[t] != NULL;
    }
    if (good && own > cpu->own_floats)
        cpu->own_floats = own;
    return good ? VP_DEV_OK
                : vp_dev_fail(device, VP_DEV_NO_MEMORY, "the host has no memory for scratch");
}

static enum vp_dev_status launch_product(struct vp_dev *device, struct job *job) {
    const struct vp_dev_work *w = job->work;
    bool recompute = w->kernel == VP_KERNEL_RECOMPUTE;
    enum vp_dev_status status =
        room(device, job->cpu, w->m * padded(w->k),
             (uint64_t)VP_CPU_PANEL * VP_CPU_DEPTH + w->m * VP_CPU_PANEL + VP_CPU_PANEL);
    if (status != VP_DEV_OK)
        return status;
    job->items = w->m;
    run(job, recompute ? vp_cpu_norm_widen : vp_cpu_widen);
    job->items = (w->n + VP_CPU_PANEL - 1) / VP_CPU_PANEL;
    run(job, vp_cpu_product);
    return VP_DEV_OK;
}

static enum vp_dev_status launch_attention(struct vp_dev *device, struct job *job) {
    const struct vp_dev_work *w = job->work;
    enum vp_dev_status status = room(device, job->cpu, 0, 2 * w->n * w->head_dim + padded(w->n));

    if (w->head_dim > VP_CPU_HEAD_MOST)
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "heads of more than 256");
    job->items = w->batch * w->kv_heads;
    if (status == VP_DEV_OK)
        run(job, vp_cpu_attention);
    return status;
}

static void copy_part(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    (void)thread;
    memcpy((uint8_t *)job->work->buffer[1] + from, (const uint8_t *)job->work->buffer[0] + from,
           to - from);
}

static bool whole_vectors(const struct vp_dev_work *w) {
    switch (w->kernel) {
    case VP_KERNEL_RECOMPUTE:
        return w->k % LANES == 0;
    case VP_KERNEL_GEMM:
    case VP_KERNEL_GEMV:
    case VP_KERNEL_COPY:
    case VP_KERNEL_EMPTY:
        return true;
    case VP_KERNEL_DECODE:
    case VP_KERNEL_PREFILL:
        return w->head_dim % LANES == 0;
    case VP_KERNEL_QUANTISE:
    case VP_KERNEL_DEQUANTISE:
        return w->m * w->n % LANES == 0;
    default:
        return w->n % LANES == 0;
    }
}

enum vp_dev_status vp_cpu_launch(struct vp_dev *device, struct vp_cpu *cpu,
                                 const struct vp_dev_work *w) {
    static const range_kernel copy_kernels[2] = {copy_part, copy_part};
    static const range_kernel *const KERNELS[VP_DEV_KERNELS] = {
        [VP_KERNEL_EMPTY] = nothing_kernels,
        [VP_KERNEL_READ] = vp_cpu_read_all,
        [VP_KERNEL_COPY] = copy_kernels,
        [VP_KERNEL_TRIAD] = vp_cpu_triad,
        [VP_KERNEL_NORM] = vp_cpu_norm,
        [VP_KERNEL_LAYERNORM] = vp_cpu_layernorm,
        [VP_KERNEL_LAYERNORM_GELU] = vp_cpu_layernorm,
        [VP_KERNEL_GELU] = vp_cpu_gelu,
        [VP_KERNEL_SWIGLU] = vp_cpu_swiglu,
        [VP_KERNEL_ADD] = vp_cpu_add,
        [VP_KERNEL_QUANTISE] = vp_cpu_quantise,
        [VP_KERNEL_DEQUANTISE] = vp_cpu_dequantise};
    struct job job = {.work = w, .cpu = cpu, .items = cpu->threads};

    if (!cpu->spent_us)
        return vp_dev_fail(device, VP_DEV_NO_MEMORY, "the host has no memory for scratch");
    if (!whole_vectors(w))
        return vp_dev_fail(device, VP_DEV_UNSUPPORTED, "a width that is no multiple of %d", LANES);
    switch (w->kernel) {
    case VP_KERNEL_GEMM:
    case VP_KERNEL_GEMV:
    case VP_KERNEL_RECOMPUTE:
        return launch_product(device, &job);
    case VP_KERNEL_DECODE:
    case VP_KERNEL_PREFILL:
        return launch_attention(device, &job);
    case VP_KERNEL_NORM:
    case VP_KERNEL_LAYERNORM:
    case VP_KERNEL_LAYERNORM_GELU:
    case VP_KERNEL_SWIGLU:
        job.items = w->m;
        break;
    case VP_KERNEL_COPY:
        job.items = w->n;
        break;
    case VP_KERNEL_READ:
        job.items = w->n / (LANES * sizeof(float));
        break;
    case VP_KERNEL_QUANTISE:
    case VP_KERNEL_DEQUANTISE:
        job.items = w->m * w->n / LANES;
        break;
    case VP_KERNEL_EMPTY:
        break;
    default:
        job.items = w->n / LANES;
        break;
    }
    run(&job, KERNELS[w->kernel]);
    return VP_DEV_OK;
}

void vp_cpu_copy(struct vp_cpu *cpu, void *to, const void *from, uint64_t bytes) {
    double started = clock_us(CLOCK_THREAD_CPUTIME_ID);
    memcpy(to, from, bytes);
    cpu->busy_us += clock_us(CLOCK_THREAD_CPUTIME_ID) - started;
}
