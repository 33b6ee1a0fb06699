/* What messages about memory mean: the causes that their figures allow, how sure each is, the
 * arithmetic, and what to do next. Pure functions of what was read (planner/model/run_log.h).
 *
 * A cause is certain when the message's own figures leave no other one, likely when they fit it,
 * possible when they only do not speak against it. Several causes may hold; the surest is first,
 * but a likely reason stands before the fact that the card is full.
 * Left out: what a message does not say. Without figures the cause is UNKNOWN. */
#ifndef VP_PLAN_DOCTOR_H
#define VP_PLAN_DOCTOR_H

#include "planner/base/text.h"
#include "planner/model/run_log.h"

enum vp_cause {
#define X(name, id, words) VP_CAUSE_##name,
#include "planner/plan/doctor_causes.def"
#undef X
    VP_CAUSES
};

const char *vp_cause_id(enum vp_cause cause);
const char *vp_cause_words(enum vp_cause cause);

enum vp_surety { VP_POSSIBLE, VP_LIKELY, VP_CERTAIN };

const char *vp_surety_name(enum vp_surety surety);

enum { VP_FINDING_LINES = 8, VP_FINDING_STEPS = 6, VP_FINDINGS = 16 };

/* A step: a command or setting to paste (NULL: none), and why. */
struct vp_next_step {
    const char *command, *why;
};

struct vp_finding {
    enum vp_cause cause;
    enum vp_surety surety;
    const struct vp_log_message *message; /* the one that its figures are of; NULL: tables alone */
    uint32_t messages;                    /* that say the same */
    const char *why;
    const char *line[VP_FINDING_LINES]; /* the arithmetic */
    uint32_t lines;
    struct vp_next_step step[VP_FINDING_STEPS];
    uint32_t steps;
};

/* What is known beside the log. */
struct vp_doctor_case {
    const struct vp_run_log *log;
    const struct vp_gpu *gpu; /* what the card is; NULL: not known */
    const char *subject;      /* the input of `vramplan plan` and `fit`: "scenario.yaml" */
};

struct vp_diagnosis {
    struct vp_finding finding[VP_FINDINGS]; /* the surest first */
    uint32_t findings;
    bool open; /* nothing but UNKNOWN */
};

void vp_doctor_diagnose(struct vp_arena *arena, struct vp_diagnosis *out,
                        const struct vp_doctor_case *in);

#endif
