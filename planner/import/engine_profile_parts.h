/* How the readers of an engine profile ask it for a rule: the first row whose conditions hold.
 * Private to engine_profile*.c. A fault of the profile is reported once and remembered. */
#ifndef VP_IMPORT_ENGINE_PROFILE_PARTS_H
#define VP_IMPORT_ENGINE_PROFILE_PARTS_H

#include "planner/import/engine_profile.h"
#include "planner/model/scenario.h"

/* What a row's conditions are held against. */
struct vp_situation {
    struct vp_ctx *ctx;
    const struct vp_scenario *scenario;
    const struct vp_node *root;
    const char *path;
    bool broken;
};

void vp_rule_broken(struct vp_situation *s, const struct vp_node *node, const char *what);
/* Reads profiles/engines/ENGINE.yaml unless *profile has it already. */
enum vp_status vp_engine_profile_open(struct vp_ctx *ctx, struct vp_engine_profile *profile,
                                      const char *engine);
/* The row of `rules: NAME` that holds; NULL after reporting that none does. */
const struct vp_node *vp_rule_row(struct vp_situation *s, const char *name);
/* Its `value`. */
uint64_t vp_rule_number(struct vp_situation *s, const char *name);
bool vp_rule_truth(struct vp_situation *s, const char *name);
/* never, maybe, always */
enum vp_perhaps vp_rule_perhaps(struct vp_situation *s, const char *name);
/* [low, likely, high] of a row's key, times a unit. */
struct vp_amount vp_rule_interval(struct vp_situation *s, const struct vp_node *row,
                                  const char *key, uint64_t unit);

/* engine_profile_llama.c, engine_profile_train.c */
void vp_rules_read_llama(struct vp_situation *s, struct vp_rules *out);
void vp_rules_read_train(struct vp_situation *s, struct vp_train_rules *out);

#endif
