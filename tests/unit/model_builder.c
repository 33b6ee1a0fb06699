#include "tests/unit/model_builder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "planner/import/input.h"
#include "planner/memory/weights.h"

static const struct vp_scheme BF16 = {.name = "bf16", .data = VP_DTYPE_BF16};

void builder_begin(struct builder *b) {
    struct vp_scenario *s = &b->scenario;
    memset(b, 0, sizeof *b);
    fixture_begin(&b->f);
    b->f.ctx.profiles = "profiles";
    b->model = (struct vp_model){.name = "by hand", .model_type = "blocks", .dtype = VP_DTYPE_BF16};
    vp_model_scheme(&b->model, &BF16);
    s->name = "by hand";
    s->model = &b->model;
    s->hardware = (struct vp_hardware){.gpu_name = "a card",
                                       .count = 1,
                                       .nodes = 1,
                                       .memory_bytes = GIB(80),
                                       .memory = vp_exactly(GIB(80))};
    s->hardware.gpu.id = s->hardware.gpu.name = "a card";
    s->parallel = (struct vp_parallel){
        .tensor = 1, .pipeline = 1, .data = 1, .expert = 1, .context = 1, .attention_data = 1};
    s->precision = (struct vp_precision){
        .weights = "checkpoint", .kv_cache = VP_DTYPE_BF16, .compute = VP_DTYPE_BF16};
    s->engine = (struct vp_engine){.name = "vllm",
                                   .kind = VP_ENGINE_VLLM,
                                   .version_text = "0.13",
                                   .max_model_len = 4096,
                                   .max_num_seqs = 256,
                                   .max_batched_tokens = 2048,
                                   .utilization_ppb = 900000000,
                                   .block_size = 16,
                                   .chunked_prefill = true};
    s->engine.rules = (struct vp_rules){.budget = VP_VLLM_V1,
                                        .window_groups = true,
                                        .state_pages_cached = 2,
                                        .state_align = 16,
                                        .latent_align = 64,
                                        .activation_low_permille = 1000,
                                        .activation_high_permille = 1000,
                                        .overhead_class = "none",
                                        .overhead_source = "by hand"};
    s->serve = (struct vp_serve){
        .context = 4096, .concurrency = 1, .replicas = 1, .arrival = "closed_loop"};
}

void builder_end(struct builder *b) { fixture_end(&b->f); }

void builder_layers(struct builder *b, const struct vp_block *kinds, const uint32_t *counts,
                    uint32_t n) {
    uint32_t total = 0, count = 0;
    for (uint32_t i = 0; i < n; i++)
        total += counts[i];
    struct vp_block *layers = VP_NEW_ARRAY(&b->f.arena, total, struct vp_block);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < counts[i]; k++)
            layers[count++] = kinds[i];
    vp_model_fold(&b->f.ctx, &b->model, layers, count);
}

void builder_layer(struct builder *b, struct vp_block kind, uint32_t count) {
    builder_layers(b, &kind, &count, 1);
}

void builder_scheme(struct builder *b, struct vp_scheme scheme) {
    uint32_t index = vp_model_scheme(&b->model, &scheme);
    for (uint32_t i = 0; i < b->model.block_count; i++)
        memset(b->model.blocks[i].scheme, (int)index, sizeof b->model.blocks[i].scheme);
}

void builder_ends(struct builder *b, uint64_t vocab, bool tied) {
    b->model.vocab = vocab;
    b->model.embedding = b->model.lm_head = b->model.final_norm = true;
    b->model.tied = tied;
}

struct vp_block block_gqa(uint64_t heads, uint64_t kv_heads, uint64_t head_dim) {
    struct vp_block block = {.norms = 2};
    block.attention = (struct vp_attention){.kind = VP_ATTENTION_GQA,
                                            .heads = heads,
                                            .kv_heads = kv_heads,
                                            .head_dim = head_dim,
                                            .v_head_dim = head_dim};
    return block;
}

struct vp_block block_window(uint64_t kv_heads, uint64_t head_dim, uint64_t window) {
    struct vp_block block = block_gqa(kv_heads, kv_heads, head_dim);
    block.attention.window = window;
    return block;
}

struct vp_block block_mla(uint64_t heads, uint64_t kv_lora_rank, uint64_t rope_dim) {
    struct vp_block block = {.norms = 2};
    block.attention = (struct vp_attention){.kind = VP_ATTENTION_MLA,
                                            .heads = heads,
                                            .kv_heads = heads,
                                            .kv_lora_rank = kv_lora_rank,
                                            .qk_rope_head_dim = rope_dim};
    return block;
}

struct vp_block block_state(uint64_t state_elements, enum vp_dtype dtype) {
    struct vp_block block = {.norms = 0};
    block.attention = (struct vp_attention){.kind = VP_ATTENTION_LINEAR,
                                            .linear = VP_LINEAR_GIVEN,
                                            .state_elements = state_elements,
                                            .state_dtype = dtype};
    return block;
}

static struct vp_stage stage_of(const struct builder *b, uint32_t index) {
    return vp_stage_split(b->model.layer_count, (uint32_t)b->scenario.parallel.pipeline, index);
}

struct vp_kv_plan builder_kv(struct builder *b, uint32_t index) {
    struct vp_stage stage = stage_of(b, index);
    struct vp_kv_plan plan;
    vp_kv_plan_make(&plan, &b->scenario, &stage);
    return plan;
}

struct vp_ledger builder_ledger(struct builder *b) {
    return (struct vp_ledger){.arena = &b->f.arena};
}

struct vp_engine_stage builder_stage(struct builder *b, struct vp_ledger *ledger, uint32_t index) {
    struct vp_stage stage = stage_of(b, index);
    struct vp_engine_stage out;
    vp_engine_stage_make(&out, ledger, &b->scenario, &stage, index);
    return out;
}

uint64_t builder_weights(struct builder *b, struct vp_ledger *ledger, uint32_t index) {
    struct vp_ledger own = builder_ledger(b);
    struct vp_stage stage = stage_of(b, index);
    if (!ledger)
        ledger = &own;
    vp_weights_add(ledger, &b->scenario, &stage, index);
    assert_false(ledger->overflow);
    return ledger_likely(ledger, index, VP_C_WEIGHTS) + ledger_likely(ledger, index, VP_C_VISION);
}

const struct vp_result *builder_evaluate(struct builder *b) {
    struct vp_result *result = VP_NEW(&b->f.arena, struct vp_result);
    assert_true(vp_plan_evaluate(&b->f.arena, result, &b->scenario));
    return result;
}

/* ---- rows ---- */

uint64_t ledger_likely(const struct vp_ledger *ledger, uint32_t device,
                       enum vp_component component) {
    return vp_ledger_component(ledger, device, component, VP_STEP_SERVE).likely;
}

static const struct vp_row *find(const struct vp_ledger *ledger, uint32_t device,
                                 const char *owner) {
    for (uint32_t i = 0; i < ledger->count; i++)
        if (ledger->rows[i].device == device && strcmp(ledger->rows[i].owner, owner) == 0)
            return &ledger->rows[i];
    return NULL;
}

const struct vp_row *ledger_row(const struct vp_ledger *ledger, uint32_t device,
                                const char *owner) {
    const struct vp_row *row = find(ledger, device, owner);
    if (!row)
        fail_msg("device %" PRIu32 " has no row \"%s\"", device, owner);
    return row;
}

bool ledger_has(const struct vp_ledger *ledger, uint32_t device, const char *owner) {
    return find(ledger, device, owner) != NULL;
}

uint64_t ledger_owner(const struct vp_ledger *ledger, uint32_t device, const char *owner) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < ledger->count; i++)
        if (ledger->rows[i].device == device && strcmp(ledger->rows[i].owner, owner) == 0)
            sum += ledger->rows[i].bytes.likely;
    return sum;
}

uint64_t row_input(const struct vp_row *row, const char *name) {
    for (uint8_t i = 0; i < row->inputs; i++)
        if (strcmp(row->input[i].name, name) == 0)
            return row->input[i].value;
    fail_msg("row \"%s\" has no input %s", row->owner, name);
    return 0;
}

/* ---- from YAML ---- */

static void show_faults(const struct fixture *f) {
    for (uint32_t i = 0; i < f->diags.count; i++)
        print_message("%s %s\n", vp_diag_code(f->diags.items[i].id), f->diags.items[i].message);
}

struct vp_scenario *read_yaml(struct fixture *f, const char *yaml, const char *field,
                              const char *value) {
    struct vp_setting setting = {field, value, field};
    struct vp_scenarios scenarios;
    const char *text = vp_arena_printf(&f->arena, "vramplan: 1\n%s", yaml);
    const char *path = fixture_text_file(f, "scenario.yaml", text);
    f->ctx.profiles = "profiles";
    enum vp_status status = vp_input_read(&f->ctx, &scenarios, path, &setting, field ? 1 : 0);
    if (status != VP_OK || scenarios.count != 1) {
        show_faults(f);
        fail_msg("the scenario cannot be read");
    }
    return scenarios.items[0];
}

const struct vp_result *plan_yaml_with(struct fixture *f, const char *yaml, const char *field,
                                       const char *value) {
    struct vp_result *result = VP_NEW(&f->arena, struct vp_result);
    struct vp_scenario *scenario = read_yaml(f, yaml, field, value);
    if (vp_plan_run(&f->ctx, result, scenario) != VP_OK) {
        show_faults(f);
        fail_msg("the scenario cannot be planned");
    }
    return result;
}

const struct vp_result *plan_yaml(struct fixture *f, const char *yaml) {
    return plan_yaml_with(f, yaml, NULL, NULL);
}

void assert_near(uint64_t a, uint64_t b, uint64_t permille) {
    uint64_t apart = a > b ? a - b : b - a;
    if (apart > vp_mul_div(b, permille, 1000))
        fail_msg("%" PRIu64 " is not within %" PRIu64 "/1000 of %" PRIu64, a, permille, b);
}
