/* import of training recipes: a scenario to fill in, with what was not understood as comments. */
#ifndef VP_CLI_IMPORT_RECIPE_H
#define VP_CLI_IMPORT_RECIPE_H

#include "cli/args.h"
#include "planner/import/recipe.h"

/* Whether the input is a recipe; then it is read. Anything else is left to the other importers. */
bool vp_recipe_open(struct vp_ctx *ctx, struct vp_recipe *out, enum vp_status *status,
                    const char *input);
void vp_recipe_yaml(struct vp_buf *out, const struct vp_recipe *recipe);

#endif
