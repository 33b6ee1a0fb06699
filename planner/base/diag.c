#include "planner/base/diag.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

static const struct {
    const char *code;
    enum vp_severity severity;
    const char *meaning;
} TABLE[VP_DIAG_COUNT] = {
#define X(name, id, severity, meaning) [VP_D_##name] = {id, VP_##severity, meaning},
#include "planner/base/diag.def"
#undef X
};

const char *vp_diag_code(enum vp_diag_id id) { return TABLE[id].code; }

enum vp_severity vp_diag_severity(enum vp_diag_id id) { return TABLE[id].severity; }

const char *vp_diag_meaning(enum vp_diag_id id) { return TABLE[id].meaning; }

const char *vp_severity_name(enum vp_severity severity) {
    switch (severity) {
    case VP_INFO:
        return "info";
    case VP_WARNING:
        return "warning";
    case VP_ERROR:
        break;
    }
    return "error";
}

__attribute__((format(printf, 2, 0))) static char *print(struct vp_arena *arena, const char *format,
                                                         va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = vp_arena_alloc(arena, n < 0 ? 1 : (size_t)n + 1);
    if (n > 0)
        vsnprintf(text, (size_t)n + 1, format, args);
    return text;
}

void vp_diag_add(struct vp_diags *diags, enum vp_diag_id id, const struct vp_pos *pos,
                 const char *format, ...) {
    if (vp_diag_severity(id) == VP_ERROR)
        diags->errors++;
    if (diags->count == VP_DIAG_MAX) {
        diags->dropped++;
        return;
    }
    va_list args;
    va_start(args, format);
    const char *message = print(diags->arena, format, args);
    va_end(args);
    diags->items[diags->count++] =
        (struct vp_diag){.id = id, .pos = pos ? *pos : (struct vp_pos){0}, .message = message};
}

void vp_diag_hint(struct vp_diags *diags, const char *format, ...) {
    /* Once diagnostics are dropped, the last one that is kept is not the last one added. */
    if (diags->count == 0 || diags->dropped > 0)
        return;
    va_list args;
    va_start(args, format);
    diags->items[diags->count - 1].hint = print(diags->arena, format, args);
    va_end(args);
}
