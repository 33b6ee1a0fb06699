#include "planner/import/engine_refit.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/text.h"

struct work {
    struct vp_ctx *ctx;
    struct vp_refit_result *out;
    struct vp_node *row;
    const struct vp_scenario *scenario;
    uint64_t runs; /* that the row rests on already */
};

static struct vp_node *number(struct work *w, uint64_t value) {
    return vp_node_scalar(w->ctx, VP_NODE_INT, vp_arena_printf(w->ctx->arena, "%" PRIu64, value),
                          (struct vp_pos){0});
}

static void set(struct work *w, const char *key, struct vp_node *value) {
    vp_node_set(w->ctx, w->row, key, (struct vp_pos){0}, value);
}

static struct vp_node *text(struct work *w, const char *value) {
    return vp_node_scalar(w->ctx, VP_NODE_TEXT, value, (struct vp_pos){0});
}

static bool read_interval(uint64_t out[3], const struct vp_node *row, const char *key) {
    const struct vp_node *list = vp_node_get(row, key);
    if (!list || list->kind != VP_NODE_LIST || list->count != 3)
        return false;
    for (uint32_t i = 0; i < 3; i++)
        if (!vp_node_u64(&out[i], list->items[i]))
            return false;
    return out[0] <= out[1] && out[1] <= out[2];
}

static void write_interval(struct work *w, const char *key, const uint64_t v[3]) {
    struct vp_node *list = vp_node_new(w->ctx, VP_NODE_LIST, (struct vp_pos){0});
    list->items = VP_NEW_ARRAY(w->ctx->arena, 3, struct vp_node *);
    list->count = 3;
    for (uint32_t i = 0; i < 3; i++)
        list->items[i] = number(w, v[i]);
    set(w, key, list);
}

/* The interval of `key` after one run more, which would have been predicted with `wanted` MiB. */
static void narrow(struct work *w, const char *key, uint64_t wanted) {
    struct vp_refit_change *change = &w->out->change[w->out->changes];
    uint64_t old[3], next[3], n = w->runs;
    if (!read_interval(old, w->row, key) || w->out->changes == VP_REFIT_CHANGES)
        return;
    uint64_t below = (old[1] - old[0]) * (n + 1) / (n + 2);
    uint64_t above = (old[2] - old[1]) * (n + 1) / (n + 2);
    next[1] = (old[1] * n + wanted + (n + 1) / 2) / (n + 1);
    next[0] = next[1] > below ? next[1] - below : 0;
    next[2] = next[1] + above;
    next[0] = next[0] < wanted ? next[0] : wanted;
    next[2] = next[2] > wanted ? next[2] : wanted;
    *change = (struct vp_refit_change){.key = key};
    memcpy(change->before, old, sizeof old);
    memcpy(change->after, next, sizeof next);
    w->out->changes++;
    write_interval(w, key, next);
}

static uint64_t mib(uint64_t bytes) { return (bytes + (1U << 19)) >> 20; }

/* The likely value of a key, moved by what the prediction was off. */
static void shift(struct work *w, const char *key, const struct vp_refit_term *term) {
    uint64_t old[3];
    if (!term->known || !read_interval(old, w->row, key))
        return;
    uint64_t wanted = old[1] + mib(term->measured), predicted = mib(term->predicted);
    narrow(w, key, wanted > predicted ? wanted - predicted : 0);
}

/* Graphs: base and per layer in proportion. */
static void scale(struct work *w, const char *key, const struct vp_refit_term *term) {
    uint64_t old[3];
    if (!term->known || term->predicted == 0 || !read_interval(old, w->row, key))
        return;
    unsigned __int128 wanted = (unsigned __int128)old[1] * term->measured;
    narrow(w, key, (uint64_t)((wanted + term->predicted / 2) / term->predicted));
}

static const char *class_of(struct work *w) {
    const char *old = vp_node_text(vp_node_get(w->row, "class"));
    const char *name = old ? old : vp_node_text(vp_node_get(w->row, "name"));
    return name ? name : "";
}

/* Whose row it is, and what it rests on. */
static void describe(struct work *w, const struct vp_refit *refit) {
    struct vp_arena *arena = w->ctx->arena;
    const struct vp_gpu *gpu = &w->scenario->hardware.gpu;
    const char *before = vp_node_text(vp_node_get(w->row, "measured_by"));
    struct vp_node *archs = vp_node_new(w->ctx, VP_NODE_LIST, (struct vp_pos){0});
    w->out->class_name = class_of(w);
    w->out->name = vp_arena_printf(arena, "%s, %s", gpu->arch, w->out->class_name);
    w->out->runs = w->runs + 1;
    archs->items = VP_NEW_ARRAY(arena, 1, struct vp_node *);
    archs->items[archs->count++] = text(w, gpu->arch);
    set(w, "name", text(w, w->out->name));
    set(w, "class", text(w, w->out->class_name));
    set(w, "arch", archs);
    set(w, "runs", number(w, w->out->runs));
    set(w, "measured_by",
        text(w, before ? vp_arena_printf(arena, "%s; %s", before, refit->provenance)
                       : refit->provenance));
    set(w, "source", text(w, "import-log"));
}

/* The profile with the row first, in the place of the one that an earlier run made. */
static void put_row(struct work *w, const struct vp_node *root, const struct vp_node *old) {
    struct vp_ctx *ctx = w->ctx;
    const struct vp_node *list = vp_node_get(root, "overheads");
    struct vp_node *rows = vp_node_new(ctx, VP_NODE_LIST, list->pos);
    struct vp_node *sources = vp_node_new(ctx, VP_NODE_MAP, (struct vp_pos){0});
    struct vp_node *profile = vp_node_new(ctx, VP_NODE_MAP, root->pos);
    rows->items = VP_NEW_ARRAY(ctx->arena, (size_t)list->count + 1, struct vp_node *);
    rows->items[rows->count++] = w->row;
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i] != old || w->runs == 0)
            rows->items[rows->count++] = list->items[i];
    vp_node_set(ctx, sources, "import-log", (struct vp_pos){0},
                text(w, "start-up logs of this installation, read by vramplan import-log"));
    for (uint32_t i = 0; i < root->count; i++)
        vp_node_set(ctx, profile, root->keys[i], (struct vp_pos){0}, root->items[i]);
    vp_node_set(ctx, profile, "overheads", (struct vp_pos){0}, rows);
    struct vp_node *all = vp_node_get(profile, "sources");
    vp_node_set(ctx, profile, "sources", (struct vp_pos){0},
                all ? vp_node_merge(ctx, all, sources) : sources);
    w->out->profile = profile;
}

enum vp_status vp_engine_refit(struct vp_ctx *ctx, struct vp_refit_result *out,
                               const struct vp_scenario *scenario, const struct vp_refit *refit) {
    struct vp_engine_profile profile = {.root = NULL};
    struct work w = {.ctx = ctx, .out = out, .scenario = scenario};
    const struct vp_node *old;
    *out = (struct vp_refit_result){.profile = NULL};
    if (scenario->engine.kind != VP_ENGINE_VLLM && scenario->engine.kind != VP_ENGINE_SGLANG) {
        vp_diag_add(ctx->diags, VP_D_UNMODELLED, NULL,
                    "overheads of %s are not refit from a log; its figures can be pinned",
                    scenario->engine.name);
        vp_diag_hint(ctx->diags, "--measured-out FILE writes the scenario with them");
        return VP_ERR_INPUT;
    }
    enum vp_status status = vp_engine_overheads_row(ctx, &old, &profile, scenario);
    if (status != VP_OK)
        return status;
    w.row = vp_node_new(ctx, VP_NODE_MAP, old->pos);
    for (uint32_t i = 0; i < old->count; i++)
        set(&w, old->keys[i], old->items[i]);
    if (!vp_node_u64(&w.runs, vp_node_get(old, "runs")))
        w.runs = 0;
    shift(&w, scenario->parallel.tensor > 1 ? "non_torch_group" : "non_torch", &refit->non_torch);
    scale(&w, "graph_base", &refit->graphs);
    scale(&w, "graph_layer", &refit->graphs);
    shift(&w, "load", &refit->load);
    if (out->changes == 0)
        return VP_OK; /* the log says nothing of what a profile holds */
    describe(&w, refit);
    put_row(&w, profile.root, old);
    return VP_OK;
}
