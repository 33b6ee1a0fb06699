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

/* Whole experts over ranks: parallel.expert and the engine's switch say the same. */
static void check_expert(struct vp_ctx *ctx, const struct vp_scenario *s, uint64_t all) {
    const struct vp_parallel *p = &s->parallel;
    const struct vp_engine *e = &s->engine;
    bool sglang = e->kind == VP_ENGINE_SGLANG; /* groups of ranks may share an expert's width */
    bool whole = sglang ? all % p->expert == 0 : p->expert == all;
    if (vp_scenario_is_given(s, VP_F_EXPERT_PARALLEL) && e->expert_parallel != (p->expert > 1) &&
        all > 1) {
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &s->source[VP_F_EXPERT_PARALLEL].pos,
                    "%s is %s, but parallel.expert is %" PRIu64,
                    vp_field_label(e->kind, VP_F_EXPERT_PARALLEL),
                    e->expert_parallel ? "true" : "false", p->expert);
    } else if (p->expert > 1 && e->kind == VP_ENGINE_TRANSFORMERS) {
        vp_diag_add(ctx->diags, VP_D_UNMODELLED, &s->source[VP_F_EXPERT].pos,
                    "parallel.expert is %" PRIu64 ": expert parallelism of transformers is not "
                    "modelled yet",
                    p->expert);
    } else if (p->expert > 1 && !whole) {
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_EXPERT].pos,
                    sglang ? "parallel.expert is %" PRIu64 ": it must divide the tensor-parallel "
                             "ranks, %" PRIu64
                           : "parallel.expert is %" PRIu64 ": vllm deals experts over all tensor x "
                             "data = %" PRIu64 " ranks",
                    p->expert, all);
    }
}

static void resolve_expert(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_parallel *p = &s->parallel;
    bool vllm = s->engine.kind == VP_ENGINE_VLLM, on = s->engine.expert_parallel;
    uint64_t all = vp_expert_ranks(s);
    if (vp_scenario_is_given(s, VP_F_EXPERT)) {
        check_expert(ctx, s, all);
    } else {
        p->expert = on ? all : 1;
        vp_finish_note(s, VP_F_EXPERT, on ? VP_ORIGIN_DERIVED : VP_ORIGIN_DEFAULT,
                       !on    ? ONE
                       : vllm ? "vllm deals experts over tensor x data ranks"
                              : "sglang deals experts over the tensor ranks");
    }
    if (vp_scenario_is_given(s, VP_F_EXPERT_PARALLEL))
        return;
    s->engine.expert_parallel = p->expert > 1;
    if (vllm)
        vp_finish_note(s, VP_F_EXPERT_PARALLEL,
                       p->expert > 1 ? VP_ORIGIN_DERIVED : VP_ORIGIN_DEFAULT,
                       p->expert > 1 ? "parallel.expert is given" : "off unless asked for");
}

void vp_finish_parallel(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_parallel *p = &s->parallel;
    if (s->training) {
        vp_finish_train_parallel(s);
        return;
    }
    bool attention =
        s->engine.kind == VP_ENGINE_VLLM && vp_scenario_is_given(s, VP_F_ATTENTION_DATA);
    bool asked = vp_scenario_is_given(s, VP_F_TENSOR) || vp_scenario_is_given(s, VP_F_PIPELINE) ||
                 vp_scenario_is_given(s, VP_F_DATA) || attention;
    vp_finish_number(s, VP_F_TENSOR, &p->tensor, 1, VP_ORIGIN_DEFAULT, ONE);
    vp_finish_number(s, VP_F_PIPELINE, &p->pipeline, 1, VP_ORIGIN_DEFAULT, ONE);
    vp_finish_number(
        s, VP_F_DATA, &p->data, attention ? p->attention_data : 1,
        attention ? VP_ORIGIN_DERIVED : VP_ORIGIN_DEFAULT,
        attention ? "in vllm the attention's data-parallel ranks are those of parallel.data" : ONE);
    vp_finish_number(s, VP_F_CONTEXT_PARALLEL, &p->context, 1, VP_ORIGIN_DEFAULT, ONE);
    vp_finish_number(s, VP_F_ATTENTION_DATA, &p->attention_data, 1, VP_ORIGIN_DEFAULT, ONE);
    resolve_expert(ctx, s);
    if (asked)
        vp_finish_number(s, VP_F_COUNT, &s->hardware.count, ranks_of(ctx, s), VP_ORIGIN_DERIVED,
                         "tensor x pipeline x data");
    else
        vp_finish_number(s, VP_F_COUNT, &s->hardware.count, 1, VP_ORIGIN_DEFAULT, "one device");
}

/* vLLM's data ranks stand beside the tensor ranks; SGLang's attention ranks are a part of them. */
static void check_attention_ranks(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_parallel *p = &s->parallel;
    const struct vp_pos *pos = &s->source[VP_F_ATTENTION_DATA].pos;
    if (p->attention_data <= 1)
        return;
    switch (s->engine.kind) {
    case VP_ENGINE_VLLM:
        if (p->attention_data != p->data)
            vp_diag_add(ctx->diags, VP_D_LAYOUT, pos,
                        "parallel.attention_data is %" PRIu64 ": in vllm the attention's "
                        "data-parallel ranks are those of parallel.data, %" PRIu64,
                        p->attention_data, p->data);
        return;
    case VP_ENGINE_SGLANG:
        if (p->data > 1) {
            vp_diag_add(ctx->diags, VP_D_LAYOUT, pos,
                        "parallel.attention_data is %" PRIu64 " and parallel.data %" PRIu64
                        ": in sglang dp_size counts either ranks of the attention or whole copies",
                        p->attention_data, p->data);
            vp_diag_hint(ctx->diags, "without parallel.data the attention's ranks are a part of "
                                     "the tensor-parallel ones");
        } else if (p->tensor % p->attention_data != 0) {
            vp_diag_add(ctx->diags, VP_D_LAYOUT, pos,
                        "data-parallel attention on %" PRIu64 " ranks must divide the %" PRIu64
                        " tensor-parallel ranks that it is a part of",
                        p->attention_data, p->tensor);
        }
        return;
    case VP_ENGINE_TRANSFORMERS:
    case VP_ENGINE_LLAMA_CPP:
    case VP_ENGINE_OLLAMA:
    case VP_ENGINE_PYTORCH:
    case VP_ENGINE_MEGATRON:
    case VP_ENGINE_DEEPSPEED:
        vp_diag_add(ctx->diags, VP_D_LAYOUT, pos,
                    "parallel.attention_data is %" PRIu64 ": %s has no data-parallel attention",
                    p->attention_data, s->engine.name);
    }
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
    if (p->context > 1 && s->engine.kind != VP_ENGINE_VLLM)
        vp_diag_add(ctx->diags, VP_D_UNMODELLED, &s->source[VP_F_CONTEXT_PARALLEL].pos,
                    "parallel.context_parallel is %" PRIu64 ": not modelled for %s yet", p->context,
                    s->engine.name);
    else if (p->tensor % p->context != 0)
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_CONTEXT_PARALLEL].pos,
                    "context parallelism of %" PRIu64 " must divide the %" PRIu64
                    " tensor-parallel ranks that it shares",
                    p->context, p->tensor);
    check_attention_ranks(ctx, s);
    if (p->pipeline > s->model->layer_count)
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_PIPELINE].pos,
                    "%" PRIu64 " pipeline stages for %" PRIu32 " layers", p->pipeline,
                    s->model->layer_count);
}

/* ---- what tensor parallelism divides ---- */

/* Ranks that share the attention's heads when `tensor` ranks share the rest. */
static uint64_t attention_ranks(const struct vp_scenario *s, uint64_t tensor) {
    bool within = s->engine.kind == VP_ENGINE_SGLANG && s->parallel.attention_data > 1;
    return within ? vp_max(tensor / s->parallel.attention_data, 1) : tensor;
}

/* Ranks that share the width of each expert: all of them without expert parallelism, in vLLM the
 * data-parallel ones too. */
static uint64_t width_ranks(const struct vp_scenario *s, uint64_t tensor) {
    bool vllm = s->engine.kind == VP_ENGINE_VLLM;
    if (!s->engine.expert_parallel)
        return vllm ? tensor * s->parallel.data : tensor;
    return vllm ? 1 : vp_max(tensor / s->parallel.expert, 1);
}

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
    uint64_t heads = attention_ranks(s, tensor);
    struct misfit m = attention_misfit(&block->attention, heads);
    if (!m.what)
        m = attention_misfit(&block->second, heads);
    if (!m.what && block->mlp.kind != VP_MLP_NONE)
        m = share("feed-forward width", block->mlp.intermediate, tensor);
    if (m.what || block->moe.kind == VP_MLP_NONE)
        return m;
    m = share("expert width", block->moe.intermediate, width_ranks(s, tensor));
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
    if (!s->training)
        check_ranks(ctx, s);
    if (s->parallel.tensor > MAX_DEVICES || s->parallel.data > MAX_DEVICES)
        return; /* said above; the products below would overflow */
    struct misfit m = model_misfit(s, s->parallel.tensor);
    if (m.what) {
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_TENSOR].pos,
                    "%s cannot divide the model's %s of %" PRIu64 " over %" PRIu64 " ranks",
                    s->engine.name, m.what, m.size, m.by);
        vp_diag_hint(ctx->diags, "tensor-parallel sizes that work: %s", sizes_that_work(ctx, s));
    }
}
