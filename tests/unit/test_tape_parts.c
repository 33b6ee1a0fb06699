/* What experts, recurrent layers, adapters, the head and ranks keep for the backward pass;
 * selective recomputation; what must hold for all layers. */
#include "tests/unit/tape_builder.h"

#include <string.h>

/* ---- experts ---- */

static void experts(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    uint64_t attention = saved() - 4 * 2 * T * F;
    moe(VP_DTYPE_BF16, 0);
    assert_int_equal(saved(), attention + moe_kept(2, T * TOP));
    scenario.engine.rules.train.expert_sum_kept = true;
    assert_int_equal(saved(), attention + moe_kept(2, T * TOP) + 2 * T * TOP * H);
    scenario.engine.rules.train.expert_sum_kept = false;
    scenario.train.ops.expert_load_ppb = 1500000000; /* half as much again on the fullest rank */
    assert_int_equal(saved(), attention + moe_kept(2, T * TOP * 3 / 2));
    scenario.train.ops.expert_load_ppb = 0;
    block.moe.shared_intermediate = 56;
    assert_int_equal(saved(), attention + moe_kept(2, T * TOP) + 4 * 2 * T * 56);
    assert_int_equal(group_bytes(VP_TAPE_SHARED), 4 * 2 * T * 56);
    block.moe.shared_switch = true;
    assert_int_equal(saved(), attention + moe_kept(2, T * TOP) + 4 * 2 * T * 56 + 2 * T * (H + 1));
}

static void router_in_fp32(void **state) {
    (void)state;
    moe(VP_DTYPE_BF16, 0);
    uint64_t plain = saved();
    scenario.engine.rules.train.router_fp32 = true;
    /* an fp32 copy of its input in place of it, one of its matrix, fp32 weights of routed tokens */
    assert_int_equal(saved() - plain, 2 * T * H + 4 * EXPERTS * H + 2 * T * TOP);
}

/* ---- states ---- */

static void state_spaces(void **state) {
    (void)state;
    const uint64_t norm = 8 * T * H + 4 * T, inner = 48;
    recurrent(VP_LINEAR_MAMBA2);
    /* what the input projection made, the scan's output, 1/rms of its norm */
    assert_int_equal(saved(), norm + 2 * T * (inner + 112 + 4) + 2 * T * inner + 4 * T);
    block.attention.no_norm = true;
    assert_int_equal(saved(), norm + 2 * T * (inner + 112 + 4) + 2 * T * inner);
    recurrent(VP_LINEAR_MAMBA1);
    block.attention.key_heads = block.attention.value_heads = 1;
    block.attention.value_dim = inner;
    assert_int_equal(saved(), norm + 2 * T * 2 * inner + 2 * T * inner + 2 * T * (3 + 4 * 16) +
                                  4 * B * inner * 2 * 16);
    recurrent(VP_LINEAR_SHORT_CONV);
    block.attention.conv_channels = H;
    assert_int_equal(saved(), norm + 2 * T * (3 + 1 + 1 + 1) * H);
    assert_false(tape.incomplete);
}

static void linear_attention(void **state) {
    (void)state;
    const uint64_t norm = 8 * T * H + 4 * T, keys = 4 * 16, values = 48, chunk = 64;
    recurrent(VP_LINEAR_GATED_DELTA);
    uint64_t rule = 2 * T * 112 /* convolution's input */ + 2 * T * (2 * keys + values) +
                    4 * T * 2 * 4 /* lengths */ + 4 * T * 2 * 4 /* rates */ + 2 * T * 4 * chunk;
    uint64_t out = 2 * T * values * 3 + 4 * T * 4; /* gated norm: both inputs; the output */
    assert_int_equal(saved(), norm + rule + 4 * T * 2 * 4 + out);
    recurrent(VP_LINEAR_KDA); /* a decay per channel, and low-rank inputs */
    assert_int_equal(saved(),
                     norm + rule + 4 * T * 2 * keys + out + 2 * T * 2 * 12 + 2 * T * 4 * chunk);
    recurrent(VP_LINEAR_LIGHTNING);
    saved();
    assert_int_equal(group_bytes(VP_TAPE_STATE) + group_bytes(VP_TAPE_NORM),
                     norm + 2 * T * values * (3 + 3 + 1 + 1) /* qkv twice, gate, product */ +
                         T * values * 8 + 4 * T /* the norm */);
}

/* Described by its number of parameters: the input is kept, the rest is said to be unknown. */
static void unknown_mixers(void **state) {
    (void)state;
    recurrent(VP_LINEAR_GIVEN);
    block.attention.parameters = 5000;
    assert_int_equal(saved(), 8 * T * H + 4 * T);
    assert_true(tape.incomplete);
}

/* ---- adapters ---- */

/* A frozen block: norms without the normalised values, what products and activations need. */
static uint64_t frozen(uint64_t e) {
    return 2 * (4 * T * H + 4 * T) + e * T * (2 * HEADS * D + 2 * 2 * D) + 4 * T * HEADS +
           3 * e * T * F;
}

static void adapters(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    adapt(QV, 2, VP_DTYPE_BF16, false);
    assert_int_equal(saved(), frozen(2) + 2 * T * H + 2 * 2 * T * 4);
    llama(VP_DTYPE_FP32, 2, VP_IMPL_FLASH);
    adapt(ALL, 7, VP_DTYPE_FP32, false); /* o's input is the attention's output, kept anyway */
    assert_int_equal(saved(), frozen(4) + 4 * T * (2 * H + F) + 7 * 4 * T * 4);
    /* fp32 adapters on a bf16 base: each has its own converted input */
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    adapt(ALL, 7, VP_DTYPE_FP32, false);
    assert_int_equal(saved(), frozen(2) + 4 * T * (6 * H + F) + 7 * 4 * T * 4);
    /* with dropout each has a dropped copy and a mask */
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    adapt(ALL, 7, VP_DTYPE_BF16, true);
    assert_int_equal(saved(), frozen(2) + 3 * T * (6 * H + F) + 7 * 2 * T * 4);
}

/* The first layer of a frozen model: no gradient reaches its first norm, nor the masks of q and v.
 */
static void first_layer(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    adapt(QV, 2, VP_DTYPE_BF16, true);
    uint64_t other = saved();
    assert_int_equal(other - saved_first(), 4 * T * H + 4 * T + 2 * T * H);
    /* eager: keys need no gradient, so queries are not kept */
    llama(VP_DTYPE_BF16, 2, VP_IMPL_EAGER);
    adapt(QV, 2, VP_DTYPE_BF16, false);
    other = saved();
    assert_int_equal(other - saved_first(), 4 * T * H + 4 * T + 2 * T * HEADS * D);
    /* all trained: only the gradient of the input itself falls away, the norm keeps the rest */
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    other = saved();
    assert_int_equal(other - saved_first(), 4 * T * H + 4 * T);
}

/* Quantised matrices are expanded inside the product: nothing of them is kept, under autocast too.
 */
static void quantised_base(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    adapt(QV, 2, VP_DTYPE_FP32, false);
    uint64_t plain = saved();
    model.schemes[0].data = VP_DTYPE_NF4;
    assert_int_equal(saved(), plain);
    scenario.train.autocast = VP_DTYPE_BF16;
    saved();
    assert_int_equal(group_bytes(VP_TAPE_WEIGHT_COPY), 2 * 4 * (H + HEADS * D + H + 2 * D));
}

static void magnitudes(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    adapt(QV, 2, VP_DTYPE_FP32, false);
    uint64_t plain = saved();
    const uint64_t out = HEADS * D + 2 * D;
    scenario.train.lora.dora = true; /* base and adapter outputs, three vectors */
    assert_int_equal(saved() - plain, T * out * (2 + 4) + 4 * 3 * out);
    scenario.train.lora.dropout_ppb = 50000000;
    scenario.train.lora.dora = false;
    plain = saved();
    scenario.train.lora.dora = true; /* the base works again, in fp32 with a converted matrix */
    assert_int_equal(saved() - plain, T * out * (4 + 4) + 4 * 3 * out + 4 * out * H);
}

/* Parts that are frozen keep no inputs for their own sake. */
static void frozen_parts(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    uint64_t all = saved();
    scenario.train.frozen_roles[VP_ROLE_DOWN] = true;
    assert_int_equal(all - saved(), 2 * T * F);
    scenario.train.frozen_roles[VP_ROLE_GATE] = true; /* up still reads the norm's output */
    assert_int_equal(all - saved(), 2 * T * F);
    scenario.train.frozen_roles[VP_ROLE_UP] = true;
    assert_int_equal(all - saved(), 2 * T * F + 2 * T * H);
    memset(scenario.train.frozen_roles, 1, sizeof scenario.train.frozen_roles);
    assert_true(saved() > 0); /* gradients of the layers before still pass */
    assert_int_equal(saved_first(), 0);
}

/* ---- embedding, head, loss ---- */

static void embedding(void **state) {
    (void)state;
    begin(VP_DTYPE_BF16);
    vp_tape_first(&tape, &scenario);
    assert_int_equal(tape.saved_bytes, 8 * T);
    assert_int_equal(tape.output_bytes, 2 * T * H);
    model.learned_positions = 100;
    vp_tape_first(&tape, &scenario);
    assert_int_equal(tape.saved_bytes, 8 * T + 8 * S);
    scenario.train.frozen = true;
    vp_tape_first(&tape, &scenario);
    assert_int_equal(tape.saved_bytes, 0);
    scenario.train.frozen = false;
    model.embedding = false; /* activations come in: nothing is looked up */
    model.learned_positions = 0;
    vp_tape_first(&tape, &scenario);
    assert_int_equal(tape.saved_bytes, 0);
    block.attention = heads(2, false);
    block.attention.rotary_dim = D;
    vp_tape_first(&tape, &scenario);
    assert_int_equal(tape.saved_bytes, 2 * 2 * S * D);
}

static struct vp_head_tape head(void) {
    struct vp_head_tape out;
    vp_tape_last(&out, &scenario);
    assert_false(out.tape.overflow);
    return out;
}

static void loss(void **state) {
    (void)state;
    const uint64_t v = 500, rows = B * (S - 1);
    struct vp_train_ops *ops = &scenario.train.ops;
    begin(VP_DTYPE_BF16);
    ops->logits_upcast = true;
    assert_int_equal(head().tape.saved_bytes, 2 * T * H + 4 * T * v + 8 * T);
    assert_int_equal(head().logits_bytes, 2 * T * v);
    assert_int_equal(head().logits_peak_bytes, 12 * T * v + 2 * T * H);
    ops->logits_referenced = true;
    assert_int_equal(head().logits_peak_bytes, 14 * T * v + 2 * T * H);
    ops->logits_upcast = false;
    assert_int_equal(head().tape.saved_bytes, 2 * T * H + 2 * T * v + 8 * T);
    assert_int_equal(head().logits_peak_bytes, 8 * T * v + 2 * T * H);
    /* older transformers: fp32 logits in the model, copies without each sequence's last token */
    ops->logits_upcast = true;
    scenario.engine.rules.train.loss_shifted = scenario.engine.rules.train.logits_float = true;
    assert_int_equal(head().tape.saved_bytes, 2 * T * H + 4 * rows * v + 8 * rows);
    assert_int_equal(head().logits_peak_bytes, 4 * T * v + 12 * rows * v + 2 * T * H);
    ops->logits_referenced = false; /* then the forward pass is the larger one */
    assert_int_equal(head().logits_peak_bytes, 4 * T * v + 8 * rows * v + 8 * rows + 2 * T * H);
    begin(VP_DTYPE_FP32);
    assert_int_equal(head().logits_peak_bytes, 12 * T * v + 4 * T * H);
    model.final_norm = true;
    model.final_norm_kind = VP_NORM_RMS;
    assert_int_equal(head().tape.saved_bytes, 12 * T * H + 4 * T + 4 * T * v + 8 * T);
    model.lm_head = false;
    assert_int_equal(head().logits_peak_bytes, 0);
}

static void losses_in_parts(void **state) {
    (void)state;
    const uint64_t v = 500;
    begin(VP_DTYPE_BF16);
    scenario.train.ops.logits_upcast = true;
    scenario.train.ops.loss = VP_LOSS_CHUNKED;
    scenario.engine.rules.train.loss_chunks = 8;
    assert_int_equal(head().tape.saved_bytes, 2 * T * H + 4 * T * v + 8 * T);
    /* forward: logits, log-probabilities, one chunk converted */
    assert_int_equal(head().logits_peak_bytes, 6 * T * v + 4 * T * v / 8 + 8 * T + 2 * T * H);
    /* head and loss together: 8 chunks of 6 rows, rounded up to 8; gradients made at once */
    scenario.train.ops.loss = VP_LOSS_FUSED_LINEAR;
    assert_int_equal(head().logits_bytes, 2 * 8 * v);
    assert_int_equal(head().tape.saved_bytes, 2 * T * H + 2 * v * H);
    scenario.train.frozen = true;
    assert_int_equal(head().tape.saved_bytes, 2 * T * H);
    scenario.train.frozen = false;
    scenario.train.ops.loss = VP_LOSS_UNFUSED;
    scenario.parallel.tensor = 2; /* a divided vocabulary */
    assert_int_equal(head().tape.saved_bytes, 2 * T * H + 4 * T * v / 2 + 8 * T);
}

/* A tied head is the embedding's matrix: under autocast it is converted all the same. */
static void tied_head(void **state) {
    (void)state;
    begin(VP_DTYPE_FP32);
    scenario.train.autocast = VP_DTYPE_BF16;
    uint64_t own = head().tape.saved_bytes;
    model.tied = true;
    assert_int_equal(head().tape.saved_bytes, own);
    assert_int_equal(own, 2 * T * H + 2 * 500 * H + 4 * T * 500 + 8 * T);
    scenario.train.frozen_roles[VP_ROLE_EMBEDDING] = true;
    assert_int_equal(own - head().tape.saved_bytes, 2 * T * H);
}

/* ---- ranks ---- */

static void tensor_parallel(void **state) {
    (void)state;
    for (uint64_t t = 2; t <= 8; t *= 2) {
        gpt2(VP_DTYPE_BF16, true);
        scenario.parallel.tensor = t;
        assert_int_equal(saved(), 10 * T * H + 24 * T * H / t + 5 * SCORES / t + 16 * T);
        scenario.parallel.sequence = true;
        assert_int_equal(saved(), (34 * T * H + 5 * SCORES + 16 * T) / t);
        assert_int_equal(tape.input_bytes, 2 * T * H / t);
        assert_int_equal(tape.output_bytes, 2 * T * H / t);
    }
}

/* Without a Megatron the gathered tokens are what matrices keep. */
static void gathered_tokens(void **state) {
    (void)state;
    gpt2(VP_DTYPE_BF16, false);
    scenario.parallel.tensor = 2;
    scenario.parallel.sequence = true;
    uint64_t divided = saved();
    scenario.engine.rules.train.gathered_kept = true;
    assert_int_equal(saved() - divided, 2 * 2 * T * H / 2);
}

static void context_parallel(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    uint64_t whole = saved();
    scenario.parallel.context = 4;
    assert_int_equal(saved(), whole / 4);
    assert_int_equal(vp_tape_tokens(&scenario), T / 4);
    scenario.train.sequence = 26; /* the fullest of four has 7 */
    assert_int_equal(vp_tape_tokens(&scenario), 2 * 7);
}

/* ---- selective recomputation ---- */

static uint64_t selected(uint32_t set) {
    saved();
    return vp_tape_selected(&tape, set);
}

static void selective(void **state) {
    (void)state;
    gpt2(VP_DTYPE_BF16, true);
    assert_int_equal(selected(0), 0);
    assert_int_equal(selected(VP_SELECT_CORE_ATTENTION), 5 * SCORES); /* sbh 34 is left */
    assert_int_equal(selected(VP_SELECT_MLP), 2 * 2 * T * 4 * H);
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    assert_int_equal(selected(VP_SELECT_CORE_ATTENTION), 4 * T * HEADS);
    assert_int_equal(selected(VP_SELECT_MLP), 4 * 2 * T * F);
    /* both norms: all of the 8 bytes, the stream's two tensors are kept instead */
    assert_int_equal(selected(VP_SELECT_NORM), 2 * (8 * T * H + 4 * T) - 2 * 2 * T * H);
    scenario.train.ops.fused_norm = true; /* the stream is kept anyway: the outputs */
    assert_int_equal(selected(VP_SELECT_NORM), 2 * (2 * T * H + 4 * T));
    /* eager attention over few heads: written-out keys and values go, the narrow ones stay */
    llama(VP_DTYPE_BF16, 2, VP_IMPL_EAGER);
    assert_int_equal(selected(VP_SELECT_CORE_ATTENTION),
                     6 * SCORES + 2 * 2 * T * HEADS * D - 2 * 2 * T * 2 * D);
}

static void selective_parts(void **state) {
    (void)state;
    mla(VP_DTYPE_BF16, VP_IMPL_FLASH);
    /* queries, keys, values and the norm of the latent; both latents are there instead */
    uint64_t up = 2 * T * (2 * HEADS * (NOPE + ROPE) + HEADS * (NOPE + VD)) + 8 * T * KL + 4 * T;
    assert_int_equal(selected(VP_SELECT_MLA_UP), up - 2 * T * (KL + ROPE));
    moe(VP_DTYPE_BF16, 56);
    /* of routed experts only */
    assert_int_equal(selected(VP_SELECT_MOE_ACTIVATION), 2 * 2 * T * TOP * FE);
    assert_int_equal(selected(VP_SELECT_SHARED_EXPERTS), 4 * 2 * T * 56);
    assert_int_equal(selected(VP_SELECT_MOE), moe_kept(2, T * TOP) + 4 * 2 * T * 56);
    assert_int_equal(selected(VP_SELECT_MOE | VP_SELECT_MOE_ACTIVATION), selected(VP_SELECT_MOE));
}

/* ---- properties ---- */

static void each_layer(void (*check)(void)) {
    for (int attention = VP_IMPL_EAGER; attention <= VP_IMPL_FLASH; attention++) {
        gpt2(VP_DTYPE_BF16, true);
        scenario.train.ops.attention = (enum vp_attention_impl)attention;
        check();
        llama(VP_DTYPE_FP32, 2, (enum vp_attention_impl)attention);
        check();
        scenario.train.autocast = VP_DTYPE_BF16;
        check();
        llama(VP_DTYPE_BF16, 1, (enum vp_attention_impl)attention);
        adapt(ALL, 7, VP_DTYPE_FP32, true);
        check();
        mla(VP_DTYPE_BF16, (enum vp_attention_impl)attention);
        check();
    }
    moe(VP_DTYPE_BF16, 56);
    check();
    for (int kind = VP_LINEAR_GIVEN; kind <= VP_LINEAR_LIGHTNING; kind++) {
        recurrent((enum vp_linear_kind)kind);
        check();
    }
}

static void more_tokens_cost_more(void) {
    uint64_t last = 0;
    for (scenario.train.sequence = 1; scenario.train.sequence < 70; scenario.train.sequence += 7) {
        uint64_t now = saved();
        assert_true(now > last);
        last = now;
    }
    scenario.train.sequence = S;
    last = saved();
    scenario.train.micro_batch = B + 1;
    assert_true(saved() > last);
    scenario.train.micro_batch = B;
}

static void ranks_add_up(void) {
    /* one KV head of a rank is written out to its query heads without a copy, several are not */
    bool view = scenario.train.ops.attention == VP_IMPL_SDPA && block.attention.kv_heads < HEADS;

    for (int sequence = 0; sequence < 2; sequence++) {
        uint64_t whole = saved();
        for (uint64_t t = 2; t <= 16; t *= 2) {
            scenario.parallel.tensor = t;
            scenario.parallel.sequence = sequence;
            uint64_t part = saved();
            assert_true(part <= whole);
            assert_true(view || part * t >= whole);
        }
        scenario.parallel.tensor = 1;
        scenario.parallel.sequence = false;
    }
}

static void selection_is_part(void) {
    for (uint32_t set = 0; set < 128; set++)
        assert_true(selected(set) <= tape.saved_bytes);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < tape.count; i++)
        sum += tape.item[i].bytes;
    assert_int_equal(sum, tape.saved_bytes);
    assert_true(tape.backward_temp_bytes >= tape.output_bytes);
    assert_true(saved_first() <= saved());
}

static void properties(void **state) {
    (void)state;
    each_layer(more_tokens_cost_more);
    each_layer(ranks_add_up);
    each_layer(selection_is_part);
}

static void overflow_is_told(void **state) {
    (void)state;
    llama(VP_DTYPE_BF16, 2, VP_IMPL_EAGER);
    scenario.train.sequence = UINT64_C(1) << 40;
    vp_tape_block(&tape, &scenario, &block, false);
    assert_true(tape.overflow);
    scenario.train.micro_batch = UINT64_C(1) << 40;
    assert_true(vp_tape_tokens(&scenario) == UINT64_MAX);
    vp_tape_block(&tape, &scenario, &block, false);
    assert_true(tape.overflow);
    struct vp_head_tape out;
    vp_tape_last(&out, &scenario);
    assert_true(out.tape.overflow);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts),          cmocka_unit_test(router_in_fp32),
        cmocka_unit_test(state_spaces),     cmocka_unit_test(linear_attention),
        cmocka_unit_test(unknown_mixers),   cmocka_unit_test(adapters),
        cmocka_unit_test(first_layer),      cmocka_unit_test(quantised_base),
        cmocka_unit_test(magnitudes),       cmocka_unit_test(frozen_parts),
        cmocka_unit_test(embedding),        cmocka_unit_test(loss),
        cmocka_unit_test(losses_in_parts),  cmocka_unit_test(tied_head),
        cmocka_unit_test(tensor_parallel),  cmocka_unit_test(gathered_tokens),
        cmocka_unit_test(context_parallel), cmocka_unit_test(selective),
        cmocka_unit_test(selective_parts),  cmocka_unit_test(properties),
        cmocka_unit_test(overflow_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
