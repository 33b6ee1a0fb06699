#include "planner/timeline/mem_blocks.h"

#include <string.h>

enum { FIRST_BLOCKS = 256 };

/* ---- the tree ---- */

/* Is the block in front of the place (size, address)? Without a branch, which would be guessed
 * wrong every other time. */
static bool in_front(const struct vp_mem_block *block, uint64_t size, uint64_t address) {
    return (block->size < size) | ((block->size == size) & (block->address < address));
}

/* Hangs a subtree, which may be empty, below a block: 0 in front of it, 1 behind. */
static void hang(struct vp_mem_block *blocks, uint32_t parent, int side, uint32_t child) {
    blocks[parent].link[side] = child;
    blocks[child].parent = parent; /* that of block 0 means nothing */
}

/* Puts a subtree where `old` hangs. */
static void replace(struct vp_mem_block *blocks, uint32_t *root, uint32_t old, uint32_t child) {
    uint32_t parent = blocks[old].parent;
    if (parent)
        hang(blocks, parent, blocks[parent].link[1] == old, child);
    else
        *root = child;
    blocks[child].parent = parent;
}

static void tree_insert(struct vp_mem_block *blocks, uint32_t *root, uint32_t block) {
    struct vp_mem_block *b = &blocks[block];
    uint32_t at = *root, parent = 0, end[2] = {block, block};
    int side = 0, which[2] = {0, 1};

    while (at && blocks[at].priority >= b->priority) {
        side = in_front(&blocks[at], b->size, b->address);
        parent = at;
        at = blocks[at].link[side];
    }
    if (parent)
        hang(blocks, parent, side, block);
    else
        *root = block;
    b->parent = parent;
    /* what stood here is divided into the blocks in front of the new one and those behind */
    while (at) {
        int front = in_front(&blocks[at], b->size, b->address), to = !front;
        hang(blocks, end[to], which[to], at);
        end[to] = at;
        which[to] = front;
        at = blocks[at].link[front];
    }
    blocks[end[0]].link[which[0]] = 0;
    blocks[end[1]].link[which[1]] = 0;
}

static void tree_remove(struct vp_mem_block *blocks, uint32_t *root, uint32_t block) {
    uint32_t left = blocks[block].link[0], right = blocks[block].link[1], parent = 0;
    int side = 0;

    /* the first of the two subtrees' roots takes the place; the rest is merged below it */
    for (bool first = true; first || (left && right); first = false) {
        bool from_left = left && (!right || blocks[left].priority >= blocks[right].priority);
        uint32_t next = from_left ? left : right;
        if (first)
            replace(blocks, root, block, next);
        else
            hang(blocks, parent, side, next);
        parent = next;
        side = from_left;
        if (from_left)
            left = blocks[next].link[1];
        else
            right = blocks[next].link[0];
        if (!next)
            return;
    }
    hang(blocks, parent, side, left ? left : right);
}

/* The first block at or behind the place. */
static uint32_t tree_from(const struct vp_mem_block *blocks, uint32_t root, uint64_t size,
                          uint64_t address) {
    uint32_t found = 0;

    while (root) {
        bool front = in_front(&blocks[root], size, address);
        found = front ? found : root;
        root = blocks[root].link[front];
    }
    return found;
}

uint32_t vp_blocks_from(const struct vp_blocks *blocks, uint32_t tree, uint64_t size) {
    return tree_from(blocks->block, tree, size, 0);
}

uint32_t vp_blocks_below(const struct vp_blocks *blocks, uint32_t tree, uint64_t size,
                         uint64_t address) {
    uint32_t found = 0;

    while (tree) {
        bool front = in_front(&blocks->block[tree], size, address);
        found = front ? tree : found;
        tree = blocks->block[tree].link[front];
    }
    return found;
}

uint32_t vp_blocks_next(const struct vp_blocks *blocks, uint32_t tree, uint32_t block) {
    const struct vp_mem_block *b = &blocks->block[block];
    return tree_from(blocks->block, tree, b->size, b->address + 1);
}

/* ---- the blocks ---- */

struct vp_blocks vp_blocks_begin(struct vp_arena *arena) {
    return (struct vp_blocks){
        .arena = arena,
        .block = VP_NEW_ARRAY(arena, FIRST_BLOCKS, struct vp_mem_block),
        .count = 1, /* 0 is none */
        .capacity = FIRST_BLOCKS,
        .random = 2463534242u, /* any but 0 */
    };
}

uint32_t vp_blocks_new(struct vp_blocks *blocks, const struct vp_mem_block *block) {
    struct vp_mem_block copy = *block;
    uint32_t n = blocks->recycled;
    if (n) {
        blocks->recycled = blocks->block[n].after;
    } else {
        if (blocks->count == blocks->capacity) {
            struct vp_mem_block *more =
                VP_NEW_ARRAY(blocks->arena, 2 * (size_t)blocks->capacity, struct vp_mem_block);
            memcpy(more, blocks->block, blocks->count * sizeof *more);
            blocks->block = more;
            blocks->capacity *= 2;
        }
        n = blocks->count++;
    }
    blocks->random ^= blocks->random << 13;
    blocks->random ^= blocks->random >> 17;
    blocks->random ^= blocks->random << 5;
    copy.priority = blocks->random;
    blocks->block[n] = copy;
    return n;
}

void vp_blocks_recycle(struct vp_blocks *blocks, uint32_t block) {
    blocks->block[block].after = blocks->recycled;
    blocks->recycled = block;
}

static struct vp_block_pool *pool_of(struct vp_blocks *blocks, const struct vp_mem_block *b) {
    return &blocks->pools[b->large][b->stream];
}

/* The list is short: one range for each hole that a retry tore into a segment, one behind it. */
static void keep_unmapped(struct vp_blocks *blocks, uint32_t block) {
    struct vp_mem_block *b = &blocks->block[block];
    uint32_t *link = &pool_of(blocks, b)->unmapped, last = 0;
    while (*link && blocks->block[*link].address < b->address) {
        last = *link;
        link = &blocks->block[last].link[1];
    }
    b->link[0] = last;
    b->link[1] = *link;
    if (*link)
        blocks->block[*link].link[0] = block;
    *link = block;
}

void vp_blocks_keep(struct vp_blocks *blocks, uint32_t block, enum vp_block_state state) {
    struct vp_mem_block *b = &blocks->block[block];
    b->state = (uint8_t)state;
    if (state == VP_BLOCK_UNMAPPED) {
        keep_unmapped(blocks, block);
        return;
    }
    b->requested = blocks->searches[b->large];
    tree_insert(blocks->block, &pool_of(blocks, b)->tree, block);
}

void vp_blocks_leave(struct vp_blocks *blocks, uint32_t block) {
    struct vp_mem_block *b = &blocks->block[block];
    struct vp_block_pool *pool = pool_of(blocks, b);
    if (b->state == VP_BLOCK_FREE) {
        tree_remove(blocks->block, &pool->tree, block);
        return;
    }
    if (b->link[0])
        blocks->block[b->link[0]].link[1] = b->link[1];
    else
        pool->unmapped = b->link[1];
    if (b->link[1])
        blocks->block[b->link[1]].link[0] = b->link[0];
}

uint32_t vp_blocks_cut(struct vp_blocks *blocks, uint32_t block, uint64_t size) {
    struct vp_mem_block rest = blocks->block[block];
    rest.address += size;
    rest.size -= size;
    rest.before = block;
    uint32_t n = vp_blocks_new(blocks, &rest);
    blocks->block[block].size = size;
    blocks->block[block].after = n;
    if (rest.after)
        blocks->block[rest.after].before = n;
    return n;
}

static void swallow(struct vp_blocks *blocks, uint32_t block, uint32_t other) {
    struct vp_mem_block *b = &blocks->block[block], *o = &blocks->block[other];
    if (!other || o->state != b->state)
        return;
    vp_blocks_leave(blocks, other);
    if (b->before == other) {
        b->address = o->address;
        b->before = o->before;
        if (b->before)
            blocks->block[b->before].after = block;
    } else {
        b->after = o->after;
        if (b->after)
            blocks->block[b->after].before = block;
    }
    b->size += o->size;
    vp_blocks_recycle(blocks, other);
}

void vp_blocks_merge(struct vp_blocks *blocks, uint32_t block, enum vp_block_state state) {
    blocks->block[block].state = (uint8_t)state;
    swallow(blocks, block, blocks->block[block].before);
    swallow(blocks, block, blocks->block[block].after);
    vp_blocks_keep(blocks, block, state);
}

bool vp_block_is_split(const struct vp_mem_block *block) { return block->before || block->after; }
