/* Arena: memory that lives as long as the arena. Nothing taken from it is freed by callers.
 * A mark and a rewind give back all that was taken since the mark (what-ifs, sweeps).
 *
 * Allocation never returns NULL: when the system has no memory, control goes to the arena's
 * `oom` jump buffer, which the owner sets; without one the process aborts. */
#ifndef VP_BASE_ARENA_H
#define VP_BASE_ARENA_H

#include <setjmp.h>
#include <stddef.h>

struct vp_arena_chunk;

struct vp_arena {
    struct vp_arena_chunk *head; /* newest chunk */
    size_t used;                 /* bytes used in the newest chunk */
    size_t total_bytes;          /* bytes taken from the system */
    jmp_buf *oom;                /* where to go without memory; NULL: abort */
    void *(*take)(size_t n);     /* system allocator; NULL: malloc (tests make it fail) */
};

struct vp_arena_mark {
    struct vp_arena_chunk *head;
    size_t used;
};

/* Zeroed memory, aligned for any type. n may be 0. */
void *vp_arena_alloc(struct vp_arena *arena, size_t n);
/* count * size bytes, zeroed; an overflow of the product counts as no memory. */
void *vp_arena_array(struct vp_arena *arena, size_t count, size_t size);
/* A copy of n bytes of text with a terminating NUL. */
char *vp_arena_text(struct vp_arena *arena, const char *text, size_t n);
char *vp_arena_printf(struct vp_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct vp_arena_mark vp_arena_mark(const struct vp_arena *arena);
void vp_arena_rewind(struct vp_arena *arena, struct vp_arena_mark mark);
void vp_arena_free(struct vp_arena *arena);

#define VP_NEW(arena, type) ((type *)vp_arena_alloc((arena), sizeof(type)))
#define VP_NEW_ARRAY(arena, count, type) ((type *)vp_arena_array((arena), (count), sizeof(type)))

#endif
