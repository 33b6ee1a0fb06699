#include "tui/serve_answers.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/latency_text.h"
#include "reports/words.h"

struct fact {
    const char *label, *value, *more; /* more: an interval; NULL */
};
enum { FACTS = 16, AFTER_LABEL = 20 };

/* The answer in one sentence: why it does not fit, or what it needs. */
static const char *sentence(struct vp_ui *ui) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    return plan->verdict != VP_FITS && plan->reason_text ? plan->reason_text
                                                         : vp_words_need(&ui->frame, plan);
}

/* What breaks first when more is asked for; in training, what makes the peak. */
static struct fact breaks_first(struct vp_ui *ui) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    const struct vp_prices *prices = &plan->prices;
    const struct vp_training_report *training = &plan->training;
    struct fact fact = {"breaks first", NULL, NULL};
    if (plan->scenario->training)
        return (struct fact){
            "peak", training->stage ? training->stage[training->worst].peak.cause : NULL, NULL};
    if (!prices->max_concurrency) {
        fact.value = plan->verdict == VP_DOES_NOT_FIT ? "it does already" : NULL;
        return fact;
    }
    const char *context = vp_format_count(&ui->frame, prices->max_context + 1);
    bool capped = prices->context_capped || !prices->max_context;
    fact.value = vp_arena_printf(&ui->frame, "the cache, at sequence %s%s%s",
                                 vp_format_count(&ui->frame, prices->max_concurrency + 1),
                                 capped ? "" : " or context ", capped ? "" : context);
    return fact;
}

/* In training how far it goes takes a search: it is made while no key waits. */
static int searched_limits(struct vp_ui *ui, struct fact out[FACTS]) {
    static const struct {
        enum vp_solve what;
        const char *label;
    } LIMITS[] = {{VP_SOLVE_SEQUENCE, "longest sequence"}, {VP_SOLVE_BATCH, "largest micro batch"}};
    int count = 0;
    for (size_t i = 0; i < sizeof LIMITS / sizeof LIMITS[0]; i++) {
        if (!vp_session_can_solve(ui->session, LIMITS[i].what))
            continue;
        const struct vp_solved *solved = vp_session_solved(ui->session, LIMITS[i].what);
        const char *text = solved ? solved->text : "...";
        const char *colon = strstr(text, ": ");
        out[count++] = (struct fact){LIMITS[i].label, colon ? colon + 2 : text, NULL};
    }
    return count;
}

/* How far it goes and what more costs. */
static int limits_of(struct vp_ui *ui, struct fact out[FACTS]) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    struct vp_arena *frame = &ui->frame;
    struct vp_fact price[VP_FACTS];
    int count = 0;
    if (plan->scenario->training)
        return searched_limits(ui, out);
    if (vp_words_prices(frame, price, plan) == VP_FACTS) {
        const struct vp_serve *serve = &plan->scenario->serve;
        bool capped = plan->prices.context_capped || !plan->prices.max_context;
        const char *at = vp_arena_printf(frame, " at %" PRIu64 " seq", serve->concurrency);
        out[count++] =
            (struct fact){"longest context",
                          vp_arena_printf(frame, "%s%s", price[2].value, capped ? "" : at), NULL};
        out[count++] = (struct fact){"1K more of context", price[0].value, NULL};
        out[count++] = (struct fact){
            "most sequences",
            vp_arena_printf(frame, "%s at %" PRIu64 " tok", price[3].value, serve->context), NULL};
        out[count++] = (struct fact){"1 more sequence", price[1].value, NULL};
    }
    return count;
}

static int speeds_of(struct vp_ui *ui, struct fact out[FACTS]) {
    struct vp_latency_line line[VP_LATENCY_LINES];
    uint32_t count = vp_latency_lines(&ui->frame, line, vp_session_plan(ui->session));
    for (uint32_t i = 0; i < count; i++)
        out[i] = (struct fact){line[i].label, line[i].likely, line[i].interval};
    return (int)count;
}

/* Two facts beside each other. */
static void draw_pair(struct vp_view view, int y, const struct fact *fact, int count) {
    enum { LEFT = 42, FIRST = AFTER_LABEL - 1, SECOND = 19 };
    vp_view_left(view, 0, y, FIRST, VP_LOOK_LABEL, fact[0].label);
    vp_view_left(view, AFTER_LABEL, y, LEFT - AFTER_LABEL - 1, VP_LOOK_STRONG, fact[0].value);
    if (count < 2)
        return;
    vp_view_left(view, LEFT, y, SECOND, VP_LOOK_LABEL, fact[1].label);
    vp_view_left(view, LEFT + SECOND + 1, y, view.width - LEFT - SECOND - 1, VP_LOOK_STRONG,
                 fact[1].value);
}

static int draw_pairs(struct vp_view view, int y, const struct fact *fact, int count, int most) {
    for (int i = 0; i < count && y < most; i += 2)
        draw_pair(view, y++, fact + i, count - i);
    return y;
}

/* "same as", the history, and what is to be said of the scenario. */
void vp_serve_trail(struct vp_ui *ui, struct vp_view view, int y) {
    const struct vp_diags *diags = vp_session_plan(ui->session)->diags;
    int x = vp_view_text(view, 0, y, VP_LOOK_KEY, "same as ");
    vp_view_left(view, x, y, view.width - x, VP_LOOK_PLAIN, vp_session_command(ui->session));
    vp_ui_hit_action(ui, view, 0, y, view.width, VP_ACT_COPY);
    x = vp_view_text(view, 0, y + 1, VP_LOOK_KEY, "history ");
    for (size_t i = 0; x < view.width; i++) {
        const char *step = vp_session_history(ui->session, i);
        if (!step) {
            if (i == 0)
                vp_view_text(view, x, y + 1, VP_LOOK_DIM, "nothing changed yet");
            break;
        }
        x = vp_view_printf(view, x, y + 1, i ? VP_LOOK_DIM : VP_LOOK_PLAIN, "%s%s",
                           i ? "  |  " : "", step);
    }
    if (!diags || diags->count == 0)
        return;
    const struct vp_diag *worst = &diags->items[0];
    for (uint32_t i = 1; i < diags->count; i++)
        if (vp_diag_severity(diags->items[i].id) > vp_diag_severity(worst->id))
            worst = &diags->items[i];
    enum vp_severity severity = vp_diag_severity(worst->id);
    const char *more =
        diags->count > 1 ? vp_arena_printf(&ui->frame, " (and %u more)", (unsigned)diags->count - 1)
                         : "";
    x = vp_view_printf(view, 0, y + 2, vp_theme_severity(severity), "%-8s",
                       severity == VP_INFO ? "note" : vp_severity_name(severity));
    vp_view_wrap(view, x, y + 2, view.width - x, view.height - y - 2, VP_LOOK_PLAIN,
                 vp_arena_printf(&ui->frame, "%s%s", worst->message, more));
}

/* Below the panes, in a terminal of the least size. */
void vp_serve_answers_below(struct vp_ui *ui, struct vp_view view) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    struct fact fact[FACTS];
    int x = vp_view_printf(view, 0, 0, vp_theme_verdict(plan->verdict), "%s",
                           vp_words_verdict(plan->verdict));
    int y = vp_view_wrap(view, x + 2, 0, view.width - x - 2, 2, VP_LOOK_PLAIN, sentence(ui));
    int most = view.height - 3;
    y = draw_pairs(view, y, fact, limits_of(ui, fact), most);
    struct fact first = breaks_first(ui);
    if (first.value && y < most) {
        vp_view_text(view, 0, y, VP_LOOK_LABEL, first.label);
        vp_view_left(view, AFTER_LABEL, y++, view.width - AFTER_LABEL, VP_LOOK_STRONG, first.value);
    }
    draw_pairs(view, y, fact, speeds_of(ui, fact), most);
    vp_serve_trail(ui, view, most);
}

/* Beside the panes, in a wide terminal: one fact a line. */
static int draw_list(struct vp_view view, int y, const struct fact *fact, int count) {
    enum { NAME = AFTER_LABEL, VALUE = 11, MORE = 18 };
    for (int i = 0; i < count; i++, y++) {
        bool more = fact[i].more && view.width >= NAME + VALUE + MORE;
        vp_view_left(view, 0, y, NAME - 1, VP_LOOK_LABEL, fact[i].label);
        vp_view_left(view, NAME, y, more ? VALUE - 1 : view.width - NAME, VP_LOOK_STRONG,
                     fact[i].value);
        if (more)
            vp_view_left(view, NAME + VALUE, y, view.width - NAME - VALUE, VP_LOOK_DIM,
                         fact[i].more);
    }
    return y;
}

/* What the scenario does not say, where there is room for it. */
static void draw_assumptions(struct vp_ui *ui, struct vp_view view, int y) {
    enum { LEAST = 4 };
    const struct vp_result *plan = vp_session_plan(ui->session);
    int room = view.height - y - 1, count = (int)plan->assumption_count;
    if (room < LEAST || count == 0)
        return;
    int shown = count <= room ? count : room - 1;
    vp_view_text(view, 0, y++, VP_LOOK_STRONG, "assumed, not said");
    for (int i = 0; i < shown; i++) {
        const struct vp_assumption *a = &plan->assumptions[i];
        vp_view_left(view, 0, y++, view.width, VP_LOOK_PLAIN,
                     vp_arena_printf(&ui->frame, "%s = %s%s%s", a->field, a->value,
                                     a->why ? ": " : "", a->why ? a->why : ""));
    }
    if (shown < count)
        vp_view_printf(view, 0, y, VP_LOOK_DIM, "and %d more, which 'vramplan plan' lists",
                       count - shown);
}

void vp_serve_answers_beside(struct vp_ui *ui, struct vp_view view) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    struct fact fact[FACTS];
    struct vp_view box = vp_view_box(view, VP_LOOK_EDGE, "what follows", NULL, NULL);
    struct vp_view in = vp_view_part(box, 1, 0, box.width - 2, box.height);
    vp_view_text(in, 0, 0, vp_theme_verdict(plan->verdict), vp_words_verdict(plan->verdict));
    int y = 1 + vp_view_wrap(in, 0, 1, in.width, 4, VP_LOOK_PLAIN, sentence(ui));
    y = draw_list(in, y + 1, fact, limits_of(ui, fact));
    struct fact first = breaks_first(ui);
    if (first.value) {
        vp_view_text(in, 0, y, VP_LOOK_LABEL, first.label);
        y += vp_view_wrap(in, AFTER_LABEL, y, in.width - AFTER_LABEL, 3, VP_LOOK_STRONG,
                          first.value);
    }
    y = draw_list(in, y + 1, fact, speeds_of(ui, fact));
    const char *basis = vp_latency_basis(&ui->frame, plan);
    y += vp_view_wrap(in, 0, y, in.width, 4, VP_LOOK_DIM, basis ? basis : "no speed is given");
    for (uint32_t i = 0; plan->diags && i < plan->diags->count && y + 1 < in.height; i++) {
        const struct vp_diag *diag = &plan->diags->items[i];
        enum vp_severity severity = vp_diag_severity(diag->id);
        vp_view_text(in, 0, ++y, vp_theme_severity(severity), vp_diag_code(diag->id));
        y += vp_view_wrap(in, 6, y, in.width - 6, in.height - y, VP_LOOK_PLAIN, diag->message) - 1;
    }
    draw_assumptions(ui, in, y + 2);
}
