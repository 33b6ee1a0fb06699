/* Text from outside in Markdown (GitHub's and GitLab's): nothing of it becomes markup, a table's
 * cell stays a cell, a line stays a line. */
#ifndef VP_REPORTS_MARKDOWN_TEXT_H
#define VP_REPORTS_MARKDOWN_TEXT_H

#include "planner/base/arena.h"

const char *vp_markdown_text(struct vp_arena *arena, const char *text);
/* As code; good inside a table. */
const char *vp_markdown_code(struct vp_arena *arena, const char *text);
/* Inside of an HTML element, where Markdown has no markup. */
const char *vp_markdown_html(struct vp_arena *arena, const char *text);

#endif
