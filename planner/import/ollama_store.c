#include "planner/import/ollama_store.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/import/document.h"

/* The manifest of "llama3.1:70b" is registry.ollama.ai/library/llama3.1/70b. */
static const char *manifest_path(struct vp_ctx *ctx, const char *name, const char *folder) {
    const char *colon = strrchr(name, ':'), *slash = strchr(name, '/');
    if (colon && slash && colon < slash)
        colon = NULL; /* a port */
    size_t length = colon ? (size_t)(colon - name) : strlen(name);
    bool host = slash && memchr(name, '.', (size_t)(slash - name));
    const char *front = host ? "" : slash ? "registry.ollama.ai/" : "registry.ollama.ai/library/";
    return vp_arena_printf(ctx->arena, "%s/manifests/%s%.*s/%s", folder, front, (int)length, name,
                           colon ? colon + 1 : "latest");
}

/* Digest of the layer that holds the model, as a file name: "sha256-...". */
static const char *blob_of(struct vp_ctx *ctx, const struct vp_node *manifest) {
    const struct vp_node *layers = vp_node_get(manifest, "layers");
    for (uint32_t i = 0; layers && layers->kind == VP_NODE_LIST && i < layers->count; i++) {
        const char *type = vp_node_text(vp_node_get(layers->items[i], "mediaType"));
        const char *digest = vp_node_text(vp_node_get(layers->items[i], "digest"));
        if (!vp_text_eq(type, "application/vnd.ollama.image.model") || !digest)
            continue;
        char *name = vp_arena_text(ctx->arena, digest, strlen(digest));
        char *colon = strchr(name, ':');
        if (!colon || strchr(name, '/'))
            return NULL;
        *colon = '-';
        return name;
    }
    return NULL;
}

const char *vp_ollama_file(struct vp_ctx *ctx, const char *name, const char *folder) {
    struct vp_ctx quiet = *ctx;
    struct vp_node *manifest;
    quiet.diags = VP_NEW(ctx->arena, struct vp_diags);
    quiet.diags->arena = ctx->arena; /* one that is not here is no fault */
    if (!folder && ctx->home)
        folder = vp_arena_printf(ctx->arena, "%s/.ollama/models", ctx->home);
    const char *path = folder ? manifest_path(ctx, name, folder) : NULL;
    if (!path || vp_io_kind(&quiet, path) != VP_FILE_REGULAR ||
        vp_document_read(&quiet, &manifest, path) != VP_OK)
        return name;
    const char *blob = blob_of(ctx, manifest);
    return blob ? vp_arena_printf(ctx->arena, "%s/blobs/%s", folder, blob) : name;
}
