/* The caching allocator's model: rule by rule with figures worked out by hand, and what must hold
 * for any trace. With arguments it is the C side of tests/accuracy/allocator.t instead:
 * test_allocator SETTINGS DEVICE OTHER FRACTION_PPB replays "kind,stream,id,bytes" lines of
 * standard input and prints the figures. */
#include "tests/unit/fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/timeline/allocator.h"

static const uint64_t KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30;

struct bed {
    struct vp_arena arena;
    struct vp_allocator_settings settings;
    struct vp_allocator *allocator;
};

/* conf: as in PYTORCH_ALLOC_CONF. The arena stays where the bed is: it must not be copied. */
static void begin_with(struct bed *bed, const char *conf, uint64_t device, uint64_t other,
                       uint64_t fraction) {
    struct vp_allocator_notes notes;
    *bed = (struct bed){.settings = vp_allocator_defaults()};
    bed->settings.device_bytes = device;
    bed->settings.other_bytes = other;
    bed->settings.fraction_ppb = fraction;
    assert_true(vp_allocator_parse(&bed->arena, &bed->settings, &notes, conf, true));
    bed->allocator = vp_allocator_new(&bed->arena, &bed->settings);
}

static void begin(struct bed *bed, const char *conf) { begin_with(bed, conf, 0, 0, 0); }

static void end(struct bed *bed) { vp_arena_free(&bed->arena); }

static enum vp_replay apply(struct bed *bed, enum vp_event_kind kind, uint8_t stream, uint32_t id,
                            uint64_t bytes) {
    struct vp_event event = {.kind = (uint8_t)kind, .stream = stream, .id = id, .bytes = bytes};
    return vp_allocator_apply(bed->allocator, &event);
}

static void take(struct bed *bed, uint32_t id, uint64_t bytes) {
    assert_int_equal(apply(bed, VP_EVENT_TAKE, 0, id, bytes), VP_REPLAY_OK);
}

static void give(struct bed *bed, uint32_t id) {
    assert_int_equal(apply(bed, VP_EVENT_GIVE, 0, id, 0), VP_REPLAY_OK);
}

static struct vp_allocator_stats stats(const struct bed *bed) {
    return vp_allocator_stats(bed->allocator);
}

static uint64_t address(const struct bed *bed, uint32_t id) {
    uint64_t at, size;
    assert_true(vp_allocator_find(bed->allocator, id, &at, &size));
    return at;
}

static uint64_t size_of(const struct bed *bed, uint32_t id) {
    uint64_t at, size;
    assert_true(vp_allocator_find(bed->allocator, id, &at, &size));
    return size;
}

/* ---- rules ---- */

static void sizes_are_rounded(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, "");
    take(&bed, 0, 1);
    take(&bed, 1, 512);
    take(&bed, 2, 513);
    take(&bed, 3, 0); /* nothing is allocated for an empty tensor */
    assert_int_equal(size_of(&bed, 0), 512);
    assert_int_equal(size_of(&bed, 1), 512);
    assert_int_equal(size_of(&bed, 2), 1024);
    assert_int_equal(stats(&bed).allocated.now, 2048);
    assert_int_equal(stats(&bed).requested.now, 1 + 512 + 513);
    assert_int_equal(stats(&bed).reserved.now, 2 * MIB);
    give(&bed, 3);
    end(&bed);
}

static void roundup_power2_divisions(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, "roundup_power2_divisions:4");
    /* four steps between 1024 and 2048 KiB */
    assert_int_equal(vp_allocator_round(&bed.settings, 1200 * KIB), 1280 * KIB);
    assert_int_equal(vp_allocator_round(&bed.settings, 1024 * KIB), 1024 * KIB);
    assert_int_equal(vp_allocator_round(&bed.settings, 1793 * KIB), 2048 * KIB);
    /* up to 512 * 4 bytes as without it */
    assert_int_equal(vp_allocator_round(&bed.settings, 2048), 2048);
    assert_int_equal(vp_allocator_round(&bed.settings, 1600), 2048);
    assert_int_equal(vp_allocator_round(&bed.settings, 2049), 2560);
    end(&bed);
    begin(&bed, "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
    assert_int_equal(vp_allocator_round(&bed.settings, 3000000), 3000320); /* 256: 1 step */
    assert_int_equal(vp_allocator_round(&bed.settings, 300 * MIB + 1), 300 * MIB + 512);
    assert_int_equal(vp_allocator_round(&bed.settings, 513 * MIB), 768 * MIB);   /* 2 steps */
    assert_int_equal(vp_allocator_round(&bed.settings, 1100 * MIB), 1280 * MIB); /* 4 */
    assert_int_equal(vp_allocator_round(&bed.settings, 2049 * MIB), 2304 * MIB); /* 8 */
    end(&bed);
}

static void segments_by_size(void **state) {
    (void)state;
    const struct {
        uint64_t bytes, reserved;
    } cases[] = {
        {1, 2 * MIB},
        {1 * MIB, 2 * MIB},
        {1 * MIB + 1, 20 * MIB},
        {10 * MIB - 512, 20 * MIB},
        {10 * MIB, 10 * MIB},
        {10 * MIB + 1, 12 * MIB},
        {33 * MIB, 34 * MIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bed bed;
        begin(&bed, "");
        take(&bed, 0, cases[i].bytes);
        assert_int_equal(stats(&bed).reserved.now, cases[i].reserved);
        assert_int_equal(stats(&bed).segments.now, 1);
        end(&bed);
    }
    struct bed bed;
    begin(&bed, "large_segment_size_mb:12");
    take(&bed, 0, 2 * MIB);
    assert_int_equal(stats(&bed).reserved.now, 12 * MIB);
    end(&bed);
}

static void small_and_large_pools(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, "");
    take(&bed, 0, 5 * MIB); /* 15 MiB of its segment stay free */
    take(&bed, 1, 1 * MIB); /* but a small request does not get them */
    assert_int_equal(stats(&bed).reserved.now, 22 * MIB);
    take(&bed, 2, 14 * MIB); /* the rest is taken whole: 1 MiB would not be worth a split */
    assert_int_equal(size_of(&bed, 2), 15 * MIB);
    assert_int_equal(stats(&bed).reserved.now, 22 * MIB);
    assert_int_equal(stats(&bed).allocated.now, 21 * MIB);
    end(&bed);
}

static void split_rules(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, "");
    take(&bed, 0, 2 * MIB);
    take(&bed, 1, 17 * MIB - 512); /* leaves 1 MiB + 512: split */
    assert_int_equal(size_of(&bed, 1), 17 * MIB - 512);
    assert_int_equal(stats(&bed).largest_free, MIB + 512);
    take(&bed, 2, 1 * MIB - 512); /* small pool: 1 MiB + 512 left; then all but 512: both split */
    take(&bed, 3, 1 * MIB);
    assert_int_equal(size_of(&bed, 3), 1 * MIB);
    assert_int_equal(stats(&bed).free_blocks, 2);
    take(&bed, 4, 1);
    assert_int_equal(stats(&bed).free_blocks, 1);
    assert_int_equal(stats(&bed).segments.now, 2);
    end(&bed);
}

static void best_fit_takes_the_smallest_then_the_lowest(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, "");
    take(&bed, 0, 30 * MIB);
    take(&bed, 1, 24 * MIB);
    take(&bed, 2, 24 * MIB);
    take(&bed, 3, 40 * MIB);
    uint64_t low = address(&bed, 1);
    for (uint32_t id = 4; id > 0; id--)
        give(&bed, id - 1);
    take(&bed, 4, 23 * MIB + 512); /* 24 fits best, the lower one of two */
    assert_int_equal(address(&bed, 4), low);
    take(&bed, 5, 26 * MIB); /* cut from 30: 4 MiB are left */
    assert_int_equal(stats(&bed).free_blocks, 3);
    assert_int_equal(stats(&bed).reserved.now, 118 * MIB);
    assert_int_equal(stats(&bed).driver_takes, 4);
    end(&bed);
}

static void freed_neighbours_merge(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, "");
    for (uint32_t id = 0; id < 4; id++)
        take(&bed, id, 5 * MIB);
    assert_int_equal(stats(&bed).reserved.now, 20 * MIB);
    assert_int_equal(stats(&bed).free_blocks, 0);
    give(&bed, 0);
    give(&bed, 2);
    assert_int_equal(stats(&bed).free_blocks, 2);
    assert_int_equal(stats(&bed).largest_free, 5 * MIB);
    give(&bed, 1); /* with both sides */
    assert_int_equal(stats(&bed).free_blocks, 1);
    assert_int_equal(stats(&bed).largest_free, 15 * MIB);
    take(&bed, 4, 15 * MIB);
    assert_int_equal(stats(&bed).reserved.now, 20 * MIB);
    give(&bed, 3);
    give(&bed, 4);
    assert_int_equal(stats(&bed).largest_free, 20 * MIB);
    assert_int_equal(apply(&bed, VP_EVENT_EMPTY, 0, 0, 0), VP_REPLAY_OK);
    assert_int_equal(stats(&bed).reserved.now, 0);
    assert_int_equal(stats(&bed).segments.now, 0);
    assert_int_equal(stats(&bed).reserved.peak, 20 * MIB);
    end(&bed);
}

static void a_segment_in_use_stays_when_the_cache_is_emptied(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, "");
    take(&bed, 0, 5 * MIB);
    take(&bed, 1, 5 * MIB);
    take(&bed, 2, 64 * MIB);
    give(&bed, 1);
    give(&bed, 2);
    apply(&bed, VP_EVENT_EMPTY, 0, 0, 0);
    assert_int_equal(stats(&bed).reserved.now, 20 * MIB);
    end(&bed);
}

static void blocks_stay_on_their_stream(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, "");
    take(&bed, 0, 64 * MIB);
    give(&bed, 0);
    assert_int_equal(apply(&bed, VP_EVENT_TAKE, 1, 1, 64 * MIB), VP_REPLAY_OK);
    assert_int_equal(stats(&bed).reserved.now, 128 * MIB);
    take(&bed, 2, 64 * MIB);
    assert_int_equal(stats(&bed).reserved.now, 128 * MIB);
    end(&bed);
}

static void a_block_used_elsewhere_waits(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, "");
    take(&bed, 0, 64 * MIB);
    assert_int_equal(apply(&bed, VP_EVENT_USE, 3, 0, 0), VP_REPLAY_OK);
    assert_int_equal(apply(&bed, VP_EVENT_USE, 0, 0, 0), VP_REPLAY_OK); /* its own: nothing */
    give(&bed, 0);
    assert_int_equal(stats(&bed).allocated.now, 0);
    assert_int_equal(stats(&bed).active.now, 64 * MIB);
    take(&bed, 1, 64 * MIB); /* cannot have it */
    assert_int_equal(stats(&bed).reserved.now, 128 * MIB);
    apply(&bed, VP_EVENT_SYNC, 2, 0, 0);
    assert_int_equal(stats(&bed).active.now, 128 * MIB);
    apply(&bed, VP_EVENT_SYNC, 3, 0, 0);
    assert_int_equal(stats(&bed).active.now, 64 * MIB);
    take(&bed, 2, 64 * MIB);
    assert_int_equal(stats(&bed).reserved.now, 128 * MIB);
    end(&bed);
}

static void a_miss_gives_the_cache_back(void **state) {
    (void)state;
    struct bed bed;
    begin_with(&bed, "", 100 * MIB, 20 * MIB, 0);
    take(&bed, 0, 40 * MIB);
    take(&bed, 1, 30 * MIB);
    give(&bed, 0);
    take(&bed, 2, 48 * MIB); /* 70 reserved, 80 are there: the free 40 go back first */
    assert_int_equal(stats(&bed).reserved.now, 78 * MIB);
    assert_int_equal(stats(&bed).retries, 1);
    assert_int_equal(apply(&bed, VP_EVENT_TAKE, 0, 3, 4 * MIB), VP_REPLAY_OUT_OF_MEMORY);
    assert_int_equal(stats(&bed).failures, 1);
    assert_int_equal(stats(&bed).failed_bytes, 4 * MIB);
    assert_int_equal(stats(&bed).failed_at, 4);
    give(&bed, 3); /* what was not made may be given back */
    assert_int_equal(stats(&bed).allocated.now, 78 * MIB);
    end(&bed);
}

static void a_wait_ends_when_memory_runs_out(void **state) {
    (void)state;
    struct bed bed;
    begin_with(&bed, "", 100 * MIB, 0, 0);
    take(&bed, 0, 64 * MIB);
    apply(&bed, VP_EVENT_USE, 1, 0, 0);
    give(&bed, 0);
    take(&bed, 1, 80 * MIB);
    assert_int_equal(stats(&bed).active.now, 80 * MIB);
    assert_int_equal(stats(&bed).reserved.now, 80 * MIB);
    end(&bed);
}

static void the_fraction_is_a_limit(void **state) {
    (void)state;
    struct bed bed;
    begin_with(&bed, "per_process_memory_fraction:0.5", 100 * MIB, 0, 0);
    take(&bed, 0, 40 * MIB);
    assert_int_equal(apply(&bed, VP_EVENT_TAKE, 0, 1, 12 * MIB), VP_REPLAY_OUT_OF_MEMORY);
    take(&bed, 2, 10 * MIB);
    end(&bed);
}

static void blocks_above_max_split_size(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, "max_split_size_mb:32");
    take(&bed, 0, 60 * MIB);
    give(&bed, 0);
    take(&bed, 1, 20 * MIB); /* not from the oversize block */
    assert_int_equal(stats(&bed).reserved.now, 80 * MIB);
    take(&bed, 2, 40 * MIB); /* 20 MiB less than the block: too far off */
    assert_int_equal(stats(&bed).reserved.now, 120 * MIB);
    take(&bed, 3, 41 * MIB); /* less than 20: the whole block */
    assert_int_equal(size_of(&bed, 3), 60 * MIB);
    end(&bed);
    begin(&bed, "max_split_size_mb:32,max_non_split_rounding_mb:50");
    take(&bed, 0, 80 * MIB);
    give(&bed, 0);
    take(&bed, 1, 33 * MIB);
    assert_int_equal(size_of(&bed, 1), 80 * MIB);
    end(&bed);
}

static void oversize_blocks_go_back_first(void **state) {
    (void)state;
    struct bed bed;
    begin_with(&bed, "max_split_size_mb:32", 200 * MIB, 0, 0);
    take(&bed, 0, 40 * MIB);
    take(&bed, 1, 50 * MIB);
    take(&bed, 2, 60 * MIB);
    take(&bed, 3, 22 * MIB);
    for (uint32_t id = 0; id < 4; id++)
        give(&bed, id);
    /* no single block is large enough: 60 and 50 go, 40 and 22 stay cached */
    take(&bed, 4, 90 * MIB);
    assert_int_equal(stats(&bed).reserved.now, (40 + 22 + 90) * MIB);
    assert_int_equal(stats(&bed).retries, 0);
    /* 90 is 25 more than 65, too far off, and nothing else fits: it goes back alone */
    give(&bed, 4);
    take(&bed, 5, 65 * MIB);
    assert_int_equal(stats(&bed).reserved.now, (40 + 22 + 66) * MIB);
    end(&bed);
}

static void garbage_collection_frees_the_old(void **state) {
    (void)state;
    /* allowed 100 MiB, collected from 60 */
    struct bed bed;
    begin_with(&bed, "garbage_collection_threshold:0.6", 100 * MIB, 0, VP_BILLION);
    take(&bed, 0, 20 * MIB);
    take(&bed, 1, 22 * MIB);
    take(&bed, 2, 24 * MIB);
    give(&bed, 0);                 /* after 3 searches */
    take(&bed, 3, 10 * MIB);       /* splits the block of 20: that one cannot go back */
    give(&bed, 1);                 /* after 4 */
    take(&bed, 4, 12 * MIB - 512); /* splits 22 */
    give(&bed, 4);                 /* whole again, since 5 searches */
    give(&bed, 2);                 /* too */
    /* 66 reserved; nothing has 25: ages are 1 and 1, both go, 20 stay */
    take(&bed, 5, 26 * MIB);
    assert_int_equal(stats(&bed).reserved.now, (20 + 26) * MIB);
    assert_int_equal(stats(&bed).retries, 0);
    end(&bed);
}

static void a_range_grows_by_pages(void **state) {
    (void)state;
    struct bed bed;
    begin_with(&bed, "expandable_segments:True", GIB, 0, 0);
    take(&bed, 0, 30 * MIB); /* two pages of 20 */
    assert_int_equal(stats(&bed).reserved.now, 40 * MIB);
    assert_int_equal(stats(&bed).segments.now, 1);
    take(&bed, 1, 15 * MIB); /* 10 are free at the end: one page more, from there on */
    assert_int_equal(stats(&bed).reserved.now, 60 * MIB);
    assert_int_equal(address(&bed, 1), address(&bed, 0) + 30 * MIB);
    take(&bed, 2, 1 * MIB); /* the small pool has its own, in pages of 2 */
    assert_int_equal(stats(&bed).reserved.now, 62 * MIB);
    assert_int_equal(stats(&bed).segments.now, 2);
    take(&bed, 3, 14 * MIB + 512 * KIB); /* the rest is split though it is below 1 MiB */
    assert_int_equal(size_of(&bed, 3), 14 * MIB + 512 * KIB);
    assert_int_equal(stats(&bed).reserved.now, 62 * MIB);
    end(&bed);
}

static void whole_pages_are_unmapped(void **state) {
    (void)state;
    struct bed bed;
    begin_with(&bed, "expandable_segments:True", GIB, 0, 0);
    take(&bed, 0, 30 * MIB);
    take(&bed, 1, 65 * MIB); /* 30..95 of 100 */
    take(&bed, 2, 5 * MIB);
    give(&bed, 1);
    apply(&bed, VP_EVENT_EMPTY, 0, 0, 0); /* pages 40..60 and 60..80 */
    assert_int_equal(stats(&bed).reserved.now, 60 * MIB);
    assert_int_equal(stats(&bed).free_blocks, 2); /* 30..40, 80..95 */
    take(&bed, 3, 40 * MIB);                      /* 30..70: the hole is mapped again first */
    assert_int_equal(address(&bed, 3), address(&bed, 0) + 30 * MIB);
    assert_int_equal(stats(&bed).reserved.now, 100 * MIB);
    give(&bed, 0);
    give(&bed, 2);
    give(&bed, 3);
    apply(&bed, VP_EVENT_EMPTY, 0, 0, 0);
    assert_int_equal(stats(&bed).reserved.now, 0);
    assert_int_equal(stats(&bed).segments.now, 0);
    end(&bed);
}

static void a_mapping_that_fails_is_out_of_memory(void **state) {
    (void)state;
    struct bed bed;
    begin_with(&bed, "expandable_segments:True", 70 * MIB, 0, 0);
    take(&bed, 0, 30 * MIB);
    take(&bed, 1, 10 * MIB);
    give(&bed, 0);
    /* 30 free in front, but 20 new pages are all there is, and 0..20 give 20 more */
    take(&bed, 2, 38 * MIB);
    assert_int_equal(stats(&bed).retries, 1);
    assert_int_equal(stats(&bed).reserved.now, 60 * MIB);
    assert_int_equal(apply(&bed, VP_EVENT_TAKE, 0, 3, 40 * MIB), VP_REPLAY_OUT_OF_MEMORY);
    assert_int_equal(apply(&bed, VP_EVENT_TAKE, 0, 4, UINT64_MAX), VP_REPLAY_OUT_OF_MEMORY);
    end(&bed);
}

static void fragmentation_at_the_reserved_peak(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, "");
    take(&bed, 0, 21 * MIB); /* gets the segment of 22 whole */
    take(&bed, 1, 3 * MIB);  /* 42 */
    struct vp_allocator_stats s = stats(&bed);
    assert_int_equal(vp_allocator_fragmentation(&s), (42 - 22 - 3) * MIB);
    take(&bed, 2, 10 * MIB); /* the peak stands, more of it is used */
    s = stats(&bed);
    assert_int_equal(vp_allocator_fragmentation(&s), (42 - 22 - 3 - 10) * MIB);
    give(&bed, 0);
    give(&bed, 1);
    s = stats(&bed);
    assert_int_equal(vp_allocator_fragmentation(&s), (42 - 22 - 3 - 10) * MIB);
    end(&bed);
}

static void bad_events_are_refused(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, "");
    assert_int_equal(apply(&bed, VP_EVENT_GIVE, 0, 0, 0), VP_REPLAY_BAD_EVENT);
    assert_int_equal(apply(&bed, VP_EVENT_USE, 1, 7, 0), VP_REPLAY_BAD_EVENT);
    take(&bed, 0, 1);
    assert_int_equal(apply(&bed, VP_EVENT_TAKE, 0, 0, 1), VP_REPLAY_BAD_EVENT);
    assert_int_equal(apply(&bed, VP_EVENT_TAKE, VP_STREAMS, 1, 1), VP_REPLAY_BAD_EVENT);
    assert_int_equal(apply(&bed, VP_EVENT_TAKE, 0, UINT32_MAX, 1), VP_REPLAY_BAD_EVENT);
    assert_int_equal(apply(&bed, VP_EVENT_KINDS, 0, 0, 0), VP_REPLAY_BAD_EVENT);
    give(&bed, 0);
    assert_int_equal(apply(&bed, VP_EVENT_GIVE, 0, 0, 0), VP_REPLAY_BAD_EVENT);
    uint64_t at, size;
    assert_false(vp_allocator_find(bed.allocator, 0, &at, &size));
    end(&bed);
}

/* ---- any trace ---- */

enum { IDS = 400, STEPS = 6000 };

static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Small, middle and large sizes, with repeats. */
static uint64_t random_size(uint32_t *seed) {
    uint32_t kind = next_random(seed) % 4, n = 1 + next_random(seed) % 64;
    if (kind == 0)
        return n * 777;
    if (kind == 1)
        return n * 37 * KIB;
    return kind == 2 ? n * 333 * KIB : n * MIB;
}

struct place {
    uint64_t at, size;
};

static int by_address(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Live storages do not overlap and sum up to what is allocated. */
static void check_places(const struct bed *bed) {
    struct place places[IDS];
    size_t n = 0;
    uint64_t sum = 0;
    for (uint32_t id = 0; id < IDS; id++)
        if (vp_allocator_find(bed->allocator, id, &places[n].at, &places[n].size))
            sum += places[n++].size;
    qsort(places, n, sizeof *places, by_address);
    for (size_t i = 1; i < n; i++)
        assert_true(places[i - 1].at + places[i - 1].size <= places[i].at);
    assert_int_equal(sum, stats(bed).allocated.now);
}

static void check_figures(const struct vp_allocator_stats *s, const struct bed *bed) {
    assert_true(s->reserved.now >= s->active.now);
    assert_true(s->active.now >= s->allocated.now);
    assert_true(s->active.now >= s->requested.now);
    assert_true(s->reserved.peak >= s->reserved.now && s->active.peak >= s->active.now);
    assert_true(s->allocated.peak >= s->allocated.now && s->requested.peak >= s->requested.now);
    assert_true(s->allocated_at_reserved_peak <= s->allocated.peak);
    assert_true(s->largest_free <= s->reserved.now - s->active.now);
    if (bed->settings.device_bytes)
        assert_true(s->reserved.peak <= bed->settings.device_bytes - bed->settings.other_bytes);
}

static void run_trace(const char *conf, uint64_t device, uint32_t seed) {
    struct bed bed;
    begin_with(&bed, conf, device, 0, device ? VP_BILLION : 0);
    bool live[IDS] = {false};
    for (int i = 0; i < STEPS; i++) {
        uint32_t id = next_random(&seed) % IDS, what = next_random(&seed) % 100;
        uint8_t stream = (uint8_t)(next_random(&seed) % 3);
        enum vp_replay result;
        if (what == 0) {
            result = apply(&bed, VP_EVENT_SYNC, stream, 0, 0);
        } else if (what == 1 && i % 7 == 0) {
            result = apply(&bed, VP_EVENT_EMPTY, 0, 0, 0);
        } else if (live[id]) {
            result = apply(&bed, what < 20 ? VP_EVENT_USE : VP_EVENT_GIVE, stream, id, 0);
            live[id] = what < 20;
        } else {
            result = apply(&bed, VP_EVENT_TAKE, stream, id, random_size(&seed));
            live[id] = true;
        }
        assert_true(result == VP_REPLAY_OK || (device && result == VP_REPLAY_OUT_OF_MEMORY));
        struct vp_allocator_stats s = stats(&bed);
        check_figures(&s, &bed);
        if (i % 50 == 0)
            check_places(&bed);
    }
    for (uint32_t id = 0; id < IDS; id++)
        if (live[id])
            assert_int_equal(apply(&bed, VP_EVENT_GIVE, 0, id, 0), VP_REPLAY_OK);
    for (uint8_t stream = 0; stream < 3; stream++)
        apply(&bed, VP_EVENT_SYNC, stream, 0, 0);
    struct vp_allocator_stats s = stats(&bed);
    assert_int_equal(s.allocated.now, 0);
    assert_int_equal(s.requested.now, 0);
    assert_int_equal(s.active.now, 0);
    if (!bed.settings.expandable) /* holes may divide what is free of an expandable segment */
        assert_int_equal(s.free_blocks, s.segments.now);
    apply(&bed, VP_EVENT_EMPTY, 0, 0, 0);
    s = stats(&bed);
    assert_int_equal(s.reserved.now, 0);
    assert_int_equal(s.free_blocks, 0);
    if (!bed.settings.expandable) /* a range that never got memory stays */
        assert_int_equal(s.segments.now, 0);
    end(&bed);
}

static void any_trace(void **state) {
    (void)state;
    static const char *const confs[] = {
        "",
        "roundup_power2_divisions:8",
        "max_split_size_mb:21",
        "max_split_size_mb:40,garbage_collection_threshold:0.5",
        "garbage_collection_threshold:0.7,large_segment_size_mb:12",
        "expandable_segments:True",
        "expandable_segments:True,large_segment_size_mb:13,roundup_power2_divisions:[1:4,>:2]",
    };
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++)
        for (uint32_t seed = 1; seed <= 3; seed++) {
            run_trace(confs[i], 0, seed);
            run_trace(confs[i], 3 * GIB, seed);
            run_trace(confs[i], 700 * MIB, seed);
        }
}

/* ---- the text of settings ---- */

static bool parse(struct vp_arena *arena, struct vp_allocator_settings *out,
                  struct vp_allocator_notes *notes, const char *text) {
    *out = vp_allocator_defaults();
    return vp_allocator_parse(arena, out, notes, text, true);
}

static void settings_are_read(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    struct vp_allocator_settings s;
    struct vp_allocator_notes notes;
    assert_true(parse(&arena, &s, &notes,
                      " max_split_size_mb : 128, garbage_collection_threshold:0.85,"
                      "max_non_split_rounding_mb:30,expandable_segments:True,backend:native,"
                      "per_process_memory_fraction:1.0,large_segment_size_mb:25 ,"));
    assert_int_equal(s.max_split_bytes, 128 * MIB);
    assert_int_equal(s.collect_ppb, 850000000);
    assert_int_equal(s.max_rounding_bytes, 30 * MIB);
    assert_int_equal(s.large_segment_bytes, 25 * MIB);
    assert_int_equal(s.fraction_ppb, VP_BILLION);
    assert_true(s.expandable);
    assert_int_equal(notes.count, 0);
    assert_true(
        parse(&arena, &s, &notes, "roundup_power2_divisions:[128:8,256:16,512:1,2048:8,>:2]"));
    const uint32_t expected[VP_ROUNDUP_INTERVALS] = {8,  8, 8, 8, 8, 8, 8, 8,
                                                     16, 1, 0, 8, 2, 2, 2, 2};
    assert_memory_equal(s.divisions, expected, sizeof expected);
    assert_true(parse(&arena, &s, &notes, ""));
    assert_int_equal(s.max_split_bytes, VP_NO_SPLIT_LIMIT);
    vp_arena_free(&arena);
}

static void wrong_settings_are_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *key;
        enum vp_allocator_fault fault;
    } cases[] = {
        {"expandable_segment:True", "expandable_segment", VP_ALLOC_UNKNOWN},
        {"max_split_size_mb:64,foo:[1:2,3:4],expandable_segments:True", "foo", VP_ALLOC_UNKNOWN},
        {"max_split_size_mb", "max_split_size_mb", VP_ALLOC_BAD_VALUE},
        {"max_split_size_mb:", "max_split_size_mb", VP_ALLOC_BAD_VALUE},
        {"max_split_size_mb:19", "max_split_size_mb", VP_ALLOC_BAD_VALUE},
        {"max_split_size_mb:20,large_segment_size_mb:25", "max_split_size_mb", VP_ALLOC_BAD_VALUE},
        {"max_split_size_mb:64 128", "max_split_size_mb", VP_ALLOC_BAD_VALUE},
        {"large_segment_size_mb:10", "large_segment_size_mb", VP_ALLOC_BAD_VALUE},
        {"max_non_split_rounding_mb:5", "max_non_split_rounding_mb", VP_ALLOC_BAD_VALUE},
        {"garbage_collection_threshold:1.0", "garbage_collection_threshold", VP_ALLOC_BAD_VALUE},
        {"garbage_collection_threshold:0.x", "garbage_collection_threshold", VP_ALLOC_BAD_VALUE},
        {"per_process_memory_fraction:1.01", "per_process_memory_fraction", VP_ALLOC_BAD_VALUE},
        {"per_process_memory_fraction:0", "per_process_memory_fraction", VP_ALLOC_BAD_VALUE},
        {"roundup_power2_divisions:3", "roundup_power2_divisions", VP_ALLOC_BAD_VALUE},
        {"roundup_power2_divisions:[100:2,>:4]", "roundup_power2_divisions", VP_ALLOC_BAD_VALUE},
        {"roundup_power2_divisions:[64:8", "roundup_power2_divisions", VP_ALLOC_BAD_VALUE},
        {"roundup_power2_divisions:[64:8]x", "roundup_power2_divisions", VP_ALLOC_BAD_VALUE},
        {"expandable_segments:true", "expandable_segments", VP_ALLOC_BAD_VALUE},
        {"backend:cudaMallocAsync", "backend", VP_ALLOC_UNMODELLED},
        {"backend:mine", "backend", VP_ALLOC_BAD_VALUE},
    };
    struct vp_arena arena = {0};
    struct vp_allocator_settings s;
    struct vp_allocator_notes notes;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_false(parse(&arena, &s, &notes, cases[i].text));
        assert_int_equal(notes.count, 1);
        assert_string_equal(notes.item[0].key, cases[i].key);
        assert_int_equal(notes.item[0].fault, cases[i].fault);
    }
    assert_true(parse(&arena, &s, &notes, "release_lock_on_hipmalloc:True"));
    assert_int_equal(notes.item[0].fault, VP_ALLOC_NO_EFFECT);
    s = vp_allocator_defaults(); /* a build without them */
    assert_true(vp_allocator_parse(&arena, &s, &notes, "expandable_segments:True", false));
    assert_false(s.expandable);
    assert_int_equal(notes.item[0].fault, VP_ALLOC_NO_EFFECT);
    vp_arena_free(&arena);
}

static void many_faults_do_not_overflow(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    struct vp_allocator_settings s;
    struct vp_allocator_notes notes;
    char text[400] = "";
    for (int i = 0; i < 60; i++)
        strcat(text, "a:1,");
    assert_false(parse(&arena, &s, &notes, text));
    assert_int_equal(notes.count, VP_ALLOCATOR_NOTES);
    vp_arena_free(&arena);
}

/* ---- the other side of tests/accuracy/allocator.t ---- */

static int replay_input(char **argv) {
    struct vp_arena arena = {0};
    struct vp_allocator_settings settings = vp_allocator_defaults();
    struct vp_allocator_notes notes;
    char line[128];
    settings.device_bytes = strtoull(argv[2], NULL, 10);
    settings.other_bytes = strtoull(argv[3], NULL, 10);
    settings.fraction_ppb = strtoull(argv[4], NULL, 10);
    if (!vp_allocator_parse(&arena, &settings, &notes, argv[1], true))
        return 2;
    struct vp_allocator *allocator = vp_allocator_new(&arena, &settings);
    while (fgets(line, sizeof line, stdin)) {
        unsigned kind, stream;
        uint32_t id;
        uint64_t bytes;
        if (sscanf(line, "%u,%u,%" SCNu32 ",%" SCNu64, &kind, &stream, &id, &bytes) != 4)
            return 2;
        struct vp_event event = {
            .kind = (uint8_t)kind, .stream = (uint8_t)stream, .id = id, .bytes = bytes};
        if (vp_allocator_apply(allocator, &event) == VP_REPLAY_BAD_EVENT)
            return 3;
    }
    struct vp_allocator_stats s = vp_allocator_stats(allocator);
    const struct vp_gauge gauges[] = {s.allocated, s.requested, s.active, s.reserved};
    static const char *const names[] = {"allocated", "requested", "active", "reserved"};
    for (size_t i = 0; i < 4; i++)
        printf("%s %" PRIu64 " %" PRIu64 "\n", names[i], gauges[i].now, gauges[i].peak);
    printf("segments %" PRIu64 "\nfree_blocks %" PRIu64 "\nlargest_free %" PRIu64 "\n",
           s.segments.now, s.free_blocks, s.largest_free);
    printf("retries %" PRIu64 "\nfailures %" PRIu64 "\nfragmentation %" PRIu64 "\n", s.retries,
           s.failures, vp_allocator_fragmentation(&s));
    vp_arena_free(&arena);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_rounded),
        cmocka_unit_test(roundup_power2_divisions),
        cmocka_unit_test(segments_by_size),
        cmocka_unit_test(small_and_large_pools),
        cmocka_unit_test(split_rules),
        cmocka_unit_test(best_fit_takes_the_smallest_then_the_lowest),
        cmocka_unit_test(freed_neighbours_merge),
        cmocka_unit_test(a_segment_in_use_stays_when_the_cache_is_emptied),
        cmocka_unit_test(blocks_stay_on_their_stream),
        cmocka_unit_test(a_block_used_elsewhere_waits),
        cmocka_unit_test(a_miss_gives_the_cache_back),
        cmocka_unit_test(a_wait_ends_when_memory_runs_out),
        cmocka_unit_test(the_fraction_is_a_limit),
        cmocka_unit_test(blocks_above_max_split_size),
        cmocka_unit_test(oversize_blocks_go_back_first),
        cmocka_unit_test(garbage_collection_frees_the_old),
        cmocka_unit_test(a_range_grows_by_pages),
        cmocka_unit_test(whole_pages_are_unmapped),
        cmocka_unit_test(a_mapping_that_fails_is_out_of_memory),
        cmocka_unit_test(fragmentation_at_the_reserved_peak),
        cmocka_unit_test(bad_events_are_refused),
        cmocka_unit_test(any_trace),
        cmocka_unit_test(settings_are_read),
        cmocka_unit_test(wrong_settings_are_named),
        cmocka_unit_test(many_faults_do_not_overflow),
    };
    if (argc == 5)
        return replay_input(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
