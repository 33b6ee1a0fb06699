#include "planner/plan/train_latency.h"

#include <math.h>

#include "planner/ops/train_layout.h"
#include "planner/plan/train_regions.h"

/* The first ones are those inside a layer (enum vp_train_kind). */
enum part {
    PART_RECOMPUTED = VP_TRAIN_KINDS,
    PART_HOST,
    PART_WEIGHTS,
    PART_OFFLOAD,
    PART_SENDS,
    PART_BUBBLE,
    PART_GRADIENTS,
    PART_OPTIMIZER,
    PARTS
};
static const char *const NAMES[PARTS] = {"linear layers",    "experts",
                                         "attention",        "norms and other",
                                         "tensor parallel",  "expert parallel",
                                         "context parallel", "recomputation",
                                         "host and gaps",    "gathered weights",
                                         "offload",          "pipeline sends",
                                         "pipeline bubble",  "gradient reduction",
                                         "optimizer"};
_Static_assert((int)PARTS <= (int)VP_TIME_PARTS, "a latency has no room for these parts");

static const struct vp_time NO_TIME = {.basis = VP_BASIS_CALIBRATED};

/* Of one pipeline stage. */
struct stage {
    struct vp_time part[PARTS];                   /* of one micro batch, as far as they repeat */
    struct vp_time gradients, optimizer, updated; /* of the step */
    struct vp_time micro_batch;                   /* sum of part */
};

struct maker {
    const struct vp_scenario *scenario;
    struct vp_train_place place;
    struct vp_train_pass *block; /* by block of the model, as far as made */
    bool *made;
    double micro_batches;
};

/* ---- small sums ---- */

static void add(struct vp_time *sum, struct vp_time time) { *sum = vp_time_add(*sum, time); }

/* What shows of a collective beside `work`: a share of it in any case, and what exceeds the work.
 */
static struct vp_time shown(struct vp_time time, const struct vp_amount *permille,
                            struct vp_time work) {
    bool alone = permille->likely >= 900; /* nothing is overlapped */
    double low = time.low * (double)permille->low / 1e3;
    double likely = time.likely * (double)permille->likely / 1e3;
    double high = time.high * (double)permille->high / 1e3;

    if (alone)
        return (struct vp_time){low, likely, high, time.basis};
    return (struct vp_time){fmax(low, time.low - work.high),
                            fmax(likely, time.likely - work.likely),
                            fmax(high, time.high - work.low), time.basis};
}

/* The rest of `long_one` beside `work`. */
static struct vp_time beyond(struct vp_time long_one, struct vp_time work) {
    return (struct vp_time){fmax(long_one.low - work.low, 0),
                            fmax(long_one.likely - work.likely, 0),
                            fmax(long_one.high - work.high, 0), long_one.basis};
}

/* ---- layers ---- */

static const struct vp_train_pass *pass_of(struct maker *m, uint32_t block) {
    if (!m->made[block]) {
        m->made[block] = true;
        m->block[block] = vp_train_block(&m->place, &m->scenario->model->blocks[block]);
    }
    return &m->block[block];
}

/* What of a layer runs again: a set of regions, or one of the names of train_regions.h. */
static uint32_t regions_again(const struct vp_scenario *s, const struct vp_train_layer *layer) {
    const struct vp_recompute *how = &s->train.recompute;

    if (layer->recomputed)
        return VP_REGION_ALL;
    if (how->kind == VP_RECOMPUTE_PLAN)
        return how->plan[layer->layer].selective;
    if (how->kind != VP_RECOMPUTE_SELECTIVE)
        return 0;
    return s->engine.kind == VP_ENGINE_MEGATRON ? how->selective : VP_REGION_BY_OPERATOR;
}

struct walk {
    struct vp_train_cost kept, again;
    uint32_t block, regions; /* of the layer before */
    struct vp_train_cost again_before;
};

static void add_layer(struct maker *m, struct walk *w, const struct vp_train_layer *layer) {
    const struct vp_train_pass *pass = pass_of(m, layer->block);
    uint32_t regions = regions_again(m->scenario, layer);

    vp_train_cost_add(&w->kept, &pass->forward, 1);
    vp_train_cost_add(&w->kept, &pass->backward, 1);
    if (regions == 0)
        return;
    if (regions != w->regions || layer->block != w->block)
        w->again_before =
            vp_regions_cost(&m->place, &m->scenario->model->blocks[layer->block], regions);
    w->regions = regions;
    w->block = layer->block;
    vp_train_cost_add(&w->again, &w->again_before, 1);
}

/* What kernels and collectives do not explain, gaps between them and ranks that wait for each
 * other: a published simulator with measured kernels is 0 to 13 % short of 22 measured steps, 6 %
 * on average (SimuMax docs/b200). */
static const double GAPS_LIKELY = 0.05, GAPS_HIGH = 0.12;

static struct vp_time launch_time(const struct maker *m, double launches) {
    const struct vp_amount *us = &m->scenario->engine.rules.train.host_launch;
    return (struct vp_time){launches * (double)us->low / 1e3, launches * (double)us->likely / 1e3,
                            launches * (double)us->high / 1e3, VP_BASIS_CLASS};
}

/* Steps of many small experts have taken twice as long as kernels and launches explain
 * (Megatron-Bridge performance summary 25.11, Qwen3 30B on H100 and B200). */
static const double WAITED_HIGH = 2;

/* Kernels wait for the host where they are shorter than what starts them, and where it cannot run
 * ahead of them. */
static struct vp_time host(const struct maker *m, const struct vp_train_cost *cost,
                           struct vp_time device) {
    struct vp_time gaps = {0, device.likely * GAPS_LIKELY, device.high * GAPS_HIGH, VP_BASIS_CLASS};
    struct vp_time waited = launch_time(m, cost->waited);
    struct vp_time time = vp_time_max(beyond(launch_time(m, cost->launches), device), gaps);

    waited.low = 0; /* with counts that stay on the device */
    waited.high *= WAITED_HIGH;
    time = vp_time_max(time, vp_time_add(gaps, waited));
    time.basis = device.basis;
    return time;
}

static void add_layers(struct maker *m, struct stage *out, const struct vp_train_stage *stage) {
    struct walk w = {.kept = vp_train_nothing(), .again = vp_train_nothing()};
    struct vp_train_pass end;

    for (uint32_t i = 0; i < stage->layers; i++)
        add_layer(m, &w, &stage->layer[i]);
    if (stage->first) {
        end = vp_train_first(&m->place);
        vp_train_cost_add(&w.kept, &end.forward, 1);
        vp_train_cost_add(&w.kept, &end.backward, 1);
    }
    if (stage->last) {
        end = vp_train_last(&m->place);
        vp_train_cost_add(&w.kept, &end.forward, 1);
        vp_train_cost_add(&w.kept, &end.backward, 1);
    }
    for (int k = 0; k < VP_TRAIN_KINDS; k++)
        out->part[k] = w.kept.time[k];
    out->part[PART_RECOMPUTED] = vp_train_cost_total(&w.again);
    struct vp_time device = vp_time_add(vp_train_cost_total(&w.kept), out->part[PART_RECOMPUTED]);
    vp_train_cost_add(&w.kept, &w.again, 1);
    out->part[PART_HOST] = host(m, &w.kept, device);
}

static struct vp_time work_of(const struct stage *s) {
    struct vp_time sum = NO_TIME;
    for (int k = 0; k <= PART_HOST; k++)
        add(&sum, s->part[k]);
    return sum;
}

/* ---- weights ---- */

/* Of a stage, experts or the rest. */
struct weights {
    struct vp_train_weights all;
    struct vp_train_shards shards;
    double trainable;
    bool experts;
};

static void collect(struct maker *m, struct vp_train_weights *out,
                    const struct vp_train_stage *stage) {
    const struct vp_scenario *s = m->scenario;
    struct vp_train_weights one;

    *out = (struct vp_train_weights){0};
    for (uint32_t i = 0; i < stage->layers;) {
        uint32_t block = stage->layer[i].block, n = 1;
        while (i + n < stage->layers && stage->layer[i + n].block == block)
            n++;
        vp_train_block_weights(&one, s, &s->model->blocks[block], &m->place.layout);
        vp_train_weights_add(out, &one, n);
        i += n;
    }
    if (stage->first) {
        vp_train_first_weights(&one, s, &m->place.layout);
        vp_train_weights_add(out, &one, 1);
    }
    if (stage->last) {
        vp_train_last_weights(&one, s, &m->place.layout, s->model->tied && !stage->first);
        vp_train_weights_add(out, &one, 1);
    }
}

static double width(enum vp_dtype dtype) { return (double)vp_dtype_bytes(dtype, vp_sum(1)).v; }

/* Fully sharded: weights are gathered for each forward and, unless they stay, backward pass, and
 * gradients are reduced behind each. */
static void sharded(struct maker *m, struct stage *out, const struct weights *w) {
    const struct vp_train_rules *rules = &m->scenario->engine.rules.train;
    double gathered = (double)vp_train_gathered(m->scenario, &w->all).v;
    double reduced = w->trainable * (rules->reduce_bytes > 0 ? (double)rules->reduce_bytes
                                                             : width(m->scenario->train.gradients));
    double rounds = rules->gathered_stay ? 1 : 2;
    struct vp_time work = work_of(out);
    struct vp_time gather =
        vp_train_reduce(&m->place, VP_TRAIN_SCATTER_OR_GATHER, w->experts, gathered);
    struct vp_time scatter =
        vp_train_reduce(&m->place, VP_TRAIN_SCATTER_OR_GATHER, w->experts, reduced);

    if (m->scenario->train.no_sync) {
        add(&out->gradients, shown(scatter, &rules->exposed_gradients, work));
        scatter = NO_TIME;
    }
    add(&out->part[PART_WEIGHTS],
        shown(vp_time_add(vp_time_scale(gather, rounds), scatter), &rules->exposed_weights, work));
}

static void reduced(struct maker *m, struct stage *out, const struct weights *w) {
    const struct vp_scenario *s = m->scenario;
    const struct vp_train_rules *rules = &s->engine.rules.train;
    bool shares = w->shards.gradients > 1 || w->shards.states > 1;
    double rounds = w->shards.gradients > 1 && !rules->gradients_persist ? m->micro_batches : 1;
    double bytes = w->trainable * width(s->train.gradients);
    struct vp_time all = vp_train_reduce(
        &m->place, shares ? VP_TRAIN_SCATTER_OR_GATHER : VP_TRAIN_ALL_REDUCE, w->experts, bytes);

    add(&out->gradients,
        shown(vp_time_scale(all, rounds), &rules->exposed_gradients, work_of(out)));
    if (!shares)
        return;
    struct vp_time updated = vp_train_reduce(&m->place, VP_TRAIN_SCATTER_OR_GATHER, w->experts,
                                             w->trainable * width(s->train.parameters));
    add(&out->updated, shown(updated, &rules->exposed_weights, work_of(out)));
}

static void add_reduction(struct maker *m, struct stage *out, const struct vp_train_stage *stage) {
    struct vp_train_weights all;

    collect(m, &all, stage);
    for (int k = 0; k < 2; k++) {
        struct weights w = {.shards = vp_train_shards_of(m->scenario, k == 1), .experts = k == 1};
        if (k == 0)
            w.all.dense = all.dense;
        else
            w.all.experts = all.experts;
        w.trainable = (double)(k == 0 ? all.dense : all.experts).trainable.v;
        if (w.shards.parameters > 1)
            sharded(m, out, &w);
        else
            reduced(m, out, &w);
    }
}

/* ---- what else a stage does ---- */

static void add_offload(struct maker *m, struct stage *out, const struct vp_train_stage *stage) {
    static const struct vp_amount SHOWN = {30, 150, 500};
    const struct vp_train *train = &m->scenario->train;
    double bytes = 0;

    for (uint32_t i = 0; i < stage->layers; i++)
        bytes += 2.0 * (double)stage->layer[i].offloaded_bytes;
    if (train->offload_parameters)
        bytes += 2 * (double)stage->trainable * width(train->parameters) /
                 (double)vp_train_shards_of(m->scenario, false).parameters;
    if (bytes > 0)
        out->part[PART_OFFLOAD] =
            shown(vp_host_copy_time(&m->place.kernels, bytes), &SHOWN, work_of(out));
}

/* Each micro batch comes in and goes out, forward and backward, with every chunk. */
static void add_sends(struct maker *m, struct stage *out, const struct vp_train_stage *stage) {
    static const struct vp_amount HIDDEN = {50, 200, 600};
    const struct vp_amount *share = &m->scenario->engine.rules.train.exposed_sends;
    double times = 2.0 * (double)stage->chunks;

    if (stage->count == 1)
        return;
    if (stage->chunks > 1) /* an interleaved schedule sends while other chunks work */
        share = &HIDDEN;
    out->part[PART_SENDS] =
        shown(vp_time_scale(vp_train_send(&m->place), times), share, work_of(out));
}

static void add_optimizer(struct maker *m, struct stage *out, const struct vp_train_stage *stage) {
    struct vp_train_shards shards = vp_train_shards_of(m->scenario, false);
    double elements = (double)stage->trainable / (double)shards.states;
    struct vp_train_states states = {
        .elements = elements,
        .gradient_bytes = elements * width(m->scenario->train.gradients),
        .master_bytes = (double)stage->master_bytes,
        .optimizer_bytes = (double)stage->optimizer_bytes,
        .parameter_bytes = elements * width(m->scenario->train.parameters)};

    out->optimizer = vp_train_optimizer(&m->place, &states);
}

static void make_stage(struct maker *m, struct stage *out, const struct vp_train_stage *stage) {
    for (int k = 0; k < PARTS; k++)
        out->part[k] = NO_TIME;
    out->gradients = out->optimizer = out->updated = NO_TIME;
    add_layers(m, out, stage);
    add_reduction(m, out, stage);
    add_offload(m, out, stage);
    add_sends(m, out, stage);
    add_optimizer(m, out, stage);
    out->micro_batch = NO_TIME;
    for (int k = 0; k < PART_BUBBLE; k++)
        add(&out->micro_batch, out->part[k]);
}

/* ---- the step ---- */

static struct vp_time between_steps(const struct vp_scenario *s) {
    const struct vp_amount *us = &s->engine.rules.train.host_step;
    return (struct vp_time){(double)us->low, (double)us->likely, (double)us->high, VP_BASIS_CLASS};
}

static void fill_parts(struct vp_latency *out, const struct vp_time *part) {
    for (int k = 0; k < PARTS; k++)
        if (part[k].high > 0)
            out->part[out->parts++] = (struct vp_time_part){NAMES[k], part[k]};
}

static struct vp_estimate milliseconds(struct vp_time time) {
    return (struct vp_estimate){time.basis, time.low / 1e3, time.likely / 1e3, time.high / 1e3};
}

void vp_train_latency(struct vp_arena *arena, struct vp_result *result) {
    const struct vp_scenario *s = result->scenario;
    const struct vp_training_report *training = &result->training;
    uint32_t blocks = s->model->block_count, slowest = 0;
    struct maker m = {.scenario = s,
                      .place = vp_train_place_of(s),
                      .block = VP_NEW_ARRAY(arena, blocks, struct vp_train_pass),
                      .made = VP_NEW_ARRAY(arena, blocks, bool),
                      .micro_batches = (double)vp_train_micro_batches(s)};
    struct stage *stages = VP_NEW_ARRAY(arena, training->stages, struct stage);
    struct vp_time part[PARTS], step = NO_TIME;

    result->latency = (struct vp_latency){0};
    if (!vp_train_place_known(&m.place)) {
        result->latency.why = "the card's rates are not known";
        return;
    }
    for (uint32_t i = 0; i < training->stages; i++) {
        make_stage(&m, &stages[i], &training->stage[i].numbers);
        if (stages[i].micro_batch.likely > stages[slowest].micro_batch.likely)
            slowest = i;
    }
    for (int k = 0; k < PARTS; k++)
        part[k] = vp_time_scale(stages[slowest].part[k], m.micro_batches);
    for (uint32_t i = 0; i < training->stages; i++)
        if (i != slowest)
            add(&part[PART_BUBBLE], vp_time_scale(stages[i].micro_batch,
                                                  1.0 / training->stage[slowest].numbers.chunks));
    add(&part[PART_HOST], between_steps(s));
    add(&part[PART_WEIGHTS], stages[slowest].updated);
    part[PART_GRADIENTS] = stages[slowest].gradients;
    part[PART_OPTIMIZER] = stages[slowest].optimizer;
    for (int k = 0; k < PARTS; k++)
        add(&step, part[k]);
    result->latency.step_ms = milliseconds(step);
    result->latency.why = vp_train_place_why(&m.place, step.basis, arena);
    fill_parts(&result->latency, part);
}
