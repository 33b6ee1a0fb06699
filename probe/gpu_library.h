/* Finds and opens the shared libraries of drivers and loads their functions into tables. What the
 * system does for it goes through a table of its own, so that tests can make any step fail.
 *
 * VRAMPLAN_GPU_LIBRARIES=FOLDER[:FOLDER...] names the only folders in which libraries are looked
 * for. Libraries stay open until the process ends: drivers do not survive being unloaded. */
#ifndef VP_PROBE_GPU_LIBRARY_H
#define VP_PROBE_GPU_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "planner/base/arena.h"

struct vp_library_io {
    void *(*open)(const char *path);
    const char *(*error)(void); /* why the last one failed; NULL: not told */
    void *(*symbol)(void *library, const char *name);
};
extern const struct vp_library_io *vp_library_io; /* the system's, unless a test put its own */

enum { VP_LIBRARY_PATH = 512, VP_LIBRARY_TEXT = 96 };

struct vp_library {
    void *handle;                  /* NULL: none */
    char folder[VP_LIBRARY_PATH];  /* that it came from */
    char version[VP_LIBRARY_TEXT]; /* what stands behind ".so." in the name of its file; or "" */
};

/* Where a library may be: `stem` is "libamdhip64"; numbers behind ".so." are tried from high to
 * low, each in every folder, then the bare name. */
struct vp_library_name {
    const char *stem;
    unsigned high, low;
};

/* Folders to look in, ending with NULL. A pattern may begin with a variable of the environment
 * ("$ROCM_PATH/lib": left out when that is not set) and contain wildcards, of which the last names
 * come first; "" is wherever the system's loader looks. */
const char *const *vp_library_folders(struct vp_arena *arena, const char *const *patterns);

/* NULL, or why there is none: text in the arena. */
const char *vp_library_open(struct vp_arena *arena, struct vp_library *out,
                            const char *const *folders, const struct vp_library_name *name);
/* What is known of the library that has this function: folder, version. */
void vp_library_about(struct vp_library *library, const char *symbol);

/* One function of a table: its names in the two families of drivers (0: HIP, 1: CUDA), NULL where
 * a family has none. */
struct vp_library_symbol {
    const char *name[2];
    size_t offset; /* of the pointer in the table */
    bool needed;
};
/* NULL, or the name of the first function that is needed and missing. Missing ones are NULL. */
const char *vp_library_load(void *table, const struct vp_library_symbol *symbols, size_t count,
                            const struct vp_library *library, unsigned family);

#endif
