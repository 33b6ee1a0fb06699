/* The command line of one run: options and operands as values. Every fault is collected as a
 * diagnostic before the caller gives up, so that one run shows all of them. */
#ifndef VP_CLI_ARGS_H
#define VP_CLI_ARGS_H

#include "cli/command.h"
#include "planner/import/input.h"

enum vp_format { VP_FORMAT_TEXT, VP_FORMAT_JSON, VP_FORMAT_CSV, VP_FORMAT_MARKDOWN };
enum vp_colour { VP_COLOUR_AUTO, VP_COLOUR_ALWAYS, VP_COLOUR_NEVER };

struct vp_given {
    enum vp_option option;
    const char *value;
};

struct vp_args {
    enum vp_command command;
    enum vp_format format;
    enum vp_colour colour;
    /* options that are no setting of the scenario, as written; NULL: not given, "": one without a
     * value. Of one that may be given several times the last; all of them are in `given`. */
    const char *value[VP_OPTION_COUNT];
    struct vp_given *given;
    size_t given_count;
    const char **operands;
    size_t operand_count;
    struct vp_setting *settings; /* in the order of the command line */
    size_t setting_count;
};

/* words: what follows the command's name. On VP_ERR_INPUT *out holds what could be read: the format
 * in which an error is to be shown, whether help was asked for. */
enum vp_status vp_args_read(struct vp_ctx *ctx, struct vp_args *out, enum vp_command command,
                            int count, char **words);
/* The setting of a field, by any option; NULL: not given. */
const struct vp_setting *vp_args_setting(const struct vp_args *args, const char *path);
/* Values of an option that may be given several times, in order. */
const char **vp_args_all(struct vp_ctx *ctx, const struct vp_args *args, enum vp_option option,
                         size_t *count);

#endif
