/* Where the program finds its data: shipped profiles, the user's own, the local Hugging Face cache.
 * From the environment and the place of the executable; nothing is read yet. */
#ifndef VP_API_PLACES_H
#define VP_API_PLACES_H

#include "planner/base/ctx.h"

/* Fills ctx->profiles, user_profiles, home and hub_cache.
 *   profiles       $VRAMPLAN_PROFILES; else beside the executable, or where an installation puts
 * them user_profiles  $XDG_CONFIG_HOME/vramplan, else ~/.config/vramplan; NULL when there is none
 *   hub_cache      $HF_HUB_CACHE; else hub/ in $HF_HOME, $XDG_CACHE_HOME/huggingface or
 *                  ~/.cache/huggingface; NULL when there is none
 * No shipped profiles: VP_ERR_ENV with VP_D_NO_PROFILES. */
enum vp_status vp_places_find(struct vp_ctx *ctx);
/* The folder of the executable; NULL: not known. */
const char *vp_places_program(struct vp_ctx *ctx);

#endif
