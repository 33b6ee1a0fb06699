/* Several models, ranked by what fits: for people and for programs (vramplan.fit/1, question
 * "largest"). */
#ifndef VP_REPORTS_RANK_REPORT_H
#define VP_REPORTS_RANK_REPORT_H

#include "planner/plan/changes.h"
#include "planner/plan/fit_llama.h"
#include "reports/report.h"

struct vp_ranked {
    const char *input, *name;         /* name NULL: like the input */
    const struct vp_result *plan;     /* as it is; NULL: it could not be planned */
    enum vp_verdict verdict;          /* of it; llama.cpp's: of the best set-up */
    const struct vp_outcome *outcome; /* what would make it fit; NULL: llama.cpp, no plan */
    const struct vp_diags *diags;
};

/* What fits for sure by parameters, the most first; then what may, what does not, what could not
 * be planned. Equal ones stay in the order given. */
void vp_ranked_sort(struct vp_ranked *items, size_t count);
void vp_rank_text(struct vp_buf *out, const struct vp_ranked *items, size_t count,
                  const struct vp_report_options *options);
void vp_rank_json(struct vp_json *json, const struct vp_ranked *items, size_t count);

#endif
