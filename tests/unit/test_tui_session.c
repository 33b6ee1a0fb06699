/* The what-if session without a screen: changes, refusals, history, pins, searches, exports. */
#include "tui/tui_session.h"

#include <stdio.h>
#include <string.h>

#include "api/plan_command.h"
#include "planner/base/text.h"
#include "reports/report.h"
#include "tests/unit/fixture.h"

struct subject {
    struct fixture f;
    struct vp_session *session;
};

static void subject_try(struct subject *s, const char *input, const struct vp_setting *settings,
                        size_t count, enum vp_status wanted) {
    memset(s, 0, sizeof *s);
    fixture_begin(&s->f);
    s->f.ctx.profiles = "profiles";
    if (strchr(input, '\n'))
        input = fixture_text_file(&s->f, "scenario.yaml", input);
    assert_int_equal(vp_session_open(&s->f.ctx, &s->session, input, settings, count), wanted);
}

static void subject_open(struct subject *s, const char *input) {
    subject_try(s, input, NULL, 0, VP_OK);
    assert_int_equal(s->f.diags.count, 0);
}

static void subject_close(struct subject *s) {
    vp_session_close(s->session);
    fixture_end(&s->f);
}

static const char DENSE[] = "vramplan: 1\nmodel: llama-3.1-70b\nhardware: {gpu: mi300x}\n"
                            "engine: {name: vllm, version: \"0.19\"}\n"
                            "precision: {weights: fp8, kv_cache: fp8}\n"
                            "serve: {context: 32768, concurrency: 16}\n";
static const char EXPERTS[] = "vramplan: 1\nmodel: deepseek-v3\n"
                              "hardware: {gpu: mi300x, count: 8}\nparallel: {tensor: 8}\n"
                              "engine: {name: vllm, version: \"0.19\"}\n"
                              "serve: {context: 65536, concurrency: 16}\n";
static const char LLAMA[] =
    "vramplan: 1\nmodel: qwen3-30b-a3b\nhardware: {gpu: rx7900xtx}\n"
    "engine: {name: llama.cpp, args: {n_gpu_layers: 999}}\nprecision: {weights: q4_k}\n"
    "serve: {context: 16384, concurrency: 2}\n";
static const char MEGATRON[] =
    "vramplan: 1\nmodel: llama-3.1-8b\nhardware: {gpu: mi300x, count: 8}\n"
    "engine: {name: megatron, version: \"0.14\"}\nparallel: {tensor: 2, pipeline: 2, data: 2}\n"
    "train: {micro_batch: 1, global_batch: 16, sequence_length: 4096, optimizer: adamw}\n";
static const char TORCH[] =
    "vramplan: 1\nmodel: {model_type: llama, hidden_size: 1024, num_hidden_layers: 8, "
    "num_attention_heads: 8, num_key_value_heads: 8, intermediate_size: 4096, vocab_size: 32000, "
    "max_position_embeddings: 8192, torch_dtype: bfloat16}\n"
    "hardware: {gpu: mi300x, count: 2}\nengine: {name: pytorch, version: \"2.9\"}\n"
    "parallel: {fsdp: true}\n"
    "train: {micro_batch: 2, sequence_length: 2048, optimizer: adamw}\n";
static const char *const ALL[] = {DENSE, EXPERTS, LLAMA, MEGATRON, TORCH};
enum { SCENARIOS = sizeof ALL / sizeof *ALL };

/* The whole plan as text, but for where things stand in files. */
static const char *image(struct subject *s, const struct vp_result *plan) {
    struct vp_buf out = {.arena = &s->f.arena};
    struct vp_json json = vp_json_begin(&out);
    vp_report_json(&json, plan);
    return vp_buf_text(&out);
}

/* Its figures alone. */
static const char *row_of(struct subject *s, const struct vp_result *plan) {
    struct vp_buf out = {.arena = &s->f.arena};
    vp_report_csv_row(&out, plan);
    return vp_buf_text(&out);
}

static const char *now(struct subject *s) { return image(s, vp_session_plan(s->session)); }

static const struct vp_session_message *message(struct subject *s) {
    const struct vp_session_message *list;
    return vp_session_messages(s->session, &list) > 0 ? &list[0] : NULL;
}

static const struct vp_knob *knob(struct subject *s, enum vp_knob_id id) {
    const struct vp_knob *list;
    uint32_t count = vp_session_knobs(s->session, &list);
    for (uint32_t i = 0; i < count; i++)
        if (list[i].id == id)
            return &list[i];
    fail_msg("there is no such knob");
    return NULL;
}

static size_t changes(struct subject *s) {
    const struct vp_setting *list;
    return vp_session_changes(s->session, &list);
}

/* ---- changes ---- */

static void test_change_and_back(void **state) {
    struct subject s;
    (void)state;
    subject_open(&s, DENSE);
    const char *first = now(&s);
    assert_false(knob(&s, VP_KNOB_CONTEXT)->changed);
    assert_true(vp_session_step(s.session, VP_KNOB_CONTEXT, 10));
    assert_int_equal(vp_session_plan(s.session)->scenario->serve.context, 65536);
    assert_string_equal(message(&s)->text, "context 32768 -> 65536");
    assert_true(knob(&s, VP_KNOB_CONTEXT)->changed);
    assert_string_not_equal(now(&s), first);
    assert_true(vp_session_step(s.session, VP_KNOB_CONTEXT, -10));
    assert_int_equal(changes(&s), 0); /* as the input says: nothing is left behind */
    assert_string_equal(now(&s), first);
    assert_true(vp_session_type(s.session, VP_KNOB_CONTEXT, "48k"));
    assert_int_equal(vp_session_plan(s.session)->scenario->serve.context, 49152);
    assert_true(vp_session_reset_knob(s.session, VP_KNOB_CONTEXT));
    assert_string_equal(now(&s), first);
    assert_int_equal(vp_session_undos(s.session), 4);
    subject_close(&s);
}

static void test_refused_changes_nothing(void **state) {
    static const struct {
        const char *path, *value, *words;
    } CASES[] = {{"serve.context", "many", "serve.context"},
                 {"serve.contxt", "4096", "contxt"},
                 {"parallel.tensor", "7", "7 ranks"},
                 {"hardware.gpu", "mi999", "mi999"},
                 {"precision.kv_cache", "fp9", "kv_cache"},
                 {"engine.args.max_model_len", "1024", "max_model_len"}};
    struct subject s;
    (void)state;
    subject_open(&s, DENSE);
    assert_true(vp_session_set(s.session, "serve.concurrency", "8"));
    const char *before = now(&s);
    const struct vp_result *plan = vp_session_plan(s.session);
    uint64_t serial = vp_session_serial(s.session);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        assert_false(vp_session_set(s.session, CASES[i].path, CASES[i].value));
        assert_int_equal(message(&s)->severity, VP_ERROR);
        if (!strstr(message(&s)->text, CASES[i].words))
            fail_msg("%s: %s", CASES[i].path, message(&s)->text);
        assert_non_null(message(&s)->code);
        assert_ptr_equal(vp_session_plan(s.session), plan);
        assert_int_equal(vp_session_serial(s.session), serial);
        assert_int_equal(changes(&s), 1);
        assert_string_equal(now(&s), before);
    }
    assert_int_equal(vp_session_undos(s.session), 1);
    assert_true(vp_session_undo(s.session));
    assert_int_equal(vp_session_plan(s.session)->scenario->serve.concurrency, 16);
    subject_close(&s);
}

static void test_layout_goes_along(void **state) {
    struct subject s;
    (void)state;
    subject_open(&s, EXPERTS);
    assert_true(vp_session_step(s.session, VP_KNOB_DEVICES, 10));
    assert_int_equal(vp_session_plan(s.session)->scenario->hardware.count, 16);
    assert_int_equal(vp_session_plan(s.session)->scenario->parallel.tensor, 16);
    assert_int_equal(vp_session_plan(s.session)->scenario->hardware.nodes, 2);
    assert_true(vp_session_reset_knob(s.session, VP_KNOB_TENSOR)); /* and back along with it */
    assert_int_equal(changes(&s), 0);
    assert_true(vp_session_type(s.session, VP_KNOB_TENSOR, "4"));
    assert_int_equal(vp_session_plan(s.session)->scenario->hardware.count, 4);
    subject_close(&s);
    subject_open(&s, MEGATRON); /* training takes more of the batch, or a larger one */
    assert_true(vp_session_type(s.session, VP_KNOB_DEVICES, "16"));
    assert_int_equal(vp_session_plan(s.session)->scenario->parallel.data, 4);
    assert_int_equal(vp_session_plan(s.session)->scenario->train.global_batch, 16);
    assert_true(vp_session_type(s.session, VP_KNOB_DATA, "3"));
    assert_int_equal(vp_session_plan(s.session)->scenario->hardware.count, 12);
    assert_int_equal(vp_session_plan(s.session)->scenario->train.global_batch % 3, 0);
    subject_close(&s);
}

/* Another engine brings its own version, or the plan would be refused for a number. */
static void test_engine_brings_its_version(void **state) {
    struct subject s;
    (void)state;
    subject_open(&s, DENSE);
    assert_true(vp_session_type(s.session, VP_KNOB_ENGINE, "sglang"));
    assert_string_equal(vp_session_plan(s.session)->scenario->engine.name, "sglang");
    assert_string_not_equal(vp_session_plan(s.session)->scenario->engine.version_text, "0.19");
    assert_non_null(strstr(vp_session_command(s.session), " --engine sglang@"));
    subject_close(&s);
}

static void test_no_gpu(void **state) {
    struct subject s;
    (void)state;
    subject_open(&s, "llama-3-8b");
    assert_int_equal(message(&s)->severity, VP_WARNING);
    assert_non_null(strstr(vp_session_command(s.session), "--gpu mi300x"));
    assert_false(vp_session_undo(s.session)); /* without one there is no plan */
    assert_true(vp_session_step(s.session, VP_KNOB_GPU, 1));
    assert_true(vp_session_reset_all(s.session));
    assert_string_equal(vp_session_plan(s.session)->scenario->hardware.gpu.id, "mi300x");
    subject_close(&s);
}

static void test_open_refused(void **state) {
    struct subject s;
    (void)state;
    subject_try(&s, "no-such-model", NULL, 0, VP_ERR_INPUT);
    assert_int_not_equal(s.f.diags.errors, 0);
    subject_close(&s);
    subject_try(&s, "vramplan: 1\nmodel: llama-3-8b\nhardware: {gpu: mi300x}\nserve: {contxt: 1}\n",
                NULL, 0, VP_ERR_INPUT);
    assert_non_null(strstr(s.f.diags.items[0].message, "contxt"));
    subject_close(&s);
    subject_try(&s, "examples.yaml", NULL, 0, VP_ERR_INPUT);
    fixture_expect(&s.f, VP_D_BAD_OPTION, "one scenario");
    subject_close(&s);
}

/* ---- knobs ---- */

/* NULL: the scenario has no such knob, such as another engine's. */
static const char *value_of(struct subject *s, enum vp_knob_id id) {
    const struct vp_knob *list;
    uint32_t count = vp_session_knobs(s->session, &list);
    for (uint32_t i = 0; i < count; i++)
        if (list[i].id == id)
            return list[i].value;
    return NULL;
}

static void test_every_knob(void **state) {
    static const int BY[] = {-10, -1, 1, 10};
    (void)state;
    for (int i = 0; i < SCENARIOS; i++) {
        struct subject s;
        const struct vp_knob *list;
        enum vp_knob_id id[VP_KNOB_COUNT];
        const char *was[VP_KNOB_COUNT];
        subject_open(&s, ALL[i]);
        const char *first = row_of(&s, vp_session_plan(s.session));
        uint32_t count = vp_session_knobs(s.session, &list);
        assert_true(count >= 8);
        for (uint32_t k = 0; k < count; k++) {
            id[k] = list[k].id;
            was[k] = vp_arena_printf(&s.f.arena, "%s", list[k].value);
            assert_true(strlen(list[k].label) <= 14);
            assert_non_null(list[k].value);
            assert_non_null(list[k].shown);
        }
        for (uint32_t k = 0; k < count; k++)
            for (size_t b = 0; b < sizeof BY / sizeof *BY; b++) {
                bool moved = vp_session_step(s.session, id[k], BY[b]);
                assert_non_null(message(&s));
                if (!moved)
                    continue;
                if (vp_text_eq(value_of(&s, id[k]), was[k]))
                    fail_msg("%s", message(&s)->text);
                assert_int_equal(vp_session_undos(s.session), 1);
                assert_true(vp_session_undo(s.session));
                assert_string_equal(row_of(&s, vp_session_plan(s.session)), first);
            }
        subject_close(&s);
    }
}

static void test_choices(void **state) {
    struct subject s;
    const struct vp_knob_choice *choice;
    (void)state;
    subject_open(&s, DENSE);
    uint32_t count = vp_session_choices(s.session, VP_KNOB_KV_CACHE, &choice);
    int present = 0, refused = 0;
    assert_true(count >= 4);
    for (uint32_t i = 0; i < count; i++) {
        present += choice[i].present;
        refused += choice[i].refused != NULL;
        assert_false(choice[i].present && choice[i].refused);
        const char *value = choice[i].value; /* refused ones are refused, others are not */
        bool can = !choice[i].refused;
        if (choice[i].present)
            continue;
        assert_int_equal(vp_session_set(s.session, "precision.kv_cache", value), can);
        if (can)
            vp_session_undo(s.session);
        count = vp_session_choices(s.session, VP_KNOB_KV_CACHE, &choice);
    }
    assert_int_equal(present, 1);
    assert_true(refused > 0);
    assert_int_equal(vp_session_choices(s.session, VP_KNOB_CONTEXT, &choice), 0);
    assert_true(vp_session_choices(s.session, VP_KNOB_GPU, &choice) > 50);
    subject_close(&s);
}

/* ---- history ---- */

static uint64_t draw(uint64_t *seed, uint64_t below) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % below;
}

/* Random keys; every plan on the way back, and forth again, is the one that was there. */
static void wander(const char *scenario, int steps, uint64_t seed) {
    enum { MOST = 400 };
    static const int BY[] = {-10, -1, 1, 10};
    const char *seen[MOST + 1];
    struct subject s;
    subject_open(&s, scenario);
    seen[0] = now(&s);
    for (int i = 0; i < steps; i++) {
        const struct vp_knob *list;
        uint32_t count = vp_session_knobs(s.session, &list);
        size_t before = vp_session_undos(s.session);
        uint64_t k = draw(&seed, count);
        if (list[k].id == VP_KNOB_MODEL) /* every profile would be read once */
            k = i % 20 ? k + 1 : k;
        vp_session_step(s.session, list[k].id, BY[draw(&seed, 4)]);
        size_t at = vp_session_undos(s.session);
        assert_true(at == before || at == before + 1);
        if (at > before)
            seen[at] = now(&s);
        else
            assert_string_equal(now(&s), seen[at]);
    }
    size_t all = vp_session_undos(s.session);
    assert_true(all > (size_t)steps / 3);
    for (size_t at = all; at > 0; at--) {
        assert_true(vp_session_undo(s.session));
        assert_string_equal(now(&s), seen[at - 1]);
    }
    assert_false(vp_session_undo(s.session));
    assert_int_equal(vp_session_redos(s.session), all);
    for (size_t at = 1; at <= all; at++) {
        assert_true(vp_session_redo(s.session));
        assert_string_equal(now(&s), seen[at]);
    }
    assert_false(vp_session_redo(s.session));
    subject_close(&s);
}

static void test_undo_redo(void **state) {
    (void)state;
    wander(DENSE, 240, 1);
    wander(EXPERTS, 50, 2);
    wander(LLAMA, 12, 3);
    wander(MEGATRON, 12, 4);
    wander(TORCH, 8, 5);
}

static void test_a_change_forgets_what_was_undone(void **state) {
    struct subject s;
    (void)state;
    subject_open(&s, DENSE);
    vp_session_step(s.session, VP_KNOB_CONCURRENCY, 1);
    vp_session_step(s.session, VP_KNOB_CONCURRENCY, 1);
    assert_string_equal(vp_session_history(s.session, 0), "concurrency 17 -> 18");
    assert_string_equal(vp_session_history(s.session, 1), "concurrency 16 -> 17");
    assert_null(vp_session_history(s.session, 2));
    vp_session_undo(s.session);
    assert_int_equal(vp_session_redos(s.session), 1);
    vp_session_step(s.session, VP_KNOB_CONTEXT, 1);
    assert_int_equal(vp_session_redos(s.session), 0);
    assert_int_equal(changes(&s), 2);
    assert_true(vp_session_reset_all(s.session));
    assert_int_equal(changes(&s), 0);
    assert_true(vp_session_undo(s.session)); /* one step takes all of it back */
    assert_int_equal(changes(&s), 2);
    subject_close(&s);
}

/* ---- pins ---- */

static void test_pins(void **state) {
    struct subject s;
    const char *seen[VP_PINS];
    (void)state;
    subject_open(&s, DENSE);
    for (uint32_t i = 0; i < VP_PINS; i++) {
        assert_int_equal(vp_session_pinned(s.session), VP_PINS);
        assert_true(vp_session_pin_toggle(s.session));
        assert_int_equal(vp_session_pinned(s.session), i);
        seen[i] = now(&s);
        vp_session_step(s.session, VP_KNOB_CONTEXT, 10);
    }
    assert_false(vp_session_pin_toggle(s.session)); /* four is all */
    assert_int_equal(message(&s)->severity, VP_WARNING);
    for (uint32_t i = 0; i < VP_PINS; i++) {
        assert_string_equal(image(&s, vp_session_pin(s.session, i)->plan), seen[i]);
        assert_true(vp_session_pin_recall(s.session, i));
        assert_string_equal(now(&s), seen[i]);
    }
    assert_true(vp_session_pin_rename(s.session, 1, "twice as long"));
    assert_string_equal(vp_session_pin(s.session, 1)->label, "twice as long");
    assert_true(vp_session_pin_recall(s.session, 1));
    assert_true(vp_session_pin_toggle(s.session)); /* takes it out */
    assert_null(vp_session_pin(s.session, 1));
    assert_int_equal(vp_session_pins(s.session), 3);
    assert_true(vp_session_pin_toggle(s.session)); /* into the free slot */
    assert_int_equal(vp_session_pinned(s.session), 1);
    assert_false(vp_session_unpin(s.session, 7));
    subject_close(&s);
}

/* ---- searches ---- */

static void work(struct subject *s) {
    while (vp_session_work(s->session))
        continue;
}

struct asked {
    struct vp_search search;
    struct vp_outcome found;
    const struct vp_result *plan;
};

/* The same question as `fit` asks it. */
static void ask(struct subject *s, struct asked *a, const char *input, struct vp_setting *settings,
                size_t count) {
    *a = (struct asked){.plan = NULL};
    assert_int_equal(vp_search_open(&s->f.ctx, &a->search, input, settings, count), VP_OK);
    a->plan = vp_search_plan(&a->search, NULL, 0);
    assert_non_null(a->plan);
}

static uint64_t as_it_is(const struct vp_outcome *found) {
    for (uint32_t i = 0; i < found->count; i++)
        if (found->item[i].changes == 0)
            return found->item[i].most;
    return 0;
}

static void test_solve_is_what_fit_says(void **state) {
    struct vp_setting shorter[] = {{"serve.concurrency", "24", "--concurrency"}};
    const char *own = NULL;
    struct subject s;
    struct asked a;
    (void)state;
    subject_open(&s, DENSE);
    const char *input = vp_session_input(s.session);
    assert_true(vp_session_set(s.session, "serve.concurrency", "24"));
    ask(&s, &a, input, shorter, 1);
    vp_find_most(&a.search, &a.found, a.plan, VP_F_CONTEXT);
    uint64_t context = as_it_is(&a.found);
    assert_true(context > 0);
    assert_null(vp_session_solved(s.session, VP_SOLVE_CONTEXT)); /* asked for, not yet there */
    work(&s);
    assert_non_null(vp_session_solved(s.session, VP_SOLVE_CONTEXT));
    assert_true(vp_session_solve(s.session, VP_SOLVE_CONTEXT));
    assert_int_equal(vp_session_plan(s.session)->scenario->serve.context, context);
    assert_int_equal(vp_session_plan(s.session)->verdict, VP_FITS);
    vp_session_undo(s.session);
    vp_find_fewest(&a.search, &a.found, a.plan, &own, 1, false);
    assert_true(vp_session_solve(s.session, VP_SOLVE_GPUS));
    assert_int_equal(vp_session_plan(s.session)->scenario->hardware.count,
                     a.found.item[0].trial.gpus);
    vp_search_close(&a.search);
    assert_false(vp_session_can_solve(s.session, VP_SOLVE_BATCH));
    subject_close(&s);
}

/* A training step is searched beside the keys, and laid over when it is there. */
static void test_solve_of_training(void **state) {
    struct subject s;
    struct asked a;
    (void)state;
    subject_open(&s, MEGATRON);
    ask(&s, &a, vp_session_input(s.session), NULL, 0);
    vp_find_most(&a.search, &a.found, a.plan, VP_F_MICRO_BATCH);
    uint64_t most = as_it_is(&a.found);
    vp_search_close(&a.search);
    assert_true(vp_session_solve(s.session, VP_SOLVE_BATCH));
    assert_non_null(strstr(message(&s)->text, "searching"));
    assert_int_equal(vp_session_plan(s.session)->scenario->train.micro_batch, 1);
    work(&s);
    assert_int_equal(vp_session_plan(s.session)->scenario->train.micro_batch, most);
    assert_false(vp_session_can_solve(s.session, VP_SOLVE_CONTEXT));
    subject_close(&s);
}

static void test_solve_of_llama(void **state) {
    struct subject s;
    (void)state;
    subject_open(&s, LLAMA);
    assert_true(vp_session_set(s.session, "serve.concurrency", "8"));
    assert_true(vp_session_solve(s.session, VP_SOLVE_CONTEXT));
    uint64_t most = vp_session_plan(s.session)->scenario->serve.context;
    assert_int_equal(vp_session_plan(s.session)->verdict, VP_FITS);
    assert_true(vp_session_set(s.session, "serve.context",
                               vp_arena_printf(&s.f.arena, "%lu", (unsigned long)most + 256)));
    assert_int_not_equal(vp_session_plan(s.session)->verdict, VP_FITS);
    assert_false(vp_session_can_solve(s.session, VP_SOLVE_GPUS));
    subject_close(&s);
}

static void test_suggestions_are_what_fit_says(void **state) {
    struct vp_setting longer[] = {{"serve.context", "131072", "--context"}};
    const struct vp_result *plan;
    struct vp_gpus gpus;
    struct subject s;
    struct asked a;
    (void)state;
    subject_open(&s, DENSE);
    assert_true(vp_session_set(s.session, "serve.context", "131072"));
    const char *before = now(&s);
    assert_int_equal(vp_session_plan(s.session)->verdict, VP_DOES_NOT_FIT);
    ask(&s, &a, vp_session_input(s.session), longer, 1);
    assert_int_equal(vp_gpu_list(&s.f.ctx, &gpus), VP_OK);
    vp_find_changes(&a.search, &a.found, a.plan, &gpus);
    assert_null(vp_session_suggestions(s.session, &plan));
    work(&s);
    const struct vp_outcome *found = vp_session_suggestions(s.session, &plan);
    assert_non_null(found);
    assert_true(found->count > 2);
    assert_int_equal(found->count, a.found.count);
    for (uint32_t i = 0; i < found->count; i++) {
        assert_string_equal(found->item[i].command, a.found.item[i].command);
        assert_int_equal(found->item[i].trial.need.high, a.found.item[i].trial.need.high);
    }
    vp_search_close(&a.search);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(vp_session_apply(s.session, &found->item[i]));
        assert_int_equal(vp_session_plan(s.session)->verdict, VP_FITS);
        assert_true(vp_session_undo(s.session));
        assert_string_equal(now(&s), before);
        vp_session_suggestions(s.session, &plan);
        work(&s);
        found = vp_session_suggestions(s.session, &plan);
    }
    subject_close(&s);
}

static void test_ways_to_recompute(void **state) {
    const struct vp_recompute_way *way;
    struct subject s;
    (void)state;
    subject_open(&s, TORCH);
    assert_int_equal(vp_session_ways(s.session, &way), 0);
    assert_null(vp_session_placements(s.session));
    work(&s);
    uint32_t count = vp_session_ways(s.session, &way);
    const struct vp_placements *best = vp_session_placements(s.session);
    assert_int_equal(count, 4);
    assert_non_null(best);
    assert_true(best->frontier.count > 0);
    for (uint32_t i = 0; i < count; i++) { /* what a row shows is what taking it gives */
        const char *wanted = way[i].plan ? row_of(&s, way[i].plan) : NULL;
        if (!wanted)
            continue;
        vp_session_set(s.session, "train.recompute", way[i].value);
        assert_string_equal(row_of(&s, vp_session_plan(s.session)), wanted);
        if (vp_session_undos(s.session) > 0)
            vp_session_undo(s.session);
        vp_session_ways(s.session, &way);
        work(&s);
        assert_int_equal(vp_session_ways(s.session, &way), count);
    }
    const struct vp_timeline *timeline = vp_session_timeline(s.session, 0);
    assert_null(timeline);
    work(&s);
    timeline = vp_session_timeline(s.session, 0);
    assert_non_null(timeline);
    assert_true(timeline->walk->steady.peak.bytes > 0);
    subject_close(&s);
}

/* Keys while something is computed: what is about a plan that is no more is never shown. */
static void test_keys_beside_work(void **state) {
    const struct vp_result *plan;
    const struct vp_recompute_way *way;
    struct subject s;
    (void)state;
    subject_open(&s, MEGATRON);
    for (int i = 0; i < 12; i++) {
        vp_session_suggestions(s.session, &plan);
        vp_session_ways(s.session, &way);
        vp_session_timeline(s.session, (uint32_t)i % 2);
        vp_session_poll(s.session);
        vp_session_step(s.session, VP_KNOB_LENGTH, i % 3 ? 1 : -1);
        assert_null(vp_session_suggestions(s.session, &plan));
        vp_session_poll(s.session);
    }
    vp_session_suggestions(s.session, &plan);
    vp_session_ways(s.session, &way);
    while (vp_session_pending(s.session))
        vp_session_poll(s.session);
    assert_int_equal(vp_session_ways(s.session, &way), 4);
    vp_session_suggestions(s.session, &plan);
    assert_int_equal(plan->scenario->train.sequence,
                     vp_session_plan(s.session)->scenario->train.sequence);
    vp_session_placements(s.session); /* the end comes while it is at work */
    vp_session_poll(s.session);
    subject_close(&s);
}

/* ---- out ---- */

static void test_command(void **state) {
    struct vp_setting typed[] = {{"serve.context", "16k", "--context"},
                                 {"engine.name", "vllm", "--engine"},
                                 {"engine.version", "0.18", "--engine"}};
    struct subject s;
    (void)state;
    subject_try(&s, "llama-3.1-8b", typed, 3, VP_OK);
    assert_string_equal(vp_session_command(s.session), "vramplan plan llama-3.1-8b --context 16k "
                                                       "--engine vllm@0.18 --gpu mi300x");
    vp_session_set(s.session, "serve.context", "32768");
    vp_session_set(s.session, "engine.args.max_num_seqs", "64");
    assert_string_equal(vp_session_command(s.session),
                        "vramplan plan llama-3.1-8b --engine vllm@0.18 --gpu mi300x --context "
                        "32768 --set engine.args.max_num_seqs=64");
    subject_close(&s);
}

/* The options that commands are written with are those of the command line, for the same fields. */
static void test_options_are_the_programs(void **state) {
    static const struct {
        const char *name, *field;
    } OPTIONS[] = {
#define X(id, name, letter, value, field, group, commands, meaning) {name, field},
#include "cli/options.def"
#undef X
    };
    size_t named = 0;
    (void)state;
    for (int f = 0; f < VP_FIELD_COUNT; f++) {
        const char *path = vp_field_info((enum vp_field)f)->path, *option = vp_plan_option(path);
        bool found = false;
        if (!option)
            continue;
        named++;
        for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++)
            found |= vp_text_eq(OPTIONS[i].name, option + 2) && vp_text_eq(OPTIONS[i].field, path);
        assert_true(found);
    }
    assert_int_equal(named, 10);
}

/* What is written reads back as the same plan, from another folder too. */
static void test_export_reads_back(void **state) {
    (void)state;
    for (int i = 0; i < SCENARIOS; i++) {
        struct subject s;
        struct vp_session *again;
        struct vp_buf out = {.arena = NULL};
        uint64_t seed = 11;
        subject_open(&s, ALL[i]);
        out.arena = &s.f.arena;
        for (int k = 0; k < 6; k++) {
            const struct vp_knob *list;
            uint32_t count = vp_session_knobs(s.session, &list);
            vp_session_step(s.session, list[draw(&seed, count)].id, draw(&seed, 2) ? 1 : -1);
        }
        assert_int_equal(vp_session_render(s.session, &out, VP_EXPORT_YAML, "elsewhere/x.yaml"),
                         VP_OK);
        const char *path = fixture_text_file(&s.f, "written.yaml", vp_buf_text(&out));
        assert_int_equal(vp_session_open(&s.f.ctx, &again, path, NULL, 0), VP_OK);
        if (!vp_text_eq(row_of(&s, vp_session_plan(again)), row_of(&s, vp_session_plan(s.session))))
            fail_msg("%s", vp_buf_text(&out));
        assert_int_equal(vp_session_plan(again)->ledger.count,
                         vp_session_plan(s.session)->ledger.count);
        vp_session_close(again);
        subject_close(&s);
    }
}

static void test_export_moves_paths(void **state) {
    static const char MODEL[] = "{\"model_type\": \"llama\", \"hidden_size\": 1024, "
                                "\"num_hidden_layers\": 4, \"num_attention_heads\": 8, "
                                "\"num_key_value_heads\": 8, \"intermediate_size\": 4096, "
                                "\"vocab_size\": 32000, \"max_position_embeddings\": 8192}";
    struct subject s;
    (void)state;
    memset(&s, 0, sizeof s);
    fixture_begin(&s.f);
    s.f.ctx.profiles = "profiles";
    fixture_text_file(&s.f, "config.json", MODEL);
    const char *path = fixture_text_file(
        &s.f, "scenario.yaml", "vramplan: 1\nmodel: config.json\nhardware: {gpu: mi300x}\n");
    assert_int_equal(vp_session_open(&s.f.ctx, &s.session, path, NULL, 0), VP_OK);
    struct vp_buf here = {.arena = &s.f.arena}, there = {.arena = &s.f.arena};
    vp_session_render(s.session, &here, VP_EXPORT_YAML,
                      vp_arena_printf(&s.f.arena, "%s/other.yaml", fixture_folder(&s.f)));
    assert_non_null(strstr(vp_buf_text(&here), "model: config.json\n"));
    vp_session_render(s.session, &there, VP_EXPORT_YAML, NULL);
    assert_null(strstr(vp_buf_text(&there), "model: config.json\n"));
    assert_non_null(strstr(vp_buf_text(&there), "/config.json\n"));
    subject_close(&s);
}

/* A report out of the session is the report of the command, suggestions included. */
static void test_exports(void **state) {
    struct subject s;
    (void)state;
    subject_open(&s, DENSE);
    vp_session_set(s.session, "serve.context", "131072");
    assert_true(vp_session_unsaved(s.session));
    for (int form = 0; form < VP_EXPORT_COUNT; form++) {
        struct vp_buf out = {.arena = &s.f.arena};
        const char *path = vp_session_export_path(s.session, (enum vp_export)form);
        assert_int_equal(vp_export_of_path(path), form);
        assert_int_equal(vp_session_render(s.session, &out, (enum vp_export)form, path), VP_OK);
        assert_true(out.size > 100);
        if (form == VP_EXPORT_JSON)
            assert_non_null(strstr(vp_buf_text(&out), "\"scenario_patch\""));
    }
    vp_session_exported(s.session, "x.yaml", "no room");
    assert_true(vp_session_unsaved(s.session));
    assert_int_equal(message(&s)->severity, VP_ERROR);
    vp_session_exported(s.session, "x.yaml", NULL);
    assert_false(vp_session_unsaved(s.session));
    vp_session_step(s.session, VP_KNOB_CONCURRENCY, 1);
    assert_true(vp_session_unsaved(s.session));
    vp_session_undo(s.session);
    assert_false(vp_session_unsaved(s.session));
    subject_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_change_and_back),
        cmocka_unit_test(test_refused_changes_nothing),
        cmocka_unit_test(test_layout_goes_along),
        cmocka_unit_test(test_engine_brings_its_version),
        cmocka_unit_test(test_no_gpu),
        cmocka_unit_test(test_open_refused),
        cmocka_unit_test(test_every_knob),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_undo_redo),
        cmocka_unit_test(test_a_change_forgets_what_was_undone),
        cmocka_unit_test(test_pins),
        cmocka_unit_test(test_solve_is_what_fit_says),
        cmocka_unit_test(test_solve_of_training),
        cmocka_unit_test(test_solve_of_llama),
        cmocka_unit_test(test_suggestions_are_what_fit_says),
        cmocka_unit_test(test_ways_to_recompute),
        cmocka_unit_test(test_keys_beside_work),
        cmocka_unit_test(test_command),
        cmocka_unit_test(test_options_are_the_programs),
        cmocka_unit_test(test_export_reads_back),
        cmocka_unit_test(test_export_moves_paths),
        cmocka_unit_test(test_exports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
