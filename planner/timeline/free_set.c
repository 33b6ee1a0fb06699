#include "planner/timeline/free_set.h"

#include <string.h>

enum { FIRST_PAGES = 8 };

/* Is it in front of the place (size, address)? Without a branch, which would be guessed wrong every
 * other time. */
static bool in_front(const struct vp_free_place *p, uint64_t size, uint64_t address) {
    return (p->size < size) | ((p->size == size) & (p->address < address));
}

/* The first page whose last block is at or behind the place; set->pages: none. */
static uint32_t page_of(const struct vp_free_set *set, uint64_t size, uint64_t address) {
    uint32_t from = 0, count = set->pages;
    while (count > 0) {
        uint32_t half = count / 2;
        const struct vp_free_page *page = set->page[from + half];
        bool front = in_front(&page->at[page->count - 1], size, address);
        from = front ? from + half + 1 : from;
        count = front ? count - half - 1 : half;
    }
    return from;
}

/* Blocks of a page in front of the place. */
static uint32_t before(const struct vp_free_page *page, uint64_t size, uint64_t address) {
    const struct vp_free_place *at = page->at;
    for (uint32_t count = page->count; count > 1;) {
        uint32_t half = count / 2;
        at += in_front(&at[half - 1], size, address) ? half : 0;
        count -= half;
    }
    return (uint32_t)(at - page->at) + in_front(at, size, address);
}

/* Puts a page into the array, at `index`. */
static struct vp_free_page *new_page(struct vp_arena *arena, struct vp_free_set *set,
                                     uint32_t index) {
    struct vp_free_page *page = set->spare;
    if (page)
        set->spare = page->spare;
    else
        page = VP_NEW(arena, struct vp_free_page);
    if (set->pages == set->capacity) {
        uint32_t capacity = set->capacity ? 2 * set->capacity : FIRST_PAGES;
        struct vp_free_page **more = VP_NEW_ARRAY(arena, capacity, struct vp_free_page *);
        if (set->pages)
            memcpy(more, set->page, set->pages * sizeof *more);
        set->page = more;
        set->capacity = capacity;
    }
    memmove(&set->page[index + 1], &set->page[index], (set->pages - index) * sizeof *set->page);
    set->page[index] = page;
    set->pages++;
    page->count = 0;
    return page;
}

/* Moves the second half of a full page to a new one behind it. */
static void split(struct vp_arena *arena, struct vp_free_set *set, uint32_t index) {
    struct vp_free_page *page = set->page[index], *behind = new_page(arena, set, index + 1);
    behind->count = VP_FREE_PAGE / 2;
    page->count = VP_FREE_PAGE - behind->count;
    memcpy(behind->at, &page->at[page->count], behind->count * sizeof *behind->at);
}

void vp_free_set_add(struct vp_arena *arena, struct vp_free_set *set, struct vp_free_place place) {
    uint32_t index = page_of(set, place.size, place.address);
    if (set->pages == 0)
        new_page(arena, set, 0);
    else if (index == set->pages) /* behind all others */
        index--;
    if (set->page[index]->count == VP_FREE_PAGE) {
        split(arena, set, index);
        const struct vp_free_page *front = set->page[index];
        index += in_front(&front->at[front->count - 1], place.size, place.address);
    }
    struct vp_free_page *page = set->page[index];
    uint32_t i = page->count > 0 ? before(page, place.size, place.address) : 0;
    memmove(&page->at[i + 1], &page->at[i], (page->count - i) * sizeof *page->at);
    page->at[i] = place;
    page->count++;
}

void vp_free_set_remove(struct vp_free_set *set, uint64_t size, uint64_t address) {
    uint32_t index = page_of(set, size, address);
    struct vp_free_page *page = set->page[index];
    uint32_t i = before(page, size, address);
    page->count--;
    memmove(&page->at[i], &page->at[i + 1], (page->count - i) * sizeof *page->at);
    if (page->count > 0)
        return;
    set->pages--;
    memmove(&set->page[index], &set->page[index + 1], (set->pages - index) * sizeof *set->page);
    page->spare = set->spare;
    set->spare = page;
}

uint32_t vp_free_set_from(const struct vp_free_set *set, uint64_t size, uint64_t address) {
    uint32_t index = page_of(set, size, address);
    if (index == set->pages)
        return 0;
    return set->page[index]->at[before(set->page[index], size, address)].block;
}

uint32_t vp_free_set_below(const struct vp_free_set *set, uint64_t size, uint64_t address) {
    uint32_t index = page_of(set, size, address);
    if (index < set->pages) {
        uint32_t i = before(set->page[index], size, address);
        if (i > 0)
            return set->page[index]->at[i - 1].block;
    }
    if (index == 0)
        return 0;
    return set->page[index - 1]->at[set->page[index - 1]->count - 1].block;
}
