/* `budget` of a scenario (planner/model/budget.h). */
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/document.h"
#include "planner/import/record_reader.h"
#include "planner/import/scenario_parts.h"

/* ---- messages and small values ---- */

static void refuse(struct vp_reading *r, const struct vp_node *node, const char *path,
                   const char *want) {
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s must be %s, not %.100s",
                vp_reading_label(r, path), want,
                vp_node_is_scalar(node) && *node->text ? node->text
                                                       : vp_node_kind_name(node->kind));
}

static void missing(struct vp_reading *r, const struct vp_node *node, const char *message,
                    const char *hint) {
    vp_diag_add(r->ctx->diags, VP_D_MISSING_VALUE, &node->pos, "%s", message);
    vp_diag_hint(r->ctx->diags, "%s", hint);
}

static bool read_size(uint64_t *out, const struct vp_node *node) {
    return vp_node_is_scalar(node) && vp_parse_size(out, node->text) && *out <= INT64_MAX;
}

/* "5 %" and "5%", or with `bare` a number alone, as parts per billion. */
static bool read_percent(uint64_t *out_ppb, struct vp_ctx *ctx, const struct vp_node *node,
                         double most, bool bare) {
    double percent;
    size_t n = vp_node_is_scalar(node) ? strlen(node->text) : 0;
    bool sign = n > 1 && node->text[n - 1] == '%';
    if (n == 0 || (!sign && !bare))
        return false;
    n -= sign;
    while (n > 1 && node->text[n - 1] == ' ')
        n--;
    if (!vp_parse_real(&percent, vp_arena_text(ctx->arena, node->text, n)) ||
        !(percent >= 0 && percent <= most))
        return false;
    *out_ppb = (uint64_t)(percent * 1e7 + 0.5);
    return true;
}

/* Index of a key among names; `count` and a diagnostic when it is none of them. */
static size_t key_of(struct vp_reading *r, const struct vp_node *map, uint32_t i,
                     const char *section, const char *const *names, size_t count) {
    size_t k = 0;
    while (k < count && strcmp(names[k], map->keys[i]) != 0)
        k++;
    if (k == count)
        vp_reading_unknown(r, section, map->keys[i], &map->key_pos[i], names, count);
    return k;
}

/* ---- bounds ---- */

static const char SIZE[] = "a size: bytes, or text with a unit (\"160 GiB\")";

static bool bound_value(struct vp_reading *r, uint64_t *out, enum vp_bound bound,
                        const struct vp_node *node) {
    switch (bound) {
    case VP_BOUND_HEADROOM:
        return read_size(out, node) ||
               read_percent(&r->out->budget.headroom_ppb, r->ctx, node, 100, false);
    case VP_BOUND_CONTEXT:
        return vp_node_is_scalar(node) &&
               (vp_node_u64(out, node) || vp_parse_tokens(out, node->text)) && *out <= INT64_MAX;
    case VP_BOUND_CONCURRENCY:
        return vp_node_u64(out, node) && *out <= INT64_MAX;
    default:
        return read_size(out, node);
    }
}

static void read_bound(struct vp_reading *r, enum vp_bound bound, const struct vp_node *node) {
    static const char *const WANT[] = {
        [VP_BOUND_MEMORY] = SIZE,
        [VP_BOUND_HEADROOM] = "a size (\"4 GiB\") or a percentage (\"5 %\")",
        [VP_BOUND_HOST] = SIZE,
        [VP_BOUND_CONTEXT] = "a number of tokens (32768 or 32k)",
        [VP_BOUND_CONCURRENCY] = "a number of sequences",
    };
    struct vp_limit *limit = &r->out->budget.bound[bound];
    const char *path = vp_arena_printf(r->ctx->arena, "budget.%s", vp_bound_name(bound));
    if (limit->given)
        return; /* said on the command line already */
    if (r->out->training && (bound == VP_BOUND_CONTEXT || bound == VP_BOUND_CONCURRENCY))
        vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos,
                    "%s is a bound for serving; this scenario trains", vp_reading_label(r, path));
    else if (!bound_value(r, &limit->value, bound, node))
        refuse(r, node, path, WANT[bound]);
    limit->given = true;
    limit->pos = node->pos;
}

static enum vp_component component_of(struct vp_reading *r, const struct vp_node *map, uint32_t i,
                                      const char *section) {
    const char *names[VP_COMPONENT_COUNT];
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        names[c] = vp_component_name((enum vp_component)c);
    return (enum vp_component)key_of(r, map, i, section, names, VP_COMPONENT_COUNT);
}

static void read_components(struct vp_reading *r, const struct vp_node *node) {
    static const char SECTION[] = "budget.components";
    if (!vp_reading_is_map(r, node, SECTION))
        return;
    for (uint32_t i = 0; i < node->count; i++) {
        enum vp_component c = component_of(r, node, i, SECTION);
        const struct vp_node *value = node->items[i];
        if (c == VP_COMPONENT_COUNT || vp_node_is_null(value))
            continue;
        struct vp_limit *limit = &r->out->budget.component[c];
        if (limit->given)
            continue;
        if (!read_size(&limit->value, value))
            refuse(r, value, vp_arena_printf(r->ctx->arena, "%s.%s", SECTION, node->keys[i]), SIZE);
        limit->given = true;
        limit->pos = value->pos;
    }
}

/* ---- growth ---- */

enum { GROWTH_PERCENT, GROWTH_MIN, GROWTH_COMPONENTS, GROWTH_KEYS };
static const char *const GROWTH_NAMES[] = {"percent", "min", "components"};
static const double MOST_PERCENT = 1000;

/* {percent: 0.5, min: 64 MiB}, or one of the two alone. */
static void read_growth_limit(struct vp_reading *r, struct vp_growth_limit *out,
                              const struct vp_node *node, const char *path) {
    struct vp_growth_limit limit = {.given = true, .pos = node->pos};
    if (out->given)
        return;
    if (vp_node_is_scalar(node)) {
        if (!read_percent(&limit.percent_ppb, r->ctx, node, MOST_PERCENT, false) &&
            !read_size(&limit.min_bytes, node))
            refuse(r, node, path,
                   "{percent: 0.5, min: 64 MiB}, a percentage (\"1 %\"), a size (\"64 MiB\") or 0");
        *out = limit;
        return;
    }
    limit.given = false;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct vp_node *value = node->items[i];
        const char *inner = vp_arena_printf(r->ctx->arena, "%s.%s", path, node->keys[i]);
        bool percent = strcmp(node->keys[i], GROWTH_NAMES[GROWTH_PERCENT]) == 0;
        if ((!percent && strcmp(node->keys[i], GROWTH_NAMES[GROWTH_MIN]) != 0) ||
            vp_node_is_null(value))
            continue;
        if (!limit.given || percent) /* maps merge: the whole may stand elsewhere */
            limit.pos = value->pos;
        limit.given = true;
        if (percent && !read_percent(&limit.percent_ppb, r->ctx, value, MOST_PERCENT, true))
            refuse(r, value, inner, "a percentage of the base, 0 to 1000");
        if (!percent && !read_size(&limit.min_bytes, value))
            refuse(r, value, inner, SIZE);
    }
    *out = limit;
}

static bool is_growth(struct vp_reading *r, const struct vp_node *node, const char *path,
                      size_t keys) {
    if (vp_node_is_scalar(node))
        return true;
    if (!vp_reading_is_map(r, node, path))
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        key_of(r, node, i, path, GROWTH_NAMES, keys);
    return true;
}

static void read_growth(struct vp_reading *r, const struct vp_node *node) {
    static const char PATH[] = "budget.growth", INNER[] = "budget.growth.components";
    struct vp_budget *budget = &r->out->budget;
    if (!is_growth(r, node, PATH, GROWTH_KEYS))
        return;
    read_growth_limit(r, &budget->growth, node, PATH);
    const struct vp_node *components = vp_node_get(node, GROWTH_NAMES[GROWTH_COMPONENTS]);
    if (vp_node_is_null(components) || !vp_reading_is_map(r, components, INNER))
        return;
    for (uint32_t i = 0; i < components->count; i++) {
        enum vp_component c = component_of(r, components, i, INNER);
        const struct vp_node *value = components->items[i];
        const char *path = vp_arena_printf(r->ctx->arena, "%s.%s", INNER, components->keys[i]);
        if (c < VP_COMPONENT_COUNT && !vp_node_is_null(value) &&
            is_growth(r, value, path, GROWTH_COMPONENTS))
            read_growth_limit(r, &budget->component_growth[c], value, path);
    }
}

/* ---- policies ---- */

static void read_at_risk(struct vp_reading *r, const struct vp_node *node) {
    if (!vp_node_is_scalar(node) || !vp_at_risk_parse(&r->out->budget.at_risk, node->text))
        refuse(r, node, "budget.at_risk", "inconclusive, fail, warn or likely");
}

/* Names of checks, "fits" aside: it has no limit that a budget could set. */
static size_t check_names(struct vp_reading *r, const char ***out) {
    struct vp_arena *arena = r->ctx->arena;
    size_t n = 0;
    *out = VP_NEW_ARRAY(arena, VP_BOUND_COUNT + 2 * VP_COMPONENT_COUNT + 1, const char *);
    for (int b = 0; b < VP_BOUND_COUNT; b++)
        (*out)[n++] = vp_bound_name((enum vp_bound)b);
    (*out)[n++] = "growth";
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        const char *name = vp_component_name((enum vp_component)c);
        (*out)[n++] = vp_arena_printf(arena, "components.%s", name);
        (*out)[n++] = vp_arena_printf(arena, "growth.%s", name);
    }
    return n;
}

/* The name as it is kept; NULL and a diagnostic when no check is called so. */
static const char *check_name(struct vp_reading *r, const struct vp_node *node, const char *path) {
    const char **names;
    size_t count = check_names(r, &names);
    const char *text = vp_node_is_scalar(node) ? node->text : NULL;
    for (size_t i = 0; text && i < count; i++)
        if (strcmp(names[i], text) == 0)
            return names[i];
    const char *nearest = text ? vp_text_nearest(text, names, count) : NULL;
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s: no check is called %.100s", path,
                text ? text : vp_node_kind_name(node->kind));
    if (nearest)
        vp_diag_hint(r->ctx->diags, "did you mean %s?", nearest);
    else
        vp_diag_hint(r->ctx->diags,
                     "checks: memory, headroom, host_memory, min_context, min_concurrency, "
                     "components.NAME, growth, growth.NAME");
    return NULL;
}

static void read_warn_only(struct vp_reading *r, const struct vp_node *node) {
    static const char *const KINDS[] = {"components", "measured", "fits"};
    struct vp_budget *budget = &r->out->budget;
    if (node->kind != VP_NODE_LIST) {
        refuse(r, node, "budget.warn_only", "a list of checks ([growth, components.kv_cache])");
        return;
    }
    budget->warn_only = VP_NEW_ARRAY(r->ctx->arena, node->count, const char *);
    for (uint32_t i = 0; i < node->count; i++) {
        const char *name = NULL, *text = vp_node_text(node->items[i]);
        for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++)
            if (vp_text_eq(text, KINDS[k]))
                name = KINDS[k];
        if (!name)
            name = check_name(r, node->items[i], "budget.warn_only");
        if (name)
            budget->warn_only[budget->warn_only_count++] = name;
    }
}

/* ---- waivers ---- */

enum waiver_key {
    W_CHECK,
    W_COMPONENT,
    W_GROWS_BY,
    W_UP_TO,
    W_DOWN_TO,
    W_REASON,
    W_EXPIRES,
    W_KEYS
};

static enum waiver_key amount_key(const struct vp_node *const part[W_KEYS], int *given) {
    enum waiver_key found = W_GROWS_BY;
    *given = 0;
    for (int k = W_GROWS_BY; k <= W_DOWN_TO; k++)
        if (part[k]) {
            found = (enum waiver_key)k;
            (*given)++;
        }
    return found;
}

/* Which check is waived: by its name, or a component's by what is allowed it. */
static bool waived_check(struct vp_reading *r, struct vp_waiver *out, const struct vp_node *node,
                         const struct vp_node *const part[W_KEYS]) {
    static const char HINT[] = "check: growth, or component: kv_cache with grows_by or up_to";
    const char *component = vp_node_text(part[W_COMPONENT]);
    if (!part[W_CHECK] == !part[W_COMPONENT]) {
        missing(r, node, "a waiver is for one check, or for one component", HINT);
        return false;
    }
    if (part[W_CHECK]) {
        out->check = check_name(r, part[W_CHECK], "budget.waivers.check");
        return out->check;
    }
    const char *names[VP_COMPONENT_COUNT];
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        names[c] = vp_component_name((enum vp_component)c);
    if (component && vp_component_find(component) < VP_COMPONENT_COUNT) {
        out->check =
            vp_arena_printf(r->ctx->arena, "%s.%s",
                            out->kind == VP_WAIVER_GROWS_BY ? "growth" : "components", component);
        return true;
    }
    const char *nearest = component ? vp_text_nearest(component, names, VP_COMPONENT_COUNT) : NULL;
    refuse(r, part[W_COMPONENT], "budget.waivers.component", "a component");
    if (nearest)
        vp_diag_hint(r->ctx->diags, "did you mean %s?", nearest);
    return false;
}

/* Growth is waived by how much, limits up or down to what. */
static bool waived_amount(struct vp_reading *r, struct vp_waiver *out, const struct vp_node *node,
                          enum waiver_key key) {
    static const char *const NAMES[] = {
        [W_GROWS_BY] = "grows_by", [W_UP_TO] = "up_to", [W_DOWN_TO] = "down_to"};
    bool growth = vp_text_starts(out->check, "growth"), ok;
    enum vp_bound bound = 0;
    while (bound < VP_BOUND_COUNT && !vp_text_eq(out->check, vp_bound_name(bound)))
        bound++;
    bool lower = bound < VP_BOUND_COUNT && !vp_bound_is_upper(bound);
    enum waiver_key wanted = growth ? W_GROWS_BY : lower ? W_DOWN_TO : W_UP_TO;
    if (key != wanted) {
        vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos, "a waiver of %s says %s, not %s",
                    out->check, NAMES[wanted], NAMES[key]);
        return false;
    }
    if (bound == VP_BOUND_CONTEXT || bound == VP_BOUND_CONCURRENCY)
        ok = bound_value(r, &out->amount, bound, node);
    else
        ok = read_size(&out->amount, node);
    if (!ok)
        refuse(r, node, vp_arena_printf(r->ctx->arena, "budget.waivers.%s", NAMES[key]),
               bound == VP_BOUND_CONTEXT       ? "a number of tokens (32768 or 32k)"
               : bound == VP_BOUND_CONCURRENCY ? "a number of sequences"
                                               : SIZE);
    return ok;
}

/* Why, and until when: both are asked for, so that no waiver stays unnoticed. */
static bool waived_because(struct vp_reading *r, struct vp_waiver *out, const struct vp_node *node,
                           const struct vp_node *const part[W_KEYS]) {
    bool ok = true;
    out->reason = vp_node_text(part[W_REASON]);
    if (!out->reason || !out->reason[strspn(out->reason, " \t")]) {
        missing(r, part[W_REASON] ? part[W_REASON] : node, "a waiver needs a reason",
                "reason: \"context 32K -> 64K, ticket 123\"");
        ok = false;
    }
    out->expires_text = vp_node_text(part[W_EXPIRES]);
    if (!part[W_EXPIRES]) {
        missing(r, node, "a waiver needs a day on which it ends", "expires: 2027-01-31");
        ok = false;
    } else if (!out->expires_text || !vp_parse_day(&out->expires, out->expires_text)) {
        refuse(r, part[W_EXPIRES], "budget.waivers.expires", "a day of the calendar (2027-01-31)");
        ok = false;
    }
    return ok;
}

static void read_waiver(struct vp_reading *r, const struct vp_node *node) {
    static const char *const NAMES[] = {"check",   "component", "grows_by", "up_to",
                                        "down_to", "reason",    "expires"};
    static const char SECTION[] = "budget.waivers";
    const struct vp_node *part[W_KEYS] = {0};
    struct vp_budget *budget = &r->out->budget;
    struct vp_waiver waiver = {.pos = node->pos};
    int given;
    if (node->kind != VP_NODE_MAP) {
        refuse(r, node, SECTION, "a list of maps ({check, grows_by, reason, expires})");
        return;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        size_t k = key_of(r, node, i, SECTION, NAMES, W_KEYS);
        if (k < W_KEYS && !vp_node_is_null(node->items[i]))
            part[k] = node->items[i];
    }
    enum waiver_key key = amount_key(part, &given);
    waiver.kind = key == W_GROWS_BY ? VP_WAIVER_GROWS_BY
                  : key == W_UP_TO  ? VP_WAIVER_UP_TO
                                    : VP_WAIVER_DOWN_TO;
    bool ok = waived_because(r, &waiver, node, part);
    if (!waived_check(r, &waiver, node, part))
        return;
    if (given != 1)
        missing(r, node, "a waiver says how much: one of grows_by, up_to and down_to",
                "grows_by: 2 GiB");
    else if (waived_amount(r, &waiver, part[key], key) && ok)
        budget->waivers[budget->waiver_count++] = waiver;
}

static void read_waivers(struct vp_reading *r, const struct vp_node *node) {
    if (node->kind != VP_NODE_LIST) {
        refuse(r, node, "budget.waivers", "a list");
        return;
    }
    r->out->budget.waivers = VP_NEW_ARRAY(r->ctx->arena, node->count, struct vp_waiver);
    for (uint32_t i = 0; i < node->count; i++)
        read_waiver(r, node->items[i]);
}

/* ---- records ---- */

static void read_tolerance(struct vp_reading *r, struct vp_record *out, const char *key,
                           const struct vp_node *node) {
    struct vp_tolerance *t = &out->tolerances[out->tolerance_count];
    if (vp_node_is_null(node))
        return;
    *t = (struct vp_tolerance){.key = key, .pos = node->pos};
    bool zero = vp_text_eq(vp_node_text(node), "0");
    if (zero || read_percent(&t->ppb, r->ctx, node, 100, false))
        out->tolerance_count++;
    else
        refuse(r, node, "budget.measured.tolerance", "a percentage (\"2 %\") or 0");
}

static void read_tolerances(struct vp_reading *r, struct vp_record *out,
                            const struct vp_node *node) {
    uint32_t count = node->kind == VP_NODE_MAP ? node->count : 1;
    out->tolerances = VP_NEW_ARRAY(r->ctx->arena, count, struct vp_tolerance);
    if (node->kind != VP_NODE_MAP)
        read_tolerance(r, out, NULL, node);
    for (uint32_t i = 0; node->kind == VP_NODE_MAP && i < node->count; i++)
        read_tolerance(r, out, node->keys[i], node->items[i]);
}

static void read_record(struct vp_reading *r, struct vp_record *out, const struct vp_node *node) {
    static const char *const NAMES[] = {"record", "values", "engine", "tolerance"};
    static const char SECTION[] = "budget.measured";
    const struct vp_node *record = node->kind == VP_NODE_MAP ? vp_node_get(node, "record") : node;
    const struct vp_node *values = vp_node_get(node, "values");
    *out = (struct vp_record){.pos = node->pos};
    for (uint32_t i = 0; node->kind == VP_NODE_MAP && i < node->count; i++)
        key_of(r, node, i, SECTION, NAMES, sizeof NAMES / sizeof *NAMES);
    if (!record == !values) {
        missing(r, node, "a measured record is a file, or values",
                "record: FILE, made by import-log --measured-out, or values: {weights_gib: 14.99}");
        return;
    }
    if (record && (!vp_node_is_scalar(record) || !*record->text))
        refuse(r, record, SECTION, "a file that import-log --measured-out made");
    else if (record)
        out->path = vp_io_join(r->ctx, r->from_flags || vp_text_eq(r->base, ".") ? NULL : r->base,
                               vp_document_expand(r->ctx, record->text));
    if (values)
        vp_record_values(r->ctx, out, values);
    vp_record_engine(r->ctx, out, vp_node_get(node, "engine"));
    const struct vp_node *tolerance = vp_node_get(node, "tolerance");
    if (!vp_node_is_null(tolerance))
        read_tolerances(r, out, tolerance);
}

static void read_records(struct vp_reading *r, const struct vp_node *node) {
    struct vp_budget *budget = &r->out->budget;
    if (node->kind != VP_NODE_LIST) {
        refuse(r, node, "budget.measured", "a list");
        return;
    }
    budget->records = VP_NEW_ARRAY(r->ctx->arena, node->count, struct vp_record);
    for (uint32_t i = 0; i < node->count; i++)
        read_record(r, &budget->records[budget->record_count++], node->items[i]);
}

/* ---- the whole ---- */

void vp_scenario_read_budget(struct vp_reading *r, const struct vp_node *node) {
    static void (*const PARTS[])(struct vp_reading *, const struct vp_node *) = {
        [VP_BUDGET_AT_RISK] = read_at_risk,
        [VP_BUDGET_WARN_ONLY] = read_warn_only,
        [VP_BUDGET_WAIVERS] = read_waivers,
        [VP_BUDGET_MEASURED] = read_records,
    };
    enum { COMPONENTS = VP_BOUND_COUNT, GROWTH, FIRST_PART, COUNT = FIRST_PART + VP_BUDGET_PARTS };
    const char *names[COUNT] = {[COMPONENTS] = "components",
                                [GROWTH] = "growth",
                                [FIRST_PART + VP_BUDGET_AT_RISK] = "at_risk",
                                [FIRST_PART + VP_BUDGET_WARN_ONLY] = "warn_only",
                                [FIRST_PART + VP_BUDGET_WAIVERS] = "waivers",
                                [FIRST_PART + VP_BUDGET_MEASURED] = "measured"};
    if (!vp_reading_is_map(r, node, "budget"))
        return;
    for (int b = 0; b < VP_BOUND_COUNT; b++)
        names[b] = vp_bound_name((enum vp_bound)b);
    for (uint32_t i = 0; i < node->count; i++) {
        const struct vp_node *value = node->items[i];
        size_t k = key_of(r, node, i, "budget", names, COUNT);
        if (k == COUNT || vp_node_is_null(value))
            continue;
        if (k < VP_BOUND_COUNT) {
            read_bound(r, (enum vp_bound)k, value);
        } else if (k == COMPONENTS) {
            read_components(r, value);
        } else if (k == GROWTH) {
            read_growth(r, value);
        } else if (!r->budget_given[k - FIRST_PART]) {
            r->budget_given[k - FIRST_PART] = true;
            PARTS[k - FIRST_PART](r, value);
        }
    }
}
