#define _GNU_SOURCE /* dladdr */
#include "probe/gpu_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *open_file(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static const char *last_error(void) { return dlerror(); }
static void *find_symbol(void *library, const char *name) { return dlsym(library, name); }

static const struct vp_library_io SYSTEM = {open_file, last_error, find_symbol};
const struct vp_library_io *vp_library_io = &SYSTEM;

/* ---- folders ---- */

enum { MOST_FOLDERS = 64 };

struct folders {
    const char **list;
    size_t count;
};

static void add(struct folders *f, const char *folder) {
    if (f->count < MOST_FOLDERS)
        f->list[f->count++] = folder;
}

/* The value of the variable in front and what follows it; NULL when that is not set. */
static const char *expanded(struct vp_arena *arena, const char *pattern) {
    if (pattern[0] != '$')
        return pattern;
    size_t length = strcspn(pattern, "/");
    const char *value = getenv(vp_arena_text(arena, pattern + 1, length - 1));
    return value && *value ? vp_arena_printf(arena, "%s%s", value, pattern + length) : NULL;
}

static void add_matches(struct vp_arena *arena, struct folders *f, const char *pattern) {
    glob_t found;

    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = found.gl_pathc; i > 0; i--)
            add(f, vp_arena_printf(arena, "%s", found.gl_pathv[i - 1]));
        globfree(&found);
    }
}

const char *const *vp_library_folders(struct vp_arena *arena, const char *const *patterns) {
    struct folders f = {.list = VP_NEW_ARRAY(arena, MOST_FOLDERS + 1, const char *)};
    const char *only = getenv("VRAMPLAN_GPU_LIBRARIES");

    while (only && *only) {
        size_t length = strcspn(only, ":");
        if (length)
            add(&f, vp_arena_text(arena, only, length));
        only += length + (only[length] == ':');
    }
    if (f.count)
        return f.list;
    for (; *patterns; patterns++) {
        const char *pattern = expanded(arena, *patterns);
        if (pattern && strpbrk(pattern, "*?["))
            add_matches(arena, &f, pattern);
        else if (pattern)
            add(&f, pattern);
    }
    return f.list;
}

/* ---- libraries ---- */

/* Tries one file. Of a library that is there and cannot be loaded the reason is kept: the loader's
 * text then begins with another name than that of the file, or says something else of it. */
static bool try_file(struct vp_arena *arena, struct vp_library *out, const char *folder,
                     const char *file, const char **why) {
    const char *path = *folder ? vp_arena_printf(arena, "%s/%s", folder, file) : file;
    const char *error;

    out->handle = vp_library_io->open(path);
    if (out->handle) {
        snprintf(out->folder, sizeof out->folder, "%s", folder);
        return true;
    }
    error = vp_library_io->error();
    if (error && strncmp(error, vp_arena_printf(arena, "%s: cannot open", path),
                         strlen(path) + sizeof ": cannot open" - 1) != 0)
        *why = vp_arena_printf(arena, "%s cannot be loaded: %s", path, error);
    return false;
}

const char *vp_library_open(struct vp_arena *arena, struct vp_library *out,
                            const char *const *folders, const struct vp_library_name *name) {
    const char *why = NULL;

    *out = (struct vp_library){0};
    for (unsigned next = name->high + 1; next > name->low; next--) {
        const char *file = vp_arena_printf(arena, "%s.so.%u", name->stem, next - 1);
        for (const char *const *folder = folders; *folder; folder++)
            if (try_file(arena, out, *folder, file, &why))
                return NULL;
    }
    for (const char *const *folder = folders; *folder; folder++)
        if (try_file(arena, out, *folder, vp_arena_printf(arena, "%s.so", name->stem), &why))
            return NULL;
    return why ? why : vp_arena_printf(arena, "%s.so was not found", name->stem);
}

void vp_library_about(struct vp_library *library, const char *symbol) {
    void *address = vp_library_io->symbol(library->handle, symbol);
    Dl_info info;
    char *file;

    if (!address || !dladdr(address, &info) || !info.dli_fname)
        return;
    const char *slash = strrchr(info.dli_fname, '/');
    if (slash)
        snprintf(library->folder, sizeof library->folder, "%.*s", (int)(slash - info.dli_fname),
                 info.dli_fname);
    /* links end at the file that has the whole version in its name */
    file = realpath(info.dli_fname, NULL);
    const char *version = file ? strstr(file, ".so.") : NULL;
    if (version)
        snprintf(library->version, sizeof library->version, "%s", version + 4);
    free(file);
}

const char *vp_library_load(void *table, const struct vp_library_symbol *symbols, size_t count,
                            const struct vp_library *library, unsigned family) {
    const char *missing = NULL;

    for (size_t i = 0; i < count; i++) {
        const char *name = symbols[i].name[family];
        void *address = name ? vp_library_io->symbol(library->handle, name) : NULL;
        /* ISO C has no conversion from void * to a pointer to a function; POSIX has equal sizes */
        memcpy((char *)table + symbols[i].offset, &address, sizeof address);
        if (name && !address && symbols[i].needed && !missing)
            missing = name;
    }
    return missing;
}
