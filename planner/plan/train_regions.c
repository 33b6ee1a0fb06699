#include "planner/plan/train_regions.h"

static bool is_expert(const struct vp_op *op) {
    return op->role == VP_ROLE_EXPERT_GATE || op->role == VP_ROLE_EXPERT_UP ||
           op->role == VP_ROLE_EXPERT_DOWN;
}

static bool is_shared(const struct vp_op *op) {
    return op->role == VP_ROLE_SHARED_GATE || op->role == VP_ROLE_SHARED_UP ||
           op->role == VP_ROLE_SHARED_DOWN;
}

static bool is_dense(const struct vp_op *op) {
    return op->role == VP_ROLE_GATE || op->role == VP_ROLE_UP || op->role == VP_ROLE_DOWN;
}

static bool is_matrix(const struct vp_op *op) {
    return op->kind == VP_OP_LINEAR || op->kind == VP_OP_EXPERTS;
}

/* Regions whose recomputation runs the operator again. before: the matrix in front of it, whose
 * feed-forward an activation function belongs to. */
static uint32_t regions_of(const struct vp_op *op, const struct vp_op *before) {
    const struct vp_op *owner = op->kind == VP_OP_ACTIVATION && before ? before : op;
    uint32_t set = 0;
    if (op->kind == VP_OP_ATTENTION)
        set |= VP_SELECT_CORE_ATTENTION;
    if (op->kind == VP_OP_NORM && op->role == VP_ROLE_NORM)
        set |= VP_SELECT_NORM;
    if (op->role == VP_ROLE_KV_B || op->role == VP_ROLE_Q_B)
        set |= VP_SELECT_MLA_UP;
    if (is_dense(owner))
        set |= VP_SELECT_MLP;
    if (is_shared(owner))
        set |= VP_SELECT_SHARED_EXPERTS | VP_SELECT_MOE;
    if (is_expert(owner) || op->kind == VP_OP_ROUTE)
        set |= VP_SELECT_MOE;
    if (is_expert(owner) && op->kind == VP_OP_ACTIVATION)
        set |= VP_SELECT_MOE_ACTIVATION;
    return set;
}

uint32_t vp_regions_in(const struct vp_model *model, const struct vp_block *block) {
    const struct vp_op *matrix = NULL;
    struct vp_ops ops;
    uint32_t set = 0;

    vp_ops_block(&ops, model, block);
    for (uint32_t i = 0; i < ops.count; i++) {
        set |= regions_of(&ops.item[i], matrix);
        if (is_matrix(&ops.item[i]))
            matrix = &ops.item[i];
    }
    return set;
}

/* matrices: in front of it. */
static bool runs_again(const struct vp_op *op, const struct vp_op *before, uint32_t matrices,
                       uint32_t regions) {
    if (regions == VP_REGION_ALL)
        return true;
    if (regions == VP_REGION_BY_OPERATOR)
        return op->kind != VP_OP_ATTENTION && !(op->kind == VP_OP_LINEAR && matrices % 2 == 0);
    return (regions_of(op, before) & regions) != 0;
}

struct vp_train_cost vp_regions_cost(const struct vp_train_place *place,
                                     const struct vp_block *block, uint32_t regions) {
    struct vp_train_cost sum = vp_train_nothing();
    const struct vp_op *matrix = NULL;
    struct vp_train_pass pass;
    struct vp_ops ops;
    uint32_t matrices = 0;

    vp_ops_block(&ops, place->scenario->model, block);
    for (uint32_t i = 0; i < ops.count;) {
        const struct vp_op *op = &ops.item[i];
        i += vp_train_op(&pass, place, block, &ops, i);
        if (runs_again(op, matrix, matrices, regions))
            vp_train_cost_add(&sum, &pass.forward, 1);
        if (op->kind == VP_OP_LINEAR)
            matrices++;
        if (is_matrix(op))
            matrix = op;
    }
    return sum;
}
