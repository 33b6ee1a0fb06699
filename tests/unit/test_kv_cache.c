/* KV cache and recurrent states: how a pool is cut, in small cases by hand. Against logs:
 * test_kv_logs.c. */
#include "planner/memory/kv_cache.h"

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

/* Keys and values head by head instead of the latent: values padded to the keys' size. */
static void expanded_latent(void **state) {
    (void)state;
    struct vp_block block = block_mla(16, 512, 64);
    block.attention.expanded = true;
    block.attention.head_dim = 96;
    block.attention.v_head_dim = 64;
    builder_layer(&b, block, 2);
    struct vp_kv_plan plan = builder_kv(&b, 0);
    assert_int_equal(plan.type[0].kind, VP_KV_FULL);
    assert_int_equal(plan.token_bytes, 2 * 16 * 2 * 96 * 2);
    b.scenario.parallel.tensor = 4; /* and divided like heads */
    assert_int_equal(builder_kv(&b, 0).token_bytes, 2 * 4 * 2 * 96 * 2);
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
    kinds[0].attention.compress = 0;    /* a window alone */
    kinds[0].attention.rotary_dim = 32; /* not of that format: a byte per element */
    builder_layers(&b, kinds, (uint32_t[]){2, 0}, 2);
    assert_int_equal(builder_kv(&b, 0).type[0].token_bytes, 512);
    kinds[0].attention.head_dim = 256;
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
    struct vp_block chunk = block_gqa(8, 8, 32);
    chunk.attention.chunk = 128; /* so are chunks */
    builder_layer(&b, chunk, 5);
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
        T(tokens_by_kind),
        T(expanded_latent),
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
