/* What a gate compares with: the files of a folder (--base-dir), or those of the merge base of HEAD
 * and --base REF, the target branch that a CI system names, or the default branch. */
#ifndef VP_CLI_GATE_BASE_H
#define VP_CLI_GATE_BASE_H

#include "api/gate_run.h"
#include "cli/args.h"

struct vp_gate_base {
    const struct vp_io *io;     /* NULL: there is no base */
    const char *label, *commit; /* as in struct vp_gate */
};

/* Sets the base of every input. No repository, or none of the default branches: no base, and a note
 * (VP_D_BASE_NONE). A base that was asked for and is not there, by the user or by the CI system, is
 * VP_ERR_INPUT with the way to get it. */
enum vp_status vp_gate_base_find(struct vp_ctx *ctx, struct vp_gate_base *out,
                                 const struct vp_args *args, struct vp_gate_input *inputs,
                                 size_t count);
/* Whether a folder lies in a git repository; NULL: the current one. */
bool vp_gate_base_possible(struct vp_ctx *ctx, const char *folder);
/* Where the current folder lies in its repository, "a/b/"; NULL: at its top, or in none. */
const char *vp_gate_base_here(struct vp_ctx *ctx);
/* After the last reading of base files. */
void vp_gate_base_close(void);

#endif
