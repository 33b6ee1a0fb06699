#include "tests/unit/fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planner/base/text.h"
#include "planner/doc/json.h"
#include "planner/import/quant.h"

static const struct vp_scheme BF16 = {.name = "bf16", .data = VP_DTYPE_BF16};

struct reader {
    struct fixture f;
    struct vp_quant *quant;
};

static void begin(struct reader *r) {
    memset(r, 0, sizeof *r);
    fixture_begin(&r->f);
}

static struct vp_node *json(struct fixture *f, const char *text) {
    struct vp_node *node = NULL;
    if (!text)
        return NULL;
    assert_int_equal(
        vp_json_read(&f->ctx, &node, (struct vp_bytes){text, strlen(text)}, "config.json"), VP_OK);
    return node;
}

static enum vp_status read_both(struct reader *r, const char *config, const char *hf_quant) {
    fixture_clear(&r->f);
    return vp_quant_read(&r->f.ctx, &r->quant, json(&r->f, config), json(&r->f, hf_quant), &BF16);
}

static void read_config(struct reader *r, const char *config) {
    assert_int_equal(read_both(r, config, NULL), VP_OK);
    assert_non_null(r->quant);
}

static const struct vp_scheme *scheme(const struct reader *r, const char *module,
                                      enum vp_class class_) {
    return vp_quant_scheme(r->quant, module, class_);
}

static uint64_t bytes(const struct reader *r, const char *module, enum vp_class class_,
                      uint64_t out, uint64_t in) {
    struct vp_sum sum = vp_scheme_bytes(scheme(r, module, class_), 1, out, in);
    assert_false(sum.overflow);
    return sum.v;
}

static void expect(const struct reader *r, const char *module, enum vp_class class_,
                   const char *name) {
    assert_string_equal(scheme(r, module, class_)->name, name);
}

#define Q "model.layers.3.self_attn.q_proj", VP_CLASS_ATTENTION
#define UP "model.layers.3.mlp.up_proj", VP_CLASS_MLP
#define EXPERT "model.layers.3.mlp.experts.0.up_proj", VP_CLASS_EXPERT
#define GATE "model.layers.3.mlp.gate", VP_CLASS_ROUTER
#define HEAD "lm_head", VP_CLASS_LM_HEAD
#define EMBED "model.embed_tokens", VP_CLASS_EMBEDDING
#define NORM "model.layers.3.input_layernorm", VP_CLASS_NORM

static void nothing_is_quantised(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    assert_int_equal(read_both(&r, NULL, NULL), VP_OK);
    assert_null(r.quant);
    assert_string_equal(vp_quant_name(r.quant), "");
    assert_null(vp_quant_scheme(NULL, Q));
    assert_null(vp_quant_role_scheme(NULL, 0, NULL, VP_ROLE_Q));
    assert_int_equal(read_both(&r, "null", NULL), VP_OK);
    assert_null(r.quant);
    fixture_end(&r.f);
}

/* ---- fp8 ---- */

static void fp8_in_blocks(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"fp8\", \"activation_scheme\": \"dynamic\","
                    " \"weight_block_size\": [128, 128]}");
    assert_string_equal(vp_quant_name(r.quant), "fp8 block 128x128");
    /* 576 x 7168 + 5 x 56 tiles x 4 */
    assert_int_equal(bytes(&r, Q, 576, 7168), 4129888);
    expect(&r, EXPERT, "fp8 block 128x128");
    expect(&r, HEAD, "bf16");
    expect(&r, EMBED, "bf16");
    expect(&r, GATE, "bf16");
    expect(&r, NORM, "bf16");
    expect(&r, "model.visual.blocks.0.attn.qkv", VP_CLASS_VISION, "bf16");
    fixture_end(&r.f);
}

static void fp8_per_tensor_and_what_it_leaves(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"fp8\", \"activation_scheme\": \"static\","
                    " \"ignored_layers\": [\"model.layers.3.mlp.up_proj\"],"
                    " \"modules_to_not_convert\": [\"gate\", \"model.layers.0\"]}");
    assert_string_equal(vp_quant_name(r.quant), "fp8");
    assert_int_equal(bytes(&r, Q, 4096, 4096), 16777224); /* + weight scale + input scale */
    expect(&r, UP, "bf16");
    expect(&r, "model.layers.0.self_attn.q_proj", VP_CLASS_ATTENTION, "bf16");
    fixture_end(&r.f);
}

/* fp8 with the experts of another quantiser on top: its "ignore" does not undo the fp8. */
static void fp8_with_nvfp4_experts(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r,
                "{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128],"
                " \"quant_algo\": \"MIXED_PRECISION\", \"ignore\": [\"*.attn.*\"],"
                " \"quantized_layers\": {"
                "  \"layers.3.ffn.experts\": {\"group_size\": 16, \"quant_algo\": \"NVFP4\"}}}");
    assert_string_equal(vp_quant_name(r.quant), "fp8 block 128x128, nvfp4");
    expect(&r, Q, "fp8 block 128x128");
    expect(&r, EXPERT, "nvfp4");
    expect(&r, "model.layers.4.mlp.experts.0.up_proj", VP_CLASS_EXPERT, "fp8 block 128x128");
    fixture_end(&r.f);
}

static void fbgemm(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"fbgemm_fp8\", \"activation_scale_ub\": 1200.0,"
                    " \"modules_to_not_convert\": [\"model.layers.0.mlp.up_proj\","
                    " \"model.layers.3.self_attn.q_proj\"]}");
    assert_string_equal(vp_quant_name(r.quant), "fp8 per channel (fbgemm_fp8)");
    expect(&r, Q, "bf16");
    assert_int_equal(bytes(&r, UP, 4096, 4096), 16793600); /* 16777216 + 4096 x 4 */
    fixture_end(&r.f);
}

/* ---- compressed-tensors ---- */

static void packed_int4(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\","
                    " \"config_groups\": {\"group_0\": {\"targets\": [\"Linear\"],"
                    "   \"input_activations\": null, \"output_activations\": null,"
                    "   \"weights\": {\"num_bits\": 4, \"type\": \"int\", \"strategy\": \"group\","
                    "     \"group_size\": 128, \"symmetric\": true, \"actorder\": null,"
                    "     \"block_structure\": null, \"dynamic\": false}}},"
                    " \"ignore\": [\"re:.*self_attn.*\", \"re:.*mlp\\\\.(gate|down)_proj.*\","
                    "   \"model.layers.5.mlp.up_proj\"], \"kv_cache_scheme\": null}");
    assert_string_equal(vp_quant_name(r.quant), "int4 group 128 (compressed-tensors)");
    /* 4096 x 14336 / 2 + 4096 x 112 x 2 */
    assert_int_equal(bytes(&r, UP, 4096, 14336), 30277632);
    expect(&r, Q, "bf16");
    expect(&r, "model.layers.3.mlp.down_proj", VP_CLASS_MLP, "bf16");
    expect(&r, "model.layers.5.mlp.up_proj", VP_CLASS_MLP, "bf16");
    expect(&r, EXPERT, "int4 group 128");
    expect(&r, HEAD, "int4 group 128"); /* a Linear module that the list does not leave out */
    fixture_end(&r.f);
}

static void int8_and_float8(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"compressed-tensors\", \"format\": \"int-quantized\","
                    " \"config_groups\": {\"group_0\": {\"targets\": [\"Linear\"],"
                    "   \"input_activations\": {\"num_bits\": 8, \"dynamic\": true},"
                    "   \"weights\": {\"num_bits\": 8, \"type\": \"int\","
                    "     \"strategy\": \"channel\"}}}, \"ignore\": [\"lm_head\"]}");
    assert_string_equal(vp_quant_name(r.quant), "int8 per channel (compressed-tensors)");
    assert_int_equal(bytes(&r, UP, 4096, 4096), 16793600);
    expect(&r, HEAD, "bf16");

    read_config(&r, "{\"quant_method\": \"compressed-tensors\", \"format\": \"float-quantized\","
                    " \"config_groups\": {\"group_0\": {\"targets\": [\"Linear\"],"
                    "   \"input_activations\": {\"num_bits\": 8, \"dynamic\": false},"
                    "   \"weights\": {\"num_bits\": 8, \"type\": \"float\","
                    "     \"strategy\": \"tensor\"}}}}");
    assert_int_equal(bytes(&r, UP, 4096, 4096), 16777224); /* two fp32 scales */

    read_config(&r, "{\"quant_method\": \"compressed-tensors\", \"format\": \"float-quantized\","
                    " \"config_groups\": {\"group_0\": {\"targets\": [\"Linear\"],"
                    "   \"input_activations\": {\"dynamic\": true},"
                    "   \"weights\": {\"num_bits\": 8, \"type\": \"float\","
                    "     \"strategy\": \"block\", \"block_structure\": [128, 64]}}}}");
    assert_string_equal(vp_quant_name(r.quant), "fp8 block 128x64 (compressed-tensors)");
    fixture_end(&r.f);
}

static void asymmetric_groups_with_act_order(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\","
                    " \"config_groups\": {\"group_0\": {\"targets\": [\"Linear\"],"
                    "   \"weights\": {\"num_bits\": 4, \"type\": \"int\", \"group_size\": 128,"
                    "     \"symmetric\": false, \"actorder\": \"group\"}}}}");
    /* data 29360128 + scales 917504 + zeros 229376 + indices 57344 */
    assert_int_equal(bytes(&r, UP, 4096, 14336), 30564352);
    fixture_end(&r.f);
}

static void packed_nvfp4_and_mixed_groups(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r,
                "{\"quant_method\": \"compressed-tensors\", \"format\": \"mixed-precision\","
                " \"config_groups\": {"
                "  \"group_0\": {\"format\": \"float-quantized\", \"targets\": ["
                "    \"re:.*self_attn\\\\.(q|k|v|o)_proj$\", \"model.layers.3.mlp.gate\"],"
                "   \"weights\": {\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"channel\"},"
                "   \"input_activations\": {\"dynamic\": true, \"num_bits\": 8}},"
                "  \"group_1\": {\"format\": \"nvfp4-pack-quantized\", \"targets\": [\"Linear\"],"
                "   \"weights\": {\"num_bits\": 4, \"type\": \"float\","
                "     \"strategy\": \"tensor_group\", \"group_size\": 16},"
                "   \"input_activations\": {\"dynamic\": \"local\", \"num_bits\": 4}}},"
                " \"ignore\": [\"lm_head\"]}");
    assert_string_equal(vp_quant_name(r.quant), "nvfp4, fp8 per channel (compressed-tensors)");
    expect(&r, Q, "fp8 per channel");
    expect(&r, GATE, "fp8 per channel"); /* named itself */
    expect(&r, "model.layers.4.mlp.gate", VP_CLASS_ROUTER, "bf16");
    expect(&r, "model.layers.4.self_attn.q_norm", VP_CLASS_NORM, "bf16");
    expect(&r, HEAD, "bf16");
    /* 4096 x 896 x 9 + global scale + input scale */
    assert_int_equal(bytes(&r, UP, 4096, 14336), 33030152);
    fixture_end(&r.f);
}

static void groups_without_weights(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    /* only the cache is quantised */
    assert_int_equal(
        read_both(&r,
                  "{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"group_0\":"
                  " {\"targets\": [\"Linear\"], \"weights\": null}}}",
                  NULL),
        VP_OK);
    assert_null(r.quant);
    fixture_end(&r.f);
}

/* ---- gptq, awq, bitsandbytes ---- */

static void gptq(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 128,"
                    " \"desc_act\": true, \"sym\": true, \"lm_head\": false}");
    assert_string_equal(vp_quant_name(r.quant), "int4 group 128, act order (gptq)");
    assert_int_equal(bytes(&r, UP, 4096, 14336), 30564352);
    expect(&r, HEAD, "bf16");

    read_config(&r, "{\"quant_method\": \"gptq\", \"bits\": 8, \"group_size\": -1,"
                    " \"desc_act\": false, \"lm_head\": true}");
    assert_string_equal(vp_quant_name(r.quant), "int8 per channel (gptq)");
    /* 16777216 + scales 4096 x 2 + zeros 4096 */
    assert_int_equal(bytes(&r, UP, 4096, 4096), 16789504);
    expect(&r, HEAD, "int8 per channel");

    read_config(&r, "{\"quant_method\": \"gptq\", \"bits\": 3, \"group_size\": 64,"
                    " \"modules_in_block_to_quantize\": [[\"mlp.up_proj\"], [\"mlp.down_proj\"]]}");
    /* 4096 x 4096 x 3 / 8 = 6291456; 262144 groups x 2; zeros 262144 x 3 / 8 */
    assert_int_equal(bytes(&r, UP, 4096, 4096), 6914048);
    expect(&r, Q, "bf16");
    fixture_end(&r.f);
}

static void gptq_with_rules_by_module(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 128, \"dynamic\": {"
                    " \"-:.*self_attn.*\": {}, \"+:.*\\\\.3\\\\.mlp\\\\.up.*\": {\"bits\": 8,"
                    " \"group_size\": 32}}}");
    expect(&r, Q, "bf16");
    expect(&r, UP, "int8 group 32");
    expect(&r, "model.layers.4.mlp.up_proj", VP_CLASS_MLP, "int4 group 128");
    fixture_end(&r.f);
}

static void awq(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 128,"
                    " \"zero_point\": true, \"version\": \"gemm\","
                    " \"modules_to_not_convert\": [\"self_attn\"]}");
    assert_string_equal(vp_quant_name(r.quant), "int4 group 128 (awq)");
    /* 29360128 + 917504 + zeros 229376 */
    assert_int_equal(bytes(&r, UP, 4096, 14336), 30507008);
    expect(&r, Q, "bf16");
    read_config(&r, "{\"quant_method\": \"awq\", \"w_bit\": 4, \"q_group_size\": 64,"
                    " \"zero_point\": false, \"modules_to_not_convert\": null}");
    expect(&r, UP, "int4 group 64");
    assert_int_equal(bytes(&r, UP, 128, 128), 8704); /* 8192 + 128 x 2 x 2 */
    fixture_end(&r.f);
}

static void bitsandbytes(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"bitsandbytes\", \"_load_in_4bit\": true,"
                    " \"_load_in_8bit\": false, \"load_in_4bit\": true, \"load_in_8bit\": false,"
                    " \"bnb_4bit_quant_type\": \"nf4\", \"bnb_4bit_use_double_quant\": true,"
                    " \"llm_int8_skip_modules\": [\"lm_head\", \"model.layers.1.mlp\"]}");
    assert_string_equal(vp_quant_name(r.quant), "nf4 double quant (bitsandbytes)");
    /* 8388608 + 262144 constants + 1024 x 4 */
    assert_int_equal(bytes(&r, UP, 4096, 4096), 8654848);
    expect(&r, HEAD, "bf16");
    expect(&r, "model.layers.1.mlp.up_proj", VP_CLASS_MLP, "bf16");

    read_config(&r, "{\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true,"
                    " \"bnb_4bit_quant_type\": \"nf4\"}");
    assert_int_equal(bytes(&r, UP, 4096, 4096), 9437184); /* + 262144 x 4 */
    read_config(&r, "{\"quant_method\": \"bitsandbytes\", \"load_in_8bit\": true}");
    assert_int_equal(bytes(&r, UP, 4096, 4096), 16793600);
    fixture_end(&r.f);
}

/* ---- mxfp4, modelopt, quark ---- */

static void mxfp4(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"mxfp4\", \"modules_to_not_convert\": ["
                    "\"model.layers.*.self_attn\", \"model.layers.*.mlp.router\","
                    "\"model.embed_tokens\", \"lm_head\"]}");
    assert_string_equal(vp_quant_name(r.quant), "mxfp4");
    assert_int_equal(bytes(&r, EXPERT, 5760, 2880), 8812800); /* 5760 x 90 x 17 */
    expect(&r, Q, "bf16");
    expect(&r, "model.layers.3.mlp.router", VP_CLASS_ROUTER, "bf16");
    fixture_end(&r.f);
}

static void modelopt_in_its_own_file(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    assert_int_equal(
        read_both(&r, NULL,
                  "{\"producer\": {\"name\": \"modelopt\", \"version\": \"0.29\"},"
                  " \"quantization\": {\"quant_algo\": \"NVFP4\", \"kv_cache_quant_algo\": \"FP8\","
                  " \"group_size\": 16, \"exclude_modules\": [\"lm_head\","
                  " \"model.layers.3.self_attn*\"]}}"),
        VP_OK);
    assert_string_equal(vp_quant_name(r.quant), "nvfp4 (modelopt)");
    assert_int_equal(bytes(&r, UP, 4096, 14336), 33030152);
    expect(&r, Q, "bf16");
    expect(&r, "model.layers.13.self_attn.q_proj", VP_CLASS_ATTENTION, "nvfp4");
    expect(&r, HEAD, "bf16");

    assert_int_equal(read_both(&r, NULL,
                               "{\"quantization\": {\"quant_algo\": null,"
                               " \"kv_cache_quant_algo\": \"FP8\"}, \"producer\": {}}"),
                     VP_OK);
    assert_null(r.quant);
    fixture_end(&r.f);
}

static void modelopt_mixed(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    /* config.json says that it is mixed, the other file says how */
    assert_int_equal(
        read_both(&r, "{\"quant_method\": \"modelopt\", \"quant_algo\": \"MIXED_PRECISION\"}",
                  "{\"quantization\": {\"quant_algo\": \"MIXED_PRECISION\","
                  " \"quantized_layers\": {"
                  "  \"model.layers.3.mlp.up_proj\": {\"quant_algo\": \"W4A16_AWQ\","
                  "    \"group_size\": 128},"
                  "  \"model.layers.3.self_attn.q_proj\": {\"quant_algo\": \"FP8\"}}}}"),
        VP_OK);
    assert_string_equal(vp_quant_name(r.quant), "int4 group 128, smoothed, fp8 (modelopt)");
    assert_int_equal(bytes(&r, Q, 4096, 4096), 16777224);
    /* 29360128 + 917504 + 2 bytes for each of 14336 inputs */
    assert_int_equal(bytes(&r, UP, 4096, 14336), 30306304);
    expect(&r, "model.layers.4.mlp.up_proj", VP_CLASS_MLP, "bf16");
    fixture_end(&r.f);
}

static void modelopt_in_the_config(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"modelopt\", \"config_groups\": {\"group_0\": {"
                    " \"targets\": [\"Linear\"], \"weights\": {\"num_bits\": 4,"
                    " \"type\": \"float\", \"group_size\": 16}, \"input_activations\": {"
                    " \"dynamic\": false, \"num_bits\": 4}}}, \"ignore\": ["
                    " \"model.language_model.layers.0.mlp.shared_expert*\"]}");
    assert_int_equal(bytes(&r, UP, 4096, 14336), 33030152);
    expect(&r, HEAD, "bf16");
    expect(&r, "model.layers.0.mlp.shared_expert.up_proj", VP_CLASS_SHARED, "bf16");
    read_config(&r, "{\"quant_method\": \"modelopt\", \"quant_algo\": \"FP8\","
                    " \"ignore\": [\"lm_head\"]}");
    assert_string_equal(vp_quant_name(r.quant), "fp8 (modelopt)");
    fixture_end(&r.f);
}

static void quark(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"quark\", \"exclude\": [\"lm_head\", \"re:.*gate$\"],"
                    " \"global_quant_config\": {\"weight\": {\"dtype\": \"fp4\","
                    "   \"qscheme\": \"per_group\", \"group_size\": 32,"
                    "   \"scale_format\": \"e8m0\", \"is_dynamic\": false},"
                    "  \"input_tensors\": {\"dtype\": \"fp4\", \"is_dynamic\": true}},"
                    " \"layer_quant_config\": {\"*self_attn*\": {\"weight\": {"
                    "   \"dtype\": \"fp8_e4m3\", \"qscheme\": \"per_tensor\"},"
                    "  \"input_tensors\": {\"dtype\": \"fp8_e4m3\", \"is_dynamic\": false}}}}");
    assert_string_equal(vp_quant_name(r.quant), "mxfp4, fp8 (quark)");
    assert_int_equal(bytes(&r, Q, 4096, 4096), 16777224);
    assert_int_equal(bytes(&r, UP, 4096, 4096), 8912896); /* 4096 x 128 x 17 */
    expect(&r, HEAD, "bf16");
    fixture_end(&r.f);
}

/* ---- roles ---- */

static void roles_by_any_of_their_names(void **state) {
    (void)state;
    struct reader r;
    struct vp_block moe = {.moe = {.kind = VP_MLP_GATED}}, both = moe;
    both.mlp.kind = VP_MLP_GATED;
    begin(&r);
    read_config(&r, "{\"quant_method\": \"modelopt\", \"quant_algo\": \"MIXED_PRECISION\","
                    " \"quantized_layers\": {"
                    "  \"model.layers.1.block_sparse_moe.experts.0.w1\": {\"quant_algo\":"
                    " \"NVFP4\"}, \"backbone.layers.2.mixer.q_proj\": {\"quant_algo\": \"FP8\"}}}");
    assert_string_equal(vp_quant_role_scheme(r.quant, 1, &moe, VP_ROLE_EXPERT_GATE)->name, "nvfp4");
    assert_string_equal(vp_quant_role_scheme(r.quant, 2, &moe, VP_ROLE_EXPERT_GATE)->name, "bf16");
    assert_string_equal(vp_quant_role_scheme(r.quant, 2, &moe, VP_ROLE_Q)->name, "fp8");

    /* experts beside a dense feed-forward are not inside "mlp" */
    read_config(&r, "{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\","
                    " \"ignore\": [\"model.language_model.layers.1.mlp*\"]}");
    assert_string_equal(vp_quant_role_scheme(r.quant, 1, &moe, VP_ROLE_EXPERT_UP)->name, "bf16");
    assert_string_equal(vp_quant_role_scheme(r.quant, 1, &both, VP_ROLE_EXPERT_UP)->name, "nvfp4");
    assert_string_equal(vp_quant_role_scheme(r.quant, 1, &both, VP_ROLE_UP)->name, "bf16");
    assert_string_equal(vp_quant_role_scheme(r.quant, 1, &both, VP_ROLE_INDEX_WEIGHTS)->name,
                        "bf16");
    fixture_end(&r.f);
}

/* ---- refusals ---- */

static void refused(struct reader *r, enum vp_diag_id id, const char *config, const char *words) {
    assert_int_equal(read_both(r, config, NULL), VP_ERR_INPUT);
    assert_null(r->quant);
    fixture_expect(&r->f, id, words);
}

static void unknown_formats_are_named(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
#define GROUP(weights)                                                                             \
    "{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"g\": {\"targets\": "         \
    "[\"Linear\"], \"weights\": {" weights "}}}}"
    static const struct {
        const char *config, *words;
    } CASES[] = {
        {"{\"quant_method\": \"torchao\"}", "quantisation method \"torchao\" is not known"},
        {"{\"quant_method\": \"gptq\", \"bits\": 5}", "gptq with 5 bits"},
        {"{\"quant_method\": \"awq\", \"bits\": 3}", "awq with 3 bits"},
        {"{\"quant_method\": \"modelopt\", \"quant_algo\": \"W1A1\"}", "\"W1A1\""},
        {"{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\", \"group_size\": 64}",
         "NVFP4 in groups of 64"},
        {"{\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true,"
         " \"bnb_4bit_quant_type\": \"af4\"}",
         "bitsandbytes type \"af4\""},
        {"{\"quant_method\": \"quark\", \"global_quant_config\": {\"weight\": {\"dtype\":"
         " \"int3\"}}}",
         "quark weights of type \"int3\""},
        {"{\"quant_method\": \"compressed-tensors\", \"config_groups\": {},"
         " \"ignore\": [\"re:(x|y\"]}",
         "the pattern \"re:(x|y\" cannot be used: missing closing parenthesis"},
        {"{\"quant_method\": \"compressed-tensors\", \"config_groups\": {},"
         " \"sparsity_config\": {\"format\": \"sparse-24-bitmask\"}}",
         "sparse-24-bitmask"},
        {GROUP("\"num_bits\": 3"), "weights of 3 bits and type \"int\""},
        {GROUP("\"num_bits\": 4, \"type\": \"complex\""), "type \"complex\""},
        {GROUP("\"strategy\": \"diagonal\""), "weight strategy \"diagonal\""},
        {GROUP("\"num_bits\": 4, \"type\": \"float\", \"group_size\": 64"), "groups of 64"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        refused(&r, VP_D_QUANT_UNKNOWN, CASES[i].config, CASES[i].words);
    fixture_end(&r.f);
}

static void wrong_values(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    static const struct {
        const char *config, *words;
    } CASES[] = {
        {"[]", "a map is expected, not a list"},
        {"\"fp8\"", "a map is expected, not text"},
        {"{}", "quantization_config.quant_method: is missing"},
        {"{\"quant_method\": 8}", "quantization_config.quant_method: text is expected"},
        {"{\"quant_method\": \"fp8\", \"weight_block_size\": [128]}", "weight_block_size"},
        {"{\"quant_method\": \"fp8\", \"weight_block_size\": [0, 128]}", "weight_block_size"},
        {"{\"quant_method\": \"fp8\", \"weight_block_size\": \"128\"}", "weight_block_size"},
        {"{\"quant_method\": \"fp8\", \"ignored_layers\": [1]}", "a module's name is expected"},
        {"{\"quant_method\": \"gptq\", \"group_size\": -2}", "quantization_config.group_size"},
        {"{\"quant_method\": \"gptq\", \"bits\": 99999999999}", "quantization_config.bits"},
        {"{\"quant_method\": \"gptq\", \"desc_act\": \"yes\"}", "quantization_config.desc_act"},
        {"{\"quant_method\": \"gptq\", \"dynamic\": []}", "quantization_config.dynamic"},
        {"{\"quant_method\": \"gptq\", \"modules_in_block_to_quantize\": {}}",
         "modules_in_block_to_quantize"},
        {"{\"quant_method\": \"bitsandbytes\"}", "neither this nor load_in_8bit"},
        {"{\"quant_method\": \"compressed-tensors\"}", "a map of groups is expected"},
        {"{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"g\": {}}}",
         "a group has no list of targets"},
        {"{\"quant_method\": \"modelopt\", \"quant_algo\": \"MIXED_PRECISION\"}",
         "quantized_layers: is missing"},
        {"{\"quant_method\": \"modelopt\", \"quantized_layers\": [1]}", "a map is expected"},
        {"{\"quant_method\": \"modelopt\", \"quantized_layers\": {\"a\": 1}}", "no quant_algo"},
        {"{\"quant_method\": \"quark\"}", "global_quant_config: is missing"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        refused(&r, VP_D_MODEL_FIELD, CASES[i].config, CASES[i].words);
    fixture_end(&r.f);
}

/* ---- speed ---- */

/* Of the processor: the machine may be busy with other tests. */
static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* 61 layers x 15 modules against 500 entries. The limit leaves room for sanitizers and valgrind;
 * without them it takes a few milliseconds. */
static void long_lists_are_fast(void **state) {
    (void)state;
    struct reader r;
    begin(&r);
    struct vp_buf buf = {.arena = &r.f.arena};
    vp_buf_add(&buf, "{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"lm_head\"");
    for (int i = 0; i < 500; i++)
        vp_buf_printf(&buf,
                      i % 2 ? ", \"model.layers.%d.self_attn*\""
                            : ", \"model.layers.%d.input_layernorm\"",
                      100 + i);
    vp_buf_add(&buf, "]}");
    read_config(&r, vp_buf_text(&buf));
    double start = seconds();
    for (int layer = 0; layer < 61; layer++) {
        for (int i = 0; i < 15; i++) {
            char module[64];
            snprintf(module, sizeof module, "model.layers.%d.mlp.experts.%d.up_proj", layer, i);
            expect(&r, module, VP_CLASS_EXPERT, "fp8");
        }
    }
    double took = seconds() - start;
    print_message("915 modules, 500 entries: %.1f ms\n", took * 1e3);
    assert_true(took < 5);
    fixture_end(&r.f);
}

/* ---- real checkpoints ---- */

static const struct vp_node *find_quantisation(const struct vp_node *config) {
    const struct vp_node *own = vp_node_get(config, "quantization_config");
    return own ? own : vp_node_get(vp_node_get(config, "text_config"), "quantization_config");
}

/* The descriptions are other people's and do not come with the tree. */
static DIR *open_configs(char *folder, size_t size) {
    snprintf(folder, size, "../shared/data/hf-configs"); /* beside the tree, where tests run */
    return opendir(folder);
}

/* Every description of the folder is read without a refusal. */
static void real_checkpoints(void **state) {
    (void)state;
    char folder[512], path[1024];
    struct dirent *entry;
    int files = 0, quantised = 0;
    DIR *dir = open_configs(folder, sizeof folder);
    if (!dir) {
        print_message("no folder ../shared/data/hf-configs\n");
        skip();
    }
    while ((entry = readdir(dir)) != NULL) {
        struct reader r;
        struct vp_node *config;
        struct vp_bytes text;
        if (!vp_text_ends(entry->d_name, ".json"))
            continue;
        begin(&r);
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        assert_int_equal(vp_io_read(&r.f.ctx, &text, path, 1 << 24), VP_OK);
        assert_int_equal(vp_json_read(&r.f.ctx, &config, text, path), VP_OK);
        if (vp_quant_read(&r.f.ctx, &r.quant, find_quantisation(config), NULL, &BF16) != VP_OK)
            fail_msg("%s: %s", entry->d_name, r.f.diags.items[0].message);
        files++;
        quantised += r.quant != NULL;
        assert_int_equal(r.quant != NULL, find_quantisation(config) != NULL);
        fixture_end(&r.f);
    }
    closedir(dir);
    print_message("%d descriptions, %d of them quantised\n", files, quantised);
    assert_true(files > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_quantised),
        cmocka_unit_test(fp8_in_blocks),
        cmocka_unit_test(fp8_per_tensor_and_what_it_leaves),
        cmocka_unit_test(fp8_with_nvfp4_experts),
        cmocka_unit_test(fbgemm),
        cmocka_unit_test(packed_int4),
        cmocka_unit_test(int8_and_float8),
        cmocka_unit_test(asymmetric_groups_with_act_order),
        cmocka_unit_test(packed_nvfp4_and_mixed_groups),
        cmocka_unit_test(groups_without_weights),
        cmocka_unit_test(gptq),
        cmocka_unit_test(gptq_with_rules_by_module),
        cmocka_unit_test(awq),
        cmocka_unit_test(bitsandbytes),
        cmocka_unit_test(mxfp4),
        cmocka_unit_test(modelopt_in_its_own_file),
        cmocka_unit_test(modelopt_mixed),
        cmocka_unit_test(modelopt_in_the_config),
        cmocka_unit_test(quark),
        cmocka_unit_test(roles_by_any_of_their_names),
        cmocka_unit_test(unknown_formats_are_named),
        cmocka_unit_test(wrong_values),
        cmocka_unit_test(long_lists_are_fast),
        cmocka_unit_test(real_checkpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
