/* safetensors: names, dtypes and shapes of a checkpoint's tensors, from headers only.
 * Format: 8 bytes little-endian length of the header, the header (JSON), the data. */
#ifndef VP_DOC_SAFETENSORS_H
#define VP_DOC_SAFETENSORS_H

#include "planner/doc/node.h"

struct vp_tensor {
    const char *name;
    const char *dtype; /* as in the header: "BF16", "F8_E4M3", ... */
    uint64_t elements;
    uint64_t bytes; /* from the offsets, checked against shape x dtype */
    uint32_t dims;
    uint64_t shape[8];
};

struct vp_tensors {
    struct vp_tensor *items;
    size_t count;
    uint64_t total_bytes;
    bool header_only;   /* some file ends right after its header */
    const char *source; /* path of the file, index or folder */
};

enum { VP_SAFETENSORS_MAX_HEADER_BYTES = 100000000 }; /* the format's own cap */

/* One .safetensors file. */
enum vp_status vp_safetensors_read(struct vp_ctx *ctx, struct vp_tensors *out, const char *path);
/* model.safetensors.index.json: reads the header of every part named in weight_map (each part
 * once). Part names must be plain relative names inside the folder; a missing part is an error.
 * Tensors that the map and the headers do not share are an error. */
enum vp_status vp_safetensors_read_index(struct vp_ctx *ctx, struct vp_tensors *out,
                                         const char *path);

#endif
