/* Help, manual page and shell completion, all made from the rows of commands.def and options.def.
 */
#ifndef VP_CLI_HELP_H
#define VP_CLI_HELP_H

#include "cli/command.h"
#include "planner/base/text.h"

void vp_help_overview(struct vp_buf *out);
void vp_help_command(struct vp_buf *out, enum vp_command command);
void vp_help_man(struct vp_buf *out);         /* roff, man(7) macros */
void vp_help_completion(struct vp_buf *out);  /* for bash */
void vp_help_formulas(struct vp_buf *out);    /* docs/FORMULAS.md */
void vp_help_diagnostics(struct vp_buf *out); /* docs/DIAGNOSTICS.md */

/* Shared by the texts. */
struct vp_help_example {
    const char *command, *meaning;
};
struct vp_help_pair {
    const char *name, *meaning;
};
extern const struct vp_help_example vp_help_examples[]; /* ends with NULL */
extern const struct vp_help_pair vp_help_exits[];       /* ends with NULL */
extern const struct vp_help_pair vp_help_variables[];   /* ends with NULL */
/* What an INPUT is, one kind per row. */
extern const struct vp_help_pair vp_help_inputs[]; /* ends with NULL */

#endif
