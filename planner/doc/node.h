/* A document as a tree of nodes with positions: what YAML, JSON and other readers produce. Nodes
 * live in the context's arena. Scalars keep their text as written; kinds follow the YAML core
 * schema (and JSON): null ~, true/false, integers, reals (.inf, Infinity, NaN included), text.
 * Quoted scalars are always text. */
#ifndef VP_DOC_NODE_H
#define VP_DOC_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/base/ctx.h"

enum vp_node_kind {
    VP_NODE_NULL,
    VP_NODE_BOOL,
    VP_NODE_INT,
    VP_NODE_REAL,
    VP_NODE_TEXT,
    VP_NODE_LIST,
    VP_NODE_MAP
};

struct vp_node {
    enum vp_node_kind kind;
    struct vp_pos pos;
    const char *text;       /* scalars: as written, NUL-terminated; lists and maps: NULL */
    uint32_t count;         /* lists and maps */
    const char **keys;      /* maps: in the order of the file */
    struct vp_pos *key_pos; /* maps */
    struct vp_node **items; /* lists and maps: values */
};

/* Caps of the readers; a cap hit is VP_D_CAP and names the cap. */
enum {
    VP_DOC_MAX_DEPTH = 64,
    VP_DOC_MAX_NODES = 1500000,
    VP_DOC_MAX_ALIAS_NODES = 100000 /* nodes that YAML aliases may stand for in all */
};

/* Value of a key, NULL when the map lacks it (or node is NULL or no map). Linear search: maps that
 * are looked into have at most some hundred keys. */
struct vp_node *vp_node_get(const struct vp_node *map, const char *key);
const char *vp_node_kind_name(enum vp_node_kind kind); /* "a map", "a list", "text", ... */
bool vp_node_is_scalar(const struct vp_node *node);
/* NULL for a missing node or a null one. */
bool vp_node_is_null(const struct vp_node *node);

/* Scalar values without diagnostics; false when the node is not of that kind (or out of range). */
bool vp_node_u64(uint64_t *out,
                 const struct vp_node *node); /* INT, >= 0, or a REAL without fraction below 2^53 */
bool vp_node_real(double *out, const struct vp_node *node); /* INT or REAL; may be inf or nan */
bool vp_node_bool(bool *out, const struct vp_node *node);
const char *vp_node_text(const struct vp_node *node); /* any scalar's text, else NULL */

/* Building, for merges and tests. */
struct vp_node *vp_node_new(struct vp_ctx *ctx, enum vp_node_kind kind, struct vp_pos pos);
struct vp_node *vp_node_scalar(struct vp_ctx *ctx, enum vp_node_kind kind, const char *text,
                               struct vp_pos pos);
struct vp_node *vp_node_new_u64(struct vp_ctx *ctx, uint64_t value, struct vp_pos pos);
struct vp_node *vp_node_new_bool(struct vp_ctx *ctx, bool value, struct vp_pos pos);
/* Sets or replaces a key (grows the map in the arena). */
void vp_node_set(struct vp_ctx *ctx, struct vp_node *map, const char *key, struct vp_pos key_pos,
                 struct vp_node *value);
/* base with over laid on it: maps merge deeply, scalars and lists replace. Neither is changed. */
struct vp_node *vp_node_merge(struct vp_ctx *ctx, const struct vp_node *base,
                              const struct vp_node *over);
/* A copy that shares nothing with the original, not even texts. NULL for NULL. */
struct vp_node *vp_node_clone(struct vp_ctx *ctx, const struct vp_node *node);

#endif
