/* Parameters, gradients, master weights, optimizer states and adapters of one rank. */
#include "planner/memory/train_state.h"
#include "planner/ops/train_layout.h"
#include "tests/unit/model_builder.h"

/* One layer of hidden 64: two norms of 64, q and o of 64 x 64, k and v of 32 x 64, a plain
 * feed-forward of 64 x 128; a vocabulary of 1000 that nothing else shares. */
enum {
    HIDDEN = 64,
    NORMS = 2 * 64,
    MATRICES = 2 * 64 * 64 + 2 * 32 * 64 + 2 * 64 * 128,
    LAYER = NORMS + MATRICES,
    VOCAB = 1000,
    TABLE = VOCAB * 64
};

static struct vp_block layer(void) {
    struct vp_block block = block_gqa(4, 2, 16);
    block.mlp = (struct vp_mlp){.kind = VP_MLP_PLAIN, .intermediate = 128};
    return block;
}

static void begin(struct builder *b) {
    builder_begin(b);
    b->model.hidden = HIDDEN;
    builder_layer(b, layer(), 1);
    builder_ends(b, VOCAB, false);
    b->scenario.engine.kind = VP_ENGINE_PYTORCH;
    b->scenario.training = true;
    b->scenario.train = (struct vp_train){.micro_batch = 1,
                                          .sequence = 16,
                                          .accumulation = 1,
                                          .optimizer = VP_OPTIMIZER_ADAMW,
                                          .loop = VP_LOOP_FOREACH,
                                          .parameters = VP_DTYPE_BF16,
                                          .gradients = VP_DTYPE_BF16,
                                          .optimizer_states = VP_DTYPE_BF16};
    b->scenario.engine.rules.train = (struct vp_train_rules){.step_all = 1,
                                                             .step_largest = 2,
                                                             .block_8bit = 256,
                                                             .block_4bit = 128,
                                                             .small_tensor = 4096,
                                                             .vocab_pad = 1,
                                                             .gathered_layers = 2};
}

static struct vp_train_weights layer_weights(struct builder *b) {
    struct vp_layout layout = vp_train_layout(&b->scenario);
    struct vp_train_weights w;
    vp_train_block_weights(&w, &b->scenario, &b->model.blocks[0], &layout);
    assert_false(w.dense.stored.overflow);
    return w;
}

static struct vp_train_kept keep_layer(struct builder *b) {
    struct vp_train_weights w = layer_weights(b);
    struct vp_train_kept kept;
    vp_train_keep(&kept, &b->scenario, &w);
    return kept;
}

static void adamw(void **state) {
    (void)state;
    struct builder b;
    begin(&b);
    struct vp_train_kept kept = keep_layer(&b);
    assert_int_equal(kept.parameters.v, 2 * LAYER);
    assert_int_equal(kept.gradients.v, 2 * LAYER);
    assert_int_equal(kept.optimizer.v, 2 * 2 * LAYER);
    assert_int_equal(kept.master.v, 0);
    assert_int_equal(kept.trainable.v, LAYER);
    b.scenario.train.master = b.scenario.train.optimizer_states = VP_DTYPE_FP32;
    kept = keep_layer(&b);
    assert_int_equal(kept.master.v, 4 * LAYER);
    assert_int_equal(kept.optimizer.v, 2 * 4 * LAYER);
    builder_end(&b);
}

/* States of the layer's tensors: two vectors of 64, matrices of 4096, 2048, 2048, 4096, 8192, 8192.
 */
static void other_optimizers(void **state) {
    (void)state;
    const struct {
        enum vp_optimizer optimizer;
        uint64_t bytes;
    } cases[] = {
        {VP_OPTIMIZER_SGD, 0},
        {VP_OPTIMIZER_NONE, 0},
        {VP_OPTIMIZER_SGD_MOMENTUM, 2 * LAYER},
        {VP_OPTIMIZER_LION, 2 * LAYER},
        /* rows + columns of q, k, v, o, up, down in fp32, one per element of a norm */
        {VP_OPTIMIZER_ADAFACTOR, 4 * (128 + 96 + 96 + 128 + 192 + 192 + NORMS)},
        /* one state for matrices, two for norms */
        {VP_OPTIMIZER_MUON, 2 * (MATRICES + 2 * NORMS)},
        /* below 4096 elements fp32; else 1 byte and 4 for each 256 of them, twice */
        {VP_OPTIMIZER_ADAMW_8BIT,
         2 * (4 * (NORMS + 2048 + 2048) + 2 * (4096 + 64) + 2 * (8192 + 128))},
        {VP_OPTIMIZER_PAGED_ADAMW_8BIT,
         2 * (4 * (NORMS + 2048 + 2048) + 2 * (4096 + 64) + 2 * (8192 + 128))},
        {VP_OPTIMIZER_ADAMW_4BIT,
         2 * (4 * (NORMS + 2048 + 2048) + 2 * (2048 + 128) + 2 * (4096 + 256))},
    };
    struct builder b;
    begin(&b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        b.scenario.train.optimizer = cases[i].optimizer;
        assert_int_equal(keep_layer(&b).optimizer.v, cases[i].bytes);
    }
    builder_end(&b);
}

static void embedding_states(void **state) {
    (void)state;
    struct builder b;
    struct vp_train_weights w;
    begin(&b);
    struct vp_layout layout = vp_train_layout(&b.scenario);
    b.scenario.train.optimizer = VP_OPTIMIZER_ADAMW_8BIT;
    vp_train_first_weights(&w, &b.scenario, &layout);
    assert_int_equal(w.dense.states.v, 2 * (TABLE + TABLE / 256 * 4));
    b.scenario.engine.rules.train.embedding_fp32 = true;
    vp_train_first_weights(&w, &b.scenario, &layout);
    assert_int_equal(w.dense.states.v, 2 * 4 * TABLE);
    b.scenario.train.optimizer = VP_OPTIMIZER_MUON; /* AdamW for tables */
    vp_train_first_weights(&w, &b.scenario, &layout);
    assert_int_equal(w.dense.states.v, 2 * 2 * TABLE);
    builder_end(&b);
}

static void steps(void **state) {
    (void)state;
    struct builder b;
    begin(&b);
    b.scenario.train.optimizer_states = VP_DTYPE_FP32;
    assert_int_equal(keep_layer(&b).step_temp.v, 4 * LAYER); /* foreach: all at once */
    b.scenario.train.loop = VP_LOOP_FOR;
    assert_int_equal(keep_layer(&b).step_temp.v, 2 * 4 * 8192); /* twice the largest tensor */
    b.scenario.train.loop = VP_LOOP_FUSED;
    assert_int_equal(keep_layer(&b).step_temp.v, 0);
    b.scenario.train.loop = VP_LOOP_FOREACH;
    b.scenario.train.optimizer = VP_OPTIMIZER_SGD_MOMENTUM;
    assert_int_equal(keep_layer(&b).step_temp.v, 0);
    b.scenario.train.optimizer = VP_OPTIMIZER_ADAFACTOR; /* bf16 gradients and parameters */
    assert_int_equal(keep_layer(&b).step_temp.v, 4 * 4 * 8192);
    b.scenario.train.optimizer = VP_OPTIMIZER_ADAMW;
    b.scenario.engine.rules.train.optimizer_in_backward = true; /* one tensor at a time */
    assert_int_equal(keep_layer(&b).step_temp.v, 4 * 8192);
    assert_int_equal(keep_layer(&b).gradients.v, 2 * 8192);
    b.scenario.engine.rules.train.optimizer_in_backward = false;
    b.scenario.engine.rules.train.step_all = 0;
    b.scenario.engine.rules.train.step_gradient_copy = true;
    b.scenario.train.master = VP_DTYPE_FP32; /* the gradients once more, in fp32 */
    assert_int_equal(keep_layer(&b).step_temp.v, 4 * LAYER);
    b.scenario.train.gradients = VP_DTYPE_FP32; /* nothing to cast */
    assert_int_equal(keep_layer(&b).step_temp.v, 0);
    builder_end(&b);
}

/* ZeRO: states, then gradients, then parameters. */
static void shards(void **state) {
    (void)state;
    struct builder b;
    begin(&b);
    b.scenario.parallel.data = 2;
    b.scenario.parallel.context = 2; /* counts with data parallelism */
    uint64_t all = 2 * LAYER;
    for (uint64_t zero = 0; zero <= 3; zero++) {
        b.scenario.parallel.zero = zero;
        struct vp_train_kept kept = keep_layer(&b);
        assert_int_equal(kept.parameters.v, zero >= 3 ? all / 4 : all);
        assert_int_equal(kept.gradients.v, zero >= 2 ? all / 4 : all);
        assert_int_equal(kept.optimizer.v, zero >= 1 ? 2 * all / 4 : 2 * all);
    }
    b.scenario.parallel.zero = 0;
    b.scenario.parallel.fsdp = true;
    assert_int_equal(keep_layer(&b).parameters.v, all / 4);
    assert_int_equal(keep_layer(&b).gradients.v, all / 4);
    b.scenario.train.no_sync = true; /* one micro batch: nothing accumulates */
    assert_int_equal(keep_layer(&b).gradients.v, all / 4);
    b.scenario.train.accumulation = 2;
    assert_int_equal(keep_layer(&b).gradients.v, all);
    builder_end(&b);
}

/* Eight experts over four ranks of a data-parallel group of eight: two copies of each. */
static void experts(void **state) {
    (void)state;
    struct builder b;
    begin(&b);
    struct vp_block block = block_gqa(4, 2, 16);
    block.moe = (struct vp_moe){.kind = VP_MLP_GATED, .experts = 8, .top_k = 2, .intermediate = 32};
    builder_layer(&b, block, 1);
    b.scenario.parallel.data = 8;
    b.scenario.parallel.expert = 4;
    b.scenario.parallel.zero = 1;
    struct vp_train_weights w = layer_weights(&b);
    const uint64_t expert = 3 * 64 * 32, dense = NORMS + 2 * 64 * 64 + 2 * 32 * 64 + 8 * 64;
    assert_int_equal(w.experts.trainable.v, 2 * expert);
    assert_int_equal(w.dense.trainable.v, dense);
    assert_int_equal(w.experts.largest, 64 * 32);
    b.scenario.engine.rules.train.joined_experts = true;
    assert_int_equal(layer_weights(&b).experts.largest, 2 * 64 * 32);
    struct vp_train_kept kept = keep_layer(&b);
    assert_int_equal(kept.optimizer.v, 2 * 2 * 2 * expert / 2 + 2 * 2 * dense / 8);
    b.scenario.parallel.expert = 1; /* all experts on each rank */
    assert_int_equal(layer_weights(&b).experts.trainable.v, 8 * expert);
    builder_end(&b);
}

static void adapters(void **state) {
    (void)state;
    struct builder b;
    begin(&b);
    struct vp_train_lora *lora = &b.scenario.train.lora;
    *lora = (struct vp_train_lora){.enabled = true, .rank = 8, .slots = 1, .dtype = VP_DTYPE_FP32};
    lora->roles[VP_ROLE_Q] = lora->roles[VP_ROLE_DOWN] = true;
    const uint64_t pairs = 8 * (64 + 64) + 8 * (128 + 64);
    struct vp_train_kept kept = keep_layer(&b);
    assert_int_equal(kept.adapters.v, 4 * pairs);
    assert_int_equal(kept.parameters.v, 2 * LAYER + 4 * pairs);
    assert_int_equal(kept.trainable.v, pairs);
    assert_int_equal(kept.gradients.v, 2 * pairs);
    assert_int_equal(vp_train_trainable(&b.scenario).v, pairs);
    lora->slots = 3;
    assert_int_equal(keep_layer(&b).trainable.v, 3 * pairs);
    lora->slots = 1;
    lora->dora = true; /* a magnitude per output */
    assert_int_equal(keep_layer(&b).trainable.v, pairs + 64 + 64);
    lora->dora = false;
    b.scenario.parallel.tensor = 2; /* q by outputs, down by inputs: that half is divided */
    assert_int_equal(keep_layer(&b).trainable.v, 8 * (64 + 32) + 8 * (64 + 64));
    builder_end(&b);
}

/* 4-bit matrices with an fp32 constant per 64 of them; norms and adapters stay. */
static void quantised(void **state) {
    (void)state;
    struct builder b;
    begin(&b);
    builder_scheme(&b, (struct vp_scheme){.data = VP_DTYPE_NF4,
                                          .scale = VP_SCALE_GROUP,
                                          .scale_dtype = VP_DTYPE_FP32,
                                          .group = 64});
    struct vp_train_lora *lora = &b.scenario.train.lora;
    *lora = (struct vp_train_lora){.enabled = true, .rank = 4, .slots = 1, .dtype = VP_DTYPE_BF16};
    lora->roles[VP_ROLE_O] = true;
    struct vp_train_weights w = layer_weights(&b);
    assert_int_equal(w.dense.quantised.v, MATRICES / 2);
    assert_int_equal(w.dense.constants.v, MATRICES / 64 * 4);
    assert_int_equal(w.dense.plain.v, NORMS);
    assert_int_equal(w.dense.largest_quantised, 64 * 128);
    assert_int_equal(keep_layer(&b).parameters.v,
                     MATRICES / 2 + MATRICES / 64 * 4 + 2 * NORMS + 2 * 4 * 128);
    builder_end(&b);
}

static void frozen(void **state) {
    (void)state;
    struct builder b;
    begin(&b);
    b.scenario.train.frozen_roles[VP_ROLE_Q] = true;
    assert_int_equal(keep_layer(&b).trainable.v, LAYER - 64 * 64);
    assert_int_equal(keep_layer(&b).parameters.v, 2 * LAYER);
    b.scenario.train.frozen = true;
    assert_int_equal(keep_layer(&b).trainable.v, 0);
    assert_int_equal(keep_layer(&b).optimizer.v, 0);
    builder_end(&b);
}

/* The table is padded to a multiple of 128 per rank; a tied head is one tensor, and a copy of it
 * on the last of several stages. */
static void ends(void **state) {
    (void)state;
    struct builder b;
    struct vp_train_weights w;
    begin(&b);
    b.scenario.engine.rules.train.vocab_pad = 128;
    b.scenario.parallel.tensor = 2;
    struct vp_layout layout = vp_train_layout(&b.scenario);
    vp_train_first_weights(&w, &b.scenario, &layout);
    assert_int_equal(w.dense.trainable.v, 512 * 64); /* 1000 -> 1024 over two ranks */
    vp_train_last_weights(&w, &b.scenario, &layout, false);
    assert_int_equal(w.dense.trainable.v, 512 * 64 + 64);
    b.model.tied = true;
    vp_train_last_weights(&w, &b.scenario, &layout, false);
    assert_int_equal(w.dense.trainable.v, 64);
    vp_train_last_weights(&w, &b.scenario, &layout, true);
    assert_int_equal(w.dense.trainable.v, 512 * 64 + 64);
    assert_int_equal(vp_train_trainable(&b.scenario).v, LAYER + TABLE + 64);
    builder_end(&b);
}

/* What FSDP makes whole: 16-bit copies of fp32 shards, and gradients in the type that is reduced.
 */
static void whole_for_a_while(void **state) {
    (void)state;
    struct builder b;
    begin(&b);
    struct vp_train_weights w = layer_weights(&b);
    assert_int_equal(vp_train_gathered(&b.scenario, &w).v, 0);
    assert_int_equal(vp_train_scattered(&b.scenario, &w).v, 0);
    b.scenario.parallel.data = 4;
    b.scenario.parallel.fsdp = true;
    b.scenario.train.parameters = VP_DTYPE_FP32;
    assert_int_equal(vp_train_gathered(&b.scenario, &w).v, 2 * LAYER);
    assert_int_equal(vp_train_scattered(&b.scenario, &w).v, 2 * LAYER);
    b.scenario.engine.rules.train.reduce_bytes = 4;
    assert_int_equal(vp_train_scattered(&b.scenario, &w).v, (2 + 4) * LAYER);
    b.scenario.train.autocast = VP_DTYPE_BF16; /* autocast casts matrix by matrix: fp32 is whole */
    assert_int_equal(vp_train_gathered(&b.scenario, &w).v, 4 * LAYER);
    builder_end(&b);
}

static void host(void **state) {
    (void)state;
    struct builder b;
    begin(&b);
    b.scenario.train.offload_optimizer = true;
    struct vp_train_kept kept = keep_layer(&b);
    assert_int_equal(kept.optimizer.v, 0);
    assert_int_equal(kept.step_temp.v, 0);
    assert_int_equal(kept.gradients.v, 2 * LAYER);
    assert_int_equal(kept.host.v, 4 * LAYER);
    b.scenario.engine.rules.train.offload_gradients = true;
    b.scenario.train.offload_parameters = true;
    kept = keep_layer(&b);
    assert_int_equal(kept.parameters.v + kept.gradients.v, 0);
    assert_int_equal(kept.host.v, (4 + 2 + 2) * LAYER);
    builder_end(&b);
}

static void overflow(void **state) {
    (void)state;
    struct builder b;
    begin(&b);
    b.model.vocab = UINT64_MAX / 64;
    assert_true(vp_train_trainable(&b.scenario).overflow);
    builder_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw),
        cmocka_unit_test(other_optimizers),
        cmocka_unit_test(embedding_states),
        cmocka_unit_test(steps),
        cmocka_unit_test(shards),
        cmocka_unit_test(experts),
        cmocka_unit_test(adapters),
        cmocka_unit_test(quantised),
        cmocka_unit_test(frozen),
        cmocka_unit_test(ends),
        cmocka_unit_test(whole_for_a_while),
        cmocka_unit_test(host),
        cmocka_unit_test(overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
