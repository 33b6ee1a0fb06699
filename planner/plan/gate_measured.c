/* The checks of a plan against records of real runs. */
#include <inttypes.h>

#include "planner/base/text.h"
#include "planner/plan/figures.h"
#include "planner/plan/gate_parts.h"

static const enum vp_check_unit UNITS[] = {
    [VP_FIGURE_GIB] = VP_UNIT_BYTES,   [VP_FIGURE_MIB] = VP_UNIT_BYTES,
    [VP_FIGURE_BYTES] = VP_UNIT_BYTES, [VP_FIGURE_COUNT] = VP_UNIT_COUNT,
    [VP_FIGURE_MILLI] = VP_UNIT_MILLI, [VP_FIGURE_SHARE] = VP_UNIT_SHARE};

/* A name that no other check has: several records may hold the same figure. */
static const char *unique(const struct vp_gating *g, const char *name) {
    uint32_t times = 1;
    const char *candidate = name;
    for (uint32_t i = 0; i < g->count; i++)
        if (vp_text_eq(g->checks[i].name, candidate)) {
            candidate = vp_arena_printf(g->ctx->arena, "%s.%" PRIu32, name, ++times);
            i = UINT32_MAX; /* from the first one again */
        }
    return candidate;
}

static struct vp_check *add(struct vp_gating *g, const char *key, const char *place,
                            const struct vp_pos *pos) {
    struct vp_arena *arena = g->ctx->arena;
    const char *name = vp_arena_printf(arena, "measured%s%s%s%s", key ? "." : "", key ? key : "",
                                       place ? "." : "", place ? place : "");
    struct vp_check *check = vp_gate_new(g, VP_CHECK_MEASURED, "");
    check->name = unique(g, name);
    check->pos = *pos;
    return check;
}

static const struct vp_figure *find(const struct vp_figure *figures, size_t count,
                                    const struct vp_record_value *value) {
    for (size_t i = 0; i < count; i++) {
        const char *place = figures[i].place;
        if (vp_text_eq(figures[i].key, value->key) &&
            (vp_text_eq(place, value->place) ||
             (place && !value->place && vp_text_eq(place, "GPU0"))))
            return &figures[i];
    }
    return NULL;
}

static void no_figure(struct vp_gating *g, const struct vp_figure *figures, size_t count,
                      const struct vp_record_value *value) {
    const char *keys[VP_FIGURES];
    struct vp_check *check = add(g, value->key, value->place, &value->pos);
    for (size_t i = 0; i < count; i++)
        keys[i] = figures[i].key;
    const char *nearest = vp_text_nearest(value->key, keys, count);
    check->state = VP_CHECK_INCONCLUSIVE;
    check->id = VP_D_GATE_RECORD;
    check->message = vp_arena_printf(g->ctx->arena, "the plan has no figure %s%s%s", value->key,
                                     value->place ? " of " : "", value->place ? value->place : "");
    if (nearest && !vp_text_eq(nearest, value->key))
        check->hint = vp_arena_printf(g->ctx->arena, "did you mean %s?", nearest);
}

/* The tolerance of a key, else the record's for every other one; NULL: none was given. */
static const struct vp_tolerance *tolerance_of(const struct vp_record *record, const char *key) {
    const struct vp_tolerance *other = NULL;
    for (uint32_t i = 0; i < record->tolerance_count; i++) {
        const struct vp_tolerance *t = &record->tolerances[i];
        if (vp_text_eq(t->key, key))
            return t;
        if (!t->key)
            other = t;
    }
    return other;
}

/* Without a tolerance the plan's interval must hold what was measured. What was printed is rounded
 * or cut off: one in its last place. */
static bool is_near(const struct vp_amount *plan, const struct vp_record_value *value,
                    const struct vp_tolerance *tolerance) {
    const uint64_t billion = 1000000000;
    uint64_t m = value->value, step = value->step > 1 ? value->step : 0;
    if (!tolerance)
        return plan->low <= m + step && m <= plan->high + step;
    uint64_t apart = m > plan->likely ? m - plan->likely : plan->likely - m;
    return apart <= vp_mul_div(m, tolerance->ppb, billion) + step;
}

static void compare(struct vp_gating *g, const struct vp_record *record,
                    const struct vp_figure *figure, const struct vp_record_value *value) {
    struct vp_arena *arena = g->ctx->arena;
    const struct vp_tolerance *t = tolerance_of(record, value->key);
    struct vp_check *check = add(g, value->key, value->place, &value->pos);
    check->unit = UNITS[figure->unit];
    check->value_known = check->limit_known = true;
    check->value = (struct vp_quantity){(int64_t)figure->amount.low, (int64_t)figure->amount.likely,
                                        (int64_t)figure->amount.high};
    check->limit = (int64_t)value->value;
    bool near = is_near(&figure->amount, value, t);
    const char *plan = vp_check_show(arena, check->unit, check->value.likely);
    if (!t)
        plan = vp_arena_printf(arena, "%s (%s to %s)", plan,
                               vp_check_show(arena, check->unit, check->value.low),
                               vp_check_show(arena, check->unit, check->value.high));
    check->message = vp_arena_printf(arena, "planned %s, measured %s%s", plan,
                                     vp_check_show(arena, check->unit, check->limit),
                                     near ? ""
                                     : t  ? ": further apart than the tolerance"
                                          : ": outside of the plan's interval");
    if (near)
        return;
    check->state = VP_CHECK_FAIL;
    check->id = VP_D_GATE_MEASURED;
    if (t)
        check->message =
            vp_arena_printf(arena, "%s of %" PRIu64 ".%02" PRIu64 " %%", check->message,
                            t->ppb / 10000000, t->ppb % 10000000 / 100000);
}

/* NULL: the record is of the engine and version that are planned, as far as it says. */
static const char *other_run(struct vp_arena *arena, const struct vp_record *record,
                             const struct vp_engine *engine) {
    struct vp_version version;
    if (record->engine && !vp_name_eq(record->engine, engine->name))
        return vp_arena_printf(arena, "the record is of %s, the plan of %s", record->engine,
                               engine->name);
    const char *theirs = record->engine_version, *ours = engine->version_text;
    if (!theirs || !ours || vp_text_eq(theirs, ours))
        return NULL;
    if (vp_version_parse(&version, theirs) && version.kind == engine->version.kind &&
        vp_version_compare(version, engine->version) == 0)
        return NULL;
    return vp_arena_printf(arena, "the record is of %s %s, the plan of %s", engine->name, theirs,
                           ours);
}

/* A tolerance of a figure that the record does not hold is a slip: it would be passed over. */
static void check_tolerances(struct vp_gating *g, const struct vp_record *record) {
    const char **keys = VP_NEW_ARRAY(g->ctx->arena, record->value_count, const char *);
    for (uint32_t v = 0; v < record->value_count; v++)
        keys[v] = record->values[v].key;
    for (uint32_t i = 0; i < record->tolerance_count; i++) {
        const struct vp_tolerance *t = &record->tolerances[i];
        uint32_t v = 0;
        while (t->key && v < record->value_count && !vp_text_eq(keys[v], t->key))
            v++;
        if (!t->key || v < record->value_count)
            continue;
        struct vp_check *check = add(g, t->key, NULL, &t->pos);
        const char *nearest = vp_text_nearest(t->key, keys, record->value_count);
        check->state = VP_CHECK_INCONCLUSIVE;
        check->id = VP_D_GATE_RECORD;
        check->message = vp_arena_printf(
            g->ctx->arena, "there is a tolerance of %s, which the record does not have", t->key);
        if (nearest)
            check->hint = vp_arena_printf(g->ctx->arena, "did you mean %s?", nearest);
    }
}

static void check_record(struct vp_gating *g, const struct vp_record *record) {
    struct vp_figure figures[VP_FIGURES];
    const struct vp_result *head = g->question->head;
    const char *other = other_run(g->ctx->arena, record, &head->scenario->engine);
    if (other) {
        struct vp_check *check = add(g, NULL, NULL, &record->pos);
        check->state = VP_CHECK_INCONCLUSIVE;
        check->id = VP_D_GATE_RECORD;
        check->message = other;
        check->hint =
            "measure again: vramplan import-log LOG --scenario FILE --measured-out RECORD";
        return;
    }
    check_tolerances(g, record);
    size_t count = vp_figures_of(figures, head);
    for (uint32_t i = 0; i < record->value_count; i++) {
        const struct vp_record_value *value = &record->values[i];
        const struct vp_figure *figure = find(figures, count, value);
        if (figure)
            compare(g, record, figure, value);
        else
            no_figure(g, figures, count, value);
    }
}

void vp_gate_measured(struct vp_gating *g) {
    const struct vp_budget *budget = g->question->budget;
    for (uint32_t i = 0; i < budget->record_count; i++)
        check_record(g, &budget->records[i]);
}
