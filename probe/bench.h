/* Measures the items of a list on one device, in the process that may die of it (child.h), and
 * tells every step as a record. */
#ifndef VP_PROBE_BENCH_H
#define VP_PROBE_BENCH_H

#include "probe/record.h"

struct vp_bench_run {
    const struct vp_dev_backend *backend;
    const struct vp_bench_list *list;
    const struct vp_method *method;
    const char *device;  /* number, or part of a name; NULL: the first */
    uint32_t first_item; /* to begin with */
    bool device_told;    /* a run before this one sent DEVICE already */
    void (*tell)(int fd, const struct vp_record *record);
    int fd;
};

/* 0 when END or FATAL was told. */
int vp_bench_run(const struct vp_bench_run *run);

#endif
