/* A pattern is parsed into nodes, those are written out as the program of a small machine, and the
 * machine follows all ways through the program at once (Thompson's method): no backtracking. */
#include "planner/import/regex.h"

#include <stdint.h>
#include <string.h>

enum { NO_LIMIT = -1, MAX_AHEAD = 3 /* look-aheads in look-aheads */ };

/* ---- nodes ---- */

enum node_kind { N_SET, N_START, N_END, N_WORD, N_NOT_WORD, N_GROUP, N_AHEAD, N_NOT_AHEAD };

struct set {
    uint64_t bits[4]; /* one per byte value */
};

/* One element of a sequence, with its repetition. */
struct node {
    enum node_kind kind;
    int min, max;
    struct set set;        /* N_SET */
    struct branch *branch; /* N_GROUP and look-aheads: alternatives */
    struct node *next;
};

struct branch {
    struct node *first;
    struct branch *next;
};

struct parser {
    struct vp_arena *arena;
    const char *p;
    int nesting, aheads;
    const char *why;
};

static void fail(struct parser *parser, const char *why) {
    if (!parser->why)
        parser->why = why;
}

static void set_add(struct set *set, unsigned char from, unsigned char to) {
    for (unsigned c = from; c <= to; c++)
        set->bits[c / 64] |= UINT64_C(1) << (c % 64);
}

static bool set_has(const struct set *set, unsigned char c) {
    return set->bits[c / 64] >> (c % 64) & 1;
}

static void set_invert(struct set *set) {
    for (int i = 0; i < 4; i++)
        set->bits[i] = ~set->bits[i];
}

static void set_join(struct set *set, const struct set *other) {
    for (int i = 0; i < 4; i++)
        set->bits[i] |= other->bits[i];
}

static struct set word_set(void) {
    struct set set = {{0}};
    set_add(&set, 'a', 'z');
    set_add(&set, 'A', 'Z');
    set_add(&set, '0', '9');
    set_add(&set, '_', '_');
    return set;
}

/* "\d" and its like; false when c names no class. */
static bool class_set(struct set *out, char c) {
    struct set set = {{0}};
    switch (c) {
    case 'd':
    case 'D':
        set_add(&set, '0', '9');
        break;
    case 'w':
    case 'W':
        set = word_set();
        break;
    case 's':
    case 'S':
        set_add(&set, '\t', '\r');
        set_add(&set, ' ', ' ');
        break;
    default:
        return false;
    }
    if (c < 'a')
        set_invert(&set);
    *out = set;
    return true;
}

static bool is_word(char c) {
    struct set set = word_set();
    return set_has(&set, (unsigned char)c);
}

/* The character that "\c" stands for; letters and digits have meanings that are not supported. */
static unsigned char escaped(struct parser *parser, char c) {
    if (c == '\0')
        fail(parser, "ends in a backslash");
    else if (c == 'n' || c == 't')
        return c == 'n' ? '\n' : '\t';
    else if (is_word(c) && c != '_')
        fail(parser, "an escape that is not supported");
    return (unsigned char)c;
}

/* After "[". */
static struct set parse_brackets(struct parser *parser) {
    struct set set = {{0}}, class_;
    bool invert = *parser->p == '^';
    if (invert)
        parser->p++;
    for (bool first = true; first || *parser->p != ']'; first = false) {
        unsigned char from = (unsigned char)*parser->p;
        if (!from || parser->why) {
            fail(parser, "an unfinished [");
            return set;
        }
        parser->p++;
        if (from == '\\') {
            char c = *parser->p;
            if (c)
                parser->p++;
            if (class_set(&class_, c)) {
                set_join(&set, &class_);
                continue;
            }
            from = escaped(parser, c);
        }
        unsigned char to = from;
        if (parser->p[0] == '-' && parser->p[1] && parser->p[1] != ']') {
            to = (unsigned char)parser->p[1];
            parser->p += 2;
            if (to == '\\') {
                to = escaped(parser, *parser->p);
                parser->p += *parser->p != '\0';
            }
            if (to < from)
                fail(parser, "a reversed range in []");
        }
        set_add(&set, from, to);
    }
    parser->p++;
    if (invert)
        set_invert(&set);
    return set;
}

static struct branch *parse_branches(struct parser *parser);

/* After "(". */
static void parse_group(struct parser *parser, struct node *node) {
    node->kind = N_GROUP;
    if (parser->p[0] == '?') {
        const char *p = parser->p + 1;
        if (*p == '=' || *p == '!') {
            node->kind = *p == '=' ? N_AHEAD : N_NOT_AHEAD;
            if (++parser->aheads > MAX_AHEAD)
                fail(parser, "look-aheads nested too deeply");
            p++;
        } else if (*p == ':') {
            p++;
        } else if (p[0] == 'P' && p[1] == '<' && strchr(p, '>')) {
            p = strchr(p, '>') + 1;
        } else {
            fail(parser, p[0] == '<' ? "look-behind is not supported"
                                     : "a (?...) construct that is not supported");
        }
        parser->p = p;
    }
    if (++parser->nesting > VP_REGEX_MAX_NESTING)
        fail(parser, "groups nested too deeply");
    if (!parser->why)
        node->branch = parse_branches(parser);
    if (*parser->p == ')')
        parser->p++;
    else
        fail(parser, "an unfinished (");
    parser->nesting--;
    parser->aheads -= node->kind != N_GROUP;
}

static void parse_escape(struct parser *parser, struct node *node) {
    char c = *parser->p;
    if (c)
        parser->p++;
    if (c == 'b' || c == 'B') {
        node->kind = c == 'b' ? N_WORD : N_NOT_WORD;
    } else if (c == 'A') {
        node->kind = N_START;
    } else if (c == 'Z') {
        node->kind = N_END;
    } else if (!class_set(&node->set, c)) {
        unsigned char literal = escaped(parser, c);
        set_add(&node->set, literal, literal);
    }
}

static void parse_atom(struct parser *parser, struct node *node) {
    char c = *parser->p++;
    node->kind = N_SET;
    switch (c) {
    case '\\':
        parse_escape(parser, node);
        break;
    case '[':
        node->set = parse_brackets(parser);
        break;
    case '(':
        parse_group(parser, node);
        break;
    case '.':
        set_add(&node->set, '\n', '\n');
        set_invert(&node->set);
        break;
    case '^':
        node->kind = N_START;
        break;
    case '$':
        node->kind = N_END;
        break;
    case '*':
    case '+':
    case '?':
        fail(parser, "nothing to repeat");
        break;
    default:
        set_add(&node->set, (unsigned char)c, (unsigned char)c);
    }
}

static bool parse_count(const char **p, int *out) {
    int v = 0, digits = 0;
    for (; **p >= '0' && **p <= '9'; (*p)++, digits++)
        v = v > VP_REGEX_MAX_COUNT ? v : v * 10 + (**p - '0');
    *out = v;
    return digits > 0;
}

/* {m}, {m,}, {,n}, {m,n}; as in Python a brace that is none of these stands for itself. */
static bool parse_braces(struct parser *parser, struct node *node) {
    const char *p = parser->p + 1;
    int min = 0, max = NO_LIMIT;
    bool has_min = parse_count(&p, &min), has_max = has_min;
    if (*p == ',') {
        p++;
        has_max = parse_count(&p, &max);
        if (!has_max)
            max = NO_LIMIT;
    } else {
        max = min;
    }
    if (*p != '}' || (!has_min && !has_max))
        return false;
    if (min > VP_REGEX_MAX_COUNT || max > VP_REGEX_MAX_COUNT)
        fail(parser, "a count above 100");
    if (max != NO_LIMIT && max < min)
        fail(parser, "a reversed count");
    node->min = min;
    node->max = max;
    parser->p = p + 1;
    return true;
}

static void parse_repeat(struct parser *parser, struct node *node) {
    char c = *parser->p;
    node->min = node->max = 1;
    if (c == '*' || c == '+' || c == '?') {
        node->min = c == '+';
        node->max = c == '?' ? 1 : NO_LIMIT;
        parser->p++;
    } else if (c != '{' || !parse_braces(parser, node)) {
        return;
    }
    if (*parser->p == '?') /* a lazy quantifier finds the same matches in another order */
        parser->p++;
    else if (*parser->p == '+' || *parser->p == '*')
        fail(parser, "a doubled quantifier");
}

static struct branch *parse_branches(struct parser *parser) {
    struct branch *first = NULL, **branch = &first;
    for (;;) {
        *branch = VP_NEW(parser->arena, struct branch);
        struct node **node = &(*branch)->first;
        while (*parser->p && *parser->p != '|' && *parser->p != ')' && !parser->why) {
            *node = VP_NEW(parser->arena, struct node);
            parse_atom(parser, *node);
            parse_repeat(parser, *node);
            node = &(*node)->next;
        }
        if (*parser->p != '|' || parser->why)
            return first;
        parser->p++;
        branch = &(*branch)->next;
    }
}

/* ---- program ---- */

enum op {
    OP_SET,
    OP_SPLIT,
    OP_JUMP,
    OP_START,
    OP_END,
    OP_WORD,
    OP_NOT_WORD,
    OP_AHEAD,
    OP_NOT_AHEAD,
    OP_MATCH
};

/* SPLIT goes on at both x and y, JUMP at x. A look-ahead tries the program that follows it and
 * goes on at x. SET uses set number x. */
struct inst {
    uint8_t op;
    uint16_t x, y;
};

struct vp_regex {
    struct inst *code;
    struct set *sets;
    uint16_t count, set_count;
};

enum { MAX_STEPS = 100000 };

struct writer {
    struct vp_regex regex;
    uint32_t steps; /* counts in counts of empty groups multiply without writing anything */
    bool too_long;
};

static uint16_t emit(struct writer *writer, enum op op) {
    struct vp_regex *regex = &writer->regex;
    if (regex->count == VP_REGEX_MAX_CODE) {
        writer->too_long = true;
        return 0;
    }
    regex->code[regex->count] = (struct inst){.op = (uint8_t)op};
    return regex->count++;
}

static void emit_branches(struct writer *writer, const struct branch *branch);

static void emit_once(struct writer *writer, const struct node *node) {
    static const uint8_t SIMPLE[] = {
        [N_START] = OP_START, [N_END] = OP_END, [N_WORD] = OP_WORD, [N_NOT_WORD] = OP_NOT_WORD};
    struct inst *code = writer->regex.code;
    if (++writer->steps > MAX_STEPS)
        writer->too_long = true;
    if (node->kind == N_SET) {
        uint16_t at = emit(writer, OP_SET);
        if (!writer->too_long) {
            writer->regex.sets[writer->regex.set_count] = node->set;
            code[at].x = writer->regex.set_count++;
        }
    } else if (node->kind == N_GROUP) {
        emit_branches(writer, node->branch);
    } else if (node->kind == N_AHEAD || node->kind == N_NOT_AHEAD) {
        uint16_t at = emit(writer, node->kind == N_AHEAD ? OP_AHEAD : OP_NOT_AHEAD);
        emit_branches(writer, node->branch);
        emit(writer, OP_MATCH);
        code[at].x = writer->regex.count;
    } else {
        emit(writer, (enum op)SIMPLE[node->kind]);
    }
}

/* Once the program is too long, `emit` hands out index 0 and the writer only has to come to an end:
 * each loop here stops by itself or looks at too_long. */
static void emit_node(struct writer *writer, const struct node *node) {
    struct inst *code = writer->regex.code;
    for (int i = 0; i < node->min && !writer->too_long; i++)
        emit_once(writer, node);
    if (node->max == NO_LIMIT) {
        uint16_t split = emit(writer, OP_SPLIT);
        emit_once(writer, node);
        uint16_t jump = emit(writer, OP_JUMP);
        code[jump].x = split;
        code[split].x = (uint16_t)(split + 1);
        code[split].y = writer->regex.count;
        return;
    }
    uint16_t splits[VP_REGEX_MAX_COUNT];
    int optional = node->max - node->min;
    for (int i = 0; i < optional && !writer->too_long; i++) {
        splits[i] = emit(writer, OP_SPLIT);
        code[splits[i]].x = (uint16_t)(splits[i] + 1);
        emit_once(writer, node);
    }
    for (int i = 0; i < optional && !writer->too_long; i++)
        code[splits[i]].y = writer->regex.count;
}

static void emit_branches(struct writer *writer, const struct branch *branch) {
    struct inst *code = writer->regex.code;
    uint16_t pending = 0; /* chain, through x, of the jumps to the end; 0 ends it */
    for (; branch; branch = branch->next) {
        uint16_t split = branch->next ? emit(writer, OP_SPLIT) : 0;
        for (const struct node *node = branch->first; node && !writer->too_long; node = node->next)
            emit_node(writer, node);
        if (!branch->next || writer->too_long)
            break;
        uint16_t jump = emit(writer, OP_JUMP);
        code[jump].x = pending;
        pending = jump;
        code[split].x = (uint16_t)(split + 1);
        code[split].y = writer->regex.count;
    }
    while (pending && !writer->too_long) {
        uint16_t jump = pending;
        pending = code[jump].x;
        code[jump].x = writer->regex.count;
    }
}

bool vp_regex_compile(struct vp_arena *arena, const struct vp_regex **out, const char **why,
                      const char *pattern) {
    struct parser parser = {.arena = arena, .p = pattern};
    struct branch *branch = parse_branches(&parser);
    *out = NULL;
    *why = NULL;
    if (*parser.p == ')')
        fail(&parser, "a ) without its (");
    if (parser.why) {
        *why = parser.why;
        return false;
    }
    struct inst code[VP_REGEX_MAX_CODE];
    struct set sets[VP_REGEX_MAX_CODE];
    struct writer writer = {.regex = {.code = code, .sets = sets}};
    emit_branches(&writer, branch);
    emit(&writer, OP_MATCH);
    if (writer.too_long) {
        *why = "it is too long";
        return false;
    }
    struct vp_regex *regex = VP_NEW(arena, struct vp_regex);
    *regex = writer.regex;
    regex->code = VP_NEW_ARRAY(arena, regex->count, struct inst);
    memcpy(regex->code, code, regex->count * sizeof *code);
    regex->sets = VP_NEW_ARRAY(arena, regex->set_count, struct set);
    memcpy(regex->sets, sets, regex->set_count * sizeof *sets);
    *out = regex;
    return true;
}

/* ---- machine ---- */

/* The ways that wait at one position of the text. */
struct ways {
    uint16_t pc[VP_REGEX_MAX_CODE];
    uint16_t count;
    bool matched;
};

static bool run(const struct vp_regex *regex, uint16_t start, const char *text, const char *at);

static bool at_word_edge(const char *text, const char *at) {
    bool before = at > text && is_word(at[-1]);
    return before != (*at && is_word(*at));
}

/* Whether an instruction that reads nothing lets a way pass. */
static bool passes(const struct vp_regex *regex, uint16_t pc, const char *text, const char *at) {
    switch (regex->code[pc].op) {
    case OP_START:
        return at == text;
    case OP_END:
        return *at == '\0';
    case OP_WORD:
        return at_word_edge(text, at);
    case OP_NOT_WORD:
        return !at_word_edge(text, at);
    case OP_AHEAD:
        return run(regex, (uint16_t)(pc + 1), text, at);
    default:
        return !run(regex, (uint16_t)(pc + 1), text, at);
    }
}

/* Follows a way from pc to the instructions that read a character. `seen` holds what was already
 * visited at this position. */
static void follow(const struct vp_regex *regex, struct ways *ways, uint8_t *seen, uint16_t pc,
                   const char *text, const char *at) {
    uint16_t stack[VP_REGEX_MAX_CODE + 1];
    int depth = 0;
    stack[depth++] = pc;
    while (depth > 0) {
        pc = stack[--depth];
        if (seen[pc])
            continue;
        seen[pc] = 1;
        const struct inst *inst = &regex->code[pc];
        switch (inst->op) {
        case OP_SET:
            ways->pc[ways->count++] = pc;
            break;
        case OP_MATCH:
            ways->matched = true;
            return;
        case OP_SPLIT:
            /* each instruction is expanded once, so the stack holds at most one more than these */
            stack[depth++] = inst->y;
            stack[depth++] = inst->x;
            break;
        case OP_JUMP:
            stack[depth++] = inst->x;
            break;
        default:
            if (!passes(regex, pc, text, at))
                break;
            bool ahead = inst->op == OP_AHEAD || inst->op == OP_NOT_AHEAD;
            stack[depth++] = ahead ? inst->x : (uint16_t)(pc + 1);
        }
    }
}

/* Whether the program from `start` matches at `at` (to anywhere). */
static bool run(const struct vp_regex *regex, uint16_t start, const char *text, const char *at) {
    struct ways lists[2];
    struct ways *now = &lists[0], *then = &lists[1];
    uint8_t seen[VP_REGEX_MAX_CODE];
    memset(seen, 0, regex->count);
    now->count = 0;
    now->matched = false;
    follow(regex, now, seen, start, text, at);
    for (; !now->matched && now->count > 0 && *at; at++) {
        then->count = 0;
        then->matched = false;
        memset(seen, 0, regex->count);
        for (uint16_t i = 0; i < now->count && !then->matched; i++) {
            const struct inst *inst = &regex->code[now->pc[i]];
            if (set_has(&regex->sets[inst->x], (unsigned char)*at))
                follow(regex, then, seen, (uint16_t)(now->pc[i] + 1), text, at + 1);
        }
        struct ways *swap = now;
        now = then;
        then = swap;
    }
    return now->matched;
}

bool vp_regex_match(const struct vp_regex *regex, const char *text) {
    return run(regex, 0, text, text);
}
