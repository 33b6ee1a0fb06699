/* The interface on a terminal: shows its cells, hands it keys. The only user of ncurses, and the
 * only code that changes the terminal's state, which is put back however the program ends: by a
 * key, by SIGINT, SIGTERM or SIGHUP, by a crash, by exit(). */
#ifndef VP_TUI_CURSES_H
#define VP_TUI_CURSES_H

#include "tui/ui.h"

/* Runs until the user quits. The size is the terminal's. A terminal that cannot show it is a
 * diagnostic (VP_ERR_ENV). A signal that ends the program is raised again once the terminal is as
 * it was, so that the caller of the program sees it. */
enum vp_status vp_curses_run(struct vp_ctx *ctx, struct vp_ui *ui);
/* Puts the terminal back; may be called at any time, and twice. */
void vp_curses_close(void);

#endif
