/* The main screen's lower or right part: what follows from the settings. How far it goes and what
 * more costs, what breaks first, how fast it is; the command that prints the same, the history, the
 * notes. */
#ifndef VP_TUI_SERVE_ANSWERS_H
#define VP_TUI_SERVE_ANSWERS_H

#include "tui/ui.h"

/* Below the panes: with the trail, in nine lines. */
void vp_serve_answers_below(struct vp_ui *ui, struct vp_view view);
/* Beside them, in a wide terminal: with all notes, without the trail. */
void vp_serve_answers_beside(struct vp_ui *ui, struct vp_view view);
/* "same as", the history and the worst of the notes, from line y on. */
void vp_serve_trail(struct vp_ui *ui, struct vp_view view, int y);

#endif
