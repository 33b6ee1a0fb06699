#include "planner/base/json_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "planner/base/units.h"
#include "planner/base/utf8.h"

struct vp_json vp_json_begin(struct vp_buf *out) {
    return (struct vp_json){.out = out, .compact_from = -1};
}

static void new_line(struct vp_json *json) {
    vp_buf_add(json->out, "\n");
    for (int i = 0; i < json->depth; i++)
        vp_buf_add(json->out, "  ");
}

/* What stands before a key or a value: a comma, a line break. */
static void separate(struct vp_json *json) {
    bool first = !json->has_items[json->depth];
    json->has_items[json->depth] = true;
    if (json->depth == 0)
        return;
    if (!first)
        vp_buf_add(json->out, json->compact ? ", " : ",");
    if (!json->compact)
        new_line(json);
}

static void begin_value(struct vp_json *json) {
    if (json->after_key)
        json->after_key = false;
    else
        separate(json);
}

static void open_bracket(struct vp_json *json, const char *bracket, bool on_one_line) {
    begin_value(json);
    assert(json->depth + 1 < VP_JSON_DEPTH);
    if (on_one_line && !json->compact) {
        json->compact = true;
        json->compact_from = json->depth;
    }
    vp_buf_add(json->out, bracket);
    json->depth++;
    json->has_items[json->depth] = false;
}

void vp_json_map(struct vp_json *json) { open_bracket(json, "{", false); }

void vp_json_list(struct vp_json *json) { open_bracket(json, "[", false); }

void vp_json_map_inline(struct vp_json *json) { open_bracket(json, "{", true); }

void vp_json_list_inline(struct vp_json *json) { open_bracket(json, "[", true); }

void vp_json_end(struct vp_json *json, char bracket) {
    assert(json->depth > 0 && !json->after_key);
    bool empty = !json->has_items[json->depth];
    json->depth--;
    if (!empty && !json->compact)
        new_line(json);
    if (json->compact && json->compact_from == json->depth) {
        json->compact = false;
        json->compact_from = -1;
    }
    vp_buf_add_n(json->out, &bracket, 1);
}

static void add_escaped(struct vp_buf *out, char c) {
    static const char SHORT[] = "\"\\\b\f\n\r\t", LETTER[] = "\"\\bfnrt";
    const char *known = strchr(SHORT, c);
    if (known)
        vp_buf_printf(out, "\\%c", LETTER[known - SHORT]);
    else
        vp_buf_printf(out, "\\u%04x", (unsigned)c);
}

/* Bytes that are no UTF-8 (file names may hold any) become U+FFFD: the output is always valid. */
static void add_quoted(struct vp_buf *out, const char *text) {
    vp_buf_add(out, "\"");
    const char *p = text, *from = text;
    while (*p) {
        size_t n = vp_utf8_length(p);
        if (n > 0 && (unsigned char)*p >= 0x20 && *p != '"' && *p != '\\') {
            p += n;
            continue;
        }
        vp_buf_add_n(out, from, (size_t)(p - from));
        if (n == 0)
            vp_buf_add(out, "\\ufffd");
        else
            add_escaped(out, *p);
        from = ++p;
    }
    vp_buf_add_n(out, from, (size_t)(p - from));
    vp_buf_add(out, "\"");
}

void vp_json_key(struct vp_json *json, const char *key) {
    assert(!json->after_key);
    separate(json);
    add_quoted(json->out, key);
    vp_buf_add(json->out, ": ");
    json->after_key = true;
}

void vp_json_u64(struct vp_json *json, uint64_t v) {
    begin_value(json);
    vp_buf_printf(json->out, "%" PRIu64, v);
}

void vp_json_i64(struct vp_json *json, int64_t v) {
    begin_value(json);
    vp_buf_printf(json->out, "%" PRId64, v);
}

void vp_json_real(struct vp_json *json, double v) {
    if (!isfinite(v)) {
        vp_json_null(json);
        return;
    }
    begin_value(json);
    vp_buf_add(json->out, vp_format_real(json->out->arena, v));
}

void vp_json_bool(struct vp_json *json, bool v) {
    begin_value(json);
    vp_buf_add(json->out, v ? "true" : "false");
}

void vp_json_text(struct vp_json *json, const char *text) {
    if (!text) {
        vp_json_null(json);
        return;
    }
    begin_value(json);
    add_quoted(json->out, text);
}

void vp_json_null(struct vp_json *json) {
    begin_value(json);
    vp_buf_add(json->out, "null");
}

void vp_json_key_u64(struct vp_json *json, const char *key, uint64_t v) {
    vp_json_key(json, key);
    vp_json_u64(json, v);
}

void vp_json_key_i64(struct vp_json *json, const char *key, int64_t v) {
    vp_json_key(json, key);
    vp_json_i64(json, v);
}

void vp_json_key_real(struct vp_json *json, const char *key, double v) {
    vp_json_key(json, key);
    vp_json_real(json, v);
}

void vp_json_key_bool(struct vp_json *json, const char *key, bool v) {
    vp_json_key(json, key);
    vp_json_bool(json, v);
}

void vp_json_key_text(struct vp_json *json, const char *key, const char *text) {
    vp_json_key(json, key);
    vp_json_text(json, text);
}

void vp_json_key_nonempty(struct vp_json *json, const char *key, const char *text) {
    vp_json_key_text(json, key, text && text[0] ? text : NULL);
}

void vp_json_key_amount(struct vp_json *json, const char *key, struct vp_amount bytes) {
    vp_json_key(json, key);
    vp_json_map_inline(json);
    vp_json_key_u64(json, "low", bytes.low);
    vp_json_key_u64(json, "likely", bytes.likely);
    vp_json_key_u64(json, "high", bytes.high);
    vp_json_end(json, '}');
}
