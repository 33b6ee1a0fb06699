/* GitHub's workflow commands ("Workflow commands for GitHub Actions": error, warning, notice) and
 * OpenMetrics text. */
#include <inttypes.h>
#include <string.h>

#include "reports/difference_words.h"
#include "reports/gate_report.h"
#include "reports/gate_words.h"

/* A message keeps '%' and line ends apart; a property ':' and ',' too. */
static void escape(struct vp_buf *out, const char *text, bool property) {
    for (; *text; text++) {
        if (*text == '%' || *text == '\r' || *text == '\n' ||
            (property && (*text == ':' || *text == ',')))
            vp_buf_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
        else
            vp_buf_add_n(out, text, 1);
    }
}

static const char *command_of(enum vp_check_state state) {
    if (state >= VP_CHECK_FAIL)
        return "error";
    return state >= VP_CHECK_WARN ? "warning" : "notice";
}

static void annotation(struct vp_buf *out, const struct vp_finding *f) {
    vp_buf_printf(out, "::%s file=", command_of(f->check->state));
    escape(out, vp_finding_path(out->arena, f, f->pos.file), true);
    vp_buf_printf(out, ",line=%" PRIu32 ",title=", f->pos.line);
    escape(out, vp_arena_printf(out->arena, "vramplan gate: %s", f->check->name), true);
    vp_buf_add(out, "::");
    escape(out, vp_finding_line(out->arena, f), false);
    vp_buf_add(out, "\n");
}

void vp_gate_annotations(struct vp_buf *out, const struct vp_gate *gate) {
    struct vp_finding *findings;
    uint32_t all = vp_gate_findings(out->arena, &findings, gate), count = 0;

    while (count < all && findings[count].check->state >= VP_CHECK_WARN)
        count++; /* notes are no reason to mark a line */
    uint32_t shown = count <= VP_GATE_ANNOTATIONS ? count : VP_GATE_ANNOTATIONS - 1;
    for (uint32_t i = 0; i < shown; i++)
        annotation(out, &findings[i]);
    if (shown < count) {
        vp_buf_printf(out, "::%s title=vramplan gate::", command_of(findings[shown].check->state));
        vp_buf_printf(out, "%" PRIu32 " more findings are in the report\n", count - shown);
    }
}

/* ---- OpenMetrics ---- */

/* A label's value: backslash, quote and line end. */
static void label(struct vp_buf *out, const char *name, const char *text) {
    vp_buf_printf(out, "%s=\"", name);
    for (; *text; text++) {
        if (*text == '\n')
            vp_buf_add(out, "\\n");
        else {
            vp_buf_add(out, *text == '\\' || *text == '"' ? "\\" : "");
            vp_buf_add_n(out, text, 1);
        }
    }
    vp_buf_add(out, "\"");
}

static void sample(struct vp_buf *out, const char *metric, const char *scenario,
                   const char *component, int64_t value) {
    vp_buf_printf(out, "%s{", metric);
    label(out, "scenario", scenario);
    if (component) {
        vp_buf_add(out, ",");
        label(out, "component", component);
    }
    vp_buf_printf(out, "} %" PRId64 "\n", value);
}

static void family(struct vp_buf *out, const char *metric, const char *help) {
    vp_buf_printf(out, "# TYPE %s gauge\n# UNIT %s bytes\n# HELP %s %s\n", metric, metric, metric,
                  help);
}

void vp_gate_metrics(struct vp_buf *out, const struct vp_gate *gate) {
    static const char NEED[] = "vramplan_need_bytes", FREE[] = "vramplan_headroom_bytes";
    static const char PART[] = "vramplan_component_bytes";

    family(out, NEED, "Planned need of the worst GPU.");
    for (uint32_t i = 0; i < gate->scenario_count; i++) {
        const struct vp_gate_scenario *s = &gate->scenarios[i];
        if (s->head)
            sample(out, NEED, s->name, NULL, (int64_t)s->head->devices[s->head->worst].need.likely);
    }
    family(out, FREE, "What the worst GPU has to spare.");
    for (uint32_t i = 0; i < gate->scenario_count; i++)
        if (gate->scenarios[i].head)
            sample(out, FREE, gate->scenarios[i].name, NULL,
                   gate->scenarios[i].head->headroom_bytes);
    family(out, PART, "What a component takes of the worst GPU at its peak.");
    for (uint32_t i = 0; i < gate->scenario_count; i++) {
        const struct vp_gate_scenario *s = &gate->scenarios[i];
        for (int c = 0; s->head && c < VP_COMPONENT_COUNT; c++) {
            const struct vp_device *worst = &s->head->devices[s->head->worst];
            if (worst->present[c])
                sample(out, PART, s->name, vp_component_name((enum vp_component)c),
                       (int64_t)worst->component[c].likely);
        }
    }
    vp_buf_add(out, "# EOF\n");
}
