/* What every function of the planner works in: where memory comes from, where diagnostics go, how
 * files are read. There is no other state. */
#ifndef VP_BASE_CTX_H
#define VP_BASE_CTX_H

#include "planner/base/arena.h"
#include "planner/base/diag.h"
#include "planner/base/io.h"
#include "planner/base/status.h"

struct vp_memo;

struct vp_ctx {
    struct vp_arena *arena;
    struct vp_diags *diags;
    const struct vp_io *io;
    const char *profiles;      /* folder of the shipped profiles */
    const char *user_profiles; /* folder of the user's own, looked at first; may be NULL */
    const char *home;          /* for "~" and the hub cache; may be NULL */
    const char *hub_cache;     /* local Hugging Face cache; may be NULL */
    struct vp_memo *memo;      /* what was read before; NULL: everything is read anew (memo.h) */
};

#endif
