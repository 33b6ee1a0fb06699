/* Words as those that read them take them: a POSIX shell, gnuplot. */
#ifndef VP_REPORTS_SHELL_WORDS_H
#define VP_REPORTS_SHELL_WORDS_H

#include "reports/layout.h"

/* In quotes where a shell would take it apart. */
const char *vp_shell_word(struct vp_arena *arena, const char *word);
/* In gnuplot's single quotes, where only the quote itself is doubled. */
const char *vp_gnuplot_word(struct vp_arena *arena, const char *word);
/* A command over several lines that can be pasted as one; a flag stays on one line with its value,
 * quotes are not broken. */
void vp_shell_paste(const struct vp_page *page, int indent, const char *text);

#endif
