/* Reading a file that may be JSON or YAML: told apart by content, because scenarios come as both,
 * from pipes too. */
#ifndef VP_IMPORT_DOCUMENT_H
#define VP_IMPORT_DOCUMENT_H

#include "planner/base/io.h"
#include "planner/doc/node.h"

enum { VP_DOCUMENT_MAX_BYTES = 64 * 1024 * 1024 };

/* name: what positions call the text. JSON when the name ends in ".json" or the text starts like a
 * JSON object; else YAML. An empty YAML text gives a null node. */
enum vp_status vp_document_parse(struct vp_ctx *ctx, struct vp_node **out, struct vp_bytes text,
                                 const char *name);
/* path "-": standard input. */
enum vp_status vp_document_read(struct vp_ctx *ctx, struct vp_node **out, const char *path);
/* "~" and "~/..." with the user's home; any other path as it is. */
const char *vp_document_expand(struct vp_ctx *ctx, const char *path);
/* The last part of a path without its suffix: "a/b.yaml" -> "b". */
const char *vp_document_stem(struct vp_ctx *ctx, const char *path);
/* A node as JSON on one line; scalars of text without quotes ("[1, 2]", "auto", "32768"). */
const char *vp_document_show(struct vp_ctx *ctx, const struct vp_node *node);

#endif
