/* Megatron-LM's command line: options of megatron_args.def from the field to the option, and the
 * model in Megatron's own options where it is made of like layers. */
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/recipe_rows.h"
#include "planner/import/wording_parts.h"

static void put(struct vp_writing *w, const char *option, const char *value) {
    vp_node_set(w->ctx, w->out->options, option, (struct vp_pos){0}, vp_words_scalar(w, value));
}

static void put_number(struct vp_writing *w, const char *option, uint64_t v) {
    put(w, option, vp_format_u64(w->ctx->arena, v));
}

/* ---- the model ---- */

static bool is_gated(enum vp_mlp_kind kind) { return kind == VP_MLP_GATED; }

/* What Megatron's options describe: layers of one kind, with plain or grouped or latent attention.
 */
static bool is_plain(const struct vp_model *m) {
    const struct vp_block *b = &m->blocks[0];
    const struct vp_attention *a = &b->attention;
    bool experts = b->moe.kind != VP_MLP_NONE, bias = a->out_bias;
    bool biased = a->qkv_bias == bias && (experts ? !bias && !b->moe.bias : b->mlp.bias == bias);
    bool sized = a->kind == VP_ATTENTION_GQA || a->kind == VP_ATTENTION_MLA;
    return m->block_count == 1 && sized && biased && b->second.kind == VP_ATTENTION_NONE &&
           a->window == 0 && !a->sinks && m->extra_count == 0 && m->embedding && m->lm_head &&
           m->hyper == 0 && m->activation != VP_ACTIVATION_RELU && b->norms == 2 &&
           a->index_heads == 0;
}

static void put_attention(struct vp_writing *w, const struct vp_attention *a) {
    put_number(w, "num-attention-heads", a->heads);
    if (a->kind == VP_ATTENTION_MLA) {
        put(w, "multi-latent-attention", "true");
        if (a->q_lora_rank)
            put_number(w, "q-lora-rank", a->q_lora_rank);
        put_number(w, "kv-lora-rank", a->kv_lora_rank);
        put_number(w, "qk-head-dim", a->qk_nope_head_dim);
        put_number(w, "qk-pos-emb-head-dim", a->qk_rope_head_dim);
        put_number(w, "v-head-dim", a->v_head_dim);
        return;
    }
    if (a->kv_heads != a->heads) {
        put(w, "group-query-attention", "true");
        put_number(w, "num-query-groups", a->kv_heads);
    }
    put_number(w, "kv-channels", a->head_dim);
    if (a->qk_norm != VP_QK_NORM_NONE)
        put(w, "qk-layernorm", "true");
}

static void put_feed_forward(struct vp_writing *w, const struct vp_block *b) {
    bool experts = b->moe.kind != VP_MLP_NONE;
    enum vp_mlp_kind kind = experts ? b->moe.kind : b->mlp.kind;
    if (is_gated(kind))
        put(w, "swiglu", "true");
    if (!experts) {
        put_number(w, "ffn-hidden-size", b->mlp.intermediate);
        return;
    }
    put_number(w, "num-experts", b->moe.experts);
    put_number(w, "moe-router-topk", b->moe.top_k);
    put_number(w, "moe-ffn-hidden-size", b->moe.intermediate);
    if (b->moe.shared_intermediate)
        put_number(w, "moe-shared-expert-intermediate-size", b->moe.shared_intermediate);
}

static void put_model(struct vp_writing *w) {
    const struct vp_model *m = w->scenario->model;
    const struct vp_block *b = &m->blocks[0];
    put_number(w, "num-layers", m->layer_count);
    put_number(w, "hidden-size", m->hidden);
    put_attention(w, &b->attention);
    put_feed_forward(w, b);
    put_number(w, "vocab-size", m->vocab);
    if (m->learned_positions)
        put_number(w, "max-position-embeddings", m->learned_positions);
    put(w, "position-embedding-type", m->learned_positions ? "learned_absolute" : "rope");
    if (b->norm == VP_NORM_RMS)
        put(w, "normalization", "RMSNorm");
    if (!m->tied)
        put(w, "untie-embeddings-and-output-weights", "true");
    if (!b->attention.out_bias)
        put(w, "disable-bias-linear", "true");
}

/* ---- settings ---- */

static void put_recompute(struct vp_writing *w) {
    struct vp_said_leaf *leaf = vp_words_leaf(w, "train.recompute");
    const char *kind = leaf ? vp_words_text(w, leaf) : NULL;
    if (vp_text_eq(kind, "full")) {
        put(w, "recompute-granularity", "full");
        put(w, "recompute-method", "uniform");
        put(w, "recompute-num-layers", "1");
    } else if (vp_text_eq(kind, "selective")) {
        put(w, "recompute-granularity", "selective");
    } else if (!vp_text_eq(kind, "none")) {
        return;
    }
    leaf->written = true;
}

static void put_zero(struct vp_writing *w) {
    struct vp_said_leaf *leaf = vp_words_leaf(w, "parallel.zero");
    const char *stage = leaf ? vp_words_text(w, leaf) : NULL;
    if (!vp_text_eq(stage, "1") && !vp_text_eq(stage, "0"))
        return;
    if (*stage == '1')
        put(w, "use-distributed-optimizer", "true");
    leaf->written = true;
}

/* Megatron trains in fp32 unless it is told. */
static void put_type(struct vp_writing *w) {
    enum vp_dtype type = w->scenario->train.parameters;
    bool said = vp_words_leaf(w, "engine.args.bf16") || vp_words_leaf(w, "engine.args.fp16");
    if (!said && (type == VP_DTYPE_BF16 || type == VP_DTYPE_FP16))
        put(w, type == VP_DTYPE_BF16 ? "bf16" : "fp16", "true");
}

static void put_arguments(struct vp_writing *w) {
    static const char PREFIX[] = "engine.args.";
    for (uint32_t i = 0; i < w->count; i++) {
        struct vp_said_leaf *leaf = &w->leaves[i];
        if (!vp_text_starts(leaf->path, PREFIX))
            continue;
        char *option = vp_arena_text(w->ctx->arena, leaf->path + strlen(PREFIX),
                                     strlen(leaf->path) - strlen(PREFIX));
        for (char *p = option; *p; p++)
            if (*p == '_')
                *p = '-';
        vp_node_set(w->ctx, w->out->options, option, (struct vp_pos){0},
                    (struct vp_node *)(uintptr_t)leaf->node);
        leaf->written = true;
    }
}

void vp_words_megatron(struct vp_writing *w) {
    struct vp_said_leaf *model = vp_words_leaf(w, "model");
    bool plain = is_plain(w->scenario->model);
    if (plain)
        put_model(w);
    else
        w->out->model = NULL;
    if (model)
        model->written = plain;
    for (size_t i = 0; i < vp_megatron_option_count; i++) {
        const struct vp_megatron_option *o = &vp_megatron_options[i];
        struct vp_said_leaf *leaf = vp_words_leaf(w, o->field);
        if (o->field == VP_MEGATRON_MODEL || o->field == VP_MEGATRON_LAUNCH || !leaf ||
            leaf->written)
            continue;
        const char *text = vp_words_text(w, leaf);
        if (!text)
            continue;
        leaf->written = true;
        if (!vp_text_eq(text, "false"))
            put(w, o->option, text);
    }
    put_recompute(w);
    put_zero(w);
    put_type(w);
    put_arguments(w);
}
