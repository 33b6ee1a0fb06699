/* The public API over the same answers that the command line gives. */
#include "include/vramplan.h"

#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/places.h"
#include "planner/base/text.h"

struct vramplan {
    struct vp_arena arena; /* of the last call */
    char *profiles;        /* NULL: look for them */
};

struct vramplan *vramplan_new(const char *profiles) {
    struct vramplan *context = calloc(1, sizeof *context);
    if (context && profiles) {
        size_t n = strlen(profiles) + 1;
        context->profiles = malloc(n);
        if (!context->profiles) {
            free(context);
            return NULL;
        }
        memcpy(context->profiles, profiles, n);
    }
    return context;
}

void vramplan_free(struct vramplan *context) {
    if (!context)
        return;
    vp_arena_free(&context->arena);
    free(context->profiles);
    free(context);
}

/* "field=value" -> a setting; a text without '=' is told as a wrong option. */
static bool split(struct vp_ctx *ctx, struct vp_setting *out, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "'%s' is not field=value", text);
        return false;
    }
    out->path = vp_arena_text(ctx->arena, text, (size_t)(equals - text));
    out->value = vp_arena_text(ctx->arena, equals + 1, strlen(equals + 1));
    out->key = out->path;
    return true;
}

static int plan(struct vp_ctx *ctx, const struct vramplan *context, const char *input,
                const char *const *texts, size_t count, struct vp_buf *out) {
    struct vp_setting *settings = VP_NEW_ARRAY(ctx->arena, count + 1, struct vp_setting);
    struct vp_answers answers = {0};
    enum vp_status status = VP_OK;
    for (size_t i = 0; i < count; i++)
        if (!split(ctx, &settings[i], texts[i]))
            status = VP_ERR_INPUT;
    enum vp_status found = vp_places_find(ctx);
    if (context->profiles)
        ctx->profiles = context->profiles;
    else if (status == VP_OK)
        status = found;
    if (status != VP_OK) {
        struct vp_json json = vp_json_begin(out);
        vp_answers_json_error(&json, "vramplan.result/1", input, NULL, ctx->diags);
        vp_buf_add(out, "\n");
        return (int)vp_exit_of_status(status);
    }
    vp_answers_add(ctx, &answers, input, settings, count);
    vp_answers_json(out, &answers);
    return (int)vp_answers_exit(&answers);
}

int vramplan_plan(struct vramplan *context, const char *input, const char *const *settings,
                  size_t count, const char **json) {
    jmp_buf out_of_memory;
    *json = NULL;
    vp_arena_free(&context->arena);
    memset(&context->arena, 0, sizeof context->arena);
    if (setjmp(out_of_memory)) {
        context->arena.oom = NULL;
        return VP_EXIT_ENV;
    }
    context->arena.oom = &out_of_memory;
    struct vp_diags *diags = VP_NEW(&context->arena, struct vp_diags);
    diags->arena = &context->arena;
    struct vp_ctx ctx = {.arena = &context->arena, .diags = diags, .io = &vp_io_posix};
    struct vp_buf *out = VP_NEW(&context->arena, struct vp_buf);
    out->arena = &context->arena;
    int code = plan(&ctx, context, input, settings, count, out);
    context->arena.oom = NULL;
    *json = vp_buf_text(out);
    return code;
}

const char *vramplan_version(void) { return VP_VERSION; }
