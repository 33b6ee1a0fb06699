#include "api/yaml_writer.h"

#include <math.h>
#include <string.h>

#include "planner/base/utf8.h"
#include "planner/doc/yaml.h"

enum { WIDTH = 100, STEP = 2, MAX_PLAIN_KEY = 128 };

static void add_spaces(struct vp_buf *out, int n) { vp_buf_printf(out, "%*s", n, ""); }

static size_t column(const struct vp_buf *out) {
    size_t n = 0;
    while (n < out->size && out->data[out->size - 1 - n] != '\n')
        n++;
    return n;
}

/* ---- scalars ---- */

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Words that YAML 1.1 takes for true and false; other readers than ours do. */
static bool is_old_bool(const char *text) {
    static const char *const WORDS[] = {"y", "n", "yes", "no", "on", "off"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (vp_name_eq(text, WORDS[i]))
            return true;
    return false;
}

/* Narrower than YAML: what every reader takes for the same text, in block and in flow style. */
static bool is_plain(const char *text) {
    if (!is_letter(text[0]) && text[0] != '/')
        return false;
    for (const char *p = text; *p; p++)
        if (!is_letter(*p) && !is_digit(*p) && !strchr("./+-*", *p))
            return false;
    return vp_yaml_scalar_kind(text) == VP_NODE_TEXT && !is_old_bool(text);
}

/* Characters that YAML does not allow as they are, or takes for the end of a line. */
static bool is_escaped(uint32_t c) {
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF ||
           c == 0xFFFE || c == 0xFFFF;
}

void vp_yaml_write_text(struct vp_buf *out, const char *text) {
    if (is_plain(text)) {
        vp_buf_add(out, text);
        return;
    }
    vp_buf_add(out, "\"");
    for (size_t n; *text; text += n) {
        n = vp_utf8_length(text);
        uint32_t c = n ? vp_utf8_decode(text, n) : 0xFFFD; /* readers refuse what is no UTF-8 */
        if (c == '"' || c == '\\')
            vp_buf_printf(out, "\\%c", (char)c);
        else if (n == 0 || is_escaped(c))
            vp_buf_printf(out, "\\u%04X", (unsigned)c);
        else
            vp_buf_add_n(out, text, n);
        n = n ? n : 1;
    }
    vp_buf_add(out, "\"");
}

/* As it was written; with a point and a sign in front of an exponent, without which readers of
 * YAML 1.1 take "1e5" for text. */
static void write_real(struct vp_buf *out, const struct vp_node *node) {
    double v;
    if (vp_node_real(&v, node) && !isfinite(v)) {
        vp_buf_add(out, isnan(v) ? ".nan" : v > 0 ? ".inf" : "-.inf");
        return;
    }
    const char *exponent = strpbrk(node->text, "eE");
    size_t n = exponent ? (size_t)(exponent - node->text) : strlen(node->text);
    vp_buf_add_n(out, node->text, n);
    if (!exponent)
        return;
    vp_buf_printf(out, "%se%s%s", strchr(node->text, '.') ? "" : ".0",
                  is_digit(exponent[1]) ? "+" : "", exponent + 1);
}

static void write_scalar(struct vp_buf *out, const struct vp_node *node) {
    bool yes;
    switch (node->kind) {
    case VP_NODE_NULL:
        vp_buf_add(out, "null");
        break;
    case VP_NODE_BOOL:
        vp_buf_add(out, vp_node_bool(&yes, node) && yes ? "true" : "false");
        break;
    case VP_NODE_REAL:
        write_real(out, node);
        break;
    case VP_NODE_TEXT:
        vp_yaml_write_text(out, node->text);
        break;
    default: /* an integer as it was written */
        vp_buf_add(out, node->text);
        break;
    }
}

/* A long key is written in the form that has no limit; libyaml allows 1024 characters else. */
static void write_key(struct vp_buf *out, const char *key, int indent) {
    if (strlen(key) <= MAX_PLAIN_KEY) {
        vp_yaml_write_text(out, key);
    } else {
        vp_buf_add(out, "? ");
        vp_yaml_write_text(out, key);
        vp_buf_add(out, "\n");
        add_spaces(out, indent);
    }
    vp_buf_add(out, ":");
}

/* ---- flow style ---- */

static bool has_only_scalars(const struct vp_node *node) {
    for (uint32_t i = 0; i < node->count; i++)
        if (!vp_node_is_scalar(node->items[i]))
            return false;
    return true;
}

static const char *entry_text(struct vp_buf *out, const struct vp_node *node, uint32_t i) {
    struct vp_buf entry = {.arena = out->arena};
    if (node->kind == VP_NODE_MAP) {
        vp_yaml_write_text(&entry, node->keys[i]);
        vp_buf_add(&entry, ": ");
    }
    write_scalar(&entry, node->items[i]);
    return vp_buf_text(&entry);
}

/* [a, b] or {a: 1, b: 2}; goes on in the next line, at `hang`, before a line becomes too long. */
static void write_flow(struct vp_buf *out, const struct vp_node *node, int hang) {
    bool map = node->kind == VP_NODE_MAP;
    size_t used = column(out) + 1;
    vp_buf_add(out, map ? "{" : "[");
    for (uint32_t i = 0; i < node->count; i++) {
        const char *entry = entry_text(out, node, i);
        size_t n = strlen(entry) + 1; /* with the comma or bracket behind it */
        if (i > 0 && used + 1 + n > WIDTH) {
            vp_buf_add(out, "\n");
            add_spaces(out, hang);
            used = (size_t)hang;
        } else if (i > 0) {
            vp_buf_add(out, " ");
            used++;
        }
        vp_buf_printf(out, "%s%s", entry, i + 1 < node->count ? "," : "");
        used += n;
    }
    vp_buf_add(out, map ? "}" : "]");
}

/* Lists of scalars always; maps of scalars that fit on the line. */
static bool is_flow(struct vp_buf *out, const struct vp_node *node) {
    if (!has_only_scalars(node))
        return false;
    if (node->kind == VP_NODE_LIST || node->count == 0)
        return true;
    size_t size = column(out) + 2;
    for (uint32_t i = 0; i < node->count && size <= WIDTH; i++) {
        if (strlen(node->keys[i]) > MAX_PLAIN_KEY)
            return false;
        size += strlen(entry_text(out, node, i)) + 2;
    }
    return size <= WIDTH;
}

/* ---- block style ---- */

static void write_list(struct vp_buf *out, const struct vp_node *list, int indent);
static void write_entries(struct vp_buf *out, const struct vp_node *map, int indent);

/* Behind "key:" of an entry that stands at `indent`. Ends the line. */
static void write_value(struct vp_buf *out, const struct vp_node *node, int indent) {
    if (vp_node_is_scalar(node)) {
        vp_buf_add(out, " ");
        write_scalar(out, node);
        vp_buf_add(out, "\n");
    } else if (is_flow(out, node)) {
        vp_buf_add(out, " ");
        write_flow(out, node, indent + STEP);
        vp_buf_add(out, "\n");
    } else if (node->kind == VP_NODE_LIST) {
        vp_buf_add(out, "\n");
        write_list(out, node, indent + STEP);
    } else {
        vp_buf_add(out, "\n");
        vp_yaml_write_map(out, node, indent + STEP);
    }
}

/* Behind "- " of an item at `indent`. */
static void write_item(struct vp_buf *out, const struct vp_node *node, int indent) {
    if (node->kind == VP_NODE_MAP && node->count && !is_flow(out, node)) {
        vp_buf_add(out, " ");
        write_entries(out, node, indent + STEP);
    } else {
        write_value(out, node, indent);
    }
}

static void write_list(struct vp_buf *out, const struct vp_node *list, int indent) {
    for (uint32_t i = 0; i < list->count; i++) {
        add_spaces(out, indent);
        vp_buf_add(out, "-");
        write_item(out, list->items[i], indent);
    }
}

/* The first entry goes on where the line stands, the others begin at `indent`. */
static void write_entries(struct vp_buf *out, const struct vp_node *map, int indent) {
    for (uint32_t i = 0; i < map->count; i++) {
        if (i > 0)
            add_spaces(out, indent);
        write_key(out, map->keys[i], indent);
        write_value(out, map->items[i], indent);
    }
}

void vp_yaml_write_map(struct vp_buf *out, const struct vp_node *map, int indent) {
    if (map->count)
        add_spaces(out, indent);
    write_entries(out, map, indent);
}
