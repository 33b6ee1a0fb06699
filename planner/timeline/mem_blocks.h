/* Blocks of the caching allocator's model: pieces of segments, each free, taken, waiting or without
 * memory behind it. Free blocks of one pool and stream stand in a set by size, the lower address
 * first among equals (free_set.h); unmapped ranges in a list by address. Cutting and merging keep
 * the neighbours right; which block to take, and what to ask of the driver, is the allocator's
 * matter.
 *
 * Blocks are named by their index in one array, 0 is none. */
#ifndef VP_TIMELINE_MEM_BLOCKS_H
#define VP_TIMELINE_MEM_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/arena.h"
#include "planner/timeline/event.h"
#include "planner/timeline/free_set.h"

enum vp_block_state {
    VP_BLOCK_FREE,
    VP_BLOCK_TAKEN,
    VP_BLOCK_WAITING, /* freed, but work on another stream still uses it */
    VP_BLOCK_UNMAPPED /* address space of an expandable segment without memory behind it */
};

struct vp_mem_block {
    uint64_t size, address;
    uint32_t link[2];       /* unmapped: list, back and on; waiting: on */
    uint32_t before, after; /* neighbours in the segment; after: also the next recycled one */
    uint8_t state;          /* enum vp_block_state */
    uint8_t stream;
    uint8_t large;      /* pool: 0 small, 1 large */
    uint8_t expandable; /* of an expandable segment */
    uint64_t requested; /* taken: bytes asked for; free: searches of its pool when it became so */
    uint64_t uses;      /* bits: other streams that use it */
};

struct vp_block_pool {
    struct vp_free_set free;
    uint32_t unmapped; /* first of the list */
};

struct vp_blocks {
    struct vp_arena *arena;
    struct vp_mem_block *block; /* moves when it grows */
    uint32_t count, capacity;
    uint32_t recycled;
    struct vp_block_pool pools[2][VP_STREAMS]; /* small, large */
    uint64_t searches[2];
};

struct vp_blocks vp_blocks_begin(struct vp_arena *arena);
/* A copy of *block, in no pool; its neighbours are not told. Pointers into the array are void. */
uint32_t vp_blocks_new(struct vp_blocks *blocks, const struct vp_mem_block *block);
/* Forgets a block that is in no pool. */
void vp_blocks_recycle(struct vp_blocks *blocks, uint32_t block);
/* Puts a block that is in no pool among the free or the unmapped ones as it is. */
void vp_blocks_keep(struct vp_blocks *blocks, uint32_t block, enum vp_block_state state);
/* The same after merging it with neighbours in that state; it swallows them. */
void vp_blocks_merge(struct vp_blocks *blocks, uint32_t block, enum vp_block_state state);
/* Takes a free or unmapped block out of its pool. */
void vp_blocks_leave(struct vp_blocks *blocks, uint32_t block);
/* Cuts `size` bytes from the front of a block that is in no pool; returns the rest, in none either.
 */
uint32_t vp_blocks_cut(struct vp_blocks *blocks, uint32_t block, uint64_t size);
/* Not the only block of its segment. */
bool vp_block_is_split(const struct vp_mem_block *block);

/* The first free block of at least this size; 0: none. */
uint32_t vp_blocks_from(struct vp_block_pool *pool, uint64_t size);
/* The last free block in front of that place; 0: none. */
uint32_t vp_blocks_below(const struct vp_block_pool *pool, uint64_t size, uint64_t address);
/* The next free block of the pool in order, of one that is in it; 0: it was the last. */
uint32_t vp_blocks_next(const struct vp_blocks *blocks, struct vp_block_pool *pool, uint32_t block);

#endif
