/* The inside of a session, for the files that make it up: tui_session.c (plan, history, messages),
 * session_knobs.c, session_pins.c, session_jobs.c (when what takes longer is done),
 * session_search.c (what it is), session_out.c. */
#ifndef VP_TUI_SESSION_PARTS_H
#define VP_TUI_SESSION_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "tui/tui_session.h"

/* A plan and all it lives in. */
struct vp_session_room {
    struct vp_arena arena;
    struct vp_diags diags;
    struct vp_result *plan; /* NULL: refused, diags say why */
};

/* One state of the history: all changes, and how it came about. */
struct vp_session_state {
    const struct vp_setting *changes;
    size_t count;
    const char *text;
};

/* One thing that takes longer: computed by a thread or at once, in memory of its own over a plan of
 * its own, so that the present one may change meanwhile. */
struct vp_session_job {
    enum vp_session_task task;
    const struct vp_session *session; /* its input, settings and catalogue; nothing else is read */
    uint64_t serial;                  /* of the plan that it is about */
    struct vp_arena arena;
    struct vp_diags diags;
    const struct vp_setting *changes, *all; /* all: with those of the command line */
    size_t change_count, all_count;
    uint32_t stage;               /* of the timeline */
    const struct vp_result *plan; /* with suggestions; NULL: it could not be made */
    struct vp_solved solved;
    struct vp_outcome *outcome;
    struct vp_timeline *timeline;
    struct vp_recompute_way way[VP_RECOMPUTE_WAYS];
    uint32_t ways;
    struct vp_placements *placements;
    struct vp_search *search; /* open; NULL: none */
    pthread_t thread;
    atomic_bool finished, let_go;
};

/* What was derived from the present plan; given back when it changes. */
struct vp_session_details {
    struct vp_arena arena;
    struct vp_knob knob[VP_KNOB_COUNT];
    uint32_t knobs; /* 0: not listed yet */
    struct vp_knob_choice *choice[VP_KNOB_COUNT];
    uint32_t choices[VP_KNOB_COUNT];
    bool listed[VP_KNOB_COUNT];
    const char *command;
    bool wanted[VP_TASK_COUNT];
    struct vp_session_job *job[VP_TASK_COUNT]; /* finished ones */
    uint32_t stage;                            /* of the timeline that is wanted */
    bool apply[VP_SOLVE_COUNT];                /* the answer is to be laid over when it is there */
};

enum { VP_SESSION_MESSAGES = 8 };

struct vp_session {
    struct vp_ctx *ctx; /* of what lives as long as the session */
    const char *input;
    const struct vp_setting *settings; /* of the command line */
    size_t setting_count;
    struct vp_variants *variants;
    struct vp_catalogue *catalogue; /* NULL: not read yet */

    struct vp_session_room room[2]; /* the present plan, and the one that is tried */
    int now;
    uint64_t serial;

    struct vp_session_state *state; /* the history; state[at] is the present one */
    size_t at, states, state_room;
    size_t saved; /* the state that was written last */

    struct vp_arena message_arena;
    struct vp_session_message message[VP_SESSION_MESSAGES];
    uint32_t messages;

    struct vp_session_room pin_room[VP_PINS];
    struct vp_pin pin[VP_PINS]; /* plan NULL: free */

    struct vp_session_details details;
    struct vp_session_job *running; /* by its thread; NULL: none */
};

/* A context for work whose results live in an arena. */
struct vp_ctx vp_session_ctx(const struct vp_session *session, struct vp_arena *arena,
                             struct vp_diags *diags);
/* Plans a set of changes into a room, which is emptied first. False: refused. */
bool vp_session_plan_into(const struct vp_session *session, struct vp_session_room *room,
                          const struct vp_setting *changes, size_t count);
/* A copy whose texts are in the arena too; with room for none. */
struct vp_setting *vp_session_copy(struct vp_arena *arena, const struct vp_setting *settings,
                                   size_t count);
/* The settings of the command line with the changes in their place, each path once. */
size_t vp_session_all(const struct vp_session *session, struct vp_arena *arena,
                      const struct vp_setting **out);
/* The first of the tries that is not refused becomes the present state. False: none, and the
 * messages say why the first was refused. */
bool vp_session_first_of(struct vp_session *session, const struct vp_lever_value *tries,
                         uint32_t count, const char *label);
/* Starts a new set of messages, and adds to it. */
void vp_session_hush(struct vp_session *session);
void vp_session_add_message(struct vp_session *session, enum vp_severity severity, const char *code,
                            const char *text, const char *hint);
const struct vp_catalogue *vp_session_catalogue(struct vp_session *session);
/* Gives back what was derived from the present plan. */
void vp_session_drop_details(struct vp_session *session);
/* At the end: what still runs is let go, and waited for. */
void vp_session_end_jobs(struct vp_session *session);
/* What was computed for a task is computed anew. */
void vp_session_forget(struct vp_session *session, enum vp_session_task task);
/* Does it, into the job. */
void vp_session_do(struct vp_session_job *job);
/* The question of a task; VP_SOLVE_COUNT: it is none. */
enum vp_solve vp_session_question(enum vp_session_task task);

#endif
