#include "planner/timeline/free_set.h"

#include <string.h>

enum { FIRST_PAGES = 8 };

/* Behind all blocks. */
static const struct vp_free_place LAST = {UINT64_MAX, UINT64_MAX, 0};

/* Is it in front of the place (size, address)? Without a branch, which would be guessed wrong every
 * other time: of equal sizes the lower address makes the difference of one. */
static uint32_t in_front(const struct vp_free_place *p, uint64_t size, uint64_t address) {
    return p->size < size + (p->address < address);
}

/* ---- pages ---- */

/* The page whose places reach to this one or behind it. */
static uint32_t page_of(const struct vp_free_set *set, uint64_t size, uint64_t address) {
    const struct vp_free_range *at = set->range;
    for (uint32_t count = set->ranges; count > 1;) {
        uint32_t half = count / 2;
        at += half & (0 - in_front(&at[half - 1].last, size, address));
        count -= half;
    }
    return (uint32_t)(at - set->range);
}

/* Blocks of a page in front of the place. */
static uint32_t before(const struct vp_free_page *page, uint64_t size, uint64_t address) {
    const struct vp_free_place *at = page->at;
    for (uint32_t count = page->count; count > 1;) {
        uint32_t half = count / 2;
        at += half & (0 - in_front(&at[half - 1], size, address));
        count -= half;
    }
    return (uint32_t)(at - page->at) + in_front(at, size, address);
}

/* Puts an empty page into the array, at `index`, for places up to `last`. */
static struct vp_free_page *new_page(struct vp_arena *arena, struct vp_free_set *set,
                                     uint32_t index, struct vp_free_place last) {
    struct vp_free_page *page = set->spare;
    if (page)
        set->spare = page->spare;
    else
        page = VP_NEW(arena, struct vp_free_page);
    if (set->ranges == set->capacity) {
        uint32_t capacity = set->capacity ? 2 * set->capacity : FIRST_PAGES;
        struct vp_free_range *more = VP_NEW_ARRAY(arena, capacity, struct vp_free_range);
        if (set->ranges)
            memcpy(more, set->range, set->ranges * sizeof *more);
        set->range = more;
        set->capacity = capacity;
    }
    struct vp_free_range *at = &set->range[index];
    memmove(at + 1, at, (set->ranges - index) * sizeof *at);
    *at = (struct vp_free_range){last, page};
    set->ranges++;
    page->count = 0;
    return page;
}

/* Moves the first half of a full page to a new one in front of it. */
static void split(struct vp_arena *arena, struct vp_free_set *set, uint32_t index) {
    struct vp_free_page *page = set->range[index].page;
    uint32_t half = VP_FREE_PAGE / 2;
    struct vp_free_page *front = new_page(arena, set, index, page->at[half - 1]);
    front->count = half;
    page->count -= half;
    memcpy(front->at, page->at, half * sizeof *page->at);
    memmove(page->at, &page->at[half], page->count * sizeof *page->at);
}

static void add_to_page(struct vp_arena *arena, struct vp_free_set *set,
                        struct vp_free_place place) {
    if (set->ranges == 0)
        new_page(arena, set, 0, LAST);
    uint32_t index = page_of(set, place.size, place.address);
    if (set->range[index].page->count == VP_FREE_PAGE) {
        split(arena, set, index);
        index += in_front(&set->range[index].last, place.size, place.address);
    }
    struct vp_free_page *page = set->range[index].page;
    uint32_t i = page->count > 0 ? before(page, place.size, place.address) : 0;
    memmove(&page->at[i + 1], &page->at[i], (page->count - i) * sizeof *page->at);
    page->at[i] = place;
    page->count++;
}

/* Most places that are removed were looked up just before. An address stands for one place. */
static bool was_found(const struct vp_free_set *set, uint64_t address) {
    if (set->found_range >= set->ranges)
        return false;
    const struct vp_free_page *page = set->range[set->found_range].page;
    return set->found < page->count && page->at[set->found].address == address;
}

static void remove_from_page(struct vp_free_set *set, uint64_t size, uint64_t address) {
    bool found = was_found(set, address);
    uint32_t index = found ? set->found_range : page_of(set, size, address);
    struct vp_free_page *page = set->range[index].page;
    uint32_t i = found ? set->found : before(page, size, address);
    page->count--;
    memmove(&page->at[i], &page->at[i + 1], (page->count - i) * sizeof *page->at);
    if (page->count > 0)
        return;
    struct vp_free_range *at = &set->range[index];
    set->ranges--;
    memmove(at, at + 1, (set->ranges - index) * sizeof *at);
    if (set->ranges > 0)
        set->range[set->ranges - 1].last = LAST;
    page->spare = set->spare;
    set->spare = page;
}

/* The first one at or behind the place, in a page; NULL: none. */
static const struct vp_free_place *page_from(struct vp_free_set *set, uint64_t size,
                                             uint64_t address) {
    if (set->ranges == 0)
        return NULL;
    uint32_t index = page_of(set, size, address);
    const struct vp_free_page *page = set->range[index].page;
    uint32_t i = before(page, size, address);
    if (i == page->count) {
        if (++index == set->ranges)
            return NULL;
        page = set->range[index].page;
        i = 0;
    }
    set->found_range = index;
    set->found = i;
    return &page->at[i];
}

/* The last one in front of it, in a page; NULL: none. */
static const struct vp_free_place *page_below(const struct vp_free_set *set, uint64_t size,
                                              uint64_t address) {
    if (set->ranges == 0)
        return NULL;
    uint32_t index = page_of(set, size, address);
    const struct vp_free_page *page = set->range[index].page;
    uint32_t i = before(page, size, address);
    if (i == 0 && index > 0) {
        page = set->range[index - 1].page;
        i = page->count;
    }
    return i > 0 ? &page->at[i - 1] : NULL;
}

/* ---- the set ---- */

void vp_free_set_add(struct vp_arena *arena, struct vp_free_set *set, struct vp_free_place place) {
    if (set->recents == VP_FREE_RECENT) {
        add_to_page(arena, set, set->recent[0]);
        set->recents--;
        memmove(set->recent, &set->recent[1], set->recents * sizeof *set->recent);
    }
    set->recent[set->recents++] = place;
}

void vp_free_set_remove(struct vp_free_set *set, uint64_t size, uint64_t address) {
    for (uint32_t i = set->recents; i-- > 0;) {
        if (set->recent[i].address == address) {
            set->recents--;
            memmove(&set->recent[i], &set->recent[i + 1], (set->recents - i) * sizeof *set->recent);
            return;
        }
    }
    remove_from_page(set, size, address);
}

uint32_t vp_free_set_from(struct vp_free_set *set, uint64_t size, uint64_t address) {
    const struct vp_free_place *best = page_from(set, size, address);
    for (uint32_t i = 0; i < set->recents; i++) {
        const struct vp_free_place *p = &set->recent[i];
        if (!in_front(p, size, address) && (!best || in_front(p, best->size, best->address)))
            best = p;
    }
    return best ? best->block : 0;
}

uint32_t vp_free_set_below(const struct vp_free_set *set, uint64_t size, uint64_t address) {
    const struct vp_free_place *best = page_below(set, size, address);
    for (uint32_t i = 0; i < set->recents; i++) {
        const struct vp_free_place *p = &set->recent[i];
        if (in_front(p, size, address) && (!best || in_front(best, p->size, p->address)))
            best = p;
    }
    return best ? best->block : 0;
}

uint64_t vp_free_set_count(const struct vp_free_set *set) {
    uint64_t count = set->recents;
    for (uint32_t i = 0; i < set->ranges; i++)
        count += set->range[i].page->count;
    return count;
}
