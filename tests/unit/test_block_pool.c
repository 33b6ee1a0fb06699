/* The cache of a replica: pages by group, prefixes by least recent use, host memory, the books. */
#include "planner/serving/block_pool.h"

#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "planner/base/random.h"

static struct vp_cache_settings small(uint64_t units) {
    return (struct vp_cache_settings){.units = units,
                                      .block_tokens = 16,
                                      .group = {{.kind = VP_PAGES_FULL, .block = 16, .units = 1}},
                                      .groups = 1,
                                      .prefix_caching = true};
}

/* Admits a prompt, computes it; returns the tokens that were there. */
static uint32_t serve(struct vp_block_pool *pool, struct vp_cache_seq *seq, uint64_t id,
                      uint32_t shared, uint32_t prompt) {
    struct vp_cache_hit hit = vp_pool_look_up(pool, seq, id, shared, prompt - 1);
    assert_true(vp_pool_admit(pool, seq, id, &hit, hit.tokens, prompt, 0));
    vp_pool_publish(pool, seq, prompt, shared);
    return hit.tokens;
}

static void done(struct vp_block_pool *pool, struct vp_cache_seq *seq, uint32_t tokens) {
    vp_pool_release(pool, seq, tokens, VP_KEEP_NEXT);
    assert_true(vp_pool_is_sound(pool, 0));
    assert_int_equal(vp_pool_held(pool), 0);
}

static void hits_whole_blocks(void **state) {
    struct vp_cache_settings settings = small(100);
    struct vp_arena arena = {0};
    struct vp_block_pool *pool = vp_pool_new(&arena, &settings);
    struct vp_cache_seq a = {0}, b = {0};
    (void)state;
    assert_int_equal(serve(pool, &a, 1, 100, 200), 0);
    assert_int_equal(vp_pool_held(pool), 13);
    assert_int_equal(serve(pool, &b, 1, 100, 120), 96); /* 6 blocks of 16, while a still runs */
    assert_int_equal(vp_pool_held(pool), 13 + 8 - 6);
    assert_true(vp_pool_is_sound(pool, a.own_units + b.own_units));
    vp_pool_release(pool, &a, 200, VP_KEEP_NEXT);
    assert_int_equal(vp_pool_held(pool), 8);
    done(pool, &b, 120);
    /* the last token is computed anew, so a prompt of whole blocks misses the last of them */
    assert_int_equal(serve(pool, &a, 1, 96, 96), 80);
    done(pool, &a, 96);
    assert_int_equal(serve(pool, &a, 2, 100, 200), 0); /* another id */
    done(pool, &a, 200);
    assert_int_equal(serve(pool, &a, 0, 100, 200), 0); /* none */
    done(pool, &a, 200);
    vp_arena_free(&arena);
}

/* The next turn of a conversation: its prompt is the last prompt, the answer and something new. */
static void continues(void **state) {
    struct vp_cache_settings settings = small(100);
    struct vp_arena arena = {0};
    struct vp_block_pool *pool = vp_pool_new(&arena, &settings);
    struct vp_cache_seq a = {0};
    (void)state;
    serve(pool, &a, 1, 0, 100);
    assert_true(vp_pool_grow(pool, &a, 159, 160));
    done(pool, &a, 160);
    assert_int_equal(serve(pool, &a, 1, 161, 300), 160);
    done(pool, &a, 300);
    assert_int_equal(serve(pool, &a, 1, 20, 300), 16); /* a branch after 20 tokens */
    done(pool, &a, 300);
    assert_int_equal(serve(pool, &a, 1, 300, 310), 288); /* of which the newest is kept */
    done(pool, &a, 310);
    vp_arena_free(&arena);
}

/* Room for two prefixes of three: the one not used longest goes, block by block from its end. */
static void least_recently_used(void **state) {
    struct vp_cache_settings settings = small(20);
    struct vp_arena arena = {0};
    struct vp_block_pool *pool = vp_pool_new(&arena, &settings);
    struct vp_cache_seq a = {0};
    (void)state;
    for (uint64_t id = 1; id <= 3; id++) {
        assert_int_equal(serve(pool, &a, id, 128, 129), 0);
        done(pool, &a, 128);
    }
    assert_int_equal(serve(pool, &a, 3, 128, 129), 128);
    done(pool, &a, 128);
    assert_int_equal(serve(pool, &a, 2, 128, 129), 128);
    done(pool, &a, 128);
    assert_int_equal(serve(pool, &a, 1, 128, 129), 3 * 16); /* 25 blocks and one in use, of 20 */
    done(pool, &a, 128);
    assert_int_equal(serve(pool, &a, 2, 128, 129), 128);
    done(pool, &a, 128);
    vp_arena_free(&arena);
}

static void host_memory_keeps_them(void **state) {
    struct vp_cache_settings settings = small(10);
    struct vp_arena arena = {0};
    struct vp_block_pool *pool;
    struct vp_cache_seq a = {0};
    struct vp_cache_hit hit;
    (void)state;
    settings.host_blocks = 12;
    pool = vp_pool_new(&arena, &settings);
    for (uint64_t id = 1; id <= 2; id++) {
        serve(pool, &a, id, 128, 129);
        done(pool, &a, 128);
    }
    hit = vp_pool_look_up(pool, &a, 1, 128, 128); /* one block never had to leave */
    assert_int_equal(hit.shared_blocks, 1);
    assert_int_equal(hit.host_blocks, 7);
    assert_int_equal(hit.tokens, 128);
    assert_true(vp_pool_admit(pool, &a, 1, &hit, hit.tokens, 129, 0));
    done(pool, &a, 128);
    for (uint64_t id = 3; id <= 5; id++) { /* host memory is full too: the first ones are gone */
        serve(pool, &a, id, 128, 129);
        done(pool, &a, 128);
    }
    hit = vp_pool_look_up(pool, &a, 2, 128, 128);
    assert_true(hit.tokens < 128);
    vp_arena_free(&arena);
}

static void preempted_find_their_own(void **state) {
    struct vp_cache_settings settings = small(20);
    struct vp_arena arena = {0};
    struct vp_block_pool *pool = vp_pool_new(&arena, &settings);
    struct vp_cache_seq a = {0}, b = {0};
    (void)state;
    serve(pool, &a, 0, 0, 170);
    vp_pool_release(pool, &a, 170, VP_KEEP_OWN);
    assert_int_equal(vp_pool_look_up(pool, &a, 0, 0, 170).tokens, 160);
    serve(pool, &b, 0, 0, 200); /* 13 pages: 10 were free, 3 of its 10 go */
    assert_int_equal(vp_pool_look_up(pool, &a, 0, 0, 170).tokens, 7 * 16);
    vp_pool_release(pool, &b, 200, VP_KEEP_NEXT);
    assert_int_equal(serve(pool, &a, 0, 0, 171), 7 * 16);
    done(pool, &a, 171);
    serve(pool, &a, 0, 0, 170);
    vp_pool_release(pool, &a, 170, VP_KEEP_OWN);
    vp_pool_forget(&a);
    assert_true(vp_pool_is_sound(pool, 0));
    assert_int_equal(vp_pool_look_up(pool, &a, 0, 0, 170).tokens, 0);
    vp_arena_free(&arena);
}

/* Layer types of a plan: never more pages than the plan counts for the length, the same where
 * everything is kept; a window frees what lies behind it. */
static void pages_as_planned(void **state) {
    struct vp_kv_plan plan = {
        .cut = VP_KV_PAGED,
        .types = 4,
        .block_size = 16,
        .batched_tokens = 512,
        .context_ranks = 1,
        .state_pages = 2,
        .type = {{.kind = VP_KV_FULL, .block = 16, .groups = 1},
                 {.kind = VP_KV_WINDOW, .block = 16, .groups = 5, .window = 100},
                 {.kind = VP_KV_CHUNK, .block = 32, .groups = 2, .window = 256},
                 {.kind = VP_KV_STATE, .block = 16, .groups = 3}}};
    struct vp_cache_settings settings;
    struct vp_arena arena = {0};
    struct vp_block_pool *pool;
    (void)state;
    vp_cache_settings_of(&settings, &plan, 10000);
    assert_int_equal(settings.groups, 4);
    assert_int_equal(settings.block_tokens, 16);
    pool = vp_pool_new(&arena, &settings);
    assert_true(vp_pool_shrinks(pool));
    for (uint32_t total = 1; total < 3000; total += 13)
        for (uint32_t chunk = 1; chunk <= 512 && chunk <= total; chunk += 73) {
            uint64_t units = vp_pool_units(pool, total - chunk, total);
            assert_true(units <= vp_kv_units(&plan, total));
            assert_true(units <= vp_pool_most_units(pool, chunk, total));
        }
    /* decoding at 2000: 125 full pages, the last 100 tokens in at most 8, 208 tokens since the last
     * chunk began in 7, states */
    assert_int_equal(vp_pool_units(pool, 1999, 2000), 125 + 5 * 7 + 2 * 7 + 3 * 2);
    plan.type[1].window = 17;
    plan.type[1].groups = 1;
    plan.types = 2;
    vp_cache_settings_of(&settings, &plan, 10000);
    pool = vp_pool_new(&arena, &settings);
    assert_int_equal(vp_pool_units(pool, 31, 32), 2 + 2); /* looks back to token 15 */
    assert_int_equal(vp_pool_units(pool, 32, 33), 3 + 2); /* to token 16: the first page is free */
    plan.types = 1;
    vp_cache_settings_of(&settings, &plan, 10000);
    pool = vp_pool_new(&arena, &settings);
    assert_false(vp_pool_shrinks(pool));
    for (uint32_t total = 1; total < 300; total++)
        assert_int_equal(vp_pool_units(pool, 0, total), vp_kv_units(&plan, total));
    plan = (struct vp_kv_plan){.cut = VP_KV_TOKENS, .block_size = 64, .unit_bytes = 1000};
    vp_cache_settings_of(&settings, &plan, 10000);
    pool = vp_pool_new(&arena, &settings);
    assert_int_equal(vp_pool_units(pool, 0, 65), vp_kv_units(&plan, 65));
    plan = (struct vp_kv_plan){.cut = VP_KV_BYTES,
                               .types = 2,
                               .unit_bytes = 1,
                               .type = {{.kind = VP_KV_FULL, .layers = 8, .token_bytes = 100},
                                        {.kind = VP_KV_STATE, .layers = 3, .state_bytes = 5000}}};
    vp_cache_settings_of(&settings, &plan, 1 << 30);
    pool = vp_pool_new(&arena, &settings);
    assert_int_equal(vp_pool_units(pool, 0, 77), vp_kv_units(&plan, 77));
    vp_arena_free(&arena);
}

/* Any order of admitting, growing, preempting and ending keeps the books. */
static void books_balance(void **state) {
    enum { SEQS = 12, STEPS = 4000 };
    struct random_seq {
        struct vp_cache_seq cache;
        uint64_t id;
        uint32_t tokens, shared;
        bool runs;
    } seq[SEQS];
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct vp_cache_settings settings = small(60);
        struct vp_arena arena = {0};
        struct vp_random random;
        struct vp_block_pool *pool;
        uint64_t hits = 0;
        settings.host_blocks = seed % 3 * 15;
        if (seed % 4 == 1)
            settings.group[settings.groups++] = (struct vp_page_group){
                .kind = VP_PAGES_WINDOW, .block = 16, .window = 50, .units = 1};
        if (seed % 4 == 2)
            settings.block_tokens = settings.group[0].block = 1;
        if (seed % 4 == 2)
            settings.units *= 16;
        pool = vp_pool_new(&arena, &settings);
        memset(seq, 0, sizeof seq);
        vp_random_seed(&random, seed, 0);
        for (int step = 0; step < STEPS; step++) {
            struct random_seq *s = &seq[vp_random_below(&random, SEQS)];
            uint64_t own = 0;
            if (!s->runs) {
                bool resumes = s->cache.leftover || vp_random_below(&random, 2) > 0;
                struct vp_cache_hit hit;
                if (!resumes || s->tokens == 0) {
                    vp_pool_forget(&s->cache);
                    s->tokens = 1 + (uint32_t)vp_random_below(&random, 300);
                    s->shared = (uint32_t)vp_random_below(&random, s->tokens + 1);
                    s->id = vp_random_below(&random, 4);
                }
                hit = vp_pool_look_up(pool, &s->cache, s->id, s->shared, s->tokens - 1);
                s->runs = vp_pool_admit(pool, &s->cache, s->id, &hit, hit.tokens, s->tokens, 0);
                hits += s->runs ? hit.tokens : 0;
                if (s->runs)
                    vp_pool_publish(pool, &s->cache, s->tokens, s->shared);
            } else if (vp_random_below(&random, 4) > 0) {
                uint32_t more = 1 + (uint32_t)vp_random_below(&random, 20);
                if (vp_pool_grow(pool, &s->cache, s->tokens, s->tokens + more))
                    s->tokens += more;
            } else {
                enum vp_cache_keep keep = (enum vp_cache_keep)vp_random_below(&random, 3);
                vp_pool_release(pool, &s->cache, s->tokens, keep);
                s->runs = false;
                s->tokens = keep == VP_KEEP_OWN ? s->tokens : 0;
            }
            for (int i = 0; i < SEQS; i++)
                own += seq[i].cache.own_units;
            assert_true(vp_pool_is_sound(pool, own));
            assert_true(vp_pool_held(pool) <= vp_pool_size(pool));
        }
        assert_true(hits > 1000);
        vp_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hits_whole_blocks),
        cmocka_unit_test(continues),
        cmocka_unit_test(least_recently_used),
        cmocka_unit_test(host_memory_keeps_them),
        cmocka_unit_test(preempted_find_their_own),
        cmocka_unit_test(pages_as_planned),
        cmocka_unit_test(books_balance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
