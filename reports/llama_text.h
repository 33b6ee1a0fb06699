/* What a llama.cpp plan has of its own in the reports for people: the buffers as its log prints
 * them, what makes the compute buffers as large as they are, what is left for the runtime. */
#ifndef VP_REPORTS_LLAMA_TEXT_H
#define VP_REPORTS_LLAMA_TEXT_H

#include "planner/plan/result.h"
#include "reports/layout.h"

/* result->llama is known. */
void vp_llama_section(const struct vp_page *page, const struct vp_result *result);

#endif
