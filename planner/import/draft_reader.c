/* The draft of speculative decoding: which method it is, and its model. An EAGLE head is described
 * like a model of few layers; what makes it a head (joined inputs, a vocabulary of its own) is set
 * apart here. Source: vLLM llama_eagle.py, llama_eagle3.py, v1/spec_decode. */
#include <string.h>

#include "planner/base/text.h"
#include "planner/import/description.h"
#include "planner/import/model_reader.h"
#include "planner/import/serve_extras.h"

static const struct {
    const char *name;
    enum vp_draft_method method;
} METHODS[] = {{"ngram", VP_DRAFT_NGRAM},  {"ngram_gpu", VP_DRAFT_NGRAM},
               {"suffix", VP_DRAFT_NGRAM}, {"draft_model", VP_DRAFT_MODEL},
               {"eagle", VP_DRAFT_EAGLE},  {"eagle3", VP_DRAFT_EAGLE3},
               {"mtp", VP_DRAFT_MTP}};

enum { METHOD_COUNT = sizeof METHODS / sizeof *METHODS };

/* "deepseek_mtp" and the like are the model's own layers. */
static enum vp_draft_method method_of(const char *name) {
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (strcmp(METHODS[i].name, name) == 0)
            return METHODS[i].method;
    return vp_text_ends(name, "_mtp") ? VP_DRAFT_MTP : VP_DRAFT_NONE;
}

static enum vp_status refuse_method(struct vp_reading *r) {
    const struct vp_source *source = &r->out->source[VP_F_DRAFT_METHOD];

    vp_diag_add(r->ctx->diags, VP_D_UNMODELLED, &source->pos,
                "%s: the method \"%.60s\" is not modelled", vp_source_show(r->ctx, source),
                r->out->draft.method_name);
    vp_diag_hint(r->ctx->diags, "known are ngram, suffix, draft_model, eagle, eagle3 and mtp");
    return VP_ERR_INPUT;
}

static enum vp_status missing(struct vp_reading *r, const char *what, const char *hint) {
    vp_diag_add(r->ctx->diags, VP_D_MISSING_VALUE, &r->out->model->pos, "%s", what);
    vp_diag_hint(r->ctx->diags, "%s", hint);
    return VP_ERR_INPUT;
}

/* "EAGLE3" in "LlamaForCausalLMEagle3" or "yuhuili/EAGLE3-LLaMA3.1": case does not matter. */
static bool holds_word(const char *text, const char *word) {
    size_t n = strlen(word);

    for (const char *p = text; p && *p; p++) {
        size_t i = 0;
        while (i < n && p[i] && (p[i] | 0x20) == word[i])
            i++;
        if (i == n)
            return true;
    }
    return false;
}

/* As vLLM tells a head from a model when it is not told. */
static enum vp_draft_method guess(const struct vp_description *d, const char *name) {
    const struct vp_node *list = vp_node_get(d->config, "architectures");
    const char *class_ =
        list && list->kind == VP_NODE_LIST && list->count > 0 ? vp_node_text(list->items[0]) : NULL;

    if (holds_word(class_, "eagle3") || holds_word(name, "eagle3") ||
        !vp_node_is_null(vp_node_get(d->config, "draft_vocab_size")))
        return VP_DRAFT_EAGLE3;
    return holds_word(class_, "eagle") || holds_word(name, "eagle") ? VP_DRAFT_EAGLE
                                                                    : VP_DRAFT_MODEL;
}

/* The first layer of an EAGLE head lacks the norm of its input: the block kind of its own. */
static void drop_norm(struct vp_ctx *ctx, struct vp_model *model) {
    uint32_t kind = model->layers[0], n = model->block_count;
    struct vp_block *blocks = VP_NEW_ARRAY(ctx->arena, n + 1, struct vp_block);

    memcpy(blocks, model->blocks, n * sizeof *blocks);
    model->blocks = blocks;
    if (blocks[kind].count > 1) {
        blocks[n] = blocks[kind];
        blocks[n].count = 1;
        blocks[kind].count--;
        kind = n;
        model->layers[0] = (uint16_t)n;
        model->block_count = n + 1;
    }
    if (blocks[kind].norms > 0)
        blocks[kind].norms--;
}

static uint64_t size_or(const struct vp_node *map, const char *key, uint64_t fallback) {
    uint64_t v = 0;

    return vp_node_u64(&v, vp_node_get(map, key)) && v > 0 && v < UINT32_MAX ? v : fallback;
}

static void shape_eagle(struct vp_ctx *ctx, struct vp_draft *draft) {
    struct vp_model *model = draft->model;

    draft->fused_inputs = 2 * model->hidden;
    model->final_norm = false;
    drop_norm(ctx, model);
}

static void shape_eagle3(struct vp_draft *draft, const struct vp_node *config) {
    const struct vp_node *own = vp_node_get(config, "eagle_config");
    const struct vp_node *layers = vp_node_get(own, "eagle_aux_hidden_state_layer_ids");
    struct vp_model *model = draft->model;
    uint64_t states =
        layers && layers->kind == VP_NODE_LIST && layers->count > 0 ? layers->count : 3;
    bool joins = true;

    vp_node_bool(&joins, vp_node_get(own, "use_aux_hidden_state"));
    draft->fused_inputs = joins ? states * size_or(config, "target_hidden_size", model->hidden) : 0;
    draft->head_vocab = size_or(config, "draft_vocab_size", model->vocab);
    draft->wide_first = true;
    for (uint32_t i = 0; i < model->block_count; i++)
        model->blocks[i].norms++; /* of the hidden state, beside that of the embedding */
}

static uint64_t rotary_dim(const struct vp_model *model) {
    return model->block_count > 0 ? model->blocks[0].attention.rotary_dim : 0;
}

/* A head uses the target's embedding and tables where they are the same. */
static void share(struct vp_draft *draft, const struct vp_model *target) {
    struct vp_model *model = draft->model;

    model->lm_head = model->tied = model->embedding = false;
    model->checkpoint.known = false; /* its tensors have other names */
    if (model->rotary_positions == target->rotary_positions &&
        rotary_dim(model) == rotary_dim(target))
        model->rotary_positions = 0;
}

static enum vp_status read_model(struct vp_reading *r, const char *base) {
    struct vp_draft *draft = &r->out->draft;
    struct vp_description d;

    if (r->draft_from_flags)
        base = NULL;
    enum vp_status status = vp_description_find(r->ctx, &d, r->draft_node, base);
    if (status == VP_OK)
        status = vp_model_read(r->ctx, &draft->model, r->draft_node, base);
    if (status != VP_OK)
        return status;
    if (draft->method == VP_DRAFT_NONE)
        draft->method = guess(&d, draft->name);
    if (draft->method == VP_DRAFT_EAGLE)
        shape_eagle(r->ctx, draft);
    if (draft->method == VP_DRAFT_EAGLE3)
        shape_eagle3(draft, d.config);
    if (draft->method != VP_DRAFT_MODEL)
        share(draft, r->out->model);
    return VP_OK;
}

enum vp_status vp_draft_read(struct vp_reading *r, const char *base) {
    struct vp_draft *draft = &r->out->draft;

    if (!r->draft_given)
        return VP_OK;
    if (draft->method_name) {
        draft->method = method_of(draft->method_name);
        if (draft->method == VP_DRAFT_NONE)
            return refuse_method(r);
    } else if (draft->name &&
               (strcmp(draft->name, "[ngram]") == 0 || strcmp(draft->name, "ngram") == 0)) {
        draft->method = VP_DRAFT_NGRAM;
    }
    if (draft->method == VP_DRAFT_NGRAM)
        return VP_OK;
    if (draft->method == VP_DRAFT_MTP) {
        if (vp_model_mtp(r->out->model))
            return VP_OK;
        vp_diag_add(r->ctx->diags, VP_D_UNMODELLED, &r->out->model->pos,
                    "the model's description names no layers for multi-token prediction that are "
                    "known here (num_nextn_predict_layers)");
        return VP_ERR_INPUT;
    }
    if (!r->draft_node)
        return missing(r, "speculative decoding: the draft's model is missing",
                       "serve: {draft: {model: NAME, tokens: 3}}; the methods mtp and ngram need "
                       "none");
    return read_model(r, base);
}
