/* JSON text -> node tree with positions. Accepts a UTF-8 byte order mark and, outside of strings,
 * bare NaN, Infinity and -Infinity, which occur in real config.json files. Refuses duplicate keys,
 * trailing text, bad UTF-8, integers beyond 64 bits.
 *
 * A reader of its own and not a library: positions and numbers as written come with it, and it
 * takes a quarter of the time (90,000 tensors: jansson alone needed more than the whole budget).
 * The fuzz target compares it with jansson. */
#ifndef VP_DOC_JSON_H
#define VP_DOC_JSON_H

#include "planner/base/io.h"
#include "planner/doc/node.h"

enum vp_status vp_json_read(struct vp_ctx *ctx, struct vp_node **out, struct vp_bytes text,
                            const char *name);

#endif
