/* GGUF: metadata and tensor table of a model as llama.cpp stores it, from the header only; the
 * weights themselves are never read. Format (ggml's gguf.h): "GGUF", version (2 or 3), number of
 * tensors, number of keys; each key with its type and value; each tensor with its dimensions,
 * element type and offset; padding to the alignment; the data. The version word tells the writer's
 * byte order. A model may be split over several files ("NAME-00001-of-00003.gguf").
 *
 * Faults are VP_D_GGUF and name the byte at which they stand; positions have no lines. Everything
 * lives in the context's arena. */
#ifndef VP_DOC_GGUF_H
#define VP_DOC_GGUF_H

#include "planner/doc/node.h"

/* Caps; a cap hit is VP_D_CAP and names the cap. Real headers have below a hundred keys, below
 * three thousand tensors and below 30 MB, nearly all of it the tokenizer. */
enum {
    VP_GGUF_MAX_HEADER_BYTES = 512 * 1024 * 1024,
    VP_GGUF_MAX_KEYS = 65536,
    VP_GGUF_MAX_TENSORS = 262144,
    VP_GGUF_MAX_NAME_BYTES = 1024, /* of a key or a tensor */
    VP_GGUF_MAX_SPLITS = 10000,
    VP_GGUF_KEPT_TEXT = 1024, /* bytes of a text that are kept; the rest is read over */
    VP_GGUF_KEPT_ITEMS = 8192 /* arrays of numbers up to this length are kept, others counted */
};

struct vp_ggml_type {
    const char *name; /* "q4_k" */
    uint32_t id;
    uint32_t elements, bytes; /* of a block */
};

/* NULL: no such type, or a retired one. */
const struct vp_ggml_type *vp_ggml_type(uint32_t id);

struct vp_gguf_entry { /* one tensor */
    const char *name;
    const struct vp_ggml_type *type;
    uint32_t dims;
    uint64_t ne[4]; /* the fastest dimension first; 1 beyond dims */
    uint64_t elements;
    uint64_t bytes;
    uint64_t offset; /* from the start of the data region of its file */
    uint32_t part;   /* the file's number, from 0 */
};

struct vp_gguf {
    const char *source; /* path of the first part */
    /* A map of the first part's keys. Numbers and truth values are scalars of that kind, text is
     * text; arrays of numbers are lists. Arrays of text, and long ones, are left out and counted in
     * `counts`. */
    struct vp_node *metadata;
    struct vp_node *counts; /* key -> number of items, of all arrays */
    struct vp_gguf_entry *tensors;
    uint32_t tensor_count;
    uint32_t version;
    uint32_t alignment; /* bytes */
    uint32_t parts;
    bool big_endian;
    bool header_only; /* some part ends with its header: the data region is missing */
};

/* path: the file, or any part of a split model; all parts are then read. */
enum vp_status vp_gguf_read(struct vp_ctx *ctx, struct vp_gguf *out, const char *path);

#endif
