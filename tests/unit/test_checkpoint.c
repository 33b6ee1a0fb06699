#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/import/checkpoint.h"

enum { LAYERS = 2, LAST = LAYERS + 1 };

struct table {
    struct fixture f;
    struct vp_model model;
    struct vp_tensor items[64];
    struct vp_tensors tensors;
};

static void begin(struct table *t) {
    memset(t, 0, sizeof *t);
    fixture_begin(&t->f);
    t->model.layer_count = LAYERS;
    t->tensors = (struct vp_tensors){.items = t->items, .source = "model.safetensors"};
}

/* A tensor of `rows` x `columns` (columns 0: one dimension) of bf16. */
static void add(struct table *t, const char *name, uint64_t rows, uint64_t columns) {
    struct vp_tensor *tensor = &t->items[t->tensors.count++];
    *tensor = (struct vp_tensor){.name = name, .dtype = "BF16", .dims = columns ? 2 : 1};
    tensor->shape[0] = rows;
    tensor->shape[1] = columns;
    tensor->elements = rows * (columns ? columns : 1);
    tensor->bytes = tensor->elements * 2;
}

static void attach(struct table *t, uint64_t computed_bytes) {
    assert_int_equal(vp_checkpoint_attach(&t->f.ctx, &t->model, &t->tensors, computed_bytes),
                     VP_OK);
    const struct vp_checkpoint *c = &t->model.checkpoint;
    uint64_t sum = c->extra_bytes + c->skipped_bytes;
    for (int row = 0; row < LAYERS + 2; row++)
        for (int shard = 0; shard <= VP_SHARD_EXPERT; shard++)
            sum += c->bytes[row][shard];
    assert_int_equal(sum, c->total_bytes); /* nothing is lost, nothing counted twice */
    assert_int_equal(c->tensors, t->tensors.count);
    assert_true(c->known);
}

static uint64_t at(const struct table *t, int row, enum vp_shard shard) {
    return t->model.checkpoint.bytes[row][shard];
}

static void a_dense_model(void **state) {
    (void)state;
    struct table t;
    begin(&t);
    add(&t, "model.embed_tokens.weight", 1000, 64);            /* 128000 bytes */
    add(&t, "model.layers.0.input_layernorm.weight", 64, 0);   /* 128 */
    add(&t, "model.layers.0.self_attn.q_proj.weight", 64, 64); /* 8192 */
    add(&t, "model.layers.0.self_attn.k_proj.weight", 16, 64); /* 2048 */
    add(&t, "model.layers.0.self_attn.k_proj.bias", 16, 0);    /* 32, divided */
    add(&t, "model.layers.0.self_attn.v_proj.weight", 16, 64); /* 2048 */
    add(&t, "model.layers.0.self_attn.o_proj.weight", 64, 64); /* 8192 */
    add(&t, "model.layers.0.self_attn.o_proj.bias", 64, 0);    /* 128, whole */
    add(&t, "model.layers.0.self_attn.q_norm.weight", 16, 0);  /* 32 */
    add(&t, "model.layers.1.mlp.gate_proj.weight", 256, 64);   /* 32768 */
    add(&t, "model.layers.1.mlp.down_proj.weight", 64, 256);   /* 32768 */
    add(&t, "model.norm.weight", 64, 0);                       /* 128 */
    add(&t, "lm_head.weight", 1000, 64);                       /* 128000 */
    attach(&t, 0);
    assert_int_equal(at(&t, 0, VP_SHARD_VOCAB), 128000);
    assert_int_equal(at(&t, 1, VP_SHARD_HEADS), 8192 + 8192);
    assert_int_equal(at(&t, 1, VP_SHARD_KV), 2048 + 32 + 2048);
    assert_int_equal(at(&t, 1, VP_SHARD_NONE), 128 + 128 + 32);
    assert_int_equal(at(&t, 2, VP_SHARD_WIDTH), 65536);
    assert_int_equal(at(&t, LAST, VP_SHARD_NONE), 128);
    assert_int_equal(at(&t, LAST, VP_SHARD_VOCAB), 128000);
    assert_string_equal(t.model.checkpoint.source, "model.safetensors");
    fixture_end(&t.f);
}

static void packed_forms(void **state) {
    (void)state;
    struct table t;
    begin(&t);
    add(&t, "model.layers.0.mlp.up_proj.qweight", 8, 256);          /* 4096, divided */
    add(&t, "model.layers.0.mlp.up_proj.qzeros", 2, 32);            /* 128, divided */
    add(&t, "model.layers.0.mlp.up_proj.scales", 2, 256);           /* 1024, divided */
    add(&t, "model.layers.0.mlp.up_proj.g_idx", 64, 0);             /* 128, per input: whole */
    add(&t, "model.layers.0.mlp.down_proj.qweight", 32, 64);        /* 4096, divided */
    add(&t, "model.layers.0.mlp.down_proj.g_idx", 256, 0);          /* 512, divided */
    add(&t, "model.layers.1.mlp.up_proj.weight_packed", 256, 8);    /* 4096, divided */
    add(&t, "model.layers.1.mlp.up_proj.weight_scale", 256, 1);     /* 512, divided */
    add(&t, "model.layers.1.mlp.up_proj.weight_scale_2", 1, 0);     /* 2, one number: whole */
    add(&t, "model.layers.1.mlp.down_proj.weight_scale", 64, 1);    /* 128, per output: whole */
    add(&t, "model.layers.1.mlp.down_proj.weight_scale_inv", 2, 2); /* 8, tiles: divided */
    attach(&t, 0);
    assert_int_equal(at(&t, 1, VP_SHARD_WIDTH), 4096 + 128 + 1024 + 4096 + 512);
    assert_int_equal(at(&t, 1, VP_SHARD_NONE), 128);
    assert_int_equal(at(&t, 2, VP_SHARD_WIDTH), 4096 + 512 + 8);
    assert_int_equal(at(&t, 2, VP_SHARD_NONE), 2 + 128);
    fixture_end(&t.f);
}

static void experts_and_latent_attention(void **state) {
    (void)state;
    struct table t;
    begin(&t);
    add(&t, "model.layers.1.mlp.experts.0.up_proj.weight", 32, 64);       /* 4096 */
    add(&t, "model.layers.1.mlp.experts.1.up_proj.weight_scale", 1, 0);   /* 2 */
    add(&t, "model.layers.1.mlp.experts.gate_up_proj_blocks", 32, 64);    /* 4096 */
    add(&t, "model.layers.1.mlp.experts.gate_up_proj_bias", 32, 0);       /* 64 */
    add(&t, "model.layers.1.mlp.gate.weight", 8, 64);                     /* 1024 */
    add(&t, "model.layers.1.mlp.gate.e_score_correction_bias", 8, 0);     /* 16 */
    add(&t, "model.layers.1.mlp.shared_experts.up_proj.weight", 32, 64);  /* 4096 */
    add(&t, "model.layers.1.self_attn.kv_a_proj_with_mqa.weight", 9, 64); /* 1152 */
    add(&t, "model.layers.1.self_attn.kv_b_proj.weight", 32, 8);          /* 512 */
    add(&t, "model.layers.1.self_attn.sinks", 4, 0);                      /* 8 */
    attach(&t, 0);
    assert_int_equal(at(&t, 2, VP_SHARD_EXPERT), 4096 + 2 + 4096 + 64);
    assert_int_equal(at(&t, 2, VP_SHARD_NONE), 1024 + 16 + 1152);
    assert_int_equal(at(&t, 2, VP_SHARD_WIDTH), 4096);
    assert_int_equal(at(&t, 2, VP_SHARD_HEADS), 512 + 8);
    fixture_end(&t.f);
}

static void linear_attention_and_other_families(void **state) {
    (void)state;
    struct table t;
    begin(&t);
    add(&t, "model.language_model.layers.0.linear_attn.A_log", 8, 0);              /* 16 */
    add(&t, "model.language_model.layers.0.linear_attn.in_proj_qkv.weight", 8, 8); /* 128 */
    add(&t, "model.language_model.layers.0.linear_attn.norm.weight", 8, 0);        /* 16 */
    add(&t, "backbone.layers.1.mixer.conv1d.weight", 8, 4);                        /* 64 */
    add(&t, "h.0.attn.c_attn.weight", 8, 24);                                      /* 384 */
    add(&t, "h.0.attn.c_proj.bias", 8, 0);                                         /* 16 */
    add(&t, "h.0.mlp.c_fc.weight", 8, 32);                                         /* 512 */
    add(&t, "wpe.weight", 16, 8);                                                  /* 256 */
    add(&t, "ln_f.weight", 8, 0);                                                  /* 16 */
    add(&t, "model.layers.1.mlp.gate_up_proj.weight", 8, 8);                       /* 128 */
    add(&t, "model.layers.1.something_new.weight", 8, 8);                          /* 128 */
    add(&t, "something_else", 8, 0);                                               /* 16 */
    attach(&t, 0);
    assert_int_equal(at(&t, 1, VP_SHARD_HEADS), 16 + 128 + 384);
    assert_int_equal(at(&t, 1, VP_SHARD_NONE), 16 + 16);
    assert_int_equal(at(&t, 1, VP_SHARD_WIDTH), 512);
    assert_int_equal(at(&t, 2, VP_SHARD_HEADS), 64);
    assert_int_equal(at(&t, 2, VP_SHARD_WIDTH), 128);
    assert_int_equal(at(&t, 2, VP_SHARD_NONE), 128);
    assert_int_equal(at(&t, 0, VP_SHARD_NONE), 256 + 16);
    assert_int_equal(at(&t, LAST, VP_SHARD_NONE), 16);
    fixture_end(&t.f);
}

static void what_is_beside_the_decoder(void **state) {
    (void)state;
    struct table t;
    begin(&t);
    add(&t, "model.visual.blocks.0.attn.qkv.weight", 24, 8);       /* 384 */
    add(&t, "vision_tower.encoder.layers.0.mlp.fc1.weight", 8, 8); /* 128 */
    add(&t, "multi_modal_projector.linear_1.weight", 8, 8);        /* 128 */
    add(&t, "model.layers.2.self_attn.q_proj.weight", 8, 8);       /* 128, MTP */
    add(&t, "model.layers.99999999999999999999.q.weight", 8, 8);   /* 128 */
    add(&t, "mtp.layers.0.self_attn.q_proj.weight", 8, 8);         /* 128 */
    add(&t, "model.mtp_layers.0.self_attn.q_proj.weight", 8, 8);   /* 128 */
    add(&t, "model.layers.0.self_attn.rotary_emb.inv_freq", 8, 0); /* 16 */
    attach(&t, 0);
    assert_int_equal(t.model.checkpoint.extra_bytes, 384 + 128 + 128);
    assert_int_equal(t.model.checkpoint.skipped_bytes, 4 * 128 + 16);
    fixture_end(&t.f);
}

static void a_tied_head_is_not_loaded(void **state) {
    (void)state;
    struct table t;
    begin(&t);
    t.model.tied = true;
    add(&t, "model.embed_tokens.weight", 10, 8);
    add(&t, "lm_head.weight", 10, 8);
    attach(&t, 160);
    assert_int_equal(t.model.checkpoint.skipped_bytes, 160);
    assert_int_equal(at(&t, 0, VP_SHARD_VOCAB), 160);
    assert_int_equal(t.f.diags.count, 0);
    fixture_end(&t.f);
}

static void the_config_disagrees(void **state) {
    (void)state;
    struct table t;
    begin(&t);
    add(&t, "model.embed_tokens.weight", 500000, 1000); /* 1000000000 bytes */
    attach(&t, 1000900000);
    assert_int_equal(t.f.diags.count, 0); /* 0.09 % */
    attach(&t, 1001100000);
    fixture_expect(&t.f, VP_D_WEIGHTS_DISAGREE,
                   "the checkpoint's tensors are 0.931 GiB, its config.json describes 0.932 GiB");
    fixture_clear(&t.f);
    attach(&t, 998900000);
    assert_int_equal(t.f.diags.count, 1);
    assert_int_equal(t.f.diags.errors, 0); /* a warning */
    fixture_end(&t.f);
}

static void sizes_beyond_64_bits(void **state) {
    (void)state;
    struct table t;
    begin(&t);
    add(&t, "a", 1, 0);
    add(&t, "b", 1, 0);
    t.items[0].bytes = UINT64_MAX;
    assert_int_equal(vp_checkpoint_attach(&t.f.ctx, &t.model, &t.tensors, 0), VP_ERR_INPUT);
    fixture_expect(&t.f, VP_D_OVERFLOW, "exceed 64 bits");
    assert_false(t.model.checkpoint.known);
    fixture_end(&t.f);
}

/* No name is out of bounds. */
static void odd_names(void **state) {
    (void)state;
    static const char *const NAMES[] = {"",           ".",
                                        "...",        "layers",
                                        "layers.",    "layers.0",
                                        "layers.0.",  ".weight",
                                        "weight",     "layers.x.weight",
                                        "blocks..0",  "h.1",
                                        "_scales",    "experts",
                                        "mtp_",       "norm",
                                        "lm_head",    "layers.0layers.1",
                                        "layers.00.x"};
    struct table t;
    char longest[2001];
    begin(&t);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        add(&t, NAMES[i], 1, 0);
    memset(longest, 'x', 2000);
    longest[2000] = '\0';
    add(&t, longest, 1, 0);
    attach(&t, 0);
    fixture_end(&t.f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dense_model),
        cmocka_unit_test(packed_forms),
        cmocka_unit_test(experts_and_latent_attention),
        cmocka_unit_test(linear_attention_and_other_families),
        cmocka_unit_test(what_is_beside_the_decoder),
        cmocka_unit_test(a_tied_head_is_not_loaded),
        cmocka_unit_test(the_config_disagrees),
        cmocka_unit_test(sizes_beyond_64_bits),
        cmocka_unit_test(odd_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
