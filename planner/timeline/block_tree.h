/* Blocks of the caching allocator's model and the tree that holds the free ones by size, the lower
 * address first among equals. A treap: n is the number of free blocks of one pool and stream (some
 * ten in training, thousands in a random trace), every operation takes O(log n) on average.
 *
 * Blocks are named by their index in one array, 0 is none. The tree owns nothing. */
#ifndef VP_TIMELINE_BLOCK_TREE_H
#define VP_TIMELINE_BLOCK_TREE_H

#include <stdint.h>

enum vp_block_state {
    VP_BLOCK_FREE,
    VP_BLOCK_TAKEN,
    VP_BLOCK_WAITING, /* freed, but work on another stream still uses it */
    VP_BLOCK_UNMAPPED /* address space of an expandable segment without memory behind it */
};

struct vp_mem_block {
    uint64_t size, address;
    uint32_t left, right; /* free: children in the tree; unmapped: neighbours in their list */
    uint32_t priority;
    uint32_t before, after; /* neighbours in the segment; the next recycled or waiting block */
    uint8_t state;          /* enum vp_block_state */
    uint8_t stream;
    uint8_t large;      /* pool: 0 small, 1 large */
    uint8_t expandable; /* of an expandable segment */
    uint64_t requested; /* taken: bytes asked for */
    uint64_t uses;      /* bits: other streams that use it */
    uint64_t since;     /* free: searches of its pool when it became so (garbage collection) */
    uint32_t waiting;   /* the next waiting block */
};

void vp_block_tree_insert(struct vp_mem_block *blocks, uint32_t *root, uint32_t block);
/* The block must be in the tree. */
void vp_block_tree_remove(struct vp_mem_block *blocks, uint32_t *root, uint32_t block);
/* The first block of at least this size (and address, among those of this size); 0: none. */
uint32_t vp_block_tree_from(const struct vp_mem_block *blocks, uint32_t root, uint64_t size,
                            uint64_t address);
/* The block in front of that place; 0: none. */
uint32_t vp_block_tree_below(const struct vp_mem_block *blocks, uint32_t root, uint64_t size,
                             uint64_t address);
/* The next block in order; 0: it was the last. */
uint32_t vp_block_tree_next(const struct vp_mem_block *blocks, uint32_t root, uint32_t block);

#endif
