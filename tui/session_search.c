/* What takes longer than a key may: how far a quantity goes, what would make it fit, where to
 * recompute. Asked for by the screens, computed by vp_session_work, kept until the plan changes. */
#include <inttypes.h>
#include <stdio.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/plan/plan.h"
#include "reports/recompute_emit.h"
#include "reports/words.h"
#include "tui/session_parts.h"

static const struct {
    const char *name, *label;
    enum vp_field field;
    bool training, serving;
} SOLVE[VP_SOLVE_COUNT] = {
    [VP_SOLVE_CONTEXT] = {"context", "longest context", VP_F_CONTEXT, false, true},
    [VP_SOLVE_CONCURRENCY] = {"concurrency", "most sequences", VP_F_CONCURRENCY, false, true},
    [VP_SOLVE_BATCH] = {"batch", "largest micro batch", VP_F_MICRO_BATCH, true, false},
    [VP_SOLVE_SEQUENCE] = {"sequence", "longest sequence", VP_F_SEQUENCE_LENGTH, true, false},
    [VP_SOLVE_GPUS] = {"gpus", "fewest GPUs", VP_F_COUNT, true, true},
};

const char *vp_solve_name(enum vp_solve what) { return SOLVE[what].name; }

bool vp_session_can_solve(const struct vp_session *session, enum vp_solve what) {
    const struct vp_scenario *s = vp_session_plan(session)->scenario;
    bool llama = vp_engine_is_llama(s->engine.kind);
    if (what == VP_SOLVE_GPUS && (llama || s->hardware.group_count > 0 || s->hardware.count == 0))
        return false;
    return s->training ? SOLVE[what].training : SOLVE[what].serving;
}

/* A search over the job's scenario; its answers live with the job. */
struct searching {
    struct vp_session_job *job;
    struct vp_ctx ctx;
    struct vp_search search;
};

static bool open_search(struct vp_session_job *job, struct searching *out) {
    const struct vp_session *session = job->session;

    out->job = job;
    out->ctx = vp_session_ctx(session, &job->arena, &job->diags);
    return vp_search_over(&out->ctx, &out->search, session->variants, session->input, job->all,
                          job->all_count) == VP_OK;
}

/* ---- how far ---- */

static void set_settings(struct vp_solved *out, const struct vp_lever_value *value) {
    out->found = true;
    out->settings = value->set;
    out->setting_count = value->sets;
}

/* What it is asked for at: "16 sequences". */
static const char *beside(struct vp_arena *arena, const struct vp_scenario *s, enum vp_solve what) {
    switch (what) {
    case VP_SOLVE_CONTEXT:
        return vp_words_plural(arena, s->serve.concurrency, "sequence", "sequences");
    case VP_SOLVE_CONCURRENCY:
        return vp_arena_printf(arena, "a context of %s", vp_format_count(arena, s->serve.context));
    case VP_SOLVE_BATCH:
        return vp_arena_printf(arena, "sequences of %s", vp_format_count(arena, s->train.sequence));
    case VP_SOLVE_SEQUENCE:
        return vp_arena_printf(arena, "a micro batch of %" PRIu64, s->train.micro_batch);
    case VP_SOLVE_GPUS:
    case VP_SOLVE_COUNT:
        break;
    }
    return s->hardware.gpu.id;
}

/* Why it goes no further: the reason of the plan one step beyond. */
static const char *beyond(struct searching *g, enum vp_solve what, uint64_t n) {
    struct vp_lever_value more =
        vp_lever_workload(g->ctx.arena, g->search.base, SOLVE[what].field, n);
    const struct vp_result *plan = vp_search_plan(&g->search, more.set, more.sets);
    const char *refused = plan ? NULL : vp_search_refusal(&g->search, more.set, more.sets);

    if (refused)
        return refused;
    return plan && plan->reason_text && *plan->reason_text ? plan->reason_text
                                                           : "one more does not fit for sure";
}

static void solve_far(struct searching *g, enum vp_solve what) {
    struct vp_solved *out = &g->job->solved;
    struct vp_arena *arena = &g->job->arena;
    const struct vp_scenario *s = g->search.base;
    const struct vp_pick none = {0};
    struct vp_reach reach = vp_find_reach(&g->search, &none, SOLVE[what].field);
    const char *label = SOLVE[what].label, *at = beside(arena, s, what);
    uint64_t n = reach.sure > 0 ? reach.sure : reach.likely;

    if (n == 0) {
        out->text = vp_arena_printf(arena, "%s at %s: none fits", label, at);
        out->detail = g->job->plan->reason_text;
        return;
    }
    struct vp_lever_value value = vp_lever_workload(arena, s, SOLVE[what].field, n);
    set_settings(out, &value);
    out->text = vp_arena_printf(arena, "%s at %s: %s%s", label, at, vp_format_count(arena, n),
                                reach.sure > 0 ? "" : ", by the likely figures only");
    if (reach.capped)
        out->detail = "the model's own limit, or that of the search: memory would hold more";
    else if (reach.sure > 0 && reach.likely > reach.sure)
        out->detail =
            vp_arena_printf(arena, "for sure; %s by the likely figures. Beyond: %s",
                            vp_format_count(arena, reach.likely), beyond(g, what, reach.sure + 1));
    else
        out->detail = vp_arena_printf(arena, "beyond: %s", beyond(g, what, n + 1));
}

/* ---- how few ---- */

static struct vp_setting *settings_of(struct vp_arena *arena, const struct vp_proposal *p) {
    struct vp_setting *out = VP_NEW_ARRAY(arena, p->patches + 1, struct vp_setting);
    for (uint32_t i = 0; i < p->patches; i++)
        out[i] = (struct vp_setting){p->patch[i].field, p->patch[i].value, p->patch[i].field};
    return out;
}

static void solve_few(struct searching *g) {
    struct vp_solved *out = &g->job->solved;
    struct vp_arena *arena = &g->job->arena;
    struct vp_outcome *found = VP_NEW(arena, struct vp_outcome);
    const char *own = NULL;

    vp_find_fewest(&g->search, found, g->job->plan, &own, 1, false);
    const struct vp_proposal *best = found->count > 0 ? &found->item[0] : NULL;
    if (!best || !vp_trial_may_fit(&best->trial)) {
        out->text = vp_arena_printf(arena, "fewest GPUs: none of up to %d is enough", VP_MOST_GPUS);
        out->detail = found->note_count > 0 ? found->notes[0] : found->short_text;
        return;
    }
    const struct vp_trial *t = &best->trial;
    out->found = true;
    out->settings = settings_of(arena, best);
    out->setting_count = best->patches;
    out->text = vp_arena_printf(arena, "fewest GPUs: %" PRIu64 " x %s", t->gpus, t->gpu);
    out->detail = vp_arena_printf(
        arena, "tensor %" PRIu64 " x pipeline %" PRIu64 " x data %" PRIu64 ", %s GiB to spare%s",
        t->tensor, t->pipeline, t->data, vp_words_signed_gib(arena, t->headroom_bytes),
        vp_trial_fits(t) ? "" : ", by the likely figures only");
}

/* ---- what would make it fit ---- */

static void find_changes(struct searching *g) {
    if (g->job->plan->llama)
        return;
    g->job->outcome = VP_NEW(&g->job->arena, struct vp_outcome);
    vp_find_changes(&g->search, g->job->outcome, g->job->plan, &g->job->session->catalogue->gpus);
}

/* ---- a training step ---- */

static void make_timeline(struct vp_session_job *job) {
    struct vp_timeline *timeline = VP_NEW(&job->arena, struct vp_timeline);

    if (job->stage < job->plan->training.stages &&
        vp_timeline_make(&job->arena, timeline, job->plan, job->stage))
        job->timeline = timeline;
}

static void add_way(struct vp_session_job *job, struct vp_recompute_way *out, const char *name,
                    const char *value) {
    const struct vp_session *session = job->session;
    struct vp_setting *all = VP_NEW_ARRAY(&job->arena, job->change_count + 1, struct vp_setting);
    struct vp_diags *diags = VP_NEW(&job->arena, struct vp_diags);
    struct vp_ctx ctx = vp_session_ctx(session, &job->arena, diags);
    struct vp_result *plan = VP_NEW(&job->arena, struct vp_result);
    const struct vp_scenario *scenario;

    for (size_t i = 0; i < job->change_count; i++)
        all[i] = job->changes[i];
    all[job->change_count] = (struct vp_setting){"train.recompute", value, "train.recompute"};
    *out = (struct vp_recompute_way){.name = name, .value = value};
    if (vp_variants_make(session->variants, &ctx, &scenario, all, job->change_count + 1) == VP_OK &&
        vp_plan_answer(&ctx, plan, scenario) == VP_OK)
        out->plan = plan;
    for (uint32_t i = 0; !out->plan && i < diags->count; i++)
        if (vp_diag_severity(diags->items[i].id) == VP_ERROR && !out->refused)
            out->refused = diags->items[i].message;
}

static void try_named(struct vp_session_job *job) {
    static const char *const NAMES[] = {"none", "selective", "sqrt", "full"};

    for (size_t i = 0; job->plan->training.stage && i < sizeof NAMES / sizeof *NAMES; i++)
        add_way(job, &job->way[job->ways++], NAMES[i], NAMES[i]);
}

static void place_recomputes(struct vp_session_job *job) {
    struct vp_recompute_report *report = VP_NEW(&job->arena, struct vp_recompute_report);
    struct vp_placements *out = VP_NEW(&job->arena, struct vp_placements);

    if (vp_recompute_of_scenario(&job->arena, report, job->plan->scenario, 0, VP_FRAMEWORK_COUNT))
        return;
    const struct vp_train_chain *chain = &report->problem.stage[report->stage].chain;
    vp_recompute_frontier(&job->arena, &out->frontier, &chain->chain,
                          chain->in_flight > 1 ? VP_PLACE_PIPELINE : VP_PLACE_JOINT,
                          chain->in_flight);
    out->report = report;
    add_way(job, &out->way[out->ways++], "optimal", "optimal");
    const struct vp_framework_plan *told = &report->framework[VP_FRAMEWORK_VRAMPLAN];
    if (!told->refused)
        add_way(job, &out->way[out->ways++], "by layers",
                vp_recompute_setting_value(&job->arena, told));
    job->placements = out;
}

/* ---- doing it ---- */

/* The plan that the job is about, in its own memory; in full where suggestions are wanted. */
static bool plan(struct vp_session_job *job) {
    struct vp_ctx ctx = vp_session_ctx(job->session, &job->arena, &job->diags);
    struct vp_result *out = VP_NEW(&job->arena, struct vp_result);
    const struct vp_scenario *scenario;
    bool full = job->task == VP_TASK_SUGGESTIONS;

    if (vp_variants_make(job->session->variants, &ctx, &scenario, job->changes,
                         job->change_count) != VP_OK ||
        (full ? vp_plan_run : vp_plan_answer)(&ctx, out, scenario) != VP_OK)
        return false;
    job->plan = out;
    return true;
}

static void search(struct vp_session_job *job) {
    struct searching *g = VP_NEW(&job->arena, struct searching);
    enum vp_solve what = vp_session_question(job->task);

    job->search = &g->search;
    if (open_search(job, g)) {
        if (job->task == VP_TASK_SUGGESTIONS)
            find_changes(g);
        else if (what == VP_SOLVE_GPUS)
            solve_few(g);
        else
            solve_far(g, what);
    }
    job->search = NULL;
    vp_search_close(&g->search);
}

void vp_session_do(struct vp_session_job *job) {
    enum vp_solve what = vp_session_question(job->task);

    job->solved = (struct vp_solved){.what = what, .text = "this cannot be searched"};
    if (!plan(job))
        return;
    if (job->task == VP_TASK_TIMELINE)
        make_timeline(job);
    else if (job->task == VP_TASK_WAYS)
        try_named(job);
    else if (job->task == VP_TASK_PLACEMENTS)
        place_recomputes(job);
    else
        search(job);
}

/* ---- the answers ---- */

static const struct vp_session_job *want(struct vp_session *session, enum vp_session_task task) {
    session->details.wanted[task] = true;
    return session->details.job[task];
}

const struct vp_solved *vp_session_solved(struct vp_session *session, enum vp_solve what) {
    if (!vp_session_can_solve(session, what))
        return NULL;
    const struct vp_session_job *job =
        want(session, (enum vp_session_task)(VP_TASK_SOLVE_CONTEXT + (int)what));
    return job ? &job->solved : NULL;
}

/* The answer belongs to the present plan, which is about to change. */
static bool lay_over(struct vp_session *session, const struct vp_solved *found) {
    struct vp_arena arena = {.oom = session->ctx->arena->oom, .take = session->ctx->arena->take};
    const char *text = vp_arena_printf(&arena, "%s", found->text);
    const char *detail = found->detail ? vp_arena_printf(&arena, "%s", found->detail) : NULL;
    bool done =
        vp_session_change(session, found->settings, found->setting_count, SOLVE[found->what].label);
    if (done) {
        vp_session_hush(session);
        vp_session_add_message(session, VP_INFO, NULL, text, detail);
    }
    vp_arena_free(&arena);
    return done;
}

bool vp_session_solve(struct vp_session *session, enum vp_solve what) {
    char text[128];

    if (!vp_session_can_solve(session, what)) {
        vp_session_say(session, VP_INFO, "this scenario has no such question");
        return false;
    }
    /* of a server it is there at once; a training step takes longer */
    if (!vp_session_solved(session, what) && !vp_session_plan(session)->training.stage)
        while (!vp_session_solved(session, what) && vp_session_work(session))
            continue;
    const struct vp_solved *found = vp_session_solved(session, what);
    session->details.apply[what] = !found;
    if (!found) {
        snprintf(text, sizeof text, "searching: %s ...", SOLVE[what].label);
        vp_session_say(session, VP_INFO, text);
        return true;
    }
    if (found->found)
        return lay_over(session, found);
    vp_session_hush(session);
    vp_session_add_message(session, VP_WARNING, NULL, found->text, found->detail);
    return false;
}

const struct vp_outcome *vp_session_suggestions(struct vp_session *session,
                                                const struct vp_result **plan) {
    const struct vp_session_job *job = want(session, VP_TASK_SUGGESTIONS);
    *plan = job ? job->plan : NULL;
    return job ? job->outcome : NULL;
}

bool vp_session_apply(struct vp_session *session, const struct vp_proposal *p) {
    struct vp_arena arena = {.oom = session->ctx->arena->oom, .take = session->ctx->arena->take};
    struct vp_buf label = {.arena = &arena};

    for (uint32_t i = 0; i < p->changes; i++)
        vp_buf_printf(&label, "%s%s", i ? " + " : "", p->change[i].lever);
    bool done = vp_session_change(session, settings_of(&arena, p), p->patches, vp_buf_text(&label));
    vp_arena_free(&arena);
    return done;
}

static bool trains(const struct vp_session *session) {
    return vp_session_plan(session)->training.stage != NULL;
}

const struct vp_timeline *vp_session_timeline(struct vp_session *session, uint32_t stage) {
    struct vp_session_details *d = &session->details;
    if (!trains(session) || stage >= vp_session_plan(session)->training.stages)
        return NULL;
    if (d->stage != stage)
        vp_session_forget(session, VP_TASK_TIMELINE);
    d->stage = stage;
    const struct vp_session_job *job = want(session, VP_TASK_TIMELINE);
    return job ? job->timeline : NULL;
}

uint32_t vp_session_ways(struct vp_session *session, const struct vp_recompute_way **out) {
    const struct vp_session_job *job = trains(session) ? want(session, VP_TASK_WAYS) : NULL;
    *out = job ? job->way : NULL;
    return job ? job->ways : 0;
}

const struct vp_placements *vp_session_placements(struct vp_session *session) {
    const struct vp_session_job *job = trains(session) ? want(session, VP_TASK_PLACEMENTS) : NULL;
    return job ? job->placements : NULL;
}

bool vp_session_has(const struct vp_session *session, enum vp_session_task task) {
    return session->details.job[task] != NULL;
}
