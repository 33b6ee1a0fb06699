/* How fast llama.cpp and ollama are: a token reads the weights that work for it and the cache, on
 * each device in turn, at the rate that cards of its class reach. Batches of slots share the
 * weights. What stays in host memory is read at a rate that no field states: with layers or experts
 * there times are bounds, counted with the fastest memory that a socket has, and what the host
 * computes is left out. Weights that host memory does not hold come from the disk: no times at all.
 *
 * Left out: graphs that are rebuilt, sampling, transfers between devices, several requests that
 * arrive at different times. Prompts are bounds too: how well a card multiplies ggml's block
 * formats was not measured. */
#ifndef VP_PLAN_LLAMA_LATENCY_H
#define VP_PLAN_LLAMA_LATENCY_H

#include "planner/plan/result.h"

/* Into result->latency. */
void vp_llama_latency(struct vp_result *result);

#endif
