/* What api/diff.c is made of: changes of a tree (diff_tree.c), models (diff_model.c). Internal. */
#ifndef VP_API_DIFF_PARTS_H
#define VP_API_DIFF_PARTS_H

#include "api/diff.h"
#include "planner/import/description.h"

/* One step into a tree. */
struct vp_diff_key {
    const char *name; /* NULL: into a list */
    uint32_t index;
};

/* One setting that differs, and how to make it so. */
struct vp_diff_change {
    struct vp_cause cause;
    const struct vp_diff_key *key; /* where it stands in the tree; NULL: a setting of the command
                                      line, or a detail */
    uint32_t depth;
    const struct vp_node *value;      /* in the new tree; NULL: taken away */
    const struct vp_setting *setting; /* of the command line, new; NULL: none, or taken away */
    bool detail;                      /* says what is different in the model before it */
};

struct vp_diff_changes {
    struct vp_arena *arena;
    struct vp_diff_change *items;
    size_t count, capacity;
};

struct vp_diff_change *vp_diff_add(struct vp_diff_changes *changes);
/* All leaves in which two trees differ (either may be NULL); prefix: what paths begin with, NULL:
 * nothing. */
void vp_diff_compare(struct vp_ctx *ctx, struct vp_diff_changes *out, const struct vp_node *before,
                     const struct vp_node *after, const char *prefix);
/* By group, then by path; engine: whose names arguments have. */
void vp_diff_sort(struct vp_ctx *ctx, struct vp_diff_changes *changes, enum vp_engine_kind engine);
/* Makes one change in a tree of its own. after: the new tree, which says whether a map that is
 * empty now is to stay. */
void vp_diff_apply(struct vp_ctx *ctx, struct vp_node *tree, const struct vp_diff_change *change,
                   const struct vp_node *after);

/* One of the two, while trees are prepared: a copy of the tree that may be changed. */
struct vp_diff_tree {
    const struct vp_diff_side *side;
    struct vp_node *root;
    const char *base; /* where its paths start now */
    bool replaced;    /* the model's node stands for its files, read by this side's calls */
};

/* Paths as they are from the current directory, where the file is there; base is NULL then. */
void vp_diff_place(struct vp_ctx *ctx, struct vp_diff_tree *tree);
/* Descriptions in place of the files that hold them, in both trees; or, where a model is replaced
 * as a whole, what is different in it, as details. */
void vp_diff_models(struct vp_ctx *ctx, struct vp_diff_changes *out, struct vp_diff_tree *before,
                    struct vp_diff_tree *after);

#endif
