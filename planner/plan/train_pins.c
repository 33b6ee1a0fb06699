#include "planner/plan/train_pins.h"

#include <stddef.h>

/* Member of struct vp_train_kept that the parts of a stage add up from. */
static struct vp_sum *part_of(struct vp_train_kept *kept, enum vp_train_measure what) {
    switch (what) {
    case VP_TM_PARAMETERS:
        return &kept->parameters;
    case VP_TM_OPTIMIZER:
        return &kept->optimizer;
    case VP_TM_MASTER:
        return &kept->master;
    default:
        return &kept->gradients;
    }
}

static uint64_t scale(uint64_t bytes, uint64_t measured, uint64_t computed) {
    return computed > 0 ? vp_mul_div(bytes, measured, computed) : bytes;
}

/* Scales the parts of the stage to the measured sum; what rounding leaves goes to the layers. */
static void pin_parts(struct vp_train_stage *s, enum vp_train_measure what, uint64_t *total,
                      uint64_t measured) {
    uint64_t sum = 0;

    for (int i = 0; i < VP_PART_COUNT; i++) {
        struct vp_sum *part = part_of(&s->part[i], what);
        part->v = scale(part->v, measured, *total);
        sum += part->v;
        if (what == VP_TM_PARAMETERS) /* adapters are a part of them */
            s->part[i].adapters.v = scale(s->part[i].adapters.v, measured, *total);
    }
    part_of(&s->part[VP_PART_LAYERS], what)->v += measured - sum;
    if (what == VP_TM_PARAMETERS)
        s->adapter_bytes = scale(s->adapter_bytes, measured, *total);
    if (what != VP_TM_GRADIENTS)
        s->static_bytes = s->static_bytes - *total + measured;
    *total = measured;
}

static void pin_moments(struct vp_train_stage *s, size_t member, uint64_t measured,
                        uint64_t computed) {
    for (int i = 0; i < VP_TRAIN_MOMENTS; i++) {
        uint64_t *bytes = (uint64_t *)((char *)&s->moment[i] + member);
        *bytes = scale(*bytes, measured, computed);
    }
}

static void add_up(struct vp_train_stage *s) {
    for (int i = 0; i < VP_TRAIN_MOMENTS; i++) {
        struct vp_train_moment *m = &s->moment[i];
        m->total = s->static_bytes + m->gradients + m->saved + m->temporaries + m->logits +
                   m->gathered + m->scattered + m->step_temp;
    }
}

/* Takes up to `*bytes` off a member. */
static void reduce(uint64_t *member, uint64_t *bytes) {
    uint64_t less = vp_min(*member, *bytes);
    *member -= less;
    *bytes -= less;
}

/* The worst moment is the measured one: what is known least takes the difference. */
static void pin_peak(struct vp_train_stage *s, uint64_t measured) {
    uint64_t computed = vp_train_stage_peak(s)->total;

    for (int i = 0; i < VP_TRAIN_MOMENTS; i++) {
        struct vp_train_moment *m = &s->moment[i];
        uint64_t over = vp_above(m->total, measured);
        if (m->total == computed && computed < measured)
            m->temporaries += measured - computed;
        reduce(&m->temporaries, &over);
        reduce(&m->saved, &over);
        reduce(&m->logits, &over);
        reduce(&m->gathered, &over);
        reduce(&m->scattered, &over);
        reduce(&m->step_temp, &over);
        reduce(&m->gradients, &over);
    }
    s->workspace = vp_exactly(s->workspace.likely);
    s->communication = vp_exactly(s->communication.likely);
    add_up(s);
}

/* What is allocated between two steps beyond what is known: small buffers of the framework. */
static void pin_resting(struct vp_train_stage *s, uint64_t measured) {
    uint64_t known = s->parameter_bytes + s->optimizer_bytes + s->master_bytes + s->fp8_bytes +
                     s->communication.likely + s->between.likely + s->buffer_bytes +
                     s->placeholder_bytes + (s->gradients_persist ? s->gradient_bytes : 0);

    s->static_bytes -= s->workspace.likely;
    s->workspace = vp_exactly(vp_above(measured, known));
    s->static_bytes += s->workspace.likely;
}

uint64_t vp_train_pin(struct vp_train_stage *s, const struct vp_scenario *scenario) {
    const bool *known = scenario->measured.train_known;
    const uint64_t *bytes = scenario->measured.train_bytes;

    if (known[VP_TM_PARAMETERS])
        pin_parts(s, VP_TM_PARAMETERS, &s->parameter_bytes, bytes[VP_TM_PARAMETERS]);
    if (known[VP_TM_OPTIMIZER])
        pin_parts(s, VP_TM_OPTIMIZER, &s->optimizer_bytes, bytes[VP_TM_OPTIMIZER]);
    if (known[VP_TM_MASTER])
        pin_parts(s, VP_TM_MASTER, &s->master_bytes, bytes[VP_TM_MASTER]);
    if (known[VP_TM_GRADIENTS]) {
        pin_moments(s, offsetof(struct vp_train_moment, gradients), bytes[VP_TM_GRADIENTS],
                    s->gradient_bytes);
        pin_parts(s, VP_TM_GRADIENTS, &s->gradient_bytes, bytes[VP_TM_GRADIENTS]);
    }
    if (known[VP_TM_SAVED]) {
        pin_moments(s, offsetof(struct vp_train_moment, saved), bytes[VP_TM_SAVED], s->saved_bytes);
        s->saved_peak_bytes = scale(s->saved_peak_bytes, bytes[VP_TM_SAVED], s->saved_bytes);
        s->saved_bytes = bytes[VP_TM_SAVED];
    }
    if (known[VP_TM_SAVED_PEAK])
        s->saved_peak_bytes = bytes[VP_TM_SAVED_PEAK];
    if (known[VP_TM_LOGITS]) {
        pin_moments(s, offsetof(struct vp_train_moment, logits), bytes[VP_TM_LOGITS],
                    s->logits_peak_bytes);
        s->logits_peak_bytes = bytes[VP_TM_LOGITS];
    }
    if (known[VP_TM_STEP_TEMP]) {
        s->step_temp_bytes = bytes[VP_TM_STEP_TEMP];
        s->moment[VP_STEP_OPTIMIZER - VP_STEP_FORWARD].step_temp = s->step_temp_bytes;
    }
    if (known[VP_TM_ALLOCATED])
        pin_resting(s, bytes[VP_TM_ALLOCATED]);
    add_up(s);
    uint64_t computed = vp_train_stage_peak(s)->total;
    if (known[VP_TM_ALLOCATED_PEAK])
        pin_peak(s, bytes[VP_TM_ALLOCATED_PEAK]);
    return computed;
}

struct vp_amount vp_train_pin_reserved(struct vp_amount reserved, uint64_t computed_peak,
                                       const struct vp_scenario *scenario) {
    const bool *known = scenario->measured.train_known;
    const uint64_t *bytes = scenario->measured.train_bytes;
    uint64_t peak = bytes[VP_TM_ALLOCATED_PEAK];

    if (known[VP_TM_RESERVED_PEAK])
        return vp_exactly(bytes[VP_TM_RESERVED_PEAK]);
    if (!known[VP_TM_ALLOCATED_PEAK])
        return reserved;
    return (struct vp_amount){vp_max(scale(reserved.low, peak, computed_peak), peak),
                              vp_max(scale(reserved.likely, peak, computed_peak), peak),
                              vp_max(scale(reserved.high, peak, computed_peak), peak)};
}
