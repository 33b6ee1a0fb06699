/* Shared by wording*.c. */
#ifndef VP_IMPORT_WORDING_PARTS_H
#define VP_IMPORT_WORDING_PARTS_H

#include "planner/import/wording.h"

/* One thing that the scenario says. */
struct vp_said_leaf {
    const char *path;    /* "parallel.tensor", "engine.args.x" */
    enum vp_field field; /* VP_FIELD_COUNT: none */
    const struct vp_node *node;
    bool written; /* in the target's words */
};

struct vp_writing {
    struct vp_ctx *ctx;
    const struct vp_scenario *scenario;
    enum vp_target target;
    struct vp_words *out;
    struct vp_said_leaf *leaves;
    uint32_t count;
};

/* NULL when the scenario does not say it. */
struct vp_said_leaf *vp_words_leaf(struct vp_writing *w, const char *path);
/* The text of a leaf that is a scalar, sizes and counts as plain numbers; NULL: it is none. */
const char *vp_words_text(struct vp_writing *w, const struct vp_said_leaf *leaf);
struct vp_node *vp_words_scalar(struct vp_writing *w, const char *text);
/* A dotted key into nested maps. */
void vp_words_put(struct vp_writing *w, const char *key, struct vp_node *value);

void vp_words_recipe(struct vp_writing *w); /* hf, axolotl, torchtune, deepspeed */
void vp_words_megatron(struct vp_writing *w);

#endif
