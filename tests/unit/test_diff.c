/* What moved the bytes between two plans: the steps must add up to the whole, whatever differs; the
 * order is fixed; what is refused on the way is joined with what comes after it. */
#include "tests/unit/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/diff.h"
#include "planner/base/memo.h"
#include "planner/base/text.h"
#include "planner/doc/yaml.h"
#include "planner/import/settings.h"
#include "planner/plan/plan.h"

/* Training steps are replayed allocation by allocation: fewer of them. LONG: ten times as many. */
enum { PAIRS = 75, TRAIN_PAIRS = 5, LONG_TIMES = 10, MOST_CHANGES = 6 };

/* One scenario on the way to be compared. */
struct one {
    struct vp_node *root;
    const char *base;
    struct vp_result *result; /* NULL: refused */
};

static struct vp_ctx quiet(const struct vp_ctx *ctx) {
    struct vp_ctx own = *ctx;
    own.diags = VP_NEW(ctx->arena, struct vp_diags);
    own.diags->arena = ctx->arena;
    return own;
}

static void plan_one(const struct vp_ctx *ctx, struct one *one) {
    struct vp_ctx own = quiet(ctx);
    struct vp_found_item item = {.root = one->root, .name = "test"};
    struct vp_found found = {.items = &item, .count = 1, .base = one->base, .diags = own.diags};
    struct vp_scenarios scenarios;
    one->result = NULL;
    if (vp_input_finish(&own, &scenarios, &found, NULL, 0) != VP_OK)
        return;
    one->result = VP_NEW(ctx->arena, struct vp_result);
    if (!vp_plan_evaluate(ctx->arena, one->result, scenarios.items[0]))
        one->result = NULL;
}

static struct one one_of(const struct vp_ctx *ctx, const char *text) {
    struct vp_ctx own = *ctx;
    struct one one = {0};
    assert_int_equal(
        vp_yaml_read(&own, &one.root, (struct vp_bytes){text, strlen(text)}, "test.yaml"), VP_OK);
    plan_one(ctx, &one);
    return one;
}

static void compare(struct vp_ctx *ctx, struct vp_difference *out, const struct one *before,
                    const struct one *after) {
    struct vp_ctx a = quiet(ctx), b = quiet(ctx);
    struct vp_diff_side old = {
        .ctx = &a, .root = before->root, .base = before->base, .result = before->result};
    struct vp_diff_side new = {
        .ctx = &b, .root = after->root, .base = after->base, .result = after->result};
    a.memo = vp_memo_new();
    vp_diff_make(ctx, out, &old, &new);
    vp_memo_free(a.memo);
}

/* ---- the sum ---- */

static int64_t all_of(const struct vp_worst_bytes *bytes) {
    int64_t all = 0;
    for (uint32_t i = 0; i < bytes->owners; i++)
        all += (int64_t)bytes->owner[i].bytes;
    return all;
}

/* Every figure of the new plan is that of the old one and what the steps moved. */
static void adds_up(const struct vp_difference *d, const struct one *before,
                    const struct one *after) {
    const struct vp_device *old = &before->result->devices[before->result->worst];
    const struct vp_device *new = &after->result->devices[after->result->worst];
    int64_t need = (int64_t)old->need.likely, usable = (int64_t)old->usable_bytes;
    int64_t rows = all_of(&d->before), component[VP_COMPONENT_COUNT];
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        component[c] = (int64_t)old->component[c].likely;
    for (uint32_t i = 0; i < d->steps; i++) {
        const struct vp_difference_step *step = &d->step[i];
        int64_t of_components = 0;
        need += step->need_bytes;
        usable += step->usable_bytes;
        for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
            component[c] += step->component[c];
            of_components += step->component[c];
        }
        for (uint32_t m = 0; m < step->moved_count; m++) {
            assert_int_not_equal(step->moved[m].bytes, 0);
            of_components -= step->moved[m].bytes;
            rows += step->moved[m].bytes;
        }
        assert_int_equal(of_components, 0); /* a component is its rows */
        assert_true(step->causes > 0);
    }
    assert_int_equal(need, new->need.likely);
    assert_int_equal(usable, new->usable_bytes);
    assert_int_equal(rows, all_of(&d->after));
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        assert_int_equal(component[c], new->component[c].likely);
}

/* Each cause belongs to one step, in order. */
static void names_all(const struct vp_difference *d) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < d->steps; i++) {
        assert_ptr_equal(d->step[i].cause, &d->cause[next]);
        next += d->step[i].causes;
    }
    assert_int_equal(next, d->causes);
    for (uint32_t i = 1; i < d->causes; i++)
        assert_true(d->cause[i - 1].group <= d->cause[i].group);
}

static const struct {
    const char *path, *values[6];
} CHANGES[] = {
    {"hardware.gpu", {"mi300x", "h200", "mi325x", "r9700"}},
    {"hardware.count", {"1", "2", "8"}},
    {"hardware.reserved", {"3 GiB"}},
    {"parallel.tensor", {"1", "2", "8"}},
    {"parallel.pipeline", {"1", "2"}},
    {"parallel.data", {"1", "2"}},
    {"parallel.zero", {"0", "1", "3"}},
    {"parallel.fsdp", {"true", "false"}},
    {"precision.weights", {"bf16", "fp8", "int4", "q4_k"}},
    {"precision.kv_cache", {"auto", "fp8", "q8_0"}},
    {"precision.keep", {"[embedding]", "[norm, router]"}},
    {"serve.context", {"1k", "32k", "131072"}},
    {"serve.concurrency", {"1", "7", "64"}},
    {"serve.prompt_tokens", {"100", "4k"}},
    {"serve.lora.rank", {"16"}},
    {"serve.lora.slots", {"4"}},
    {"engine.version", {"0.11", "0.19"}},
    {"engine.args.max_num_batched_tokens", {"2048", "16384"}},
    {"engine.args.max_num_seqs", {"8", "512"}},
    {"engine.args.enforce_eager", {"true"}},
    {"engine.args.n_gpu_layers", {"10", "999"}},
    {"engine.env.VLLM_ROCM_USE_AITER", {"1", "0"}},
    {"model", {"llama-3.1-8b", "qwen3-30b-a3b"}},
    {"model.num_hidden_layers", {"3", "20"}},
    {"model.num_key_value_heads", {"2", "4"}},
    {"model.torch_dtype", {"float16", "float32"}},
    {"train.micro_batch", {"1", "2"}},
    {"train.sequence_length", {"1024", "8k"}},
    {"train.recompute", {"none", "full"}},
    {"train.optimizer", {"adamw", "lion", "sgd"}},
    {"train.lora.rank", {"8"}},
    {"measured.weights_gib", {"20"}},
    {"budget.headroom", {"2 GiB"}},
};
enum { CHANGE_COUNT = sizeof CHANGES / sizeof *CHANGES };

static uint32_t turn;

static uint32_t pick(uint32_t count) {
    turn = turn * 1664525 + 1013904223;
    return (turn >> 8) % count;
}

/* The example with some settings written into its file. */
static struct one some_variant(struct vp_ctx *ctx, const struct vp_found *found) {
    struct vp_setting settings[MOST_CHANGES];
    struct one one = {.base = found->base};
    struct vp_node *tree, *model;
    size_t count = pick(MOST_CHANGES);
    for (size_t i = 0; i < count; i++) {
        uint32_t at = pick(CHANGE_COUNT), values = 0;
        while (values < 6 && CHANGES[at].values[values])
            values++;
        settings[i] = (struct vp_setting){.path = CHANGES[at].path,
                                          .value = CHANGES[at].values[pick(values)]};
    }
    assert_int_equal(vp_settings_tree(ctx, &tree, settings, count), VP_OK);
    one.root = vp_node_merge(ctx, found->items[0].root, tree);
    model = vp_settings_model(ctx, vp_node_get(found->items[0].root, "model"),
                              vp_node_get(tree, "model"));
    vp_node_set(ctx, one.root, "model", model->pos, model);
    plan_one(ctx, &one);
    return one;
}

/* Variants of one example against each other; returns how many could be compared. */
static int pairs_of(const char *input, int pairs, uint32_t *joined) {
    struct fixture f;
    struct vp_found found;
    int made = 0;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    f.ctx.memo = vp_memo_new();
    assert_int_equal(vp_input_find(&f.ctx, &found, input), VP_OK);
    if (getenv("LONG"))
        pairs *= LONG_TIMES;
    for (int i = 0; i < pairs; i++) {
        struct vp_difference difference;
        struct one before = some_variant(&f.ctx, &found), after = some_variant(&f.ctx, &found);
        compare(&f.ctx, &difference, &before, &after);
        assert_true(difference.planned == (before.result && after.result));
        for (uint32_t k = 0; k < difference.causes; k++)
            assert_string_not_equal(difference.cause[k].path, "files beside the scenario");
        if (!difference.planned)
            continue;
        adds_up(&difference, &before, &after);
        names_all(&difference);
        for (uint32_t k = 0; k < difference.steps; k++)
            *joined += difference.step[k].causes > 1 && !difference.step[k].whole_model;
        made++;
    }
    vp_memo_free(f.ctx.memo);
    fixture_end(&f);
    return made;
}

static void nothing_is_left(void **state) {
    static const struct {
        const char *name;
        int pairs;
    } INPUTS[] = {{"examples.yaml#mi210-30b-16k", PAIRS},
                  {"examples.yaml#mi250-8b-int8", PAIRS},
                  {"examples.yaml#mi300x-70b-fp8", PAIRS},
                  {"examples.yaml#mi300x8-deepseek-v3", PAIRS},
                  {"examples.yaml#mi300x-gpt-oss-120b", PAIRS},
                  {"examples.yaml#mi300x8-deepseek-v3-sglang", PAIRS},
                  {"examples.yaml#r9700-llama-8b-generate", PAIRS},
                  {"examples.yaml#rx7900xtx-qwen3-30b-q4k", PAIRS},
                  {"tests/fixtures/one.yaml", PAIRS},
                  {"examples.yaml#mi300x8-70b-train-full", TRAIN_PAIRS},
                  {"examples.yaml#rx7900xtx-8b-qlora", TRAIN_PAIRS},
                  {"examples.yaml#mi250x-70b-megatron", TRAIN_PAIRS},
                  {"tests/fixtures/train-pipeline.yaml", TRAIN_PAIRS}};
    uint32_t joined = 0;
    int made = 0;
    (void)state;
    for (size_t i = 0; i < sizeof INPUTS / sizeof *INPUTS; i++)
        made += pairs_of(INPUTS[i].name, INPUTS[i].pairs, &joined);
    print_message("%d pairs compared, %u joined steps\n", made, joined);
    assert_true(joined > 0 && joined < (uint32_t)made);
    assert_true(made >= 200); /* the others are refused on a side */
}

/* ---- the order, and what is refused ---- */

static const char OLD[] = "vramplan: 1\n"
                          "model: {from: llama-3.1-8b, num_key_value_heads: 4}\n"
                          "hardware: {gpu: mi210, count: 1}\n"
                          "engine: vllm@0.11\n"
                          "serve: {context: 4k, concurrency: 4}\n";
static const char NEW[] = "vramplan: 1\n"
                          "name: new\n"
                          "model: {from: llama-3.1-8b, num_key_value_heads: 8}\n"
                          "hardware: {gpu: mi300x, count: 2}\n"
                          "engine: {name: vllm, version: 0.19, args: {max_num_seqs: 64,\n"
                          "  tensor_parallel_size: 2, kv_cache_dtype: fp8}}\n"
                          "serve: {context: 8k, concurrency: 8}\n";

static void order_is_fixed(void **state) {
    static const char *const PATHS[] = {"model.num_key_value_heads",
                                        "engine.args.kv_cache_dtype",
                                        "serve.context",
                                        "engine.args.max_num_seqs",
                                        "serve.concurrency",
                                        "engine.args.tensor_parallel_size",
                                        "hardware.count",
                                        "engine.version",
                                        "hardware.gpu",
                                        "name"};
    enum { COUNT = sizeof PATHS / sizeof *PATHS };
    struct fixture f;
    struct vp_difference d;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    struct one before = one_of(&f.ctx, OLD), after = one_of(&f.ctx, NEW);
    compare(&f.ctx, &d, &before, &after);
    assert_int_equal(d.causes, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_string_equal(d.cause[i].path, PATHS[i]);
    adds_up(&d, &before, &after);
    names_all(&d);
    assert_string_equal(d.cause[2].from, "4k");
    assert_string_equal(d.cause[2].to, "8k");
    assert_string_equal(d.cause[2].pos.file, "test.yaml");
    assert_int_equal(d.cause[2].pos.line, 7);
    assert_null(d.cause[1].from);
    /* Two ranks on one device are refused: joined with the count that comes after. */
    assert_int_equal(d.steps, COUNT - 1);
    assert_int_equal(d.step[5].causes, 2);
    assert_int_equal(d.step[5].component[VP_C_KV_CACHE] < 0, 1);
    /* and back: taken away, with the position of the old one */
    compare(&f.ctx, &d, &after, &before);
    assert_int_equal(d.causes, COUNT);
    assert_null(d.cause[1].to);
    assert_int_equal(d.cause[1].pos.line, 6);
    adds_up(&d, &after, &before);
    fixture_end(&f);
}

static void last_is_refused(void **state) {
    static const char A[] = "vramplan: 1\nmodel: llama-3.1-8b\nhardware: {gpu: mi300x}\n"
                            "serve: {context: 4k}\nengine: {args: {max_model_len: 4k}}\n";
    static const char B[] = "vramplan: 1\nmodel: llama-3.1-8b\nhardware: {gpu: mi300x}\n"
                            "serve: {context: 8k}\nengine: {args: {max_model_len: 8k}}\n";
    struct fixture f;
    struct vp_difference d;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    struct one before = one_of(&f.ctx, B), after = one_of(&f.ctx, A);
    compare(&f.ctx, &d, &before, &after); /* max_model_len goes first: shorter than the context */
    assert_int_equal(d.causes, 2);
    assert_int_equal(d.steps, 1);
    assert_int_equal(d.step[0].causes, 2);
    adds_up(&d, &before, &after);
    fixture_end(&f);
}

static void without_a_plan(void **state) {
    struct fixture f;
    struct vp_difference d;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    struct one before = one_of(&f.ctx, OLD);
    struct one after = one_of(&f.ctx, "vramplan: 1\nmodel: llama-3.1-8b\n"
                                      "hardware: {gpu: nosuch}\n");
    assert_null(after.result);
    compare(&f.ctx, &d, &before, &after);
    assert_false(d.planned);
    assert_int_equal(d.steps, 0);
    assert_true(d.causes > 0);
    compare(&f.ctx, &d, &before, &before);
    assert_true(d.planned);
    assert_int_equal(d.causes, 0);
    assert_int_equal(d.steps, 0);
    fixture_end(&f);
}

/* ---- models ---- */

static const char CONFIG[] = "{\"model_type\": \"llama\", \"hidden_size\": 512,\n"
                             " \"intermediate_size\": 1024, \"num_hidden_layers\": %d,\n"
                             " \"num_attention_heads\": 8, \"num_key_value_heads\": 4,\n"
                             " \"max_position_embeddings\": 8192, \"vocab_size\": %d,\n"
                             " \"torch_dtype\": \"%s\"}\n";

/* A changed config.json shows the keys that differ, where they stand. */
static void config_by_keys(void **state) {
    struct fixture f;
    struct vp_difference d;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    const char *old =
        fixture_text_file(&f, "old.json", vp_arena_printf(&f.arena, CONFIG, 4, 1000, "bfloat16"));
    const char *new =
        fixture_text_file(&f, "new.json", vp_arena_printf(&f.arena, CONFIG, 6, 1000, "float32"));
    const char *rest = "hardware: {gpu: mi300x}\n";
    struct one before =
        one_of(&f.ctx, vp_arena_printf(&f.arena, "vramplan: 1\nmodel: %s\n%s", old, rest));
    struct one after =
        one_of(&f.ctx, vp_arena_printf(&f.arena, "vramplan: 1\nmodel: %s\n%s", new, rest));
    compare(&f.ctx, &d, &before, &after);
    assert_int_equal(d.causes, 2);
    assert_string_equal(d.cause[0].path, "model.num_hidden_layers");
    assert_string_equal(d.cause[0].pos.file, new);
    assert_int_equal(d.cause[0].pos.line, 2);
    assert_string_equal(d.cause[1].path, "model.torch_dtype");
    assert_int_equal(d.cause[1].group, VP_CAUSE_DTYPE);
    adds_up(&d, &before, &after);
    fixture_end(&f);
}

/* The same path read by two tables of calls, as from two commits. */
static int open_old(const char *path) {
    size_t n = strlen(path);
    if (n > 8 && strcmp(path + n - 8, "new.json") == 0)
        return vp_io_posix.open(vp_text_ends(path, "new.json") ? getenv("TEST_OLD_JSON") : path);
    return vp_io_posix.open(path);
}

static void two_tables_of_calls(void **state) {
    struct fixture f;
    struct vp_difference d;
    struct vp_io old_io = vp_io_posix;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    old_io.open = open_old;
    const char *old =
        fixture_text_file(&f, "old.json", vp_arena_printf(&f.arena, CONFIG, 4, 1000, "bfloat16"));
    const char *new =
        fixture_text_file(&f, "new.json", vp_arena_printf(&f.arena, CONFIG, 6, 1000, "bfloat16"));
    setenv("TEST_OLD_JSON", old, 1);
    struct vp_ctx before_ctx = f.ctx, a, b = quiet(&f.ctx);
    before_ctx.io = &old_io;
    a = quiet(&before_ctx);
    const char *text =
        vp_arena_printf(&f.arena, "vramplan: 1\nmodel: %s\nhardware: {gpu: mi300x}\n", new);
    struct one before = one_of(&before_ctx, text), after = one_of(&f.ctx, text);
    struct vp_diff_side left = {.ctx = &a, .root = before.root, .result = before.result};
    struct vp_diff_side right = {.ctx = &b, .root = after.root, .result = after.result};
    vp_diff_make(&f.ctx, &d, &left, &right);
    assert_int_equal(d.causes, 1);
    assert_string_equal(d.cause[0].path, "model.num_hidden_layers");
    assert_string_equal(d.cause[0].from, "4");
    assert_true(d.step[0].component[VP_C_WEIGHTS] > 0);
    adds_up(&d, &before, &after);
    fixture_end(&f);
}

/* A profile of the user's own that changed stands in no tree: a step of its own, the last. */
static void profile_of_ones_own(void **state) {
    static const char TEXT[] = "vramplan: 1\nmodel: llama-3.1-8b\nhardware: {gpu: my-card}\n"
                               "serve: {concurrency: %d}\n";
    static const char CARD[] = "vramplan_gpu: 1\nid: my-card\nname: Mine\nvendor: amd\n"
                               "arch: gfx942\nmemory_gb: %d\nruntime_mib: %d\n";
    struct vp_ctx ctx[2], own[2];
    struct one one[2];
    struct vp_diff_side side[2];
    struct fixture f;
    struct vp_difference d;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    for (int i = 0; i < 2; i++) {
        const char *folder = vp_arena_printf(&f.arena, "%s/%d", fixture_folder(&f), i);
        assert_int_equal(mkdir(folder, 0700), 0);
        assert_int_equal(mkdir(vp_arena_printf(&f.arena, "%s/gpus", folder), 0700), 0);
        fixture_text_file(&f, vp_arena_printf(&f.arena, "%d/gpus/my-card.yaml", i),
                          vp_arena_printf(&f.arena, CARD, 64 + 64 * i, 60000 + 60000 * i));
        ctx[i] = f.ctx;
        ctx[i].user_profiles = folder;
        one[i] = one_of(&ctx[i], vp_arena_printf(&f.arena, TEXT, 2 + i));
        own[i] = quiet(&ctx[i]);
        side[i] =
            (struct vp_diff_side){.ctx = &own[i], .root = one[i].root, .result = one[i].result};
    }
    vp_diff_make(&f.ctx, &d, &side[0], &side[1]);
    assert_true(d.planned);
    assert_int_equal(d.steps, 2);
    assert_string_equal(d.cause[0].path, "serve.concurrency");
    assert_int_equal(d.step[0].usable_bytes, 0);
    assert_string_equal(d.cause[1].path, "files beside the scenario");
    assert_true(d.step[1].usable_bytes > 0);
    adds_up(&d, &one[0], &one[1]);
    fixture_end(&f);
}

/* Another product: one change, with what is different in it. */
static void model_by_name(void **state) {
    struct fixture f;
    struct vp_difference d;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    struct one before =
        one_of(&f.ctx, "vramplan: 1\nmodel: llama-3.1-8b\nhardware: {gpu: mi300x}\n");
    struct one after = one_of(&f.ctx, "vramplan: 1\nmodel: llama-3.1-70b\nhardware: {gpu: mi300x}\n"
                                      "serve: {concurrency: 2}\n");
    compare(&f.ctx, &d, &before, &after);
    assert_int_equal(d.steps, 2); /* a model by itself is no reason to join */
    assert_true(d.step[0].component[VP_C_WEIGHTS] > 0);
    assert_int_equal(d.step[1].component[VP_C_WEIGHTS], 0);
    assert_true(d.step[0].whole_model);
    assert_string_equal(d.cause[0].path, "model");
    assert_string_equal(d.cause[0].to, "llama-3.1-70b");
    assert_string_equal(d.cause[1].path, "model.hidden_size");
    adds_up(&d, &before, &after);
    fixture_end(&f);
}

/* ---- settings of the command line ---- */

static void settings_are_changes(void **state) {
    static const struct vp_setting OLD_SET[] = {{"serve.context", "4k", NULL},
                                                {"serve.concurrency", "2", NULL}};
    static const struct vp_setting NEW_SET[] = {{"serve.context", "8k", NULL}};
    struct fixture f;
    struct vp_difference d;
    struct vp_scenarios old, new;
    struct vp_found found;
    struct vp_result before, after;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    assert_int_equal(vp_input_find(&f.ctx, &found, "examples.yaml#mi250-8b-int8"), VP_OK);
    assert_int_equal(vp_input_finish(&f.ctx, &old, &found, OLD_SET, 2), VP_OK);
    assert_int_equal(vp_input_finish(&f.ctx, &new, &found, NEW_SET, 1), VP_OK);
    assert_int_equal(vp_plan_run(&f.ctx, &before, old.items[0]), VP_OK);
    assert_int_equal(vp_plan_run(&f.ctx, &after, new.items[0]), VP_OK);
    struct vp_diff_side left = {&f.ctx, found.items[0].root, found.base, OLD_SET, 2, &before};
    struct vp_diff_side right = {&f.ctx, found.items[0].root, found.base, NEW_SET, 1, &after};
    vp_diff_make(&f.ctx, &d, &left, &right);
    assert_int_equal(d.causes, 2);
    assert_string_equal(d.cause[0].path, "serve.context");
    assert_string_equal(d.cause[1].path, "serve.concurrency");
    assert_null(d.cause[1].to);
    assert_null(d.cause[1].pos.file);
    adds_up(&d, &(struct one){.result = &before}, &(struct one){.result = &after});
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left),     cmocka_unit_test(order_is_fixed),
        cmocka_unit_test(last_is_refused),     cmocka_unit_test(without_a_plan),
        cmocka_unit_test(config_by_keys),      cmocka_unit_test(two_tables_of_calls),
        cmocka_unit_test(model_by_name),       cmocka_unit_test(profile_of_ones_own),
        cmocka_unit_test(settings_are_changes)};
    return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}
