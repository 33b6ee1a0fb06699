/* --emit of plan and fit: the set-up of a scenario, ready to paste into what runs it: a command
 * line, a Modelfile, a configuration in YAML or JSON. What has no word there stands in comments, as
 * settings that make it the same plan again; JSON knows no comments, there it is a diagnostic. */
#ifndef VP_CLI_EMIT_H
#define VP_CLI_EMIT_H

#include "planner/base/text.h"
#include "planner/import/input.h"

/* target: a word of --emit. The input must be one scenario, for the target's engine; faults are
 * diagnostics. found: what a search made of llama.cpp's settings, written in place of those of the
 * input; NULL: none. */
enum vp_status vp_emit(struct vp_ctx *ctx, struct vp_buf *out, const char *target,
                       const char *input, const struct vp_setting *settings, size_t count,
                       const struct vp_scenario *found);

#endif
