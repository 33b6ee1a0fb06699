/* What the readers of YAML and JSON share: a stack of the items of all lists and maps that are
 * still open, from which a closed list or map takes its own. Internal to planner/doc. */
#ifndef VP_DOC_BUILD_H
#define VP_DOC_BUILD_H

#include "planner/doc/node.h"

enum { VP_DOC_MAX_TEXT_BYTES = 16 * 1024 * 1024 }; /* one scalar or key */

struct vp_item {
    const char *key; /* NULL in a list */
    struct vp_pos key_pos;
    struct vp_node *value;
};

struct vp_items {
    struct vp_item *items;
    size_t count, capacity;
};

void vp_items_push(struct vp_ctx *ctx, struct vp_items *stack, struct vp_item item);

/* The keys of the items from `first` on. A key that stands twice among the first `own` of them is
 * reported; of those after them (merged in from elsewhere), the ones whose key is already there
 * are taken out. False when something was reported. */
bool vp_items_check_keys(struct vp_ctx *ctx, struct vp_items *stack, size_t first, size_t own);

/* Moves the items from `first` on into a list or map. */
void vp_items_close(struct vp_ctx *ctx, struct vp_items *stack, size_t first, struct vp_node *node);

/* The cap on depth was hit at pos; always false. */
bool vp_doc_too_deep(struct vp_ctx *ctx, struct vp_pos pos);
/* A counter of nodes that reports when the cap is passed. */
bool vp_doc_count_node(struct vp_ctx *ctx, uint32_t *nodes, struct vp_pos pos);

#endif
