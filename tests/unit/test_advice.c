/* Advice: each check fires on the mistake it is about, with its figures, and is silent beside it.
 */
#include "planner/plan/advice.h"

#include <stdio.h>
#include <string.h>

#include "planner/base/units.h"
#include "tests/unit/model_builder.h"

static struct fixture f;
static const struct vp_result *last;

static int begin(void **state) {
    (void)state;
    fixture_begin(&f);
    return 0;
}

static int end(void **state) {
    (void)state;
    fixture_end(&f);
    return 0;
}

/* Plans `model` on a card under vLLM 0.19; `rest`: further lines, the engine's arguments in `args`.
 */
static const struct vp_result *plan(const char *model, const char *hardware, const char *args,
                                    const char *rest) {
    fixture_clear(&f);
    last = plan_yaml(&f, vp_arena_printf(&f.arena,
                                         "model: %s\nhardware: {%s}\n"
                                         "engine: {name: vllm, version: '0.19', args: {%s}}\n%s\n",
                                         model, hardware, args, rest));
    return last;
}

static const struct vp_diag *find(enum vp_diag_id id) {
    for (uint32_t i = 0; i < f.diags.count; i++)
        if (f.diags.items[i].id == id)
            return &f.diags.items[i];
    return NULL;
}

static void silent(enum vp_diag_id id) {
    const struct vp_diag *d = find(id);
    if (d)
        fail_msg("%s: %s", vp_diag_code(id), d->message);
}

static void has(const char *text, const char *words) {
    if (!text || !strstr(text, words))
        fail_msg("\"%s\" has no \"%s\"", text ? text : "(none)", words);
}

static void told(enum vp_diag_id id, const char *message, const char *hint) {
    has(fixture_expect(&f, id, message)->hint, hint);
}

#define SERVE_8K "serve: {context: 8192}"
#define LLAMA "llama-3.1-8b"

/* ---- hardware ---- */

static void sold_sizes(void **state) {
    (void)state;
    plan(LLAMA, "gpu: mi300x, memory: 192 GB", "", SERVE_8K);
    told(VP_D_SOLD_SIZE, "178.81 GiB; the runtime reports 191.98 GiB = 206.14 GB",
         "13.17 GiB less than there is");
    assert_int_equal(find(VP_D_SOLD_SIZE)->pos.line, 3);
    plan(LLAMA, "gpu: h100-sxm, memory: 80 GB", "", SERVE_8K);
    told(VP_D_SOLD_SIZE, "74.51 GiB; the runtime reports 79.18 GiB", "write 81080 MiB");
    plan(LLAMA, "gpu: h100-sxm, memory: 80 GiB", "", SERVE_8K);
    told(VP_D_SOLD_SIZE, "80.00 GiB", "0.82 GiB that are not there");
    plan(LLAMA, "gpu: mi300x, memory: 192 GiB", "", SERVE_8K); /* 16 MiB too much */
    silent(VP_D_SOLD_SIZE);
    plan(LLAMA, "gpu: mi300x, memory: 196592 MiB", "", SERVE_8K);
    silent(VP_D_SOLD_SIZE);
    plan(LLAMA, "gpu: mi300x", "", SERVE_8K);
    silent(VP_D_SOLD_SIZE);
}

static void packages(void **state) {
    (void)state;
    plan(LLAMA, "gpu: mi250x, count: 4", "", SERVE_8K);
    told(VP_D_PACKAGES, "count 4 of mi250x is planned as 4 devices, which are 2 packages",
         "count 8, 8 devices of 63.98 GiB");
    told(VP_D_PACKAGE_AS_DEVICE, "mi250x", "one has 63.98 GiB");
    plan(LLAMA, "gpu: mi250x, count: 3", "", SERVE_8K);
    told(VP_D_PACKAGES, "which are 1.5 packages", "count 6");
    plan(LLAMA, "gpu: mi250x, count: 1", "", SERVE_8K);
    silent(VP_D_PACKAGES);
    plan(LLAMA, "gpu: mi250x", "tensor_parallel_size: 4", SERVE_8K); /* ranks are devices */
    silent(VP_D_PACKAGES);
    plan(LLAMA, "gpu: mi250x-gcd, count: 4", "", SERVE_8K);
    silent(VP_D_PACKAGES);
}

static void partitions(void **state) {
    (void)state;
    plan(LLAMA, "gpu: mi300x, partition: CPX", "", SERVE_8K);
    told(VP_D_PARTITION, "a device is 1/8 of mi300x: 24.00 GiB; rocm-smi shows the card's 191.98",
         "8 are one card");
    silent(VP_D_PARTITION_MEMORY);
    plan(LLAMA, "gpu: mi300x, partition: CPX, memory: 192 GiB", "", SERVE_8K);
    told(VP_D_PARTITION_MEMORY, "192.00 GiB is more than the 24.00 GiB", "leave hardware.memory");
    plan(LLAMA, "gpu: mi300x, partition: DPX, memory: 95 GiB", "", SERVE_8K);
    silent(VP_D_PARTITION_MEMORY);
    plan(LLAMA, "gpu: mi300x, partition: SPX, memory: 191 GiB", "", SERVE_8K);
    silent(VP_D_PARTITION);
    silent(VP_D_PARTITION_MEMORY);
}

/* ---- FP8 ---- */

static void fp8_units(void **state) {
    (void)state;
    plan(LLAMA, "gpu: mi210", "", "precision: {weights: fp8}\n" SERVE_8K);
    told(VP_D_FP8_EMULATED, "mi210 has no FP8 units: FP8 weights save memory (8.81 GiB per device",
         "_scaled_mm");
    assert_int_equal(find(VP_D_FP8_EMULATED)->pos.line, 5);
    plan("qwen3-8b", "gpu: rx7900xtx", "", "precision: {weights: fp8}\n" SERVE_8K); /* gfx1100 */
    told(VP_D_FP8_EMULATED, "rx7900xtx", "block-scaled");
    plan(LLAMA, "gpu: a100-80-sxm", "", "precision: {weights: fp8}\n" SERVE_8K);
    told(VP_D_FP8_EMULATED, "16-bit rate", "prefill does not");
    plan("deepseek-v3", "gpu: mi100", "tensor_parallel_size: 32", SERVE_8K); /* stored in FP8 */
    told(VP_D_FP8_EMULATED, "mi100", "_scaled_mm");
    assert_null(find(VP_D_FP8_EMULATED)->pos.file); /* a profile is not the user's text */
    plan(LLAMA, "gpu: mi210", "", SERVE_8K);
    silent(VP_D_FP8_EMULATED);
    plan(LLAMA, "gpu: mi210", "", "precision: {weights: int8}\n" SERVE_8K);
    silent(VP_D_FP8_EMULATED);
}

static void fp8_formats_by_chip(void **state) {
    (void)state;
    static const struct {
        const char *gpu;
        bool units, fnuz;
    } CHIPS[] = {
        {"mi100", false, false},   {"mi210", false, false},     {"mi250-gcd", false, false},
        {"mi300x", true, true},    {"mi325x", true, true},      {"mi300a", true, true},
        {"mi308x", true, true},    {"mi350x", true, false},     {"mi355x", true, false},
        {"w7900", false, false},   {"rx7900xtx", false, false}, {"r9700", true, false},
        {"rx9060xt", true, false}, {"h100-sxm", true, false},   {"a100-80-sxm", false, false}};
    for (size_t i = 0; i < sizeof CHIPS / sizeof *CHIPS; i++) {
        plan("llama-3.2-1b", vp_arena_printf(&f.arena, "gpu: %s", CHIPS[i].gpu), "",
             "precision: {weights: fp8}\nserve: {context: 1024}");
        if ((find(VP_D_FP8_EMULATED) == NULL) != CHIPS[i].units ||
            (find(VP_D_FP8_FNUZ) != NULL) != CHIPS[i].fnuz)
            fail_msg("FP8 of %s", CHIPS[i].gpu);
    }
    plan(LLAMA, "gpu: mi300x", "", "precision: {weights: fp8}\n" SERVE_8K);
    told(VP_D_FP8_FNUZ, "FP8 of mi300x is e4m3fnuz", "half of each value");
    plan(LLAMA, "gpu: mi300x", "", SERVE_8K);
    silent(VP_D_FP8_FNUZ);
}

/* ---- gradient checkpointing ---- */

static void checkpointing(void **state) {
    (void)state;
    plan(LLAMA, "gpu: mi300x", "gradient_checkpointing: true, max_num_seqs: 16", SERVE_8K);
    told(VP_D_NO_BACKWARD, "engine.args.gradient_checkpointing frees nothing when serving",
         "max_num_batched_tokens 4096 instead of 8192");
    uint64_t now = last->report.activation_peak.likely;
    plan(LLAMA, "gpu: mi300x", "max_num_seqs: 16, max_num_batched_tokens: 4096", SERVE_8K);
    uint64_t half = last->report.activation_peak.likely;
    assert_true(half < now);
    silent(VP_D_NO_BACKWARD);
    const char *figures =
        vp_arena_printf(&f.arena, "makes it %s instead of %s GiB", vp_format_gib(&f.arena, half, 2),
                        vp_format_gib(&f.arena, now, 2));
    plan(LLAMA, "gpu: mi300x", "use_gradient_checkpointing: unsloth, max_num_seqs: 16", SERVE_8K);
    told(VP_D_NO_BACKWARD, "use_gradient_checkpointing", figures);
    /* where the sampler is the peak, a smaller chunk is no help */
    plan(LLAMA, "gpu: mi300x",
         "enable-activation-checkpointing: true, max_num_batched_tokens: 1024", SERVE_8K);
    told(VP_D_NO_BACKWARD, "enable_activation_checkpointing", "max_num_seqs 512 instead of 1024");
    plan(LLAMA, "gpu: mi300x", "gradient_checkpointing: false", SERVE_8K);
    silent(VP_D_NO_BACKWARD);
    fixture_clear(&f);
    plan_yaml(&f, "model: llama-3.1-8b\nhardware: {gpu: mi300x}\n"
                  "engine: {name: transformers, args: {gradient_checkpointing: true}}\n" SERVE_8K);
    told(VP_D_NO_BACKWARD, "frees nothing when serving", "prefill_chunk_size");
}

static void checkpointing_of_the_model(void **state) {
    (void)state;
    plan("{from: llama-3.1-8b, gradient_checkpointing: true}", "gpu: mi300x", "", SERVE_8K);
    told(VP_D_NO_BACKWARD, "gradient_checkpointing of the model", "instead of");
    assert_int_equal(find(VP_D_NO_BACKWARD)->pos.line, 2);
    plan("{from: llama-3.1-8b, gradient_checkpointing: false}", "gpu: mi300x", "", SERVE_8K);
    silent(VP_D_NO_BACKWARD);
}

/* ---- replicated caches ---- */

static void kv_heads(void **state) {
    (void)state;
    /* 16 sequences of 32k are 320 KiB x 32768 x 16 = 160 GiB; 16 ranks keep 20 GiB each, of which
     * every second byte is a copy */
    plan("llama-3.1-70b", "gpu: mi300x", "tensor_parallel_size: 16",
         "serve: {context: 32768, concurrency: 16}");
    assert_int_equal(last->devices[0].component[VP_C_KV_CACHE].likely, GIB(20));
    told(VP_D_KV_REPLICATED, "8 KV heads on 16 ranks: each is kept 2 times",
         "decode_context_parallel_size 2");
    has(find(VP_D_KV_REPLICATED)->message, "10.00 GiB of it are copies, 160.00 GiB over the group");
    uint64_t tokens = last->kv.tokens;
    plan("llama-3.1-70b", "gpu: mi300x",
         "tensor_parallel_size: 16, decode_context_parallel_size: 2",
         "serve: {context: 32768, concurrency: 16}");
    assert_int_equal(last->kv.tokens, 2 * tokens);
    silent(VP_D_KV_REPLICATED);
    plan("llama-3.1-70b", "gpu: mi300x", "tensor_parallel_size: 8", SERVE_8K);
    silent(VP_D_KV_REPLICATED);
}

static void latents(void **state) {
    (void)state;
    plan("deepseek-v3", "gpu: mi300x", "tensor_parallel_size: 8", SERVE_8K);
    /* 70,272 bytes x 8192 are 0.536 GiB on each rank, 7 of 8 are copies */
    told(VP_D_KV_REPLICATED, "kept whole on each of 8 ranks: 0.47 GiB", "parallel_size 8");
    plan("deepseek-v3", "gpu: mi300x, memory: 900 GiB", "", SERVE_8K);
    silent(VP_D_KV_REPLICATED);
    /* hybrids cannot share a sequence's cache over ranks */
    plan("gemma-3-12b", "gpu: mi300x", "tensor_parallel_size: 16", SERVE_8K);
    told(VP_D_KV_REPLICATED, "8 KV heads on 16 ranks", "tensor 8 needs no copies");
}

static void replicated_under_sglang(void **state) {
    (void)state;
    struct builder b;
    struct vp_result r;
    builder_begin(&b);
    b.model.hidden = 512;
    builder_layer(&b, block_mla(8, 512, 64), 4);
    b.scenario.engine.kind = VP_ENGINE_SGLANG;
    b.scenario.parallel.tensor = b.scenario.hardware.count = 4;
    assert_int_equal(vp_plan_run(&b.f.ctx, &r, &b.scenario), VP_OK);
    has(fixture_expect(&b.f, VP_D_KV_REPLICATED, "4 ranks")->hint, "enable_dp_attention");
    fixture_clear(&b.f);
    b.scenario.parallel.attention_data = 4; /* each rank has sequences of its own */
    assert_int_equal(vp_plan_run(&b.f.ctx, &r, &b.scenario), VP_OK);
    for (uint32_t i = 0; i < b.f.diags.count; i++)
        assert_true(b.f.diags.items[i].id != VP_D_KV_REPLICATED);
    builder_end(&b);
}

/* ---- what the engine's share is for ---- */

static void graphs(void **state) {
    (void)state;
    plan(LLAMA, "gpu: mi210", "gpu_memory_utilization: 0.99", SERVE_8K);
    told(VP_D_GRAPHS_OUTSIDE, "come on top of the share that vLLM takes, which leaves 0.64 GiB",
         "gpu_memory_utilization 0.94 leaves room for up to 3.63 GiB");
    plan(LLAMA, "gpu: mi210", "gpu_memory_utilization: 0.94", SERVE_8K);
    silent(VP_D_GRAPHS_OUTSIDE);
    plan(LLAMA, "gpu: mi210", "gpu_memory_utilization: 0.99, enforce_eager: true", SERVE_8K);
    silent(VP_D_GRAPHS_OUTSIDE);
    plan(LLAMA, "gpu: mi210", "gpu_memory_utilization: 0.99, kv_cache_memory_bytes: 8 GiB",
         SERVE_8K);
    silent(VP_D_GRAPHS_OUTSIDE);
    /* weights that leave nothing at the share that would do */
    plan(LLAMA, "gpu: {id: small, arch: gfx90a, driver_mib: 18432}", "gpu_memory_utilization: 0.97",
         "serve: {context: 256}");
    told(VP_D_GRAPHS_OUTSIDE, "leaves 0.54 GiB", "enforce_eager");
}

static void sampler(void **state) {
    (void)state;
    plan(LLAMA, "gpu: rtx5090", "max_num_seqs: 1024", "serve: {context: 8192, concurrency: 20}");
    told(VP_D_SAMPLER_ROWS, "max_num_seqs = 1024", "max_num_seqs 32 gives a cache of");
    has(find(VP_D_SAMPLER_ROWS)->message, "the workload has 20");
    const char *hint = find(VP_D_SAMPLER_ROWS)->hint;
    plan(LLAMA, "gpu: rtx5090", "max_num_seqs: 32", "serve: {context: 8192, concurrency: 20}");
    has(hint, vp_arena_printf(&f.arena, "a cache of %s tokens",
                              vp_format_count(&f.arena, last->kv.tokens)));
    silent(VP_D_SAMPLER_ROWS);
    /* 1.8 GiB of a card of 192 are no matter */
    plan(LLAMA, "gpu: mi300x", "max_num_seqs: 1024", SERVE_8K);
    silent(VP_D_SAMPLER_ROWS);
}

static void policy(void **state) {
    (void)state;
    plan(LLAMA, "gpu: mi300x", "", SERVE_8K);
    told(VP_D_POLICY_NOT_NEED, "GiB by its policy, this workload needs", "would be enough");
    unsigned share = 0;
    const char *hint = find(VP_D_POLICY_NOT_NEED)->hint;
    assert_int_equal(sscanf(hint, "gpu_memory_utilization 0.%2u", &share), 1);
    /* it is enough, and a hundredth less is not */
    plan(LLAMA, "gpu: mi300x", vp_arena_printf(&f.arena, "gpu_memory_utilization: 0.%02u", share),
         SERVE_8K);
    assert_int_equal(last->verdict, VP_FITS);
    silent(VP_D_POLICY_NOT_NEED);
    plan(LLAMA, "gpu: mi300x",
         vp_arena_printf(&f.arena, "gpu_memory_utilization: 0.%02u", share - 1), SERVE_8K);
    assert_int_not_equal(last->verdict, VP_FITS);
    plan(LLAMA, "gpu: mi300x", "", "serve: {context: 131072, concurrency: 8}"); /* 128 GiB */
    silent(VP_D_POLICY_NOT_NEED);
    plan(LLAMA, "gpu: mi300x", "kv_cache_memory_bytes: 100 GiB", SERVE_8K); /* asked for */
    silent(VP_D_POLICY_NOT_NEED);
}

static void token_line(void **state) {
    (void)state;
    plan("gemma-3-12b", "gpu: mi300x", "", "serve: {context: 65536}");
    told(VP_D_TOKEN_LINE, "blocks / 6 groups x 16 and no capacity", "x at 65,536 tokens) instead");
    has(find(VP_D_TOKEN_LINE)->message, vp_format_count(&f.arena, last->kv.blocks));
    has(find(VP_D_TOKEN_LINE)->message,
        vp_format_count(&f.arena, last->report.kv_cache_tokens.likely));
    plan(LLAMA, "gpu: mi300x", "", SERVE_8K);
    silent(VP_D_TOKEN_LINE);
    fixture_clear(&f); /* later versions print concurrency x max_model_len */
    plan_yaml(&f, "model: gemma-3-12b\nhardware: {gpu: mi300x}\n"
                  "engine: {version: '0.23', args: {max_model_len: 120k}}\n"
                  "serve: {context: 9900}\n");
    told(VP_D_TOKEN_LINE, "concurrency x max_model_len 122880", "122,880 tokens");
    fixture_clear(&f);
    plan_yaml(&f, "model: gemma-3-12b\nhardware: {gpu: mi300x}\nengine: {version: '0.23'}\n"
                  "serve: {context: 9900}\n");
    silent(VP_D_TOKEN_LINE);
}

static void experts(void **state) {
    (void)state;
    plan("qwen3-235b-a22b", "gpu: mi300x", "", SERVE_8K);
    assert_int_equal(last->verdict, VP_DOES_NOT_FIT);
    told(VP_D_EXPERTS_RESIDENT, "235.09 x 10^9 parameters, though 22.", "need 3 such devices");
    plan("qwen3-235b-a22b", "gpu: mi300x", "tensor_parallel_size: 4", SERVE_8K);
    assert_int_equal(last->verdict, VP_FITS);
    silent(VP_D_EXPERTS_RESIDENT);
    plan("llama-3.1-405b", "gpu: mi300x", "", SERVE_8K); /* dense */
    assert_int_equal(last->verdict, VP_DOES_NOT_FIT);
    silent(VP_D_EXPERTS_RESIDENT);
    /* it is the cache that does not fit */
    plan("qwen3-30b-a3b", "gpu: mi300x", "", "serve: {context: 40960, concurrency: 200}");
    assert_int_equal(last->verdict, VP_DOES_NOT_FIT);
    silent(VP_D_EXPERTS_RESIDENT);
}

/* ---- SGLang on AITER ---- */

/* Llama 3.1 8B's attention at its 128k, a pool of few tokens: sglang#20888 tried 16.25 GiB. */
static void aiter_begin(struct builder *b) {
    builder_begin(b);
    b->model.hidden = 4096;
    builder_layer(b, block_gqa(32, 8, 128), 32);
    b->scenario.engine.kind = VP_ENGINE_SGLANG;
    b->scenario.engine.name = "sglang";
    b->scenario.engine.max_model_len = 131072;
    b->scenario.hardware.gpu.vendor = "amd";
    b->scenario.hardware.gpu.arch = "gfx942";
    b->scenario.measured.known[VP_M_BLOCKS] = true;
    b->scenario.measured.value[VP_M_BLOCKS] = 25432; /* tokens */
}

static const struct vp_diag *aiter_run(struct builder *b) {
    struct vp_result r;
    fixture_clear(&b->f);
    assert_int_equal(vp_plan_run(&b->f.ctx, &r, &b->scenario), VP_OK);
    for (uint32_t i = 0; i < b->f.diags.count; i++)
        if (b->f.diags.items[i].id == VP_D_AITER_WORKSPACE)
            return &b->f.diags.items[i];
    return NULL;
}

static void aiter(void **state) {
    (void)state;
    struct vp_engine_arg env = {"SGLANG_USE_AITER", "1", {"s.yaml", 7, 3}, false};
    struct vp_engine_arg args[] = {{"attention_backend", "triton", {0}, false},
                                   {"max_running_requests", "256", {0}, false}};
    struct builder b;
    aiter_begin(&b);
    assert_null(aiter_run(&b)); /* nobody asks for it */
    b.scenario.engine.env = &env;
    b.scenario.engine.env_count = 1;
    const struct vp_diag *d = aiter_run(&b);
    assert_non_null(d);
    has(d->message, "about 16.25 GiB at 2048 requests of 131,072 tokens");
    has(d->hint, "max_running_requests 256 makes it 2.03 GiB");
    assert_int_equal(d->pos.line, 7);
    b.scenario.engine.args = args;
    b.scenario.engine.arg_count = 1;
    assert_null(aiter_run(&b)); /* the argument outranks the variable */
    args[0].value = "aiter";
    b.scenario.engine.env_count = 0;
    b.scenario.engine.arg_count = 2;
    d = aiter_run(&b);
    assert_null(d); /* 2.03 GiB, and a tenth of 80 GiB is left */
    b.scenario.engine.utilization_ppb = 970000000;
    d = aiter_run(&b);
    assert_non_null(d);
    has(d->message, "about 2.03 GiB at 256 requests of 131,072 tokens, 2.");
    has(d->hint, "max_running_requests 128 makes it 1.02 GiB");
    b.scenario.hardware.gpu.arch = "gfx90a";
    assert_null(aiter_run(&b));
    b.scenario.hardware.gpu.arch = "gfx950";
    b.scenario.engine.kind = VP_ENGINE_VLLM;
    assert_null(aiter_run(&b));
    builder_end(&b);
}

/* From a scenario: MI355X and Qwen3-30B at its own length, as the issue has it. */
static void aiter_as_reported(void **state) {
    (void)state;
    static const char RUN[] = "model: {from: qwen3-30b-a3b, max_position_embeddings: 262144}\n"
                              "hardware: {gpu: mi355x}\nprecision: {weights: fp8}\n"
                              "engine: {name: sglang, args: {mem_fraction_static: 0.911}%s}\n"
                              "serve: {context: 262144}\n";
    fixture_clear(&f);
    plan_yaml(&f, vp_arena_printf(&f.arena, RUN, ""));
    silent(VP_D_AITER_WORKSPACE);
    fixture_clear(&f);
    plan_yaml(&f, vp_arena_printf(&f.arena, RUN, ", env: {SGLANG_USE_AITER: 1}"));
    told(VP_D_AITER_WORKSPACE, "4096 requests of 262,144 tokens", "attention_backend triton");
}

/* sglang#36563: 4.06 GiB at 8 heads per rank of TP8. A larger pool asks for more requests:
 * sglang#18262 had 3261, 51.75 GiB at 262,144 tokens and 32 heads. */
static void aiter_sizes(void **state) {
    (void)state;
    struct vp_engine_arg env = {"SGLANG_USE_AITER", "true", {0}, false};
    struct builder b;
    aiter_begin(&b);
    b.scenario.engine.env = &env;
    b.scenario.engine.env_count = 1;
    builder_layer(&b, block_gqa(64, 8, 128), 64);
    b.scenario.parallel.tensor = b.scenario.hardware.count = 8;
    b.scenario.engine.utilization_ppb = 970000000;
    has(aiter_run(&b)->message, "about 4.06 GiB at 2048 requests");
    b.scenario.parallel.tensor = b.scenario.hardware.count = 1;
    builder_layer(&b, block_gqa(32, 4, 128), 48);
    b.scenario.engine.max_model_len = 262144;
    b.scenario.measured.value[VP_M_BLOCKS] = 1669632;
    has(aiter_run(&b)->message, "about 51.75 GiB at 3261 requests");
    builder_layer(&b, block_mla(32, 512, 64), 48); /* another kernel */
    assert_null(aiter_run(&b));
    builder_end(&b);
}

/* ---- the whole ---- */

/* Nothing of a result depends on the advice: the figures are those of the evaluation alone. */
static void nothing_changes(void **state) {
    (void)state;
    struct vp_result plain;
    plan("qwen3-235b-a22b", "gpu: mi300x", "gradient_checkpointing: true", SERVE_8K);
    assert_true(vp_plan_evaluate(&f.arena, &plain, last->scenario));
    assert_int_equal(plain.verdict, last->verdict);
    assert_int_equal(plain.reason, last->reason);
    assert_memory_equal(&plain.kv, &last->kv, sizeof plain.kv);
    assert_memory_equal(&plain.report, &last->report, sizeof plain.report);
    assert_int_equal(plain.ledger.count, last->ledger.count);
}

/* A plan without any of the mistakes has no note of these. */
static void quiet(void **state) {
    (void)state;
    plan(LLAMA, "gpu: mi300x", "", "serve: {context: 32768, concurrency: 32}");
    assert_int_equal(f.diags.count, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(sold_sizes),
        TEST(packages),
        TEST(partitions),
        TEST(fp8_units),
        TEST(fp8_formats_by_chip),
        TEST(checkpointing),
        TEST(checkpointing_of_the_model),
        TEST(kv_heads),
        TEST(latents),
        TEST(replicated_under_sglang),
        TEST(graphs),
        TEST(sampler),
        TEST(policy),
        TEST(token_line),
        TEST(experts),
        TEST(aiter),
        TEST(aiter_sizes),
        TEST(aiter_as_reported),
        TEST(nothing_changes),
        TEST(quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
