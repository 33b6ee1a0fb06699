/* The renderers, on results that are built by hand: layout, wording, JSON, CSV, Markdown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "planner/doc/json.h"
#include "reports/layout.h"
#include "reports/report.h"
#include "reports/words.h"
#include "tests/unit/sample_result.h"

static int setup(void **state) {
    static struct sample f;
    sample_make(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    vp_arena_free(&((struct sample *)*state)->arena);
    return 0;
}

static const char *text_of(struct sample *f, const struct vp_report_options *options) {
    struct vp_buf out = {.arena = &f->arena};
    vp_report_text(&out, &f->result, options);
    return vp_buf_text(&out);
}

static const char *explain_of(struct sample *f, const struct vp_report_options *options) {
    struct vp_buf out = {.arena = &f->arena};
    vp_report_explain(&out, &f->result, options);
    return vp_buf_text(&out);
}

static void assert_has(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("missing \"%s\" in:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part) {
    if (strstr(text, part))
        fail_msg("found \"%s\" in:\n%s", part, text);
}

/* No line is wider than that or ends with a space; the last one ends. */
static void assert_lines(struct sample *f, const char *text, int width) {
    assert_true(vp_text_ends(text, "\n"));
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        const char *line = vp_arena_text(&f->arena, p, n);
        if (vp_text_cells(line) > width || (n > 0 && line[n - 1] == ' '))
            fail_msg("%d cells: \"%s\"", vp_text_cells(line), line);
        p += n + 1;
    }
}

static void test_text_fits(void **state) {
    struct sample *f = *state;
    const char *text = text_of(f, NULL);
    assert_lines(f, text, 80);
    assert_true(vp_text_starts(text, "llama-3.1-70b, fp8 weights, fp8 KV, vLLM 0.19, "
                                     "context 32768, 16 sequences\n"));
    assert_has(text, "1 x AMD Instinct MI300X, 191.98 GiB = 206.14 GB; vLLM may take 90% = 172.79");
    assert_has(text, "\n\nFITS  needs 151.31 GiB of 172.79, 21.47 to spare (20.29..22.73)\n");
    assert_has(text, "weights            67.71   35.3%  WWWWWWW ");
    assert_has(text, "class 1.46..2.25");
    assert_has(text, "646,720 tokens, 19.73 x 32768");
    assert_has(text, "+1K context for all 16 sequences  +2.50 GiB   +1 sequence of 32768");
    assert_has(text,
               "what it misses: weights\n    +2.00, activations +1.90, graphs +1.04, runtime");
    assert_has(text, "engine.args.max_num_batched_tokens = 8192 (default: vLLM's");
    assert_has(text, "warning: plan.yaml:7:12: context 262144");
    assert_has(text, "  hint: add rope_scaling");
    assert_lacks(text, "\033");
    assert_lacks(text, "weights alone");
    assert_lacks(text, "KV cache by");
    assert_string_equal(text, text_of(f, NULL));
}

static void test_text_does_not_fit(void **state) {
    struct sample *f = *state;
    sample_make_short(f);
    const char *text = text_of(f, NULL);
    assert_lines(f, text, 80);
    assert_has(text, "\nDOES NOT FIT  needs 151.31 GiB of 57.60, 93.71 short");
    assert_has(text, "\n  weights and overheads take 71.18 GiB");
    assert_has(text, "\n  the weights alone are 67.71 GiB\n");
    assert_has(text, "\n    quality: measurable loss; speed: about the same\n"
                     "    --set precision.weights=int4\n");
    assert_has(text, "needed            151.31  236.4%  WWWWWWWW|KKKKKKKKKKKK  ");
    assert_true(strstr(text, "would help") < strstr(text, "how sure"));
}

static void test_device_line(void **state) {
    struct sample *f = *state;
    f->scenario.hardware.memory.low -= mib(256);
    f->scenario.hardware.reserved_bytes = mib(2048);
    f->devices[0].usable_bytes += mib(1065);
    f->result.report.available_kv = vp_exactly(0);
    f->result.report.available_negative = true;
    const char *text = text_of(f, NULL);
    assert_lines(f, text, 80);
    assert_has(text, "191.98 GiB (191.73..191.98) = 206.14 GB, 2.00 GiB");
    assert_has(text, "with graphs on top 173.83 GiB");
    assert_has(text, "nothing is left for a KV cache");
    f->result.report.graphs_in_budget = true;
    f->scenario.engine.kv_cache_bytes = mib(1024);
    assert_has(text_of(f, NULL), "KV cache set to 1.00 GiB, usable");
}

static void be(struct sample *f, enum vp_engine_kind engine) {
    f->scenario.engine.kind = engine;
    f->scenario.engine.name = vp_engine_name(engine);
}

static void test_sglang(void **state) {
    struct sample *f = *state;
    struct vp_report_options options = {.verbose = true};
    be(f, VP_ENGINE_SGLANG);
    f->scenario.engine.prefix_caching = true;
    f->scenario.source[VP_F_PREFIX_CACHING] =
        (struct vp_source){.origin = VP_ORIGIN_DEFAULT, .why = "its default"};
    f->scenario.measured.known[VP_M_AVAILABLE_KV] = true;
    f->scenario.measured.value[VP_M_AVAILABLE_KV] = mib(1024);
    f->devices[0].usable_bytes += mib(1065);
    const char *text = text_of(f, &options);
    assert_lines(f, text, 80);
    assert_has(text, "SGLang's static share 90% =\n  172.79 GiB, usable 173.83 GiB");
    assert_has(text, "  SGLang takes      172.79");
    assert_has(text, "    its KV pool      98.70   51.4%  646,720 tokens, 19.73 x 32768");
    assert_has(text, "SGLang's log should show, GiB:\n  model weights                     67.71");
    assert_has(text, "max_total_num_tokens 646,720, mem_fraction_static 0.9\n");
    assert_lacks(text, "vLLM ");
    assert_lacks(text, "graphs on top");
    text = explain_of(f, NULL);
    assert_has(text, "engine.args.disable_radix_cache = false (default: its default)");
    assert_has(text, "measured.kv_gib = 1.00 (measured)");
    assert_has(text, "engine takes");
}

static void test_transformers(void **state) {
    struct sample *f = *state;
    struct vp_report_options options = {.verbose = true};
    struct vp_buf markdown = {.arena = &f->arena};
    be(f, VP_ENGINE_TRANSFORMERS);
    f->scenario.source[VP_F_MAX_MODEL_LEN] =
        (struct vp_source){.origin = VP_ORIGIN_DERIVED, .why = "serve.context"};
    f->scenario.source[VP_F_BATCHED_TOKENS] =
        (struct vp_source){.origin = VP_ORIGIN_DERIVED, .why = "one batch"};
    const char *text = text_of(f, &options);
    assert_lines(f, text, 80);
    assert_has(text, "transformers takes what it\n  needs, usable 172.79 GiB");
    assert_has(text, "torch and the driver should show, GiB:\n  model weights");
    assert_lacks(text, " takes      ");
    assert_lacks(text, "by its policy");
    assert_lacks(text, "KV pool");
    assert_lacks(text, "graphs, ");
    text = explain_of(f, NULL);
    assert_has(text, "engine.args.max_length = 32768 (derived: serve.context)");
    assert_has(text, "tokens per batch = 0 (derived: one batch)");
    assert_lacks(text, "engine takes");
    vp_report_markdown(&markdown, &f->result);
    assert_lacks(vp_buf_text(&markdown), "by its policy");
    assert_lacks(vp_buf_text(&markdown), "KV pool");
    assert_has(vp_buf_text(&markdown), "| usable | 172.79 |");
}

static void test_text_at_risk(void **state) {
    struct sample *f = *state;
    f->result.verdict = VP_AT_RISK;
    sample_settle(f, 1, mib(196592), mib(154950));
    const char *text = text_of(f, NULL);
    assert_has(text, "\nAT RISK  needs 151.31 GiB of 151.32, 0.01 = 8 MiB to spare (-1.18..1.26)");
    f->result.reason = VP_REASON_ADMISSION; /* short of nothing, and still no */
    f->result.reason_text = "one sequence of 131072 tokens does not fit the pool";
    assert_has(text_of(f, NULL), "\n  one sequence of 131072 tokens does not fit the pool\n");
}

static void test_text_never_too_wide(void **state) {
    struct sample *f = *state;
    static const char *const NAMES[] = {
        "an-organisation-with-a-long-name/A-Model-That-Says-Everything-In-Its-Name-480B-A35B-FP8",
        "\xE9\x80\x9A\xE4\xB9\x89\xE5\x8D\x83\xE9\x97\xAE\xE4\xB8\x83\xE5\x8D\x81\xE4\xBA\xBF"
        "\xE5\x8F\x82\xE6\x95\xB0\xE9\x80\x9A\xE4\xB9\x89\xE5\x8D\x83\xE9\x97\xAE\xE4\xB8\x83"
        "\xE5\x8D\x81\xE4\xBA\xBF\xE5\x8F\x82\xE6\x95\xB0",
        "bad\xFF\033[31m\nname", ""};
    struct vp_report_options options = {.verbose = true, .heading = true};
    f->suggestions[0].change = NAMES[0];
    f->assumptions[0].why = NAMES[0];
    f->diags.items[0].message = NAMES[0];
    f->result.reason_text = NAMES[0];
    for (size_t i = 0; i < 2 * sizeof NAMES / sizeof NAMES[0]; i++) {
        f->model.name = f->scenario.name = NAMES[i / 2];
        options.utf8 = i % 2;
        assert_lines(f, text_of(f, &options), 80);
        assert_lines(f, explain_of(f, &options), 80);
        assert_lacks(text_of(f, &options), "\033");
    }
    assert_true(vp_text_starts(text_of(f, NULL), "model, fp8 weights"));
    f->model.name = NAMES[0];
    assert_has(text_of(f, NULL), "A-Model-T..A35B-FP8, fp8");
    options.width = 120;
    assert_lines(f, text_of(f, &options), 120);
    options.width = 20;
    sample_make_short(f);
    f->scenario.hardware.count = 8;
    f->scenario.parallel.tensor = 8;
    f->scenario.serve.concurrency = UINT64_C(1000000000000);
    f->result.prices.max_context = UINT64_MAX;
    assert_lines(f, text_of(f, &options), 80);
}

static void test_colour_only_when_asked(void **state) {
    struct sample *f = *state;
    struct vp_report_options options = {.colour = true};
    assert_has(text_of(f, &options), "\033[1;32mFITS\033[0m  needs");
    options.colour = false;
    assert_lacks(text_of(f, &options), "\033");
}

static void test_several_devices(void **state) {
    struct sample *f = *state;
    sample_add(f, VP_C_WEIGHTS, VP_FORMULA_W_MATRIX, 1, vp_exactly(mib(170000)));
    f->scenario.parallel.pipeline = 2;
    f->scenario.hardware.count = 2;
    sample_settle(f, 2, mib(196592), mib(176932));
    f->devices[1].ranks = 4;
    assert_int_equal(f->result.worst, 1);
    const char *text = text_of(f, NULL);
    assert_lines(f, text, 80);
    assert_has(text, "2 x AMD Instinct MI300X (pipeline 2), 191.98 GiB = 206.14 GB each");
    assert_has(text, "\n  gpu0 ");
    assert_has(text, "\n> gpu1 ");
    assert_has(text, "1..4   166.02   172.79     6.77  the worst\n");
    assert_has(text, "needs 166.02 GiB per card of 172.79, 6.77 to spare\n");
    assert_has(explain_of(f, NULL), "-- gpu1: stage 1, rank 1 to 4, the worst --");
}

static void test_hybrid_and_empty_cache(void **state) {
    struct sample *f = *state;
    f->result.kv.group[1] = (struct vp_kv_group){.kind = "window",
                                                 .layers = 40,
                                                 .groups = 5,
                                                 .padding_layers = 2,
                                                 .window = 1024,
                                                 .bytes_per_token = 2048,
                                                 .pages_per_sequence = 65};
    f->result.kv.group_count = 2;
    const char *text = text_of(f, NULL);
    assert_lines(f, text, 80);
    assert_has(text, "KV cache by");
    assert_has(text, "40 + 2 pad");
    assert_has(text, "5 x 65");
    f->result.kv.group[0].groups = f->result.kv.group[1].groups = 0; /* an engine without pages */
    f->result.kv.group[1].padding_layers = 0;
    f->result.kv.group[2] = (struct vp_kv_group){.kind = "state", .layers = 8, .state_bytes = 4096};
    f->result.kv.group_count = 3;
    text = text_of(f, NULL);
    assert_lines(f, text, 80);
    assert_has(text, "window  tokens kept\n  full ");
    assert_has(text, "1,024           65\n  state                    8            -");
    assert_has(text, "4,096         -            -\n");
    assert_has(text, "tokens of one sequence)");
    f->result.kv = (struct vp_kv_report){0};
    f->result.prices = (struct vp_prices){0};
    f->result.report.available_negative = true;
    text = text_of(f, NULL);
    assert_lines(f, text, 80);
    assert_lacks(text, "KV pool");
    assert_lacks(text, "KV cache by");
    assert_has(text, "none");
}

static void test_explain(void **state) {
    struct sample *f = *state;
    const char *text = explain_of(f, NULL);
    assert_lines(f, text, 80);
    assert_has(text, "a part (80 layers): 68,429,021,184 bytes = 63.73 GiB, exact [F-W-01]");
    assert_has(text, "with hidden 8,192, layers 80\n");
    assert_has(text, "sum of 2 rows at load: 72,703,016,960 bytes, the component\n");
    assert_has(text, "context = 32768 (file serve.context, plan.yaml:7:12)");
    assert_has(text, "parallel.tensor = 1 (default: one rank)");
    assert_has(text, "Leaves out:");
    assert_lacks(text, "fault of the program");
    const char *legend = strstr(text, "-- formulas --");
    assert_non_null(legend);
    assert_non_null(strstr(legend, "F-W-01"));
    assert_null(strstr(strstr(legend, "F-W-01") + 1, "F-W-01"));
    f->devices[0].component[VP_C_WEIGHTS].likely++;
    assert_has(explain_of(f, NULL), "NOT the component");
}

/* ---- JSON ---- */

static const struct vp_node *parse(struct sample *f, struct vp_buf *out) {
    struct vp_diags diags = {.arena = &f->arena};
    struct vp_ctx ctx = {.arena = &f->arena, .diags = &diags};
    struct vp_node *node = NULL;
    struct vp_bytes bytes = {vp_buf_text(out), out->size};
    enum vp_status status = vp_json_read(&ctx, &node, bytes, "result");
    if (status != VP_OK)
        fail_msg("%s\n%s", diags.items[0].message, vp_buf_text(out));
    return node;
}

static const struct vp_node *json_of(struct sample *f) {
    struct vp_buf out = {.arena = &f->arena};
    struct vp_json json = vp_json_begin(&out);
    vp_report_json(&json, &f->result);
    return parse(f, &out);
}

/* The node at a path like "devices.0.components.weights". */
static const struct vp_node *at(const struct vp_node *node, const char *path) {
    while (*path) {
        size_t n = strcspn(path, ".");
        char key[64];
        assert_non_null(node);
        assert_true(n < sizeof key);
        memcpy(key, path, n);
        key[n] = '\0';
        if (node->kind == VP_NODE_LIST) {
            assert_true(key[0] >= '0' && (uint32_t)(key[0] - '0') < node->count);
            node = node->items[key[0] - '0'];
        } else {
            const struct vp_node *child = vp_node_get(node, key);
            if (!child)
                fail_msg("no key \"%s\"", key);
            node = child;
        }
        path += n + (path[n] == '.');
    }
    return node;
}

static void assert_at(const struct vp_node *root, const char *path, const char *value) {
    const char *text = vp_node_text(at(root, path));
    if (!vp_text_eq(text, value))
        fail_msg("%s: \"%s\" instead of \"%s\"", path, text ? text : "(none)", value);
}

static void test_json_keys(void **state) {
    static const char *const KEYS[] = {
        "schema",   "scenario", "mode",    "verdict",       "reason",      "reason_text",
        "params",   "summary",  "devices", "engine_report", "intervals",   "kv_cache",
        "training", "latency",  "ledger",  "assumptions",   "suggestions", "diagnostics"};
    const struct vp_node *root = json_of(*state);
    assert_int_equal(root->kind, VP_NODE_MAP);
    assert_int_equal(root->count, sizeof KEYS / sizeof KEYS[0]);
    for (uint32_t i = 0; i < root->count; i++)
        assert_string_equal(root->keys[i], KEYS[i]);
    assert_int_equal(at(root, "training")->count, 0);
    assert_int_equal(at(root, "latency")->count, 0);
    assert_int_equal(at(root, "ledger.0")->count, 11);
    assert_int_equal(at(root, "engine_report")->count, 10);
    assert_int_equal(at(root, "intervals")->count, 10);
    assert_int_equal(at(root, "diagnostics.0")->count, 7);
    assert_int_equal(at(root, "summary")->count, 6);
    assert_int_equal(at(root, "kv_cache")->count, 9);
}

static void test_json_values(void **state) {
    static const char *const PAIRS[][2] = {
        {"schema", "vramplan.result/1"},
        {"scenario", "llama3-70b-mi300x"},
        {"mode", "serve"},
        {"verdict", "fits"},
        {"params.total", "70553706496"},
        {"summary.worst_device", "gpu0"},
        {"summary.capacity_bytes", "206141652992"},
        {"summary.need_bytes.likely", "162468462592"},
        {"devices.0.kind", "gpu"},
        {"devices.0.ranks.0", "0"},
        {"devices.0.components.weights.likely", "72703016960"},
        {"devices.0.components.graphs.confidence", "class"},
        {"devices.0.peak.phase", "load"},
        {"devices.0.peak.bytes", "162468462592"},
        {"engine_report.weights_gib", "67.709961"},
        {"engine_report.num_gpu_blocks", "40420"},
        {"engine_report.max_concurrency", "19.736"},
        {"intervals.graph_gib.low", "0.488281"},
        {"intervals.kv_cache_tokens.high", "652800"},
        {"intervals.block_size.low", "16"},
        {"kv_cache.page_bytes", "2621440"},
        {"kv_cache.max_concurrency", "19.736"},
        {"kv_cache.groups.0.kind", "full"},
        {"ledger.0.formula", "F-W-01"},
        {"ledger.0.inputs.hidden", "8192"},
        {"ledger.0.from", "load"},
        {"ledger.0.to", "serve"},
        {"ledger.0.origin", "derived"},
        {"ledger.4.origin", "profile"},
        {"assumptions.0.origin", "default"},
        {"suggestions.0.scenario_patch.serve.context", "16384"},
        {"suggestions.1.cost.quality", "measurable loss"},
        {"diagnostics.1.id", "VP206"},
        {"diagnostics.1.severity", "warning"},
        {"diagnostics.1.line", "7"},
    };
    const struct vp_node *root = json_of(*state);
    for (size_t i = 0; i < sizeof PAIRS / sizeof PAIRS[0]; i++)
        assert_at(root, PAIRS[i][0], PAIRS[i][1]);
    assert_int_equal(at(root, "summary.capacity_bytes")->kind, VP_NODE_INT);
    assert_int_equal(at(root, "suggestions.0.scenario_patch.serve.context")->kind, VP_NODE_INT);
    assert_true(vp_node_is_null(at(root, "diagnostics.0.file")));
    assert_true(vp_node_is_null(at(root, "diagnostics.0.line")));
    assert_true(vp_node_is_null(at(root, "kv_cache.groups.0.window")));
}

static void test_json_engines(void **state) {
    struct sample *f = *state;
    be(f, VP_ENGINE_SGLANG);
    const struct vp_node *root = json_of(f);
    assert_int_equal(at(root, "engine_report")->count, 4);
    assert_int_equal(at(root, "intervals")->count, 4);
    assert_at(root, "engine_report.weights_gib", "67.709961");
    assert_at(root, "engine_report.kv_gib", "98.700195");
    assert_at(root, "engine_report.max_total_num_tokens", "646720");
    assert_at(root, "engine_report.mem_fraction_static", "0.9");
    assert_at(root, "intervals.kv_gib.high", "99.609375");
    assert_at(root, "intervals.mem_fraction_static.low", "0.9");
    be(f, VP_ENGINE_TRANSFORMERS);
    root = json_of(f);
    assert_int_equal(at(root, "engine_report")->count, 3);
    assert_at(root, "engine_report.weights_gib", "67.709961");
    assert_at(root, "engine_report.activation_peak_gib", "1.900391");
    assert_at(root, "intervals.non_torch_gib.low", "0.390625");
}

static void test_json_list_and_edges(void **state) {
    struct sample *f = *state;
    struct vp_buf out = {.arena = &f->arena};
    struct vp_json json = vp_json_begin(&out);
    vp_json_list(&json);
    vp_report_json(&json, &f->result);
    sample_make_short(f);
    f->result.reason_text = "a \"quoted\" sentence\nof two lines";
    f->result.kv.known = false;
    f->result.diags = NULL;
    f->suggestions[0].patch_field = NULL;
    f->suggestions[1].patch_value = "0.95";
    vp_report_json(&json, &f->result);
    vp_json_end(&json, ']');
    const struct vp_node *root = parse(f, &out);
    assert_int_equal(root->count, 2);
    assert_at(root, "0.verdict", "fits");
    assert_at(root, "0.reason", "none");
    assert_at(root, "1.verdict", "does-not-fit");
    assert_at(root, "1.reason", "weights");
    assert_at(root, "1.reason_text", "a \"quoted\" sentence\nof two lines");
    assert_at(root, "1.summary.headroom_bytes", "-100621352960");
    assert_int_equal(at(root, "1.kv_cache")->count, 0);
    assert_int_equal(at(root, "1.diagnostics")->count, 0);
    assert_int_equal(at(root, "1.suggestions.0.scenario_patch")->count, 0);
    assert_int_equal(at(root, "1.suggestions.1.scenario_patch.precision.weights")->kind,
                     VP_NODE_REAL);
}

/* ---- the others ---- */

static uint32_t count_of(const char *text, char c) {
    uint32_t n = 0;
    for (; *text; text++)
        n += *text == c;
    return n;
}

static void test_csv(void **state) {
    struct sample *f = *state;
    struct vp_buf head = {.arena = &f->arena}, row = {.arena = &f->arena};
    vp_report_csv_header(&head);
    vp_report_csv_row(&row, &f->result);
    assert_true(vp_text_starts(vp_buf_text(&head), "name,verdict,device,capacity_bytes,need_low_"));
    assert_true(vp_text_starts(vp_buf_text(&row),
                               "llama3-70b-mi300x,fits,gpu0,206141652992,161118945280,162468462592,"
                               "163740385280,23058186240,72703016960,85899345920,,2040528896,,"));
    assert_true(vp_text_ends(vp_buf_text(&row), ",40384,19,,,,,\n")); /* no times are known */
    assert_int_equal(count_of(vp_buf_text(&head), ','), count_of(vp_buf_text(&row), ','));
    assert_int_equal(count_of(vp_buf_text(&row), '\n'), 1);
    f->result.latency.tpot_ms = (struct vp_estimate){VP_BASIS_CLASS, 10, 12.5, 16};
    f->result.latency.step_ms = (struct vp_estimate){VP_BASIS_BOUND, 8, 0, 0};
    row.size = 0;
    vp_report_csv_row(&row, &f->result);
    assert_true(vp_text_ends(vp_buf_text(&row), ",40384,19,,12.5,,,bound\n"));
    f->result.latency = (struct vp_latency){0};
    f->scenario.name = "a \"b\", c\nd";
    row.size = 0;
    vp_report_csv_row(&row, &f->result);
    assert_true(vp_text_starts(vp_buf_text(&row), "\"a \"\"b\"\", c\nd\",fits,"));
}

static void test_markdown(void **state) {
    struct sample *f = *state;
    struct vp_buf out = {.arena = &f->arena};
    f->scenario.name = "a|b `c` <script>";
    f->assumptions[0].why = "one\ntwo | three";
    sample_make_short(f);
    vp_report_markdown(&out, &f->result);
    const char *text = vp_buf_text(&out);
    assert_true(vp_text_starts(text, "### a\\|b \\`c\\` &lt;script>: does-not-fit\n"));
    assert_has(text, "| weights | 67.71 | 105.8% | exact |\n");
    assert_has(text, "| **needed** | 151.31 | 236.4% | 150.05..152.50 |");
    assert_has(text, "one two \\| three");
    assert_has(text, "93.71 short");
}

static void test_diagnostics(void **state) {
    struct sample *f = *state;
    struct vp_buf out = {.arena = &f->arena};
    vp_diag_add(&f->diags, VP_D_UNKNOWN_KEY, &(struct vp_pos){"a.yaml", 3, 0}, "key\033[2J");
    f->diags.dropped = 2;
    vp_report_diagnostics(&out, &f->diags, false);
    assert_string_equal(vp_buf_text(&out),
                        "vramplan: info: the device total is the driver's [VP303]\n"
                        "plan.yaml:7:12: warning: context 262144 is beyond the 131072 of the model "
                        "[VP206]\n"
                        "  hint: add rope_scaling or shorten the context\n"
                        "a.yaml:3: error: key?[2J [VP101]\n"
                        "vramplan: 2 more were left out (1 errors in all)\n");
    out.size = 0;
    vp_report_diagnostics(&out, &f->diags, true);
    assert_has(vp_buf_text(&out), "\033[1;31merror\033[0m: key?[2J");
}

static void test_words(void **state) {
    struct sample *f = *state;
    struct vp_arena *a = &f->arena;
    struct vp_buf out = {.arena = a};
    struct vp_page page = {.out = &out, .width = 80};
    assert_string_equal(vp_words_percent(a, 900000000), "90%");
    assert_string_equal(vp_words_percent(a, 925000000), "92.5%");
    assert_string_equal(vp_words_percent(a, 1), "0.0000001%");
    assert_string_equal(vp_words_share(a, 1, 0), "-");
    assert_string_equal(vp_words_share(a, 9995, 10000), "100.0%");
    assert_string_equal(vp_words_share(a, UINT64_MAX, UINT64_MAX), "100.0%");
    assert_string_equal(vp_words_milli(a, 1999), "1.99");
    assert_string_equal(vp_words_signed_gib(a, -1), "0.00");
    assert_string_equal(vp_words_signed_gib(a, INT64_MIN), "-8589934592.00");
    assert_int_equal(vp_words_minus(0, UINT64_MAX), -INT64_MAX);
    assert_string_equal(vp_words_verdict(VP_AT_RISK), "AT RISK");
    assert_string_equal(vp_words_plural(a, 1, "row", "rows"), "1 row");
    assert_string_equal(vp_page_shorten(&page, "abcdefghij", 7), "abc..ij");
    assert_string_equal(vp_page_shorten(&page, "abcdefghij", 2), "ab");
    page.utf8 = true;
    assert_string_equal(vp_page_shorten(&page, "abcdefghij", 7), "abc\xE2\x80\xA6hij");
    assert_int_equal(vp_text_cells("\xE5\x8D\x83"
                                   "a\xCC\x81"),
                     3);
    for (int r = VP_REASON_NONE; r <= VP_REASON_BUDGET; r++)
        assert_true(strlen(vp_words_reason((enum vp_reason)r)) > 3);
    f->scenario.precision.weights = "checkpoint";
    assert_string_equal(vp_words_weights(&f->scenario), "bf16");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_text_fits),
        TEST(test_text_does_not_fit),
        TEST(test_device_line),
        TEST(test_sglang),
        TEST(test_transformers),
        TEST(test_text_at_risk),
        TEST(test_text_never_too_wide),
        TEST(test_colour_only_when_asked),
        TEST(test_several_devices),
        TEST(test_hybrid_and_empty_cache),
        TEST(test_explain),
        TEST(test_json_keys),
        TEST(test_json_values),
        TEST(test_json_engines),
        TEST(test_json_list_and_edges),
        TEST(test_csv),
        TEST(test_markdown),
        TEST(test_diagnostics),
        TEST(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
