/* The command line that starts an engine, as people have it -> the scenario that it asks for:
 * `vllm serve ...`, SGLang's launch_server, llama-server, `ollama run`, Megatron's and the
 * Trainer's scripts; behind variables, launchers, `docker run`, `python -m`. What is no setting of
 * the engine (GPU, requests) is not in it. Options are kept under engine.args in the engine's own
 * words. */
#ifndef VP_IMPORT_COMMAND_LINE_H
#define VP_IMPORT_COMMAND_LINE_H

#include "planner/doc/node.h"

/* True for "$ ..." and for a text of several words that starts a known engine. */
bool vp_command_line_is(struct vp_ctx *ctx, const char *text);
/* *out: a map with model, engine and what else the command says. Positions are those in the text,
 * in a file called "command". VP_ERR_INPUT: it starts no known engine, or names no model. */
enum vp_status vp_command_line_read(struct vp_ctx *ctx, struct vp_node **out, const char *text);

#endif
