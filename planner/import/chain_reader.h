/* A bare chain (planner/recompute/chain.h) from JSON:
 *
 *   {"x": [..n+1], "g": [..n+1], "f": [..n], "b": [..n], "wn": [..n],
 *    "opts": [[{"t": 0, "r": 0, "wf": 0, "wb": 0}, ...], ..n], "body": [first, end],
 *    "name": "...", "n": n, "held": [..n]}
 *
 * Numbers are integers from 0 on. name, n and held may be left out; body without being given is all
 * stages but the last. */
#ifndef VP_IMPORT_CHAIN_READER_H
#define VP_IMPORT_CHAIN_READER_H

#include "planner/doc/node.h"
#include "planner/recompute/chain.h"

struct vp_chain_file {
    struct vp_chain chain;
    const char *name; /* as in the file, else the file's name */
};

/* path "-": standard input. inflight: microbatches that the sums must leave room for. */
enum vp_status vp_chain_read(struct vp_ctx *ctx, struct vp_chain_file *out, const char *path,
                             uint64_t inflight);

#endif
