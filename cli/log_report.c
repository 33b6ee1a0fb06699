#include "cli/log_report.h"

#include <inttypes.h>
#include <string.h>

#include "api/yaml_writer.h"
#include "planner/base/units.h"
#include "reports/report.h"

enum { NAME = 34, NUMBER = 12, INDENT = 2 };

/* ---- words ---- */

const char *vp_log_report_subject(struct vp_arena *arena, const struct vp_run_log *log) {
    const struct vp_log_start *start = &log->start;
    const char *model = vp_log_argument(arena, start, "model");
    struct vp_buf buf = {.arena = arena};
    model = model ? model : vp_log_argument(arena, start, "model_path");
    if (!model && start->model[0])
        model = start->model;
    vp_buf_add(&buf, start->known       ? vp_engine_name(start->engine)
                     : log->devices > 0 ? "a table of devices"
                                        : "an engine that it does not name");
    if (start->version[0])
        vp_buf_printf(&buf, " %s", start->version);
    if (model)
        vp_buf_printf(&buf, ", %s", model);
    return vp_buf_text(&buf);
}

static const char *key_of(struct vp_arena *arena, const struct vp_log_figure *f) {
    return f->place ? vp_arena_printf(arena, "%s.%s", f->key, f->place) : f->key;
}

/* A predicted figure as the log would print it, with the log's decimals and at least two. */
static const char *predicted_text(struct vp_arena *arena, const struct vp_log_row *row,
                                  uint64_t value) {
    struct vp_log_figure f = *row->logged;
    int64_t unit = f.kind == VP_LOG_GIB   ? INT64_C(1) << 30
                   : f.kind == VP_LOG_MIB ? INT64_C(1) << 20
                                          : 0;
    f.value = value > INT64_MAX ? INT64_MAX : (int64_t)value;
    if (unit && f.step > unit / 100)
        f.step = unit / 100;
    if (f.kind == VP_LOG_SHARE)
        f.step = 1000000;
    return vp_log_figure_text(arena, &f);
}

/* "+1.3 %" */
static const char *deviation_text(struct vp_arena *arena, const struct vp_log_row *row) {
    int64_t millionths;
    if (!vp_log_row_deviation(&millionths, row))
        return "";
    int64_t tenths = (millionths + (millionths < 0 ? -500 : 500)) / 1000;
    uint64_t magnitude = (uint64_t)(tenths < 0 ? -tenths : tenths);
    return vp_arena_printf(arena, "%s%" PRIu64 ".%" PRIu64 " %%", tenths < 0 ? "-" : "+",
                           magnitude / 10, magnitude % 10);
}

static const char *about(struct vp_arena *arena, const struct vp_log_row *row) {
    const struct vp_log_figure *f = row->logged;
    if (f->how)
        return f->how;
    if (row->predicted && !row->inside)
        return "outside interval";
    if (f->seen > 1 && f->least != f->most && !f->place) {
        struct vp_log_figure low = *f, high = *f;
        low.value = f->least;
        high.value = f->most;
        return vp_arena_printf(arena, "%s to %s over %" PRIu32 " ranks",
                               vp_log_figure_text(arena, &low), vp_log_figure_text(arena, &high),
                               f->seen);
    }
    return "";
}

/* ---- measured ---- */

struct vp_node *vp_log_report_measured(struct vp_ctx *ctx, const struct vp_log_comparison *c) {
    const struct vp_pos none = {0};
    struct vp_node *map = vp_node_new(ctx, VP_NODE_MAP, none);
    for (size_t i = 0; i < c->figures; i++) {
        const struct vp_log_figure *f = &c->figure[i];
        const char *text = vp_log_figure_text(ctx->arena, f);
        if (!f->pins)
            continue;
        bool whole = !strchr(text, '.');
        struct vp_node *value = vp_node_scalar(ctx, whole ? VP_NODE_INT : VP_NODE_REAL, text, none);
        if (!f->place) {
            vp_node_set(ctx, map, f->key, none, value);
            continue;
        }
        struct vp_node *places = vp_node_get(map, f->key);
        if (!places) {
            places = vp_node_new(ctx, VP_NODE_MAP, none);
            vp_node_set(ctx, map, f->key, none, places);
        }
        vp_node_set(ctx, places, f->place, none, value);
    }
    return map;
}

/* ---- text ---- */

static void text_head(const struct vp_page *page, const struct vp_log_comparison *c) {
    const struct vp_run_log *log = c->log;
    struct vp_arena *arena = page->out->arena;
    vp_page_wrap(page, 0, INDENT, vp_log_report_subject(arena, log));
    vp_page_spaces(page, INDENT);
    if (log->starts > 1)
        vp_page_printf(page, INDENT, INDENT, "start-up at line %s, %s of %" PRIu32 " in this log",
                       vp_format_count(arena, log->start.line),
                       log->earlier ? "the last complete one" : "the last", log->starts);
    else
        vp_page_printf(page, INDENT, INDENT, "%s lines, %s of them understood",
                       vp_format_count(arena, log->lines), vp_format_count(arena, log->matched));
}

static void text_figures(const struct vp_page *page, const struct vp_log_comparison *c) {
    struct vp_arena *arena = page->out->arena;
    if (c->figures == 0)
        return;
    vp_buf_add(page->out, "\n");
    vp_page_left(page, "", NAME - 6);
    vp_page_right(page, "logged", NUMBER);
    if (c->result) {
        vp_page_right(page, "planned", NUMBER);
        vp_page_right(page, "off by", NUMBER - 2);
    }
    vp_buf_add(page->out, "\n");
    for (size_t i = 0; i < c->figures; i++) {
        const struct vp_log_row *row = &c->row[i];
        vp_page_spaces(page, INDENT);
        vp_page_left(page, key_of(arena, row->logged), NAME - 6 - INDENT);
        vp_page_right(page, vp_log_figure_text(arena, row->logged), NUMBER);
        if (c->result) {
            const char *planned =
                row->predicted ? predicted_text(arena, row, row->predicted->amount.likely) : "-";
            vp_page_right(page, planned, NUMBER);
            vp_page_right(page, deviation_text(arena, row), NUMBER - 2);
        }
        const char *words = about(arena, row);
        if (words[0]) {
            int column = NAME - 6 + NUMBER + (c->result ? 2 * NUMBER - 2 : 0);
            vp_page_spaces(page, 2);
            vp_page_wrap(page, column + 2, column + 2 > 60 ? 2 * INDENT : column + 2, words);
        } else {
            vp_buf_add(page->out, "\n");
        }
    }
}

static void text_settings(const struct vp_page *page, const struct vp_log_comparison *c) {
    static const char *const WORDS[] = {
        [VP_LOG_SETTING_FILLED] = "taken from the log, else",
        [VP_LOG_SETTING_DIFFERS] = "the scenario says",
    };
    bool title = false;
    for (size_t i = 0; i < c->checked_count; i++) {
        const struct vp_log_checked *k = &c->checked[i];
        if (k->use != VP_LOG_SETTING_FILLED && k->use != VP_LOG_SETTING_DIFFERS)
            continue;
        if (!title) {
            vp_buf_add(page->out, "\n");
            vp_page_title(page, "Settings that the log shows:");
            title = true;
        }
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, 2 * INDENT, "%s: %s (%s %s)", k->setting.path,
                       k->setting.value, WORDS[k->use], k->ours ? k->ours : "nothing");
    }
}

static void text_measured(const struct vp_page *page, const struct vp_log_comparison *c) {
    struct vp_diags *diags = VP_NEW(page->out->arena, struct vp_diags);
    struct vp_ctx ctx = {.arena = page->out->arena, .diags = diags};
    diags->arena = ctx.arena;
    const struct vp_node *map = vp_log_report_measured(&ctx, c);
    if (map->count == 0)
        return;
    vp_buf_add(page->out, "\n");
    vp_page_title(page, "To paste into the scenario:");
    vp_buf_add(page->out, "measured:\n");
    vp_yaml_write_map(page->out, map, INDENT);
}

static void text_refit(const struct vp_page *page, const struct vp_refit_result *refit) {
    if (!refit || !refit->profile)
        return;
    vp_buf_add(page->out, "\n");
    vp_page_printf(page, 0, INDENT,
                   "The engine's profile for this card, from %" PRIu64 " run%s, MiB:", refit->runs,
                   refit->runs == 1 ? "" : "s");
    for (uint32_t i = 0; i < refit->changes; i++) {
        const struct vp_refit_change *k = &refit->change[i];
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, 2 * INDENT,
                       "%s: %" PRIu64 " (%" PRIu64 " to %" PRIu64 ") becomes %" PRIu64 " (%" PRIu64
                       " to %" PRIu64 ")",
                       k->key, k->before[1], k->before[0], k->before[2], k->after[1], k->after[0],
                       k->after[2]);
    }
    vp_page_spaces(page, INDENT);
    vp_page_wrap(page, INDENT, INDENT,
                 "--profile-out FILE writes it; as engines/NAME.yaml of your profiles it is used");
}

static void text_messages(const struct vp_page *page, const struct vp_run_log *log) {
    if (log->messages == 0)
        return;
    vp_buf_add(page->out, "\n");
    vp_page_title(page, "Messages about memory:");
    for (uint32_t i = 0; i < log->messages; i++) {
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, 2 * INDENT, "line %" PRIu64 ": %s", log->message[i].line,
                       vp_log_message_words(log->message[i].kind));
    }
    vp_page_spaces(page, INDENT);
    vp_page_wrap(page, INDENT, INDENT, "what they mean: vramplan doctor FILE");
}

static void text_devices(const struct vp_page *page, const struct vp_run_log *log) {
    struct vp_arena *arena = page->out->arena;
    for (uint32_t i = 0; i < log->devices; i++) {
        const struct vp_log_device *d = &log->device[i];
        if (i == 0) {
            vp_buf_add(page->out, "\n");
            vp_page_title(page, "Devices:");
        }
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, INDENT, "%s: %s of %s in use", d->place,
                       d->used_known ? vp_format_bytes(arena, d->used_bytes) : "?",
                       d->total_known ? vp_format_bytes(arena, d->total_bytes) : "?");
    }
}

void vp_log_report_text(const struct vp_page *page, const struct vp_log_comparison *c,
                        const struct vp_refit_result *refit, bool verbose) {
    text_head(page, c);
    text_figures(page, c);
    if (verbose || c->result)
        text_settings(page, c);
    text_refit(page, refit);
    text_messages(page, c->log);
    text_devices(page, c->log);
    text_measured(page, c);
}

/* ---- Markdown and CSV ---- */

void vp_log_report_markdown(struct vp_buf *out, const struct vp_log_comparison *c) {
    struct vp_arena *arena = out->arena;
    vp_buf_printf(out, "### %s\n\n",
                  vp_text_clean(arena, vp_log_report_subject(arena, c->log), true));
    vp_buf_add(out, "| quantity | logged | planned | off by | |\n|---|---:|---:|---:|---|\n");
    for (size_t i = 0; i < c->figures; i++) {
        const struct vp_log_row *row = &c->row[i];
        vp_buf_printf(out, "| %s | %s | %s | %s | %s |\n", key_of(arena, row->logged),
                      vp_log_figure_text(arena, row->logged),
                      row->predicted ? predicted_text(arena, row, row->predicted->amount.likely)
                                     : "",
                      deviation_text(arena, row), about(arena, row));
    }
}

void vp_log_report_csv(struct vp_buf *out, const struct vp_log_comparison *c) {
    struct vp_arena *arena = out->arena;
    vp_buf_add(out, "key,place,logged,planned,planned_low,planned_high,inside,line\n");
    for (size_t i = 0; i < c->figures; i++) {
        const struct vp_log_row *row = &c->row[i];
        const struct vp_log_figure *f = row->logged;
        vp_buf_printf(out, "%s,%s,%s,", f->key, f->place ? f->place : "",
                      vp_log_figure_text(arena, f));
        if (row->predicted)
            vp_buf_printf(out, "%s,%s,%s,%s,",
                          predicted_text(arena, row, row->predicted->amount.likely),
                          predicted_text(arena, row, row->predicted->amount.low),
                          predicted_text(arena, row, row->predicted->amount.high),
                          row->inside ? "true" : "false");
        else
            vp_buf_add(out, ",,,,");
        if (f->line)
            vp_buf_printf(out, "%" PRIu64, f->line);
        vp_buf_add(out, "\n");
    }
}

/* ---- JSON ---- */

/* A number as its text says it. */
static void key_number(struct vp_json *json, const char *key, const char *text) {
    uint64_t whole;
    double real;
    vp_json_key(json, key);
    if (vp_parse_u64(&whole, text))
        vp_json_u64(json, whole);
    else if (vp_parse_real(&real, text))
        vp_json_real(json, real);
    else
        vp_json_null(json);
}

static void json_log(struct vp_json *json, const struct vp_run_log *log) {
    const struct vp_log_start *start = &log->start;
    vp_json_key(json, "log");
    vp_json_map(json);
    vp_json_key_u64(json, "bytes", log->bytes);
    vp_json_key_u64(json, "lines", log->lines);
    vp_json_key_u64(json, "matched", log->matched);
    vp_json_key_nonempty(json, "engine", start->known ? vp_engine_name(start->engine) : NULL);
    vp_json_key_nonempty(json, "version", start->version);
    const char *model = vp_log_argument(json->out->arena, start, "model");
    model = model ? model : vp_log_argument(json->out->arena, start, "model_path");
    vp_json_key_nonempty(json, "model", model ? model : start->model);
    vp_json_key_nonempty(json, "gpu", start->gpu);
    vp_json_key_u64(json, "starts", log->starts);
    vp_json_key_u64(json, "line", start->line);
    vp_json_key_bool(json, "complete", start->complete);
    vp_json_key_u64(json, "last_line", log->last_line);
    vp_json_end(json, '}');
}

static void json_figure(struct vp_json *json, const struct vp_log_row *row) {
    struct vp_arena *arena = json->out->arena;
    const struct vp_log_figure *f = row->logged;
    struct vp_log_figure low = *f, high = *f;
    int64_t millionths;
    low.value = f->least;
    high.value = f->most;
    vp_json_map_inline(json);
    vp_json_key_nonempty(json, "key", f->key);
    vp_json_key_nonempty(json, "place", f->place);
    key_number(json, "logged", vp_log_figure_text(arena, f));
    key_number(json, "least", vp_log_figure_text(arena, &low));
    key_number(json, "most", vp_log_figure_text(arena, &high));
    vp_json_key_u64(json, "lines", f->seen);
    vp_json_key_u64(json, "line", f->line);
    vp_json_key_nonempty(json, "how", f->how);
    vp_json_key_bool(json, "pins", f->pins);
    vp_json_key(json, "predicted");
    if (row->predicted) {
        vp_json_map(json);
        key_number(json, "low", predicted_text(arena, row, row->predicted->amount.low));
        key_number(json, "likely", predicted_text(arena, row, row->predicted->amount.likely));
        key_number(json, "high", predicted_text(arena, row, row->predicted->amount.high));
        vp_json_end(json, '}');
        vp_json_key_bool(json, "inside", row->inside);
    } else {
        vp_json_null(json);
    }
    if (vp_log_row_deviation(&millionths, row)) {
        vp_json_key_real(json, "deviation", (double)millionths / 1e6);
    }
    vp_json_end(json, '}');
}

static void json_settings(struct vp_json *json, const struct vp_log_comparison *c) {
    static const char *const USES[] = {"agrees", "filled", "differs", "left"};
    vp_json_key(json, "settings");
    vp_json_list(json);
    for (size_t i = 0; i < c->checked_count; i++) {
        vp_json_map_inline(json);
        vp_json_key_nonempty(json, "path", c->checked[i].setting.path);
        vp_json_key_nonempty(json, "value", c->checked[i].setting.value);
        vp_json_key_nonempty(json, "scenario", c->checked[i].ours);
        vp_json_key_nonempty(json, "use", USES[c->checked[i].use]);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void json_measured(struct vp_json *json, const struct vp_log_comparison *c) {
    struct vp_diags *diags = VP_NEW(json->out->arena, struct vp_diags);
    struct vp_ctx ctx = {.arena = json->out->arena, .diags = diags};
    diags->arena = ctx.arena;
    const struct vp_node *map = vp_log_report_measured(&ctx, c);
    vp_json_key(json, "measured");
    vp_json_map(json);
    for (uint32_t i = 0; i < map->count; i++) {
        const struct vp_node *value = map->items[i];
        if (vp_node_is_scalar(value)) {
            key_number(json, map->keys[i], value->text);
            continue;
        }
        vp_json_key(json, map->keys[i]);
        vp_json_map_inline(json);
        for (uint32_t k = 0; k < value->count; k++)
            key_number(json, value->keys[k], value->items[k]->text);
        vp_json_end(json, '}');
    }
    vp_json_end(json, '}');
}

static void json_interval(struct vp_json *json, const char *key, const uint64_t v[3]) {
    vp_json_key(json, key);
    vp_json_list_inline(json);
    for (int i = 0; i < 3; i++)
        vp_json_u64(json, v[i]);
    vp_json_end(json, ']');
}

static void json_refit(struct vp_json *json, const struct vp_refit_result *refit) {
    vp_json_key(json, "refit");
    if (!refit || !refit->profile) {
        vp_json_null(json);
        return;
    }
    vp_json_map(json);
    vp_json_key_nonempty(json, "name", refit->name);
    vp_json_key_nonempty(json, "class", refit->class_name);
    vp_json_key_u64(json, "runs", refit->runs);
    vp_json_key(json, "changes_mib");
    vp_json_list(json);
    for (uint32_t i = 0; i < refit->changes; i++) {
        vp_json_map_inline(json);
        vp_json_key_nonempty(json, "key", refit->change[i].key);
        json_interval(json, "before", refit->change[i].before);
        json_interval(json, "after", refit->change[i].after);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
    vp_json_end(json, '}');
}

static void json_messages(struct vp_json *json, const struct vp_run_log *log) {
    vp_json_key(json, "messages");
    vp_json_list(json);
    for (uint32_t i = 0; i < log->messages; i++) {
        vp_json_map_inline(json);
        vp_json_key_u64(json, "line", log->message[i].line);
        vp_json_key_u64(json, "times", log->message[i].times);
        vp_json_key_nonempty(json, "what", vp_log_message_words(log->message[i].kind));
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
    vp_json_key(json, "devices");
    vp_json_list(json);
    for (uint32_t i = 0; i < log->devices; i++) {
        const struct vp_log_device *d = &log->device[i];
        vp_json_map_inline(json);
        vp_json_key_nonempty(json, "place", d->place);
        if (d->total_known)
            vp_json_key_u64(json, "total_bytes", d->total_bytes);
        if (d->used_known)
            vp_json_key_u64(json, "used_bytes", d->used_bytes);
        if (d->gtt_known)
            vp_json_key_u64(json, "gtt_bytes", d->gtt_bytes);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

void vp_log_report_json(struct vp_buf *out, const struct vp_log_comparison *c,
                        const struct vp_refit_result *refit, const struct vp_diags *diags) {
    struct vp_json json = vp_json_begin(out);
    vp_json_map(&json);
    vp_json_key_nonempty(&json, "schema", "vramplan.import-log/1");
    vp_json_key_nonempty(&json, "scenario", c->result ? c->result->scenario->name : NULL);
    json_log(&json, c->log);
    vp_json_key(&json, "figures");
    vp_json_list(&json);
    for (size_t i = 0; i < c->figures; i++)
        json_figure(&json, &c->row[i]);
    vp_json_end(&json, ']');
    json_settings(&json, c);
    json_measured(&json, c);
    json_refit(&json, refit);
    json_messages(&json, c->log);
    vp_json_key(&json, "diagnostics");
    vp_report_json_diagnostics(&json, diags);
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
}
