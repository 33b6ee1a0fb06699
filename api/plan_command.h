/* The command line that prints a plan again: "vramplan plan INPUT --context 64k --set ...". */
#ifndef VP_API_PLAN_COMMAND_H
#define VP_API_PLAN_COMMAND_H

#include "planner/import/input.h"

/* Fields that have an option of their own are said by it, all others by --set; ready to paste into
 * a shell, on one line. Of two settings of one path the later one counts. */
const char *vp_plan_command(struct vp_arena *arena, const char *input,
                            const struct vp_setting *settings, size_t count);
/* The option of a field ("--context"); NULL: it is said by --set. */
const char *vp_plan_option(const char *path);

#endif
