/* Words that fit_report.c and fit_json.c share. Private to them. */
#ifndef VP_REPORTS_FIT_WORDS_H
#define VP_REPORTS_FIT_WORDS_H

#include "planner/plan/fit_llama.h"

const char *vp_fit_question_name(enum vp_fit_question question);
const char *vp_fit_freed_name(enum vp_fit_freed freed);
const char *vp_fit_device_name(struct vp_arena *arena, const struct vp_result *result,
                               uint32_t device);
/* Which limit is exceeded by how much, when nothing fits. */
const char *vp_fit_short_text(struct vp_arena *arena, const struct vp_result *result,
                              const struct vp_fit_llama *fit);

#endif
