/* A finished scenario for llama.cpp, made by hand: a model of one or two kinds of layers, its
 * tensor table, one GPU of 288 GiB, the rules of the newest builds. Tests change what they are
 * about. */
#ifndef VP_TESTS_LLAMA_RIG_H
#define VP_TESTS_LLAMA_RIG_H

#include "planner/memory/llama.h"
#include "tests/unit/fixture.h"

enum { RIG_BLOCKS = 4, RIG_TENSORS = 4096 };

struct llama_rig {
    struct fixture f;
    struct vp_scenario scenario;
    struct vp_model model;
    struct vp_block block[RIG_BLOCKS];
    uint16_t layer[256];
    struct vp_gguf_table table;
    struct vp_gguf_tensor tensor[RIG_TENSORS];
    struct vp_ledger ledger; /* of the last plan */
    struct vp_llama_plan plan;
};

/* No layers, no tensors yet; context 4096, one slot, all layers on the GPU, flash attention,
 * batches of 2048 and 512, logits for every token. */
void rig_begin(struct llama_rig *r, uint64_t hidden, uint64_t vocab);
void rig_end(struct llama_rig *r);
/* Layers of a kind; every `period`-th of them is `other` (0: none). */
void rig_layers(struct llama_rig *r, uint32_t count, struct vp_block kind, struct vp_block other,
                uint32_t period);
void rig_tensor(struct llama_rig *r, const char *name, enum vp_gguf_kind kind, int32_t layer,
                enum vp_dtype type, uint64_t ne0, uint64_t ne1);
/* token_embd and, unless tied, output in this type. */
void rig_ends(struct llama_rig *r, enum vp_dtype type, bool tied);
/* ffn_gate of every layer: the largest matrix. */
void rig_matrices(struct llama_rig *r, enum vp_dtype type, uint64_t width);

struct vp_block rig_gqa(uint64_t heads, uint64_t kv_heads, uint64_t head_dim, uint64_t width);
/* Begins with Llama 3.1 8B in q8_0: 32 layers of 32 / 8 heads of 128, whose tensors are embedding,
 * output and one matrix of 59.5 MiB per layer. */
void rig_llama8b(struct llama_rig *r);
/* Plans afresh. */
const struct vp_llama_plan *rig_plan(struct llama_rig *r);
/* Likely bytes of a buffer; fails the test when that place has none. */
uint64_t rig_buffer(const struct llama_rig *r, const char *place, enum vp_llama_buffer buffer);
bool rig_has(const struct llama_rig *r, const char *place, enum vp_llama_buffer buffer);

/* Within 0.011 MiB of what a log prints, in hundredths of a MiB: positions with several axes and
 * inputs of one device alone are not told apart. */
void assert_mib(uint64_t bytes, uint64_t hundredths);

#endif
