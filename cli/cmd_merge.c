/* merge: the parts of a divided sweep as the one file that the whole sweep would have written, or
 * the best of their rows. Parts are whole files of `sweep --shard I/N`; each has the rows of one
 * range, so they are joined in the order of their ranges, line by line, whatever their length. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/objectives.h"
#include "api/vary.h"
#include "cli/args.h"
#include "cli/output.h"
#include "cli/sweep_file.h"
#include "cli/sweep_lines.h"
#include "planner/base/units.h"
#include "reports/sweep_row.h"

/* A file, by its first row. */
struct part {
    const char *path, *header;
    bool json, empty;
    const char *id;
    uint64_t shard, shards, row;
};

struct job {
    struct vp_ctx *ctx;
    const struct vp_args *args;
    struct part *parts;
    size_t count;
    const struct part *first; /* one that has rows; NULL: none has */
    struct vp_sweep_file out;
    struct vp_objectives objectives;
    struct vp_front front;
};

static enum vp_status refuse(struct job *job, const char *path, const char *message,
                             const char *hint) {
    struct vp_pos pos = {path, 0, 0};
    vp_diag_add(job->ctx->diags, VP_D_BAD_OPTION, path ? &pos : NULL, "%s", message);
    if (hint)
        vp_diag_hint(job->ctx->diags, "%s", hint);
    return VP_ERR_INPUT;
}

/* ---- which parts there are ---- */

static enum vp_status look(struct job *job, struct part *part, const char *path) {
    struct vp_sweep_lines lines;
    struct vp_sweep_mark mark;
    *part = (struct part){.path = path};
    if (vp_text_ends(path, ".part"))
        return refuse(job, path, "this sweep is not at its end",
                      "the command that began it goes on with it");
    enum vp_status status = vp_sweep_lines_open(job->ctx, &lines, path);
    if (status != VP_OK)
        return status;
    part->header = lines.header;
    part->json = lines.json;
    part->empty = !vp_sweep_lines_next(&lines, &mark);
    if (!part->empty) {
        part->id = vp_arena_text(job->ctx->arena, mark.id, mark.id_size);
        part->shard = mark.shard;
        part->shards = mark.shards;
        part->row = mark.row;
    }
    status = lines.failed ? VP_ERR_INPUT : VP_OK;
    if (status == VP_OK && part->empty && lines.cut)
        status = refuse(job, path, "the last line is cut off", NULL);
    vp_sweep_lines_close(&lines);
    return status;
}

static enum vp_status compare(struct job *job, const struct part *part) {
    const struct part *first = job->first;
    if (part->header && first->header && strcmp(part->header, first->header) != 0)
        return refuse(job, part->path, "its columns are not those of the other parts", NULL);
    if (part->empty)
        return VP_OK;
    if (part->json != first->json)
        return refuse(job, part->path, "one part is CSV, another one JSON", NULL);
    if (!vp_text_eq(part->id, first->id) || part->shards != first->shards)
        return refuse(job, part->path,
                      vp_arena_printf(job->ctx->arena,
                                      "this is not a part of the sweep that %s "
                                      "is of",
                                      first->path),
                      "the parts have the same scenario, options and version of the program, and "
                      "all but --shard alike");
    return VP_OK;
}

/* By shard; parts without rows last. */
static bool is_before(const struct part *a, const struct part *b) {
    if (a->empty || b->empty)
        return !a->empty && b->empty;
    return a->shard < b->shard;
}

static void sort(struct part *parts, size_t count) {
    for (size_t i = 1; i < count; i++) {
        struct part part = parts[i];
        size_t k = i;
        for (; k > 0 && is_before(&part, &parts[k - 1]); k--)
            parts[k] = parts[k - 1];
        parts[k] = part;
    }
}

/* A part without rows (all its combinations left out) cannot say which one it is: it stands for
 * one that is missing. */
static enum vp_status check_all_there(struct job *job) {
    uint64_t empty = 0, want = job->first ? job->first->shards : 0, missing = 0, next = 1;
    const char *which = NULL;
    for (size_t i = 0; i < job->count; i++)
        empty += job->parts[i].empty;
    if (want == 0)
        return job->count - empty > 1
                   ? refuse(job, job->parts[1].path, "a whole sweep is given twice", NULL)
                   : VP_OK;
    for (size_t i = 0; i + empty < job->count; i++) {
        const struct part *part = &job->parts[i];
        if (part->shard < next)
            return refuse(
                job, part->path,
                vp_arena_printf(job->ctx->arena, "part %" PRIu64 " is given twice", part->shard),
                NULL);
        for (; next < part->shard; next++, missing++)
            which = which ? which : vp_format_u64(job->ctx->arena, next);
        next++;
    }
    if (next <= want && !which)
        which = vp_format_u64(job->ctx->arena, next);
    missing += want + 1 - next;
    if (missing != empty)
        return refuse(job, NULL,
                      missing > empty ? vp_arena_printf(job->ctx->arena,
                                                        "of %" PRIu64 " parts %" PRIu64
                                                        " are missing, such as %s",
                                                        want, missing - empty, which)
                                      : "there are more files than parts",
                      NULL);
    return VP_OK;
}

static enum vp_status find_parts(struct job *job) {
    enum vp_status status = VP_OK;
    job->parts = VP_NEW_ARRAY(job->ctx->arena, job->args->operand_count, struct part);
    for (size_t i = 0; i < job->args->operand_count; i++) {
        enum vp_status one = look(job, &job->parts[job->count++], job->args->operands[i]);
        status = one > status ? one : status;
    }
    if (status != VP_OK)
        return status;
    sort(job->parts, job->count);
    job->first = job->count && !job->parts[0].empty ? &job->parts[0] : NULL;
    for (size_t i = 1; i < job->count && job->first; i++) {
        enum vp_status one = compare(job, &job->parts[i]);
        status = one > status ? one : status;
    }
    return status == VP_OK ? check_all_there(job) : status;
}

/* ---- rows ---- */

static enum vp_status read_objectives(struct job *job, const struct vp_sweep_lines *lines,
                                      const struct vp_sweep_mark *mark) {
    const char **names, **known, **all;
    size_t n = vp_sweep_line_columns(job->ctx, lines, mark, &names);
    size_t m = vp_sweep_columns(job->ctx->arena, &known, true);
    all = VP_NEW_ARRAY(job->ctx->arena, n + m + 1, const char *);
    for (size_t i = 0; i < n; i++)
        all[i] = names[i];
    if (!lines->json) /* a JSON line leaves out what it does not know */
        m = 0;
    for (size_t i = 0; i < m; i++)
        all[n + i] = known[i];
    return vp_objectives_read(job->ctx, &job->objectives, job->args->value[VP_OPTION_OBJECTIVES],
                              all, n + m);
}

/* The line without the number of its part. */
static const char *whole_line(struct job *job, const struct vp_sweep_mark *mark, size_t *size) {
    size_t head = (size_t)(mark->id - mark->line) + mark->id_size;
    const char *tail = job->first->json ? "\"}\n" : "\n";
    *size = head + strlen(tail);
    return vp_arena_printf(job->ctx->arena, "%.*s%s", (int)head, mark->line, tail);
}

static void take_best(struct job *job, const struct vp_sweep_lines *lines,
                      const struct vp_sweep_mark *mark, const char *line, size_t size) {
    const char *columns[VP_OBJECTIVES + 1], *texts[VP_OBJECTIVES + 1];
    struct vp_front_point point = {.line = line, .size = size};
    size_t n = job->objectives.count;
    for (size_t i = 0; i < n; i++)
        columns[i] = job->objectives.item[i].column;
    columns[n] = "verdict";
    vp_sweep_line_values(job->ctx, lines, mark, columns, texts, n + 1);
    if (!vp_text_eq(texts[n], "fits"))
        return;
    for (size_t i = 0; i < n; i++)
        point.value[i] = vp_grid_number(texts[i]);
    vp_front_add(&job->front, job->ctx->arena, &point, 1);
}

static bool belongs(const struct job *job, const struct part *part,
                    const struct vp_sweep_mark *mark) {
    size_t n = strlen(job->first->id);
    return mark->id_size == n && memcmp(mark->id, job->first->id, n) == 0 &&
           mark->shard == part->shard && mark->shards == part->shards;
}

static enum vp_status copy_part(struct job *job, const struct part *part, bool pareto,
                                uint64_t *next) {
    struct vp_sweep_lines lines;
    struct vp_sweep_mark mark;
    enum vp_status status = vp_sweep_lines_open(job->ctx, &lines, part->path);
    if (status != VP_OK)
        return status;
    while (status == VP_OK && vp_sweep_lines_next(&lines, &mark)) {
        size_t size;
        if (!belongs(job, part, &mark) || mark.row < *next) {
            status =
                refuse(job, part->path, "its rows are not in order, or not all of one sweep", NULL);
            break;
        }
        *next = mark.row + 1;
        if (pareto && !job->front.objectives) {
            status = read_objectives(job, &lines, &mark);
            job->front.objectives = &job->objectives;
        }
        struct vp_arena_mark begin = vp_arena_mark(job->ctx->arena);
        const char *line = whole_line(job, &mark, &size);
        if (pareto && status == VP_OK)
            take_best(job, &lines, &mark, line, size);
        else if (status == VP_OK)
            status = vp_sweep_file_put(job->ctx, &job->out, line, size);
        if (status == VP_OK)
            vp_arena_rewind(job->ctx->arena, begin);
    }
    if (status == VP_OK && lines.failed)
        status = VP_ERR_INPUT;
    if (status == VP_OK && lines.cut)
        status = refuse(job, part->path, "the last line is cut off", NULL);
    vp_sweep_lines_close(&lines);
    return status;
}

static enum vp_status copy_all(struct job *job) {
    bool pareto = job->args->value[VP_OPTION_PARETO];
    enum vp_status status = VP_OK;
    uint64_t next = 0;
    for (size_t i = 0; i < job->count && status == VP_OK && !job->parts[i].empty; i++)
        status = copy_part(job, &job->parts[i], pareto, &next);
    for (size_t i = 0; i < job->front.count && status == VP_OK; i++)
        status = vp_sweep_file_put(job->ctx, &job->out, job->front.points[i].line,
                                   job->front.points[i].size);
    return status;
}

int vp_cmd_merge(struct vp_ctx *ctx, const struct vp_args *args) {
    struct job job = {.ctx = ctx, .args = args};
    enum vp_status status = VP_OK;
    if (args->value[VP_OPTION_OBJECTIVES] && !args->value[VP_OPTION_PARETO])
        status = refuse(&job, NULL, "--objectives belongs to --pareto", NULL);
    if (status == VP_OK)
        status = find_parts(&job);
    const char *header = job.count && job.parts[0].header ? job.parts[0].header : "";
    struct vp_sweep_rows rows = {.text = true, .header = header, .id = ""};
    if (status == VP_OK)
        status = vp_sweep_file_open(ctx, &job.out, args->value[VP_OPTION_OUTPUT], &rows, true);
    else
        return (int)vp_exit_of_status(status);
    if (status == VP_OK)
        status = copy_all(&job);
    vp_front_free(&job.front);
    if (status == VP_OK)
        status = vp_sweep_file_finish(ctx, &job.out);
    else
        vp_sweep_file_leave(&job.out);
    return (int)vp_exit_of_status(status);
}
