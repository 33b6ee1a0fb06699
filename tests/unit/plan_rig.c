#include "tests/unit/plan_rig.h"

#include <string.h>

#include "planner/import/input.h"
#include "planner/plan/plan.h"

void plan_rig_begin(struct plan_rig *r) {
    fixture_begin(&r->f);
    r->f.ctx.profiles = "profiles";
    r->memo = vp_memo_new();
    r->f.ctx.memo = r->memo;
}

void plan_rig_end(struct plan_rig *r) {
    vp_memo_free(r->memo);
    fixture_end(&r->f);
}

struct vp_result *plan_rig_plan(struct plan_rig *r, const char *model, const char *settings) {
    enum { MOST = 16 };
    struct vp_arena *arena = &r->f.arena;
    struct vp_setting set[MOST];
    struct vp_scenarios found = {0};
    struct vp_result *out = VP_NEW(arena, struct vp_result);
    char *text = vp_arena_text(arena, settings, strlen(settings));
    size_t n = 0;

    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        assert_true(n < MOST && equals);
        *equals = '\0';
        set[n++] = (struct vp_setting){word, equals + 1, word};
    }
    assert_int_equal(vp_input_read(&r->f.ctx, &found, model, set, n), VP_OK);
    assert_int_equal(found.count, 1);
    assert_int_equal(vp_plan_run(&r->f.ctx, out, found.items[0]), VP_OK);
    return out;
}
