/* A line of allocator settings, then any events through the caching allocator. Whatever comes, its
 * figures stay in order, and when everything is given back nothing is left. */
#include <stdlib.h>
#include <string.h>

#include "planner/timeline/allocator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { IDS = 64, RECORD = 4 };

static void demand(bool holds) {
    if (!holds)
        abort();
}

/* kind, stream, id, and a size from bytes to some hundred MiB. */
static struct vp_event event_of(const uint8_t *record) {
    return (struct vp_event){.kind = record[0] % (VP_EVENT_KINDS + 1),
                             .stream = record[1] % 3,
                             .id = record[2] % IDS,
                             .bytes = (uint64_t)record[3] << (record[0] / 8)};
}

static void check(const struct vp_allocator *allocator, const struct vp_allocator_settings *set) {
    struct vp_allocator_stats s = vp_allocator_stats(allocator);
    demand(s.reserved.now >= s.active.now && s.active.now >= s.allocated.now);
    demand(s.reserved.peak >= s.reserved.now && s.largest_free <= s.reserved.now);
    demand(s.reserved.peak <= set->device_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *line = memchr(data, '\n', size);
    size_t n = line ? (size_t)(line - data) : size;
    struct vp_arena arena = {0};
    struct vp_allocator_settings settings = vp_allocator_defaults();
    struct vp_allocator_notes notes;
    const char *text = vp_arena_text(&arena, (const char *)data, n);

    settings.device_bytes = UINT64_C(1) << 30;
    bool fine = vp_allocator_parse(&arena, &settings, &notes, text, true);
    for (uint32_t i = 0; i < notes.count; i++)
        demand(notes.item[i].key && notes.item[i].text);
    demand(fine || notes.count > 0);
    struct vp_allocator *allocator = vp_allocator_new(&arena, &settings);
    for (size_t at = n + 1; fine && at + RECORD <= size; at += RECORD) {
        struct vp_event event = event_of(data + at);
        vp_allocator_apply(allocator, &event);
        check(allocator, &settings);
    }
    for (uint32_t id = 0; id < IDS; id++)
        vp_allocator_apply(allocator, &(struct vp_event){.kind = VP_EVENT_GIVE, .id = id});
    vp_allocator_apply(allocator, &(struct vp_event){.kind = VP_EVENT_EMPTY});
    struct vp_allocator_stats s = vp_allocator_stats(allocator);
    demand(s.active.now == 0 && s.requested.now == 0 && s.reserved.now == 0);
    vp_arena_free(&arena);
    return 0;
}
