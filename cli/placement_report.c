#include "cli/placement_report.h"

#include <inttypes.h>

#include "cli/listing.h"
#include "planner/base/sum.h"
#include "planner/base/units.h"
#include "planner/recompute/judge.h"
#include "reports/layout.h"

/* ---- JSON ---- */

static void json_op(struct vp_json *json, const struct vp_chain_op *op) {
    vp_json_list_inline(json);
    vp_json_text(json, vp_chain_op_name(op->kind));
    if (op->kind != VP_OP_LOSS)
        vp_json_u64(json, op->stage);
    if (op->kind == VP_OP_SAVE)
        vp_json_u64(json, op->option);
    vp_json_end(json, ']');
}

static void json_item(struct vp_json *json, const struct vp_plan_item *item) {
    vp_json_list_inline(json);
    vp_json_text(json, item->recompute ? "C" : "K");
    vp_json_u64(json, item->first);
    vp_json_u64(json, item->recompute ? item->last : item->option);
    vp_json_end(json, ']');
}

/* Where the schedule is at its peak. */
static size_t peak_at(struct vp_arena *arena, const struct vp_placement *c) {
    struct vp_judgement j;
    vp_judge(arena, &j, c->chain, &c->answer.schedule);
    return j.peak_at;
}

static void json_plan(struct vp_json *json, const struct vp_placement *c) {
    const struct vp_recompute_answer *a = &c->answer;
    vp_json_key(json, "plan");
    vp_json_list_inline(json);
    for (uint32_t i = 0; i < a->plan.count; i++)
        json_item(json, &a->plan.items[i]);
    vp_json_end(json, ']');
    if (a->plan.count)
        return; /* the schedule follows from the plan */
    vp_json_key(json, "schedule");
    vp_json_list_inline(json);
    for (size_t i = 0; i < a->schedule.count; i++)
        json_op(json, &a->schedule.ops[i]);
    vp_json_end(json, ']');
}

static void json_certificate(struct vp_json *json, const struct vp_placement *c) {
    const struct vp_recompute_answer *a = &c->answer;
    vp_json_key(json, "certificate");
    vp_json_map(json);
    vp_json_key_u64(json, "bound", a->bound);
    vp_json_key_u64(json, "labels", a->labels);
    vp_json_key_u64(json, "pruned", a->pruned);
    vp_json_key_bool(json, "plan_checked", c->certificate.plan);
    vp_json_key_bool(json, "bound_checked", c->certificate.bound);
    vp_json_key_text(json, "cap", a->cap);
    vp_json_end(json, '}');
}

/* Class a: every length, whether it fits or not. */
static void json_lengths(struct vp_json *json, const struct vp_recompute_answer *a) {
    vp_json_key(json, "lengths");
    vp_json_list(json);
    for (uint32_t i = 0; i < a->length_count; i++) {
        vp_json_map_inline(json);
        vp_json_key_u64(json, "k", a->lengths[i].k);
        vp_json_key_bool(json, "recompute_last", a->lengths[i].recompute_last);
        vp_json_key_u64(json, "peak_bytes", a->lengths[i].peak_bytes);
        vp_json_key_u64(json, "time", a->lengths[i].time);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

void vp_placement_json(struct vp_buf *out, const struct vp_placement *c) {
    const struct vp_recompute_answer *a = &c->answer;
    struct vp_json json = vp_json_begin(out);
    vp_json_map(&json);
    vp_json_key_text(&json, "schema", "vramplan.checkpoint/1");
    vp_json_key_text(&json, "class", vp_recompute_class_name(c->class));
    vp_json_key_u64(&json, "budget_bytes", c->budget_bytes);
    vp_json_key_u64(&json, "inflight", c->inflight);
    vp_json_key(&json, "feasible");
    if (!a->feasible && a->cap) /* not solved */
        vp_json_null(&json);
    else
        vp_json_bool(&json, a->feasible);
    if (a->length_count)
        json_lengths(&json, a);
    vp_json_key(&json, "least_bytes");
    if (a->least_bytes)
        vp_json_u64(&json, a->least_bytes);
    else
        vp_json_null(&json);
    if (a->feasible) {
        vp_json_key_u64(&json, "time", a->time);
        vp_json_key_u64(&json, "peak_bytes", a->peak_bytes);
        vp_json_key_u64(&json, "peak_at", peak_at(out->arena, c));
        vp_json_key_bool(&json, "optimal", a->optimal);
        vp_json_key_real(&json, "gap", (double)a->gap_ppb * 1e-9);
        json_certificate(&json, c);
        json_plan(&json, c);
    }
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
}

/* ---- the table ---- */

enum {
    ROW_PLAN,
    ROW_CLASS,
    ROW_NUMBER,
    ROW_PEAK,
    ROW_BYTES,
    ROW_EXTRA,
    ROW_TIME,
    ROW_FITS,
    ROW_PROOF,
    ROW_COLUMNS
};

static const struct vp_column COLUMNS[ROW_COLUMNS] = {
    [ROW_PLAN] = {"plan", "plan", VP_CELL_TEXT, VP_FOR_ALL},
    [ROW_CLASS] = {"class", "class", VP_CELL_TEXT, VP_FOR_ALL},
    [ROW_NUMBER] = {"number", "k, m, n", VP_CELL_NUMBER, VP_FOR_ALL},
    [ROW_PEAK] = {"", "peak", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [ROW_BYTES] = {"peak_bytes", "", VP_CELL_NUMBER, VP_FOR_MACHINES},
    [ROW_EXTRA] = {"", "extra time", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [ROW_TIME] = {"time", "", VP_CELL_NUMBER, VP_FOR_MACHINES},
    [ROW_FITS] = {"fits", "fits", VP_CELL_TEXT, VP_FOR_ALL},
    [ROW_PROOF] = {"optimal", "best of its class", VP_CELL_TEXT, VP_FOR_ALL},
};

/* A share in per cent with two decimals, rounded half up. */
static const char *percent(struct vp_arena *arena, uint64_t part, uint64_t whole) {
    uint64_t hundredths = whole ? vp_mul_div(part, 20000, whole) : 0;
    hundredths = (hundredths + 1) / 2;
    return vp_arena_printf(arena, "%" PRIu64 ".%02" PRIu64 " %%", hundredths / 100,
                           hundredths % 100);
}

static const char *proof_of(struct vp_arena *arena, const struct vp_policy *row) {
    const struct vp_recompute_answer *a = &row->answer;
    if (row->class == VP_PLACE_CLASSES)
        return NULL;
    if (!row->known)
        return a->cap ? vp_arena_printf(arena, "not solved: cap on %s", a->cap) : "no plan fits";
    if (a->optimal)
        return "proven";
    return vp_arena_printf(arena, "within %s", percent(arena, a->gap_ppb, 1000000000));
}

static const char *number(struct vp_arena *arena, bool known, uint64_t n) {
    return known ? vp_format_u64(arena, n) : NULL;
}

static void fill_row(struct vp_arena *arena, struct vp_cell *cells, const struct vp_policy *row,
                     uint64_t base) {
    bool is_class = row->class != VP_PLACE_CLASSES;
    bool sized = row->known || row->peak_bytes;
    cells[ROW_PLAN].text = row->meaning;
    cells[ROW_CLASS].text = is_class ? vp_recompute_class_name(row->class) : NULL;
    cells[ROW_NUMBER].text = number(arena, row->number != 0, row->number);
    cells[ROW_PEAK].text = sized ? vp_format_bytes(arena, row->peak_bytes) : NULL;
    cells[ROW_BYTES].text = number(arena, sized, row->peak_bytes);
    cells[ROW_EXTRA].text = row->known ? percent(arena, row->time - base, base) : NULL;
    cells[ROW_TIME].text = number(arena, row->known, row->time);
    cells[ROW_FITS].text = row->fits ? "yes" : "no";
    cells[ROW_PROOF].text = proof_of(arena, row);
}

/* ---- the words around it ---- */

/* "C 0-11, K 12-97 with option 2": neighbours that are kept alike go together. */
static void add_plan(struct vp_buf *out, const struct vp_recompute_plan *plan) {
    for (uint32_t i = 0, end; i < plan->count; i = end) {
        const struct vp_plan_item *first = &plan->items[i];
        for (end = i + 1; end < plan->count && !first->recompute && !plan->items[end].recompute &&
                          plan->items[end].option == first->option;)
            end++;
        uint32_t last = plan->items[end - 1].last;
        vp_buf_printf(out, "%s%s %" PRIu32, i ? ", " : "", first->recompute ? "recompute" : "keep",
                      first->first);
        if (last != first->first)
            vp_buf_printf(out, "-%" PRIu32, last);
        if (first->option)
            vp_buf_printf(out, " with option %" PRIu32, first->option);
    }
}

static const char *op_words(struct vp_arena *arena, const struct vp_chain_op *op) {
    switch (op->kind) {
    case VP_OP_FORWARD:
        return vp_arena_printf(arena, "the forward of stage %" PRIu32, op->stage);
    case VP_OP_SAVE:
        return vp_arena_printf(arena, "the saving forward of stage %" PRIu32, op->stage);
    case VP_OP_BACKWARD:
        return vp_arena_printf(arena, "the backward of stage %" PRIu32, op->stage);
    case VP_OP_DISCARD:
        return vp_arena_printf(arena, "the end of boundary %" PRIu32, op->stage);
    case VP_OP_LOSS:
        break;
    }
    return "the loss";
}

static void add_answer(struct vp_page *page, const struct vp_placement *c, uint64_t base) {
    const struct vp_recompute_answer *a = &c->answer;
    struct vp_arena *arena = page->out->arena;
    struct vp_buf plan = {.arena = arena};
    const char *meaning = vp_recompute_class_meaning(c->class);
    const char *name = vp_recompute_class_name(c->class);
    if (!a->feasible) {
        if (a->cap)
            vp_page_printf(page, 0, 2, "Class %s was not solved: cap on %s.", name, a->cap);
        else
            vp_page_printf(page, 0, 2, "No plan of class %s (%s) fits; the least peak is %s.", name,
                           meaning, vp_format_bytes(arena, a->least_bytes));
        return;
    }
    vp_page_printf(page, 0, 2, "Class %s (%s): %s more time, peak %s, %s.", name, meaning,
                   percent(arena, a->time - base, base), vp_format_bytes(arena, a->peak_bytes),
                   a->optimal ? "proven optimal"
                              : vp_arena_printf(arena, "within %s of the optimum",
                                                percent(arena, a->gap_ppb, 1000000000)));
    if (a->plan.count) {
        add_plan(&plan, &a->plan);
        vp_page_printf(page, 0, 2, "Plan: %s.", vp_buf_text(&plan));
    }
    size_t at = peak_at(arena, c);
    vp_page_printf(page, 0, 2, "The peak is at %s, operation %zu of %zu.",
                   op_words(arena, &a->schedule.ops[at]), at + 1, a->schedule.count);
    vp_page_printf(page, 0, 2,
                   "Certificate: lower bound %" PRIu64 " of time %" PRIu64 "; %" PRIu64
                   " partial plans kept, %" PRIu64 " struck out; plan %s, bound %s.",
                   a->bound, a->time, a->labels, a->pruned,
                   c->certificate.plan ? "checked" : "NOT CONFIRMED",
                   c->certificate.bound ? "checked" : "not checked apart");
}

static const struct vp_policy *row_of(const struct vp_policies *p, enum vp_policy_kind kind) {
    for (uint32_t i = 0; i < p->count; i++)
        if (p->items[i].kind == kind)
            return &p->items[i];
    return NULL;
}

const char *vp_placement_sqrt_words(struct vp_arena *arena, const struct vp_policies *policies,
                                    uint32_t stages) {
    const struct vp_policy *rule = row_of(policies, VP_POLICY_SQRT), *best = NULL;
    uint64_t ratio = policies->tape_ratio, base = policies->base_time;
    if (!rule)
        return NULL;
    for (uint32_t i = 0; i < policies->count; i++) {
        const struct vp_policy *row = &policies->items[i];
        if (row->fits && (!best || row->time < best->time))
            best = row;
    }
    if (!best || (rule->fits && rule->time == best->time))
        return vp_arena_printf(
            arena, "Segments of sqrt(%" PRIu32 ") = %" PRIu64 " stages: %s.", stages, rule->number,
            best ? "nothing here is faster within the budget" : "nothing here fits");
    const char *cost = rule->fits
                           ? vp_arena_printf(arena, "fit, but take %s more time where %s is enough",
                                             percent(arena, rule->time - base, base),
                                             percent(arena, best->time - base, base))
                           : vp_arena_printf(arena, "need %s for activations, which does not fit",
                                             vp_format_bytes(arena, rule->peak_bytes));
    const char *tail = ratio > 1000
                           ? "a segment that runs again holds all of its tapes, so shorter "
                             "ones need less; one length for all and full tapes or none "
                             "leave more to gain"
                           : "one length for all and full tapes or none leave room";
    return vp_arena_printf(
        arena,
        "Segments of sqrt(%" PRIu32 ") = %" PRIu64 " stages %s. The rule takes a stage's "
        "tape for nothing beside its boundary; here tape and boundary are %" PRIu64 ".%" PRIu64
        " times the boundary: %s.",
        stages, rule->number, cost, ratio / 1000, ratio % 1000 / 100, tail);
}

static void add_sqrt(struct vp_page *page, const struct vp_placement *c,
                     const struct vp_policies *policies) {
    const char *words = vp_placement_sqrt_words(page->out->arena, policies,
                                                c->chain->body_end - c->chain->body_first);
    if (words)
        vp_page_printf(page, 0, 2, "%s", words);
}

void vp_placement_table(struct vp_buf *out, const struct vp_placement *c,
                        const struct vp_policies *policies, enum vp_placement_form form) {
    struct vp_cell *cells =
        VP_NEW_ARRAY(out->arena, (size_t)policies->count * ROW_COLUMNS, struct vp_cell);
    for (uint32_t i = 0; i < policies->count; i++)
        fill_row(out->arena, &cells[(size_t)i * ROW_COLUMNS], &policies->items[i],
                 policies->base_time);
    struct vp_listing listing = {COLUMNS, ROW_COLUMNS, cells, policies->count};
    struct vp_page page = {.out = out, .width = VP_PAGE_WIDTH, .utf8 = true};
    if (form == VP_PLACEMENT_CSV) {
        vp_listing_csv(out, &listing);
        return;
    }
    vp_page_printf(
        &page, 0, 2, "%s: %" PRIu32 " stages, budget %s for activations%s", c->name, c->chain->n,
        vp_format_bytes(out->arena, c->budget_bytes),
        c->inflight > 1
            ? vp_arena_printf(out->arena, ", %" PRIu64 " microbatches in flight", c->inflight)
            : "");
    vp_buf_add(out, "\n");
    if (form == VP_PLACEMENT_MARKDOWN)
        vp_listing_markdown(out, &listing);
    else
        vp_listing_text(out, &listing, false);
    vp_buf_add(out, "\n");
    add_answer(&page, c, policies->base_time);
    if (form == VP_PLACEMENT_MARKDOWN)
        vp_buf_add(out, "\n");
    add_sqrt(&page, c, policies);
}

void vp_placement_frontier(struct vp_buf *out, const struct vp_frontier *frontier) {
    vp_buf_add(out, "peak_bytes,time,bound\n");
    for (uint32_t i = 0; i < frontier->count; i++)
        vp_buf_printf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", frontier->points[i].peak_bytes,
                      frontier->points[i].time, frontier->points[i].bound);
}
