#include "planner/doc/yaml.h"

#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <yaml.h>

#include "planner/base/text.h"
#include "planner/doc/build.h"

enum {
    MAX_ANCHORS = 1000,  /* looked up one after the other */
    MAX_DIRECTIVES = 100 /* libyaml compares each %TAG with all before it */
};

struct anchor {
    const char *name;
    struct vp_node *node;
    uint32_t size; /* nodes that an alias stands for; 0: the node is not complete yet */
};

/* Functions that read something return false after a fault that ends the reading. */
struct reader {
    struct vp_ctx *ctx;
    const char *name;
    struct vp_bytes text;
    yaml_parser_t parser;
    yaml_event_t event; /* the current one, deleted when the next is taken */
    struct vp_items items;
    struct anchor anchors[MAX_ANCHORS];
    uint32_t anchor_count;
    uint32_t nodes, alias_nodes;
    bool faulty;    /* a fault was reported after which reading went on */
    bool no_memory; /* libyaml got none */
};

/* ---- kinds of plain scalars ---- */

static bool is_one_of(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static bool only(const char *text, const char *characters) {
    return *text && !text[strspn(text, characters)];
}

static bool is_real(const char *p) {
    static const char DIGITS[] = "0123456789";
    p += *p == '+' || *p == '-';
    size_t whole = strspn(p, DIGITS), part = 0;
    p += whole;
    if (*p == '.') {
        part = strspn(++p, DIGITS);
        p += part;
    }
    if (whole + part == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        return only(p, DIGITS);
    }
    return !*p;
}

enum vp_node_kind vp_yaml_scalar_kind(const char *text) {
    static const char *const NULLS[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const BOOLS[] = {"true", "True", "TRUE", "false", "False", "FALSE", NULL};
    static const char *const NOT_FINITE[] = {".inf", ".Inf", ".INF", "Infinity", NULL};
    static const char *const NO_NUMBER[] = {".nan", ".NaN", ".NAN", "NaN", NULL};
    const char *unsigned_text = text + (*text == '+' || *text == '-');
    if (is_one_of(text, NULLS))
        return VP_NODE_NULL;
    if (is_one_of(text, BOOLS))
        return VP_NODE_BOOL;
    if (only(unsigned_text, "0123456789"))
        return VP_NODE_INT;
    if (vp_text_starts(text, "0x") && only(text + 2, "0123456789abcdefABCDEF"))
        return VP_NODE_INT;
    if (vp_text_starts(text, "0o") && only(text + 2, "01234567"))
        return VP_NODE_INT;
    if (is_real(text) || is_one_of(unsigned_text, NOT_FINITE) || is_one_of(text, NO_NUMBER))
        return VP_NODE_REAL;
    return VP_NODE_TEXT;
}

/* ---- faults ---- */

static struct vp_pos at_mark(const struct reader *r, yaml_mark_t mark) {
    return (struct vp_pos){r->name, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1};
}

static struct vp_pos here(const struct reader *r) { return at_mark(r, r->event.start_mark); }

static bool fault(struct reader *r, struct vp_pos pos, const char *what) {
    vp_diag_add(r->ctx->diags, VP_D_SYNTAX, &pos, "not valid YAML: %s", what);
    return false;
}

static bool too_many(struct reader *r, struct vp_pos pos, const char *what, uint32_t cap) {
    vp_diag_add(r->ctx->diags, VP_D_CAP, &pos, "more %s than the cap on their count, %u", what,
                cap);
    return false;
}

static struct vp_pos at_offset(const struct reader *r, size_t offset) {
    struct vp_pos pos = {r->name, 1, 1};
    for (size_t i = 0; i < offset && i < r->text.size; i++) {
        if (r->text.data[i] == '\n') {
            pos.line++;
            pos.column = 1;
        } else if (((unsigned char)r->text.data[i] & 0xC0) != 0x80) {
            pos.column++;
        }
    }
    return pos;
}

/* The fault that libyaml found, in its words. */
static bool parser_fault(struct reader *r) {
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR) {
        r->no_memory = true;
        return false;
    }
    if (p->error == YAML_READER_ERROR) {
        struct vp_pos pos = at_offset(r, p->problem_offset);
        bool encoding = p->problem && strstr(p->problem, "UTF-8");
        return fault(r, pos, encoding ? "the text is not valid UTF-8" : p->problem);
    }
    struct vp_pos pos = at_mark(r, p->problem_mark);
    vp_diag_add(r->ctx->diags, VP_D_SYNTAX, &pos, "not valid YAML: %s%s%s",
                p->context ? p->context : "", p->context ? ", " : "",
                p->problem ? p->problem : "unknown fault");
    if (p->problem && strstr(p->problem, "cannot start any token"))
        vp_diag_hint(r->ctx->diags, "indent with spaces, not tabs; quote text that begins with @ ` "
                                    "or %%");
    return false;
}

static bool next(struct reader *r) {
    yaml_event_delete(&r->event);
    memset(&r->event, 0, sizeof r->event);
    return yaml_parser_parse(&r->parser, &r->event) ? true : parser_fault(r);
}

/* ---- nodes ---- */

static bool new_node(struct reader *r, struct vp_node **out, enum vp_node_kind kind) {
    struct vp_pos pos = here(r);
    if (!vp_doc_count_node(r->ctx, &r->nodes, pos))
        return false;
    *out = vp_node_new(r->ctx, kind, pos);
    return true;
}

/* Copies the value of the current scalar event. */
static bool scalar_text(struct reader *r, const char **out) {
    const char *value = (const char *)r->event.data.scalar.value;
    size_t n = r->event.data.scalar.length;
    struct vp_pos pos = here(r);
    if (n > VP_DOC_MAX_TEXT_BYTES) {
        vp_diag_add(r->ctx->diags, VP_D_CAP, &pos,
                    "text longer than the cap on its length, %d bytes", VP_DOC_MAX_TEXT_BYTES);
        return false;
    }
    if (memchr(value, '\0', n))
        return fault(r, pos, "text with a NUL character");
    *out = vp_arena_text(r->ctx->arena, value, n);
    return true;
}

/* Tags are ignored, except the two that say "this is text": !!str and the bare "!". */
static bool is_plain(const yaml_event_t *event) {
    const char *tag = (const char *)event->data.scalar.tag;
    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           !(tag && (strcmp(tag, YAML_STR_TAG) == 0 || strcmp(tag, "!") == 0));
}

static bool read_scalar(struct reader *r, struct vp_node **out) {
    if (!new_node(r, out, VP_NODE_TEXT) || !scalar_text(r, &(*out)->text))
        return false;
    if (is_plain(&r->event))
        (*out)->kind = vp_yaml_scalar_kind((*out)->text);
    return true;
}

/* The place of the new anchor in *index; MAX_ANCHORS when the current node has none. */
static bool add_anchor(struct reader *r, const yaml_char_t *name, uint32_t *index) {
    *index = MAX_ANCHORS;
    if (!name)
        return true;
    if (r->anchor_count == MAX_ANCHORS)
        return too_many(r, here(r), "anchors", MAX_ANCHORS);
    *index = r->anchor_count++;
    const char *text = (const char *)name;
    r->anchors[*index].name = vp_arena_text(r->ctx->arena, text, strlen(text));
    return true;
}

/* A deep copy, so that what is set in one place does not change the other. */
static bool copy_node(struct reader *r, struct vp_node **out, const struct vp_node *from,
                      struct vp_pos alias_pos, int depth) {
    struct vp_arena *arena = r->ctx->arena;
    if (!vp_node_is_scalar(from) && depth == VP_DOC_MAX_DEPTH)
        return vp_doc_too_deep(r->ctx, alias_pos);
    struct vp_node *to = VP_NEW(arena, struct vp_node);
    *to = *from;
    *out = to;
    if (from->count)
        to->items = VP_NEW_ARRAY(arena, from->count, struct vp_node *);
    for (uint32_t i = 0; i < from->count; i++)
        if (!copy_node(r, &to->items[i], from->items[i], alias_pos, depth + 1))
            return false;
    if (from->count && from->kind == VP_NODE_MAP) {
        to->keys = VP_NEW_ARRAY(arena, from->count, const char *);
        to->key_pos = VP_NEW_ARRAY(arena, from->count, struct vp_pos);
        memcpy(to->keys, from->keys, from->count * sizeof *to->keys);
        memcpy(to->key_pos, from->key_pos, from->count * sizeof *to->key_pos);
    }
    return true;
}

static bool read_alias(struct reader *r, struct vp_node **out, int depth) {
    const char *name = (const char *)r->event.data.alias.anchor;
    struct vp_pos pos = here(r);
    uint32_t i = r->anchor_count;
    while (i > 0 && strcmp(r->anchors[i - 1].name, name) != 0)
        i--;
    if (i == 0)
        return fault(r, pos, "an alias (*name) without an anchor (&name) before it");
    const struct anchor *anchor = &r->anchors[i - 1];
    if (anchor->size == 0)
        return fault(r, pos, "an alias inside the value that it stands for");
    r->alias_nodes += anchor->size; /* at most the cap plus the cap on nodes: no overflow */
    r->nodes += anchor->size;
    if (r->alias_nodes > VP_DOC_MAX_ALIAS_NODES)
        return too_many(r, pos, "values behind aliases", VP_DOC_MAX_ALIAS_NODES);
    return copy_node(r, out, anchor->node, pos, depth);
}

static bool read_node(struct reader *r, struct vp_node **out, int depth);

static bool read_list(struct reader *r, struct vp_node **out, int depth) {
    size_t first = r->items.count;
    if (!new_node(r, out, VP_NODE_LIST))
        return false;
    for (;;) {
        struct vp_item item = {0};
        if (!next(r))
            return false;
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            break;
        if (!read_node(r, &item.value, depth))
            return false;
        vp_items_push(r->ctx, &r->items, item);
    }
    vp_items_close(r->ctx, &r->items, first, *out);
    return true;
}

/* The value of "<<": what it stands for is added to the map once its own keys are known. */
static bool read_merge(struct reader *r, const struct vp_node **merge, struct vp_pos pos,
                       int depth) {
    struct vp_node *value;
    if (*merge) {
        vp_diag_add(r->ctx->diags, VP_D_DUPLICATE_KEY, &pos, "duplicate key \"<<\"");
        r->faulty = true;
    }
    if (!next(r))
        return false;
    if (r->event.type != YAML_ALIAS_EVENT)
        return fault(r, pos, "the merge key \"<<\" takes one alias of a map");
    if (!read_node(r, &value, depth))
        return false;
    if (value->kind != VP_NODE_MAP)
        return fault(r, pos, "the merge key \"<<\" takes one alias of a map");
    *merge = value;
    return true;
}

/* The key is the current event. */
static bool read_pair(struct reader *r, const struct vp_node **merge, int depth) {
    struct vp_item item = {.key_pos = here(r)};
    if (r->event.type != YAML_SCALAR_EVENT)
        return fault(r, item.key_pos, "a key must be text, not a list, a map or an alias");
    bool plain = is_plain(&r->event);
    if (r->event.data.scalar.anchor)
        return fault(r, item.key_pos, "an anchor on a key");
    if (!scalar_text(r, &item.key))
        return false;
    if (plain && strcmp(item.key, "<<") == 0)
        return read_merge(r, merge, item.key_pos, depth);
    if (!next(r) || !read_node(r, &item.value, depth))
        return false;
    vp_items_push(r->ctx, &r->items, item);
    return true;
}

static bool read_map(struct reader *r, struct vp_node **out, int depth) {
    const struct vp_node *merge = NULL;
    size_t first = r->items.count;
    if (!new_node(r, out, VP_NODE_MAP))
        return false;
    for (;;) {
        if (!next(r))
            return false;
        if (r->event.type == YAML_MAPPING_END_EVENT)
            break;
        if (!read_pair(r, &merge, depth))
            return false;
    }
    size_t own = r->items.count - first;
    for (uint32_t i = 0; merge && i < merge->count; i++)
        vp_items_push(r->ctx, &r->items,
                      (struct vp_item){merge->keys[i], merge->key_pos[i], merge->items[i]});
    if (!vp_items_check_keys(r->ctx, &r->items, first, own))
        r->faulty = true;
    vp_items_close(r->ctx, &r->items, first, *out);
    return true;
}

static const yaml_char_t *anchor_of(const yaml_event_t *event) {
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor;
    default:
        return NULL;
    }
}

/* The node that begins with the current event, inside `depth` lists and maps. */
static bool read_node(struct reader *r, struct vp_node **out, int depth) {
    bool ok;
    uint32_t anchor, nodes = r->nodes;
    if (r->event.type == YAML_ALIAS_EVENT)
        return read_alias(r, out, depth);
    if (!add_anchor(r, anchor_of(&r->event), &anchor))
        return false;
    if (r->event.type == YAML_SCALAR_EVENT)
        ok = read_scalar(r, out);
    else if (depth == VP_DOC_MAX_DEPTH)
        ok = vp_doc_too_deep(r->ctx, here(r));
    else if (r->event.type == YAML_SEQUENCE_START_EVENT)
        ok = read_list(r, out, depth + 1);
    else
        ok = read_map(r, out, depth + 1);
    if (ok && anchor < MAX_ANCHORS) {
        r->anchors[anchor].node = *out;
        r->anchors[anchor].size = r->nodes - nodes;
    }
    return ok;
}

/* Takes n events; the last one is then the current one. */
static bool advance(struct reader *r, int n) {
    while (n > 0 && next(r))
        n--;
    return n == 0;
}

static bool read_document(struct reader *r, struct vp_node **out) {
    if (!advance(r, 2)) /* the start of the stream, then of a document */
        return false;
    if (r->event.type == YAML_STREAM_END_EVENT)
        return new_node(r, out, VP_NODE_NULL);
    if (!next(r) || !read_node(r, out, 0))
        return false;
    if (!advance(r, 2)) /* the end of the document, then of the stream */
        return false;
    if (r->event.type != YAML_STREAM_END_EVENT)
        return fault(r, here(r), "several documents in one file");
    return true;
}

/* The arena leaves by longjmp when there is no memory; libyaml's memory must be freed before.
 * Returns false after such a jump. */
static bool guarded(struct reader *r, struct vp_node **out, bool *ok) {
    jmp_buf guard;
    jmp_buf *outer = r->ctx->arena->oom;
    bool enough = true;
    if (setjmp(guard) == 0) {
        r->ctx->arena->oom = &guard;
        *ok = read_document(r, out);
    } else {
        enough = false;
    }
    r->ctx->arena->oom = outer;
    return enough;
}

/* What libyaml does not refuse itself, or only slowly. */
static bool check_text(struct reader *r) {
    const char *nul = memchr(r->text.data, '\0', r->text.size);
    if (nul)
        return fault(r, at_offset(r, (size_t)(nul - r->text.data)), "a NUL byte");
    uint32_t directives = r->text.data[0] == '%';
    for (const char *p = r->text.data; (p = strstr(p, "\n%")) != NULL; p++)
        directives++;
    if (directives > MAX_DIRECTIVES)
        return too_many(r, (struct vp_pos){r->name, 1, 1}, "lines that begin with %",
                        MAX_DIRECTIVES);
    return true;
}

static enum vp_status report_no_memory(struct reader *r) {
    vp_diag_add(r->ctx->diags, VP_D_NO_MEMORY, NULL, "no memory left for reading %s", r->name);
    return VP_ERR_ENV;
}

static enum vp_status read_text(struct reader *r, struct vp_node **out) {
    bool ok = false;
    if (!check_text(r))
        return VP_ERR_INPUT;
    if (!yaml_parser_initialize(&r->parser))
        return report_no_memory(r);
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)r->text.data, r->text.size);
    bool enough = guarded(r, out, &ok);
    yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
    if (!enough)
        vp_arena_array(r->ctx->arena, SIZE_MAX, 2); /* goes on to the owner's jump */
    if (r->no_memory)
        return report_no_memory(r);
    return ok && !r->faulty ? VP_OK : VP_ERR_INPUT;
}

enum vp_status vp_yaml_read(struct vp_ctx *ctx, struct vp_node **out, struct vp_bytes text,
                            const char *name) {
    struct reader *r = VP_NEW(ctx->arena, struct reader);
    r->ctx = ctx;
    r->name = name;
    r->text = text;
    if (vp_text_starts(text.data, "\xEF\xBB\xBF"))
        r->text = (struct vp_bytes){text.data + 3, text.size - 3};
    *out = NULL;
    return read_text(r, out);
}
