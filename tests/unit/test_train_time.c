/* How long a training step takes: relations between steps that hold whatever the card's rates. */
#include <math.h>
#include <string.h>

#include "planner/plan/train_latency.h"
#include "tests/unit/model_builder.h"

static const char MODEL[] =
    "model: {model_type: llama, hidden_size: 4096, num_hidden_layers: 16, num_attention_heads: 32, "
    "num_key_value_heads: 8, intermediate_size: 14336, vocab_size: 32000, "
    "tie_word_embeddings: false}\n";
static const char MOE[] =
    "model: {model_type: qwen3_moe, hidden_size: 2048, num_hidden_layers: 4, num_attention_heads: "
    "32, num_key_value_heads: 4, head_dim: 128, moe_intermediate_size: 768, intermediate_size: "
    "6144, num_experts: 64, num_experts_per_tok: 8, decoder_sparse_step: 1, norm_topk_prob: true, "
    "vocab_size: 32000, tie_word_embeddings: false}\n";

static const struct vp_latency *latency_of(struct fixture *f, const char *model, const char *rest) {
    return &plan_yaml(f, vp_arena_printf(&f->arena, "%s%s", model, rest))->latency;
}

/* A Megatron step on `count` B200. */
static const struct vp_latency *megatron(struct fixture *f, const char *parallel, const char *args,
                                         const char *train) {
    return latency_of(
        f, MODEL,
        vp_arena_printf(&f->arena,
                        "hardware: {gpu: b200, count: 8}\n"
                        "engine: {name: megatron, version: \"0.14\", args: {bf16: true, "
                        "use_distributed_optimizer: true%s}}\n"
                        "parallel: {%s}\n"
                        "train: {micro_batch: 1, sequence_length: 4096, optimizer: adamw, ops: "
                        "{attention: flash}%s}\n",
                        args, parallel, train));
}

/* A PyTorch step on one card. */
static const struct vp_latency *torch_step(struct fixture *f, const char *gpu, const char *train) {
    return latency_of(f, MODEL,
                      vp_arena_printf(&f->arena,
                                      "hardware: {gpu: %s, count: 1}\n"
                                      "engine: {name: pytorch, version: \"2.9\"}\n"
                                      "train: {micro_batch: 1, sequence_length: 4096, optimizer: "
                                      "adamw, ops: {attention: flash}%s}\n",
                                      gpu, train));
}

static void assert_close(double a, double b, double apart) {
    if (!(fabs(a - b) <= apart))
        fail_msg("%g is not %g", a, b);
}

static double likely(const struct vp_latency *latency) {
    assert_true(latency->step_ms.basis >= VP_BASIS_CLASS);
    return latency->step_ms.likely;
}

/* Milliseconds; 0: there is no such part. */
static double part(const struct vp_latency *latency, const char *name) {
    for (uint32_t i = 0; i < latency->parts; i++)
        if (strcmp(latency->part[i].name, name) == 0)
            return latency->part[i].time.likely / 1e3;
    return 0;
}

static void holds_together(const struct vp_latency *latency) {
    struct vp_estimate sum = {0};

    assert_true(latency->step_ms.low <= latency->step_ms.likely);
    assert_true(latency->step_ms.likely <= latency->step_ms.high);
    assert_non_null(latency->why);
    for (uint32_t i = 0; i < latency->parts; i++) {
        const struct vp_time *time = &latency->part[i].time;
        assert_true(0 <= time->low && time->low <= time->likely && time->likely <= time->high);
        sum.low += time->low / 1e3;
        sum.likely += time->likely / 1e3;
        sum.high += time->high / 1e3;
    }
    assert_close(sum.low, latency->step_ms.low, 1e-6 * sum.low);
    assert_close(sum.likely, latency->step_ms.likely, 1e-6 * sum.likely);
    assert_close(sum.high, latency->step_ms.high, 1e-6 * sum.high);
}

/* ---- tests ---- */

static void parts_are_the_step(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    holds_together(torch_step(&f, "mi300x", ", recompute: full"));
    holds_together(torch_step(&f, "a100-80-sxm", ", lora: {rank: 16, targets: all-linear}"));
    holds_together(torch_step(&f, "mi210",
                              ", offload: {optimizer: true, activations: true}, "
                              "recompute: full"));
    holds_together(megatron(&f, "tensor: 2, pipeline: 4, sequence: true", "",
                            ", global_batch: 16, recompute: selective"));
    holds_together(megatron(&f, "context_parallel: 4, tensor: 2", "", ", global_batch: 4"));
    holds_together(latency_of(
        &f, MOE,
        "hardware: {gpu: h100-sxm, count: 16, nodes: 2}\n"
        "engine: {name: megatron, version: \"0.14\", args: {bf16: true, fp8_format: hybrid}}\n"
        "parallel: {expert: 8, tensor: 2, sequence: true, data: 8}\n"
        "train: {micro_batch: 1, global_batch: 16, sequence_length: 4096}\n"));
    fixture_end(&f);
}

static void more_micro_batches(void **state) {
    (void)state;
    struct fixture f;
    double before = 0;
    fixture_begin(&f);
    for (int n = 1; n <= 16; n *= 2) {
        double now = likely(torch_step(
            &f, "h100-sxm", vp_arena_printf(&f.arena, ", gradient_accumulation: %d", n)));
        assert_true(now > before);
        if (before > 0) /* what is done once a step is not done twice */
            assert_true(now < 2 * before);
        before = now;
    }
    fixture_end(&f);
}

static void recomputed(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_latency *none = torch_step(&f, "h100-sxm", ", recompute: none");
    const struct vp_latency *full = torch_step(&f, "h100-sxm", ", recompute: full");
    const struct vp_latency *half = torch_step(&f, "h100-sxm", ", recompute: {first: 8}");
    const struct vp_latency *parts = torch_step(&f, "h100-sxm", ", recompute: selective");
    assert_true(part(none, "recomputation") <= 0);
    /* published: 18 to 39 % */
    assert_true(likely(full) / likely(none) > 1.18 && likely(full) / likely(none) < 1.39);
    assert_close(part(half, "recomputation"), part(full, "recomputation") / 2, 1e-6);
    assert_true(likely(parts) > likely(none) && likely(parts) < likely(full));
    fixture_end(&f);
}

/* Behind frozen weights a product of three is not computed. */
static void frozen(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_latency *all = torch_step(&f, "h100-sxm", "");
    const struct vp_latency *lora =
        torch_step(&f, "h100-sxm", ", lora: {rank: 8, targets: [q_proj]}");
    double ratio = part(lora, "linear layers") / part(all, "linear layers");
    assert_true(ratio > 0.6 && ratio < 0.75);
    assert_true(part(lora, "optimizer") < part(all, "optimizer") / 50);
    fixture_end(&f);
}

static void tensor_parallel(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_latency *one = megatron(&f, "tensor: 1", "", ", global_batch: 8");
    const struct vp_latency *four =
        megatron(&f, "tensor: 4, sequence: true", "", ", global_batch: 2");
    const struct vp_latency *hidden =
        megatron(&f, "tensor: 4, sequence: true", ", tp_comm_overlap: true", ", global_batch: 2");
    assert_true(part(one, "tensor parallel") <= 0);
    assert_true(part(four, "linear layers") >= part(one, "linear layers") / 4);
    assert_true(likely(four) < likely(one) && likely(four) > likely(one) / 4);
    assert_true(part(hidden, "tensor parallel") < part(four, "tensor parallel") / 2);
    fixture_end(&f);
}

static void pipeline(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_latency *few = megatron(&f, "pipeline: 4", "", ", global_batch: 8");
    const struct vp_latency *many = megatron(&f, "pipeline: 4", "", ", global_batch: 64");
    const struct vp_latency *chunks =
        megatron(&f, "pipeline: 4, virtual_pipeline: 2", "", ", global_batch: 64");
    /* the others' share of one micro batch, however many there are */
    assert_close(part(few, "pipeline bubble"), part(many, "pipeline bubble"), 1e-6);
    assert_true(part(few, "pipeline bubble") > likely(few) * 0.3);
    assert_true(part(chunks, "pipeline bubble") < part(many, "pipeline bubble") * 0.6);
    fixture_end(&f);
}

static void gradients(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_latency *behind = megatron(&f, "data: 8", "", ", global_batch: 8");
    const struct vp_latency *beside =
        megatron(&f, "data: 8", ", overlap_grad_reduce: true, overlap_param_gather: true",
                 ", global_batch: 8");
    const struct vp_latency *alone = torch_step(&f, "b200", "");
    assert_true(part(beside, "gradient reduction") < part(behind, "gradient reduction") / 2);
    assert_true(part(beside, "gathered weights") < part(behind, "gathered weights") / 2);
    assert_true(part(alone, "gradient reduction") <= 0 && part(alone, "gathered weights") <= 0);
    fixture_end(&f);
}

/* A group that spans nodes uses all their ports; with one member in each it has one. */
static void across_nodes(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    static const char TRAIN[] = "train: {micro_batch: 1, sequence_length: 4096}\n";
    double step[3];
    static const char *const HARDWARE[] = {
        "hardware: {gpu: h100-sxm, count: 8, nodes: 1}\n",
        "hardware: {gpu: h100-sxm, count: 16, nodes: 2, internode_gbs: 50}\n",
        "hardware: {gpu: h100-sxm, count: 16, nodes: 2, internode_gbs: 5}\n"};
    for (int i = 0; i < 3; i++)
        step[i] = part(latency_of(&f, MODEL,
                                  vp_arena_printf(&f.arena,
                                                  "%sengine: {name: pytorch, version: \"2.9\"}\n"
                                                  "parallel: {fsdp: true}\n%s",
                                                  HARDWARE[i], TRAIN)),
                       "gathered weights");
    assert_true(step[0] > 0 && step[1] < 2 * step[0] && step[2] > 3 * step[1]);
    fixture_end(&f);
}

/* FP8 halves the time of products where the card has units for it, and nothing where it does not.
 */
static void fp8(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    static const char *const CARDS[] = {"h100-sxm", "mi300x", "mi250x-gcd"};
    for (int i = 0; i < 3; i++) {
        double linear[2];
        for (int k = 0; k < 2; k++)
            linear[k] =
                part(latency_of(&f, MODEL,
                                vp_arena_printf(&f.arena,
                                                "hardware: {gpu: %s, count: 1}\n"
                                                "engine: {name: megatron, version: \"0.14\", args: "
                                                "{bf16: true%s}}\n"
                                                "train: {micro_batch: 1, sequence_length: 4096}\n",
                                                CARDS[i], k == 1 ? ", fp8_format: hybrid" : "")),
                     "linear layers");
        if (i < 2)
            assert_true(linear[1] < linear[0] * 0.75 && linear[1] > linear[0] * 0.4);
        else
            assert_close(linear[1], linear[0], 1e-6 * linear[0]);
    }
    fixture_end(&f);
}

/* The host counts each expert's tokens before it starts the products: what it takes shows. */
static void experts(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    static const char REST[] = "hardware: {gpu: b200, count: 8}\n"
                               "engine: {name: megatron, version: \"0.14\", args: {bf16: true}}\n"
                               "parallel: {expert: 8, data: 8}\n"
                               "train: {micro_batch: 1, global_batch: 8, sequence_length: 4096}\n";
    const struct vp_latency *sparse = latency_of(&f, MOE, REST);
    double host = part(sparse, "host and gaps") / likely(sparse);
    assert_true(part(sparse, "experts") > 0 && part(sparse, "expert parallel") > 0);
    assert_true(host > 0.1 && host < 0.6);
    fixture_end(&f);
}

static void unknown_card(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_latency *latency = latency_of(
        &f, MODEL,
        "hardware: {gpu: {name: new, vendor: amd, memory_gb: 64}, count: 1, memory: 64 GiB}\n"
        "engine: {name: pytorch, version: \"2.9\"}\n"
        "train: {micro_batch: 1, sequence_length: 4096}\n");
    assert_int_equal(latency->step_ms.basis, VP_BASIS_NONE);
    assert_int_equal(latency->parts, 0);
    assert_non_null(latency->why);
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_step),
        cmocka_unit_test(more_micro_batches),
        cmocka_unit_test(recomputed),
        cmocka_unit_test(frozen),
        cmocka_unit_test(tensor_parallel),
        cmocka_unit_test(pipeline),
        cmocka_unit_test(gradients),
        cmocka_unit_test(across_nodes),
        cmocka_unit_test(fp8),
        cmocka_unit_test(experts),
        cmocka_unit_test(unknown_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
