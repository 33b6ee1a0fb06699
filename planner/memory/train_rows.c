/* A training stage as rows of the ledger. */
#include "planner/memory/train_stage.h"

struct rows {
    struct vp_ledger *ledger;
    const struct vp_scenario *scenario;
    const struct vp_train_stage *stage;
    uint32_t device;
};

static struct vp_row *add(struct rows *r, enum vp_component component, enum vp_formula formula,
                          const char *owner, uint64_t bytes) {
    struct vp_row *row = vp_ledger_add(r->ledger, component, formula, r->device, owner);
    row->from = VP_STEP_FORWARD;
    row->to = VP_STEP_OPTIMIZER;
    row->bytes = vp_exactly(bytes);
    return row;
}

static bool is_measured(const struct rows *r, enum vp_train_measure measure) {
    return measure < VP_TRAIN_MEASURES && r->scenario->measured.train_known[measure];
}

/* Bytes that may be those of a real run. */
static struct vp_row *add_known(struct rows *r, enum vp_component component,
                                enum vp_formula formula, enum vp_train_measure measure,
                                const char *owner, uint64_t bytes) {
    return add(r, component, is_measured(r, measure) ? VP_FORMULA_MEASURED : formula, owner, bytes);
}

/* ---- there all the time ---- */

static const char *const PARTS[VP_PART_COUNT] = {"embedding", "layers", "final norm and head"};

static void add_static(struct rows *r) {
    const struct vp_train_stage *s = r->stage;
    const struct vp_train_shards shards = vp_train_shards_of(r->scenario, false);

    for (int i = 0; i < VP_PART_COUNT; i++) {
        const struct vp_train_kept *kept = &s->part[i];
        uint64_t base = kept->parameters.v - kept->adapters.v;
        struct vp_row *row;
        if (base > 0) {
            row = add_known(r, VP_C_WEIGHTS, VP_FORMULA_TRAIN_WEIGHTS, VP_TM_PARAMETERS, PARTS[i],
                            base);
            vp_row_input(row, "ranks", shards.parameters);
        }
        if (kept->adapters.v > 0) {
            row = add_known(r, VP_C_ADAPTERS, VP_FORMULA_TRAIN_ADAPTERS, VP_TM_PARAMETERS, PARTS[i],
                            kept->adapters.v);
            vp_row_input(row, "rank", r->scenario->train.lora.rank);
            vp_row_input(row, "slots", r->scenario->train.lora.slots);
            vp_row_input(row, "ranks", shards.parameters);
        }
        if (kept->master.v > 0) {
            row = add_known(r, VP_C_MASTER_WEIGHTS, VP_FORMULA_TRAIN_MASTER, VP_TM_MASTER, PARTS[i],
                            kept->master.v);
            vp_row_input(row, "elements", kept->trainable.v);
            vp_row_input(row, "ranks", shards.states);
        }
        if (kept->optimizer.v > 0) {
            row = add_known(r, VP_C_OPTIMIZER, VP_FORMULA_TRAIN_STATES, VP_TM_OPTIMIZER, PARTS[i],
                            kept->optimizer.v);
            vp_row_input(row, "elements", kept->trainable.v);
            vp_row_input(row, "ranks", shards.states);
            /* paged states may move to the host instead of running out of memory */
            if (r->scenario->train.optimizer == VP_OPTIMIZER_PAGED_ADAMW_8BIT)
                row->bytes.low = 0;
        }
        if (kept->fp8_copies.v > 0)
            add(r, VP_C_WEIGHTS, VP_FORMULA_TRAIN_FP8, PARTS[i], kept->fp8_copies.v);
    }
}

static void add_overheads(struct rows *r) {
    const struct vp_train_stage *s = r->stage;

    add_known(r, VP_C_WORKSPACE, VP_FORMULA_TRAIN_WORKSPACE, VP_TM_ALLOCATED, "matrix libraries", 0)
        ->bytes = s->workspace;
    if (s->buffer_bytes > 0)
        add(r, VP_C_WORKSPACE, VP_FORMULA_TRAIN_BUFFERS, "scores or gathered inputs",
            s->buffer_bytes);
    if (s->placeholder_bytes > 0)
        add(r, VP_C_WORKSPACE, VP_FORMULA_TRAIN_BUFFERS, "placeholders of weight gradients",
            s->placeholder_bytes);
    if (s->communication.high > 0)
        add(r, VP_C_COMMUNICATION, VP_FORMULA_TRAIN_BUCKETS, "gradient buckets", 0)->bytes =
            s->communication;
    add(r, VP_C_RUNTIME, VP_FORMULA_TRAIN_CONTEXT, "context and libraries", 0)->bytes = s->runtime;
}

/* ---- by instant ---- */

enum { GRADIENTS, SAVED, TEMPORARIES, LOGITS, GATHERED, SCATTERED, STEP, AMOUNTS };

static const struct {
    enum vp_component component;
    enum vp_formula formula;
    enum vp_train_measure measure;
    const char *owner;
    bool spread; /* what a layer takes and gives back is known as an interval */
} KINDS[AMOUNTS] = {
    [GRADIENTS] = {VP_C_GRADIENTS, VP_FORMULA_TRAIN_GRADIENTS, VP_TM_GRADIENTS, "gradients", false},
    [SAVED] = {VP_C_ACTIVATIONS, VP_FORMULA_TRAIN_TAPES, VP_TM_SAVED, "kept for backward", true},
    [TEMPORARIES] = {VP_C_ACTIVATIONS, VP_FORMULA_TRAIN_TEMP, VP_TM_ALLOCATED_PEAK, "layer at work",
                     true},
    [LOGITS] = {VP_C_LOGITS, VP_FORMULA_TRAIN_LOGITS, VP_TM_LOGITS, "head and loss", true},
    [GATHERED] = {VP_C_WEIGHTS, VP_FORMULA_TRAIN_GATHERED, VP_TRAIN_MEASURES, "whole for a while",
                  true},
    [SCATTERED] = {VP_C_GRADIENTS, VP_FORMULA_TRAIN_SCATTERED, VP_TRAIN_MEASURES,
                   "whole for a while", true},
    [STEP] = {VP_C_OPTIMIZER, VP_FORMULA_TRAIN_STEP, VP_TM_STEP_TEMP, "temporaries of the step",
              true},
};

static uint64_t amount_of(const struct vp_train_moment *m, int kind) {
    switch (kind) {
    case GRADIENTS:
        return m->gradients;
    case SAVED:
        return m->saved;
    case TEMPORARIES:
        return m->temporaries;
    case LOGITS:
        return m->logits;
    case GATHERED:
        return m->gathered;
    case SCATTERED:
        return m->scattered;
    default:
        return m->step_temp;
    }
}

/* Instants that follow each other with equal amounts share a row. */
static void add_moments(struct rows *r, int kind) {
    const struct vp_train_moment *m = r->stage->moment;
    struct vp_amount spread = r->scenario->engine.rules.train.spread;

    for (int from = 0, to; from < VP_TRAIN_MOMENTS; from = to + 1) {
        uint64_t bytes = amount_of(&m[from], kind);
        for (to = from; to + 1 < VP_TRAIN_MOMENTS && amount_of(&m[to + 1], kind) == bytes; to++)
            ;
        if (bytes == 0)
            continue;
        struct vp_row *row = add_known(r, KINDS[kind].component, KINDS[kind].formula,
                                       KINDS[kind].measure, KINDS[kind].owner, bytes);
        row->from = (uint8_t)m[from].step;
        row->to = (uint8_t)m[to].step;
        bool exact = row->formula == VP_FORMULA_MEASURED || is_measured(r, VP_TM_ALLOCATED_PEAK);
        if (KINDS[kind].spread && !exact) {
            row->bytes = (struct vp_amount){vp_mul_div(bytes, spread.low, 1000), bytes,
                                            vp_mul_div(bytes, spread.high, 1000)};
            if (row->confidence == VP_EXACT) /* the formula is, what a run shows is not */
                row->confidence = VP_CLASS_AVERAGE;
        }
        if (kind == SAVED)
            vp_row_input(row, "micro_batches_in_flight", r->stage->in_flight);
    }
}

void vp_train_stage_rows(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                         const struct vp_train_stage *stage, uint32_t device) {
    struct rows r = {ledger, scenario, stage, device};

    ledger->overflow |= stage->overflow;
    add_static(&r);
    for (int kind = 0; kind < AMOUNTS; kind++)
        add_moments(&r, kind);
    add_overheads(&r);
}
