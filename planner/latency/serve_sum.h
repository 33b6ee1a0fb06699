/* An engine's constants (struct vp_serving_fit) times the sums of a load (serve_time.h): times
 * between tokens and to the first one. They are linear in the constants, so the fit
 * (planner/latency/serve_fit.h) solves for what the prediction multiplies.
 *
 *   a pass     kernel_scale x (kernels + collectives) + layer_us x layers
 *              + expert_layer_us x layers with routed experts + sequence_us x sequences
 *              + step_us x host steps
 *   step       one decode pass
 *   TPOT       step + interruptions x what a prompt costs the others
 *   TTFT       its own prompt's passes + wait_steps x step + queue_share x prompts ahead
 *              + first_us + first_token_us x prompt + request_us x requests in flight
 *
 * Microseconds. A batch that starts together queues by arithmetic, not by queue_share. */
#ifndef VP_LATENCY_SERVE_SUM_H
#define VP_LATENCY_SERVE_SUM_H

#include "planner/latency/serve_time.h"

enum { VP_PASS_TERMS = 5, VP_FIRST_TERMS = 5 };

/* The constants of a pass, and those of the time to the first token that it does not hold, in the
 * order of the factors below. */
double *vp_pass_constant(struct vp_serving_fit *fit, int term);
double *vp_first_constant(struct vp_serving_fit *fit, int term);

/* What the constants of a pass are multiplied with, */
void vp_pass_factors(double out[VP_PASS_TERMS], const struct vp_pass *pass);
/* the same of the time between tokens, */
void vp_tpot_factors(double out[VP_PASS_TERMS], const struct vp_serve_terms *terms);
/* and those of the first token; *known: what the constants of a pass make of it. */
void vp_ttft_factors(double out[VP_FIRST_TERMS], double *known, const struct vp_serve_terms *terms,
                     const struct vp_serve_load *load, const struct vp_serving_fit *fit);

/* Kernels reach no less than this share of the time that their class or their card's samples say:
 * 0.8 of the memory's rate (planner/latency/classes.def), less would be faster than the card. */
#define VP_LEAST_KERNEL_SCALE 0.8

double vp_pass_us(const struct vp_pass *pass, const struct vp_serving_fit *fit);
double vp_tpot_us(const struct vp_serve_terms *terms, const struct vp_serving_fit *fit);
/* Without waiting for room in the cache, which is the next. */
double vp_ttft_us(const struct vp_serve_terms *terms, const struct vp_serve_load *load,
                  const struct vp_serving_fit *fit);
/* Requests that the cache has no room for wait until others end: in a closed loop each new one
 * for the share of a request's life that waits for one that runs; of a batch the first wait for
 * nothing, the last for all before them. */
double vp_waiting_us(const struct vp_serve_terms *terms, const struct vp_serve_load *load,
                     const struct vp_serving_fit *fit);

#endif
