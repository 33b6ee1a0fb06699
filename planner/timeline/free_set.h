/* Free blocks of one pool in order: by size, the lower address first among equals. What the
 * caching allocator's best fit asks for.
 *
 * Places stand in pages of up to VP_FREE_PAGE, which stand in an array; both are searched by
 * halving. A step of training has some ten free blocks, which is one page, so that an insertion
 * moves a few hundred bytes; a random trace has thousands, in some hundred pages. Pages that run
 * empty are used again. Everything comes from the arena. */
#ifndef VP_TIMELINE_FREE_SET_H
#define VP_TIMELINE_FREE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/arena.h"

enum { VP_FREE_PAGE = 64 };

struct vp_free_place {
    uint64_t size, address;
    uint32_t block; /* never 0 */
};

struct vp_free_page {
    uint32_t count; /* at least 1 while it is in a set */
    struct vp_free_page *spare;
    struct vp_free_place at[VP_FREE_PAGE];
};

/* All zero: empty. */
struct vp_free_set {
    struct vp_free_page **page;
    uint32_t pages, capacity;
    struct vp_free_page *spare; /* list of empty ones */
};

/* A place that is not in the set. */
void vp_free_set_add(struct vp_arena *arena, struct vp_free_set *set, struct vp_free_place place);
/* The place of a block that is in the set. */
void vp_free_set_remove(struct vp_free_set *set, uint64_t size, uint64_t address);
/* The first block at or behind the place; 0: none. */
uint32_t vp_free_set_from(const struct vp_free_set *set, uint64_t size, uint64_t address);
/* The last block in front of it; 0: none. */
uint32_t vp_free_set_below(const struct vp_free_set *set, uint64_t size, uint64_t address);

#endif
