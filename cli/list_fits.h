/* list models --fits-on GPU: every model with a profile, planned on one set-up. */
#ifndef VP_CLI_LIST_FITS_H
#define VP_CLI_LIST_FITS_H

#include "cli/args.h"
#include "cli/listing.h"

/* Whether the command line asks for it; wrong combinations of `topic` and settings are diagnostics
 * and VP_ERR_INPUT. */
enum vp_status vp_list_fits_asked(struct vp_ctx *ctx, bool *out, const struct vp_args *args,
                                  const char *topic);
/* Sorted by parameters. A model that cannot be planned is a row without a verdict; what all models
 * fail on (no such GPU, a wrong value) is the caller's mistake: its diagnostic and VP_ERR_INPUT.
 * set: a scenario with the set-up that was planned for, NULL when no model could be.
 * note: the set-up, and why models were not planned; for people, below the table. */
enum vp_status vp_list_fits(struct vp_ctx *ctx, struct vp_listing *out,
                            const struct vp_scenario **set, struct vp_buf *note,
                            const struct vp_args *args);

#endif
