/* Small GGUF files made in memory, in either byte order. Keys first, then tensors, then gguf_end.
 */
#ifndef VP_TESTS_GGUF_BUILDER_H
#define VP_TESTS_GGUF_BUILDER_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/arena.h"

enum { /* value types of the format */
       GGUF_U8,
       GGUF_I8,
       GGUF_U16,
       GGUF_I16,
       GGUF_U32,
       GGUF_I32,
       GGUF_F32,
       GGUF_BOOL,
       GGUF_TEXT,
       GGUF_ARRAY,
       GGUF_U64,
       GGUF_I64,
       GGUF_F64
};

struct gguf_builder {
    struct vp_arena *arena;
    unsigned char *data;
    size_t size, capacity;
    bool big;
    uint64_t tensors, keys;
    uint64_t offset; /* of the next tensor's data */
};

struct gguf_builder gguf_begin(struct vp_arena *arena, uint32_t version, bool big);
void gguf_raw(struct gguf_builder *b, const void *bytes, size_t n);
void gguf_number(struct gguf_builder *b, uint64_t v, size_t bytes);
void gguf_string(struct gguf_builder *b, const char *text);
/* A key and the type of its value; the value follows by gguf_number or gguf_string. */
void gguf_key(struct gguf_builder *b, const char *key, uint32_t type);
void gguf_key_u32(struct gguf_builder *b, const char *key, uint32_t v);
void gguf_key_text(struct gguf_builder *b, const char *key, const char *text);
void gguf_key_list(struct gguf_builder *b, const char *key, const uint32_t *items, uint64_t count);
/* A tensor of a type with its bytes, at the next free offset (aligned to 32). ne1, ne2: 0 for a
 * dimension that it lacks. */
void gguf_tensor(struct gguf_builder *b, const char *name, uint32_t type, uint64_t bytes,
                 uint64_t ne0, uint64_t ne1, uint64_t ne2);
/* Fills in the counts, pads, and adds the data region when asked for. */
void gguf_end(struct gguf_builder *b, bool data);

#endif
