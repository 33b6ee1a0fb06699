#include "planner/timeline/block_tree.h"

#include <stdbool.h>

/* Is the block in front of the place (size, address)? */
static bool in_front(const struct vp_mem_block *block, uint64_t size, uint64_t address) {
    return block->size != size ? block->size < size : block->address < address;
}

void vp_block_tree_insert(struct vp_mem_block *blocks, uint32_t *root, uint32_t block) {
    struct vp_mem_block *b = &blocks[block];
    uint32_t *link = root, *left = &b->left, *right = &b->right;

    while (*link && blocks[*link].priority >= b->priority)
        link = in_front(&blocks[*link], b->size, b->address) ? &blocks[*link].right
                                                             : &blocks[*link].left;
    /* what stood here is divided into the blocks in front of the new one and those behind */
    for (uint32_t at = *link; at;) {
        if (in_front(&blocks[at], b->size, b->address)) {
            *left = at;
            left = &blocks[at].right;
            at = *left;
        } else {
            *right = at;
            right = &blocks[at].left;
            at = *right;
        }
    }
    *left = *right = 0;
    *link = block;
}

void vp_block_tree_remove(struct vp_mem_block *blocks, uint32_t *root, uint32_t block) {
    struct vp_mem_block *b = &blocks[block];
    uint32_t *link = root, left = b->left, right = b->right;

    while (*link != block)
        link = in_front(&blocks[*link], b->size, b->address) ? &blocks[*link].right
                                                             : &blocks[*link].left;
    while (left && right) {
        if (blocks[left].priority >= blocks[right].priority) {
            *link = left;
            link = &blocks[left].right;
            left = *link;
        } else {
            *link = right;
            link = &blocks[right].left;
            right = *link;
        }
    }
    *link = left ? left : right;
}

uint32_t vp_block_tree_from(const struct vp_mem_block *blocks, uint32_t root, uint64_t size,
                            uint64_t address) {
    uint32_t found = 0;

    while (root) {
        if (in_front(&blocks[root], size, address)) {
            root = blocks[root].right;
        } else {
            found = root;
            root = blocks[root].left;
        }
    }
    return found;
}

uint32_t vp_block_tree_below(const struct vp_mem_block *blocks, uint32_t root, uint64_t size,
                             uint64_t address) {
    uint32_t found = 0;

    while (root) {
        if (in_front(&blocks[root], size, address)) {
            found = root;
            root = blocks[root].right;
        } else {
            root = blocks[root].left;
        }
    }
    return found;
}

uint32_t vp_block_tree_next(const struct vp_mem_block *blocks, uint32_t root, uint32_t block) {
    return vp_block_tree_from(blocks, root, blocks[block].size, blocks[block].address + 1);
}
