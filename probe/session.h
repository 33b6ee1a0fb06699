/* A whole probe as the waiting process sees it: starts the measuring process, writes what it tells
 * into sample files, goes on behind an item that killed it, says what was left out and why. */
#ifndef VP_PROBE_SESSION_H
#define VP_PROBE_SESSION_H

#include "probe/child.h"

/* What happens, for whoever shows it. text: one line, "" where there is none. */
enum vp_session_event {
    VP_SESSION_DEVICE,   /* text: its name */
    VP_SESSION_BEGIN,    /* text: the item */
    VP_SESSION_SAMPLE,   /* text: item and figure */
    VP_SESSION_NOISY,    /* a figure that is not to be built on, and why */
    VP_SESSION_LEFT_OUT, /* an item that this device does not do, and why */
    VP_SESSION_TROUBLE   /* an item that killed the measuring process, and how */
};

struct vp_session {
    /* given */
    const struct vp_dev_backend *backend;
    const struct vp_bench_list *list;
    const struct vp_method *method;
    const char *device; /* NULL: the first */
    double limit_s;     /* for one item */
    struct vp_sample_files *files;
    void (*show)(const struct vp_session *session, enum vp_session_event event, const char *text);

    /* found */
    enum vp_dev_status status; /* of opening the device */
    char why[2 * VP_DEV_WHY];
    struct vp_dev_info info;
    uint32_t item; /* being measured, or next */
    uint32_t samples, noisy, left_out, troubles;
    bool write_failed; /* a sample could not be written: errno */
    double started_s;  /* of the monotonic clock */

    /* its own */
    uint32_t first_item;
    bool device_told, began, ended;
};

/* Good when samples came and could be written; what the device itself said is in status and why. */
bool vp_session_run(struct vp_session *session);

/* Seconds that the rest will take, by what was done so far; below 0: not known yet. */
double vp_session_left_s(const struct vp_session *session);

#endif
