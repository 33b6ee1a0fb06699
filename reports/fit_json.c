/* vramplan.fit/1, documented in docs/FORMATS.md. */
#include "reports/fit_words.h"
#include "reports/fit_report.h"
#include "reports/llama_command.h"

static void key_or_null(struct vp_json *json, const char *key, uint64_t v, bool known) {
    vp_json_key(json, key);
    if (known)
        vp_json_u64(json, v);
    else
        vp_json_null(json);
}

/* Which settings are given, or open, by name. */
static void key_settings(struct vp_json *json, const char *key, const struct vp_fit_fixed *fixed,
                         bool given) {
    const struct {
        const char *name;
        bool is;
    } ALL[] = {{"layers", fixed->layers}, {"experts", fixed->experts}, {"context", fixed->context},
               {"cache", fixed->cache},   {"batch", fixed->batch},     {"slots", fixed->slots}};

    vp_json_key(json, key);
    vp_json_list_inline(json);
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
        if (ALL[i].is == given)
            vp_json_text(json, ALL[i].name);
    vp_json_end(json, ']');
}

/* ---- one proposal ---- */

static void patch(struct vp_json *json, const struct vp_scenario *s,
                  const struct vp_fit_proposal *p) {
    const struct vp_fit_settings *set = &p->set;
    const struct {
        uint64_t value;
        enum vp_field field;
        bool is;
    } NUMBERS[] = {{set->gpu_layers, VP_F_N_GPU_LAYERS, true},
                   {s->llama.context, VP_F_CTX_SIZE, true},
                   {set->slots, VP_F_LLAMA_SLOTS, true},
                   {set->ubatch, VP_F_LLAMA_UBATCH, true},
                   {s->llama.batch, VP_F_LLAMA_BATCH, s->engine.kind == VP_ENGINE_OLLAMA},
                   {set->host_experts, VP_F_N_CPU_MOE, set->host_experts > 0}};

    vp_json_key(json, "scenario_patch");
    vp_json_map(json);
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        if (NUMBERS[i].is)
            vp_json_key_u64(json, vp_field_path_for(s->engine.kind, NUMBERS[i].field),
                            NUMBERS[i].value);
    vp_json_key_text(json, vp_field_path_for(s->engine.kind, VP_F_FLASH_ATTN),
                     s->llama.flash == VP_FLASH_OFF ? "off" : "on");
    vp_json_key_text(json, vp_field_path_for(s->engine.kind, VP_F_CACHE_TYPE_K),
                     vp_dtype_name(set->type_k));
    vp_json_key_text(json, vp_field_path_for(s->engine.kind, VP_F_CACHE_TYPE_V),
                     vp_dtype_name(set->type_v));
    if (set->shares > 0)
        vp_json_key_text(json, vp_field_path_for(s->engine.kind, VP_F_TENSOR_SPLIT),
                         vp_llama_shares(json->out->arena, &s->llama));
    vp_json_end(json, '}');
}

static void commands(struct vp_json *json, const struct vp_scenario *s) {
    struct vp_arena *arena = json->out->arena;

    if (s->engine.kind == VP_ENGINE_OLLAMA) {
        vp_json_key_text(json, "modelfile", vp_ollama_modelfile(arena, s));
        vp_json_key_text(json, "environment", vp_ollama_environment(arena, s));
    } else {
        vp_json_key_text(json, "command", vp_llama_command(arena, s));
    }
}

static void proposal(struct vp_json *json, const struct vp_result *result,
                     const struct vp_fit_fixed *fixed, const struct vp_fit_proposal *p) {
    struct vp_scenario s = vp_fit_llama_scenario(result->scenario, fixed, &p->set);
    bool known = result->devices[p->worst].usable_bytes > 0;

    vp_json_key_text(json, "verdict", vp_verdict_name(p->sure ? VP_FITS : VP_AT_RISK));
    vp_json_key_text(json, "drives", vp_fit_question_name(p->question));
    key_or_null(json, "at_risk_up_to", p->further_to, p->further);
    vp_json_key_u64(json, "n_gpu_layers", p->set.gpu_layers);
    vp_json_key_u64(json, "n_cpu_moe", p->set.host_experts);
    vp_json_key_u64(json, "context", p->set.context);
    vp_json_key_u64(json, "slots", p->set.slots);
    vp_json_key_u64(json, "ubatch", p->set.ubatch);
    vp_json_key_text(json, "device", vp_fit_device_name(json->out->arena, result, p->worst));
    vp_json_key_amount(json, "need_bytes", p->need);
    vp_json_key(json, "spare_bytes");
    if (known)
        vp_json_i64(json, p->spare_bytes);
    else
        vp_json_null(json);
    vp_json_key_u64(json, "host_bytes", p->host_bytes);
    commands(json, &s);
    patch(json, &s, p);
}

/* ---- the whole ---- */

static void search(struct vp_json *json, const struct vp_result *result,
                   const struct vp_fit_llama *fit) {
    vp_json_key_text(json, "maximize", vp_fit_goal_name(fit->goal));
    vp_json_key_u64(json, "margin_bytes", fit->margin_bytes);
    vp_json_key_u64(json, "layers", fit->layer_slots);
    key_settings(json, "given", &fit->fixed, true);
    key_settings(json, "open", &fit->fixed, false);
    vp_json_key_u64(json, "tried", fit->tried);
    vp_json_key(json, "proposals");
    vp_json_list(json);
    for (uint32_t i = 0; i < fit->count; i++) {
        vp_json_map(json);
        proposal(json, result, &fit->fixed, &fit->item[i]);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
    if (fit->count > 0)
        return;
    vp_json_key(json, "short");
    vp_json_map(json);
    vp_json_key_text(json, "device",
                     vp_fit_device_name(json->out->arena, result, fit->short_device));
    vp_json_key_u64(json, "bytes", fit->short_bytes);
    vp_json_key_text(json, "text", vp_fit_short_text(json->out->arena, result, fit));
    vp_json_end(json, '}');
    vp_json_key(json, "changes");
    vp_json_list(json);
    for (int f = 0; f < VP_FIT_FREED; f++) {
        struct vp_fit_fixed fixed = vp_fit_llama_freed(&fit->fixed, (enum vp_fit_freed)f);
        if (!fit->has_freed[f])
            continue;
        vp_json_map(json);
        vp_json_key_text(json, "of", vp_fit_freed_name((enum vp_fit_freed)f));
        proposal(json, result, &fixed, &fit->freed[f]);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void plan(struct vp_json *json, const struct vp_result *result) {
    const struct vp_prices *prices = &result->prices;

    vp_json_key_text(json, "reason_text", result->reason_text);
    key_or_null(json, "max_context", prices->max_context, prices->max_context > 0);
    key_or_null(json, "max_concurrency", prices->max_concurrency, prices->max_concurrency > 0);
    vp_report_json_suggestions(json, result);
}

void vp_fit_json(struct vp_json *json, const struct vp_result *result,
                 const struct vp_fit_llama *fit) {
    vp_json_map(json);
    vp_json_key_text(json, "schema", "vramplan.fit/1");
    vp_json_key_text(json, "scenario", result->scenario->name);
    vp_json_key_text(json, "engine", result->scenario->engine.name);
    vp_json_key_text(json, "verdict", vp_verdict_name(fit ? vp_fit_verdict(fit) : result->verdict));
    if (fit)
        search(json, result, fit);
    else
        plan(json, result);
    vp_json_key(json, "diagnostics");
    vp_report_json_diagnostics(json, result->diags);
    vp_json_end(json, '}');
}
