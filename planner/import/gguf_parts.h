/* What gguf_reader.c and gguf_layers.c share. Private to the GGUF importer. */
#ifndef VP_IMPORT_GGUF_PARTS_H
#define VP_IMPORT_GGUF_PARTS_H

#include "planner/import/gguf_keys.h"
#include "planner/import/gguf_tensors.h"
#include "planner/import/hf_reader.h"

/* Beside the traits of families.def. */
enum vp_gguf_extra {
    VP_G_BY_USED = 1 << 0,        /* an expert's width that is not given: feed-forward / used */
    VP_G_SWITCH = 1 << 1,         /* a learned gate before the shared expert */
    VP_G_SHARED_WIDTH = 1 << 2,   /* there is one, of the dense width where not given */
    VP_G_GATED_QUERY = 1 << 3,    /* the query projection carries an output gate */
    VP_G_SCORE_BIAS = 1 << 4,     /* a correction bias per expert */
    VP_G_SINKS = 1 << 5,          /* a learned logit per head */
    VP_G_EXPERT_BIAS = 1 << 6,    /* on router and experts */
    VP_G_LATENT = 1 << 7,         /* MLA */
    VP_G_CHUNKED = 1 << 8,        /* a sliding layer sees chunks instead */
    VP_G_RECURRENT = 1 << 9,      /* all layers are */
    VP_G_BESIDE = 1 << 10,        /* the recurrent mixer stands beside attention in every layer */
    VP_G_ONE_HALF = 1 << 11,      /* a layer is a mixer or a feed-forward, never both */
    VP_G_KV_FROM_START = 1 << 12, /* the last attention.shared_kv_layers have no cache */
    VP_G_POSITIONS = 1 << 13,     /* learned positions */
    VP_G_EMBEDDING_NORM = 1 << 14,
    VP_G_EMBEDDING_NORM_LAST = 1 << 15, /* the norm called so is the final one */
    VP_G_NO_FINAL_NORM = 1 << 16,
    VP_G_HAS_HEAD = 1 << 17,   /* bidirectional, but it generates (diffusion) */
    VP_G_HALF_WIDTH = 1 << 18, /* feed_forward_length counts gate and up together */
    VP_G_TABLE = 1 << 19       /* the keys alone do not tell the tensors */
};

enum vp_gguf_mixer {
    VP_GM_NONE,
    VP_GM_MAMBA1,
    VP_GM_MAMBA2,
    VP_GM_DELTA,
    VP_GM_KDA,
    VP_GM_SHORT_CONV,
    VP_GM_RWKV
};

struct vp_gguf_arch {
    const char *name;
    unsigned traits, extra;
    uint64_t period, window;
    enum vp_gguf_mixer mixer;
};

struct vp_gguf_source {
    struct vp_gguf_keys k;
    const struct vp_gguf_arch *arch;
    struct vp_model *model;
    bool has_table;
    struct vp_gguf_facts facts; /* when has_table */
};

/* Fills a block from the keys and, where there is a table, from the tensors of that layer. */
void vp_gguf_fill_layer(struct vp_gguf_source *s, struct vp_block *block, uint32_t layer);
static inline const struct vp_gguf_tensor *vp_gguf_fact(const struct vp_gguf_source *s,
                                                        uint32_t layer, enum vp_gguf_fact fact) {
    return s->has_table ? s->facts.layer[layer].fact[fact] : NULL;
}

#endif
