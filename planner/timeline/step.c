#include "planner/timeline/step.h"

#include "planner/timeline/step_parts.h"

/* Storages that exist once; those of tapes come first, see tape_id. */
enum single {
    WEIGHTS,
    ADAPTERS,
    MASTER,
    OPTIMIZER,
    FP8,
    WORKSPACE,
    COMMUNICATION,
    PERSISTENT, /* the buffer of gradients that is there all the time */
    ROOT,       /* embedding and head, whole */
    SENT,       /* a chunk's output on its way to the next stage */
    TEMPORARY,
    CONVERTED, /* weights in the compute type */
    SECOND,    /* a gradient beside the accumulated one */
    LOGITS,
    DEFERRED, /* of the head, until all micro batches are through */
    FLOW,     /* gradient of what flows between layers, two by turns */
    FLOW_TOO,
    SINGLES
};

enum { MAX_IDS = 1 << 27 };

struct writer {
    const struct vp_train_stage *stage;
    const struct vp_train_rules *rules;
    const struct vp_event_sink *sink;
    bool tied;
    const struct vp_step_row *row;
    uint32_t rows;
    struct vp_step_schedule schedule;
    uint32_t ids_rebuilt, ids_gathered, ids_scattered, ids_gradient, ids_single;
    bool *whole;   /* weights of a row are gathered */
    uint32_t flow; /* FLOW or FLOW_TOO: the gradient that is there */
    struct vp_event now;
};

/* ---- events ---- */

static void at(struct writer *w, enum vp_step step, enum vp_train_cause cause, uint32_t layer) {
    w->now.step = (uint8_t)step;
    w->now.cause = (uint8_t)cause;
    w->now.layer = layer;
}

static void take_kept(struct writer *w, uint32_t id, uint64_t bytes, enum vp_component component,
                      bool kept) {
    struct vp_event event = w->now;
    event.kind = VP_EVENT_TAKE;
    event.id = id;
    event.bytes = bytes;
    event.component = (uint8_t)component;
    event.kept = kept;
    w->sink->event(w->sink->user, &event);
}

static void take(struct writer *w, uint32_t id, uint64_t bytes, enum vp_component component) {
    take_kept(w, id, bytes, component, false);
}

static void give(struct writer *w, uint32_t id) {
    struct vp_event event = w->now;
    event.kind = VP_EVENT_GIVE;
    event.id = id;
    w->sink->event(w->sink->user, &event);
}

static void mark(struct writer *w, enum vp_mark what, uint64_t n) {
    struct vp_event event = w->now;
    event.kind = VP_EVENT_MARK;
    event.id = what;
    event.bytes = n;
    w->sink->event(w->sink->user, &event);
}

static uint32_t single(const struct writer *w, enum single what) { return w->ids_single + what; }

/* Items of a row's tape, of the micro batch at work. */
static uint32_t tape_id(const struct writer *w, uint32_t row) {
    uint32_t slot = (uint32_t)(w->now.micro_batch % w->schedule.slots);
    return (slot * w->rows + row) * VP_ROW_ITEMS;
}

static void take_items(struct writer *w, uint32_t first, const struct vp_row_items *items) {
    for (uint32_t i = 1; i < items->count; i++)
        take_kept(w, first + i, items->bytes[i], VP_C_ACTIVATIONS, true);
}

/* As autograd frees them: the last one kept goes first. */
static void give_items(struct writer *w, uint32_t first, const struct vp_row_items *items) {
    for (uint32_t i = items->count; i-- > 1;)
        give(w, first + i);
}

static void take_flow(struct writer *w, uint64_t bytes) {
    w->flow = w->flow == FLOW ? FLOW_TOO : FLOW;
    take(w, single(w, (enum single)w->flow), bytes, VP_C_ACTIVATIONS);
}

/* ---- weights that are gathered ---- */

static void gather(struct writer *w, uint32_t row, int step, uint32_t begin, uint32_t end) {
    uint64_t window = w->rules->gathered_stay ? 1 : vp_max(w->rules->gathered_layers, 1);
    for (uint64_t i = 0; i < window; i++) {
        if (w->stage->layer[row].gathered_bytes > 0 && !w->whole[row]) {
            take(w, w->ids_gathered + row, w->stage->layer[row].gathered_bytes, VP_C_COMMUNICATION);
            w->whole[row] = true;
        }
        if (step < 0 ? row == begin : row + 1 == end)
            return;
        row = step < 0 ? row - 1 : row + 1;
    }
}

static void scatter(struct writer *w, uint32_t row) {
    if (w->whole[row])
        give(w, w->ids_gathered + row);
    w->whole[row] = false;
}

/* ---- forward ---- */

static bool has_head(const struct writer *w, uint32_t chunk) {
    return w->stage->last && chunk + 1 == w->stage->chunks;
}

static bool has_embedding(const struct writer *w, uint32_t chunk) {
    return w->stage->first && chunk == 0;
}

static void layer_forward(struct writer *w, uint32_t i, uint32_t end, uint32_t next) {
    const struct vp_train_layer *l = &w->stage->layer[i];
    const struct vp_step_row *row = &w->row[i];
    uint32_t tape = tape_id(w, i);

    at(w, VP_STEP_FORWARD, VP_CAUSE_LAYERS, l->layer);
    gather(w, i, 1, 0, end);
    if (l->weight_temp_bytes > 0)
        take(w, single(w, CONVERTED), l->weight_temp_bytes, VP_C_WORKSPACE);
    take_items(w, tape, &row->saved);
    if (next < w->rows)
        take_kept(w, tape_id(w, next), row->output_bytes, VP_C_ACTIVATIONS,
                  w->row[next].keeps_input);
    else
        take(w, single(w, SENT), row->output_bytes, VP_C_ACTIVATIONS);
    take(w, single(w, TEMPORARY), l->tape->forward_temp_bytes, VP_C_ACTIVATIONS);
    give(w, single(w, TEMPORARY));
    if (l->weight_temp_bytes > 0)
        give(w, single(w, CONVERTED));
    if (!row->keeps_input)
        give(w, tape);
    if (!w->rules->gathered_stay)
        scatter(w, i);
}

/* The loss, and what it leaves until the backward pass: the logits and what the head's matrix
 * read. With the loss its backward pass begins: the peak spans both. */
static void head_forward(struct writer *w) {
    uint32_t head = w->stage->layers + 1;
    const struct vp_step_row *row = &w->row[head];

    at(w, VP_STEP_FORWARD, VP_CAUSE_LOSS, VP_NO_LAYER);
    take_items(w, tape_id(w, head), &row->saved);
    if (!row->keeps_input)
        give(w, tape_id(w, head));
    if (w->now.micro_batch == 0)
        take(w, single(w, DEFERRED), w->stage->deferred_bytes, VP_C_ACTIVATIONS);
    take(w, single(w, LOGITS), w->stage->logits_peak_bytes, VP_C_LOGITS);
    give(w, single(w, LOGITS));
}

static uint32_t chunk_begin(const struct writer *w, uint32_t chunk) {
    uint32_t i = 0;
    while (i < w->stage->layers && w->stage->layer[i].chunk < chunk)
        i++;
    return i;
}

static void chunk_forward(struct writer *w, struct vp_step_pass pass) {
    const struct vp_train_stage *s = w->stage;
    uint32_t begin = chunk_begin(w, pass.chunk), end = chunk_begin(w, pass.chunk + 1);
    uint32_t after = has_head(w, pass.chunk) ? s->layers + 1 : UINT32_MAX;

    w->now.micro_batch = pass.micro;
    at(w, VP_STEP_FORWARD, VP_CAUSE_LAYERS, VP_NO_LAYER);
    if (has_embedding(w, pass.chunk))
        take_items(w, tape_id(w, s->layers), &w->row[s->layers].saved);
    uint32_t first = begin < end ? begin : after;
    if (first < w->rows)
        take_kept(w, tape_id(w, first), w->row[first].input_bytes, VP_C_ACTIVATIONS,
                  w->row[first].keeps_input);
    for (uint32_t i = begin; i < end; i++)
        layer_forward(w, i, end, i + 1 < end ? i + 1 : after);
    if (has_head(w, pass.chunk))
        head_forward(w);
    else if (begin < end)
        give(w, single(w, SENT));
}

/* ---- backward ---- */

/* Whether gradients of weights come into being now: with the first micro batch of the step. Later
 * ones make a second gradient that is added to the first. */
static bool first_gradients(const struct writer *w) {
    return !w->stage->gradients_persist && !w->rules->optimizer_in_backward &&
           w->now.micro_batch == 0;
}

static bool needs_second(const struct writer *w, uint64_t bytes) {
    return bytes > 0 && !w->rules->optimizer_in_backward &&
           (w->stage->gradients_persist || w->now.micro_batch > 0);
}

static void keep_gradient(struct writer *w, uint32_t row, uint64_t bytes) {
    if (bytes > 0 && first_gradients(w))
        take(w, w->ids_gradient + row, bytes, VP_C_GRADIENTS);
}

static void head_backward(struct writer *w) {
    const struct vp_train_stage *s = w->stage;
    uint32_t head = s->layers + 1, tape = tape_id(w, head);
    const struct vp_step_row *row = &w->row[head];
    uint32_t read = w->ids_rebuilt + head * VP_ROW_ITEMS;

    at(w, VP_STEP_BACKWARD, VP_CAUSE_HEAD, VP_NO_LAYER);
    take(w, single(w, LOGITS), s->head.logits_bytes, VP_C_LOGITS);
    take_items(w, read, &row->rebuilt);
    keep_gradient(w, head, s->head_gradient_bytes);
    uint64_t second = s->gradients_persist ? s->head_temp_bytes : s->accumulation_temp_bytes;
    if (s->head_gradient_bytes > 0 && needs_second(w, second)) {
        take(w, single(w, SECOND), second, VP_C_GRADIENTS);
        give(w, single(w, SECOND));
    }
    give(w, single(w, LOGITS));
    take_flow(w, s->head.tape.input_bytes);
    give_items(w, read, &row->rebuilt);
    give_items(w, tape, &row->saved);
    if (row->keeps_input)
        give(w, tape);
}

/* The first layer of the segment that ends at `last`. */
static uint32_t segment_begin(const struct writer *w, uint32_t last, uint32_t begin) {
    const struct vp_train_layer *layer = w->stage->layer;
    while (last > begin && layer[last].recomputed && layer[last - 1].recomputed &&
           layer[last - 1].segment == layer[last].segment)
        last--;
    return last;
}

static bool ends_segment(const struct writer *w, uint32_t row, uint32_t end) {
    return row + 1 == end || segment_begin(w, row + 1, row) == row + 1;
}

/* Runs the segment forward again, while the gradient of its output waits. */
static void rebuild(struct writer *w, uint32_t begin, uint32_t last) {
    for (uint32_t i = segment_begin(w, last, begin); i <= last; i++) {
        const struct vp_train_layer *l = &w->stage->layer[i];
        if (l->rebuilt_bytes == 0)
            continue;
        at(w, VP_STEP_BACKWARD, VP_CAUSE_REBUILT, l->layer);
        take_items(w, w->ids_rebuilt + i * VP_ROW_ITEMS, &w->row[i].rebuilt);
        if (l->recomputed) {
            take(w, single(w, TEMPORARY), l->tape->forward_temp_bytes, VP_C_ACTIVATIONS);
            give(w, single(w, TEMPORARY));
        }
    }
}

/* Whole gradients of this layer and of those reduced before it: they are given back once they are
 * so many layers behind. */
static void reduce_gradients(struct writer *w, uint32_t i, uint32_t begin, uint32_t end) {
    uint64_t window = w->rules->scattered_layers;
    for (uint32_t k = i; k < end; k++)
        if (w->stage->layer[k].scattered_bytes > 0 && (i == begin || k - i + 1 == window) &&
            k - i < window)
            give(w, w->ids_scattered + k);
}

static void layer_backward(struct writer *w, uint32_t i, uint32_t begin, uint32_t end) {
    const struct vp_train_layer *l = &w->stage->layer[i];
    const struct vp_step_row *row = &w->row[i];
    uint32_t tape = tape_id(w, i), flow = w->flow;
    bool reduces = l->scattered_bytes > 0 && w->rules->scattered_layers > 0;
    bool second = needs_second(w, l->gradient_temp_bytes);

    gather(w, i, -1, begin, end);
    if (l->weight_temp_bytes > 0)
        take(w, single(w, CONVERTED), l->weight_temp_bytes, VP_C_WORKSPACE);
    if (ends_segment(w, i, end))
        rebuild(w, begin, i);
    at(w, VP_STEP_BACKWARD, l->rebuilt_bytes > 0 ? VP_CAUSE_REBUILT : VP_CAUSE_BACKWARD, l->layer);
    if (reduces)
        take(w, w->ids_scattered + i, l->scattered_bytes, VP_C_COMMUNICATION);
    if (second)
        take(w, single(w, SECOND), l->gradient_temp_bytes, VP_C_GRADIENTS);
    take(w, single(w, TEMPORARY), vp_above(l->tape->backward_temp_bytes, row->output_bytes),
         VP_C_ACTIVATIONS);
    give(w, single(w, TEMPORARY));
    give(w, single(w, (enum single)flow));
    give_items(w, w->ids_rebuilt + i * VP_ROW_ITEMS, &row->rebuilt);
    give_items(w, tape, &row->saved);
    if (l->weight_temp_bytes > 0)
        give(w, single(w, CONVERTED));
    if (second)
        give(w, single(w, SECOND));
    if (i == 0)
        at(w, VP_STEP_BACKWARD_END, VP_CAUSE_GRADIENTS, l->layer);
    take_flow(w, row->input_bytes);
    keep_gradient(w, i, l->gradient_bytes);
    if (row->keeps_input)
        give(w, tape);
    scatter(w, i);
    reduce_gradients(w, i, begin, end);
}

/* The embedding's gradient has the whole table's shape; beside an accumulated or a tied one it
 * stands until it is added. */
static void embedding_backward(struct writer *w) {
    const struct vp_train_stage *s = w->stage;
    bool added = w->tied && s->last;
    uint64_t second = s->gradients_persist ? s->table_temp_bytes : s->embedding_gradient_bytes;

    at(w, VP_STEP_BACKWARD_END, VP_CAUSE_EMBEDDING, VP_NO_LAYER);
    if (!added)
        keep_gradient(w, s->layers, s->embedding_gradient_bytes);
    if (s->embedding_gradient_bytes > 0 && (added || needs_second(w, second)) && second > 0) {
        take(w, single(w, SECOND), second, VP_C_GRADIENTS);
        give(w, single(w, SECOND));
    }
    give_items(w, tape_id(w, s->layers), &w->row[s->layers].saved);
}

static void chunk_backward(struct writer *w, struct vp_step_pass pass) {
    uint32_t begin = chunk_begin(w, pass.chunk), end = chunk_begin(w, pass.chunk + 1);

    w->now.micro_batch = pass.micro;
    at(w, VP_STEP_BACKWARD, VP_CAUSE_BACKWARD, VP_NO_LAYER);
    if (has_head(w, pass.chunk))
        head_backward(w);
    else
        take_flow(w, begin < end ? w->row[end - 1].output_bytes : 0);
    for (uint32_t i = end; i-- > begin;)
        layer_backward(w, i, begin, end);
    if (has_embedding(w, pass.chunk))
        embedding_backward(w);
    give(w, single(w, (enum single)w->flow));
}

/* ---- the step ---- */

static void begin_once(struct writer *w) {
    const struct vp_train_stage *s = w->stage;

    at(w, VP_STEP_LOAD, VP_CAUSE_LAYERS, VP_NO_LAYER);
    take(w, single(w, WEIGHTS), s->parameter_bytes - s->adapter_bytes, VP_C_WEIGHTS);
    take(w, single(w, ADAPTERS), s->adapter_bytes, VP_C_ADAPTERS);
    take(w, single(w, MASTER), s->master_bytes, VP_C_MASTER_WEIGHTS);
    take(w, single(w, FP8), s->fp8_bytes, VP_C_WEIGHTS);
    if (s->gradients_persist)
        take(w, single(w, PERSISTENT), s->gradient_bytes, VP_C_GRADIENTS);
    take(w, single(w, WORKSPACE), s->workspace.likely + s->buffer_bytes + s->placeholder_bytes,
         VP_C_WORKSPACE);
    take(w, single(w, COMMUNICATION), s->communication.likely, VP_C_COMMUNICATION);
}

static void optimizer_step(struct writer *w, bool first) {
    const struct vp_train_stage *s = w->stage;

    at(w, VP_STEP_OPTIMIZER, VP_CAUSE_STEP, VP_NO_LAYER);
    if (first)
        take(w, single(w, OPTIMIZER), s->optimizer_bytes, VP_C_OPTIMIZER);
    take(w, single(w, TEMPORARY), s->step_temp_bytes, VP_C_WORKSPACE);
    give(w, single(w, TEMPORARY));
    w->now.micro_batch = 0;
    if (!first_gradients(w))
        return;
    for (uint32_t i = 0; i < s->layers; i++)
        if (s->layer[i].gradient_bytes > 0)
            give(w, w->ids_gradient + i);
    if (s->first && s->embedding_gradient_bytes > 0 && !(w->tied && s->last))
        give(w, w->ids_gradient + s->layers);
    if (s->last && s->head_gradient_bytes > 0)
        give(w, w->ids_gradient + s->layers + 1);
}

/* Since when the driver was not called. */
struct settled {
    uint64_t calls; /* so far */
    uint64_t since; /* forward passes at the last one */
};

/* Passes that can be left out after `done` forward passes: whole periods, of full turns. */
static uint64_t repeated(const struct writer *w, struct settled *settled, uint64_t done) {
    const struct vp_step_schedule *schedule = &w->schedule;
    uint64_t calls;

    if (!w->sink->driver_calls)
        return 0;
    calls = w->sink->driver_calls(w->sink->user);
    if (settled->since == 0 || calls != settled->calls)
        *settled = (struct settled){calls, done};
    if (done - settled->since < schedule->ahead || done >= schedule->regular)
        return 0;
    return (schedule->regular - done) / schedule->period * schedule->period;
}

/* Fills the pipeline, then a backward and a forward pass by turns, then empties it. */
static void run_passes(struct writer *w) {
    const struct vp_step_schedule *schedule = &w->schedule;
    struct settled settled = {0};
    uint64_t forward = 0, backward = 0;

    while (forward < schedule->ahead)
        chunk_forward(w, schedule->forward[forward++]);
    while (forward < schedule->count) {
        chunk_backward(w, schedule->backward[backward++]);
        chunk_forward(w, schedule->forward[forward++]);
        uint64_t skip = repeated(w, &settled, forward);
        if (skip > 0) {
            mark(w, VP_MARK_REPEAT, skip / vp_max(w->stage->chunks, 1));
            forward += skip;
            backward += skip;
        }
    }
    while (backward < schedule->count)
        chunk_backward(w, schedule->backward[backward++]);
}

static void run_step(struct writer *w, bool first) {
    const struct vp_train_stage *s = w->stage;
    struct vp_sum root = vp_sum_add(vp_sum(s->embedding_gathered_bytes), s->head_gathered_bytes);

    at(w, VP_STEP_FORWARD, VP_CAUSE_LAYERS, VP_NO_LAYER);
    w->now.micro_batch = 0;
    take(w, single(w, ROOT), root.v, VP_C_COMMUNICATION);
    if (w->rules->optimizer_in_backward && !s->gradients_persist)
        take(w, single(w, PERSISTENT), s->gradient_bytes, VP_C_GRADIENTS);
    run_passes(w);
    for (uint32_t i = 0; i < s->layers; i++)
        scatter(w, i);
    give(w, single(w, ROOT));
    if (s->last)
        give(w, single(w, DEFERRED));
    if (w->rules->optimizer_in_backward && !s->gradients_persist)
        give(w, single(w, PERSISTENT));
    optimizer_step(w, first);
}

bool vp_step_write(struct vp_arena *arena, const struct vp_scenario *scenario,
                   const struct vp_train_stage *stage, const struct vp_event_sink *sink) {
    struct writer w = {.stage = stage,
                       .rules = &scenario->engine.rules.train,
                       .sink = sink,
                       .tied = scenario->model->tied,
                       .row = vp_step_rows(arena, scenario, stage),
                       .rows = stage->layers + 2,
                       .flow = FLOW};

    if (stage->overflow || stage->micro_batches > MAX_IDS / vp_max(stage->chunks, 1))
        return false;
    w.schedule = vp_step_schedule_make(arena, stage);
    uint64_t tapes = w.schedule.slots * w.rows * VP_ROW_ITEMS;
    if (tapes + (uint64_t)w.rows * VP_ROW_ITEMS > MAX_IDS)
        return false;
    w.ids_rebuilt = (uint32_t)tapes;
    w.ids_gathered = w.ids_rebuilt + w.rows * VP_ROW_ITEMS;
    w.ids_scattered = w.ids_gathered + w.rows;
    w.ids_gradient = w.ids_scattered + w.rows;
    w.ids_single = w.ids_gradient + w.rows;
    w.whole = VP_NEW_ARRAY(arena, w.rows, bool);
    begin_once(&w);
    run_step(&w, true);
    mark(&w, VP_MARK_STEP, 0);
    run_step(&w, false);
    return true;
}
