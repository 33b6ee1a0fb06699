/* The report for people: answer, reason, what was assumed. */
#include <inttypes.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "reports/latency_text.h"
#include "reports/llama_text.h"
#include "reports/report.h"
#include "reports/sections.h"
#include "reports/train_report.h"
#include "reports/words.h"

/* Columns of the table; the bar takes what is left. */
enum {
    INDENT = 2,
    NAME = 15,
    GIB = 9,
    SHARE = 8,
    GAP = 2,
    SURE = 21,
    BAR_MAX = 48,
    CELLS_MAX = 64
};

static int bar_cells(const struct vp_page *page) {
    int cells = page->width - INDENT - NAME - GIB - SHARE - GAP - GAP - SURE;
    return cells > BAR_MAX ? BAR_MAX : cells;
}

/* What the whole width of a bar stands for: the card, or the need when that is larger. */
static uint64_t bar_scale(const struct vp_device *device) {
    return vp_max(device->capacity_bytes, device->need.likely);
}

static int scaled(uint64_t bytes, uint64_t scale, int cells) {
    if (scale == 0)
        return 0;
    unsigned __int128 v = ((unsigned __int128)bytes * (unsigned)cells + scale / 2) / scale;
    return v > (unsigned)cells ? cells : (int)v;
}

/* A letter's share of the scale; something is never nothing. */
static void component_bar(char *out, uint64_t bytes, uint64_t scale, char letter, int cells) {
    int n = scaled(bytes, scale, cells);
    if (n == 0 && bytes > 0)
        n = 1;
    memset(out, letter, (size_t)n);
    out[n] = '\0';
}

/* All components one after the other, '.' what is free, '|' where the usable part ends. */
static void stacked_bar(char *out, const struct vp_device *device, int cells) {
    uint64_t sum = 0, scale = bar_scale(device);
    int at = 0;
    memset(out, '.', (size_t)cells);
    out[cells] = '\0';
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        if (!device->present[c])
            continue;
        sum += device->component[c].likely;
        int end = scaled(sum, scale, cells);
        while (at < end)
            out[at++] = vp_component_letter((enum vp_component)c);
    }
    int limit = scaled(device->usable_bytes, scale, cells);
    if (limit < cells)
        out[limit] = '|';
}

/* "exact", "class 1.20..2.85"; fewer digits when that is too wide. */
static const char *how_sure(struct vp_arena *arena, const char *word, struct vp_amount amount) {
    if (vp_words_is_exact(amount))
        return word;
    const char *gap = *word ? " " : "";
    for (int decimals = 2; decimals > 0; decimals--) {
        const char *text =
            vp_arena_printf(arena, "%s%s%s", word, gap, vp_words_interval(arena, amount, decimals));
        if (vp_text_cells(text) <= SURE)
            return text;
    }
    return vp_words_interval(arena, amount, 0);
}

static void row_start(const struct vp_page *page, const char *name, uint64_t bytes, uint64_t card) {
    struct vp_arena *arena = page->out->arena;
    vp_page_spaces(page, INDENT);
    vp_page_left(page, name, NAME);
    vp_page_right(page, vp_format_gib(arena, bytes, 2), GIB);
    vp_page_right(page, vp_words_share(arena, bytes, card), SHARE);
    vp_page_spaces(page, GAP);
}

static void bar_row(const struct vp_page *page, const char *name, uint64_t bytes, uint64_t card,
                    const char *bar, const char *sure) {
    int cells = bar_cells(page);
    row_start(page, name, bytes, card);
    vp_page_left(page, bar, cells);
    vp_page_spaces(page, GAP);
    vp_page_wrap(page, page->width - SURE, page->width - SURE, sure);
}

static void text_row(const struct vp_page *page, const char *name, uint64_t bytes, uint64_t card,
                     const char *text) {
    int column = INDENT + NAME + GIB + SHARE + GAP;
    row_start(page, name, bytes, card);
    vp_page_wrap(page, column, column, text);
}

static void table_head(const struct vp_page *page) {
    vp_page_spaces(page, INDENT);
    vp_page_left(page, "", NAME);
    vp_page_right(page, "GiB", GIB);
    vp_page_right(page, "of card", SHARE);
    vp_page_spaces(page, GAP);
    vp_page_left(page, "usable up to |", bar_cells(page));
    vp_page_spaces(page, GAP);
    vp_page_wrap(page, page->width - SURE, page->width - SURE, "how sure");
}

static void components(const struct vp_page *page, const struct vp_result *result) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_device *device = &result->devices[result->worst];
    uint64_t card = device->capacity_bytes, scale = bar_scale(device), sum = 0;
    char bar[CELLS_MAX + 1];
    int cells = bar_cells(page);
    vp_buf_add(page->out, "\n");
    table_head(page);
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        struct vp_amount amount = device->component[c];
        if (!device->present[c] || amount.high == 0) /* nothing of it at the peak */
            continue;
        sum += amount.likely;
        component_bar(bar, amount.likely, scale, vp_component_letter((enum vp_component)c), cells);
        bar_row(page, vp_words_component(arena, (enum vp_component)c), amount.likely, card, bar,
                how_sure(arena, vp_confidence_name(device->confidence[c]), amount));
    }
    stacked_bar(bar, device, cells);
    bar_row(page, "needed", device->need.likely, card, bar, how_sure(arena, "", device->need));
    if (sum != device->need.likely) {
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, INDENT,
                       "(largest at \"%s\"; not every component is at its peak then)",
                       vp_step_name(device->peak_step));
    }
}

/* What the engine takes for itself is another number than what the workload needs. */
static void reserved(const struct vp_page *page, const struct vp_result *result) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_device *device = &result->devices[result->worst];
    const char *engine = vp_words_engine(result->scenario->engine.name);
    const char *pool = vp_words_pool(arena, result);
    if (device->reserved_bytes && vp_words_has_policy(result->scenario))
        text_row(page, vp_arena_printf(arena, "%s takes", engine), device->reserved_bytes,
                 device->capacity_bytes, "by its policy, needed or not");
    if (pool)
        text_row(page, "  its KV pool", result->report.available_kv.likely, device->capacity_bytes,
                 pool);
}

/* Cells of the widest "label  value" among every other fact from `first` on. */
static int fact_cells(const struct vp_fact *fact, uint32_t count, uint32_t first) {
    int widest = 0;
    for (uint32_t i = first; i < count; i += 2) {
        int cells = vp_text_cells(fact[i].label) + 2 + vp_text_cells(fact[i].value);
        widest = cells > widest ? cells : widest;
    }
    return widest;
}

/* Two to a line where there is room, values at the right edge of their column. */
static void prices(const struct vp_page *page, const struct vp_result *result) {
    enum { BETWEEN = 3 };
    struct vp_fact fact[VP_FACTS];
    uint32_t count = vp_words_prices(page->out->arena, fact, result);
    int left = fact_cells(fact, count, 0), right = fact_cells(fact, count, 1);
    bool paired = INDENT + left + BETWEEN + right <= page->width;
    if (!paired)
        left = right = left > right ? left : right;
    vp_buf_add(page->out, "\n");
    for (uint32_t i = 0; i < count; i++) {
        bool second = i % 2 && paired;
        int value = vp_text_cells(fact[i].value);
        vp_page_spaces(page, second ? BETWEEN : INDENT);
        vp_page_left(page, fact[i].label, (i % 2 ? right : left) - value);
        vp_buf_add(page->out, fact[i].value);
        if (!paired || second)
            vp_buf_add(page->out, "\n");
    }
}

static const char *count_or_dash(struct vp_arena *arena, uint64_t n) {
    return n ? vp_format_count(arena, n) : "-";
}

static bool is_paged(const struct vp_kv_report *kv) {
    for (uint32_t i = 0; i < kv->group_count && i < VP_KV_GROUPS; i++)
        if (kv->group[i].groups > 0)
            return true;
    return false;
}

/* What one sequence has of a layer type: pages in groups, or without pages the tokens it keeps. */
static const char *kept(struct vp_arena *arena, const struct vp_kv_group *group, bool paged) {
    const char *count = vp_format_count(arena, group->pages_per_sequence);
    if (paged)
        return vp_arena_printf(arena, "%" PRIu64 " x %s", group->groups, count);
    return vp_text_eq(group->kind, "state") ? "-" : count;
}

/* Said when the layers do not all keep the same. */
static void kv_groups(const struct vp_page *page, const struct vp_result *result) {
    enum { KIND = 12, LAYERS = 14, TOKEN = 13, STATE = 15, WINDOW = 10, KEPT = 13 };
    const int end = INDENT + KIND + LAYERS + TOKEN + STATE + WINDOW;
    struct vp_arena *arena = page->out->arena;
    const struct vp_kv_report *kv = &result->kv;
    bool paged = is_paged(kv);
    bool plain = kv->group_count == 1 &&
                 (vp_text_eq(kv->group[0].kind, "full") || vp_text_eq(kv->group[0].kind, "latent"));
    if (!kv->known || kv->group_count == 0 || plain)
        return;
    vp_buf_add(page->out, "\n");
    vp_page_left(page, "  KV cache by", INDENT + KIND);
    vp_page_right(page, "layers", LAYERS);
    vp_page_right(page, "bytes/token", TOKEN);
    vp_page_right(page, "bytes/sequence", STATE);
    vp_page_right(page, "window", WINDOW);
    vp_page_right(page, paged ? "pages" : "tokens kept", KEPT);
    vp_page_wrap(page, end + KEPT, 2, "");
    for (uint32_t i = 0; i < kv->group_count && i < VP_KV_GROUPS; i++) {
        const struct vp_kv_group *group = &kv->group[i];
        const char *layers = vp_format_count(arena, group->layers);
        if (group->padding_layers)
            layers = vp_arena_printf(arena, "%s + %" PRIu64 " pad", layers, group->padding_layers);
        vp_page_spaces(page, INDENT);
        vp_page_left(page, group->kind, KIND);
        vp_page_right(page, layers, LAYERS);
        vp_page_right(page, count_or_dash(arena, group->bytes_per_token), TOKEN);
        vp_page_right(page, count_or_dash(arena, group->state_bytes), STATE);
        vp_page_right(page, count_or_dash(arena, group->window), WINDOW);
        vp_page_right(page, kept(arena, group, paged), KEPT);
        vp_page_wrap(page, end + KEPT, 2, "");
    }
    vp_page_spaces(page, INDENT);
    vp_page_wrap(page, INDENT, INDENT,
                 paged ? "(bytes of one layer on one rank; pages: groups x pages of one sequence)"
                       : "(bytes of one layer on one rank; tokens of one sequence)");
}

static void add_cost(struct vp_buf *out, const char *name, const char *text) {
    if (text && *text)
        vp_buf_printf(out, "%s%s: %s", out->size ? "; " : "", name, text);
}

static void one_suggestion(const struct vp_page *page, const struct vp_suggestion *s,
                           uint32_t number) {
    enum { NUMBER = 4, FIGURE = 9 };
    struct vp_arena *arena = page->out->arena;
    int change = page->width - NUMBER - 2 * FIGURE;
    const char *text = s->change ? s->change : "";
    if (s->from && s->to)
        text = vp_arena_printf(arena, "%s: %s -> %s", text, s->from, s->to);
    vp_page_right(page, vp_arena_printf(arena, "%" PRIu32, number), NUMBER - 1);
    vp_page_spaces(page, 1);
    vp_page_left(page, text, change);
    vp_page_right(page, vp_format_gib(arena, s->need_bytes, 2), FIGURE);
    vp_page_right(page, vp_words_signed_gib(arena, s->headroom_bytes), FIGURE);
    vp_buf_add(page->out, "\n");
    struct vp_buf cost = {.arena = arena};
    add_cost(&cost, "quality", s->quality);
    add_cost(&cost, "speed", s->speed);
    add_cost(&cost, "money", s->money);
    int used = NUMBER + vp_text_cells(vp_buf_text(&cost));
    if (s->patch_field) {
        const char *set = vp_arena_printf(arena, "--set %s=%s", s->patch_field,
                                          s->patch_value ? s->patch_value : "");
        if (s->patch_count > 0)
            set = vp_arena_printf(arena, "%s --set hardware.count=%llu", set,
                                  (unsigned long long)s->patch_count);
        bool same_line = used + 2 + vp_text_cells(set) <= page->width;
        vp_buf_printf(&cost, "%s%s", cost.size == 0 ? "" : same_line ? "; " : "\n", set);
    }
    const char *text_left = vp_buf_text(&cost);
    while (*text_left) { /* a line break stands before what is to be copied as a whole */
        size_t n = strcspn(text_left, "\n");
        vp_page_spaces(page, NUMBER);
        vp_page_wrap(page, NUMBER, NUMBER, vp_arena_text(arena, text_left, n));
        text_left += n + (text_left[n] == '\n');
    }
}

void vp_section_suggestions(const struct vp_page *page, const struct vp_result *result) {
    enum { FIGURE = 9 };
    if (result->suggestion_count == 0)
        return;
    vp_buf_add(page->out, "\n");
    vp_page_left(page,
                 result->verdict == VP_FITS ? "possible changes, GiB per card"
                                            : "changes that would help, GiB per card",
                 page->width - 2 * FIGURE);
    vp_page_right(page, "needs", FIGURE);
    vp_page_right(page, "spare", FIGURE);
    vp_buf_add(page->out, "\n");
    for (uint32_t i = 0; i < result->suggestion_count; i++)
        one_suggestion(page, &result->suggestions[i], i + 1);
}

static bool alike(const struct vp_assumption *a, const struct vp_assumption *b) {
    return a->origin == b->origin && vp_text_eq(a->value, b->value) && vp_text_eq(a->why, b->why);
}

/* What has the same value for the same reason stands on one line. */
static void assumptions(const struct vp_page *page, const struct vp_result *result) {
    if (result->assumption_count == 0)
        return;
    vp_buf_add(page->out, "\n");
    vp_page_title(page, "assumed, not said:");
    for (uint32_t i = 0, next; i < result->assumption_count; i = next) {
        const struct vp_assumption *a = &result->assumptions[i];
        struct vp_buf fields = {.arena = page->out->arena};
        bool why = a->why && *a->why;
        for (next = i; next < result->assumption_count && alike(a, &a[next - i]); next++)
            vp_buf_printf(&fields, "%s%s", next > i ? ", " : "", a[next - i].field);
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, 2 * INDENT + 2, "%s = %s (%s%s%s)", vp_buf_text(&fields),
                       a->value ? a->value : "?", vp_origin_name(a->origin), why ? ": " : "",
                       why ? a->why : "");
    }
}

struct log_line {
    const char *label;
    struct vp_amount amount;
};

enum { LOG_LINES = 5 };

/* The figures under the names that the engine's log uses. */
static size_t log_figures(struct log_line out[LOG_LINES], const struct vp_result *result) {
    const struct vp_engine_report *r = &result->report;
    size_t n = 0;
    out[n++] = (struct log_line){"model weights", r->weights};
    if (result->scenario->engine.kind == VP_ENGINE_SGLANG) {
        out[n++] = (struct log_line){"KV pool", r->available_kv};
        return n;
    }
    out[n++] = (struct log_line){"activation peak", r->activation_peak};
    out[n++] = (struct log_line){"non-torch memory", r->non_torch};
    if (result->scenario->engine.kind == VP_ENGINE_TRANSFORMERS)
        return n;
    out[n++] = (struct log_line){r->graphs_in_budget ? "graphs, inside the budget"
                                                     : "graphs, on top of the budget",
                                 r->graph};
    out[n++] = (struct log_line){"available KV cache", r->available_kv};
    return n;
}

static const char *log_title(enum vp_engine_kind engine) {
    static const char *const TITLES[VP_ENGINE_KINDS] = {
        [VP_ENGINE_VLLM] = "vLLM's log should show, GiB:",
        [VP_ENGINE_SGLANG] = "SGLang's log should show, GiB:",
        [VP_ENGINE_TRANSFORMERS] = "torch and the driver should show, GiB:",
    };
    return TITLES[engine];
}

static void log_counts(const struct vp_page *page, const struct vp_result *result) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_engine_report *r = &result->report;
    const struct vp_engine *engine = &result->scenario->engine;
    if (!vp_words_has_policy(result->scenario))
        return;
    vp_page_spaces(page, INDENT);
    if (engine->kind == VP_ENGINE_SGLANG)
        vp_page_printf(page, INDENT, 2 * INDENT, "max_total_num_tokens %s, mem_fraction_static %s",
                       vp_format_count(arena, r->kv_cache_tokens.likely),
                       vp_field_value(arena, result->scenario, VP_F_UTILIZATION));
    else
        vp_page_printf(page, INDENT, 2 * INDENT,
                       "%s KV blocks of %" PRIu64 ", KV cache size %s tokens, maximum concurrency "
                       "%sx at max_model_len %" PRIu64 ", estimated maximum model length %s",
                       vp_format_count(arena, r->num_gpu_blocks.likely), r->block_size,
                       vp_format_count(arena, r->kv_cache_tokens.likely),
                       vp_words_milli(arena, r->max_concurrency_milli.likely),
                       engine->max_model_len,
                       vp_format_count(arena, r->estimated_max_model_len.likely));
}

static void log_lines(const struct vp_page *page, const struct vp_result *result) {
    struct vp_arena *arena = page->out->arena;
    struct log_line line[LOG_LINES];
    size_t count = log_figures(line, result);
    vp_buf_add(page->out, "\n");
    vp_page_title(page, log_title(result->scenario->engine.kind));
    for (size_t i = 0; i < count; i++) {
        vp_page_spaces(page, INDENT);
        vp_page_left(page, line[i].label, 2 * NAME);
        vp_page_right(page, vp_format_gib(arena, line[i].amount.likely, 2), GIB);
        vp_page_spaces(page, GAP);
        vp_page_wrap(page, INDENT + 2 * NAME + GIB + GAP, INDENT,
                     how_sure(arena, "", line[i].amount));
    }
    log_counts(page, result);
}

static void parameters(const struct vp_page *page, const struct vp_result *result) {
    struct vp_arena *arena = page->out->arena;
    vp_page_spaces(page, INDENT);
    vp_page_printf(page, INDENT, 2 * INDENT, "parameters: %s, per token: %s",
                   vp_format_count(arena, result->params_total),
                   vp_format_count(arena, result->params_active));
}

void vp_report_text(struct vp_buf *out, const struct vp_result *result,
                    const struct vp_report_options *options) {
    struct vp_page page = vp_section_page(out, options);
    bool verbose = options && options->verbose;
    vp_section_head(&page, result, options);
    if (result->verdict != VP_FITS)
        vp_section_suggestions(&page, result);
    components(&page, result);
    if (result->training.stage) {
        vp_train_section(&page, result);
    } else {
        reserved(&page, result);
        vp_section_devices(&page, result);
        if (result->llama)
            vp_llama_section(&page, result);
        prices(&page, result);
        kv_groups(&page, result);
    }
    vp_latency_section(&page, result);
    const char *rule = vp_words_first_order(out->arena, result);
    if (rule) {
        vp_buf_add(out, "\n");
        vp_page_spaces(&page, INDENT);
        vp_page_wrap(&page, INDENT, 2 * INDENT, rule);
    }
    if (verbose)
        parameters(&page, result);
    if (result->verdict == VP_FITS)
        vp_section_suggestions(&page, result);
    if (verbose && vp_scenario_accounting(result->scenario) == VP_ACCOUNT_POOL)
        log_lines(&page, result);
    assumptions(&page, result);
    vp_section_notes(&page, result);
}
