/* Free blocks of one pool in order: by size, the lower address first among equals. What the
 * caching allocator's best fit asks for.
 *
 * The last few that were added stand apart, in no order: most of them are taken or merged again at
 * once. All others stand in pages of up to VP_FREE_PAGE, which stand in an array; both are searched
 * by halving. A step of training has some dozens of free blocks, in a page or two, so that an
 * insertion moves a few hundred bytes; a random trace has thousands, in some hundred pages. Pages
 * that run empty are used again. Everything comes from the arena. */
#ifndef VP_TIMELINE_FREE_SET_H
#define VP_TIMELINE_FREE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/arena.h"

enum { VP_FREE_PAGE = 64, VP_FREE_RECENT = 4 };

struct vp_free_place {
    uint64_t size, address;
    uint32_t block; /* never 0 */
};

struct vp_free_page {
    uint32_t count; /* at least 1 while it is in a set */
    struct vp_free_page *spare;
    struct vp_free_place at[VP_FREE_PAGE];
};

/* A page and the last place that it may hold: its own or a later one, in front of the next page's
 * first. Of the last page: behind all. */
struct vp_free_range {
    struct vp_free_place last;
    struct vp_free_page *page;
};

/* All zero: empty. */
struct vp_free_set {
    struct vp_free_place recent[VP_FREE_RECENT]; /* the last ones added, oldest first; in no page */
    uint32_t recents;
    struct vp_free_range *range;
    uint32_t ranges, capacity;
    uint32_t found_range, found; /* what vp_free_set_from saw last; may be void */
    struct vp_free_page *spare;  /* list of empty ones */
};

/* A place that is not in the set. */
void vp_free_set_add(struct vp_arena *arena, struct vp_free_set *set, struct vp_free_place place);
/* The place of a block that is in the set. */
void vp_free_set_remove(struct vp_free_set *set, uint64_t size, uint64_t address);
/* The first block at or behind the place; 0: none. */
uint32_t vp_free_set_from(struct vp_free_set *set, uint64_t size, uint64_t address);
/* The last block in front of it; 0: none. */
uint32_t vp_free_set_below(const struct vp_free_set *set, uint64_t size, uint64_t address);
/* Blocks in the set. */
uint64_t vp_free_set_count(const struct vp_free_set *set);

#endif
