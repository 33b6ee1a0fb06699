#include "planner/import/shell_text.h"

#include <ctype.h>
#include <string.h>

#include "planner/base/text.h"

struct splitter {
    struct vp_ctx *ctx;
    struct vp_shell_text *out;
    const char *at, *end;
    const char *line_start;
    struct vp_pos pos;   /* of the line */
    bool quoted_words;   /* see vp_shell_split */
    bool starts_command; /* nothing but NAME=VALUE was read of the present command */
    bool takes_variable; /* the last word was -e */
    uint32_t depth;      /* of parentheses */
};

/* ---- where it stands ---- */

static void newline(struct splitter *s, const char *at) {
    s->pos.line++;
    s->line_start = at + 1;
}

static struct vp_pos here(const struct splitter *s) {
    struct vp_pos pos = s->pos;
    pos.column = (uint32_t)(s->at - s->line_start) + 1;
    return pos;
}

/* ---- variables ---- */

static const char *value_of(const struct vp_shell_text *text, const char *name, size_t length) {
    for (uint32_t i = text->variable_count; i-- > 0;) {
        const struct vp_shell_variable *v = &text->variables[i];
        if (strlen(v->name) == length && strncmp(v->name, name, length) == 0)
            return v->value;
    }
    return NULL;
}

const char *vp_shell_variable(const struct vp_shell_text *text, const char *name) {
    return value_of(text, name, strlen(name));
}

/* "$NAME", "${NAME}", "${NAME:-usual}"; what is not known stays as it stands. */
static void expand(struct splitter *s, struct vp_buf *out) {
    const char *start = s->at++;
    bool braces = s->at < s->end && *s->at == '{';
    if (braces)
        s->at++;
    const char *name = s->at;
    while (s->at < s->end && (isalnum((unsigned char)*s->at) || *s->at == '_'))
        s->at++;
    size_t length = (size_t)(s->at - name);
    const char *value = value_of(s->out, name, length), *usual = NULL;
    size_t usual_length = 0;
    if (braces) {
        const char *close = memchr(s->at, '}', (size_t)(s->end - s->at));
        if (!close)
            close = s->end;
        if (close - s->at > 2 && s->at[0] == ':' && s->at[1] == '-') {
            usual = s->at + 2;
            usual_length = (size_t)(close - usual);
        }
        s->at = close < s->end ? close + 1 : close;
    }
    if (value)
        vp_buf_add(out, value);
    else if (usual)
        vp_buf_add_n(out, usual, usual_length);
    else
        vp_buf_add_n(out, start, (size_t)(s->at - start));
}

/* NAME=VALUE; true when it was one. An empty value sets nothing: a list in parentheses follows. */
static bool assign(struct splitter *s, const struct vp_shell_word *word) {
    const char *text = word->text;
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    if (length == 0 || isdigit((unsigned char)text[0]) || text[length] != '=')
        return false;
    if (s->out->variable_count < VP_SHELL_MAX_VARIABLES && text[length + 1])
        s->out->variables[s->out->variable_count++] = (struct vp_shell_variable){
            vp_arena_text(s->ctx->arena, text, length), text + length + 1, word->pos};
    return true;
}

/* ---- words ---- */

static bool ends_word(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';' || c == '(' || c == ')' ||
           c == '|' || c == '&';
}

static void quoted(struct splitter *s, struct vp_buf *out) {
    char quote = *s->at++;
    while (s->at < s->end && *s->at != quote) {
        if (quote == '"' && *s->at == '$') {
            expand(s, out);
            continue;
        }
        if (quote == '"' && *s->at == '\\' && s->at + 1 < s->end)
            s->at++;
        if (*s->at == '\n')
            newline(s, s->at);
        if (*s->at != '\n')
            vp_buf_add_n(out, s->at, 1);
        else
            vp_buf_add(out, " ");
        s->at++;
    }
    if (s->at < s->end)
        s->at++;
}

static bool takes_variable(const char *word) {
    return vp_text_eq(word, "-e") || vp_text_eq(word, "--env");
}

static bool only_opens(const char *word) {
    return vp_text_eq(word, "export") || vp_text_eq(word, "env") || vp_text_eq(word, "declare") ||
           vp_text_eq(word, "set");
}

static void add_word(struct splitter *s, const char *text, struct vp_pos pos) {
    struct vp_shell_text *out = s->out;
    struct vp_shell_word word = {text, pos};
    bool may_set = s->starts_command || s->takes_variable;
    s->takes_variable = takes_variable(text);
    if (may_set && assign(s, &word))
        return;
    s->starts_command = s->starts_command && only_opens(text);
    if (out->count < VP_SHELL_MAX_WORDS)
        out->words[out->count++] = word;
}

/* A variable that is not quoted holds words of its own, as $MODEL_ARGS does. */
static void add_words(struct splitter *s, const char *text, struct vp_pos pos) {
    while (*text) {
        size_t length = strcspn(text, " \t");
        if (length > 0)
            add_word(s, vp_arena_text(s->ctx->arena, text, length), pos);
        text += length;
        text += strspn(text, " \t");
    }
}

static void read_word(struct splitter *s) {
    struct vp_buf out = {.arena = s->ctx->arena};
    struct vp_pos pos = here(s);
    bool several = s->quoted_words, has_quote = false;
    while (s->at < s->end && !ends_word(*s->at)) {
        if (*s->at == '\'' || *s->at == '"') {
            has_quote = true;
            quoted(s, &out);
        } else if (*s->at == '$') {
            several |= !has_quote;
            expand(s, &out);
        } else if (*s->at == '\\' && s->at + 1 < s->end) {
            if (s->at[1] != '\n')
                vp_buf_add_n(&out, s->at + 1, 1);
            else
                newline(s, s->at + 1);
            s->at += 2;
        } else {
            vp_buf_add_n(&out, s->at++, 1);
        }
    }
    const char *text = vp_buf_text(&out);
    bool sets =
        s->starts_command && text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                               "abcdefghijklmnopqrstuvwxyz0123456789_")] == '=';
    if (several && !sets)
        add_words(s, text, pos);
    else if (*text || has_quote)
        add_word(s, text, pos);
}

/* ---- the whole ---- */

/* A list in parentheses and a command end what belongs to an option. */
static void end_command(struct splitter *s) {
    char c = *s->at;
    struct vp_shell_text *out = s->out;
    if (c == '(')
        s->depth++;
    else if (c == ')' && s->depth > 0)
        s->depth--;
    bool ends = c == ')' || (s->depth == 0 && c != ' ' && c != '\t' && c != '\r');
    if (ends && out->count > 0 && out->count < VP_SHELL_MAX_WORDS &&
        out->words[out->count - 1].text)
        out->words[out->count++] = (struct vp_shell_word){NULL, here(s)};
    s->starts_command |= ends;
    if (c == '\n')
        newline(s, s->at);
    s->at++;
}

static void comment(struct splitter *s) {
    const char *from = s->at, *end = memchr(from, '\n', (size_t)(s->end - from));
    s->at = end ? end : s->end;
    if (s->out->comment_count < VP_SHELL_MAX_VARIABLES)
        s->out->comments[s->out->comment_count++] =
            vp_arena_text(s->ctx->arena, from, (size_t)(s->at - from));
}

void vp_shell_split(struct vp_ctx *ctx, struct vp_shell_text *out, const char *text, size_t size,
                    const char *name, bool quoted_words) {
    struct splitter s = {.ctx = ctx,
                         .out = out,
                         .at = text,
                         .end = text + size,
                         .line_start = text,
                         .pos = {.file = name, .line = 1},
                         .quoted_words = quoted_words,
                         .starts_command = true};
    *out = (struct vp_shell_text){
        .words = VP_NEW_ARRAY(ctx->arena, VP_SHELL_MAX_WORDS, struct vp_shell_word),
        .variables = VP_NEW_ARRAY(ctx->arena, VP_SHELL_MAX_VARIABLES, struct vp_shell_variable),
        .comments = VP_NEW_ARRAY(ctx->arena, VP_SHELL_MAX_VARIABLES, const char *)};
    while (s.at < s.end) {
        if (*s.at == '#') {
            comment(&s);
        } else if (*s.at == '\\' && s.at + 1 < s.end && s.at[1] == '\n') {
            newline(&s, s.at + 1);
            s.at += 2;
        } else if (ends_word(*s.at)) {
            end_command(&s);
        } else {
            read_word(&s);
        }
    }
}
