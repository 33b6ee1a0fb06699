/* Any bytes as a safetensors file and, behind a byte that says so, as an index beside the part "p"
 * (index, a NUL, then the part). Files come from memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/doc/safetensors.h"

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

static void check(const struct vp_tensors *tensors) {
    uint64_t total = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        const struct vp_tensor *t = &tensors->items[i];
        if (!t->name || !t->dtype || t->dims > 8)
            abort();
        total += t->bytes;
    }
    if (total != tensors->total_bytes)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct vp_io IO = {memory_open, memory_read, memory_close, memory_stat,
                                    memory_list};
    struct vp_arena arena = {0};
    struct vp_diags diags = {.arena = &arena};
    struct vp_ctx ctx = {.arena = &arena, .diags = &diags, .io = &IO};
    struct vp_tensors tensors;
    enum vp_status status;
    memset(files, 0, sizeof files);
    if (size > 0 && data[0] == 'i') {
        const uint8_t *nul = memchr(data, '\0', size);
        size_t n = nul ? (size_t)(nul - data) : size;
        files[0].name = "./index.json";
        files[0].data = data + 1;
        files[0].size = n - 1;
        files[1].name = "./p";
        files[1].data = nul ? nul + 1 : NULL;
        files[1].size = nul ? size - n - 1 : 0;
        status = vp_safetensors_read_index(&ctx, &tensors, "./index.json");
    } else {
        files[0].name = "p";
        files[0].data = data;
        files[0].size = size;
        status = vp_safetensors_read(&ctx, &tensors, "p");
    }
    if ((status == VP_OK) != (diags.errors == 0))
        abort();
    if (status == VP_OK)
        check(&tensors);
    vp_arena_free(&arena);
    return 0;
}
