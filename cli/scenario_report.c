#include "cli/scenario_report.h"

#include <inttypes.h>

#include "cli/listing.h"
#include "cli/placement_report.h"
#include "planner/base/sum.h"
#include "planner/base/units.h"
#include "reports/layout.h"
#include "reports/recompute_emit.h"
#include "reports/shell_words.h"

/* ---- frameworks ---- */

enum { F_NAME, F_SETTING, F_EXTRA, F_LOSS, F_NEED, F_BYTES, F_TIME, F_FITS, F_VERDICT, F_COLUMNS };

static const struct vp_column FRAMEWORK_COLUMNS[F_COLUMNS] = {
    [F_NAME] = {"framework", "--emit", VP_CELL_TEXT, VP_FOR_ALL},
    [F_SETTING] = {"recomputed", "recomputes", VP_CELL_TEXT, VP_FOR_ALL},
    [F_EXTRA] = {"", "extra", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [F_LOSS] = {"", "over best", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [F_NEED] = {"", "needs", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [F_BYTES] = {"need_bytes", "", VP_CELL_NUMBER, VP_FOR_MACHINES},
    [F_TIME] = {"time_ns", "", VP_CELL_NUMBER, VP_FOR_MACHINES},
    [F_FITS] = {"", "fits", VP_CELL_TEXT, VP_FOR_PEOPLE},
    [F_VERDICT] = {"verdict", "", VP_CELL_TEXT, VP_FOR_MACHINES},
};

static void fill_framework(struct vp_arena *arena, struct vp_cell *cells,
                           const struct vp_recompute_report *r, const struct vp_framework_plan *p) {
    static const char *const FITS[] = {
        [VP_FITS] = "yes", [VP_AT_RISK] = "maybe", [VP_DOES_NOT_FIT] = "no"};
    const struct vp_framework_plan *best = &r->framework[VP_FRAMEWORK_PYTORCH];
    uint64_t base = r->problem.base_ns;
    cells[F_NAME].text = vp_framework_info(p->framework)->name;
    if (p->refused) {
        cells[F_SETTING].text = p->refused;
        return;
    }
    cells[F_SETTING].text = vp_recompute_setting_brief(arena, p);
    cells[F_EXTRA].text = vp_recompute_percent(arena, vp_above(p->slowest_ns, base), base);
    cells[F_LOSS].text =
        vp_recompute_percent(arena, vp_above(p->slowest_ns, best->slowest_ns), best->slowest_ns);
    cells[F_NEED].text = vp_format_bytes(arena, p->need.likely);
    cells[F_BYTES].text = vp_format_u64(arena, p->need.likely);
    cells[F_TIME].text = vp_format_u64(arena, p->slowest_ns);
    cells[F_FITS].text = FITS[p->verdict];
    cells[F_VERDICT].text = vp_verdict_name(p->verdict);
}

static struct vp_listing frameworks(struct vp_arena *arena, const struct vp_recompute_report *r) {
    struct vp_listing out = {
        FRAMEWORK_COLUMNS, F_COLUMNS,
        VP_NEW_ARRAY(arena, (size_t)VP_FRAMEWORK_COUNT * F_COLUMNS, struct vp_cell), 0};
    for (enum vp_framework f = 0; f < VP_FRAMEWORK_COUNT; f++)
        if (r->known[f])
            fill_framework(arena, &out.cells[out.row_count++ * F_COLUMNS], r, &r->framework[f]);
    return out;
}

/* ---- what people set by hand, and the classes ---- */

enum { P_PLAN, P_CLASS, P_NUMBER, P_PEAK, P_EXTRA, P_FITS, P_PROOF, P_COLUMNS };

static const struct vp_column POLICY_COLUMNS[P_COLUMNS] = {
    [P_PLAN] = {"plan", "plan", VP_CELL_TEXT, VP_FOR_ALL},
    [P_CLASS] = {"class", "class", VP_CELL_TEXT, VP_FOR_ALL},
    [P_NUMBER] = {"number", "k, m, n", VP_CELL_NUMBER, VP_FOR_ALL},
    [P_PEAK] = {"", "peak", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [P_EXTRA] = {"", "extra", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [P_FITS] = {"fits", "fits", VP_CELL_TEXT, VP_FOR_ALL},
    [P_PROOF] = {"optimal", "best of its class", VP_CELL_TEXT, VP_FOR_ALL},
};

static const char *proof_of(struct vp_arena *arena, const struct vp_policy *row) {
    if (row->class == VP_PLACE_CLASSES)
        return NULL;
    if (!row->known)
        return row->answer.cap ? vp_arena_printf(arena, "not solved: cap on %s", row->answer.cap)
                               : "no plan fits";
    if (row->answer.optimal)
        return "proven";
    return vp_arena_printf(arena, "within %s",
                           vp_recompute_percent(arena, row->answer.gap_ppb, 1000000000));
}

static void fill_policy(struct vp_arena *arena, struct vp_cell *cells,
                        const struct vp_recompute_report *r, const struct vp_policy *row) {
    bool is_class = row->class != VP_PLACE_CLASSES, sized = row->known || row->peak_bytes;
    uint64_t base = r->policies.base_time;
    cells[P_PLAN].text = row->meaning;
    cells[P_CLASS].text = is_class ? vp_recompute_class_name(row->class) : NULL;
    cells[P_NUMBER].text = row->number ? vp_format_u64(arena, row->number) : NULL;
    cells[P_PEAK].text = sized ? vp_format_bytes(arena, row->peak_bytes + r->beside_bytes) : NULL;
    cells[P_EXTRA].text = row->known ? vp_recompute_percent(arena, row->time - base, base) : NULL;
    cells[P_FITS].text = row->fits ? "yes" : "no";
    cells[P_PROOF].text = proof_of(arena, row);
}

static struct vp_listing policies(struct vp_arena *arena, const struct vp_recompute_report *r) {
    const struct vp_policies *p = &r->policies;
    struct vp_listing out = {
        POLICY_COLUMNS, P_COLUMNS,
        VP_NEW_ARRAY(arena, (size_t)VP_POLICY_COUNT * P_COLUMNS, struct vp_cell), p->count};
    for (uint32_t i = 0; i < p->count; i++)
        fill_policy(arena, &out.cells[(size_t)i * P_COLUMNS], r, &p->items[i]);
    return out;
}

/* ---- stages ---- */

enum { S_STAGE, S_LAYERS, S_FLIGHT, S_LEFT, S_PEAK, S_EXTRA, S_COLUMNS };

static const struct vp_column STAGE_COLUMNS[S_COLUMNS] = {
    [S_STAGE] = {"stage", "stage", VP_CELL_NUMBER, VP_FOR_ALL},
    [S_LAYERS] = {"layers", "layers", VP_CELL_NUMBER, VP_FOR_ALL},
    [S_FLIGHT] = {"in_flight", "in flight", VP_CELL_NUMBER, VP_FOR_ALL},
    [S_LEFT] = {"", "activations may take", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [S_PEAK] = {"", "take", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [S_EXTRA] = {"", "extra", VP_CELL_NUMBER, VP_FOR_PEOPLE},
};

static uint64_t plain_time(const struct vp_chain *c) {
    uint64_t time = 0;
    for (uint32_t i = 0; i < c->n; i++)
        time += c->f[i] + c->b[i];
    return time;
}

static struct vp_listing stages(struct vp_arena *arena, const struct vp_recompute_report *r) {
    const struct vp_framework_plan *best = &r->framework[VP_FRAMEWORK_PYTORCH];
    uint32_t count = r->problem.stages;
    struct vp_listing out = {STAGE_COLUMNS, S_COLUMNS,
                             VP_NEW_ARRAY(arena, (size_t)count * S_COLUMNS, struct vp_cell), count};
    for (uint32_t i = 0; i < count; i++) {
        struct vp_cell *cells = &out.cells[(size_t)i * S_COLUMNS];
        const struct vp_stage_chain *stage = &r->problem.stage[i];
        uint64_t plain = plain_time(&stage->chain.chain);
        cells[S_STAGE].text = vp_format_u64(arena, i);
        cells[S_LAYERS].text = vp_format_u64(arena, stage->chain.layers);
        cells[S_FLIGHT].text = vp_format_u64(arena, stage->chain.in_flight);
        cells[S_LEFT].text = vp_format_bytes(arena, best->budget_bytes[i]);
        cells[S_PEAK].text = vp_format_bytes(arena, best->stage[i].peak_bytes);
        cells[S_EXTRA].text =
            vp_recompute_percent(arena, vp_above(best->stage[i].time, plain), plain);
    }
    return out;
}

/* ---- text ---- */

static const char *peak_words(struct vp_arena *arena, const struct vp_recompute_report *r) {
    static const char *const WHAT[] = {"forward pass", "forward pass that saves", "loss",
                                       "backward pass", "end of the input"};
    const struct vp_train_chain *chain = &r->problem.stage[r->stage].chain;
    const struct vp_chain_op *op = &r->peak_op;
    if (op->kind == VP_OP_LOSS)
        return "at the loss";
    if (op->stage >= chain->layers)
        return vp_arena_printf(arena, "in the %s of the head", WHAT[op->kind]);
    return vp_arena_printf(arena, "in the %s of layer %" PRIu32, WHAT[op->kind],
                           chain->layer[op->stage]);
}

static void add_listing(struct vp_buf *out, const struct vp_listing *listing,
                        enum vp_placement_form form) {
    if (form == VP_PLACEMENT_MARKDOWN)
        vp_listing_markdown(out, listing);
    else
        vp_listing_text(out, listing, false);
}

static void add_best(const struct vp_page *page, const struct vp_recompute_report *r) {
    const struct vp_framework_plan *best = &r->framework[VP_FRAMEWORK_PYTORCH];
    struct vp_arena *arena = page->out->arena;
    uint64_t base = r->problem.base_ns;
    if (best->verdict == VP_DOES_NOT_FIT)
        vp_page_printf(
            page, 0, 2, "No plan fits: recomputing %s, a device needs %s (%s to %s) of %s.",
            vp_recompute_setting_words(arena, best), vp_format_bytes(arena, best->need.likely),
            vp_format_bytes(arena, best->need.low), vp_format_bytes(arena, best->need.high),
            vp_format_bytes(arena, r->problem.budget_bytes));
    else
        vp_page_printf(
            page, 0, 2, "Best plan: %s. %s more time, %s; a device needs %s (%s to %s)%s.",
            vp_recompute_setting_words(arena, best),
            vp_recompute_percent(arena, vp_above(best->slowest_ns, base), base),
            best->proven ? "proven optimal for the activations' budget" : "not proven optimal",
            vp_format_bytes(arena, best->need.likely), vp_format_bytes(arena, best->need.low),
            vp_format_bytes(arena, best->need.high),
            best->verdict == VP_AT_RISK ? ", so it may not fit" : "");
    vp_page_printf(page, 0, 2, "Its activations are at their most %s%s.", peak_words(arena, r),
                   r->problem.stages > 1
                       ? vp_arena_printf(arena, " of stage %" PRIu32 ", the tightest", r->stage)
                       : "");
}

static void add_notes(const struct vp_page *page, const struct vp_recompute_report *r) {
    struct vp_arena *arena = page->out->arena;
    const char *rule =
        vp_placement_sqrt_words(arena, &r->policies, r->problem.stage[r->stage].chain.layers);
    if (rule)
        vp_page_printf(page, 0, 2, "%s", rule);
    vp_page_printf(page, 0, 2,
                   "Peaks%s contain %s that a device holds beside activations: weights, states, "
                   "workspaces, fragments, context.",
                   r->problem.stages > 1 ? vp_arena_printf(arena, " (stage %" PRIu32 ")", r->stage)
                                         : "",
                   vp_format_bytes(arena, r->beside_bytes));
    vp_page_printf(page, 0, 2,
                   "The second table gives each plan the %s for activations that the best one has; "
                   "the first one takes each as a whole step, with the fragments that it leaves.",
                   vp_format_bytes(arena, r->activation_bytes));
    vp_page_printf(page, 0, 2, "%s",
                   r->problem.basis == VP_BASIS_NONE
                       ? "The card's rates are not known: all layers count alike."
                   : r->problem.basis == VP_BASIS_CALIBRATED
                       ? "Times are shares of forward and backward pass, by kernels measured on "
                         "this card."
                       : "Times are shares of forward and backward pass, by what cards of this "
                         "class reach.");
}

void vp_scenario_placement_table(struct vp_buf *out, const struct vp_recompute_report *r,
                                 enum vp_placement_form form) {
    struct vp_listing told = frameworks(out->arena, r), set = policies(out->arena, r);
    struct vp_page page = {.out = out, .width = VP_PAGE_WIDTH, .utf8 = true};
    const struct vp_scenario *scenario = r->problem.scenario;
    if (form == VP_PLACEMENT_CSV) {
        vp_listing_csv(out, &told);
        return;
    }
    vp_page_printf(&page, 0, 2, "%s%s%s: what to recompute within %s per device",
                   scenario->name ? scenario->name : "", scenario->name ? ", " : "",
                   scenario->model->name ? scenario->model->name : "model",
                   vp_format_bytes(out->arena, r->problem.budget_bytes));
    vp_buf_add(out, "\n");
    add_best(&page, r);
    vp_buf_add(out, "\n");
    if (r->problem.stages > 1) {
        struct vp_listing each = stages(out->arena, r);
        add_listing(out, &each, form);
        vp_buf_add(out, "\n");
    }
    add_listing(out, &told, form);
    vp_buf_add(out, "\n");
    add_listing(out, &set, form);
    vp_buf_add(out, "\n");
    add_notes(&page, r);
}

/* ---- JSON ---- */

static void json_stages(struct vp_json *json, const struct vp_recompute_report *r) {
    const struct vp_framework_plan *best = &r->framework[VP_FRAMEWORK_PYTORCH];
    vp_json_key(json, "stages");
    vp_json_list(json);
    for (uint32_t i = 0; i < r->problem.stages; i++) {
        const struct vp_stage_chain *stage = &r->problem.stage[i];
        vp_json_map(json);
        vp_json_key_u64(json, "layers", stage->chain.layers);
        vp_json_key_u64(json, "in_flight", stage->chain.in_flight);
        vp_json_key_u64(json, "activation_bytes", best->budget_bytes[i]);
        vp_json_key_u64(json, "peak_bytes", best->stage[i].peak_bytes);
        vp_json_key_u64(json, "time_ns", best->stage[i].time);
        vp_json_key_u64(json, "plain_time_ns", plain_time(&stage->chain.chain));
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void json_policies(struct vp_json *json, const struct vp_recompute_report *r) {
    vp_json_key(json, "plans");
    vp_json_list(json);
    for (uint32_t i = 0; i < r->policies.count; i++) {
        const struct vp_policy *row = &r->policies.items[i];
        vp_json_map(json);
        vp_json_key_text(json, "plan", row->meaning);
        vp_json_key_text(json, "class",
                         row->class == VP_PLACE_CLASSES ? NULL
                                                        : vp_recompute_class_name(row->class));
        vp_json_key_u64(json, "number", row->number);
        vp_json_key_bool(json, "fits", row->fits);
        vp_json_key_u64(json, "peak_bytes", row->peak_bytes + r->beside_bytes);
        vp_json_key(json, "time_ns");
        if (row->known)
            vp_json_u64(json, row->time);
        else
            vp_json_null(json);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

/* By layer: what is recomputed with it, "" when it is kept as it is. */
static void json_layers(struct vp_json *json, const struct vp_framework_plan *p) {
    vp_json_key(json, "layers");
    vp_json_list(json);
    for (uint32_t i = 0; i < p->layers; i++) {
        vp_json_map_inline(json);
        vp_json_key_bool(json, "recomputed", p->layer[i].recomputed);
        vp_json_key_u64(json, "segment", p->layer[i].segment);
        vp_json_key_text(json, "parts",
                         vp_recompute_parts(json->out->arena, p->layer[i].selective));
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void json_framework(struct vp_json *json, const struct vp_framework_plan *p) {
    vp_json_key(json, vp_framework_info(p->framework)->name);
    if (p->refused) {
        vp_json_null(json);
        return;
    }
    vp_json_map(json);
    vp_json_key_text(json, "recomputes", vp_recompute_setting_words(json->out->arena, p));
    vp_json_key_u64(json, "time_ns", p->slowest_ns);
    vp_json_key_amount(json, "need_bytes", p->need);
    vp_json_key_text(json, "verdict", vp_verdict_name(p->verdict));
    vp_json_key_bool(json, "proven", p->proven);
    json_layers(json, p);
    vp_json_end(json, '}');
}

void vp_scenario_placement_json(struct vp_buf *out, const struct vp_recompute_report *r) {
    struct vp_json json = vp_json_begin(out);
    vp_json_map(&json);
    vp_json_key_text(&json, "schema", "vramplan.checkpoint/1");
    vp_json_key_text(&json, "scenario", r->problem.scenario->name);
    vp_json_key_u64(&json, "budget_bytes", r->problem.budget_bytes);
    vp_json_key_u64(&json, "stage", r->stage);
    vp_json_key_u64(&json, "beside_bytes", r->beside_bytes);
    vp_json_key_u64(&json, "plain_time_ns", r->problem.base_ns);
    vp_json_key_text(&json, "times",
                     r->problem.basis == VP_BASIS_NONE ? "unknown"
                                                       : vp_basis_name(r->problem.basis));
    json_stages(&json, r);
    json_policies(&json, r);
    vp_json_key(&json, "frameworks");
    vp_json_map(&json);
    for (enum vp_framework f = 0; f < VP_FRAMEWORK_COUNT; f++)
        if (r->known[f])
            json_framework(&json, &r->framework[f]);
    vp_json_end(&json, '}');
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
}
