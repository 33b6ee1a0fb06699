#include "tests/unit/gguf_builder.h"

#include <string.h>

enum { COUNTS_AT = 8, ALIGNMENT = 32 };

void gguf_raw(struct gguf_builder *b, const void *bytes, size_t n) {
    if (b->size + n > b->capacity) {
        size_t capacity = 2 * (b->size + n) + 1024;
        unsigned char *more = vp_arena_alloc(b->arena, capacity);
        if (b->size)
            memcpy(more, b->data, b->size);
        b->data = more;
        b->capacity = capacity;
    }
    if (n)
        memcpy(b->data + b->size, bytes, n);
    b->size += n;
}

static void encode(unsigned char *out, uint64_t v, size_t bytes, bool big) {
    for (size_t i = 0; i < bytes; i++)
        out[big ? bytes - 1 - i : i] = (unsigned char)(v >> (8 * i));
}

void gguf_number(struct gguf_builder *b, uint64_t v, size_t bytes) {
    unsigned char text[8];
    encode(text, v, bytes, b->big);
    gguf_raw(b, text, bytes);
}

void gguf_string(struct gguf_builder *b, const char *text) {
    gguf_number(b, strlen(text), 8);
    gguf_raw(b, text, strlen(text));
}

struct gguf_builder gguf_begin(struct vp_arena *arena, uint32_t version, bool big) {
    struct gguf_builder b = {.arena = arena, .big = big};
    gguf_raw(&b, "GGUF", 4);
    gguf_number(&b, version, 4);
    gguf_number(&b, 0, 8);
    gguf_number(&b, 0, 8);
    return b;
}

void gguf_key(struct gguf_builder *b, const char *key, uint32_t type) {
    gguf_string(b, key);
    gguf_number(b, type, 4);
    b->keys++;
}

void gguf_key_u32(struct gguf_builder *b, const char *key, uint32_t v) {
    gguf_key(b, key, GGUF_U32);
    gguf_number(b, v, 4);
}

void gguf_key_text(struct gguf_builder *b, const char *key, const char *text) {
    gguf_key(b, key, GGUF_TEXT);
    gguf_string(b, text);
}

void gguf_key_list(struct gguf_builder *b, const char *key, const uint32_t *items, uint64_t count) {
    gguf_key(b, key, GGUF_ARRAY);
    gguf_number(b, GGUF_U32, 4);
    gguf_number(b, count, 8);
    for (uint64_t i = 0; i < count; i++)
        gguf_number(b, items[i], 4);
}

void gguf_tensor(struct gguf_builder *b, const char *name, uint32_t type, uint64_t bytes,
                 uint64_t ne0, uint64_t ne1, uint64_t ne2) {
    uint64_t ne[3] = {ne0, ne1, ne2};
    uint32_t dims = ne2 ? 3 : ne1 ? 2 : 1;
    gguf_string(b, name);
    gguf_number(b, dims, 4);
    for (uint32_t i = 0; i < dims; i++)
        gguf_number(b, ne[i], 8);
    gguf_number(b, type, 4);
    gguf_number(b, b->offset, 8);
    b->offset = (b->offset + bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    b->tensors++;
}

void gguf_end(struct gguf_builder *b, bool data) {
    static const unsigned char zeros[64];
    encode(b->data + COUNTS_AT, b->tensors, 8, b->big);
    encode(b->data + COUNTS_AT + 8, b->keys, 8, b->big);
    gguf_raw(b, zeros, (ALIGNMENT - b->size % ALIGNMENT) % ALIGNMENT);
    for (uint64_t left = data ? b->offset : 0; left > 0;) {
        size_t n = left < sizeof zeros ? (size_t)left : sizeof zeros;
        gguf_raw(b, zeros, n);
        left -= n;
    }
}
