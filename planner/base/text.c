#include "planner/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ctype.h depends on the locale; names here are ASCII, other bytes stand for themselves. */
static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static void reserve(struct vp_buf *buf, size_t n) {
    size_t need;
    if (__builtin_add_overflow(buf->size, n, &need) || __builtin_add_overflow(need, 1, &need))
        need = SIZE_MAX; /* the arena reports that there is no such memory */
    if (need <= buf->capacity)
        return;
    size_t capacity = buf->capacity ? buf->capacity : 64;
    while (capacity < need)
        capacity = capacity > SIZE_MAX / 2 ? SIZE_MAX : capacity * 2;
    char *data = vp_arena_alloc(buf->arena, capacity);
    if (buf->size)
        memcpy(data, buf->data, buf->size);
    buf->data = data;
    buf->capacity = capacity;
}

void vp_buf_add_n(struct vp_buf *buf, const char *text, size_t n) {
    reserve(buf, n);
    if (n)
        memcpy(buf->data + buf->size, text, n);
    buf->size += n;
    buf->data[buf->size] = '\0';
}

void vp_buf_add(struct vp_buf *buf, const char *text) { vp_buf_add_n(buf, text, strlen(text)); }

void vp_buf_printf(struct vp_buf *buf, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0)
        return;
    reserve(buf, (size_t)n);
    va_start(args, format);
    vsnprintf(buf->data + buf->size, (size_t)n + 1, format, args);
    va_end(args);
    buf->size += (size_t)n;
}

const char *vp_buf_text(const struct vp_buf *buf) { return buf->data ? buf->data : ""; }

bool vp_text_eq(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

bool vp_text_starts(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool vp_text_ends(const char *text, const char *suffix) {
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && memcmp(text + n - m, suffix, m) == 0;
}

static const char *skip_separators(const char *p) {
    while (*p == ' ' || *p == '-' || *p == '_')
        p++;
    return p;
}

const char *vp_text_file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool vp_name_eq(const char *a, const char *b) {
    if (!a || !b)
        return a == b;
    for (;;) {
        a = skip_separators(a);
        b = skip_separators(b);
        if (lower(*a) != lower(*b))
            return false;
        if (!*a)
            return true;
        a++;
        b++;
    }
}

char *vp_name_reduce(struct vp_arena *arena, const char *name) {
    char *out = vp_arena_alloc(arena, strlen(name) + 1);
    size_t n = 0;
    for (const char *p = skip_separators(name); *p; p = skip_separators(p + 1))
        out[n++] = lower(*p);
    return out;
}

enum { MAX_WORD = 63 }; /* longer words are no typing mistakes of a key */

/* Case and the choice between '-' and '_' are not what makes two words differ. */
static char fold(char c) { return c == '-' ? '_' : lower(c); }

/* Optimal string alignment: insertions, deletions, replacements and swaps of neighbours. */
static size_t edit_distance(const char *a, size_t n, const char *b, size_t m) {
    size_t row[3][MAX_WORD + 1];
    for (size_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3], *before = row[(i + 2) % 3], *two_before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            bool same = fold(a[i - 1]) == fold(b[j - 1]);
            size_t d = before[j - 1] + (same ? 0 : 1);
            if (before[j] + 1 < d)
                d = before[j] + 1;
            if (now[j - 1] + 1 < d)
                d = now[j - 1] + 1;
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
                fold(a[i - 2]) == fold(b[j - 1]) && two_before[j - 2] + 1 < d)
                d = two_before[j - 2] + 1;
            now[j] = d;
        }
    }
    return row[n % 3][m];
}

const char *vp_text_nearest(const char *word, const char *const *candidates, size_t count) {
    size_t n = strlen(word);
    const char *best = NULL;
    size_t best_distance = n / 3 + 1;
    if (n > MAX_WORD)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t m = strlen(candidates[i]);
        if (m > MAX_WORD)
            continue;
        size_t d = edit_distance(word, n, candidates[i], m);
        if (d < best_distance) {
            best = candidates[i];
            best_distance = d;
        }
    }
    return best;
}

bool vp_text_glob(const char *pattern, const char *text) {
    const char *tail = strrchr(pattern, '*'), *star = NULL, *after_star = NULL;
    if (tail && !strchr(tail, '?') && !vp_text_ends(text, tail + 1))
        return false; /* no way to end; this mostly decides */
    /* Going back to the last '*' only is enough: an earlier one could not match more. */
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            after_star = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++after_star;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}
