/* What dense layers keep for their backward pass, against closed forms: norms, attention, feed-
 * forwards, in the types and versions that differ. */
#include "tests/unit/tape_builder.h"

/* ---- GPT-2 ---- */

/* Korthikanti et al. 2022: sbh (34 + 5 a s / h), and 16 bytes a token of norm statistics. */
static void korthikanti(void **state) {
    (void)state;
    gpt2(VP_DTYPE_BF16, true);
    assert_int_equal(saved(), 34 * T * H + 5 * SCORES + 16 * T);
    gpt2(VP_DTYPE_BF16, false);
    assert_int_equal(saved(), 32 * T * H + 2 * SCORES + 16 * T);
    gpt2(VP_DTYPE_FP32, true);
    assert_int_equal(saved(), 66 * T * H + 9 * SCORES + 16 * T);
    assert_true(tape.input_on_tape);
    assert_int_equal(tape.input_bytes, 4 * T * H);
    assert_int_equal(tape.output_bytes, 4 * T * H);
}

static void gelu_in_python(void **state) {
    (void)state;
    gpt2(VP_DTYPE_BF16, true);
    scenario.train.ops.gelu = VP_GELU_NEW;
    assert_int_equal(saved(), 58 * T * H + 5 * SCORES + 16 * T);
    scenario.train.ops.gelu = VP_GELU_TANH;
    assert_int_equal(saved(), 34 * T * H + 5 * SCORES + 16 * T);
}

/* fp32 weights under autocast: norms in fp32, one converted input for q, k and v, and a converted
 * copy of each matrix. */
static void autocast_of_gpt2(void **state) {
    (void)state;
    const uint64_t matrices = 4 * H * H + 8 * H * H, w = 4 * H;
    gpt2(VP_DTYPE_FP32, true);
    scenario.train.autocast = VP_DTYPE_BF16;
    assert_int_equal(saved(), 8 * T * H + 16 * T + 12 * T * H + 4 * T * w + 6 * SCORES + SCORES +
                                  2 * T * H + 2 * matrices);
    assert_int_equal(group_bytes(VP_TAPE_WEIGHT_COPY), 2 * matrices);
}

/* An activation whose result is its own derivative's input is kept once, by the next matrix. */
static void relu_keeps_its_result(void **state) {
    (void)state;
    gpt2(VP_DTYPE_BF16, false);
    uint64_t gelu = saved();
    model.activation = VP_ACTIVATION_RELU;
    assert_int_equal(gelu - saved(), 2 * T * 4 * H);
    model.activation = VP_ACTIVATION_RELU2;
    assert_int_equal(saved(), gelu);
}

/* ---- Llama ---- */

static void llama_rows(void **state) {
    (void)state;
    const struct {
        enum vp_dtype dtype;
        uint64_t kv;
        enum vp_attention_impl attention;
        uint64_t kept_kv; /* elements of a key or value that are kept per token */
    } rows[] = {
        {VP_DTYPE_FP32, 8, VP_IMPL_EAGER, HEADS * D}, {VP_DTYPE_FP32, 2, VP_IMPL_EAGER, HEADS * D},
        {VP_DTYPE_FP32, 1, VP_IMPL_EAGER, HEADS * D}, {VP_DTYPE_FP32, 2, VP_IMPL_SDPA, HEADS * D},
        {VP_DTYPE_FP32, 1, VP_IMPL_SDPA, D},          {VP_DTYPE_FP32, 2, VP_IMPL_FLASH, 2 * D},
        {VP_DTYPE_BF16, 2, VP_IMPL_EAGER, HEADS * D}, {VP_DTYPE_BF16, 2, VP_IMPL_SDPA, HEADS * D},
        {VP_DTYPE_BF16, 1, VP_IMPL_SDPA, D},          {VP_DTYPE_BF16, 2, VP_IMPL_FLASH, 2 * D},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int fused = 0; fused < 2; fused++) {
            uint64_t e = rows[i].dtype == VP_DTYPE_FP32 ? 4 : 2;
            llama(rows[i].dtype, rows[i].kv, rows[i].attention);
            scenario.train.ops.fused_norm = scenario.train.ops.fused_mlp = fused;
            uint64_t attention = e * T * (HEADS * D + 2 * rows[i].kept_kv) + e * T * HEADS * D;
            uint64_t core = rows[i].attention != VP_IMPL_EAGER ? 4 * T * HEADS
                            : e == 2                           ? 6 * SCORES
                                                               : 4 * SCORES;
            assert_int_equal(saved(), llama_norms(e, fused) + attention + core +
                                          (fused ? 3 : 4) * e * T * F);
        }
}

/* bf16 bytes per token of published models, fused attention over their own KV heads. */
static void published_models(void **state) {
    (void)state;
    const struct {
        uint64_t h, heads, kv, f, unfused, fused;
    } rows[] = {{4096, 32, 32, 11008, 186504, 131720},
                {4096, 32, 8, 14336, 200840, 139400},
                {8192, 64, 8, 28672, 397576, 274696},
                {16384, 128, 8, 53248, 758280, 520712}};
    for (size_t i = 0; i < 4; i++)
        for (int fused = 0; fused < 2; fused++) {
            llama(VP_DTYPE_BF16, rows[i].kv, VP_IMPL_FLASH);
            model.hidden = rows[i].h;
            block.attention.heads = rows[i].heads;
            block.attention.head_dim = block.attention.v_head_dim = 128;
            block.mlp.intermediate = rows[i].f;
            scenario.train.ops.fused_norm = scenario.train.ops.fused_mlp = fused;
            assert_int_equal(saved(), T * (fused ? rows[i].fused : rows[i].unfused));
        }
}

/* An fp32 stream under autocast: five matrices convert the norms' outputs each for itself. */
static void autocast_of_llama(void **state) {
    (void)state;
    const uint64_t ad = HEADS * D;
    for (uint64_t kv = 1; kv <= 2; kv++) {
        const uint64_t matrices = 2 * H * ad + 2 * H * kv * D + 3 * H * F;
        llama(VP_DTYPE_FP32, kv, VP_IMPL_FLASH);
        scenario.train.autocast = VP_DTYPE_BF16;
        uint64_t common = 2 * (8 * T * H + 4 * T) + 10 * T * H + 8 * T * F + 2 * matrices;
        assert_int_equal(saved(), common + 2 * T * (2 * ad + 2 * kv * D) + 4 * T * HEADS);
        /* rotated keys are fp32: even those of one head are written out when they are converted */
        scenario.train.ops.attention = VP_IMPL_SDPA;
        scenario.train.ops.repeat_kv = true;
        assert_int_equal(saved(),
                         common + 2 * T * (2 * ad + ad + (kv == 1 ? D : ad)) + 4 * T * HEADS);
        scenario.train.ops.attention = VP_IMPL_EAGER;
        assert_int_equal(saved(), common + 2 * T * 4 * ad + 6 * SCORES);
    }
}

/* What versions do differently. */
static void rules_of_versions(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_EAGER);
    uint64_t plain = saved();
    scenario.engine.rules.train.mean_keeps_input = true;
    assert_int_equal(saved() - plain, 2 * 4 * T * H);
    scenario.engine.rules.train.mean_keeps_input = false;
    scenario.engine.rules.train.scores_kept = true;
    assert_int_equal(saved() - plain, 2 * SCORES);
    scenario.engine.rules.train.scores_kept = false;
    scenario.engine.rules.train.norm_product_fp32 = true; /* x_hat in fp32 */
    assert_int_equal(saved() - plain, 2 * 2 * T * H);
    scenario.engine.rules.train.norm_product_fp32 = false;
    scenario.engine.rules.train.norm_extra = 1;
    assert_int_equal(saved() - plain, 2 * 4 * T * H);
    scenario.engine.rules.train.norm_extra = 0;
    scenario.engine.rules.train.scores_capped = true;
    assert_int_equal(saved() - plain, 2 * SCORES);
}

/* FSDP with a 16-bit compute type is not autocast: everything has that type. */
static void fsdp_mixed_precision(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    uint64_t plain = saved();
    scenario.train.parameters = VP_DTYPE_FP32;
    scenario.parallel.fsdp = true;
    assert_int_equal(saved(), plain);
}

static void query_and_key_norms(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    uint64_t plain = saved();
    block.attention.qk_norm = VP_QK_NORM_HEAD;
    /* an fp32 copy, 1/rms per head and the normalised value; the output replaces q and k */
    assert_int_equal(saved() - plain, T * (HEADS + 2) * (6 * D + 4));
    block.attention.qk_norm = VP_QK_NORM_FULL;
    assert_int_equal(saved() - plain, T * ((HEADS + 2) * 6 * D + 2 * 4));
}

/* A norm before and one behind each half (Gemma 2); one for both halves (GPT-J); none. */
static void numbers_of_norms(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    uint64_t plain = saved();
    block.norms = 4; /* the second of a half has an output that nothing keeps */
    assert_int_equal(saved() - plain, 2 * (6 * T * H + 4 * T));
    block.norms = 1;
    assert_int_equal(plain - saved(), 8 * T * H + 4 * T);
    block.norms = 0;
    assert_int_equal(plain - saved(), 2 * (8 * T * H + 4 * T) - 2 * 2 * T * H);
    assert_true(tape.input_on_tape); /* matrices read the stream itself */
}

/* One matrix for q, k and v whose rotated parts are copies: values are read in place and keep it
 * all, unless they are copied too. */
static void values_keep_their_matrix(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, HEADS, VP_IMPL_FLASH);
    uint64_t plain = saved();
    scenario.engine.rules.train.joint_qkv = true;
    assert_int_equal(saved() - plain, 2 * 2 * T * HEADS * D);
    scenario.engine.rules.train.values_copied = true;
    assert_int_equal(saved(), plain);
}

/* A window does not make eager scores smaller, and fused kernels keep none. */
static void windows(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_EAGER);
    uint64_t plain = saved();
    block.attention.window = 8;
    assert_int_equal(saved(), plain);
    block.attention.bidirectional = true; /* of an encoder: the same tensors */
    assert_int_equal(saved(), plain);
}

static void attention_sinks(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_EAGER);
    block.attention.sinks = true;
    saved();
    assert_int_equal(item_bytes("probabilities with sinks"), 2 * T * HEADS * (S + 1));
    assert_int_equal(item_bytes("softmax output"), 0);
}

static void gated_output(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    uint64_t plain = saved();
    block.attention.output_gate = true;
    /* the sigmoid's result and the product beside the output itself */
    assert_int_equal(saved() - plain, 2 * 2 * T * HEADS * D);
}

/* Keys and values of a longer source; the source itself is another layer's output. */
static void cross_attention(void **state) {
    (void)state;
    const uint64_t source = 40;
    llama(VP_DTYPE_BF16, HEADS, VP_IMPL_FLASH);
    block.norms = 3;
    uint64_t two = 2 * T * H * 6 + 8 * T; /* of two norms, without the outputs */
    saved();
    uint64_t self = item_bytes("queries") + item_bytes("keys") + item_bytes("values");
    assert_int_equal(self, 3 * 2 * T * HEADS * D);
    block.second = block.attention;
    block.second.source_tokens = source;
    saved();
    assert_int_equal(item_bytes("keys"), 2 * (T + T) * HEADS * D); /* text: no longer than ours */
    scenario.engine.rules.train.source_fixed = true;
    saved();
    assert_int_equal(item_bytes("keys"), 2 * (T + B * source) * HEADS * D);
    assert_int_equal(item_bytes("queries"), 2 * 2 * T * HEADS * D);
    assert_true(group_bytes(VP_TAPE_NORM) > two);
    assert_int_equal(item_bytes("encoder output"), 0);
    vp_tape_first(&tape, &scenario);
    assert_int_equal(item_bytes("encoder output"), 2 * B * source * H);
}

/* ---- latent attention ---- */

static void latent_attention(void **state) {
    (void)state;
    const uint64_t key = HEADS * (NOPE + ROPE), value = HEADS * VD;
    mla(VP_DTYPE_BF16, VP_IMPL_FLASH);
    uint64_t norms = llama_norms(2, false) + T * (QL + KL) * 8 + 8 * T;
    uint64_t feed = 4 * 2 * T * F;
    /* values are a part of what kv_b made, which is kept whole */
    assert_int_equal(saved(), norms + feed + 2 * T * (2 * key + HEADS * (NOPE + VD) + value) +
                                  4 * T * HEADS);
    mla(VP_DTYPE_BF16, VP_IMPL_EAGER);
    assert_int_equal(saved(), norms + feed + 2 * T * (2 * key + 2 * value) + 6 * SCORES);
    /* an fp32 norm of a part of the latent keeps all of it */
    mla(VP_DTYPE_FP32, VP_IMPL_EAGER);
    norms = llama_norms(4, false) + T * (QL * 12 + (KL + ROPE) * 4 + KL * 8) + 8 * T;
    assert_int_equal(saved(), norms + 2 * feed + 4 * T * (2 * key + 2 * value) + 4 * SCORES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(korthikanti),
        cmocka_unit_test(gelu_in_python),
        cmocka_unit_test(autocast_of_gpt2),
        cmocka_unit_test(relu_keeps_its_result),
        cmocka_unit_test(llama_rows),
        cmocka_unit_test(published_models),
        cmocka_unit_test(autocast_of_llama),
        cmocka_unit_test(rules_of_versions),
        cmocka_unit_test(fsdp_mixed_precision),
        cmocka_unit_test(query_and_key_norms),
        cmocka_unit_test(numbers_of_norms),
        cmocka_unit_test(values_keep_their_matrix),
        cmocka_unit_test(windows),
        cmocka_unit_test(attention_sinks),
        cmocka_unit_test(gated_output),
        cmocka_unit_test(cross_attention),
        cmocka_unit_test(latent_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
