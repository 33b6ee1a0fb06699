#include "reports/gate_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/difference_words.h"
#include "reports/words.h"

const char *vp_gate_word(enum vp_check_state state) {
    static const char *const WORDS[VP_CHECK_STATES] = {
        [VP_CHECK_PASS] = "ok",         [VP_CHECK_NEW] = "new",
        [VP_CHECK_REMOVED] = "removed", [VP_CHECK_WAIVED] = "waived",
        [VP_CHECK_WARN] = "warning",    [VP_CHECK_INCONCLUSIVE] = "INCONCLUSIVE",
        [VP_CHECK_FAIL] = "FAIL",       [VP_CHECK_INVALID] = "INVALID"};
    return WORDS[state];
}

const char *vp_gate_counts(struct vp_arena *arena, const struct vp_gate *gate) {
    static const char *const WORDS[VP_CHECK_STATES] = {
        [VP_CHECK_PASS] = "passed",        [VP_CHECK_NEW] = "new",
        [VP_CHECK_REMOVED] = "removed",    [VP_CHECK_WAIVED] = "waived",
        [VP_CHECK_WARN] = "with warnings", [VP_CHECK_INCONCLUSIVE] = "inconclusive",
        [VP_CHECK_FAIL] = "failed",        [VP_CHECK_INVALID] = "invalid"};
    struct vp_buf out = {.arena = arena};

    for (int s = VP_CHECK_STATES - 1; s >= 0; s--)
        if (gate->scenarios_of[s] > 0)
            vp_buf_printf(&out, "%s%" PRIu32 " %s", out.size ? ", " : "", gate->scenarios_of[s],
                          WORDS[s]);
    return out.size ? vp_buf_text(&out) : "no scenario";
}

const char *vp_gate_base_text(struct vp_arena *arena, const struct vp_gate *gate) {
    if (!gate->base_label)
        return "none";
    if (!gate->base_commit)
        return gate->base_label;
    if (vp_text_eq(gate->base_label, gate->base_commit))
        return vp_arena_printf(arena, "commit %.12s", gate->base_commit);
    return vp_arena_printf(arena, "%s (%.12s)", gate->base_label, gate->base_commit);
}

/* ---- findings ---- */

/* What moved a check's figure most; NULL: nothing did, or it is not known. */
static const struct vp_difference_step *cause_of(const struct vp_gate_scenario *scenario,
                                                 const struct vp_check *check) {
    if (!scenario->difference || check->kind == VP_CHECK_MEASURED)
        return NULL;
    return vp_difference_main(scenario->difference, (int)check->component);
}

/* The new line that did it. What was taken away stands in the base's file only. */
static const struct vp_pos *cause_pos(const struct vp_difference_step *step) {
    for (uint32_t i = 0; step && i < (step->whole_model ? 1 : step->causes); i++)
        if (step->cause[i].pos.file && step->cause[i].to)
            return &step->cause[i].pos;
    return NULL;
}

static struct vp_pos place_of(const struct vp_finding *f) {
    const struct vp_pos *cause = cause_pos(f->cause);
    struct vp_pos pos = cause && f->check->state != VP_CHECK_INVALID ? *cause : f->check->pos;

    if (!pos.file)
        pos = f->scenario->pos;
    if (!pos.file)
        pos.file = f->scenario->file ? f->scenario->file : "";
    if (pos.line == 0)
        pos.line = 1;
    return pos;
}

/* FNV-1a over scenario and check; further scenarios of one name are counted. */
static const char *fingerprint(struct vp_arena *arena, const struct vp_gate *gate,
                               const struct vp_finding *f) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    unsigned same = 0;

    for (const struct vp_gate_scenario *s = gate->scenarios; s < f->scenario; s++)
        same += vp_text_eq(s->name, f->scenario->name);
    const char *text = vp_arena_printf(arena, "%s\n%s", f->scenario->name, f->check->name);
    if (same > 0)
        text = vp_arena_printf(arena, "%s\n%u", text, same + 1);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return vp_arena_printf(arena, "%016" PRIx64, hash);
}

static int worse_first(const void *left, const void *right) {
    const struct vp_finding *a = left, *b = right;

    if (a->check->state != b->check->state)
        return a->check->state > b->check->state ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

const char *vp_finding_path(struct vp_arena *arena, const struct vp_finding *finding,
                            const char *file) {
    bool within = finding->folder && file && *file != '/';
    return vp_words_file(arena,
                         within ? vp_arena_printf(arena, "%s%s", finding->folder, file) : file);
}

uint32_t vp_gate_findings(struct vp_arena *arena, struct vp_finding **out,
                          const struct vp_gate *gate) {
    uint32_t most = 1, count = 0;

    for (uint32_t i = 0; i < gate->scenario_count; i++)
        most += gate->scenarios[i].check_count;
    struct vp_finding *items = VP_NEW_ARRAY(arena, most, struct vp_finding);
    for (uint32_t i = 0; i < gate->scenario_count; i++)
        for (uint32_t c = 0; c < gate->scenarios[i].check_count; c++) {
            struct vp_finding f = {.scenario = &gate->scenarios[i],
                                   .check = &gate->scenarios[i].checks[c]};
            if (f.check->state == VP_CHECK_PASS)
                continue;
            f.cause = cause_of(f.scenario, f.check);
            f.folder = gate->folder;
            f.pos = place_of(&f);
            f.fingerprint = fingerprint(arena, gate, &f);
            f.order = count;
            items[count++] = f;
        }
    if (count)
        qsort(items, count, sizeof *items, worse_first);
    *out = items;
    return count;
}

struct place {
    enum vp_check_state state;
    uint32_t index;
};

static int worse_place(const void *left, const void *right) {
    const struct place *a = left, *b = right;

    if (a->state != b->state)
        return a->state > b->state ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

const uint32_t *vp_gate_order(struct vp_arena *arena, const struct vp_gate *gate) {
    uint32_t count = gate->scenario_count;
    struct place *places = VP_NEW_ARRAY(arena, count + 1, struct place);
    uint32_t *order = VP_NEW_ARRAY(arena, count + 1, uint32_t);

    for (uint32_t i = 0; i < count; i++)
        places[i] = (struct place){gate->scenarios[i].worst, i};
    if (count)
        qsort(places, count, sizeof *places, worse_place);
    for (uint32_t i = 0; i < count; i++)
        order[i] = places[i].index;
    return order;
}

const char *vp_finding_line(struct vp_arena *arena, const struct vp_finding *f) {
    const char *line = vp_arena_printf(arena, "%s: %s", f->scenario->name, f->check->message);

    if (f->cause)
        line = vp_arena_printf(arena, "%s; %s", line, vp_words_causes(arena, f->cause, 2));
    return line;
}

/* ---- what would let it pass ---- */

/* Bytes that one check has too many: the whole interval has to keep the limit. 0: it is not about
 * bytes that a smaller plan would save. */
static uint64_t over_of(const struct vp_gate_scenario *s, const struct vp_check *c) {
    const struct vp_device *worst = &s->head->devices[s->head->worst];
    bool kv = c->kind == VP_CHECK_COMPONENT && c->component == VP_C_KV_CACHE;
    int64_t over = 0;

    if (c->kind == VP_CHECK_FITS)
        return vp_above(worst->need.high, worst->usable_bytes);
    if (c->kind == VP_CHECK_GROWTH)
        over = c->value.likely - c->limit;
    else if (kv || (c->kind == VP_CHECK_BOUND && c->bound == VP_BOUND_MEMORY))
        over = c->value.high - c->limit;
    else if (c->kind == VP_CHECK_BOUND && c->bound == VP_BOUND_HEADROOM)
        over = c->limit - c->value.low;
    return over > 0 ? (uint64_t)over : 0;
}

/* Of all checks that do not pass. */
static uint64_t most_over(const struct vp_gate_scenario *s) {
    uint64_t most = 0;

    for (uint32_t i = 0; i < s->check_count; i++)
        if (s->checks[i].state >= VP_CHECK_WARN)
            most = vp_max(most, over_of(s, &s->checks[i]));
    return most;
}

/* By the price of 1,024 tokens; 0: shorter sequences do not do it, or the engine has a setting of
 * its own for the length that was not given by sequence. */
static uint64_t context_allowed(const struct vp_gate_scenario *s, uint64_t over) {
    uint64_t price = s->head->prices.per_1k_context, context = s->head->scenario->serve.context;
    const struct vp_scenario *scenario = s->head->scenario;

    if (vp_engine_is_llama(scenario->engine.kind) && !vp_scenario_is_given(scenario, VP_F_CONTEXT))
        return 0;
    if (s->head->training.stage || price == 0 || over / price > context / 1024)
        return 0;
    uint64_t tokens = vp_mul_div(over, 1024, price) + 1;
    return tokens < context ? (context - tokens) / 16 * 16 : 0;
}

static void add_way(struct vp_buf *out, const char *text) {
    vp_buf_printf(out, "%s%s", out->size ? ", or " : "", text);
}

const char *vp_gate_to_pass(struct vp_arena *arena, const struct vp_gate_scenario *s) {
    enum { MOST = 2 };
    struct vp_buf out = {.arena = arena};
    uint64_t over = s->head ? most_over(s) : 0;
    uint32_t named = 0;

    if (over == 0)
        return NULL;
    uint64_t context = context_allowed(s, over);
    uint64_t allowed = vp_above(s->head->devices[s->head->worst].need.likely, over);
    if (context > 0)
        add_way(&out, vp_arena_printf(arena, "serve.context of about %s",
                                      vp_format_count(arena, context)));
    for (uint32_t i = 0; i < s->head->suggestion_count && named < MOST; i++) {
        const struct vp_suggestion *way = &s->head->suggestions[i];
        if (way->need_bytes > allowed || !way->patch_field ||
            vp_text_eq(way->patch_field, "serve.context"))
            continue;
        add_way(&out, vp_arena_printf(arena, "%s %s (%s GiB)", way->patch_field, way->patch_value,
                                      vp_format_gib(arena, way->need_bytes, 2)));
        named++;
    }
    return out.size ? vp_buf_text(&out) : NULL;
}
