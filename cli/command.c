#include "cli/command.h"

#include "planner/base/text.h"

const struct vp_command_info vp_commands[VP_COMMAND_COUNT] = {
#define X(name, text, run, arguments, meaning)                                                     \
    [VP_COMMAND_##name] = {text, run, arguments, meaning},
#include "cli/commands.def"
#undef X
};

#define ON(command) (UINT32_C(1) << VP_COMMAND_##command)
#define ON_PLANS                                                                                   \
    (ON(FIT) | ON(PLAN) | ON(EXPLAIN) | ON(TIMELINE) | ON(CHECKPOINT) | ON(SWEEP) |                \
     ON(IMPORT_LOG) | ON(SIMULATE) | ON(DIFF) | ON(TUI) | ON(REPORT) | ON(GATE))
#define ON_ALL UINT32_MAX

const struct vp_option_info vp_options[VP_OPTION_COUNT] = {
#define X(name, text, letter, value, field, group, commands, meaning)                              \
    [VP_OPTION_##name] = {text, letter, value, field, VP_GROUP_##group, commands, meaning},
#include "cli/options.def"
#undef X
};

_Static_assert(VP_COMMAND_COUNT <= 32, "the commands of an option are bits of a uint32_t");

enum vp_command vp_command_find(const char *name) {
    enum vp_command command = 0;
    while (command < VP_COMMAND_COUNT && !vp_text_eq(name, vp_commands[command].name))
        command++;
    return command;
}

enum vp_command vp_command_nearest(const char *word) {
    const char *names[VP_COMMAND_COUNT];
    for (size_t i = 0; i < VP_COMMAND_COUNT; i++)
        names[i] = vp_commands[i].name;
    const char *nearest = vp_text_nearest(word, names, VP_COMMAND_COUNT);
    return nearest ? vp_command_find(nearest) : VP_COMMAND_COUNT;
}

bool vp_option_is_for(enum vp_option option, enum vp_command command) {
    return vp_options[option].commands >> command & 1;
}
