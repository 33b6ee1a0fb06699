/* The search over deployments: what is pruned is no answer. On random traffic every shape and every
 * number of copies is simulated, and nothing smaller keeps the promise than what the search found.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/deploy.h"
#include "planner/base/random.h"
#include "planner/base/text.h"
#include "tests/unit/fixture.h"

static struct fixture f;

static int begin(void **state) {
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    return 0;
}

static int end(void **state) {
    (void)state;
    fixture_end(&f);
    return 0;
}

static const char *traffic(uint64_t seed, const char **slo) {
    static const char *const LIMITS[] = {"ttft_p95: 400 ms, tpot_p90: 20 ms", "ttft_mean: 300 ms",
                                         "e2e_p90: 4 s", "tpot_p99: 30 ms",
                                         "ttft_p99: 1 s, e2e_mean: 3 s"};
    struct vp_buf text = {.arena = &f.arena};
    struct vp_random random;
    double at = 0, gap;

    vp_random_seed(&random, seed, 1);
    gap = 0.002 + 0.01 * vp_random_unit(&random);
    *slo = LIMITS[seed % 5];
    vp_buf_add(&text, "arrival_s,prompt_tokens,output_tokens\n");
    for (int i = 0; i < 60; i++) {
        at += gap * vp_random_exponential(&random);
        vp_buf_printf(&text, "%.4f,%" PRIu64 ",%" PRIu64 "\n", at,
                      100 + vp_random_below(&random, 3000), 1 + vp_random_below(&random, 200));
    }
    return vp_buf_text(&text);
}

static void find(struct vp_search *search, struct vp_deployments *out, bool pruned, size_t gpus) {
    static const char *const GPUS[] = {"h100-sxm", "mi300x"};
    struct vp_deploy_ask ask = {
        .gpus = GPUS, .gpu_count = gpus, .every = !pruned, .plain = !pruned};

    ask.simulate = (struct vp_simulate_ask){
        .warmup_s = -1, .first_seed = 1, .rate_scale = 1, .time_scale = 1, .threads = 2};
    assert_int_equal(vp_deploy_find(search, out, &ask, false), VP_OK);
}

static uint64_t smallest(const struct vp_deployments *all, const char *gpu) {
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < all->count; i++)
        if (all->item[i].state == VP_DEPLOY_KEPT && strcmp(all->item[i].gpu, gpu) == 0 &&
            all->item[i].gpus < least)
            least = all->item[i].gpus;
    return least;
}

/* settings: those of the engine are searched as well. */
static void compare(uint64_t seed, bool settings) {
    const char *slo, *rows = traffic(seed, &slo);
    const char *trace = fixture_text_file(&f, "day.csv", rows);
    const char *input = fixture_text_file(
        &f, "run.yaml",
        vp_arena_printf(&f.arena,
                        "vramplan: 1\nmodel: llama-3.1-8b\nhardware: {gpu: h100-sxm}\n"
                        "engine: {name: vllm, version: '0.19'%s}\n"
                        "serve: {context: 8192, trace: %s, slo: {%s}}\n",
                        settings ? "" : ", args: {max_num_seqs: 64, max_num_batched_tokens: 8192}",
                        trace, slo));
    struct vp_deployments pruned, all;
    struct vp_search search;

    if (vp_search_open(&f.ctx, &search, input, NULL, 0) != VP_OK)
        fail_msg("%s", f.diags.items[0].message);
    find(&search, &pruned, true, settings ? 2 : 1);
    find(&search, &all, false, settings ? 2 : 1);
    assert_true(pruned.simulated <= all.simulated);
    assert_int_equal(pruned.count, all.count);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct vp_deployment *a = &all.item[i], *p = &pruned.item[i];
        /* never "no number of copies", and only where as few GPUs were found before */
        if (a->state == VP_DEPLOY_KEPT && p->state != VP_DEPLOY_KEPT) {
            assert_true(p->state == VP_DEPLOY_BEATEN || p->state == VP_DEPLOY_LIKELY);
            assert_true(smallest(&pruned, a->gpu) <= a->gpus);
        }
        if (a->copies > 0 && p->least_copies > 0)
            assert_true(p->least_copies <= a->likely_copies);
        if (p->state == VP_DEPLOY_KEPT)
            assert_int_equal(p->copies, a->copies);
    }
    for (uint32_t g = 0; g < 2; g++) {
        const char *gpu = g ? "mi300x" : "h100-sxm";
        assert_int_equal(smallest(&pruned, gpu), smallest(&all, gpu));
    }
    if (pruned.best_count > 0 && smallest(&all, "h100-sxm") < UINT64_MAX)
        assert_int_equal(pruned.item[pruned.best[0]].state, VP_DEPLOY_KEPT);
    vp_search_close(&search);
}

/* VP_DEPLOY_ROUNDS sets how many; a round takes some seconds, the one without it a part of them. */
static void nothing_smaller_keeps_the_promise(void **state) {
    const char *rounds = getenv("VP_DEPLOY_ROUNDS");
    uint64_t n = rounds ? strtoull(rounds, NULL, 10) : 1;

    (void)state;
    for (uint64_t seed = 1; seed <= n; seed++) {
        compare(seed, rounds != NULL);
        fixture_clear(&f);
    }
}

static void parts_hold_all_shapes_once(void **state) {
    const char *slo, *rows = traffic(3, &slo);
    const char *trace = fixture_text_file(&f, "day.csv", rows);
    const char *input = fixture_text_file(
        &f, "run.yaml",
        vp_arena_printf(&f.arena,
                        "vramplan: 1\nmodel: llama-3.1-8b\nhardware: {gpu: h100-sxm}\n"
                        "engine: {name: vllm, version: '0.19', args: {max_num_seqs: 128, "
                        "max_num_batched_tokens: 4096}}\n"
                        "serve: {context: 8192, trace: %s, slo: {%s}}\n",
                        trace, slo));
    static const char *const GPUS[] = {NULL};
    struct vp_search search;
    struct vp_deployments whole, part;
    struct vp_deploy_ask ask = {.gpus = GPUS, .gpu_count = 1, .every = true};
    uint32_t seen = 0;

    (void)state;
    ask.simulate = (struct vp_simulate_ask){
        .warmup_s = -1, .first_seed = 1, .rate_scale = 1, .time_scale = 1, .threads = 1};
    if (vp_search_open(&f.ctx, &search, input, NULL, 0) != VP_OK)
        fail_msg("%s", f.diags.items[0].message);
    assert_int_equal(vp_deploy_find(&search, &whole, &ask, false), VP_OK);
    ask.shards = 3;
    for (ask.shard = 1; ask.shard <= 3; ask.shard++) {
        assert_int_equal(vp_deploy_find(&search, &part, &ask, false), VP_OK);
        for (uint32_t i = 0; i < part.count; i++, seen++) {
            assert_int_equal(part.item[i].row, whole.item[seen].row);
            assert_int_equal(part.item[i].state, whole.item[seen].state);
            assert_int_equal(part.item[i].gpus, whole.item[seen].gpus);
        }
    }
    assert_int_equal(seen, whole.count);
    vp_search_close(&search);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_smaller_keeps_the_promise, begin, end),
        cmocka_unit_test_setup_teardown(parts_hold_all_shapes_once, begin, end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
