/* Plans of profiles, for tests of what is computed from them: a model and settings as words. */
#ifndef VP_TESTS_PLAN_RIG_H
#define VP_TESTS_PLAN_RIG_H

#include "planner/base/memo.h"
#include "planner/plan/result.h"
#include "tests/unit/fixture.h"

struct plan_rig {
    struct fixture f;
    struct vp_memo *memo;
};

void plan_rig_begin(struct plan_rig *r);
void plan_rig_end(struct plan_rig *r);
/* The plan of a model's profile with settings "path=value path=value", at most 16 of them; fails
 * the test where there is none. Lives as long as the rig. */
struct vp_result *plan_rig_plan(struct plan_rig *r, const char *model, const char *settings);

#endif
