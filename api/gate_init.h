/* A first budget file: the scenarios of some inputs, each with today's figures and some room as its
 * budget. */
#ifndef VP_API_GATE_INIT_H
#define VP_API_GATE_INIT_H

#include "api/answers.h"

/* Writes a commented scenario file that the gate passes where the plans fit. path: where it will
 * stand (NULL: the current folder); relative paths inside are made to start from there. A budget
 * that an input has is left out. growth: against the base too; else that part is a comment, because
 * without a base to compare with it would be inconclusive. *verdicts: the exit code of the plans
 * together. */
enum vp_status vp_gate_init(struct vp_ctx *ctx, struct vp_buf *out, enum vp_exit *verdicts,
                            const char *const *inputs, size_t count,
                            const struct vp_setting *settings, size_t setting_count,
                            const char *path, bool growth);

#endif
