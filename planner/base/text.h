/* Strings: a growing buffer in an arena, comparing names, "did you mean". */
#ifndef VP_BASE_TEXT_H
#define VP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/base/arena.h"

struct vp_buf {
    struct vp_arena *arena;
    char *data; /* NUL-terminated once anything was added; NULL when empty */
    size_t size, capacity;
};

void vp_buf_add(struct vp_buf *buf, const char *text);
void vp_buf_add_n(struct vp_buf *buf, const char *text, size_t n);
void vp_buf_printf(struct vp_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Never NULL. */
const char *vp_buf_text(const struct vp_buf *buf);

bool vp_text_eq(const char *a, const char *b); /* NULL equals only NULL */
bool vp_text_starts(const char *text, const char *prefix);
bool vp_text_ends(const char *text, const char *suffix);
/* What stands behind the last slash of a path. */
const char *vp_text_file_name(const char *path);
/* Equal when case, spaces, dashes and underscores are left out. */
bool vp_name_eq(const char *a, const char *b);
/* The reduced form in which vp_name_eq compares, in the arena. */
char *vp_name_reduce(struct vp_arena *arena, const char *name);
/* The candidate nearest to `word`, or NULL when none is near (edit distance up to a third of the
 * length, transpositions count one). */
const char *vp_text_nearest(const char *word, const char *const *candidates, size_t count);
/* Glob with '*' (any run) and '?' (one character). */
bool vp_text_glob(const char *pattern, const char *text);

#endif
