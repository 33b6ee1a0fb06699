/* A scenario in the words of its engine or of a training recipe: what command_line.h, recipe.h and
 * engine_args.h read, the other way round, by the same tables. What the scenario says and the
 * target has no word for is told beside it, so that both together give the same plan. */
#ifndef VP_IMPORT_WORDING_H
#define VP_IMPORT_WORDING_H

#include "planner/doc/node.h"
#include "planner/import/input.h"

enum vp_target {
    VP_TARGET_VLLM,
    VP_TARGET_SGLANG,
    VP_TARGET_LLAMA_CPP,
    VP_TARGET_OLLAMA,
    VP_TARGET_MEGATRON,
    VP_TARGET_HF,
    VP_TARGET_AXOLOTL,
    VP_TARGET_TORCHTUNE,
    VP_TARGET_DEEPSPEED,
    VP_TARGETS
};

const char *vp_target_name(enum vp_target target); /* "llama.cpp" */
/* VP_TARGETS when there is none. */
enum vp_target vp_target_find(const char *name);
/* The engine of scenarios that it can be written for. */
enum vp_engine_kind vp_target_engine(enum vp_target target);

struct vp_words {
    const char *model;           /* as the target calls it; NULL: it has no name there */
    struct vp_node *options;     /* a map: options of a command, or keys of a recipe */
    struct vp_node *environment; /* a map of variables */
    struct vp_setting *beside;   /* said, but not in the words above: path and value */
    size_t beside_count;
};

/* said: the scenario's tree with the settings of the command line laid over it; scenario: the same,
 * finished. Of llama.cpp and ollama only the arguments that are not computed with are in `options`;
 * the others are written by reports/llama_command.h. */
void vp_words_make(struct vp_ctx *ctx, struct vp_words *out, enum vp_target target,
                   const struct vp_node *said, const struct vp_scenario *scenario);

#endif
