/* serve.arrival: texts and maps -> how requests arrive. */
#include "planner/import/traffic_parts.h"

#include <math.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"

/* More is a typing error, and would overflow what is simulated. */
static const double MOST_RATE = 1e6, MOST_SECONDS = 1e9;

static bool read_rate(double *out, const struct vp_node *node) {
    return vp_node_is_scalar(node) && vp_parse_rate(out, node->text) && *out <= MOST_RATE;
}

static bool read_seconds(double *out, const struct vp_node *node) {
    return vp_node_is_scalar(node) && vp_parse_seconds(out, node->text) && *out <= MOST_SECONDS;
}

static const char ARRIVAL_HINT[] =
    "closed_loop, batch, poisson:4/s, gamma:4/s:2 (rate and coefficient of variation), "
    "ramp:1/s:8/s:600s (from, to, over), or trace";

static bool bad_arrival(struct vp_reading *r, const struct vp_node *node, const char *want) {
    vp_traffic_refuse(r, node, "serve.arrival", want, ARRIVAL_HINT);
    return false;
}

static bool read_poisson(struct vp_reading *r, struct vp_arrival *out, const struct vp_node *node) {
    const struct vp_node *rate = node->kind == VP_NODE_MAP ? vp_node_get(node, "rate") : node;

    out->kind = VP_ARRIVAL_POISSON;
    bool ok = rate && (node->kind != VP_NODE_MAP || node->count == 1) &&
              read_rate(&out->per_s, rate) && out->per_s > 0;
    return ok || bad_arrival(r, node, "a rate above 0 behind poisson");
}

static bool read_gamma(struct vp_reading *r, struct vp_arrival *out, const struct vp_node *node) {
    const struct vp_node *rate = vp_node_get(node, "rate"), *cv = vp_node_get(node, "cv");

    out->kind = VP_ARRIVAL_GAMMA;
    bool ok = rate && cv && node->count == 2 && read_rate(&out->per_s, rate) && out->per_s > 0 &&
              vp_traffic_read_number(&out->cv, cv, 0.01, 100);
    return ok ||
           bad_arrival(r, node, "{gamma: {rate, cv}}, a rate above 0 and cv from 0.01 to 100");
}

/* The first point at 0, times ascending, some rate above 0 at the end or in between. */
static bool check_ramp(struct vp_reading *r, const struct vp_arrival *a,
                       const struct vp_node *node) {
    bool ok = a->points > 0 && !(a->point[0].at_s > 0), some = false;

    for (uint32_t i = 0; i < a->points; i++) {
        ok = ok && (i == 0 || a->point[i].at_s >= a->point[i - 1].at_s);
        some |= a->point[i].per_s > 0;
    }
    return (ok && some) ||
           bad_arrival(r, node,
                       "points [time, rate] from time 0 on, in order, not all without rate");
}

/* {from, to, over}, or [[time, rate], ...]. */
static bool read_ramp(struct vp_reading *r, struct vp_arrival *out, const struct vp_node *node) {
    const struct vp_node *from = vp_node_get(node, "from"), *to = vp_node_get(node, "to");
    const struct vp_node *over = vp_node_get(node, "over");
    uint32_t count = node->kind == VP_NODE_LIST ? node->count : 2;

    out->kind = VP_ARRIVAL_RAMP;
    if (count == 0 || count > VP_RATE_POINTS)
        return bad_arrival(r, node, "at least one and at most 256 points behind ramp");
    out->point = VP_NEW_ARRAY(r->ctx->arena, count, struct vp_rate_point);
    out->points = count;
    for (uint32_t i = 0; node->kind == VP_NODE_LIST && i < count; i++) {
        const struct vp_node *pair = node->items[i];
        if (pair->kind != VP_NODE_LIST || pair->count != 2 ||
            !read_seconds(&out->point[i].at_s, pair->items[0]) ||
            !read_rate(&out->point[i].per_s, pair->items[1]))
            return bad_arrival(r, pair, "a point [time, rate]");
    }
    if (node->kind != VP_NODE_LIST &&
        (!from || !to || !over || node->count != 3 || !read_rate(&out->point[0].per_s, from) ||
         !read_rate(&out->point[1].per_s, to) || !read_seconds(&out->point[1].at_s, over)))
        return bad_arrival(r, node, "{ramp: {from, to, over}} or {ramp: [[time, rate], ...]}");
    return check_ramp(r, out, node);
}

/* "gamma:4/s:2" as the map it stands for; NULL: too many or too few parts. */
static const struct vp_node *map_of_text(struct vp_reading *r, const struct vp_node *node,
                                         const char *text, const char *const *names, int count) {
    struct vp_node *map = vp_node_new(r->ctx, VP_NODE_MAP, node->pos);

    for (int i = 0; i < count; i++) {
        size_t n = strcspn(text, ":");
        const char *part = vp_arena_text(r->ctx->arena, text, n);
        vp_node_set(r->ctx, map, names[i], node->pos,
                    vp_node_scalar(r->ctx, VP_NODE_TEXT, part, node->pos));
        if ((text[n] == ':') != (i + 1 < count))
            return NULL;
        text += n + (text[n] == ':');
    }
    return map;
}

static const char *const POISSON[] = {"rate"}, *const GAMMA[] = {"rate", "cv"},
                         *const RAMP[] = {"from", "to", "over"};

/* Processes with figures: keys of a map, and parts of a text in the same order. */
static const struct {
    const char *name;
    const char *const *parts;
    int count;
    bool (*read)(struct vp_reading *, struct vp_arrival *, const struct vp_node *);
} FORMS[] = {{"poisson", POISSON, 1, read_poisson},
             {"gamma", GAMMA, 2, read_gamma},
             {"ramp", RAMP, 3, read_ramp}};
enum { FORM_COUNT = sizeof FORMS / sizeof *FORMS };

static bool read_arrival_text(struct vp_reading *r, struct vp_arrival *out,
                              const struct vp_node *node) {
    static const struct {
        const char *name;
        enum vp_arrival_kind kind;
    } WORDS[] = {{"closed_loop", VP_ARRIVAL_CLOSED},
                 {"batch", VP_ARRIVAL_BATCH},
                 {"trace", VP_ARRIVAL_TRACE}};

    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (vp_name_eq(node->text, WORDS[i].name)) {
            out->kind = WORDS[i].kind;
            return true;
        }
    for (size_t i = 0; i < FORM_COUNT; i++) {
        size_t n = strlen(FORMS[i].name);
        if (!vp_text_starts(node->text, FORMS[i].name) || node->text[n] != ':')
            continue;
        const struct vp_node *map =
            map_of_text(r, node, node->text + n + 1, FORMS[i].parts, FORMS[i].count);
        struct vp_reading quiet = *r;
        struct vp_diags diags = {.arena = r->ctx->arena};
        struct vp_ctx ctx = *r->ctx;
        ctx.diags = &diags; /* the fault is told of the text that was written */
        quiet.ctx = &ctx;
        if (map && FORMS[i].read(&quiet, out, map))
            return true;
        return bad_arrival(r, node, "an arrival process");
    }
    return bad_arrival(r, node, "an arrival process");
}

/* {poisson: ...} and the like. */
static bool read_arrival_map(struct vp_reading *r, struct vp_arrival *out,
                             const struct vp_node *node) {
    for (size_t i = 0; i < FORM_COUNT; i++)
        if (node->kind == VP_NODE_MAP && node->count == 1 &&
            strcmp(node->keys[0], FORMS[i].name) == 0)
            return FORMS[i].read(r, out, node->items[0]);
    return bad_arrival(r, node, "an arrival process");
}

void vp_traffic_read_arrival(struct vp_reading *r, const struct vp_node *node) {
    struct vp_arrival arrival = {0};

    if (vp_node_is_null(node) || vp_traffic_is_said(r, VP_F_ARRIVAL))
        return;
    bool ok = vp_node_is_scalar(node) ? read_arrival_text(r, &arrival, node)
                                      : read_arrival_map(r, &arrival, node);
    if (!ok)
        return;
    r->out->traffic.arrival = arrival;
    vp_traffic_keep_text(r, VP_F_ARRIVAL, &r->out->serve.arrival, node);
}
