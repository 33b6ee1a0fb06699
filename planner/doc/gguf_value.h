/* Values of GGUF metadata keys. Internal to planner/doc. */
#ifndef VP_DOC_GGUF_VALUE_H
#define VP_DOC_GGUF_VALUE_H

#include "planner/doc/gguf_stream.h"
#include "planner/doc/node.h"

/* The type and the value that follow a key's name. NULL: a fault, or an array that is only counted
 * (texts, and what is longer than VP_GGUF_KEPT_ITEMS). *length is that of an array. */
struct vp_node *vp_gguf_value(struct vp_gguf_stream *s, uint64_t *length, bool *is_array,
                              const char *key);

#endif
