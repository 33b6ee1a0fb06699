#include "cli/sweep_lines.h"

#include <errno.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/doc/csv.h"
#include "planner/doc/json.h"

/* A line longer than this is no sweep's. */
enum { BLOCK_BYTES = 1 << 16, MOST_LINE_BYTES = 1 << 20 };

static const char JSON_BEGIN[] = "{\"schema\":\"vramplan.sweep/1\",\"row\":";
static const char JSON_END[] = ",\"sweep\":\"";

/* ---- faults ---- */

static bool fault(struct vp_sweep_lines *lines, uint64_t line, const char *message) {
    struct vp_pos pos = {lines->path, line < UINT32_MAX ? (uint32_t)line : 0, 0};
    vp_diag_add(lines->ctx->diags, VP_D_SYNTAX, &pos, "%s", message);
    lines->failed = true;
    return false;
}

static bool no_line(struct vp_sweep_lines *lines) {
    return fault(lines, lines->line, "this is no line that `sweep` wrote");
}

/* ---- bytes ---- */

/* More bytes behind those that are there. False: there are none, or a fault. */
static bool fill(struct vp_sweep_lines *lines) {
    if (lines->begin > 0) {
        memmove(lines->data, lines->data + lines->begin, lines->end - lines->begin);
        lines->end -= lines->begin;
        lines->begin = 0;
    }
    if (lines->end + BLOCK_BYTES > lines->capacity) {
        if (lines->end > MOST_LINE_BYTES)
            return no_line(lines);
        char *data = VP_NEW_ARRAY(lines->ctx->arena, 2 * lines->capacity, char);
        memcpy(data, lines->data, lines->end);
        lines->data = data;
        lines->capacity *= 2;
    }
    long n;
    do
        n = lines->ctx->io->read(lines->fd, lines->data + lines->end, BLOCK_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        vp_diag_add(lines->ctx->diags, VP_D_IO, NULL, "reading %s failed: %s", lines->path,
                    strerror(errno));
        lines->failed = true;
    }
    lines->end += n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* The next whole line, with its line break. */
static bool next_line(struct vp_sweep_lines *lines, const char **out, size_t *size) {
    size_t looked = 0;
    for (;;) {
        const char *from = lines->data + lines->begin;
        size_t there = lines->end - lines->begin;
        const char *at = memchr(from + looked, '\n', there - looked);
        if (at) {
            *out = from;
            *size = (size_t)(at - from) + 1;
            lines->begin += *size;
            lines->bytes += *size;
            lines->line++;
            return true;
        }
        looked = there;
        if (!fill(lines)) {
            lines->cut = lines->end > lines->begin;
            return false;
        }
    }
}

/* ---- lines ---- */

static bool read_digits(uint64_t *out, const char **at, const char *end) {
    const char *from = *at;
    for (*out = 0; *at < end && **at >= '0' && **at <= '9'; ++*at)
        if (__builtin_mul_overflow(*out, UINT64_C(10), out) ||
            __builtin_add_overflow(*out, (uint64_t)(**at - '0'), out))
            return false;
    return *at > from;
}

/* "3f2a...", "3f2a...:2/8" */
static bool read_id(struct vp_sweep_mark *out, const char *at, const char *end) {
    out->id = at;
    while (at < end && ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f')))
        at++;
    out->id_size = (size_t)(at - out->id);
    out->shard = out->shards = 0;
    if (out->id_size == 0 || at == end)
        return at == end && out->id_size > 0;
    at++;
    if (at[-1] != ':' || !read_digits(&out->shard, &at, end) || at == end || *at++ != '/' ||
        !read_digits(&out->shards, &at, end))
        return false;
    return at == end && out->shard >= 1 && out->shard <= out->shards;
}

static bool read_csv(struct vp_sweep_mark *out) {
    const char *at = out->line, *end = at + out->size - 1, *last = end;
    while (last > at && last[-1] != ',')
        last--;
    return read_digits(&out->row, &at, end) && *at == ',' && read_id(out, last, end);
}

static bool read_json(struct vp_sweep_mark *out) {
    size_t begin = sizeof JSON_BEGIN - 1, mark = sizeof JSON_END - 1;
    const char *at = out->line, *end = at + out->size - 3; /* before `"}\n` */
    if (out->size < begin + mark + 3 || memcmp(at, JSON_BEGIN, begin) != 0 ||
        memcmp(end, "\"}", 2) != 0)
        return false;
    at += begin;
    const char *last = end;
    while (last > at && last[-1] != '"')
        last--;
    return read_digits(&out->row, &at, end) && last - at >= (long)mark &&
           memcmp(last - mark, JSON_END, mark) == 0 && read_id(out, last, end);
}

enum vp_status vp_sweep_lines_open(struct vp_ctx *ctx, struct vp_sweep_lines *out,
                                   const char *path) {
    uint64_t bytes;
    const char *line;
    size_t size;
    *out = (struct vp_sweep_lines){.ctx = ctx, .path = path, .fd = -1, .capacity = 4 * BLOCK_BYTES};
    out->data = VP_NEW_ARRAY(ctx->arena, out->capacity, char);
    enum vp_status status = vp_io_open(ctx, &out->fd, &bytes, path);
    if (status != VP_OK)
        return status;
    fill(out);
    out->json = out->end > 0 && out->data[0] == '{';
    if (!out->json && !out->failed && next_line(out, &line, &size)) {
        out->header = vp_arena_text(ctx->arena, line, size);
        if (!vp_text_starts(out->header, "row,") || !vp_text_ends(out->header, ",sweep\n"))
            fault(out, 1, "this is no file that `sweep` wrote: its first line is another table's");
    }
    if (!out->failed)
        return VP_OK;
    vp_sweep_lines_close(out);
    return VP_ERR_INPUT;
}

bool vp_sweep_lines_next(struct vp_sweep_lines *lines, struct vp_sweep_mark *out) {
    if (lines->failed || !next_line(lines, &out->line, &out->size))
        return false;
    return (lines->json ? read_json(out) : read_csv(out)) || no_line(lines);
}

void vp_sweep_lines_close(struct vp_sweep_lines *lines) {
    if (lines->fd >= 0)
        lines->ctx->io->close(lines->fd);
    lines->fd = -1;
}

/* ---- columns ---- */

static bool parse_csv(struct vp_ctx *ctx, const struct vp_sweep_lines *lines,
                      const struct vp_sweep_mark *mark, struct vp_csv *out) {
    struct vp_buf text = {.arena = ctx->arena};
    vp_buf_add(&text, lines->header);
    vp_buf_add_n(&text, mark->line, mark->size);
    return vp_csv_parse(ctx, out, (struct vp_bytes){vp_buf_text(&text), text.size}, lines->path) ==
               VP_OK &&
           out->rows == 1;
}

static struct vp_node *parse_json(struct vp_ctx *ctx, const struct vp_sweep_lines *lines,
                                  const struct vp_sweep_mark *mark) {
    struct vp_node *node = NULL;
    const char *line = vp_arena_text(ctx->arena, mark->line, mark->size);
    enum vp_status status =
        vp_json_read(ctx, &node, (struct vp_bytes){line, mark->size}, lines->path);
    return status == VP_OK ? node : NULL;
}

size_t vp_sweep_line_columns(struct vp_ctx *ctx, const struct vp_sweep_lines *lines,
                             const struct vp_sweep_mark *mark, const char ***out) {
    struct vp_csv csv;
    if (lines->json) {
        const struct vp_node *node = parse_json(ctx, lines, mark);
        *out = node ? node->keys : NULL;
        return node ? node->count : 0;
    }
    bool good = parse_csv(ctx, lines, mark, &csv);
    *out = good ? csv.column : NULL;
    return good ? csv.columns : 0;
}

void vp_sweep_line_values(struct vp_ctx *ctx, const struct vp_sweep_lines *lines,
                          const struct vp_sweep_mark *mark, const char *const *columns,
                          const char **out, size_t count) {
    struct vp_csv csv = {.rows = 0};
    const struct vp_node *node = lines->json ? parse_json(ctx, lines, mark) : NULL;
    bool table = !lines->json && parse_csv(ctx, lines, mark, &csv);
    for (size_t i = 0; i < count; i++) {
        const char *text = vp_node_text(vp_node_get(node, columns[i]));
        int column = table ? vp_csv_column(&csv, columns[i]) : -1;
        if (column >= 0)
            text = vp_csv_cell(&csv, 0, column);
        out[i] = text ? text : "";
    }
}
