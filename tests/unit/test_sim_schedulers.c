/* What each scheduler does that the others do not, on cases small enough to follow by hand. */
#include <math.h>
#include <stdlib.h>

#include "fixture.h"
#include "sim_rig.h"

/* An iteration takes 1 ms and 1 us per token; requests in turn, all at time 0. */
static void plain(struct sim_rig *rig, enum vp_scheduler_kind kind,
                  const struct vp_request *requests, uint64_t count) {
    sim_rig_init(rig);
    sim_rig_scheduler(rig, kind);
    rig->clock = (struct sim_clock){.step = 1000, .sequence = 1, .prompt = 1};
    rig->stream.fixed = requests;
    rig->stream.count = count;
    rig->settings.loop = VP_LOOP_BATCH;
    rig->settings.checked = true;
}

static const struct vp_request_record *record(const struct sim_rig *rig, uint64_t number) {
    for (uint64_t i = 0; i < rig->seen.count; i++)
        if (rig->seen.record[i].number == number)
            return &rig->seen.record[i];
    fail_msg("request %u did not end", (unsigned)number);
    return NULL;
}

static void is_us(double value, double expected) {
    if (fabs(value - expected) > 1e-6 * expected + 1e-6)
        fail_msg("%.6f us, expected %.6f", value, expected);
}

/* ---- vLLM V1 ---- */

/* 100 tokens a step: a prompt of 250 takes three of them, the rest of the third begins the next
 * prompt; who decodes comes before who still has a prompt. */
static void v1_shares_a_budget(void **state) {
    const struct vp_request requests[] = {{.prompt = 250, .output = 3},
                                          {.prompt = 100, .output = 1}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_VLLM_V1, requests, 2);
    rig.settings.serve.scheduler.token_budget = 100;
    sim_rig_run(&rig);
    is_us(record(&rig, 0)->first_us, 3 * 1100);
    is_us(record(&rig, 0)->last_us, 3 * 1100 + 1051 + 1001); /* 1 + 50 tokens, then itself */
    is_us(record(&rig, 1)->admitted_us, 2 * 1100);
    is_us(record(&rig, 1)->first_us, 3 * 1100 + 1051);
    rig.settings.serve.scheduler.long_prefill_tokens = 40; /* 40 of the first, 40 of the second */
    sim_rig_run(&rig);
    is_us(record(&rig, 1)->admitted_us, 0);
    is_us(record(&rig, 1)->first_us, 2 * 1080 + 1060);
    rig.settings.serve.scheduler.long_prefill_tokens = 0;
    rig.settings.serve.scheduler.chunked = false; /* 250 tokens never fit a step of 200 */
    rig.settings.serve.scheduler.token_budget = 300;
    sim_rig_run(&rig);
    is_us(record(&rig, 0)->first_us, 1250);
    is_us(record(&rig, 1)->first_us, 1250 + 1101);
    sim_rig_free(&rig);
}

/* Ten pages of 16 tokens. Two sequences grow until the second loses its pages; it finds its own
 * full blocks again, as far as the first did not take them. */
static void v1_preempts_the_last(void **state) {
    const struct vp_request requests[] = {{.prompt = 64, .output = 60},
                                          {.prompt = 64, .output = 60}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_VLLM_V1, requests, 2);
    rig.settings.serve.cache.units = 11;
    sim_rig_run(&rig);
    assert_int_equal(record(&rig, 0)->preemptions, 0);
    assert_int_equal(record(&rig, 1)->preemptions, 1);
    /* both have 81 tokens and want a sixth page: 80 are lost; the first takes up to 8 pages, so
     * two of its five are left for the second */
    assert_int_equal(rig.result.all.recomputed_tokens, 80 - 32);
    assert_int_equal(rig.result.all.computed_tokens, 128 + 81 - 32);
    rig.settings.serve.cache.prefix_caching = false;
    sim_rig_run(&rig);
    assert_int_equal(rig.result.all.recomputed_tokens, 80);
    /* the more important one stays, whenever it came */
    struct vp_request ranked[] = {{.prompt = 64, .output = 60, .priority = 2},
                                  {.prompt = 64, .output = 60, .priority = 1}};
    rig.stream.fixed = ranked;
    rig.settings.serve.scheduler.by_priority = true;
    sim_rig_run(&rig);
    assert_int_equal(record(&rig, 0)->preemptions, 1);
    assert_int_equal(record(&rig, 1)->preemptions, 0);
    sim_rig_free(&rig);
}

/* A watermark keeps the second one out until the first has ended; the first is let in. */
static void v1_watermark(void **state) {
    const struct vp_request requests[] = {{.prompt = 64, .output = 40},
                                          {.prompt = 64, .output = 40}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_VLLM_V1, requests, 2);
    rig.settings.serve.cache.units = 11;
    sim_rig_run(&rig);
    is_us(record(&rig, 1)->admitted_us, 0);
    rig.settings.serve.scheduler.watermark = 0.5;
    sim_rig_run(&rig);
    is_us(record(&rig, 1)->admitted_us, record(&rig, 0)->last_us);
    assert_int_equal(rig.result.all.preemptions, 0);
    assert_true(rig.result.limit_share[VP_LIMIT_MEMORY] > 0.4);
    rig.settings.serve.scheduler.watermark = 0.9; /* one alone is let in in any case */
    sim_rig_run(&rig);
    assert_int_equal(rig.result.all.finished, 2);
    sim_rig_free(&rig);
}

/* A long prompt that does not fit as a whole is begun, or not. */
static void v1_whole_prompts(void **state) {
    const struct vp_request requests[] = {{.prompt = 96, .output = 60},
                                          {.prompt = 96, .output = 4}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_VLLM_V1, requests, 2);
    rig.settings.serve.cache.units = 11; /* 10 pages: 6 and 6 do not fit */
    rig.settings.serve.scheduler.token_budget = 128;
    sim_rig_run(&rig);
    is_us(record(&rig, 1)->admitted_us, 0); /* with 32 tokens of it */
    assert_true(rig.result.all.preemptions > 0);
    rig.settings.serve.scheduler.whole_prompt_fits = true;
    sim_rig_run(&rig);
    is_us(record(&rig, 1)->admitted_us, record(&rig, 0)->last_us);
    assert_int_equal(rig.result.all.preemptions, 0);
    sim_rig_free(&rig);
}

/* Published with the watermark (vllm pull request 44594, June 2026): a pool of 299,584 tokens, 450
 * requests of 800 to 1200 tokens in and 4000 to 6000 out, 128 in flight, prefix caching off. How
 * often sequences are preempted follows from the pool and the lengths; the clock is that of no
 * card in particular, and another one changes the counts by a few per cent. */
static void v1_preempts_as_measured(void **state) {
    static const struct {
        double watermark, preemptions;
    } MEASURED[] = {{0, 1065}, {0.02, 400}, {0.05, 187}, {0.10, 168}, {0.15, 168}};
    enum { SEEDS = 3, REQUESTS = 450 };
    (void)state;
    for (size_t i = 0; i < sizeof MEASURED / sizeof *MEASURED; i++) {
        double preemptions = 0, clocks[] = {0.5, 1, 2};
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            struct vp_request requests[REQUESTS];
            struct vp_random random;
            struct sim_rig rig;
            vp_random_seed(&random, seed, 9);
            for (int r = 0; r < REQUESTS; r++)
                requests[r] =
                    (struct vp_request){.prompt = 800 + (uint32_t)vp_random_below(&random, 401),
                                        .output = 4000 + (uint32_t)vp_random_below(&random, 2001)};
            plain(&rig, VP_SCHED_VLLM_V1, requests, REQUESTS);
            rig.settings.checked = false;
            rig.clock = (struct sim_clock){
                .step = 4500 * clocks[seed], .sequence = 5, .context = 0.009, .prompt = 12};
            rig.settings.serve.cache.units = 299584 / 16;
            rig.settings.serve.cache.prefix_caching = false;
            rig.settings.serve.scheduler.max_running = 256;
            rig.settings.serve.scheduler.token_budget = 8192;
            rig.settings.serve.scheduler.max_model_len = 8192;
            rig.settings.serve.scheduler.watermark = MEASURED[i].watermark;
            rig.settings.loop = VP_LOOP_CLOSED;
            rig.settings.concurrency = 128;
            sim_rig_run(&rig);
            preemptions += (double)rig.result.all.preemptions / SEEDS;
            sim_rig_free(&rig);
        }
        if (fabs(preemptions / MEASURED[i].preemptions - 1) > 0.2)
            fail_msg("watermark %g: %.0f preemptions, measured %.0f", MEASURED[i].watermark,
                     preemptions, MEASURED[i].preemptions);
    }
}

/* ---- vLLM V0 ---- */

/* Prompts have their own steps; a decoding sequence waits for them. */
static void v0_prompts_first(void **state) {
    struct vp_request requests[] = {{.prompt = 100, .output = 4}, {.prompt = 100, .output = 1}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_VLLM_V0, requests, 2);
    rig.settings.loop = VP_LOOP_OPEN;
    requests[1].arrival_us = 1500; /* during the first one's first decode iteration */
    sim_rig_run(&rig);
    is_us(record(&rig, 0)->first_us, 1100);
    is_us(record(&rig, 1)->first_us, 1100 + 1001 + 1100);
    is_us(record(&rig, 0)->longest_gap_us, 1100 + 1001);
    is_us(record(&rig, 0)->last_us, 1100 + 3 * 1001 + 1100);
    rig.settings.serve.scheduler.chunked = true; /* together with the decoding one */
    sim_rig_run(&rig);
    is_us(record(&rig, 1)->first_us, 1100 + 1001 + 1101);
    is_us(record(&rig, 0)->longest_gap_us, 1101);
    sim_rig_free(&rig);
}

/* Ten pages: of two sequences that want a sixth each the second goes; to host memory it takes its
 * five pages along. While it is away nobody is admitted, though there is room. */
static void v0_swaps(void **state) {
    const struct vp_request requests[] = {{.prompt = 64, .output = 60},
                                          {.prompt = 64, .output = 60},
                                          {.arrival_us = 25000, .prompt = 16, .output = 1}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_VLLM_V0, requests, 3);
    rig.settings.loop = VP_LOOP_OPEN;
    rig.settings.serve.cache.units = 10;
    rig.settings.serve.cache.prefix_caching = false;
    sim_rig_run(&rig);
    assert_int_equal(rig.result.all.preemptions, 1);
    assert_int_equal(rig.result.all.recomputed_tokens, 80);
    rig.settings.serve.scheduler.swap = true;
    rig.settings.serve.cache.host_block_us = 100;
    sim_rig_run(&rig);
    assert_int_equal(rig.result.all.swaps, 1);
    assert_int_equal(rig.result.all.preemptions, 0);
    assert_int_equal(rig.result.all.computed_tokens, 128 + 16);
    is_us(record(&rig, 0)->longest_gap_us, 1001 + 500);
    assert_true(record(&rig, 2)->admitted_us >= record(&rig, 0)->last_us);
    sim_rig_free(&rig);
}

/* Three of ten pages stay free at admission: two sequences of four do not both get in. */
static void v0_watermark(void **state) {
    const struct vp_request requests[] = {{.prompt = 60, .output = 4}, {.prompt = 60, .output = 4}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_VLLM_V0, requests, 2);
    rig.settings.serve.cache.units = 10;
    rig.settings.serve.scheduler.watermark = 0.2;
    sim_rig_run(&rig);
    is_us(record(&rig, 1)->admitted_us, 0);
    rig.settings.serve.scheduler.watermark = 0.3;
    sim_rig_run(&rig);
    is_us(record(&rig, 1)->admitted_us, record(&rig, 0)->last_us);
    sim_rig_free(&rig);
}

/* ---- SGLang ---- */

/* Prompts of 100 in batches of 250 tokens, the third one cut; then all decode together. */
static void sglang_prompts_first(void **state) {
    const struct vp_request requests[] = {
        {.prompt = 100, .output = 2}, {.prompt = 100, .output = 2}, {.prompt = 100, .output = 2}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_SGLANG, requests, 3);
    rig.settings.serve.scheduler.chunk_tokens = 250;
    sim_rig_run(&rig);
    is_us(record(&rig, 0)->first_us, 1250);
    is_us(record(&rig, 2)->first_us, 1250 + 1050);
    is_us(record(&rig, 0)->last_us, 1250 + 1050 + 1003);
    is_us(record(&rig, 2)->last_us, 1250 + 1050 + 1003);
    sim_rig_free(&rig);
}

/* The pool holds 300 tokens; a request of 100 + 100 reserves all of its own output and a share of
 * what the others may still write. */
static void sglang_reserves(void **state) {
    const struct vp_request requests[] = {{.prompt = 100, .output = 100},
                                          {.prompt = 100, .output = 60}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_SGLANG, requests, 2);
    rig.settings.serve.cache.units = 320;
    sim_rig_run(&rig); /* 320 - 200 of the first leaves less than 160 */
    is_us(record(&rig, 1)->admitted_us, record(&rig, 0)->last_us);
    assert_true(rig.result.limit_share[VP_LIMIT_MEMORY] > 0.5);
    /* by and by: when it arrives later, a share of the rest is enough; both write more than there
     * is room for, and the one with less output is retracted */
    struct vp_request later[] = {{.prompt = 100, .output = 190},
                                 {.arrival_us = 20000, .prompt = 100, .output = 60}};
    rig.settings.loop = VP_LOOP_OPEN;
    rig.stream.fixed = later;
    rig.settings.serve.scheduler.new_token_ratio = 0.2;
    sim_rig_run(&rig);
    assert_true(record(&rig, 1)->admitted_us < 25000);
    assert_int_equal(record(&rig, 1)->preemptions, 1);
    assert_int_equal(record(&rig, 0)->preemptions, 0);
    sim_rig_free(&rig);
}

/* Four sequences of 10 tokens fill 200; each holds 50 when there is no room for the next token. 20
 * steps of those that stay are freed: of three that is 60, so two have to go. */
static void sglang_retracts(void **state) {
    struct vp_request requests[4];
    struct sim_rig rig;
    (void)state;
    for (int i = 0; i < 4; i++)
        requests[i] = (struct vp_request){.prompt = 10, .output = 140};
    plain(&rig, VP_SCHED_SGLANG, requests, 4);
    rig.settings.loop = VP_LOOP_OPEN;
    for (int i = 0; i < 4; i++)
        requests[i].arrival_us = i * 4000; /* each is weighed against those that run */
    rig.settings.serve.cache.units = 200;
    rig.settings.serve.scheduler.new_token_ratio = 0;
    sim_rig_run(&rig);
    assert_int_equal(rig.result.all.finished, 4);
    assert_true(rig.result.all.preemptions >= 2);
    assert_int_equal(record(&rig, 0)->preemptions, 0);
    assert_true(record(&rig, 2)->preemptions > 0 && record(&rig, 3)->preemptions > 0);
    sim_rig_free(&rig);
}

/* ---- llama-server ---- */

static void llama_slots(void **state) {
    const struct vp_request requests[] = {
        {.prompt = 300, .output = 3}, {.prompt = 300, .output = 3}, {.prompt = 300, .output = 3}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_LLAMA, requests, 3);
    rig.settings.serve.scheduler.max_running = 2;
    rig.settings.serve.scheduler.token_budget = 512;
    sim_rig_run(&rig);
    is_us(record(&rig, 0)->first_us, 1512); /* with 212 tokens of the second */
    is_us(record(&rig, 1)->first_us, 1512 + 1 + 1088);
    is_us(record(&rig, 2)->admitted_us, record(&rig, 0)->last_us);
    sim_rig_free(&rig);
}

/* A slot keeps what it had: the next turn of a conversation finds it, other requests take the slot
 * that was used longest ago. */
static void llama_keeps_prompts(void **state) {
    const struct vp_request requests[] = {
        {.prompt = 200, .output = 50, .prefix_id = 1},
        {.prompt = 100, .output = 10, .prefix_id = 2},
        {.prompt = 300, .output = 10, .prefix_id = 1, .shared_prefix_tokens = 250},
        {.prompt = 100, .output = 10, .prefix_id = 3, .shared_prefix_tokens = 90},
        {.prompt = 100, .output = 10, .prefix_id = 1, .shared_prefix_tokens = 15},
        {.prompt = 300, .output = 10, .prefix_id = 1, .shared_prefix_tokens = 15}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_LLAMA, requests, 6);
    rig.settings.serve.scheduler.max_running = 2;
    rig.settings.loop = VP_LOOP_CLOSED;
    rig.settings.concurrency = 1;
    sim_rig_run(&rig);
    assert_int_equal(record(&rig, 1)->prefix_hit, 0);
    assert_in_range(record(&rig, 2)->prefix_hit, 248, 250);
    assert_int_equal(record(&rig, 3)->prefix_hit, 0);
    assert_int_equal(record(&rig, 4)->prefix_hit, 15); /* more than a tenth: that slot, */
    assert_int_equal(record(&rig, 5)->prefix_hit, 0);  /* less: the other one */
    sim_rig_free(&rig);
}

/* ---- static batches ---- */

/* Padded to the longest prompt, until the longest output; the third waits for the next batch. */
static void static_batches(void **state) {
    const struct vp_request requests[] = {
        {.prompt = 50, .output = 3}, {.prompt = 100, .output = 11}, {.prompt = 10, .output = 1}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_STATIC, requests, 3);
    rig.settings.serve.scheduler.max_running = 2;
    sim_rig_run(&rig);
    is_us(record(&rig, 0)->first_us, 1200);
    is_us(record(&rig, 0)->last_us, 1200 + 10 * 1002);
    is_us(record(&rig, 1)->last_us, 1200 + 10 * 1002);
    is_us(record(&rig, 2)->first_us, 1200 + 10 * 1002 + 1010);
    assert_int_equal(rig.result.all.computed_tokens, 210);
    rig.settings.serve.cache.units = 150; /* 111 each: one at a time */
    sim_rig_run(&rig);
    is_us(record(&rig, 1)->admitted_us, record(&rig, 0)->last_us);
    sim_rig_free(&rig);
}

/* ---- what several have ---- */

/* Accepted drafts: (1 - a^(k+1)) / (1 - a) tokens per iteration on average. */
static void drafts(void **state) {
    const double a = 0.7;
    struct vp_request requests[200];
    struct sim_rig rig;
    double steps;
    (void)state;
    for (int i = 0; i < 200; i++)
        requests[i] = (struct vp_request){.prompt = 10, .output = 1000};
    plain(&rig, VP_SCHED_VLLM_V1, requests, 200);
    rig.settings.loop = VP_LOOP_CLOSED;
    rig.settings.concurrency = 1;
    rig.settings.serve.scheduler.draft_tokens = 3;
    rig.settings.serve.scheduler.acceptance = a;
    sim_rig_run(&rig);
    steps = (double)rig.result.all.iterations - 200;
    assert_true(fabs(200 * 999.0 / steps / ((1 - pow(a, 4)) / (1 - a)) - 1) < 0.01);
    assert_int_equal(rig.result.all.output_tokens, 200000);
    /* a decode iteration computes four tokens */
    is_us(rig.result.end_us, 200 * 1010 + steps * 1004);
    sim_rig_free(&rig);
}

/* Two slots for three adapters: the third class waits, without holding up those behind it. */
static void adapters(void **state) {
    const struct vp_request requests[] = {{.prompt = 10, .output = 5, .class_id = 1},
                                          {.prompt = 10, .output = 5, .class_id = 2},
                                          {.prompt = 10, .output = 5, .class_id = 3},
                                          {.prompt = 10, .output = 5, .class_id = 1},
                                          {.prompt = 10, .output = 5}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_VLLM_V1, requests, 5);
    rig.settings.classes = 4;
    rig.settings.serve.scheduler.adapters = 2;
    rig.settings.serve.scheduler.adapter_load_us = 10000;
    sim_rig_run(&rig);
    is_us(record(&rig, 0)->first_us, 1040 + 20000);
    is_us(record(&rig, 3)->admitted_us, 0);
    is_us(record(&rig, 4)->admitted_us, 0);
    is_us(record(&rig, 2)->admitted_us, record(&rig, 0)->last_us);
    assert_int_equal(rig.result.all.adapter_loads, 3);
    sim_rig_free(&rig);
}

/* The front end's delay is before the queue: delays overlap, and the shorter one is over first. */
static void front_end(void **state) {
    const struct vp_request requests[] = {{.prompt = 299, .output = 1},
                                          {.prompt = 98, .output = 1}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_VLLM_V1, requests, 2);
    rig.clock.front = 10; /* us x (prompt + requests there, itself among them) */
    sim_rig_run(&rig);
    is_us(record(&rig, 1)->admitted_us, 1000);
    is_us(record(&rig, 1)->first_us, 1000 + 1098);
    is_us(record(&rig, 0)->admitted_us, 3000);
    is_us(record(&rig, 0)->first_us, 3000 + 1299);
    is_us(sim_rig_mean(&rig, rig.result.samples.queue_us), 0);
    sim_rig_free(&rig);
}

/* A prefix that had to leave comes back from host memory, while the other one goes on decoding; an
 * engine of the older kind waits for it. */
static void host_copies(void **state) {
    const struct vp_request requests[] = {
        {.prompt = 160, .output = 1, .prefix_id = 1, .shared_prefix_tokens = 160},
        {.arrival_us = 1e5, .prompt = 320, .output = 1},   /* 20 of 24 blocks: 6 of the 10 go */
        {.arrival_us = 1.9e5, .prompt = 16, .output = 60}, /* and two more for this one */
        {.arrival_us = 2e5,
         .prompt = 161,
         .output = 1,
         .prefix_id = 1,
         .shared_prefix_tokens = 160}};
    struct sim_rig rig;
    (void)state;
    for (int kind = VP_SCHED_VLLM_V1; kind <= VP_SCHED_VLLM_V0; kind++) {
        double copies = 8 * 5000, took;
        plain(&rig, (enum vp_scheduler_kind)kind, requests, 4);
        rig.settings.loop = VP_LOOP_OPEN;
        rig.settings.serve.cache.units = kind == VP_SCHED_VLLM_V1 ? 25 : 24;
        rig.settings.serve.cache.host_blocks = 100;
        rig.settings.serve.cache.host_block_us = 5000;
        sim_rig_run(&rig);
        assert_int_equal(record(&rig, 3)->prefix_hit, 160);
        assert_int_equal(rig.result.all.host_hit_tokens, 8 * 16);
        took = record(&rig, 3)->first_us - record(&rig, 3)->admitted_us;
        assert_true(took > copies && took < copies + 2.1 * 1002);
        assert_true((record(&rig, 2)->longest_gap_us > copies) == (kind == VP_SCHED_VLLM_V0));
        rig.settings.serve.cache.host_blocks = 0;
        sim_rig_run(&rig);
        assert_int_equal(record(&rig, 3)->prefix_hit, 32);
        sim_rig_free(&rig);
    }
}

/* ---- replicas ---- */

static void routes(void **state) {
    struct sim_rig rig;
    uint64_t seen[4];
    (void)state;
    for (int routing = VP_ROUTE_ROUND_ROBIN; routing <= VP_ROUTE_PREFIX; routing++) {
        sim_rig_init(&rig);
        rig.stream.count = 2000;
        rig.stream.prefixes = 5;
        rig.stream.mean_gap_us /= 3;
        rig.settings.serve.replicas = 4;
        rig.settings.routing = (enum vp_routing)routing;
        sim_rig_run(&rig);
        for (int i = 0; i < 4; i++)
            seen[i] = 0;
        for (uint64_t i = 0; i < rig.seen.count; i++)
            seen[rig.seen.record[i].replica]++;
        for (int i = 0; i < 4; i++) {
            if (routing == VP_ROUTE_ROUND_ROBIN)
                assert_int_equal(seen[i], 500);
            else if (routing != VP_ROUTE_PREFIX)
                assert_in_range(seen[i], 400, 600);
        }
        assert_int_equal(rig.result.replicas, 4);
        sim_rig_free(&rig);
    }
}

/* One id goes to one replica, so its prefix is computed once, not once on each. */
static void affinity_hits_more(void **state) {
    uint64_t hits[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct vp_request requests[400];
        struct sim_rig rig;
        for (int r = 0; r < 400; r++)
            requests[r] = (struct vp_request){.arrival_us = r * 1e5,
                                              .prompt = 400,
                                              .output = 2,
                                              .prefix_id = 1 + (uint64_t)r % 40,
                                              .shared_prefix_tokens = 320};
        plain(&rig, VP_SCHED_VLLM_V1, requests, 400);
        rig.settings.loop = VP_LOOP_OPEN;
        rig.settings.serve.replicas = 3;
        rig.settings.routing = i ? VP_ROUTE_PREFIX : VP_ROUTE_ROUND_ROBIN;
        sim_rig_run(&rig);
        hits[i] = rig.result.all.hit_tokens;
        sim_rig_free(&rig);
    }
    assert_int_equal(hits[0], (400 - 3 * 40) * 320);
    assert_int_equal(hits[1], (400 - 40) * 320);
}

/* Prompts on one replica, the rest on another; 100 tokens of cache take 10 ms on the way, one
 * transfer after the other. */
static void disaggregated(void **state) {
    const struct vp_request requests[] = {
        {.prompt = 100, .output = 4}, {.prompt = 100, .output = 4}, {.prompt = 100, .output = 1}};
    struct sim_rig rig;
    (void)state;
    plain(&rig, VP_SCHED_VLLM_V1, requests, 3);
    rig.settings.disaggregated = true;
    rig.settings.prefill = rig.settings.serve;
    rig.settings.link =
        (struct vp_link_settings){.bytes_per_token = 1e5, .bytes_per_us = 1e3, .latency_us = 50};
    sim_rig_run(&rig);
    is_us(record(&rig, 0)->first_us, 1300 + 10000 + 50);
    is_us(record(&rig, 1)->first_us, 1300 + 20000 + 50);
    is_us(record(&rig, 2)->first_us, 1300); /* one token: nothing to hand over */
    is_us(record(&rig, 0)->last_us, 1300 + 10000 + 50 + 3 * 1001);
    assert_int_equal(record(&rig, 0)->replica, 1);
    assert_int_equal(record(&rig, 2)->replica, 0);
    assert_int_equal(rig.result.all.computed_tokens, 300);
    sim_rig_free(&rig);

    /* a decode replica with room for one of them: the second's cache stays where it is until then,
     * and keeps a third prompt out */
    const struct vp_request longer[] = {
        {.prompt = 100, .output = 50}, {.prompt = 100, .output = 50}, {.prompt = 100, .output = 1}};
    plain(&rig, VP_SCHED_VLLM_V1, longer, 3);
    rig.settings.disaggregated = true;
    rig.settings.prefill = rig.settings.serve;
    rig.settings.prefill.cache.units = 15; /* two prompts of seven pages */
    rig.settings.serve.cache.units = 12;
    rig.settings.link = (struct vp_link_settings){.bytes_per_token = 1e5, .bytes_per_us = 1e3};
    sim_rig_run(&rig);
    is_us(record(&rig, 0)->first_us, 1200 + 10000);
    is_us(record(&rig, 0)->last_us, 1200 + 10000 + 49 * 1001);
    is_us(record(&rig, 1)->first_us, record(&rig, 0)->last_us + 10000);
    is_us(record(&rig, 2)->first_us, 1200 + 10000 + 1100); /* the first one's pages are free */
    sim_rig_free(&rig);

    /* under load, with small pools on both sides: nothing is lost */
    for (int kind = VP_SCHED_VLLM_V1; kind <= VP_SCHED_SGLANG; kind++) {
        sim_rig_init(&rig);
        rig.settings.serve.cache.units = 260;
        sim_rig_scheduler(&rig, (enum vp_scheduler_kind)kind);
        rig.stream.count = 1000;
        rig.stream.prefixes = 3;
        rig.settings.checked = rig.settings.disaggregated = true;
        rig.settings.prefill = rig.settings.serve;
        rig.settings.serve.replicas = 2;
        rig.settings.link = (struct vp_link_settings){.bytes_per_token = 1e5, .bytes_per_us = 1e4};
        sim_rig_run(&rig);
        assert_int_equal(rig.result.all.finished, 1000);
        assert_int_equal(rig.result.all.output_tokens, (uint64_t)rig.seen.output);
        sim_rig_free(&rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v1_shares_a_budget),
        cmocka_unit_test(v1_preempts_the_last),
        cmocka_unit_test(v1_watermark),
        cmocka_unit_test(v1_whole_prompts),
        cmocka_unit_test(v1_preempts_as_measured),
        cmocka_unit_test(v0_prompts_first),
        cmocka_unit_test(v0_swaps),
        cmocka_unit_test(sglang_prompts_first),
        cmocka_unit_test(sglang_reserves),
        cmocka_unit_test(v0_watermark),
        cmocka_unit_test(sglang_retracts),
        cmocka_unit_test(llama_slots),
        cmocka_unit_test(llama_keeps_prompts),
        cmocka_unit_test(static_batches),
        cmocka_unit_test(drafts),
        cmocka_unit_test(adapters),
        cmocka_unit_test(front_end),
        cmocka_unit_test(host_copies),
        cmocka_unit_test(routes),
        cmocka_unit_test(affinity_hits_more),
        cmocka_unit_test(disaggregated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
