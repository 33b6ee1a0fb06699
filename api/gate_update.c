#include "api/gate_update.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/units.h"
#include "planner/import/document.h"

/* A limit in a file, and what it is to become. */
struct place {
    struct vp_pos pos;
    const struct vp_check *check;
    int64_t wanted;
};

struct updating {
    struct vp_ctx *ctx;
    struct vp_gate_update *out;
    const char *note;
    struct place *places; /* by file, line, column */
    size_t count;
};

/* ---- what is to be changed ---- */

static bool has_limit(const struct vp_check *c) {
    bool kind = c->kind == VP_CHECK_BOUND || c->kind == VP_CHECK_COMPONENT;
    return kind && c->pos.file && c->pos.line > 0 && c->pos.column > 0;
}

static bool is_wanting(const struct vp_check *c) {
    return c->state == VP_CHECK_FAIL || c->state == VP_CHECK_INCONCLUSIVE ||
           c->state == VP_CHECK_WARN || c->state == VP_CHECK_WAIVED;
}

static bool same_place(const struct vp_pos *a, const struct vp_pos *b) {
    return vp_text_eq(a->file, b->file) && a->line == b->line && a->column == b->column;
}

static void want(struct updating *u, const struct vp_check *check) {
    int64_t wanted = check->upper ? check->value.high : check->value.low;
    for (size_t i = 0; i < u->count; i++) {
        struct place *p = &u->places[i];
        if (!same_place(&p->pos, &check->pos))
            continue;
        if (check->upper ? wanted > p->wanted : wanted < p->wanted)
            p->wanted = wanted;
        return;
    }
    u->places[u->count++] = (struct place){check->pos, check, wanted};
}

static int by_place(const void *a, const void *b) {
    const struct vp_pos *x = &((const struct place *)a)->pos, *y = &((const struct place *)b)->pos;
    int order = strcmp(x->file, y->file);
    if (order)
        return order;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

static void collect(struct updating *u, const struct vp_gate *gate) {
    size_t most = 0;
    for (uint32_t i = 0; i < gate->scenario_count; i++)
        most += gate->scenarios[i].check_count;
    u->places = VP_NEW_ARRAY(u->ctx->arena, most, struct place);
    for (uint32_t i = 0; i < gate->scenario_count; i++)
        for (uint32_t k = 0; k < gate->scenarios[i].check_count; k++) {
            const struct vp_check *c = &gate->scenarios[i].checks[k];
            if (is_wanting(c) && has_limit(c))
                want(u, c);
            else if (c->state == VP_CHECK_FAIL)
                u->out->left++;
        }
    if (u->count)
        qsort(u->places, u->count, sizeof *u->places, by_place);
}

/* ---- texts ---- */

/* Rounded so that the limit is kept: up, or of a lower bound down. */
static const char *limit_text(struct vp_arena *arena, const struct place *p) {
    const uint64_t mib = UINT64_C(1) << 20, gib = UINT64_C(1) << 30;
    uint64_t n = p->wanted > 0 ? (uint64_t)p->wanted : 0;
    if (p->check->unit != VP_UNIT_BYTES)
        return vp_format_u64(arena, n);
    if (!p->check->upper)
        return vp_arena_printf(arena, "%" PRIu64 " MiB", n / mib);
    if (n < gib)
        return vp_arena_printf(arena, "%" PRIu64 " MiB", vp_ceil_div(n, mib));
    uint64_t tenths = vp_ceil_div(n, gib / 10);
    return vp_arena_printf(arena, "%" PRIu64 ".%" PRIu64 " GiB", tenths / 10, tenths % 10);
}

/* Length of the scalar that begins there: to the closing quote, or as far as a plain one goes. */
static size_t scalar_length(const char *text) {
    if (*text == '"' || *text == '\'') {
        const char *end = strchr(text + 1, *text);
        return end ? (size_t)(end - text) + 1 : 0;
    }
    size_t n = strcspn(text, ",]}\n\r");
    for (size_t i = 1; i < n; i++)
        if (text[i] == '#' && (text[i - 1] == ' ' || text[i - 1] == '\t'))
            n = i;
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    return n;
}

static const char *line_at(const char *text, uint32_t line) {
    for (uint32_t i = 1; i < line && text; i++) {
        text = strchr(text, '\n');
        text += text != NULL;
    }
    return text;
}

/* Columns count characters, so UTF-8's further bytes do not. */
static const char *column_at(const char *line, uint32_t column) {
    while (column > 1 && *line && *line != '\n') {
        line++;
        if (((unsigned char)*line & 0xC0) != 0x80)
            column--;
    }
    return line;
}

/* In the quotes of the old one; JSON knows no size without them, so it is bytes there. */
static const char *in_style(struct vp_arena *arena, const char *text, char first, bool yaml) {
    uint64_t bytes;
    if (first == '"' || first == '\'')
        return vp_arena_printf(arena, "%c%s%c", first, text, first);
    return yaml || !vp_parse_size(&bytes, text) ? text : vp_format_u64(arena, bytes);
}

/* At the end of the line, so behind a comment that is there: that one may tell what was. */
static void add_note(const struct updating *u, struct vp_buf *out, bool yaml) {
    if (yaml && u->note)
        vp_buf_printf(out, " # %s", u->note);
}

/* The text with the file's places replaced, and a note behind each changed line. */
static enum vp_status rewrite(struct updating *u, struct vp_updated_file *file,
                              const struct place *places, size_t count) {
    struct vp_bytes bytes;
    struct vp_arena *arena = u->ctx->arena;
    enum vp_status status = vp_io_read(u->ctx, &bytes, file->path, VP_DOCUMENT_MAX_BYTES);
    if (status != VP_OK)
        return status;
    bool yaml = bytes.data[strspn(bytes.data, " \t\r\n")] != '{';
    const char *done = bytes.data;
    for (size_t i = 0; i < count; i++) {
        const struct place *p = &places[i];
        const char *line = line_at(bytes.data, p->pos.line);
        const char *at = line ? column_at(line, p->pos.column) : NULL;
        size_t n = at && at >= done ? scalar_length(at) : 0;
        if (n == 0) {
            vp_diag_add(u->ctx->diags, VP_D_BAD_VALUE, &p->pos,
                        "the limit of %s was not found here", p->check->name);
            return VP_ERR_INPUT;
        }
        const char *to = limit_text(arena, p);
        u->out->moved[u->out->moved_count++] = (struct vp_moved_limit){
            file->path, p->check->name, p->pos.line, vp_arena_text(arena, at, n), to};
        vp_buf_add_n(&file->text, done, (size_t)(at - done));
        vp_buf_add(&file->text, in_style(arena, to, *at, yaml));
        done = at + n;
        if (i + 1 < count && places[i + 1].pos.line == p->pos.line)
            continue;
        size_t rest = strcspn(done, "\r\n");
        vp_buf_add_n(&file->text, done, rest);
        add_note(u, &file->text, yaml);
        done += rest;
    }
    vp_buf_add(&file->text, done);
    return VP_OK;
}

enum vp_status vp_gate_update(struct vp_ctx *ctx, struct vp_gate_update *out,
                              const struct vp_gate_run *run, const char *note) {
    struct updating u = {.ctx = ctx, .out = out, .note = note};
    enum vp_status status = VP_OK;
    *out = (struct vp_gate_update){0};
    collect(&u, &run->gate);
    out->moved = VP_NEW_ARRAY(ctx->arena, u.count, struct vp_moved_limit);
    out->files = VP_NEW_ARRAY(ctx->arena, u.count, struct vp_updated_file);
    for (size_t i = 0, n; i < u.count && status == VP_OK; i += n) {
        for (n = 1; i + n < u.count && vp_text_eq(u.places[i + n].pos.file, u.places[i].pos.file);)
            n++;
        struct vp_updated_file *file = &out->files[out->file_count++];
        *file = (struct vp_updated_file){u.places[i].pos.file, {.arena = ctx->arena}};
        status = rewrite(&u, file, &u.places[i], n);
    }
    return status;
}
