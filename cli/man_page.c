/* The manual page: roff with the man(7) macros, without a date, so that the same rows give the same
 * bytes. */
#include "cli/help.h"

/* Text of a page: '-' as a character that can be copied, no macro at a line's beginning. */
static void add_text(struct vp_buf *out, const char *text) {
    for (const char *p = text; *p; p++) {
        bool line_start = out->size == 0 || out->data[out->size - 1] == '\n';
        if (line_start && (*p == '.' || *p == '\''))
            vp_buf_add(out, "\\&");
        if (*p == '-')
            vp_buf_add(out, "\\-");
        else if (*p == '\\')
            vp_buf_add(out, "\\e");
        else
            vp_buf_add_n(out, p, 1);
    }
}

static void add_line(struct vp_buf *out, const char *text) {
    add_text(out, text);
    vp_buf_add(out, "\n");
}

/* A tagged paragraph: `name` in bold, `value` in italics, then the meaning. */
static void add_tagged(struct vp_buf *out, const char *name, const char *value,
                       const char *meaning) {
    vp_buf_add(out, ".TP\n\\fB");
    add_text(out, name);
    vp_buf_add(out, "\\fR");
    if (value && *value) {
        vp_buf_add(out, " \\fI");
        add_text(out, value);
        vp_buf_add(out, "\\fR");
    }
    vp_buf_add(out, "\n");
    add_line(out, meaning);
}

static void add_pairs(struct vp_buf *out, const char *title, const struct vp_help_pair *pairs) {
    vp_buf_printf(out, ".SH %s\n", title);
    for (; pairs->name; pairs++)
        add_tagged(out, pairs->name, NULL, pairs->meaning);
}

/* "plan, explain": the commands that have the option; "" when all have it. */
static const char *commands_of(struct vp_arena *arena, enum vp_option option) {
    struct vp_buf names = {.arena = arena};
    bool all = true;
    for (enum vp_command i = 0; i < VP_COMMAND_COUNT; i++) {
        if (!vp_option_is_for(option, i))
            all = false;
        else
            vp_buf_printf(&names, "%s%s", names.size ? ", " : "", vp_commands[i].name);
    }
    return all ? "" : vp_buf_text(&names);
}

static void add_option(struct vp_buf *out, enum vp_option option) {
    const struct vp_option_info *info = &vp_options[option];
    const char *letter = info->letter ? vp_arena_printf(out->arena, "-%c, ", info->letter) : "";
    const char *commands = commands_of(out->arena, option);
    add_tagged(out, vp_arena_printf(out->arena, "%s--%s", letter, info->name), info->value,
               info->meaning);
    if (info->field) {
        vp_buf_add(out, ".br\nScenario field: ");
        add_line(out, info->field);
    }
    if (*commands && info->group != VP_GROUP_SCENARIO) {
        vp_buf_add(out, ".br\nCommands: ");
        add_line(out, commands);
    }
}

static void add_options(struct vp_buf *out, const char *title, enum vp_option_group group) {
    vp_buf_printf(out, ".SS \"%s\"\n", title);
    for (enum vp_option i = 0; i < VP_OPTION_COUNT; i++)
        if (vp_options[i].group == group)
            add_option(out, i);
}

static void add_head(struct vp_buf *out) {
    vp_buf_add(out,
               ".TH VRAMPLAN 1 \"\" \"vramplan " VP_VERSION "\" \"User Commands\"\n"
               ".nh\n.ad l\n.SH NAME\nvramplan \\- GPU memory of a model, before anything runs\n"
               ".SH SYNOPSIS\n"
               ".B vramplan\n[\\fBplan\\fR] \\fIINPUT\\fR... [\\fIoptions\\fR]\n.br\n"
               ".B vramplan\n\\fICOMMAND\\fR [\\fIargument\\fR] [\\fIoptions\\fR]\n"
               ".SH DESCRIPTION\n");
    add_line(out,
             "vramplan reads a description of a model, a GPU, an engine and a workload, and tells "
             "whether it fits, what takes the memory, how sure each figure is, and what was "
             "assumed. It uses no network and no GPU.");
    vp_buf_add(out, ".PP\n");
    add_line(out, "The result goes to standard output, everything else to standard error. The same "
                  "input gives the same bytes.");
}

static void add_examples(struct vp_buf *out) {
    vp_buf_add(out, ".SH EXAMPLES\n");
    for (const struct vp_help_example *p = vp_help_examples; p->command; p++) {
        vp_buf_add(out, ".TP\n\\fB");
        add_text(out, p->command);
        vp_buf_add(out, "\\fR\n");
        add_line(out, p->meaning);
    }
}

void vp_help_man(struct vp_buf *out) {
    add_head(out);
    vp_buf_add(out, ".SH COMMANDS\n");
    for (enum vp_command i = 0; i < VP_COMMAND_COUNT; i++)
        add_tagged(out, vp_commands[i].name, vp_commands[i].arguments, vp_commands[i].meaning);
    add_pairs(out, "INPUTS", vp_help_inputs);
    vp_buf_add(out, ".SH OPTIONS\n");
    add_options(out, "What it is planned for (plan, explain)", VP_GROUP_SCENARIO);
    add_options(out, "What comes out", VP_GROUP_OUTPUT);
    add_options(out, "General", VP_GROUP_GENERAL);
    add_pairs(out, "EXIT STATUS", vp_help_exits);
    vp_buf_add(out, ".PP\n");
    add_line(out, "Of several scenarios: the first of 4, 2, 1, 3, 0 that occurs.");
    add_pairs(out, "ENVIRONMENT", vp_help_variables);
    add_examples(out);
}
