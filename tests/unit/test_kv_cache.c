/* KV cache and recurrent states: how a pool is cut, against figures of start-up logs that are
 * exact to the block, and small cases by hand. */
#include "planner/memory/kv_cache.h"

#include <string.h>

#include "tests/unit/model_builder.h"

static struct builder b;

static int begin(void **state) {
    (void)state;
    builder_begin(&b);
    b.model.hidden = 256;
    return 0;
}

static int end(void **state) {
    (void)state;
    builder_end(&b);
    return 0;
}

static void expect_type(const struct vp_kv_type *type, enum vp_kv_kind kind, uint64_t layers,
                        uint64_t groups, uint64_t padding) {
    assert_int_equal(type->kind, kind);
    assert_int_equal(type->layers, layers);
    assert_int_equal(type->groups, groups);
    assert_int_equal(type->padding, padding);
}

/* ---- logs ---- */

/* 8 full and 40 window layers in six groups of 8, pages of 16 x 8 heads x 512 x 2 bytes:
 * 131,072 x 8 = 1 MiB per block. A request of 9,900 takes 619 + 5 x (ceil((1023 + 2048) / 16) + 1)
 * = 1,584 pages. */
static void gemma_3_12b(void **state) {
    (void)state;
    const struct vp_result *r =
        plan_yaml(&b.f, "model: gemma-3-12b\nhardware: {gpu: r9700}\n"
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
        plan_yaml(&b.f, "model: gemma-3-27b\nhardware: {gpu: r9700, count: 2}\n"
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
        &b.f, "model: {model_type: qwen3_next, hidden_size: 2048, num_hidden_layers: 48,\n"
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
        &b.f,
        "model: {model_type: kimi_linear, hidden_size: 2304, num_hidden_layers: 27,\n"
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
        plan_yaml_with(&b.f, YAML, "engine.args.enable_prefix_caching", "true");
    assert_int_equal(r->report.block_size, 2096);
    assert_int_equal(r->report.num_gpu_blocks.likely, 299);
    assert_int_equal(r->report.max_concurrency_milli.likely, 4333);
    /* this version prints int(max_concurrency x max_model_len) */
    assert_near(r->report.kv_cache_tokens.likely, 567978, 1);
    r = plan_yaml_with(&b.f, YAML, "engine.args.enable_prefix_caching", "false");
    assert_int_equal(r->report.max_concurrency_milli.likely, 4530); /* 299 / (63 + 3) */
}

/* 12 full and 36 chunked layers of two KV heads per rank; a chunk has no page more than its
 * tokens need: 512 pages each of four groups at 8,192. */
static void llama_4_chunks(void **state) {
    (void)state;
    const struct vp_result *r = plan_yaml(
        &b.f, "model: llama-4-scout\nhardware: {gpu: h100-sxm, count: 4}\n"
              "parallel: {tensor: 4}\nserve: {context: 8192}\n"
              "engine: {name: vllm, version: \"0.19\", args: {gpu_memory_utilization: 0.95,\n"
              "         enable_prefix_caching: false}}\n"
              "measured: {num_gpu_blocks: 91495}\n");
    assert_int_equal(r->kv.page_bytes, 12 * 16 * 2 * 256 * 2);
    assert_int_equal(r->report.kv_cache_tokens.likely, 365968);
    assert_int_equal(r->report.max_concurrency_milli.likely, 44675);
    /* beyond the chunk only the full layers grow: 6,250 pages, and 3 x (8192 + 8192) / 16 */
    r = plan_yaml(&b.f, "model: llama-4-scout\nhardware: {gpu: h100-sxm, count: 4}\n"
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
    const struct vp_result *r = plan_yaml(&b.f, YAML);
    assert_int_equal(r->kv.bytes_per_token, 70272);
    assert_int_equal(r->report.kv_cache_tokens.likely, 715072);
    assert_int_equal(r->kv.tokens, 715072);
    r = plan_yaml_with(&b.f, YAML, "engine.args.decode_context_parallel_size", "8");
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
    const struct vp_result *r = plan_yaml_with(&b.f, YAML, "precision.kv_cache", "auto");
    assert_int_equal(r->kv.page_bytes, 16 * 8 * 256 * 2 * 32);
    assert_int_equal(r->report.num_gpu_blocks.likely, 78897);
    r = plan_yaml_with(&b.f, YAML, "precision.kv_cache", "fp8");
    assert_int_equal(r->report.num_gpu_blocks.likely, 157794);
}

/* Before the hybrid manager every layer was cached in full; the flag brings that back. */
static void without_groups(void **state) {
    (void)state;
    static const char YAML[] = "model: gemma-3-12b\nhardware: {gpu: h100-sxm}\n"
                               "serve: {context: 9900}\n"
                               "measured: {available_kv_cache_gib: 16.5}\n";
    const struct vp_result *r = plan_yaml_with(&b.f, YAML, "engine", "{name: vllm, version: 0.9}");
    /* 48 layers of 131,072 bytes: 2,816 blocks */
    assert_int_equal(r->kv.page_bytes, 48 * 131072);
    assert_int_equal(r->report.num_gpu_blocks.likely, 2816);
    assert_int_equal(r->report.kv_cache_tokens.likely, 45056);
    assert_int_equal(r->kv.bytes_per_token, 48 * 8192);
    r = plan_yaml_with(
        &b.f, YAML, "engine",
        "{name: vllm, version: 0.13, args: {disable_hybrid_kv_cache_manager: true}}");
    assert_int_equal(r->report.num_gpu_blocks.likely, 2816);
}

/* ---- types ---- */

static void tokens_by_kind(void **state) {
    (void)state;
    struct vp_block block = block_gqa(8, 4, 32);
    block.attention.v_head_dim = 16;
    builder_layer(&b, block, 3);
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_int_equal(plan.types, 1);
    assert_int_equal(plan.type[0].token_bytes, 4 * (32 + 16) * 2);
    assert_int_equal(plan.token_bytes, 3 * 384);
    assert_int_equal(plan.unit_bytes, 16 * 3 * 384);
    b.scenario.parallel.tensor = 2;
    assert_int_equal(builder_kv(&b, 0).token_bytes, 3 * 192);
    b.scenario.parallel.tensor = 8; /* one head on every rank, and no less */
    assert_int_equal(builder_kv(&b, 0).token_bytes, 3 * 96);
    b.scenario.precision.kv_cache = VP_DTYPE_FP8;
    assert_int_equal(builder_kv(&b, 0).token_bytes, 3 * 48);

    b.scenario.precision.kv_cache = VP_DTYPE_BF16;
    builder_layer(&b, block_mla(16, 512, 64), 2); /* the latent is whole on every rank */
    plan = builder_kv(&b, 0);
    assert_int_equal(plan.type[0].kind, VP_KV_LATENT);
    assert_int_equal(plan.token_bytes, 2 * 576 * 2);
}

/* A sparse-attention indexer: a key of 128 bytes and a scale of 4; in FP8 the latent itself has a
 * format of 656 bytes. */
static void sparse_latent(void **state) {
    (void)state;
    struct vp_block block = block_mla(16, 512, 64);
    block.attention.index_heads = 64;
    block.attention.index_head_dim = 128;
    builder_layer(&b, block, 61);
    assert_int_equal(builder_kv(&b, 0).token_bytes, 61 * (1152 + 132));
    b.scenario.precision.kv_cache = VP_DTYPE_FP8;
    assert_int_equal(builder_kv(&b, 0).token_bytes, 61 * (656 + 132));
    block.attention.kv_lora_rank = 256; /* not of that format */
    builder_layer(&b, block, 1);
    assert_int_equal(builder_kv(&b, 0).token_bytes, 320 + 132);
    block.attention.kv_lora_rank = 512;
    block.attention.qk_rope_head_dim = 32;
    builder_layer(&b, block, 1);
    assert_int_equal(builder_kv(&b, 0).token_bytes, 544 + 132);
}

static void layers_without_a_cache(void **state) {
    (void)state;
    struct vp_block kinds[] = {block_gqa(8, 8, 32), {.norms = 1}, block_gqa(8, 8, 32)};
    kinds[2].attention.shares_cache = true;
    builder_layers(&b, kinds, (uint32_t[]){2, 3, 4}, 3);
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_int_equal(plan.types, 1);
    assert_int_equal(plan.type[0].layers, 2);

    builder_layer(&b, block_state(0, VP_DTYPE_BF16), 2); /* a state of no bytes */
    assert_int_equal(builder_kv(&b, 0).types, 0);
    builder_layer(&b, kinds[1], 5); /* nothing to cache at all */
    plan = builder_kv(&b, 0);
    assert_int_equal(plan.types, 0);
    assert_int_equal(plan.groups, 0);
    assert_int_equal(plan.unit_bytes, 0);
    assert_int_equal(vp_kv_units(&plan, 100000), 0);
    assert_int_equal(vp_kv_longest(&plan, 0, 1, 5000), 5000);
}

/* An encoder's layers see all tokens at once and keep nothing. */
static void nothing_of_an_encoder(void **state) {
    (void)state;
    struct vp_block block = block_gqa(8, 8, 32);
    block.attention.bidirectional = true;
    builder_layer(&b, block, 3);
    assert_int_equal(builder_kv(&b, 0).types, 0);
}

/* Cross attention keeps the encoder's output, however long the sequence is: at most 500 tokens. */
static void cross_attention(void **state) {
    (void)state;
    struct vp_block block = block_gqa(8, 8, 32);
    block.second = block.attention;
    block.second.source_tokens = 500;
    builder_layer(&b, block, 3);
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_int_equal(plan.types, 2);
    expect_type(&plan.type[0], VP_KV_FULL, 3, 1, 0);
    expect_type(&plan.type[1], VP_KV_CROSS, 3, 1, 0);
    assert_int_equal(plan.token_bytes, 3 * 1024); /* what grows */
    assert_int_equal(vp_kv_units(&plan, 1), 1 + 32);
    assert_int_equal(vp_kv_units(&plan, 1600), 100 + 32);
    b.scenario.engine.kind = VP_ENGINE_TRANSFORMERS;
    plan = builder_kv(&b, 0);
    assert_int_equal(vp_kv_units(&plan, 10), 3 * 1024 * (10 + 500));
    struct vp_ledger ledger = builder_ledger(&b);
    vp_kv_add(&ledger, &plan, 2, 10, 0);
    assert_int_equal(row_input(ledger_row(&ledger, 0, "cross"), "tokens_kept"), 500);
}

/* A window of single vectors and, of all tokens, an entry for every four: 512 elements and an
 * index key of 128 bytes with a scale. In FP8 a vector takes 584 bytes. */
static void condensed_entries(void **state) {
    (void)state;
    struct vp_block block = {.norms = 1};
    block.attention = (struct vp_attention){.kind = VP_ATTENTION_COMPRESSED,
                                            .heads = 64,
                                            .kv_heads = 1,
                                            .head_dim = 512,
                                            .v_head_dim = 512,
                                            .rotary_dim = 64,
                                            .window = 128,
                                            .q_lora_rank = 64,
                                            .out_groups = 8,
                                            .out_lora_rank = 64,
                                            .compress = 4,
                                            .overlap = 2,
                                            .index_heads = 64,
                                            .index_head_dim = 128};
    struct vp_block kinds[] = {block, block};
    kinds[1].attention.compress = 128;
    kinds[1].attention.index_heads = 0;
    builder_layers(&b, kinds, (uint32_t[]){2, 3}, 2);
    b.scenario.parallel.tensor = 8; /* whole on every rank */
    struct vp_kv_plan plan = builder_kv(&b, 0);
    /* (1024 + 132) / 4 = 289 and 1024 / 128 = 8 bytes per token */
    assert_int_equal(plan.types, 3);
    assert_int_equal(plan.token_bytes, 2 * 289 + 3 * 8);
    assert_int_equal(plan.cut, VP_KV_BYTES);
    assert_int_equal(plan.block_size, 256);
    assert_int_equal(plan.unit_bytes, 256 * 602);
    /* 1000 tokens: 602,000 bytes and five windows of 128 x 1024 = 655,360, in units of 154,112 */
    assert_int_equal(vp_kv_units(&plan, 1000), 9);
    assert_int_equal(vp_kv_units(&plan, 1), 1);
    struct vp_ledger ledger = builder_ledger(&b);
    vp_kv_add(&ledger, &plan, 2, 1000, 0);
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_KV_CACHE), 2 * (602000 + 655360));
    b.scenario.precision.kv_cache = VP_DTYPE_FP8;
    plan = builder_kv(&b, 0);
    assert_int_equal(plan.token_bytes, 2 * 179 + 3 * 5); /* 716 / 4, 584 / 128 rounded up */
    b.scenario.engine.block_size = 512;
    assert_int_equal(builder_kv(&b, 0).block_size, 512);
    kinds[0].attention.head_dim = 256; /* not of that format */
    kinds[0].attention.compress = 0;   /* a window alone */
    builder_layers(&b, kinds, (uint32_t[]){2, 0}, 2);
    plan = builder_kv(&b, 0);
    assert_int_equal(plan.types, 1);
    assert_int_equal(plan.type[0].token_bytes, 256);
    assert_int_equal(plan.cut, VP_KV_PAGED);
}

static void kinds_of_equal_layers_join(void **state) {
    (void)state;
    struct vp_block kinds[] = {block_gqa(8, 8, 32), block_gqa(8, 8, 32)};
    kinds[1].mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = 64};
    builder_layers(&b, kinds, (uint32_t[]){2, 3}, 2);
    assert_int_equal(b.model.block_count, 2);
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_int_equal(plan.types, 1);
    assert_int_equal(plan.type[0].layers, 5);
}

static void too_many_kinds(void **state) {
    (void)state;
    struct vp_block kinds[VP_KV_TYPES + 1];
    uint32_t counts[VP_KV_TYPES + 1];
    for (uint64_t i = 0; i <= VP_KV_TYPES; i++) {
        kinds[i] = block_window(8, 32, 100 + i);
        counts[i] = 1;
    }
    builder_layers(&b, kinds, counts, VP_KV_TYPES);
    assert_false(builder_kv(&b, 0).too_many_types);
    builder_layers(&b, kinds, counts, VP_KV_TYPES + 1);
    assert_true(builder_kv(&b, 0).too_many_types);
    struct vp_result result;
    assert_false(vp_plan_evaluate(&b.f.arena, &result, &b.scenario)); /* told, not cut off */
}

/* ---- groups ---- */

/* Layers that all grow share one group, though their pages differ. */
static void one_group_of_unlike_pages(void **state) {
    (void)state;
    struct vp_block kinds[] = {block_gqa(8, 8, 32), block_gqa(8, 2, 32)};
    builder_layers(&b, kinds, (uint32_t[]){3, 2}, 2);
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_int_equal(plan.types, 2);
    assert_int_equal(plan.groups, 1);
    assert_int_equal(plan.group_layers, 5);
    /* 16 tokens x (3 x 1024 + 2 x 256) */
    assert_int_equal(plan.unit_bytes, 16 * 3584);
    assert_int_equal(vp_kv_units(&plan, 33), 3);
    struct vp_ledger ledger = builder_ledger(&b);
    vp_kv_add(&ledger, &plan, 2, 33, 0);
    assert_int_equal(ledger.count, 2);
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_KV_CACHE), 2 * 3 * 16 * 3584);
    assert_int_equal(ledger.rows[0].formula, VP_FORMULA_KV_PAGE);
    assert_int_equal(ledger.rows[0].from, VP_STEP_CAPTURE);
}

static void group_sizes(void **state) {
    (void)state;
    struct vp_block kinds[] = {block_gqa(8, 8, 32), block_window(8, 32, 128)};
    struct vp_kv_plan plan;
    /* 4 and 4: two groups */
    builder_layers(&b, kinds, (uint32_t[]){4, 4}, 2);
    plan = builder_kv(&b, 0);
    expect_type(&plan.type[0], VP_KV_FULL, 4, 1, 0);
    expect_type(&plan.type[1], VP_KV_WINDOW, 4, 1, 0);
    /* 8 and 9, less than 1.25 times as many: groups of 9, the smaller padded */
    builder_layers(&b, kinds, (uint32_t[]){8, 9}, 2);
    plan = builder_kv(&b, 0);
    expect_type(&plan.type[0], VP_KV_FULL, 8, 1, 1);
    expect_type(&plan.type[1], VP_KV_WINDOW, 9, 1, 0);
    assert_int_equal(plan.group_layers, 9);
    /* 8 and 10: groups of 8 */
    builder_layers(&b, kinds, (uint32_t[]){8, 10}, 2);
    plan = builder_kv(&b, 0);
    expect_type(&plan.type[0], VP_KV_FULL, 8, 1, 0);
    expect_type(&plan.type[1], VP_KV_WINDOW, 10, 2, 6);
    assert_int_equal(plan.group_layers, 8);
    assert_int_equal(plan.unit_bytes, 8 * 16 * 1024);
    /* a window of 128 keeps 127 + 2048 tokens, on 136 pages and one more */
    assert_int_equal(vp_kv_pages(&plan, &plan.type[1], 100000), 137);
    assert_int_equal(vp_kv_pages(&plan, &plan.type[1], 2175), 137);
    assert_int_equal(vp_kv_pages(&plan, &plan.type[1], 2160), 136);
    assert_int_equal(vp_kv_pages(&plan, &plan.type[1], 1), 2);
    assert_int_equal(vp_kv_units(&plan, 100000), 6250 + 2 * 137);
    struct vp_ledger ledger = builder_ledger(&b);
    vp_kv_add(&ledger, &plan, 3, 100000, 0);
    assert_int_equal(ledger_row(&ledger, 0, "window")->bytes.likely,
                     UINT64_C(3) * 137 * 2 * plan.unit_bytes);
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_KV_CACHE), 3 * 6524 * plan.unit_bytes);
}

/* Windows alone, chunks alone, states alone are one group. */
static void one_kind_alone(void **state) {
    (void)state;
    builder_layer(&b, block_window(8, 32, 128), 6);
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_int_equal(plan.groups, 1);
    assert_int_equal(vp_kv_units(&plan, 100000), 137);
    struct vp_block block = block_gqa(8, 8, 32);
    block.attention.chunk = 256;
    builder_layer(&b, block, 6);
    plan = builder_kv(&b, 0);
    assert_int_equal(plan.type[0].kind, VP_KV_CHUNK);
    assert_int_equal(vp_kv_units(&plan, 100000), (256 + 2048) / 16);
    assert_int_equal(vp_kv_units(&plan, 33), 3);

    builder_layer(&b, block_state(5000, VP_DTYPE_FP32), 6);
    plan = builder_kv(&b, 0);
    assert_int_equal(plan.types, 1);
    assert_int_equal(plan.block_size, 16); /* nothing that could grow */
    assert_int_equal(plan.unit_bytes, 6 * 20000);
    assert_int_equal(plan.state_bytes, 6 * 20000);
    assert_int_equal(vp_kv_units(&plan, 100000), 1);
    struct vp_ledger ledger = builder_ledger(&b);
    vp_kv_add(&ledger, &plan, 4, 100000, 0);
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_RECURRENT_STATE), 4 * 120000);
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_KV_CACHE), 0);
    assert_int_equal(ledger.rows[0].formula, VP_FORMULA_KV_STATE);
}

/* A type with half the bytes per token gets blocks twice as long; sizes that do not divide are
 * padded to the larger page. */
static void pages_are_made_equal(void **state) {
    (void)state;
    struct vp_block kinds[] = {block_gqa(8, 8, 32), block_window(4, 32, 4096)};
    builder_layers(&b, kinds, (uint32_t[]){2, 2}, 2);
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_int_equal(plan.page_bytes, 16 * 1024);
    assert_int_equal(plan.type[0].block, 16);
    assert_int_equal(plan.type[1].block, 32);
    assert_int_equal(vp_kv_pages(&plan, &plan.type[1], 64), 3);
    kinds[1] = block_window(3, 32, 4096);
    builder_layers(&b, kinds, (uint32_t[]){2, 2}, 2);
    plan = builder_kv(&b, 0);
    assert_int_equal(plan.page_bytes, 16 * 1024);
    assert_int_equal(plan.type[1].block, 16);
}

/* Pipeline stages: groups are made of the whole model, a stage holds its part of them. */
static void groups_of_a_stage(void **state) {
    (void)state;
    struct vp_block kinds[] = {block_gqa(8, 8, 32), block_window(8, 32, 128)};
    builder_layers(&b, kinds, (uint32_t[]){4, 12}, 2); /* four full, then twelve windows */
    b.scenario.parallel.pipeline = 2;
    struct vp_kv_plan plan = builder_kv(&b, 0); /* four full and four windows */
    expect_type(&plan.type[0], VP_KV_FULL, 4, 1, 0);
    expect_type(&plan.type[1], VP_KV_WINDOW, 4, 3, 0);
    assert_int_equal(plan.groups, 4);
    assert_int_equal(plan.group_layers, 4); /* all full layers are here */
    plan = builder_kv(&b, 1);               /* eight windows in three groups */
    expect_type(&plan.type[0], VP_KV_FULL, 0, 1, 0);
    expect_type(&plan.type[1], VP_KV_WINDOW, 8, 3, 0);
    assert_int_equal(plan.group_layers, 3);
    assert_int_equal(plan.unit_bytes, 3 * 16384);
    assert_int_equal(plan.token_bytes, 0);
}

/* ---- recurrent states ---- */

static struct vp_block delta(void) {
    struct vp_block block = {.norms = 1};
    block.attention = (struct vp_attention){.kind = VP_ATTENTION_LINEAR,
                                            .linear = VP_LINEAR_GATED_DELTA,
                                            .key_heads = 2,
                                            .key_dim = 16,
                                            .value_heads = 4,
                                            .value_dim = 16,
                                            .conv_kernel = 4,
                                            .conv_channels = 128,
                                            .state_elements = 1024};
    return block;
}

static void states(void **state) {
    (void)state;
    builder_layer(&b, delta(), 2);
    /* 1024 x 2 and three columns of 128 channels in 16 bit */
    assert_int_equal(builder_kv(&b, 0).state_bytes, 2 * (2048 + 128 * 3 * 2));
    b.scenario.parallel.tensor = 2;
    assert_int_equal(builder_kv(&b, 0).state_bytes, 2 * (1024 + 64 * 3 * 2));
    b.scenario.parallel.tensor = 1;
    b.model.blocks[0].attention.state_dtype = VP_DTYPE_FP32; /* the recurrence alone */
    assert_int_equal(builder_kv(&b, 0).state_bytes, 2 * (4096 + 768));
    b.scenario.engine.kind = VP_ENGINE_TRANSFORMERS; /* keeps all four columns */
    assert_int_equal(builder_kv(&b, 0).state_bytes, 2 * (4096 + 1024));
    b.model.blocks[0].attention.conv_kernel = 0;
    assert_int_equal(builder_kv(&b, 0).state_bytes, 2 * 4096);

    struct vp_block given = block_state(1024, VP_DTYPE_UNSET); /* as they are, whatever engine */
    given.attention.conv_kernel = 2;
    given.attention.conv_channels = 100;
    builder_layer(&b, given, 1);
    assert_int_equal(builder_kv(&b, 0).state_bytes, 2048 + 200);
    b.scenario.engine.kind = VP_ENGINE_VLLM;
    assert_int_equal(builder_kv(&b, 0).state_bytes, 2048 + 200);
}

/* Attention blocks grow until a page holds a state, in steps of the alignment. */
static void blocks_hold_a_state(void **state) {
    (void)state;
    struct vp_block kinds[] = {block_gqa(8, 1, 32), block_state(10000, VP_DTYPE_FP32)};
    builder_layers(&b, kinds, (uint32_t[]){2, 4}, 2); /* 128 bytes per token, 40,000 of state */
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_int_equal(plan.block_size, 320); /* 16 x ceil(40,000 / 2,048) */
    assert_int_equal(plan.page_bytes, 40960);
    assert_int_equal(plan.groups, 3);
    assert_int_equal(vp_kv_units(&plan, 641), 3 + 2);
    b.scenario.engine.prefix_caching = true; /* two pages per state group */
    plan = builder_kv(&b, 0);
    assert_int_equal(vp_kv_units(&plan, 641), 3 + 4);
    b.scenario.engine.block_size = 512; /* asked for, and large enough */
    assert_int_equal(builder_kv(&b, 0).block_size, 512);
    b.scenario.measured.known[VP_M_BLOCK_SIZE] = true; /* as the log says */
    b.scenario.measured.value[VP_M_BLOCK_SIZE] = 336;
    assert_int_equal(builder_kv(&b, 0).block_size, 336);
    b.scenario.measured.known[VP_M_BLOCK_SIZE] = false;
    b.scenario.engine.rules.state_align = 0; /* no rule: the page is that of the state */
    b.scenario.engine.block_size = 16;
    plan = builder_kv(&b, 0);
    assert_int_equal(plan.block_size, 16);
    assert_int_equal(plan.page_bytes, 40000);

    b.scenario.engine.rules.state_align = 16;
    kinds[0] = block_mla(8, 56, 8); /* 128 bytes of latent: in steps of 64 */
    builder_layers(&b, kinds, (uint32_t[]){2, 4}, 2);
    assert_int_equal(builder_kv(&b, 0).block_size, 320);
    b.scenario.engine.rules.latent_align = 128;
    assert_int_equal(builder_kv(&b, 0).block_size, 384);
}

/* ---- other engines ---- */

/* SGLang: a slot per token over all layers; windows and states have pools of their own. */
static void token_slots(void **state) {
    (void)state;
    struct vp_block kinds[] = {block_gqa(8, 8, 32), block_window(8, 32, 128),
                               block_state(1000, VP_DTYPE_BF16)};
    b.scenario.engine.kind = VP_ENGINE_SGLANG;
    b.scenario.engine.block_size = 1;
    b.scenario.engine.rules.window_share_ppb = 800000000;
    builder_layers(&b, kinds, (uint32_t[]){4, 0, 0}, 3);
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_int_equal(plan.cut, VP_KV_TOKENS);
    assert_int_equal(plan.unit_bytes, 4 * 1024);
    assert_false(plan.separate_state);
    assert_int_equal(vp_kv_units(&plan, 777), 777);

    builder_layers(&b, kinds, (uint32_t[]){4, 5, 0}, 3); /* 0.8 window slots per full slot */
    plan = builder_kv(&b, 0);
    assert_int_equal(plan.unit_bytes, 4 * 1024 + 5 * 1024 * 8 / 10);
    assert_int_equal(plan.token_bytes, 4 * 1024);
    assert_int_equal(vp_kv_pages(&plan, &plan.type[1], 777), 128);
    builder_layers(&b, kinds, (uint32_t[]){0, 5, 0}, 3); /* windows alone are the pool */
    assert_int_equal(builder_kv(&b, 0).unit_bytes, 5 * 1024);

    b.scenario.engine.block_size = 64; /* page_size */
    builder_layers(&b, kinds, (uint32_t[]){4, 0, 3}, 3);
    plan = builder_kv(&b, 0);
    assert_true(plan.separate_state);
    assert_int_equal(plan.state_bytes, 3 * 2000);
    assert_int_equal(plan.unit_bytes, 4 * 1024);
    assert_int_equal(vp_kv_units(&plan, 777), 832);
    struct vp_ledger ledger = builder_ledger(&b);
    vp_kv_add(&ledger, &plan, 2, 777, 0);
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_KV_CACHE), 2 * 777 * 4096);
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_RECURRENT_STATE), 2 * 6000);
    assert_int_equal(ledger_row(&ledger, 0, "state")->formula, VP_FORMULA_KV_STATE_PLAIN);
    assert_int_equal(ledger_row(&ledger, 0, "full")->formula, VP_FORMULA_KV_TOKENS);

    builder_layers(&b, kinds, (uint32_t[]){0, 0, 3}, 3); /* no token grows: bytes */
    plan = builder_kv(&b, 0);
    assert_int_equal(plan.cut, VP_KV_BYTES);
    assert_false(plan.separate_state);
    assert_int_equal(vp_kv_units(&plan, 777), 6000);
}

/* transformers: each sequence holds its tokens, a window no more than its width. */
static void plain_bytes(void **state) {
    (void)state;
    struct vp_block kinds[] = {block_gqa(8, 8, 32), block_window(8, 32, 128), delta()};
    b.scenario.engine.kind = VP_ENGINE_TRANSFORMERS;
    builder_layers(&b, kinds, (uint32_t[]){2, 3, 1}, 3);
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_int_equal(plan.cut, VP_KV_BYTES);
    assert_int_equal(plan.unit_bytes, 1);
    /* 2 x 500 x 1024 + 3 x 128 x 1024 + (2048 + 4 columns of 128 x 2) */
    assert_int_equal(vp_kv_units(&plan, 500), 1024000 + 393216 + 3072);
    assert_int_equal(vp_kv_units(&plan, 100), 5 * 102400 + 3072);
    struct vp_ledger ledger = builder_ledger(&b);
    vp_kv_add(&ledger, &plan, 7, 500, 0);
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_KV_CACHE), 7 * 1417216);
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_RECURRENT_STATE), 7 * 3072);
    assert_int_equal(row_input(ledger_row(&ledger, 0, "window"), "tokens_kept"), 128);
}

/* ---- lengths ---- */

static void longest(void **state) {
    (void)state;
    builder_layer(&b, block_gqa(8, 8, 32), 2);
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_int_equal(vp_kv_longest(&plan, 10, 1, 1000), 160);
    assert_int_equal(vp_kv_longest(&plan, 10, 1, 160), 160);
    assert_int_equal(vp_kv_longest(&plan, 10, 1, 159), 159); /* never above the limit */
    assert_int_equal(vp_kv_longest(&plan, 10, 3, 1000), 48);
    assert_int_equal(vp_kv_longest(&plan, 2, 3, 1000), 0);
    assert_int_equal(vp_kv_longest(&plan, 0, 1, 1000), 0);
    assert_int_equal(vp_kv_longest(&plan, 10, 0, 1000), 1000);
    assert_int_equal(vp_kv_longest(&plan, 10, 1, 0), 0);
    assert_int_equal(vp_kv_longest(&plan, UINT64_MAX, 1, UINT64_MAX), UINT64_MAX);
    b.scenario.parallel.context = 4; /* four ranks share a sequence */
    plan = builder_kv(&b, 0);
    assert_int_equal(vp_kv_longest(&plan, 10, 1, 1000), 640);
    assert_int_equal(vp_kv_units(&plan, 65), 2);
    /* Qwen3-30B-A3B: 3.18 GiB hold 34,720 tokens where 262,144 need 24.0 GiB (34,736 logged) */
    const struct vp_result *r =
        plan_yaml(&b.f, "model: {from: qwen3-30b-a3b, max_position_embeddings: 262144}\n"
                        "hardware: {gpu: h100-sxm}\nserve: {context: 262144}\n"
                        "engine: {name: vllm, version: \"0.13\"}\n"
                        "measured: {available_kv_cache_gib: 3.18}\n");
    assert_int_equal(r->report.estimated_max_model_len.likely, 34720);
    assert_int_equal(r->verdict, VP_DOES_NOT_FIT);
    assert_int_equal(r->reason, VP_REASON_ADMISSION);
    assert_non_null(strstr(r->reason_text, "needs 24.00 GiB of cache, 3.18 GiB are left"));
    assert_non_null(strstr(r->reason_text, "34,720 tokens"));
}

/* ---- sizes beyond 64 bits ---- */

static void overflow_is_told(void **state) {
    (void)state;
    /* the bytes of one token, of one state, of one condensed entry */
    builder_layer(&b, block_gqa(1, 1, UINT64_C(1) << 63), 1);
    assert_true(builder_kv(&b, 0).overflow);
    builder_layer(&b, block_state(UINT64_C(1) << 62, VP_DTYPE_FP32), 1);
    assert_true(builder_kv(&b, 0).overflow);
    struct vp_block block = block_window(1, 8, 128);
    block.attention.kind = VP_ATTENTION_COMPRESSED;
    block.attention.compress = 4;
    block.attention.index_heads = 1;
    block.attention.index_head_dim = UINT64_MAX - 10;
    builder_layer(&b, block, 1);
    assert_true(builder_kv(&b, 0).overflow);
    /* a token of 2^60 bytes fits, a page of 16 does not */
    builder_layer(&b, block_gqa(1, 1, UINT64_C(1) << 58), 1);
    assert_true(builder_kv(&b, 0).overflow);
    /* nor a block that would hold a state, nor pages that are made equal */
    struct vp_block kinds[] = {block_gqa(1, 1, UINT64_C(1) << 59), block_state(10, VP_DTYPE_FP32)};
    builder_layers(&b, kinds, (uint32_t[]){1, 2}, 2);
    assert_true(builder_kv(&b, 0).overflow);
    kinds[1] = block_window(1, 32, 128);
    builder_layers(&b, kinds, (uint32_t[]){1, 1}, 2);
    assert_true(builder_kv(&b, 0).overflow);
    kinds[0] = block_gqa(1, 1, UINT64_C(1) << 57); /* the page fits, two layers of it do not */
    builder_layers(&b, kinds, (uint32_t[]){2, 2}, 2);
    assert_true(builder_kv(&b, 0).overflow);

    builder_layer(&b, block_gqa(8, 8, 32), 1);
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_false(plan.overflow);
    struct vp_ledger ledger = builder_ledger(&b);
    vp_kv_add(&ledger, &plan, UINT64_C(1) << 40, UINT64_C(1) << 40, 0);
    assert_true(ledger.overflow);
    ledger = builder_ledger(&b);
    plan.overflow = true;
    vp_kv_add(&ledger, &plan, 1, 1, 0);
    assert_true(ledger.overflow);
    /* too many units are as many as there can be, so that nothing holds them */
    b.scenario.engine.kind = VP_ENGINE_TRANSFORMERS;
    plan = builder_kv(&b, 0);
    assert_int_equal(vp_kv_units(&plan, UINT64_C(1) << 60), UINT64_MAX);
    /* ranks that share a sequence beyond counting: one page */
    plan.cut = VP_KV_PAGED;
    plan.context_ranks = UINT64_MAX;
    plan.type[0].block = 16;
    assert_int_equal(vp_kv_pages(&plan, &plan.type[0], UINT64_C(1) << 40), 1);
}

static void names(void **state) {
    (void)state;
    assert_string_equal(vp_kv_kind_name(VP_KV_FULL), "full");
    assert_string_equal(vp_kv_kind_name(VP_KV_LATENT), "latent");
    assert_string_equal(vp_kv_kind_name(VP_KV_WINDOW), "window");
    assert_string_equal(vp_kv_kind_name(VP_KV_CHUNK), "chunk");
    assert_string_equal(vp_kv_kind_name(VP_KV_STATE), "state");
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
        T(tokens_by_kind),
        T(sparse_latent),
        T(layers_without_a_cache),
        T(nothing_of_an_encoder),
        T(cross_attention),
        T(condensed_entries),
        T(kinds_of_equal_layers_join),
        T(too_many_kinds),
        T(one_group_of_unlike_pages),
        T(group_sizes),
        T(one_kind_alone),
        T(pages_are_made_equal),
        T(groups_of_a_stage),
        T(states),
        T(blocks_hold_a_state),
        T(token_slots),
        T(plain_bytes),
        T(longest),
        T(overflow_is_told),
        T(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
