/* GGUF metadata keys by the end of their names ("block_count" for "llama.block_count"), with their
 * faults; the same for a file's metadata and for a `gguf:` map that a user wrote. */
#ifndef VP_IMPORT_GGUF_KEYS_H
#define VP_IMPORT_GGUF_KEYS_H

#include "planner/doc/node.h"

struct vp_gguf_keys {
    struct vp_ctx *ctx;
    const struct vp_node *map;    /* full names */
    const struct vp_node *counts; /* lengths of arrays that the map leaves out; NULL: none */
    const char *arch;             /* general.architecture */
    uint32_t layers;              /* that run; what a list per layer must have */
    uint32_t all_layers;          /* with those of token prediction */
    bool failed;
};

void vp_gguf_key_fault(struct vp_gguf_keys *k, const struct vp_node *node, const char *end,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
/* NULL when the key is missing (or null). */
const struct vp_node *vp_gguf_key(const struct vp_gguf_keys *k, const char *end);
/* Items of an array, kept or only counted; 0 when there is none. `name` is the full one. */
uint64_t vp_gguf_key_count(const struct vp_gguf_keys *k, const char *name);
/* A size of at least 1; missing or wrong: a fault that names the key, 0 is returned. */
uint64_t vp_gguf_key_size(struct vp_gguf_keys *k, const char *end);
/* A size of at least 0. A list is a fault unless all its items are the same. */
uint64_t vp_gguf_key_or(struct vp_gguf_keys *k, const char *end, uint64_t fallback);
/* The value for one layer of a number or of a list per layer. */
uint64_t vp_gguf_key_at(struct vp_gguf_keys *k, const char *end, uint32_t layer, uint64_t fallback);

#endif
