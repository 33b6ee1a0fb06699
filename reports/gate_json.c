/* vramplan.gate/1; documented in docs/FORMATS.md. */
#include "reports/difference_words.h"
#include "reports/gate_report.h"
#include "reports/gate_words.h"

static void key_quantity(struct vp_json *json, const char *key, struct vp_quantity q, bool known) {
    vp_json_key(json, key);
    if (!known) {
        vp_json_null(json);
        return;
    }
    vp_json_map_inline(json);
    vp_json_key_i64(json, "low", q.low);
    vp_json_key_i64(json, "likely", q.likely);
    vp_json_key_i64(json, "high", q.high);
    vp_json_end(json, '}');
}

static void key_waiver(struct vp_json *json, const struct vp_waiver *waiver) {
    vp_json_key(json, "waiver");
    if (!waiver) {
        vp_json_null(json);
        return;
    }
    vp_json_map(json);
    vp_json_key_text(json, "reason", waiver->reason);
    vp_json_key_text(json, "expires", waiver->expires_text);
    vp_difference_json_place(json, &waiver->pos);
    vp_json_end(json, '}');
}

static void one_check(struct vp_json *json, const struct vp_check *c) {
    static const char *const UNITS[] = {
        [VP_UNIT_NONE] = NULL,         [VP_UNIT_BYTES] = "bytes",
        [VP_UNIT_TOKENS] = "tokens",   [VP_UNIT_SEQUENCES] = "sequences",
        [VP_UNIT_COUNT] = "count",     [VP_UNIT_MILLI] = "thousandths",
        [VP_UNIT_SHARE] = "billionths"};

    vp_json_map(json);
    vp_json_key_text(json, "check", c->name);
    vp_json_key_text(json, "state", vp_check_state_name(c->state));
    vp_json_key_text(json, "id", c->id < VP_DIAG_COUNT ? vp_diag_code(c->id) : NULL);
    vp_json_key_text(json, "message", c->message);
    vp_json_key_text(json, "hint", c->hint);
    vp_json_key_text(json, "unit", UNITS[c->unit]);
    key_quantity(json, "value", c->value, c->value_known);
    vp_json_key(json, "limit");
    if (c->limit_known)
        vp_json_i64(json, c->limit);
    else
        vp_json_null(json);
    vp_json_key(json, "bound");
    if (c->limit_known)
        vp_json_text(json, c->upper ? "at-most" : "at-least");
    else
        vp_json_null(json);
    key_quantity(json, "base", c->base, c->base_known);
    vp_difference_json_place(json, &c->pos);
    key_waiver(json, c->waiver);
    vp_json_end(json, '}');
}

static void one_scenario(struct vp_json *json, const struct vp_gate_scenario *s) {
    vp_json_map(json);
    vp_json_key_text(json, "scenario", s->name);
    vp_json_key_text(json, "file", s->file);
    vp_json_key_text(json, "base_file", s->base_file);
    vp_json_key_text(json, "state", vp_check_state_name(s->worst));
    vp_json_key_bool(json, "in_base", s->in_base);
    vp_json_key(json, "before");
    vp_difference_json_side(json, s->base);
    vp_json_key(json, "after");
    vp_difference_json_side(json, s->head);
    vp_json_key(json, "checks");
    vp_json_list(json);
    for (uint32_t i = 0; i < s->check_count; i++)
        one_check(json, &s->checks[i]);
    vp_json_end(json, ']');
    vp_difference_json(json, s->difference);
    vp_json_key(json, "to_pass");
    vp_json_text(json, s->worst >= VP_CHECK_WARN ? vp_gate_to_pass(json->out->arena, s) : NULL);
    vp_json_end(json, '}');
}

static void key_counts(struct vp_json *json, const char *key, const uint32_t *counts) {
    vp_json_key(json, key);
    vp_json_map(json);
    for (int s = 0; s < VP_CHECK_STATES; s++)
        vp_json_key_u64(json, vp_check_state_name((enum vp_check_state)s), counts[s]);
    vp_json_end(json, '}');
}

void vp_gate_json(struct vp_json *json, const struct vp_gate *gate, int exit_code) {
    vp_json_map(json);
    vp_json_key_text(json, "schema", "vramplan.gate/1");
    vp_json_key_text(json, "state", vp_check_state_name(gate->worst));
    vp_json_key_i64(json, "exit", exit_code);
    vp_json_key_text(json, "date", gate->date);
    vp_json_key(json, "base");
    vp_json_map(json);
    vp_json_key_text(json, "label", gate->base_label);
    vp_json_key_text(json, "commit", gate->base_commit);
    vp_json_end(json, '}');
    key_counts(json, "scenario_counts", gate->scenarios_of);
    key_counts(json, "check_counts", gate->checks);
    vp_json_key(json, "scenarios");
    vp_json_list(json);
    for (uint32_t i = 0; i < gate->scenario_count; i++)
        one_scenario(json, &gate->scenarios[i]);
    vp_json_end(json, ']');
    vp_json_key(json, "diagnostics");
    vp_report_json_diagnostics(json, gate->notes);
    vp_json_end(json, '}');
}
