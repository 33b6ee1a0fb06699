/* What the files of this folder share: adding operators to a list, and the mixers. Private. */
#ifndef VP_OPS_OPS_PARTS_H
#define VP_OPS_OPS_PARTS_H

#include "planner/ops/ops.h"

struct vp_op *vp_op_add(struct vp_ops *ops, enum vp_op_kind kind, enum vp_role role,
                        const char *name);
/* a * b * c, or 0 with the list's overflow flag set */
uint64_t vp_op_product(struct vp_ops *ops, uint64_t a, uint64_t b, uint64_t c);
uint64_t vp_op_sum(struct vp_ops *ops, uint64_t a, uint64_t b);

/* One matrix; `bias` adds `out` parameters. */
struct vp_op *vp_op_linear(struct vp_ops *ops, enum vp_role role, const char *name, uint64_t out,
                           uint64_t in, bool bias);
/* A matrix divided by its inputs under tensor parallelism: the ranks' outputs are summed. */
struct vp_op *vp_op_linear_row(struct vp_ops *ops, enum vp_role role, const char *name,
                               uint64_t out, uint64_t in, bool bias);
void vp_op_norm(struct vp_ops *ops, enum vp_role role, const char *name, uint64_t width,
                enum vp_norm_kind kind);

/* The operators of a mixer, without norms and residual. */
void vp_ops_gqa(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a);
void vp_ops_mla(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a);
void vp_ops_compressed(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a);
void vp_ops_recurrent(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a);

#endif
