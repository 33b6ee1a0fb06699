#include "planner/doc/csv.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/utf8.h"

struct reader {
    struct vp_ctx *ctx;
    const char *name;
    const char *p, *end;
    uint32_t line;
    const char *fields[VP_CSV_MAX_COLUMNS];
    uint32_t count;
};

static struct vp_pos here(const struct reader *r, uint32_t line, uint32_t column) {
    return (struct vp_pos){r->name, line, column};
}

static bool at_line_end(const struct reader *r) {
    return r->p == r->end || *r->p == '\n' ||
           (*r->p == '\r' && r->p + 1 < r->end && r->p[1] == '\n');
}

static void skip_line_end(struct reader *r) {
    if (r->p < r->end && *r->p == '\r')
        r->p++;
    if (r->p < r->end && *r->p == '\n')
        r->p++;
    r->line++;
}

/* The text between two quotes; p stands behind the first. NULL: the second is missing. */
static const char *quoted(struct reader *r) {
    uint32_t from = r->line;
    size_t n = 0, capacity = 0;
    for (const char *q = r->p; q < r->end && !(*q == '"' && (q + 1 == r->end || q[1] != '"'));
         q++) {
        capacity++;
        q += *q == '"';
    }
    char *text = vp_arena_alloc(r->ctx->arena, capacity + 1);
    while (r->p < r->end && n <= capacity) {
        char c = *r->p++;
        if (c == '"' && (r->p == r->end || *r->p != '"'))
            return text;
        r->p += c == '"';
        r->line += c == '\n';
        text[n++] = c;
    }
    struct vp_pos pos = here(r, from, 0);
    vp_diag_add(r->ctx->diags, VP_D_SYNTAX, &pos, "a quote is not closed");
    return NULL;
}

static const char *field(struct reader *r) {
    if (r->p < r->end && *r->p == '"') {
        r->p++;
        const char *text = quoted(r);
        if (text && r->p < r->end && *r->p != ',' && !at_line_end(r)) {
            struct vp_pos pos = here(r, r->line, 0);
            vp_diag_add(r->ctx->diags, VP_D_SYNTAX, &pos,
                        "a comma is missing after a quoted field");
            return NULL;
        }
        return text;
    }
    const char *from = r->p;
    while (!at_line_end(r) && *r->p != ',')
        r->p++;
    return vp_arena_text(r->ctx->arena, from, (size_t)(r->p - from));
}

/* One line's fields. False: a fault after which nothing can be read. */
static bool read_row(struct reader *r) {
    uint32_t line = r->line;
    r->count = 0;
    for (;;) {
        if (r->count == VP_CSV_MAX_COLUMNS) {
            struct vp_pos pos = here(r, line, 0);
            vp_diag_add(r->ctx->diags, VP_D_CAP, &pos, "more than %d columns, the cap of tables",
                        (int)VP_CSV_MAX_COLUMNS);
            return false;
        }
        const char *text = field(r);
        if (!text)
            return false;
        r->fields[r->count++] = text;
        if (r->p == r->end || *r->p != ',')
            break;
        r->p++;
    }
    skip_line_end(r);
    return true;
}

static bool is_blank(const struct reader *r) { return r->count == 1 && r->fields[0][0] == '\0'; }

static bool check_text(struct vp_ctx *ctx, struct vp_bytes text, const char *name) {
    uint32_t line = 1;
    for (size_t i = 0; i < text.size;) {
        size_t n =
            (unsigned char)text.data[i] < 0x80 && text.data[i] ? 1 : vp_utf8_length(text.data + i);
        if (n == 0 || text.data[i] == '\0') {
            struct vp_pos pos = {name, line, 0};
            vp_diag_add(ctx->diags, VP_D_SYNTAX, &pos, "byte 0x%02x is no text in UTF-8",
                        (unsigned)(unsigned char)text.data[i]);
            return false;
        }
        line += text.data[i] == '\n';
        i += n;
    }
    return true;
}

static bool read_header(struct reader *r, struct vp_csv *out) {
    if (!read_row(r))
        return false;
    if (is_blank(r)) {
        struct vp_pos pos = here(r, 1, 0);
        vp_diag_add(r->ctx->diags, VP_D_SYNTAX, &pos, "the first line must name the columns");
        return false;
    }
    out->columns = r->count;
    out->column = VP_NEW_ARRAY(r->ctx->arena, r->count, const char *);
    memcpy(out->column, r->fields, r->count * sizeof *r->fields);
    for (uint32_t i = 0; i < r->count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (*r->fields[i] && vp_text_eq(r->fields[i], r->fields[j])) {
                struct vp_pos pos = here(r, 1, 0);
                vp_diag_add(r->ctx->diags, VP_D_DUPLICATE_KEY, &pos,
                            "two columns are called %.100s", r->fields[i]);
                return false;
            }
    return true;
}

static void wrong_count(struct reader *r, const struct vp_csv *out, uint32_t line) {
    struct vp_pos pos = here(r, line, 0);
    vp_diag_add(r->ctx->diags, VP_D_SYNTAX, &pos,
                "%" PRIu32 " fields, where the first line names %" PRIu32 " columns", r->count,
                out->columns);
}

static size_t lines_of(struct vp_bytes text) {
    size_t n = 1;
    for (size_t i = 0; i < text.size; i++)
        n += text.data[i] == '\n';
    return n;
}

enum vp_status vp_csv_parse(struct vp_ctx *ctx, struct vp_csv *out, struct vp_bytes text,
                            const char *name) {
    uint32_t errors = ctx->diags->errors;
    *out = (struct vp_csv){.name = name};
    if (text.size >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        text = (struct vp_bytes){text.data + 3, text.size - 3};
    if (!check_text(ctx, text, name))
        return VP_ERR_INPUT;
    size_t lines = lines_of(text);
    if (lines > VP_CSV_MAX_ROWS) {
        struct vp_pos pos = {name, 0, 0};
        vp_diag_add(ctx->diags, VP_D_CAP, &pos, "more than %d lines, the cap of tables",
                    (int)VP_CSV_MAX_ROWS);
        return VP_ERR_INPUT;
    }
    struct reader *r = VP_NEW(ctx->arena, struct reader);
    *r = (struct reader){
        .ctx = ctx, .name = name, .p = text.data, .end = text.data + text.size, .line = 1};
    if (!read_header(r, out))
        return VP_ERR_INPUT;
    out->cells = VP_NEW_ARRAY(ctx->arena, lines * out->columns, const char *);
    out->lines = VP_NEW_ARRAY(ctx->arena, lines, uint32_t);
    while (r->p < r->end) {
        uint32_t line = r->line;
        if (!read_row(r))
            return VP_ERR_INPUT;
        if (is_blank(r) && out->columns > 1)
            continue;
        if (r->count != out->columns) {
            wrong_count(r, out, line);
            continue;
        }
        memcpy(&out->cells[(size_t)out->rows * out->columns], r->fields,
               out->columns * sizeof *r->fields);
        out->lines[out->rows++] = line;
    }
    return ctx->diags->errors > errors ? VP_ERR_INPUT : VP_OK;
}

enum vp_status vp_csv_read(struct vp_ctx *ctx, struct vp_csv *out, const char *path) {
    struct vp_bytes text;
    enum vp_status status = vp_io_read(ctx, &text, path, VP_CSV_MAX_BYTES);
    return status == VP_OK ? vp_csv_parse(ctx, out, text, path) : status;
}

int vp_csv_column(const struct vp_csv *csv, const char *name) {
    for (uint32_t i = 0; i < csv->columns; i++)
        if (vp_text_eq(csv->column[i], name))
            return (int)i;
    return -1;
}
