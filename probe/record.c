#include "probe/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

/* One file per kind; the columns before those of quality. */
enum file {
    FILE_GEMM,
    FILE_DECODE,
    FILE_PREFILL,
    FILE_REDUCE,
    FILE_BANDWIDTH,
    FILE_LAUNCH,
    FILE_CONSTANTS,
    FILE_KERNELS,
    FILE_ERRORS,
    FILE_BLOCKS,
    FILE_DEVICE,
    FILES
};

#define ATTENTION                                                                                  \
    "attn_dtype,kv_dtype,batch,new_tokens,past_tokens,heads,kv_heads,head_dim,latency_us,copies"
static const char *const NAME[FILES] = {
    "gemm.csv",   "decode-attention.csv", "prefill-attention.csv", "allreduce.csv", "bandwidth.csv",
    "launch.csv", "constants.csv",        "kernels.csv",           "errors.csv",    "blocks.csv",
    "device.csv"};
static const char *const COLUMNS[FILES] = {
    "dtype,m,n,k,latency_us,copies",
    ATTENTION,
    ATTENTION,
    "backend,dtype,gpus,elements,latency_us",
    "operation,gb_per_s",
    "operation,latency_us",
    "constant,bytes",
    "kernel,dtype,m,n,k,bytes,latency_us",
    "data,format,scale,largest_error,largest_relative_error,rms_relative_error,below_0_01",
    "dtype,tokens,past_tokens,hidden_size,intermediate_size,heads,kv_heads,head_dim,latency_us",
    "property,value"};
static const char QUALITY[] = ",p10,p90,repeats,outliers,drift,noisy,clock_mhz,power_w,source";

struct vp_sample_files {
    const char *folder;
    struct vp_arena *arena;
    FILE *open[FILES];
};

struct vp_sample_files *vp_sample_files_open(struct vp_arena *arena, const char *folder) {
    struct vp_sample_files *files = VP_NEW(arena, struct vp_sample_files);
    struct stat found;

    files->arena = arena;
    files->folder = folder;
    if (mkdir(folder, 0777) && errno != EEXIST)
        return NULL;
    if (stat(folder, &found))
        return NULL;
    if (!S_ISDIR(found.st_mode)) {
        errno = ENOTDIR;
        return NULL;
    }
    return files;
}

static bool has_quality(enum file file) { return file != FILE_ERRORS && file != FILE_DEVICE; }

/* NULL: errno. */
static FILE *file_of(struct vp_sample_files *files, enum file file) {
    if (files->open[file])
        return files->open[file];
    FILE *f = fopen(vp_arena_printf(files->arena, "%s/%s", files->folder, NAME[file]), "w");
    if (f)
        fprintf(f, "%s%s\n", COLUMNS[file], has_quality(file) ? QUALITY : "");
    return files->open[file] = f;
}

/* Text that a CSV field can hold as it stands. */
static void put_text(FILE *f, const char *text) {
    for (; *text; text++)
        fputc(*text == ',' || *text == '"' || *text == '\n' ? ' ' : *text, f);
}

static bool end_row(FILE *f, const struct vp_sample *s) {
    const struct vp_timing *t = &s->timing;

    if (t->repeats)
        fprintf(f, ",%.6g,%.6g,%" PRIu32 ",%" PRIu32 ",%.4f,%d,", t->p10, t->p90, t->repeats,
                t->outliers, t->drift, t->noisy);
    else
        fprintf(f, ",,,1,0,0,0,");
    if (s->clock_khz)
        fprintf(f, "%.0f", (double)s->clock_khz / 1e3);
    fputc(',', f);
    if (s->power_mw)
        fprintf(f, "%.1f", (double)s->power_mw / 1e3);
    fputc(',', f);
    put_text(f, s->source);
    fputc('\n', f);
    return !fflush(f) && !ferror(f);
}

static enum file file_for(const struct vp_bench_item *item) {
    static const enum file FILE_OF[VP_BENCH_KINDS] = {
        [VP_BENCH_MEMORY] = FILE_CONSTANTS, [VP_BENCH_LAUNCH] = FILE_LAUNCH,
        [VP_BENCH_COPY] = FILE_BANDWIDTH,   [VP_BENCH_STREAM] = FILE_BANDWIDTH,
        [VP_BENCH_GEMM] = FILE_GEMM,        [VP_BENCH_DECODE] = FILE_DECODE,
        [VP_BENCH_PREFILL] = FILE_PREFILL,  [VP_BENCH_REDUCE] = FILE_REDUCE,
        [VP_BENCH_KERNEL] = FILE_KERNELS,   [VP_BENCH_ERRORS] = FILE_ERRORS,
        [VP_BENCH_BLOCK] = FILE_BLOCKS};
    return FILE_OF[item->kind];
}

static void put_attention(FILE *f, const struct vp_bench_item *i, const struct vp_sample *s) {
    bool decode = i->kind == VP_BENCH_DECODE;

    fprintf(f,
            "bfloat16,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
            ",%.6g,%" PRIu64,
            vp_dev_type_name(i->type), i->batch, decode ? 1 : i->n, decode ? i->n : 0, i->heads,
            i->kv_heads, i->head_dim, s->value, s->copies);
}

static void put_errors(FILE *f, const struct vp_quant_errors *e) {
    fprintf(f, "%s,%s,%s,%.6g,%.6g,%.6g,%.6g\n", e->data, e->format, e->scale, e->largest,
            e->largest_relative, e->rms_relative, e->below);
}

bool vp_sample_files_add(struct vp_sample_files *files, const struct vp_bench_item *i,
                         const struct vp_sample *s) {
    FILE *f = file_of(files, file_for(i));

    if (!f)
        return false;
    switch (i->kind) {
    case VP_BENCH_GEMM:
        fprintf(f, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.6g,%" PRIu64,
                vp_dev_type_name(i->type), i->m, i->n, i->k, s->value, s->copies);
        break;
    case VP_BENCH_DECODE:
    case VP_BENCH_PREFILL:
        put_attention(f, i, s);
        break;
    case VP_BENCH_REDUCE:
        fprintf(f, "probe,%s,%" PRIu64 ",%" PRIu64 ",%.6g", vp_dev_type_name(i->type), i->batch,
                i->n, s->value);
        break;
    case VP_BENCH_KERNEL:
        fprintf(f, "%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.6g", i->name,
                vp_dev_type_name(i->type), i->m, i->n, i->k, vp_bench_traffic(i), s->value);
        break;
    case VP_BENCH_BLOCK:
        fprintf(f,
                "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                ",%" PRIu64 ",%.6g",
                vp_dev_type_name(i->type), i->m, s->past, i->n, i->width, i->heads, i->kv_heads,
                i->head_dim, s->value);
        break;
    case VP_BENCH_ERRORS:
        put_errors(f, &s->errors);
        return !fflush(f) && !ferror(f);
    case VP_BENCH_MEMORY:
    case VP_BENCH_LAUNCH:
    case VP_BENCH_COPY:
    case VP_BENCH_STREAM:
    case VP_BENCH_KINDS:
        fprintf(f, "%s,%.17g", i->name, s->value);
        break;
    }
    return end_row(f, s);
}

static void put_property(FILE *f, const char *name, const char *text) {
    if (!*text)
        return;
    fprintf(f, "%s,", name);
    put_text(f, text);
    fputc('\n', f);
}

static void put_number(FILE *f, const char *name, uint64_t value) {
    if (value)
        fprintf(f, "%s,%" PRIu64 "\n", name, value);
}

bool vp_sample_files_device(struct vp_sample_files *files, const struct vp_dev_info *device,
                            const char *backend) {
    FILE *f = file_of(files, FILE_DEVICE);

    if (!f)
        return false;
    put_property(f, "backend", backend);
    put_property(f, "name", device->name);
    put_property(f, "arch", device->arch);
    put_property(f, "pci", device->pci);
    put_property(f, "driver", device->driver);
    put_property(f, "library", device->library);
    put_property(f, "kernels", device->kernels);
    put_number(f, "total_bytes", device->total_bytes);
    put_number(f, "free_bytes", device->free_bytes);
    put_number(f, "compute_units", device->compute_units);
    put_number(f, "cache_bytes", device->cache_bytes);
    put_number(f, "clock_khz", device->clock_khz);
    put_number(f, "memory_clock_khz", device->memory_clock_khz);
    put_number(f, "power_cap_mw", device->power_cap_mw);
    put_property(f, "fp8_format", device->fp8_fnuz ? "e4m3fnuz" : "e4m3");
    put_number(f, "fp8_emulated", device->fp8_emulated);
    return !fflush(f) && !ferror(f);
}

bool vp_sample_files_close(struct vp_sample_files *files) {
    bool good = true;
    for (enum file i = 0; i < FILES; i++)
        if (files->open[i])
            good &= !fclose(files->open[i]);
    return good;
}
