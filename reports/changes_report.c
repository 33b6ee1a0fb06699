#include "reports/changes_report.h"

#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/sections.h"
#include "reports/shell_words.h"
#include "reports/words.h"

enum { SHOWN = 8 /* proposals, unless more is asked for */, INDENT = 4 };

const char *vp_slo_name(enum vp_slo_state state) {
    static const char *const NAMES[] = {NULL, "likely", "open", "unlikely", "broken"};
    return NAMES[state];
}

/* ---- words ---- */

/* Two significant digits and the rest of the whole part: a time is not known better. */
static const char *short_real(struct vp_arena *arena, double v) {
    double size = v < 0 ? -v : v;
    int decimals = size < 1 ? 2 : size < 20 ? 1 : 0;

    return vp_arena_printf(arena, "%.*f", decimals, v);
}

const char *vp_words_risk(struct vp_arena *arena, const struct vp_risk *r) {
    if (!r->known)
        return vp_arena_printf(arena, "%s: loss not known (%" PRIu32 " of 2 publishers)", r->format,
                               r->publishers);
    return vp_arena_printf(arena, "%s: %s %% %s lost (%s to %s; %s)", r->format,
                           short_real(arena, r->likely), r->unit, short_real(arena, r->low),
                           short_real(arena, r->high), r->by);
}

const char *vp_words_time(struct vp_arena *arena, const struct vp_estimate *e) {
    if (e->basis == VP_BASIS_NONE)
        return "time not known";
    if (e->basis == VP_BASIS_BOUND)
        return vp_arena_printf(arena, "at least %s ms (bound)", short_real(arena, e->low));
    return vp_arena_printf(arena, "%s ms (%s to %s, %s)", short_real(arena, e->likely),
                           short_real(arena, e->low), short_real(arena, e->high),
                           vp_basis_name(e->basis));
}

/* The time that is compared; and that to the first token where something was promised of it. */
static const char *time_text(struct vp_arena *arena, const struct vp_outcome *found,
                             const struct vp_trial *t) {
    bool first = false;

    if (found->base->scenario->training)
        return vp_arena_printf(arena, "step %s", vp_words_time(arena, &t->step));
    for (uint32_t i = 0; i < found->slos; i++)
        first |= vp_text_starts(found->slo[i].field, "ttft");
    return vp_arena_printf(arena, "token %s%s%s", vp_words_time(arena, &t->tpot),
                           first ? ", first token " : "",
                           first ? vp_words_time(arena, &t->ttft) : "");
}

/* ---- one proposal ---- */

static void costs(const struct vp_page *page, const struct vp_change *c) {
    struct vp_arena *arena = page->out->arena;
    const struct {
        const char *name, *text;
    } ALL[] = {{"quality", c->risk.format ? vp_words_risk(arena, &c->risk) : c->quality},
               {"speed", c->speed},
               {"money", c->money}};
    struct vp_buf out = {.arena = arena};

    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
        if (!vp_text_eq(ALL[i].text, "none"))
            vp_buf_printf(&out, "%s%s: %s", out.size ? "; " : "", ALL[i].name, ALL[i].text);
    if (out.size == 0)
        return;
    vp_page_spaces(page, INDENT);
    vp_page_wrap(page, INDENT, INDENT, vp_buf_text(&out));
}

static void figures(const struct vp_page *page, const struct vp_outcome *found,
                    const struct vp_proposal *p) {
    static const char *const WORDS[] = {"fits", "at risk", "does not fit"};
    struct vp_arena *arena = page->out->arena;
    const struct vp_trial *t = &p->trial;
    struct vp_buf out = {.arena = arena};

    vp_buf_printf(&out, "%s: needs %s GiB of %s, %s to spare; %s", WORDS[t->verdict],
                  vp_words_interval(arena, t->need, 2), vp_format_gib(arena, t->usable_bytes, 2),
                  vp_words_signed_gib(arena, t->headroom_bytes), time_text(arena, found, t));
    if (t->price_per_hour > 0)
        vp_buf_printf(&out, "; %s per hour", vp_format_real(arena, t->price_per_hour));
    if (t->slo != VP_SLO_NONE)
        vp_buf_printf(&out, "; promised latency: %s", vp_slo_name(t->slo));
    vp_page_spaces(page, INDENT);
    vp_page_wrap(page, INDENT, INDENT, vp_buf_text(&out));
}

static const char *change_text(struct vp_arena *arena, const struct vp_change *c) {
    return vp_arena_printf(arena, "%s: %s -> %s", c->what, c->from, c->to);
}

/* "3 x h100-sxm: tensor 1 x pipeline 3 x data 1" */
static const char *on_gpus(struct vp_arena *arena, const struct vp_proposal *p) {
    return vp_arena_printf(arena, "%" PRIu64 " x %s: %s", p->trial.gpus, p->trial.gpu,
                           p->change[0].what);
}

/* "1  fewer sequences at once: 64 -> 41": the changes, one line each. */
static void head(const struct vp_page *page, const struct vp_outcome *found,
                 const struct vp_proposal *p, const char *number) {
    struct vp_arena *arena = page->out->arena;
    bool length = vp_text_eq(found->goal, "context");

    vp_page_left(page, number, INDENT);
    if (found->question == VP_ASK_MOST) {
        const char *more = p->most_likely > p->most
                               ? vp_arena_printf(arena, ", likely up to %s",
                                                 vp_format_count(arena, p->most_likely))
                           : p->capped  ? (length ? ", the model's longest" : ", the most there is")
                           : p->by_time ? ", by the promised latency"
                                        : "";
        vp_page_printf(page, INDENT, INDENT, "%s %s%s%s", found->goal,
                       vp_format_count(arena, p->most), more, p->changes == 0 ? ": as it is" : "");
    } else if (found->question == VP_ASK_FEWEST) {
        vp_page_wrap(page, INDENT, INDENT, on_gpus(arena, p));
        return;
    }
    for (uint32_t i = 0; i < p->changes; i++) {
        if (i > 0 || found->question == VP_ASK_MOST)
            vp_page_spaces(page, INDENT);
        vp_page_wrap(page, INDENT, INDENT + 2, change_text(arena, &p->change[i]));
    }
}

static void proposal(const struct vp_page *page, const struct vp_outcome *found,
                     const struct vp_proposal *p, const char *number) {
    head(page, found, p, number);
    figures(page, found, p);
    for (uint32_t i = 0; i < p->changes; i++)
        costs(page, &p->change[i]);
    vp_shell_paste(page, INDENT, p->command);
}

static void proposals(const struct vp_page *page, const struct vp_outcome *found, bool all) {
    struct vp_arena *arena = page->out->arena;
    uint32_t shown = all ? found->count : (uint32_t)vp_min(found->count, SHOWN);

    for (uint32_t i = 0; i < shown; i++) {
        vp_buf_add(page->out, "\n");
        proposal(page, found, &found->item[i], vp_arena_printf(arena, "%3" PRIu32, i + 1));
    }
    if (shown < found->count)
        vp_page_printf(page, 0, 2, "... and %" PRIu32 " more (-v shows all)", found->count - shown);
    if (found->beaten > 0)
        vp_page_printf(page, 0, 2,
                       "%" PRIu32 " more would do, but one of these is as good in everything and "
                       "better in something",
                       found->beaten);
}

/* ---- the whole ---- */

static void limits(const struct vp_page *page, const struct vp_outcome *found) {
    struct vp_arena *arena = page->out->arena;

    if (found->base->scenario->training) {
        if (found->max_micro_batch > 0)
            vp_page_printf(page, 0, 2, "as it is, for sure: micro batches up to %s",
                           vp_format_count(arena, found->max_micro_batch));
        return;
    }
    const char *context =
        found->max_context > 0 ? vp_format_count(arena, found->max_context) : NULL;
    const char *sequences =
        found->max_sequences > 0 ? vp_format_count(arena, found->max_sequences) : NULL;
    if (!context && !sequences)
        return;
    vp_page_printf(
        page, 0, 2, "as it is, for sure: %s%s%s%s%s", context ? "a context up to " : "",
        context ? context : "", found->context_capped ? " (the model's longest)" : "",
        sequences ? (context ? ", or sequences at once up to " : "sequences at once up to ") : "",
        sequences ? sequences : "");
}

static void infeasible(const struct vp_page *page, const struct vp_outcome *found) {
    struct vp_arena *arena = page->out->arena;

    vp_page_printf(page, 0, 2, "no %s makes it fit (%s candidates evaluated)%s",
                   found->question == VP_ASK_CHANGES ? "choice of up to three changes"
                                                     : "candidate",
                   vp_format_count(arena, found->tried), found->nearest ? "; nearest:" : "");
    if (found->nearest)
        proposal(page, found, found->nearest, "");
}

static void changes(const struct vp_page *page, const struct vp_outcome *found) {
    static const char *const HOW[] = {"", "one change is enough", "two changes together",
                                      "three changes together"};
    struct vp_arena *arena = page->out->arena;

    if (found->needed == 0)
        return;
    vp_page_printf(page, 0, 2, "%s (%s candidates evaluated%s):", HOW[found->needed],
                   vp_format_count(arena, found->tried),
                   found->stopped ? "; not all, there are too many" : "");
}

/* What more of the workload costs, where there is room for more. */
static void prices(const struct vp_page *page, const struct vp_outcome *found) {
    struct vp_fact facts[VP_FACTS];
    uint32_t count = vp_words_prices(page->out->arena, facts, found->base);

    if (found->question != VP_ASK_CHANGES || found->base->verdict != VP_FITS)
        return;
    for (uint32_t i = 0; i < count; i++)
        if (*facts[i].label == '+')
            vp_page_printf(page, 0, 4, "%s: %s", facts[i].label, facts[i].value);
}

/* What was promised, and the time that the scenario has as it is. */
static void promise(const struct vp_page *page, const struct vp_outcome *found) {
    static const char *const SAYS[] = {NULL, "the likely mean keeps it",
                                       "open: only a bound is known",
                                       "unlikely: the likely mean is above it",
                                       "broken: even the low end of the mean is above it"};
    struct vp_arena *arena = page->out->arena;
    struct vp_buf limits = {.arena = arena};

    for (uint32_t i = 0; i < found->slos; i++)
        vp_buf_printf(&limits, "%s%s=%s", i ? "," : "", found->slo[i].field, found->slo[i].value);
    if (found->slos > 0)
        vp_page_printf(page, 0, 2, "promised %s; as it is: %s%s%s", vp_buf_text(&limits),
                       found->now.made ? time_text(arena, found, &found->now) : "refused",
                       found->now.made ? ": " : "", found->now.made ? SAYS[found->now.slo] : "");
}

/* The answer first: of all layouts, the scenario's own is one of many. */
static void fewest_head(const struct vp_page *page, const struct vp_outcome *found,
                        const struct vp_report_options *options) {
    static const enum vp_style STYLES[] = {
        [VP_FITS] = VP_STYLE_GOOD, [VP_AT_RISK] = VP_STYLE_WARN, [VP_DOES_NOT_FIT] = VP_STYLE_BAD};
    struct vp_arena *arena = page->out->arena;
    const struct vp_proposal *best = found->count > 0 ? &found->item[0] : NULL;
    const char *verdict = vp_words_verdict(found->verdict);
    const char *sure = found->verdict == VP_FITS ? " for sure" : "";
    int hang = vp_text_cells(verdict) + 2;

    vp_section_setup(page, found->base, options);
    vp_buf_add(page->out, "\n");
    vp_page_styled(page, STYLES[found->verdict], verdict);
    vp_page_spaces(page, 2);
    if (!best)
        vp_page_wrap(page, hang, hang, "in no layout that was tried");
    else if (vp_text_eq(found->goal, "cost") && best->trial.price_per_hour > 0)
        vp_page_printf(page, hang, hang, "for %s per hour, the least%s: %" PRIu64 " x %s",
                       vp_format_real(arena, best->trial.price_per_hour), sure, best->trial.gpus,
                       best->trial.gpu);
    else
        vp_page_printf(page, hang, hang, "on %" PRIu64 " x %s, the fewest%s", best->trial.gpus,
                       best->trial.gpu, sure);
}

static void as_it_is(const struct vp_page *page, const struct vp_result *base) {
    static const char *const WORDS[] = {"fits", "at risk", "does not fit"};
    struct vp_arena *arena = page->out->arena;
    const struct vp_hardware *hardware = &base->scenario->hardware;
    bool is_short = base->headroom_bytes < 0;
    uint64_t apart = (uint64_t)(is_short ? -base->headroom_bytes : base->headroom_bytes);

    vp_buf_add(page->out, "\n");
    vp_page_printf(page, 0, 2, "as it is, %" PRIu64 " x %s: %s, %s GiB %s", hardware->count,
                   hardware->gpu.id, WORDS[base->verdict], vp_format_gib(arena, apart, 2),
                   is_short ? "short" : "to spare");
}

void vp_changes_text(struct vp_buf *out, const struct vp_outcome *found,
                     const struct vp_report_options *options) {
    struct vp_page page = vp_section_page(out, options);
    bool fewest = found->question == VP_ASK_FEWEST;

    if (fewest)
        fewest_head(&page, found, options);
    else
        vp_section_head(&page, found->base, options);
    if (!fewest)
        vp_buf_add(out, "\n");
    promise(&page, found);
    if (!fewest)
        limits(&page, found);
    prices(&page, found);
    changes(&page, found);
    if (found->count > 0)
        proposals(&page, found, options && options->verbose);
    else if (found->verdict == VP_DOES_NOT_FIT)
        infeasible(&page, found);
    if (fewest)
        as_it_is(&page, found->base);
    for (uint32_t i = 0; i < found->note_count; i++)
        vp_page_wrap(&page, 0, 2, found->notes[i]);
    vp_section_notes(&page, found->base);
}
