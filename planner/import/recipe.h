/* Training recipes as people have them -> a scenario to fill in: Hugging Face TrainingArguments
 * (and LLaMA-Factory's), accelerate and DeepSpeed configurations, torchtune and axolotl YAML, a
 * Megatron command line, alone or inside a batch script. What is known is mapped (recipe_keys.def,
 * megatron_args.def), the rest is listed. */
#ifndef VP_IMPORT_RECIPE_H
#define VP_IMPORT_RECIPE_H

#include "planner/base/io.h"
#include "planner/doc/node.h"

enum { VP_RECIPE_MAX_IGNORED = 512 };

struct vp_recipe {
    const char *kind;         /* "axolotl configuration" */
    struct vp_node *scenario; /* a map, without what the recipe does not say */
    const char **ignored;     /* keys that are not mapped, as written */
    uint32_t ignored_count;
};

/* True for a document that is a recipe of some kind. */
bool vp_recipe_is_document(const struct vp_node *document);
/* True for a text that holds a Megatron command line. */
bool vp_recipe_is_script(const struct vp_bytes *text);
enum vp_status vp_recipe_from_document(struct vp_ctx *ctx, struct vp_recipe *out,
                                       const struct vp_node *document);
enum vp_status vp_recipe_from_script(struct vp_ctx *ctx, struct vp_recipe *out,
                                     const struct vp_bytes *text, const char *name);
/* Sets "train.lora.rank" in a scenario, with the maps on the way. */
void vp_recipe_set(struct vp_ctx *ctx, struct vp_node *scenario, const char *path,
                   struct vp_node *value);

#endif
