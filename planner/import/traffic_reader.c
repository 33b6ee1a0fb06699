#include "planner/import/traffic_reader.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/import/document.h"
#include "planner/import/traffic_parts.h"

static bool read_count(uint64_t *out, const struct vp_node *node, uint64_t most) {
    return vp_node_is_scalar(node) && vp_node_u64(out, node) && *out > 0 && *out <= most;
}

/* ---- prefixes and classes ---- */

/* A number of tokens, or {tokens, groups}. What is set already stays: the command line was first.
 */
static void read_prefix(struct vp_reading *r, struct vp_shared_prefix *out,
                        const struct vp_node *node, const char *path) {
    static const char *const NAMES[] = {"tokens", "groups"};
    enum { MOST_GROUPS = 1000000 };
    double tokens;

    if (node->kind != VP_NODE_MAP) {
        if (!vp_traffic_read_tokens(&tokens, node))
            vp_traffic_refuse(r, node, path, "a number of tokens, or {tokens, groups}", NULL);
        else if (out->tokens == 0)
            out->tokens = (uint64_t)tokens;
        return;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        int k = vp_traffic_key_of(r, path, node, i, NAMES, 2);
        uint64_t groups;
        bool ok = k < 0 || (k == 0 ? vp_traffic_read_tokens(&tokens, node->items[i])
                                   : read_count(&groups, node->items[i], MOST_GROUPS));
        if (!ok)
            vp_traffic_refuse(
                r, node->items[i], vp_arena_printf(r->ctx->arena, "%s.%s", path, NAMES[k]),
                k ? "a whole number from 1 to 1000000" : "a number of tokens above 0", NULL);
        else if (k == 0 && out->tokens == 0)
            out->tokens = (uint64_t)tokens;
        else if (k == 1 && out->groups == 0)
            out->groups = groups;
    }
}

static void read_class(struct vp_reading *r, struct vp_request_class *out,
                       const struct vp_node *map, const char *path) {
    static const char *const NAMES[] = {"name",          "share",    "prompt_tokens",
                                        "output_tokens", "priority", "prefix"};
    double priority = 0;

    for (uint32_t i = 0; i < map->count; i++) {
        const struct vp_node *value = map->items[i];
        int k = vp_traffic_key_of(r, path, map, i, NAMES, 6);
        const char *label = k < 0 ? path : vp_arena_printf(r->ctx->arena, "%s.%s", path, NAMES[k]);
        if (k == 0 && !(out->name = vp_node_text(value)))
            vp_traffic_refuse(r, value, label, "text", NULL);
        if (k == 1 && (!vp_traffic_read_number(&out->share, value, 0, 1e6) || !(out->share > 0)))
            vp_traffic_refuse(r, value, label, "a number above 0",
                              "shares are divided by their sum");
        if (k == 2)
            vp_traffic_read_lengths(r, &out->prompt, value, label);
        if (k == 3)
            vp_traffic_read_lengths(r, &out->output, value, label);
        if (k == 4) {
            if (!vp_traffic_read_number(&priority, value, -1e6, 1e6) || floor(priority) < priority)
                vp_traffic_refuse(r, value, label, "a whole number", "smaller goes first");
            out->priority = (int64_t)priority;
        }
        if (k == 5)
            read_prefix(r, &out->prefix, value, label);
    }
    if (!vp_node_get(map, "share"))
        vp_traffic_refuse(r, map, path, "a class with a share of all requests", "share: 0.3");
}

static void read_classes(struct vp_reading *r, const struct vp_node *node) {
    struct vp_traffic *t = &r->out->traffic;

    if (vp_node_is_null(node) || vp_traffic_is_said(r, VP_F_CLASSES))
        return;
    if (node->kind != VP_NODE_LIST || node->count == 0 || node->count > VP_REQUEST_CLASSES) {
        vp_traffic_refuse(
            r, node, "serve.classes", "a list of 1 to 16 classes of requests",
            "[{name: chat, share: 0.7, prompt_tokens: 800, output_tokens: 200}, ...]");
        return;
    }
    t->class = VP_NEW_ARRAY(r->ctx->arena, node->count, struct vp_request_class);
    t->classes = node->count;
    for (uint32_t i = 0; i < node->count; i++) {
        const char *path = vp_arena_printf(r->ctx->arena, "serve.classes[%" PRIu32 "]", i);
        t->class[i] = (struct vp_request_class){
            .name = vp_arena_printf(r->ctx->arena, "class %" PRIu32, i + 1)};
        if (node->items[i]->kind == VP_NODE_MAP)
            read_class(r, &t->class[i], node -> items[i], path);
        else
            vp_traffic_refuse(r, node->items[i], path, "a map", NULL);
    }
    vp_traffic_keep_text(r, VP_F_CLASSES, &r->out->serve.classes_text, node);
}

/* ---- promises ---- */

static bool promised(const struct vp_slo *slo, const char *name) {
    for (uint32_t i = 0; i < slo->count; i++)
        if (strcmp(slo->limit[i].name, name) == 0)
            return true;
    return false;
}

static void read_limit(struct vp_reading *r, const char *name, const struct vp_pos *name_pos,
                       const struct vp_node *node) {
    struct vp_slo *slo = &r->out->slo;
    const char *path = vp_arena_printf(r->ctx->arena, "serve.slo.%s", name);
    struct vp_slo_limit limit;

    if (promised(slo, name)) /* on the command line */
        return;
    switch (vp_slo_limit_parse(&limit, name, vp_node_is_scalar(node) ? node->text : "")) {
    case VP_SLO_BAD_NAME:
        vp_diag_add(r->ctx->diags, VP_D_UNKNOWN_KEY, name_pos,
                    "\"%.100s\" in serve.slo is no latency that is promised", name);
        vp_diag_hint(r->ctx->diags, "%s", vp_slo_names());
        return;
    case VP_SLO_BAD_TIME:
        vp_traffic_refuse(r, node, path, "a time above 0 with a unit", "50 ms, 2 s, 1.5 min");
        return;
    case VP_SLO_FINE:
        break;
    }
    if (slo->count == VP_SLO_LIMITS)
        vp_traffic_refuse(r, node, path, "one of at most 8 limits", NULL);
    else
        slo->limit[slo->count++] = limit;
}

static void read_slo(struct vp_reading *r, const struct vp_node *node) {
    struct vp_buf text = {.arena = r->ctx->arena};
    const struct vp_slo *slo = &r->out->slo;

    if (!vp_reading_is_map(r, node, "serve.slo"))
        return;
    for (uint32_t i = 0; i < node->count; i++)
        if (!vp_node_is_null(node->items[i]))
            read_limit(r, node->keys[i], &node->key_pos[i], node->items[i]);
    vp_traffic_takes(r, VP_F_SLO, node);
    for (uint32_t i = 0; i < slo->count; i++)
        vp_buf_printf(&text, "%s%s: %s", i ? ", " : "{", slo->limit[i].name, slo->limit[i].text);
    r->out->serve.slo_text =
        slo->count ? vp_arena_printf(r->ctx->arena, "%s}", vp_buf_text(&text)) : NULL;
}

/* ---- copies ---- */

static void read_routing(struct vp_reading *r, const struct vp_node *node) {
    static const char *const NAMES[] = {"round_robin", "least_requests", "least_tokens",
                                        "prefix_affinity"};
    enum { COUNT = sizeof NAMES / sizeof *NAMES };
    const char *text = vp_node_text(node);

    if (!vp_traffic_takes(r, VP_F_ROUTING, node))
        return;
    for (int i = 0; text && i < COUNT; i++)
        if (vp_name_eq(text, NAMES[i])) {
            r->out->serve.routing = NAMES[i];
            return;
        }
    vp_traffic_refuse(r, node, "serve.routing",
                      "round_robin, least_requests, least_tokens or prefix_affinity", NULL);
}

/* {replicas, tensor} of one kind of copy. What is set already stays. */
static void read_side(struct vp_reading *r, const char *path, uint64_t *replicas, uint64_t *tensor,
                      const struct vp_node *node) {
    static const char *const NAMES[] = {"replicas", "tensor"};
    enum { MOST = 4096 };

    if (!vp_reading_is_map(r, node, path))
        return;
    for (uint32_t i = 0; i < node->count; i++) {
        int k = vp_traffic_key_of(r, path, node, i, NAMES, 2);
        uint64_t value, *out = k ? tensor : replicas;
        if (k < 0)
            continue;
        if (!read_count(&value, node->items[i], MOST))
            vp_traffic_refuse(r, node->items[i],
                              vp_arena_printf(r->ctx->arena, "%s.%s", path, NAMES[k]),
                              "a whole number from 1 to 4096", NULL);
        else if (*out == 0)
            *out = value;
    }
}

static void read_disaggregated(struct vp_reading *r, const struct vp_node *node) {
    static const char *const NAMES[] = {"prefill", "decode", "link_gbs"};
    struct vp_disaggregation *d = &r->out->traffic.disaggregation;
    double gbs;

    if (vp_value_is_harmless(node) || !vp_reading_is_map(r, node, "serve.disaggregated"))
        return;
    d->on = true;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct vp_node *value = node->items[i];
        int k = vp_traffic_key_of(r, "serve.disaggregated", node, i, NAMES, 3);
        if (k == 0)
            read_side(r, "serve.disaggregated.prefill", &d->prefill_replicas, &d->prefill_tensor,
                      value);
        if (k == 1)
            read_side(r, "serve.disaggregated.decode", &d->decode_replicas, &d->decode_tensor,
                      value);
        if (k == 2 && (!vp_traffic_read_number(&gbs, value, 0, 1e5) || !(gbs > 0)))
            vp_traffic_refuse(r, value, "serve.disaggregated.link_gbs", "a number of GB/s above 0",
                              NULL);
        else if (k == 2 && !(d->link_gbs > 0))
            d->link_gbs = gbs;
    }
    vp_traffic_keep_text(r, VP_F_DISAGGREGATED, &r->out->serve.disaggregated_text, node);
}

/* ---- the whole ---- */

static void read_prompt(struct vp_reading *r, const struct vp_node *node) {
    vp_traffic_read_length_field(r, VP_F_PROMPT_TOKENS, &r->out->serve.prompt_tokens,
                                 &r->out->traffic.prompt, node);
}

static void read_output(struct vp_reading *r, const struct vp_node *node) {
    vp_traffic_read_length_field(r, VP_F_OUTPUT_TOKENS, &r->out->serve.output_tokens,
                                 &r->out->traffic.output, node);
}

static void read_own_prefix(struct vp_reading *r, const struct vp_node *node) {
    if (vp_value_is_harmless(node))
        return;
    read_prefix(r, &r->out->traffic.prefix, node, "serve.prefix");
    vp_traffic_keep_text(r, VP_F_PREFIX, &r->out->serve.prefix_text, node);
}

bool vp_traffic_key(struct vp_reading *r, const char *key, const struct vp_node *node) {
    static const struct {
        const char *key;
        void (*read)(struct vp_reading *, const struct vp_node *);
    } KEYS[] = {{"prompt_tokens", read_prompt},
                {"output_tokens", read_output},
                {"arrival", vp_traffic_read_arrival},
                {"prefix", read_own_prefix},
                {"classes", read_classes},
                {"slo", read_slo},
                {"routing", read_routing},
                {"disaggregated", read_disaggregated}};

    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (strcmp(KEYS[i].key, key) == 0) {
            KEYS[i].read(r, node);
            return true;
        }
    return false;
}

/* ---- what must agree ---- */

/* A trace named on the command line is played, whatever the file says about arrivals; and the other
 * way round. Said in one place, both must agree. */
static void settle_trace(struct vp_reading *r, const char *base) {
    struct vp_scenario *s = r->out;
    struct vp_source *trace = &s->source[VP_F_TRACE], *arrival = &s->source[VP_F_ARRIVAL];
    struct vp_traffic *t = &s->traffic;
    bool said = arrival->origin >= VP_ORIGIN_FILE;

    if (said && !s->trace && t->arrival.kind == VP_ARRIVAL_TRACE) {
        vp_diag_add(r->ctx->diags, VP_D_MISSING_VALUE, &arrival->pos,
                    "arrivals are those of a trace, but none is named");
        vp_diag_hint(r->ctx->diags, "serve.trace: FILE, or --trace FILE");
        return;
    }
    if (!s->trace)
        return;
    if (said && t->arrival.kind != VP_ARRIVAL_TRACE && arrival->origin == trace->origin) {
        vp_diag_add(r->ctx->diags, VP_D_CONTRADICTION, &trace->pos,
                    "%s says when requests come, but so does %s (%s)",
                    vp_source_show(r->ctx, trace), vp_source_show(r->ctx, arrival),
                    s->serve.arrival);
        vp_diag_hint(r->ctx->diags, "keep one of the two");
        return;
    }
    if (said && t->arrival.kind != VP_ARRIVAL_TRACE && arrival->origin > trace->origin) {
        s->trace = NULL; /* the command line's process outranks the file's trace */
        *trace = (struct vp_source){0};
        return;
    }
    const char *path = vp_document_expand(r->ctx, s->trace);
    t->trace_path = trace->origin == VP_ORIGIN_FLAG ? path : vp_io_join(r->ctx, base, path);
    t->arrival = (struct vp_arrival){.kind = VP_ARRIVAL_TRACE};
    s->serve.arrival = "trace";
    *arrival = (struct vp_source){.origin = trace->origin, .pos = trace->pos, .key = trace->key};
}

/* Shares that add up to 1; lengths that a class leaves out are those of all; what plans go by is
 * the mean over classes. */
static void settle_classes(struct vp_reading *r) {
    struct vp_scenario *s = r->out;
    struct vp_traffic *t = &s->traffic;
    double sum = 0, prompt = 0, output = 0;

    for (uint32_t i = 0; i < t->classes; i++)
        sum += t->class[i].share;
    for (uint32_t i = 0; i < t->classes; i++) {
        struct vp_request_class *c = &t->class[i];
        c->share = sum > 0 ? c->share / sum : 0;
        if (!(c->prompt.mean > 0))
            c->prompt = t->prompt;
        if (!(c->output.mean > 0))
            c->output = t->output;
        if (c->prefix.tokens == 0)
            c->prefix = t->prefix;
        if (c->prefix.groups == 0)
            c->prefix.groups = 1;
        prompt += c->share * c->prompt.mean;
        output += c->share * c->output.mean;
        if (c->prompt.mean > 0 && c->output.mean > 0)
            continue;
        vp_diag_add(r->ctx->diags, VP_D_MISSING_VALUE, &s->source[VP_F_CLASSES].pos,
                    "serve.classes: \"%.100s\" lacks %s, and serve has none for all", c->name,
                    c->prompt.mean > 0 ? "output_tokens" : "prompt_tokens");
        return;
    }
    static const char WHY[] = "the mean over serve.classes";
    if (t->classes && s->source[VP_F_PROMPT_TOKENS].origin != VP_ORIGIN_FLAG) {
        s->serve.prompt_tokens = (uint64_t)fmax(floor(prompt + 0.5), 1);
        s->source[VP_F_PROMPT_TOKENS] = (struct vp_source){.origin = VP_ORIGIN_DERIVED, .why = WHY};
    }
    if (t->classes && s->source[VP_F_OUTPUT_TOKENS].origin != VP_ORIGIN_FLAG) {
        s->serve.output_tokens = (uint64_t)fmax(floor(output + 0.5), 1);
        s->source[VP_F_OUTPUT_TOKENS] = (struct vp_source){.origin = VP_ORIGIN_DERIVED, .why = WHY};
    }
}

/* A plain number is a fixed length. */
static void settle_length(struct vp_lengths *lengths, uint64_t mean) {
    if (!(lengths->mean > 0) && mean > 0)
        *lengths = (struct vp_lengths){.kind = VP_LENGTH_FIXED, .mean = (double)mean};
}

void vp_traffic_settle(struct vp_reading *r, const char *base) {
    struct vp_traffic *t = &r->out->traffic;

    settle_length(&t->prompt, r->out->serve.prompt_tokens);
    settle_length(&t->output, r->out->serve.output_tokens);
    if (t->prefix.groups == 0)
        t->prefix.groups = 1;
    settle_trace(r, base);
    settle_classes(r);
    if (t->disaggregation.on) {
        struct vp_disaggregation *d = &t->disaggregation;
        d->prefill_replicas += d->prefill_replicas == 0;
        d->decode_replicas += d->decode_replicas == 0;
    }
}
