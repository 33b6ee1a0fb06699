/* The simulation as a whole: what is conserved, what is equal, what grows with the load, and what
 * queueing theory says of one server. LONG=1: the theory to 1 % on millions of arrivals. */
#include "planner/serving/simulator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "sim_rig.h"

enum { KINDS = VP_SCHED_STATIC + 1 };

static void assert_close(double value, double expected, double share) {
    if (fabs(value - expected) > share * fabs(expected))
        fail_msg("%.9g, expected %.9g within %g", value, expected, share);
}

/* ---- what is conserved ---- */

/* Settings of all sorts; the pool is small, so that sequences are preempted. */
enum { VARIANTS = 6 };

static void mix(struct sim_rig *rig, int kind, int variant) {
    sim_rig_init(rig);
    rig->settings.serve.cache.units = variant % 2 ? 260 : 4097;
    sim_rig_scheduler(rig, (enum vp_scheduler_kind)kind);
    rig->stream.count = 1000;
    rig->stream.prefixes = variant >= 2 ? 5 : 0;
    rig->stream.classes = variant >= 2 ? 4 : 1;
    rig->settings.classes = 4;
    if (variant >= 2) {
        rig->settings.serve.scheduler.adapters = 2;
        rig->settings.serve.cache.host_blocks = 200;
        rig->settings.serve.cache.host_block_us = 30;
    }
    if (variant == 3) {
        rig->settings.serve.scheduler.draft_tokens = 2;
        rig->settings.serve.scheduler.acceptance = 0.6;
        rig->settings.serve.scheduler.swap = kind == VP_SCHED_VLLM_V0;
        rig->settings.serve.replicas = 3;
        rig->settings.routing = VP_ROUTE_LEAST_TOKENS;
        rig->stream.mean_gap_us /= 3;
    }
    if (variant == 4 && kind <= VP_SCHED_SGLANG) {
        rig->settings.disaggregated = true;
        rig->settings.prefill = rig->settings.serve;
        rig->settings.prefill.replicas = 2;
        rig->settings.link = (struct vp_link_settings){
            .bytes_per_token = 1e5, .bytes_per_us = 5e3, .latency_us = 20};
    }
    if (variant >= 4) {
        rig->settings.serve.replicas = 3;
        rig->settings.routing = VP_ROUTE_LEAST_TOKENS;
        rig->stream.mean_gap_us /= 3;
    }
    if (variant == 5 && kind <= VP_SCHED_VLLM_V0) {
        struct vp_cache_settings *cache = &rig->settings.serve.cache;
        cache->group[cache->groups++] =
            (struct vp_page_group){.kind = VP_PAGES_WINDOW, .block = 16, .window = 100, .units = 2};
        cache->group[cache->groups++] =
            (struct vp_page_group){.kind = VP_PAGES_FIXED, .pages = 1, .units = 3};
        cache->units *= 2;
        rig->settings.serve.scheduler.by_priority = true;
        rig->stream.priorities = 3;
    }
    rig->settings.checked = true; /* blocks: proved inside, before and after every iteration */
}

static void conserved(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int variant = 0; variant < VARIANTS; variant++) {
            struct sim_rig rig;
            const struct vp_sim_totals *all = &rig.result.all;
            double output = 0, prompt = 0, finished = 0, arrived = 0, computed = 0;
            mix(&rig, kind, variant);
            sim_rig_run(&rig);
            assert_int_equal(all->arrived, 1000);
            assert_int_equal(all->arrived, all->finished + all->dropped);
            assert_int_equal(all->unfinished, 0);
            assert_int_equal(all->finished, rig.seen.count);
            assert_int_equal(all->output_tokens, (uint64_t)rig.seen.output);
            assert_int_equal(all->iterations, (uint64_t)rig.seen.iterations);
            assert_int_equal(rig.result.samples.count, all->finished);
            for (uint32_t i = 0; i < rig.result.bins; i++) {
                const struct vp_sim_bin *bin = &rig.result.bin[i];
                double limits = 0;
                for (int l = 0; l < VP_LIMIT_COUNT; l++)
                    limits += bin->limit_share[l];
                if (i + 1 < rig.result.bins)
                    assert_true(fabs(limits - 1) < 1e-6);
                assert_true(bin->cache_share >= 0 && bin->cache_share <= 1 + 1e-9);
                output += bin->output_tokens;
                computed += bin->prompt_tokens;
                finished += bin->finished;
                arrived += bin->arrivals;
            }
            assert_close(arrived, 1000, 1e-9);
            assert_close(finished, (double)all->finished, 1e-9);
            assert_close(computed, (double)all->computed_tokens, 1e-6);
            if (all->dropped == 0)
                assert_close(output, rig.seen.output, 1e-6);
            for (uint64_t i = 0; i < rig.seen.count; i++)
                prompt += rig.seen.record[i].prompt;
            if (all->preemptions == 0 && all->dropped == 0 && kind != VP_SCHED_STATIC)
                assert_close((double)all->computed_tokens, prompt - (double)all->hit_tokens, 1e-12);
            sim_rig_free(&rig);
        }
}

/* Of each request: it is admitted, begins and ends in this order; gaps fit between. */
static void ordered(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int variant = 0; variant < VARIANTS; variant++) {
            struct sim_rig rig;
            mix(&rig, kind, variant);
            sim_rig_run(&rig);
            for (uint64_t i = 0; i < rig.seen.count; i++) {
                const struct vp_request_record *r = &rig.seen.record[i];
                assert_true(r->arrival_us <= r->admitted_us);
                assert_true(r->admitted_us < r->first_us);
                assert_true(r->first_us <= r->last_us);
                assert_true(r->longest_gap_us <= r->last_us - r->first_us + 1e-6);
                assert_true(r->prefix_hit < r->prompt);
                if (r->output > 1 && rig.settings.serve.scheduler.draft_tokens == 0)
                    assert_true(r->longest_gap_us >=
                                    (r->last_us - r->first_us) / (r->output - 1) * (1 - 1e-9) ||
                                kind == VP_SCHED_STATIC);
            }
            sim_rig_free(&rig);
        }
}

/* First come, first served: nobody is overtaken on the way in, and everybody comes out. */
static void nobody_starves(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct sim_rig rig;
        double *admitted;
        mix(&rig, kind, 1);
        rig.stream.mean_gap_us = 20000; /* more than it can serve */
        sim_rig_run(&rig);
        admitted = calloc(rig.stream.count, sizeof *admitted);
        for (uint64_t i = 0; i < rig.seen.count; i++)
            admitted[rig.seen.record[i].number] = rig.seen.record[i].admitted_us;
        for (uint64_t i = 1; i < rig.stream.count; i++)
            assert_true(admitted[i] >= admitted[i - 1] || rig.result.all.dropped > 0);
        assert_int_equal(rig.result.all.unfinished, 0);
        free(admitted);
        sim_rig_free(&rig);
    }
}

/* ---- what is equal ---- */

static void same_floats(const float *a, const float *b, uint64_t count, double share) {
    for (uint64_t i = 0; i < count; i++)
        if (fabs((double)a[i] - (double)b[i]) > share * fabs((double)b[i]) + 0.5)
            fail_msg("request %llu: %.9g, step by step %.9g", (unsigned long long)i, (double)a[i],
                     (double)b[i]);
}

/* Many iterations at once give what they give one by one. */
static void runs_equal_steps(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int variant = 0; variant < VARIANTS; variant++) {
            struct sim_rig fast, slow;
            const struct vp_sim_samples *a = &fast.result.samples, *b = &slow.result.samples;
            mix(&fast, kind, variant);
            mix(&slow, kind, variant);
            if (fast.settings.serve.scheduler.draft_tokens > 0) {
                sim_rig_free(&fast);
                sim_rig_free(&slow);
                continue; /* drafts are drawn step by step in any case */
            }
            slow.settings.step_by_step = true;
            fast.settings.checked = slow.settings.checked = false;
            sim_rig_run(&fast);
            sim_rig_run(&slow);
            assert_int_equal(a->count, b->count);
            if (memcmp(&fast.result.all, &slow.result.all, sizeof fast.result.all) != 0)
                fail_msg("scheduler %d, variant %d: %llu iterations, step by step %llu", kind,
                         variant, (unsigned long long)fast.result.all.iterations,
                         (unsigned long long)slow.result.all.iterations);
            same_floats(a->ttft_us, b->ttft_us, a->count, 1e-6);
            same_floats(a->tpot_us, b->tpot_us, a->count, 1e-6);
            same_floats(a->longest_gap_us, b->longest_gap_us, a->count, 1e-6);
            same_floats(a->e2e_us, b->e2e_us, a->count, 1e-6);
            assert_close(fast.result.cache_share, slow.result.cache_share, 0.01);
            for (int l = 0; l < VP_LIMIT_COUNT; l++)
                if (fabs(fast.result.limit_share[l] - slow.result.limit_share[l]) > 1e-6)
                    fail_msg("scheduler %d, variant %d: limit %d %.9f, step by step %.9f", kind,
                             variant, l, fast.result.limit_share[l], slow.result.limit_share[l]);
            sim_rig_free(&fast);
            sim_rig_free(&slow);
        }
}

static void equal_seeds_equal_bytes(void **state) {
    struct sim_rig a, b, c;
    (void)state;
    mix(&a, VP_SCHED_VLLM_V1, 3);
    mix(&b, VP_SCHED_VLLM_V1, 3);
    mix(&c, VP_SCHED_VLLM_V1, 3);
    c.settings.seed++;
    sim_rig_run(&a);
    sim_rig_run(&b);
    sim_rig_run(&c);
    assert_memory_equal(a.seen.record, b.seen.record, a.seen.count * sizeof *a.seen.record);
    assert_memory_equal(a.result.bin, b.result.bin, a.result.bins * sizeof *a.result.bin);
    assert_memory_equal(&a.result.all, &b.result.all, sizeof a.result.all);
    assert_memory_not_equal(a.seen.record, c.seen.record, a.seen.count * sizeof *a.seen.record);
    sim_rig_free(&a);
    sim_rig_free(&b);
    sim_rig_free(&c);
}

/* ---- load ---- */

/* The same requests closer together: nobody gains. */
static void more_load_more_waiting(void **state) {
    static const double SCALE[] = {4, 2, 1, 0.7, 0.5, 0.35};
    enum { SCALES = sizeof SCALE / sizeof *SCALE };
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        double ttft = 0, queue = 0;
        for (int i = 0; i < SCALES; i++) {
            struct sim_rig rig;
            sim_rig_init(&rig);
            sim_rig_scheduler(&rig, (enum vp_scheduler_kind)kind);
            rig.stream.count = 1500;
            rig.stream.scale = SCALE[i];
            if (kind == VP_SCHED_STATIC) /* a batch begins when the one before ends */
                rig.settings.serve.scheduler.max_running = 8;
            sim_rig_run(&rig);
            assert_true(sim_rig_mean(&rig, rig.result.samples.ttft_us) >= ttft);
            assert_true(sim_rig_mean(&rig, rig.result.samples.queue_us) >= queue);
            ttft = sim_rig_mean(&rig, rig.result.samples.ttft_us);
            queue = sim_rig_mean(&rig, rig.result.samples.queue_us);
            sim_rig_free(&rig);
        }
        assert_true(queue > 1000);
    }
}

/* A pool that holds few sequences: preempted ones are computed again, and everything slows down. */
static void small_pool_falls_off(void **state) {
    static const uint64_t UNITS[] = {4000, 2000, 700, 300};
    double tpot[4], recomputed[4];
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct sim_rig rig;
        sim_rig_init(&rig);
        rig.settings.serve.cache.units = UNITS[i];
        rig.settings.serve.cache.prefix_caching = false;
        rig.settings.loop = VP_LOOP_CLOSED;
        rig.settings.concurrency = 48;
        rig.stream.count = 1000;
        rig.stream.mean_prompt = 100;
        rig.stream.mean_output = 400;
        sim_rig_run(&rig);
        tpot[i] = sim_rig_mean(&rig, rig.result.samples.e2e_us);
        recomputed[i] = (double)rig.result.all.recomputed_tokens;
        sim_rig_free(&rig);
    }
    assert_true(recomputed[0] == 0); /* 48 x 31 pages at most, and less on average */
    assert_true(recomputed[2] > 0 && recomputed[3] > recomputed[2]);
    assert_true(tpot[0] <= tpot[1] && tpot[1] < tpot[2] && tpot[2] < tpot[3]);
}

/* ---- theory ---- */

static bool is_long(void) {
    const char *value = getenv("LONG");
    return value && *value && strcmp(value, "0") != 0;
}

/* One slot; a request's service is one iteration. */
static double mean_wait(bool exponential, double load, uint64_t count) {
    const double service_us = 10000;
    struct sim_rig rig;
    double wait;

    sim_rig_init(&rig);
    rig.settings.serve.scheduler =
        (struct vp_scheduler_settings){.kind = VP_SCHED_VLLM_V1, .max_running = 1, .chunked = true};
    rig.settings.serve.cache.units = 1 << 26;
    rig.settings.warmup_requests = 1000;
    rig.clock = (struct sim_clock){.prompt = exponential ? 0.01 : 0};
    rig.clock.step = exponential ? 0 : service_us;
    rig.stream.count = count;
    rig.stream.mean_gap_us = service_us / load;
    rig.stream.mean_prompt = exponential ? service_us * 100 : 1;
    rig.stream.exponential = exponential;
    rig.stream.mean_output = 1;
    rig.quiet = true;
    sim_rig_run(&rig);
    wait = sim_rig_mean(&rig, rig.result.samples.queue_us) / service_us;
    sim_rig_free(&rig);
    return wait;
}

/* Pollaczek and Khinchine: rho / (1 - rho) services for exponential ones, half of it for fixed. */
static void queues_as_theory_says(void **state) {
    uint64_t count = is_long() ? 8000000 : 150000;
    double tolerance = is_long() ? 0.01 : 0.06;
    (void)state;
    for (int i = 0; i < 2; i++) {
        double load = i == 0 ? 0.5 : 0.7, waits = load / (1 - load);
        assert_close(mean_wait(false, load, count), waits / 2, tolerance);
        assert_close(mean_wait(true, load, count), waits, tolerance);
    }
}

/* N requests in flight, each of which is in one iteration at any time: of N sequences N / output
 * have their prompt computed and the others decode, so an iteration takes
 * step + (N - N/o) x (sequence + context x mean) + N/o x prompt tokens, and N tokens come of it. */
static void closed_loop_fixed_point(void **state) {
    static const uint32_t IN_FLIGHT[] = {1, 8, 40};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const double n = IN_FLIGHT[i], output = 200, prompt = 500;
        struct vp_request *requests;
        struct vp_sim_rates rates;
        struct sim_rig rig;
        double share = n / output, iteration;

        sim_rig_init(&rig);
        rig.stream.count = 4000;
        requests = calloc(rig.stream.count, sizeof *requests);
        for (uint64_t r = 0; r < rig.stream.count; r++)
            requests[r] = (struct vp_request){.prompt = 500, .output = 200};
        for (uint32_t r = 0; r < IN_FLIGHT[i]; r++) /* the first ones end one after the other */
            requests[r].output = 1 + 200 * (r + 1) / IN_FLIGHT[i];
        rig.stream.fixed = requests;
        rig.settings.loop = VP_LOOP_CLOSED;
        rig.settings.concurrency = IN_FLIGHT[i];
        rig.settings.warmup_requests = 200;
        rig.settings.bins = 1000;
        rig.clock.pair = 0;
        sim_rig_run(&rig);
        iteration = rig.clock.step + share * prompt * rig.clock.prompt +
                    (n - share) * (rig.clock.sequence + rig.clock.context * (prompt + output / 2));
        vp_sim_rates(&rates, &rig.result);
        assert_close(rates.output_tokens, n / iteration * 1e6, 0.01);
        assert_close(rates.finished, n / iteration / output * 1e6, 0.02);
        assert_close(rates.prompt_tokens, share * prompt / iteration * 1e6, 0.02);
        free(requests);
        sim_rig_free(&rig);
    }
}

/* ---- the frame ---- */

static void warm_up_and_limits(void **state) {
    struct sim_rig rig;
    (void)state;
    sim_rig_init(&rig);
    rig.settings.warmup_us = 60e6;
    rig.settings.duration_us = 120e6;
    sim_rig_run(&rig);
    assert_true(rig.result.all.arrived < 4000 && rig.result.all.unfinished == 0);
    assert_true(rig.result.counted.arrived < rig.result.all.arrived);
    assert_int_equal(rig.result.samples.count, rig.result.counted.finished);
    for (uint64_t i = 0; i < rig.seen.count; i++)
        assert_true(rig.seen.record[i].arrival_us <= 120e6);
    assert_true(rig.result.counted_from_us == 60e6 && rig.result.end_us >= 119e6);
    sim_rig_free(&rig);

    sim_rig_init(&rig);
    rig.settings.request_limit = 100;
    rig.settings.warmup_requests = 40;
    sim_rig_run(&rig);
    assert_int_equal(rig.result.all.arrived, 100);
    assert_int_equal(rig.result.samples.count, 60);
    sim_rig_free(&rig);

    sim_rig_init(&rig);
    rig.settings.horizon_us = 30e6;
    sim_rig_run(&rig);
    assert_true(rig.result.all.unfinished > 0 && rig.result.end_us <= 30e6);
    assert_true(rig.result.end_us > 29.9e6);
    sim_rig_free(&rig);
}

static bool enough(void *state, double now_us, uint64_t ended) {
    (void)state;
    (void)now_us;
    return ended >= 300;
}

static void stops_early(void **state) {
    struct sim_rig rig;
    (void)state;
    sim_rig_init(&rig);
    rig.settings.watch.stop = enough;
    rig.settings.watch.stop_every = 100;
    sim_rig_run(&rig);
    assert_true(rig.result.stopped);
    assert_true(rig.result.all.finished >= 300 && rig.result.all.finished < 300 + 64);
    sim_rig_free(&rig);
}

static void refuses(void **state) {
    const struct vp_request requests[] = {{.prompt = 4000, .output = 97},
                                          {.prompt = 4000, .output = 96},
                                          {.prompt = 10, .output = 5}};
    struct sim_rig rig;
    (void)state;
    for (int closed = 0; closed < 2; closed++) {
        sim_rig_init(&rig);
        rig.stream.fixed = requests;
        rig.stream.count = 3;
        rig.settings.loop = closed ? VP_LOOP_CLOSED : VP_LOOP_OPEN;
        rig.settings.concurrency = 1;
        sim_rig_run(&rig);
        assert_int_equal(rig.result.all.refused_length, 1);
        assert_int_equal(rig.result.all.finished, 2);
        rig.settings.serve.cache.units = 256; /* 255 pages of 16 tokens: 4080 */
        sim_rig_run(&rig);
        assert_int_equal(rig.result.all.refused_length, 1);
        assert_int_equal(rig.result.all.refused_pool, 1);
        assert_int_equal(rig.result.all.finished, 1);
        sim_rig_free(&rig);
    }
}

/* A queue in front of a small pool: what limits is what would help. Twice the pool helps where
 * iterations cost much and sequences little, and not where prompts or contexts take the time. */
static void tells_what_limits(void **state) {
    static const struct {
        struct sim_clock clock;
        enum vp_sim_limit limit;
        bool slots, pool_helps;
    } CASES[] = {
        {{.step = 20000, .sequence = 10, .prompt = 1}, VP_LIMIT_MEMORY, false, true},
        {{.step = 100, .sequence = 1, .prompt = 100}, VP_LIMIT_PREFILL, false, false},
        {{.step = 100, .sequence = 1, .context = 1, .prompt = 1}, VP_LIMIT_DECODE, false, false},
        {{.step = 20000, .sequence = 10, .prompt = 1}, VP_LIMIT_SLOTS, true, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        double end_us[2];
        for (int twice = 0; twice < 2; twice++) {
            struct sim_rig rig;
            sim_rig_init(&rig);
            rig.clock = CASES[i].clock;
            rig.settings.serve.cache.units = twice ? 601 : 301;
            rig.settings.serve.cache.prefix_caching = false;
            rig.settings.serve.scheduler.max_running = CASES[i].slots ? 4 : 64;
            rig.settings.loop = VP_LOOP_BATCH;
            rig.stream.count = 500;
            sim_rig_run(&rig);
            for (int l = 0; l < VP_LIMIT_COUNT && !twice; l++)
                assert_true(rig.result.limit_share[l] <=
                            rig.result.limit_share[CASES[i].limit] + 1e-9);
            end_us[twice] = rig.result.end_us;
            sim_rig_free(&rig);
        }
        assert_true((end_us[1] < 0.8 * end_us[0]) == CASES[i].pool_helps);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conserved),
        cmocka_unit_test(ordered),
        cmocka_unit_test(nobody_starves),
        cmocka_unit_test(runs_equal_steps),
        cmocka_unit_test(equal_seeds_equal_bytes),
        cmocka_unit_test(more_load_more_waiting),
        cmocka_unit_test(small_pool_falls_off),
        cmocka_unit_test(queues_as_theory_says),
        cmocka_unit_test(closed_loop_fixed_point),
        cmocka_unit_test(warm_up_and_limits),
        cmocka_unit_test(stops_early),
        cmocka_unit_test(refuses),
        cmocka_unit_test(tells_what_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
