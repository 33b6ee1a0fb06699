/* The result as JSON, schema "vramplan.result/1": conversion only, nothing is computed here. */
#include <math.h>
#include <string.h>

#include "planner/base/units.h"
#include "planner/plan/figures.h"
#include "reports/latency_json.h"
#include "reports/llama_json.h"
#include "reports/report.h"
#include "reports/train_json.h"
#include "reports/words.h"

/* GiB with six decimals: about a kilobyte, and the shortest text. */
static double gib(uint64_t bytes) {
    unsigned __int128 millionths = ((unsigned __int128)bytes * 1000000 + (1U << 29)) >> 30;
    return (double)(uint64_t)millionths / 1e6;
}

void vp_report_json_number(struct vp_json *json, const char *key, double v) {
    vp_json_key_real(json, key, isfinite(v) ? round(v * 1e6) / 1e6 : v);
}

static double from_milli(uint64_t milli) { return (double)milli / 1000.0; }

static void amount_items(struct vp_json *json, struct vp_amount amount) {
    vp_json_key_u64(json, "low", amount.low);
    vp_json_key_u64(json, "likely", amount.likely);
    vp_json_key_u64(json, "high", amount.high);
}

static void params(struct vp_json *json, const struct vp_result *result) {
    vp_json_key(json, "params");
    vp_json_map_inline(json);
    vp_json_key_u64(json, "total", result->params_total);
    vp_json_key_u64(json, "active", result->params_active);
    vp_json_key_u64(json, "trainable", result->params_trainable);
    vp_json_end(json, '}');
}

static void summary(struct vp_json *json, const struct vp_result *result) {
    const struct vp_device *worst = &result->devices[result->worst];
    vp_json_key(json, "summary");
    vp_json_map(json);
    vp_json_key_text(json, "worst_device", worst->id);
    vp_json_key_u64(json, "capacity_bytes", worst->capacity_bytes);
    vp_json_key_u64(json, "usable_bytes", worst->usable_bytes);
    vp_json_key_amount(json, "need_bytes", worst->need);
    vp_json_key_u64(json, "reserved_bytes", worst->reserved_bytes);
    vp_json_key_i64(json, "headroom_bytes", result->headroom_bytes);
    vp_json_end(json, '}');
}

static void device(struct vp_json *json, const struct vp_device *d) {
    vp_json_map(json);
    vp_json_key_text(json, "id", d->id);
    vp_json_key_text(json, "kind", d->host ? "host" : vp_text_starts(d->id, "gpu") ? "gpu" : "cpu");
    vp_json_key(json, "ranks");
    vp_json_list_inline(json);
    for (uint32_t i = 0; i < d->ranks; i++)
        vp_json_u64(json, (uint64_t)d->first_rank + i);
    vp_json_end(json, ']');
    vp_json_key_u64(json, "stage", d->stage);
    vp_json_key(json, "components");
    vp_json_map(json);
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        if (!d->present[c])
            continue;
        vp_json_key(json, vp_component_name((enum vp_component)c));
        vp_json_map_inline(json);
        amount_items(json, d->component[c]);
        vp_json_key_text(json, "confidence", vp_confidence_name(d->confidence[c]));
        vp_json_end(json, '}');
    }
    vp_json_end(json, '}');
    vp_json_key(json, "peak");
    vp_json_map_inline(json);
    vp_json_key_text(json, "phase", vp_step_name(d->peak_step));
    vp_json_key_u64(json, "bytes", d->need.likely);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}

static void devices(struct vp_json *json, const struct vp_result *result) {
    vp_json_key(json, "devices");
    vp_json_list(json);
    for (uint32_t i = 0; i < result->device_count; i++)
        device(json, &result->devices[i]);
    vp_json_end(json, ']');
}

static void key_figure(struct vp_json *json, const char *key, enum vp_figure_unit unit,
                       uint64_t v) {
    vp_json_key(json, key);
    switch (unit) {
    case VP_FIGURE_GIB:
        vp_json_real(json, gib(v));
        return;
    case VP_FIGURE_MILLI:
        vp_json_real(json, from_milli(v));
        return;
    case VP_FIGURE_SHARE:
        vp_json_real(json, (double)v / 1e9);
        return;
    case VP_FIGURE_MIB: /* llama_json.c */
    case VP_FIGURE_BYTES:
    case VP_FIGURE_COUNT:
        break;
    }
    vp_json_u64(json, v);
}

static void engine_report(struct vp_json *json, const struct vp_result *result) {
    struct vp_figure figures[VP_FIGURES];
    size_t count = vp_figures_of(figures, result);
    vp_json_key(json, "engine_report");
    vp_json_map(json);
    for (size_t i = 0; i < count; i++)
        key_figure(json, figures[i].key, figures[i].unit, figures[i].amount.likely);
    vp_json_end(json, '}');
    vp_json_key(json, "intervals");
    vp_json_map(json);
    for (size_t i = 0; i < count; i++) {
        vp_json_key(json, figures[i].key);
        vp_json_map_inline(json);
        key_figure(json, "low", figures[i].unit, figures[i].amount.low);
        key_figure(json, "high", figures[i].unit, figures[i].amount.high);
        vp_json_end(json, '}');
    }
    vp_json_end(json, '}');
}

static void kv_group(struct vp_json *json, const struct vp_kv_group *group) {
    vp_json_map_inline(json);
    vp_json_key_text(json, "kind", group->kind);
    vp_json_key_u64(json, "layers", group->layers);
    vp_json_key_u64(json, "groups", group->groups);
    vp_json_key_u64(json, "padding_layers", group->padding_layers);
    vp_json_key(json, "window");
    if (group->window)
        vp_json_u64(json, group->window);
    else
        vp_json_null(json);
    vp_json_key_u64(json, "bytes_per_token", group->bytes_per_token);
    vp_json_key_u64(json, "state_bytes", group->state_bytes);
    vp_json_key_u64(json, "pages_per_sequence", group->pages_per_sequence);
    vp_json_end(json, '}');
}

static void kv_cache(struct vp_json *json, const struct vp_kv_report *kv) {
    vp_json_key(json, "kv_cache");
    vp_json_map(json);
    if (kv->known) {
        vp_json_key_u64(json, "bytes_per_token", kv->bytes_per_token);
        vp_json_key_u64(json, "state_bytes_per_sequence", kv->state_bytes_per_sequence);
        vp_json_key_u64(json, "block_size", kv->block_size);
        vp_json_key_u64(json, "page_bytes", kv->page_bytes);
        vp_json_key_u64(json, "blocks", kv->blocks);
        vp_json_key_u64(json, "tokens", kv->tokens);
        key_figure(json, "max_concurrency", VP_FIGURE_MILLI, kv->max_concurrency_milli);
        vp_json_key_u64(json, "max_context", kv->max_context);
        vp_json_key(json, "groups");
        vp_json_list(json);
        for (uint32_t i = 0; i < kv->group_count && i < VP_KV_GROUPS; i++)
            kv_group(json, &kv->group[i]);
        vp_json_end(json, ']');
    }
    vp_json_end(json, '}');
}

/* Where a row's number comes from follows from its formula's kind. */
static const char *row_origin(const struct vp_result *result, const struct vp_row *row) {
    if (row->formula == VP_FORMULA_RESERVED)
        return vp_origin_name(result->scenario->source[VP_F_RESERVED].origin);
    switch (vp_formula_kind(row->formula)) {
    case VP_MEASURED_VALUE:
        return vp_origin_name(VP_ORIGIN_MEASURED);
    case VP_CLASS_AVERAGE:
        return vp_origin_name(VP_ORIGIN_PROFILE);
    case VP_EXACT:
    case VP_GUESS:
        break;
    }
    return vp_origin_name(VP_ORIGIN_DERIVED);
}

static void ledger(struct vp_json *json, const struct vp_result *result) {
    vp_json_key(json, "ledger");
    vp_json_list(json);
    for (uint32_t i = 0; i < result->ledger.count; i++) {
        const struct vp_row *row = &result->ledger.rows[i];
        vp_json_map_inline(json);
        vp_json_key_text(json, "component", vp_component_name(row->component));
        vp_json_key_text(json, "owner", row->owner);
        vp_json_key_text(json, "device",
                         row->device < result->device_count ? result->devices[row->device].id
                                                            : NULL);
        vp_json_key_u64(json, "layers", row->layers);
        vp_json_key_amount(json, "bytes", row->bytes);
        vp_json_key_text(json, "formula", vp_formula_id(row->formula));
        vp_json_key_text(json, "confidence", vp_confidence_name(row->confidence));
        vp_json_key(json, "inputs");
        vp_json_map(json);
        for (uint8_t k = 0; k < row->inputs && k < VP_ROW_INPUTS; k++)
            vp_json_key_u64(json, row->input[k].name, row->input[k].value);
        vp_json_end(json, '}');
        vp_json_key_text(json, "from", vp_step_name((enum vp_step)row->from));
        vp_json_key_text(json, "to", vp_step_name((enum vp_step)row->to));
        vp_json_key_text(json, "origin", row_origin(result, row));
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void assumptions(struct vp_json *json, const struct vp_result *result) {
    vp_json_key(json, "assumptions");
    vp_json_list(json);
    for (uint32_t i = 0; i < result->assumption_count; i++) {
        const struct vp_assumption *a = &result->assumptions[i];
        vp_json_map_inline(json);
        vp_json_key_text(json, "field", a->field);
        vp_json_key_text(json, "value", a->value);
        vp_json_key_text(json, "origin", vp_origin_name(a->origin));
        vp_json_key_text(json, "why", a->why);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

/* A scenario value from its text: numbers and booleans are such, the rest is text. */
static void patch_value(struct vp_json *json, const char *text) {
    uint64_t integer;
    double real;
    if (text && vp_parse_u64(&integer, text))
        vp_json_u64(json, integer);
    else if (text && vp_parse_real(&real, text))
        vp_json_real(json, real);
    else if (text && (vp_text_eq(text, "true") || vp_text_eq(text, "false")))
        vp_json_bool(json, text[0] == 't');
    else
        vp_json_text(json, text);
}

/* "serve.context" -> {"serve": {"context": ...}}: can be laid over a scenario as it is. count:
 * hardware.count beside it, 0 for none. */
static void patch(struct vp_json *json, const char *field, const char *value, uint64_t count) {
    enum { DEPTH = 8 };
    int depth = 0;
    vp_json_map(json);
    if (count > 0) {
        vp_json_key(json, "hardware");
        vp_json_map(json);
        vp_json_key_u64(json, "count", count);
        vp_json_end(json, '}');
    }
    while (field && *field) {
        size_t n = depth < DEPTH ? strcspn(field, ".") : strlen(field);
        vp_json_key(json, vp_arena_text(json->out->arena, field, n));
        field += n;
        if (!*field) {
            patch_value(json, value);
            break;
        }
        field++;
        vp_json_map(json);
        depth++;
    }
    while (depth-- >= 0)
        vp_json_end(json, '}');
}

void vp_report_json_suggestions(struct vp_json *json, const struct vp_result *result) {
    vp_json_key(json, "suggestions");
    vp_json_list(json);
    for (uint32_t i = 0; i < result->suggestion_count; i++) {
        const struct vp_suggestion *s = &result->suggestions[i];
        vp_json_map_inline(json);
        vp_json_key_text(json, "change", s->change);
        vp_json_key_text(json, "from", s->from);
        vp_json_key_text(json, "to", s->to);
        vp_json_key_u64(json, "need_bytes", s->need_bytes);
        vp_json_key_i64(json, "headroom_bytes", s->headroom_bytes);
        vp_json_key(json, "cost");
        vp_json_map(json);
        vp_json_key_text(json, "quality", s->quality);
        vp_json_key_text(json, "speed", s->speed);
        vp_json_key_text(json, "money", s->money);
        vp_json_end(json, '}');
        vp_json_key(json, "scenario_patch");
        patch(json, s->patch_field, s->patch_value, s->patch_count);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void key_number_or_null(struct vp_json *json, const char *key, uint32_t v) {
    vp_json_key(json, key);
    if (v)
        vp_json_u64(json, v);
    else
        vp_json_null(json);
}

void vp_report_json_diagnostics(struct vp_json *json, const struct vp_diags *diags) {
    vp_json_list(json);
    for (uint32_t i = 0; diags && i < diags->count; i++) {
        const struct vp_diag *diag = &diags->items[i];
        vp_json_map_inline(json);
        vp_json_key_text(json, "id", vp_diag_code(diag->id));
        vp_json_key_text(json, "severity", vp_severity_name(vp_diag_severity(diag->id)));
        vp_json_key_text(json, "file", diag->pos.file);
        key_number_or_null(json, "line", diag->pos.line);
        key_number_or_null(json, "column", diag->pos.column);
        vp_json_key_text(json, "message", diag->message);
        vp_json_key_text(json, "hint", diag->hint);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void empty_map(struct vp_json *json, const char *key) {
    vp_json_key(json, key);
    vp_json_map(json);
    vp_json_end(json, '}');
}

void vp_report_json(struct vp_json *json, const struct vp_result *result) {
    vp_json_map(json);
    vp_json_key_text(json, "schema", "vramplan.result/1");
    vp_json_key_text(json, "scenario", result->scenario->name);
    vp_json_key_text(json, "mode", result->mode);
    vp_json_key_text(json, "verdict", vp_verdict_name(result->verdict));
    vp_json_key_text(json, "reason", vp_words_reason(result->reason));
    vp_json_key_text(json, "reason_text", result->reason_text);
    params(json, result);
    summary(json, result);
    devices(json, result);
    if (result->training.stage)
        vp_train_json_report(json, result);
    else if (result->llama)
        vp_llama_json_report(json, result);
    else
        engine_report(json, result);
    kv_cache(json, &result->kv);
    if (result->training.stage)
        vp_train_json_training(json, result);
    else
        empty_map(json, "training");
    vp_latency_json(json, &result->latency);
    ledger(json, result);
    assumptions(json, result);
    vp_report_json_suggestions(json, result);
    vp_json_key(json, "diagnostics");
    vp_report_json_diagnostics(json, result->diags);
    vp_json_end(json, '}');
}
