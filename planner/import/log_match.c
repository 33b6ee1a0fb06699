#include "planner/import/log_match.h"

#include <string.h>

enum {
    MAX_SKIP = 240,  /* characters of a %* */
    BUCKETS = 8192,  /* of three-letter beginnings */
    FRACTION = 12,   /* digits behind the point that count */
    MAX_DIGITS = 18, /* of a number */
    WORD = 3         /* letters that decide */
};

/* ---- one pattern against one line ---- */

struct cursor {
    const char *at, *end;
    const char *begin;
    struct vp_log_capture *out;
    size_t count;
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* Digits with commas between groups of three; the digits behind the point. */
struct number {
    bool negative;
    uint64_t digits; /* all of them, without the point */
    uint64_t scale;  /* 10 to the digits behind the point */
};

static bool read_number(struct number *out, struct cursor *c, bool decimals) {
    const char *p = c->at;
    int digits = 0, behind = 0;
    *out = (struct number){.scale = 1};
    if (p < c->end && *p == '-') {
        out->negative = true;
        p++;
    }
    for (; p < c->end && digits < MAX_DIGITS; p++) {
        bool comma = *p == ',' && digits > 0 && p + 3 < c->end && is_digit(p[1]) &&
                     is_digit(p[2]) && is_digit(p[3]) && (p + 4 == c->end || !is_digit(p[4]));
        if (comma)
            continue;
        if (!is_digit(*p))
            break;
        out->digits = out->digits * 10 + (uint64_t)(*p - '0');
        digits++;
    }
    if (digits == 0)
        return false;
    if (decimals && p + 1 < c->end && *p == '.' && is_digit(p[1]))
        for (p++; p < c->end && is_digit(*p); p++)
            if (behind < FRACTION && digits + behind < MAX_DIGITS) {
                out->digits = out->digits * 10 + (uint64_t)(*p - '0');
                out->scale *= 10;
                behind++;
            }
    c->at = p;
    return true;
}

static bool keep_number(struct cursor *c, char kind, const struct number *n, uint64_t unit) {
    unsigned __int128 whole = (unsigned __int128)n->digits * unit;
    unsigned __int128 value = (whole + n->scale / 2) / n->scale;
    uint64_t step = unit / n->scale;
    if (value > INT64_MAX || c->count == VP_LOG_CAPTURES)
        return false;
    c->out[c->count++] =
        (struct vp_log_capture){.kind = kind,
                                .value = n->negative ? -(int64_t)value : (int64_t)value,
                                .step = step ? (int64_t)step : 1};
    return true;
}

static bool keep_text(struct cursor *c, char kind, const char *end) {
    if (c->count == VP_LOG_CAPTURES || end == c->at)
        return false;
    c->out[c->count++] =
        (struct vp_log_capture){.kind = kind, .text = c->at, .n = (size_t)(end - c->at)};
    c->at = end;
    return true;
}

static bool read_unit(uint64_t *out, struct cursor *c) {
    static const struct {
        const char *text;
        uint64_t bytes;
    } UNITS[] = {{"GiB", 1ULL << 30}, {"GB", 1ULL << 30},
                 {"MiB", 1ULL << 20}, {"MB", 1ULL << 20},
                 {"KiB", 1ULL << 10}, {"KB", 1ULL << 10},
                 {"TiB", 1ULL << 40}, {"TB", 1ULL << 40},
                 {"bytes", 1},        {"B", 1}};
    while (c->at < c->end && is_blank(*c->at))
        c->at++;
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++) {
        size_t n = strlen(UNITS[i].text);
        if ((size_t)(c->end - c->at) >= n && memcmp(c->at, UNITS[i].text, n) == 0) {
            c->at += n;
            *out = UNITS[i].bytes;
            return true;
        }
    }
    return false;
}

static uint64_t unit_of(char kind) {
    switch (kind) {
    case 'g':
        return UINT64_C(1) << 30;
    case 'm':
        return UINT64_C(1) << 20;
    case 'k':
        return UINT64_C(1) << 10;
    case 'd':
        return UINT64_C(1000000000);
    default:
        return 1;
    }
}

static bool ends_word(char c) { return is_blank(c) || strchr(",;()[]\"'|", c); }

static const char *word_end(const struct cursor *c) {
    const char *p = c->at;
    while (p < c->end && *p && !ends_word(*p))
        p++;
    return p;
}

static const char *alnum_end(const struct cursor *c) {
    const char *p = c->at;
    while (p < c->end && (is_digit(*p) || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z')))
        p++;
    return p;
}

static bool capture(struct cursor *c, char kind) {
    struct number number;
    uint64_t unit = unit_of(kind);
    if (kind == 'r')
        return keep_text(c, kind, c->end);
    if (kind == 'w' || kind == 'p')
        return keep_text(c, kind, word_end(c));
    if (kind == 'a')
        return keep_text(c, kind, alnum_end(c));
    if (!read_number(&number, c, kind != 'n' && kind != 'i' && kind != 'B'))
        return false;
    if (kind == 'b' && !read_unit(&unit, c))
        return false;
    return keep_number(c, strchr("nid", kind) ? kind : 'b', &number, unit);
}

/* Recursion is as deep as the pattern has %*. */
static bool match_here(struct cursor *c, const char *p) {
    for (; *p; p++) {
        if (*p == '^') {
            if (c->at != c->begin)
                return false;
        } else if (*p == '$' && !p[1]) {
            return c->at == c->end;
        } else if (*p == ' ') {
            if (c->at == c->end || !is_blank(*c->at))
                return false;
            while (c->at < c->end && is_blank(*c->at))
                c->at++;
        } else if (*p == '%' && p[1] == '*') {
            const char *from = c->at;
            size_t count = c->count;
            for (size_t skip = 0; skip <= MAX_SKIP && skip <= (size_t)(c->end - from); skip++) {
                c->at = from + skip;
                c->count = count;
                if (match_here(c, p + 2))
                    return true;
            }
            return false;
        } else if (*p == '%') {
            if (!capture(c, *++p))
                return false;
        } else if (c->at == c->end || *c->at++ != *p) {
            return false;
        }
    }
    return true;
}

bool vp_log_match(struct vp_log_capture out[VP_LOG_CAPTURES], size_t *count, size_t *end,
                  const char *pattern, const char *line, size_t n) {
    for (size_t i = 0; i <= n; i++) {
        struct cursor c = {.at = line + i, .end = line + n, .begin = line, .out = out};
        bool fixed = *pattern != '%' && *pattern != '^';
        if (fixed && (i == n || line[i] != *pattern))
            continue;
        if (match_here(&c, pattern)) {
            *count = c.count;
            *end = (size_t)(c.at - line);
            return true;
        }
    }
    return false;
}

/* ---- many patterns ---- */

struct anchor {
    const char *text;
    size_t n;
    int next; /* of the same bucket, -1 none */
};

struct vp_log_matcher {
    size_t count;
    struct anchor *anchor;
    int bucket[BUCKETS];
};

static unsigned bucket_of(const char *p) {
    unsigned a = (unsigned char)p[0], b = (unsigned char)p[1], c = (unsigned char)p[2];
    return (a << 8 ^ b << 4 ^ c) % BUCKETS;
}

/* The longest run without blanks and captures. */
static struct anchor longest_word(const char *pattern) {
    struct anchor best = {.text = pattern, .next = -1};
    const char *p = pattern;
    while (*p) {
        size_t n = strcspn(p, " %^$");
        if (n > best.n)
            best = (struct anchor){p, n, -1};
        p += n;
        if (*p == '%')
            p++;
        if (*p)
            p++;
    }
    return best;
}

struct vp_log_matcher *vp_log_matcher_make(struct vp_arena *arena, const char *const *patterns,
                                           size_t count) {
    struct vp_log_matcher *matcher = VP_NEW(arena, struct vp_log_matcher);
    matcher->count = count;
    matcher->anchor = VP_NEW_ARRAY(arena, count, struct anchor);
    for (size_t i = 0; i < BUCKETS; i++)
        matcher->bucket[i] = -1;
    for (size_t i = 0; i < count; i++) {
        struct anchor *a = &matcher->anchor[i];
        *a = longest_word(patterns[i]);
        if (a->n < WORD)
            continue; /* never tried; a test holds the table to it */
        unsigned b = bucket_of(a->text);
        a->next = matcher->bucket[b];
        matcher->bucket[b] = (int)i;
    }
    return matcher;
}

/* Into a sorted list without doubles; lines that match many are rare. */
static size_t insert(size_t *rows, size_t count, size_t most, size_t row) {
    size_t i = count;
    for (size_t k = 0; k < count; k++)
        if (rows[k] == row)
            return count;
    if (count == most)
        return count;
    for (; i > 0 && rows[i - 1] > row; i--)
        rows[i] = rows[i - 1];
    rows[i] = row;
    return count + 1;
}

size_t vp_log_matcher_find(const struct vp_log_matcher *matcher, size_t *rows, size_t most,
                           const char *line, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i + WORD <= n; i++)
        for (int r = matcher->bucket[bucket_of(line + i)]; r >= 0; r = matcher->anchor[r].next) {
            const struct anchor *a = &matcher->anchor[r];
            if (a->n <= n - i && memcmp(line + i, a->text, a->n) == 0)
                count = insert(rows, count, most, (size_t)r);
        }
    return count;
}
