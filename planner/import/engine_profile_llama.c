/* Rules of llama.cpp and ollama. Rows go by date; builds and releases are looked up in the
 * profile's list `dated`. */

#include "planner/base/text.h"
#include "planner/import/engine_profile_parts.h"

/* The date of the last listed version that is not newer; false: there is none of its kind. */
static bool find_date(struct vp_situation *s, struct vp_version *out, struct vp_version version) {
    const struct vp_node *list = vp_node_get(s->root, "dated");
    bool found = false;

    for (uint32_t i = 0; list && i < list->count; i++) {
        struct vp_version at, date;
        if (!vp_version_parse(&at, vp_node_text(vp_node_get(list->items[i], "version"))) ||
            !vp_version_parse(&date, vp_node_text(vp_node_get(list->items[i], "date"))) ||
            date.kind != VP_VERSION_DATE) {
            vp_rule_broken(s, list->items[i], "'dated' needs a version and its date");
            return false;
        }
        if (at.kind != version.kind || vp_version_compare(at, version) > 0)
            continue;
        *out = date;
        found = true;
    }
    return found;
}

static bool set_date(struct vp_situation *s, struct vp_scenario *dated) {
    struct vp_engine *engine = &dated->engine;
    struct vp_version version = engine->version;

    if (version.kind == VP_VERSION_DATE)
        return true;
    if (find_date(s, &engine->version, version))
        return true;
    if (s->broken)
        return false;
    vp_diag_add(s->ctx->diags, VP_D_VERSION_UNKNOWN, &s->scenario->source[VP_F_VERSION].pos,
                "%s version '%s' is not one that the rules cover", engine->name,
                engine->version_text);
    vp_diag_hint(s->ctx->diags, "a date always works, for example %s@%s", engine->name,
                 vp_node_text(vp_node_get(s->root, "newest")));
    s->broken = true;
    return false;
}

static void read_defaults(struct vp_situation *s, struct vp_llama_rules *out) {
    out->default_slots = vp_rule_number(s, "slots");
    out->default_unified = vp_rule_truth(s, "unified_by_default");
    out->default_gpu_layers = vp_rule_number(s, "gpu_layers");
    out->default_flash = vp_rule_truth(s, "flash_by_default");
    out->embeddings = vp_rule_truth(s, "embeddings");
    out->fit = vp_rule_truth(s, "fit");
}

static void read_cache(struct vp_situation *s, struct vp_llama_rules *out) {
    out->cells_multiple = vp_rule_number(s, "cells_multiple");
    out->cells_multiple_flash = vp_rule_number(s, "cells_multiple_flash");
    out->always_unified = vp_rule_truth(s, "always_unified");
    out->window_cache = vp_rule_truth(s, "window_cache");
    out->window_kept = vp_rule_number(s, "window_kept");
    out->latent = vp_rule_truth(s, "latent");
    if (!s->broken && (out->cells_multiple == 0 || out->cells_multiple_flash == 0))
        vp_rule_broken(s, s->root, "'cells_multiple' must not be 0");
}

static void read_compute(struct vp_situation *s, struct vp_llama_rules *out) {
    out->mask_cast = vp_rule_truth(s, "mask_cast");
    out->scratch_counted = vp_rule_truth(s, "scratch_counted");
    out->index_tensors = vp_rule_truth(s, "index_tensors");
    out->rotated = vp_rule_truth(s, "rotated");
    out->few_outputs = vp_rule_perhaps(s, "few_outputs");
    out->host_inputs = vp_rule_number(s, "host_inputs");
    out->copies = vp_rule_number(s, "copies");
    out->spread_logits = vp_rule_interval(s, vp_rule_row(s, "spread_logits"), "value", 1);
    out->spread_layers = vp_rule_interval(s, vp_rule_row(s, "spread_layers"), "value", 1);
    out->spread_copies = vp_rule_interval(s, vp_rule_row(s, "spread_copies"), "value", 1);
}

void vp_rules_read_llama(struct vp_situation *s, struct vp_rules *rules) {
    const uint64_t mib = UINT64_C(1) << 20;
    struct vp_llama_rules *out = &rules->llama;
    struct vp_scenario dated = *s->scenario;
    struct vp_situation by_date = *s;

    by_date.scenario = &dated;
    if (set_date(&by_date, &dated)) {
        read_defaults(&by_date, out);
        read_cache(&by_date, out);
        read_compute(&by_date, out);
        const struct vp_node *pool = vp_rule_row(&by_date, "pool");
        out->pool_base = vp_rule_interval(&by_date, pool, "base_mib", mib);
        out->pool_permille = vp_rule_interval(&by_date, pool, "permille", 1);
        rules->overhead_class = vp_node_text(vp_node_get(pool, "name"));
        rules->overhead_source = vp_node_text(vp_node_get(pool, "source"));
        if (pool && (!rules->overhead_class || !rules->overhead_source))
            vp_rule_broken(&by_date, pool, "a row of 'pool' needs name and source");
    }
    s->broken |= by_date.broken;
}
