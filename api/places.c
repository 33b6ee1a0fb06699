#include "api/places.h"

#include <stdlib.h>
#include <unistd.h>

#include "planner/base/text.h"

/* An empty variable counts as none. */
static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The XDG rules: a path that is not absolute is ignored. */
static const char *absolute(const char *name) {
    const char *value = variable(name);
    return value && value[0] == '/' ? value : NULL;
}

static const char *if_folder(struct vp_ctx *ctx, const char *path) {
    return path && vp_io_kind(ctx, path) == VP_FILE_DIRECTORY ? path : NULL;
}

/* dir/name, NULL without a dir */
static const char *below(struct vp_ctx *ctx, const char *dir, const char *name) {
    return dir ? vp_io_join(ctx, dir, name) : NULL;
}

/* The folder of the executable, NULL where the system does not tell. */
const char *vp_places_program(struct vp_ctx *ctx) {
    enum { FIRST_SIZE = 256, LAST_SIZE = 1 << 20 };
    for (size_t size = FIRST_SIZE; size <= LAST_SIZE; size *= 2) {
        char *path = vp_arena_alloc(ctx->arena, size);
        ssize_t n = readlink("/proc/self/exe", path, size);
        if (n < 0)
            return NULL;
        if ((size_t)n < size)
            return vp_io_dirname(ctx, vp_arena_text(ctx->arena, path, (size_t)n));
    }
    return NULL;
}

static const char *shipped_profiles(struct vp_ctx *ctx) {
    static const char *const FROM_EXECUTABLE[] = {
        "profiles",                   /* the source tree */
        "../share/vramplan/profiles", /* an installation */
        "../../profiles",             /* a build in the source tree: build/san/ */
    };
    const char *folder = vp_places_program(ctx);
    for (size_t i = 0; folder && i < sizeof FROM_EXECUTABLE / sizeof *FROM_EXECUTABLE; i++) {
        const char *path = vp_io_join(ctx, folder, FROM_EXECUTABLE[i]);
        if (if_folder(ctx, path))
            return path;
    }
    return NULL;
}

static enum vp_status find_profiles(struct vp_ctx *ctx) {
    const char *given = variable("VRAMPLAN_PROFILES");
    ctx->profiles = given ? if_folder(ctx, given) : shipped_profiles(ctx);
    if (ctx->profiles)
        return VP_OK;
    if (given)
        vp_diag_add(ctx->diags, VP_D_NO_PROFILES, NULL,
                    "VRAMPLAN_PROFILES names %s, which is no folder", given);
    else
        vp_diag_add(ctx->diags, VP_D_NO_PROFILES, NULL,
                    "the folder of shipped profiles is neither beside the program nor in "
                    "../share/vramplan/profiles");
    vp_diag_hint(ctx->diags, "set VRAMPLAN_PROFILES to the folder that holds gpus/ and models/");
    return VP_ERR_ENV;
}

static const char *find_hub_cache(struct vp_ctx *ctx) {
    const char *given = variable("HF_HUB_CACHE");
    if (given)
        return if_folder(ctx, given);
    const char *home = variable("HF_HOME");
    if (!home)
        home = below(ctx, absolute("XDG_CACHE_HOME"), "huggingface");
    if (!home)
        home = below(ctx, ctx->home, ".cache/huggingface");
    return if_folder(ctx, below(ctx, home, "hub"));
}

enum vp_status vp_places_find(struct vp_ctx *ctx) {
    ctx->home = variable("HOME");
    const char *config = absolute("XDG_CONFIG_HOME");
    if (!config)
        config = below(ctx, ctx->home, ".config");
    ctx->user_profiles = if_folder(ctx, below(ctx, config, "vramplan"));
    ctx->hub_cache = find_hub_cache(ctx);
    return find_profiles(ctx);
}
