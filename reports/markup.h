/* Text inside XML and HTML: no character of it becomes markup. */
#ifndef VP_REPORTS_MARKUP_H
#define VP_REPORTS_MARKUP_H

#include "planner/base/text.h"

/* Content of an element, or of an attribute in either kind of quotes. Control characters and
 * malformed UTF-8 become '?', line ends blanks. NULL is "". */
const char *vp_markup_text(struct vp_arena *arena, const char *text);
/* The same, added. */
void vp_markup_add(struct vp_buf *out, const char *text);
/* For id and href: lower-case letters, digits, dashes. */
const char *vp_markup_id(struct vp_arena *arena, const char *text);

#endif
