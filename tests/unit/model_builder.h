/* Models and scenarios for the tests of the memory path: made by hand with sizes that a reader can
 * add up, or read from YAML with the shipped profiles. */
#ifndef VP_TESTS_MODEL_BUILDER_H
#define VP_TESTS_MODEL_BUILDER_H

#include "planner/memory/engine_stage.h"
#include "planner/plan/plan.h"
#include "tests/unit/fixture.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

struct builder {
    struct fixture f;
    struct vp_model model;
    struct vp_scenario scenario;
};

/* A finished scenario without layers: bf16 everywhere, no embedding, no head, one rank of a device
 * of 80 GiB, vLLM's v1 accounting with utilization 0.9 and without overheads, blocks of 16,
 * 2048 batched tokens, 256 sequences; one sequence of 4096 tokens. */
void builder_begin(struct builder *b);
void builder_end(struct builder *b);

/* Layers: counts[i] of kinds[i], in this order. Replaces those before. */
void builder_layers(struct builder *b, const struct vp_block *kinds, const uint32_t *counts,
                    uint32_t n);
void builder_layer(struct builder *b, struct vp_block kind, uint32_t count);
/* Stores all matrices in this format. */
void builder_scheme(struct builder *b, struct vp_scheme scheme);
/* Embedding, final norm and head over this vocabulary. */
void builder_ends(struct builder *b, uint64_t vocab, bool tied);

struct vp_block block_gqa(uint64_t heads, uint64_t kv_heads, uint64_t head_dim);
struct vp_block block_window(uint64_t kv_heads, uint64_t head_dim, uint64_t window);
struct vp_block block_mla(uint64_t heads, uint64_t kv_lora_rank, uint64_t rope_dim);
/* A recurrent layer with just this state; dtype UNSET: the compute type. */
struct vp_block block_state(uint64_t state_elements, enum vp_dtype dtype);

struct vp_kv_plan builder_kv(struct builder *b, uint32_t stage);
/* An empty ledger in the builder's arena. */
struct vp_ledger builder_ledger(struct builder *b);
/* One stage's figures; its rows are those of device `index`. */
struct vp_engine_stage builder_stage(struct builder *b, struct vp_ledger *ledger, uint32_t index);
/* Weights of a stage, in bytes; their rows go to the ledger when it is not NULL. */
uint64_t builder_weights(struct builder *b, struct vp_ledger *ledger, uint32_t index);
const struct vp_result *builder_evaluate(struct builder *b);

/* ---- rows ---- */

uint64_t ledger_likely(const struct vp_ledger *ledger, uint32_t device,
                       enum vp_component component);
/* The first row of this owner; fails the test without one. */
const struct vp_row *ledger_row(const struct vp_ledger *ledger, uint32_t device, const char *owner);
bool ledger_has(const struct vp_ledger *ledger, uint32_t device, const char *owner);
/* Bytes of all rows of this owner. */
uint64_t ledger_owner(const struct vp_ledger *ledger, uint32_t device, const char *owner);
/* Value of a row's input; fails the test without one. */
uint64_t row_input(const struct vp_row *row, const char *name);

/* ---- from YAML ---- */

/* Reads a scenario ("vramplan: 1" is put in front) and plans it; fails the test when that cannot
 * be done. The result lives as long as the fixture. */
const struct vp_result *plan_yaml(struct fixture *f, const char *yaml);
/* The same with one setting of the command line. */
const struct vp_result *plan_yaml_with(struct fixture *f, const char *yaml, const char *field,
                                       const char *value);
/* The scenario alone. */
struct vp_scenario *read_yaml(struct fixture *f, const char *yaml, const char *field,
                              const char *value);
/* a == b within a share of b, in 1/1000. */
void assert_near(uint64_t a, uint64_t b, uint64_t permille);

#endif
