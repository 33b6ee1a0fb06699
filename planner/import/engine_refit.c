#include "planner/import/engine_refit.h"

#include <math.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"

enum { MOST_RUNS = 32 }; /* that a row keeps, of each quantity; the newest ones */

struct work {
    struct vp_ctx *ctx;
    struct vp_refit_result *out;
    const struct vp_scenario *scenario;
    const struct vp_node *class_row, *old; /* old: the card's own row; NULL: there is none yet */
    struct vp_node *row, *runs;            /* the new one, and its `runs` */
};

static struct vp_node *number(struct work *w, uint64_t value) {
    return vp_node_new_u64(w->ctx, value, (struct vp_pos){0});
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

static struct vp_node *number_list(struct work *w, const uint64_t *v, uint32_t count) {
    struct vp_node *list = vp_node_new(w->ctx, VP_NODE_LIST, (struct vp_pos){0});
    list->items = VP_NEW_ARRAY(w->ctx->arena, count, struct vp_node *);
    for (uint32_t i = 0; i < count; i++)
        list->items[list->count++] = number(w, v[i]);
    return list;
}

/* What earlier runs said of a quantity, with the new value last. */
static uint32_t collect(struct work *w, uint64_t out[MOST_RUNS], const char *name, uint64_t value) {
    const struct vp_node *list = vp_node_get(vp_node_get(w->old, "runs"), name);
    uint32_t have = list && list->kind == VP_NODE_LIST ? list->count : 0, count = 0;
    for (uint32_t i = have >= MOST_RUNS ? have - MOST_RUNS + 1 : 0; i < have; i++)
        if (vp_node_u64(&out[count], list->items[i]))
            count++;
    out[count++] = value;
    vp_node_set(w->ctx, w->runs, name, (struct vp_pos){0}, number_list(w, out, count));
    return count;
}

/* Median of the runs and of the class's value, which counts as one. */
static uint64_t median(const uint64_t *runs, uint32_t count, uint64_t prior) {
    uint64_t v[MOST_RUNS + 1];
    for (uint32_t i = 0; i <= count; i++) {
        uint64_t x = i < count ? runs[i] : prior;
        uint32_t at = i;
        for (; at > 0 && v[at - 1] > x; at--)
            v[at] = v[at - 1];
        v[at] = x;
    }
    return (v[count / 2] + v[(count + 1) / 2]) / 2;
}

/* A class's half-width after so many runs, the class counted as one. Tried on held-out runs of six
 * cards (tests/accuracy/log-refit.t): counted as four, the sum of their scores falls half as much.
 */
static uint64_t rest_of(uint64_t half_width, uint32_t runs) {
    return (uint64_t)((double)half_width / sqrt((double)runs + 1) + 0.5);
}

/* The interval of `key` from the class's and the runs', all in MiB. */
static void narrow(struct work *w, const char *key, const uint64_t *runs, uint32_t count) {
    struct vp_refit_change *change = &w->out->change[w->out->changes];
    uint64_t old[3], before[3], next[3];
    if (!read_interval(old, w->class_row, key) || w->out->changes == VP_REFIT_CHANGES)
        return;
    if (!read_interval(before, w->old, key))
        memcpy(before, old, sizeof before);
    uint64_t below = rest_of(old[1] - old[0], count), above = rest_of(old[2] - old[1], count);
    next[1] = median(runs, count, old[1]);
    next[0] = (next[1] < old[1] ? next[1] : old[1]);
    next[0] = next[0] > below ? next[0] - below : 0;
    next[2] = (next[1] > old[1] ? next[1] : old[1]) + above;
    for (uint32_t i = 0; i < count; i++) {
        next[0] = runs[i] < next[0] ? runs[i] : next[0];
        next[2] = runs[i] > next[2] ? runs[i] : next[2];
    }
    *change = (struct vp_refit_change){.key = key};
    memcpy(change->before, before, sizeof before);
    memcpy(change->after, next, sizeof next);
    w->out->changes++;
    set(w, key, number_list(w, next, 3));
    if (count > w->out->runs)
        w->out->runs = count;
}

static uint64_t mib(uint64_t bytes) { return (bytes + (1U << 19)) >> 20; }

/* The row that predicted: the card's own, else its class's. */
static const struct vp_node *used(const struct work *w) { return w->old ? w->old : w->class_row; }

/* What the key's likely value should have been: moved by what the prediction was off. */
static void shift(struct work *w, const char *key, const struct vp_refit_term *term) {
    uint64_t now[3], runs[MOST_RUNS];
    if (!term->known || !read_interval(now, used(w), key))
        return;
    uint64_t wanted = now[1] + mib(term->measured), predicted = mib(term->predicted);
    uint32_t count = collect(w, runs, key, wanted > predicted ? wanted - predicted : 0);
    narrow(w, key, runs, count);
}

/* Graphs: base and per layer in proportion; a run that captured none says nothing. What is kept is
 * the measured share of what the class predicts, in thousandths. */
static void scale(struct work *w, const struct vp_refit_term *term) {
    static const char *const KEYS[] = {"graph_base", "graph_layer"};
    uint64_t now[3], class_value[3], runs[MOST_RUNS], scaled[MOST_RUNS];
    if (!term->known || term->predicted == 0 || term->measured == 0 ||
        !read_interval(now, used(w), KEYS[0]) ||
        !read_interval(class_value, w->class_row, KEYS[0]) || class_value[1] == 0)
        return;
    double share =
        (double)term->measured / (double)term->predicted * (double)now[1] / (double)class_value[1];
    uint32_t count = collect(w, runs, "graphs", (uint64_t)(share * 1000 + 0.5));
    for (size_t k = 0; k < sizeof KEYS / sizeof *KEYS; k++) {
        if (!read_interval(class_value, w->class_row, KEYS[k]))
            continue;
        for (uint32_t i = 0; i < count; i++)
            scaled[i] = (class_value[1] * runs[i] + 500) / 1000;
        narrow(w, KEYS[k], scaled, count);
    }
}

/* Which runs: each kind once. */
static const char *measured_by(struct work *w, const char *now) {
    enum { MOST = 400 };
    const char *before = vp_node_text(vp_node_get(w->old, "measured_by"));
    if (!before || strstr(before, now) || strlen(before) > MOST)
        return before ? before : now;
    return vp_arena_printf(w->ctx->arena, "%s; %s", before, now);
}

/* Whose row it is, and what it rests on. */
static void describe(struct work *w, const struct vp_refit *refit) {
    struct vp_arena *arena = w->ctx->arena;
    const struct vp_gpu *gpu = &w->scenario->hardware.gpu;
    const char *class_name = vp_node_text(vp_node_get(w->class_row, "name"));
    struct vp_node *cards = vp_node_new(w->ctx, VP_NODE_LIST, (struct vp_pos){0});
    bool known = gpu->id && gpu->id[0];
    w->out->class_name = class_name ? class_name : "";
    w->out->name =
        vp_arena_printf(arena, "%s (%s)", known ? gpu->id : gpu->arch, w->out->class_name);
    cards->items = VP_NEW_ARRAY(arena, 1, struct vp_node *);
    cards->items[cards->count++] = text(w, known ? gpu->id : gpu->arch);
    set(w, "name", text(w, w->out->name));
    set(w, "class", text(w, w->out->class_name));
    set(w, known ? "gpu" : "arch", cards);
    set(w, "runs", w->runs);
    set(w, "measured_by", text(w, measured_by(w, refit->provenance)));
    set(w, "source", text(w, "import-log"));
}

/* The profile with the card's row right above its class's: rows above both, of later versions, say,
 * still come first. */
static void put_row(struct work *w, const struct vp_node *root) {
    struct vp_ctx *ctx = w->ctx;
    const struct vp_node *list = vp_node_get(root, "overheads");
    struct vp_node *rows = vp_node_new(ctx, VP_NODE_LIST, list->pos);
    struct vp_node *sources = vp_node_new(ctx, VP_NODE_MAP, (struct vp_pos){0});
    struct vp_node *profile = vp_node_new(ctx, VP_NODE_MAP, root->pos);
    rows->items = VP_NEW_ARRAY(ctx->arena, (size_t)list->count + 1, struct vp_node *);
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i] == w->class_row)
            rows->items[rows->count++] = w->row;
        if (list->items[i] != w->old)
            rows->items[rows->count++] = list->items[i];
    }
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

/* The class's row that a card's own row was made from; NULL: it is gone. */
static const struct vp_node *class_of(const struct vp_node *root, const struct vp_node *row) {
    const struct vp_node *list = vp_node_get(root, "overheads");
    const char *name = vp_node_text(vp_node_get(row, "class"));
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i] != row &&
            vp_text_eq(vp_node_text(vp_node_get(list->items[i], "name")), name))
            return list->items[i];
    return NULL;
}

enum vp_status vp_engine_refit(struct vp_ctx *ctx, struct vp_refit_result *out,
                               const struct vp_scenario *scenario, const struct vp_refit *refit) {
    struct vp_engine_profile profile = {.root = NULL};
    struct work w = {.ctx = ctx, .out = out, .scenario = scenario};
    const struct vp_node *row;
    *out = (struct vp_refit_result){.profile = NULL};
    if (scenario->engine.kind != VP_ENGINE_VLLM && scenario->engine.kind != VP_ENGINE_SGLANG) {
        vp_diag_add(ctx->diags, VP_D_UNMODELLED, NULL,
                    "overheads of %s are not refit from a log; its figures can be pinned",
                    scenario->engine.name);
        vp_diag_hint(ctx->diags, "--measured-out FILE writes the scenario with them");
        return VP_ERR_INPUT;
    }
    enum vp_status status = vp_engine_overheads_row(ctx, &row, &profile, scenario);
    if (status != VP_OK)
        return status;
    w.class_row = vp_node_get(row, "class") ? class_of(profile.root, row) : NULL;
    w.old = w.class_row ? row : NULL;
    w.class_row = w.class_row ? w.class_row : row;
    w.row = vp_node_new(ctx, VP_NODE_MAP, row->pos);
    w.runs = vp_node_new(ctx, VP_NODE_MAP, row->pos);
    for (uint32_t i = 0; i < row->count; i++)
        set(&w, row->keys[i], row->items[i]);
    const struct vp_node *runs = vp_node_get(w.old, "runs");
    for (uint32_t i = 0; runs && runs->kind == VP_NODE_MAP && i < runs->count; i++)
        vp_node_set(ctx, w.runs, runs->keys[i], (struct vp_pos){0}, runs->items[i]);
    shift(&w, scenario->parallel.tensor > 1 ? "non_torch_group" : "non_torch", &refit->non_torch);
    scale(&w, &refit->graphs);
    shift(&w, "load", &refit->load);
    if (out->changes == 0)
        return VP_OK; /* the log says nothing of what a profile holds */
    describe(&w, refit);
    put_row(&w, profile.root);
    return VP_OK;
}
