#include "planner/import/engine_profile.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/memo.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/engine_args.h"
#include "planner/import/engine_profile_parts.h"
#include "planner/import/profile.h"

static const struct vp_profile_kind engine_kind = {"engines", "vramplan_engine", "engine"};

void vp_rule_broken(struct vp_situation *s, const struct vp_node *node, const char *what) {
    vp_diag_add(s->ctx->diags, VP_D_PROFILE_BROKEN, node ? &node->pos : NULL,
                "the engine profile %s cannot be used: %s", s->path, what);
    s->broken = true;
}

/* A version that is a date is held against from_date and until_date. A row that names bounds of the
 * other kind only: dates come after every release. */
static bool version_holds(struct vp_situation *s, const struct vp_node *row) {
    bool date = s->scenario->engine.version.kind == VP_VERSION_DATE;
    const struct vp_node *from = vp_node_get(row, date ? "from_date" : "from");
    const struct vp_node *until = vp_node_get(row, date ? "until_date" : "until");
    struct vp_version bound;

    if (date && !until && vp_node_get(row, "until"))
        return false;
    if (!date && !from && vp_node_get(row, "from_date"))
        return false;
    if (from && (!vp_version_parse(&bound, vp_node_text(from)) ||
                 vp_version_compare(s->scenario->engine.version, bound) < 0))
        return false;
    if (until && (!vp_version_parse(&bound, vp_node_text(until)) ||
                  vp_version_compare(s->scenario->engine.version, bound) >= 0))
        return false;
    return true;
}

static bool list_has(const struct vp_node *list, const char *text) {
    for (uint32_t i = 0; i < list->count; i++)
        if (vp_text_eq(vp_node_text(list->items[i]), text))
            return true;
    return false;
}

static bool env_holds(const struct vp_engine *engine, const struct vp_node *wanted) {
    for (uint32_t i = 0; i < wanted->count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < engine->env_count; k++)
            found |= vp_text_eq(engine->env[k].key, wanted->keys[i]) &&
                     vp_text_eq(engine->env[k].value, vp_node_text(wanted->items[i]));
        if (!found)
            return false;
    }
    return true;
}

static bool card_holds(struct vp_situation *s, const struct vp_node *row) {
    const struct vp_gpu *gpu = &s->scenario->hardware.gpu;
    const struct vp_node *vendor = vp_node_get(row, "vendor"), *arch = vp_node_get(row, "arch");
    const struct vp_node *least = vp_node_get(row, "min_gib"), *most = vp_node_get(row, "max_gib");
    const struct vp_node *except = vp_node_get(row, "not_gpu"), *only = vp_node_get(row, "gpu");
    uint64_t gib = s->scenario->hardware.memory_bytes >> 30, bound;

    if (vendor && !vp_text_eq(vp_node_text(vendor), gpu->vendor))
        return false;
    if (arch && !list_has(arch, gpu->arch))
        return false;
    if (only && !(gpu->id && list_has(only, gpu->id)))
        return false;
    if (vp_node_u64(&bound, least) && gib < bound)
        return false;
    if (vp_node_u64(&bound, most) && gib >= bound)
        return false;
    for (uint32_t i = 0; except && i < except->count; i++)
        if (gpu->id && vp_text_starts(gpu->id, vp_node_text(except->items[i])))
            return false;
    return true;
}

static bool model_holds(struct vp_situation *s, const struct vp_node *row) {
    const struct vp_node *types = vp_node_get(row, "model_type");
    const struct vp_node *ranks = vp_node_get(row, "min_tensor");
    const char *norm = vp_node_text(vp_node_get(row, "norm"));
    const struct vp_model *model = s->scenario->model;
    bool rms = model && model->block_count > 0 && model->blocks[0].norm == VP_NORM_RMS;
    uint64_t least;

    if (norm && vp_text_eq(norm, "rmsnorm") != rms)
        return false;
    if (types && !(model && model->model_type && list_has(types, model->model_type)))
        return false;
    return !vp_node_u64(&least, ranks) || s->scenario->parallel.tensor >= least;
}

/* Arguments that must have been given with these values; a rule that asks for one computes with it.
 */
static bool args_hold(const struct vp_engine *engine, const struct vp_node *wanted) {
    for (uint32_t i = 0; i < wanted->count; i++) {
        const char *value = vp_engine_arg(engine, wanted->keys[i]);
        if (!value || !vp_text_eq(value, vp_node_text(wanted->items[i])))
            return false;
    }
    return true;
}

/* What a training framework was told. */
static bool training_holds(struct vp_situation *s, const struct vp_node *row) {
    const struct vp_node *args = vp_node_get(row, "args"), *given = vp_node_get(row, "from_arg");
    const struct vp_node *sharded = vp_node_get(row, "sharded");
    const struct vp_parallel *parallel = &s->scenario->parallel;
    bool flag;

    if (args && !args_hold(&s->scenario->engine, args))
        return false;
    if (given && !vp_engine_arg(&s->scenario->engine, vp_node_text(given)))
        return false;
    return !vp_node_bool(&flag, sharded) || flag == (parallel->fsdp || parallel->zero == 3);
}

/* What is asked here must be in key_of, too. */
static bool holds(struct vp_situation *s, const struct vp_node *row) {
    const struct vp_node *env = vp_node_get(row, "env");

    return version_holds(s, row) && card_holds(s, row) && model_holds(s, row) &&
           training_holds(s, row) && (!env || env_holds(&s->scenario->engine, env));
}

/* The first row of a list that holds; none is a fault of the profile. */
static const struct vp_node *pick(struct vp_situation *s, const struct vp_node *list,
                                  const char *name) {
    for (uint32_t i = 0; list && i < list->count; i++)
        if (holds(s, list->items[i]))
            return list->items[i];
    vp_rule_broken(s, list ? list : s->root,
                   vp_arena_printf(s->ctx->arena, "no row of '%s' applies", name));
    return NULL;
}

const struct vp_node *vp_rule_row(struct vp_situation *s, const char *name) {
    return pick(s, vp_node_get(vp_node_get(s->root, "rules"), name), name);
}

uint64_t vp_rule_number(struct vp_situation *s, const char *name) {
    const struct vp_node *row = vp_rule_row(s, name);
    uint64_t value = 0;

    if (row && !vp_node_u64(&value, vp_node_get(row, "value")))
        vp_rule_broken(s, row, vp_arena_printf(s->ctx->arena, "'%s' needs a whole number", name));
    return value;
}

/* A decimal as an integer count of 1/scale. */
static uint64_t rule_decimal(struct vp_situation *s, const char *name, uint64_t scale) {
    const struct vp_node *row = vp_rule_row(s, name);
    double value = 0;

    if (row && (!vp_node_real(&value, vp_node_get(row, "value")) || !(value >= 0 && value < 1e6)))
        vp_rule_broken(s, row, vp_arena_printf(s->ctx->arena, "'%s' needs a number", name));
    return (uint64_t)(value * (double)scale + 0.5);
}

bool vp_rule_truth(struct vp_situation *s, const char *name) {
    const struct vp_node *row = vp_rule_row(s, name);
    bool value = false;

    if (row && !vp_node_bool(&value, vp_node_get(row, "value")))
        vp_rule_broken(s, row, vp_arena_printf(s->ctx->arena, "'%s' needs true or false", name));
    return value;
}

enum vp_perhaps vp_rule_perhaps(struct vp_situation *s, const char *name) {
    static const char *const WORDS[] = {"never", "maybe", "always"};
    const struct vp_node *row = vp_rule_row(s, name);
    const char *value = row ? vp_node_text(vp_node_get(row, "value")) : NULL;

    for (int i = 0; value && i < 3; i++)
        if (strcmp(value, WORDS[i]) == 0)
            return (enum vp_perhaps)i;
    if (row)
        vp_rule_broken(s, row,
                       vp_arena_printf(s->ctx->arena, "'%s' needs never, maybe or always", name));
    return VP_NEVER;
}

/* Which matrices have adapter slots; engines that keep none have no such rules. */
static void read_lora(struct vp_situation *s, struct vp_rules *out) {
    out->lora_vocabulary = vp_rule_perhaps(s, "lora_vocabulary");
    out->lora_experts = vp_rule_perhaps(s, "lora_experts");
    out->lora_joint_experts = vp_rule_perhaps(s, "lora_joint_experts");
    out->lora_joint_layers = vp_rule_truth(s, "lora_joint_layers");
    out->lora_extra_rows = vp_rule_number(s, "lora_extra_rows");
}

/* [low, likely, high] times a unit. */
struct vp_amount vp_rule_interval(struct vp_situation *s, const struct vp_node *row,
                                  const char *key, uint64_t unit) {
    const struct vp_node *list = vp_node_get(row, key);
    struct vp_amount out = {0, 0, 0};

    if (!list || list->kind != VP_NODE_LIST || list->count != 3 ||
        !vp_node_u64(&out.low, list->items[0]) || !vp_node_u64(&out.likely, list->items[1]) ||
        !vp_node_u64(&out.high, list->items[2]) || out.low > out.likely || out.likely > out.high ||
        out.high > UINT64_C(1) << 40)
        vp_rule_broken(s, row,
                       vp_arena_printf(s->ctx->arena, "'%s' needs [low, likely, high]", key));
    return (struct vp_amount){out.low * unit, out.likely * unit, out.high * unit};
}

static void read_budget(struct vp_situation *s, struct vp_rules *out) {
    static const char *const names[] = {"torch-peak", "v0", "v1-used", "v1", "v1-graphs"};
    const struct vp_node *row = vp_rule_row(s, "budget");
    const char *value = row ? vp_node_text(vp_node_get(row, "value")) : NULL;

    for (int i = 0; value && i < 5; i++)
        if (strcmp(value, names[i]) == 0) {
            out->budget = (enum vp_vllm_budget)i;
            return;
        }
    if (row)
        vp_rule_broken(s, row, "'budget' is none of torch-peak, v0, v1-used, v1, v1-graphs");
}

static void read_activation(struct vp_situation *s, struct vp_rules *out) {
    const struct vp_node *sampler = vp_rule_row(s, "sampler_bytes");
    const struct vp_node *spread = vp_rule_row(s, "activation_spread");
    const uint64_t mib = UINT64_C(1) << 20;
    uint64_t slack = 0;

    out->sampler_millibytes = rule_decimal(s, "sampler_bytes", 1000);
    vp_node_bool(&out->sampler_adds_logits, vp_node_get(sampler, "plus_logits"));
    out->activation_fixed_bytes = vp_rule_number(s, "activation_fixed_mib") * mib;
    out->multimodal_bytes = vp_rule_number(s, "multimodal_mib") * mib;
    out->workspace_held = vp_rule_truth(s, "moe_workspace_held");
    struct vp_amount permille = vp_rule_interval(s, spread, "value", 1);
    out->activation_low_permille = permille.low;
    out->activation_high_permille = permille.high;
    if (!vp_node_u64(&slack, vp_node_get(spread, "slack_mib")))
        vp_rule_broken(s, spread, "'activation_spread' needs slack_mib");
    out->activation_slack_bytes = slack * mib;
}

static void read_overheads(struct vp_situation *s, struct vp_rules *out) {
    const struct vp_node *row = pick(s, vp_node_get(s->root, "overheads"), "overheads");
    const struct vp_node *source = vp_node_get(row, "source");
    const uint64_t mib = UINT64_C(1) << 20;

    if (!row)
        return;
    out->non_torch = vp_rule_interval(s, row, "non_torch", mib);
    out->non_torch_group = vp_rule_interval(s, row, "non_torch_group", mib);
    out->graph_base = vp_rule_interval(s, row, "graph_base", mib);
    out->graph_per_layer = vp_rule_interval(s, row, "graph_layer", mib);
    out->load_excess = vp_rule_interval(s, row, "load", mib);
    out->overhead_class = vp_node_text(vp_node_get(row, "name"));
    out->overhead_source = source ? vp_node_text(source) : "";
    if (!out->overhead_class)
        vp_rule_broken(s, row, "an overheads row has no name");
}

static void read_padding(struct vp_situation *s, struct vp_rules *out) {
    const struct vp_node *row = pick(s, vp_node_get(s->root, "mxfp4_padding"), "mxfp4_padding");

    if (row && (!vp_node_u64(&out->expert_width_multiple, vp_node_get(row, "width")) ||
                !vp_node_u64(&out->expert_hidden_multiple, vp_node_get(row, "hidden")) ||
                out->expert_width_multiple == 0 || out->expert_hidden_multiple == 0))
        vp_rule_broken(s, row, "'mxfp4_padding' needs width and hidden");
}

/* Constants of served requests by class of card; an engine may have none. */
static void read_latency(struct vp_situation *s, struct vp_rules *out) {
    const struct vp_node *list = vp_node_get(s->root, "latency"), *row = NULL;
    const char *source;

    for (uint32_t i = 0; list && i < list->count && !row; i++)
        if (holds(s, list->items[i]))
            row = list->items[i];
    if (!row)
        return;
#define X(member, what)                                                                            \
    if (!vp_node_real(&out->latency.member, vp_node_get(row, #member)) ||                          \
        !(out->latency.member >= 0))                                                               \
        vp_rule_broken(s, row, "a latency row needs " #member);
#include "planner/model/serving_constants.def"
#undef X
    source = vp_node_text(vp_node_get(row, "source"));
    out->latency.engine = s->scenario->engine.name;
    out->latency.source = (struct vp_fit_source){"", source ? source : ""};
}

/* The rules' range: an older version is refused, a newer one goes by the newest rules. */
static enum vp_status check_version(struct vp_situation *s) {
    const struct vp_node *training =
        s->scenario->training ? vp_node_get(s->root, "oldest_training") : NULL;
    const char *oldest = vp_node_text(training ? training : vp_node_get(s->root, "oldest"));
    const char *newest = vp_node_text(vp_node_get(s->root, "newest"));
    const struct vp_engine *engine = &s->scenario->engine;
    const struct vp_pos *pos = &s->scenario->source[VP_F_VERSION].pos;
    struct vp_version low, high;
    bool dates = false;

    vp_node_bool(&dates, vp_node_get(s->root, "dates"));
    if (dates && engine->version.kind == VP_VERSION_DATE)
        return VP_OK;
    if (dates && vp_node_get(s->root, "dated"))
        return VP_OK; /* becomes a date */
    if (!oldest || !newest || !vp_version_parse(&low, oldest) || !vp_version_parse(&high, newest)) {
        vp_rule_broken(s, s->root, "it needs oldest and newest versions");
        return VP_ERR_INPUT;
    }
    if (engine->version.kind != VP_VERSION_RELEASE ||
        vp_version_compare(engine->version, low) < 0) {
        vp_diag_add(s->ctx->diags, VP_D_VERSION_UNKNOWN, pos,
                    "%s version '%s' is not one that the rules cover (%s to %s)", engine->name,
                    engine->version_text, oldest, newest);
        vp_diag_hint(s->ctx->diags, "write it as the log prints it, for example %s@%s",
                     engine->name, newest);
        return VP_ERR_INPUT;
    }
    high.part[2] = UINT32_MAX; /* any patch of the newest release */
    if (vp_version_compare(engine->version, high) > 0)
        vp_diag_add(s->ctx->diags, VP_D_VERSION_NEWER, pos,
                    "%s %s is newer than the rules, which end with %s; those are used",
                    engine->name, engine->version_text, newest);
    return VP_OK;
}

enum vp_status vp_engine_profile_open(struct vp_ctx *ctx, struct vp_engine_profile *profile,
                                      const char *engine) {
    struct vp_profile found;

    if (profile->root)
        return VP_OK;
    enum vp_status status = vp_profile_find(ctx, &found, &engine_kind, engine);
    if (status != VP_OK)
        return status;
    if (!found.root) {
        vp_diag_add(ctx->diags, VP_D_ENGINE_UNKNOWN, NULL, "no profile of the engine '%s'", engine);
        return VP_ERR_INPUT;
    }
    *profile = (struct vp_engine_profile){found.root, found.path};
    return VP_OK;
}

static void read_vllm(struct vp_situation *s, struct vp_rules *out) {
    const struct vp_node *tokens = vp_rule_row(s, "tokens_line");

    read_budget(s, out);
    out->tokens_by_concurrency =
        vp_text_eq(vp_node_text(vp_node_get(tokens, "value")), "concurrency");
    out->default_chunked = vp_rule_truth(s, "chunked_prefill");
    out->default_prefix_caching = vp_rule_truth(s, "prefix_caching");
    out->whole_prompts = vp_rule_truth(s, "whole_prompts");
    out->state_pages_cached = vp_rule_number(s, "state_pages_cached");
    out->utilization_ppb = rule_decimal(s, "utilization", 1000000000);
    out->state_align = vp_rule_number(s, "state_align");
    out->latent_align = vp_rule_number(s, "latent_align");
    out->latent_head_dim = vp_rule_number(s, "latent_head_dim");
    out->max_num_seqs = vp_rule_number(s, "max_num_seqs");
    out->max_batched_tokens = vp_rule_number(s, "max_num_batched_tokens");
    out->tower_skipped = vp_rule_truth(s, "tower_skipped");
    read_lora(s, out);
}

/* A part of SGLang's reserve; one that a row leaves out is nothing. */
static uint64_t reserve_part(struct vp_situation *s, const struct vp_node *row, const char *key,
                             uint64_t unit) {
    const struct vp_node *node = vp_node_get(row, key);
    uint64_t value = 0;

    if (node && (!vp_node_u64(&value, node) || value > UINT64_C(1) << 30))
        vp_rule_broken(s, node, vp_arena_printf(s->ctx->arena, "'%s' needs a whole number", key));
    return value * unit;
}

static void read_sglang(struct vp_situation *s, struct vp_rules *out) {
    const struct vp_node *row = vp_rule_row(s, "static_reserve");
    const uint64_t kib = 1024, mib = kib * kib, gib = mib * kib, billion = 1000000000;

    out->static_base_bytes = reserve_part(s, row, "base_mib", mib);
    out->static_token_bytes = reserve_part(s, row, "token_kib", kib);
    out->static_graph_bytes = reserve_part(s, row, "graph_mib", mib);
    out->static_rank_bytes = reserve_part(s, row, "rank_mib", mib);
    out->static_least_bytes = reserve_part(s, row, "least_mib", mib);
    out->static_least_above_bytes = reserve_part(s, row, "least_above_gib", gib);
    out->static_attention_bytes = reserve_part(s, row, "attention_mib", mib);
    out->static_attention_graph_bytes = reserve_part(s, row, "attention_graph_kib", kib);
    out->static_attention_large_bytes = reserve_part(s, row, "attention_large_kib", kib);
    out->prefill_graph_bytes = vp_rule_number(s, "prefill_graph_mib") * mib;
    out->vision_share_ppb = rule_decimal(s, "vision_share", billion);
    out->window_share_ppb = rule_decimal(s, "window_share", billion);
    out->state_share_ppb = rule_decimal(s, "state_share", billion);
    out->max_num_seqs = vp_rule_number(s, "max_num_seqs");
    out->max_batched_tokens = vp_rule_number(s, "max_num_batched_tokens");
    out->unchunked_tokens = vp_rule_number(s, "max_prefill_tokens");
    out->default_chunked = out->default_prefix_caching = true;
    read_lora(s, out);
}

enum vp_status vp_engine_overheads_row(struct vp_ctx *ctx, const struct vp_node **out,
                                       struct vp_engine_profile *profile,
                                       const struct vp_scenario *scenario) {
    enum vp_status status = vp_engine_profile_open(ctx, profile, scenario->engine.name);
    struct vp_situation s = {
        .ctx = ctx, .scenario = scenario, .root = profile->root, .path = profile->path};
    *out = status == VP_OK ? pick(&s, vp_node_get(s.root, "overheads"), "overheads") : NULL;
    return status == VP_OK && !*out ? VP_ERR_INPUT : status;
}

static enum vp_status read_rules(struct vp_ctx *ctx, struct vp_rules *out,
                                 struct vp_engine_profile *profile,
                                 const struct vp_scenario *scenario) {
    enum vp_status status = vp_engine_profile_open(ctx, profile, scenario->engine.name);
    struct vp_situation s = {
        .ctx = ctx, .scenario = scenario, .root = profile->root, .path = profile->path};

    if (status == VP_OK)
        status = check_version(&s);
    if (status != VP_OK)
        return status;
    memset(out, 0, sizeof *out);
    switch (vp_scenario_accounting(scenario)) {
    case VP_ACCOUNT_LLAMA:
        vp_rules_read_llama(&s, out);
        return s.broken ? VP_ERR_INPUT : VP_OK;
    case VP_ACCOUNT_TRAIN:
        vp_rules_read_train(&s, &out->train);
        out->overhead_class = vp_arena_printf(
            ctx->arena, "context and workspaces, %s",
            scenario->hardware.gpu.vendor ? scenario->hardware.gpu.vendor : "no GPU");
        out->overhead_source = "profiles/engines";
        return s.broken ? VP_ERR_INPUT : VP_OK;
    case VP_ACCOUNT_POOL:
        break;
    }
    if (scenario->engine.kind == VP_ENGINE_VLLM)
        read_vllm(&s, out);
    else if (scenario->engine.kind == VP_ENGINE_SGLANG)
        read_sglang(&s, out);
    else
        out->loads_fp32 = vp_rule_truth(&s, "loads_fp32");
    out->window_groups = vp_rule_truth(&s, "window_groups");
    out->block_size = vp_rule_number(&s, "block_size");
    read_activation(&s, out);
    read_overheads(&s, out);
    read_padding(&s, out);
    read_latency(&s, out);
    return s.broken ? VP_ERR_INPUT : VP_OK;
}

/* Rows of a training framework ask for arguments, which have any number of values. */
static bool asks_args(const struct vp_node *node) {
    if (vp_node_get(node, "args") || vp_node_get(node, "from_arg"))
        return true;
    for (uint32_t i = 0; i < node->count; i++)
        if (asks_args(node->items[i]))
            return true;
    return false;
}

static enum vp_status make_asks(struct vp_ctx *ctx, const void **out, const void *from) {
    bool *asks = VP_NEW(ctx->arena, bool);
    *asks = asks_args(from);
    *out = asks;
    return VP_OK;
}

static const char *or_none(const char *text) { return text ? text : ""; }

/* All that `holds` and the messages ask of a scenario but its arguments. */
static const char *key_of(struct vp_ctx *ctx, const struct vp_scenario *scenario) {
    const struct vp_engine *engine = &scenario->engine;
    const struct vp_hardware *hw = &scenario->hardware;
    const struct vp_model *model = scenario->model;
    const struct vp_pos *pos = &scenario->source[VP_F_VERSION].pos;
    bool rms = model && model->block_count > 0 && model->blocks[0].norm == VP_NORM_RMS;
    bool sharded = scenario->parallel.fsdp || scenario->parallel.zero == 3;
    struct vp_buf key = {.arena = ctx->arena};
    vp_buf_add(&key,
               vp_arena_printf(
                   ctx->arena,
                   "rules|%s|%s|%s|%s|%s|%s|%d|%d|%" PRIu64 "|%" PRIu64 "|%" PRIu32 ":%" PRIu32,
                   engine->name, engine->version_text, or_none(hw->gpu.id), or_none(hw->gpu.vendor),
                   or_none(hw->gpu.arch), or_none(model ? model->model_type : NULL), rms, sharded,
                   hw->memory_bytes >> 30, scenario->parallel.tensor, pos->line, pos->column));
    for (uint32_t i = 0; i < engine->env_count; i++)
        vp_buf_printf(&key, "|%s=%s", engine->env[i].key, engine->env[i].value);
    return vp_buf_text(&key);
}

static enum vp_status make_rules(struct vp_ctx *ctx, const void **out, const void *from) {
    struct vp_rules *rules = VP_NEW(ctx->arena, struct vp_rules);
    struct vp_engine_profile profile = {.root = NULL};
    *out = rules;
    return read_rules(ctx, rules, &profile, from);
}

enum vp_status vp_rules_read(struct vp_ctx *ctx, struct vp_rules *out,
                             struct vp_engine_profile *profile,
                             const struct vp_scenario *scenario) {
    const void *found;
    enum vp_status status = vp_engine_profile_open(ctx, profile, scenario->engine.name);
    if (status != VP_OK)
        return status;
    if (!ctx->memo || scenario->training)
        return read_rules(ctx, out, profile, scenario);
    vp_memo_get(ctx, &found, vp_arena_printf(ctx->arena, "asks %s", scenario->engine.name),
                make_asks, profile->root);
    if (*(const bool *)found)
        return read_rules(ctx, out, profile, scenario);
    status = vp_memo_get(ctx, &found, key_of(ctx, scenario), make_rules, scenario);
    *out = *(const struct vp_rules *)found;
    return status;
}

enum vp_status vp_engine_newest(struct vp_ctx *ctx, const char **out,
                                struct vp_engine_profile *profile, const char *engine) {
    enum vp_status status = vp_engine_profile_open(ctx, profile, engine);

    if (status != VP_OK)
        return status;
    *out = vp_node_text(vp_node_get(profile->root, "newest"));
    return *out ? VP_OK : VP_ERR_INPUT;
}

enum vp_status vp_engine_list(struct vp_ctx *ctx, char ***names, size_t *count) {
    return vp_profile_names(ctx, names, count, &engine_kind);
}
