/* serve.prompt_tokens, serve.output_tokens: a number or a distribution. */
#include "planner/import/traffic_parts.h"

#include <math.h>

#include "planner/base/text.h"

static const char LENGTH_HINT[] =
    "a number (the mean), or {lognormal: [mean, sigma]}, {uniform: [low, high]}, "
    "{exponential: mean}, {fixed: n}";
static const char *const KINDS[] = {"fixed", "uniform", "exponential", "lognormal"};

/* The mean of a lognormal distribution with this median. */
static double mean_of_median(double median, double sigma) {
    return median * exp(sigma * sigma / 2);
}

/* {mean | median, sigma} of a lognormal distribution, {low, high} of a uniform one. */
static bool read_named(struct vp_reading *r, struct vp_lengths *out, const struct vp_node *map,
                       const char *path) {
    static const char *const NAMES[] = {"mean", "median",       "sigma", "low",
                                        "high", "distribution", "max"};
    double value[7] = {0};
    bool said[7] = {false};
    const struct vp_node *sigma = vp_node_get(map, "sigma");

    for (uint32_t i = 0; i < map->count; i++) {
        int k = vp_traffic_key_of(r, path, map, i, NAMES, 7);
        if (k < 0)
            return false;
        if (k == 5)
            continue;
        bool ok = k == 2 ? vp_traffic_read_number(&value[k], map->items[i], 0, 5)
                         : vp_traffic_read_tokens(&value[k], map->items[i]);
        if (!ok) {
            vp_traffic_refuse(r, map->items[i],
                              vp_arena_printf(r->ctx->arena, "%s.%s", path, NAMES[k]),
                              k == 2 ? "a number from 0 to 5" : "a number of tokens above 0", NULL);
            return false;
        }
        said[k] = true;
    }
    out->low = value[3];
    out->high = value[4];
    out->sigma = value[2];
    out->mean = said[1] ? mean_of_median(value[1], value[2]) : value[0];
    out->most = value[6];
    bool lognormal = out->kind == VP_LENGTH_LOGNORMAL, uniform = out->kind == VP_LENGTH_UNIFORM;
    bool ok = uniform ? said[3] && said[4] && !said[0] && !said[1] && !said[2]
                      : said[0] != said[1] && !said[3] && !said[4] &&
                            (lognormal ? said[2] : !sigma && !said[1]);
    if (!ok)
        vp_traffic_refuse(r, map, path,
                          uniform     ? "{low, high}"
                          : lognormal ? "{mean, sigma} or {median, sigma}"
                                      : "{mean}",
                          LENGTH_HINT);
    return ok;
}

/* What stands behind the name of a distribution: a number, a pair, a map of names. */
static bool read_parameters(struct vp_reading *r, struct vp_lengths *out,
                            const struct vp_node *node, const char *path) {
    bool pair = out->kind == VP_LENGTH_LOGNORMAL || out->kind == VP_LENGTH_UNIFORM;

    if (node->kind == VP_NODE_MAP)
        return read_named(r, out, node, path);
    if (!pair && vp_traffic_read_tokens(&out->mean, node))
        return true;
    if (pair && node->kind == VP_NODE_LIST && node->count == 2) {
        bool lognormal = out->kind == VP_LENGTH_LOGNORMAL;
        double *first = lognormal ? &out->mean : &out->low;
        if (vp_traffic_read_tokens(first, node->items[0]) &&
            (lognormal ? vp_traffic_read_number(&out->sigma, node->items[1], 0, 5)
                       : vp_traffic_read_tokens(&out->high, node->items[1])))
            return true;
    }
    vp_traffic_refuse(r, node, path,
                      out->kind == VP_LENGTH_LOGNORMAL
                          ? "[mean, sigma], the mean in tokens, sigma from 0 to 5"
                      : out->kind == VP_LENGTH_UNIFORM ? "[low, high], both in tokens"
                                                       : "a number of tokens above 0",
                      NULL);
    return false;
}

static bool check_uniform(struct vp_reading *r, struct vp_lengths *out, const struct vp_node *node,
                          const char *path) {
    if (out->kind != VP_LENGTH_UNIFORM)
        return true;
    out->low = floor(out->low);
    out->high = floor(out->high);
    out->mean = (out->low + out->high) / 2;
    if (out->low >= 1 && out->low <= out->high)
        return true;
    vp_traffic_refuse(r, node, path, "[low, high] with 1 <= low <= high", NULL);
    return false;
}

/* {lognormal: [250, 1.0]}, {lognormal: {median: 150, sigma: 1}, max: 4096},
 * {distribution: lognormal, mean: 250, sigma: 1}. */
static bool read_distribution(struct vp_reading *r, struct vp_lengths *out,
                              const struct vp_node *map, const char *path) {
    const struct vp_node *name = vp_node_get(map, "distribution"), *given = map;
    const struct vp_node *most = vp_node_get(map, "max");
    const char *wanted = name ? vp_node_text(name) : NULL;
    int kind = -1;

    for (int k = 0; k < 4; k++) {
        const struct vp_node *node = vp_node_get(map, KINDS[k]);
        if (name ? wanted && vp_name_eq(wanted, KINDS[k]) : node != NULL) {
            kind = k;
            given = name ? map : node;
        }
    }
    uint32_t keys = 1 + (most != NULL);
    if (kind < 0 || (!name && map->count != keys)) {
        vp_traffic_refuse(r, name ? name : map, path,
                          "a number of tokens or a distribution of them", LENGTH_HINT);
        return false;
    }
    *out = (struct vp_lengths){.kind = (enum vp_length_kind)kind};
    path = name ? path : vp_arena_printf(r->ctx->arena, "%s.%s", path, KINDS[kind]);
    if (!read_parameters(r, out, given, path) || !check_uniform(r, out, given, path))
        return false;
    if (most && !vp_traffic_read_tokens(&out->most, most)) {
        vp_traffic_refuse(r, most, vp_arena_printf(r->ctx->arena, "%s.max", path),
                          "a number of tokens", NULL);
        return false;
    }
    return true;
}

bool vp_traffic_read_lengths(struct vp_reading *r, struct vp_lengths *out,
                             const struct vp_node *node, const char *path) {
    if (node->kind == VP_NODE_MAP)
        return read_distribution(r, out, node, path);
    *out = (struct vp_lengths){.kind = VP_LENGTH_FIXED};
    if (vp_traffic_read_tokens(&out->mean, node))
        return true;
    vp_traffic_refuse(r, node, path, "a number of tokens or a distribution of them", LENGTH_HINT);
    return false;
}

static uint64_t whole_mean(const struct vp_lengths *lengths) {
    double mean = lengths->most > 0 ? fmin(lengths->mean, lengths->most) : lengths->mean;
    return (uint64_t)fmax(floor(mean + 0.5), 1);
}

void vp_traffic_read_length_field(struct vp_reading *r, enum vp_field field, uint64_t *mean,
                                  struct vp_lengths *out, const struct vp_node *node) {
    const char *path = vp_field_info(field)->path;
    struct vp_lengths lengths;

    if (node->kind != VP_NODE_MAP) {
        vp_value_read(r, field, node, VP_ORIGIN_FILE, path);
        return;
    }
    if (vp_traffic_is_said(r, field))
        return;
    if (!read_distribution(r, &lengths, node, path))
        return;
    vp_traffic_takes(r, field, node);
    *out = lengths;
    *mean = whole_mean(&lengths);
}
