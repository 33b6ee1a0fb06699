/* Many combinations of one scenario, evaluated by several threads, given out in their order. The
 * text of a line does not depend on the number of threads. */
#ifndef VP_API_SWEEP_H
#define VP_API_SWEEP_H

#include "api/objectives.h"
#include "api/variants.h"
#include "api/vary.h"
#include "api/where.h"
#include "reports/sweep_row.h"

enum { VP_SWEEP_THREADS = 256, VP_SWEEP_CHUNK = 4096 };

struct vp_sweep {
    const struct vp_variants *variants;
    const struct vp_grid *grid;
    const struct vp_where *where; /* NULL: all combinations */
    struct vp_sweep_form form;
    struct vp_objectives objectives; /* values wanted beside the lines */
};

/* One combination of a chunk. */
struct vp_sweep_point {
    uint64_t row;
    const char *line; /* with its line break; NULL: `where` leaves it out */
    size_t size;
    bool evaluated;
    enum vp_verdict verdict;     /* when evaluated */
    double value[VP_OBJECTIVES]; /* NaN: not known */
};

struct vp_sweeper;

/* Threads and their memory. threads: 1 to VP_SWEEP_THREADS. ctx: for where files are found; the
 * sweep and what it points to must live as long. NULL: the system has no memory. */
struct vp_sweeper *vp_sweeper_new(const struct vp_ctx *ctx, const struct vp_sweep *sweep,
                                  unsigned threads);
void vp_sweeper_free(struct vp_sweeper *sweeper); /* NULL is allowed */
/* Combinations [first, first + count), at most VP_SWEEP_CHUNK of them, into points; the texts live
 * until the next call. VP_ERR_ENV: no memory or no threads, or a file could no longer be read. */
enum vp_status vp_sweeper_run(struct vp_sweeper *sweeper, struct vp_sweep_point *points,
                              uint64_t first, size_t count);
/* A short word that tells this sweep from others: made of `texts`, which say what was asked for, of
 * the program's version, what the input says, and the rows of the first and the last combination,
 * in which a changed model, profile or rule shows. NULL: the system has no memory. */
const char *vp_sweep_id(struct vp_ctx *ctx, const struct vp_sweep *sweep, const char *const *texts,
                        size_t count);
/* The first combination of the shard-th of `shards` parts (from 1); shards + 1: the end. */
uint64_t vp_sweep_shard_begin(uint64_t total, uint64_t shard, uint64_t shards);

#endif
