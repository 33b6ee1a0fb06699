/* Encoders (BERT and its kin: embedding, classification and reranking models) and encoder-decoders
 * (T5, BART, Whisper). Encoders keep no cache; a decoder with cross attention keeps its own and,
 * once per sequence, the encoder's keys and values. */
#include "planner/import/hf_reader.h"

#include "planner/base/text.h"

/* ---- heads of encoders ---- */

/* Classes of a classifier: entries of id2label, or num_labels, or the two of the class default. */
static uint64_t labels(struct vp_hf *hf) {
    const struct vp_node *map = vp_hf_find(hf, "id2label");

    if (map && map->kind == VP_NODE_MAP && map->count > 0)
        return map->count;
    return vp_hf_size_or(hf, "num_labels", 2);
}

/* What stands behind the stack, by the class that `architectures` names:
 * pooled: a matrix in front of a classifier, or a pooler; biased unless it says otherwise. */
struct heads {
    bool pooler;     /* of the bare model */
    bool dense_bias; /* the head's own matrix has a bias */
    bool norm_bias;  /* and its norm */
};

static void encoder_head(struct vp_hf *hf, const struct heads *heads) {
    uint64_t hidden = hf->model->hidden, vocab = hf->model->vocab;
    uint64_t dense = hidden * hidden + (heads->dense_bias ? hidden : 0);
    uint64_t norm = heads->norm_bias ? 2 * hidden : hidden;

    if (vp_hf_architecture(hf, "ForMaskedLM")) /* its last matrix is the embedding */
        vp_hf_extra_plain(hf, "masked-token head", dense + norm + vocab, false);
    else if (vp_hf_architecture(hf, "ForSequenceClassification"))
        vp_hf_extra_plain(hf, "classifier",
                          dense + (heads->norm_bias ? 0 : norm) + labels(hf) * (hidden + 1), false);
    else if (vp_hf_architecture(hf, "ForTokenClassification"))
        vp_hf_extra_plain(hf, "classifier",
                          (heads->norm_bias ? 0 : dense + norm) + labels(hf) * (hidden + 1), false);
    else if (vp_hf_architecture(hf, "ForQuestionAnswering"))
        vp_hf_fault(hf, vp_hf_find(hf, "architectures"),
                    "architectures: the head of a question-answering model is not modelled");
    else if (heads->pooler)
        vp_hf_extra_plain(hf, "pooler", dense, false);
}

static void embeddings(struct vp_hf *hf) {
    const struct vp_node *type = vp_hf_find(hf, "position_embedding_type");

    if (type && !vp_text_eq(vp_node_text(type), "absolute"))
        vp_hf_fault(hf, type, "position_embedding_type '%s' is not modelled",
                    vp_node_text(type) ? vp_node_text(type) : "?");
    hf->model->learned_positions = vp_hf_size(hf, "max_position_embeddings");
    hf->model->embedding_norm = true;
    hf->model->final_norm = false;
}

/* BERT, RoBERTa, XLM-RoBERTa: norms behind each half, segment vectors, a pooler. */
void vp_family_bert(struct vp_hf *hf) {
    static const struct heads heads = {.pooler = true, .dense_bias = true, .norm_bias = true};

    embeddings(hf);
    hf->model->token_types = vp_hf_size(hf, "type_vocab_size");
    encoder_head(hf, &heads);
}

void vp_family_distilbert(struct vp_hf *hf) {
    static const struct heads heads = {.pooler = false, .dense_bias = true, .norm_bias = true};

    embeddings(hf);
    encoder_head(hf, &heads);
}

/* ModernBERT: rotary, gated, every n-th layer full, no norm in front of the first attention. */
void vp_family_modernbert(struct vp_hf *hf) {
    static const struct heads heads = {.pooler = false};
    uint64_t every = vp_hf_size(hf, "global_attn_every_n_layers");
    uint64_t window = vp_hf_size(hf, "local_attention");

    if (vp_hf_flag(hf, "norm_bias", false))
        vp_hf_fault(hf, vp_hf_find(hf, "norm_bias"), "norm_bias: true is not modelled");
    if (vp_hf_flag(hf, "classifier_bias", false))
        vp_hf_fault(hf, vp_hf_find(hf, "classifier_bias"), "classifier_bias: true is not modelled");
    hf->model->embedding_norm = true;
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        if (!vp_hf_find(hf, "layer_types"))
            hf->layers[i].attention.window = i % every == 0 ? 0 : window;
        hf->layers[i].norms = i == 0 ? 1 : 2;
    }
    encoder_head(hf, &heads);
}

/* Nomic BERT: BERT with rotary embeddings and a gated feed-forward, without biases. */
void vp_family_nomic_bert(struct vp_hf *hf) {
    const struct vp_node *experts = vp_hf_find(hf, "num_experts");
    const struct vp_node *activation = vp_hf_find(hf, "activation_function|hidden_act");
    uint64_t count = vp_hf_size_or(hf, "num_experts", 0);

    if (experts && count > 0)
        vp_hf_fault(hf, experts, "num_experts: the sparse Nomic BERT is not modelled");
    if (!activation || (!vp_text_eq(vp_node_text(activation), "swiglu") &&
                        !vp_text_eq(vp_node_text(activation), "silu")))
        vp_hf_fault(hf, activation,
                    "activation_function must be swiglu: other feed-forwards are "
                    "not modelled");
    if (vp_hf_flag(hf, "qkv_proj_bias", false) || vp_hf_flag(hf, "mlp_fc1_bias", false) ||
        vp_hf_flag(hf, "mlp_fc2_bias", false))
        vp_hf_fault(hf, NULL, "qkv_proj_bias and mlp_fc*_bias must be false");
    hf->model->token_types = vp_hf_size_or(hf, "type_vocab_size", 0);
    hf->model->embedding_norm = true;
    hf->model->final_norm = false;
}

/* ---- encoder-decoders ---- */

/* The shape that both halves of a stack share. */
struct half {
    uint64_t layers, heads, head_dim, width;
    bool bias, no_key_bias;
    enum vp_norm_kind norm;
    enum vp_mlp_kind mlp;
    uint64_t source; /* of a decoder: tokens of the encoder's output; 0: this is the encoder */
};

static struct vp_block half_layer(const struct half *half) {
    struct vp_block layer = {.norms = half->source > 0 ? 3 : 2, .norm = half->norm};
    struct vp_attention *a = &layer.attention;

    a->kind = VP_ATTENTION_GQA;
    a->heads = a->kv_heads = half->heads;
    a->head_dim = a->v_head_dim = half->head_dim;
    a->qkv_bias = a->out_bias = half->bias;
    a->no_key_bias = half->no_key_bias;
    a->bidirectional = half->source == 0;
    if (half->source > 0) {
        layer.second = *a;
        layer.second.source_tokens = half->source;
    }
    layer.mlp.kind = half->mlp;
    layer.mlp.intermediate = half->width;
    layer.mlp.bias = half->bias;
    return layer;
}

static bool two_halves(struct vp_hf *hf, const struct half *encoder, const struct half *decoder) {
    uint64_t all = encoder->layers + decoder->layers;

    if (!vp_hf_layers(hf, all))
        return false;
    for (uint32_t i = 0; i < hf->count; i++)
        hf->layers[i] = half_layer(i < encoder->layers ? encoder : decoder);
    hf->model->rotary_positions = 0;
    return true;
}

/* T5, mT5: RMSNorm, no biases, a table of relative positions in the first layer of each half. */
void vp_family_t5(struct vp_hf *hf) {
    const struct vp_node *form = vp_hf_find(hf, "feed_forward_proj|dense_act_fn");
    const char *text = form ? vp_node_text(form) : NULL;
    uint64_t buckets = vp_hf_size(hf, "relative_attention_num_buckets");
    struct half encoder = {.layers = hf->count, .heads = hf->heads, .norm = VP_NORM_RMS};

    encoder.head_dim = vp_hf_size(hf, "d_kv");
    encoder.width = vp_hf_size(hf, "d_ff");
    encoder.mlp = VP_MLP_PLAIN;
    if (vp_hf_flag(hf, "is_gated_act", text && vp_text_starts(text, "gated")))
        encoder.mlp = VP_MLP_GATED;
    struct half decoder = encoder;
    decoder.layers = vp_hf_size_or(hf, "num_decoder_layers", encoder.layers);
    decoder.source = vp_hf_size(hf, "n_positions");
    if (!two_halves(hf, &encoder, &decoder))
        return;
    vp_hf_extra_plain(hf, "encoder norm, relative positions",
                      hf->model->hidden + 2 * buckets * hf->heads, true);
}

/* The keys that BART and Whisper share. */
static struct half named_half(struct vp_hf *hf, bool decoder) {
    struct half half = {.bias = true, .norm = VP_NORM_LAYER, .mlp = VP_MLP_PLAIN};

    half.layers = vp_hf_size(hf, decoder ? "decoder_layers" : "encoder_layers");
    half.heads = vp_hf_size(hf, decoder ? "decoder_attention_heads" : "encoder_attention_heads");
    half.width = vp_hf_size(hf, decoder ? "decoder_ffn_dim" : "encoder_ffn_dim");
    if (!hf->failed && hf->model->hidden % half.heads != 0)
        vp_hf_fault(hf, NULL, "d_model (%llu) is not a multiple of %s (%llu)",
                    (unsigned long long)hf->model->hidden,
                    decoder ? "decoder_attention_heads" : "encoder_attention_heads",
                    (unsigned long long)half.heads);
    half.head_dim = hf->failed ? 0 : hf->model->hidden / half.heads;
    return half;
}

/* BART: norms behind the halves and behind the embeddings, learned positions from the third on. */
void vp_family_bart(struct vp_hf *hf) {
    struct half encoder = named_half(hf, false), decoder = named_half(hf, true);
    uint64_t positions = vp_hf_size(hf, "max_position_embeddings");

    decoder.source = positions;
    if (!two_halves(hf, &encoder, &decoder))
        return;
    hf->model->learned_positions = positions + 2;
    hf->model->embedding_norm = true;
    hf->model->final_norm = false;
    vp_hf_extra_plain(hf, "encoder positions and norm", (positions + 4) * hf->model->hidden, true);
}

/* Whisper: two convolutions over the spectrum, key projections without bias. */
void vp_family_whisper(struct vp_hf *hf) {
    struct half encoder = named_half(hf, false), decoder = named_half(hf, true);
    uint64_t bins = vp_hf_size(hf, "num_mel_bins"), hidden = hf->model->hidden;
    uint64_t source = vp_hf_size(hf, "max_source_positions");

    encoder.no_key_bias = decoder.no_key_bias = true;
    decoder.source = source;
    hf->model->learned_positions = vp_hf_size(hf, "max_target_positions");
    hf->model->max_position = hf->model->learned_positions;
    if (!two_halves(hf, &encoder, &decoder))
        return;
    vp_hf_extra_plain(hf, "encoder convolutions, positions and norm",
                      3 * hidden * (bins + hidden) + 2 * hidden + source * hidden + 2 * hidden,
                      true);
}
