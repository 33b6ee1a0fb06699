#include "planner/timeline/mem_blocks.h"

#include <string.h>

enum { FIRST_BLOCKS = 256 };

/* ---- free blocks in order ---- */

uint32_t vp_blocks_from(struct vp_block_pool *pool, uint64_t size) {
    return vp_free_set_from(&pool->free, size, 0);
}

uint32_t vp_blocks_below(const struct vp_block_pool *pool, uint64_t size, uint64_t address) {
    return vp_free_set_below(&pool->free, size, address);
}

uint32_t vp_blocks_next(const struct vp_blocks *blocks, struct vp_block_pool *pool,
                        uint32_t block) {
    const struct vp_mem_block *b = &blocks->block[block];
    return vp_free_set_from(&pool->free, b->size, b->address + 1);
}

/* ---- the blocks ---- */

struct vp_blocks vp_blocks_begin(struct vp_arena *arena) {
    return (struct vp_blocks){
        .arena = arena,
        .block = VP_NEW_ARRAY(arena, FIRST_BLOCKS, struct vp_mem_block),
        .count = 1, /* 0 is none */
        .capacity = FIRST_BLOCKS,
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
    vp_free_set_add(blocks->arena, &pool_of(blocks, b)->free,
                    (struct vp_free_place){b->size, b->address, block});
}

void vp_blocks_leave(struct vp_blocks *blocks, uint32_t block) {
    struct vp_mem_block *b = &blocks->block[block];
    struct vp_block_pool *pool = pool_of(blocks, b);
    if (b->state == VP_BLOCK_FREE) {
        vp_free_set_remove(&pool->free, b->size, b->address);
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
