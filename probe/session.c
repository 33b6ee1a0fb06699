#include "probe/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/clock.h"
#include "probe/bench.h"

/* A device that killed its process so often is not measured any further. */
enum { MOST_RESTARTS = 5, LINE = 512, NAME = 160 };

double vp_session_left_s(const struct vp_session *s) {
    if (s->item == 0 || s->list->count == 0)
        return -1;
    return (vp_clock_seconds() - s->started_s) / s->item * (s->list->count - s->item);
}

static void name_of(char out[NAME], const struct vp_session *s, uint32_t item) {
    vp_bench_describe(out, NAME, &s->list->item[item]);
}

static void show(struct vp_session *s, enum vp_session_event event, const char *text) {
    if (s->show)
        s->show(s, event, text);
}

/* ---- samples ---- */

static const char *unit_of(const struct vp_bench_item *item) {
    switch (item->kind) {
    case VP_BENCH_STREAM:
    case VP_BENCH_COPY:
        return "GB/s";
    case VP_BENCH_MEMORY:
        return "bytes";
    default:
        return "us";
    }
}

static void show_sample(struct vp_session *s, const struct vp_bench_item *item, const char *name,
                        const struct vp_sample *sample) {
    char text[LINE];

    if (item->kind == VP_BENCH_ERRORS)
        snprintf(text, sizeof text, "%s %s %s %s: largest error %.3g, rms %.3g of rms", name,
                 sample->errors.data, sample->errors.format, sample->errors.scale,
                 sample->errors.largest, sample->errors.rms_relative);
    else
        snprintf(text, sizeof text, "%s: %.5g %s", name, sample->value, unit_of(item));
    show(s, VP_SESSION_SAMPLE, text);
}

/* What is not right with a figure. */
static void judge(struct vp_session *s, const char *name, const struct vp_timing *t) {
    char text[LINE];

    if (t->noisy) {
        snprintf(text, sizeof text,
                 "%s: p90 is %.2f times p10; marked, and left out when calibrating", name,
                 t->p90 / t->p10);
        s->noisy++;
    } else if (t->drifting) {
        snprintf(text, sizeof text, "%s: drifts by %+.0f %% from the first to the last third", name,
                 100 * t->drift);
    } else if (t->outliers) {
        snprintf(text, sizeof text, "%s: %u of %u beyond 1.5 times the median, up to %.1f times",
                 name, t->outliers, t->repeats, t->most / t->median);
    } else
        return;
    show(s, VP_SESSION_NOISY, text);
}

static void take_sample(struct vp_session *s, const struct vp_record *record) {
    const struct vp_bench_item *item = &s->list->item[record->item];
    const struct vp_sample *sample = &record->as.sample;
    char name[NAME];

    name_of(name, s, record->item);
    if (s->files && !vp_sample_files_add(s->files, item, sample))
        s->write_failed = true;
    s->samples++;
    show_sample(s, item, name, sample);
    if (sample->timing.repeats)
        judge(s, name, &sample->timing);
}

static void note(struct vp_session *s, const struct vp_record *record) {
    char name[NAME], text[LINE];

    name_of(name, s, record->item);
    snprintf(text, sizeof text, "%s: %s", name, record->as.text);
    s->left_out++;
    show(s, VP_SESSION_LEFT_OUT, text);
}

static void receive(void *context, const struct vp_record *record) {
    struct vp_session *s = context;
    char name[NAME];

    if (record->item > s->list->count)
        return;
    switch (record->kind) {
    case VP_RECORD_DEVICE:
        s->info = record->as.device;
        s->device_told = true;
        if (s->files && !vp_sample_files_device(s->files, &s->info, s->backend->name))
            s->write_failed = true;
        show(s, VP_SESSION_DEVICE, s->info.name);
        break;
    case VP_RECORD_BEGIN:
        s->item = record->item;
        s->began = true;
        name_of(name, s, record->item);
        show(s, VP_SESSION_BEGIN, name);
        break;
    case VP_RECORD_SAMPLE:
        take_sample(s, record);
        break;
    case VP_RECORD_NOTE:
        note(s, record);
        break;
    case VP_RECORD_FATAL:
        s->status = record->status;
        snprintf(s->why, sizeof s->why, "%s", record->as.text);
        s->ended = true;
        break;
    case VP_RECORD_END:
        s->item = s->list->count;
        s->ended = true;
        break;
    }
}

/* ---- the measuring process ---- */

static int body(void *context, int fd) {
    const struct vp_session *s = context;
    const struct vp_bench_run run = {.backend = s->backend,
                                     .list = s->list,
                                     .method = s->method,
                                     .device = s->device,
                                     .first_item = s->first_item,
                                     .device_told = s->device_told,
                                     .tell = vp_child_send,
                                     .fd = fd};
    return vp_bench_run(&run);
}

static void how_it_ended(char *out, size_t size, const struct vp_child_report *report,
                         double limit_s) {
    const char *said = report->last_words[0] ? ", saying: " : "";

    switch (report->end) {
    case VP_CHILD_CRASHED:
        snprintf(out, size, "the process was killed by signal %d (%s)%s%s", report->code,
                 strsignal(report->code), said, report->last_words);
        break;
    case VP_CHILD_HUNG:
        snprintf(out, size, "nothing came for %.3g s%s%s", limit_s, said, report->last_words);
        break;
    case VP_CHILD_LOST:
        snprintf(out, size, "the process was lost: %s", strerror(report->code));
        break;
    case VP_CHILD_DONE:
        snprintf(out, size, "the process ended with %d%s%s", report->code, said,
                 report->last_words);
        break;
    }
}

/* False: no use to go on. */
static bool go_on_behind(struct vp_session *s, const struct vp_child_report *report) {
    char name[NAME], how[LINE], text[LINE + NAME + 2];

    how_it_ended(how, sizeof how, report, s->limit_s);
    if (!s->began) {
        s->status = VP_DEV_FAILED;
        snprintf(s->why, sizeof s->why, "while the device was opened, %.400s", how);
        return false;
    }
    name_of(name, s, s->item);
    snprintf(text, sizeof text, "%s: %s", name, how);
    s->troubles++;
    show(s, VP_SESSION_TROUBLE, text);
    s->first_item = s->item + 1;
    s->began = false;
    return s->troubles <= MOST_RESTARTS && s->first_item < s->list->count;
}

bool vp_session_run(struct vp_session *s) {
    struct vp_child_report report;

    s->started_s = vp_clock_seconds();
    do {
        vp_child_run(&report, body, receive, s, s->limit_s);
    } while (!s->ended && !s->write_failed && go_on_behind(s, &report));
    return s->samples > 0 && !s->write_failed;
}
