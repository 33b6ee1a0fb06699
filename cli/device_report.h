/* What `device` shows: the GPUs of this system and what a process may take of them, or what a
 * profile says of a GPU that is not here; for people and as JSON (docs/DEVICE.md,
 * schema "vramplan.device/1"). */
#ifndef VP_CLI_DEVICE_REPORT_H
#define VP_CLI_DEVICE_REPORT_H

#include "cli/device_asked.h"
#include "planner/doc/node.h"
#include "planner/plan/device_budget.h"
#include "reports/layout.h"

struct vp_device_card {
    const struct vp_fact_gpu *fact; /* NULL: a GPU that is asked about by name */
    struct vp_device_budget budget;
    struct vp_card_profiles profiles;
    const struct vp_node *profile; /* the text of the first one; NULL: none */
};

/* A limit as it might be set. */
struct vp_what_if {
    const char *given;     /* "pages_limit=25165824" */
    uint64_t bytes;        /* that it lets be mapped */
    uint64_t pages;        /* of 4096 bytes, for that */
    const char *parameter; /* of the kernel: "ttm.pages_limit=25165824" */
    bool alone;            /* a parameter that HIP's total does not follow by itself */
};

struct vp_device_view {
    const struct vp_device_facts *facts; /* NULL: the system was not asked */
    const struct vp_device_card *cards;
    uint32_t card_count;
    const struct vp_what_if *what_ifs;
    uint32_t what_if_count;
};

void vp_device_text(const struct vp_page *page, const struct vp_device_view *view, bool verbose);
void vp_device_json(struct vp_buf *out, const struct vp_device_view *view,
                    const struct vp_diags *diags);

#endif
