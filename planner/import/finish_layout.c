#include "planner/import/finish_parts.h"

#include <inttypes.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"

enum { MAX_DEVICES = 1 << 20 };

static const char ONE[] = "not divided unless asked for";

/* ---- ranks ---- */

static uint64_t ranks_of(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_parallel *p = &s->parallel;
    struct vp_sum ranks = vp_sum_mul(vp_sum_mul(vp_sum(p->tensor), p->pipeline), p->data);
    if (!ranks.overflow && ranks.v <= MAX_DEVICES)
        return ranks.v;
    vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_TENSOR].pos,
                "tensor x pipeline x data is more than the cap of %d devices", MAX_DEVICES);
    return MAX_DEVICES;
}

/* Whole experts over all ranks: parallel.expert and enable_expert_parallel say the same. */
static void resolve_expert(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_parallel *p = &s->parallel;
    struct vp_sum product = vp_sum_mul(vp_sum(p->tensor), p->data);
    uint64_t all = product.overflow ? UINT64_MAX : product.v;
    bool flag_given = vp_finish_is_given(s, VP_F_EXPERT_PARALLEL);
    if (!vp_finish_is_given(s, VP_F_EXPERT)) {
        bool on = s->engine.expert_parallel;
        p->expert = on ? all : 1;
        vp_finish_note(s, VP_F_EXPERT, on ? VP_ORIGIN_DERIVED : VP_ORIGIN_DEFAULT,
                       on ? "vllm deals experts over tensor x data ranks" : ONE);
    } else if (flag_given && s->engine.expert_parallel != (p->expert > 1) && all > 1) {
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &s->source[VP_F_EXPERT_PARALLEL].pos,
                    "engine.args.enable_expert_parallel is %s, but parallel.expert is %" PRIu64,
                    s->engine.expert_parallel ? "true" : "false", p->expert);
    } else if (p->expert > 1 && p->expert != all) {
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_EXPERT].pos,
                    "parallel.expert is %" PRIu64 ": vllm deals experts over all tensor x data = "
                    "%" PRIu64 " ranks",
                    p->expert, all);
    }
    if (flag_given)
        return;
    s->engine.expert_parallel = p->expert > 1;
    vp_finish_note(s, VP_F_EXPERT_PARALLEL, p->expert > 1 ? VP_ORIGIN_DERIVED : VP_ORIGIN_DEFAULT,
                   p->expert > 1 ? "parallel.expert is given" : "off unless asked for");
}

void vp_finish_parallel(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_parallel *p = &s->parallel;
    bool asked = vp_finish_is_given(s, VP_F_TENSOR) || vp_finish_is_given(s, VP_F_PIPELINE) ||
                 vp_finish_is_given(s, VP_F_DATA);
    vp_finish_number(s, VP_F_TENSOR, &p->tensor, 1, VP_ORIGIN_DEFAULT, ONE);
    vp_finish_number(s, VP_F_PIPELINE, &p->pipeline, 1, VP_ORIGIN_DEFAULT, ONE);
    vp_finish_number(s, VP_F_DATA, &p->data, 1, VP_ORIGIN_DEFAULT, ONE);
    vp_finish_number(s, VP_F_CONTEXT_PARALLEL, &p->context, 1, VP_ORIGIN_DEFAULT, ONE);
    vp_finish_number(s, VP_F_ATTENTION_DATA, &p->attention_data, 1, VP_ORIGIN_DEFAULT, ONE);
    resolve_expert(ctx, s);
    if (asked)
        vp_finish_number(s, VP_F_COUNT, &s->hardware.count, ranks_of(ctx, s), VP_ORIGIN_DERIVED,
                         "tensor x pipeline x data");
    else
        vp_finish_number(s, VP_F_COUNT, &s->hardware.count, 1, VP_ORIGIN_DEFAULT, "one device");
}

static void check_ranks(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_parallel *p = &s->parallel;
    const struct vp_hardware *hw = &s->hardware;
    uint64_t ranks = ranks_of(ctx, s);
    if (hw->count > MAX_DEVICES)
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_COUNT].pos,
                    "hardware.count is more than the cap of %d devices", MAX_DEVICES);
    else if (ranks > hw->count) {
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_COUNT].pos,
                    "the layout needs tensor %" PRIu64 " x pipeline %" PRIu64 " x data %" PRIu64
                    " = %" PRIu64 " devices, hardware.count is %" PRIu64,
                    p->tensor, p->pipeline, p->data, ranks, hw->count);
        if (hw->package)
            vp_diag_hint(ctx->diags,
                         "%" PRIu64 " %s packages are %" PRIu64 " devices: count %" PRIu64,
                         hw->count, hw->package, 2 * hw->count, 2 * hw->count);
        else
            vp_diag_hint(ctx->diags, "count is the total over all machines; left out, it follows "
                                     "from the layout");
    }
    if (hw->count % hw->nodes != 0)
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_NODES].pos,
                    "hardware.count %" PRIu64 " does not divide evenly over %" PRIu64 " machines",
                    hw->count, hw->nodes);
    if (p->tensor % p->context != 0)
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_CONTEXT_PARALLEL].pos,
                    "context parallelism of %" PRIu64 " must divide the %" PRIu64
                    " tensor-parallel ranks that it shares",
                    p->context, p->tensor);
    if (p->attention_data > 1 && p->attention_data != p->data)
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_ATTENTION_DATA].pos,
                    "parallel.attention_data is %" PRIu64 ": in vllm the attention's data-parallel "
                    "ranks are those of parallel.data, %" PRIu64,
                    p->attention_data, p->data);
    if (p->pipeline > s->model->layer_count)
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_PIPELINE].pos,
                    "%" PRIu64 " pipeline stages for %" PRIu32 " layers", p->pipeline,
                    s->model->layer_count);
}

/* ---- what tensor parallelism divides ---- */

/* The first size that `by` ranks cannot share; what NULL: all can. */
struct misfit {
    const char *what;
    uint64_t size, by;
};

static struct misfit share(const char *what, uint64_t size, uint64_t by) {
    return size % by == 0 ? (struct misfit){0} : (struct misfit){what, size, by};
}

/* Hand-described layers say no sizes that could be divided; Mamba 1 has one head of the inner
 * width. Groups of Mamba 2 that do not divide are copied. */
static struct misfit linear_misfit(const struct vp_attention *a, uint64_t tensor) {
    if (a->linear == VP_LINEAR_GIVEN)
        return (struct misfit){0};
    if (a->value_heads <= 1)
        return share("state-space width", a->value_dim, tensor);
    struct misfit m = share("linear-attention heads", a->value_heads, tensor);
    if (!m.what && a->linear == VP_LINEAR_GATED_DELTA)
        m = share("linear-attention key heads", a->key_heads, tensor);
    return m;
}

static struct misfit attention_misfit(const struct vp_attention *a, uint64_t tensor) {
    struct misfit m = {0};
    switch (a->kind) {
    case VP_ATTENTION_GQA:
        m = share("attention heads", a->heads, tensor);
        /* Fewer KV heads than ranks are replicated, which needs a whole number of copies. */
        if (!m.what && a->kv_heads && tensor > a->kv_heads && tensor % a->kv_heads != 0)
            m = (struct misfit){"KV heads", a->kv_heads, tensor};
        else if (!m.what && a->kv_heads > tensor)
            m = share("KV heads", a->kv_heads, tensor);
        break;
    case VP_ATTENTION_MLA:
    case VP_ATTENTION_COMPRESSED:
        m = share("attention heads", a->heads, tensor);
        break;
    case VP_ATTENTION_LINEAR:
        m = linear_misfit(a, tensor);
        break;
    case VP_ATTENTION_NONE:
        break;
    }
    return m;
}

static struct misfit block_misfit(const struct vp_scenario *s, const struct vp_block *block,
                                  uint64_t tensor) {
    struct misfit m = attention_misfit(&block->attention, tensor);
    if (!m.what)
        m = attention_misfit(&block->second, tensor);
    if (!m.what && block->mlp.kind != VP_MLP_NONE)
        m = share("feed-forward width", block->mlp.intermediate, tensor);
    if (m.what || block->moe.kind == VP_MLP_NONE)
        return m;
    /* Without expert parallelism all tensor x data ranks share the width of each expert. */
    if (!s->engine.expert_parallel)
        m = share("expert width", block->moe.intermediate, tensor * s->parallel.data);
    return m.what ? m : share("shared-expert width", block->moe.shared_intermediate, tensor);
}

static struct misfit model_misfit(const struct vp_scenario *s, uint64_t tensor) {
    struct misfit m = {0};
    for (uint32_t i = 0; i < s->model->block_count && !m.what; i++)
        m = block_misfit(s, &s->model->blocks[i], tensor);
    return m;
}

static const char *sizes_that_work(struct vp_ctx *ctx, const struct vp_scenario *s) {
    enum { TRIED = 256 };
    struct vp_buf buf = {.arena = ctx->arena};
    for (uint64_t tensor = 1; tensor <= TRIED; tensor++)
        if (!model_misfit(s, tensor).what)
            vp_buf_printf(&buf, "%s%" PRIu64, buf.size ? ", " : "", tensor);
    return buf.size ? vp_buf_text(&buf) : "none up to 256";
}

void vp_finish_layout(struct vp_ctx *ctx, const struct vp_scenario *s) {
    check_ranks(ctx, s);
    if (s->parallel.tensor > MAX_DEVICES || s->parallel.data > MAX_DEVICES)
        return; /* said above; the products below would overflow */
    struct misfit m = model_misfit(s, s->parallel.tensor);
    if (m.what) {
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_TENSOR].pos,
                    "vllm cannot divide the model's %s of %" PRIu64 " over %" PRIu64 " ranks",
                    m.what, m.size, m.by);
        vp_diag_hint(ctx->diags, "tensor-parallel sizes that work: %s", sizes_that_work(ctx, s));
    }
}
