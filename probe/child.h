/* Runs what may crash, abort or hang in a process of its own, and collects the records that it
 * writes. The libraries of a driver are loaded there and nowhere else: a driver that dies takes
 * nothing with it, and what was measured before is kept.
 *
 * What the child prints to its standard error is caught; the last line of it often says why an
 * abort happened. */
#ifndef VP_PROBE_CHILD_H
#define VP_PROBE_CHILD_H

#include "probe/record.h"

enum vp_child_end {
    VP_CHILD_DONE,    /* ended by itself; code is its exit status */
    VP_CHILD_CRASHED, /* killed by the signal `code` */
    VP_CHILD_HUNG,    /* sent nothing for the time limit and was killed */
    VP_CHILD_LOST     /* could not be started or waited for; code is errno */
};

struct vp_child_report {
    enum vp_child_end end;
    int code;
    char last_words[VP_DEV_WHY]; /* last line on its standard error; "": none */
};

/* In the child: writes one record. Ends the child when nobody reads any more. */
void vp_child_send(int fd, const struct vp_record *record);

typedef int (*vp_child_body)(void *context, int fd); /* its exit status */
typedef void (*vp_child_receive)(void *context, const struct vp_record *record);

/* The limit is for the time between two records. The child has no open files of its own beside the
 * parent's; the parent must not have loaded a driver. */
void vp_child_run(struct vp_child_report *out, vp_child_body body, vp_child_receive receive,
                  void *context, double limit_s);

#endif
