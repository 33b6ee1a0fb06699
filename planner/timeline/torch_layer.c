/* A layer forward and backward, as autograd runs it: values live until their last use, what is kept
 * lies on the tape, gradients of one value add up. Regions of it (attention core, feed-forward,
 * norms, experts) may be recomputed: they keep what they read and are run again when their backward
 * pass comes. */
#include "planner/timeline/torch_parts.h"

/* Which values need a gradient: what follows a trained tensor, or an input that does. */
static void find_needs(const struct vp_torch *t, const struct vp_torch_graph *g, bool *needs) {
    needs[0] = t->layer > 0 || t->scenario->train.input_grad;
    for (uint32_t i = 0; i < g->nodes; i++) {
        const struct vp_torch_node *n = &g->node[i];
        bool own = n->kind == VP_TORCH_NORM ? vp_torch_trains(t, VP_ROLE_NORM)
                   : n->kind == VP_TORCH_LINEAR
                       ? vp_torch_trains(t, n->role) || vp_torch_adapts(t, n->role)
                   : n->kind == VP_TORCH_EXPERTS ? vp_torch_trains(t, VP_ROLE_EXPERT_UP) ||
                                                       vp_torch_adapts(t, VP_ROLE_EXPERT_UP)
                                                 : false;
        for (uint32_t k = 0; k < n->ins; k++)
            own |= needs[n->in[k]];
        needs[n->out] = own;
    }
}

/* Selective recomputation by operator (torchtitan): attention and every second matrix. */
static void keep_output(struct vp_torch *t, const struct vp_torch_node *n, uint32_t out,
                        uint32_t *matrices) {
    bool kept = n->kind == VP_TORCH_ATTENTION;
    if (n->kind == VP_TORCH_LINEAR)
        kept = (*matrices)++ % 2 == 0;
    if (t->outputs && kept)
        vp_torch_push(t, t->outputs, vp_torch_share(t, out));
}

/* ---- regions that are recomputed ---- */

/* By node: the run of nodes of one region that it lies in; alone where none is. */
struct spans {
    uint8_t first[VP_TORCH_NODES], last[VP_TORCH_NODES];
    bool again[VP_TORCH_NODES];
};

static void find_spans(const struct vp_torch *t, const struct vp_torch_graph *g,
                       struct spans *out) {
    for (uint32_t i = 0; i < g->nodes;) {
        uint32_t set = g->node[i].regions & t->select, bit = set & (~set + 1), end = i + 1;
        while (bit && end < g->nodes && (g->node[end].regions & bit))
            end++;
        for (uint32_t k = i; k < end; k++) {
            out->first[k] = (uint8_t)i;
            out->last[k] = (uint8_t)(end - 1);
            out->again[k] = bit != 0;
        }
        i = end;
    }
}

/* Values that nodes [from, to) read and that were made before them, each once. */
static uint32_t read_from_outside(const struct vp_torch_graph *g, uint32_t from, uint32_t to,
                                  uint8_t *out) {
    uint32_t count = 0;
    for (uint32_t i = from; i < to; i++)
        for (uint32_t k = 0; k < g->node[i].ins; k++) {
            uint8_t v = g->node[i].in[k];
            bool known = v >= g->node[from].out;
            for (uint32_t j = 0; j < count; j++)
                known |= out[j] == v;
            if (!known)
                out[count++] = v;
        }
    return count;
}

/* ---- forward ---- */

struct pass {
    const struct vp_torch_graph *g;
    struct spans spans;
    uint32_t value[VP_TORCH_VALUES];
    bool needs[VP_TORCH_VALUES];
    uint32_t matrices;
};

static void run_nodes(struct vp_torch *t, struct pass *p, uint32_t from, uint32_t to,
                      bool recording) {
    const struct vp_torch_graph *g = p->g;
    for (uint32_t i = from; i < to; i++) {
        const struct vp_torch_node *n = &g->node[i];
        uint32_t read[3];
        for (uint32_t k = 0; k < n->ins; k++)
            read[k] = p->value[n->in[k]];
        t->recording = recording && p->needs[n->out];
        t->reaches = p->needs[n->in[0]];
        p->value[n->out] = vp_torch_forward(t, g, i, read);
        keep_output(t, n, p->value[n->out], &p->matrices);
        for (uint32_t k = 0; k < n->ins; k++) {
            bool again = false; /* read twice by this very operation */
            for (uint32_t j = 0; j < k; j++)
                again |= n->in[j] == n->in[k];
            if (g->last_use[n->in[k]] == i && !again)
                vp_torch_drop(t, p->value[n->in[k]]);
        }
    }
}

/* A region keeps what it reads. */
static void run_region(struct vp_torch *t, struct pass *p, uint32_t from, uint32_t to) {
    uint8_t outside[VP_TORCH_VALUES];
    uint32_t count = read_from_outside(p->g, from, to, outside);
    t->recording = true;
    for (uint32_t i = 0; i < count; i++)
        vp_torch_keep_shared(t, p->value[outside[i]]);
    run_nodes(t, p, from, to, false);
}

static uint32_t run_layer(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t in) {
    struct pass p = {.g = g};
    bool recording = t->recording;

    find_needs(t, g, p.needs);
    find_spans(t, g, &p.spans);
    p.value[0] = vp_torch_share(t, in);
    for (uint32_t i = 0; i < g->nodes;) {
        uint32_t end = p.spans.last[i] + 1U;
        t->stamp = !recording && end == g->nodes;
        if (recording && p.spans.again[i] && p.needs[g->node[end - 1].out])
            run_region(t, &p, i, end);
        else
            run_nodes(t, &p, i, end, recording);
        t->stamp = false;
        i = end;
    }
    t->recording = recording;
    return g->nodes > 0 ? p.value[g->out] : vp_torch_share(t, in);
}

/* Runs a region again, from what it kept, which stays below its tape. */
static void rebuild_region(struct vp_torch *t, struct pass *p, uint32_t from, uint32_t to) {
    const struct vp_torch_graph *g = p->g;
    uint8_t outside[VP_TORCH_VALUES];
    uint32_t count = read_from_outside(g, from, to, outside);
    uint32_t base = t->tape->depth - count;
    bool recording = t->recording;
    struct vp_torch_stack *outputs = t->outputs;

    t->outputs = NULL;
    for (uint32_t i = 0; i < count; i++)
        p->value[outside[i]] = vp_torch_share(t, t->tape->id[base + i]);
    run_nodes(t, p, from, to, true);
    for (uint32_t i = 0; i < count; i++)
        if (g->last_use[outside[i]] >= to)
            vp_torch_drop(t, p->value[outside[i]]);
    for (uint32_t i = from; i < to; i++)
        if (g->last_use[g->node[i].out] >= to || g->node[i].out == g->out)
            vp_torch_drop(t, p->value[g->node[i].out]);
    t->recording = recording;
    t->outputs = outputs;
}

/* A recorded pass without events: which of its storages are on the tape behind it. */
static void try_layer(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t in,
                      uint8_t *keeps) {
    uint32_t depth = t->tape->depth, casts = t->casts, first = t->ordinal = 0;
    struct vp_torch_stack *outputs = t->outputs;

    t->trial = true;
    t->outputs = NULL;
    uint32_t out = run_layer(t, g, in);
    for (uint32_t i = depth; i < t->tape->depth; i++) {
        uint32_t ordinal = t->holder[t->tape->id[i]].ordinal;
        bool own = t->tape->id[i] != in && ordinal >= first;
        if (own && ordinal < VP_TORCH_TAKES)
            keeps[ordinal] = 1;
    }
    vp_torch_drop(t, out);
    vp_torch_drop_kept(t, t->tape->depth - depth);
    while (t->casts > casts)
        vp_torch_drop(t, t->cast[--t->casts]);
    t->trial = false;
    t->outputs = outputs;
}

uint32_t vp_torch_layer(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t in) {
    uint8_t **keeps = &t->kept[2 * (g - t->graph) + (t->layer > 0)];

    if (!t->recording || t->select) /* what regions keep is not told apart */
        return run_layer(t, g, in);
    if (!*keeps) {
        *keeps = VP_NEW_ARRAY(t->arena, VP_TORCH_TAKES, uint8_t);
        try_layer(t, g, in, *keeps);
    }
    t->ordinal = 0;
    t->keeps = *keeps;
    uint32_t out = run_layer(t, g, in);
    t->keeps = NULL;
    return out;
}

/* The engine adds into a gradient that nobody else holds. */
static void accumulate(struct vp_torch *t, uint32_t *sum, uint32_t more) {
    if (more == VP_NO_STORAGE)
        return;
    if (*sum == VP_NO_STORAGE) {
        *sum = more;
        return;
    }
    if (t->holder[*sum].holders > 1)
        *sum = vp_torch_become(t, *sum, vp_torch_take(t, t->holder[*sum].bytes, 1, 1));
    vp_torch_drop(t, more);
}

uint32_t vp_torch_layer_back(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t grad) {
    uint32_t of[VP_TORCH_VALUES];
    struct pass p = {.g = g};

    find_needs(t, g, p.needs);
    find_spans(t, g, &p.spans);
    for (uint32_t i = 0; i < g->values; i++)
        of[i] = VP_NO_STORAGE;
    of[g->out] = grad;
    for (uint32_t i = g->nodes; i-- > 0;) {
        const struct vp_torch_node *n = &g->node[i];
        uint32_t in[3] = {VP_NO_STORAGE, VP_NO_STORAGE, VP_NO_STORAGE};
        uint32_t from = p.spans.first[i], to = p.spans.last[i] + 1U;
        bool again = p.spans.again[i] && p.needs[g->node[to - 1].out];
        if (again && i + 1 == to)
            rebuild_region(t, &p, from, to);
        if (p.needs[n->out] && of[n->out] != VP_NO_STORAGE) {
            vp_torch_backward(t, g, i, of[n->out], p.needs, in);
            of[n->out] = VP_NO_STORAGE;
        }
        for (uint32_t k = 0; k < n->ins; k++) {
            if (p.needs[n->in[k]])
                accumulate(t, &of[n->in[k]], in[k]);
            else if (in[k] != VP_NO_STORAGE)
                vp_torch_drop(t, in[k]);
        }
        if (again && i == from) {
            uint8_t outside[VP_TORCH_VALUES];
            vp_torch_drop_kept(t, read_from_outside(g, from, to, outside));
        }
    }
    return of[0];
}
