#include "probe/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "probe/bench_parts.h"
#include "probe/fp8.h"
#include "probe/quant_error.h"

/* ---- memory ---- */

enum { ALIGNMENT = 4096, MOST_COPIES = 4096 };

static uint64_t rounded(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Twice the last-level cache, and more where that is cheap. */
uint64_t vp_bench_spread(const struct vp_bench_session *s) {
    uint64_t least = s->run->backend->host ? 96 << 20 : 512 << 20;
    return s->info.cache_bytes > least / 2 ? 2 * s->info.cache_bytes : least;
}

/* Of an item: what stays in place, what one copy takes, and what the whole needs at least. */
struct need {
    uint64_t fixed, stride;
};

static struct need need_of(const struct vp_bench_item *item) {
    struct vp_bench_buffers buffers;
    struct need need = {0};

    vp_bench_buffers(&buffers, item);
    for (unsigned i = 0; i < VP_DEV_BUFFERS; i++)
        *(buffers.rotates[i] ? &need.stride : &need.fixed) += rounded(buffers.bytes[i]);
    return need;
}

static bool has_buffers(const struct vp_bench_item *item) {
    return item->kind == VP_BENCH_STREAM || item->kind == VP_BENCH_GEMM ||
           item->kind == VP_BENCH_DECODE || item->kind == VP_BENCH_PREFILL ||
           item->kind == VP_BENCH_KERNEL;
}

/* What the largest item of the list takes with its copies; at most a part of what is free. */
static uint64_t pool_wish(struct vp_bench_session *s, uint64_t least) {
    uint64_t wish = least, spread = vp_bench_spread(s), free_bytes = 0, total = 0;

    for (uint32_t i = 0; i < s->run->list->count; i++) {
        const struct vp_bench_item *item = &s->run->list->item[i];
        struct need need = need_of(item);
        uint64_t bytes = need.fixed + (need.stride > spread ? need.stride : spread);
        if (has_buffers(item) && bytes > wish)
            wish = bytes;
    }
    if (s->run->backend->memory(&s->device, &free_bytes, &total) == VP_DEV_OK) {
        uint64_t most = s->run->backend->host ? free_bytes / 4 : free_bytes / 8 * 6;
        wish = wish < most ? wish : most;
    }
    return wish;
}

enum vp_dev_status vp_bench_pool_need(struct vp_bench_session *s, uint64_t bytes) {
    const struct vp_dev_backend *b = s->run->backend;
    enum vp_dev_status status = VP_DEV_OK;

    if (s->pool.memory && s->pool.bytes < bytes && !s->pool.full) {
        b->release(&s->device, s->pool.memory);
        s->pool = (struct vp_bench_pool){0};
    }
    if (!s->pool.memory) {
        uint64_t wish = pool_wish(s, bytes);
        void *memory = NULL;
        bool full = false;
        while ((status = b->alloc(&s->device, &memory, wish)) == VP_DEV_NO_MEMORY) {
            full = true;
            wish /= 2;
            if (wish < bytes || wish == 0)
                break;
        }
        if (status == VP_DEV_OK)
            s->pool = (struct vp_bench_pool){memory, wish, full};
    }
    if (status == VP_DEV_OK && s->pool.bytes < bytes)
        status = vp_dev_fail(&s->device, VP_DEV_NO_MEMORY,
                             "it takes %.1f GiB of the device's memory, %.1f GiB could be had",
                             (double)bytes / (1 << 30), (double)s->pool.bytes / (1 << 30));
    return status;
}

/* 8-bit codes are scaled to use the middle of their range, and are FNUZ ones, which have neither a
 * -0 nor, at this scale, what OCP reads as NaN. */
static void pattern(uint8_t *out, size_t bytes, enum vp_dev_type type) {
    static const float FP8_SCALE = 16, INT8_SCALE = 20;
    struct vp_noise random = {.state = 3};
    size_t size = vp_dev_type_bytes(type);

    for (size_t i = 0; i + size <= bytes; i += size) {
        float value = vp_noise_normal(&random);
        uint16_t half = vp_bf16_code(value);
        if (type == VP_TYPE_FP32)
            memcpy(out + i, &value, sizeof value);
        else if (type == VP_TYPE_BF16)
            memcpy(out + i, &half, sizeof half);
        else if (type == VP_TYPE_FP8)
            out[i] = vp_fp8_code(value * FP8_SCALE, true);
        else
            out[i] = (uint8_t)vp_int8_code(value * INT8_SCALE);
    }
}

enum vp_dev_status vp_bench_fill(struct vp_bench_session *s, void *memory, uint64_t bytes,
                                 enum vp_dev_type type) {
    enum { PATTERN = 1 << 20 };
    uint8_t *to = memory, **data = &s->pattern[type];
    uint64_t done = bytes < PATTERN ? bytes : PATTERN;

    if (!*data) {
        *data = vp_arena_alloc(s->device.arena, PATTERN);
        pattern(*data, PATTERN, type);
    }
    enum vp_dev_status status =
        s->run->backend->copy(&s->device, to, *data, done, VP_COPY_TO_DEVICE);
    if (status == VP_DEV_OK)
        status = s->run->backend->sync(&s->device);
    while (status == VP_DEV_OK && done < bytes) {
        uint64_t n = done < bytes - done ? done : bytes - done;
        status = s->run->backend->copy(&s->device, to + done, to, n, VP_COPY_ON_DEVICE);
        done += n;
    }
    return status;
}

/* ---- one item's launches ---- */

static enum vp_dev_status run_task(void *task, uint64_t round) {
    struct vp_bench_task *t = task;
    const struct vp_dev_backend *b = t->session->run->backend;
    uint64_t offset = t->copies > 1 ? round % t->copies * t->stride : 0;
    enum vp_dev_status status = VP_DEV_OK;

    for (uint32_t l = 0; status == VP_DEV_OK && l < t->launches; l++) {
        struct vp_dev_work work = t->work[l];
        for (unsigned i = 0; i < VP_DEV_BUFFERS; i++)
            if (t->rotates[l][i])
                work.buffer[i] = (uint8_t *)work.buffer[i] + offset;
        status = (t->vendor[l] ? b->gemm : b->launch)(&t->session->device, &work);
    }
    if (status == VP_DEV_OK && t->wait)
        status = b->sync(&t->session->device);
    return status;
}

enum vp_dev_status vp_bench_time(struct vp_bench_session *s, struct vp_sample *out,
                                 struct vp_bench_task *task) {
    enum vp_dev_status status =
        vp_method_measure(&s->device, &out->timing, s->run->method, run_task, task);
    out->value = out->timing.median;
    out->copies = task->copies;
    if (status == VP_DEV_OK && s->run->backend->clocks)
        s->run->backend->clocks(&s->device, &out->clock_khz, &out->power_mw);
    return status;
}

static enum vp_dev_type rotating_type(const struct vp_bench_item *item) {
    switch (item->kernel) {
    case VP_KERNEL_GEMM:
    case VP_KERNEL_GEMV:
    case VP_KERNEL_DECODE:
    case VP_KERNEL_PREFILL:
    case VP_KERNEL_DEQUANTISE:
        return item->type;
    case VP_KERNEL_READ:
    case VP_KERNEL_COPY:
    case VP_KERNEL_TRIAD:
        return VP_TYPE_FP32;
    default:
        return VP_TYPE_BF16;
    }
}

static enum vp_dev_type fixed_type(const struct vp_bench_item *item, unsigned buffer) {
    bool product = item->kernel == VP_KERNEL_GEMM || item->kernel == VP_KERNEL_GEMV;
    return product && buffer == 0 ? item->type : VP_TYPE_BF16;
}

/* Places of the operands in the pool, filled. */
static enum vp_dev_status place(struct vp_bench_session *s, struct vp_bench_task *task,
                                void *buffer[VP_DEV_BUFFERS], const struct vp_bench_item *item,
                                const struct vp_bench_buffers *buffers) {
    struct need need = need_of(item);
    uint64_t fixed = 0, offset = need.fixed;
    enum vp_dev_status status = vp_bench_pool_need(s, need.fixed + need.stride);

    task->stride = need.stride;
    task->copies = 1;
    if (status == VP_DEV_OK && need.stride) {
        uint64_t room = s->pool.bytes - need.fixed, spread = vp_bench_spread(s);
        uint64_t copies = (room < spread ? room : spread) / need.stride;
        task->copies = copies < 1 ? 1 : copies < MOST_COPIES ? copies : MOST_COPIES;
        status = vp_bench_fill(s, s->pool.memory + need.fixed, task->copies * need.stride,
                               rotating_type(item));
    }
    for (unsigned i = 0; status == VP_DEV_OK && i < VP_DEV_BUFFERS; i++) {
        uint64_t *at = buffers->rotates[i] ? &offset : &fixed;
        buffer[i] = buffers->bytes[i] ? s->pool.memory + *at : NULL;
        *at += rounded(buffers->bytes[i]);
        if (buffer[i] && !buffers->rotates[i])
            status = vp_bench_fill(s, buffer[i], buffers->bytes[i], fixed_type(item, i));
    }
    return status;
}

static struct vp_dev_work *add_launch(struct vp_bench_task *task, const struct vp_bench_item *item,
                                      const struct vp_bench_buffers *buffers,
                                      void *const buffer[VP_DEV_BUFFERS]) {
    uint32_t l = task->launches++;
    struct vp_dev_work *work = &task->work[l];

    *work = (struct vp_dev_work){.kernel = item->kernel,
                                 .type = item->type,
                                 .m = item->m,
                                 .n = item->n,
                                 .k = item->k,
                                 .batch = item->batch,
                                 .heads = item->heads,
                                 .kv_heads = item->kv_heads,
                                 .head_dim = item->head_dim,
                                 .scale = {1, 1}};
    memcpy(work->buffer, buffer, sizeof work->buffer);
    memcpy(task->rotates[l], buffers->rotates, sizeof task->rotates[l]);
    if (item->kernel == VP_KERNEL_ADD) {
        work->n = item->m * item->n;
        work->m = 0;
    }
    return work;
}

/* Launches of an item, the last of them its own kernel. */
static void add_launches(struct vp_bench_task *task, const struct vp_bench_item *item,
                         const struct vp_bench_buffers *buffers,
                         void *const buffer[VP_DEV_BUFFERS]) {
    if (item->chain == VP_CHAIN_QUANTISED) {
        struct vp_dev_work *quantise = add_launch(task, item, buffers, buffer);
        quantise->kernel = VP_KERNEL_QUANTISE;
        quantise->n = item->k;
        quantise->buffer[0] = buffer[3];
        quantise->buffer[1] = buffer[0];
        memset(task->rotates[0], 0, sizeof task->rotates[0]);
    }
    add_launch(task, item, buffers, buffer);
    if (item->chain == VP_CHAIN_NORM_GELU) {
        struct vp_dev_work *gelu = add_launch(task, item, buffers, buffer);
        gelu->kernel = VP_KERNEL_GELU;
        gelu->n = item->m * item->n;
        gelu->m = 0;
        gelu->buffer[0] = buffer[2];
        gelu->buffer[1] = buffer[3];
        task->rotates[1][0] = task->rotates[1][1] = true;
    }
}

/* The vendor's product where there is one for this type, else our kernel. */
static enum vp_dev_status time_product(struct vp_bench_session *s, struct vp_sample *out,
                                       struct vp_bench_task *task) {
    enum vp_dev_status status = VP_DEV_UNSUPPORTED;
    uint32_t last = task->launches - 1;

    if (s->run->backend->gemm) {
        task->vendor[last] = true;
        status = vp_bench_time(s, out, task);
        snprintf(out->source, sizeof out->source, "%s", s->info.library);
    }
    if (status == VP_DEV_UNSUPPORTED) {
        task->vendor[last] = false;
        status = vp_bench_time(s, out, task);
        snprintf(out->source, sizeof out->source, "%s", s->info.kernels);
    }
    return status;
}

/* Times become 10^9 bytes per second; the slow end of one is the low end of the other. */
static void as_rate(struct vp_sample *out, double bytes) {
    struct vp_timing *t = &out->timing;
    double p10 = t->p10, least = t->least;

    out->value = bytes / out->value / 1e3;
    t->median = out->value;
    t->p10 = bytes / t->p90 / 1e3;
    t->p90 = bytes / p10 / 1e3;
    t->least = bytes / t->most / 1e3;
    t->most = bytes / least / 1e3;
}

static enum vp_dev_status measure_kernel(struct vp_bench_session *s, struct vp_sample *out,
                                         const struct vp_bench_item *item) {
    struct vp_bench_task task = {.session = s};
    struct vp_bench_buffers buffers;
    void *buffer[VP_DEV_BUFFERS] = {NULL};

    vp_bench_buffers(&buffers, item);
    task.wait = !strcmp(item->name, "launch_alone");
    enum vp_dev_status status = VP_DEV_OK;
    if (item->kernel != VP_KERNEL_EMPTY)
        status = place(s, &task, buffer, item, &buffers);
    if (status != VP_DEV_OK)
        return status;
    add_launches(&task, item, &buffers, buffer);
    if (item->kind == VP_BENCH_GEMM)
        return time_product(s, out, &task);
    status = vp_bench_time(s, out, &task);
    if (status == VP_DEV_OK && item->kind == VP_BENCH_STREAM)
        as_rate(out, (double)vp_bench_traffic(item));
    return status;
}

/* ---- copies, reductions, errors ---- */

struct copying {
    struct vp_bench_session *session;
    void *to, *from;
    uint64_t bytes;
    enum vp_dev_copy kind;
};

static enum vp_dev_status copy_once(void *context, uint64_t round) {
    struct copying *c = context;
    (void)round;
    return c->session->run->backend->copy(&c->session->device, c->to, c->from, c->bytes, c->kind);
}

static enum vp_dev_status measure_copy(struct vp_bench_session *s, struct vp_sample *out,
                                       const struct vp_bench_item *item) {
    const struct vp_dev_backend *b = s->run->backend;
    bool to_device = !strcmp(item->name, "host_to_device");
    void *host = NULL;
    enum vp_dev_status status = vp_bench_pool_need(s, item->n);

    if (status == VP_DEV_OK)
        status = b->alloc_host(&s->device, &host, item->n);
    if (status != VP_DEV_OK)
        return status;
    struct copying c = {s, to_device ? (void *)s->pool.memory : host,
                        to_device ? host : (void *)s->pool.memory, item->n,
                        to_device ? VP_COPY_TO_DEVICE : VP_COPY_TO_HOST};
    status = vp_method_measure(&s->device, &out->timing, s->run->method, copy_once, &c);
    out->value = out->timing.median;
    if (status == VP_DEV_OK)
        as_rate(out, (double)item->n);
    b->release_host(&s->device, host);
    return status;
}

static enum vp_dev_status measure_reduce(struct vp_bench_session *s, struct vp_sample *out,
                                         const struct vp_bench_item *item) {
    uint64_t communicator = 0;

    if (!s->run->backend->all_reduce)
        return vp_dev_fail(&s->device, VP_DEV_UNSUPPORTED, "this back end has no all-reduce");
    return s->run->backend->all_reduce(&s->device, (uint32_t)item->batch, 2 * item->n, &out->value,
                                       &communicator);
}

static enum vp_dev_status measure(struct vp_bench_session *s, struct vp_sample *out,
                                  const struct vp_bench_item *item) {
    snprintf(out->source, sizeof out->source, "%s", s->info.kernels);
    switch (item->kind) {
    case VP_BENCH_MEMORY:
        return vp_bench_memory(s, out, item);
    case VP_BENCH_COPY:
        return measure_copy(s, out, item);
    case VP_BENCH_REDUCE:
        return measure_reduce(s, out, item);
    case VP_BENCH_ERRORS:
        vp_quant_errors(&out->errors, s->device.arena, (uint32_t)item->n);
        return VP_DEV_OK;
    case VP_BENCH_BLOCK:
        return vp_bench_block(s, out, item);
    default:
        return measure_kernel(s, out, item);
    }
}

/* ---- the run ---- */

static void tell(const struct vp_bench_session *s, struct vp_record *record,
                 enum vp_record_kind kind, uint32_t item) {
    record->kind = kind;
    record->item = item;
    s->run->tell(s->run->fd, record);
}

static void tell_trouble(const struct vp_bench_session *s, enum vp_record_kind kind, uint32_t item,
                         enum vp_dev_status status) {
    struct vp_record record = {.status = status};
    snprintf(record.as.text, sizeof record.as.text, "%s", s->device.why);
    tell(s, &record, kind, item);
}

/* More devices than there are: not an item of this machine. */
static bool impossible(const struct vp_bench_session *s, const struct vp_bench_item *item) {
    if (item->kind == VP_BENCH_REDUCE)
        return item->batch > s->devices;
    return item->kind == VP_BENCH_MEMORY && !strcmp(item->name, "communicator") && s->devices < 2;
}

static void run_items(struct vp_bench_session *s) {
    const struct vp_bench_list *list = s->run->list;

    for (uint32_t i = s->run->first_item; i < list->count; i++) {
        struct vp_record record = {0};
        tell(s, &record, VP_RECORD_BEGIN, i);
        if (impossible(s, &list->item[i]))
            continue;
        s->device.why[0] = '\0';
        enum vp_dev_status status = measure(s, &record.as.sample, &list->item[i]);
        if (status == VP_DEV_OK)
            tell(s, &record, VP_RECORD_SAMPLE, i);
        else
            tell_trouble(s, VP_RECORD_NOTE, i, status);
    }
}

/* Does any word of the device's name or its bus address begin like this? "MI300X", "0000:c1". */
static bool is_called(const struct vp_dev_info *info, const char *wanted) {
    size_t n = strlen(wanted);
    for (const char *at = info->name; *at; at++)
        if (!strncasecmp(at, wanted, n))
            return true;
    return !strncasecmp(info->pci, wanted, n) || !strcasecmp(info->arch, wanted);
}

static enum vp_dev_status choose(struct vp_bench_session *s, uint32_t *index) {
    const struct vp_dev_backend *b = s->run->backend;
    const char *wanted = s->run->device ? s->run->device : "0";
    char *end;
    unsigned long number = strtoul(wanted, &end, 10);
    enum vp_dev_status status = b->count(&s->device, &s->devices);

    if (status != VP_DEV_OK)
        return status;
    if (!*end) {
        *index = (uint32_t)number;
        if (number < s->devices)
            return b->info(&s->device, *index, &s->info);
    } else
        for (*index = 0; *index < s->devices; ++*index) {
            status = b->info(&s->device, *index, &s->info);
            if (status != VP_DEV_OK || is_called(&s->info, wanted))
                return status;
        }
    return vp_dev_fail(&s->device, VP_DEV_NO_DEVICE, "there is no device \"%s\"; there are %u",
                       wanted, s->devices);
}

static enum vp_dev_status open_device(struct vp_bench_session *s) {
    const struct vp_dev_backend *b = s->run->backend;
    struct vp_dev_work empty = {.kernel = VP_KERNEL_EMPTY};
    uint64_t before, after = 0, total = 0;
    uint32_t index = 0;
    enum vp_dev_status status = b->open(&s->device);

    if (status == VP_DEV_OK)
        status = choose(s, &index);
    before = s->info.free_bytes;
    if (status == VP_DEV_OK)
        status = b->use(&s->device, index);
    if (status == VP_DEV_OK)
        status = b->launch(&s->device, &empty);
    if (status == VP_DEV_OK)
        status = b->sync(&s->device);
    if (status == VP_DEV_OK)
        status = b->memory(&s->device, &after, &total);
    if (status == VP_DEV_OK)
        status = b->info(&s->device, index, &s->info); /* what only a context knows */
    s->context_bytes = before > after ? before - after : 0;
    return status;
}

int vp_bench_run(const struct vp_bench_run *run) {
    struct vp_arena arena = {0};
    struct vp_bench_session s = {.device = {.backend = run->backend, .arena = &arena}, .run = run};
    enum vp_dev_status status = open_device(&s);

    if (status != VP_DEV_OK) {
        tell_trouble(&s, VP_RECORD_FATAL, 0, status);
        vp_arena_free(&arena);
        return 0;
    }
    if (!run->device_told) {
        struct vp_record record = {.as.device = s.info};
        tell(&s, &record, VP_RECORD_DEVICE, 0);
    }
    run_items(&s);
    run->backend->release(&s.device, s.pool.memory);
    run->backend->close(&s.device);
    tell(&s, &(struct vp_record){0}, VP_RECORD_END, run->list->count);
    vp_arena_free(&arena);
    return 0;
}
