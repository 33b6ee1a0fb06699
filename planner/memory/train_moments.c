/* The worst instant of each phase of a training step, by candidates: the end of the forward pass
 * with head and loss, the backward pass of every layer, its end, the optimizer's step. Left out:
 * the order of things inside a layer beyond its tape's temporary bytes. */
#include "planner/memory/train_stage.h"

/* A backward pass over the layers of one chunk, from the last to the first. */
struct walk {
    struct vp_train_stage *stage;
    const struct vp_train_rules *rules;
    struct vp_sum others;    /* kept of the other micro batches and chunks in flight */
    struct vp_sum held;      /* kept of this one by the layers that are still to come */
    struct vp_sum rebuilt;   /* of the segment at work */
    struct vp_sum gradients; /* there already */
};

static void consider(struct vp_train_stage *stage, struct vp_train_moment moment) {
    struct vp_train_moment *worst = &stage->moment[moment.step - VP_STEP_FORWARD];
    struct vp_sum total = vp_sum(stage->static_bytes);

    total = vp_sum_add(vp_sum_add(total, moment.gradients), moment.saved);
    total = vp_sum_add(vp_sum_add(total, moment.temporaries), moment.logits);
    total = vp_sum_add(vp_sum_add(total, moment.gathered), moment.scattered);
    total = vp_sum_add(total, moment.step_temp);
    stage->overflow |= total.overflow;
    moment.total = total.v;
    if (moment.total > worst->total)
        *worst = moment;
}

/* Weights that are whole while the layer at `i` of the stage runs: the ones before it are fetched
 * ahead of their backward pass. */
static uint64_t gathered(const struct vp_train_stage *s, const struct vp_train_rules *rules,
                         uint32_t i) {
    struct vp_sum bytes = vp_sum(0);
    uint64_t whole = rules->gathered_stay ? s->layers : rules->gathered_layers;
    uint32_t end = rules->gathered_stay ? s->layers : (uint32_t)vp_min(i + 1, s->layers);

    for (uint32_t k = end; k > 0 && end - k < whole; k--)
        bytes = vp_sum_add(bytes, s->layer[k - 1].gathered_bytes);
    /* the group around the layers stays whole from its forward to its backward pass */
    bytes = vp_sum_add(vp_sum_add(bytes, s->embedding_gathered_bytes), s->head_gathered_bytes);
    return bytes.overflow ? UINT64_MAX : bytes.v;
}

/* Gradients that are there when a backward pass begins, at worst. */
static uint64_t gradients_before(const struct vp_train_stage *s) {
    return s->gradients_grow ? 0 : s->gradient_bytes;
}

/* ---- forward ---- */

static void forward(struct vp_train_stage *s, const struct vp_train_rules *rules) {
    struct vp_train_moment m = {.step = VP_STEP_FORWARD,
                                .cause = VP_CAUSE_LAYERS,
                                .layer = VP_NO_LAYER,
                                .gradients = gradients_before(s),
                                .saved = s->saved_bytes};

    if (s->layers > 0) {
        const struct vp_train_layer *l = &s->layer[s->layers - 1];
        m.layer = l->layer;
        m.temporaries = l->tape->forward_temp_bytes + l->tape->output_bytes;
        m.gathered = gathered(s, rules, s->layers - 1) + l->weight_temp_bytes;
        m.saved = s->saved_bytes - s->head.tape.saved_bytes;
        consider(s, m);
    }
    if (!s->last)
        return;
    m.cause = VP_CAUSE_LOSS;
    m.layer = VP_NO_LAYER;
    /* what the loss's peak holds already is not counted again */
    m.saved = vp_above(s->saved_bytes, s->head.peak_tape_bytes);
    m.temporaries = s->deferred_bytes;
    m.logits = s->logits_peak_bytes;
    m.gathered = gathered(s, rules, s->layers > 0 ? s->layers - 1 : 0);
    consider(s, m);
}

/* The head's matrix: its gradient comes into being beside that of the logits. */
static void head_backward(struct vp_train_stage *s, const struct vp_train_rules *rules) {
    struct vp_train_moment m = {.step = VP_STEP_BACKWARD,
                                .cause = VP_CAUSE_HEAD,
                                .layer = VP_NO_LAYER,
                                .saved = s->saved_bytes,
                                .temporaries = s->deferred_bytes,
                                .logits = s->head.logits_bytes};
    const struct vp_tape *tape = &s->head.tape;

    for (uint32_t i = 0; i < tape->count; i++)
        if (tape->item[i].group == VP_TAPE_LOSS)
            m.saved -= vp_min(tape->item[i].bytes, m.saved);
    m.gradients = s->gradients_grow
                      ? s->head_gradient_bytes
                      : s->gradient_bytes + (s->gradients_persist ? s->head_temp_bytes
                                                                  : s->accumulation_temp_bytes);
    m.gathered = gathered(s, rules, s->layers > 0 ? s->layers - 1 : 0);
    consider(s, m);
}

/* ---- backward ---- */

static uint64_t scattered(const struct vp_train_stage *s, const struct vp_train_rules *rules,
                          uint32_t i) {
    struct vp_sum bytes = vp_sum(0);
    for (uint64_t k = 0; k < rules->scattered_layers && i + k < s->layers; k++)
        bytes = vp_sum_add(bytes, s->layer[i + k].scattered_bytes);
    return bytes.overflow ? UINT64_MAX : bytes.v;
}

/* The layer's backward pass as it begins, with all of its tape, and as it ends, with all of its
 * gradients. */
static void layer_backward(struct walk *w, uint32_t i) {
    struct vp_train_stage *s = w->stage;
    const struct vp_train_layer *l = &s->layer[i];
    struct vp_sum saved = vp_sum_plus(vp_sum_plus(w->others, w->held), w->rebuilt);
    struct vp_train_moment m = {.step = VP_STEP_BACKWARD,
                                .cause =
                                    l->rebuilt_bytes > 0 ? VP_CAUSE_REBUILT : VP_CAUSE_BACKWARD,
                                .layer = l->layer,
                                .saved = saved.v,
                                .gradients = w->gradients.v,
                                .temporaries = l->tape->backward_temp_bytes,
                                .scattered = scattered(s, w->rules, i)};

    s->overflow |= saved.overflow || w->gradients.overflow;
    if (l->recomputed) /* its output's gradient waits while it runs forward again */
        m.temporaries = vp_max(m.temporaries, l->tape->forward_temp_bytes + l->tape->output_bytes);
    m.gathered = gathered(s, w->rules, i) + l->weight_temp_bytes;
    s->saved_peak_bytes = vp_max(s->saved_peak_bytes, saved.v);
    m.gradients += l->gradient_temp_bytes;
    consider(s, m);
    if (!s->gradients_grow)
        return;
    w->gradients = vp_sum_add(w->gradients, l->gradient_bytes);
    uint64_t own = l->saved_bytes + l->rebuilt_bytes;
    m.cause = i == 0 ? VP_CAUSE_GRADIENTS : VP_CAUSE_BACKWARD;
    m.step = i == 0 ? VP_STEP_BACKWARD_END : VP_STEP_BACKWARD;
    m.saved = vp_above(m.saved, own) + (l->tape->input_on_tape ? l->tape->input_bytes : 0);
    m.gradients = w->gradients.v;
    m.temporaries = l->tape->input_bytes;
    consider(s, m);
}

/* From the last layer of the chunk to its first. */
static void walk_chunk(struct walk *w, uint32_t begin, uint32_t end) {
    struct vp_train_stage *s = w->stage;

    for (uint32_t i = end; i-- > begin;) {
        const struct vp_train_layer *l = &s->layer[i];
        const struct vp_train_layer *after = i + 1 < end ? l + 1 : NULL;
        bool same = l->recomputed && after && after->recomputed && after->segment == l->segment;
        if (!same) { /* the whole segment is run again before its last layer's backward pass */
            w->rebuilt = vp_sum(l->rebuilt_bytes);
            for (uint32_t k = i; l->recomputed && k-- > begin && s->layer[k].recomputed &&
                                 s->layer[k].segment == l->segment;)
                w->rebuilt = vp_sum_add(w->rebuilt, s->layer[k].rebuilt_bytes);
        }
        layer_backward(w, i);
        w->rebuilt.v -= vp_min(l->rebuilt_bytes, w->rebuilt.v);
        w->held.v -= vp_min(l->saved_bytes, w->held.v);
    }
}

/* The embedding's gradient has the whole table's shape; with a tied head it is added to the one
 * that is there. */
static void embedding_backward(struct vp_train_stage *s, const struct vp_scenario *scenario) {
    struct vp_train_moment m = {.step = VP_STEP_BACKWARD_END,
                                .cause = VP_CAUSE_GRADIENTS,
                                .layer = s->layers > 0 ? s->layer[0].layer : VP_NO_LAYER,
                                .gradients = s->gradient_bytes};

    if (s->layers > 0)
        m.temporaries = s->layer[0].tape->input_bytes;
    m.gathered = s->embedding_gathered_bytes;
    if (s->first && s->embedding_gradient_bytes > 0) {
        bool tied = scenario->model->tied && s->last;
        m.cause = VP_CAUSE_EMBEDDING;
        m.layer = VP_NO_LAYER;
        m.saved = s->embedding.saved_bytes;
        if (tied || !s->gradients_grow)
            m.gradients += s->gradients_persist ? s->table_temp_bytes : s->embedding_gradient_bytes;
    }
    consider(s, m);
}

static void backward(struct vp_train_stage *s, const struct vp_train_rules *rules) {
    uint32_t end = s->layers;

    while (end > 0) {
        uint32_t chunk = s->layer[end - 1].chunk, begin = end;
        bool head = s->last && chunk + 1 == s->chunks, first = s->first && chunk == 0;
        struct walk w = {.stage = s, .rules = rules};
        while (begin > 0 && s->layer[begin - 1].chunk == chunk)
            w.held = vp_sum_add(w.held, s->layer[--begin].saved_bytes);
        if (first)
            w.held = vp_sum_add(w.held, s->embedding.saved_bytes);
        uint64_t own = w.held.v + (head ? s->head.tape.saved_bytes : 0);
        w.others = vp_sum(vp_above(s->saved_bytes, own));
        if (chunk + 1 == s->chunks)
            w.gradients = vp_sum(s->gradients_grow ? s->head_gradient_bytes : s->gradient_bytes);
        else
            w.gradients = vp_sum(s->gradient_bytes);
        walk_chunk(&w, begin, end);
        end = begin;
    }
}

void vp_train_stage_moments(struct vp_train_stage *stage, const struct vp_scenario *scenario) {
    const struct vp_train_rules *rules = &scenario->engine.rules.train;

    stage->saved_peak_bytes = stage->saved_bytes;
    for (int i = 0; i < VP_TRAIN_MOMENTS; i++)
        stage->moment[i] = (struct vp_train_moment){.step = (enum vp_step)(VP_STEP_FORWARD + i),
                                                    .layer = VP_NO_LAYER};
    forward(stage, rules);
    if (stage->last)
        head_backward(stage, rules);
    backward(stage, rules);
    embedding_backward(stage, scenario);
    consider(stage, (struct vp_train_moment){.step = VP_STEP_OPTIMIZER,
                                             .cause = VP_CAUSE_STEP,
                                             .layer = VP_NO_LAYER,
                                             .gradients = stage->gradient_bytes,
                                             .step_temp = stage->step_temp_bytes});
}

const struct vp_train_moment *vp_train_stage_peak(const struct vp_train_stage *stage) {
    const struct vp_train_moment *most = &stage->moment[0];
    for (int i = 1; i < VP_TRAIN_MOMENTS; i++)
        if (stage->moment[i].total > most->total)
            most = &stage->moment[i];
    return most;
}
