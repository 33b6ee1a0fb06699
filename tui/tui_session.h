/* What the what-if screen asks, without any drawing: one scenario, the changes laid over it, the
 * plan they lead to; undo and redo, pins, searches, exports. The screens show what stands here and
 * hold no figures of their own; whatever is shown can be asked for by a command, and
 * vp_session_command says by which.
 *
 * The input is read once. A change finishes the scenario and plans it again, in an arena that is
 * rewound, so memory does not grow with the number of keys but by the texts of the history. A
 * change that is refused leaves everything as it was; its diagnostics are the messages. Text
 * returned lives until the next call that changes something, unless it says otherwise.
 *
 * What takes longer than a key may (searches, recompute placements) is not computed when it is
 * asked for: the accessor returns NULL and remembers that it is wanted; vp_session_poll computes it
 * beside the keys, vp_session_work at once. Everything is kept until the plan changes. */
#ifndef VP_TUI_TUI_SESSION_H
#define VP_TUI_TUI_SESSION_H

#include "api/find.h"
#include "planner/plan/recompute_report.h"
#include "planner/plan/train_timeline.h"
#include "tui/knobs.h"

struct vp_session;

/* What takes longer than a key may. */
enum vp_session_task {
    VP_TASK_SOLVE_CONTEXT, /* as enum vp_solve */
    VP_TASK_SOLVE_CONCURRENCY,
    VP_TASK_SOLVE_BATCH,
    VP_TASK_SOLVE_SEQUENCE,
    VP_TASK_SOLVE_GPUS,
    VP_TASK_SUGGESTIONS,
    VP_TASK_TIMELINE,
    VP_TASK_WAYS,
    VP_TASK_PLACEMENTS,
    VP_TASK_COUNT
};

/* ---- opening ---- */

/* settings: of the command line. The input must be one scenario that can be planned; where nothing
 * but the GPU is missing, one is put in and a message says so. Faults are in the context's
 * diagnostics. The handle lives in the context's arena; to be closed in either case (NULL is
 * allowed). */
enum vp_status vp_session_open(struct vp_ctx *ctx, struct vp_session **out, const char *input,
                               const struct vp_setting *settings, size_t setting_count);
void vp_session_close(struct vp_session *session);

/* ---- what is shown ---- */

/* The plan of the scenario with the changes. Never NULL. */
const struct vp_result *vp_session_plan(const struct vp_session *session);
/* Another number whenever the plan is another one. */
uint64_t vp_session_serial(const struct vp_session *session);
const char *vp_session_input(const struct vp_session *session);

struct vp_session_message {
    enum vp_severity severity; /* INFO: what was done; ERROR: why it was not */
    const char *code;          /* "VP101"; NULL */
    const char *text, *hint;   /* hint: NULL for none */
};
/* Of the last thing that was asked for; returns how many. */
uint32_t vp_session_messages(const struct vp_session *session,
                             const struct vp_session_message **out);
/* Puts one in their place, such as that of a key that does nothing; text is copied. */
void vp_session_say(struct vp_session *session, enum vp_severity severity, const char *text);

/* ---- changes ---- */

/* Lays settings over what is there, as one step of the history; a path that was changed before
 * takes the new value. label: for messages ("context"); NULL: the path. False: refused, nothing
 * changed. */
bool vp_session_change(struct vp_session *session, const struct vp_setting *settings, size_t count,
                       const char *label);
bool vp_session_set(struct vp_session *session, const char *path, const char *value);
/* All changes of a pin, a proposal, ... in place of the present ones. */
bool vp_session_replace(struct vp_session *session, const struct vp_setting *settings, size_t count,
                        const char *label);
/* Takes back the change of one path; of everything. False: there is none. */
bool vp_session_reset(struct vp_session *session, const char *path);
bool vp_session_reset_all(struct vp_session *session);
bool vp_session_undo(struct vp_session *session);
bool vp_session_redo(struct vp_session *session);
size_t vp_session_undos(const struct vp_session *session); /* steps that can be taken back */
size_t vp_session_redos(const struct vp_session *session);
/* The changes now, over the input and the settings of the command line. */
size_t vp_session_changes(const struct vp_session *session, const struct vp_setting **out);
/* Step `back` of the history in words, 0 the last: "context 8192 -> 32768"; NULL: there is none. */
const char *vp_session_history(const struct vp_session *session, size_t back);
/* Changes that no export has written yet. */
bool vp_session_unsaved(const struct vp_session *session);

/* ---- knobs (knobs.h says what they are) ---- */

/* Those that the present scenario has, in the order of the table; lives until the plan changes. */
uint32_t vp_session_knobs(struct vp_session *session, const struct vp_knob **out);
/* by: -1, +1, and -10, +10 for a large step. */
bool vp_session_step(struct vp_session *session, enum vp_knob_id knob, int by);
/* What a knob can be set to, with the reason of what is refused; 0: any number or text. Lives until
 * the plan changes. */
uint32_t vp_session_choices(struct vp_session *session, enum vp_knob_id knob,
                            const struct vp_knob_choice **out);
/* The next (+1) or previous (-1) value that is not refused. */
bool vp_session_choose(struct vp_session *session, enum vp_knob_id knob, int by);
/* A value as a user types it: "64k", "fp8", "mi355x". */
bool vp_session_type(struct vp_session *session, enum vp_knob_id knob, const char *text);
bool vp_session_reset_knob(struct vp_session *session, enum vp_knob_id knob);

/* ---- pins ---- */

enum { VP_PINS = 4 };
struct vp_pin {
    const char *label;
    const struct vp_result *plan;
    const struct vp_setting *changes;
    size_t change_count;
};
/* Slot 0 to 3 ("A" to "D"); NULL: free. */
const struct vp_pin *vp_session_pin(const struct vp_session *session, uint32_t slot);
uint32_t vp_session_pins(const struct vp_session *session);
/* The slot that holds the present changes; VP_PINS: none. */
uint32_t vp_session_pinned(const struct vp_session *session);
/* Pins the present plan into the first free slot, or takes it out where it is pinned. False: all
 * slots are taken. */
bool vp_session_pin_toggle(struct vp_session *session);
bool vp_session_unpin(struct vp_session *session, uint32_t slot);
bool vp_session_pin_rename(struct vp_session *session, uint32_t slot, const char *label);
/* The changes of a pin become the present ones. */
bool vp_session_pin_recall(struct vp_session *session, uint32_t slot);

/* ---- searches ---- */

enum vp_solve {
    VP_SOLVE_CONTEXT,
    VP_SOLVE_CONCURRENCY,
    VP_SOLVE_BATCH,
    VP_SOLVE_SEQUENCE,
    VP_SOLVE_GPUS,
    VP_SOLVE_COUNT
};
struct vp_solved {
    enum vp_solve what;
    bool found;
    const char *text;                  /* "longest context at 16 sequences: 40,384 tokens" */
    const char *detail;                /* what ends it, or why there is none; NULL */
    const struct vp_setting *settings; /* that make it so */
    size_t setting_count;
};
/* "context", "concurrency", ... and whether the scenario has it. */
const char *vp_solve_name(enum vp_solve what);
bool vp_session_can_solve(const struct vp_session *session, enum vp_solve what);
/* NULL: not computed yet (vp_session_work). Lives until the plan changes. */
const struct vp_solved *vp_session_solved(struct vp_session *session, enum vp_solve what);
/* Lays the answer over the scenario, as one step of the history. Of a training step it is searched
 * for first (vp_session_poll), and laid over when it is there. */
bool vp_session_solve(struct vp_session *session, enum vp_solve what);

/* Changes that make it fit, as `fit` gives them. *plan: the present plan with its suggestions, each
 * one small change; NULL: not computed yet. The outcome is NULL then, and for llama.cpp, which has
 * a search of its own (`fit`). */
const struct vp_outcome *vp_session_suggestions(struct vp_session *session,
                                                const struct vp_result **plan);
bool vp_session_apply(struct vp_session *session, const struct vp_proposal *proposal);

/* ---- a training step ---- */

/* One step of a stage over time; NULL: not computed yet, or nothing is trained. */
const struct vp_timeline *vp_session_timeline(struct vp_session *session, uint32_t stage);
/* The step with another train.recompute, planned as a whole. */
struct vp_recompute_way {
    const char *name;             /* "sqrt" */
    const char *value;            /* of train.recompute */
    const struct vp_result *plan; /* NULL: refused */
    const char *refused;          /* why */
};
enum { VP_RECOMPUTE_WAYS = 6 };
/* What has a name: none, selective, sqrt, full. 0: not computed yet, or nothing is trained. */
uint32_t vp_session_ways(struct vp_session *session, const struct vp_recompute_way **out);
/* The best: what it would be, time against memory of the tightest stage, and as ways `optimal`
 * and the best that a scenario can be told layer by layer. */
struct vp_placements {
    const struct vp_recompute_report *report;
    struct vp_frontier frontier;
    struct vp_recompute_way way[VP_RECOMPUTE_WAYS];
    uint32_t ways;
};
const struct vp_placements *vp_session_placements(struct vp_session *session);

/* ---- doing what takes longer ---- */

/* Begins what was asked for and is not there yet, in a thread, and takes over what is ready. True:
 * something is there that was not before, or was laid over the scenario. For a program between
 * keys. */
bool vp_session_poll(struct vp_session *session);
/* Does one such thing at once. False: there is none. For scripts and tests. */
bool vp_session_work(struct vp_session *session);
/* What is still to come, in words ("where to recompute"); NULL: nothing. */
const char *vp_session_pending(const struct vp_session *session);
/* It was computed, even if there is no answer. */
bool vp_session_has(const struct vp_session *session, enum vp_session_task task);

/* ---- out ---- */

/* The command that prints the present plan. */
const char *vp_session_command(struct vp_session *session);

enum vp_export {
    VP_EXPORT_YAML,
    VP_EXPORT_JSON,
    VP_EXPORT_MARKDOWN,
    VP_EXPORT_HTML,
    VP_EXPORT_TEXT,
    VP_EXPORT_CSV,
    VP_EXPORT_COUNT
};
/* "yaml", "json", ...: also the ending of a file that asks for it. COUNT: there is none such. */
const char *vp_export_name(enum vp_export form);
enum vp_export vp_export_of_path(const char *path);
/* A name for the file: "llama3-70b.yaml". */
const char *vp_session_export_path(struct vp_session *session, enum vp_export form);
/* The text of it; out's arena is the caller's. path: where it will be written, for relative paths
 * in a scenario; NULL: the current folder. */
enum vp_status vp_session_render(struct vp_session *session, struct vp_buf *out,
                                 enum vp_export form, const char *path);
/* Tells the session that it was written there (a message, and nothing is unsaved), or, with a
 * fault, that it was not. */
void vp_session_exported(struct vp_session *session, const char *path, const char *fault);

#endif
