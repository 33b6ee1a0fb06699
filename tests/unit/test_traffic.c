/* Traffic: what a scenario says of requests, traces, and the requests drawn from them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/doc/yaml.h"
#include "planner/import/scenario_reader.h"
#include "planner/import/trace_reader.h"
#include "planner/serving/traffic.h"
#include "tests/unit/fixture.h"

#define MODEL                                                                                      \
    "model: {model_type: llama, hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2,\n"  \
    "  num_attention_heads: 8, num_key_value_heads: 2, vocab_size: 1000,\n"                        \
    "  max_position_embeddings: 4096, torch_dtype: bfloat16}\n"

static struct fixture f;
static struct vp_scenario s;

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

static enum vp_status read_set(const char *serve, const struct vp_setting *settings, size_t count) {
    const char *text = vp_arena_printf(&f.arena, MODEL "serve: %s\n", serve);
    struct vp_node *root;

    fixture_clear(&f);
    assert_int_equal(
        vp_yaml_read(&f.ctx, &root, (struct vp_bytes){text, strlen(text)}, "dir/run.yaml"), VP_OK);
    return vp_scenario_read(&f.ctx, &s, root, "dir", settings, count);
}

static enum vp_status read(const char *serve) { return read_set(serve, NULL, 0); }

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)); }

/* ---- what a scenario says ---- */

static void lengths(void **state) {
    (void)state;
    assert_int_equal(read("{prompt_tokens: 1200, output_tokens: {lognormal: [250, 1.0]}}"), VP_OK);
    assert_int_equal(s.serve.prompt_tokens, 1200);
    assert_int_equal(s.serve.output_tokens, 250); /* the mean, not the median */
    assert_int_equal(s.traffic.prompt.kind, VP_LENGTH_FIXED);
    assert_int_equal(s.traffic.output.kind, VP_LENGTH_LOGNORMAL);
    assert_true(near(s.traffic.output.mean, 250) && near(s.traffic.output.sigma, 1));

    assert_int_equal(
        read("{prompt_tokens: {uniform: [100, 300]}, output_tokens: {exponential: 90}}"), VP_OK);
    assert_int_equal(s.serve.prompt_tokens, 200);
    assert_int_equal(s.serve.output_tokens, 90);

    assert_int_equal(read("{prompt_tokens: {distribution: lognormal, median: 100, sigma: 1},\n"
                          "  output_tokens: {fixed: 2k, max: 1000}}"),
                     VP_OK);
    assert_true(near(s.traffic.prompt.mean, 100 * exp(0.5)));
    assert_int_equal(s.serve.prompt_tokens, 165);
    assert_int_equal(s.serve.output_tokens, 1000);
}

static void the_command_line_outranks_a_distribution(void **state) {
    const struct vp_setting plain = {"serve.output_tokens", "77", "--set"};
    const struct vp_setting drawn = {"serve.output_tokens", "{uniform: [1, 9]}", "--set"};

    (void)state;
    assert_int_equal(read_set("{output_tokens: {lognormal: [250, 1.0]}}", &plain, 1), VP_OK);
    assert_int_equal(s.serve.output_tokens, 77);
    assert_int_equal(s.traffic.output.kind, VP_LENGTH_FIXED);
    assert_int_equal(read_set("{output_tokens: 500}", &drawn, 1), VP_OK);
    assert_int_equal(s.serve.output_tokens, 5);
    assert_int_equal(s.traffic.output.kind, VP_LENGTH_UNIFORM);
}

static void arrivals(void **state) {
    (void)state;
    assert_int_equal(read("{arrival: {poisson: 2.5}}"), VP_OK);
    assert_int_equal(s.traffic.arrival.kind, VP_ARRIVAL_POISSON);
    assert_true(near(s.traffic.arrival.per_s, 2.5));
    assert_string_equal(s.serve.arrival, "{\"poisson\": 2.5}");
    assert_int_equal(read("{arrival: 'poisson:240/min'}"), VP_OK);
    assert_true(near(s.traffic.arrival.per_s, 4));
    assert_int_equal(read("{arrival: {gamma: {rate: 4/s, cv: 2}}}"), VP_OK);
    assert_true(near(s.traffic.arrival.per_s, 4) && near(s.traffic.arrival.cv, 2));
    assert_int_equal(read("{arrival: 'gamma:1/s:0.5'}"), VP_OK);
    assert_int_equal(s.traffic.arrival.kind, VP_ARRIVAL_GAMMA);
    assert_int_equal(read("{arrival: {ramp: {from: 1/s, to: 8/s, over: 10 min}}}"), VP_OK);
    assert_int_equal(s.traffic.arrival.points, 2);
    assert_true(near(s.traffic.arrival.point[1].at_s, 600));
    assert_true(near(s.traffic.arrival.point[1].per_s, 8));
    assert_int_equal(read("{arrival: {ramp: [[0, 1], [60 s, 1], [60, 5/s]]}}"), VP_OK);
    assert_int_equal(s.traffic.arrival.points, 3);
    assert_int_equal(read("{arrival: batch}"), VP_OK);
    assert_int_equal(s.traffic.arrival.kind, VP_ARRIVAL_BATCH);
}

static void classes_prefixes_promises(void **state) {
    (void)state;
    assert_int_equal(
        read("{output_tokens: 100, prefix: 64,\n"
             "  classes: [{name: chat, share: 3, prompt_tokens: 400, priority: 1},\n"
             "    {share: 1, prompt_tokens: {uniform: [800, 1200]}, output_tokens: 20,\n"
             "     prefix: {tokens: 500, groups: 4}}],\n"
             "  slo: {ttft_p99: 2 s, tpot_p95: 50 ms}, routing: prefix_affinity,\n"
             "  disaggregated: {prefill: {replicas: 2, tensor: 1}, decode: {replicas: 3},\n"
             "    link_gbs: 50}}"),
        VP_OK);
    assert_int_equal(s.traffic.classes, 2);
    assert_true(near(s.traffic.class[0].share, 0.75));
    assert_int_equal(s.traffic.class[0].prefix.tokens, 64);
    assert_int_equal(s.traffic.class[0].priority, 1);
    assert_true(near(s.traffic.class[0].output.mean, 100));
    assert_string_equal(s.traffic.class[1].name, "class 2");
    assert_int_equal(s.traffic.class[1].prefix.groups, 4);
    assert_int_equal(s.serve.prompt_tokens, 550); /* 0.75 x 400 + 0.25 x 1000 */
    assert_int_equal(s.serve.output_tokens, 80);
    assert_int_equal(s.slo.count, 2);
    assert_true(near(s.slo.limit[0].ms, 2000) && near(s.slo.limit[0].share, 0.99));
    assert_true(near(s.slo.limit[1].ms, 50));
    assert_int_equal(s.traffic.disaggregation.prefill_replicas, 2);
    assert_int_equal(s.traffic.disaggregation.decode_replicas, 3);
    assert_true(near(s.traffic.disaggregation.link_gbs, 50));
}

static void faults_of_a_scenario(void **state) {
    static const struct {
        const char *serve, *said;
    } CASES[] = {
        {"{prompt_tokens: {lognormal: 250}}",
         "serve.prompt_tokens.lognormal must be [mean, sigma]"},
        {"{prompt_tokens: {lognormal: [250, -1]}}", "must be [mean, sigma]"},
        {"{prompt_tokens: {pareto: 3}}", "a number of tokens or a distribution"},
        {"{output_tokens: {uniform: [9, 3]}}", "1 <= low <= high"},
        {"{output_tokens: {exponential: 0}}", "a number of tokens above 0"},
        {"{output_tokens: {lognormal: [250, 1], uniform: [1, 2]}}", "a distribution of them"},
        {"{arrival: weekly}", "serve.arrival must be an arrival process, not weekly"},
        {"{arrival: 'poisson:'}", "not poisson:"},
        {"{arrival: {poisson: 0}}", "a rate above 0"},
        {"{arrival: {gamma: {rate: 3}}}", "{gamma: {rate, cv}}"},
        {"{arrival: {ramp: [[5, 1]]}}", "from time 0 on"},
        {"{arrival: {ramp: [[0, 0], [9, 0]]}}", "not all without rate"},
        {"{arrival: {ramp: []}}", "at least one"},
        {"{arrival: trace}", "none is named"},
        {"{slo: {ttft_p42: 2 s}}", "no latency that is promised"},
        {"{slo: {ttft_p99: 2}}", "a time above 0 with a unit"},
        {"{classes: [{prompt_tokens: 5, output_tokens: 5}]}", "share of all requests"},
        {"{classes: [{share: 1, prompt_tokens: 5}]}", "lacks output_tokens"},
        {"{classes: {share: 1}}", "a list of 1 to 16"},
        {"{classes: [{share: 1, prompt_tokens: 5, output_tokens: 5, colour: red}]}",
         "unknown key \"colour\""},
        {"{routing: random}", "round_robin"},
        {"{disaggregated: {prefill: {replicas: 0}}}", "from 1 to 4096"},
        {"{trace: a.csv, arrival: {poisson: 2}}", "says when requests come"},
        {"{draft: {tokens: 2, acceptance: 1.5}}", "a number above 0, at most 1"}};

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bool found = false;
        assert_int_equal(read(CASES[i].serve), VP_ERR_INPUT);
        for (uint32_t k = 0; k < f.diags.count; k++)
            found |= strstr(f.diags.items[k].message, CASES[i].said) != NULL;
        if (!found)
            fail_msg("%s: %s", CASES[i].serve,
                     f.diags.count ? f.diags.items[0].message : "nothing");
        assert_int_equal(f.diags.items[0].pos.line > 0, 1);
    }
}

static void a_trace_and_who_named_it(void **state) {
    const struct vp_setting trace = {"serve.trace", "day.csv", "--trace"};
    const struct vp_setting poisson = {"serve.arrival", "poisson:4/s", "--arrivals"};

    (void)state;
    assert_int_equal(read("{trace: day.csv}"), VP_OK);
    assert_int_equal(s.traffic.arrival.kind, VP_ARRIVAL_TRACE);
    assert_string_equal(s.traffic.trace_path, "dir/day.csv"); /* at the file */
    assert_int_equal(read_set("{arrival: {poisson: 2}}", &trace, 1), VP_OK);
    assert_int_equal(s.traffic.arrival.kind, VP_ARRIVAL_TRACE);
    assert_string_equal(s.traffic.trace_path, "day.csv"); /* at the current directory */
    assert_int_equal(read_set("{trace: day.csv}", &poisson, 1), VP_OK);
    assert_int_equal(s.traffic.arrival.kind, VP_ARRIVAL_POISSON);
    assert_null(s.traffic.trace_path);
}

/* ---- traces ---- */

static enum vp_status read_text(struct vp_trace *out, const char *text, double until_s) {
    fixture_clear(&f);
    return vp_trace_read(&f.ctx, out, fixture_text_file(&f, "day.csv", text), until_s);
}

static void traces(void **state) {
    struct vp_trace t;

    (void)state;
    assert_int_equal(read_text(&t,
                               "\xef\xbb\xbf"
                               "output_tokens,arrival_s,user,prompt_tokens\r\n"
                               "5,10.5,\"a, b\",100\r\n7,10.5,,200\n\n9,12,x,300",
                               0),
                     VP_OK);
    assert_int_equal(t.rows, 3);
    assert_true(near(t.span_s, 1.5)); /* from the first row */
    assert_int_equal(t.first->row[1].prompt, 200);
    assert_int_equal(t.first->row[2].line, 5);
    assert_int_equal(t.longest_total, 309);

    assert_int_equal(read_text(&t,
                               "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                               "2023-11-16 23:59:59.9805900,374,44\n"
                               "2023-11-17 00:00:00.4805900,396,109\n"
                               "2023-11-17T00:00:01Z,396,0\n",
                               0),
                     VP_OK);
    assert_int_equal(t.rows, 2);
    assert_int_equal(t.dropped, 1); /* no output */
    assert_int_equal(t.dropped_line, 4);
    assert_true(fabs(t.span_s - 0.5) < 1e-6);

    assert_int_equal(read_text(&t,
                               "arrival_s,prompt_tokens,output_tokens,prefix_id,"
                               "shared_prefix_tokens\n0,100,5,sys-a,80\n1,100,5,sys-b,80\n"
                               "2,100,5,sys-a,\n3,100,5,,0\n",
                               2.5),
                     VP_OK);
    assert_int_equal(t.rows, 3); /* the window ends before the last */
    assert_int_equal(t.behind, 1);
    assert_true(t.first->row[0].prefix == t.first->row[2].prefix);
    assert_true(t.first->row[0].prefix != t.first->row[1].prefix);
    assert_int_equal(t.first->row[0].shared, 80);
    assert_int_equal(t.first->row[2].shared, 0);
}

static void faults_of_a_trace(void **state) {
#define HEAD "arrival_s,prompt_tokens,output_tokens\n"
    static const struct {
        const char *text, *said;
        uint32_t line;
    } CASES[] = {{"", "is empty", 1},
                 {HEAD, "holds no request", 1},
                 {HEAD "0,0,5\n", "no request with a prompt", 2},
                 {"arrival_s,prompt\n1,2\n", "no column prompt_tokens", 1},
                 {HEAD "0,5,5\n2,5,5\n1,5,5\n", "not in order", 4},
                 {HEAD "0,5,5\n-1,5,5\n", "negative time", 3},
                 {HEAD "0,-5,5\n", "-5 is no number of prompt tokens", 2},
                 {HEAD "0,5,five\n", "'five' is no number of output tokens", 2},
                 {HEAD "0,5.5,5\n", "5.5 is no number of prompt tokens", 2},
                 {HEAD "soon,5,5\n", "'soon' is no time", 2},
                 {HEAD "nan,5,5\n", "'nan' is no time", 2},
                 {HEAD "1,5\n", "2 fields, where the first line names 3", 2},
                 {HEAD "0,5,5\n2023-11-16 18:15:46.68,5,5\n", "is no time", 3},
                 {"arrival_s,prompt_tokens,output_tokens,shared_prefix_tokens\n0,5,5,9\n",
                  "9 shared tokens of a prompt of 5", 2}};
    struct vp_trace t;

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        assert_int_equal(read_text(&t, CASES[i].text, 0), VP_ERR_INPUT);
        fixture_expect(&f, VP_D_TRACE, CASES[i].said);
        assert_int_equal(f.diags.items[0].pos.line, CASES[i].line);
    }
    assert_int_equal(read_text(&t, HEAD "a,1,1\nb,1,1\nc,1,1\nd,1,1\ne,1,1\nf,1,1\ng,1,1\n", 0),
                     VP_ERR_INPUT);
    assert_int_equal(f.diags.count, 6); /* the first five, and that there are more */
    assert_int_equal(vp_trace_read(&f.ctx, &t, "/nowhere/day.csv", 0), VP_ERR_INPUT);
#undef HEAD
}

/* ---- requests ---- */

static struct vp_traffic traffic;
static struct vp_traffic_settings settings;

static struct vp_request_stream open_stream(uint64_t seed) {
    settings.traffic = &traffic;
    settings.seed = seed;
    if (!(settings.rate_scale > 0))
        settings.rate_scale = settings.time_scale = 1;
    return vp_traffic_stream(vp_traffic_open(&f.arena, &settings));
}

static void plain_traffic(enum vp_arrival_kind kind, double per_s) {
    settings = (struct vp_traffic_settings){.seed = 0};
    traffic = (struct vp_traffic){.arrival = {.kind = kind, .per_s = per_s},
                                  .prompt = {VP_LENGTH_FIXED, .mean = 100},
                                  .output = {VP_LENGTH_FIXED, .mean = 10},
                                  .prefix = {.groups = 1}};
}

/* Mean and deviation over mean of the gaps between n arrivals. */
static void gaps(struct vp_request_stream *stream, int n, double *mean, double *cv) {
    double last = 0, sum = 0, squares = 0;
    struct vp_request r;

    for (int i = 0; i < n; i++) {
        assert_true(stream->next(stream->state, &r));
        assert_true(r.arrival_us >= last);
        double gap = (r.arrival_us - last) / 1e6;
        last = r.arrival_us;
        sum += gap;
        squares += gap * gap;
    }
    *mean = sum / n;
    *cv = sqrt(squares / n - *mean * *mean) / *mean;
}

static void processes_have_their_rate_and_bursts(void **state) {
    static const struct {
        enum vp_arrival_kind kind;
        double cv;
    } CASES[] = {{VP_ARRIVAL_POISSON, 1}, {VP_ARRIVAL_GAMMA, 0.5}, {VP_ARRIVAL_GAMMA, 3}};
    enum { N = 200000 };

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        double mean, cv;
        plain_traffic(CASES[i].kind, 4);
        traffic.arrival.cv = CASES[i].cv;
        struct vp_request_stream stream = open_stream(7);
        gaps(&stream, N, &mean, &cv);
        /* five deviations of the estimates */
        assert_true(fabs(mean - 0.25) < 0.25 * 5 * CASES[i].cv / sqrt(N));
        assert_true(fabs(cv - CASES[i].cv) < 0.05 * CASES[i].cv);
    }
}

/* Requests of a ramp in a stretch of time, over many seeds. */
static double on_ramp(double from_s, double to_s, int seeds) {
    double count = 0;

    for (int seed = 1; seed <= seeds; seed++) {
        struct vp_request_stream stream = open_stream((uint64_t)seed);
        struct vp_request r;
        while (stream.next(stream.state, &r) && r.arrival_us < to_s * 1e6)
            count += r.arrival_us >= from_s * 1e6;
    }
    return count / seeds;
}

static void ramps_follow_their_lines(void **state) {
    static struct vp_rate_point point[] = {{0, 0}, {100, 10}, {100, 2}, {200, 2}, {300, 0}};

    (void)state;
    plain_traffic(VP_ARRIVAL_RAMP, 0);
    traffic.arrival.point = point;
    traffic.arrival.points = 5;
    /* areas 125, 375, 200, 100; within five deviations of a mean over 40 seeds */
    assert_true(fabs(on_ramp(0, 50, 40) - 125) < 5 * sqrt(125.0 / 40));
    assert_true(fabs(on_ramp(50, 100, 40) - 375) < 5 * sqrt(375.0 / 40));
    assert_true(fabs(on_ramp(100, 200, 40) - 200) < 5 * sqrt(200.0 / 40));
    assert_true(fabs(on_ramp(200, 1e6, 40) - 100) < 5 * sqrt(100.0 / 40)); /* and then it ends */
    assert_true(near(vp_traffic_rate(&settings, 200), 3.5));               /* 700 in 200 s */
}

static void lengths_have_their_means(void **state) {
    static const struct vp_lengths CASES[] = {
        {VP_LENGTH_FIXED, .mean = 77},
        {VP_LENGTH_UNIFORM, .mean = 200, .low = 100, .high = 300},
        {VP_LENGTH_EXPONENTIAL, .mean = 500},
        {VP_LENGTH_LOGNORMAL, .mean = 250, .sigma = 1}};
    enum { N = 200000 };

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        double sum = 0;
        plain_traffic(VP_ARRIVAL_POISSON, 1);
        traffic.output = CASES[i];
        struct vp_request_stream stream = open_stream(3);
        for (int k = 0; k < N; k++) {
            struct vp_request r;
            assert_true(stream.next(stream.state, &r) && r.output >= 1 && r.prompt == 100);
            sum += r.output;
            if (CASES[i].kind == VP_LENGTH_UNIFORM)
                assert_true(r.output >= 100 && r.output <= 300);
        }
        assert_true(fabs(sum / N - CASES[i].mean) < 0.02 * CASES[i].mean);
    }
}

static void one_seed_gives_the_same_and_purposes_do_not_mix(void **state) {
    struct vp_request a[50], b[50], c[50];

    (void)state;
    plain_traffic(VP_ARRIVAL_POISSON, 2);
    traffic.output = (struct vp_lengths){VP_LENGTH_LOGNORMAL, .mean = 250, .sigma = 1};
    struct vp_request_stream first = open_stream(5), again = open_stream(5);
    for (int i = 0; i < 50; i++)
        assert_true(first.next(first.state, &a[i]) && again.next(again.state, &b[i]));
    assert_memory_equal(a, b, sizeof a);
    settings.rate_scale = 2; /* the same requests, twice as fast */
    struct vp_request_stream fast = open_stream(5);
    for (int i = 0; i < 50; i++) {
        assert_true(fast.next(fast.state, &c[i]));
        assert_int_equal(c[i].output, a[i].output);
        assert_true(near(c[i].arrival_us * 2, a[i].arrival_us));
    }
    settings.rate_scale = 1;
    struct vp_request_stream other = open_stream(6);
    assert_true(other.next(other.state, &c[0]));
    assert_true(c[0].arrival_us < a[0].arrival_us || c[0].arrival_us > a[0].arrival_us);
}

static void classes_are_drawn_by_their_shares(void **state) {
    struct vp_request_class class[] = {{.name = "a",
                                        .share = 0.8,
                                        .prompt = {VP_LENGTH_FIXED, .mean = 10},
                                        .output = {VP_LENGTH_FIXED, .mean = 1},
                                        .prefix = {.groups = 1}},
                                       {.name = "b",
                                        .share = 0.2,
                                        .prompt = {VP_LENGTH_FIXED, .mean = 90},
                                        .priority = 2,
                                        .output = {VP_LENGTH_FIXED, .mean = 2},
                                        .prefix = {.tokens = 100, .groups = 3}}};
    int count[2] = {0}, groups[4] = {0};

    (void)state;
    plain_traffic(VP_ARRIVAL_POISSON, 2);
    traffic.class = class;
    traffic.classes = 2;
    struct vp_request_stream stream = open_stream(1);
    for (int i = 0; i < 20000; i++) {
        struct vp_request r;
        assert_true(stream.next(stream.state, &r));
        count[r.class_id]++;
        if (r.class_id == 0)
            continue;
        assert_int_equal(r.prompt, 101); /* it begins with the prefix, and goes on */
        assert_int_equal(r.shared_prefix_tokens, 100);
        assert_int_equal(r.priority, 2);
        groups[r.prefix_id & 3]++;
    }
    assert_true(abs(count[1] - 4000) < 300);
    assert_true(groups[1] > 1000 && groups[2] > 1000 && groups[3] > 1000 && groups[0] == 0);
}

static void a_trace_is_scaled(void **state) {
    struct vp_trace t;
    struct vp_buf text = {.arena = &f.arena};
    int count[4] = {0};

    (void)state;
    vp_buf_add(&text, "arrival_s,prompt_tokens,output_tokens\n");
    for (int i = 0; i < 20000; i++)
        vp_buf_printf(&text, "%d,%d,5\n", i, i % 100 + 1);
    assert_int_equal(read_text(&t, vp_buf_text(&text), 0), VP_OK);
    static const double SCALE[] = {1, 0.5, 2.5, 3};
    for (int k = 0; k < 4; k++) {
        plain_traffic(VP_ARRIVAL_TRACE, 0);
        settings.trace = &t;
        settings.rate_scale = SCALE[k];
        settings.time_scale = 2;
        struct vp_request_stream stream = open_stream(9);
        struct vp_request r;
        double last = 0;
        for (; stream.next(stream.state, &r); count[k]++) {
            assert_true(r.arrival_us >= last);
            last = r.arrival_us;
        }
        assert_true(last >= 2 * 19990e6 && last <= 2 * 20001e6);
    }
    assert_int_equal(count[0], 20000);
    assert_true(abs(count[1] - 10000) < 400);
    assert_true(abs(count[2] - 50000) < 400);
    assert_int_equal(count[3], 60000);
}

static void answers_end_at_the_longest_sequence(void **state) {
    struct vp_request r;

    (void)state;
    plain_traffic(VP_ARRIVAL_CLOSED, 0);
    settings.longest = 105;
    settings.traffic = &traffic;
    settings.rate_scale = settings.time_scale = 1;
    struct vp_traffic_source *source = vp_traffic_open(&f.arena, &settings);
    struct vp_request_stream stream = vp_traffic_stream(source);
    assert_true(stream.next(stream.state, &r));
    assert_int_equal(r.output, 5);
    assert_int_equal(vp_traffic_cut(source), 1);
    traffic.prompt.mean = 200; /* it is not taken at all: left to the engine */
    source = vp_traffic_open(&f.arena, &settings);
    stream = vp_traffic_stream(source);
    assert_true(stream.next(stream.state, &r));
    assert_int_equal(r.output, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lengths, begin, end),
        cmocka_unit_test_setup_teardown(the_command_line_outranks_a_distribution, begin, end),
        cmocka_unit_test_setup_teardown(arrivals, begin, end),
        cmocka_unit_test_setup_teardown(classes_prefixes_promises, begin, end),
        cmocka_unit_test_setup_teardown(faults_of_a_scenario, begin, end),
        cmocka_unit_test_setup_teardown(a_trace_and_who_named_it, begin, end),
        cmocka_unit_test_setup_teardown(traces, begin, end),
        cmocka_unit_test_setup_teardown(faults_of_a_trace, begin, end),
        cmocka_unit_test_setup_teardown(processes_have_their_rate_and_bursts, begin, end),
        cmocka_unit_test_setup_teardown(ramps_follow_their_lines, begin, end),
        cmocka_unit_test_setup_teardown(lengths_have_their_means, begin, end),
        cmocka_unit_test_setup_teardown(one_seed_gives_the_same_and_purposes_do_not_mix, begin,
                                        end),
        cmocka_unit_test_setup_teardown(classes_are_drawn_by_their_shares, begin, end),
        cmocka_unit_test_setup_teardown(a_trace_is_scaled, begin, end),
        cmocka_unit_test_setup_teardown(answers_end_at_the_longest_sequence, begin, end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
