/* SARIF 2.1.0 (OASIS, sections 3.13 to 3.52) and GitLab's Code Quality list: one finding per check
 * that says something, at the line that did it. Fingerprints are of scenario and check, so that
 * other figures are no new alert. */
#include <inttypes.h>
#include <string.h>

#include "reports/difference_words.h"
#include "reports/gate_report.h"
#include "reports/gate_words.h"

static bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("-._~/", c);
}

/* A path as a URI reference (RFC 3986): "a b.yaml" is "a%20b.yaml". */
static const char *uri_of(struct vp_arena *arena, const char *path) {
    struct vp_buf out = {.arena = arena};

    vp_buf_add(&out, *path == '/' ? "file://" : "");
    for (; *path; path++) {
        if (is_plain(*path))
            vp_buf_add_n(&out, path, 1);
        else
            vp_buf_printf(&out, "%%%02X", (unsigned)(unsigned char)*path);
    }
    return vp_buf_text(&out);
}

static void location(struct vp_json *json, const struct vp_finding *f, const struct vp_pos *pos) {
    vp_json_map(json);
    vp_json_key(json, "physicalLocation");
    vp_json_map(json);
    vp_json_key(json, "artifactLocation");
    vp_json_map_inline(json);
    vp_json_key_text(json, "uri",
                     uri_of(json->out->arena, vp_finding_path(json->out->arena, f, pos->file)));
    vp_json_end(json, '}');
    vp_json_key(json, "region");
    vp_json_map_inline(json);
    vp_json_key_u64(json, "startLine", pos->line ? pos->line : 1);
    if (pos->line && pos->column)
        vp_json_key_u64(json, "startColumn", pos->column);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}

/* ---- rules: the diagnostics that occur ---- */

struct rules {
    enum vp_diag_id id[VP_DIAG_COUNT];
    uint32_t count;
};

static uint32_t index_of(const struct rules *rules, enum vp_diag_id id) {
    uint32_t at = 0;

    while (at < rules->count && rules->id[at] != id)
        at++;
    return at;
}

static struct rules rules_of(const struct vp_finding *findings, uint32_t count) {
    struct rules rules = {.count = 0};

    for (uint32_t i = 0; i < count; i++) {
        enum vp_diag_id id = findings[i].check->id;
        if (id < VP_DIAG_COUNT && index_of(&rules, id) == rules.count)
            rules.id[rules.count++] = id;
    }
    return rules;
}

static const char *level_of(enum vp_check_state state) {
    if (state >= VP_CHECK_FAIL)
        return "error";
    return state >= VP_CHECK_WARN ? "warning" : "note";
}

static void add_rules(struct vp_json *json, const struct rules *rules) {
    vp_json_key(json, "rules");
    vp_json_list(json);
    for (uint32_t i = 0; i < rules->count; i++) {
        vp_json_map(json);
        vp_json_key_text(json, "id", vp_diag_code(rules->id[i]));
        vp_json_key(json, "shortDescription");
        vp_json_map_inline(json);
        vp_json_key_text(json, "text", vp_diag_meaning(rules->id[i]));
        vp_json_end(json, '}');
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

/* ---- results ---- */

/* The limit, where the finding stands at the line that did it. */
static void related(struct vp_json *json, const struct vp_finding *f) {
    const struct vp_pos *limit = &f->check->pos;

    if (!limit->file || (vp_text_eq(limit->file, f->pos.file) && limit->line == f->pos.line))
        return;
    vp_json_key(json, "relatedLocations");
    vp_json_list(json);
    location(json, f, limit);
    vp_json_end(json, ']');
}

static void suppression(struct vp_json *json, const struct vp_check *check) {
    if (check->state != VP_CHECK_WAIVED || !check->waiver)
        return;
    vp_json_key(json, "suppressions");
    vp_json_list(json);
    vp_json_map_inline(json);
    vp_json_key_text(json, "kind", "external");
    vp_json_key_text(json, "justification", check->waiver->reason);
    vp_json_end(json, '}');
    vp_json_end(json, ']');
}

static void one_result(struct vp_json *json, const struct vp_finding *f,
                       const struct rules *rules) {
    const struct vp_check *check = f->check;

    vp_json_map(json);
    if (check->id < VP_DIAG_COUNT) {
        vp_json_key_text(json, "ruleId", vp_diag_code(check->id));
        vp_json_key_u64(json, "ruleIndex", index_of(rules, check->id));
    }
    vp_json_key_text(json, "level", level_of(check->state));
    vp_json_key(json, "message");
    vp_json_map_inline(json);
    vp_json_key_text(json, "text", vp_finding_line(json->out->arena, f));
    vp_json_end(json, '}');
    vp_json_key(json, "locations");
    vp_json_list(json);
    location(json, f, &f->pos);
    vp_json_end(json, ']');
    related(json, f);
    vp_json_key(json, "partialFingerprints");
    vp_json_map_inline(json);
    vp_json_key_text(json, "vramplanCheck/v1", f->fingerprint);
    vp_json_end(json, '}');
    suppression(json, check);
    vp_json_key(json, "properties");
    vp_json_map_inline(json);
    vp_json_key_text(json, "scenario", f->scenario->name);
    vp_json_key_text(json, "check", check->name);
    vp_json_key_text(json, "state", vp_check_state_name(check->state));
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}

void vp_gate_sarif(struct vp_json *json, const struct vp_gate *gate) {
    struct vp_finding *findings;
    uint32_t count = vp_gate_findings(json->out->arena, &findings, gate);
    struct rules rules = rules_of(findings, count);

    vp_json_map(json);
    vp_json_key_text(json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    vp_json_key_text(json, "version", "2.1.0");
    vp_json_key(json, "runs");
    vp_json_list(json);
    vp_json_map(json);
    vp_json_key(json, "tool");
    vp_json_map(json);
    vp_json_key(json, "driver");
    vp_json_map(json);
    vp_json_key_text(json, "name", "vramplan");
    vp_json_key_text(json, "version", VP_VERSION);
    add_rules(json, &rules);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
    vp_json_key(json, "results");
    vp_json_list(json);
    for (uint32_t i = 0; i < count; i++)
        one_result(json, &findings[i], &rules);
    vp_json_end(json, ']');
    vp_json_key_text(json, "columnKind", "unicodeCodePoints");
    vp_json_end(json, '}');
    vp_json_end(json, ']');
    vp_json_end(json, '}');
}

/* ---- GitLab ---- */

static const char *severity_of(enum vp_check_state state) {
    static const char *const NAMES[VP_CHECK_STATES] = {
        [VP_CHECK_PASS] = "info",     [VP_CHECK_NEW] = "info",
        [VP_CHECK_REMOVED] = "info",  [VP_CHECK_WAIVED] = "info",
        [VP_CHECK_WARN] = "minor",    [VP_CHECK_INCONCLUSIVE] = "major",
        [VP_CHECK_FAIL] = "critical", [VP_CHECK_INVALID] = "blocker"};
    return NAMES[state];
}

void vp_gate_gitlab(struct vp_json *json, const struct vp_gate *gate) {
    struct vp_finding *findings;
    uint32_t count = vp_gate_findings(json->out->arena, &findings, gate);

    vp_json_list(json);
    for (uint32_t i = 0; i < count; i++) {
        const struct vp_finding *f = &findings[i];
        vp_json_map(json);
        vp_json_key_text(json, "description", vp_finding_line(json->out->arena, f));
        vp_json_key_text(json, "check_name",
                         vp_arena_printf(json->out->arena, "vramplan/%s", f->check->name));
        vp_json_key_text(json, "fingerprint", f->fingerprint);
        vp_json_key_text(json, "severity", severity_of(f->check->state));
        vp_json_key(json, "location");
        vp_json_map(json);
        vp_json_key_text(json, "path", vp_finding_path(json->out->arena, f, f->pos.file));
        vp_json_key(json, "lines");
        vp_json_map_inline(json);
        vp_json_key_u64(json, "begin", f->pos.line);
        vp_json_end(json, '}');
        vp_json_end(json, '}');
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}
