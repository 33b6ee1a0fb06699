#include "reports/words.h"

#include <inttypes.h>

#include "planner/base/text.h"
#include "planner/base/units.h"

const char *vp_words_engine(const char *name) {
    static const char *const NAMES[][2] = {
        {"vllm", "vLLM"},
        {"sglang", "SGLang"},
        {"llama.cpp", "llama.cpp"},
        {"ollama", "Ollama"},
        {"transformers", "Transformers"},
        {"pytorch", "PyTorch"},
        {"megatron", "Megatron"},
        {"deepspeed", "DeepSpeed"},
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (vp_text_eq(name, NAMES[i][0]))
            return NAMES[i][1];
    return name ? name : "the engine";
}

const char *vp_words_verdict(enum vp_verdict verdict) {
    switch (verdict) {
    case VP_FITS:
        return "FITS";
    case VP_AT_RISK:
        return "AT RISK";
    case VP_DOES_NOT_FIT:
        break;
    }
    return "DOES NOT FIT";
}

const char *vp_words_reason(enum vp_reason reason) {
    switch (reason) {
    case VP_REASON_NO_FREE_MEMORY:
        return "no-free-memory";
    case VP_REASON_WEIGHTS:
        return "weights";
    case VP_REASON_ADMISSION:
        return "admission";
    case VP_REASON_CONCURRENCY:
        return "concurrency";
    case VP_REASON_GRAPHS:
        return "graphs";
    case VP_REASON_TRANSIENTS:
        return "transients";
    case VP_REASON_STATE_SLOTS:
        return "state-slots";
    case VP_REASON_BUFFERS:
        return "buffers";
    case VP_REASON_REFUSED:
        return "refused";
    case VP_REASON_PEAK:
        return "peak";
    case VP_REASON_HOST:
        return "host-memory";
    case VP_REASON_BUDGET:
        return "budget";
    case VP_REASON_NONE:
        break;
    }
    return "none";
}

const char *vp_words_component(struct vp_arena *arena, enum vp_component component) {
    if (component == VP_C_KV_CACHE)
        return "KV cache";
    const char *name = vp_component_name(component);
    struct vp_buf out = {.arena = arena};
    for (; *name; name++)
        vp_buf_add_n(&out, *name == '_' ? " " : name, 1);
    return vp_buf_text(&out);
}

const char *vp_words_plural(struct vp_arena *arena, uint64_t n, const char *one, const char *many) {
    return vp_arena_printf(arena, "%s %s", vp_format_count(arena, n), n == 1 ? one : many);
}

static uint64_t absolute(int64_t v) { return v < 0 ? (uint64_t)(-(v + 1)) + 1 : (uint64_t)v; }

const char *vp_words_signed_gib(struct vp_arena *arena, int64_t bytes) {
    const char *text = vp_format_gib(arena, absolute(bytes), 2);
    bool zero = vp_text_eq(text, "0.00");
    return bytes < 0 && !zero ? vp_arena_printf(arena, "-%s", text) : text;
}

const char *vp_words_share(struct vp_arena *arena, uint64_t part, uint64_t whole) {
    if (whole == 0)
        return "-";
    uint64_t permille = (uint64_t)(((unsigned __int128)part * 1000 + whole / 2) / whole);
    return vp_arena_printf(arena, "%" PRIu64 ".%" PRIu64 "%%", permille / 10, permille % 10);
}

const char *vp_words_percent(struct vp_arena *arena, uint64_t ppb) {
    enum { PER_CENT = 10000000, DECIMALS = 7 };
    uint64_t part = ppb % PER_CENT;
    int decimals = DECIMALS;
    if (part == 0)
        return vp_arena_printf(arena, "%" PRIu64 "%%", ppb / PER_CENT);
    for (; part % 10 == 0; part /= 10)
        decimals--;
    return vp_arena_printf(arena, "%" PRIu64 ".%0*" PRIu64 "%%", ppb / PER_CENT, decimals, part);
}

const char *vp_words_milli(struct vp_arena *arena, uint64_t milli) {
    return vp_arena_printf(arena, "%s.%02" PRIu64, vp_format_count(arena, milli / 1000),
                           milli % 1000 / 10);
}

bool vp_words_is_exact(struct vp_amount amount) { return amount.low == amount.high; }

const char *vp_words_interval(struct vp_arena *arena, struct vp_amount amount, int decimals) {
    return vp_arena_printf(arena, "%s..%s", vp_format_gib(arena, amount.low, decimals),
                           vp_format_gib(arena, amount.high, decimals));
}

int64_t vp_words_minus(uint64_t a, uint64_t b) {
    if (a >= b)
        return (int64_t)vp_min(a - b, INT64_MAX);
    return -(int64_t)vp_min(b - a, INT64_MAX);
}

const struct vp_device *vp_words_worst(const struct vp_result *result) {
    return &result->devices[result->worst];
}

int64_t vp_words_headroom(const struct vp_device *device) {
    return vp_words_minus(device->usable_bytes, device->need.likely);
}

const char *vp_words_model(const struct vp_scenario *scenario) {
    const char *name = scenario->model ? scenario->model->name : NULL;
    if (!name || !*name)
        name = scenario->name;
    return name && *name ? name : "model";
}

/* The scheme of the largest matrices: those of the block kind with the most layers. */
static const char *checkpoint_scheme(const struct vp_model *model) {
    const struct vp_block *most = NULL;
    for (uint32_t i = 0; i < model->block_count; i++)
        if (!most || model->blocks[i].count > most->count)
            most = &model->blocks[i];
    enum vp_role role = VP_ROLE_UP;
    if (most && most->moe.kind != VP_MLP_NONE)
        role = VP_ROLE_EXPERT_UP;
    else if (most && most->mlp.kind == VP_MLP_NONE)
        role = most->attention.kind == VP_ATTENTION_LINEAR ? VP_ROLE_LINEAR_IN : VP_ROLE_O;
    uint32_t scheme = most ? most->scheme[role] : 0;
    if (scheme < model->scheme_count && model->schemes[scheme].name[0])
        return model->schemes[scheme].name;
    return model->dtype == VP_DTYPE_UNSET ? "checkpoint" : vp_dtype_name(model->dtype);
}

const char *vp_words_weights(const struct vp_scenario *scenario) {
    const char *format = scenario->precision.weights;
    if (format && !vp_text_eq(format, "checkpoint"))
        return format;
    return scenario->model ? checkpoint_scheme(scenario->model) : "checkpoint";
}

/* Tokens of a sequence: as said or assumed, or what the engine's own fit leaves of them. */
static uint64_t context_of(const struct vp_result *result) {
    uint64_t context = result->scenario->serve.context;
    return result->llama ? vp_min(context, result->llama->cells) : context;
}

/* llama.cpp stores keys and values each in a type of its own. */
static const char *cache_type(struct vp_arena *arena, const struct vp_scenario *s) {
    const struct vp_llama *l = &s->llama;
    const char *one = vp_dtype_name(s->precision.kv_cache);

    if (!vp_engine_is_llama(s->engine.kind) || l->type_k == l->type_v)
        return one;
    return vp_arena_printf(arena, "%s/%s", vp_dtype_name(l->type_k), vp_dtype_name(l->type_v));
}

const char *vp_words_setup(struct vp_arena *arena, const struct vp_result *result) {
    const struct vp_scenario *scenario = result->scenario;
    const struct vp_engine *engine = &scenario->engine;
    const char *version = engine->version_text ? engine->version_text : "";
    struct vp_buf out = {.arena = arena};
    vp_buf_printf(&out, "%s weights", vp_words_weights(scenario));
    if (scenario->precision.kv_cache != VP_DTYPE_UNSET)
        vp_buf_printf(&out, ", %s KV", cache_type(arena, scenario));
    vp_buf_printf(&out, ", %s%s%s", vp_words_engine(engine->name), *version ? " " : "", version);
    vp_buf_printf(&out, ", context %" PRIu64 ", %s", context_of(result),
                  vp_words_plural(arena, scenario->serve.concurrency, "sequence", "sequences"));
    return vp_buf_text(&out);
}

static void add_layout(struct vp_buf *out, const struct vp_parallel *parallel) {
    const struct {
        const char *name;
        uint64_t ranks;
    } KINDS[] = {{"tensor", parallel->tensor},   {"pipeline", parallel->pipeline},
                 {"data", parallel->data},       {"expert", parallel->expert},
                 {"context", parallel->context}, {"attention data", parallel->attention_data}};
    const char *before = " (";
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (KINDS[i].ranks <= 1)
            continue;
        vp_buf_printf(out, "%s%s %" PRIu64, before, KINDS[i].name, KINDS[i].ranks);
        before = ", ";
    }
    if (before[0] == ',')
        vp_buf_add(out, ")");
}

/* "206.14": GB (10^9) with two decimals */
static const char *format_gb(struct vp_arena *arena, uint64_t bytes) {
    uint64_t hundredths = bytes / 10000000 + (bytes % 10000000 >= 5000000);
    return vp_arena_printf(arena, "%" PRIu64 ".%02" PRIu64, hundredths / 100, hundredths % 100);
}

/* What the engine sets aside by its policy; transformers has none. */
static void add_policy(struct vp_buf *out, const struct vp_result *result) {
    const struct vp_engine *engine = &result->scenario->engine;
    const struct vp_device *worst = &result->devices[result->worst];
    uint64_t requested = result->report.requested_bytes;
    const char *usable = vp_format_gib(out->arena, worst->usable_bytes, 2);
    if (engine->kind >= VP_ENGINE_TRANSFORMERS || requested == 0) {
        vp_buf_printf(out, "; %susable %s GiB",
                      requested ? "transformers takes what it needs, " : "", usable);
        return;
    }
    vp_buf_printf(out, "; %s %s = %s GiB",
                  engine->kind == VP_ENGINE_SGLANG ? "SGLang's static share" : "vLLM may take",
                  vp_words_percent(out->arena, engine->utilization_ppb),
                  vp_format_gib(out->arena, requested, 2));
    if (engine->kv_cache_bytes)
        vp_buf_printf(out, ", KV cache set to %s GiB",
                      vp_format_gib(out->arena, engine->kv_cache_bytes, 2));
    if (worst->usable_bytes == requested)
        return;
    bool on_top = engine->kind == VP_ENGINE_VLLM && worst->usable_bytes > requested &&
                  !result->report.graphs_in_budget;
    vp_buf_printf(out, ", %s %s GiB", on_top ? "with graphs on top" : "usable", usable);
}

/* "1 x AMD Radeon RX 7900 XTX, 23.98 GiB; 1 x AMD Radeon RX 7600 XT, 15.98 GiB" */
static const char *device_groups(struct vp_arena *arena, const struct vp_hardware *hardware) {
    struct vp_buf out = {.arena = arena};
    for (uint32_t i = 0; i < hardware->group_count; i++) {
        const struct vp_device_group *group = &hardware->groups[i];
        vp_buf_printf(&out, "%s%" PRIu64 " x %s, %s GiB", i ? "; " : "", group->count,
                      group->gpu.name, vp_format_gib(arena, group->memory_bytes, 2));
        if (group->reserved_bytes)
            vp_buf_printf(&out, " of which others take %s",
                          vp_format_gib(arena, group->reserved_bytes, 2));
    }
    return vp_buf_text(&out);
}

const char *vp_words_devices(struct vp_arena *arena, const struct vp_result *result) {
    const struct vp_hardware *hardware = &result->scenario->hardware;
    const struct vp_device *worst = &result->devices[result->worst];
    struct vp_buf out = {.arena = arena};
    const char *name = hardware->gpu.name ? hardware->gpu.name : hardware->gpu_name;
    if (hardware->group_count > 1)
        return device_groups(arena, hardware);
    if (hardware->count == 0)
        vp_buf_add(&out, "the processor alone");
    else
        vp_buf_printf(&out, "%" PRIu64 " x %s", hardware->count, name ? name : "device");
    add_layout(&out, &result->scenario->parallel);
    if (hardware->nodes > 1)
        vp_buf_printf(&out, " on %" PRIu64 " nodes", hardware->nodes);
    vp_buf_printf(&out, ", %s GiB", vp_format_gib(arena, worst->capacity_bytes, 2));
    if (!vp_words_is_exact(hardware->memory))
        vp_buf_printf(&out, " (%s)", vp_words_interval(arena, hardware->memory, 2));
    vp_buf_printf(&out, " = %s GB%s", format_gb(arena, worst->capacity_bytes),
                  hardware->count > 1 ? " each" : "");
    if (hardware->reserved_bytes)
        vp_buf_printf(&out, ", %s GiB taken by others",
                      vp_format_gib(arena, hardware->reserved_bytes, 2));
    add_policy(&out, result);
    return vp_buf_text(&out);
}

/* What two decimals of GiB would show as nothing is given in smaller units too. */
static void add_small(struct vp_buf *out, int64_t bytes) {
    enum { TENTH_OF_GIB = 107374182 };
    if (absolute(bytes) > 0 && absolute(bytes) < TENTH_OF_GIB)
        vp_buf_printf(out, " = %s", vp_format_bytes(out->arena, absolute(bytes)));
}

const char *vp_words_need(struct vp_arena *arena, const struct vp_result *result) {
    const struct vp_device *worst = &result->devices[result->worst];
    const struct vp_amount need = worst->need;
    int64_t headroom = result->headroom_bytes;
    struct vp_buf out = {.arena = arena};
    vp_buf_printf(&out, "needs %s GiB%s of %s, ", vp_format_gib(arena, need.likely, 2),
                  result->scenario->hardware.count > 1 ? " per card" : "",
                  vp_format_gib(arena, worst->usable_bytes, 2));
    vp_buf_printf(&out, "%s", vp_format_gib(arena, absolute(headroom), 2));
    add_small(&out, headroom);
    vp_buf_add(&out, headroom < 0 ? " short" : " to spare");
    if (vp_words_is_exact(need))
        return vp_buf_text(&out);
    if (headroom < 0)
        vp_buf_printf(&out, " (%s..%s)",
                      vp_words_signed_gib(arena, vp_words_minus(need.low, worst->usable_bytes)),
                      vp_words_signed_gib(arena, vp_words_minus(need.high, worst->usable_bytes)));
    else
        vp_buf_printf(&out, " (%s..%s)",
                      vp_words_signed_gib(arena, vp_words_minus(worst->usable_bytes, need.high)),
                      vp_words_signed_gib(arena, vp_words_minus(worst->usable_bytes, need.low)));
    return vp_buf_text(&out);
}

const char *vp_words_weights_alone(struct vp_arena *arena, const struct vp_result *result) {
    const struct vp_device *worst = &result->devices[result->worst];
    if (result->verdict != VP_DOES_NOT_FIT || !worst->present[VP_C_WEIGHTS])
        return NULL;
    return vp_arena_printf(arena, "the weights alone are %s GiB",
                           vp_format_gib(arena, worst->component[VP_C_WEIGHTS].likely, 2));
}

/* Why the plan's cache is not what the rule says. */
static const char *cache_note(const struct vp_result *result, uint64_t plan, uint64_t rule) {
    bool latent = false, window = false, state = false;
    for (uint32_t i = 0; i < result->kv.group_count; i++) {
        latent |= vp_text_eq(result->kv.group[i].kind, "latent");
        window |= result->kv.group[i].window > 0;
        state |= vp_text_eq(result->kv.group[i].kind, "state");
    }
    if (plan > rule)
        return latent  ? " (a latent is on every rank)"
               : state ? " (blocks as large as a state)"
                       : " (heads replicated, blocks rounded)";
    return window ? " (window layers keep less)" : "";
}

static void add_difference(struct vp_buf *out, const char **before, const char *name, uint64_t plan,
                           uint64_t rule, const char *note) {
    const uint64_t least = UINT64_C(1) << 20; /* below a MiB it is rounding */
    uint64_t apart = plan > rule ? plan - rule : rule - plan;
    if (apart < least)
        return;
    vp_buf_printf(out, "%s%s %s%s%s", *before, name, plan > rule ? "+" : "-",
                  vp_format_gib(out->arena, apart, 2), note);
    *before = ", ";
}

const char *vp_words_first_order(struct vp_arena *arena, const struct vp_result *result) {
    const struct vp_first_order *rule = &result->first_order;
    const struct vp_device *worst = &result->devices[result->worst];
    if (rule->total_bytes == 0)
        return NULL;
    struct vp_buf out = {.arena = arena};
    if (result->training.stage)
        return vp_arena_printf(arena,
                               "rule of thumb: parameters, gradients and states %s + activations "
                               "%s = %s GiB",
                               vp_format_gib(arena, rule->weights_bytes, 2),
                               vp_format_gib(arena, rule->activation_bytes, 2),
                               vp_format_gib(arena, rule->total_bytes, 2));
    vp_buf_printf(&out, "rule of thumb: weights %s + KV %s",
                  vp_format_gib(arena, rule->weights_bytes, 2),
                  vp_format_gib(arena, rule->kv_bytes, 2));
    if (rule->activation_bytes)
        vp_buf_printf(&out, " + activations %s", vp_format_gib(arena, rule->activation_bytes, 2));
    vp_buf_printf(&out, " = %s GiB", vp_format_gib(arena, rule->total_bytes, 2));
    const char *before = "; what it misses: ";
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        enum vp_component component = (enum vp_component)c;
        uint64_t plan = worst->present[c] ? worst->component[c].likely : 0;
        uint64_t said = c == VP_C_WEIGHTS       ? rule->weights_bytes
                        : c == VP_C_KV_CACHE    ? rule->kv_bytes
                        : c == VP_C_ACTIVATIONS ? rule->activation_bytes
                                                : 0;
        add_difference(&out, &before, vp_words_component(arena, component), plan, said,
                       c == VP_C_KV_CACHE ? cache_note(result, plan, said) : "");
    }
    return vp_buf_text(&out);
}

const char *vp_words_pool(struct vp_arena *arena, const struct vp_result *result) {
    const struct vp_engine_report *report = &result->report;
    const struct vp_kv_report *kv = &result->kv;
    if (!vp_words_has_policy(result->scenario) || !kv->known)
        return NULL;
    if (report->available_negative)
        return "nothing is left for a KV cache";
    struct vp_buf out = {.arena = arena};
    vp_buf_printf(&out, "%s tokens, %s x %" PRIu64, vp_format_count(arena, kv->tokens),
                  vp_words_milli(arena, kv->max_concurrency_milli),
                  result->scenario->serve.context);
    if (!vp_words_is_exact(report->available_kv))
        vp_buf_printf(&out, " (%s)", vp_words_interval(arena, report->available_kv, 2));
    return vp_buf_text(&out);
}

bool vp_words_has_policy(const struct vp_scenario *scenario) {
    return scenario->engine.kind < VP_ENGINE_TRANSFORMERS;
}

const char *vp_words_position(struct vp_arena *arena, const struct vp_pos *pos) {
    if (!pos->file)
        return NULL;
    if (pos->line == 0)
        return pos->file;
    if (pos->column == 0)
        return vp_arena_printf(arena, "%s:%" PRIu32, pos->file, pos->line);
    return vp_arena_printf(arena, "%s:%" PRIu32 ":%" PRIu32, pos->file, pos->line, pos->column);
}

uint32_t vp_words_prices(struct vp_arena *arena, struct vp_fact out[VP_FACTS],
                         const struct vp_result *result) {
    const struct vp_prices *prices = &result->prices;
    const struct vp_serve *serve = &result->scenario->serve;
    uint64_t n = serve->concurrency;
    if (result->scenario->training) /* there are no sequences to be served */
        return 0;
    const char *sequences = vp_words_plural(arena, n, "sequence", "sequences");
    const char *longest = vp_format_count(arena, prices->max_context);
    if (prices->context_capped)
        longest = vp_arena_printf(arena, "%s (model's)", longest);
    out[0] = (struct vp_fact){
        n == 1 ? "+1K context" : vp_arena_printf(arena, "+1K context for all %s", sequences),
        vp_arena_printf(arena, "+%s", vp_format_bytes(arena, prices->per_1k_context))};
    out[1] = (struct vp_fact){
        vp_arena_printf(arena, "+1 sequence of %" PRIu64, context_of(result)),
        vp_arena_printf(arena, "+%s", vp_format_bytes(arena, prices->per_sequence))};
    out[2] = (struct vp_fact){vp_arena_printf(arena, "longest context at %s", sequences),
                              prices->max_context ? longest : "none"};
    out[3] = (struct vp_fact){
        vp_arena_printf(arena, "most sequences at %" PRIu64, context_of(result)),
        prices->max_concurrency ? vp_format_count(arena, prices->max_concurrency) : "none"};
    return VP_FACTS;
}
