/* All that is worth knowing of the plans from each position to the end: a list of labels (R, T,
 * extra time), none of which another one beats in everything (R, T as in moves.h; T counts only
 * with further microbatches in flight). One pass from the last position to the first; the list at
 * position 0 is the whole frontier of time against peak.
 *
 * Exact, until a list outgrows its cap: then labels whose times differ by less than some grain give
 * way to one of them, which remembers in `low` the least time that it stands for. Bytes are never
 * rounded. Internal to planner/recompute. */
#ifndef VP_RECOMPUTE_LABELS_H
#define VP_RECOMPUTE_LABELS_H

#include "planner/recompute/dual.h"

struct vp_label {
    uint64_t need, stored; /* R, T */
    uint64_t time;         /* extra time of this plan */
    uint64_t low;          /* no plan that this label stands for is below; time, when exact */
    uint32_t move;         /* its first move */
    uint32_t then;         /* its label at the position after the move */
};

enum { VP_LABEL_BLOCK = 32 };

struct vp_label_list {
    struct vp_label *items; /* by rising need, or with others in flight by rising time */
    uint64_t *block_low;    /* the least low of each VP_LABEL_BLOCK of them */
    uint32_t count;
};

struct vp_labels {
    struct vp_label_list *at; /* n + 1 */
    uint64_t made, pruned;    /* labels that were kept, that the bound struck out */
    bool exact;               /* no list was thinned */
};

/* dual, limit: labels from which no plan of an extra time up to limit comes are left out. dual
 * NULL: none are. cap: labels of one list. */
void vp_labels_make(struct vp_arena *arena, struct vp_labels *out, const struct vp_moves *moves,
                    const struct vp_dual *dual, uint64_t limit, uint32_t cap);

/* The plan of a label at position 0. */
void vp_labels_plan(struct vp_arena *arena, struct vp_recompute_plan *out,
                    const struct vp_labels *labels, const struct vp_moves *moves, uint32_t label);

#endif
