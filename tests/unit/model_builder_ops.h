/* Operators of a block for the tests of what a layer does, and blocks of small and unlike sizes, so
 * that a mistaken factor shows. */
#ifndef VP_TESTS_MODEL_BUILDER_OPS_H
#define VP_TESTS_MODEL_BUILDER_OPS_H

#include "planner/ops/ops.h"
#include "tests/unit/model_builder.h"

enum { HIDDEN = 16 }; /* width of the model that the blocks belong to */

/* The list that the functions below look into. */
extern struct vp_ops ops_list;

void ops_make(const struct vp_block *block);
/* The n-th operator of this name, from 0; fails the test without one. */
const struct vp_op *ops_nth(const char *name, int n);
const struct vp_op *ops_named(const char *name);
bool ops_has(const char *name);
uint64_t ops_parameters(void);
uint64_t ops_active(void);

/* 4 heads and 2 KV heads of 8, values of 6, a rotary part of 4; two norms. */
struct vp_block ops_gqa(void);
/* 2 key heads of 3, 4 value heads of 5; convolved over 4: q, k and v. */
struct vp_block ops_recurrent(enum vp_linear_kind kind);
/* Of width 40, nothing else. */
struct vp_block ops_feed_forward(enum vp_mlp_kind kind, bool bias);
/* 10 experts of width 12, 3 of which work. */
struct vp_block ops_experts(enum vp_mlp_kind kind);

#endif
