/* Weights of a rank, row by row. By hand: hidden 256, attention of 8 heads and 2 KV heads of 32,
 * feed-forward of 512, a vocabulary of 1000, in bf16 unless a test says otherwise:
 *
 *   attention  q 256 x 256, k and v 64 x 256, o 256 x 256     163,840 elements
 *   mlp        three times 512 x 256                          393,216
 *   norm       two of 256                                         512
 *   embedding  1000 rows, padded to 1024, x 256               262,144; the head as many */
#include "planner/base/text.h"
#include "planner/memory/weights.h"
#include "tests/unit/model_builder.h"

enum { ATTENTION = 163840, MLP = 393216, NORMS = 512, VOCAB = 262144, BYTES = 2 };

static struct builder b;

static struct vp_block dense(void) {
    struct vp_block block = block_gqa(8, 2, 32);
    block.mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = 512};
    return block;
}

static int begin(void **state) {
    (void)state;
    builder_begin(&b);
    b.model.hidden = 256;
    builder_layer(&b, dense(), 4);
    builder_ends(&b, 1000, false);
    return 0;
}

static int end(void **state) {
    (void)state;
    builder_end(&b);
    return 0;
}

static struct vp_ledger weigh(void) {
    struct vp_ledger ledger = builder_ledger(&b);
    builder_weights(&b, &ledger, 0);
    return ledger;
}

static void expect(const struct vp_ledger *ledger, uint32_t device, const char *owner,
                   enum vp_formula formula, uint64_t bytes) {
    const struct vp_row *row = ledger_row(ledger, device, owner);
    assert_int_equal(row->component,
                     vp_text_eq(owner, "encoder tensors") ? VP_C_VISION : VP_C_WEIGHTS);
    assert_int_equal(row->formula, formula);
    assert_int_equal(row->confidence, VP_EXACT);
    assert_int_equal(row->bytes.low, bytes);
    assert_int_equal(row->bytes.likely, bytes);
    assert_int_equal(row->bytes.high, bytes);
}

/* ---- dense models ---- */

static void one_rank(void **state) {
    (void)state;
    struct vp_ledger ledger = weigh();
    expect(&ledger, 0, "attention", VP_FORMULA_W_MATRIX, 4 * ATTENTION * BYTES);
    expect(&ledger, 0, "mlp", VP_FORMULA_W_MATRIX, 4 * MLP * BYTES);
    expect(&ledger, 0, "norm", VP_FORMULA_W_VECTOR, 4 * NORMS * BYTES);
    expect(&ledger, 0, "embedding", VP_FORMULA_W_VOCAB, VOCAB * BYTES);
    expect(&ledger, 0, "lm_head", VP_FORMULA_W_VOCAB, VOCAB * BYTES);
    expect(&ledger, 0, "final_norm", VP_FORMULA_W_VECTOR, 256 * BYTES);
    assert_int_equal(ledger.count, 6);
    const struct vp_row *mlp = ledger_row(&ledger, 0, "mlp");
    assert_int_equal(mlp->layers, 4);
    assert_int_equal(row_input(mlp, "elements"), MLP);
    assert_int_equal(row_input(mlp, "matrix_bytes"), MLP * BYTES);
    assert_int_equal(row_input(ledger_row(&ledger, 0, "lm_head"), "rows"), 1024);
    /* 2 x (4 x 557,568 + 2 x 262,144 + 256) */
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_WEIGHTS), 5509632);
}

static void tensor_ranks(void **state) {
    (void)state;
    b.scenario.parallel.tensor = 2;
    struct vp_ledger ledger = weigh();
    expect(&ledger, 0, "attention", VP_FORMULA_W_MATRIX, 4 * ATTENTION / 2 * BYTES);
    expect(&ledger, 0, "mlp", VP_FORMULA_W_MATRIX, 4 * MLP / 2 * BYTES);
    expect(&ledger, 0, "norm", VP_FORMULA_W_VECTOR, 4 * NORMS * BYTES); /* whole */
    expect(&ledger, 0, "embedding", VP_FORMULA_W_VOCAB, VOCAB / 2 * BYTES);
    b.scenario.parallel.tensor = 8;
    ledger = weigh();
    /* q and o 32 x 256 each; of two KV heads every rank keeps one: k and v 32 x 256 */
    expect(&ledger, 0, "attention", VP_FORMULA_W_MATRIX, 4 * 4 * 32 * 256 * BYTES);
    b.scenario.parallel.tensor = 3; /* the fullest of three: 342 of 1024 rows */
    ledger = weigh();
    assert_int_equal(row_input(ledger_row(&ledger, 0, "embedding"), "rows"), 342);
}

static void biases_and_compute_type(void **state) {
    (void)state;
    struct vp_block block = dense();
    block.attention.qkv_bias = block.attention.out_bias = true; /* 256 + 64 + 64 + 256 */
    builder_layer(&b, block, 1);
    struct vp_ledger ledger = weigh();
    expect(&ledger, 0, "attention", VP_FORMULA_W_MATRIX, (ATTENTION + 640) * BYTES);
    assert_int_equal(row_input(ledger_row(&ledger, 0, "attention"), "vector_bytes"), 1280);
    b.scenario.precision.compute = VP_DTYPE_FP32; /* vectors follow it, matrices their scheme */
    ledger = weigh();
    expect(&ledger, 0, "attention", VP_FORMULA_W_MATRIX, ATTENTION * BYTES + 640 * 4);
    expect(&ledger, 0, "norm", VP_FORMULA_W_VECTOR, NORMS * 4);
}

/* What routers correct by and recurrences decay by stays in fp32. */
static void fp32_vectors(void **state) {
    (void)state;
    struct vp_block block = dense();
    block.mlp.kind = VP_MLP_NONE;
    block.norms = 0;
    block.moe = (struct vp_moe){
        .kind = VP_MLP_PLAIN, .experts = 8, .top_k = 2, .intermediate = 64, .score_bias = true};
    builder_layer(&b, block, 1);
    struct vp_ledger ledger = weigh();
    expect(&ledger, 0, "router", VP_FORMULA_W_MATRIX, 8 * 256 * BYTES + 8 * 4);
    expect(&ledger, 0, "experts", VP_FORMULA_W_MATRIX, 8 * 2 * 64 * 256 * BYTES);

    block = (struct vp_block){.norms = 0};
    block.attention = (struct vp_attention){.kind = VP_ATTENTION_LINEAR,
                                            .linear = VP_LINEAR_GATED_DELTA,
                                            .key_heads = 2,
                                            .key_dim = 16,
                                            .value_heads = 4,
                                            .value_dim = 16,
                                            .conv_kernel = 4,
                                            .conv_channels = 128,
                                            .state_elements = 1024};
    builder_layer(&b, block, 1);
    ledger = weigh();
    expect(&ledger, 0, "convolution", VP_FORMULA_W_VECTOR, 128 * 4 * BYTES);
    /* decay and step bias of four heads in fp32, a norm of 16 in bf16 */
    expect(&ledger, 0, "norm", VP_FORMULA_W_VECTOR, 8 * 4 + 16 * BYTES);
    /* qkvz 192 x 256, ba 8 x 256, out 256 x 64 */
    expect(&ledger, 0, "linear_attention", VP_FORMULA_W_MATRIX, (49152 + 2048 + 16384) * BYTES);
}

/* ---- pipeline stages ---- */

static void uneven_stages(void **state) {
    (void)state;
    builder_layer(&b, dense(), 10);
    b.scenario.parallel.pipeline = 4; /* 2, 3, 3 and 2 layers */
    struct vp_ledger ledger = builder_ledger(&b);
    static const uint64_t LAYERS[] = {2, 3, 3, 2};
    for (uint32_t i = 0; i < 4; i++) {
        builder_weights(&b, &ledger, i);
        expect(&ledger, i, "mlp", VP_FORMULA_W_MATRIX, LAYERS[i] * MLP * BYTES);
        assert_int_equal(ledger_has(&ledger, i, "embedding"), i == 0);
        assert_int_equal(ledger_has(&ledger, i, "lm_head"), i == 3);
        assert_int_equal(ledger_has(&ledger, i, "final_norm"), i == 3);
    }
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_WEIGHTS),
                     BYTES * (2 * (ATTENTION + MLP + NORMS) + VOCAB));
    assert_int_equal(ledger_likely(&ledger, 3, VP_C_WEIGHTS),
                     BYTES * (2 * (ATTENTION + MLP + NORMS) + VOCAB + 256));
}

/* A tied head costs nothing on one stage; on another one it needs the matrix again. */
static void tied_head(void **state) {
    (void)state;
    b.model.tied = true;
    struct vp_ledger ledger = weigh();
    assert_false(ledger_has(&ledger, 0, "lm_head"));
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_WEIGHTS),
                     BYTES * (4 * (ATTENTION + MLP + NORMS) + VOCAB + 256));
    b.scenario.parallel.pipeline = 3;
    ledger = builder_ledger(&b);
    for (uint32_t i = 0; i < 3; i++)
        builder_weights(&b, &ledger, i);
    expect(&ledger, 0, "embedding", VP_FORMULA_W_VOCAB, VOCAB * BYTES);
    assert_false(ledger_has(&ledger, 1, "embedding (tied head)"));
    expect(&ledger, 2, "embedding (tied head)", VP_FORMULA_W_VOCAB, VOCAB * BYTES);
}

static void ends_with_vectors(void **state) {
    (void)state;
    b.model.learned_positions = 100;
    b.model.head_bias = true;
    struct vp_ledger ledger = weigh();
    expect(&ledger, 0, "positions", VP_FORMULA_W_VECTOR, 100 * 256 * BYTES);
    expect(&ledger, 0, "lm_head", VP_FORMULA_W_VOCAB, (VOCAB + 1024) * BYTES);
    b.model.tied = true; /* the bias is the head's own */
    ledger = weigh();
    expect(&ledger, 0, "lm_head", VP_FORMULA_W_VECTOR, 1000 * BYTES);
    b.scenario.parallel.pipeline = 2;
    ledger = builder_ledger(&b);
    builder_weights(&b, &ledger, 1);
    assert_false(ledger_has(&ledger, 1, "positions"));
}

/* Blocks of another kind than a stage holds leave no row there. */
static void kinds_apart(void **state) {
    (void)state;
    struct vp_block kinds[] = {dense(), block_gqa(8, 2, 32)};
    kinds[1].moe =
        (struct vp_moe){.kind = VP_MLP_GATED, .experts = 4, .top_k = 1, .intermediate = 64};
    builder_layers(&b, kinds, (uint32_t[]){2, 2}, 2);
    b.scenario.parallel.pipeline = 2;
    struct vp_ledger ledger = builder_ledger(&b);
    builder_weights(&b, &ledger, 0);
    builder_weights(&b, &ledger, 1);
    assert_true(ledger_has(&ledger, 0, "mlp") && !ledger_has(&ledger, 0, "experts"));
    assert_true(ledger_has(&ledger, 1, "experts") && !ledger_has(&ledger, 1, "mlp"));
}

/* ---- experts ---- */

static struct vp_block sparse(void) {
    struct vp_block block = block_gqa(8, 2, 32);
    block.moe =
        (struct vp_moe){.kind = VP_MLP_GATED, .experts = 10, .top_k = 2, .intermediate = 64};
    return block;
}

static void expert_ranks(void **state) {
    (void)state;
    enum { EXPERT = 3 * 64 * 256 };
    builder_layer(&b, sparse(), 2);
    b.scenario.parallel.tensor = 4;
    struct vp_ledger ledger = weigh();
    expect(&ledger, 0, "experts", VP_FORMULA_W_MATRIX, 2 * 10 * EXPERT / 4 * BYTES);
    b.scenario.engine.expert_parallel =
        true; /* ten experts over four ranks: three on the fullest */
    ledger = weigh();
    expect(&ledger, 0, "experts", VP_FORMULA_W_MATRIX, 2 * 3 * EXPERT * BYTES);
    b.scenario.parallel.data = 2; /* eight ranks: two; the attention is that of a data rank */
    ledger = weigh();
    expect(&ledger, 0, "experts", VP_FORMULA_W_MATRIX, 2 * 2 * EXPERT * BYTES);
    /* q and o 64 x 256; k and v: one of two heads of 32 */
    expect(&ledger, 0, "attention", VP_FORMULA_W_MATRIX, 2 * (2 * 64 + 2 * 32) * 256 * BYTES);
}

/* SGLang with data-parallel attention on 4 ranks: Qwen3-30B-A3B logs 16.39 GiB.
 * Attention, embedding, head, norms, router whole; experts / 4. */
static void data_parallel_attention(void **state) {
    (void)state;
    struct vp_scenario *s = read_yaml(&b.f,
                                      "model: qwen3-30b-a3b\nhardware: {gpu: h200, count: 4}\n"
                                      "parallel: {tensor: 4}\nserve: {context: 4096}\n",
                                      NULL, NULL);
    s->engine.kind = VP_ENGINE_SGLANG;
    s->parallel.attention_data = 4;
    struct vp_stage stage = vp_stage_split(48, 1, 0);
    struct vp_ledger ledger = builder_ledger(&b);
    vp_weights_add(&ledger, s, &stage, 0);
    uint64_t bytes = ledger_likely(&ledger, 0, VP_C_WEIGHTS);
    /* 8,788,850,688 elements, and a rotary table of 40,960 x 128 */
    uint64_t elements = 48 * (UINT64_C(18874368) + 256 + 4096 + 262144 + 32 * UINT64_C(4718592)) +
                        2 * UINT64_C(151936) * 2048 + 2048;
    assert_int_equal(bytes, elements * 2 + UINT64_C(40960) * 128 * 2);
    assert_near(bytes, 17598628331, 2); /* 16.39 GiB */
}

/* MXFP4 kernels pad: 17 bytes for 32 values, the width 200 to 256 and hidden 256 stays. */
static void padded_experts(void **state) {
    (void)state;
    struct vp_block block = sparse();
    block.moe.experts = 4;
    block.moe.intermediate = 200;
    block.moe.bias = true;
    b.model.hidden = 288;
    builder_layer(&b, block, 3);
    builder_scheme(&b, (struct vp_scheme){.name = "mxfp4", .data = VP_DTYPE_MXFP4});
    struct vp_ledger ledger = weigh();
    /* unpadded: 288 = 9 x 32, 200 takes 7 blocks of 32: up and gate 200 rows of 153 bytes, down 288
     * rows of 119; biases 200, 200 and 288 in bf16 */
    enum { PLAIN = 4 * (2 * 200 * 153 + 288 * 119 + 688 * 2) };
    expect(&ledger, 0, "experts", VP_FORMULA_W_PAD, 3 * PLAIN);

    b.scenario.engine.rules.expert_width_multiple = 128; /* one of the two alone is no rule */
    ledger = weigh();
    expect(&ledger, 0, "experts", VP_FORMULA_W_PAD, 3 * PLAIN);
    b.scenario.engine.rules.expert_hidden_multiple = 256;
    ledger = weigh();
    /* 256 rows of 512 / 32 x 17 = 272 bytes twice, 512 rows of 136; biases 256, 256 and 512 */
    enum { PADDED = 4 * (2 * 256 * 272 + 512 * 136 + 1024 * 2) };
    expect(&ledger, 0, "experts", VP_FORMULA_W_PAD, 3 * PADDED);

    b.scenario.parallel.tensor = 2; /* each rank pads its own half: 100 to 128 */
    ledger = weigh();
    enum { HALF = 4 * (2 * 128 * 272 + 512 * 68 + (256 + 512) * 2) };
    expect(&ledger, 0, "experts", VP_FORMULA_W_PAD, 3 * HALF);
    /* the router and the attention are no experts: not padded */
    assert_int_equal(ledger_row(&ledger, 0, "router")->formula, VP_FORMULA_W_MATRIX);
}

/* gpt-oss-20b on three cards: 2880 x 3072, 2944 x 3072, 3072 x 3072 against 13.47, 13.72 and
 * 14.31 GiB logged (ROCm's figure has what the load takes beside the tensors). */
static void padding_by_card(void **state) {
    (void)state;
    static const struct {
        const char *gpu;
        uint64_t width, logged_mib, permille;
    } CARDS[] = {
        {"h100-sxm", 2880, 13793, 3}, {"rtx4090", 2944, 14049, 5}, {"r9700", 3072, 14653, 8}};
    for (size_t i = 0; i < sizeof CARDS / sizeof *CARDS; i++) {
        struct fixture f;
        fixture_begin(&f);
        const struct vp_result *r =
            plan_yaml_with(&f,
                           "model: gpt-oss-20b\nengine: {name: vllm, version: \"0.13\"}\n"
                           "serve: {context: 16384}\n",
                           "hardware.gpu", CARDS[i].gpu);
        uint64_t w = CARDS[i].width;
        uint64_t experts = 32 * (2 * w * 1632 + 3072 * (w / 32 * 17) + (2 * w + 3072) * 2);
        /* layers with and without a window have one row */
        expect(&r->ledger, 0, "experts", VP_FORMULA_W_PAD, 24 * experts);
        assert_int_equal(ledger_row(&r->ledger, 0, "experts")->layers, 24);
        assert_near(r->report.weights.likely, MIB(CARDS[i].logged_mib), CARDS[i].permille);
        fixture_end(&f);
    }
}

/* ---- formats ---- */

static void quantised_rows(void **state) {
    (void)state;
    builder_scheme(&b, (struct vp_scheme){.name = "fp8 block 128x128",
                                          .data = VP_DTYPE_FP8,
                                          .scale = VP_SCALE_BLOCK,
                                          .scale_dtype = VP_DTYPE_FP32,
                                          .block_out = 128,
                                          .block_in = 128});
    struct vp_ledger ledger = weigh();
    /* tiles: q and o 2 x 2, k and v 1 x 2 (64 rows fill half of one) */
    expect(&ledger, 0, "attention", VP_FORMULA_W_MATRIX, 4 * (ATTENTION + 12 * 4));
    assert_int_equal(row_input(ledger_row(&ledger, 0, "attention"), "scale_bytes"), 48);
    expect(&ledger, 0, "mlp", VP_FORMULA_W_MATRIX, 4 * (MLP + 3 * 8 * 4));
    expect(&ledger, 0, "embedding", VP_FORMULA_W_VOCAB, VOCAB * BYTES); /* its own scheme */
}

/* Llama-3-8B: 14.9575 GiB of tensors and 0.0020 of tables for 8192 positions; 3.1 has 131072
 * positions and logs 14.9889. */
static void rotary_tables(void **state) {
    (void)state;
    static const char YAML[] =
        "hardware: {gpu: h100-sxm}\nengine: {name: vllm, version: \"0.13\"}\n"
        "serve: {context: 4096}\n";
    const struct vp_result *r = plan_yaml_with(&b.f, YAML, "model", "llama-3-8b");
    expect(&r->ledger, 0, "rotary tables", VP_FORMULA_W_ROTARY, 8192 * 128 * 2);
    assert_int_equal(r->report.weights.likely, UINT64_C(2) * 8030261248 + 8192 * 128 * 2);
    r = plan_yaml_with(&b.f, YAML, "model", "llama-3.1-8b");
    expect(&r->ledger, 0, "rotary tables", VP_FORMULA_W_ROTARY, 131072 * 128 * 2);
    assert_int_equal(r->report.weights.likely, UINT64_C(16094076928)); /* 14.9888 GiB */
    assert_near(r->report.weights.likely, UINT64_C(16094208000), 1);   /* 14.9889 logged */

    struct vp_block block = dense();
    block.attention.rotary_dim = 32;
    builder_layer(&b, block, 4);
    struct vp_ledger ledger = weigh();
    assert_false(ledger_has(&ledger, 0, "rotary tables")); /* no positions are kept */
    b.model.rotary_positions = 1000;
    b.scenario.parallel.pipeline = 2;
    b.scenario.precision.compute = VP_DTYPE_FP32;
    ledger = builder_ledger(&b);
    for (uint32_t i = 0; i < 2; i++) { /* every stage has its own */
        builder_weights(&b, &ledger, i);
        expect(&ledger, i, "rotary tables", VP_FORMULA_W_ROTARY, 32000 * 4);
    }
    builder_layer(&b, block_mla(8, 64, 16), 4); /* the rotary part of a latent key */
    b.scenario.parallel.pipeline = 1;
    ledger = weigh();
    expect(&ledger, 0, "rotary tables", VP_FORMULA_W_ROTARY, 16000 * 4);
}

/* Factors of the up-projection: views of a plain matrix, 16-bit copies of a quantised one. */
static void absorbed_projections(void **state) {
    (void)state;
    struct vp_block block = block_mla(8, 64, 16);
    block.attention.qk_nope_head_dim = 32;
    block.attention.v_head_dim = 48;
    struct vp_block kinds[] = {dense(), block};
    builder_layers(&b, kinds, (uint32_t[]){1, 3}, 2);
    struct vp_ledger ledger = weigh();
    assert_false(ledger_has(&ledger, 0, "absorbed up-projections"));
    builder_scheme(&b, (struct vp_scheme){.name = "fp8",
                                          .data = VP_DTYPE_FP8,
                                          .scale = VP_SCALE_TENSOR,
                                          .scale_dtype = VP_DTYPE_FP32});
    b.scenario.parallel.tensor = 2;
    ledger = weigh();
    expect(&ledger, 0, "absorbed up-projections", VP_FORMULA_W_ABSORBED,
           3 * 4 * (32 + 48) * 64 * BYTES);
    b.scenario.parallel.pipeline = 4; /* the first stage has no latent layer */
    ledger = builder_ledger(&b);
    builder_weights(&b, &ledger, 0);
    builder_weights(&b, &ledger, 1);
    assert_false(ledger_has(&ledger, 0, "absorbed up-projections"));
    expect(&ledger, 1, "absorbed up-projections", VP_FORMULA_W_ABSORBED,
           4 * (32 + 48) * 64 * BYTES);

    block.attention.heads = 0; /* a description of the cache alone */
    b.scenario.parallel = (struct vp_parallel){
        .tensor = 1, .pipeline = 1, .data = 1, .expert = 1, .context = 1, .attention_data = 1};
    builder_layer(&b, block, 2);
    builder_scheme(&b, (struct vp_scheme){.name = "fp8",
                                          .data = VP_DTYPE_FP8,
                                          .scale = VP_SCALE_TENSOR,
                                          .scale_dtype = VP_DTYPE_FP32});
    ledger = weigh();
    assert_false(ledger_has(&ledger, 0, "absorbed up-projections"));

    /* DeepSeek-V3 in FP8 on 8 ranks: 61 layers x 16 heads x (128 + 128) x 512 x 2 bytes */
    const struct vp_result *r = plan_yaml(&b.f, "model: deepseek-v3\n"
                                                "hardware: {gpu: h200, count: 8}\n"
                                                "parallel: {tensor: 8}\nserve: {context: 4096}\n");
    assert_int_equal(ledger_owner(&r->ledger, 0, "absorbed up-projections"), 255852544);
}

/* ---- beside the stack ---- */

static void extras(void **state) {
    (void)state;
    struct vp_extra list[] = {{.name = "tower",
                               .matrix_elements = 1001,
                               .other_elements = 10,
                               .sharded = true,
                               .first_stage = true,
                               .loaded = true},
                              {.name = "projector", .matrix_elements = 300, .loaded = true},
                              {.name = "MTP", .matrix_elements = 9999}};
    b.model.extras = list;
    b.model.extra_count = 3;
    b.scenario.parallel.tensor = 2;
    b.scenario.parallel.pipeline = 2;
    struct vp_ledger ledger = builder_ledger(&b);
    builder_weights(&b, &ledger, 0);
    builder_weights(&b, &ledger, 1);
    expect(&ledger, 0, "tower", VP_FORMULA_W_EXTRA, (501 + 10) * BYTES);
    assert_false(ledger_has(&ledger, 1, "tower"));
    assert_false(ledger_has(&ledger, 0, "projector"));
    expect(&ledger, 1, "projector", VP_FORMULA_W_EXTRA, 300 * BYTES);
    assert_false(ledger_has(&ledger, 0, "MTP") || ledger_has(&ledger, 1, "MTP"));

    struct vp_block layer = dense(); /* an encoder's layers, divided like those of the stack */
    list[1].layer = &layer;
    list[1].layers = 3;
    ledger = builder_ledger(&b);
    builder_weights(&b, &ledger, 1);
    expect(&ledger, 1, "projector", VP_FORMULA_W_EXTRA,
           (300 + 3 * ((ATTENTION + MLP) / 2 + NORMS)) * BYTES);
}

/* Segments and the norm behind the embedding; mixing weights of residual streams, in fp32. */
static void vectors_of_the_ends(void **state) {
    (void)state;
    b.model.token_types = 2;
    b.model.embedding_norm = true;
    b.model.hyper = 2;
    struct vp_ledger ledger = weigh();
    expect(&ledger, 0, "token_types", VP_FORMULA_W_VECTOR, 2 * 256 * BYTES);
    expect(&ledger, 0, "embedding_norm", VP_FORMULA_W_VECTOR, 256 * BYTES);
    expect(&ledger, 0, "hyper_connection", VP_FORMULA_W_VECTOR, (2 * 513 + 1) * 4);
    /* twice (2 + 2) x 2 x (512 + 1) + 3, beside two norms of 256 */
    expect(&ledger, 0, "norm", VP_FORMULA_W_VECTOR, 4 * (2 * (8 * 513 + 3) * 4 + NORMS * BYTES));
}

/* ---- a checkpoint's tensors ---- */

/* Rows: before the layers, four layers, after them. */
static uint64_t table[6][VP_SHARD_EXPERT + 1];

static void use_table(void) {
    for (int i = 0; i < 6; i++)
        for (int shard = 0; shard <= VP_SHARD_EXPERT; shard++)
            table[i][shard] = 0;
    table[0][VP_SHARD_VOCAB] = 4000;
    for (int i = 1; i <= 4; i++) {
        table[i][VP_SHARD_NONE] = 10;
        table[i][VP_SHARD_HEADS] = 800;
        table[i][VP_SHARD_KV] = 200;
        table[i][VP_SHARD_WIDTH] = 2401;
    }
    table[5][VP_SHARD_VOCAB] = 4000;
    table[5][VP_SHARD_NONE] = 6;
    b.model.checkpoint = (struct vp_checkpoint){.known = true, .bytes = table, .extra_bytes = 70};
}

static void tensor_table(void **state) {
    (void)state;
    use_table();
    struct vp_ledger ledger = weigh();
    expect(&ledger, 0, "attention tensors", VP_FORMULA_W_TENSORS, 3200);
    expect(&ledger, 0, "replicated tensors", VP_FORMULA_W_TENSORS, 46);
    expect(&ledger, 0, "vocabulary tensors", VP_FORMULA_W_TENSORS, 8000);
    expect(&ledger, 0, "encoder tensors", VP_FORMULA_W_TENSORS, 70);
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_WEIGHTS), 46 + 3200 + 800 + 4 * 2401 + 8000);
    b.scenario.parallel.tensor = 8; /* two KV heads: not below a half */
    ledger = weigh();
    expect(&ledger, 0, "replicated tensors", VP_FORMULA_W_TENSORS, 46);
    expect(&ledger, 0, "attention tensors", VP_FORMULA_W_TENSORS, 400);
    expect(&ledger, 0, "key and value tensors", VP_FORMULA_W_TENSORS, 400);
    expect(&ledger, 0, "feed-forward tensors", VP_FORMULA_W_TENSORS,
           1201); /* 9604 / 8, rounded up */
    expect(&ledger, 0, "vocabulary tensors", VP_FORMULA_W_TENSORS, 1000);
    expect(&ledger, 0, "encoder tensors", VP_FORMULA_W_TENSORS, 70);
    assert_int_equal(row_input(ledger_row(&ledger, 0, "key and value tensors"), "ranks"), 2);
}

static void tensor_table_of_stages(void **state) {
    (void)state;
    use_table();
    b.scenario.parallel.pipeline = 3; /* one, two and one layer */
    struct vp_ledger ledger = builder_ledger(&b);
    static const uint64_t LAYERS[] = {1, 2, 1};
    for (uint32_t i = 0; i < 3; i++) {
        builder_weights(&b, &ledger, i);
        expect(&ledger, i, "attention tensors", VP_FORMULA_W_TENSORS, LAYERS[i] * 800);
        assert_int_equal(ledger_has(&ledger, i, "vocabulary tensors"), i != 1);
        assert_int_equal(ledger_has(&ledger, i, "encoder tensors"), i == 0);
    }
    /* tied: no tensor of its own for the head, whose stage loads the embedding again */
    b.model.tied = true;
    table[5][VP_SHARD_VOCAB] = 0;
    ledger = builder_ledger(&b);
    builder_weights(&b, &ledger, 2);
    expect(&ledger, 2, "vocabulary tensors", VP_FORMULA_W_TENSORS, 4000);
    b.scenario.parallel.pipeline = 1;
    ledger = weigh();
    expect(&ledger, 0, "vocabulary tensors", VP_FORMULA_W_TENSORS, 4000);
}

static void tensor_table_of_experts(void **state) {
    (void)state;
    use_table();
    builder_layer(&b, sparse(), 4); /* ten experts */
    for (int i = 1; i <= 4; i++)
        table[i][VP_SHARD_EXPERT] = 10000;
    b.scenario.parallel.tensor = 4;
    struct vp_ledger ledger = weigh();
    expect(&ledger, 0, "expert tensors", VP_FORMULA_W_TENSORS, 10000);
    b.scenario.engine.expert_parallel = true; /* three of ten on the fullest rank */
    ledger = weigh();
    expect(&ledger, 0, "expert tensors", VP_FORMULA_W_TENSORS, 12000);
    b.scenario.parallel.expert = 2; /* five of ten, their width halved */
    ledger = weigh();
    expect(&ledger, 0, "expert tensors", VP_FORMULA_W_TENSORS, 10000);
    b.scenario.parallel = (struct vp_parallel){
        .tensor = 1, .pipeline = 1, .data = 1, .expert = 1, .context = 1, .attention_data = 1};
    ledger = weigh();
    expect(&ledger, 0, "expert tensors", VP_FORMULA_W_TENSORS, 40000);
    builder_layer(&b, dense(), 4); /* experts that the config does not know of */
    b.scenario.parallel.tensor = 4;
    b.scenario.parallel.expert = 1;
    ledger = weigh();
    expect(&ledger, 0, "expert tensors", VP_FORMULA_W_TENSORS, 10000);
}

/* Without KV heads anywhere the keys are divided like the heads. */
static void tensor_table_of_latents(void **state) {
    (void)state;
    use_table();
    struct vp_block block = block_mla(8, 64, 16);
    block.attention.kv_heads = 0;
    builder_layer(&b, block, 4);
    b.scenario.parallel.tensor = 4;
    struct vp_ledger ledger = weigh();
    expect(&ledger, 0, "key and value tensors", VP_FORMULA_W_TENSORS, 200);
}

/* ---- the whole model ---- */

static void unsharded(void **state) {
    (void)state;
    /* no padding: 1000 rows */
    uint64_t bytes = BYTES * (4 * (ATTENTION + MLP + NORMS) + 2 * 1000 * 256 + 256);
    assert_int_equal(vp_weights_unsharded(&b.model).v, bytes);
    b.model.tied = true;
    assert_int_equal(vp_weights_unsharded(&b.model).v, bytes - 1000 * 256 * BYTES);
    struct vp_extra list[] = {
        {.name = "tower", .matrix_elements = 100, .other_elements = 5, .loaded = true},
        {.name = "MTP", .matrix_elements = 9999}};
    b.model.extras = list;
    b.model.extra_count = 2;
    struct vp_block layer = dense();
    list[0].layer = &layer;
    list[0].layers = 2;
    assert_int_equal(vp_weights_unsharded(&b.model).v, bytes - 1000 * 256 * BYTES + 105 * BYTES +
                                                           2 * (ATTENTION + MLP + NORMS) * BYTES);
    list[0].layer = NULL;
    assert_int_equal(vp_weights_unsharded(&b.model).v, bytes - 1000 * 256 * BYTES + 105 * BYTES);
}

static void overflow_is_told(void **state) {
    (void)state;
    struct vp_block block = dense();
    struct vp_stage stage = vp_stage_split(4, 1, 0);
    struct vp_ledger ledger = builder_ledger(&b);
    block.mlp.intermediate = UINT64_C(1) << 56;
    builder_layer(&b, block, 4);
    vp_weights_add(&ledger, &b.scenario, &stage, 0);
    assert_true(ledger.overflow);
    assert_true(vp_weights_unsharded(&b.model).overflow);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(one_rank),
        T(tensor_ranks),
        T(biases_and_compute_type),
        T(fp32_vectors),
        T(uneven_stages),
        T(tied_head),
        T(ends_with_vectors),
        T(kinds_apart),
        T(expert_ranks),
        T(data_parallel_attention),
        T(padded_experts),
        T(padding_by_card),
        T(quantised_rows),
        T(rotary_tables),
        T(absorbed_projections),
        T(extras),
        T(vectors_of_the_ends),
        T(tensor_table),
        T(tensor_table_of_stages),
        T(tensor_table_of_experts),
        T(tensor_table_of_latents),
        T(unsharded),
        T(overflow_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
