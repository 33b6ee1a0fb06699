/* Finding profile files (profiles/gpus, profiles/models and the user's own folders of the same
 * shape) by id or alias. A user's profile replaces a shipped one of the same id. What a profile
 * says is read elsewhere. */
#ifndef VP_IMPORT_PROFILE_H
#define VP_IMPORT_PROFILE_H

#include "planner/doc/node.h"

struct vp_profile_kind {
    const char *folder;      /* "gpus" */
    const char *version_key; /* "vramplan_gpu"; its value must be 1 */
    const char *what;        /* for messages: "GPU" */
};

extern const struct vp_profile_kind VP_PROFILE_GPU, VP_PROFILE_MODEL;

struct vp_profile {
    const char *id, *path;
    struct vp_node *root; /* NULL: none has that name */
};

/* Case, spaces, dashes and underscores of `name` do not matter. No such profile is VP_OK with
 * out->root NULL; one that cannot be used is VP_D_PROFILE_BROKEN. */
enum vp_status vp_profile_find(struct vp_ctx *ctx, struct vp_profile *out,
                               const struct vp_profile_kind *kind, const char *name);
/* Ids of all profiles, the user's and the shipped ones, sorted, each once. */
enum vp_status vp_profile_names(struct vp_ctx *ctx, char ***names, size_t *count,
                                const struct vp_profile_kind *kind);
/* "did you mean X?" or "did you mean one of X, Y?" for a name that was not found; NULL: nothing is
 * near. */
const char *vp_profile_suggest(struct vp_ctx *ctx, const struct vp_profile_kind *kind,
                               const char *name);

#endif
