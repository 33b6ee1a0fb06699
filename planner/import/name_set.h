/* Sets of module names as the lists of a quantised checkpoint write them ("ignore",
 * "modules_to_not_convert", "targets", ...): exact names, globs and regular expressions.
 *
 * The lists of one checkpoint name modules with or without the prefixes of a wrapping model
 * ("model.", "language_model.model.") and by the family's own words ("ffn", "block_sparse_moe" for
 * "mlp"). Names are compared in a canonical form without these; patterns are tried against the
 * forms that the module may have in the checkpoint. */
#ifndef VP_IMPORT_NAME_SET_H
#define VP_IMPORT_NAME_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/base/arena.h"

struct vp_name_set {
    const char **names; /* canonical; sorted once finished */
    size_t name_count, name_capacity;
    uint32_t parts[256]; /* for each first character: bit n is set when a name has n parts */
    struct vp_name_pattern *patterns;
    size_t pattern_count, pattern_capacity;
};

/* Adds an entry: "re:" and a regular expression, a glob when it holds * ? [, or a name. False: a
 * pattern that cannot be used, *why says what about it. */
bool vp_name_set_add(struct vp_arena *arena, struct vp_name_set *set, const char **why,
                     const char *entry);
/* A regular expression without the "re:". */
bool vp_name_set_add_regex(struct vp_arena *arena, struct vp_name_set *set, const char **why,
                           const char *pattern);
/* To be called once between adding and matching. */
void vp_name_set_finish(struct vp_name_set *set);

enum { VP_MODULE_NAME = 256, VP_MODULE_FORMS = 4, VP_MODULE_PARTS = 16 };

/* A module's name, prepared for matching. */
struct vp_module_name {
    char canonical[VP_MODULE_NAME];
    size_t length;              /* of canonical */
    char fused[VP_MODULE_NAME]; /* canonical, with "qkv_proj" for "q_proj" and so on; or "" */
    char forms[VP_MODULE_FORMS][VP_MODULE_NAME]; /* what patterns are tried against: */
    int longest_forms; /* the first ones: with the prefix "model." where the module has one */
    int form_count;    /* with and without it */
};

/* False when the name is longer than any module's. */
bool vp_module_name(struct vp_module_name *out, const char *module);

enum vp_name_match { VP_NAME_OTHER, VP_NAME_BY_PATTERN, VP_NAME_BY_NAME };

/* A name matches the module itself, those inside it ("model.layers.0.self_attn") and, when it is
 * only a part ("gate"), those that have this part. */
enum vp_name_match vp_name_set_match(const struct vp_name_set *set,
                                     const struct vp_module_name *module);

#endif
