/* What the renderers for people say in the same way: names, shares, intervals, sentences about a
 * result. Everything is text in an arena; nothing is laid out here. */
#ifndef VP_REPORTS_WORDS_H
#define VP_REPORTS_WORDS_H

#include "planner/plan/result.h"

const char *vp_words_engine(const char *name);         /* "vLLM" */
const char *vp_words_verdict(enum vp_verdict verdict); /* "DOES NOT FIT" */
const char *vp_words_reason(enum vp_reason reason);    /* "no-free-memory" */
const char *vp_words_component(struct vp_arena *arena,
                               enum vp_component component); /* "KV cache" */

/* "1 sequence", "16 sequences" */
const char *vp_words_plural(struct vp_arena *arena, uint64_t n, const char *one, const char *many);
/* "12.34", "-0.50": GiB */
const char *vp_words_signed_gib(struct vp_arena *arena, int64_t bytes);
/* "35.3%"; "-" without a whole */
const char *vp_words_share(struct vp_arena *arena, uint64_t part, uint64_t whole);
/* "90%", "92.5%": parts per billion */
const char *vp_words_percent(struct vp_arena *arena, uint64_t ppb);
/* "19.74" of 19736: thousandths, rounded down (a sequence and nearly another one is one) */
const char *vp_words_milli(struct vp_arena *arena, uint64_t milli);
bool vp_words_is_exact(struct vp_amount amount);
/* "1.20..2.85": GiB */
const char *vp_words_interval(struct vp_arena *arena, struct vp_amount amount, int decimals);

/* a - b, kept within 64 bits */
int64_t vp_words_minus(uint64_t a, uint64_t b);
/* The device with the least headroom, which answers are about. */
const struct vp_device *vp_words_worst(const struct vp_result *result);
/* usable - need, by the likely figure */
int64_t vp_words_headroom(const struct vp_device *device);

/* "fp8" or what the checkpoint holds */
const char *vp_words_weights(const struct vp_scenario *scenario);
/* "fp8 weights, fp8 KV cache, vLLM 0.19, context 32768, 16 sequences": all but the model's name */
const char *vp_words_setup(struct vp_arena *arena, const struct vp_result *result);
const char *vp_words_model(const struct vp_scenario *scenario);
/* "1 x AMD Instinct MI300X, 191.98 GiB = 206.14 GB; vLLM may take 90% = 172.79 GiB" */
const char *vp_words_devices(struct vp_arena *arena, const struct vp_result *result);
/* "needs 111.31 GiB of 172.79, 61.48 to spare (58.69..62.38)" */
const char *vp_words_need(struct vp_arena *arena, const struct vp_result *result);
/* "the weights alone are 58.90 GiB"; NULL when that is not worth saying */
const char *vp_words_weights_alone(struct vp_arena *arena, const struct vp_result *result);
/* "rule of thumb: ... GiB; it misses ..."; NULL when there is none */
const char *vp_words_first_order(struct vp_arena *arena, const struct vp_result *result);
/* The engine sets memory aside ahead of need. */
bool vp_words_has_policy(const struct vp_scenario *scenario);
/* "646,720 tokens, 19.73 sequences of 32768"; NULL when the engine has no pool */
const char *vp_words_pool(struct vp_arena *arena, const struct vp_result *result);
/* "file:line:column" of a position, NULL when it has no file */
const char *vp_words_position(struct vp_arena *arena, const struct vp_pos *pos);

/* The price of more and how far it goes; at most four. */
struct vp_fact {
    const char *label, *value;
};
enum { VP_FACTS = 4 };
uint32_t vp_words_prices(struct vp_arena *arena, struct vp_fact out[VP_FACTS],
                         const struct vp_result *result);

#endif
