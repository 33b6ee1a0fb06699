/* The `train:` block of a scenario, and the arguments of training frameworks. Defaults and what
 * must hold: finish_train.c. */
#ifndef VP_IMPORT_TRAIN_READER_H
#define VP_IMPORT_TRAIN_READER_H

#include "planner/import/scenario_parts.h"

/* Whether there is something to train; call with each tree before anything else. */
void vp_train_scan(struct vp_reading *r, const struct vp_node *root);
/* A key of `train` that is more than a field; true when it was read. */
bool vp_train_key(struct vp_reading *r, const char *key, const struct vp_node *node);
/* An argument of a training framework; false: it is none. */
bool vp_train_arg(struct vp_reading *r, const char *key, const char *as_written,
                  const struct vp_node *node);

#endif
