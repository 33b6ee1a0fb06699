/* Parts of planner/plan/doctor.c: rules of what PyTorch and drivers say (doctor_card.c), of what
 * engines and hosts say (doctor_engine.c). A rule adds the findings that one message allows. */
#ifndef VP_PLAN_DOCTOR_PARTS_H
#define VP_PLAN_DOCTOR_PARTS_H

#include "planner/plan/doctor.h"

/* Figures of one message; 0: not said. All are bytes. */
struct vp_doctor_view {
    bool card_known, free_known, in_use_known, others_known, allowed_known;
    uint64_t asked, card, free, in_use, others, allowed;
    uint64_t allocated, reserved, unallocated, pools;
};

struct vp_doctor {
    struct vp_arena *arena;
    const struct vp_doctor_case *in;
    struct vp_diagnosis *out;
    const struct vp_log_message *message;
    const struct vp_log_start *start; /* that the message is of; NULL: none */
    struct vp_doctor_view view;
    bool hip;
};

/* Another finding, or NULL: there are enough. The arithmetic and the steps are added to it. */
struct vp_finding *vp_doctor_add(struct vp_doctor *d, enum vp_cause cause, enum vp_surety surety,
                                 const char *why);
void vp_doctor_line(struct vp_doctor *d, struct vp_finding *f, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void vp_doctor_step(struct vp_doctor *d, struct vp_finding *f, const char *command,
                    const char *why);
/* "14.99 GiB" */
const char *vp_doctor_bytes(struct vp_doctor *d, uint64_t bytes);
/* A figure of the start-up that the message is of; false: not logged, or negative. */
bool vp_doctor_fact(uint64_t *out, const struct vp_doctor *d, enum vp_log_quantity what,
                    const char *place);
/* "rocm-smi --showpids", "nvidia-smi": what lists processes on the card. */
void vp_doctor_step_processes(struct vp_doctor *d, struct vp_finding *f);
/* "vramplan fit scenario.yaml" and its reason. */
void vp_doctor_step_fit(struct vp_doctor *d, struct vp_finding *f, const char *options,
                        const char *why);

void vp_doctor_card(struct vp_doctor *d);
void vp_doctor_engine(struct vp_doctor *d);
/* Over all messages and tables. */
void vp_doctor_growth(struct vp_doctor *d);
void vp_doctor_tables(struct vp_doctor *d);

#endif
