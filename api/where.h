/* Which combinations of a sweep are wanted: an expression over the fields of a scenario, such as
 *   parallel.tensor * parallel.pipeline <= 8 && precision.weights != fp8
 *
 * Fields that vary have the combination's value, others that of the scenario without changes.
 * Numbers (also 8k, 16GiB), + - * / % , < <= > >= == !=, && || !, parentheses; a word that is no
 * field is a text, as is anything in quotes. Texts are equal when case, dashes and underscores do
 * not matter. A comparison of a text with a number, or of what is not known, does not hold. */
#ifndef VP_API_WHERE_H
#define VP_API_WHERE_H

#include "api/vary.h"

struct vp_where;

/* Faults are VP_D_BAD_OPTION with their place in the text. base: NULL when it is refused. */
enum vp_status vp_where_read(struct vp_ctx *ctx, const struct vp_where **out, const char *text,
                             const struct vp_grid *grid, const struct vp_scenario *base);
/* settings: of the combination, as vp_grid_settings gives them. */
bool vp_where_holds(const struct vp_where *where, const struct vp_setting *settings);

#endif
