#include "api/where.h"

#include <math.h>
#include <string.h>

#include "planner/base/text.h"

enum op {
    OP_VALUE,
    OP_FIELD,
    OP_NOT,
    OP_OR,
    OP_AND,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_AT_MOST,
    OP_AT_LEAST,
    OP_BELOW,
    OP_ABOVE,
    OP_PLUS,
    OP_MINUS,
    OP_TIMES,
    OP_OVER,
    OP_REST
};

struct value {
    double number; /* NaN: a text */
    const char *text;
};

struct node {
    enum op op;
    struct value value; /* OP_VALUE */
    size_t field;       /* OP_FIELD: place among the settings */
    const struct node *left, *right;
};

struct vp_where {
    const struct node *root;
};

/* Binary operators by how tightly they bind; longer ones first. */
static const struct {
    const char *text;
    enum op op;
    int level;
} OPERATORS[] = {{"||", OP_OR, 0},      {"&&", OP_AND, 1},     {"==", OP_EQUAL, 2},
                 {"!=", OP_UNEQUAL, 2}, {"<=", OP_AT_MOST, 2}, {">=", OP_AT_LEAST, 2},
                 {"<", OP_BELOW, 2},    {">", OP_ABOVE, 2},    {"+", OP_PLUS, 3},
                 {"-", OP_MINUS, 3},    {"*", OP_TIMES, 4},    {"/", OP_OVER, 4},
                 {"%", OP_REST, 4}};
enum { OPERATOR_COUNT = sizeof OPERATORS / sizeof *OPERATORS, TIGHTEST = 4, MOST_DEPTH = 64 };

struct reading {
    struct vp_ctx *ctx;
    const char *text, *at;
    const struct vp_grid *grid;
    const struct vp_scenario *base;
    int depth;
    bool failed;
};

/* ---- values ---- */

static struct value value_of(const char *text) {
    return (struct value){vp_grid_number(text), text};
}

static struct value number(double n) { return (struct value){n, NULL}; }

static struct value truth(bool b) { return number(b); }

static bool is_true(struct value v) {
    return isnan(v.number) ? vp_text_eq(v.text, "true") : v.number != 0;
}

/* ---- reading ---- */

static const struct node *fail(struct reading *r, const char *at, const char *message) {
    struct vp_pos pos = {vp_arena_printf(r->ctx->arena, "--where %s", r->text), 1,
                         (uint32_t)(at - r->text) + 1};
    if (!r->failed) {
        vp_diag_add(r->ctx->diags, VP_D_BAD_OPTION, &pos, "%s", message);
        vp_diag_hint(r->ctx->diags,
                     "for example --where 'parallel.tensor * parallel.pipeline <= 8'");
    }
    r->failed = true;
    return NULL;
}

static struct node *make(struct reading *r, enum op op, const struct node *left,
                         const struct node *right) {
    struct node *node = VP_NEW(r->ctx->arena, struct node);
    *node = (struct node){.op = op, .left = left, .right = right};
    return node;
}

static void skip_blanks(struct reading *r) {
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n')
        r->at++;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/* A field: one that varies, or one of the base. NULL: the word is none. */
static const struct node *field_node(struct reading *r, const char *word) {
    for (size_t i = 0; i < r->grid->field_count; i++) {
        if (!vp_text_eq(vp_grid_path(r->grid, i), word))
            continue;
        struct node *node = make(r, OP_FIELD, NULL, NULL);
        node->field = i;
        return node;
    }
    enum vp_engine_kind engine = r->base ? r->base->engine.kind : VP_ENGINE_VLLM;
    enum vp_field field = vp_field_find_for(engine, word);
    if (field == VP_FIELD_COUNT)
        return NULL;
    struct node *node = make(r, OP_VALUE, NULL, NULL);
    node->value = r->base ? value_of(vp_field_value(r->ctx->arena, r->base, field))
                          : (struct value){(double)NAN, "null"};
    return node;
}

static const struct node *read_word(struct reading *r) {
    const char *begin = r->at;
    while (is_word(*r->at))
        r->at++;
    const char *word = vp_arena_text(r->ctx->arena, begin, (size_t)(r->at - begin));
    const struct node *field = field_node(r, word);
    if (field)
        return field;
    bool digit = *word >= '0' && *word <= '9';
    struct node *node = make(r, OP_VALUE, NULL, NULL);
    node->value = value_of(word);
    if (!digit && strchr(word, '.'))
        return fail(r, begin,
                    vp_arena_printf(r->ctx->arena,
                                    "no field is called %.100s (a text stands in quotes)", word));
    if (digit && isnan(node->value.number))
        return fail(
            r, begin,
            vp_arena_printf(r->ctx->arena, "%.100s is no number (a text stands in quotes)", word));
    return node;
}

static const struct node *read_quoted(struct reading *r) {
    const char *begin = r->at++, *end = strchr(r->at, *begin);
    if (!end)
        return fail(r, begin, "the quotes are not closed");
    struct node *node = make(r, OP_VALUE, NULL, NULL);
    node->value =
        (struct value){(double)NAN, vp_arena_text(r->ctx->arena, r->at, (size_t)(end - r->at))};
    r->at = end + 1;
    return node;
}

static const struct node *read_level(struct reading *r, int level);

static const struct node *read_operand(struct reading *r) {
    skip_blanks(r);
    const char *begin = r->at;
    if (r->depth >= MOST_DEPTH)
        return fail(r, begin, "more than 64 parentheses within each other");
    if (*begin == '!' || *begin == '(') {
        r->at++;
        r->depth++;
        const struct node *inner = *begin == '!' ? read_operand(r) : read_level(r, 0);
        r->depth--;
        if (*begin == '!' || r->failed)
            return r->failed ? NULL : make(r, OP_NOT, inner, NULL);
        skip_blanks(r);
        if (*r->at != ')')
            return fail(r, r->at, "')' is missing");
        r->at++;
        return inner;
    }
    if (*begin == '"' || *begin == '\'')
        return read_quoted(r);
    if (is_word(*begin))
        return read_word(r);
    return fail(r, begin,
                *begin ? "a field or a value is wanted here"
                       : "the expression ends where a field or a value is wanted");
}

static int operator_at(const struct reading *r, int level) {
    for (int i = 0; i < OPERATOR_COUNT; i++)
        if (vp_text_starts(r->at, OPERATORS[i].text))
            return OPERATORS[i].level == level ? i : -1;
    return -1;
}

static const struct node *read_level(struct reading *r, int level) {
    const struct node *left = level > TIGHTEST ? read_operand(r) : read_level(r, level + 1);
    while (left && level <= TIGHTEST) {
        skip_blanks(r);
        int i = operator_at(r, level);
        if (i < 0)
            return left;
        r->at += strlen(OPERATORS[i].text);
        const struct node *right = read_level(r, level + 1);
        left = right ? make(r, OPERATORS[i].op, left, right) : NULL;
    }
    return left;
}

enum vp_status vp_where_read(struct vp_ctx *ctx, const struct vp_where **out, const char *text,
                             const struct vp_grid *grid, const struct vp_scenario *base) {
    struct reading r = {.ctx = ctx, .text = text, .at = text, .grid = grid, .base = base};
    struct vp_where *where = VP_NEW(ctx->arena, struct vp_where);
    where->root = read_level(&r, 0);
    *out = where;
    skip_blanks(&r);
    if (!r.failed && *r.at)
        fail(&r, r.at, *r.at == '=' ? "'=' compares as '=='" : "an operator is wanted here");
    return r.failed ? VP_ERR_INPUT : VP_OK;
}

/* ---- holding ---- */

static struct value eval(const struct node *node, const struct vp_setting *settings);

static bool equal(struct value a, struct value b) {
    if (!isnan(a.number) && !isnan(b.number))
        return a.number == b.number;
    return isnan(a.number) && isnan(b.number) && a.text && b.text && vp_name_eq(a.text, b.text);
}

static struct value combine(enum op op, struct value a, struct value b) {
    switch (op) {
    case OP_AT_MOST:
        return truth(a.number <= b.number);
    case OP_AT_LEAST:
        return truth(a.number >= b.number);
    case OP_BELOW:
        return truth(a.number < b.number);
    case OP_ABOVE:
        return truth(a.number > b.number);
    case OP_PLUS:
        return number(a.number + b.number);
    case OP_MINUS:
        return number(a.number - b.number);
    case OP_TIMES:
        return number(a.number * b.number);
    case OP_OVER:
        return number(b.number != 0 ? a.number / b.number : (double)NAN);
    case OP_REST:
        return number(b.number != 0 ? fmod(a.number, b.number) : (double)NAN);
    case OP_EQUAL:
        return truth(equal(a, b));
    case OP_UNEQUAL:
        return truth(!equal(a, b));
    default:
        return number((double)NAN);
    }
}

static struct value eval(const struct node *node, const struct vp_setting *settings) {
    switch (node->op) {
    case OP_VALUE:
        return node->value;
    case OP_FIELD:
        return value_of(settings[node->field].value);
    case OP_NOT:
        return truth(!is_true(eval(node->left, settings)));
    case OP_AND:
        return truth(is_true(eval(node->left, settings)) && is_true(eval(node->right, settings)));
    case OP_OR:
        return truth(is_true(eval(node->left, settings)) || is_true(eval(node->right, settings)));
    default:
        return combine(node->op, eval(node->left, settings), eval(node->right, settings));
    }
}

bool vp_where_holds(const struct vp_where *where, const struct vp_setting *settings) {
    return is_true(eval(where->root, settings));
}
