#include "planner/doc/json.h"

#include <stdint.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/utf8.h"
#include "planner/doc/build.h"

/* Functions that read something return false after a fault that ends the reading. */
struct reader {
    struct vp_ctx *ctx;
    const char *name;
    const char *text, *p, *end; /* a NUL stands at end */
    const char *line_start;
    uint32_t line;
    size_t wide; /* bytes of this line before p that continue a character of several bytes */
    struct vp_items items;
    uint32_t nodes;
    bool faulty; /* a fault was reported after which reading went on */
};

/* The position of p. Columns count characters. */
static struct vp_pos here(const struct reader *r) {
    size_t bytes = (size_t)(r->p - r->line_start);
    return (struct vp_pos){r->name, r->line, (uint32_t)(bytes - r->wide + 1)};
}

/* The position of any place of the text, counted from its start. */
static struct vp_pos position(const struct reader *r, const char *at) {
    struct vp_pos pos = {r->name, 1, 1};
    for (const char *p = r->text; p < at; p++) {
        if (*p == '\n') {
            pos.line++;
            pos.column = 1;
        } else if (((unsigned char)*p & 0xC0) != 0x80) {
            pos.column++;
        }
    }
    return pos;
}

static bool fault(struct reader *r, const char *at, const char *what) {
    struct vp_pos pos = position(r, at);
    vp_diag_add(r->ctx->diags, VP_D_SYNTAX, &pos, "not valid JSON: %s", what);
    return false;
}

/* Something else than `expected` stands at p. */
static bool unexpected(struct reader *r, const char *expected) {
    struct vp_pos pos = position(r, r->p);
    unsigned char c = (unsigned char)*r->p;
    if (r->p == r->end)
        vp_diag_add(r->ctx->diags, VP_D_SYNTAX, &pos,
                    "not valid JSON: unexpected end of file, expected %s", expected);
    else if (c >= 0x80 && vp_utf8_length(r->p) == 0)
        return fault(r, r->p, "not valid UTF-8");
    else if (c > 0x20 && c < 0x7F)
        vp_diag_add(r->ctx->diags, VP_D_SYNTAX, &pos, "not valid JSON: expected %s, found \"%c\"",
                    expected, c);
    else
        vp_diag_add(r->ctx->diags, VP_D_SYNTAX, &pos,
                    "not valid JSON: expected %s, found the byte 0x%02x", expected, c);
    return false;
}

static void skip_spaces(struct reader *r) {
    for (; *r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'; r->p++) {
        if (*r->p == '\n') {
            r->line++;
            r->line_start = r->p + 1;
            r->wide = 0;
        }
    }
}

static bool too_long(struct reader *r, const char *from) {
    struct vp_pos pos = position(r, from);
    vp_diag_add(r->ctx->diags, VP_D_CAP, &pos, "text longer than the cap on its length, %d bytes",
                VP_DOC_MAX_TEXT_BYTES);
    return false;
}

/* ---- strings ---- */

static bool read_hex4(unsigned *out, const char *p) {
    unsigned v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        if (c >= '0' && c <= '9')
            v = v * 16 + (unsigned)(c - '0');
        else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
            v = v * 16 + (unsigned)((c | 0x20) - 'a') + 10;
        else
            return false;
    }
    *out = v;
    return true;
}

static char *put_utf8(char *to, unsigned c) {
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    }
    return to;
}

/* \uXXXX at p, or the pair that stands for one character beyond U+FFFF. */
static bool read_unicode_escape(struct reader *r, const char **p, char **to) {
    unsigned c, low;
    const char *from = *p;
    if (!read_hex4(&c, from + 2))
        return fault(r, from, "\\u is followed by four hexadecimal digits");
    *p += 6;
    if (c == 0)
        return fault(r, from, "text with a NUL character");
    if (c >= 0xD800 && c <= 0xDBFF) {
        if ((*p)[0] != '\\' || (*p)[1] != 'u' || !read_hex4(&low, *p + 2) || low < 0xDC00 ||
            low > 0xDFFF)
            return fault(r, from, "half of a surrogate pair");
        *p += 6;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    } else if (c >= 0xDC00 && c <= 0xDFFF) {
        return fault(r, from, "half of a surrogate pair");
    }
    *to = put_utf8(*to, c);
    return true;
}

/* The text from..end with its escapes resolved; never longer than written. */
static bool unescape(struct reader *r, const char **out, const char *from, const char *end) {
    static const char LETTERS[] = "\"\\/bfnrt", VALUES[] = "\"\\/\b\f\n\r\t";
    char *text = vp_arena_alloc(r->ctx->arena, (size_t)(end - from) + 1), *to = text;
    *out = text;
    while (from < end) {
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        const char *letter = from[1] ? strchr(LETTERS, from[1]) : NULL;
        if (letter) {
            *to++ = VALUES[letter - LETTERS];
            from += 2;
        } else if (from[1] != 'u') {
            return fault(r, from, "an unknown escape after a backslash");
        } else if (!read_unicode_escape(r, &from, &to)) {
            return false;
        }
    }
    return true;
}

/* The string whose opening quote is at p. */
static bool read_string(struct reader *r, const char **out) {
    const char *from = r->p + 1, *p = from;
    bool escapes = false;
    while (*p != '"') {
        unsigned char c = (unsigned char)*p;
        size_t n = 1;
        if (c == '\\') {
            escapes = true;
            n = p + 1 < r->end ? 2 : 1;
            if (n == 2 && ((unsigned char)p[1] < 0x20 || (unsigned char)p[1] >= 0x80))
                return fault(r, p, "an unknown escape after a backslash");
        } else if (c < 0x20) {
            return p == r->end ? fault(r, r->p, "unexpected end of file inside text")
                               : fault(r, p, "a control character inside text");
        } else if (c >= 0x80) {
            n = vp_utf8_length(p);
            if (n == 0)
                return fault(r, p, "not valid UTF-8");
            r->wide += n - 1;
        }
        p += n;
    }
    if (p - from > VP_DOC_MAX_TEXT_BYTES)
        return too_long(r, from);
    r->p = p + 1;
    if (escapes)
        return unescape(r, out, from, p);
    *out = vp_arena_text(r->ctx->arena, from, (size_t)(p - from));
    return true;
}

/* ---- numbers and words ---- */

static const char *skip_digits(const char *p) {
    while (*p >= '0' && *p <= '9')
        p++;
    return p;
}

static bool in_64_bits(const char *p, const char *end) {
    uint64_t v = 0, limit = INT64_MAX;
    if (*p == '-') {
        p++;
        limit++;
    }
    for (; p < end; p++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    return v <= limit;
}

/* Reading goes on after it: the faults behind it are reported in the same run. */
static void report_range(struct reader *r, const char *key, struct vp_pos pos) {
    vp_diag_add(r->ctx->diags, VP_D_SYNTAX, &pos, "%.200s%sinteger out of range of 64 bits",
                key ? key : "", key ? ": " : "");
    r->faulty = true;
}

static bool read_number(struct reader *r, struct vp_node *node, const char *key) {
    const char *from = r->p, *p = from + (*from == '-');
    const char *digits = p;
    p = skip_digits(p);
    if (p == digits)
        return r->p = p, unexpected(r, "a digit");
    if (*digits == '0' && p > digits + 1)
        return fault(r, from, "a number with a leading zero");
    node->kind = VP_NODE_INT;
    if (*p == '.') {
        node->kind = VP_NODE_REAL;
        digits = p + 1;
        p = skip_digits(digits);
        if (p == digits)
            return r->p = p, unexpected(r, "a digit after the decimal point");
    }
    if (*p == 'e' || *p == 'E') {
        node->kind = VP_NODE_REAL;
        digits = p + 1 + (p[1] == '+' || p[1] == '-');
        p = skip_digits(digits);
        if (p == digits)
            return r->p = p, unexpected(r, "a digit in the exponent");
    }
    if (p - from > VP_DOC_MAX_TEXT_BYTES)
        return too_long(r, from);
    if (node->kind == VP_NODE_INT && !in_64_bits(from, p))
        report_range(r, key, node->pos);
    node->text = vp_arena_text(r->ctx->arena, from, (size_t)(p - from));
    r->p = p;
    return true;
}

static bool is_word_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool read_word(struct reader *r, struct vp_node *node) {
    static const struct {
        const char *text;
        enum vp_node_kind kind;
    } WORDS[] = {
        {"null", VP_NODE_NULL}, {"true", VP_NODE_BOOL},     {"false", VP_NODE_BOOL},
        {"NaN", VP_NODE_REAL},  {"Infinity", VP_NODE_REAL}, {"-Infinity", VP_NODE_REAL},
    };
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        size_t n = strlen(WORDS[i].text);
        if (strncmp(r->p, WORDS[i].text, n) != 0 || is_word_character(r->p[n]))
            continue;
        node->kind = WORDS[i].kind;
        node->text = WORDS[i].text;
        r->p += n;
        return true;
    }
    return unexpected(r, "a value");
}

/* ---- lists and maps ---- */

static bool read_value(struct reader *r, struct vp_node **out, const char *key, int depth);

/* After an item: goes past a comma or the closing bracket. */
static bool read_separator(struct reader *r, bool *closed, char bracket, const char *expected) {
    skip_spaces(r);
    *closed = *r->p == bracket;
    if (!*closed && *r->p != ',')
        return unexpected(r, expected);
    r->p++;
    skip_spaces(r);
    if (!*closed && *r->p == bracket)
        return fault(r, r->p, "a comma before the closing bracket");
    return true;
}

static bool read_list(struct reader *r, struct vp_node *list, const char *key, int depth) {
    size_t first = r->items.count;
    list->kind = VP_NODE_LIST;
    r->p++;
    skip_spaces(r);
    bool closed = *r->p == ']';
    if (closed)
        r->p++;
    while (!closed) {
        struct vp_item item = {0};
        if (!read_value(r, &item.value, key, depth))
            return false;
        vp_items_push(r->ctx, &r->items, item);
        if (!read_separator(r, &closed, ']', "\",\" or \"]\" in a list"))
            return false;
    }
    vp_items_close(r->ctx, &r->items, first, list);
    return true;
}

static bool read_pair(struct reader *r, struct vp_item *item, int depth) {
    if (*r->p != '"')
        return unexpected(r, "a key in double quotes");
    item->key_pos = here(r);
    if (!read_string(r, &item->key))
        return false;
    skip_spaces(r);
    if (*r->p != ':')
        return unexpected(r, "\":\" after a key");
    r->p++;
    skip_spaces(r);
    return read_value(r, &item->value, item->key, depth);
}

static bool read_map(struct reader *r, struct vp_node *map, int depth) {
    size_t first = r->items.count;
    map->kind = VP_NODE_MAP;
    r->p++;
    skip_spaces(r);
    bool closed = *r->p == '}';
    if (closed)
        r->p++;
    while (!closed) {
        struct vp_item item = {0};
        if (!read_pair(r, &item, depth))
            return false;
        vp_items_push(r->ctx, &r->items, item);
        if (!read_separator(r, &closed, '}', "\",\" or \"}\" in a map"))
            return false;
    }
    if (!vp_items_check_keys(r->ctx, &r->items, first, r->items.count - first))
        r->faulty = true;
    vp_items_close(r->ctx, &r->items, first, map);
    return true;
}

/* key: of the nearest map entry around the value, for messages; NULL when there is none. */
static bool read_value(struct reader *r, struct vp_node **out, const char *key, int depth) {
    struct vp_pos pos = here(r);
    if (!vp_doc_count_node(r->ctx, &r->nodes, pos))
        return false;
    struct vp_node *node = vp_node_new(r->ctx, VP_NODE_NULL, pos);
    *out = node;
    switch (*r->p) {
    case '{':
    case '[':
        node->text = NULL;
        if (depth == VP_DOC_MAX_DEPTH)
            return vp_doc_too_deep(r->ctx, pos);
        return *r->p == '{' ? read_map(r, node, depth + 1) : read_list(r, node, key, depth + 1);
    case '"':
        node->kind = VP_NODE_TEXT;
        return read_string(r, &node->text);
    case '-':
        if (r->p[1] == 'I')
            return read_word(r, node);
        return read_number(r, node, key);
    default:
        if (*r->p >= '0' && *r->p <= '9')
            return read_number(r, node, key);
        return read_word(r, node);
    }
}

enum vp_status vp_json_read(struct vp_ctx *ctx, struct vp_node **out, struct vp_bytes text,
                            const char *name) {
    struct reader r = {.ctx = ctx, .name = name, .line = 1};
    r.p = text.data;
    r.end = text.data + text.size;
    if (vp_text_starts(r.p, "\xEF\xBB\xBF"))
        r.p += 3;
    r.text = r.line_start = r.p;
    *out = NULL;
    skip_spaces(&r);
    if (r.p == r.end) {
        fault(&r, r.p, "the text is empty");
        return VP_ERR_INPUT;
    }
    if (!read_value(&r, out, NULL, 0))
        return VP_ERR_INPUT;
    skip_spaces(&r);
    if (r.p != r.end) {
        fault(&r, r.p, "unexpected text after the end of the value");
        return VP_ERR_INPUT;
    }
    return r.faulty ? VP_ERR_INPUT : VP_OK;
}
