/* Inputs -> answers: what `plan` and the public API share. Each scenario of an input gives one
 * answer; an input that cannot be read gives one without a result. */
#ifndef VP_API_ANSWERS_H
#define VP_API_ANSWERS_H

#include "planner/base/json_writer.h"
#include "planner/import/input.h"
#include "planner/plan/plan.h"

enum vp_exit {
    VP_EXIT_YES = 0,          /* fits, done */
    VP_EXIT_NO = 1,           /* does not fit */
    VP_EXIT_INPUT = 2,        /* the input or the command line is wrong */
    VP_EXIT_INCONCLUSIVE = 3, /* at risk */
    VP_EXIT_ENV = 4           /* the environment failed, or an internal error */
};

/* Of several: the first of 4, 2, 1, 3, 0 that occurs. */
enum vp_exit vp_exit_of_both(enum vp_exit a, enum vp_exit b);
enum vp_exit vp_exit_of_status(enum vp_status status);
enum vp_exit vp_exit_of_verdict(enum vp_verdict verdict);

/* One scenario that was planned, or something that has no result: an input that cannot be read, a
 * scenario whose sizes overflow. */
struct vp_answer {
    struct vp_result *result; /* NULL: none */
    const struct vp_diags *diags;
    const char *input;
    const char *scenario; /* its name, NULL when it is not known */
    enum vp_status status;
};

struct vp_answers {
    struct vp_answer *items;
    size_t count, capacity;
};

/* Plans every scenario of an input and adds the answers. */
void vp_answers_add(const struct vp_ctx *ctx, struct vp_answers *answers, const char *input,
                    const struct vp_setting *settings, size_t setting_count);
/* The plan of the one scenario that an input is, for commands that take no more; its diagnostics
 * become the context's. command: for messages. */
enum vp_status vp_answers_one(struct vp_ctx *ctx, const struct vp_result **out, const char *command,
                              const char *input, const struct vp_setting *settings,
                              size_t setting_count);
/* The exit code of all answers together. */
enum vp_exit vp_answers_exit(const struct vp_answers *answers);
bool vp_answers_have_result(const struct vp_answers *answers);
/* One object for one answer, else a list; with a newline. */
void vp_answers_json(struct vp_buf *out, const struct vp_answers *answers);
/* What stands in place of a result when there is none, so that a machine sees why: an object with
 * the schema and the diagnostics. input, scenario: NULL when not known. */
void vp_answers_json_error(struct vp_json *json, const char *schema, const char *input,
                           const char *scenario, const struct vp_diags *diags);

#endif
