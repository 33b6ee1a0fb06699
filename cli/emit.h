/* --emit of plan and fit: the set-up of a scenario, ready to paste into what runs it: a command
 * line, a Modelfile, a configuration in YAML or JSON. What has no word there stands in comments, as
 * settings that make it the same plan again; JSON knows no comments, there it is a diagnostic. */
#ifndef VP_CLI_EMIT_H
#define VP_CLI_EMIT_H

#include "api/variants.h"
#include "planner/base/text.h"

/* target: a word of --emit; the scenario must be for its engine. changes: what a search laid over
 * the input; found: what it made of llama.cpp's settings, written in place of the scenario's own,
 * NULL for none. Faults are diagnostics. */
enum vp_status vp_emit(struct vp_ctx *ctx, struct vp_buf *out, const char *target,
                       const struct vp_variants *variants, const struct vp_setting *changes,
                       size_t count, const struct vp_scenario *found);

#endif
