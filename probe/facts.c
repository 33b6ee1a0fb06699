#include "probe/facts.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "planner/base/json_writer.h"
#include "probe/child.h"
#include "probe/smi.h"
#include "probe/sysfs.h"

static const double MOST_S = 10; /* a cold start of a driver takes a second or two */

struct asking {
    struct vp_ctx *ctx;
    struct vp_device_facts *facts;
    const struct vp_dev_backend *backend;
    const char *vendor;
    double limit_s;
    uint32_t told; /* devices */
    const char *version, *why;
};

/* ---- runtimes ---- */

/* In the child. */
static int ask_runtime(void *context, int fd) {
    struct asking *a = context;
    struct vp_dev device = {.backend = a->backend, .arena = a->ctx->arena};
    struct vp_record record = {.kind = VP_RECORD_DEVICE};
    uint32_t count = 0;

    enum vp_dev_status status = a->backend->open(&device);
    if (status == VP_DEV_OK)
        status = a->backend->count(&device, &count);
    for (uint32_t i = 0; status == VP_DEV_OK && i < count; i++) {
        status = a->backend->info(&device, i, &record.as.device);
        if (status == VP_DEV_OK)
            vp_child_send(fd, &record);
    }
    if (status == VP_DEV_OK)
        return 0;
    record = (struct vp_record){.kind = VP_RECORD_FATAL, .status = status};
    snprintf(record.as.text, sizeof record.as.text, "%s", device.why);
    vp_child_send(fd, &record);
    return 1;
}

static const char *keep(const struct asking *a, const char *text) {
    return *text ? vp_arena_text(a->ctx->arena, text, strlen(text)) : NULL;
}

/* Partitions differ in their function or not at all. */
static bool same_slot(const char *a, const char *b) {
    size_t n = strcspn(a, ".");
    return n == strcspn(b, ".") && strncasecmp(a, b, n) == 0;
}

static struct vp_fact_gpu *card_of(const struct asking *a, const struct vp_dev_info *info) {
    struct vp_device_facts *facts = a->facts;

    for (uint32_t i = 0; i < facts->gpu_count; i++)
        if (same_slot(facts->gpus[i].pci, info->pci))
            return &facts->gpus[i];
    if (facts->gpu_count == VP_FACT_GPUS)
        return NULL;
    struct vp_fact_gpu *gpu = &facts->gpus[facts->gpu_count++];
    *gpu = (struct vp_fact_gpu){.pci = info->pci, .vendor = a->vendor};
    gpu->pci = vp_arena_text(a->ctx->arena, info->pci, strlen(info->pci));
    return gpu;
}

static void take_device(const struct asking *a, const struct vp_dev_info *info) {
    struct vp_fact_gpu *gpu = card_of(a, info);

    if (!gpu)
        return;
    if (!gpu->name)
        gpu->name = keep(a, info->name);
    if (!gpu->arch)
        gpu->arch = keep(a, info->arch);
    if (!gpu->power_cap_mw)
        gpu->power_cap_mw = info->power_cap_mw;
    if (!gpu->runtime_bytes) { /* the first of several partitions */
        gpu->runtime_bytes = info->total_bytes;
        gpu->runtime_free_bytes = info->free_bytes;
    }
    if (!gpu->compute_units)
        gpu->compute_units = info->compute_units;
}

static void take_record(void *context, const struct vp_record *record) {
    struct asking *a = context;

    if (record->kind == VP_RECORD_FATAL) {
        a->why = keep(a, record->as.text);
        return;
    }
    a->told++;
    if (!a->version)
        a->version = keep(a, record->as.device.driver);
    take_device(a, &record->as.device);
}

/* What became of it, as one text. */
static const char *outcome(const struct asking *a, const struct vp_child_report *report) {
    struct vp_arena *arena = a->ctx->arena;
    const char *words = report->last_words;

    if (report->end == VP_CHILD_CRASHED)
        return vp_arena_printf(arena, "killed by signal %d%s%s", report->code, *words ? ": " : "",
                               words);
    if (report->end == VP_CHILD_HUNG)
        return vp_arena_printf(arena, "gave no answer within %.3g s", a->limit_s);
    if (report->end == VP_CHILD_LOST)
        return vp_arena_printf(arena, "cannot be asked: %s", strerror(report->code));
    if (a->why)
        return a->why;
    if (report->code != 0)
        return vp_arena_printf(arena, "ended with %d%s%s", report->code, *words ? ": " : "", words);
    return a->told ? a->version : "lists no device";
}

static const char *ask(struct vp_ctx *ctx, struct vp_device_facts *facts, const char *backend,
                       const char *vendor, double limit_s) {
    struct asking a = {.ctx = ctx,
                       .facts = facts,
                       .backend = vp_dev_backend_find(backend),
                       .vendor = vendor,
                       .limit_s = limit_s};
    struct vp_child_report report;

    vp_child_run(&report, ask_runtime, take_record, &a, limit_s);
    return outcome(&a, &report);
}

/* ---- ROCm SMI ---- */

struct smi_asking {
    struct asking asking;
    struct vp_smi smi;
};

static int ask_smi(void *context, int fd) {
    struct smi_asking *a = context;
    struct vp_record record = {.kind = VP_RECORD_DEVICE};
    const char *why = vp_smi_open(a->asking.ctx->arena, &a->smi);

    for (uint32_t i = 0; !why && i < a->smi.count; i++)
        if (vp_smi_info(&a->smi, i, &record.as.device))
            vp_child_send(fd, &record);
    vp_smi_close(&a->smi);
    if (!why)
        return 0;
    record = (struct vp_record){.kind = VP_RECORD_FATAL};
    snprintf(record.as.text, sizeof record.as.text, "%s", why);
    vp_child_send(fd, &record);
    return 1;
}

/* Only what is missing, and its own total: the kernel's files come first. */
static void take_smi(void *context, const struct vp_record *record) {
    struct smi_asking *a = context;
    const struct vp_dev_info *info = &record->as.device;

    if (record->kind == VP_RECORD_FATAL) {
        a->asking.why = keep(&a->asking, record->as.text);
        return;
    }
    a->asking.told++;
    a->asking.version = keep(&a->asking, info->driver);
    struct vp_fact_gpu *gpu = card_of(&a->asking, info);
    if (!gpu)
        return;
    gpu->smi_total_bytes = info->total_bytes;
    if (!gpu->vram_total_bytes) {
        gpu->vram_total_bytes = info->total_bytes;
        gpu->vram_used_bytes = info->total_bytes - info->free_bytes;
    }
    if (!gpu->name)
        gpu->name = keep(&a->asking, info->name);
    if (!gpu->power_cap_mw)
        gpu->power_cap_mw = info->power_cap_mw;
}

static const char *ask_about_amd(struct vp_ctx *ctx, struct vp_device_facts *facts,
                                 double limit_s) {
    struct smi_asking a = {
        .asking = {.ctx = ctx, .facts = facts, .vendor = "amd", .limit_s = limit_s}};
    struct vp_child_report report;

    vp_child_run(&report, ask_smi, take_smi, &a, limit_s);
    return outcome(&a.asking, &report);
}

/* ---- all ---- */

static bool has(const struct vp_device_facts *facts, const char *vendor) {
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        if (vp_text_eq(facts->gpus[i].vendor, vendor))
            return true;
    return false;
}

void vp_facts_collect(struct vp_ctx *ctx, struct vp_device_facts *out, double limit_s) {
    const char *made_up = getenv("VRAMPLAN_SYSFS"), *folders = getenv("VRAMPLAN_GPU_LIBRARIES");

    limit_s = limit_s < MOST_S ? limit_s : MOST_S;
    vp_sysfs_read(ctx, out);
    if (made_up && *made_up && !(folders && *folders))
        return;
    bool amd = has(out, "amd"), nvidia = has(out, "nvidia");
    if (amd || !nvidia) { /* with no card at all: the kernel may hide them, as under WSL */
        out->hip = ask(ctx, out, "hip", "amd", limit_s);
        out->smi = ask_about_amd(ctx, out, limit_s);
    }
    if (nvidia || !amd)
        out->cuda = ask(ctx, out, "cuda", "nvidia", limit_s);
}

/* ---- JSON ---- */

static void number(struct vp_json *json, const char *key, uint64_t value) {
    if (!value)
        return;
    vp_json_key_u64(json, key, value);
}

static void text(struct vp_json *json, const char *key, const char *value) {
    if (!value)
        return;
    vp_json_key_text(json, key, value);
}

static void add_holder(struct vp_json *json, const struct vp_fact_holder *holder) {
    vp_json_map_inline(json);
#define HOLDER_NUMBER(member) number(json, #member, holder->member);
#define HOLDER_TEXT(member) text(json, #member, holder->member);
#include "planner/model/device_facts.def"
    vp_json_end(json, '}');
}

static void add_gpu(struct vp_json *json, const struct vp_fact_gpu *gpu) {
    vp_json_map(json);
#define GPU_NUMBER(member) number(json, #member, gpu->member);
#define GPU_TEXT(member) text(json, #member, gpu->member);
#include "planner/model/device_facts.def"
    vp_json_key(json, "holders");
    vp_json_list(json);
    for (uint32_t i = 0; i < gpu->holder_count; i++)
        add_holder(json, &gpu->holders[i]);
    vp_json_end(json, ']');
    vp_json_end(json, '}');
}

void vp_facts_json(struct vp_buf *out, const struct vp_device_facts *facts) {
    struct vp_json json = vp_json_begin(out);
    vp_json_map(&json);
    text(&json, "schema", "vramplan.facts/1");
#define NUMBER(member) number(&json, #member, facts->member);
#define TEXT(member) text(&json, #member, facts->member);
#include "planner/model/device_facts.def"
    vp_json_key(&json, "gpus");
    vp_json_list(&json);
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        add_gpu(&json, &facts->gpus[i]);
    vp_json_end(&json, ']');
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
}
