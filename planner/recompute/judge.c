#include "planner/recompute/judge.h"

#include "planner/base/sum.h"

/* What is alive. */
struct state {
    const struct vp_chain *chain;
    bool *x, *g;    /* boundaries and their gradients */
    uint32_t *tape; /* option + 1 of the tape that stage i has; 0: none */
    uint64_t live;
    uint32_t backward_left; /* stages whose backward is still to come */
};

static const char *forward(struct state *s, struct vp_judgement *out, const struct vp_chain_op *op,
                           uint64_t *peak) {
    const struct vp_chain *c = s->chain;
    uint32_t i = op->stage;
    if (i >= c->n || op->option >= c->option_counts[i])
        return "no such stage or option";
    if (!s->x[i])
        return "the input is not there";
    if (s->x[i + 1])
        return "the output is there already";
    if (op->kind == VP_OP_FORWARD) {
        *peak = s->live + c->x[i + 1] + c->wn[i];
    } else {
        const struct vp_tape_option *o = &c->options[i][op->option];
        if (s->tape[i])
            return "the tape is there already";
        *peak = s->live + o->t + c->x[i + 1] + o->wf;
        s->live += o->t;
        s->tape[i] = op->option + 1;
    }
    s->live += c->x[i + 1];
    s->x[i + 1] = true;
    out->time += c->f[i];
    out->forwards++;
    return NULL;
}

static const char *backward(struct state *s, struct vp_judgement *out, const struct vp_chain_op *op,
                            uint64_t *peak) {
    const struct vp_chain *c = s->chain;
    uint32_t i = op->stage;
    if (i >= c->n || i + 1 != s->backward_left)
        return "a backward out of its order";
    if (!s->x[i] || !s->tape[i] || !s->g[i + 1])
        return "the input, the tape or the gradient is not there";
    const struct vp_tape_option *o = &c->options[i][s->tape[i] - 1];
    *peak = s->live + c->g[i] + o->wb;
    s->live += c->g[i] + (c->held ? c->held[i] : 0);
    s->live -= o->t + c->g[i + 1];
    s->tape[i] = 0;
    s->g[i + 1] = false;
    s->g[i] = true;
    s->backward_left--;
    out->time += c->b[i] + o->r;
    return NULL;
}

static const char *loss(struct state *s, uint64_t *peak) {
    uint32_t n = s->chain->n;
    if (!s->x[n])
        return "there is no loss";
    s->x[n] = false;
    s->g[n] = true;
    s->live = s->live - s->chain->x[n] + s->chain->g[n];
    *peak = s->live;
    return NULL;
}

static const char *discard(struct state *s, uint32_t i, uint64_t *peak) {
    if (i > s->chain->n || !s->x[i])
        return "what is to go is not there";
    if (i < s->chain->n && s->tape[i])
        return "the input of a tape is to go";
    *peak = s->live;
    s->x[i] = false;
    s->live -= s->chain->x[i];
    return NULL;
}

static const char *step(struct state *s, struct vp_judgement *out, const struct vp_chain_op *op,
                        uint64_t *peak) {
    switch (op->kind) {
    case VP_OP_FORWARD:
    case VP_OP_SAVE:
        return forward(s, out, op, peak);
    case VP_OP_LOSS:
        return loss(s, peak);
    case VP_OP_BACKWARD:
        return backward(s, out, op, peak);
    case VP_OP_DISCARD:
        return discard(s, op->stage, peak);
    }
    return "no such operation";
}

void vp_judge(struct vp_arena *scratch, struct vp_judgement *out, const struct vp_chain *chain,
              const struct vp_chain_schedule *schedule) {
    struct vp_arena_mark mark = vp_arena_mark(scratch);
    struct state s = {.chain = chain,
                      .x = VP_NEW_ARRAY(scratch, chain->n + 1, bool),
                      .g = VP_NEW_ARRAY(scratch, chain->n + 1, bool),
                      .tape = VP_NEW_ARRAY(scratch, chain->n, uint32_t),
                      .live = chain->x[0],
                      .backward_left = chain->n};
    *out = (struct vp_judgement){.peak_bytes = chain->x[0]};
    s.x[0] = true;
    for (size_t i = 0; i < schedule->count && !out->fault; i++) {
        uint64_t peak = 0;
        out->fault = step(&s, out, &schedule->ops[i], &peak);
        peak = vp_max(peak, s.live);
        if (peak > out->peak_bytes) {
            out->peak_bytes = peak;
            out->peak_at = i;
        }
    }
    if (!out->fault && s.backward_left)
        out->fault = "a backward is missing";
    vp_arena_rewind(scratch, mark);
}

/* ---- from a plan to its schedule ---- */

static void add(struct vp_chain_schedule *out, enum vp_chain_op_kind kind, uint32_t stage,
                uint32_t option) {
    out->ops[out->count++] = (struct vp_chain_op){kind, stage, option};
}

static void add_forward(struct vp_chain_schedule *out, const struct vp_plan_item *item) {
    if (!item->recompute) {
        add(out, VP_OP_SAVE, item->first, item->option);
        return;
    }
    for (uint32_t k = item->first; k <= item->last; k++) {
        add(out, VP_OP_FORWARD, k, 0);
        if (k > item->first)
            add(out, VP_OP_DISCARD, k, 0);
    }
}

static void add_backward(struct vp_chain_schedule *out, const struct vp_plan_item *item,
                         uint32_t n) {
    if (item->last != n - 1)
        add(out, VP_OP_DISCARD, item->last + 1, 0);
    if (!item->recompute) {
        add(out, VP_OP_BACKWARD, item->first, 0);
        return;
    }
    for (uint32_t k = item->first; k <= item->last; k++)
        add(out, VP_OP_SAVE, k, 0);
    add(out, VP_OP_DISCARD, item->last + 1, 0);
    for (uint32_t k = item->last + 1; k-- > item->first;) {
        add(out, VP_OP_BACKWARD, k, 0);
        if (k > item->first)
            add(out, VP_OP_DISCARD, k, 0);
    }
}

void vp_plan_schedule(struct vp_arena *arena, struct vp_chain_schedule *out,
                      const struct vp_chain *chain, const struct vp_recompute_plan *plan) {
    /* A stage has at most two forwards, a backward and three discards. */
    *out = (struct vp_chain_schedule){
        .ops = VP_NEW_ARRAY(arena, 6 * (size_t)chain->n + 1, struct vp_chain_op)};
    for (uint32_t i = 0; i < plan->count; i++)
        add_forward(out, &plan->items[i]);
    add(out, VP_OP_LOSS, 0, 0);
    for (uint32_t i = plan->count; i-- > 0;)
        add_backward(out, &plan->items[i], chain->n);
}

uint64_t vp_plan_stored(const struct vp_chain *chain, const struct vp_recompute_plan *plan) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct vp_plan_item *item = &plan->items[i];
        bytes += chain->x[item->first];
        bytes += item->recompute ? 0 : chain->options[item->first][item->option].t;
    }
    return bytes;
}

const char *vp_chain_op_name(enum vp_chain_op_kind kind) {
    static const char *const NAMES[] = {"Fn", "Fs", "L", "B", "D"};
    return NAMES[kind];
}
