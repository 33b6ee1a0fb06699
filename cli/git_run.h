/* Running git: argument vectors, no shell, no network, no prompt, nothing written to the repository
 * (not even a refreshed index). */
#ifndef VP_CLI_GIT_RUN_H
#define VP_CLI_GIT_RUN_H

#include <sys/types.h>

#include "planner/base/ctx.h"
#include "planner/base/text.h"

enum { VP_GIT_NOT_FOUND = 127, VP_GIT_MOST_WORDS = 512 };

struct vp_git_answer {
    int code;          /* git's exit code; VP_GIT_NOT_FOUND: there is no git, or it was killed */
    struct vp_buf out; /* what it printed; may hold NULs */
    const char *error; /* the first line of its complaints, without "fatal: "; "" none */
};

/* words: what follows "git", ended by NULL. folder: where it runs; NULL: here. A pipe or a process
 * that cannot be made is VP_ERR_ENV with a diagnostic; how git ends is told by the answer. */
enum vp_status vp_git_run(struct vp_ctx *ctx, struct vp_git_answer *out, const char *folder,
                          const char *const *words);

/* A git that stays: "cat-file --batch". */
struct vp_git_child {
    pid_t pid; /* 0: none */
    int to, from;
};
enum vp_status vp_git_start(struct vp_ctx *ctx, struct vp_git_child *out, const char *folder,
                            const char *const *words);
void vp_git_end(struct vp_git_child *child);

#endif
