/* What reports say of a difference between two plans (planner/plan/difference.h), in words and as
 * JSON: for `diff` and for the outputs of the gate. */
#ifndef VP_REPORTS_DIFFERENCE_WORDS_H
#define VP_REPORTS_DIFFERENCE_WORDS_H

#include "planner/base/json_writer.h"
#include "planner/plan/difference.h"

/* By how much the need of the worst device grew. */
int64_t vp_words_need_moved(const struct vp_result *before, const struct vp_result *after);
/* "+20.00 GiB", "-640 MiB", "0" */
const char *vp_words_moved(struct vp_arena *arena, int64_t bytes);
/* "serve.context 32768 -> 40960", "serve.lora.rank 16, new", "serve.context 32768, taken away" */
const char *vp_words_cause(struct vp_arena *arena, const struct vp_cause *cause);
/* All causes of a step; of a model that is replaced, and of many, the first ones and how many more
 * there are. most: how many are named, at least 1. */
const char *vp_words_causes(struct vp_arena *arena, const struct vp_difference_step *step,
                            uint32_t most);
/* The changes themselves, where no plan says what they moved: the first ones, each with its place;
 * NULL: there are none. */
const char *vp_words_changes(struct vp_arena *arena, const struct vp_difference *difference,
                             uint32_t most);
/* Without "./" and "a/../", as CI systems want paths; links are not followed. NULL for NULL. */
const char *vp_words_file(struct vp_arena *arena, const char *file);
/* "serve/prod.yaml:7"; NULL: it stands in no file. */
const char *vp_words_place(struct vp_arena *arena, const struct vp_pos *pos);
/* The first place of a step's causes that is in a file; NULL: none is. */
const struct vp_pos *vp_step_place(const struct vp_difference_step *step);
/* "KV cache +20.00 GiB, activations +2.50 GiB; usable +57.60 GiB"; "nothing" */
const char *vp_words_step(struct vp_arena *arena, const struct vp_difference_step *step);

/* The keys "changes", "steps" and "unexplained_bytes" of the object that is open. NULL: no change.
 */
void vp_difference_json(struct vp_json *json, const struct vp_difference *difference);
/* The keys "file" and "line" of the object that is open; null where it stands in no file. */
void vp_difference_json_place(struct vp_json *json, const struct vp_pos *pos);
/* One side: verdict, bytes, components, longest context; null for NULL. */
void vp_difference_json_side(struct vp_json *json, const struct vp_result *result);

#endif
