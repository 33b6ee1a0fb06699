/* A PyTorch step tensor by tensor: what it keeps is what the tape says, all that is taken is given
 * back, and the peaks that follow from the order of operators, against figures worked out by hand.
 */
#include "planner/ops/train_layout.h"
#include "planner/plan/train_peaks.h"
#include "planner/timeline/step.h"
#include "planner/timeline/torch_step.h"
#include "tests/unit/model_builder.h"

enum { HIDDEN = 64, WIDTH = 256, VOCAB = 1024, BATCH = 2, SEQUENCE = 32, LAYERS = 3 };

static const uint64_t TOKENS = BATCH * SEQUENCE;

static struct vp_block llama(uint64_t kv_heads) {
    struct vp_block block = block_gqa(4, kv_heads, 16);
    block.attention.rotary_dim = 16;
    block.mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = WIDTH};
    return block;
}

static struct vp_block gpt2(void) {
    struct vp_block block = block_gqa(4, 4, 16);
    block.norm = VP_NORM_LAYER;
    block.attention.rotary_dim = 0;
    block.mlp = (struct vp_mlp){.kind = VP_MLP_PLAIN, .intermediate = WIDTH};
    return block;
}

static void begin(struct builder *b, struct vp_block block) {
    builder_begin(b);
    b->model.hidden = HIDDEN;
    builder_layer(b, block, LAYERS);
    b->scenario.engine.kind = VP_ENGINE_PYTORCH;
    b->scenario.training = true;
    b->scenario.precision.compute = VP_DTYPE_BF16;
    b->scenario.train = (struct vp_train){.micro_batch = BATCH,
                                          .sequence = SEQUENCE,
                                          .accumulation = 1,
                                          .optimizer = VP_OPTIMIZER_ADAMW,
                                          .loop = VP_LOOP_FUSED,
                                          .parameters = VP_DTYPE_BF16,
                                          .gradients = VP_DTYPE_BF16,
                                          .optimizer_states = VP_DTYPE_BF16,
                                          .input_grad = true,
                                          .ops = {.attention = VP_IMPL_EAGER, .repeat_kv = true}};
    b->scenario.engine.rules.train = (struct vp_train_rules){.vocab_pad = 1,
                                                             .softmax_fp32 = true,
                                                             .gathered_layers = 2,
                                                             .gather_copies = true,
                                                             .scattered_layers = 1,
                                                             .spread = {1000, 1000, 1000},
                                                             .compiled = {1000, 1000, 1000},
                                                             .replayed = {1000, 1000, 1000},
                                                             .reserved = {1000, 1000, 1000}};
}

static struct vp_train_stage *make(struct builder *b) {
    struct vp_train_stage *stage = VP_NEW(&b->f.arena, struct vp_train_stage);
    vp_train_stage_make(&b->f.arena, stage, &b->scenario, 0);
    assert_false(stage->overflow);
    return stage;
}

static struct vp_walk *walk(struct builder *b) {
    struct vp_allocator_settings settings = vp_allocator_defaults();
    struct vp_walk *w = vp_walk_begin(&b->f.arena, &settings, false);
    struct vp_event_sink sink = vp_walk_sink(w);

    assert_true(vp_torch_step(&b->f.arena, &b->scenario, make(b), &sink));
    assert_true(vp_walk_end(w));
    return w;
}

/* ---- what is kept ---- */

struct meter {
    uint64_t live, at_loss, bytes[4096];
    bool activation[4096], done;
};

/* Activations that are there when the forward pass of the layers has ended. */
static void measure(void *user, const struct vp_event *event) {
    struct meter *m = user;
    if (!m->done && event->cause == VP_CAUSE_LOSS) {
        m->done = true;
        m->at_loss = m->live;
    }
    if (event->kind == VP_EVENT_TAKE) {
        assert_true(event->id < 4096);
        m->bytes[event->id] = event->bytes;
        m->activation[event->id] =
            event->component == VP_C_ACTIVATIONS ||
            (event->component == VP_C_WEIGHTS && event->layer != VP_NO_LAYER);
        m->live += m->activation[event->id] ? event->bytes : 0;
    } else if (event->kind == VP_EVENT_GIVE) {
        m->live -= m->activation[event->id] ? m->bytes[event->id] : 0;
    }
}

/* Beside the tapes: the last output, ids, tables of the rotary embedding, the mask. */
static uint64_t beside(const struct builder *b) {
    const struct vp_train *train = &b->scenario.train;
    uint64_t e = train->parameters == VP_DTYPE_FP32 ? 4 : 2, sum = TOKENS * (HIDDEN * e + 24);
    sum += TOKENS * 2 * b->model.blocks[0].attention.rotary_dim * e;
    return sum + (train->ops.attention == VP_IMPL_EAGER ? TOKENS * SEQUENCE * e : 0);
}

static void expect_tape(struct builder *b) {
    struct vp_train_stage *stage = make(b);
    struct meter *m = VP_NEW(&b->f.arena, struct meter);
    struct vp_event_sink sink = {.event = measure, .user = m};

    assert_true(vp_torch_step(&b->f.arena, &b->scenario, stage, &sink));
    assert_int_equal(m->at_loss - beside(b), stage->saved_bytes - stage->embedding.saved_bytes -
                                                 stage->head.tape.saved_bytes);
}

static void keeps_what_the_tape_says(void **state) {
    (void)state;
    static const enum vp_attention_impl IMPLS[] = {VP_IMPL_EAGER, VP_IMPL_SDPA, VP_IMPL_FLASH};
    struct builder b;
    for (int i = 0; i < 3; i++)
        for (int variant = 0; variant < 4; variant++) {
            begin(&b, llama(variant & 1 ? 2 : 4));
            b.scenario.train.ops.attention = IMPLS[i];
            b.scenario.train.ops.fused_norm = b.scenario.train.ops.fused_mlp = variant & 2;
            expect_tape(&b);
            builder_end(&b);
        }
}

static void keeps_what_the_tape_of_gpt2_says(void **state) {
    (void)state;
    static const enum vp_gelu GELUS[] = {VP_GELU_ERF, VP_GELU_TANH, VP_GELU_NEW};
    struct builder b;
    for (int i = 0; i < 3; i++)
        for (int dropout = 0; dropout < 2; dropout++) {
            begin(&b, gpt2());
            b.scenario.train.ops.gelu = GELUS[i];
            b.scenario.train.ops.dropout_ppb = dropout ? 100000000 : 0;
            b.scenario.engine.rules.train.joint_qkv = true;
            b.scenario.engine.rules.train.softmax_fp32 = false;
            b.scenario.engine.rules.train.residual_dropout = true;
            expect_tape(&b);
            builder_end(&b);
        }
}

static void keeps_what_the_tape_under_autocast_says(void **state) {
    (void)state;
    struct builder b;
    begin(&b, llama(4));
    b.scenario.train.parameters = b.scenario.train.gradients = VP_DTYPE_FP32;
    b.scenario.train.autocast = VP_DTYPE_BF16;
    b.scenario.train.ops.attention = VP_IMPL_FLASH;
    expect_tape(&b);
    builder_end(&b);
}

static void adapt(struct builder *b, uint64_t dropout, enum vp_dtype dtype) {
    static const enum vp_role ROLES[] = {VP_ROLE_Q,    VP_ROLE_K,  VP_ROLE_V,   VP_ROLE_O,
                                         VP_ROLE_GATE, VP_ROLE_UP, VP_ROLE_DOWN};
    b->scenario.train.frozen = true;
    b->scenario.train.lora = (struct vp_train_lora){
        .enabled = true, .rank = 8, .slots = 1, .dropout_ppb = dropout, .dtype = dtype};
    for (size_t i = 0; i < sizeof ROLES / sizeof *ROLES; i++)
        b->scenario.train.lora.roles[ROLES[i]] = true;
}

static void keeps_what_the_tape_of_adapters_says(void **state) {
    (void)state;
    struct builder b;
    for (int variant = 0; variant < 8; variant++) {
        begin(&b, llama(2));
        b.scenario.train.ops.attention = VP_IMPL_SDPA;
        adapt(&b, variant & 1 ? 50000000 : 0, variant & 2 ? VP_DTYPE_FP32 : VP_DTYPE_BF16);
        b.scenario.train.input_grad = variant & 4;
        expect_tape(&b);
        builder_end(&b);
    }
}

/* A plan that keeps all layers but recomputes these regions of them. */
static void select_regions(struct builder *b, uint32_t regions) {
    struct vp_recompute_layer *plan = VP_NEW_ARRAY(&b->f.arena, LAYERS, struct vp_recompute_layer);
    for (uint32_t i = 0; i < LAYERS; i++)
        plan[i] = (struct vp_recompute_layer){.segment = i, .selective = regions};
    b->scenario.train.recompute = (struct vp_recompute){.kind = VP_RECOMPUTE_PLAN, .plan = plan};
}

static void regions_keep_what_they_read(void **state) {
    (void)state;
    static const uint32_t SETS[] = {VP_SELECT_CORE_ATTENTION, VP_SELECT_MLP,
                                    VP_SELECT_CORE_ATTENTION | VP_SELECT_MLP, VP_SELECT_NORM};
    struct builder b;
    for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++)
        for (int adapted = 0; adapted < 2; adapted++) {
            begin(&b, llama(2));
            if (adapted)
                adapt(&b, 0, VP_DTYPE_BF16);
            select_regions(&b, SETS[i]);
            if (SETS[i] != VP_SELECT_NORM) /* whose outputs the matrices behind them keep */
                expect_tape(&b);
            struct vp_walk *w = walk(&b);
            assert_int_equal(w->now.component[VP_C_ACTIVATIONS], 0);
            builder_end(&b);
        }
}

/* ---- peaks ---- */

static void everything_is_given_back(void **state) {
    (void)state;
    struct builder b;
    for (int recomputed = 0; recomputed < 3; recomputed++) {
        begin(&b, llama(2));
        builder_ends(&b, VOCAB, false);
        b.scenario.train.recompute.kind = recomputed == 0   ? VP_RECOMPUTE_NONE
                                          : recomputed == 1 ? VP_RECOMPUTE_FULL
                                                            : VP_RECOMPUTE_SELECTIVE;
        b.scenario.train.accumulation = b.scenario.parallel.microbatches = 2;
        struct vp_walk *w = walk(&b);
        const struct vp_train_stage *s = make(&b);
        assert_int_equal(w->now.bytes, s->parameter_bytes + s->optimizer_bytes);
        assert_int_equal(w->now.component[VP_C_ACTIVATIONS], 0);
        assert_int_equal(w->now.component[VP_C_GRADIENTS], 0);
        builder_end(&b);
    }
}

/* The softmax's backward holds probabilities, their gradient, a product and the result. */
static void softmax_backward_holds_four(void **state) {
    (void)state;
    struct builder b;
    begin(&b, llama(4));
    b.scenario.train.sequence = 2048;
    b.scenario.train.parameters = VP_DTYPE_FP32;
    b.scenario.precision.compute = VP_DTYPE_FP32;
    b.scenario.train.recompute.kind = VP_RECOMPUTE_FULL;
    uint64_t scores = UINT64_C(4) * BATCH * 4 * 2048 * 2048;
    uint64_t most = walk(&b)->steady.peak.component[VP_C_ACTIVATIONS];
    assert_true(most > 4 * scores);
    assert_true(most < 4 * scores + scores / 2);
    builder_end(&b);
}

/* Log-probabilities, two gradients and, where the caller holds them, the logits. */
static void loss_peak(void **state) {
    (void)state;
    struct builder b;
    for (int held = 0; held < 2; held++) {
        begin(&b, llama(4));
        builder_ends(&b, VOCAB, false);
        b.scenario.train.ops.logits_upcast = true;
        b.scenario.train.ops.logits_referenced = held;
        struct vp_walk *w = walk(&b);
        assert_int_equal(w->steady.peak.component[VP_C_LOGITS],
                         TOKENS * VOCAB * (held ? 14U : 12U));
        b.scenario.engine.rules.train.logits_float = true;
        w = walk(&b);
        assert_int_equal(w->steady.peak.component[VP_C_LOGITS],
                         TOKENS * VOCAB * (held ? 16U : 12U));
        builder_end(&b);
    }
}

static void recomputation_keeps_inputs(void **state) {
    (void)state;
    struct builder b;
    begin(&b, llama(4));
    b.scenario.train.sequence = 512; /* activations are most of it */
    b.scenario.train.ops.attention = VP_IMPL_FLASH;
    uint64_t plain = walk(&b)->steady.peak.component[VP_C_ACTIVATIONS];
    b.scenario.train.recompute.kind = VP_RECOMPUTE_SELECTIVE;
    uint64_t selective = walk(&b)->steady.peak.component[VP_C_ACTIVATIONS];
    b.scenario.train.recompute.kind = VP_RECOMPUTE_FULL;
    struct vp_walk *w = walk(&b);
    uint64_t full = w->steady.peak.component[VP_C_ACTIVATIONS];
    assert_true(full < selective && selective < plain);
    /* two inputs are held while the last layer's tape is whole */
    const struct vp_tape *tape = make(&b)->layer[0].tape;
    assert_true(full > tape->saved_bytes + 2 * tape->input_bytes);
    builder_end(&b);
}

/* The second micro batch adds to gradients that are there; the first one finds none. */
static void accumulation_keeps_gradients(void **state) {
    (void)state;
    struct builder b;
    begin(&b, llama(4));
    const struct vp_train_stage *s = make(&b);
    struct vp_walk *w = walk(&b);
    assert_int_equal(w->steady.phase[0].component[VP_C_GRADIENTS], 0);
    b.scenario.train.accumulation = b.scenario.parallel.microbatches = 4;
    w = walk(&b);
    assert_true(w->steady.phase[0].component[VP_C_GRADIENTS] >= s->gradient_bytes);
    builder_end(&b);
}

struct repeats {
    uint64_t left_out, marks;
    uint32_t last; /* micro batch */
};

static void count_repeats(void *user, const struct vp_event *event) {
    struct repeats *r = user;
    bool repeat = event->kind == VP_EVENT_MARK && event->id == VP_MARK_REPEAT;
    r->marks += repeat;
    r->left_out += repeat ? event->bytes : 0;
    if (event->kind == VP_EVENT_TAKE)
        r->last = event->micro_batch;
}

/* One micro batch is in flight and one more is told, in each of the two steps. */
static void what_is_left_out_is_marked(void **state) {
    (void)state;
    for (uint64_t n = 1; n < 6; n++) {
        struct builder b;
        struct repeats r = {0};
        struct vp_event_sink sink = {.event = count_repeats, .user = &r};
        begin(&b, llama(4));
        b.scenario.train.accumulation = b.scenario.parallel.microbatches = n;
        assert_true(vp_torch_step(&b.f.arena, &b.scenario, make(&b), &sink));
        assert_int_equal(r.left_out, n > 2 ? 2 * (n - 2) : 0);
        assert_int_equal(r.marks, n > 2 ? 2 : 0);
        assert_int_equal(r.last, n - 1);
        builder_end(&b);
    }
}

/* Weights that are whole at once: a layer in its buffer and copied out, the next one's buffer. */
static void fsdp_gathers_layers(void **state) {
    (void)state;
    struct builder b;
    begin(&b, llama(4));
    b.scenario.parallel.fsdp = true;
    b.scenario.train.micro_batch = b.scenario.train.sequence = 1; /* weights are all there is */
    b.scenario.parallel.data = b.scenario.hardware.count = 4;
    const struct vp_train_stage *s = make(&b);
    uint64_t layer = s->layer[0].gathered_bytes;
    assert_int_equal(layer, 4 * s->parameter_bytes / LAYERS);
    assert_int_equal(walk(&b)->steady.phase[0].component[VP_C_WEIGHTS],
                     s->parameter_bytes + 3 * layer);
    b.scenario.engine.rules.train.gather_copies = false;
    assert_int_equal(walk(&b)->steady.phase[0].component[VP_C_WEIGHTS],
                     s->parameter_bytes + 2 * layer);
    b.scenario.engine.rules.train.gathered_stay = true;
    assert_int_equal(walk(&b)->steady.phase[0].component[VP_C_WEIGHTS],
                     s->parameter_bytes + LAYERS * layer);
    builder_end(&b);
}

/* ZeRO 3 keeps a layer whole when what runs until its backward pass is little. */
static void zero_keeps_layers_that_are_used_soon(void **state) {
    (void)state;
    struct builder b;
    begin(&b, llama(4));
    b.scenario.parallel.zero = 3;
    b.scenario.parallel.data = b.scenario.hardware.count = 4;
    b.scenario.train.micro_batch = b.scenario.train.sequence = 1;
    b.scenario.engine.rules.train.gather_copies = false;
    const struct vp_train_stage *s = make(&b);
    uint64_t layer = s->layer[0].gathered_bytes;
    assert_int_equal(walk(&b)->steady.phase[0].component[VP_C_WEIGHTS],
                     s->parameter_bytes + 2 * layer);
    /* the last two: one layer runs twice between the uses of the second-last */
    b.scenario.engine.rules.train.reuse_elements = layer;
    assert_int_equal(walk(&b)->steady.phase[0].component[VP_C_WEIGHTS],
                     s->parameter_bytes + 2 * layer);
    b.scenario.engine.rules.train.reuse_elements = 2 * layer;
    assert_int_equal(walk(&b)->steady.phase[0].component[VP_C_WEIGHTS],
                     s->parameter_bytes + 3 * layer);
    builder_end(&b);
}

static uint64_t peak_with(uint64_t sequence, uint64_t batch, enum vp_attention_impl attention) {
    struct builder b;
    begin(&b, llama(2));
    builder_ends(&b, VOCAB, false);
    b.scenario.train.sequence = sequence;
    b.scenario.train.micro_batch = batch;
    b.scenario.train.ops.attention = attention;
    b.scenario.train.recompute.kind = VP_RECOMPUTE_FULL;
    uint64_t peak = walk(&b)->steady.peak.bytes;
    builder_end(&b);
    return peak;
}

static void more_never_takes_less(void **state) {
    (void)state;
    for (int attention = VP_IMPL_EAGER; attention <= VP_IMPL_FLASH; attention++)
        for (uint64_t n = 16; n <= 512; n *= 2) {
            enum vp_attention_impl impl = (enum vp_attention_impl)attention;
            assert_true(peak_with(n + 1, 2, impl) >= peak_with(n, 2, impl));
            assert_true(peak_with(n, 3, impl) >= peak_with(n, 2, impl));
        }
}

static void too_large_is_not_replayed(void **state) {
    (void)state;
    struct builder b;
    begin(&b, llama(2));
    b.scenario.train.sequence = UINT64_C(1) << 40;
    struct vp_train_stage *stage = VP_NEW(&b.f.arena, struct vp_train_stage);
    vp_train_stage_make(&b.f.arena, stage, &b.scenario, 0);
    assert_false(vp_train_is_torch(&b.scenario, stage));
    b.scenario.train.sequence = SEQUENCE;
    assert_true(vp_train_is_torch(&b.scenario, make(&b)));
    b.scenario.engine.kind = VP_ENGINE_MEGATRON;
    assert_false(vp_train_is_torch(&b.scenario, make(&b)));
    builder_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_the_tape_says),
        cmocka_unit_test(keeps_what_the_tape_of_gpt2_says),
        cmocka_unit_test(keeps_what_the_tape_under_autocast_says),
        cmocka_unit_test(keeps_what_the_tape_of_adapters_says),
        cmocka_unit_test(regions_keep_what_they_read),
        cmocka_unit_test(everything_is_given_back),
        cmocka_unit_test(softmax_backward_holds_four),
        cmocka_unit_test(loss_peak),
        cmocka_unit_test(recomputation_keeps_inputs),
        cmocka_unit_test(accumulation_keeps_gradients),
        cmocka_unit_test(what_is_left_out_is_marked),
        cmocka_unit_test(fsdp_gathers_layers),
        cmocka_unit_test(zero_keeps_layers_that_are_used_soon),
        cmocka_unit_test(more_never_takes_less),
        cmocka_unit_test(too_large_is_not_replayed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
