/* Making a tape: the tensors of a layer in the order in which they come into being, which operator
 * reads them, which of them are kept for the backward pass. Private to the tape_*.c files.
 *
 * A tensor is kept when an operator's derivative needs it: a matrix that is trained keeps its
 * input, a product keeps a factor when the other one needs a gradient, and so on. That needs-a-
 * gradient is passed on from tensor to tensor, so that frozen weights, adapters and the first
 * layer of a frozen model need no rules of their own. Kept tensors become the items of the tape;
 * from the steps at which a tensor is made and last read follow the temporary bytes. */
#ifndef VP_OPS_TAPE_PARTS_H
#define VP_OPS_TAPE_PARTS_H

#include "planner/ops/tape.h"

enum { VP_TENSORS_MAX = 256, VP_TAPE_EXTRA = 8 /* most tensors that a rule may add */ };

struct vp_tensor {
    const char *name;
    enum vp_tape_group group;
    uint64_t elements, bytes;
    enum vp_dtype dtype;
    bool grad, kept;
    uint32_t made, read; /* steps */
    uint32_t needed;     /* kept: the first step that keeps it, UINT32_MAX: none */
    uint32_t narrow;     /* its FP8 copy: index + 1; 0: none */
    uint32_t made_in;    /* set of enum vp_selective: regions it was made in */
    uint32_t kept_in;    /* regions that all of its keepers lie in */
    uint32_t input_of;   /* regions that read it and cannot be run again without it */
};

struct vp_tape_maker {
    struct vp_tape *out;
    const struct vp_scenario *scenario;
    const struct vp_train_ops *how;
    const struct vp_block *block; /* NULL beside the stack */
    struct vp_ops ops;
    uint32_t half; /* operators before this index belong to earlier parts of the block */
    struct vp_layout layout;

    uint64_t sequences;       /* in a micro batch */
    uint64_t queries, keys;   /* tokens of a sequence on this rank; that they attend to */
    uint64_t tokens, outside; /* of the micro batch on this rank: inside the halves that tensor
                                 parallelism divides; between them */
    enum vp_dtype residual;   /* of the residual stream and of weights that are not quantised */
    enum vp_dtype matrix;     /* that matrices work in */
    bool autocast;            /* matrices convert what they read, norms and softmax use fp32 */
    bool joint_qkv, joint_gate_up; /* one matrix for all: one converted input */
    bool softmax_fp32;             /* written with an fp32 softmax whatever the type of its input */
    bool residual_dropout;         /* behind each half of the block, not in the attention only */
    bool rotary;                   /* queries and keys are rotated */

    enum vp_tape_group group; /* of tensors made now */
    uint32_t region;          /* that selective recomputation may leave out: we are in these */
    struct vp_tensor tensor[VP_TENSORS_MAX];
    uint32_t count, step;
};

/* A maker for the operators in `ops` of it, which the caller fills next. */
void vp_maker_start(struct vp_tape_maker *maker, struct vp_tape *out,
                    const struct vp_scenario *scenario, const struct vp_block *block);
/* Items, sums and temporary bytes; input and output: tensors. */
void vp_maker_finish(struct vp_tape_maker *maker, uint32_t input, uint32_t output);

/* The operator of this role in the present part of the block; NULL: it has none. */
const struct vp_op *vp_maker_find(const struct vp_tape_maker *maker, enum vp_role role);
/* The same by kind. */
const struct vp_op *vp_maker_kind(const struct vp_tape_maker *maker, enum vp_op_kind kind);
struct vp_op_share vp_maker_share(const struct vp_tape_maker *maker, const struct vp_op *op);
/* Tokens of the encoder's output that cross attention reads, per sequence. */
uint64_t vp_maker_source(const struct vp_tape_maker *maker, const struct vp_attention *a);
/* Its weights are trained (adapters are not its weights). */
bool vp_maker_trains(const struct vp_tape_maker *maker, enum vp_role role);

/* ---- tensors: made at the present step ---- */

uint32_t vp_tensor_new(struct vp_tape_maker *maker, const char *name, struct vp_sum elements,
                       enum vp_dtype dtype, bool grad);
/* Of so many rows of so many elements. */
uint32_t vp_tensor_rows(struct vp_tape_maker *maker, const char *name, uint64_t rows,
                        uint64_t width, enum vp_dtype dtype, bool grad);
/* Of the same shape and type; needs a gradient as this one does. */
uint32_t vp_tensor_like(struct vp_tape_maker *maker, const char *name, uint32_t tensor);
/* In another type: itself when it has that type. */
uint32_t vp_tensor_cast(struct vp_tape_maker *maker, uint32_t tensor, enum vp_dtype dtype);
void vp_tensor_keep(struct vp_tape_maker *maker, uint32_t tensor);
/* Something kept that is read by nothing else: statistics, masks, indices. No gradient. */
void vp_tensor_keep_new(struct vp_tape_maker *maker, const char *name, uint64_t rows,
                        uint64_t width, enum vp_dtype dtype);
/* A step of the forward pass begins; it reads these. */
void vp_maker_step(struct vp_tape_maker *maker);
void vp_tensor_read(struct vp_tape_maker *maker, uint32_t tensor);
bool vp_tensor_grad(const struct vp_tape_maker *maker, uint32_t tensor);
/* The region, which reads this tensor, begins or ends. */
void vp_region_enter(struct vp_tape_maker *maker, enum vp_selective region, uint32_t input);
void vp_region_leave(struct vp_tape_maker *maker, enum vp_selective region);

/* ---- operators: read a tensor, return what they make ---- */

/* A norm over the last `op->in` elements; rows of statistics. */
uint32_t vp_tape_norm(struct vp_tape_maker *maker, uint32_t x, const struct vp_op *op,
                      uint64_t rows);
/* The same over the first op->in elements of each row of x: where x is not converted or copied, all
 * of it is kept. */
uint32_t vp_tape_norm_part(struct vp_tape_maker *maker, uint32_t x, const struct vp_op *op,
                           uint64_t rows);
/* What matrices read of x: a copy in their type under autocast, else x itself. */
uint32_t vp_tape_matrix_input(struct vp_tape_maker *maker, uint32_t x);
/* x through the matrix `op` and its adapter; in: vp_tape_matrix_input of x, which matrices that are
 * one share. rows: tokens that reach it. */
uint32_t vp_tape_matrix(struct vp_tape_maker *maker, uint32_t x, uint32_t in,
                        const struct vp_op *op, const char *name, uint64_t rows);
/* The same of this role, with an input of its own. */
uint32_t vp_tape_matrix_of(struct vp_tape_maker *maker, uint32_t x, enum vp_role role,
                           const char *name);
/* x itself without dropout. */
uint32_t vp_tape_dropout(struct vp_tape_maker *maker, uint32_t x, uint64_t ppb);
uint32_t vp_tape_add(struct vp_tape_maker *maker, uint32_t a, uint32_t b, const char *name);
/* a * b, element by element, in the wider type. */
uint32_t vp_tape_multiply(struct vp_tape_maker *maker, uint32_t a, uint32_t b, const char *name);

/* The mixers, without the norm before and the residual behind. */
uint32_t vp_tape_mixer(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a);
uint32_t vp_tape_recurrent(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a);
/* The feed-forward halves. */
uint32_t vp_tape_mlp(struct vp_tape_maker *maker, uint32_t x);
uint32_t vp_tape_moe(struct vp_tape_maker *maker, uint32_t x);

#endif
