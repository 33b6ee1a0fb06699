/* Completion for bash. */
#include <string.h>

#include "cli/help.h"
#include "planner/base/text.h"

/* "one|two" as the words "one two". */
static void add_choices(struct vp_buf *out, const char *choices) {
    for (const char *p = choices; *p; p++)
        vp_buf_add_n(out, *p == '|' ? " " : p, 1);
}

static void add_commands(struct vp_buf *out) {
    for (enum vp_command i = 0; i < VP_COMMAND_COUNT; i++)
        vp_buf_printf(out, "%s%s", i ? " " : "", vp_commands[i].name);
}

static bool is_offered(enum vp_option option) { return vp_options[option].group < VP_GROUP_HIDDEN; }

/* Two commands have options of that name, with other values. */
static bool is_double(enum vp_option option) {
    for (enum vp_option i = 0; i < VP_OPTION_COUNT; i++)
        if (i != option && vp_text_eq(vp_options[i].name, vp_options[option].name))
            return true;
    return false;
}

/* *" --output" | *" -o") or "gate --format") */
static void add_pattern(struct vp_buf *out, enum vp_option option) {
    const struct vp_option_info *info = &vp_options[option];
    const char *before = "    ";
    for (enum vp_command i = 0; i < VP_COMMAND_COUNT && is_double(option); i++)
        if (vp_option_is_for(option, i)) {
            vp_buf_printf(out, "%s\"%s --%s\"", before, vp_commands[i].name, info->name);
            before = " | ";
        }
    if (!is_double(option))
        vp_buf_printf(out, "    *\" --%s\"", info->name);
    if (info->letter)
        vp_buf_printf(out, " | *\" -%c\"", info->letter);
    vp_buf_add(out, ")\n");
}

/* What stands after an option that takes a value. */
static void add_value_case(struct vp_buf *out, enum vp_option option) {
    const struct vp_option_info *info = &vp_options[option];
    add_pattern(out, option);
    if (strchr(info->value, '|')) {
        vp_buf_add(out, "        words='");
        add_choices(out, info->value);
        vp_buf_add(out, "'\n");
    } else if (option == VP_OPTION_GPU || option == VP_OPTION_FITS_ON ||
               option == VP_OPTION_ENGINE) {
        vp_buf_printf(out, "        words=$(_vramplan_list %s)\n",
                      option == VP_OPTION_ENGINE ? "engines" : "gpus");
    } else if (vp_text_eq(info->value, "FILE")) {
        vp_buf_add(out, "        files=yes\n");
    }
    vp_buf_add(out, "        ;;\n");
}

static void add_values(struct vp_buf *out) {
    vp_buf_add(out, "    case \"$command $previous\" in\n");
    for (enum vp_option i = 0; i < VP_OPTION_COUNT; i++)
        if (is_offered(i) && vp_options[i].value)
            add_value_case(out, i);
    vp_buf_add(out, "    *)\n        value=no\n        ;;\n    esac\n");
}

/* What may stand where a command's option or argument is expected. */
static void add_command_case(struct vp_buf *out, enum vp_command command) {
    const struct vp_command_info *info = &vp_commands[command];
    vp_buf_printf(out, "        %s)\n            words='", info->name);
    bool first = true;
    for (enum vp_option i = 0; i < VP_OPTION_COUNT; i++) {
        if (!is_offered(i) || !vp_option_is_for(i, command))
            continue;
        vp_buf_printf(out, "%s--%s", first ? "" : " ", vp_options[i].name);
        first = false;
    }
    vp_buf_add(out, "'\n            [[ $current == -* ]] || ");
    if (strchr(info->arguments, '|')) {
        vp_buf_add(out, "words='");
        add_choices(out, info->arguments);
        vp_buf_add(out, "'");
    } else if (command == VP_COMMAND_HELP) {
        vp_buf_add(out, "words=$commands");
    } else {
        vp_buf_add(out, "{ words=$(_vramplan_list models); files=yes; }");
    }
    vp_buf_add(out, "\n            ;;\n");
}

void vp_help_completion(struct vp_buf *out) {
    vp_buf_add(out, "# Completion of vramplan for bash. Made by: vramplan help --completion\n\n"
                    "# Names of gpus, models or engines, as the program knows them.\n"
                    "_vramplan_list() {\n"
                    "    \"${COMP_WORDS[0]}\" list \"$1\" --format csv 2>/dev/null |\n"
                    "        sed -e 1d -e 's/,.*//'\n"
                    "}\n\n"
                    "_vramplan() {\n"
                    "    local current=${COMP_WORDS[COMP_CWORD]}\n"
                    "    local previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
                    "    local command=plan words= files=no value=yes\n"
                    "    local commands='");
    add_commands(out);
    vp_buf_add(
        out,
        "'\n\n"
        "    # \"--format=json\" comes as three words.\n"
        "    if [[ $current == = ]]; then\n"
        "        current=\n"
        "    elif [[ $previous == = ]]; then\n"
        "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "    fi\n"
        "    if ((COMP_CWORD > 1)) && [[ \" $commands \" == *\" ${COMP_WORDS[1]} \"* ]]; then\n"
        "        command=${COMP_WORDS[1]}\n"
        "    fi\n\n");
    add_values(out);
    vp_buf_add(out, "    if [[ $value == no ]]; then\n"
                    "        case $command in\n");
    for (enum vp_command i = 0; i < VP_COMMAND_COUNT; i++)
        add_command_case(out, i);
    vp_buf_add(
        out,
        "        esac\n"
        "        if ((COMP_CWORD == 1)) && [[ $current != -* ]]; then\n"
        "            words=\"$commands $words\"\n"
        "        fi\n"
        "    fi\n\n"
        "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
        "    if [[ $files == yes ]]; then\n"
        "        compopt -o filenames\n"
        "        mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$current\")\n"
        "    fi\n"
        "}\n\n"
        "complete -F _vramplan vramplan\n");
}
