/* Where ollama keeps the file of a model that was pulled: a manifest per name and tag, the GGUF
 * file among the blobs, by its digest. */
#ifndef VP_IMPORT_OLLAMA_STORE_H
#define VP_IMPORT_OLLAMA_STORE_H

#include "planner/base/ctx.h"

/* name: "llama3.1:70b", "user/model:tag", "hf.co/org/repo:Q4_K_M". folder: OLLAMA_MODELS, NULL for
 * ~/.ollama/models. The path of the GGUF file; the name itself when there is no such model here. */
const char *vp_ollama_file(struct vp_ctx *ctx, const char *name, const char *folder);

#endif
