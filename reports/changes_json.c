/* vramplan.fit/1 of the engines that are searched by changes; documented in docs/FORMATS.md. */
#include "reports/changes_report.h"

static void key_or_null(struct vp_json *json, const char *key, uint64_t v) {
    vp_json_key(json, key);
    if (v > 0)
        vp_json_u64(json, v);
    else
        vp_json_null(json);
}

static void key_real(struct vp_json *json, const char *key, double v, bool known) {
    vp_json_key(json, key);
    if (known)
        vp_json_real(json, v);
    else
        vp_json_null(json);
}

static void key_time(struct vp_json *json, const char *key, const struct vp_estimate *e) {
    if (e->basis == VP_BASIS_NONE)
        return;
    vp_json_key(json, key);
    vp_json_map_inline(json);
    key_real(json, "low", e->low, true);
    key_real(json, "likely", e->likely, e->basis > VP_BASIS_BOUND);
    key_real(json, "high", e->high, e->basis > VP_BASIS_BOUND);
    vp_json_key_text(json, "basis", vp_basis_name(e->basis));
    vp_json_end(json, '}');
}

static void risk(struct vp_json *json, const struct vp_risk *r) {
    vp_json_key(json, "risk");
    if (!r->format) {
        vp_json_null(json);
        return;
    }
    vp_json_map_inline(json);
    vp_json_key_text(json, "format", r->format);
    vp_json_key_text(json, "unit", r->unit);
    key_real(json, "low", r->low, r->known);
    key_real(json, "likely", r->likely, r->known);
    key_real(json, "high", r->high, r->known);
    vp_json_key_u64(json, "publishers", r->publishers);
    vp_json_key_text(json, "by", r->by);
    vp_json_end(json, '}');
}

static void change(struct vp_json *json, const struct vp_change *c) {
    vp_json_map(json);
    vp_json_key_text(json, "lever", c->lever);
    vp_json_key_text(json, "change", c->what);
    vp_json_key_text(json, "field", c->field);
    vp_json_key_text(json, "from", c->from);
    vp_json_key_text(json, "to", c->to);
    vp_json_key(json, "cost");
    vp_json_map_inline(json);
    vp_json_key_text(json, "quality", c->quality);
    vp_json_key_text(json, "speed", c->speed);
    vp_json_key_text(json, "money", c->money);
    vp_json_end(json, '}');
    risk(json, &c->risk);
    vp_json_end(json, '}');
}

static void patch(struct vp_json *json, const struct vp_proposal *p) {
    vp_json_key(json, "scenario_patch");
    vp_json_map(json);
    for (uint32_t i = 0; i < p->patches; i++)
        vp_json_key_text(json, p->patch[i].field, p->patch[i].value);
    vp_json_end(json, '}');
}

static void figures(struct vp_json *json, const struct vp_trial *t) {
    vp_json_key_text(json, "device", t->device);
    vp_json_key_amount(json, "need_bytes", t->need);
    vp_json_key_u64(json, "usable_bytes", t->usable_bytes);
    vp_json_key(json, "headroom_bytes");
    vp_json_i64(json, t->headroom_bytes);
    vp_json_key_text(json, "gpu", t->gpu);
    vp_json_key_u64(json, "gpus", t->gpus);
    vp_json_key(json, "parallel");
    vp_json_map_inline(json);
    vp_json_key_u64(json, "tensor", t->tensor);
    vp_json_key_u64(json, "pipeline", t->pipeline);
    vp_json_key_u64(json, "data", t->data);
    vp_json_key_u64(json, "expert", t->expert);
    vp_json_end(json, '}');
    key_real(json, "price_per_hour", t->price_per_hour, t->price_per_hour > 0);
    vp_json_key(json, "latency");
    vp_json_map(json);
    key_time(json, "ttft_ms", &t->ttft);
    key_time(json, "tpot_ms", &t->tpot);
    key_time(json, "step_ms", &t->step);
    vp_json_end(json, '}');
    vp_json_key_text(json, "slo", vp_slo_name(t->slo));
}

void vp_changes_json_proposal(struct vp_json *json, const struct vp_outcome *found,
                              const struct vp_proposal *p) {
    vp_json_map(json);
    vp_json_key_text(json, "verdict", vp_verdict_name(p->trial.verdict));
    if (found->question == VP_ASK_MOST) {
        vp_json_key_u64(json, found->goal, p->most);
        key_or_null(json, "at_risk_up_to", p->most_likely > p->most ? p->most_likely : 0);
        vp_json_key_text(json, "limited_by",
                         p->capped    ? "model"
                         : p->by_time ? "latency"
                                      : "memory");
    }
    vp_json_key(json, "changes");
    vp_json_list(json);
    for (uint32_t i = 0; i < p->changes; i++)
        change(json, &p->change[i]);
    vp_json_end(json, ']');
    figures(json, &p->trial);
    key_real(json, "quality_loss_percent", p->risk, p->risk_known);
    key_real(json, "workload_kept", p->kept, true);
    patch(json, p);
    vp_json_key_text(json, "command", p->command);
    vp_json_end(json, '}');
}

static void limits(struct vp_json *json, const struct vp_outcome *found) {
    const struct vp_result *base = found->base;

    vp_json_key_text(json, "reason_text", base->reason_text);
    if (found->question != VP_ASK_CHANGES)
        return;
    if (base->training.stage) {
        key_or_null(json, "max_micro_batch", found->max_micro_batch);
    } else {
        key_or_null(json, "max_context", found->max_context);
        key_or_null(json, "max_concurrency", found->max_sequences);
    }
    vp_json_key_u64(json, "changes_needed", found->needed);
}

/* What was promised, and how the best stands to it. */
static void promise(struct vp_json *json, const struct vp_outcome *found) {
    vp_json_key(json, "slo");
    if (found->slos == 0) {
        vp_json_null(json);
        return;
    }
    vp_json_map_inline(json);
    for (uint32_t i = 0; i < found->slos; i++)
        vp_json_key_text(json, found->slo[i].field, found->slo[i].value);
    vp_json_key_text(json, "state", vp_slo_name(found->slo_state));
    vp_json_end(json, '}');
}

static void infeasible(struct vp_json *json, const struct vp_outcome *found) {
    vp_json_key(json, "short");
    vp_json_map(json);
    vp_json_key_u64(json, "bytes", found->short_bytes);
    vp_json_key_text(json, "text", found->short_text);
    vp_json_end(json, '}');
    vp_json_key(json, "nearest");
    if (found->nearest)
        vp_changes_json_proposal(json, found, found->nearest);
    else
        vp_json_null(json);
}

void vp_changes_json(struct vp_json *json, const struct vp_outcome *found) {
    static const char *const QUESTIONS[] = {"changes", "maximize", "minimize"};
    const struct vp_result *base = found->base;

    vp_json_map(json);
    vp_json_key_text(json, "schema", "vramplan.fit/1");
    vp_json_key_text(json, "scenario", base->scenario->name);
    vp_json_key_text(json, "engine", base->scenario->engine.name);
    vp_json_key_text(json, "mode", base->mode);
    vp_json_key_text(json, "verdict", vp_verdict_name(found->verdict));
    vp_json_key_text(json, "question", QUESTIONS[found->question]);
    vp_json_key_text(json, "goal", found->goal);
    promise(json, found);
    limits(json, found);
    vp_json_key_u64(json, "tried", found->tried);
    vp_json_key(json, "complete");
    vp_json_bool(json, !found->stopped);
    vp_json_key_u64(json, "beaten", found->beaten);
    vp_json_key(json, "proposals");
    vp_json_list(json);
    for (uint32_t i = 0; i < found->count; i++)
        vp_changes_json_proposal(json, found, &found->item[i]);
    vp_json_end(json, ']');
    if (found->verdict == VP_DOES_NOT_FIT)
        infeasible(json, found);
    vp_json_key(json, "notes");
    vp_json_list(json);
    for (uint32_t i = 0; i < found->note_count; i++)
        vp_json_text(json, found->notes[i]);
    vp_json_end(json, ']');
    vp_report_json_suggestions(json, base);
    vp_json_key(json, "diagnostics");
    vp_report_json_diagnostics(json, base->diags);
    vp_json_end(json, '}');
}
