/* What Megatron Core and Transformer Engine do differently: buffers, placeholders, what stays
 * between two steps, the loss over a divided vocabulary, experts' and contexts' copies, FP8 inputs.
 */
#include "planner/memory/train_megatron.h"
#include "planner/ops/train_layout.h"
#include "tests/unit/model_builder.h"

enum { HIDDEN = 64, VOCAB = 1024, BATCH = 2, SEQUENCE = 32, TOKENS = BATCH * SEQUENCE };

static struct vp_block layer(void) {
    struct vp_block block = block_gqa(4, 4, 16);
    block.norm = VP_NORM_LAYER;
    block.mlp = (struct vp_mlp){.kind = VP_MLP_PLAIN, .intermediate = 256};
    return block;
}

static void begin(struct builder *b, struct vp_block block, uint32_t layers) {
    builder_begin(b);
    b->model.hidden = HIDDEN;
    builder_layer(b, block, layers);
    b->scenario.engine.kind = VP_ENGINE_MEGATRON;
    b->scenario.training = true;
    b->scenario.train = (struct vp_train){.micro_batch = BATCH,
                                          .sequence = SEQUENCE,
                                          .accumulation = 8,
                                          .optimizer = VP_OPTIMIZER_ADAMW,
                                          .loop = VP_LOOP_FUSED,
                                          .parameters = VP_DTYPE_BF16,
                                          .gradients = VP_DTYPE_FP32,
                                          .master = VP_DTYPE_FP32,
                                          .optimizer_states = VP_DTYPE_FP32,
                                          .ops = {.attention = VP_IMPL_FLASH,
                                                  .fused_norm = true,
                                                  .fused_mlp = true,
                                                  .logits_upcast = true},
                                          .input_grad = true};
    b->scenario.engine.rules.train = (struct vp_train_rules){.vocab_pad = 1,
                                                             .gradients_persist = true,
                                                             .fuses_accumulation = true,
                                                             .joint_qkv = true,
                                                             .loss_in_place = true,
                                                             .loss_copies = 1,
                                                             .expert_weights_early = true};
}

static struct vp_train_rules *rules(struct builder *b) { return &b->scenario.engine.rules.train; }

static struct vp_train_stage *make(struct builder *b, uint32_t index) {
    struct vp_train_stage *stage = VP_NEW(&b->f.arena, struct vp_train_stage);
    vp_train_stage_make(&b->f.arena, stage, &b->scenario, index);
    assert_false(stage->overflow);
    return stage;
}

static struct vp_megatron_beside beside(struct builder *b, uint32_t index) {
    struct vp_megatron_beside out;
    vp_megatron_beside(&out, &b->scenario, make(b, index));
    assert_false(out.overflow);
    return out;
}

/* ---- all the time ---- */

/* One placeholder per shape: however many layers, whatever they are for. */
static void placeholders(void **state) {
    (void)state;
    struct builder b;
    begin(&b, layer(), 3);
    assert_int_equal(beside(&b, 0).placeholders, 0);
    rules(&b)->gradient_placeholders = true;
    uint64_t matrices = 192 * 64 + 64 * 64 + 256 * 64 + 64 * 256; /* qkv, o, up, down */
    assert_int_equal(beside(&b, 0).placeholders, 2 * matrices);
    b.scenario.parallel.tensor = 2;
    assert_int_equal(beside(&b, 0).placeholders, matrices);
    b.scenario.parallel.tensor = 1;
    struct vp_block square = layer();
    square.mlp.intermediate = 64; /* o, up and down are alike */
    builder_layer(&b, square, 3);
    assert_int_equal(beside(&b, 0).placeholders, 2 * (192 * 64 + 64 * 64));
    uint64_t with = make(&b, 0)->static_bytes;
    rules(&b)->gradient_placeholders = false;
    assert_int_equal(with - make(&b, 0)->static_bytes, 2 * (192 * 64 + 64 * 64));
    builder_end(&b);
}

static void buffer(void **state) {
    (void)state;
    struct builder b;
    begin(&b, layer(), 2);
    builder_ends(&b, VOCAB, false);
    rules(&b)->scores_buffer = true;
    assert_int_equal(beside(&b, 0).buffer, 0); /* flash attention writes no scores */
    b.scenario.train.ops.attention = VP_IMPL_EAGER;
    assert_int_equal(beside(&b, 0).buffer, 2 * TOKENS * 4 * SEQUENCE);
    b.scenario.parallel.tensor = 4;
    assert_int_equal(beside(&b, 0).buffer, 2 * TOKENS * SEQUENCE);
    b.scenario.parallel.sequence = true;
    rules(&b)->gather_buffer = true; /* the same buffer: the larger of the two */
    assert_int_equal(beside(&b, 0).buffer, 2 * TOKENS * HIDDEN);
    rules(&b)->scores_buffer = false;
    b.scenario.parallel.pipeline = 2; /* TE gathers for the head only */
    assert_int_equal(beside(&b, 0).buffer, 0);
    assert_int_equal(beside(&b, 1).buffer, 2 * TOKENS * HIDDEN);
    builder_end(&b);
}

/* ---- between two steps ---- */

static void boundaries(void **state) {
    (void)state;
    struct builder b;
    begin(&b, layer(), 8);
    rules(&b)->boundaries_stay = true;
    assert_int_equal(beside(&b, 0).boundaries.high, 0); /* no pipeline */
    b.scenario.parallel.pipeline = 4;
    assert_int_equal(beside(&b, 0).boundaries.high, 0);
    assert_int_equal(beside(&b, 3).boundaries.likely, 2 * TOKENS * HIDDEN);
    assert_int_equal(beside(&b, 3).boundaries.high, 4 * TOKENS * HIDDEN);
    b.scenario.parallel.virtual_pipeline = 2; /* the first stage's second chunk receives, too */
    assert_int_equal(beside(&b, 0).boundaries.likely, 2 * TOKENS * HIDDEN);
    assert_int_equal(beside(&b, 3).boundaries.likely, 2 * 2 * TOKENS * HIDDEN);
    assert_int_equal(make(&b, 3)->between.likely, 2 * 2 * TOKENS * HIDDEN);
    builder_end(&b);
}

static void gradient_copies(void **state) {
    (void)state;
    struct builder b;
    begin(&b, layer(), 2);
    rules(&b)->step_gradient_copy = true;
    assert_int_equal(beside(&b, 0).gradient_copies, 0); /* they are fp32 */
    b.scenario.train.gradients = VP_DTYPE_FP16;
    struct vp_train_stage *s = make(&b, 0);
    assert_int_equal(beside(&b, 0).gradient_copies, 2 * s->parameter_bytes);
    assert_int_equal(s->between.likely, 2 * s->parameter_bytes);
    rules(&b)->gradients_persist = false; /* freed with the step */
    assert_int_equal(beside(&b, 0).gradient_copies, 0);
    builder_end(&b);
}

/* ---- schedule ---- */

static void group_of_micro_batches(void **state) {
    (void)state;
    struct builder b;
    begin(&b, layer(), 8);
    b.scenario.train.accumulation = 10;
    b.scenario.parallel.pipeline = 4;
    b.scenario.parallel.virtual_pipeline = 2;
    assert_int_equal(make(&b, 3)->in_flight, 5); /* 4 of the first chunk, 1 of the second */
    rules(&b)->interleave_group = 5;
    struct vp_train_stage *s = make(&b, 3);
    assert_int_equal(s->in_flight, 6);
    assert_int_equal(s->chunk_in_flight[0], 5);
    assert_int_equal(s->chunk_in_flight[1], 1);
    builder_end(&b);
}

/* ---- head and loss ---- */

static void divided_loss(void **state) {
    (void)state;
    const uint64_t scores = (uint64_t)TOKENS * VOCAB, hidden = 2 * TOKENS * HIDDEN;
    struct builder b;
    begin(&b, layer(), 2);
    builder_ends(&b, VOCAB, false);
    for (uint64_t copies = 0; copies < 3; copies++) {
        rules(&b)->loss_copies = copies;
        const struct vp_head_tape *head = &make(&b, 0)->head;
        assert_int_equal(head->logits_peak_bytes, hidden + (2 + 4 * copies) * scores + 8 * TOKENS);
        assert_int_equal(head->logits_bytes, 2 * scores);
    }
    rules(&b)->loss_copies = 1;
    b.scenario.parallel.tensor = 4;
    assert_int_equal(make(&b, 0)->head.logits_peak_bytes, hidden + 6 * scores / 4 + 8 * TOKENS);
    builder_end(&b);
}

/* The head's gradient is a tensor of its own although the kernel has added it to the buffer. */
static void head_gradients(void **state) {
    (void)state;
    const uint64_t hidden = 2 * TOKENS * HIDDEN, table = 2 * VOCAB * HIDDEN;
    struct builder b;
    begin(&b, layer(), 2);
    builder_ends(&b, VOCAB, false);
    assert_int_equal(beside(&b, 0).head_gradients, table + hidden);
    assert_int_equal(beside(&b, 0).table_gradients, table);
    assert_int_equal(beside(&b, 0).deferred, 0);
    uint64_t before = vp_train_stage_peak(make(&b, 0))->total;
    rules(&b)->deferred_heads = 2;
    assert_int_equal(beside(&b, 0).deferred, 2 * (2 * TOKENS * VOCAB + hidden));
    assert_int_equal(vp_train_stage_peak(make(&b, 0))->total - before, beside(&b, 0).deferred);
    rules(&b)->deferred_heads = 100; /* no more than there are */
    assert_int_equal(beside(&b, 0).deferred, 8 * (2 * TOKENS * VOCAB + hidden));
    b.scenario.train.frozen = true;
    assert_int_equal(beside(&b, 0).head_gradients, 0);
    builder_end(&b);
}

/* ---- tapes ---- */

static uint64_t saved(struct builder *b) {
    struct vp_tape tape;
    vp_tape_block(&tape, &b->scenario, &b->model.blocks[0], false);
    assert_false(tape.overflow);
    return tape.saved_bytes;
}

static void contexts(void **state) {
    (void)state;
    struct builder b;
    begin(&b, layer(), 1);
    uint64_t whole = saved(&b);
    rules(&b)->context_copies_keys = rules(&b)->context_copies_output = true;
    assert_int_equal(saved(&b), whole); /* nothing is exchanged */
    b.scenario.parallel.context = 2;
    const uint64_t one = 2 * TOKENS / 2 * HIDDEN; /* as wide as the keys and the output */
    assert_int_equal(saved(&b), whole / 2 + 3 * one);
    rules(&b)->context_copies_keys = false;
    assert_int_equal(saved(&b), whole / 2 + one);
    builder_end(&b);
}

static void fp8_inputs(void **state) {
    (void)state;
    struct builder b;
    begin(&b, layer(), 1);
    uint64_t plain = saved(&b);
    rules(&b)->fp8_inputs = true;
    /* Half of both norm outputs and of the activation; the attention core keeps its output for
     * itself, so that the projection's copy is added. */
    assert_int_equal(saved(&b), plain - TOKENS * (2 * HIDDEN + 256) + TOKENS * HIDDEN);
    builder_end(&b);
}

static struct vp_block experts(void) {
    struct vp_block block = block_gqa(4, 4, 16);
    block.moe =
        (struct vp_moe){.kind = VP_MLP_GATED, .experts = 4, .top_k = 2, .intermediate = 128};
    return block;
}

static void expert_ranks(void **state) {
    (void)state;
    struct builder b;
    begin(&b, experts(), 1);
    b.scenario.parallel.tensor = 2;
    b.scenario.parallel.data = 2;
    b.scenario.parallel.expert = 2;
    assert_int_equal(vp_train_expert_copies(&b.scenario), 1); /* 2 x 2 ranks, 2 x 2 parts */
    uint64_t divided = make(&b, 0)->parameter_bytes;
    rules(&b)->expert_tensor = 1;
    assert_int_equal(vp_train_expert_copies(&b.scenario), 2);
    /* two whole experts of three 64 x 128 matrices instead of their halves */
    assert_int_equal(make(&b, 0)->parameter_bytes - divided, 2 * 2 * 3 * 64 * 64);
    builder_end(&b);
}

/* Tokens on their way to the experts' ranks are held while these work; experts' outputs are not
 * kept when the activation is weighted. */
static void dispatch(void **state) {
    (void)state;
    const uint64_t routed = 2 * TOKENS * 2 * HIDDEN;
    struct vp_tape tape;
    struct builder b;
    begin(&b, experts(), 1);
    b.scenario.parallel.data = b.scenario.parallel.expert = 2;
    uint64_t early = saved(&b);
    rules(&b)->expert_weights_early = false;
    assert_int_equal(saved(&b) - early, routed);
    rules(&b)->expert_weights_early = true;
    rules(&b)->dispatch_held = 2;
    assert_int_equal(saved(&b), early);
    vp_tape_block(&tape, &b.scenario, &b.model.blocks[0], false);
    assert_true(tape.forward_temp_bytes >= 4 * routed);
    assert_true(tape.forward_temp_bytes < 5 * routed);
    builder_end(&b);
}

/* ---- from its arguments ---- */

#define LLAMA                                                                                      \
    "model: {model_type: llama, hidden_size: 1024, num_hidden_layers: 16, num_attention_heads: "   \
    "8, "                                                                                          \
    "num_key_value_heads: 8, intermediate_size: 4096, vocab_size: 32000}\n"                        \
    "hardware: {gpu: h100, count: 4}\n"                                                            \
    "train: {sequence_length: 2048}\n"

static void arguments(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    struct vp_scenario *s =
        read_yaml(&f,
                  LLAMA "engine: {name: megatron, args: {pipeline_model_parallel_size: 4, "
                        "num_layers_per_virtual_pipeline_stage: 2, hidden_dropout: 0.1, "
                        "cp_comm_type: a2a, microbatch_group_size_per_virtual_pipeline_stage: 8, "
                        "cross_entropy_loss_fusion: true, cross_entropy_fusion_impl: te, "
                        "defer_embedding_wgrad_compute: true, wgrad_deferral_limit: 3}}\n",
                  NULL, NULL);
    const struct vp_train_rules *r = &s->engine.rules.train;
    assert_int_equal(s->parallel.virtual_pipeline, 2);
    assert_true(s->train.ops.dropout_ppb > 0);
    assert_int_equal(r->interleave_group, 8);
    assert_int_equal(r->loss_copies, 0);
    assert_int_equal(r->deferred_heads, 3);
    assert_true(r->context_copies_output);
    assert_false(r->context_copies_keys);
    assert_true(r->gradient_placeholders);
    assert_false(r->scores_buffer);
    assert_int_equal(r->workspace.likely, MIB(96));
    s = read_yaml(&f,
                  LLAMA "engine: {name: megatron, args: {transformer_impl: local, "
                        "hidden_dropout: 0.0, "
                        "no_gradient_accumulation_fusion: true}}\n",
                  "hardware.gpu", "a100_80_sxm");
    r = &s->engine.rules.train;
    assert_int_equal(s->train.ops.dropout_ppb, 0);
    assert_false(r->gradient_placeholders);
    assert_true(r->scores_buffer);
    assert_int_equal(r->loss_copies, 1);
    assert_int_equal(r->workspace.likely, MIB(16));
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placeholders),
        cmocka_unit_test(buffer),
        cmocka_unit_test(boundaries),
        cmocka_unit_test(gradient_copies),
        cmocka_unit_test(group_of_micro_batches),
        cmocka_unit_test(divided_loss),
        cmocka_unit_test(head_gradients),
        cmocka_unit_test(contexts),
        cmocka_unit_test(fp8_inputs),
        cmocka_unit_test(expert_ranks),
        cmocka_unit_test(dispatch),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
