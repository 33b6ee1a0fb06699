/* What llama*.c share: one sizing of one set of settings, as it goes on. Private to them. */
#ifndef VP_MEMORY_LLAMA_PARTS_H
#define VP_MEMORY_LLAMA_PARTS_H

#include "planner/memory/llama.h"

struct vp_llama_work {
    struct vp_arena *arena;
    const struct vp_scenario *scenario;
    const struct vp_model *model;
    const struct vp_gguf_table *table;
    const struct vp_llama *set; /* the settings as finished */
    const struct vp_llama_rules *rules;
    struct vp_llama_plan *plan;
    struct vp_ledger *ledger; /* NULL: sums only */
    struct vp_row unused;     /* what rows without a ledger are written to */

    /* chosen by the settings or by the engine's own fit */
    uint64_t context, gpu_layers;
    uint64_t host_experts[VP_LLAMA_MAX_DEVICES]; /* experts of so many of a GPU's first layers
                                                    stay on the host */

    uint32_t gpus;      /* that the runtime lists; places [0, gpus) */
    uint32_t host, cpu; /* places: pinned, pageable or mapped */
    uint32_t used;      /* GPUs that layers are divided over */
    uint32_t main;      /* the first of them */
    int16_t *home;      /* [layer_count + 1]: GPU of each layer, VP_LLAMA_HOST; last: the output */
    uint32_t first[VP_LLAMA_MAX_DEVICES]; /* layer of each GPU */
    int16_t *placed;                      /* [tensors]: what overrides say; NULL: there are none */
    bool overridden;                      /* single tensors are placed apart from their layers */

    /* the batch and the cache */
    uint64_t tokens;  /* of a physical batch */
    uint64_t outputs; /* of them, whose logits are reserved */
    uint64_t slots, streams, cells, window_cells;
    uint64_t graph[VP_LLAMA_MAX_DEVICES]; /* bytes of a compute buffer without copied weights */
    bool unified, flash;
};

/* A GPU's place has its index. Adds to a place's buffer; the row may be filled further. */
struct vp_row *vp_llama_put(struct vp_llama_work *w, uint32_t place, enum vp_llama_buffer buffer,
                            enum vp_formula formula, const char *owner, struct vp_amount bytes);
/* Sticky; exact bytes or 0. */
uint64_t vp_llama_check(struct vp_llama_work *w, struct vp_sum bytes);
/* Everything for the chosen context and layers, from nothing. */
void vp_llama_size(struct vp_llama_work *w);

/* llama_place.c */
/* The place of a GPU's index or VP_LLAMA_HOST. */
static inline uint32_t vp_llama_place_of(int16_t home, uint32_t host) {
    return home >= 0 ? (uint32_t)home : host;
}
void vp_llama_place_layers(struct vp_llama_work *w);
int16_t vp_llama_tensor_home(const struct vp_llama_work *w, uint32_t tensor);
/* It is loaded with the language model. */
bool vp_llama_tensor_loaded(const struct vp_llama_work *w, const struct vp_gguf_tensor *tensor);
void vp_llama_put_weights(struct vp_llama_work *w);
/* What a backend allocates for rows of ne0 elements that take so many bytes. */
struct vp_sum vp_llama_allocated(bool gpu, enum vp_dtype type, uint64_t ne0, struct vp_sum bytes);

/* llama_cache.c */
/* The layer keeps its window only: other layers do not. */
bool vp_llama_is_window(const struct vp_llama_work *w, const struct vp_attention *attention);
bool vp_llama_is_latent(const struct vp_llama_work *w, const struct vp_attention *attention);
/* Elements of a token's key and value in this layer's cache; both 0: it has none. */
void vp_llama_cache_widths(const struct vp_llama_work *w, const struct vp_attention *attention,
                           uint64_t *out_key, uint64_t *out_value);
bool vp_llama_quantised(enum vp_dtype type);
/* Batch, outputs, slots, streams and cells. */
void vp_llama_cut(struct vp_llama_work *w);
void vp_llama_put_cache(struct vp_llama_work *w);

/* llama_compute.c */
void vp_llama_put_compute(struct vp_llama_work *w);
void vp_llama_put_output(struct vp_llama_work *w);

/* llama_fit.c: the engine's own choice of context, layers and experts on the host. */
void vp_llama_fit(struct vp_llama_work *w);

#endif
