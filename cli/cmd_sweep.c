/* sweep: one scenario for many values of its fields, row by row, as fast as the machine goes. What
 * a combination is refused for stands in its row; the command itself fails only for what is wrong
 * with all of them. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "api/sweep.h"
#include "cli/args.h"
#include "cli/output.h"
#include "cli/plot.h"
#include "cli/progress.h"
#include "cli/sweep_file.h"
#include "cli/sweep_plot.h"
#include "planner/base/clock.h"
#include "planner/base/units.h"
#include "reports/sweep_text.h"

struct job {
    struct vp_ctx *ctx;
    const struct vp_args *args;
    const char **varied; /* texts of --vary */
    size_t varied_count;
    struct vp_grid grid;
    struct vp_sweep sweep;
    struct vp_variants *variants;
    struct vp_sweep_plot plot;
    struct vp_chart *chart; /* of the plot, made at the end */
    uint64_t shard, shards; /* 0: the whole */
    unsigned threads;
    uint64_t of_verdict[VP_DOES_NOT_FIT + 1], refused; /* rows */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number) { interrupted = number; }

/* ---- the question ---- */

static bool wrong(struct vp_ctx *ctx, const char *message, const char *hint) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "%s", message);
    if (hint)
        vp_diag_hint(ctx->diags, "%s", hint);
    return false;
}

/* Without --format by the file's name: -o sweep.csv. */
static enum vp_sweep_style style_of(const struct vp_args *args) {
    const char *path = args->value[VP_OPTION_OUTPUT];
    if (args->value[VP_OPTION_FORMAT])
        return args->format == VP_FORMAT_CSV    ? VP_SWEEP_CSV
               : args->format == VP_FORMAT_JSON ? VP_SWEEP_JSON
                                                : VP_SWEEP_TEXT;
    if (path && vp_text_ends(path, ".csv"))
        return VP_SWEEP_CSV;
    bool json = path && (vp_text_ends(path, ".json") || vp_text_ends(path, ".jsonl") ||
                         vp_text_ends(path, ".ndjson"));
    return json ? VP_SWEEP_JSON : VP_SWEEP_TEXT;
}

static void read_shard(struct job *job, const char *text) {
    const char *slash = text ? strchr(text, '/') : NULL;
    if (!text)
        return;
    const char *first = slash ? vp_arena_text(job->ctx->arena, text, (size_t)(slash - text)) : text;
    if (!slash || !vp_parse_u64(&job->shard, first) || !vp_parse_u64(&job->shards, slash + 1) ||
        job->shard == 0 || job->shard > job->shards)
        wrong(job->ctx, "--shard is I/N, the I-th of N parts, I from 1 to N",
              "for example --shard 3/8");
}

static void read_threads(struct job *job, const char *text) {
    uint64_t n = 0;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    job->threads = online < 1 ? 1 : online > VP_SWEEP_THREADS ? VP_SWEEP_THREADS : (unsigned)online;
    if (!text)
        return;
    if (!vp_parse_u64(&n, text) || n == 0 || n > VP_SWEEP_THREADS)
        vp_diag_add(job->ctx->diags, VP_D_BAD_OPTION, NULL, "--threads is a number from 1 to %d",
                    (int)VP_SWEEP_THREADS);
    else
        job->threads = (unsigned)n;
}

/* Fields that are both given and varied, in whatever order. */
static void check_twice(struct job *job) {
    for (size_t i = 0; i < job->args->setting_count; i++)
        for (size_t k = 0; k < job->grid.field_count; k++)
            if (vp_text_eq(job->args->settings[i].path, vp_grid_path(&job->grid, k)))
                vp_diag_add(job->ctx->diags, VP_D_CONTRADICTION, NULL,
                            "%s gives %s, which --vary varies", job->args->settings[i].key,
                            job->args->settings[i].path);
}

static void check_options(struct job *job) {
    const struct vp_args *args = job->args;
    bool pareto = args->value[VP_OPTION_PARETO];
    if (args->format == VP_FORMAT_MARKDOWN)
        wrong(job->ctx, "'sweep' has no --format markdown; text, csv and json", NULL);
    if (!args->value[VP_OPTION_VARY])
        wrong(job->ctx, "'sweep' needs a field to vary: --vary FIELD=VALUES",
              "for example --vary serve.context=8k..256k*2 --vary parallel.tensor=1,2,4,8");
    if (args->value[VP_OPTION_OBJECTIVES] && !pareto)
        wrong(job->ctx, "--objectives belongs to --pareto", NULL);
    if (args->value[VP_OPTION_PLOT] && args->value[VP_OPTION_SHARD])
        wrong(job->ctx, "--plot draws a whole sweep, without --shard", NULL);
    if (args->value[VP_OPTION_CHART] && !args->value[VP_OPTION_PLOT])
        wrong(job->ctx, "--chart goes with --plot", NULL);
    vp_plot_check(job->ctx, args);
    if (pareto && args->value[VP_OPTION_SHARD])
        wrong(job->ctx, "one part has not what could beat its rows: --pareto wants the whole",
              "sweep the parts without it, then: vramplan merge --pareto FILE...");
}

static size_t text_width(const struct vp_grid *grid, size_t field) {
    size_t widest = 0;
    for (size_t a = 0; a < grid->axis_count; a++) {
        const struct vp_axis *axis = &grid->axes[a];
        for (size_t i = 0; field < axis->path_count && i < axis->count; i++) {
            size_t n = strlen(axis->values[i * axis->path_count + field]);
            widest = n > widest ? n : widest;
        }
        if (field < axis->path_count)
            return vp_sweep_text_width(axis->paths[field], widest);
        field -= axis->path_count;
    }
    return 0;
}

static void make_form(struct job *job) {
    struct vp_sweep_form *form = &job->sweep.form;
    size_t n = job->grid.field_count;
    size_t *widths = VP_NEW_ARRAY(job->ctx->arena, n + 1, size_t);
    form->style = style_of(job->args);
    form->latency = job->args->value[VP_OPTION_LATENCY] != NULL;
    form->fields = VP_NEW_ARRAY(job->ctx->arena, n + 1, const char *);
    form->field_count = n;
    form->widths = widths;
    for (size_t i = 0; i < n; i++) {
        form->fields[i] = vp_grid_path(&job->grid, i);
        widths[i] = text_width(&job->grid, i);
    }
}

static void read_objectives(struct job *job) {
    const struct vp_sweep_form *form = &job->sweep.form;
    const char **columns, **all;
    if (!job->args->value[VP_OPTION_PARETO])
        return;
    size_t n = vp_sweep_columns(job->ctx->arena, &columns, form->latency);
    all = VP_NEW_ARRAY(job->ctx->arena, n + form->field_count + 1, const char *);
    for (size_t i = 0; i < n; i++)
        all[i] = columns[i];
    for (size_t i = 0; i < form->field_count; i++)
        all[n + i] = form->fields[i];
    vp_objectives_read(job->ctx, &job->sweep.objectives, job->args->value[VP_OPTION_OBJECTIVES],
                       all, n + form->field_count);
}

static void read_question(struct job *job) {
    const struct vp_args *args = job->args;
    uint32_t errors = job->ctx->diags->errors;
    job->varied = vp_args_all(job->ctx, args, VP_OPTION_VARY, &job->varied_count);
    check_options(job);
    vp_grid_read(job->ctx, &job->grid, "--vary", job->varied, job->varied_count);
    check_twice(job);
    read_shard(job, args->value[VP_OPTION_SHARD]);
    read_threads(job, args->value[VP_OPTION_THREADS]);
    job->sweep.grid = &job->grid;
    make_form(job);
    if (job->ctx->diags->errors > errors)
        return;
    read_objectives(job);
    if (args->value[VP_OPTION_PLOT] && job->ctx->diags->errors == errors)
        vp_sweep_plot_prepare(job->ctx, &job->plot, &job->grid, &job->sweep.objectives, args);
}

/* ---- the scenario ---- */

static struct vp_ctx with_own_diags(struct vp_ctx *ctx) {
    struct vp_ctx own = *ctx;
    own.diags = VP_NEW(ctx->arena, struct vp_diags);
    own.diags->arena = ctx->arena;
    return own;
}

/* What a value says wrong that the scenario without it does not, at its place in the option; an
 * unknown field at the option's beginning. False: the other values would say the same. */
static bool tell_value(struct job *job, const struct vp_axis *axis, size_t row,
                       const struct vp_diags *before, const struct vp_diags *with) {
    struct vp_diags *all = VP_NEW(job->ctx->arena, struct vp_diags);
    struct vp_pos pos = vp_axis_pos(job->ctx->arena, axis, row);
    *all = *before;
    vp_diags_merge(all, with);
    for (uint32_t i = before->count; i < all->count; i++) {
        const struct vp_diag *diag = &all->items[i];
        if (vp_diag_severity(diag->id) != VP_ERROR)
            continue;
        if (diag->id == VP_D_UNKNOWN_KEY)
            pos.column = 1;
        vp_diag_add(job->ctx->diags, diag->id, &pos, "%s", diag->message);
        if (diag->hint)
            vp_diag_hint(job->ctx->diags, "%s", diag->hint);
        return diag->id != VP_D_UNKNOWN_KEY;
    }
    return true;
}

/* One row of an axis, on the scenario as it stands. */
static bool check_value(struct job *job, const struct vp_axis *axis, size_t row,
                        const struct vp_diags *before) {
    struct vp_setting settings[VP_GRID_FIELDS];
    struct vp_ctx own = with_own_diags(job->ctx);
    const struct vp_scenario *scenario;
    size_t n = axis->path_count;
    for (size_t i = 0; i < n; i++)
        settings[i] =
            (struct vp_setting){.path = axis->paths[i], .value = axis->values[row * n + i]};
    enum vp_status status = vp_variants_check(job->variants, &own, settings, n);
    bool gpu = n == 1 && vp_text_eq(axis->paths[0], "hardware.gpu");
    if (status == VP_OK && gpu) /* whether it is known shows later */
        status = vp_variants_make(job->variants, &own, &scenario, settings, 1);
    if (gpu && own.diags->errors && own.diags->items[0].id != VP_D_GPU_UNKNOWN)
        status = VP_OK;
    return status == VP_OK || tell_value(job, axis, row, before, own.diags);
}

/* Fields that no scenario has, and values that cannot be read: mistakes of the command line, and
 * not combinations that are refused. Of a range the first values stand for all. */
static void check_values(struct job *job) {
    enum { MOST_ROWS = 256 };
    struct vp_ctx base = with_own_diags(job->ctx);
    vp_variants_check(job->variants, &base, NULL, 0);
    for (size_t a = 0; a < job->grid.axis_count; a++) {
        const struct vp_axis *axis = &job->grid.axes[a];
        for (size_t row = 0; row < axis->count && row < MOST_ROWS; row++)
            if (!check_value(job, axis, row, base.diags))
                break;
    }
}

/* A scenario that is refused as it stands may lack just what varies: then one of the first
 * combinations must be good. */
static enum vp_status try_some(struct job *job, const struct vp_diags *refusal) {
    enum { TRIES = 256 };
    struct vp_setting settings[VP_GRID_FIELDS];
    const struct vp_scenario *scenario;
    enum vp_status status = VP_ERR_INPUT;
    struct vp_ctx first = {.arena = NULL};
    for (uint64_t i = 0; i < TRIES && i < job->grid.total; i++) {
        struct vp_ctx own = with_own_diags(job->ctx);
        vp_grid_settings(&job->grid, settings, i);
        status = vp_variants_make(job->variants, &own, &scenario, settings, job->grid.field_count);
        if (!i)
            first = own;
        if (status != VP_ERR_INPUT)
            break;
    }
    if (status != VP_OK)
        vp_diags_merge(job->ctx->diags, first.arena ? first.diags : refusal);
    return status;
}

static enum vp_status open_scenario(struct job *job) {
    struct vp_ctx own = with_own_diags(job->ctx);
    const char *where = job->args->value[VP_OPTION_WHERE];
    enum vp_status status = vp_variants_open(&own, &job->variants, job->args->operands[0],
                                             job->args->settings, job->args->setting_count);
    job->sweep.variants = job->variants;
    if (status == VP_ERR_ENV || !vp_variants_readable(job->variants)) {
        vp_diags_merge(job->ctx->diags, own.diags);
        return status;
    }
    uint32_t errors = job->ctx->diags->errors;
    check_values(job);
    if (where)
        vp_where_read(job->ctx, &job->sweep.where, where, &job->grid,
                      vp_variants_base(job->variants));
    if (job->ctx->diags->errors > errors)
        return VP_ERR_INPUT;
    return status == VP_OK ? VP_OK : try_some(job, own.diags);
}

/* ---- running ---- */

static const char *make_id(struct job *job) {
    const struct vp_args *args = job->args;
    const char *where = args->value[VP_OPTION_WHERE];
    size_t n = 0;
    const char **texts = VP_NEW_ARRAY(
        job->ctx->arena, 2 * args->setting_count + job->varied_count + 2, const char *);
    for (size_t i = 0; i < args->setting_count; i++) {
        texts[n++] = args->settings[i].path;
        texts[n++] = args->settings[i].value;
    }
    for (size_t i = 0; i < job->varied_count; i++)
        texts[n++] = job->varied[i];
    texts[n++] = where ? where : "";
    texts[n++] = job->sweep.form.latency ? "latency" : "";
    const char *id = vp_sweep_id(job->ctx, &job->sweep, texts, n);
    if (id && job->shards)
        id = vp_arena_printf(job->ctx->arena, "%s:%" PRIu64 "/%" PRIu64, id, job->shard,
                             job->shards);
    return id;
}

/* About a tenth of a second of work, so that the bar moves and Ctrl-C is heard. */
static size_t next_chunk(size_t chunk, double seconds) {
    if (seconds < 0.05 && chunk < VP_SWEEP_CHUNK)
        return 2 * chunk;
    return seconds > 0.2 && chunk > 1 ? chunk / 2 : chunk;
}

static void count_rows(struct job *job, const struct vp_sweep_point *points, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (points[i].evaluated)
            job->of_verdict[points[i].verdict]++;
        else
            job->refused += points[i].line != NULL;
    }
}

static enum vp_status put_lines(struct job *job, struct vp_sweep_file *file,
                                const struct vp_sweep_point *points, size_t n) {
    struct vp_arena_mark mark = vp_arena_mark(job->ctx->arena);
    struct vp_buf out = {.arena = job->ctx->arena};
    for (size_t i = 0; i < n; i++)
        if (points[i].line)
            vp_buf_add_n(&out, points[i].line, points[i].size);
    enum vp_status status =
        out.size ? vp_sweep_file_put(job->ctx, file, out.data, out.size) : VP_OK;
    if (status == VP_OK)
        vp_arena_rewind(job->ctx->arena, mark); /* a failure's message stays */
    return status;
}

/* What fits, and nothing before it or beside it beats. */
static void take_best(struct job *job, struct vp_front *front, const struct vp_sweep_point *points,
                      size_t n) {
    struct vp_arena_mark mark = vp_arena_mark(job->ctx->arena);
    struct vp_front_point *good = VP_NEW_ARRAY(job->ctx->arena, n, struct vp_front_point);
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (!points[i].evaluated || points[i].verdict != VP_FITS)
            continue;
        good[count] = (struct vp_front_point){.line = points[i].line, .size = points[i].size};
        memcpy(good[count++].value, points[i].value, sizeof good->value);
    }
    vp_front_add(front, job->ctx->arena, good, count);
    vp_arena_rewind(job->ctx->arena, mark);
}

/* front: NULL writes the lines as they are made. */
static enum vp_status run_all(struct job *job, struct vp_sweeper *sweeper,
                              struct vp_sweep_file *file, struct vp_front *front, uint64_t first,
                              uint64_t last) {
    struct vp_sweep_point *points =
        VP_NEW_ARRAY(job->ctx->arena, VP_SWEEP_CHUNK, struct vp_sweep_point);
    struct vp_progress progress;
    enum vp_status status = VP_OK;
    size_t chunk = 64;
    bool to_terminal = file->fd == STDOUT_FILENO && isatty(STDOUT_FILENO);
    vp_progress_begin(&progress, !to_terminal, file->next - first, last - first);
    for (uint64_t at = file->next; at < last && status == VP_OK && !interrupted;) {
        size_t n = last - at < chunk ? (size_t)(last - at) : chunk;
        double began = vp_clock_seconds();
        status = vp_sweeper_run(sweeper, points, at, n);
        if (status != VP_OK) {
            vp_diag_add(job->ctx->diags, VP_D_IO, NULL,
                        "the sweep stopped at row %" PRIu64 ": no memory, or a file of the "
                        "scenario can no longer be read",
                        at);
            break;
        }
        count_rows(job, points, n);
        if (job->plot.wanted)
            vp_sweep_plot_add(&job->plot, points, n);
        if (front)
            take_best(job, front, points, n);
        else
            status = put_lines(job, file, points, n);
        at += n;
        chunk = next_chunk(chunk, vp_clock_seconds() - began);
        vp_progress_step(&progress, at - first);
    }
    vp_progress_end(&progress);
    return status;
}

static enum vp_status put_front(struct job *job, struct vp_sweep_file *file,
                                const struct vp_front *front) {
    enum vp_status status = VP_OK;
    for (size_t i = 0; i < front->count && status == VP_OK; i++)
        status = vp_sweep_file_put(job->ctx, file, front->points[i].line, front->points[i].size);
    return status;
}

static enum vp_status put_summary(struct job *job, struct vp_sweep_file *file,
                                  const struct vp_front *front) {
    struct vp_buf out = {.arena = job->ctx->arena};
    const uint64_t *n = job->of_verdict;
    vp_buf_printf(&out,
                  "%" PRIu64 " combinations: %" PRIu64 " fit, %" PRIu64 " at risk, %" PRIu64
                  " do not fit, %" PRIu64 " refused",
                  n[VP_FITS] + n[VP_AT_RISK] + n[VP_DOES_NOT_FIT] + job->refused, n[VP_FITS],
                  n[VP_AT_RISK], n[VP_DOES_NOT_FIT], job->refused);
    if (job->args->value[VP_OPTION_PARETO])
        vp_buf_printf(&out, "; beaten by none: %zu", front->count);
    vp_buf_add(&out, "\n");
    return vp_sweep_file_put(job->ctx, file, out.data, out.size);
}

static enum vp_status tell_interruption(struct job *job, const struct vp_sweep_file *file) {
    bool kept =
        file->part && job->sweep.form.style != VP_SWEEP_TEXT && !job->sweep.objectives.count;
    vp_diag_add(job->ctx->diags, VP_D_IO, NULL, "the sweep was interrupted");
    if (kept)
        vp_diag_hint(job->ctx->diags, "%s has the rows so far; the same command goes on from there",
                     file->part);
    return VP_ERR_ENV;
}

static enum vp_status sweep_into(struct job *job, struct vp_sweeper *sweeper,
                                 struct vp_sweep_file *file, uint64_t first, uint64_t last) {
    bool pareto = job->args->value[VP_OPTION_PARETO];
    struct vp_front front = {.objectives = &job->sweep.objectives};
    enum vp_status status = run_all(job, sweeper, file, pareto ? &front : NULL, first, last);
    if (status == VP_OK && interrupted)
        status = tell_interruption(job, file);
    if (status == VP_OK)
        status = put_front(job, file, &front);
    if (status == VP_OK && job->plot.wanted)
        job->chart = vp_sweep_plot_chart(job->ctx->arena, &job->plot,
                                         vp_variants_base(job->variants), &front);
    if (status == VP_OK && job->sweep.form.style == VP_SWEEP_TEXT)
        status = put_summary(job, file, &front);
    vp_front_free(&front);
    if (status == VP_OK)
        return vp_sweep_file_finish(job->ctx, file);
    vp_sweep_file_leave(file);
    return status;
}

static enum vp_status draw(struct job *job) {
    if (job->chart)
        return vp_plot_draw(job->ctx, job->args, job->chart,
                            job->sweep.form.style != VP_SWEEP_TEXT);
    wrong(job->ctx,
          job->plot.picture == VP_SWEEP_PARETO ? "--plot: nothing fits, or no two objectives vary"
                                               : "--plot: none of the combinations can be planned",
          NULL);
    return VP_ERR_INPUT;
}

static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL); /* the second one ends the program at once */
    sigaction(SIGTERM, &action, NULL);
}

static enum vp_status run(struct job *job) {
    struct vp_sweep_file file;
    struct vp_buf header = {.arena = job->ctx->arena};
    uint64_t total = job->grid.total, first = 0, last = total;
    const char *id = make_id(job);
    bool text = job->sweep.form.style == VP_SWEEP_TEXT;
    if (job->shards) {
        first = vp_sweep_shard_begin(total, job->shard, job->shards);
        last = vp_sweep_shard_begin(total, job->shard + 1, job->shards);
    }
    job->sweep.form.sweep = id;
    struct vp_sweeper *sweeper = id ? vp_sweeper_new(job->ctx, &job->sweep, job->threads) : NULL;
    if (!sweeper) {
        vp_diag_add(job->ctx->diags, VP_D_IO, NULL, "no memory for the threads of the sweep");
        return VP_ERR_ENV;
    }
    if (text)
        vp_sweep_text_head(&header, &job->sweep.form);
    else
        vp_sweep_head(&header, &job->sweep.form);
    bool anew = text || job->sweep.objectives.count; /* what --pareto and --plot need is not kept */
    struct vp_sweep_rows rows = {anew, vp_buf_text(&header), id, first, last};
    catch_signals();
    enum vp_status status = vp_sweep_file_open(job->ctx, &file, job->args->value[VP_OPTION_OUTPUT],
                                               &rows, job->args->value[VP_OPTION_RESTART] != NULL);
    if (status == VP_OK)
        status = sweep_into(job, sweeper, &file, first, last);
    if (status == VP_OK && job->plot.wanted)
        status = draw(job);
    vp_sweeper_free(sweeper);
    return status;
}

int vp_cmd_sweep(struct vp_ctx *ctx, const struct vp_args *args) {
    struct job job = {.ctx = ctx, .args = args};
    uint32_t errors = ctx->diags->errors;
    read_question(&job);
    enum vp_status status = ctx->diags->errors > errors ? VP_ERR_INPUT : open_scenario(&job);
    if (status == VP_OK)
        status = run(&job);
    vp_variants_close(job.variants);
    return (int)vp_exit_of_status(status);
}
