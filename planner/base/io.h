/* All reading of files goes through this small table, so that a test can make the n-th call fail.
 */
#ifndef VP_BASE_IO_H
#define VP_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/base/status.h"

struct vp_ctx;

enum vp_file_kind { VP_FILE_NONE, VP_FILE_REGULAR, VP_FILE_DIRECTORY, VP_FILE_OTHER };

/* Returns follow POSIX: -1 and errno. */
struct vp_io {
    int (*open)(const char *path);
    long (*read)(int fd, void *buffer, size_t n);
    int (*close)(int fd);
    int (*stat)(const char *path, enum vp_file_kind *kind, uint64_t *size_bytes);
    int (*list)(struct vp_ctx *ctx, const char *path, char ***names, size_t *count); /* sorted */
};

extern const struct vp_io vp_io_posix;

struct vp_bytes {
    const char *data; /* a NUL stands after the last byte */
    size_t size;
};

/* Whole file into the context's arena; "-" is standard input. More than cap_bytes:
 * VP_D_FILE_TOO_LARGE. A file that cannot be opened is the user's mistake (VP_ERR_INPUT,
 * VP_D_FILE_MISSING); a failing read is VP_ERR_ENV. */
enum vp_status vp_io_read(struct vp_ctx *ctx, struct vp_bytes *out, const char *path,
                          uint64_t cap_bytes);
/* The first n bytes or the whole file when it is shorter; *file_size_bytes is the file's length. */
enum vp_status vp_io_read_head(struct vp_ctx *ctx, struct vp_bytes *out, uint64_t *file_size_bytes,
                               const char *path, size_t n);
/* For reading piece by piece with the context's io->read; the caller closes. Folders are refused;
 * *size_bytes is 0 where the system does not know the length. */
enum vp_status vp_io_open(struct vp_ctx *ctx, int *fd, uint64_t *size_bytes, const char *path);
enum vp_file_kind vp_io_kind(struct vp_ctx *ctx, const char *path);
/* Sorted names in a folder, without "." and "..". */
enum vp_status vp_io_list(struct vp_ctx *ctx, char ***names, size_t *count, const char *path);
/* dir + "/" + name, in the arena; name alone when it is absolute or dir is NULL or "". */
const char *vp_io_join(struct vp_ctx *ctx, const char *dir, const char *name);
/* The folder part of a path ("." when there is none). */
const char *vp_io_dirname(struct vp_ctx *ctx, const char *path);

#endif
