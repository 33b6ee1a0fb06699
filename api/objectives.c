#include "api/objectives.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/plan/pareto.h"

/* ---- reading ---- */

struct reading {
    struct vp_ctx *ctx;
    struct vp_objectives *out;
    const char *text;
    const char *const *columns;
    size_t column_count;
};

static const char *find(const struct reading *r, const char *name) {
    for (size_t i = 0; i < r->column_count; i++)
        if (vp_text_eq(r->columns[i], name))
            return r->columns[i];
    return NULL;
}

/* "headroom" -> "headroom_bytes", "context" -> "serve.context"; in this order, so that it does not
 * depend on the order of the columns. */
static const char *find_short(const struct reading *r, const char *name) {
    static const char *const ENDS[] = {
        "", "_bytes", "_likely_bytes", "_likely_ms", "_likely_tokens_per_s", "_per_hour"};
    const char *found = NULL;
    for (size_t i = 0; !found && i < sizeof ENDS / sizeof *ENDS; i++)
        found = find(r, vp_arena_printf(r->ctx->arena, "%s%s", name, ENDS[i]));
    const char *tail = vp_arena_printf(r->ctx->arena, ".%s", name);
    for (size_t i = 0; !found && i < r->column_count; i++)
        if (vp_text_ends(r->columns[i], tail))
            found = r->columns[i];
    return found;
}

static bool is_work(const char *column) {
    static const char *const WORK[] = {"serve.context", "serve.concurrency", "train.micro_batch",
                                       "train.sequence_length"};
    for (size_t i = 0; i < sizeof WORK / sizeof *WORK; i++)
        if (vp_text_eq(WORK[i], column))
            return true;
    return false;
}

static bool is_wanted_large(const char *column) {
    return is_work(column) || vp_text_eq(column, "headroom_bytes") ||
           vp_text_eq(column, "kv_tokens") || vp_text_eq(column, "max_concurrency") ||
           vp_text_eq(column, "max_context") || vp_text_ends(column, "_tokens_per_s");
}

static void add(struct reading *r, const char *column, bool most) {
    size_t i = r->out->count++;
    r->out->item[i].column = column;
    r->out->item[i].most = most;
}

static void add_defaults(struct reading *r) {
    static const char *const NAMES[] = {"price_per_hour", "devices", "headroom_bytes",
                                        "step_likely_ms"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (find(r, NAMES[i]))
            add(r, NAMES[i], is_wanted_large(NAMES[i]));
    for (size_t i = 0; i < r->column_count && r->out->count < VP_OBJECTIVES; i++)
        if (is_work(r->columns[i]))
            add(r, r->columns[i], true);
}

static bool fail(const struct reading *r, const char *at, const char *message) {
    struct vp_pos pos = {vp_arena_printf(r->ctx->arena, "--objectives %s", r->text), 1,
                         (uint32_t)(at - r->text) + 1};
    vp_diag_add(r->ctx->diags, VP_D_BAD_OPTION, &pos, "%s", message);
    return false;
}

static bool read_one(struct reading *r, const char *at, size_t n) {
    const char *item = vp_arena_text(r->ctx->arena, at, n), *colon = strchr(item, ':');
    const char *name = colon ? vp_arena_text(r->ctx->arena, item, (size_t)(colon - item)) : item;
    const char *column = find_short(r, name);
    if (!column) {
        const char *near = vp_text_nearest(name, r->columns, r->column_count);
        fail(r, at, vp_arena_printf(r->ctx->arena, "there is no column of numbers '%s'", name));
        if (near)
            vp_diag_hint(r->ctx->diags, "did you mean %s?", near);
        return false;
    }
    if (colon && !vp_text_eq(colon, ":max") && !vp_text_eq(colon, ":min"))
        return fail(r, at + (colon - item), "a direction is ':min' or ':max'");
    for (size_t i = 0; i < r->out->count; i++)
        if (r->out->item[i].column == column)
            return fail(r, at, vp_arena_printf(r->ctx->arena, "%s stands there twice", column));
    if (r->out->count == VP_OBJECTIVES)
        return fail(r, at, "more than 8 objectives");
    add(r, column, colon ? vp_text_eq(colon, ":max") : is_wanted_large(column));
    return true;
}

enum vp_status vp_objectives_read(struct vp_ctx *ctx, struct vp_objectives *out, const char *text,
                                  const char *const *columns, size_t column_count) {
    struct reading r = {ctx, out, text, columns, column_count};
    bool ok = true;
    *out = (struct vp_objectives){.count = 0};
    if (!text)
        add_defaults(&r);
    for (const char *at = text; at;) {
        size_t n = strcspn(at, ",");
        ok &= read_one(&r, at, n);
        at = at[n] ? at + n + 1 : NULL;
    }
    return ok ? VP_OK : VP_ERR_INPUT;
}

/* ---- the front ---- */

static void fill(const struct vp_front *front, double *out, const struct vp_front_point *point) {
    for (size_t k = 0; k < front->objectives->count; k++)
        out[k] = front->objectives->item[k].most ? -point->value[k] : point->value[k];
}

void vp_front_add(struct vp_front *front, struct vp_arena *arena,
                  const struct vp_front_point *points, size_t count) {
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct vp_arena *next = &front->arena[!front->at];
    size_t all = front->count + count, width = front->objectives->count, kept = 0;
    double *values = VP_NEW_ARRAY(arena, all * width + 1, double);
    bool *keep = VP_NEW_ARRAY(arena, all + 1, bool);

    for (size_t i = 0; i < all; i++)
        fill(front, values + i * width,
             i < front->count ? &front->points[i] : &points[i - front->count]);
    vp_pareto_front(arena, keep, values, all, width);
    next->oom = arena->oom;
    struct vp_front_point *out = VP_NEW_ARRAY(next, all + 1, struct vp_front_point);
    for (size_t i = 0; i < all; i++) {
        if (!keep[i])
            continue;
        out[kept] = i < front->count ? front->points[i] : points[i - front->count];
        out[kept].line = vp_arena_text(next, out[kept].line, out[kept].size);
        kept++;
    }
    vp_arena_free(&front->arena[front->at]);
    front->at = !front->at;
    front->points = out;
    front->count = kept;
    vp_arena_rewind(arena, mark);
}

void vp_front_free(struct vp_front *front) {
    for (int i = 0; i < 2; i++)
        vp_arena_free(&front->arena[i]);
    *front = (struct vp_front){.objectives = front->objectives};
}
