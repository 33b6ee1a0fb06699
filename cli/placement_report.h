/* How an answer of `checkpoint` looks: as JSON, as text with the known policies beside it, and its
 * frontier as CSV. */
#ifndef VP_CLI_PLACEMENT_REPORT_H
#define VP_CLI_PLACEMENT_REPORT_H

#include "planner/base/json_writer.h"
#include "planner/recompute/certificate.h"
#include "planner/recompute/policies.h"

/* What was asked and what came out. */
struct vp_placement {
    const struct vp_chain *chain;
    const char *name;
    enum vp_recompute_class class;
    uint64_t budget_bytes, inflight;
    struct vp_recompute_answer answer;
    struct vp_certificate certificate;
};

/* The whole document, schema "vramplan.checkpoint/1". */
void vp_placement_json(struct vp_buf *out, const struct vp_placement *placement);
enum vp_placement_form { VP_PLACEMENT_TEXT, VP_PLACEMENT_MARKDOWN, VP_PLACEMENT_CSV };
/* CSV is the table of policies alone. */
void vp_placement_table(struct vp_buf *out, const struct vp_placement *placement,
                        const struct vp_policies *policies, enum vp_placement_form form);
/* The rule that most people know, and why something else wins; stages: of the body. NULL: it is not
 * among the policies. */
const char *vp_placement_sqrt_words(struct vp_arena *arena, const struct vp_policies *policies,
                                    uint32_t stages);
void vp_placement_frontier(struct vp_buf *out, const struct vp_frontier *frontier);

#endif
