/* The files of a repository as they were at a commit, as a table of file calls: what git says is
 * different from the working tree comes from the commit, everything else is read where it lies, and
 * so are files that git does not know (they are the same on both sides) or that lie outside.
 *
 * One tree at a time: the calls of struct vp_io carry no state, so it is kept in git_tree.c. */
#ifndef VP_CLI_GIT_TREE_H
#define VP_CLI_GIT_TREE_H

#include "planner/base/ctx.h"

/* top: the repository's folder; commit: a full id. Memory is the tree's own, until the close. */
enum vp_status vp_git_tree_open(struct vp_ctx *ctx, const char *top, const char *commit);
void vp_git_tree_close(void);
extern const struct vp_io vp_git_tree_io;

/* Where a file of the working tree was in the commit, as a path for vp_git_tree_io that starts at
 * the current directory where it can; the same path unless it was renamed. NULL: it was not there.
 * *outside: it does not lie in the repository. */
const char *vp_git_tree_before(struct vp_ctx *ctx, const char *path, bool *outside);

#endif
