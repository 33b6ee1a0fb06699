#include "reports/doctor_report.h"

#include <ctype.h>
#include <inttypes.h>

#include "planner/base/json_writer.h"
#include "planner/base/units.h"
#include "reports/report.h"
#include "reports/shell_words.h"

enum { INDENT = 3 };

static const char *heading(struct vp_arena *arena, const struct vp_run_log *log,
                           const struct vp_finding *f) {
    struct vp_buf buf = {.arena = arena};
    if (!f->message)
        return "from a table of devices";
    vp_buf_printf(&buf, "line %" PRIu64 ": %s", f->message->line,
                  vp_log_message_words(f->message->kind));
    if (f->messages > 1)
        vp_buf_printf(&buf, " (%" PRIu32 " messages%s)", f->messages,
                      log->messages_dropped ? ", and more" : "");
    return vp_buf_text(&buf);
}

/* ---- text ---- */

static void text_finding(const struct vp_page *page, const struct vp_run_log *log,
                         const struct vp_finding *f, uint32_t number) {
    static const enum vp_style STYLES[] = {VP_STYLE_DIM, VP_STYLE_WARN, VP_STYLE_BAD};
    struct vp_arena *arena = page->out->arena;
    vp_buf_printf(page->out, "%s%" PRIu32 ". ", number > 1 ? "\n" : "", number);
    vp_page_styled(page, VP_STYLE_STRONG, vp_cause_words(f->cause));
    vp_buf_add(page->out, " (");
    vp_page_styled(page, STYLES[f->surety], vp_surety_name(f->surety));
    vp_buf_add(page->out, ")\n");
    vp_page_spaces(page, INDENT);
    vp_page_wrap(page, INDENT, INDENT, heading(arena, log, f));
    for (uint32_t i = 0; i < f->lines; i++) {
        vp_page_spaces(page, 2 * INDENT);
        vp_page_wrap(page, 2 * INDENT, 2 * INDENT + 2, f->line[i]);
    }
    vp_page_spaces(page, INDENT);
    vp_page_wrap(page, INDENT, INDENT, f->why);
    for (uint32_t i = 0; i < f->steps; i++) {
        const struct vp_next_step *s = &f->step[i];
        if (i == 0)
            vp_buf_add(page->out, "   Next:\n");
        if (s->command)
            vp_shell_paste(page, 2 * INDENT, s->command);
        vp_page_spaces(page, s->command ? 3 * INDENT : 2 * INDENT);
        vp_page_wrap(page, s->command ? 3 * INDENT : 2 * INDENT,
                     s->command ? 3 * INDENT : 2 * INDENT, s->why);
    }
}

void vp_doctor_report_text(const struct vp_page *page, const struct vp_run_log *log,
                           const struct vp_diagnosis *diagnosis) {
    if (diagnosis->findings == 0)
        vp_page_printf(page, 0, INDENT, "No message about memory in %s lines.",
                       vp_format_count(page->out->arena, log->lines));
    for (uint32_t i = 0; i < diagnosis->findings; i++)
        text_finding(page, log, &diagnosis->finding[i], i + 1);
}

/* ---- Markdown and CSV ---- */

void vp_doctor_report_markdown(struct vp_buf *out, const struct vp_run_log *log,
                               const struct vp_diagnosis *diagnosis) {
    struct vp_arena *arena = out->arena;
    if (diagnosis->findings == 0)
        vp_buf_add(out, "No message about memory.\n");
    for (uint32_t i = 0; i < diagnosis->findings; i++) {
        const struct vp_finding *f = &diagnosis->finding[i];
        vp_buf_printf(out, "%s### %s (%s)\n\n%s\n\n", i ? "\n" : "", vp_cause_words(f->cause),
                      vp_surety_name(f->surety), heading(arena, log, f));
        for (uint32_t k = 0; k < f->lines; k++)
            vp_buf_printf(out, "- %s\n", vp_text_clean(arena, f->line[k], true));
        vp_buf_printf(out, "%s%s\n", f->lines ? "\n" : "", f->why);
        for (uint32_t k = 0; k < f->steps; k++) {
            const struct vp_next_step *s = &f->step[k];
            vp_buf_add(out, k ? "" : "\n");
            if (s->command)
                vp_buf_printf(out, "- `%s`: %s\n", vp_text_clean(arena, s->command, true), s->why);
            else
                vp_buf_printf(out, "- %s\n", s->why);
        }
    }
}

void vp_doctor_report_csv(struct vp_buf *out, const struct vp_diagnosis *diagnosis) {
    vp_buf_add(out, "cause,surety,line,messages\n");
    for (uint32_t i = 0; i < diagnosis->findings; i++) {
        const struct vp_finding *f = &diagnosis->finding[i];
        vp_buf_printf(out, "%s,%s,", vp_cause_id(f->cause), vp_surety_name(f->surety));
        if (f->message)
            vp_buf_printf(out, "%" PRIu64, f->message->line);
        vp_buf_printf(out, ",%" PRIu32 "\n", f->messages);
    }
}

/* ---- JSON ---- */

static void json_finding(struct vp_json *json, const struct vp_finding *f) {
    vp_json_map(json);
    vp_json_key_nonempty(json, "cause", vp_cause_id(f->cause));
    vp_json_key_nonempty(json, "surety", vp_surety_name(f->surety));
    vp_json_key_nonempty(json, "words", vp_cause_words(f->cause));
    vp_json_key(json, "line");
    if (f->message)
        vp_json_u64(json, f->message->line);
    else
        vp_json_null(json);
    vp_json_key_u64(json, "messages", f->messages);
    vp_json_key_nonempty(json, "why", f->why);
    vp_json_key(json, "arithmetic");
    vp_json_list(json);
    for (uint32_t i = 0; i < f->lines; i++)
        vp_json_text(json, f->line[i]);
    vp_json_end(json, ']');
    vp_json_key(json, "next");
    vp_json_list(json);
    for (uint32_t i = 0; i < f->steps; i++) {
        vp_json_map_inline(json);
        vp_json_key_nonempty(json, "command", f->step[i].command);
        vp_json_key_nonempty(json, "why", f->step[i].why);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
    vp_json_end(json, '}');
}

/* The quantity's name in small letters; bytes say so. */
static const char *figure_key(struct vp_arena *arena, enum vp_log_quantity what) {
    static const char *const NAMES[VP_LOG_QUANTITIES] = {
#define X(name, kind, several, words) #name,
#include "planner/model/log_quantities.def"
#undef X
    };
    enum vp_log_kind kind = vp_log_quantities[what].kind;
    bool bytes = (kind == VP_LOG_GIB || kind == VP_LOG_MIB) && !vp_text_ends(NAMES[what], "_BYTES");
    char *key = vp_arena_printf(arena, "%s%s", NAMES[what], bytes ? "_bytes" : "");
    for (char *p = key; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return key;
}

static void json_message(struct vp_json *json, const struct vp_log_message *m) {
    vp_json_map(json);
    vp_json_key_u64(json, "line", m->line);
    vp_json_key_u64(json, "times", m->times);
    vp_json_key_nonempty(json, "what", vp_log_message_words(m->kind));
    vp_json_key(json, "figures");
    vp_json_map_inline(json);
    for (int i = 0; i < VP_LOG_QUANTITIES; i++) {
        enum vp_log_quantity what = (enum vp_log_quantity)i;
        if (!m->known[i])
            continue;
        vp_json_key(json, figure_key(json->out->arena, what));
        if (vp_log_quantities[i].kind == VP_LOG_SHARE)
            vp_json_real(json, (double)m->value[i] / 1e9);
        else
            vp_json_i64(json, m->value[i]);
    }
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}

void vp_doctor_report_json(struct vp_buf *out, const struct vp_run_log *log,
                           const struct vp_diagnosis *diagnosis, const struct vp_diags *diags) {
    struct vp_json json = vp_json_begin(out);
    vp_json_map(&json);
    vp_json_key_nonempty(&json, "schema", "vramplan.doctor/1");
    vp_json_key_u64(&json, "lines", log->lines);
    vp_json_key_nonempty(&json, "engine",
                         log->start.known ? vp_engine_name(log->start.engine) : NULL);
    vp_json_key_nonempty(&json, "cause",
                         diagnosis->findings ? vp_cause_id(diagnosis->finding[0].cause) : NULL);
    vp_json_key(&json, "findings");
    vp_json_list(&json);
    for (uint32_t i = 0; i < diagnosis->findings; i++)
        json_finding(&json, &diagnosis->finding[i]);
    vp_json_end(&json, ']');
    vp_json_key(&json, "messages");
    vp_json_list(&json);
    for (uint32_t i = 0; i < log->messages; i++)
        json_message(&json, &log->message[i]);
    vp_json_end(&json, ']');
    vp_json_key_u64(&json, "messages_left_out", log->messages_dropped);
    vp_json_key(&json, "diagnostics");
    vp_report_json_diagnostics(&json, diags);
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
}
