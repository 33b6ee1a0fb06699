/* A training plan as it is told: causes, reason, rule of thumb, suggestions, JSON. */
#include <string.h>

#include "planner/doc/json.h"
#include "reports/report.h"
#include "tests/unit/model_builder.h"

static const char LLAMA[] =
    "model: {model_type: llama, hidden_size: 1024, num_hidden_layers: 8, num_attention_heads: 16, "
    "num_key_value_heads: 16, intermediate_size: 2816, vocab_size: 32000, "
    "tie_word_embeddings: false}\n"
    "train: {micro_batch: 4, sequence_length: 1024, optimizer: adamw, "
    "optimizer_implementation: foreach, ops: {attention: eager}}\n";

/* 2 x 32000 x 1024 of embedding and head, 8 layers of 4 x 1024 x 1024 and 3 x 1024 x 2816 and two
 * norms, a final norm */
static const uint64_t PARAMETERS =
    2 * 32000 * 1024 + 8 * (4 * 1024 * 1024 + 3 * 1024 * 2816 + 2 * 1024) + 1024;

static const struct vp_result *plan(struct fixture *f, const char *rest) {
    return plan_yaml(f, vp_arena_printf(&f->arena, "%s%s", LLAMA, rest));
}

static const struct vp_suggestion *suggested(const struct vp_result *result, const char *field) {
    for (uint32_t i = 0; i < result->suggestion_count; i++)
        if (strcmp(result->suggestions[i].patch_field, field) == 0)
            return &result->suggestions[i];
    return NULL;
}

static const char ONE[] = "hardware: {gpu: a100-80-sxm, count: 1}\n"
                          "engine: {name: pytorch, version: \"2.5\"}\n";

static void causes(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_result *result = plan(&f, ONE);
    const struct vp_training_stage *stage = &result->training.stage[0];
    assert_int_equal(result->verdict, VP_FITS);
    assert_string_equal(result->reason_text, "");
    for (int i = 0; i < VP_TRAIN_MOMENTS; i++)
        assert_non_null(stage->candidate[i].cause);
    assert_non_null(stage->peak.cause);
    assert_string_equal(stage->candidate[VP_TRAIN_MOMENTS - 1].cause, "optimizer's step");
    assert_int_equal(result->params_total, PARAMETERS);
    assert_int_equal(result->params_trainable, PARAMETERS);
    fixture_end(&f);
}

static void reason(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_result *result = plan(&f, "hardware: {gpu: a100-80-sxm, count: 1, memory: "
                                              "2 GiB}\nengine: {name: pytorch}\n");
    assert_int_equal(result->verdict, VP_DOES_NOT_FIT);
    assert_int_equal(result->reason, VP_REASON_PEAK);
    assert_non_null(strstr(result->reason_text, "runs out of memory at the "));
    assert_non_null(strstr(result->reason_text, result->training.stage[0].peak.cause));
    fixture_end(&f);
}

/* bf16 everywhere: 8 bytes a parameter; 34 bytes a token, layer and element of the hidden state */
static void rule_of_thumb(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_result *result = plan(&f, ONE);
    assert_int_equal(result->first_order.weights_bytes, 8 * PARAMETERS);
    assert_int_equal(result->first_order.activation_bytes, (uint64_t)34 * 4 * 1024 * 1024 * 8);
    assert_int_equal(result->first_order.misses_bytes,
                     (int64_t)result->devices[0].need.likely -
                         (int64_t)result->first_order.total_bytes);
    fixture_end(&f);
}

/* Each is what a plan with that change needs; the most saving first. */
static void levers(void **state) {
    (void)state;
    static const char *const FIELDS[] = {"train.recompute", "train.ops.cross_entropy",
                                         "train.ops.attention", "train.micro_batch"};
    struct fixture f;
    fixture_begin(&f);
    const struct vp_result *result = plan(&f, ONE);
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
        const struct vp_suggestion *s = suggested(result, FIELDS[i]);
        assert_non_null(s);
        assert_true(s->need_bytes < result->devices[0].need.likely);
        const char *yaml = vp_arena_printf(&f.arena, "%s%s", LLAMA, ONE);
        const struct vp_result *after = plan_yaml_with(&f, yaml, s->patch_field, s->patch_value);
        assert_int_equal(after->devices[0].need.likely, s->need_bytes);
    }
    for (uint32_t i = 1; i < result->suggestion_count; i++)
        assert_true(result->suggestions[i - 1].need_bytes <= result->suggestions[i].need_bytes);
    assert_null(suggested(result, "parallel.fsdp")); /* one rank has nothing to divide with */
    fixture_end(&f);
}

static void levers_of_frameworks(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_result *result =
        plan(&f, "hardware: {gpu: a100-80-sxm, count: 8}\nengine: {name: pytorch}\n"
                 "parallel: {data: 8}\n");
    assert_non_null(suggested(result, "parallel.fsdp"));
    result = plan(&f, "hardware: {gpu: a100-80-sxm, count: 8}\nengine: {name: deepspeed}\n"
                      "parallel: {data: 8, zero: 2}\n");
    assert_string_equal(suggested(result, "parallel.zero")->patch_value, "3");
    result = plan(&f, "hardware: {gpu: a100-80-sxm, count: 8}\nengine: {name: megatron}\n"
                      "parallel: {tensor: 4, data: 2, zero: 0}\n");
    assert_string_equal(suggested(result, "parallel.zero")->patch_value, "1");
    assert_null(suggested(result, "parallel.fsdp"));
    fixture_end(&f);
}

/* ---- JSON ---- */

static const struct vp_node *json_of(struct fixture *f, const struct vp_result *result) {
    struct vp_buf out = {.arena = &f->arena};
    struct vp_json json = vp_json_begin(&out);
    struct vp_node *root;
    vp_report_json(&json, result);
    const char *text = vp_buf_text(&out);
    struct vp_bytes bytes = {text, strlen(text)};
    assert_int_equal(vp_json_read(&f->ctx, &root, bytes, "result"), VP_OK);
    return root;
}

static uint64_t number(const struct vp_node *map, const char *key) {
    uint64_t value = 0;
    assert_true(vp_node_u64(&value, vp_node_get(map, key)));
    return value;
}

static void keys(void **state) {
    (void)state;
    static const char *const KEYS[] = {"parameter_bytes",
                                       "gradient_bytes",
                                       "optimizer_bytes",
                                       "master_bytes",
                                       "saved_bytes",
                                       "saved_peak_bytes",
                                       "logits_peak_bytes",
                                       "optimizer_step_temp_bytes",
                                       "recomputed_block_forwards",
                                       "allocated_bytes",
                                       "allocated_peak_bytes",
                                       "reserved_peak_bytes"};
    struct fixture f;
    fixture_begin(&f);
    const struct vp_result *result =
        plan(&f, "hardware: {gpu: a100-80-sxm, count: 2}\nengine: {name: megatron}\n"
                 "parallel: {pipeline: 2, microbatches: 4}\n");
    const struct vp_node *root = json_of(&f, result);
    const struct vp_node *report = vp_node_get(root, "engine_report");
    const struct vp_node *training = vp_node_get(root, "training");
    const struct vp_node *stages = vp_node_get(training, "stages");
    assert_int_equal(stages->count, 2);
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        uint64_t worst = number(stages->items[result->training.worst], KEYS[i]);
        assert_int_equal(number(report, KEYS[i]), worst);
        assert_non_null(vp_node_get(stages->items[1], KEYS[i]));
    }
    assert_int_equal(number(report, "parameter_bytes"),
                     result->training.stage[result->training.worst].numbers.parameter_bytes);
    const struct vp_node *peak = vp_node_get(training, "peak");
    assert_int_equal(number(vp_node_get(peak, "bytes"), "likely"),
                     number(report, "allocated_peak_bytes"));
    assert_non_null(vp_node_text(vp_node_get(peak, "cause")));
    assert_int_equal(vp_node_get(training, "candidates")->count, VP_TRAIN_MOMENTS);
    const struct vp_node *interval =
        vp_node_get(vp_node_get(root, "intervals"), "reserved_peak_bytes");
    assert_true(number(interval, "low") <= number(report, "reserved_peak_bytes"));
    assert_true(number(interval, "high") >= number(report, "reserved_peak_bytes"));
    assert_null(vp_node_get(report, "weights_gib"));
    fixture_end(&f);
}

/* The rows alive at the peak's instant are what is allocated then, and what stands outside. */
static void rows(void **state) {
    (void)state;
    static const char *const SETUPS[] = {
        "hardware: {gpu: a100-80-sxm, count: 1}\nengine: {name: pytorch, version: \"2.5\"}\n",
        "hardware: {gpu: mi300x, count: 8}\nengine: {name: pytorch}\n"
        "parallel: {data: 8, fsdp: true}\n",
        "hardware: {gpu: h100-sxm, count: 8}\nengine: {name: megatron}\n"
        "parallel: {tensor: 2, pipeline: 2, data: 2, zero: 1, microbatches: 8}\n",
        "hardware: {gpu: a100-80-sxm, count: 4}\nengine: {name: deepspeed}\n"
        "parallel: {data: 4, zero: 2}\n"};
    struct fixture f;
    fixture_begin(&f);
    for (size_t i = 0; i < sizeof SETUPS / sizeof *SETUPS; i++) {
        const struct vp_result *result = plan(&f, SETUPS[i]);
        for (uint32_t d = 0; d < result->training.stages; d++) {
            const struct vp_training_stage *stage = &result->training.stage[d];
            enum vp_step step = stage->peak.step;
            uint64_t all = vp_ledger_at(&result->ledger, d, step).likely;
            uint64_t outside =
                vp_ledger_component(&result->ledger, d, VP_C_RUNTIME, step).likely +
                vp_ledger_component(&result->ledger, d, VP_C_FRAGMENTATION, step).likely;
            assert_int_equal(all - outside, stage->allocated_peak.likely);
            assert_int_equal(all, result->devices[d].need.likely);
            for (int k = 0; k < VP_TRAIN_MOMENTS; k++)
                assert_true(stage->candidate[k].bytes.likely <= stage->peak.bytes.likely);
        }
    }
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causes),
        cmocka_unit_test(reason),
        cmocka_unit_test(rule_of_thumb),
        cmocka_unit_test(levers),
        cmocka_unit_test(levers_of_frameworks),
        cmocka_unit_test(keys),
        cmocka_unit_test(rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
