#include "tests/unit/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fixture_begin(struct fixture *f) {
    memset(f, 0, sizeof *f);
    f->diags.arena = &f->arena;
    f->ctx = (struct vp_ctx){.arena = &f->arena, .diags = &f->diags, .io = &vp_io_posix};
}

static void remove_folder(const char *folder) {
    char path[4096];
    struct dirent *entry;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && unlink(path) != 0)
            remove_folder(path);
    }
    closedir(dir);
    assert_int_equal(rmdir(folder), 0);
}

void fixture_end(struct fixture *f) {
    if (f->folder)
        remove_folder(f->folder);
    vp_arena_free(&f->arena);
}

void fixture_clear(struct fixture *f) { f->diags.count = f->diags.errors = f->diags.dropped = 0; }

const char *fixture_folder(struct fixture *f) {
    if (!f->folder) {
        const char *tmp = getenv("TMPDIR");
        f->folder = vp_arena_printf(&f->arena, "%s/vramplan-test-XXXXXX", tmp ? tmp : "/tmp");
        assert_non_null(mkdtemp(f->folder));
    }
    return f->folder;
}

const char *fixture_file(struct fixture *f, const char *name, const void *data, size_t n) {
    const char *path = vp_arena_printf(&f->arena, "%s/%s", fixture_folder(f), name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    return path;
}

const char *fixture_text_file(struct fixture *f, const char *name, const char *text) {
    return fixture_file(f, name, text, strlen(text));
}

const struct vp_diag *fixture_expect(const struct fixture *f, enum vp_diag_id id,
                                     const char *words) {
    for (uint32_t i = 0; i < f->diags.count; i++)
        if (f->diags.items[i].id == id && strstr(f->diags.items[i].message, words))
            return &f->diags.items[i];
    for (uint32_t i = 0; i < f->diags.count; i++)
        print_message("there is: %s %s\n", vp_diag_code(f->diags.items[i].id),
                      f->diags.items[i].message);
    fail_msg("no %s with \"%s\"", vp_diag_code(id), words);
    return NULL;
}

/* ---- faults ---- */

static int io_calls, io_fails_at, take_calls, take_fails_at;

static int fails(void) {
    if (++io_calls != io_fails_at)
        return 0;
    errno = EIO;
    return 1;
}

static int failing_open(const char *path) { return fails() ? -1 : vp_io_posix.open(path); }

static long failing_read(int fd, void *buffer, size_t n) {
    return fails() ? -1 : vp_io_posix.read(fd, buffer, n);
}

static int failing_close(int fd) {
    int result = vp_io_posix.close(fd); /* POSIX leaves open whether a failed close has closed */
    return fails() ? -1 : result;
}

static int failing_stat(const char *path, enum vp_file_kind *kind, uint64_t *size_bytes) {
    return fails() ? -1 : vp_io_posix.stat(path, kind, size_bytes);
}

static int failing_list(struct vp_ctx *ctx, const char *path, char ***names, size_t *count) {
    return fails() ? -1 : vp_io_posix.list(ctx, path, names, count);
}

const struct vp_io *failing_io(int n) {
    static const struct vp_io table = {failing_open, failing_read, failing_close, failing_stat,
                                       failing_list};
    io_calls = 0;
    io_fails_at = n;
    return &table;
}

int failing_io_calls(void) { return io_calls; }

static void *take(size_t n) { return ++take_calls == take_fails_at ? NULL : malloc(n); }

void *(*failing_take(int n))(size_t) {
    take_calls = 0;
    take_fails_at = n;
    return take;
}
