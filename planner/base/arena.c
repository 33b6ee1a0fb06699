#include "planner/base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct vp_arena_chunk {
    struct vp_arena_chunk *next; /* the older one */
    size_t capacity;
    max_align_t data[];
};

enum { MIN_CHUNK_BYTES = 64 * 1024, MAX_CHUNK_BYTES = 4 * 1024 * 1024 };

static _Noreturn void no_memory(struct vp_arena *arena) {
    if (arena->oom)
        longjmp(*arena->oom, 1);
    abort();
}

/* Chunks grow with the arena, so that a large document needs few of them and a small one wastes
 * little. */
static void add_chunk(struct vp_arena *arena, size_t n) {
    size_t capacity = arena->total_bytes;
    if (capacity < MIN_CHUNK_BYTES)
        capacity = MIN_CHUNK_BYTES;
    if (capacity > MAX_CHUNK_BYTES)
        capacity = MAX_CHUNK_BYTES;
    if (capacity < n)
        capacity = n;
    if (capacity > SIZE_MAX - sizeof(struct vp_arena_chunk))
        no_memory(arena);
    size_t bytes = sizeof(struct vp_arena_chunk) + capacity;
    struct vp_arena_chunk *chunk = arena->take ? arena->take(bytes) : malloc(bytes);
    if (!chunk)
        no_memory(arena);
    chunk->next = arena->head;
    chunk->capacity = capacity;
    arena->head = chunk;
    arena->used = 0;
    arena->total_bytes += bytes;
}

/* Not zeroed. */
static void *take_bytes(struct vp_arena *arena, size_t n) {
    size_t align = _Alignof(max_align_t);
    if (n > SIZE_MAX - align)
        no_memory(arena);
    n = n ? (n + align - 1) / align * align : align;
    if (!arena->head || n > arena->head->capacity - arena->used)
        add_chunk(arena, n);
    void *p = (char *)arena->head->data + arena->used;
    arena->used += n;
    return p;
}

void *vp_arena_alloc(struct vp_arena *arena, size_t n) {
    return memset(take_bytes(arena, n), 0, n);
}

void *vp_arena_array(struct vp_arena *arena, size_t count, size_t size) {
    size_t n;
    if (__builtin_mul_overflow(count, size, &n))
        no_memory(arena);
    return vp_arena_alloc(arena, n);
}

char *vp_arena_text(struct vp_arena *arena, const char *text, size_t n) {
    if (n == SIZE_MAX)
        no_memory(arena);
    char *copy = take_bytes(arena, n + 1);
    if (n)
        memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

/* What nearly all formats are made of: %s, %u, %lu, %d and letters. Sweeps spend a sixth of their
 * time on texts when the system's function writes these. Returns the length; -1: something else, or
 * no room. */
static int print_plain(char *out, size_t room, const char *format, va_list args) {
    size_t n = 0;
    for (; *format; format++) {
        char digits[20];
        const char *from = format;
        size_t length = 1;
        if (*format == '%' && format[1] == 's') {
            from = va_arg(args, const char *);
            length = from ? strlen(from) : SIZE_MAX;
            format++;
        } else if (*format == '%') {
            bool is_long = format[1] == 'l', is_signed = format[1] == 'd';
            format += is_long;
            if (*++format != 'u' && !is_signed)
                return -1;
            int small = is_signed ? va_arg(args, int) : 0;
            if (small < 0)
                return -1;
            unsigned long v = is_signed ? (unsigned long)small
                              : is_long ? va_arg(args, unsigned long)
                                        : va_arg(args, unsigned);
            char *at = digits + sizeof digits;
            do
                *--at = (char)('0' + v % 10);
            while (v /= 10);
            from = at;
            length = (size_t)(digits + sizeof digits - at);
        }
        if (length > room - n)
            return -1;
        memcpy(out + n, from, length);
        n += length;
    }
    return (int)n;
}

char *vp_arena_printf(struct vp_arena *arena, const char *format, ...) {
    char few[256]; /* nearly all texts fit, and are printed once */
    va_list args;
    va_start(args, format);
    int n = print_plain(few, sizeof few, format, args);
    va_end(args);
    if (n >= 0)
        return vp_arena_text(arena, few, (size_t)n);
    va_start(args, format);
    n = vsnprintf(few, sizeof few, format, args);
    va_end(args);
    if (n < (int)sizeof few)
        return vp_arena_text(arena, few, n < 0 ? 0 : (size_t)n);
    char *text = vp_arena_alloc(arena, (size_t)n + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

struct vp_arena_mark vp_arena_mark(const struct vp_arena *arena) {
    return (struct vp_arena_mark){arena->head, arena->used};
}

void vp_arena_rewind(struct vp_arena *arena, struct vp_arena_mark mark) {
    while (arena->head != mark.head) {
        struct vp_arena_chunk *chunk = arena->head;
        arena->head = chunk->next;
        arena->total_bytes -= sizeof *chunk + chunk->capacity;
        free(chunk);
    }
    arena->used = mark.used;
}

void vp_arena_free(struct vp_arena *arena) {
    vp_arena_rewind(arena, (struct vp_arena_mark){NULL, 0});
}
