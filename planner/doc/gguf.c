#include "planner/doc/gguf.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/doc/gguf_value.h"

static const struct vp_ggml_type TYPES[] = {
#define X(id, name, elements, bytes) {name, id, elements, bytes},
#include "planner/doc/ggml_types.def"
#undef X
};

const struct vp_ggml_type *vp_ggml_type(uint32_t id) {
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (TYPES[i].id == id)
            return &TYPES[i];
    return NULL;
}

/* What one file's header holds. */
struct part {
    struct vp_gguf_stream s;
    struct vp_pos pos; /* of all its nodes */
    uint64_t tensor_count, key_count;
    uint32_t version, alignment;
    const char **keys;
    struct vp_node **values; /* NULL: counted only */
    uint64_t *lengths;       /* of arrays */
    bool *is_array;
    uint32_t kept_keys;
    struct vp_gguf_entry *tensors;
    uint32_t kept_tensors;
};

/* ---- the start ---- */

static void read_version(struct part *p) {
    struct vp_gguf_stream *s = &p->s;
    char magic[4];
    if (s->file_bytes == 0)
        vp_gguf_fault(s, VP_D_GGUF, "not a GGUF file: it is empty");
    vp_gguf_bytes(s, magic, sizeof magic, "the magic word GGUF");
    if (memcmp(magic, "GGUF", sizeof magic) != 0)
        vp_gguf_fault(s, VP_D_GGUF, "not a GGUF file: it does not begin with the magic word GGUF");
    p->version = vp_gguf_u32(s, "the version");
    if ((p->version & 0xffff) == 0) { /* another byte order: 3 reads as 0x03000000 */
        s->swap = true;
        p->version = p->version >> 24 | (p->version >> 8 & 0xff00);
    }
    if (!vp_gguf_ok(s) || p->version == 2 || p->version == 3)
        return;
    vp_gguf_fault(s, VP_D_GGUF, "GGUF version %" PRIu32 " is not read, only 2 and 3 are",
                  p->version);
    vp_diag_hint(s->ctx->diags, p->version == 1 ? "convert the model again: llama.cpp has not read "
                                                  "version 1 since 2023"
                                                : "is there a newer version of this program?");
}

/* The least bytes of a key (length, type, value) and of a tensor (length, dimensions, type,
 * offset): what a file of this length cannot hold is not allocated. */
enum { LEAST_KEY_BYTES = 8 + 4 + 1, LEAST_TENSOR_BYTES = 8 + 4 + 4 + 8 };

static void check_count(struct vp_gguf_stream *s, const char *what, uint64_t count, uint64_t cap,
                        uint64_t least_bytes) {
    if (count > s->file_bytes / least_bytes)
        vp_gguf_fault(s, VP_D_GGUF,
                      "a count of %" PRIu64 " %s goes beyond the end of the file (damaged?)", count,
                      what);
    else if (count > cap)
        vp_gguf_fault(s, VP_D_CAP, "%" PRIu64 " %s are above the cap on their count, %" PRIu64,
                      count, what, cap);
}

static void read_counts(struct part *p) {
    p->tensor_count = vp_gguf_u64(&p->s, "the counts of tensors and keys");
    p->key_count = vp_gguf_u64(&p->s, "the counts of tensors and keys");
    check_count(&p->s, "tensors", p->tensor_count, VP_GGUF_MAX_TENSORS, LEAST_TENSOR_BYTES);
    check_count(&p->s, "metadata keys", p->key_count, VP_GGUF_MAX_KEYS, LEAST_KEY_BYTES);
}

/* ---- metadata ---- */

static void read_key(struct part *p) {
    struct vp_gguf_stream *s = &p->s;
    const char *key = vp_gguf_text(s, VP_GGUF_MAX_NAME_BYTES + 1, "a metadata key");
    if (!key)
        return;
    if (strlen(key) > VP_GGUF_MAX_NAME_BYTES) {
        vp_gguf_fault(s, VP_D_CAP, "a metadata key is longer than the cap of %d bytes",
                      VP_GGUF_MAX_NAME_BYTES);
        return;
    }
    uint32_t at = p->kept_keys;
    p->keys[at] = key;
    p->values[at] = vp_gguf_value(s, &p->lengths[at], &p->is_array[at], key);
    if (vp_gguf_ok(s))
        p->kept_keys++;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names are sorted in place. */
static bool all_differ(struct vp_gguf_stream *s, const char **names, size_t count,
                       const char *what) {
    if (count > 1)
        qsort(names, count, sizeof *names, by_text);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(names[i - 1], names[i]) != 0)
            continue;
        vp_gguf_fault(s, VP_D_GGUF, "duplicate %s %.200s", what, names[i]);
        return false;
    }
    return true;
}

static void read_keys(struct part *p) {
    struct vp_gguf_stream *s = &p->s;
    struct vp_arena *arena = s->ctx->arena;
    if (!vp_gguf_ok(s))
        return;
    p->keys = VP_NEW_ARRAY(arena, (size_t)p->key_count, const char *);
    p->values = VP_NEW_ARRAY(arena, (size_t)p->key_count, struct vp_node *);
    p->lengths = VP_NEW_ARRAY(arena, (size_t)p->key_count, uint64_t);
    p->is_array = VP_NEW_ARRAY(arena, (size_t)p->key_count, bool);
    while (p->kept_keys < p->key_count && vp_gguf_ok(s))
        read_key(p);
    if (!vp_gguf_ok(s))
        return;
    const char **sorted = VP_NEW_ARRAY(arena, p->kept_keys, const char *);
    memcpy(sorted, p->keys, p->kept_keys * sizeof *sorted);
    all_differ(s, sorted, p->kept_keys, "metadata key");
}

/* A whole number of the metadata; fallback when the key is missing. */
static uint64_t key_number(struct part *p, const char *key, uint64_t fallback) {
    uint64_t v;
    for (uint32_t i = 0; i < p->kept_keys; i++) {
        if (strcmp(p->keys[i], key) != 0)
            continue;
        if (vp_node_u64(&v, p->values[i]))
            return v;
        vp_gguf_fault(&p->s, VP_D_GGUF, "%s must be a whole number", key);
    }
    return fallback;
}

static void read_alignment(struct part *p) {
    enum { DEFAULT_ALIGNMENT = 32, LARGEST_ALIGNMENT = 1 << 20 };
    uint64_t v = key_number(p, "general.alignment", DEFAULT_ALIGNMENT);
    p->alignment = DEFAULT_ALIGNMENT;
    if (v == 0 || v > LARGEST_ALIGNMENT || (v & (v - 1)) != 0)
        vp_gguf_fault(&p->s, VP_D_GGUF,
                      "general.alignment: %" PRIu64 " is no power of two between 1 and %d", v,
                      LARGEST_ALIGNMENT);
    else
        p->alignment = (uint32_t)v;
}

/* ---- tensors ---- */

static void read_shape(struct part *p, struct vp_gguf_entry *t) {
    struct vp_gguf_stream *s = &p->s;
    struct vp_sum elements = vp_sum(1);
    t->dims = vp_gguf_u32(s, "a tensor");
    if (t->dims > 4)
        vp_gguf_fault(s, VP_D_GGUF, "tensor %.200s: %" PRIu32 " dimensions; there are at most 4",
                      t->name, t->dims);
    for (uint32_t i = 0; i < 4; i++) {
        t->ne[i] = 1;
        if (i >= t->dims || !vp_gguf_ok(s))
            continue;
        t->ne[i] = vp_gguf_u64(s, "a tensor");
        if (vp_gguf_ok(s) && (t->ne[i] == 0 || t->ne[i] > INT64_MAX))
            vp_gguf_fault(s, VP_D_GGUF,
                          "tensor %.200s: dimension ne%" PRIu32 " is %" PRId64
                          "; it must be at least 1",
                          t->name, i, (int64_t)t->ne[i]);
        elements = vp_sum_mul(elements, t->ne[i]);
    }
    t->elements = elements.v;
    if (elements.overflow || elements.v > INT64_MAX)
        vp_gguf_fault(s, VP_D_GGUF, "tensor %.200s: the product of its dimensions overflows",
                      t->name);
}

static void read_format(struct part *p, struct vp_gguf_entry *t) {
    struct vp_gguf_stream *s = &p->s;
    uint32_t id = vp_gguf_u32(s, "a tensor");
    if (!vp_gguf_ok(s))
        return;
    t->type = vp_ggml_type(id);
    if (!t->type) {
        vp_gguf_fault(s, VP_D_GGUF, "tensor %.200s: type %" PRIu32 " is unknown or retired",
                      t->name, id);
        return;
    }
    if (t->ne[0] % t->type->elements != 0) {
        vp_gguf_fault(s, VP_D_GGUF,
                      "tensor %.200s: a row of %" PRIu64 " elements is not a multiple of the block "
                      "of %" PRIu32 " of type %s",
                      t->name, t->ne[0], t->type->elements, t->type->name);
        return;
    }
    struct vp_sum bytes = vp_sum_mul(vp_sum(t->elements / t->type->elements), t->type->bytes);
    t->bytes = bytes.v;
    if (bytes.overflow || bytes.v > INT64_MAX)
        vp_gguf_fault(s, VP_D_GGUF, "tensor %.200s: its size overflows", t->name);
}

static void read_tensor(struct part *p, struct vp_gguf_entry *t) {
    struct vp_gguf_stream *s = &p->s;
    t->name = vp_gguf_text(s, VP_GGUF_MAX_NAME_BYTES + 1, "a tensor's name");
    if (!t->name)
        return;
    if (strlen(t->name) > VP_GGUF_MAX_NAME_BYTES) {
        vp_gguf_fault(s, VP_D_CAP, "a tensor's name is longer than the cap of %d bytes",
                      VP_GGUF_MAX_NAME_BYTES);
        return;
    }
    read_shape(p, t);
    read_format(p, t);
    t->offset = vp_gguf_u64(s, "a tensor");
    if (!vp_gguf_ok(s))
        return;
    if (t->offset % p->alignment != 0)
        vp_gguf_fault(s, VP_D_GGUF,
                      "tensor %.200s: offset %" PRIu64 " is not aligned to %" PRIu32 " bytes",
                      t->name, t->offset, p->alignment);
    else if (vp_sum_add(vp_sum(t->offset), t->bytes).overflow)
        vp_gguf_fault(s, VP_D_GGUF, "tensor %.200s: offset %" PRIu64 " plus its size overflows",
                      t->name, t->offset);
}

static void read_tensors(struct part *p) {
    if (!vp_gguf_ok(&p->s))
        return;
    p->tensors = VP_NEW_ARRAY(p->s.ctx->arena, (size_t)p->tensor_count, struct vp_gguf_entry);
    while (p->kept_tensors < p->tensor_count && vp_gguf_ok(&p->s))
        read_tensor(p, &p->tensors[p->kept_tensors++]);
}

/* Whether every tensor lies inside the file. True for *header_only when nothing follows the
 * header. */
static void check_extent(struct part *p, bool *header_only) {
    struct vp_gguf_stream *s = &p->s;
    if (!vp_gguf_ok(s) || p->kept_tensors == 0)
        return;
    uint64_t start = vp_ceil_div(s->at, p->alignment) * p->alignment;
    uint64_t room = vp_above(s->file_bytes, start);
    if (room == 0) {
        *header_only = true;
        return;
    }
    for (uint32_t i = 0; i < p->kept_tensors; i++) {
        const struct vp_gguf_entry *t = &p->tensors[i];
        if (t->offset <= room && t->bytes <= room - t->offset)
            continue;
        vp_gguf_fault(s, VP_D_GGUF,
                      "tensor %.200s: offset %" PRIu64 " and %" PRIu64
                      " bytes go beyond the end of the file (truncated?)",
                      t->name, t->offset, t->bytes);
        return;
    }
}

/* ---- one file ---- */

static void read_header(struct part *p, bool *header_only) {
    read_version(p);
    if (vp_gguf_ok(&p->s))
        read_counts(p);
    read_keys(p);
    if (vp_gguf_ok(&p->s))
        read_alignment(p);
    read_tensors(p);
    check_extent(p, header_only);
}

/* The arena leaves by longjmp when there is no memory: the file must be closed before. */
static bool guarded(struct part *p, bool *header_only) {
    struct vp_arena *arena = p->s.ctx->arena;
    jmp_buf guard;
    jmp_buf *outer = arena->oom;
    bool enough = true;
    if (setjmp(guard) == 0) {
        arena->oom = &guard;
        read_header(p, header_only);
    } else {
        enough = false;
    }
    arena->oom = outer;
    return enough;
}

static enum vp_status read_file(struct vp_ctx *ctx, struct part *p, bool *header_only,
                                const char *path) {
    *p = (struct part){.s = {.ctx = ctx, .path = path}, .pos = {.file = path}};
    p->s.buffer = vp_arena_alloc(ctx->arena, VP_GGUF_BUFFER_BYTES);
    enum vp_status status = vp_io_open(ctx, &p->s.fd, &p->s.file_bytes, path);
    if (status != VP_OK)
        return status;
    bool enough = guarded(p, header_only);
    ctx->io->close(p->s.fd);
    if (!enough)
        vp_arena_array(ctx->arena, SIZE_MAX, 2); /* no memory: goes on to the owner's jump */
    return p->s.status;
}

/* ---- several files ---- */

struct split {
    uint64_t count; /* files */
    uint64_t given; /* number of the one that was named, from 0 */
    const char *prefix;
};

/* "PREFIX-00002-of-00005.gguf" of the given count; false when the name is another. */
static bool split_name(struct vp_ctx *ctx, struct split *out, const char *path, uint64_t count) {
    const char *tail = vp_arena_printf(ctx->arena, "-of-%05" PRIu64 ".gguf", count);
    size_t n = strlen(path), m = strlen(tail);
    char digits[6] = {0};
    if (n < m + 6 || strcmp(path + n - m, tail) != 0 || path[n - m - 6] != '-')
        return false;
    memcpy(digits, path + n - m - 5, 5);
    if (!vp_parse_u64(&out->given, digits) || out->given < 1 || out->given > count)
        return false;
    out->given--;
    out->count = count;
    out->prefix = vp_arena_text(ctx->arena, path, n - m - 6);
    return true;
}

static const char *part_path(struct vp_ctx *ctx, const struct split *split, uint64_t part) {
    return vp_arena_printf(ctx->arena, "%s-%05" PRIu64 "-of-%05" PRIu64 ".gguf", split->prefix,
                           part + 1, split->count);
}

/* All parts are looked for before any is read. */
static enum vp_status find_parts(struct vp_ctx *ctx, const struct split *split) {
    uint32_t errors = ctx->diags->errors;
    const char *first = NULL;
    uint64_t missing = 0;
    for (uint64_t i = 0; i < split->count; i++) {
        const char *path = part_path(ctx, split, i);
        if (vp_io_kind(ctx, path) == VP_FILE_NONE) {
            first = first ? first : path;
            missing++;
        }
    }
    if (ctx->diags->errors > errors)
        return VP_ERR_ENV; /* a path whose kind could not be told was passed over */
    if (!missing)
        return VP_OK;
    struct vp_pos pos = {.file = first};
    vp_diag_add(ctx->diags, VP_D_FILE_MISSING, &pos,
                "part %s of a split model is missing, %" PRIu64 " of its %" PRIu64 " files in all",
                first, missing, split->count);
    vp_diag_hint(ctx->diags, "all parts must lie in one folder under their own names");
    return VP_ERR_INPUT;
}

static void check_part(struct part *p, const struct split *split, uint64_t number) {
    uint64_t no = key_number(p, "split.no", 0), count = key_number(p, "split.count", 1);
    if (vp_gguf_ok(&p->s) && (no != number || count != split->count))
        vp_gguf_fault(&p->s, VP_D_GGUF,
                      "split.no %" PRIu64 " of split.count %" PRIu64
                      " does not belong to this file's name",
                      no, count);
}

static enum vp_status read_parts(struct vp_ctx *ctx, struct part *parts, const struct split *split,
                                 bool *header_only) {
    enum vp_status status = find_parts(ctx, split);
    for (uint64_t i = 0; i < split->count && status == VP_OK; i++) {
        if (i == split->given)
            continue;
        status = read_file(ctx, &parts[i], header_only, part_path(ctx, split, i));
        if (status == VP_OK)
            check_part(&parts[i], split, i);
        if (status == VP_OK)
            status = parts[i].s.status;
    }
    return status;
}

/* ---- the whole ---- */

static void fill_metadata(struct vp_ctx *ctx, struct vp_gguf *out, const struct part *p) {
    struct vp_node *maps[2];
    for (int m = 0; m < 2; m++) {
        maps[m] = vp_node_new(ctx, VP_NODE_MAP, p->pos);
        maps[m]->keys = VP_NEW_ARRAY(ctx->arena, p->kept_keys, const char *);
        maps[m]->key_pos = VP_NEW_ARRAY(ctx->arena, p->kept_keys, struct vp_pos);
        maps[m]->items = VP_NEW_ARRAY(ctx->arena, p->kept_keys, struct vp_node *);
    }
    for (uint32_t i = 0; i < p->kept_keys; i++) {
        for (int m = 0; m < 2; m++) {
            if (m == 0 ? !p->values[i] : !p->is_array[i])
                continue;
            char count[24];
            snprintf(count, sizeof count, "%" PRIu64, p->lengths[i]);
            uint32_t at = maps[m]->count++;
            maps[m]->keys[at] = p->keys[i];
            maps[m]->key_pos[at] = p->pos;
            maps[m]->items[at] =
                m == 0 ? p->values[i] : vp_node_scalar(ctx, VP_NODE_INT, count, p->pos);
        }
    }
    out->metadata = maps[0];
    out->counts = maps[1];
}

/* The tables of all parts as one. */
static enum vp_status join(struct vp_ctx *ctx, struct vp_gguf *out, struct part *parts,
                           uint64_t count) {
    struct part *first = &parts[0];
    size_t n = 0;
    for (uint64_t i = 0; i < count; i++)
        n += parts[i].kept_tensors;
    if (n > VP_GGUF_MAX_TENSORS) {
        vp_gguf_fault(&first->s, VP_D_CAP, "%zu tensors are above the cap on their count, %d", n,
                      VP_GGUF_MAX_TENSORS);
        return first->s.status;
    }
    const char **names = VP_NEW_ARRAY(ctx->arena, n, const char *);
    out->tensors = VP_NEW_ARRAY(ctx->arena, n, struct vp_gguf_entry);
    for (uint64_t i = 0; i < count; i++) {
        for (uint32_t t = 0; t < parts[i].kept_tensors; t++) {
            parts[i].tensors[t].part = (uint32_t)i;
            names[out->tensor_count] = parts[i].tensors[t].name;
            out->tensors[out->tensor_count++] = parts[i].tensors[t];
        }
    }
    uint64_t told = key_number(first, "split.tensors.count", n);
    if (told != n)
        vp_gguf_fault(&first->s, VP_D_GGUF,
                      "split.tensors.count is %" PRIu64 ", but the parts hold %zu tensors", told,
                      n);
    all_differ(&first->s, names, n, "tensor");
    out->source = first->s.path;
    out->version = first->version;
    out->alignment = first->alignment;
    out->big_endian = first->s.swap;
    out->parts = (uint32_t)count;
    fill_metadata(ctx, out, first);
    return first->s.status;
}

enum vp_status vp_gguf_read(struct vp_ctx *ctx, struct vp_gguf *out, const char *path) {
    struct split split = {.count = 1};
    struct part one, *parts = &one;
    *out = (struct vp_gguf){0};
    enum vp_status status =
        read_file(ctx, &one, &out->header_only, vp_arena_text(ctx->arena, path, strlen(path)));
    if (status != VP_OK)
        return status;
    uint64_t count = key_number(&one, "split.count", 1);
    if (vp_gguf_ok(&one.s) && count > VP_GGUF_MAX_SPLITS)
        vp_gguf_fault(&one.s, VP_D_CAP, "split.count %" PRIu64 " is above the cap of %d", count,
                      VP_GGUF_MAX_SPLITS);
    if (vp_gguf_ok(&one.s) && count > 1 && !split_name(ctx, &split, path, count)) {
        vp_gguf_fault(&one.s, VP_D_GGUF,
                      "split.count is %" PRIu64 ", but this is not the name of a split file",
                      count);
        vp_diag_hint(ctx->diags, "parts are called NAME-00001-of-%05" PRIu64 ".gguf", count);
    }
    if (vp_gguf_ok(&one.s) && count > 1) {
        parts = VP_NEW_ARRAY(ctx->arena, (size_t)count, struct part);
        parts[split.given] = one;
        check_part(&parts[split.given], &split, split.given);
        status = parts[split.given].s.status;
        if (status == VP_OK)
            status = read_parts(ctx, parts, &split, &out->header_only);
    } else {
        status = one.s.status;
    }
    return status == VP_OK ? join(ctx, out, parts, split.count) : status;
}
