/* A node tree as YAML that reads back as the same tree: maps in block style, lists and small maps
 * of scalars in flow style, lines of at most 100 columns where the scalars allow it. */
#ifndef VP_API_YAML_WRITER_H
#define VP_API_YAML_WRITER_H

#include "planner/base/text.h"
#include "planner/doc/node.h"

/* The entries of a map, each on lines of its own, `indent` columns from the left. */
void vp_yaml_write_map(struct vp_buf *out, const struct vp_node *map, int indent);
/* A text on one line, quoted where YAML would read it as something else. */
void vp_yaml_write_text(struct vp_buf *out, const char *text);

#endif
