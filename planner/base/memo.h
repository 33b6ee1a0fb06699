/* What a run reads again and again and finds the same each time (profiles, a model's description):
 * made once, kept under a key, shared by several threads. A context without a memo (`ctx->memo`
 * NULL) makes everything anew, so nothing depends on there being one.
 *
 * The files behind it are taken not to change while it lives. What it holds lives in an arena of
 * its own, until vp_memo_free, and is not changed by those who get it. */
#ifndef VP_BASE_MEMO_H
#define VP_BASE_MEMO_H

#include "planner/base/ctx.h"

struct vp_memo;

/* NULL: the system has no memory. */
struct vp_memo *vp_memo_new(void);
void vp_memo_free(struct vp_memo *memo); /* NULL is allowed */

/* The value under `key`, which must say all that the making depends on but the files. A failure of
 * the input is kept like a value; its diagnostics are added to those of every caller, as if each
 * had made it. Failures of the environment are not kept. */
enum vp_status vp_memo_get(struct vp_ctx *ctx, const void **out, const char *key,
                           enum vp_status (*make)(struct vp_ctx *ctx, const void **out,
                                                  const void *from),
                           const void *from);

#endif
