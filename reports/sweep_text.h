/* A sweep as a table for people, line by line: the fields that vary, the verdict, need and headroom
 * of the worst device, how many sequences a cache pool holds. A combination that is refused has its
 * reason in place of figures. Widths do not depend on the rows, so that lines can be written as
 * they are made. */
#ifndef VP_REPORTS_SWEEP_TEXT_H
#define VP_REPORTS_SWEEP_TEXT_H

#include "reports/sweep_row.h"

/* How wide a field's column is: its name without the section, or its widest value. */
size_t vp_sweep_text_width(const char *field, size_t widest_value);
void vp_sweep_text_head(struct vp_buf *out, const struct vp_sweep_form *form);
void vp_sweep_text_row(struct vp_buf *out, const struct vp_sweep_form *form,
                       const struct vp_sweep_line *line);

#endif
