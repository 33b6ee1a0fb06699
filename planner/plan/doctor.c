#include "planner/plan/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/units.h"
#include "planner/plan/doctor_parts.h"

const char *vp_cause_id(enum vp_cause cause) {
    static const char *const IDS[VP_CAUSES] = {
#define X(name, id, words) id,
#include "planner/plan/doctor_causes.def"
#undef X
    };
    return IDS[cause];
}

const char *vp_cause_words(enum vp_cause cause) {
    static const char *const WORDS[VP_CAUSES] = {
#define X(name, id, words) words,
#include "planner/plan/doctor_causes.def"
#undef X
    };
    return WORDS[cause];
}

const char *vp_surety_name(enum vp_surety surety) {
    static const char *const NAMES[] = {"possible", "likely", "certain"};
    return NAMES[surety];
}

/* ---- building findings ---- */

struct vp_finding *vp_doctor_add(struct vp_doctor *d, enum vp_cause cause, enum vp_surety surety,
                                 const char *why) {
    struct vp_diagnosis *out = d->out;
    if (out->findings == VP_FINDINGS)
        return NULL;
    struct vp_finding *f = &out->finding[out->findings++];
    *f = (struct vp_finding){.cause = cause,
                             .surety = surety,
                             .message = d->message,
                             .messages = d->message ? d->message->times : 0,
                             .why = why};
    return f;
}

void vp_doctor_line(struct vp_doctor *d, struct vp_finding *f, const char *format, ...) {
    char text[400];
    va_list args;
    if (!f || f->lines == VP_FINDING_LINES)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    f->line[f->lines++] = vp_arena_text(d->arena, text, strlen(text));
}

void vp_doctor_step(struct vp_doctor *d, struct vp_finding *f, const char *command,
                    const char *why) {
    (void)d;
    if (f && f->steps < VP_FINDING_STEPS)
        f->step[f->steps++] = (struct vp_next_step){command, why};
}

const char *vp_doctor_bytes(struct vp_doctor *d, uint64_t bytes) {
    return vp_format_bytes(d->arena, bytes);
}

bool vp_doctor_fact(uint64_t *out, const struct vp_doctor *d, enum vp_log_quantity what,
                    const char *place) {
    const struct vp_log_fact *fact = d->start ? vp_log_find(d->start, what, place) : NULL;
    *out = fact && fact->value >= 0 ? (uint64_t)fact->value : 0;
    return fact && fact->value >= 0;
}

void vp_doctor_step_processes(struct vp_doctor *d, struct vp_finding *f) {
    if (d->hip)
        vp_doctor_step(d, f, "rocm-smi --showpids --showmeminfo vram", "who holds the memory");
    else
        vp_doctor_step(d, f, "nvidia-smi", "who holds the memory");
}

void vp_doctor_step_fit(struct vp_doctor *d, struct vp_finding *f, const char *options,
                        const char *why) {
    vp_doctor_step(d, f, vp_arena_printf(d->arena, "vramplan fit %s%s", d->in->subject, options),
                   why);
}

/* ---- one message ---- */

static uint64_t said(bool *known, const struct vp_log_message *m, enum vp_log_quantity what) {
    bool is = m->known[what] && m->value[what] >= 0;
    if (known)
        *known = is;
    return is ? (uint64_t)m->value[what] : 0;
}

static void look(struct vp_doctor *d) {
    const struct vp_log_message *m = d->message;
    struct vp_doctor_view *v = &d->view;
    bool unallocated, reserved;
    v->asked = said(NULL, m, VP_LOG_ASKED);
    v->card = said(&v->card_known, m, VP_LOG_CARD);
    v->free = said(&v->free_known, m, VP_LOG_FREE);
    v->in_use = said(&v->in_use_known, m, VP_LOG_IN_USE);
    v->others = said(&v->others_known, m, VP_LOG_OTHERS);
    v->allowed = said(&v->allowed_known, m, VP_LOG_ALLOWED);
    v->allocated = said(NULL, m, VP_LOG_TORCH_ALLOCATED);
    v->unallocated = said(&unallocated, m, VP_LOG_UNALLOCATED);
    v->reserved = said(&reserved, m, VP_LOG_TORCH_RESERVED);
    v->pools = said(NULL, m, VP_LOG_PRIVATE_POOLS);
    /* the two forms of the message say the one or the other */
    if (!reserved)
        v->reserved = v->allocated + v->unallocated;
    else if (!unallocated)
        v->unallocated = v->reserved > v->allocated ? v->reserved - v->allocated : 0;
}

static void one_message(struct vp_doctor *d) {
    const struct vp_run_log *log = d->in->log;
    uint32_t before = d->out->findings;
    d->start = log->last && d->message->line >= log->last->line ? log->last : &log->start;
    look(d);
    vp_doctor_card(d);
    vp_doctor_engine(d);
    if (d->out->findings > before)
        return;
    struct vp_finding *f =
        vp_doctor_add(d, VP_CAUSE_UNKNOWN, VP_POSSIBLE,
                      "The line says that memory ran out, but neither what was asked for nor what "
                      "was there.");
    vp_doctor_step_processes(d, f);
    vp_doctor_step(d, f, "vramplan device", "what the card has, and what hides of it");
    vp_doctor_step(d, f, d->hip ? "AMD_LOG_LEVEL=3 ..." : "CUDA_LAUNCH_BLOCKING=1 ...",
                   "run again: the call that fails, and its size");
}

/* ---- all of them ---- */

static void join_steps(struct vp_finding *into, const struct vp_finding *from) {
    for (uint32_t i = 0; i < from->steps; i++) {
        bool there = false;
        for (uint32_t k = 0; k < into->steps; k++)
            there |= vp_text_eq(into->step[k].command, from->step[i].command) &&
                     vp_text_eq(into->step[k].why, from->step[i].why);
        if (!there && into->steps < VP_FINDING_STEPS)
            into->step[into->steps++] = from->step[i];
    }
}

/* The surest finding of every cause; the first message of those that are as sure. */
static void join(struct vp_diagnosis *out) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < out->findings; i++) {
        struct vp_finding *f = &out->finding[i], *same = NULL;
        for (uint32_t k = 0; k < kept && !same; k++)
            if (out->finding[k].cause == f->cause)
                same = &out->finding[k];
        if (!same) {
            out->finding[kept++] = *f;
            continue;
        }
        uint32_t messages = same->messages + f->messages;
        struct vp_finding other = *f;
        if (f->surety > same->surety) {
            other = *same;
            *same = *f;
        }
        join_steps(same, &other);
        same->messages = messages;
    }
    out->findings = kept;
}

/* That a card is full is seldom the whole answer: likely causes that say why come first. */
static int weight(const struct vp_finding *f) {
    int surety = 2 * (int)f->surety;
    return f->cause == VP_CAUSE_CAPACITY ? surety - 3 : f->cause == VP_CAUSE_UNKNOWN ? -4 : surety;
}

static bool comes_first(const struct vp_finding *a, const struct vp_finding *b) {
    return weight(a) != weight(b) ? weight(a) > weight(b) : a->cause < b->cause;
}

static void sort(struct vp_diagnosis *out) {
    for (uint32_t i = 1; i < out->findings; i++)
        for (uint32_t k = i; k > 0; k--) {
            struct vp_finding *a = &out->finding[k - 1], *b = &out->finding[k], swap = *a;
            if (comes_first(a, b))
                break;
            *a = *b;
            *b = swap;
        }
}

static bool speaks_hip(const struct vp_doctor_case *in) {
    if (in->gpu)
        return vp_text_eq(in->gpu->vendor, "amd");
    for (uint32_t i = 0; i < in->log->messages; i++)
        if (in->log->message[i].hip)
            return true;
    const char *card = in->log->start.gpu;
    return vp_text_starts(card, "AMD") || vp_text_starts(card, "MI") ||
           vp_text_starts(card, "Radeon");
}

void vp_doctor_diagnose(struct vp_arena *arena, struct vp_diagnosis *out,
                        const struct vp_doctor_case *in) {
    struct vp_doctor d = {.arena = arena, .in = in, .out = out, .hip = speaks_hip(in)};
    *out = (struct vp_diagnosis){.findings = 0};
    for (uint32_t i = 0; i < in->log->messages; i++) {
        d.message = &in->log->message[i];
        one_message(&d);
        join(out);
    }
    vp_doctor_growth(&d);
    vp_doctor_tables(&d);
    join(out);
    sort(out);
    out->open = true;
    for (uint32_t i = 0; i < out->findings; i++)
        out->open &= out->finding[i].cause == VP_CAUSE_UNKNOWN;
}
