#include "planner/base/diag.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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

/* What said a text may be gone before the diagnostics are. */
static const char *kept(struct vp_diags *diags, const char *text) {
    return text ? vp_arena_text(diags->arena, text, strlen(text)) : NULL;
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
    struct vp_diag *diag = &diags->items[diags->count++];
    *diag = (struct vp_diag){.id = id, .pos = pos ? *pos : (struct vp_pos){0}, .message = message};
    diag->pos.file = kept(diags, diag->pos.file);
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same(const struct vp_diag *a, const struct vp_diag *b) {
    return a->id == b->id && a->pos.line == b->pos.line && a->pos.column == b->pos.column &&
           same_text(a->pos.file, b->pos.file) && same_text(a->message, b->message);
}

void vp_diags_merge(struct vp_diags *into, const struct vp_diags *from) {
    uint32_t known = 0; /* errors of `from` that its items account for */
    for (uint32_t i = 0; i < from->count; i++) {
        const struct vp_diag *diag = &from->items[i];
        bool error = vp_diag_severity(diag->id) == VP_ERROR;
        uint32_t k = 0;
        known += error;
        while (k < into->count && !is_same(&into->items[k], diag))
            k++;
        if (k < into->count)
            continue;
        into->errors += error;
        if (into->count == VP_DIAG_MAX)
            into->dropped++;
        else
            into->items[into->count++] = (struct vp_diag){
                .id = diag->id,
                .pos = {kept(into, diag->pos.file), diag->pos.line, diag->pos.column},
                .message = kept(into, diag->message),
                .hint = kept(into, diag->hint)};
    }
    into->errors += from->errors > known ? from->errors - known : 0;
    into->dropped += from->dropped;
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
