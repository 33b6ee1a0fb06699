/* A log, alone or beside a plan, as text, JSON, CSV or Markdown, and its figures as YAML. */
#ifndef VP_CLI_LOG_REPORT_H
#define VP_CLI_LOG_REPORT_H

#include "api/log_compare.h"
#include "reports/layout.h"

void vp_log_report_text(const struct vp_page *page, const struct vp_log_comparison *c,
                        const struct vp_refit_result *refit, bool verbose);
void vp_log_report_markdown(struct vp_buf *out, const struct vp_log_comparison *c);
void vp_log_report_csv(struct vp_buf *out, const struct vp_log_comparison *c);
/* Schema "vramplan.import-log/1". refit: NULL or without a profile: nothing to refit. */
void vp_log_report_json(struct vp_buf *out, const struct vp_log_comparison *c,
                        const struct vp_refit_result *refit, const struct vp_diags *diags);
/* What a scenario's `measured:` may hold, as a map: keys that pin, places under them. */
struct vp_node *vp_log_report_measured(struct vp_ctx *ctx, const struct vp_log_comparison *c);

/* What the log is of: "vllm 0.19.1, start-up at line 12, meta-llama/Llama-3.1-8B". */
const char *vp_log_report_subject(struct vp_arena *arena, const struct vp_run_log *log);

#endif
