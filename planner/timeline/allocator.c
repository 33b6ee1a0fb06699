#include "planner/timeline/allocator.h"

#include <string.h>

#include "planner/base/sum.h"
#include "planner/timeline/mem_blocks.h"

static const uint64_t LEAST = 512, SMALL = 1 << 20, SMALL_SEGMENT = 2 << 20,
                      MIDDLE = UINT64_C(10) << 20, STEP = 2 << 20;
/* No device is as large: what is asked for is cut here, so that sums do not overflow. */
static const uint64_t MOST = UINT64_C(1) << 50, ADDRESSES = UINT64_C(1) << 62;

enum { MAX_IDS = 1 << 28, FIRST_IDS = 256 };

/* In the table of ids, instead of a block. */
static const uint32_t NOTHING = 0, FAILED = UINT32_MAX, EMPTY = UINT32_MAX - 1;

struct vp_allocator {
    struct vp_arena *arena;
    struct vp_allocator_settings settings;
    uint64_t limit;   /* of reserved memory, by the driver */
    uint64_t allowed; /* by the fraction; UINT64_MAX: not set */
    bool collects;
    struct vp_blocks blocks;
    uint32_t waiting;   /* list of blocks */
    uint32_t *block_of; /* by id */
    uint32_t id_capacity;
    uint32_t *scratch; /* blocks, while many are released */
    uint32_t scratch_capacity;
    uint64_t next_address;
    uint64_t events;
    struct vp_allocator_stats stats;
};

/* ---- sizes ---- */

static uint32_t log2_floor(uint64_t v) { return 63u - (uint32_t)__builtin_clzll(v); }

static uint64_t up_to(uint64_t v, uint64_t multiple) { return vp_ceil_div(v, multiple) * multiple; }

uint64_t vp_allocator_round(const struct vp_allocator_settings *settings, uint64_t bytes) {
    bytes = vp_max(vp_min(bytes, MOST), LEAST);
    uint64_t floor = UINT64_C(1) << log2_floor(bytes);
    uint64_t interval = vp_min(vp_above(log2_floor(bytes), 20), VP_ROUNDUP_INTERVALS - 1);
    uint64_t divisions = settings->divisions[interval];

    if (divisions <= 1 || bytes <= LEAST * divisions)
        return up_to(bytes, LEAST);
    return up_to(bytes, floor / divisions);
}

static uint64_t segment_size(const struct vp_allocator *a, uint64_t size) {
    if (size <= SMALL)
        return SMALL_SEGMENT;
    if (size < MIDDLE)
        return a->settings.large_segment_bytes;
    return up_to(size, STEP);
}

static uint64_t page_size(const struct vp_allocator *a, bool large) {
    return large ? a->settings.large_segment_bytes : SMALL_SEGMENT;
}

/* ---- figures ---- */

static void raise(struct vp_gauge *gauge, uint64_t by) {
    gauge->now += by;
    gauge->peak = vp_max(gauge->peak, gauge->now);
}

static void reserve(struct vp_allocator *a, uint64_t bytes) {
    uint64_t peak = a->stats.reserved.peak;
    raise(&a->stats.reserved, bytes);
    a->stats.driver_takes++;
    if (a->stats.reserved.peak > peak)
        a->stats.allocated_at_reserved_peak = a->stats.allocated.now;
}

static void unreserve(struct vp_allocator *a, uint64_t bytes) {
    a->stats.reserved.now -= bytes;
    a->stats.driver_gives++;
}

static uint32_t *grown(struct vp_arena *arena, uint32_t *old, uint32_t *capacity, uint32_t need) {
    uint32_t wanted = *capacity ? *capacity : FIRST_IDS;
    while (wanted < need)
        wanted *= 2;
    uint32_t *array = VP_NEW_ARRAY(arena, wanted, uint32_t);
    if (*capacity)
        memcpy(array, old, *capacity * sizeof *array);
    *capacity = wanted;
    return array;
}

/* ---- giving memory back ---- */

static void finish_free(struct vp_allocator *a, uint32_t block) {
    a->stats.active.now -= a->blocks.block[block].size;
    a->stats.requested.now -= a->blocks.block[block].requested;
    vp_blocks_merge(&a->blocks, block, VP_BLOCK_FREE);
}

/* The work of these streams is done. */
static void finish_uses(struct vp_allocator *a, uint64_t streams) {
    uint32_t *link = &a->waiting;
    while (*link) {
        uint32_t block = *link;
        struct vp_mem_block *b = &a->blocks.block[block];
        b->uses &= ~streams;
        if (b->uses) {
            link = &b->link[1];
        } else {
            *link = b->link[1];
            finish_free(a, block);
        }
    }
}

static void release_segment(struct vp_allocator *a, uint32_t block) {
    vp_blocks_leave(&a->blocks, block);
    unreserve(a, a->blocks.block[block].size);
    a->stats.segments.now--;
    vp_blocks_recycle(&a->blocks, block);
}

/* Gives the whole pages inside a free block of an expandable segment back, and the segment's
 * address range when nothing is left in it. */
static void unmap(struct vp_allocator *a, uint32_t block) {
    struct vp_mem_block *b = &a->blocks.block[block];
    uint64_t page = page_size(a, b->large);
    uint64_t begin = up_to(b->address, page), end = (b->address + b->size) / page * page;
    if (begin >= end)
        return;
    vp_blocks_leave(&a->blocks, block);
    unreserve(a, end - begin);
    if (begin > b->address) {
        uint32_t rest = vp_blocks_cut(&a->blocks, block, begin - b->address);
        vp_blocks_keep(&a->blocks, block, VP_BLOCK_FREE);
        block = rest;
    }
    b = &a->blocks.block[block];
    if (b->address + b->size > end)
        vp_blocks_keep(&a->blocks, vp_blocks_cut(&a->blocks, block, end - b->address),
                       VP_BLOCK_FREE);
    vp_blocks_merge(&a->blocks, block, VP_BLOCK_UNMAPPED);
    if (!vp_block_is_split(&a->blocks.block[block])) {
        vp_blocks_leave(&a->blocks, block);
        a->stats.segments.now--;
        vp_blocks_recycle(&a->blocks, block);
    }
}

/* Free blocks that the driver can have back, into the scratch array; returns how many. */
static uint32_t collect_free(struct vp_allocator *a, bool large, bool expandable) {
    uint32_t count = 0;
    for (uint32_t stream = 0; stream < VP_STREAMS; stream++) {
        struct vp_block_pool *pool = &a->blocks.pools[large][stream];
        uint32_t block = vp_blocks_from(pool, 0);
        for (; block; block = vp_blocks_next(&a->blocks, pool, block)) {
            const struct vp_mem_block *b = &a->blocks.block[block];
            if (b->expandable ? !expandable : vp_block_is_split(b))
                continue;
            if (count == a->scratch_capacity)
                a->scratch = grown(a->arena, a->scratch, &a->scratch_capacity, count + 1);
            a->scratch[count++] = block;
        }
    }
    return count;
}

static void release_all(struct vp_allocator *a) {
    finish_uses(a, UINT64_MAX);
    for (int large = 1; large >= 0; large--) {
        uint32_t count = collect_free(a, large, true);
        for (uint32_t i = 0; i < count; i++) {
            if (a->blocks.block[a->scratch[i]].expandable)
                unmap(a, a->scratch[i]);
            else
                release_segment(a, a->scratch[i]);
        }
    }
}

/* Unsplit large blocks at least as old as the average go back, until reserved memory is below the
 * threshold. Age: searches of the pool since the block became free. */
static void collect_garbage(struct vp_allocator *a) {
    uint64_t threshold = vp_mul_div(a->allowed, a->settings.collect_ppb, VP_BILLION);
    if (a->stats.reserved.now <= threshold)
        return;
    uint64_t target = a->stats.reserved.now - threshold, reclaimed = 0, total_age = 0;
    uint32_t count = collect_free(a, true, false);
    for (uint32_t i = 0; i < count; i++)
        total_age += a->blocks.searches[1] - a->blocks.block[a->scratch[i]].requested;
    while (reclaimed < target && count > 0) {
        const uint64_t age_sum = total_age, blocks = count;
        uint32_t left = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t block = a->scratch[i];
            uint64_t age = a->blocks.searches[1] - a->blocks.block[block].requested;
            if (age * blocks < age_sum) {
                a->scratch[left++] = block;
                continue;
            }
            reclaimed += a->blocks.block[block].size;
            total_age -= age;
            release_segment(a, block);
        }
        count = left; /* never all of what was there: one at least is as old as the average */
    }
}

/* With a split limit: the smallest oversize block that would have been large enough goes back, or
 * the largest ones until they sum up. False: that is not enough. */
static bool release_oversize(struct vp_allocator *a, struct vp_block_pool *pool, uint64_t size) {
    uint64_t least = a->settings.max_split_bytes, released = 0;
    if (least == VP_NO_SPLIT_LIMIT)
        return false;
    uint64_t wanted = vp_max(size, least);
    uint32_t block = vp_blocks_from(pool, wanted);
    if (block) {
        const struct vp_mem_block *b = &a->blocks.block[block];
        if (b->expandable || vp_block_is_split(b))
            return false;
        release_segment(a, block);
        return true;
    }
    block = vp_blocks_below(pool, wanted, 0);
    while (block && released < wanted && a->blocks.block[block].size >= least) {
        const struct vp_mem_block *b = &a->blocks.block[block];
        uint32_t next = vp_blocks_below(pool, b->size, b->address);
        if (!b->expandable && !vp_block_is_split(b)) {
            released += b->size;
            release_segment(a, block);
        }
        block = next;
    }
    return released >= wanted;
}

/* ---- getting memory ---- */

/* Bytes that a block can grow by: the unmapped range behind it. */
static uint64_t room_behind(const struct vp_allocator *a, uint32_t block) {
    uint32_t after = a->blocks.block[block].after;
    bool grows = after && a->blocks.block[after].state == VP_BLOCK_UNMAPPED;
    return grows ? a->blocks.block[after].size : 0;
}

/* Best fit, taken out of the pool; 0: none. A block that can grow counts as large as it can grow,
 * so that a larger one may fit better. */
static uint32_t find_free(struct vp_allocator *a, struct vp_block_pool *pool, uint64_t size) {
    const struct vp_allocator_settings *s = &a->settings;
    uint32_t block = vp_blocks_from(pool, size);
    if (!block)
        return 0;
    for (uint64_t room; (room = room_behind(a, block)) > 0;) {
        uint32_t next = vp_blocks_next(&a->blocks, pool, block);
        if (!next ||
            a->blocks.block[next].size + room_behind(a, next) >= a->blocks.block[block].size + room)
            break;
        block = next;
    }
    uint64_t found = a->blocks.block[block].size;
    if (size < s->max_split_bytes ? found >= s->max_split_bytes
                                  : found >= size + s->max_rounding_bytes)
        return 0;
    vp_blocks_leave(&a->blocks, block);
    return block;
}

static bool driver_has(const struct vp_allocator *a, uint64_t bytes) {
    return bytes <= vp_above(a->limit, a->stats.reserved.now);
}

/* Addresses for a new segment; 0: there are no more. */
static uint64_t new_address(struct vp_allocator *a, uint64_t size, uint64_t alignment) {
    uint64_t address = up_to(a->next_address, alignment);
    if (address > ADDRESSES - size)
        return 0;
    a->next_address = address + size;
    return address;
}

/* A new address range, as large as the device and an eighth, nothing of it mapped; 0: none. */
static uint32_t new_range(struct vp_allocator *a, uint8_t stream, bool large) {
    uint64_t total = a->settings.device_bytes ? vp_min(a->settings.device_bytes, MOST) : MOST;
    uint64_t page = page_size(a, large), size = up_to(total + total / 8, page);
    uint64_t address = new_address(a, size, page);
    if (!address)
        return 0;
    uint32_t block = vp_blocks_new(&a->blocks, &(struct vp_mem_block){.size = size,
                                                                      .address = address,
                                                                      .stream = stream,
                                                                      .large = large,
                                                                      .expandable = true});
    raise(&a->stats.segments, 1);
    vp_blocks_keep(&a->blocks, block, VP_BLOCK_UNMAPPED);
    return block;
}

static bool can_grow_into(const struct vp_mem_block *b) {
    return b->state == VP_BLOCK_FREE || b->state == VP_BLOCK_UNMAPPED;
}

/* The lowest place where free and unmapped neighbours are large enough together. */
static uint32_t find_range(struct vp_allocator *a, struct vp_block_pool *pool, uint8_t stream,
                           bool large, uint64_t size) {
    for (uint32_t block = pool->unmapped; block; block = a->blocks.block[block].link[1]) {
        uint32_t begin = block, before = a->blocks.block[block].before;
        if (before && can_grow_into(&a->blocks.block[before]))
            begin = before;
        uint64_t bytes = 0;
        for (uint32_t at = begin; bytes < size && at && can_grow_into(&a->blocks.block[at]);
             at = a->blocks.block[at].after)
            bytes += a->blocks.block[at].size;
        if (bytes >= size)
            return begin;
    }
    return new_range(a, stream, large);
}

/* Maps pages at the front of an unmapped block, at least `size` bytes; they become free. */
static bool map(struct vp_allocator *a, uint32_t block, uint64_t size) {
    uint64_t mapped = up_to(size, page_size(a, a->blocks.block[block].large));
    if (!driver_has(a, mapped))
        return false;
    vp_blocks_leave(&a->blocks, block);
    if (mapped < a->blocks.block[block].size)
        vp_blocks_keep(&a->blocks, vp_blocks_cut(&a->blocks, block, mapped), VP_BLOCK_UNMAPPED);
    vp_blocks_merge(&a->blocks, block, VP_BLOCK_FREE);
    reserve(a, mapped);
    return true;
}

static uint32_t grow_range(struct vp_allocator *a, struct vp_block_pool *pool, uint8_t stream,
                           bool large, uint64_t size) {
    uint32_t block = find_range(a, pool, stream, large, size);
    if (!block)
        return 0;
    if (a->blocks.block[block].state == VP_BLOCK_UNMAPPED &&
        !map(a, block, vp_min(a->blocks.block[block].size, size)))
        return 0;
    while (a->blocks.block[block].size < size) {
        uint32_t next = a->blocks.block[block].after;
        uint64_t missing = size - a->blocks.block[block].size;
        if (!map(a, next, vp_min(missing, a->blocks.block[next].size)))
            return 0;
        block = next; /* it has swallowed the block in front */
    }
    vp_blocks_leave(&a->blocks, block);
    return block;
}

/* From the driver, in no pool; 0: it has no such memory, or the process may not have it. */
static uint32_t from_driver(struct vp_allocator *a, struct vp_block_pool *pool, uint8_t stream,
                            bool large, uint64_t size) {
    uint64_t segment = segment_size(a, size);
    if (segment > vp_above(a->allowed, a->stats.reserved.now))
        return 0;
    if (a->settings.expandable)
        return grow_range(a, pool, stream, large, size);
    uint64_t address = driver_has(a, segment) ? new_address(a, segment, STEP) : 0;
    if (!address)
        return 0;
    raise(&a->stats.segments, 1);
    reserve(a, segment);
    return vp_blocks_new(
        &a->blocks, &(struct vp_mem_block){
                        .size = segment, .address = address, .stream = stream, .large = large});
}

static bool should_split(const struct vp_allocator *a, const struct vp_mem_block *b,
                         uint64_t size) {
    uint64_t rest = b->size - size;
    if (!b->large || a->settings.expandable)
        return rest >= LEAST;
    return size < a->settings.max_split_bytes && rest > SMALL;
}

static uint32_t take_block(struct vp_allocator *a, uint8_t stream, uint64_t size) {
    bool large = size > SMALL;
    struct vp_block_pool *pool = &a->blocks.pools[large][stream];
    if (a->collects)
        a->blocks.searches[large]++;
    uint32_t block = find_free(a, pool, size);
    if (!block && a->collects)
        collect_garbage(a);
    if (!block)
        block = from_driver(a, pool, stream, large, size);
    if (!block && release_oversize(a, pool, size))
        block = from_driver(a, pool, stream, large, size);
    if (!block) {
        a->stats.retries++;
        release_all(a);
        block = from_driver(a, pool, stream, large, size);
    }
    if (block && should_split(a, &a->blocks.block[block], size))
        vp_blocks_keep(&a->blocks, vp_blocks_cut(&a->blocks, block, size), VP_BLOCK_FREE);
    return block;
}

/* ---- events ---- */

static bool has_block(const struct vp_allocator *a, uint32_t id) {
    return id < a->id_capacity && a->block_of[id] != NOTHING && a->block_of[id] != FAILED &&
           a->block_of[id] != EMPTY;
}

static enum vp_replay take(struct vp_allocator *a, const struct vp_event *event) {
    struct vp_allocator_stats *stats = &a->stats;
    if (event->id >= MAX_IDS)
        return VP_REPLAY_BAD_EVENT;
    if (event->id >= a->id_capacity)
        a->block_of = grown(a->arena, a->block_of, &a->id_capacity, event->id + 1);
    if (a->block_of[event->id] != NOTHING)
        return VP_REPLAY_BAD_EVENT;
    if (event->bytes == 0) {
        a->block_of[event->id] = EMPTY;
        return VP_REPLAY_OK;
    }
    uint32_t block = take_block(a, event->stream, vp_allocator_round(&a->settings, event->bytes));
    if (!block) {
        a->block_of[event->id] = FAILED;
        if (stats->failures++ == 0) {
            stats->failed_at = a->events;
            stats->failed_bytes = event->bytes;
        }
        return VP_REPLAY_OUT_OF_MEMORY;
    }
    struct vp_mem_block *b = &a->blocks.block[block];
    b->state = VP_BLOCK_TAKEN;
    b->requested = event->bytes;
    b->uses = 0;
    a->block_of[event->id] = block;
    raise(&stats->allocated, b->size);
    raise(&stats->active, b->size);
    raise(&stats->requested, b->requested);
    if (stats->reserved.now == stats->reserved.peak)
        stats->allocated_at_reserved_peak =
            vp_max(stats->allocated_at_reserved_peak, stats->allocated.now);
    return VP_REPLAY_OK;
}

static enum vp_replay give(struct vp_allocator *a, uint32_t id) {
    if (id >= a->id_capacity || a->block_of[id] == NOTHING)
        return VP_REPLAY_BAD_EVENT;
    bool has = has_block(a, id);
    uint32_t block = a->block_of[id];
    a->block_of[id] = NOTHING;
    if (!has)
        return VP_REPLAY_OK;
    struct vp_mem_block *b = &a->blocks.block[block];
    a->stats.allocated.now -= b->size;
    if (b->uses) {
        b->state = VP_BLOCK_WAITING;
        b->link[1] = a->waiting;
        a->waiting = block;
    } else {
        finish_free(a, block);
    }
    return VP_REPLAY_OK;
}

static enum vp_replay use(struct vp_allocator *a, const struct vp_event *event) {
    if (event->id >= a->id_capacity || a->block_of[event->id] == NOTHING)
        return VP_REPLAY_BAD_EVENT;
    if (!has_block(a, event->id))
        return VP_REPLAY_OK;
    struct vp_mem_block *b = &a->blocks.block[a->block_of[event->id]];
    if (b->stream != event->stream)
        b->uses |= UINT64_C(1) << event->stream;
    return VP_REPLAY_OK;
}

enum vp_replay vp_allocator_apply(struct vp_allocator *a, const struct vp_event *event) {
    enum vp_replay result = VP_REPLAY_OK;
    if (event->stream >= VP_STREAMS)
        return VP_REPLAY_BAD_EVENT;
    switch (event->kind) {
    case VP_EVENT_TAKE:
        result = take(a, event);
        break;
    case VP_EVENT_GIVE:
        result = give(a, event->id);
        break;
    case VP_EVENT_USE:
        result = use(a, event);
        break;
    case VP_EVENT_SYNC:
        finish_uses(a, UINT64_C(1) << event->stream);
        break;
    case VP_EVENT_EMPTY:
        release_all(a);
        break;
    case VP_EVENT_MARK:
        break;
    default:
        result = VP_REPLAY_BAD_EVENT;
    }
    a->events++;
    return result;
}

enum vp_replay vp_allocator_replay(struct vp_allocator *a, const struct vp_event *events,
                                   size_t count) {
    enum vp_replay first = VP_REPLAY_OK;
    for (size_t i = 0; i < count; i++) {
        enum vp_replay result = vp_allocator_apply(a, &events[i]);
        if (first == VP_REPLAY_OK)
            first = result;
        if (result == VP_REPLAY_BAD_EVENT)
            return result;
    }
    return first;
}

struct vp_allocator *vp_allocator_new(struct vp_arena *arena,
                                      const struct vp_allocator_settings *settings) {
    struct vp_allocator *a = VP_NEW(arena, struct vp_allocator);
    a->arena = arena;
    a->blocks = vp_blocks_begin(arena);
    a->settings = *settings;
    a->limit =
        settings->device_bytes ? vp_above(settings->device_bytes, settings->other_bytes) : MOST;
    a->allowed = settings->device_bytes && settings->fraction_ppb
                     ? vp_mul_div(settings->device_bytes, settings->fraction_ppb, VP_BILLION)
                     : UINT64_MAX;
    a->collects = a->allowed != UINT64_MAX && settings->collect_ppb > 0;
    a->next_address = STEP;
    return a;
}

struct vp_allocator_stats vp_allocator_stats(const struct vp_allocator *a) {
    struct vp_allocator_stats stats = a->stats;
    for (int large = 0; large < 2; large++) {
        for (int stream = 0; stream < VP_STREAMS; stream++) {
            const struct vp_block_pool *pool = &a->blocks.pools[large][stream];
            uint32_t largest = vp_blocks_below(pool, UINT64_MAX, 0);
            stats.free_blocks += vp_free_set_count(&pool->free);
            if (largest)
                stats.largest_free = vp_max(stats.largest_free, a->blocks.block[largest].size);
        }
    }
    return stats;
}

uint64_t vp_allocator_reserved(const struct vp_allocator *a) { return a->stats.reserved.now; }

uint64_t vp_allocator_driver_calls(const struct vp_allocator *a) {
    return a->stats.driver_takes + a->stats.driver_gives;
}

uint64_t vp_allocator_fragmentation(const struct vp_allocator_stats *stats) {
    return stats->reserved.peak - stats->allocated_at_reserved_peak;
}

bool vp_allocator_find(const struct vp_allocator *a, uint32_t id, uint64_t *out_address,
                       uint64_t *out_size) {
    if (!has_block(a, id))
        return false;
    *out_address = a->blocks.block[a->block_of[id]].address;
    *out_size = a->blocks.block[a->block_of[id]].size;
    return true;
}
