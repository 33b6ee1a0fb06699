/* When what takes longer is done: by a thread while keys are read, or at once for scripts and
 * tests. One at a time. The answers are adopted by the thread that asked, so nothing else needs a
 * lock.
 *
 * What is about a plan that is no more is let go: from then on the job gets no more memory, and so
 * it ends soon, by the same way out as when the system has none. */
#include <setjmp.h>
#include <stdlib.h>

#include "planner/base/text.h"
#include "tui/session_parts.h"

static const char *const TASKS[VP_TASK_COUNT] = {[VP_TASK_SOLVE_CONTEXT] = "the longest context",
                                                 [VP_TASK_SOLVE_CONCURRENCY] = "the most sequences",
                                                 [VP_TASK_SOLVE_BATCH] = "the largest micro batch",
                                                 [VP_TASK_SOLVE_SEQUENCE] = "the longest sequence",
                                                 [VP_TASK_SOLVE_GPUS] = "the fewest GPUs",
                                                 [VP_TASK_SUGGESTIONS] = "changes that help",
                                                 [VP_TASK_TIMELINE] = "the training step",
                                                 [VP_TASK_WAYS] = "ways to recompute",
                                                 [VP_TASK_PLACEMENTS] =
                                                     "the best places to recompute"};

enum vp_solve vp_session_question(enum vp_session_task task) {
    return task <= VP_TASK_SOLVE_GPUS ? (enum vp_solve)(task - VP_TASK_SOLVE_CONTEXT)
                                      : VP_SOLVE_COUNT;
}

/* ---- one job ---- */

/* The job outlives the details, so it is no part of an arena but its own. NULL: no memory. */
static struct vp_session_job *new_job(struct vp_session *session, enum vp_session_task task) {
    struct vp_session_job *job = calloc(1, sizeof *job);
    const struct vp_setting *list;

    if (!job)
        return NULL;
    job->task = task;
    job->session = session;
    job->serial = session->serial;
    job->stage = session->details.stage;
    job->arena =
        (struct vp_arena){.oom = session->ctx->arena->oom, .take = session->ctx->arena->take};
    job->diags.arena = &job->arena;
    job->change_count = vp_session_changes(session, &list);
    job->changes = vp_session_copy(&job->arena, list, job->change_count);
    job->all_count = vp_session_all(session, &job->arena, &list);
    job->all = vp_session_copy(&job->arena, list, job->all_count);
    vp_session_catalogue(session); /* read before a thread may want it */
    return job;
}

static void free_job(struct vp_session_job *job) {
    if (!job)
        return;
    vp_arena_free(&job->arena);
    free(job);
}

static _Thread_local struct vp_session_job *at_work; /* the job of this thread; NULL: none */

static void *take_while_wanted(size_t n) {
    void *(*take)(size_t) = at_work->session->ctx->arena->take;
    if (atomic_load(&at_work->let_go))
        return NULL;
    return take ? take(n) : malloc(n);
}

/* Without memory the job ends without an answer. */
static void *run(void *user) {
    struct vp_session_job *job = user;
    jmp_buf oom;

    at_work = job;
    job->arena.oom = &oom;
    job->arena.take = take_while_wanted;
    if (setjmp(oom) == 0)
        vp_session_do(job);
    else if (job->search)
        vp_arena_free(&job->search->arena);
    atomic_store(&job->finished, true);
    return NULL;
}

/* ---- adopting ---- */

/* An answer that was to be laid over the scenario as soon as it is there. */
static void apply(struct vp_session *session, enum vp_session_task task) {
    enum vp_solve what = vp_session_question(task);
    if (what < VP_SOLVE_COUNT && session->details.apply[what])
        vp_session_solve(session, what);
}

static void adopt(struct vp_session *session, struct vp_session_job *job) {
    struct vp_session_details *d = &session->details;

    job->arena.oom = session->ctx->arena->oom;
    job->arena.take = session->ctx->arena->take;
    if (atomic_load(&job->let_go) || job->serial != session->serial ||
        (job->task == VP_TASK_TIMELINE && job->stage != d->stage)) {
        free_job(job);
        return;
    }
    free_job(d->job[job->task]);
    d->job[job->task] = job;
    apply(session, job->task);
}

static void join(struct vp_session *session) {
    struct vp_session_job *job = session->running;
    pthread_join(job->thread, NULL);
    session->running = NULL;
    adopt(session, job);
}

void vp_session_drop_details(struct vp_session *session) {
    struct vp_session_details *d = &session->details;
    struct vp_arena arena = d->arena;

    if (session->running)
        atomic_store(&session->running->let_go, true);
    for (int i = 0; i < VP_TASK_COUNT; i++)
        free_job(d->job[i]);
    vp_arena_free(&arena);
    *d = (struct vp_session_details){.arena = arena};
}

void vp_session_forget(struct vp_session *session, enum vp_session_task task) {
    free_job(session->details.job[task]);
    session->details.job[task] = NULL;
}

void vp_session_end_jobs(struct vp_session *session) {
    vp_session_drop_details(session);
    if (session->running)
        join(session);
    vp_session_drop_details(session);
}

/* ---- what is next ---- */

static int next_task(const struct vp_session *session) {
    const struct vp_session_details *d = &session->details;
    int task = 0;
    while (task < VP_TASK_COUNT && (!d->wanted[task] || d->job[task]))
        task++;
    return task;
}

const char *vp_session_pending(const struct vp_session *session) {
    int task = next_task(session);
    return task < VP_TASK_COUNT ? TASKS[task] : NULL;
}

/* NULL: nothing is wanted, or there is no memory. */
static struct vp_session_job *next_job(struct vp_session *session) {
    int task = next_task(session);
    return task < VP_TASK_COUNT ? new_job(session, (enum vp_session_task)task) : NULL;
}

bool vp_session_work(struct vp_session *session) {
    if (session->running) {
        join(session);
        return true;
    }
    struct vp_session_job *job = next_job(session);
    if (!job)
        return false;
    vp_session_do(job);
    adopt(session, job);
    return true;
}

bool vp_session_poll(struct vp_session *session) {
    if (session->running && !atomic_load(&session->running->finished))
        return false;
    if (session->running) {
        join(session);
        return true;
    }
    struct vp_session_job *job = next_job(session);
    if (!job)
        return false;
    if (pthread_create(&job->thread, NULL, run, job) == 0) {
        session->running = job;
        return false;
    }
    vp_session_do(job); /* no thread is to be had */
    adopt(session, job);
    return true;
}
