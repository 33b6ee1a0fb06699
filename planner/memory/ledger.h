/* The ledger: a flat list of what takes bytes, on which device, from when to when, by which formula
 * of which numbers. Totals, bars, diffs, gates and explanations are folds over it; nothing else
 * adds bytes. */
#ifndef VP_MEMORY_LEDGER_H
#define VP_MEMORY_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/amount.h"
#include "planner/base/arena.h"
#include "planner/base/sum.h"
#include "planner/model/component.h"

enum vp_formula {
#define X(name, id, kind, expression, source, leaves_out) VP_FORMULA_##name,
#include "planner/memory/formulas.def"
#undef X
    VP_FORMULA_COUNT
};

enum vp_confidence { VP_EXACT, VP_MEASURED_VALUE, VP_CLASS_AVERAGE, VP_GUESS };

/* Instants of a serving process, and of a training step. A row is alive in [from, to]. */
enum vp_step {
    VP_STEP_LOAD,
    VP_STEP_PROFILE,
    VP_STEP_CAPTURE,
    VP_STEP_SERVE,
    VP_STEP_FORWARD,      /* all tapes are held, head and loss at work */
    VP_STEP_BACKWARD,     /* a layer's tape is rebuilt and used, at the worst of them */
    VP_STEP_BACKWARD_END, /* all gradients, the first layer at work */
    VP_STEP_OPTIMIZER,    /* the optimizer's step */
    VP_STEP_COUNT
};

enum { VP_ROW_INPUTS = 8 };

struct vp_input {
    const char *name; /* static text */
    uint64_t value;
};

struct vp_row {
    enum vp_component component;
    enum vp_formula formula;
    enum vp_confidence confidence;
    uint16_t device;   /* index of the device (stage) */
    uint8_t from, to;  /* enum vp_step */
    const char *owner; /* static text or the model's: "attention", "experts", "full layers" */
    uint32_t layers;   /* how many layers it stands for, 0: none */
    struct vp_amount bytes;
    struct vp_input input[VP_ROW_INPUTS];
    uint8_t inputs;
};

struct vp_ledger {
    struct vp_arena *arena;
    struct vp_row *rows;
    uint32_t count, capacity;
    bool overflow;
};

/* A zeroed row to fill; valid until the next call. */
struct vp_row *vp_ledger_add(struct vp_ledger *ledger, enum vp_component component,
                             enum vp_formula formula, uint32_t device, const char *owner);
void vp_row_input(struct vp_row *row, const char *name, uint64_t value);
/* Sets exact bytes; a sticky overflow goes to the ledger. */
void vp_row_exact(struct vp_ledger *ledger, struct vp_row *row, struct vp_sum bytes);

/* Sum of a component's rows alive at a step. */
struct vp_amount vp_ledger_component(const struct vp_ledger *ledger, uint32_t device,
                                     enum vp_component component, enum vp_step step);
/* Everything on a device at a step. */
struct vp_amount vp_ledger_at(const struct vp_ledger *ledger, uint32_t device, enum vp_step step);
/* The step with the largest likely total, the earliest of equals. */
enum vp_step vp_ledger_peak(const struct vp_ledger *ledger, uint32_t device);
/* The least sure of a component's rows; VP_EXACT when it has none. */
enum vp_confidence vp_ledger_confidence(const struct vp_ledger *ledger, uint32_t device,
                                        enum vp_component component);

const char *vp_formula_id(enum vp_formula formula);
const char *vp_formula_expression(enum vp_formula formula);
const char *vp_formula_source(enum vp_formula formula);
const char *vp_formula_leaves_out(enum vp_formula formula);
enum vp_confidence vp_formula_kind(enum vp_formula formula);
const char *vp_confidence_name(enum vp_confidence confidence); /* exact, measured, class, guess */
const char *vp_step_name(enum vp_step step);                   /* load, profile, capture, serve */

#endif
