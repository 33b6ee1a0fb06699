/* Any bytes as a GGUF file, as the model that it describes, and as that model's tensor table made
 * up from its keys; behind an 's' and a length of two bytes, as two parts of a split model. Files
 * come from memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/import/gguf_reader.h"
#include "planner/ops/gguf_make.h"
#include "planner/ops/ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    const char *name;
    const uint8_t *data;
    size_t size, at;
} files[2];

static int find(const char *path) {
    for (int i = 0; i < 2; i++)
        if (files[i].name && strcmp(files[i].name, path) == 0)
            return i;
    errno = ENOENT;
    return -1;
}

static int memory_open(const char *path) {
    int i = find(path);
    if (i >= 0)
        files[i].at = 0;
    return i;
}

static long memory_read(int fd, void *buffer, size_t n) {
    size_t left = files[fd].size - files[fd].at;
    if (n > left)
        n = left;
    if (n)
        memcpy(buffer, files[fd].data + files[fd].at, n);
    files[fd].at += n;
    return (long)n;
}

static int memory_close(int fd) {
    (void)fd;
    return 0;
}

static int memory_stat(const char *path, enum vp_file_kind *kind, uint64_t *size_bytes) {
    int i = find(path);
    if (i < 0)
        return -1;
    *kind = VP_FILE_REGULAR;
    *size_bytes = files[i].size;
    return 0;
}

static int memory_list(struct vp_ctx *ctx, const char *path, char ***names, size_t *count) {
    (void)ctx;
    (void)path;
    *names = NULL;
    *count = 0;
    return 0;
}

static void check_file(const struct vp_gguf *g) {
    for (uint32_t i = 0; i < g->tensor_count; i++) {
        const struct vp_gguf_entry *t = &g->tensors[i];
        if (!t->name || !t->type || t->dims > 4 || t->offset % g->alignment != 0 ||
            t->ne[0] % t->type->elements != 0 || t->part >= g->parts)
            abort();
    }
}

static bool read_model(struct vp_ctx *ctx, struct vp_model *model, const struct vp_node *map,
                       const struct vp_gguf *file) {
    uint32_t errors = ctx->diags->errors;
    enum vp_status status = vp_gguf_model(ctx, model, map, file, -1);
    if ((status == VP_OK) != (ctx->diags->errors == errors))
        abort();
    return status == VP_OK && vp_model_validate(ctx, model) == VP_OK;
}

static void check_model(struct vp_ctx *ctx, const struct vp_gguf *g) {
    struct vp_model *with = VP_NEW(ctx->arena, struct vp_model);
    struct vp_model *without = VP_NEW(ctx->arena, struct vp_model);
    if (read_model(ctx, with, g->metadata, g) && g->tensor_count > 0) {
        uint64_t total = 0;
        for (uint32_t i = 0; i < with->gguf->count; i++)
            total += with->gguf->tensor[i].bytes;
        if (total != with->gguf->data_bytes || with->gguf->count != g->tensor_count)
            abort();
    }
    if (!read_model(ctx, without, g->metadata, NULL) || without->layer_count > 64)
        return;
    const struct vp_gguf_table *table = vp_gguf_make(ctx->arena, without);
    struct vp_params params = vp_ops_params(without);
    if (table && (params.overflow || table->parameters != params.total))
        abort(); /* one of the two counts a tensor that the other does not */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct vp_io IO = {memory_open, memory_read, memory_close, memory_stat,
                                    memory_list};
    struct vp_arena arena = {0};
    struct vp_diags diags = {.arena = &arena};
    struct vp_ctx ctx = {.arena = &arena, .diags = &diags, .io = &IO};
    struct vp_gguf file;
    memset(files, 0, sizeof files);
    files[0].name = "m-00001-of-00002.gguf";
    files[0].data = data;
    files[0].size = size;
    if (size >= 3 && data[0] == 's') {
        size_t first = (size_t)data[1] << 8 | data[2];
        size_t n = first < size - 3 ? first : size - 3;
        files[0].data = data + 3;
        files[0].size = n;
        files[1].name = "m-00002-of-00002.gguf";
        files[1].data = data + 3 + n;
        files[1].size = size - 3 - n;
    }
    enum vp_status status = vp_gguf_read(&ctx, &file, files[0].name);
    if ((status == VP_OK) != (diags.errors == 0))
        abort();
    if (status == VP_OK) {
        check_file(&file);
        check_model(&ctx, &file);
    }
    vp_arena_free(&arena);
    return 0;
}
