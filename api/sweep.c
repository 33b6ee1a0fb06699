#include "api/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/plan/plan.h"
#include "reports/sweep_text.h"

/* Combinations that a thread takes at once: few enough to share the work evenly. */
enum { GRAIN = 32, SCRATCH_BYTES = 1 << 20 };

struct worker {
    struct vp_sweeper *sweeper;
    struct vp_arena scratch; /* of one combination */
    struct vp_arena_mark scratch_begin;
    struct vp_arena lines; /* of one chunk */
    struct vp_arena_mark lines_begin;
    struct vp_ctx ctx;
    struct vp_diags diags;
    pthread_t thread;
    bool started;
};

struct vp_sweeper {
    const struct vp_sweep *sweep;
    struct worker *workers;
    unsigned threads;
    /* the chunk at work */
    struct vp_sweep_point *points;
    uint64_t first;
    size_t count;
    _Atomic size_t next;
    _Atomic int failed; /* enum vp_status */
};

/* ---- one combination ---- */

static const struct vp_diag *first_error(const struct vp_diags *diags) {
    for (uint32_t i = 0; i < diags->count; i++)
        if (vp_diag_severity(diags->items[i].id) == VP_ERROR)
            return &diags->items[i];
    return NULL;
}

/* Fields that vary are objectives by their values. */
static double value_of(const struct vp_sweep *sweep, const struct vp_setting *settings,
                       const struct vp_result *result, const char *column) {
    double v = (double)NAN;
    for (size_t i = 0; i < sweep->grid->field_count; i++)
        if (strcmp(settings[i].path, column) == 0)
            return vp_grid_number(settings[i].value);
    vp_sweep_value(&v, column, result, sweep->form.latency);
    return v;
}

static void write_line(struct worker *w, struct vp_sweep_point *point,
                       const struct vp_setting *settings, const struct vp_result *result) {
    const struct vp_sweep *sweep = w->sweeper->sweep;
    const char *values[VP_GRID_FIELDS];
    struct vp_buf line = {.arena = &w->scratch};
    for (size_t i = 0; i < sweep->grid->field_count; i++)
        values[i] = settings[i].value;
    struct vp_sweep_line row = {point->row, values, result, first_error(&w->diags)};
    if (sweep->form.style == VP_SWEEP_TEXT)
        vp_sweep_text_row(&line, &sweep->form, &row);
    else
        vp_sweep_row(&line, &sweep->form, &row);
    point->line = vp_arena_text(&w->lines, vp_buf_text(&line), line.size);
    point->size = line.size;
}

static enum vp_status evaluate(struct worker *w, struct vp_sweep_point *point) {
    const struct vp_sweep *sweep = w->sweeper->sweep;
    struct vp_setting settings[VP_GRID_FIELDS];
    const struct vp_scenario *scenario;
    struct vp_result *result = NULL;

    vp_grid_settings(sweep->grid, settings, point->row);
    if (sweep->where && !vp_where_holds(sweep->where, settings))
        return VP_OK;
    enum vp_status status =
        vp_variants_make(sweep->variants, &w->ctx, &scenario, settings, sweep->grid->field_count);
    if (status == VP_ERR_ENV)
        return status;
    if (status == VP_OK) {
        result = VP_NEW(&w->scratch, struct vp_result);
        point->evaluated = vp_plan_evaluate(&w->scratch, result, scenario);
        if (!point->evaluated)
            result = NULL;
    }
    if (result && sweep->form.latency)
        vp_plan_latency(&w->scratch, result);
    for (size_t i = 0; result && i < sweep->objectives.count; i++)
        point->value[i] = value_of(sweep, settings, result, sweep->objectives.item[i].column);
    if (result)
        point->verdict = result->verdict;
    write_line(w, point, settings, result);
    return VP_OK;
}

static void run_one(struct worker *w, size_t i) {
    struct vp_sweeper *sweeper = w->sweeper;
    struct vp_sweep_point *point = &sweeper->points[i];
    *point = (struct vp_sweep_point){.row = sweeper->first + i};
    w->diags.count = w->diags.errors = w->diags.dropped = 0;
    enum vp_status status = evaluate(w, point);
    vp_arena_rewind(&w->scratch, w->scratch_begin);
    if (status != VP_OK)
        atomic_store(&sweeper->failed, (int)status);
}

/* ---- threads ---- */

/* Memory that cannot be had ends this thread's part, not the others'. */
static void *work(void *argument) {
    struct worker *w = argument;
    struct vp_sweeper *sweeper = w->sweeper;
    jmp_buf no_memory;
    if (setjmp(no_memory)) {
        atomic_store(&sweeper->failed, (int)VP_ERR_ENV);
        return NULL;
    }
    w->scratch.oom = w->lines.oom = &no_memory;
    for (;;) {
        size_t begin = atomic_fetch_add(&sweeper->next, GRAIN);
        if (begin >= sweeper->count || atomic_load(&sweeper->failed) != VP_OK)
            return NULL;
        size_t end = begin + GRAIN < sweeper->count ? begin + GRAIN : sweeper->count;
        for (size_t i = begin; i < end; i++)
            run_one(w, i);
    }
}

/* A chunk of memory to rewind to, so that a combination takes none from the system. */
static bool prepare(struct vp_arena *arena, struct vp_arena_mark *mark) {
    jmp_buf no_memory;
    if (setjmp(no_memory))
        return false;
    arena->oom = &no_memory;
    vp_arena_alloc(arena, SCRATCH_BYTES);
    *mark = vp_arena_mark(arena);
    mark->used = 0;
    return true;
}

struct vp_sweeper *vp_sweeper_new(const struct vp_ctx *ctx, const struct vp_sweep *sweep,
                                  unsigned threads) {
    struct vp_sweeper *sweeper = calloc(1, sizeof *sweeper);
    if (!sweeper)
        return NULL;
    sweeper->sweep = sweep;
    sweeper->workers = calloc(threads, sizeof *sweeper->workers);
    for (unsigned i = 0; sweeper->workers && i < threads; i++) {
        struct worker *w = &sweeper->workers[i];
        w->sweeper = sweeper;
        w->ctx = *ctx;
        w->ctx.arena = w->diags.arena = &w->scratch;
        w->ctx.diags = &w->diags;
        sweeper->threads = i + 1;
        if (!prepare(&w->scratch, &w->scratch_begin) || !prepare(&w->lines, &w->lines_begin))
            break;
        if (i + 1 == threads)
            return sweeper;
    }
    vp_sweeper_free(sweeper);
    return NULL;
}

void vp_sweeper_free(struct vp_sweeper *sweeper) {
    if (!sweeper)
        return;
    for (unsigned i = 0; i < sweeper->threads; i++) {
        vp_arena_free(&sweeper->workers[i].scratch);
        vp_arena_free(&sweeper->workers[i].lines);
    }
    free(sweeper->workers);
    free(sweeper);
}

/* The calling thread is the first worker; others that cannot be started are done without. */
enum vp_status vp_sweeper_run(struct vp_sweeper *sweeper, struct vp_sweep_point *points,
                              uint64_t first, size_t count) {
    unsigned threads = sweeper->threads;
    if (count <= (size_t)threads * GRAIN)
        threads = (unsigned)((count + GRAIN - 1) / GRAIN);
    sweeper->points = points;
    sweeper->first = first;
    sweeper->count = count;
    atomic_store(&sweeper->next, 0);
    atomic_store(&sweeper->failed, VP_OK);
    for (unsigned i = 0; i < sweeper->threads; i++)
        vp_arena_rewind(&sweeper->workers[i].lines, sweeper->workers[i].lines_begin);
    for (unsigned i = 1; i < threads; i++) {
        struct worker *w = &sweeper->workers[i];
        w->started = pthread_create(&w->thread, NULL, work, w) == 0;
    }
    work(&sweeper->workers[0]);
    for (unsigned i = 1; i < threads; i++)
        if (sweeper->workers[i].started)
            pthread_join(sweeper->workers[i].thread, NULL);
    return (enum vp_status)atomic_load(&sweeper->failed);
}

/* FNV-1a, with a byte between texts. */
static uint64_t mix(uint64_t hash, const char *text) {
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

const char *vp_sweep_id(struct vp_ctx *ctx, const struct vp_sweep *sweep, const char *const *texts,
                        size_t count) {
    struct vp_sweep corners = *sweep;
    struct vp_sweep_point point;
    uint64_t last = sweep->grid->total - 1, hash = UINT64_C(0xcbf29ce484222325);
    corners.where = NULL;
    corners.objectives.count = 0;
    corners.form.style = VP_SWEEP_CSV;
    corners.form.sweep = "";
    struct vp_sweeper *sweeper = vp_sweeper_new(ctx, &corners, 1);
    if (!sweeper)
        return NULL;
    hash = mix(mix(hash, VP_VERSION), vp_variants_text(sweep->variants, ctx));
    for (size_t i = 0; i < count; i++)
        hash = mix(hash, texts[i]);
    enum vp_status status = VP_OK;
    for (int i = 0; i < 2 && status == VP_OK; i++) {
        status = vp_sweeper_run(sweeper, &point, i ? last : 0, 1);
        if (status == VP_OK)
            hash = mix(hash, point.line);
    }
    vp_sweeper_free(sweeper);
    return status == VP_OK ? vp_arena_printf(ctx->arena, "%016" PRIx64, hash) : NULL;
}

/* total x (shard - 1) / shards without a product beyond 64 bits: total is at most 10^9 and shards
 * beyond it are empty. */
uint64_t vp_sweep_shard_begin(uint64_t total, uint64_t shard, uint64_t shards) {
    if (shards <= total)
        return total * (shard - 1) / shards;
    return shard - 1 < total ? shard - 1 : total;
}
