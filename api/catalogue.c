#include "api/catalogue.h"

#include <stdlib.h>
#include <string.h>

#include "planner/import/engine_profile.h"
#include "planner/import/profile.h"

static int by_memory(const void *a, const void *b) {
    const struct vp_gpu *x = a, *y = b;
    int vendor = strcmp(x->vendor, y->vendor);
    if (vendor != 0)
        return vendor;
    if (x->driver_mib != y->driver_mib)
        return x->driver_mib < y->driver_mib ? -1 : 1;
    return strcmp(x->id, y->id);
}

enum vp_status vp_catalogue_read(struct vp_ctx *ctx, struct vp_catalogue *out) {
    struct vp_gpus all = {0};
    size_t kept = 0;
    *out = (struct vp_catalogue){0};
    enum vp_status status = vp_gpu_list(ctx, &all);
    for (size_t i = 0; i < all.count; i++)
        if (!all.items[i].runtime_device)
            all.items[kept++] = all.items[i];
    if (kept > 0)
        qsort(all.items, kept, sizeof *all.items, by_memory);
    out->gpus = (struct vp_gpus){all.items, kept};
    if (status == VP_OK)
        status = vp_profile_names(ctx, &out->models, &out->model_count, &VP_PROFILE_MODEL);
    if (status == VP_OK)
        status = vp_engine_list(ctx, &out->engines, &out->engine_count);
    out->newest = VP_NEW_ARRAY(ctx->arena, out->engine_count, const char *);
    for (size_t i = 0; status == VP_OK && i < out->engine_count; i++) {
        struct vp_engine_profile profile = {0};
        status = vp_engine_newest(ctx, &out->newest[i], &profile, out->engines[i]);
    }
    return status;
}
