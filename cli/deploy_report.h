/* The smallest deployments, for people and as rows and JSON. */
#ifndef VP_CLI_DEPLOY_REPORT_H
#define VP_CLI_DEPLOY_REPORT_H

#include "api/deploy.h"
#include "planner/base/json_writer.h"
#include "reports/report.h"

struct vp_deploy_report {
    const struct vp_deployments *found;
    const struct vp_scenario *scenario;
    const char *goal;             /* "gpus", "cost" */
    const char *traffic;          /* in words */
    const char *input;            /* as typed, */
    const struct vp_setting *set; /* and the settings of the command line: for a command to paste */
    size_t sets;
    const char *slo; /* of the command line; NULL: none */
    bool verbose;
};

void vp_deploy_text(struct vp_buf *out, const struct vp_deploy_report *report,
                    const struct vp_report_options *options);
/* Schema "vramplan.fit/1", question "deployment". */
void vp_deploy_json(struct vp_json *json, const struct vp_deploy_report *report,
                    const struct vp_diags *diags);
/* A row per shape; id: what the last column says. */
void vp_deploy_csv(struct vp_buf *out, const struct vp_deploy_report *report, const char *id);

#endif
