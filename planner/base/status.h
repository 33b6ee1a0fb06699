/* What a function of the planner can end with. The text of what went wrong is in the context's
 * diagnostics; the status only tells the caller how to go on. */
#ifndef VP_BASE_STATUS_H
#define VP_BASE_STATUS_H

enum vp_status {
    VP_OK = 0,
    VP_ERR_INPUT, /* the user's input is wrong; every fault found is in the diagnostics */
    VP_ERR_ENV    /* file system, memory, a device: the environment failed */
};

#endif
