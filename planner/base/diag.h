/* Diagnostics: what is wrong or worth knowing, with a position and a hint. Collected, never
 * printed here. All faults of an input are reported in one run, up to VP_DIAG_MAX. */
#ifndef VP_BASE_DIAG_H
#define VP_BASE_DIAG_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/arena.h"

enum vp_severity { VP_INFO, VP_WARNING, VP_ERROR };

enum vp_diag_id {
#define X(name, id, severity, meaning) VP_D_##name,
#include "planner/base/diag.def"
#undef X
    VP_DIAG_COUNT
};

/* Where something stands. file NULL: no file (command line, default); line 0: position unknown. */
struct vp_pos {
    const char *file;
    uint32_t line, column; /* from 1 */
};

struct vp_diag {
    enum vp_diag_id id;
    struct vp_pos pos;
    const char *message;
    const char *hint; /* NULL: none */
};

enum { VP_DIAG_MAX = 100 };

struct vp_diags {
    struct vp_arena *arena;
    struct vp_diag items[VP_DIAG_MAX];
    uint32_t count;
    uint32_t errors; /* counted beyond VP_DIAG_MAX too */
    uint32_t dropped;
};

const char *vp_diag_code(enum vp_diag_id id); /* "VP101" */
enum vp_severity vp_diag_severity(enum vp_diag_id id);
const char *vp_diag_meaning(enum vp_diag_id id);
const char *vp_severity_name(enum vp_severity severity); /* "error", "warning", "info" */

/* pos may be NULL. The message and the file's name are copied. */
void vp_diag_add(struct vp_diags *diags, enum vp_diag_id id, const struct vp_pos *pos,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Adds those of `from` that `into` does not hold yet, in order. */
void vp_diags_merge(struct vp_diags *into, const struct vp_diags *from);
/* Adds a hint to the diagnostic added last. */
void vp_diag_hint(struct vp_diags *diags, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
