/* The commands and options of the program as tables, and what the commands share.
 * The rows stand in commands.def and options.def. */
#ifndef VP_CLI_COMMAND_H
#define VP_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "api/answers.h"
#include "planner/base/ctx.h"

struct vp_args;

enum vp_command {
#define X(name, text, run, arguments, meaning) VP_COMMAND_##name,
#include "cli/commands.def"
#undef X
    VP_COMMAND_COUNT
};

enum vp_option {
#define X(name, text, letter, value, field, group, commands, meaning) VP_OPTION_##name,
#include "cli/options.def"
#undef X
    VP_OPTION_COUNT
};

enum vp_option_group { VP_GROUP_SCENARIO, VP_GROUP_OUTPUT, VP_GROUP_GENERAL, VP_GROUP_HIDDEN };

struct vp_command_info {
    const char *name;
    int (*run)(struct vp_ctx *ctx, const struct vp_args *args);
    const char *arguments, *meaning;
};

struct vp_option_info {
    const char *name;
    int letter;        /* 0: none */
    const char *value; /* what its value is called, NULL: it takes none */
    const char *field; /* NULL: the program itself acts on it */
    enum vp_option_group group;
    uint32_t commands; /* bits by enum vp_command */
    const char *meaning;
};

extern const struct vp_command_info vp_commands[VP_COMMAND_COUNT];
extern const struct vp_option_info vp_options[VP_OPTION_COUNT];

/* VP_COMMAND_COUNT when there is none. */
enum vp_command vp_command_find(const char *name);
/* The command that a mistyped word is near to, VP_COMMAND_COUNT when it is near to none. */
enum vp_command vp_command_nearest(const char *word);
bool vp_option_is_for(enum vp_option option, enum vp_command command);

int vp_cmd_plan(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_explain(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_import(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_list(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_checkpoint(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_timeline(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_fit(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_calibrate(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_probe(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_device(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_sweep(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_merge(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_import_log(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_doctor(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_simulate(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_gate(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_diff(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_report(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_tui(struct vp_ctx *ctx, const struct vp_args *args);
int vp_cmd_help(struct vp_ctx *ctx, const struct vp_args *args);

#endif
