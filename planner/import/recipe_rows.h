/* The rows of recipe_keys.def and megatron_args.def, for reading (recipe.c, recipe_megatron.c) and
 * writing (wording_recipe.c, wording_megatron.c). */
#ifndef VP_IMPORT_RECIPE_ROWS_H
#define VP_IMPORT_RECIPE_ROWS_H

#include <stddef.h>

enum vp_recipe_format {
    VP_RECIPE_HF,
    VP_RECIPE_ACCELERATE,
    VP_RECIPE_DEEPSPEED,
    VP_RECIPE_TORCHTUNE,
    VP_RECIPE_AXOLOTL
};

/* recipe_keys.def says what each does. */
enum vp_recipe_action {
    VP_RECIPE_COPY,
    VP_RECIPE_FULL,
    VP_RECIPE_ATTENTION,
    VP_RECIPE_BITS,
    VP_RECIPE_NF4,
    VP_RECIPE_INT8,
    VP_RECIPE_SHARDED,
    VP_RECIPE_COMPONENT,
    VP_RECIPE_FUSED,
    VP_RECIPE_HALF,
    VP_RECIPE_LIGER,
    VP_RECIPE_LINEAR,
    VP_RECIPE_ADAPTER,
    VP_RECIPE_LOSS,
    VP_RECIPE_MODULES,
    VP_RECIPE_MLP,
    VP_RECIPE_NOTED
};

struct vp_recipe_row {
    enum vp_recipe_format format;
    const char *key, *field;
    enum vp_recipe_action action;
};

/* megatron_args.def: the field of an option, or one of the two below. */
struct vp_megatron_option {
    const char *option, *field;
};
extern const char VP_MEGATRON_MODEL[];  /* describes the model, with others */
extern const char VP_MEGATRON_LAUNCH[]; /* of the launcher */
extern const struct vp_megatron_option vp_megatron_options[];
extern const size_t vp_megatron_option_count;

extern const struct vp_recipe_row vp_recipe_rows[];
extern const size_t vp_recipe_row_count;

#endif
