/* Streaming JSON writer into a text buffer: two-space indentation, keys in the order they are
 * written, byte-stable. Numbers are integers or shortest-form reals. */
#ifndef VP_BASE_JSON_WRITER_H
#define VP_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/amount.h"
#include "planner/base/text.h"

enum { VP_JSON_DEPTH = 32 };

struct vp_json {
    struct vp_buf *out;
    int depth;
    bool has_items[VP_JSON_DEPTH]; /* something was written at this depth */
    bool after_key;
    bool compact;     /* one line, for short maps and JSON lines */
    int compact_from; /* depth at which a compact value began, -1 none */
};

struct vp_json vp_json_begin(struct vp_buf *out);
void vp_json_map(struct vp_json *json);
void vp_json_list(struct vp_json *json);
/* Like vp_json_map/list, but everything inside stands on one line. */
void vp_json_map_inline(struct vp_json *json);
void vp_json_list_inline(struct vp_json *json);
void vp_json_end(struct vp_json *json, char bracket); /* '}' or ']' */
void vp_json_key(struct vp_json *json, const char *key);
void vp_json_u64(struct vp_json *json, uint64_t v);
void vp_json_i64(struct vp_json *json, int64_t v);
void vp_json_real(struct vp_json *json, double v); /* not finite: null */
void vp_json_bool(struct vp_json *json, bool v);
void vp_json_text(struct vp_json *json, const char *text); /* NULL: null */
void vp_json_null(struct vp_json *json);
/* A key and its value. */
void vp_json_key_u64(struct vp_json *json, const char *key, uint64_t v);
void vp_json_key_i64(struct vp_json *json, const char *key, int64_t v);
void vp_json_key_real(struct vp_json *json, const char *key, double v);
void vp_json_key_bool(struct vp_json *json, const char *key, bool v);
void vp_json_key_text(struct vp_json *json, const char *key, const char *text);
void vp_json_key_nonempty(struct vp_json *json, const char *key, const char *text); /* "": null */
void vp_json_key_amount(struct vp_json *json, const char *key, struct vp_amount bytes);

#endif
