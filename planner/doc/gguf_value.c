#include "planner/doc/gguf_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/doc/gguf.h"

/* Types of metadata values. */
enum value_type {
    VALUE_U8,
    VALUE_I8,
    VALUE_U16,
    VALUE_I16,
    VALUE_U32,
    VALUE_I32,
    VALUE_F32,
    VALUE_BOOL,
    VALUE_TEXT,
    VALUE_ARRAY,
    VALUE_U64,
    VALUE_I64,
    VALUE_F64,
    VALUE_COUNT
};

/* Bytes of a value; 0 where they differ from one to the next. */
static const uint8_t VALUE_BYTES[VALUE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static struct vp_node *scalar(struct vp_gguf_stream *s, enum vp_node_kind kind, const char *text) {
    return vp_node_scalar(s->ctx, kind, text, (struct vp_pos){.file = s->path});
}

static struct vp_node *integer(struct vp_gguf_stream *s, uint64_t v, bool negative) {
    char text[24];
    if (negative)
        snprintf(text, sizeof text, "%" PRId64, (int64_t)v);
    else
        snprintf(text, sizeof text, "%" PRIu64, v);
    return scalar(s, VP_NODE_INT, text);
}

static struct vp_node *real(struct vp_gguf_stream *s, double v) {
    if (v != v)
        return scalar(s, VP_NODE_REAL, "NaN");
    if (v - v != 0)
        return scalar(s, VP_NODE_REAL, v > 0 ? "Infinity" : "-Infinity");
    return scalar(s, VP_NODE_REAL, vp_format_real(s->ctx->arena, v));
}

/* A number or truth value; NULL after a fault. */
static struct vp_node *read_number(struct vp_gguf_stream *s, enum value_type type,
                                   const char *key) {
    unsigned char bytes[8];
    size_t n = VALUE_BYTES[type];
    uint64_t v = 0;
    float f;
    double d;
    if (!vp_gguf_bytes(s, bytes, n, key))
        return NULL;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | bytes[s->swap ? i : n - 1 - i];
    uint64_t sign = n == 8 ? 0 : UINT64_MAX << (8 * n);
    bool negative = v >> (8 * n - 1);
    switch (type) {
    case VALUE_BOOL:
        return scalar(s, VP_NODE_BOOL, v ? "true" : "false");
    case VALUE_F32: {
        uint32_t word = (uint32_t)v;
        memcpy(&f, &word, sizeof f);
        return real(s, (double)f);
    }
    case VALUE_F64:
        memcpy(&d, &v, sizeof d);
        return real(s, d);
    case VALUE_I8:
    case VALUE_I16:
    case VALUE_I32:
    case VALUE_I64:
        return integer(s, negative ? v | sign : v, negative);
    default:
        return integer(s, v, false);
    }
}

static enum value_type read_type(struct vp_gguf_stream *s, const char *key) {
    uint32_t type = vp_gguf_u32(s, key);
    if (vp_gguf_ok(s) && type >= VALUE_COUNT) {
        vp_gguf_fault(s, VP_D_GGUF, "key %.200s has the unknown value type %" PRIu32, key, type);
        return VALUE_U8;
    }
    return (enum value_type)type;
}

/* A list of numbers, or NULL for what is only counted. */
static struct vp_node *read_array(struct vp_gguf_stream *s, uint64_t *count, const char *key) {
    enum value_type type = read_type(s, key);
    *count = vp_gguf_u64(s, key);
    if (vp_gguf_ok(s) && type == VALUE_ARRAY)
        vp_gguf_fault(s, VP_D_GGUF, "key %.200s: an array of arrays (nesting is not allowed)", key);
    if (!vp_gguf_ok(s))
        return NULL;
    uint64_t least = type == VALUE_TEXT ? 8 : VALUE_BYTES[type];
    if (*count > (s->file_bytes - s->at) / least) {
        vp_gguf_fault(s, VP_D_GGUF,
                      "key %.200s: an array of %" PRIu64 " items goes beyond the end of the file",
                      key, *count);
        return NULL;
    }
    if (type == VALUE_TEXT) {
        vp_gguf_skip_texts(s, *count, key);
        return NULL;
    }
    if (*count > VP_GGUF_KEPT_ITEMS || vp_text_starts(key, "tokenizer.")) {
        vp_gguf_skip(s, *count * least, key);
        return NULL;
    }
    struct vp_node *list = vp_node_new(s->ctx, VP_NODE_LIST, (struct vp_pos){.file = s->path});
    list->items = VP_NEW_ARRAY(s->ctx->arena, (size_t)*count, struct vp_node *);
    for (uint64_t i = 0; i < *count && vp_gguf_ok(s); i++)
        list->items[list->count++] = read_number(s, type, key);
    return vp_gguf_ok(s) ? list : NULL;
}

struct vp_node *vp_gguf_value(struct vp_gguf_stream *s, uint64_t *length, bool *is_array,
                              const char *key) {
    enum value_type type = read_type(s, key);
    *length = 0;
    *is_array = type == VALUE_ARRAY;
    if (type == VALUE_ARRAY)
        return read_array(s, length, key);
    if (type != VALUE_TEXT)
        return vp_gguf_ok(s) ? read_number(s, type, key) : NULL;
    const char *text = vp_gguf_text(s, VP_GGUF_KEPT_TEXT, key);
    return text ? scalar(s, VP_NODE_TEXT, text) : NULL;
}
