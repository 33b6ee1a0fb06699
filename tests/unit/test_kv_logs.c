/* The pool of a KV cache against start-up logs that are exact to the block: from the bytes that the
 * engine had to its blocks, tokens and concurrency. */
#include <string.h>

#include "tests/unit/model_builder.h"

static struct fixture f;

static int begin(void **state) {
    (void)state;
    fixture_begin(&f);
    return 0;
}

static int end(void **state) {
    (void)state;
    fixture_end(&f);
    return 0;
}

/* 8 full and 40 window layers in six groups of 8, pages of 16 x 8 heads x 512 x 2 bytes:
 * 131,072 x 8 = 1 MiB per block. A request of 9,900 takes 619 + 5 x (ceil((1023 + 2048) / 16) + 1)
 * = 1,584 pages. */
static void gemma_3_12b(void **state) {
    (void)state;
    const struct vp_result *r =
        plan_yaml(&f, "model: gemma-3-12b\nhardware: {gpu: r9700}\n"
                      "engine: {name: vllm, version: \"0.13\", args: {max_model_len: 9900,\n"
                      "         max_num_seqs: 32, max_num_batched_tokens: 2048}}\n"
                      "serve: {context: 9900}\nmeasured: {available_kv_cache_gib: 16.25}\n");
    assert_int_equal(r->report.num_gpu_blocks.likely, 16640);
    assert_int_equal(r->report.num_gpu_blocks.low, 16640);
    assert_int_equal(r->report.num_gpu_blocks.high, 16640);
    assert_int_equal(r->report.kv_cache_tokens.likely, 44368); /* 16640 // 6 x 16 */
    assert_int_equal(r->report.max_concurrency_milli.likely, 10505);
    assert_int_equal(r->kv.page_bytes, MIB(1));
    assert_int_equal(r->kv.group_count, 2);
    assert_int_equal(r->kv.bytes_per_token, 8 * 8192); /* the full layers alone grow */
    assert_int_equal(r->kv.tokens, 104000);            /* 16640 x 9900 / 1584: true capacity */
}

/* 10 full and 52 window layers: six groups of windows, the last one padded by 8 layers. */
static void gemma_3_27b(void **state) {
    (void)state;
    const struct vp_result *r =
        plan_yaml(&f, "model: gemma-3-27b\nhardware: {gpu: r9700, count: 2}\n"
                      "parallel: {tensor: 2}\nserve: {context: 28900}\n"
                      "engine: {name: vllm, version: \"0.13\", args: {max_num_seqs: 32,\n"
                      "         gpu_memory_utilization: 0.94, max_num_batched_tokens: 2048}}\n"
                      "measured: {available_kv_cache_gib: 14.58}\n");
    const struct vp_kv_group *full = &r->kv.group[0], *window = &r->kv.group[1];
    if (strcmp(full->kind, "full") != 0) {
        full = window;
        window = &r->kv.group[0];
    }
    assert_int_equal(full->layers, 10);
    assert_int_equal(full->groups, 1);
    assert_int_equal(full->padding_layers, 0);
    assert_int_equal(window->layers, 52);
    assert_int_equal(window->groups, 6);
    assert_int_equal(window->padding_layers, 8);
    assert_int_equal(window->window, 1024);
    /* 16 heads over two ranks: a block of 16 x 8 x 256 x 2 x 10 bytes; logged 54,464 and 8.04 */
    assert_int_equal(r->kv.page_bytes, 655360);
    assert_int_equal(r->report.num_gpu_blocks.likely, 23887);
    assert_near(r->report.kv_cache_tokens.likely, 54464, 4);
    assert_near(r->report.max_concurrency_milli.likely, 8040, 4);
}

/* TP 2: a state of 16 heads x 128 x 128 x 2 + 4,096 channels x 3 x 2 = 548,864 bytes; 1,024 bytes
 * per token make the block 16 x ceil(548,864 / 16,384) = 544. Four groups of 12. */
static void qwen3_next(void **state) {
    (void)state;
    const struct vp_result *r = plan_yaml(
        &f, "model: {model_type: qwen3_next, hidden_size: 2048, num_hidden_layers: 48,\n"
            "  num_attention_heads: 16, num_key_value_heads: 2, head_dim: 256,\n"
            "  intermediate_size: 5120, vocab_size: 151936, max_position_embeddings: 262144,\n"
            "  num_experts: 512, num_experts_per_tok: 10, moe_intermediate_size: 512,\n"
            "  shared_expert_intermediate_size: 512, full_attention_interval: 4,\n"
            "  linear_num_key_heads: 16, linear_num_value_heads: 32, linear_key_head_dim: 128,\n"
            "  linear_value_head_dim: 128, linear_conv_kernel_dim: 4,\n"
            "  tie_word_embeddings: false, torch_dtype: bfloat16}\n"
            "hardware: {gpu: r9700, count: 2}\nparallel: {tensor: 2}\nserve: {context: 16384}\n"
            "precision: {weights: int4}\n"
            "engine: {name: vllm, version: \"0.13\", args: {max_num_seqs: 32,\n"
            "         gpu_memory_utilization: 0.98, max_num_batched_tokens: 2048,\n"
            "         enable_prefix_caching: false}}\n"
            "measured: {available_kv_cache_gib: 7.09}\n");
    assert_int_equal(r->report.block_size, 544);
    assert_int_equal(r->report.num_gpu_blocks.likely, 1138);
    assert_int_equal(r->report.kv_cache_tokens.likely, 154496);      /* 1138 // 4 x 544 */
    assert_int_equal(r->report.max_concurrency_milli.likely, 33470); /* 1138 / (31 + 3) */
    assert_int_equal(r->kv.state_bytes_per_sequence, 36 * 548864);
    assert_int_equal(r->kv.bytes_per_token, 12 * 1024);
    /* padding of a state page: 557,056 - 548,864 = 1.49 % */
    assert_int_equal(r->kv.page_bytes, 12 * 557056);
}

/* TP 2: a KDA state of 16 heads x 128 x 128 x 4 + 6,144 channels x 3 x 2 = 1,085,440 bytes; a
 * latent of 1,152 bytes per token, aligned to 64: 64 x ceil(1,085,440 / 73,728) = 960. Seven MLA
 * and twenty KDA layers: 1 + 3 groups of 7. Logged: 75,840 tokens, 2.48 requests of 120,000. */
static void kimi_linear(void **state) {
    (void)state;
    const struct vp_result *r = plan_yaml(
        &f, "model: {model_type: kimi_linear, hidden_size: 2304, num_hidden_layers: 27,\n"
            "  num_attention_heads: 32, num_key_value_heads: 32, head_dim: 72,\n"
            "  intermediate_size: 9216, vocab_size: 163840, model_max_length: 1048576,\n"
            "  max_position_embeddings: 1048576, kv_lora_rank: 512, q_lora_rank: null,\n"
            "  qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, mla_use_nope: true,\n"
            "  num_experts: 256, num_experts_per_token: 8, num_experts_per_tok: 8,\n"
            "  moe_intermediate_size: 1024,\n"
            "  num_shared_experts: 1, first_k_dense_replace: 1, moe_layer_freq: 1,\n"
            "  linear_attn_config: {full_attn_layers: [4, 8, 12, 16, 20, 24, 27],\n"
            "    kda_layers: [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23,\n"
            "                 25, 26],\n"
            "    head_dim: 128, num_heads: 32, short_conv_kernel_size: 4},\n"
            "  tie_word_embeddings: false, torch_dtype: bfloat16}\n"
            "hardware: {gpu: rtx3090, count: 2}\nparallel: {tensor: 2}\n"
            "precision: {weights: int4}\nserve: {context: 120000}\n"
            "engine: {name: vllm, version: \"0.11.1\", args: {max_num_seqs: 8,\n"
            "         gpu_memory_utilization: 0.95, max_num_batched_tokens: 64000}}\n"
            "measured: {available_kv_cache_gib: 2.3}\n");
    assert_int_equal(r->report.block_size, 960);
    assert_int_equal(r->kv.page_bytes, 7 * 960 * 1152);
    assert_int_equal(r->report.num_gpu_blocks.likely, 319);
    assert_int_equal(r->report.kv_cache_tokens.likely, 75840);
    assert_near(r->report.max_concurrency_milli.likely, 2480, 5); /* 2.3 GiB has two digits */
    assert_int_equal(r->kv.state_bytes_per_sequence, 20 * 1085440);
}

/* FP32 state of 32 heads x 128 x 128 x 4 + 8,192 channels x 3 x 2 = 2,146,304 bytes, 1,024 bytes
 * per token in FP8: a block of 2096. With prefix caching two state pages per group:
 * 299 / (63 + 3 x 2). */
static void qwen3_5_with_prefix_caching(void **state) {
    (void)state;
    static const char YAML[] =
        "model: qwen3.5-35b-a3b\nhardware: {gpu: rtx5090}\n"
        "precision: {weights: int4}\nserve: {context: 131072}\n"
        "engine: {name: vllm, version: \"0.24\", args: {max_num_seqs: 1, kv_cache_dtype: fp8,\n"
        "         max_num_batched_tokens: 8192}}\n"
        "measured: {available_kv_cache_gib: 5.98}\n";
    const struct vp_result *r =
        plan_yaml_with(&f, YAML, "engine.args.enable_prefix_caching", "true");
    assert_int_equal(r->report.block_size, 2096);
    assert_int_equal(r->report.num_gpu_blocks.likely, 299);
    assert_int_equal(r->report.max_concurrency_milli.likely, 4333);
    /* this version prints int(max_concurrency x max_model_len) */
    assert_near(r->report.kv_cache_tokens.likely, 567978, 1);
    r = plan_yaml_with(&f, YAML, "engine.args.enable_prefix_caching", "false");
    assert_int_equal(r->report.max_concurrency_milli.likely, 4530); /* 299 / (63 + 3) */
}

/* 12 full and 36 chunked layers of two KV heads per rank; a chunk has no page more than its
 * tokens need: 512 pages each of four groups at 8,192. */
static void llama_4_chunks(void **state) {
    (void)state;
    const struct vp_result *r = plan_yaml(
        &f, "model: llama-4-scout\nhardware: {gpu: h100-sxm, count: 4}\n"
            "parallel: {tensor: 4}\nserve: {context: 8192}\n"
            "engine: {name: vllm, version: \"0.19\", args: {gpu_memory_utilization: 0.95,\n"
            "         enable_prefix_caching: false}}\n"
            "measured: {num_gpu_blocks: 91495}\n");
    assert_int_equal(r->kv.page_bytes, 12 * 16 * 2 * 256 * 2);
    assert_int_equal(r->report.kv_cache_tokens.likely, 365968);
    assert_int_equal(r->report.max_concurrency_milli.likely, 44675);
    /* beyond the chunk only the full layers grow: 6,250 pages, and 3 x (8192 + 8192) / 16 */
    r = plan_yaml(&f, "model: llama-4-scout\nhardware: {gpu: h100-sxm, count: 4}\n"
                      "parallel: {tensor: 4}\nserve: {context: 100000}\n"
                      "engine: {name: vllm, version: \"0.19\"}\n"
                      "measured: {num_gpu_blocks: 91495}\n");
    assert_int_equal(r->report.max_concurrency_milli.likely, 9814); /* 91495 / (6250 + 3072) */
}

/* 61 layers x 576 x 2 bytes, whole on every rank. FlashMLA's blocks of 64: 46.80 GiB are 11,173
 * of 4,497,408 bytes. Decode context parallelism: eight ranks hold eight times the tokens. */
static void latent_cache(void **state) {
    (void)state;
    static const char YAML[] =
        "model: kimi-k2\nhardware: {gpu: h200, count: 8}\nparallel: {tensor: 8}\n"
        "serve: {context: 131072}\n"
        "engine: {name: vllm, version: \"0.11.1\", args: {block_size: 64}}\n"
        "measured: {available_kv_cache_gib: 46.8}\n";
    const struct vp_result *r = plan_yaml(&f, YAML);
    assert_int_equal(r->kv.bytes_per_token, 70272);
    assert_int_equal(r->report.kv_cache_tokens.likely, 715072);
    assert_int_equal(r->kv.tokens, 715072);
    r = plan_yaml_with(&f, YAML, "engine.args.decode_context_parallel_size", "8");
    assert_int_equal(r->report.num_gpu_blocks.likely, 11173);
    assert_int_equal(r->report.kv_cache_tokens.likely, 8 * 715072);
    assert_near(r->report.kv_cache_tokens.likely, 5721088, 1);       /* logged: one block more */
    assert_int_equal(r->report.max_concurrency_milli.likely, 43644); /* 11173 / 256 */
}

/* MI300X, vLLM 0.5.4: 78,897 blocks in bf16 and 157,794 in FP8, exactly twice. */
static void fp8_doubles_the_blocks(void **state) {
    (void)state;
    static const char YAML[] =
        "model: llama-3-8b\nhardware: {gpu: mi300x}\nserve: {context: 8192}\n"
        "engine: {name: vllm, version: \"0.10\", args: {kv_cache_memory_bytes: 165459001344}}\n";
    const struct vp_result *r = plan_yaml_with(&f, YAML, "precision.kv_cache", "auto");
    assert_int_equal(r->kv.page_bytes, 16 * 8 * 256 * 2 * 32);
    assert_int_equal(r->report.num_gpu_blocks.likely, 78897);
    r = plan_yaml_with(&f, YAML, "precision.kv_cache", "fp8");
    assert_int_equal(r->report.num_gpu_blocks.likely, 157794);
}

/* Before the hybrid manager every layer was cached in full; the flag brings that back. */
static void without_groups(void **state) {
    (void)state;
    static const char YAML[] = "model: gemma-3-12b\nhardware: {gpu: h100-sxm}\n"
                               "serve: {context: 9900}\n"
                               "measured: {available_kv_cache_gib: 16.5}\n";
    const struct vp_result *r = plan_yaml_with(&f, YAML, "engine", "{name: vllm, version: 0.9}");
    /* 48 layers of 131,072 bytes: 2,816 blocks */
    assert_int_equal(r->kv.page_bytes, 48 * 131072);
    assert_int_equal(r->report.num_gpu_blocks.likely, 2816);
    assert_int_equal(r->report.kv_cache_tokens.likely, 45056);
    assert_int_equal(r->kv.bytes_per_token, 48 * 8192);
    r = plan_yaml_with(
        &f, YAML, "engine",
        "{name: vllm, version: 0.13, args: {disable_hybrid_kv_cache_manager: true}}");
    assert_int_equal(r->report.num_gpu_blocks.likely, 2816);
}

static void admission(void **state) {
    (void)state;
    /* Qwen3-30B-A3B: 3.18 GiB hold 34,720 tokens where 262,144 need 24.0 GiB (34,736 logged) */
    const struct vp_result *r =
        plan_yaml(&f, "model: {from: qwen3-30b-a3b, max_position_embeddings: 262144}\n"
                      "hardware: {gpu: h100-sxm}\nserve: {context: 262144}\n"
                      "engine: {name: vllm, version: \"0.13\"}\n"
                      "measured: {available_kv_cache_gib: 3.18}\n");
    assert_int_equal(r->report.estimated_max_model_len.likely, 34720);
    assert_int_equal(r->verdict, VP_DOES_NOT_FIT);
    assert_int_equal(r->reason, VP_REASON_ADMISSION);
    assert_non_null(strstr(r->reason_text, "needs 24.00 GiB of cache, 3.18 GiB are left"));
    assert_non_null(strstr(r->reason_text, "34,720 tokens"));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(gemma_3_12b),
        T(gemma_3_27b),
        T(qwen3_next),
        T(kimi_linear),
        T(qwen3_5_with_prefix_caching),
        T(llama_4_chunks),
        T(latent_cache),
        T(fp8_doubles_the_blocks),
        T(without_groups),
        T(admission),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
