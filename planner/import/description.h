/* Finding the description of a model: which config.json keys, and which files hold its tensors.
 * Interprets nothing. Order: a path that exists, a profile, the local Hugging Face cache. */
#ifndef VP_IMPORT_DESCRIPTION_H
#define VP_IMPORT_DESCRIPTION_H

#include "planner/doc/gguf.h"
#include "planner/doc/node.h"

struct vp_description {
    struct vp_node *config;   /* a map, `from:` already merged; NULL when none was found */
    struct vp_node *hf_quant; /* hf_quant_config.json of the same folder, or NULL */
    const char *name;         /* what to call the model; NULL: the description does not say */
    const char *source;       /* where it was found, for messages */
    const char *index;        /* an index of safetensors files, or */
    const char **files;       /* the files themselves */
    size_t file_count;
    const char *tensor_source; /* what the two are called in messages */
    struct vp_gguf *gguf; /* a GGUF file, whose metadata is config's `gguf`; NULL: none, or keys
                             were changed */
};

/* node: text or map, see model_reader.h. */
enum vp_status vp_description_find(struct vp_ctx *ctx, struct vp_description *out,
                                   const struct vp_node *node, const char *base);
/* What `what` of that node is remembered by (planner/base/memo.h); NULL: it is nested too deep for
 * a text. */
const char *vp_description_key(struct vp_ctx *ctx, const char *what, const struct vp_node *node,
                               const char *base);

#endif
