#include "reports/fit_report.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/fit_words.h"
#include "reports/llama_command.h"
#include "reports/sections.h"
#include "reports/shell_words.h"
#include "reports/words.h"

enum { SHOWN = 8 /* proposals, unless more is asked for */, INDENT = 4 };

enum vp_verdict vp_fit_verdict(const struct vp_fit_llama *fit) {
    return fit->sure > 0 ? VP_FITS : fit->count > 0 ? VP_AT_RISK : VP_DOES_NOT_FIT;
}

const char *vp_fit_goal_name(enum vp_fit_goal goal) {
    static const char *const NAMES[] = {"balanced", "context", "layers", "slots"};
    return NAMES[goal];
}

const char *vp_fit_question_name(enum vp_fit_question question) {
    static const char *const NAMES[] = {"context", "layers", "experts", "slots"};
    return NAMES[question];
}

const char *vp_fit_freed_name(enum vp_fit_freed freed) {
    static const char *const NAMES[VP_FIT_FREED] = {"cache",   "batch",  "slots",
                                                    "experts", "layers", "context"};
    return NAMES[freed];
}

const char *vp_fit_device_name(struct vp_arena *arena, const struct vp_result *result,
                               uint32_t device) {
    return device < result->llama->gpus ? vp_arena_printf(arena, "GPU%" PRIu32, device) : "host";
}

/* ---- the head ---- */

static void add_item(struct vp_buf *out, const char *text) {
    vp_buf_printf(out, "%s%s", out->size ? ", " : "", text);
}

static const char *given_text(struct vp_arena *arena, const struct vp_result *result,
                              const struct vp_fit_fixed *fixed) {
    const struct vp_scenario *s = result->scenario;
    const struct vp_llama *l = &s->llama;
    struct vp_buf out = {.arena = arena};

    if (fixed->total)
        add_item(&out, vp_arena_printf(arena, "%" PRIu64 " tokens over all sequences", l->context));
    else if (fixed->context)
        add_item(&out, vp_arena_printf(arena, "context %" PRIu64, s->serve.context));
    if (fixed->slots)
        add_item(&out, vp_words_plural(arena, l->slots, "sequence", "sequences"));
    if (fixed->layers && s->hardware.count > 0)
        add_item(&out, vp_arena_printf(arena, "%" PRIu64 " layers on the GPUs",
                                       vp_min(l->gpu_layers, result->llama->layer_slots)));
    if (fixed->cache)
        add_item(&out, vp_arena_printf(arena, "cache %s/%s", vp_llama_type_name(l->type_k),
                                       vp_llama_type_name(l->type_v)));
    if (fixed->batch)
        add_item(&out, vp_arena_printf(arena, "batch %" PRIu64, vp_min(l->ubatch, l->batch)));
    return out.size ? vp_buf_text(&out) : "nothing but model and devices";
}

static const char *open_text(struct vp_arena *arena, const struct vp_fit_fixed *fixed) {
    struct vp_buf out = {.arena = arena};

    if (!fixed->layers)
        add_item(&out, "layers on the GPUs");
    if (!fixed->experts)
        add_item(&out, "experts on the host");
    if (!fixed->context)
        add_item(&out, "context");
    if (!fixed->cache)
        add_item(&out, "cache type");
    if (!fixed->batch)
        add_item(&out, "batch");
    if (!fixed->slots)
        add_item(&out, "sequences");
    return out.size ? vp_buf_text(&out) : "nothing";
}

static void head(const struct vp_page *page, const struct vp_result *result,
                 const struct vp_fit_llama *fit, const struct vp_report_options *options) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_engine *engine = &result->scenario->engine;
    const char *version = engine->version_text ? engine->version_text : "";

    if (options && options->heading && result->scenario->name)
        vp_page_title(page, vp_arena_printf(arena, "== %s ==", result->scenario->name));
    vp_page_printf(page, 0, 2, "%s, %s weights, %s%s%s", vp_words_model(result->scenario),
                   vp_words_weights(result->scenario), vp_words_engine(engine->name),
                   *version ? " " : "", version);
    vp_page_wrap(page, 0, 2, vp_words_devices(arena, result));
    vp_page_printf(page, 0, 2, "given: %s; open: %s", given_text(arena, result, &fit->fixed),
                   open_text(arena, &fit->fixed));
    if (result->llama->gpus > 0)
        vp_page_printf(page, 0, 2,
                       "beside its buffers every GPU keeps %s GiB, or what the runtime may take "
                       "where that is more",
                       vp_format_gib(arena, fit->margin_bytes, 2));
}

/* ---- proposals ---- */

enum { NUMBER = 3, LAYERS = 9, EXPERTS = 8, CONTEXT = 11, SLOTS = 5, CACHE = 11, FIGURE = 8 };

static void table_head(const struct vp_page *page) {
    vp_buf_add(page->out, "\n");
    vp_page_spaces(page, NUMBER);
    vp_page_right(page, "layers", LAYERS);
    vp_page_right(page, "experts", EXPERTS);
    vp_page_right(page, "context", CONTEXT);
    vp_page_right(page, "seqs", SLOTS);
    vp_page_right(page, "cache", CACHE);
    vp_page_right(page, "GPU GiB", FIGURE);
    vp_page_right(page, "at most", FIGURE);
    vp_page_right(page, "spare", FIGURE);
    vp_page_right(page, "host", FIGURE);
    vp_buf_add(page->out, "\n");
}

static const char *cache_text(struct vp_arena *arena, const struct vp_fit_settings *set) {
    const char *k = vp_llama_type_name(set->type_k), *v = vp_llama_type_name(set->type_v);

    return vp_text_eq(k, v) ? k : vp_arena_printf(arena, "%s/%s", k, v);
}

static void table_row(const struct vp_page *page, const struct vp_result *result,
                      const struct vp_fit_llama *fit, const struct vp_fit_proposal *p,
                      const char *number) {
    struct vp_arena *arena = page->out->arena;
    bool gpu = result->llama->gpus > 0, known = result->devices[p->worst].usable_bytes > 0;
    const char *experts =
        p->set.host_experts == 0 ? "-" : vp_format_u64(arena, p->set.host_experts);

    vp_page_right(page, number, NUMBER);
    vp_page_right(
        page, vp_arena_printf(arena, "%" PRIu64 "/%" PRIu64, p->set.gpu_layers, fit->layer_slots),
        LAYERS);
    vp_page_right(page, experts, EXPERTS);
    vp_page_right(page, vp_format_count(arena, p->set.context), CONTEXT);
    vp_page_right(page, vp_format_u64(arena, p->set.slots), SLOTS);
    vp_page_right(page, cache_text(arena, &p->set), CACHE);
    vp_page_right(page, gpu ? vp_format_gib(arena, p->need.likely, 2) : "-", FIGURE);
    vp_page_right(page, gpu ? vp_format_gib(arena, p->need.high, 2) : "-", FIGURE);
    vp_page_right(page, known ? vp_words_signed_gib(arena, p->spare_bytes) : "?", FIGURE);
    vp_page_right(page, vp_format_gib(arena, p->host_bytes, 2), FIGURE);
    vp_buf_add(page->out, "\n");
}

static void paste_lines(const struct vp_page *page, const char *text) {
    while (*text) {
        size_t n = strcspn(text, "\n");
        vp_page_spaces(page, INDENT);
        vp_buf_add_n(page->out, text, n + 1);
        text += n + 1;
    }
}

static void further(const struct vp_page *page, const struct vp_fit_proposal *p) {
    static const char *const WHAT[] = {"a context of %s", "%s layers on the GPUs",
                                       "experts of %s layers on the host", "%s sequences"};
    struct vp_arena *arena = page->out->arena;
    const char *number = vp_format_count(arena, p->further_to), *what = WHAT[p->question];
    const char *at = strstr(what, "%s");

    if (!p->further)
        return;
    vp_page_spaces(page, INDENT);
    vp_page_printf(page, INDENT, INDENT, "likely, but not for sure: %.*s%s%s", (int)(at - what),
                   what, number, at + 2);
}

static void proposal(const struct vp_page *page, const struct vp_result *result,
                     const struct vp_fit_llama *fit, const struct vp_fit_fixed *fixed,
                     const struct vp_fit_proposal *p, const char *number) {
    struct vp_arena *arena = page->out->arena;
    struct vp_scenario s = vp_fit_llama_scenario(result->scenario, fixed, &p->set);

    table_row(page, result, fit, p, number);
    if (s.engine.kind == VP_ENGINE_OLLAMA) {
        paste_lines(page, vp_ollama_modelfile(arena, &s));
        vp_shell_paste(page, INDENT,
                       vp_arena_printf(arena, "%s ollama serve", vp_ollama_environment(arena, &s)));
    } else {
        vp_shell_paste(page, INDENT, vp_llama_command(arena, &s));
    }
    further(page, p);
}

static void proposals(const struct vp_page *page, const struct vp_result *result,
                      const struct vp_fit_llama *fit, bool all) {
    struct vp_arena *arena = page->out->arena;
    uint32_t shown = all ? fit->count : (uint32_t)vp_min(fit->count, SHOWN);
    bool moved = false;

    table_head(page);
    for (uint32_t i = 0; i < shown; i++) {
        if (i == fit->sure)
            vp_page_printf(page, 0, 2, "at risk, only by the likely figures and without a margin:");
        proposal(page, result, fit, &fit->fixed, &fit->item[i],
                 vp_arena_printf(arena, "%" PRIu32, i + 1));
    }
    for (uint32_t i = 0; i < shown; i++)
        moved |= fit->item[i].set.host_experts > 0;
    if (moved)
        vp_page_wrap(page, 0, 2, "experts: of so many first layers they stay on the host");
    if (shown < fit->count)
        vp_page_printf(page, 0, 2, "... and %" PRIu32 " more (-v shows all)", fit->count - shown);
}

/* ---- nothing fits ---- */

const char *vp_fit_short_text(struct vp_arena *arena, const struct vp_result *result,
                              const struct vp_fit_llama *fit) {
    const struct vp_result *plan = fit->nearest_plan;

    if (!plan)
        return "no candidate could be sized";
    if (plan->llama->refused)
        return plan->llama->refused;
    const struct vp_device *device = &plan->devices[fit->short_device];
    if (fit->short_bytes == 0)
        return "the scenario's own budget is exceeded";
    const char *name = vp_fit_device_name(arena, result, fit->short_device);
    const char *missing = vp_format_gib(arena, fit->short_bytes, 2);
    const char *usable = vp_format_gib(arena, device->usable_bytes, 2);
    uint64_t pool = device->host ? 0 : plan->llama->place[fit->short_device].pool.high;
    if (!device->host && pool < fit->margin_bytes)
        return vp_arena_printf(arena,
                               "%s is %s GiB short at best: buffers of %s GiB and a margin of %s "
                               "GiB, where %s GiB are usable",
                               name, missing, vp_format_gib(arena, device->need.high - pool, 2),
                               vp_format_gib(arena, fit->margin_bytes, 2), usable);
    return vp_arena_printf(arena,
                           "%s is %s GiB short at best: it needs up to %s GiB, and %s GiB are "
                           "usable",
                           name, missing, vp_format_gib(arena, device->need.high, 2), usable);
}

static void infeasible(const struct vp_page *page, const struct vp_result *result,
                       const struct vp_fit_llama *fit) {
    static const char *const WHAT[VP_FIT_FREED] = {
        "with another type of cache", "with a smaller batch",          "with fewer sequences",
        "with experts on the host",   "with fewer layers on the GPUs", "with a shorter context"};
    struct vp_arena *arena = page->out->arena;
    bool any = false;

    vp_page_spaces(page, 2);
    vp_page_wrap(page, 2, 2, vp_fit_short_text(arena, result, fit));
    for (int f = 0; f < VP_FIT_FREED; f++) {
        struct vp_fit_fixed fixed = vp_fit_llama_freed(&fit->fixed, (enum vp_fit_freed)f);
        if (!fit->has_freed[f])
            continue;
        if (!any)
            table_head(page);
        any = true;
        vp_page_printf(page, 0, 2, "%s:", WHAT[f]);
        proposal(page, result, fit, &fixed, &fit->freed[f], "");
    }
    if (!any)
        vp_page_wrap(page, 0, 2, "no single change to what was given makes it fit");
}

/* ---- the whole ---- */

static void limits(const struct vp_page *page, const struct vp_result *result) {
    struct vp_fact facts[VP_FACTS];
    uint32_t count = vp_words_prices(page->out->arena, facts, result);

    vp_buf_add(page->out, "\n");
    for (uint32_t i = 0; i < count; i++)
        vp_page_printf(page, 0, 4, "  %s: %s", facts[i].label, facts[i].value);
    vp_section_suggestions(page, result);
    if (result->verdict != VP_FITS && result->suggestion_count == 0)
        vp_page_wrap(page, 0, 2, "no single change makes it fit");
}

void vp_fit_text(struct vp_buf *out, const struct vp_result *result, const struct vp_fit_llama *fit,
                 const struct vp_report_options *options) {
    static const enum vp_style STYLES[] = {
        [VP_FITS] = VP_STYLE_GOOD, [VP_AT_RISK] = VP_STYLE_WARN, [VP_DOES_NOT_FIT] = VP_STYLE_BAD};
    struct vp_page page = vp_section_page(out, options);

    if (!fit) {
        vp_section_head(&page, result, options);
        limits(&page, result);
        vp_section_notes(&page, result);
        return;
    }
    enum vp_verdict verdict = vp_fit_verdict(fit);
    head(&page, result, fit, options);
    vp_buf_add(out, "\n");
    vp_page_styled(&page, STYLES[verdict], vp_words_verdict(verdict));
    vp_buf_add(out, "\n");
    if (fit->count > 0)
        proposals(&page, result, fit, options && options->verbose);
    else
        infeasible(&page, result, fit);
    vp_section_notes(&page, result);
}
