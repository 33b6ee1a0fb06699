#include "planner/import/anchor_text.h"

#include <math.h>
#include <string.h>

/* ---- cutting ---- */

static size_t line_size(struct vp_bytes text, size_t at) {
    const char *end = memchr(text.data + at, '\n', text.size - at);
    return end ? (size_t)(end - (text.data + at)) : text.size - at;
}

static size_t indentation(const char *line, size_t size) {
    size_t n = 0;
    while (n < size && line[n] == ' ')
        n++;
    return n;
}

static bool is_key(const char *line, size_t size, size_t indent) {
    static const char KEY[] = "anchors: |";
    return size - indent == sizeof KEY - 1 && memcmp(line + indent, KEY, sizeof KEY - 1) == 0;
}

/* Lines from `at` on that stand further right than the key; where they end. */
static size_t block_end(struct vp_bytes text, size_t at, size_t indent, uint32_t *lines) {
    while (at < text.size) {
        size_t size = line_size(text, at);
        if (indentation(text.data + at, size) <= indent)
            break;
        at += size + (at + size < text.size);
        ++*lines;
    }
    return at;
}

struct vp_bytes vp_anchor_text_cut(struct vp_ctx *ctx, struct vp_anchor_texts *out,
                                   struct vp_bytes profile) {
    char *kept = vp_arena_alloc(ctx->arena, profile.size + 1);
    size_t n = 0;
    uint32_t line = 1;
    *out = (struct vp_anchor_texts){
        VP_NEW_ARRAY(ctx->arena, VP_ANCHOR_TEXT_MOST, struct vp_anchor_text), 0};
    for (size_t at = 0; at < profile.size; line++) {
        size_t size = line_size(profile, at), indent = indentation(profile.data + at, size);
        bool key = is_key(profile.data + at, size, indent);
        size += at + size < profile.size; /* its end */
        memcpy(kept + n, profile.data + at, size);
        n += size;
        at += size;
        if (!key || out->count == VP_ANCHOR_TEXT_MOST)
            continue;
        uint32_t lines = 0;
        size_t end = block_end(profile, at, indent, &lines);
        out->items[out->count++] = (struct vp_anchor_text){line, {profile.data + at, end - at}};
        memset(kept + n, '\n', lines);
        n += lines;
        line += lines;
        at = end;
    }
    return (struct vp_bytes){kept, n};
}

const struct vp_anchor_text *vp_anchor_text_of(const struct vp_anchor_texts *texts, uint32_t line) {
    for (uint32_t i = 0; i < texts->count; i++)
        if (texts->items[i].line == line)
            return &texts->items[i];
    return NULL;
}

/* ---- reading ---- */

uint32_t vp_anchor_text_lines(struct vp_bytes text) {
    uint32_t lines = 0;
    for (size_t at = 0; at < text.size; lines++)
        at += line_size(text, at) + 1;
    return lines;
}

/* The next whole number of a line; false: there is none, or it is beyond any size. */
static bool next_number(int64_t *out, const char **p, const char *end) {
    static const int64_t MOST = INT64_C(1000000000000);
    const char *at = *p;
    int64_t value = 0;
    while (at < end && *at == ' ')
        at++;
    bool negative = at < end && *at == '-';
    at += negative;
    const char *digits = at;
    for (; at < end && *at >= '0' && *at <= '9' && value <= MOST; at++)
        value = 10 * value + (*at - '0');
    *p = at;
    *out = negative ? -value : value;
    return at > digits && value <= MOST;
}

static bool read_line(struct vp_anchor *out, uint32_t sizes, const char *p, const char *end) {
    int64_t value = 0;
    for (uint32_t i = 0; i < sizes; i++) {
        if (!next_number(&value, &p, end) || value < 1)
            return false;
        out->at[i] = log2f((float)value);
    }
    if (!next_number(&value, &p, end))
        return false;
    out->log_ratio = (float)value / 1000;
    while (p < end && *p == ' ')
        p++;
    return p == end;
}

uint32_t vp_anchor_text_read(struct vp_anchor *out, enum vp_form form, struct vp_bytes text) {
    uint32_t line = 0;
    for (size_t at = 0; at < text.size;) {
        size_t size = line_size(text, at);
        const char *start = text.data + at;
        if (!read_line(&out[line++], vp_shape_sizes(form), start, start + size))
            return line;
        at += size + 1;
    }
    return 0;
}
