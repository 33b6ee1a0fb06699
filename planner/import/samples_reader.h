/* Files of measured kernel times and other figures of one GPU (CSV). The kind of a file is told by
 * its columns:
 *
 *   dtype,m,n,k,latency_us                                       matrix products
 *   attn_dtype,kv_dtype,batch,new_tokens,past_tokens,heads,kv_heads,head_dim,latency_us
 *                                                                attention; decode: new_tokens 1
 *                                                                and past_tokens above 0
 *   backend,dtype,gpus,elements,latency_us                       all-reduce
 *   operation,tb_per_s | gb_per_s | latency_us                   bandwidths, launch
 *   constant,bytes                                               what a process takes
 *   model,gpu,engine,... with ttft_ms or metric                  served requests
 *
 * Optional: copies (of the operands, cycled through), noisy (1: left out). Other columns are
 * ignored. */
#ifndef VP_IMPORT_SAMPLES_READER_H
#define VP_IMPORT_SAMPLES_READER_H

#include "planner/base/ctx.h"
#include "planner/model/samples.h"

enum { VP_SAMPLES_MAX_FILES = 64 };

/* Faults of all rows are reported. */
enum vp_status vp_samples_read(struct vp_ctx *ctx, struct vp_samples *out, const char *const *paths,
                               size_t count);

#endif
