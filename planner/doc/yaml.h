/* YAML 1.1 text -> node tree through libyaml's event API (the only user of it). Duplicate keys,
 * several documents, non-scalar keys and merge keys ("<<" with a map that is not an alias) are
 * refused; aliases are expanded under a cap; depth is capped before libyaml recurses. */
#ifndef VP_DOC_YAML_H
#define VP_DOC_YAML_H

#include "planner/base/io.h"
#include "planner/doc/node.h"

/* name: what positions call the source. An empty text gives a null node. */
enum vp_status vp_yaml_read(struct vp_ctx *ctx, struct vp_node **out, struct vp_bytes text,
                            const char *name);
/* The plain scalar kinds of the YAML core schema, for values that come from elsewhere (--set). */
enum vp_node_kind vp_yaml_scalar_kind(const char *text);

#endif
