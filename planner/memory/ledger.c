#include "planner/memory/ledger.h"

#include <string.h>

struct vp_row *vp_ledger_add(struct vp_ledger *ledger, enum vp_component component,
                             enum vp_formula formula, uint32_t device, const char *owner) {
    if (ledger->count == ledger->capacity) {
        uint32_t capacity = ledger->capacity > 0 ? 2 * ledger->capacity : 32;
        struct vp_row *rows = VP_NEW_ARRAY(ledger->arena, capacity, struct vp_row);
        if (ledger->count > 0)
            memcpy(rows, ledger->rows, ledger->count * sizeof *rows);
        ledger->rows = rows;
        ledger->capacity = capacity;
    }
    struct vp_row *row = &ledger->rows[ledger->count++];
    memset(row, 0, sizeof *row);
    row->component = component;
    row->formula = formula;
    row->confidence = vp_formula_kind(formula);
    row->device = (uint16_t)device;
    row->from = VP_STEP_LOAD;
    row->to = VP_STEP_SERVE;
    row->owner = owner;
    return row;
}

void vp_row_input(struct vp_row *row, const char *name, uint64_t value) {
    if (row->inputs < VP_ROW_INPUTS)
        row->input[row->inputs++] = (struct vp_input){name, value};
}

void vp_row_exact(struct vp_ledger *ledger, struct vp_row *row, struct vp_sum bytes) {
    row->bytes = vp_exactly(bytes.v);
    ledger->overflow |= bytes.overflow;
}

static bool alive(const struct vp_row *row, uint32_t device, enum vp_step step) {
    return row->device == device && row->from <= step && step <= row->to;
}

struct vp_amount vp_ledger_component(const struct vp_ledger *ledger, uint32_t device,
                                     enum vp_component component, enum vp_step step) {
    struct vp_amount sum = {0, 0, 0};
    for (uint32_t i = 0; i < ledger->count; i++)
        if (ledger->rows[i].component == component && alive(&ledger->rows[i], device, step))
            sum = vp_amount_add(sum, ledger->rows[i].bytes);
    return sum;
}

struct vp_amount vp_ledger_at(const struct vp_ledger *ledger, uint32_t device, enum vp_step step) {
    struct vp_amount sum = {0, 0, 0};
    for (uint32_t i = 0; i < ledger->count; i++)
        if (alive(&ledger->rows[i], device, step))
            sum = vp_amount_add(sum, ledger->rows[i].bytes);
    return sum;
}

enum vp_step vp_ledger_peak(const struct vp_ledger *ledger, uint32_t device) {
    enum vp_step peak = VP_STEP_LOAD;
    uint64_t most = 0;
    for (int step = 0; step < VP_STEP_COUNT; step++) {
        uint64_t likely = vp_ledger_at(ledger, device, (enum vp_step)step).likely;
        if (likely > most) {
            most = likely;
            peak = (enum vp_step)step;
        }
    }
    return peak;
}

enum vp_confidence vp_ledger_confidence(const struct vp_ledger *ledger, uint32_t device,
                                        enum vp_component component) {
    enum vp_confidence least = VP_EXACT;
    for (uint32_t i = 0; i < ledger->count; i++) {
        const struct vp_row *row = &ledger->rows[i];
        if (row->component == component && row->device == device && row->confidence > least)
            least = row->confidence;
    }
    return least;
}

/* ---- names ---- */

enum kind { EXACT = VP_EXACT, MEASURED = VP_MEASURED_VALUE, CLASS = VP_CLASS_AVERAGE };

static const struct {
    const char *id;
    enum kind kind;
    const char *expression, *source, *leaves_out;
} formulas[] = {
#define X(name, id, kind, expression, source, leaves_out)                                          \
    {id, kind, expression, source, leaves_out},
#include "planner/memory/formulas.def"
#undef X
};

const char *vp_formula_id(enum vp_formula formula) { return formulas[formula].id; }

const char *vp_formula_expression(enum vp_formula formula) { return formulas[formula].expression; }

const char *vp_formula_source(enum vp_formula formula) { return formulas[formula].source; }

const char *vp_formula_leaves_out(enum vp_formula formula) { return formulas[formula].leaves_out; }

enum vp_confidence vp_formula_kind(enum vp_formula formula) {
    return (enum vp_confidence)formulas[formula].kind;
}

const char *vp_confidence_name(enum vp_confidence confidence) {
    static const char *const names[] = {"exact", "measured", "class", "guess"};
    return names[confidence];
}

const char *vp_step_name(enum vp_step step) {
    static const char *const names[VP_STEP_COUNT] = {[VP_STEP_LOAD] = "load",
                                                     [VP_STEP_PROFILE] = "profile",
                                                     [VP_STEP_CAPTURE] = "capture",
                                                     [VP_STEP_SERVE] = "serve",
                                                     [VP_STEP_FORWARD] = "forward",
                                                     [VP_STEP_BACKWARD] = "backward",
                                                     [VP_STEP_BACKWARD_END] = "backward-end",
                                                     [VP_STEP_OPTIMIZER] = "optimizer"};
    return names[step];
}
