#include "planner/recompute/intervals.h"

#include <string.h>

static bool same_options(const struct vp_chain *c, uint32_t a, uint32_t b, bool all) {
    uint32_t count = all ? c->option_counts[a] : 1;
    if (all && count != c->option_counts[b])
        return false;
    return memcmp(c->options[a], c->options[b], count * sizeof *c->options[a]) == 0;
}

/* All but the input, which belongs to the stage before. */
static bool same_stage(const struct vp_chain *c, uint32_t a, uint32_t b, bool options) {
    if (a == c->n - 1 || b == c->n - 1) /* the loss follows the last one */
        return a == b;
    return c->x[a + 1] == c->x[b + 1] && c->g[a] == c->g[b] && c->g[a + 1] == c->g[b + 1] &&
           c->f[a] == c->f[b] && c->b[a] == c->b[b] && c->wn[a] == c->wn[b] &&
           (!c->held || c->held[a] == c->held[b]) && same_options(c, a, b, options);
}

/* kinds[i]: the first stage that is the same as stage i. Quadratic in the number of kinds. */
static uint32_t *find_kinds(struct vp_arena *arena, const struct vp_chain *c, bool options) {
    uint32_t *kinds = VP_NEW_ARRAY(arena, c->n, uint32_t);
    for (uint32_t i = 0; i < c->n; i++) {
        kinds[i] = i;
        for (uint32_t k = 0; k < i && kinds[i] == i; k++)
            if (kinds[k] == k && same_stage(c, k, i, options))
                kinds[i] = k;
    }
    return kinds;
}

/* A hash table from (id without the last stage, kind of the last stage) to id. */
struct table {
    uint64_t *keys; /* + 1; 0: empty */
    uint32_t *ids;
    size_t mask;
};

static uint32_t *find(struct table *t, uint64_t key) {
    size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & t->mask;
    while (t->keys[at] && t->keys[at] != key + 1)
        at = (at + 1) & t->mask;
    if (!t->keys[at]) {
        t->keys[at] = key + 1;
        t->ids[at] = UINT32_MAX;
    }
    return &t->ids[at];
}

void vp_intervals_make(struct vp_arena *arena, struct vp_intervals *out, const struct vp_chain *c,
                       bool options) {
    uint32_t n = c->n, *kinds = find_kinds(arena, c, options);
    size_t all = (size_t)n * (n + 1) / 2, slots = 4;
    while (slots < 2 * all)
        slots *= 2;
    struct table table = {.keys = VP_NEW_ARRAY(arena, slots, uint64_t),
                          .ids = VP_NEW_ARRAY(arena, slots, uint32_t),
                          .mask = slots - 1};
    *out = (struct vp_intervals){.n = n,
                                 .id = VP_NEW_ARRAY(arena, (size_t)n * n, uint32_t),
                                 .items = VP_NEW_ARRAY(arena, all, struct vp_interval)};
    for (uint32_t length = 1; length <= n; length++) {
        for (uint32_t i = 0; i + length <= n; i++) {
            uint32_t l = i + length - 1;
            uint64_t shorter = length > 1 ? vp_interval_id(out, i, l - 1) + 1 : 0;
            uint32_t *id = find(&table, shorter * n + kinds[l]);
            if (*id == UINT32_MAX) {
                *id = out->count;
                out->items[out->count++] = (struct vp_interval){i, l};
                out->splits += length - 1;
            }
            out->id[(size_t)i * n + l] = *id;
        }
    }
}
