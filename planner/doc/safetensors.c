#include "planner/doc/safetensors.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/doc/json.h"

enum { LENGTH_BYTES = 8, MAX_DIMS = 8, MAX_INDEX_BYTES = VP_SAFETENSORS_MAX_HEADER_BYTES };

/* The dtypes of the format; several values may share bytes. */
static const struct dtype {
    const char *name;
    unsigned bits;
} DTYPES[] = {
    {"BOOL", 8},        {"U8", 8},   {"I8", 8},      {"F8_E5M2", 8}, {"F8_E4M3", 8},
    {"F8_E8M0", 8},     {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16}, {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32}, {"F32", 32},    {"F64", 64},    {"I64", 64},
    {"U64", 64},        {"C64", 64},
};

/* One file being read. Its header's nodes live in a scratch arena. */
struct file {
    struct vp_ctx *ctx;     /* its arena is the scratch one */
    struct vp_arena *names; /* what the tensors' names are kept in, */
    struct vp_arena *table; /* and the tensors */
    const char *path;
    uint64_t data_bytes; /* behind the header */
    bool header_only;
    struct vp_tensor *tensors;
    size_t count;
};

/* Where a tensor's data lies, for the check that no two overlap. */
struct range {
    uint64_t begin, end;
    const char *name;
};

static void fault(struct file *f, const struct vp_pos *pos, const char *name, const char *what) {
    vp_diag_add(f->ctx->diags, VP_D_SAFETENSORS, pos, "tensor %.200s: %s", name, what);
}

static const struct dtype *find_dtype(const char *name) {
    for (size_t i = 0; i < sizeof DTYPES / sizeof DTYPES[0]; i++)
        if (strcmp(DTYPES[i].name, name) == 0)
            return &DTYPES[i];
    return NULL;
}

static const struct dtype *read_dtype(struct file *f, const struct vp_node *node,
                                      const struct vp_pos *pos, const char *name) {
    if (!node || node->kind != VP_NODE_TEXT) {
        fault(f, pos, name, "no dtype");
        return NULL;
    }
    const struct dtype *dtype = find_dtype(node->text);
    if (!dtype)
        vp_diag_add(f->ctx->diags, VP_D_SAFETENSORS, &node->pos,
                    "tensor %.200s: unknown dtype %.50s", name, node->text);
    return dtype;
}

static bool read_shape(struct file *f, struct vp_tensor *t, const struct vp_node *node,
                       const struct vp_pos *pos) {
    struct vp_sum elements = vp_sum(1);
    if (!node || node->kind != VP_NODE_LIST)
        return fault(f, pos, t->name, "no shape"), false;
    if (node->count > MAX_DIMS)
        return fault(f, &node->pos, t->name, "the shape has more than 8 dimensions"), false;
    t->dims = node->count;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct vp_node *item = node->items[i];
        if (item->kind != VP_NODE_INT || !vp_node_u64(&t->shape[i], item))
            return fault(f, &item->pos, t->name,
                         "a dimension of the shape is negative or no integer"),
                   false;
        elements = vp_sum_mul(elements, t->shape[i]);
    }
    t->elements = elements.v;
    if (elements.overflow)
        return fault(f, &node->pos, t->name, "the product of the shape overflows 64 bits"), false;
    return true;
}

static bool read_offsets(struct file *f, struct range *out, const struct vp_node *node,
                         const struct vp_pos *pos) {
    if (!node || node->kind != VP_NODE_LIST || node->count != 2 ||
        node->items[0]->kind != VP_NODE_INT || node->items[1]->kind != VP_NODE_INT ||
        !vp_node_u64(&out->begin, node->items[0]) || !vp_node_u64(&out->end, node->items[1]) ||
        out->begin > out->end)
        return fault(f, node ? &node->pos : pos, out->name,
                     "data_offsets must be two integers in ascending order"),
               false;
    if (out->end > f->data_bytes && f->data_bytes > 0)
        return fault(f, &node->pos, out->name,
                     "data_offsets go beyond the end of the file (truncated?)"),
               false;
    if (out->end > f->data_bytes)
        f->header_only = true;
    return true;
}

static bool read_tensor(struct file *f, struct vp_tensor *t, struct range *range, const char *name,
                        const struct vp_node *node) {
    range->name = t->name = name;
    if (node->kind != VP_NODE_MAP)
        return fault(f, &node->pos, name, "its description in the header is not a map"), false;
    const struct dtype *dtype = read_dtype(f, vp_node_get(node, "dtype"), &node->pos, name);
    bool ok = read_shape(f, t, vp_node_get(node, "shape"), &node->pos);
    ok = read_offsets(f, range, vp_node_get(node, "data_offsets"), &node->pos) && ok;
    if (!dtype || !ok)
        return false;
    unsigned __int128 bits = (unsigned __int128)t->elements * dtype->bits;
    t->dtype = dtype->name;
    t->bytes = range->end - range->begin;
    if (bits != (unsigned __int128)t->bytes * 8) {
        vp_diag_add(f->ctx->diags, VP_D_SAFETENSORS, &node->pos,
                    "tensor %.200s: its shape as %s takes %" PRIu64 " bytes, but data_offsets "
                    "span %" PRIu64,
                    name, dtype->name, (uint64_t)((bits + 7) / 8), t->bytes);
        return false;
    }
    return true;
}

static int by_begin(const void *a, const void *b) {
    const struct range *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static bool check_overlaps(struct file *f, struct range *ranges, size_t count) {
    struct vp_pos pos = {.file = f->path};
    if (count)
        qsort(ranges, count, sizeof *ranges, by_begin);
    for (size_t i = 1; i < count; i++) {
        if (ranges[i].begin >= ranges[i - 1].end)
            continue;
        vp_diag_add(f->ctx->diags, VP_D_SAFETENSORS, &pos,
                    "data_offsets of the tensors %.200s and %.200s overlap", ranges[i - 1].name,
                    ranges[i].name);
        return false;
    }
    return true;
}

static enum vp_status read_tensors(struct file *f, const struct vp_node *header) {
    if (header->kind != VP_NODE_MAP) {
        vp_diag_add(f->ctx->diags, VP_D_SAFETENSORS, &header->pos,
                    "the header must be a map, not %s", vp_node_kind_name(header->kind));
        return VP_ERR_INPUT;
    }
    bool ok = true;
    struct range *ranges = VP_NEW_ARRAY(f->ctx->arena, header->count, struct range);
    f->tensors = VP_NEW_ARRAY(f->table, header->count, struct vp_tensor);
    for (uint32_t i = 0; i < header->count; i++) {
        if (strcmp(header->keys[i], "__metadata__") == 0)
            continue;
        ok &= read_tensor(f, &f->tensors[f->count], &ranges[f->count], header->keys[i],
                          header->items[i]);
        f->count++;
    }
    if (!ok || !check_overlaps(f, ranges, f->count))
        return VP_ERR_INPUT;
    for (size_t i = 0; i < f->count; i++) {
        const char *name = f->tensors[i].name;
        f->tensors[i].name = vp_arena_text(f->names, name, strlen(name));
    }
    return VP_OK;
}

/* The first 8 bytes of the file: the length of the header. */
static enum vp_status read_length(struct file *f, uint64_t *out) {
    struct vp_bytes head;
    struct vp_pos pos = {.file = f->path};
    uint64_t file_bytes;
    enum vp_status status = vp_io_read_head(f->ctx, &head, &file_bytes, f->path, LENGTH_BYTES);
    if (status != VP_OK)
        return status;
    if (head.size < LENGTH_BYTES) {
        vp_diag_add(f->ctx->diags, VP_D_SAFETENSORS, &pos,
                    "truncated: %zu bytes are too short for the length of a header", head.size);
        return VP_ERR_INPUT;
    }
    *out = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        *out = *out << 8 | (unsigned char)head.data[i];
    if (*out > VP_SAFETENSORS_MAX_HEADER_BYTES) {
        vp_diag_add(f->ctx->diags, VP_D_CAP, &pos,
                    "header length %" PRIu64 " is above the cap of %d bytes", *out,
                    VP_SAFETENSORS_MAX_HEADER_BYTES);
        return VP_ERR_INPUT;
    }
    if (*out > file_bytes - LENGTH_BYTES) {
        vp_diag_add(f->ctx->diags, VP_D_SAFETENSORS, &pos,
                    "header length %" PRIu64 " goes beyond the end of the file (truncated?)", *out);
        return VP_ERR_INPUT;
    }
    f->data_bytes = file_bytes - LENGTH_BYTES - *out;
    return VP_OK;
}

static enum vp_status read_file(struct file *f) {
    struct vp_bytes head;
    struct vp_node *header;
    uint64_t length, file_bytes;
    enum vp_status status = read_length(f, &length);
    if (status != VP_OK)
        return status;
    status = vp_io_read_head(f->ctx, &head, &file_bytes, f->path, (size_t)length + LENGTH_BYTES);
    if (status != VP_OK)
        return status;
    if (head.size != length + LENGTH_BYTES) {
        struct vp_pos pos = {.file = f->path};
        vp_diag_add(f->ctx->diags, VP_D_SAFETENSORS, &pos, "the file was truncated meanwhile");
        return VP_ERR_INPUT;
    }
    struct vp_bytes text = {head.data + LENGTH_BYTES, (size_t)length};
    status = vp_json_read(f->ctx, &header, text, f->path);
    if (status != VP_OK) {
        vp_diag_hint(f->ctx->diags, "positions count from the start of the header, byte 9");
        return status;
    }
    return read_tensors(f, header);
}

static void warn_header_only(struct vp_ctx *ctx, const char *path, size_t parts) {
    struct vp_pos pos = {.file = path};
    if (parts == 1)
        vp_diag_add(ctx->diags, VP_D_HEADER_ONLY, &pos,
                    "the file ends after its header; sizes are taken from the header");
    else
        vp_diag_add(ctx->diags, VP_D_HEADER_ONLY, &pos,
                    "%zu files, this one first, end after their headers; sizes are taken from "
                    "the headers",
                    parts);
}

static enum vp_status add_up(struct vp_ctx *ctx, struct vp_tensors *out) {
    struct vp_sum total = vp_sum(0);
    for (size_t i = 0; i < out->count; i++)
        total = vp_sum_add(total, out->items[i].bytes);
    out->total_bytes = total.v;
    if (!total.overflow)
        return VP_OK;
    struct vp_pos pos = {.file = out->source};
    vp_diag_add(ctx->diags, VP_D_OVERFLOW, &pos, "the tensors' bytes add up to more than 64 bits");
    return VP_ERR_INPUT;
}

/* ---- several files behind an index ---- */

struct entry {
    const char *name, *part;
    struct vp_pos pos;
};

struct index {
    struct vp_ctx *ctx; /* its arena is the scratch one */
    struct vp_arena *keep;
    const char *path;
    struct entry *entries; /* by part, then by name */
    size_t count;
    struct vp_tensors *out;
    size_t header_only_parts;
    const char *first_header_only;
};

static bool is_plain_name(const char *name) {
    return name[0] && !strchr(name, '/') && !strchr(name, '\\') && !strstr(name, "..") &&
           strcmp(name, ".") != 0;
}

static int by_part_then_name(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    int c = x->part == y->part ? 0 : strcmp(x->part, y->part);
    return c ? c : strcmp(x->name, y->name);
}

static int by_tensor_name(const void *a, const void *b) {
    return strcmp(((const struct vp_tensor *)a)->name, ((const struct vp_tensor *)b)->name);
}

/* Sorting is left out where the order is right already, as it mostly is. */
static void sort(void *items, size_t count, size_t size,
                 int (*compare)(const void *, const void *)) {
    const char *p = items;
    for (size_t i = 1; i < count; i++) {
        if (compare(p + (i - 1) * size, p + i * size) > 0) {
            qsort(items, count, size, compare);
            return;
        }
    }
}

static enum vp_status read_map(struct index *x, const struct vp_node *map) {
    bool ok = true;
    struct vp_pos pos = {.file = x->path};
    if (!map || map->kind != VP_NODE_MAP) {
        vp_diag_add(x->ctx->diags, VP_D_SAFETENSORS, map ? &map->pos : &pos,
                    "the index has no weight_map that maps tensor names to files");
        return VP_ERR_INPUT;
    }
    x->entries = VP_NEW_ARRAY(x->ctx->arena, map->count, struct entry);
    for (uint32_t i = 0; i < map->count; i++) {
        const struct vp_node *part = map->items[i];
        bool is_text = part->kind == VP_NODE_TEXT;
        if (is_text && is_plain_name(part->text)) {
            /* neighbours are mostly in one part: one text makes comparing them cheap */
            const char *last = x->count ? x->entries[x->count - 1].part : NULL;
            const char *name = vp_text_eq(last, part->text) ? last : part->text;
            x->entries[x->count++] = (struct entry){map->keys[i], name, map->key_pos[i]};
            continue;
        }
        ok = false;
        vp_diag_add(x->ctx->diags, VP_D_SAFETENSORS, &part->pos, "weight_map: %.200s: %s",
                    map->keys[i],
                    is_text ? "not a plain file name; paths outside the folder are refused"
                            : "the file name must be text");
    }
    sort(x->entries, x->count, sizeof *x->entries, by_part_then_name);
    return ok ? VP_OK : VP_ERR_INPUT;
}

/* The end of the group of entries that name the same part. */
static size_t part_end(const struct index *x, size_t begin) {
    size_t end = begin + 1;
    while (end < x->count && strcmp(x->entries[end].part, x->entries[begin].part) == 0)
        end++;
    return end;
}

/* All parts are looked for before any is read: an index without its parts is one message. */
static enum vp_status find_parts(struct index *x, const char *dir) {
    const char *first = NULL;
    size_t missing = 0;
    uint32_t errors = x->ctx->diags->errors;
    for (size_t i = 0; i < x->count; i = part_end(x, i)) {
        struct vp_arena_mark mark = vp_arena_mark(x->ctx->arena);
        if (vp_io_kind(x->ctx, vp_io_join(x->ctx, dir, x->entries[i].part)) == VP_FILE_NONE) {
            first = first ? first : x->entries[i].part;
            missing++;
        }
        vp_arena_rewind(x->ctx->arena, mark);
    }
    if (x->ctx->diags->errors != errors)
        return VP_ERR_ENV;
    if (!missing)
        return VP_OK;
    struct vp_pos pos = {.file = x->path};
    if (missing == 1)
        vp_diag_add(x->ctx->diags, VP_D_FILE_MISSING, &pos, "the part %.200s is missing", first);
    else
        vp_diag_add(x->ctx->diags, VP_D_FILE_MISSING, &pos,
                    "the part %.200s and %zu more are missing", first, missing - 1);
    return VP_ERR_INPUT;
}

/* Names the first tensor that only one of both knows. Both are sorted by name. */
static enum vp_status compare_part(struct index *x, const struct file *f,
                                   const struct entry *entries, size_t count) {
    size_t i = 0, k = 0;
    while (i < count && k < f->count && strcmp(entries[i].name, f->tensors[k].name) == 0) {
        i++;
        k++;
    }
    if (i == count && k == f->count)
        return VP_OK;
    if (k == f->count || (i < count && strcmp(entries[i].name, f->tensors[k].name) < 0)) {
        vp_diag_add(x->ctx->diags, VP_D_SAFETENSORS, &entries[i].pos,
                    "tensor %.200s is not in %.200s, where weight_map says it is", entries[i].name,
                    entries[i].part);
    } else {
        struct vp_pos pos = {.file = f->path};
        vp_diag_add(x->ctx->diags, VP_D_SAFETENSORS, &pos,
                    "tensor %.200s is in this file, but weight_map does not say so",
                    f->tensors[k].name);
    }
    return VP_ERR_INPUT;
}

static enum vp_status read_part(struct index *x, const char *dir, size_t begin, size_t end) {
    const char *part = x->entries[begin].part;
    struct vp_ctx keep = *x->ctx;
    keep.arena = x->keep;
    struct file f = {.ctx = x->ctx, .names = x->keep, .table = x->ctx->arena};
    struct vp_arena_mark mark = vp_arena_mark(x->ctx->arena);
    f.path = vp_io_join(&keep, dir, vp_arena_text(x->keep, part, strlen(part)));
    enum vp_status status = read_file(&f);
    if (status == VP_OK) {
        sort(f.tensors, f.count, sizeof *f.tensors, by_tensor_name);
        status = compare_part(x, &f, x->entries + begin, end - begin);
    }
    if (status == VP_OK) /* every entry has its tensor: there is room for all */
        memcpy(x->out->items + begin, f.tensors, f.count * sizeof *f.tensors);
    if (status == VP_OK && f.header_only && x->header_only_parts++ == 0)
        x->first_header_only = f.path;
    vp_arena_rewind(x->ctx->arena, mark);
    return status;
}

static void compare_total(struct index *x, const struct vp_node *total) {
    uint64_t bytes;
    if (!total || (vp_node_u64(&bytes, total) && bytes == x->out->total_bytes))
        return;
    vp_diag_add(x->ctx->diags, VP_D_WEIGHTS_DISAGREE, &total->pos,
                "metadata.total_size says %.40s bytes, the tensors have %" PRIu64,
                vp_node_is_scalar(total) ? total->text : "?", x->out->total_bytes);
}

static enum vp_status read_parts(struct index *x, const struct vp_node *root) {
    const char *dir = vp_io_dirname(x->ctx, x->path);
    enum vp_status status = find_parts(x, dir);
    if (status != VP_OK)
        return status;
    x->out->items = VP_NEW_ARRAY(x->keep, x->count, struct vp_tensor);
    x->out->count = x->count;
    for (size_t i = 0, end; i < x->count; i = end) {
        end = part_end(x, i);
        enum vp_status part_status = read_part(x, dir, i, end);
        if (part_status == VP_ERR_ENV)
            return part_status;
        if (part_status != VP_OK)
            status = part_status;
    }
    if (status == VP_OK)
        status = add_up(x->ctx, x->out);
    if (status != VP_OK)
        return status;
    compare_total(x, vp_node_get(vp_node_get(root, "metadata"), "total_size"));
    x->out->header_only = x->header_only_parts > 0;
    if (x->out->header_only)
        warn_header_only(x->ctx, x->first_header_only, x->header_only_parts);
    return VP_OK;
}

/* ---- both entry points ---- */

static enum vp_status one_file(struct vp_ctx *scratch, struct vp_arena *keep,
                               struct vp_tensors *out) {
    struct file f = {.ctx = scratch, .names = keep, .table = keep, .path = out->source};
    enum vp_status status = read_file(&f);
    if (status != VP_OK)
        return status;
    out->items = f.tensors;
    out->count = f.count;
    out->header_only = f.header_only;
    if (f.header_only)
        warn_header_only(scratch, f.path, 1);
    return add_up(scratch, out);
}

static enum vp_status whole_index(struct vp_ctx *scratch, struct vp_arena *keep,
                                  struct vp_tensors *out) {
    struct index x = {.ctx = scratch, .keep = keep, .path = out->source, .out = out};
    struct vp_bytes text;
    struct vp_node *root;
    enum vp_status status = vp_io_read(scratch, &text, x.path, MAX_INDEX_BYTES);
    if (status == VP_OK)
        status = vp_json_read(scratch, &root, text, x.path);
    if (status == VP_OK)
        status = read_map(&x, vp_node_get(root, "weight_map"));
    if (status == VP_OK)
        status = read_parts(&x, root);
    return status;
}

/* Both arenas leave by longjmp when there is no memory; the scratch one must be freed before.
 * Returns false after such a jump. */
static bool guarded(struct vp_ctx *scratch, struct vp_arena *keep, struct vp_tensors *out,
                    bool is_index, enum vp_status *status) {
    jmp_buf guard;
    jmp_buf *outer = keep->oom;
    bool enough = true;
    if (setjmp(guard) == 0) {
        keep->oom = scratch->arena->oom = &guard;
        *status = is_index ? whole_index(scratch, keep, out) : one_file(scratch, keep, out);
    } else {
        enough = false;
    }
    keep->oom = outer;
    return enough;
}

static enum vp_status read_either(struct vp_ctx *ctx, struct vp_tensors *out, const char *path,
                                  bool is_index) {
    struct vp_arena arena = {.take = ctx->arena->take};
    struct vp_ctx scratch = *ctx;
    enum vp_status status = VP_OK;
    scratch.arena = &arena;
    *out = (struct vp_tensors){.source = vp_arena_text(ctx->arena, path, strlen(path))};
    bool enough = guarded(&scratch, ctx->arena, out, is_index, &status);
    vp_arena_free(&arena);
    if (!enough)
        vp_arena_array(ctx->arena, SIZE_MAX, 2); /* goes on to the owner's jump */
    return status;
}

enum vp_status vp_safetensors_read(struct vp_ctx *ctx, struct vp_tensors *out, const char *path) {
    return read_either(ctx, out, path, false);
}

enum vp_status vp_safetensors_read_index(struct vp_ctx *ctx, struct vp_tensors *out,
                                         const char *path) {
    return read_either(ctx, out, path, true);
}
