/* The tensor table of a model as llama.cpp loads it: read from the headers of GGUF files, or made
 * up from the model's blocks the way llama.cpp's converters write them. The one source for what
 * llama.cpp's weights cost and where they go.
 *
 * Sizes are the file's: what a backend adds to a tensor (alignment, rows padded for its kernels, a
 * tied head's second copy) is the business of memory/. Everything lives in the arena of the
 * context that filled the table. */
#ifndef VP_MODEL_GGUF_TABLE_H
#define VP_MODEL_GGUF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/model/dtype.h"

enum { VP_GGUF_MAX_DIMS = 4 };

/* Which of llama.cpp's three kinds of layers a tensor belongs to. */
enum vp_gguf_place {
    VP_GGUF_INPUT,  /* token, position, segment and per-layer embeddings: stay on the host */
    VP_GGUF_BLOCK,  /* "blk.N.": goes where layer N goes */
    VP_GGUF_OUTPUT, /* final norm, head: goes where layer_count goes, one slot of n_gpu_layers */
    VP_GGUF_EXTRA   /* not loaded with the language model: encoder and projector tensors (mmproj) */
};

/* What kind of matrix it is, as far as quantizers, --cpu-moe and reports ask. */
enum vp_gguf_kind {
    VP_GGUF_OTHER,     /* not told apart: the placement holds all the same */
    VP_GGUF_VECTOR,    /* norms, biases, sinks, state vectors: f32 in every file */
    VP_GGUF_EMBEDDING, /* token_embd, position tables, per-layer embeddings */
    VP_GGUF_HEAD,      /* output */
    VP_GGUF_ATTENTION, /* attn_*: projections */
    VP_GGUF_RECURRENT, /* ssm_*, shortconv.*, time_mix_*, ...: projections */
    VP_GGUF_FFN,       /* ffn_gate, ffn_up, ffn_down of the dense feed-forward */
    VP_GGUF_SHARED,    /* ffn_*_shexp */
    VP_GGUF_EXPERT,    /* ffn_*_exps: all experts of a layer as one 3-D tensor */
    VP_GGUF_ROUTER     /* ffn_gate_inp */
};

struct vp_gguf_tensor {
    const char *name;              /* as in the file: "blk.0.attn_q.weight" */
    enum vp_dtype type;            /* element format: rows of ne[0] are whole blocks of it */
    uint32_t dims;                 /* 1..4 */
    uint64_t ne[VP_GGUF_MAX_DIMS]; /* elements, the fastest dimension first; 1 beyond dims */
    uint64_t elements;             /* product of ne */
    uint64_t bytes;                /* in the file, without padding */
    uint64_t offset; /* from the start of its file's data region; 0 in a made-up table */
    uint32_t part;   /* which file of a split model, from 0 */
    int32_t layer;   /* -1 input and extra; N of "blk.N."; layer_count for the output */
    enum vp_gguf_place place;
    enum vp_gguf_kind kind;
    bool nextn; /* of a multi-token prediction layer (blocks behind the last that runs) */
    bool every; /* rope_freqs: one copy on every device that holds a block */
};

struct vp_gguf_table {
    bool header_only;              /* the data region is missing from the file */
    bool made_up;                  /* not read from a file but derived from the model's blocks */
    const char *source;            /* path of the (first) file; NULL when made up */
    const char *architecture;      /* general.architecture, as llama.cpp calls it */
    uint32_t alignment;            /* of tensors in the data region, bytes */
    uint32_t parts;                /* files */
    struct vp_gguf_tensor *tensor; /* in the order of the file(s) */
    uint32_t count;
    uint64_t data_bytes; /* sum of the tensors' bytes, without padding */
    uint64_t parameters; /* sum of the elements, nextn and extra tensors left out */
};

/* Fills layer, place, kind, nextn and every of a tensor from its name, dims and ne. layers: blocks
 * that run; higher ones belong to token prediction. */
void vp_gguf_classify(struct vp_gguf_tensor *tensor, uint32_t layers);
/* The name behind "blk.N." and its length without ".weight" or ".bias"; NULL for other tensors. */
const char *vp_gguf_stem(size_t *length, const char *name);
/* Fills elements and bytes from type and ne. False: more than 64 bits. */
bool vp_gguf_measure(struct vp_gguf_tensor *tensor);
/* What llama.cpp's quantizer makes of a tensor that it is asked to store as `type`: vectors and
 * routers stay f32; rows that are no whole blocks get the type that it falls back to. `mxfp4` means
 * its MXFP4_MOE: experts so, other matrices q8_0. Source: llama-quant.cpp. */
enum vp_dtype vp_gguf_stored_type(const struct vp_gguf_tensor *tensor, enum vp_dtype type);
/* Sums data_bytes and parameters over the tensors. False: more than 64 bits. */
bool vp_gguf_total(struct vp_gguf_table *table);

#endif
