/* A pipeline stage in training: layers, recomputation, schedule, instants of a step, rows. */
#include "planner/memory/train_stage.h"
#include "planner/ops/train_layout.h"
#include "tests/unit/model_builder.h"

enum { HIDDEN = 64, VOCAB = 1024 };

static struct vp_block layer(void) {
    struct vp_block block = block_gqa(4, 4, 16);
    block.norm = VP_NORM_LAYER;
    block.mlp = (struct vp_mlp){.kind = VP_MLP_PLAIN, .intermediate = 256};
    return block;
}

static void begin(struct builder *b, uint32_t layers) {
    builder_begin(b);
    b->model.hidden = HIDDEN;
    builder_layer(b, layer(), layers);
    b->scenario.engine.kind = VP_ENGINE_PYTORCH;
    b->scenario.training = true;
    b->scenario.train = (struct vp_train){.micro_batch = 2,
                                          .sequence = 32,
                                          .accumulation = 1,
                                          .optimizer = VP_OPTIMIZER_ADAMW,
                                          .loop = VP_LOOP_FUSED,
                                          .parameters = VP_DTYPE_BF16,
                                          .gradients = VP_DTYPE_BF16,
                                          .optimizer_states = VP_DTYPE_BF16,
                                          .input_grad = true};
    b->scenario.engine.rules.train = (struct vp_train_rules){.vocab_pad = 1,
                                                             .gathered_layers = 2,
                                                             .scattered_layers = 1,
                                                             .offloaded_layers = 2,
                                                             .block_8bit = 256,
                                                             .spread = {1000, 1000, 1000},
                                                             .compiled = {1000, 1000, 1000},
                                                             .replayed = {1000, 1000, 1000},
                                                             .reserved = {1000, 1000, 1000}};
}

static struct vp_train_stage *make(struct builder *b, uint32_t index) {
    struct vp_train_stage *stage = VP_NEW(&b->f.arena, struct vp_train_stage);
    vp_train_stage_make(&b->f.arena, stage, &b->scenario, index);
    assert_false(stage->overflow);
    return stage;
}

/* ---- layers ---- */

static void expect_layers(const struct vp_train_stage *s, const uint32_t *want, uint32_t n) {
    assert_int_equal(s->layers, n);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(s->layer[i].layer, want[i]);
}

static void stages_hold_layers(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 8);
    b.scenario.parallel.pipeline = 4;
    b.scenario.train.accumulation = 8;
    expect_layers(make(&b, 1), (uint32_t[]){2, 3}, 2);
    b.scenario.parallel.virtual_pipeline = 2; /* virtual stages 1 and 5 */
    expect_layers(make(&b, 1), (uint32_t[]){1, 5}, 2);
    assert_int_equal(make(&b, 1)->layer[1].chunk, 1);
    b.scenario.parallel.virtual_pipeline = 1;
    b.scenario.parallel.pipeline = 3;
    b.scenario.engine.rules.train.first_stage_layers = 3;
    b.scenario.engine.rules.train.last_stage_layers = 1;
    expect_layers(make(&b, 0), (uint32_t[]){0, 1, 2}, 3);
    expect_layers(make(&b, 1), (uint32_t[]){3, 4, 5, 6}, 4);
    expect_layers(make(&b, 2), (uint32_t[]){7}, 1);
    builder_end(&b);
}

static void stages_hold_ends(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 4);
    builder_ends(&b, VOCAB, false);
    uint64_t whole = make(&b, 0)->parameter_bytes, sum = 0;
    b.scenario.parallel.pipeline = 2;
    for (uint32_t i = 0; i < 2; i++) {
        struct vp_train_stage *s = make(&b, i);
        assert_int_equal(s->first, i == 0);
        assert_int_equal(s->last, i == 1);
        assert_int_equal(s->embedding_gradient_bytes, i == 0 ? 2 * VOCAB * HIDDEN : 0);
        assert_int_equal(s->logits_peak_bytes > 0, i == 1);
        sum += s->parameter_bytes;
    }
    assert_int_equal(sum, whole);
    b.model.tied = true; /* both ends have the table */
    assert_int_equal(make(&b, 0)->parameter_bytes + make(&b, 1)->parameter_bytes, whole);
    b.scenario.parallel.pipeline = 1;
    assert_int_equal(make(&b, 0)->parameter_bytes, whole - 2 * VOCAB * HIDDEN);
    builder_end(&b);
}

/* ---- schedule ---- */

static void in_flight(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 8);
    b.scenario.parallel.pipeline = 4;
    b.scenario.train.accumulation = 8;
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(make(&b, i)->in_flight, 4 - i);
    b.scenario.train.accumulation = 2; /* no more than there are */
    assert_int_equal(make(&b, 0)->in_flight, 2);
    b.scenario.train.accumulation = 8;
    b.scenario.parallel.virtual_pipeline = 2;
    struct vp_train_stage *s = make(&b, 0); /* 2 x 3 + 1 x 4 of warm-up and one more */
    assert_int_equal(s->in_flight, 11);
    assert_int_equal(s->chunk_in_flight[0], 7);
    assert_int_equal(s->chunk_in_flight[1], 4);
    assert_int_equal(s->saved_bytes, 11 * s->layer[0].tape->saved_bytes);
    s = make(&b, 3);
    assert_int_equal(s->chunk_in_flight[0], 4);
    assert_int_equal(s->chunk_in_flight[1], 1);
    b.scenario.train.accumulation = 1;
    assert_int_equal(make(&b, 0)->in_flight, 2); /* both chunks of the only one */
    b.scenario.train.accumulation = 8;
    b.scenario.parallel.virtual_pipeline = 1;
    b.scenario.engine.rules.train.all_in_flight = true;
    assert_int_equal(make(&b, 3)->in_flight, 8);
    builder_end(&b);
}

static void micro_batches(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 1);
    b.scenario.train.accumulation = 0;
    assert_int_equal(vp_train_micro_batches(&b.scenario), 1);
    b.scenario.train.global_batch = 32;
    b.scenario.parallel.data = 3;
    assert_int_equal(vp_train_micro_batches(&b.scenario), 6); /* 32 / (2 x 3), rounded up */
    b.scenario.train.accumulation = 4;
    assert_int_equal(vp_train_micro_batches(&b.scenario), 4);
    b.scenario.parallel.microbatches = 5;
    assert_int_equal(vp_train_micro_batches(&b.scenario), 5);
    builder_end(&b);
}

/* ---- recomputation ---- */

struct recompute_case {
    struct vp_recompute how;
    uint64_t inputs, tapes;           /* saved: so many inputs and whole tapes */
    uint64_t peak_inputs, peak_tapes; /* the largest amount, an input on a tape counted once */
    uint64_t forwards;
};

/* Of six layers; a LayerNorm keeps its input, so a tape holds it. */
static void segments(void **state) {
    (void)state;
    uint64_t lengths[] = {3, 2}, layers[] = {1, 4};
    const struct recompute_case cases[] = {
        {{.kind = VP_RECOMPUTE_NONE}, 0, 6, 0, 6, 0},
        {{.kind = VP_RECOMPUTE_FULL}, 6, 0, 5, 1, 6},
        {{.kind = VP_RECOMPUTE_SQRT}, 2, 0, 1, 3, 6},              /* 3 and 3 */
        {{.kind = VP_RECOMPUTE_EVERY, .every = 4}, 2, 0, 0, 4, 6}, /* 4 and 2 */
        {{.kind = VP_RECOMPUTE_FIRST, .first = 2}, 2, 4, 2, 4, 2}, /* four plain ones */
        {{.kind = VP_RECOMPUTE_SEGMENTS, .list = lengths, .list_count = 2}, 2, 1, 0, 3, 5},
        {{.kind = VP_RECOMPUTE_LAYERS, .list = layers, .list_count = 2}, 2, 4, 2, 4, 2},
    };
    struct builder b;
    begin(&b, 6);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct recompute_case *c = &cases[i];
        b.scenario.train.recompute = c->how;
        struct vp_train_stage *s = make(&b, 0);
        uint64_t input = s->layer[0].tape->input_bytes, tape = s->layer[0].tape->saved_bytes;
        assert_true(s->layer[0].tape->input_on_tape);
        assert_int_equal(input, 2 * 2 * 32 * HIDDEN);
        assert_int_equal(s->saved_bytes, c->inputs * input + c->tapes * tape);
        assert_int_equal(s->saved_peak_bytes, c->peak_inputs * input + c->peak_tapes * tape);
        assert_int_equal(s->recomputed_forwards, c->forwards);
    }
    builder_end(&b);
}

/* Megatron counts the first layers of every stage. */
static void first_of_each_stage(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 8);
    b.scenario.parallel.pipeline = 2;
    b.scenario.train.recompute = (struct vp_recompute){.kind = VP_RECOMPUTE_FIRST, .first = 3};
    assert_int_equal(make(&b, 0)->recomputed_forwards, 3);
    assert_int_equal(make(&b, 1)->recomputed_forwards, 0);
    b.scenario.train.recompute.per_stage_first = true;
    assert_int_equal(make(&b, 1)->recomputed_forwards, 3);
    builder_end(&b);
}

static void selective(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 3);
    b.scenario.engine.kind = VP_ENGINE_MEGATRON;
    uint64_t plain = make(&b, 0)->saved_bytes;
    b.scenario.train.recompute = (struct vp_recompute){.kind = VP_RECOMPUTE_SELECTIVE,
                                                       .selective = VP_SELECT_CORE_ATTENTION};
    struct vp_train_stage *s = make(&b, 0);
    uint64_t left_out = vp_tape_selected(s->layer[0].tape, VP_SELECT_CORE_ATTENTION);
    assert_true(left_out > 0);
    assert_int_equal(s->saved_bytes, plain - 3 * left_out);
    assert_int_equal(s->saved_peak_bytes, plain - 2 * left_out);
    assert_int_equal(s->recomputed_forwards, 0); /* of whole layers */

    /* torch keeps the results of matrices and attention: between full and none */
    b.scenario.engine.kind = VP_ENGINE_PYTORCH;
    uint64_t kept = make(&b, 0)->saved_bytes;
    b.scenario.train.recompute = (struct vp_recompute){.kind = VP_RECOMPUTE_FULL};
    assert_true(make(&b, 0)->saved_bytes < kept);
    assert_true(kept < plain);
    builder_end(&b);
}

static void offloaded(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 5);
    b.scenario.train.recompute.kind = VP_RECOMPUTE_FULL;
    b.scenario.train.offload_activations = true;
    struct vp_train_stage *s = make(&b, 0);
    uint64_t input = s->layer[0].tape->input_bytes;
    assert_int_equal(s->saved_bytes, 2 * input);
    assert_int_equal(s->host_bytes, 3 * input);
    builder_end(&b);
}

/* ---- instants ---- */

static const struct vp_train_moment *moment(const struct vp_train_stage *s, enum vp_step step) {
    return &s->moment[step - VP_STEP_FORWARD];
}

/* Without accumulation gradients come into being during the backward pass. */
static void gradients(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 4);
    builder_ends(&b, VOCAB, false);
    struct vp_train_stage *s = make(&b, 0);
    assert_true(s->gradients_grow);
    assert_int_equal(moment(s, VP_STEP_FORWARD)->gradients, 0);
    assert_int_equal(moment(s, VP_STEP_BACKWARD_END)->gradients, s->gradient_bytes);
    assert_int_equal(moment(s, VP_STEP_OPTIMIZER)->gradients, s->gradient_bytes);
    assert_int_equal(s->gradient_bytes, s->head_gradient_bytes + s->embedding_gradient_bytes +
                                            4 * s->layer[0].gradient_bytes);
    b.scenario.train.accumulation = 2; /* they are there from the second micro batch on */
    s = make(&b, 0);
    assert_int_equal(moment(s, VP_STEP_FORWARD)->gradients, s->gradient_bytes);
    assert_int_equal(s->accumulation_temp_bytes, 2 * VOCAB * HIDDEN);
    b.scenario.train.accumulation = 1;
    b.scenario.engine.rules.train.gradients_persist = true;
    b.scenario.engine.rules.train.fuses_accumulation = true;
    s = make(&b, 0);
    assert_int_equal(moment(s, VP_STEP_FORWARD)->gradients, s->gradient_bytes);
    assert_int_equal(s->accumulation_temp_bytes, 0);
    builder_end(&b);
}

static void loss(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 2);
    builder_ends(&b, VOCAB, false);
    struct vp_train_stage *s = make(&b, 0);
    const struct vp_train_moment *m = moment(s, VP_STEP_FORWARD);
    assert_int_equal(m->cause, VP_CAUSE_LOSS);
    assert_int_equal(m->logits, s->logits_peak_bytes);
    assert_true(m->saved >= 2 * s->layer[0].tape->saved_bytes);
    /* log-probabilities and targets are a part of the loss's peak, and not counted twice */
    assert_true(m->saved < s->saved_bytes);
    builder_end(&b);
}

static void optimizer_step(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 2);
    b.scenario.train.loop = VP_LOOP_FOREACH;
    b.scenario.engine.rules.train.step_all = 1;
    struct vp_train_stage *s = make(&b, 0);
    const struct vp_train_moment *m = moment(s, VP_STEP_OPTIMIZER);
    assert_int_equal(m->step_temp, s->parameter_bytes);
    assert_int_equal(m->total,
                     5 * s->parameter_bytes); /* weights, gradients, 2 states, temporary */
    builder_end(&b);
}

/* FSDP: the layer at work and the one fetched ahead are whole, and everything when it may stay. */
static void gathered(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 4);
    b.scenario.parallel.data = 4;
    b.scenario.parallel.fsdp = true;
    struct vp_train_stage *s = make(&b, 0);
    uint64_t one = s->layer[0].gathered_bytes;
    assert_int_equal(s->parameter_bytes, one);
    assert_int_equal(moment(s, VP_STEP_BACKWARD)->gathered, 2 * one);
    assert_int_equal(moment(s, VP_STEP_BACKWARD)->scattered, one);
    assert_int_equal(moment(s, VP_STEP_OPTIMIZER)->gathered, 0);
    b.scenario.engine.rules.train.gathered_stay = true;
    assert_int_equal(moment(make(&b, 0), VP_STEP_BACKWARD)->gathered, 4 * one);
    builder_end(&b);
}

static void buckets(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 2);
    b.scenario.engine.rules.train.gradient_buckets = true;
    b.scenario.engine.rules.train.reduce_elements = 1000;
    assert_int_equal(make(&b, 0)->communication.likely, 0); /* nothing to reduce with */
    b.scenario.parallel.data = 2;
    struct vp_train_stage *s = make(&b, 0);
    assert_int_equal(s->communication.likely, s->gradient_bytes);
    b.scenario.parallel.zero = 1;
    assert_int_equal(make(&b, 0)->communication.likely, 2 * 1000);
    builder_end(&b);
}

/* ---- rows ---- */

static uint64_t allocated_at(const struct vp_ledger *ledger, enum vp_step step) {
    return vp_ledger_at(ledger, 0, step).likely -
           vp_ledger_component(ledger, 0, VP_C_RUNTIME, step).likely;
}

static void rows_add_up(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 4);
    builder_ends(&b, VOCAB, true);
    b.scenario.train.loop = VP_LOOP_FOREACH;
    b.scenario.train.master = VP_DTYPE_FP32;
    b.scenario.parallel.data = 2;
    b.scenario.engine.rules.train.step_all = 1;
    b.scenario.engine.rules.train.gradient_buckets = true;
    b.scenario.engine.rules.train.fp8_weight_bytes = 1;
    b.scenario.engine.rules.train.workspace = (struct vp_amount){MIB(8), MIB(16), MIB(32)};
    b.scenario.engine.rules.train.context = (struct vp_amount){MIB(100), MIB(200), MIB(300)};
    b.scenario.engine.rules.train.communicators = vp_exactly(MIB(50));
    for (uint64_t zero = 0; zero <= 3; zero++) {
        struct vp_ledger ledger = builder_ledger(&b);
        b.scenario.parallel.zero = zero;
        struct vp_train_stage *s = make(&b, 0);
        vp_train_stage_rows(&ledger, &b.scenario, s, 0);
        assert_false(ledger.overflow);
        for (int i = 0; i < VP_TRAIN_MOMENTS; i++)
            assert_int_equal(allocated_at(&ledger, s->moment[i].step), s->moment[i].total);
        struct vp_amount runtime = vp_ledger_component(&ledger, 0, VP_C_RUNTIME, VP_STEP_OPTIMIZER);
        assert_int_equal(runtime.likely, MIB(250));
        assert_int_equal(vp_ledger_component(&ledger, 0, VP_C_WEIGHTS, VP_STEP_OPTIMIZER).likely,
                         s->parameter_bytes + s->fp8_bytes);
    }
    builder_end(&b);
}

/* ---- what must hold of whole plans ---- */

static uint64_t need(struct builder *b) {
    const struct vp_result *result = builder_evaluate(b);
    return result->devices[result->worst].need.likely;
}

static void more_is_not_less(void **state) {
    (void)state;
    static const enum vp_recompute_kind KINDS[] = {VP_RECOMPUTE_NONE, VP_RECOMPUTE_FULL,
                                                   VP_RECOMPUTE_SQRT};
    struct builder b;
    begin(&b, 6);
    builder_ends(&b, VOCAB, false);
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
        uint64_t before = 0;
        b.scenario.train.recompute.kind = KINDS[k];
        b.scenario.train.micro_batch = 1;
        for (uint64_t sequence = 16; sequence <= 4096; sequence *= 2) {
            b.scenario.train.sequence = sequence;
            assert_true(need(&b) >= before);
            before = need(&b);
        }
        for (uint64_t batch = 1; batch <= 32; batch *= 2) {
            b.scenario.train.micro_batch = batch;
            assert_true(need(&b) >= before);
            before = need(&b);
        }
    }
    builder_end(&b);
}

static void dividing_is_not_more(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 32);
    builder_ends(&b, VOCAB, false);
    b.scenario.parallel.data = 8;
    uint64_t before = UINT64_MAX;
    for (uint64_t zero = 0; zero <= 3; zero++) {
        b.scenario.parallel.zero = zero;
        const struct vp_train_stage *s = make(&b, 0);
        uint64_t kept = s->parameter_bytes + s->gradient_bytes + s->optimizer_bytes;
        assert_true(kept < before);
        before = kept;
    }
    b.scenario.parallel.zero = 0;
    uint64_t whole = make(&b, 0)->parameter_bytes;
    before = need(&b);
    for (uint64_t tensor = 2; tensor <= 4; tensor *= 2) {
        b.scenario.parallel.tensor = tensor;
        assert_true(make(&b, 0)->parameter_bytes * tensor >= whole);
        assert_true(need(&b) <= before);
        before = need(&b);
    }
    builder_end(&b);
}

static void peaks_and_instants(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 4);
    builder_ends(&b, VOCAB, false);
    b.scenario.parallel.pipeline = 2;
    b.scenario.train.accumulation = 4;
    b.scenario.engine.rules.train.reserved = (struct vp_amount){1000, 1100, 1300};
    b.scenario.engine.rules.train.spread = (struct vp_amount){900, 1000, 1100};
    const struct vp_result *result = builder_evaluate(&b);
    assert_int_equal(result->training.stages, 2);
    assert_int_equal(result->device_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct vp_training_stage *s = &result->training.stage[i];
        const struct vp_device *device = &result->devices[i];
        for (int k = 0; k < VP_TRAIN_MOMENTS; k++)
            assert_true(s->candidate[k].bytes.likely <= s->allocated_peak.likely);
        assert_true(s->allocated.likely <= s->allocated_peak.likely);
        assert_true(s->allocated_peak.low <= s->allocated_peak.likely);
        assert_true(s->allocated_peak.likely <= s->reserved_peak.likely);
        assert_true(s->reserved_peak.likely <= s->reserved_peak.high);
        /* need: what is reserved and what stands outside the allocator */
        assert_int_equal(device->need.likely, s->reserved_peak.likely + s->numbers.runtime.likely);
        assert_true(device->need.low <= device->need.likely);
        assert_true(device->need.likely <= device->need.high);
        assert_true(s->first_step_peak_bytes <= s->allocated_peak.likely);
    }
    builder_end(&b);
}

/* No plan fits when its likely need exceeds what is there. */
static void verdicts(void **state) {
    (void)state;
    struct builder b;
    begin(&b, 4);
    uint64_t bytes = need(&b);
    b.scenario.hardware.memory_bytes = bytes / 2;
    assert_int_equal(builder_evaluate(&b)->verdict, VP_DOES_NOT_FIT);
    b.scenario.engine.kind = VP_ENGINE_MEGATRON; /* not replayed: reserved is a share */
    bytes = need(&b);
    b.scenario.hardware.memory_bytes = bytes;
    assert_int_equal(builder_evaluate(&b)->verdict, VP_FITS);
    b.scenario.hardware.memory_bytes = bytes - 1;
    assert_int_equal(builder_evaluate(&b)->verdict, VP_DOES_NOT_FIT);
    assert_int_equal(builder_evaluate(&b)->reason, VP_REASON_PEAK);
    b.scenario.hardware.memory_bytes = bytes;
    b.scenario.engine.rules.train.reserved = (struct vp_amount){1000, 1000, 1100};
    /* what is only cached goes back to the driver before memory runs out, but for a part */
    assert_int_equal(builder_evaluate(&b)->verdict, VP_FITS);
    b.scenario.engine.rules.train.pinned = (struct vp_amount){0, 0, 50};
    assert_int_equal(builder_evaluate(&b)->verdict, VP_AT_RISK);
    b.scenario.engine.rules.train.reserved = vp_exactly(1000);
    b.scenario.hardware.memory_bytes = 2 * bytes;
    b.scenario.train.memory_fraction_ppb = 400000000; /* 0.8 of what is needed */
    assert_int_equal(builder_evaluate(&b)->verdict, VP_DOES_NOT_FIT);
    builder_end(&b);
}

static void overflow(void **state) {
    (void)state;
    struct builder b;
    struct vp_result result;
    begin(&b, 4);
    b.scenario.train.sequence = UINT64_MAX / 64;
    assert_false(vp_plan_evaluate(&b.f.arena, &result, &b.scenario));
    builder_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_hold_layers),
        cmocka_unit_test(stages_hold_ends),
        cmocka_unit_test(in_flight),
        cmocka_unit_test(micro_batches),
        cmocka_unit_test(segments),
        cmocka_unit_test(first_of_each_stage),
        cmocka_unit_test(selective),
        cmocka_unit_test(offloaded),
        cmocka_unit_test(gradients),
        cmocka_unit_test(loss),
        cmocka_unit_test(optimizer_step),
        cmocka_unit_test(gathered),
        cmocka_unit_test(buckets),
        cmocka_unit_test(rows_add_up),
        cmocka_unit_test(more_is_not_less),
        cmocka_unit_test(dividing_is_not_more),
        cmocka_unit_test(peaks_and_instants),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
