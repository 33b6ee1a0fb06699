/* What to paste: the settings of a scenario as arguments of llama-server, or as ollama's Modelfile
 * and environment. Settings that the user gave in the scenario are among them; what has no
 * argument there (fields of the accounting only) is left out. Words are quoted for a shell. */
#ifndef VP_REPORTS_LLAMA_COMMAND_H
#define VP_REPORTS_LLAMA_COMMAND_H

#include "planner/model/scenario.h"

/* "llama-server -m model.gguf -ngl 33 -c 65536 -np 1 -fa on -ctk q8_0 -ctv q8_0" */
const char *vp_llama_command(struct vp_arena *arena, const struct vp_scenario *scenario);
/* Lines of a Modelfile: "FROM model.gguf", "PARAMETER num_ctx 65536", ... */
const char *vp_ollama_modelfile(struct vp_arena *arena, const struct vp_scenario *scenario);
/* "OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0 OLLAMA_NUM_PARALLEL=1" */
const char *vp_ollama_environment(struct vp_arena *arena, const struct vp_scenario *scenario);
/* tensor_split: "20,13"; decimals where they were given. */
const char *vp_llama_shares(struct vp_arena *arena, const struct vp_llama *llama);
/* "f16", "q8_0": as both call it */
const char *vp_llama_type_name(enum vp_dtype type);

#endif
