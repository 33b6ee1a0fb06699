/* Scenarios by hand for the tests of what layers keep. Sizes are small and all different, so that a
 * wrong factor shows. */
#ifndef VP_TESTS_TAPE_BUILDER_H
#define VP_TESTS_TAPE_BUILDER_H

#include "planner/ops/tape.h"
#include "tests/unit/fixture.h"

enum { B = 2, S = 24, H = 64, HEADS = 8, D = 8, F = 176, EXPERTS = 6, TOP = 2, FE = 48 };
enum { T = B * S, SCORES = B * HEADS * S * S };
enum { QL = 40, KL = 24, NOPE = 12, ROPE = 4, VD = 10 }; /* latents */

/* What the functions below fill and the tests change. */
extern struct vp_model model;
extern struct vp_scenario scenario;
extern struct vp_block block;
extern struct vp_tape tape;

/* Two norms and nothing else, on one rank. */
void begin(enum vp_dtype dtype);
struct vp_attention heads(uint64_t kv, bool bias);
/* As GPT-2 is written: LayerNorm, one matrix for q, k and v, dropout behind each half. */
void gpt2(enum vp_dtype dtype, bool dropout);
/* As Llama is written, with the softmax in fp32. */
void llama(enum vp_dtype dtype, uint64_t kv, enum vp_attention_impl attention);
/* The same with latent attention; with experts; with a recurrent mixer, one norm and no MLP. */
void mla(enum vp_dtype dtype, enum vp_attention_impl attention);
void moe(enum vp_dtype dtype, uint64_t shared);
void recurrent(enum vp_linear_kind kind);
/* Freezes the base and puts adapters of rank 4 on these matrices. */
void adapt(const enum vp_role *roles, uint32_t count, enum vp_dtype dtype, bool dropout);
extern const enum vp_role QV[2], ALL[7];

/* The tape of the block: bytes saved, in the middle of the model and as its first layer. */
uint64_t saved(void);
uint64_t saved_first(void);
uint64_t item_bytes(const char *name);
uint64_t group_bytes(enum vp_tape_group group);
/* Of the two norms of llama(), e bytes per element. */
uint64_t llama_norms(uint64_t e, bool fused);
/* Of the experts of moe() without shared ones: of the router 4 bytes per token and expert, and per
 * choice its index and weight; per routed token its place, its copy, four tensors of the expert's
 * width, the output and its weight. */
uint64_t moe_kept(uint64_t e, uint64_t rows);

#endif
