#include "tui/ui_command.h"

#include <string.h>

/* ---- words that do something ---- */

/* The value is still to come. */
static void ask_again(struct vp_ui *ui, const char *name) {
    vp_ui_ask_command(ui);
    vp_entry_set(&ui->entry, vp_arena_printf(&ui->frame, "%s ", name));
}

static void run_set(struct vp_ui *ui, const char *rest) {
    char field[VP_ENTRY_BYTES];
    size_t n = strcspn(rest, " =");
    memcpy(field, rest, n);
    field[n] = '\0';
    rest += n;
    rest += strspn(rest, " =");
    if (!n || !*rest) {
        vp_ui_say(ui, VP_LOOK_WARN, "a field and a value, as set serve.context 65536");
        ask_again(ui, "set");
        return;
    }
    vp_session_set(ui->session, field, rest);
    vp_ui_tell(ui);
}

static void run_solve(struct vp_ui *ui, const char *rest) {
    struct vp_buf names = {.arena = &ui->frame};
    for (int i = 0; i < VP_SOLVE_COUNT; i++) {
        const char *name = vp_solve_name((enum vp_solve)i);
        if (vp_name_eq(name, rest)) {
            vp_session_solve(ui->session, (enum vp_solve)i);
            vp_ui_tell(ui);
            return;
        }
        vp_buf_printf(&names, "%s%s", i ? ", " : "", name);
    }
    vp_ui_say(ui, VP_LOOK_WARN, "solve for one of: %s", vp_buf_text(&names));
}

static void run_pin(struct vp_ui *ui, const char *rest) {
    vp_session_pin_toggle(ui->session);
    vp_ui_tell(ui);
    if (*rest && vp_session_pinned(ui->session) < VP_PINS)
        vp_session_pin_rename(ui->session, vp_session_pinned(ui->session), rest);
}

static void run_undo(struct vp_ui *ui, const char *rest) {
    (void)rest;
    vp_session_undo(ui->session);
    vp_ui_tell(ui);
}

static void run_redo(struct vp_ui *ui, const char *rest) {
    (void)rest;
    vp_session_redo(ui->session);
    vp_ui_tell(ui);
}

static void run_reset(struct vp_ui *ui, const char *rest) {
    if (*rest)
        vp_session_reset(ui->session, rest);
    else
        vp_session_reset_all(ui->session);
    vp_ui_tell(ui);
}

static void run_write(struct vp_ui *ui, const char *rest) {
    vp_ui_write_to(ui, VP_EXPORT_YAML, *rest ? rest : NULL);
}

static void run_export(struct vp_ui *ui, const char *rest) {
    enum vp_export form = vp_export_of_path(rest);
    if (form == VP_EXPORT_COUNT)
        vp_ui_say(ui, VP_LOOK_WARN,
                  "a file whose ending says the form: .txt .json .md .html .csv .yaml");
    else
        vp_ui_write_to(ui, form, rest);
}

static void run_theme(struct vp_ui *ui, const char *rest) {
    enum vp_theme_name theme = vp_theme_find(rest);
    if (theme == VP_THEME_COUNT)
        vp_ui_say(ui, VP_LOOK_WARN, "themes: dark, light, mono");
    else if (!ui->colour_off)
        ui->theme = theme;
}

static void run_help(struct vp_ui *ui, const char *rest) {
    (void)rest;
    vp_ui_act(ui, VP_ACT_HELP);
}

static void run_quit(struct vp_ui *ui, const char *rest) {
    (void)rest;
    ui->quit = true;
}

static const struct {
    const char *name, *meaning;
    void (*run)(struct vp_ui *ui, const char *rest);
} WORDS[] = {
    {"set", "FIELD VALUE: any field of the scenario", run_set},
    {"solve", "WHAT: the most or the fewest", run_solve},
    {"pin", "[NAME]: this plan, for comparing", run_pin},
    {"undo", "the last change", run_undo},
    {"redo", "what was undone", run_redo},
    {"reset", "[FIELD]: back to the input", run_reset},
    {"write", "[FILE]: the scenario", run_write},
    {"export", "FILE: a report, by its ending", run_export},
    {"theme", "dark, light or mono", run_theme},
    {"help", "the keys of this screen", run_help},
    {"quit", "without asking", run_quit},
};
enum { WORD_COUNT = sizeof WORDS / sizeof WORDS[0] };

/* ---- settings by name ---- */

/* Words of the command line that are not the labels of knobs. */
static const char *alias_of(const char *name) {
    static const char *const PAIRS[][2] = {
        {"ctx", "context"},  {"reqs", "concurrency"},  {"count", "GPUs"},       {"tp", "tensor"},
        {"pp", "pipeline"},  {"dp", "data"},           {"ep", "expert"},        {"kv", "KV cache"},
        {"seq", "sequence"}, {"batch", "micro batch"}, {"util", "memory share"}};
    for (size_t i = 0; i < sizeof PAIRS / sizeof PAIRS[0]; i++)
        if (vp_name_eq(name, PAIRS[i][0]))
            return PAIRS[i][1];
    return name;
}

static const struct vp_knob *knob_named(struct vp_ui *ui, const char *name) {
    const struct vp_knob *knob;
    uint32_t count = vp_session_knobs(ui->session, &knob);
    const char *other = alias_of(name);
    for (uint32_t i = 0; i < count; i++)
        if (vp_name_eq(knob[i].label, name) || vp_name_eq(knob[i].label, other) ||
            vp_text_eq(knob[i].path, name))
            return &knob[i];
    /* --batch means sequences in flight where nothing is trained */
    return vp_name_eq(name, "batch") ? knob_named(ui, "concurrency") : NULL;
}

static void refuse(struct vp_ui *ui, const char *name) {
    const struct vp_knob *knob;
    uint32_t count = vp_session_knobs(ui->session, &knob);
    const char **names = VP_NEW_ARRAY(&ui->frame, count + WORD_COUNT, const char *);
    for (uint32_t i = 0; i < count; i++)
        names[i] = knob[i].label;
    for (uint32_t i = 0; i < WORD_COUNT; i++)
        names[count + i] = WORDS[i].name;
    const char *near = vp_text_nearest(name, names, count + WORD_COUNT);
    if (near)
        vp_ui_say(ui, VP_LOOK_BAD, "no command and no setting '%s': did you mean '%s'?", name,
                  near);
    else
        vp_ui_say(ui, VP_LOOK_BAD,
                  "no command and no setting '%s'; :set FIELD VALUE sets any field", name);
}

/* "context 64k", "KV cache fp8", "memory share = 0.9": the value is the last word. */
static void set_by_name(struct vp_ui *ui, const char *text) {
    char name[VP_ENTRY_BYTES];
    size_t end = strlen(text);
    while (end > 0 && text[end - 1] != ' ' && text[end - 1] != '=')
        end--;
    const char *value = text + end;
    while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '='))
        end--;
    memcpy(name, text, end);
    name[end] = '\0';
    const struct vp_knob *knob = end ? knob_named(ui, name) : NULL;
    if (knob) {
        vp_session_type(ui->session, knob->id, value);
        vp_ui_tell(ui);
    } else if (end && strchr(name, '.')) {
        vp_session_set(ui->session, name, value);
        vp_ui_tell(ui);
    } else if (knob_named(ui, text)) {
        ask_again(ui, text);
    } else {
        refuse(ui, end ? name : text);
    }
}

/* The name of a screen, alone. */
static bool show_screen(struct vp_ui *ui, const char *text) {
    for (int i = 0; i < VP_SCREEN_COUNT; i++)
        if (vp_name_eq(text, vp_screens[i].name)) {
            ui->screen = (enum vp_screen)i;
            return true;
        }
    return false;
}

static void carry_out(struct vp_ui *ui, const char *text) {
    char line[VP_ENTRY_BYTES];
    text += strspn(text, " :");
    size_t size = strlen(text);
    while (size > 0 && text[size - 1] == ' ')
        size--;
    memcpy(line, text, size);
    line[size] = '\0';
    size_t n = strcspn(line, " ");
    if (size == 0 || show_screen(ui, line))
        return;
    for (size_t i = 0; i < WORD_COUNT; i++)
        if (strlen(WORDS[i].name) == n && strncmp(line, WORDS[i].name, n) == 0) {
            WORDS[i].run(ui, line + n + strspn(line + n, " "));
            return;
        }
    if (vp_text_eq(line, "q"))
        ui->quit = true;
    else
        set_by_name(ui, line);
}

/* ---- the line ---- */

void vp_ui_ask_command(struct vp_ui *ui) {
    const struct vp_knob *knob;
    uint32_t count = vp_session_knobs(ui->session, &knob);
    int at = 0;
    for (uint32_t i = 0; i < WORD_COUNT; i++)
        ui->own[at++] = (struct vp_ui_choice){.value = WORDS[i].name, .note = WORDS[i].meaning};
    for (uint32_t i = 0; i < count && at < VP_UI_OWN; i++)
        ui->own[at++] = (struct vp_ui_choice){.value = knob[i].label, .note = knob[i].shown};
    vp_ui_ask(ui, "command", NULL, ui->own, at, carry_out);
}
