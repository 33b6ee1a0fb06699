/* What must hold for every scenario: sums, peaks, intervals, monotony, sharding, lengths, and the
 * JSON that is read back. The scenarios are drawn by a small generator of fixed seed, so that a
 * failure comes again; its number is printed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "planner/doc/json.h"
#include "planner/memory/weights.h"
#include "reports/report.h"
#include "tests/unit/model_builder.h"

enum { SCENARIOS = 2000 };

/* ---- drawing ---- */

static uint64_t random_state;

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t draw(void) {
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* from low to high, both included */
static uint64_t between(uint64_t low, uint64_t high) { return low + draw() % (high - low + 1); }

static bool one_in(uint64_t n) { return draw() % n == 0; }

#define PICK(list) ((list)[draw() % (sizeof(list) / sizeof *(list))])

static struct vp_amount amount(uint64_t most_mib) {
    struct vp_amount a;
    a.low = MIB(between(0, most_mib));
    a.likely = a.low + MIB(between(0, most_mib));
    a.high = a.likely + MIB(between(0, most_mib));
    return a;
}

static const struct vp_scheme SCHEMES[] = {
    {.name = "fp8", .data = VP_DTYPE_FP8, .scale = VP_SCALE_TENSOR, .scale_dtype = VP_DTYPE_FP32},
    {.name = "fp8 block",
     .data = VP_DTYPE_FP8,
     .scale = VP_SCALE_BLOCK,
     .scale_dtype = VP_DTYPE_FP32,
     .block_out = 128,
     .block_in = 128},
    {.name = "int8",
     .data = VP_DTYPE_INT8,
     .scale = VP_SCALE_CHANNEL,
     .scale_dtype = VP_DTYPE_BF16,
     .input_scale = true},
    {.name = "int4",
     .data = VP_DTYPE_INT4,
     .scale = VP_SCALE_GROUP,
     .scale_dtype = VP_DTYPE_BF16,
     .group = 128,
     .zero_dtype = VP_DTYPE_INT4,
     .extra_per_input = 4},
    {.name = "mxfp4", .data = VP_DTYPE_MXFP4, .pad_out = 64, .pad_in = 32},
};

static void draw_recurrent(struct vp_attention *a) {
    static const enum vp_linear_kind KINDS[] = {
        VP_LINEAR_GIVEN,  VP_LINEAR_GATED_DELTA, VP_LINEAR_KDA,      VP_LINEAR_MAMBA2,
        VP_LINEAR_MAMBA1, VP_LINEAR_SHORT_CONV,  VP_LINEAR_LIGHTNING};
    *a = (struct vp_attention){.kind = VP_ATTENTION_LINEAR, .linear = PICK(KINDS)};
    bool one = a->linear == VP_LINEAR_MAMBA1;
    a->key_heads = one ? 1 : UINT64_C(1) << between(0, 4);
    a->value_heads = one ? 1 : a->key_heads << between(0, 2);
    a->key_dim = a->value_dim = 16 * between(1, 8);
    a->step_rank = between(1, 64);
    a->conv_kernel = between(1, 4);
    a->conv_channels = 2 * a->key_heads * a->key_dim + a->value_heads * a->value_dim;
    a->state_elements =
        a->linear == VP_LINEAR_SHORT_CONV ? 0 : a->value_heads * a->key_dim * a->value_dim;
    a->parameters = a->linear == VP_LINEAR_GIVEN ? between(0, 100000) : 0;
    a->conv_bias = one_in(2);
    a->state_norms = one_in(2);
    a->no_norm = one_in(2);
    a->state_dtype = one_in(2) ? VP_DTYPE_FP32 : VP_DTYPE_UNSET;
}

static void draw_heads(struct vp_attention *a) {
    static const uint64_t DIMS[] = {32, 64, 72, 128, 256};
    *a = (struct vp_attention){.kind = VP_ATTENTION_GQA};
    a->kv_heads = UINT64_C(1) << between(0, 4);
    a->heads = a->kv_heads << between(0, 3);
    a->head_dim = PICK(DIMS);
    a->v_head_dim = one_in(4) ? PICK(DIMS) : a->head_dim;
    a->window = one_in(3) ? between(1, 5000) : 0;
    a->chunk = !a->window && one_in(4) ? between(1, 9000) : 0;
    a->qkv_bias = one_in(3);
    a->out_bias = one_in(3);
    a->output_gate = one_in(5);
    a->sinks = one_in(5);
    a->shares_cache = one_in(8);
    a->key_is_value = a->v_head_dim == a->head_dim && one_in(6);
    a->qk_norm = (enum vp_qk_norm)between(0, 2);
    a->rotary_dim = one_in(2) ? a->head_dim : 0;
    a->no_key_bias = one_in(3);
    a->head_gate = one_in(5);
    a->bidirectional = one_in(20);
}

static void draw_latent(struct vp_attention *a) {
    *a = (struct vp_attention){.kind = VP_ATTENTION_MLA};
    a->heads = a->kv_heads = UINT64_C(1) << between(0, 6);
    a->q_lora_rank = one_in(2) ? 64 * between(1, 24) : 0;
    a->kv_lora_rank = 64 * between(1, 8);
    a->qk_nope_head_dim = 32 * between(1, 4);
    a->qk_rope_head_dim = 16 * between(1, 4);
    a->v_head_dim = 32 * between(1, 4);
    a->head_dim = a->qk_nope_head_dim + a->qk_rope_head_dim;
    a->index_heads = a->q_lora_rank && one_in(3) ? between(1, 64) : 0;
    a->index_head_dim = a->index_heads ? 128 : 0;
}

static void draw_compressed(struct vp_attention *a) {
    *a = (struct vp_attention){.kind = VP_ATTENTION_COMPRESSED, .kv_heads = 1};
    a->out_groups = UINT64_C(1) << between(0, 3);
    a->heads = a->out_groups << between(0, 3);
    a->head_dim = a->v_head_dim = one_in(2) ? 512 : 64 * between(1, 8);
    a->rotary_dim = 64;
    a->window = between(1, 500);
    a->q_lora_rank = 32 * between(1, 16);
    a->out_lora_rank = 32 * between(1, 8);
    a->compress = one_in(3) ? 0 : UINT64_C(1) << between(1, 7);
    a->overlap = between(1, 2);
    a->index_heads = a->compress && one_in(2) ? between(1, 64) : 0;
    a->index_head_dim = a->index_heads ? 128 : 0;
    a->sinks = one_in(2);
}

static void draw_experts(struct vp_moe *moe) {
    moe->kind = (enum vp_mlp_kind)between(VP_MLP_LINEAR, VP_MLP_GATED);
    moe->experts = between(1, 160);
    moe->top_k = between(1, moe->experts);
    moe->intermediate = 8 * between(1, 300);
    moe->shared_intermediate = one_in(2) ? 8 * between(1, 300) : 0;
    moe->input = one_in(5) ? 32 * between(1, 16) : 0;
    moe->bias = one_in(4);
    moe->router_bias = one_in(4);
    moe->score_bias = one_in(3);
    moe->zero_experts = one_in(5) ? between(1, 64) : 0;
    moe->shared_switch = one_in(3);
}

static struct vp_block draw_block(const struct vp_model *model) {
    struct vp_block block = {.norms = (uint32_t)between(0, 4)};
    block.norm = one_in(3) ? VP_NORM_LAYER : VP_NORM_RMS;
    switch (between(0, 9)) {
    case 0:
        break;
    case 8:
        draw_compressed(&block.attention);
        break;
    case 9: /* another mixer beside the first */
        draw_heads(&block.attention);
        block.second = block.attention;
        block.second.source_tokens = between(1, 3000);
        if (one_in(2))
            draw_recurrent(&block.second);
        break;
    case 1:
    case 2:
        draw_recurrent(&block.attention);
        break;
    case 3:
        draw_latent(&block.attention);
        break;
    default:
        draw_heads(&block.attention);
    }
    if (one_in(3))
        draw_experts(&block.moe);
    else if (!one_in(6))
        block.mlp = (struct vp_mlp){.kind = (enum vp_mlp_kind)between(VP_MLP_LINEAR, VP_MLP_GATED),
                                    .intermediate = 8 * between(1, 2000),
                                    .bias = one_in(3)};
    for (int role = 0; role < VP_ROLE_COUNT; role++)
        block.scheme[role] = (uint8_t)(draw() % model->scheme_count);
    return block;
}

static struct vp_extra extras[2];
static struct vp_block layer_of_extra;

static void draw_extras(struct vp_model *model) {
    model->extras = extras;
    model->extra_count = (uint32_t)between(0, 2);
    for (uint32_t i = 0; i < model->extra_count; i++)
        extras[i] = (struct vp_extra){.name = i ? "projector" : "tower",
                                      .class_ = VP_CLASS_VISION,
                                      .matrix_elements = between(0, 1000000),
                                      .other_elements = between(0, 1000),
                                      .sharded = one_in(2),
                                      .counted = one_in(2),
                                      .first_stage = one_in(2),
                                      .loaded = !one_in(4),
                                      .scheme = (uint8_t)(draw() % model->scheme_count)};
    if (one_in(2))
        return;
    layer_of_extra = draw_block(model);
    extras[0].layer = &layer_of_extra;
    extras[0].layers = (uint32_t)between(1, 4);
}

static void draw_model(struct builder *b) {
    struct vp_model *model = &b->model;
    struct vp_block kinds[4];
    uint32_t counts[4], n = (uint32_t)between(1, 4);

    model->hidden = 64 * between(1, 32);
    for (size_t i = 0; i < sizeof SCHEMES / sizeof *SCHEMES; i++)
        if (one_in(3))
            vp_model_scheme(model, &SCHEMES[i]);
    for (uint32_t i = 0; i < n; i++) {
        kinds[i] = draw_block(model);
        counts[i] = (uint32_t)between(1, 12);
    }
    builder_layers(b, kinds, counts, n);
    model->vocab = between(1, 200000);
    model->embedding = !one_in(6);
    model->lm_head = !one_in(6);
    model->tied = model->embedding && model->lm_head && one_in(2);
    model->final_norm = !one_in(4);
    model->head_bias = one_in(5);
    model->embedding_scheme = (uint8_t)(draw() % model->scheme_count);
    model->head_scheme = (uint8_t)(draw() % model->scheme_count);
    model->max_position = one_in(3) ? between(1, 500000) : 0;
    model->learned_positions = one_in(5) ? between(1, 4096) : 0;
    model->rotary_positions = one_in(2) ? between(1, 300000) : 0;
    model->multimodal = one_in(4);
    model->token_types = one_in(8) ? 2 : 0;
    model->embedding_norm = one_in(8);
    model->hyper = one_in(8) ? between(2, 4) : 0;
    draw_extras(model);
}

/* A table of stored tensors in the place of shapes. */
static void draw_checkpoint(struct builder *b) {
    struct vp_checkpoint *table = &b->model.checkpoint;
    *table = (struct vp_checkpoint){.known = true};
    table->bytes =
        vp_arena_array(&b->f.arena, (size_t)b->model.layer_count + 2, sizeof *table->bytes);
    for (uint32_t i = 0; i < b->model.layer_count + 2; i++)
        for (int shard = 0; shard <= VP_SHARD_EXPERT; shard++)
            table->total_bytes += table->bytes[i][shard] = between(0, 1 << 28);
    table->extra_bytes = one_in(3) ? between(0, 1 << 30) : 0;
    table->total_bytes += table->extra_bytes;
}

static void draw_layout(struct builder *b) {
    static const uint64_t RANKS[] = {1, 1, 2, 3, 4, 8};
    struct vp_parallel *p = &b->scenario.parallel;
    p->tensor = PICK(RANKS);
    p->pipeline = between(1, vp_min(b->model.layer_count, 5));
    p->data = one_in(4) ? 2 : 1;
    if (one_in(4))
        p->expert = p->tensor * p->data;
    b->scenario.engine.expert_parallel = p->expert > 1 || one_in(4);
    p->context = p->tensor % 2 == 0 && one_in(4) ? 2 : 1;
    if (b->scenario.engine.kind == VP_ENGINE_SGLANG && one_in(2))
        p->attention_data = p->tensor;
    b->scenario.hardware.count = p->tensor * p->pipeline * p->data;
}

static void draw_rules(struct vp_rules *r) {
    r->budget = (enum vp_vllm_budget)between(VP_VLLM_TORCH_PEAK, VP_VLLM_V1_GRAPHS);
    r->tokens_by_concurrency = one_in(2);
    r->window_groups = !one_in(4);
    r->state_pages_cached = between(1, 2);
    r->sampler_millibytes = between(0, 41000);
    r->sampler_adds_logits = one_in(2);
    r->activation_fixed_bytes = MIB(between(0, 100));
    r->multimodal_bytes = MIB(between(0, 200));
    r->workspace_held = one_in(2);
    r->activation_low_permille = between(500, 1000);
    r->activation_high_permille = between(1000, 2500);
    r->activation_slack_bytes = MIB(between(0, 300));
    r->non_torch = amount(1000);
    r->non_torch_group = amount(2000);
    r->graph_base = amount(500);
    r->graph_per_layer = amount(10);
    r->load_excess = one_in(2) ? amount(300) : vp_exactly(0);
    r->expert_width_multiple = one_in(2) ? 128 : 0;
    r->expert_hidden_multiple = 256;
    r->window_share_ppb = between(1, 1000000000);
    r->state_share_ppb = between(1, 1000000000);
}

static void draw_engine(struct builder *b) {
    static const enum vp_engine_kind KINDS[] = {VP_ENGINE_VLLM, VP_ENGINE_VLLM, VP_ENGINE_SGLANG,
                                                VP_ENGINE_TRANSFORMERS};
    static const uint64_t BLOCKS[] = {1, 16, 16, 64, 256};
    struct vp_engine *e = &b->scenario.engine;
    e->kind = PICK(KINDS);
    draw_rules(&e->rules);
    e->block_size = PICK(BLOCKS);
    e->max_num_seqs = between(1, 1024);
    e->max_batched_tokens = between(e->max_num_seqs, 16384);
    e->utilization_ppb = between(300000000, 1000000000);
    e->kv_cache_bytes = one_in(10) ? MIB(between(1, 100000)) : 0;
    e->blocks_override = one_in(10) ? between(1, 100000) : 0;
    e->enforce_eager = one_in(4);
    e->prefix_caching = one_in(2);
    e->chunked_prefill = one_in(2);
    e->hybrid_off = one_in(5);
}

static void draw_scenario(struct builder *b, uint64_t number) {
    static const enum vp_dtype KV[] = {VP_DTYPE_BF16, VP_DTYPE_FP8, VP_DTYPE_FP32, VP_DTYPE_NVFP4};
    struct vp_scenario *s = &b->scenario;
    random_state = number * UINT64_C(0x2545f4914f6cdd1d);
    builder_begin(b);
    draw_model(b);
    if (one_in(8))
        draw_checkpoint(b);
    draw_engine(b);
    draw_layout(b);
    s->hardware.memory.low = MIB(between(500, 150000));
    s->hardware.memory.likely = s->hardware.memory.low + MIB(between(0, 500));
    s->hardware.memory.high = s->hardware.memory.likely + MIB(between(0, 500));
    s->hardware.memory_bytes = s->hardware.memory.likely;
    s->hardware.reserved_bytes = one_in(4) ? MIB(between(1, 20000)) : 0;
    s->precision.kv_cache = PICK(KV);
    s->serve.context = between(1, one_in(3) ? 200000 : 8192);
    s->serve.concurrency = between(1, one_in(3) ? 1000 : 8);
    s->engine.max_model_len = s->serve.context + (one_in(2) ? between(0, 100000) : 0);
    for (int i = 0; i < VP_MEASURE_COUNT; i++)
        if (one_in(12)) {
            s->measured.known[i] = true;
            s->measured.value[i] = i == VP_M_BLOCKS       ? between(1, 100000)
                                   : i == VP_M_BLOCK_SIZE ? 16 * between(1, 100)
                                                          : MIB(between(0, 20000));
        }
    if (one_in(4))
        s->budget = (struct vp_budget){
            .bound = {[VP_BOUND_MEMORY] = {.given = one_in(2), .value = MIB(between(0, 100000))},
                      [VP_BOUND_HEADROOM] = {.given = one_in(2), .value = MIB(between(0, 10000))},
                      [VP_BOUND_CONTEXT] = {.given = one_in(2), .value = between(0, 10000)}}};
}

/* ---- what holds of one result ---- */

static uint64_t number; /* of the scenario, for messages */

#define HOLDS(what)                                                                                \
    do {                                                                                           \
        if (!(what))                                                                               \
            fail_msg("scenario %" PRIu64 ": %s", number, #what);                                   \
    } while (0)

static bool ordered(const struct vp_amount *a) {
    return a->low <= a->likely && a->likely <= a->high;
}

static bool equal(const struct vp_amount *a, const struct vp_amount *b) {
    return a->low == b->low && a->likely == b->likely && a->high == b->high;
}

/* Rows = components = devices; no instant is above the peak. */
static void sums_hold(const struct vp_result *r) {
    for (uint32_t d = 0; d < r->device_count; d++) {
        const struct vp_device *device = &r->devices[d];
        struct vp_amount all = {0, 0, 0};
        for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
            struct vp_amount rows = {0, 0, 0};
            for (uint32_t i = 0; i < r->ledger.count; i++) {
                const struct vp_row *row = &r->ledger.rows[i];
                if (row->device == d && (int)row->component == c &&
                    row->from <= device->peak_step && device->peak_step <= row->to)
                    rows = vp_amount_add(rows, row->bytes);
            }
            HOLDS(equal(&rows, &device->component[c]));
            HOLDS(device->present[c] || rows.high == 0);
            HOLDS(ordered(&device->component[c]));
            all = vp_amount_add(all, device->component[c]);
        }
        HOLDS(equal(&all, &device->need));
        for (int step = 0; step < VP_STEP_COUNT; step++)
            HOLDS(vp_ledger_at(&r->ledger, d, (enum vp_step)step).likely <= device->need.likely);
        HOLDS(r->headroom_bytes <=
              (int64_t)device->usable_bytes - (int64_t)device->need.likely); /* of the worst */
    }
}

static void intervals_hold(const struct vp_result *r) {
    const struct vp_engine_report *e = &r->report;
    const struct vp_amount *const LOGGED[] = {
        &e->weights,         &e->activation_peak,       &e->non_torch,
        &e->graph,           &e->available_kv,          &e->num_gpu_blocks,
        &e->kv_cache_tokens, &e->max_concurrency_milli, &e->estimated_max_model_len};
    for (size_t i = 0; i < sizeof LOGGED / sizeof *LOGGED; i++)
        HOLDS(ordered(LOGGED[i]));
    for (uint32_t i = 0; i < r->ledger.count; i++)
        HOLDS(ordered(&r->ledger.rows[i].bytes));
    HOLDS(!e->available_negative || e->available_kv.high == 0);
}

/* What is cut from the pool is not more than the pool; a plan that fits is not short of bytes. */
static void pool_holds(const struct vp_result *r) {
    const struct vp_scenario *s = r->scenario;
    bool given = s->measured.known[VP_M_BLOCKS] || s->engine.blocks_override > 0;
    if (!given && s->parallel.pipeline == 1 && r->kv.page_bytes > 0)
        HOLDS(r->report.num_gpu_blocks.likely <= r->report.available_kv.likely / r->kv.page_bytes);
    if (!given && r->verdict == VP_FITS)
        HOLDS(r->headroom_bytes >= 0);
    HOLDS((r->verdict == VP_FITS) == (r->reason == VP_REASON_NONE));
}

static const struct vp_result *evaluate(struct builder *b) {
    struct vp_result *r = VP_NEW(&b->f.arena, struct vp_result);
    HOLDS(vp_plan_evaluate(&b->f.arena, r, &b->scenario));
    return r;
}

static void results_add_up(void **state) {
    (void)state;
    uint32_t verdicts[3] = {0, 0, 0};
    for (number = 0; number < SCENARIOS; number++) {
        struct builder b;
        draw_scenario(&b, number);
        const struct vp_result *r = evaluate(&b);
        sums_hold(r);
        intervals_hold(r);
        pool_holds(r);
        verdicts[r->verdict]++;
        builder_end(&b);
    }
    for (int i = 0; i < 3; i++) /* the generator reaches all answers */
        assert_true(verdicts[i] > SCENARIOS / 50);
}

/* ---- more never takes less ---- */

static void more_context(struct builder *b) {
    b->scenario.serve.context += between(1, 5000);
    b->scenario.engine.max_model_len =
        vp_max(b->scenario.engine.max_model_len, b->scenario.serve.context);
}

static void more_sequences(struct builder *b) {
    b->scenario.serve.concurrency += between(1, 100);
    b->scenario.engine.max_num_seqs += between(0, 100);
}

static void more_batched_tokens(struct builder *b) {
    b->scenario.engine.max_batched_tokens += between(1, 10000);
}

/* The stored tensors of a checkpoint stay what they are. */
static void more_experts(struct builder *b) {
    for (uint32_t i = 0; i < b->model.block_count && !b->model.checkpoint.known; i++)
        if (b->model.blocks[i].moe.kind != VP_MLP_NONE)
            b->model.blocks[i].moe.experts += between(1, 8);
}

static void more_width(struct builder *b) {
    for (uint32_t i = 0; i < b->model.block_count; i++)
        if (b->model.blocks[i].mlp.kind != VP_MLP_NONE)
            b->model.blocks[i].mlp.intermediate += between(1, 64);
}

static void more_vocabulary(struct builder *b) { b->model.vocab += between(1, 1000); }

static void more_takes_more(void **state) {
    (void)state;
    static void (*const MORE[])(struct builder *) = {more_context,        more_sequences,
                                                     more_batched_tokens, more_experts,
                                                     more_width,          more_vocabulary};
    for (number = 0; number < SCENARIOS; number++) {
        struct builder b;
        draw_scenario(&b, number);
        const struct vp_result *less = evaluate(&b);
        uint64_t which = number % (sizeof MORE / sizeof *MORE);
        MORE[which](&b);
        const struct vp_result *more = evaluate(&b);
        for (uint32_t d = 0; d < less->device_count; d++) {
            HOLDS(more->devices[d].need.low >= less->devices[d].need.low);
            HOLDS(more->devices[d].need.likely >= less->devices[d].need.likely);
            HOLDS(more->devices[d].need.high >= less->devices[d].need.high);
        }
        if (MORE[which] == more_context) /* of longer sequences never more at once */
            HOLDS(more->kv.max_concurrency_milli <= less->kv.max_concurrency_milli);
        builder_end(&b);
    }
}

static uint64_t weights_of_all(struct builder *b) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < b->scenario.parallel.pipeline; i++)
        sum += builder_weights(b, NULL, i);
    return sum;
}

/* One more layer: the weights of all stages together never fall (of one stage they may: its bounds
 * move). With one stage and one group of the cache nothing falls. Where layers of unlike types are
 * grouped, vLLM itself may need less for more layers: 8 full and 9 window layers are two groups of
 * 9, 8 and 10 are three groups of 8. */
static void more_layers_take_more(void **state) {
    (void)state;
    for (number = 0; number < SCENARIOS; number++) {
        struct builder b;
        draw_scenario(&b, number);
        b.model.checkpoint.known = false;
        if (one_in(2))
            b.scenario.parallel.pipeline = 1;
        struct vp_kv_plan plan = builder_kv(&b, 0);
        bool plain = b.scenario.parallel.pipeline == 1 && plan.groups <= 1;
        uint64_t weights = weights_of_all(&b);
        const struct vp_result *less = evaluate(&b);
        struct vp_block *kinds = b.model.blocks;
        uint32_t counts[4], n = b.model.block_count;
        for (uint32_t i = 0; i < n; i++)
            counts[i] = kinds[i].count;
        counts[draw() % n]++;
        builder_layers(&b, kinds, counts, n);
        HOLDS(weights_of_all(&b) >= weights);
        const struct vp_result *more = evaluate(&b);
        HOLDS(!plain || more->devices[0].need.likely >= less->devices[0].need.likely);
        HOLDS(!plain || more->devices[0].need.high >= less->devices[0].need.high);
        builder_end(&b);
    }
}

/* ---- sharding ---- */

/* Without what an engine adds: padding, tables, copies. */
static void draw_plain(struct builder *b) {
    draw_scenario(b, number);
    b->scenario.engine.kind = VP_ENGINE_TRANSFORMERS; /* pads no vocabulary */
    b->scenario.engine.rules.expert_width_multiple = 0;
    b->scenario.measured.known[VP_M_WEIGHTS] = false;
    b->model.rotary_positions = 0;
    b->model.checkpoint.known = false;
}

static void one_rank_holds_the_whole(void **state) {
    (void)state;
    for (number = 0; number < SCENARIOS; number++) {
        struct builder b;
        draw_plain(&b);
        b.scenario.parallel = (struct vp_parallel){
            .tensor = 1, .pipeline = 1, .data = 1, .expert = 1, .context = 1, .attention_data = 1};
        struct vp_ledger ledger = builder_ledger(&b);
        uint64_t bytes = builder_weights(&b, &ledger, 0);
        bytes -= ledger_owner(&ledger, 0, "absorbed up-projections");
        HOLDS(bytes == vp_weights_unsharded(&b.model).v);
        builder_end(&b);
    }
}

static void ranks_hold_the_whole(void **state) {
    (void)state;
    for (number = 0; number < SCENARIOS; number++) {
        struct builder b;
        draw_plain(&b);
        const struct vp_parallel *p = &b.scenario.parallel;
        struct vp_sum whole = vp_weights_unsharded(&b.model);
        HOLDS(!whole.overflow);
        HOLDS(weights_of_all(&b) * p->tensor * p->data >= whole.v);
        if (one_in(2)) { /* the same of a checkpoint's tensors */
            draw_checkpoint(&b);
            HOLDS(weights_of_all(&b) * p->tensor * p->data >= b.model.checkpoint.total_bytes);
        }
        builder_end(&b);
    }
}

/* Twice the tensor-parallel ranks: no rank holds more, on any stage, and no sequence takes more of
 * its cache. */
static void more_ranks_hold_less(void **state) {
    (void)state;
    for (number = 0; number < SCENARIOS; number++) {
        struct builder b;
        uint64_t weights[8];
        draw_scenario(&b, number);
        struct vp_parallel *p = &b.scenario.parallel;
        p->data = p->expert = p->attention_data = 1;
        uint64_t token = builder_kv(&b, 0).token_bytes, states = builder_kv(&b, 0).state_bytes;
        for (uint32_t i = 0; i < p->pipeline; i++)
            weights[i] = builder_weights(&b, NULL, i);
        p->tensor *= 2;
        for (uint32_t i = 0; i < p->pipeline; i++)
            HOLDS(builder_weights(&b, NULL, i) <= weights[i]);
        HOLDS(builder_kv(&b, 0).token_bytes <= token && builder_kv(&b, 0).state_bytes <= states);
        builder_end(&b);
    }
}

/* ---- lengths ---- */

/* Units never fall with the length, and the longest sequence is the longest: by trying all. */
static void lengths_are_exact(void **state) {
    (void)state;
    enum { LIMIT = 700 };
    uint64_t units[LIMIT + 1];
    for (number = 0; number < SCENARIOS; number++) {
        struct builder b;
        draw_scenario(&b, number);
        if (one_in(2)) /* few tokens, many steps */
            b.scenario.engine.max_batched_tokens = between(1, 64);
        struct vp_kv_plan plan = builder_kv(&b, 0);
        for (uint64_t n = 0; n <= LIMIT; n++) {
            units[n] = vp_kv_units(&plan, n);
            HOLDS(n == 0 || units[n] >= units[n - 1]);
        }
        for (int i = 0; i < 4; i++) {
            uint64_t sequences = between(1, 5), limit = between(0, LIMIT), longest = 0;
            uint64_t pool = between(0, units[LIMIT] * sequences + 1);
            for (uint64_t n = 0; n <= limit; n++)
                if (units[n] * sequences <= pool)
                    longest = n;
            HOLDS(vp_kv_longest(&plan, pool, sequences, limit) == longest);
        }
        uint64_t length = LIMIT, before = units[LIMIT];
        for (int i = 0; i < 20; i++) {
            length += between(1, 20000);
            HOLDS(vp_kv_units(&plan, length) >= before);
            before = vp_kv_units(&plan, length);
        }
        builder_end(&b);
    }
}

/* ---- the result as JSON ---- */

static const char *json_of(struct builder *b) {
    struct vp_result *r = VP_NEW(&b->f.arena, struct vp_result);
    struct vp_buf text = {.arena = &b->f.arena};
    struct vp_json json = vp_json_begin(&text);
    fixture_clear(&b->f);
    HOLDS(vp_plan_run(&b->f.ctx, r, &b->scenario) == VP_OK);
    vp_report_json(&json, r);
    return vp_buf_text(&text);
}

static uint64_t number_at(const struct vp_node *map, const char *key) {
    uint64_t v = 0;
    HOLDS(vp_node_u64(&v, vp_node_get(map, key)));
    return v;
}

/* From the text alone: the worst device's components are its need, as the summary has it. */
static void components_add_up(const struct vp_node *root) {
    const struct vp_node *summary = vp_node_get(root, "summary");
    const struct vp_node *devices = vp_node_get(root, "devices");
    const char *worst = vp_node_text(vp_node_get(summary, "worst_device"));
    bool found = false;
    for (uint32_t d = 0; d < devices->count; d++) {
        const struct vp_node *components = vp_node_get(devices->items[d], "components");
        uint64_t sum = 0;
        if (strcmp(vp_node_text(vp_node_get(devices->items[d], "id")), worst) != 0)
            continue;
        for (uint32_t i = 0; i < components->count; i++)
            sum += number_at(components->items[i], "likely");
        HOLDS(sum == number_at(vp_node_get(summary, "need_bytes"), "likely"));
        HOLDS(sum == number_at(vp_node_get(devices->items[d], "peak"), "bytes"));
        found = true;
    }
    HOLDS(found);
}

static void json_is_the_answer(void **state) {
    (void)state;
    for (number = 0; number < SCENARIOS; number += 2) { /* the dearest test: half of them */
        struct builder b;
        struct vp_node *root;
        draw_scenario(&b, number);
        const char *first = json_of(&b), *again = json_of(&b);
        HOLDS(strcmp(first, again) == 0); /* the same input gives the same bytes */
        HOLDS(vp_json_read(&b.f.ctx, &root, (struct vp_bytes){first, strlen(first)}, "result") ==
              VP_OK);
        const struct vp_result *r = evaluate(&b);
        const char *verdict = vp_node_text(vp_node_get(root, "verdict"));
        HOLDS(verdict && strcmp(verdict, vp_verdict_name(r->verdict)) == 0);
        components_add_up(root);
        builder_end(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_add_up),        cmocka_unit_test(more_takes_more),
        cmocka_unit_test(more_layers_take_more), cmocka_unit_test(one_rank_holds_the_whole),
        cmocka_unit_test(ranks_hold_the_whole),  cmocka_unit_test(more_ranks_hold_less),
        cmocka_unit_test(lengths_are_exact),     cmocka_unit_test(json_is_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
