/* Settings at random, good ones and silly ones: every request comes to an end, the books are kept
 * all the way, and many iterations at once are what they are one by one. LONG=1: many more. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "sim_rig.h"

static uint32_t between(struct vp_random *random, uint32_t low, uint32_t high) {
    return low + (uint32_t)vp_random_below(random, high - low + 1);
}

/* once in so many times */
static bool rarely(struct vp_random *random, uint32_t often) {
    return between(random, 1, often) == 1;
}

static void any_cache(struct vp_cache_settings *cache, struct vp_random *random) {
    cache->prefix_caching = !rarely(random, 3);
    if (rarely(random, 2)) {
        cache->host_blocks = between(random, 1, 60);
        cache->host_block_us = between(random, 0, 3000);
    }
    if (cache->block_tokens == 1 || !rarely(random, 3))
        return;
    cache->units *= 4;
    cache->group[cache->groups++] = (struct vp_page_group){
        VP_PAGES_WINDOW, 16, between(random, 1, 200), 0, between(random, 1, 3)};
    if (rarely(random, 2))
        cache->group[cache->groups++] = (struct vp_page_group){
            .kind = VP_PAGES_FIXED, .pages = 1, .units = between(random, 1, 3)};
    if (rarely(random, 2))
        cache->group[cache->groups++] =
            (struct vp_page_group){VP_PAGES_CHUNK, 16, between(random, 16, 200), 0, 1};
}

static void any_scheduler(struct vp_scheduler_settings *s, struct vp_random *random) {
    uint32_t least;

    s->max_running = between(random, 1, 12);
    s->token_budget = between(random, 1, 500);
    s->chunk_tokens = rarely(random, 2) ? 0 : between(random, 1, 200);
    s->chunked = !rarely(random, 3);
    s->long_prefill_tokens = rarely(random, 3) ? between(random, 1, 50) : 0;
    s->by_priority = rarely(random, 4);
    s->watermark = rarely(random, 3) ? between(random, 0, 50) / 100.0 : 0;
    s->whole_prompt_fits = rarely(random, 2);
    s->max_model_len = rarely(random, 2) ? 0 : between(random, 50, 3000);
    s->new_token_ratio = between(random, 0, 10) / 10.0;
    s->swap = rarely(random, 2);
    if (rarely(random, 3)) {
        s->adapters = between(random, 1, 3);
        s->adapter_load_us = between(random, 0, 2000);
    }
    if (rarely(random, 4)) {
        s->draft_tokens = between(random, 1, 4);
        s->acceptance = between(random, 0, 10) / 10.0;
    }
    least = s->max_running * (1 + s->draft_tokens); /* engines ask for as much */
    s->token_budget = s->token_budget < least ? least : s->token_budget;
}

static void any_traffic(struct sim_rig *rig, struct vp_random *random) {
    rig->settings.classes = 4;
    rig->stream.classes = between(random, 1, 4);
    rig->stream.priorities = between(random, 1, 3);
    rig->stream.prefixes = between(random, 0, 6);
    rig->stream.count = between(random, 50, 200);
    rig->stream.mean_prompt = between(random, 10, 400);
    rig->stream.mean_output = between(random, 1, 120);
    rig->stream.exponential = rarely(random, 2);
    rig->stream.mean_gap_us = between(random, 1000, 100000);
    rig->settings.loop = (enum vp_loop)between(random, VP_LOOP_OPEN, VP_LOOP_BATCH);
    rig->settings.concurrency = between(random, 1, 30);
    rig->clock.front = rarely(random, 4) ? between(random, 1, 30) : 0;
}

static void any(struct sim_rig *rig, uint64_t seed) {
    struct vp_sim_settings *settings = &rig->settings;
    struct vp_random random;
    uint32_t kind;

    vp_random_seed(&random, seed, 0);
    sim_rig_init(rig);
    kind = between(&random, VP_SCHED_VLLM_V1, VP_SCHED_STATIC);
    settings->serve.cache.units = between(&random, 12, 200);
    sim_rig_scheduler(rig, (enum vp_scheduler_kind)kind);
    any_scheduler(&settings->serve.scheduler, &random);
    any_cache(&settings->serve.cache, &random);
    any_traffic(rig, &random);
    rig->stream.seed = seed;
    settings->serve.replicas = between(&random, 1, 3);
    settings->routing = (enum vp_routing)between(&random, VP_ROUTE_ROUND_ROBIN, VP_ROUTE_PREFIX);
    settings->disaggregated = kind <= VP_SCHED_SGLANG && rarely(&random, 3);
    settings->prefill = settings->serve;
    settings->prefill.replicas = between(&random, 1, 3);
    settings->link = (struct vp_link_settings){
        between(&random, 0, 100000), between(&random, 0, 10000), between(&random, 0, 100)};
    settings->checked = true;
}

static void any_settings(void **state) {
    const char *is_long = getenv("LONG");
    uint64_t rounds = is_long && *is_long && *is_long != '0' ? 4000 : 120;
    (void)state;
    for (uint64_t seed = 0; seed < rounds; seed++) {
        struct sim_rig fast, slow;
        const struct vp_sim_totals *all = &fast.result.all;
        any(&fast, seed);
        any(&slow, seed);
        slow.settings.step_by_step = true;
        sim_rig_run(&fast);
        sim_rig_run(&slow);
        if (all->unfinished > 0 ||
            all->arrived != all->finished + all->dropped + all->refused_length + all->refused_pool)
            fail_msg("seed %u: %u of %u requests did not end", (unsigned)seed,
                     (unsigned)all->unfinished, (unsigned)all->arrived);
        if (memcmp(all, &slow.result.all, sizeof *all) != 0)
            fail_msg("seed %u: %u iterations at once, %u one by one", (unsigned)seed,
                     (unsigned)all->iterations, (unsigned)slow.result.all.iterations);
        sim_rig_free(&fast);
        sim_rig_free(&slow);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_settings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
