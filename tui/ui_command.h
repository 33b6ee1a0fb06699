/* Commands that are typed after a colon: words of the command line and of the settings' labels,
 * such as "context 64k", "gpu mi355x", "set serve.concurrency 8", "solve context", "write
 * plan.yaml". */
#ifndef VP_TUI_UI_COMMAND_H
#define VP_TUI_UI_COMMAND_H

#include "tui/ui.h"

/* Has a command typed, with what can be said as choices, and carries it out. */
void vp_ui_ask_command(struct vp_ui *ui);

#endif
