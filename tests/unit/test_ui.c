/* The interface with a real session: keys at random, in all sizes, with the time of each frame; and
 * that what is drawn follows from the state alone.
 *
 * VP_UI_KEYS: how many keys at random for each scenario; by default few, `make check` stays quick,
 * and all of them under AddressSanitizer or with LONG. */
#include "tui/ui.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planner/base/clock.h"
#include "tests/unit/fixture.h"

static const char SERVE[] =
    "vramplan: 1\n"
    "model: {model_type: llama, hidden_size: 1024, num_hidden_layers: 8, num_attention_heads: 8,\n"
    "  num_key_value_heads: 2, intermediate_size: 4096, vocab_size: 32000,\n"
    "  max_position_embeddings: 131072, torch_dtype: bfloat16}\n"
    "hardware: {gpu: mi300x, count: 2}\n"
    "engine: {name: vllm, version: \"0.19\"}\n"
    "parallel: {tensor: 1, pipeline: 2}\n"
    "serve: {context: 8192, concurrency: 16}\n";

static const char TRAIN[] =
    "vramplan: 1\n"
    "model: {model_type: llama, hidden_size: 1024, num_hidden_layers: 8, num_attention_heads: 8,\n"
    "  num_key_value_heads: 2, intermediate_size: 4096, vocab_size: 32000,\n"
    "  max_position_embeddings: 131072, torch_dtype: bfloat16}\n"
    "hardware: {gpu: mi300x}\n"
    "engine: {name: pytorch, version: \"2.9\"}\n"
    "train: {micro_batch: 2, sequence_length: 2048, optimizer: adamw, recompute: none}\n";

struct rig {
    struct fixture f;
    struct vp_session *session;
    struct vp_ui ui;
    int files; /* written */
};

static struct rig *running;

static enum vp_status write_nothing(struct vp_ctx *ctx, const struct vp_buf *text,
                                    const char *path) {
    (void)ctx, (void)text, (void)path;
    running->files++;
    return VP_OK;
}

static void begin(struct rig *r, const char *scenario, int width, int height) {
    memset(r, 0, sizeof *r);
    fixture_begin(&r->f);
    r->f.ctx.profiles = "profiles";
    const char *path = vp_text_starts(scenario, "vramplan:")
                           ? fixture_text_file(&r->f, "scenario.yaml", scenario)
                           : scenario;
    assert_int_equal(vp_session_open(&r->f.ctx, &r->session, path, NULL, 0), VP_OK);
    vp_ui_open(&r->ui, r->session, width, height, true);
    r->ui.write = write_nothing;
    r->ui.ctx = &r->f.ctx;
    running = r;
}

static void end(struct rig *r) {
    vp_ui_close(&r->ui);
    vp_session_close(r->session);
    fixture_end(&r->f);
}

/* The words of a key script. */
static void press(struct rig *r, const char *keys) {
    struct vp_key_script script;
    assert_int_equal(vp_keys_parse(&r->f.ctx, &script, "keys", keys), VP_OK);
    for (size_t i = 0; i < script.count; i++) {
        vp_ui_key(&r->ui, script.key[i]);
        vp_ui_draw(&r->ui);
        while (vp_ui_work(&r->ui))
            ;
    }
}

static const char *screen(struct rig *r) {
    struct vp_buf out = {.arena = &r->f.arena};
    vp_cells_print(&out, vp_ui_draw(&r->ui), false, VP_THEME_MONO);
    return vp_buf_text(&out);
}

static void shows(struct rig *r, const char *words) {
    const char *now = screen(r);
    if (!strstr(now, words))
        fail_msg("'%s' is not on the screen; at the bottom: %s", words, r->ui.status);
}

/* ---- single keys ---- */

static void a_value_is_typed(void **state) {
    struct rig *r = *state;
    begin(r, SERVE, 80, 24);
    press(r, "/ context Enter Enter 16k Enter");
    assert_int_equal(vp_session_plan(r->session)->scenario->serve.context, 16384);
    press(r, "u");
    assert_int_equal(vp_session_plan(r->session)->scenario->serve.context, 8192);
    press(r, "U + ");
    assert_int_equal(vp_session_plan(r->session)->scenario->serve.context, 17408);
    press(r, "_ _");
    assert_int_equal(vp_session_plan(r->session)->scenario->serve.context, 8192);
    end(r);
}

static void what_is_refused_changes_nothing(void **state) {
    struct rig *r = *state;
    begin(r, SERVE, 80, 24);
    uint64_t serial = vp_session_serial(r->session);
    press(r, "/ context Enter Enter nonsense Enter");
    assert_int_equal(vp_session_serial(r->session), serial);
    assert_true(r->ui.status[0] != '\0');
    assert_int_equal(r->ui.status_style, VP_LOOK_BAD);
    press(r, ": \"set no.such.field 1\" Enter");
    assert_int_equal(vp_session_serial(r->session), serial);
    shows(r, "no scenario has");
    press(r, ": \"contxt 5\" Enter");
    shows(r, "did you mean 'context'");
    end(r);
}

static void commands(void **state) {
    struct rig *r = *state;
    begin(r, SERVE, 80, 24);
    press(r, ": \"context 4k\" Enter : \"set serve.concurrency 3\" Enter : ledger Enter");
    assert_int_equal(vp_session_plan(r->session)->scenario->serve.context, 4096);
    assert_int_equal(vp_session_plan(r->session)->scenario->serve.concurrency, 3);
    assert_int_equal(r->ui.screen, VP_SCREEN_LEDGER);
    press(r, ": \"write out.yaml\" Enter : \"export out.json\" Enter");
    assert_int_equal(r->files, 2);
    assert_false(vp_session_unsaved(r->session));
    press(r, ": quit Enter");
    assert_true(r->ui.quit);
    end(r);
}

static void quitting_asks_for_what_is_not_written(void **state) {
    struct rig *r = *state;
    begin(r, SERVE, 80, 24);
    press(r, ": \"context 4k\" Enter q");
    assert_false(r->ui.quit);
    shows(r, "q again quits");
    press(r, "j q");
    assert_false(r->ui.quit); /* another key between: asked anew */
    press(r, "q");
    assert_true(r->ui.quit);
    end(r);
}

static void a_small_terminal_waits(void **state) {
    struct rig *r = *state;
    begin(r, SERVE, 80, 24);
    press(r, "/ context Enter Enter 16 size 40x10 9 9 9 size 80x24 k Enter");
    assert_int_equal(vp_session_plan(r->session)->scenario->serve.context, 16384);
    press(r, "size 30x5");
    shows(r, "FITS");
    shows(r, "80x24");
    end(r);
}

static void pasted_text_is_no_command(void **state) {
    struct rig *r = *state;
    begin(r, SERVE, 80, 24);
    press(r, "PasteBegin q q C-c PasteEnd");
    assert_false(r->ui.quit);
    press(r, "PasteBegin 6 Esc 6"); /* its end was lost */
    assert_int_equal(r->ui.screen, VP_SCREEN_LEDGER);
    press(r, "1");
    press(r, ": PasteBegin context Space 4k Enter PasteEnd");
    assert_int_equal(r->ui.mode, VP_UI_ENTRY);
    press(r, "Enter");
    assert_int_equal(vp_session_plan(r->session)->scenario->serve.context, 4096);
    end(r);
}

static void clicks_reach_what_is_drawn(void **state) {
    struct rig *r = *state;
    begin(r, SERVE, 80, 24);
    vp_ui_draw(&r->ui);
    press(r, "click 3,5");
    assert_int_equal(r->ui.at[VP_SCREEN_SERVE].place[0].row, 2);
    for (int i = 0; i < r->ui.hits; i++)
        if (r->ui.hit[i].action == VP_ACT_SCREEN_6) {
            vp_ui_key(&r->ui, (struct vp_key){
                                  .code = VP_KEY_CLICK, .x = r->ui.hit[i].x, .y = r->ui.hit[i].y});
            break;
        }
    assert_int_equal(r->ui.screen, VP_SCREEN_LEDGER);
    end(r);
}

static void the_same_state_gives_the_same_screen(void **state) {
    struct rig *r = *state;
    begin(r, SERVE, 100, 30);
    for (const char *p = "123456"; *p; p++) {
        char key[2] = {*p, '\0'};
        press(r, key);
        const char *once = screen(r);
        press(r, "size 81x24");
        screen(r);
        press(r, "size 100x30");
        assert_string_equal(screen(r), once);
    }
    end(r);
}

/* Nothing is said by colour alone: without colours the same characters are there. */
static void ascii_has_nothing_else(void **state) {
    struct rig *r = *state;
    begin(r, SERVE, 120, 40);
    r->ui.utf8 = false;
    for (const char *p = "123456?"; *p; p++) {
        char key[2] = {*p, '\0'};
        press(r, key);
        for (const char *c = screen(r); *c; c++)
            assert_true((unsigned char)*c < 0x80);
    }
    end(r);
}

/* ---- keys at random ---- */

static uint64_t draw(uint64_t *seed, uint64_t below) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % below;
}

static struct vp_key any_key(uint64_t *seed) {
    static const uint32_t SPECIAL[] = {
        VP_KEY_UP,        VP_KEY_DOWN,   VP_KEY_LEFT,    VP_KEY_RIGHT,     VP_KEY_HOME,
        VP_KEY_END,       VP_KEY_ENTER,  VP_KEY_ESC,     VP_KEY_TAB,       VP_KEY_BACKTAB,
        VP_KEY_BACKSPACE, VP_KEY_DELETE, VP_KEY_PAGE_UP, VP_KEY_PAGE_DOWN, VP_KEY_PASTE_BEGIN,
        VP_KEY_PASTE_END, VP_KEY_OTHER};
    static const char LIKELY[] = "jkhl+-_=[]123456 uUmnN/:eywc%g?dRxot0789k.a";
    uint64_t kind = draw(seed, 100);
    struct vp_key key = {.x = (int)draw(seed, 250), .y = (int)draw(seed, 80)};
    if (kind < 55)
        key.code = (uint32_t)LIKELY[draw(seed, sizeof LIKELY - 1)];
    else if (kind < 80)
        key.code = SPECIAL[draw(seed, sizeof SPECIAL / sizeof SPECIAL[0])];
    else if (kind < 88)
        key.code = VP_KEY_CLICK + (uint32_t)draw(seed, 3);
    else if (kind < 93)
        key.code = (uint32_t)draw(seed, 0x3100);
    else if (kind < 96)
        key.code = VP_KEY_F1 + (uint32_t)draw(seed, 12);
    else {
        key.code = VP_KEY_RESIZE;
        bool large = draw(seed, 3) > 0;
        key.x = large ? 80 + (int)draw(seed, 171) : 1 + (int)draw(seed, 250);
        key.y = large ? 24 + (int)draw(seed, 57) : 1 + (int)draw(seed, 80);
    }
    return key;
}

struct times {
    double longest_key, longest_frame, all_frames, longest_work;
    int frames;
};

static double since(double start) { return vp_clock_seconds() - start; }

/* Processor time of this thread, which no other work on the machine lengthens. */
static double work_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void one_random_key(struct rig *r, uint64_t *seed, struct times *t) {
    double start = vp_clock_seconds();
    struct vp_key pressed = any_key(seed);
    vp_ui_key(&r->ui, pressed);
    double key = since(start);
    start = work_seconds();
    struct vp_cells *cells = vp_ui_draw(&r->ui);
    double frame = work_seconds() - start;
    assert_int_equal(cells->width, r->ui.width);
    assert_int_equal(cells->height, r->ui.height);
    t->longest_key = key > t->longest_key ? key : t->longest_key;
    t->longest_frame = frame > t->longest_frame ? frame : t->longest_frame;
    t->all_frames += frame;
    t->frames++;
    if (draw(seed, 20) == 0) {
        start = vp_clock_seconds();
        vp_ui_work(&r->ui);
        double work = since(start);
        t->longest_work = work > t->longest_work ? work : t->longest_work;
    }
    r->ui.quit = r->ui.suspend = r->ui.copy = false;
}

static uint64_t keys_wanted(void) {
    const char *text = getenv("VP_UI_KEYS"), *all = getenv("LONG");
    enum { FEW = 150, MANY = 3400 }; /* three scenarios: 10,200 */
#ifdef __SANITIZE_ADDRESS__
    all = "1";
#endif
    return text ? strtoull(text, NULL, 10) : all && *all ? MANY : FEW;
}

/* No frame may take long: 20 ms of a processor, held to when all keys are pressed in a plain build;
 * for sanitizers and valgrind the bound is loose. */
static void random_keys(struct rig *r, const char *scenario, uint64_t seed) {
    struct times t = {0};
    uint64_t keys = keys_wanted();
    begin(r, scenario, 80, 24);
    for (uint64_t i = 0; i < keys; i++)
        one_random_key(r, &seed, &t);
    print_message(
        "# %llu keys: frame %.2f ms on average, %.1f at most; key %.1f, work %.1f at most\n",
        (unsigned long long)keys, 1e3 * t.all_frames / t.frames, 1e3 * t.longest_frame,
        1e3 * t.longest_key, 1e3 * t.longest_work);
    end(r);
    assert_true(t.all_frames / t.frames < 0.1);
#ifdef __SANITIZE_ADDRESS__
    assert_true(t.longest_frame < 2);
#else
    assert_true(t.longest_frame < (getenv("LONG") ? 0.02 : 2));
#endif
}

static void keys_at_random_when_serving(void **state) { random_keys(*state, SERVE, 20261130); }
static void keys_at_random_when_training(void **state) { random_keys(*state, TRAIN, 4711); }

static void keys_at_random_on_unlike_cards(void **state) {
    random_keys(*state, "tests/fixtures/llama.yaml#split", 815);
}

static int setup(void **state) {
    static struct rig r;
    *state = &r;
    return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_value_is_typed),
        TEST(what_is_refused_changes_nothing),
        TEST(commands),
        TEST(quitting_asks_for_what_is_not_written),
        TEST(a_small_terminal_waits),
        TEST(pasted_text_is_no_command),
        TEST(clicks_reach_what_is_drawn),
        TEST(the_same_state_gives_the_same_screen),
        TEST(ascii_has_nothing_else),
        TEST(keys_at_random_when_serving),
        TEST(keys_at_random_when_training),
        TEST(keys_at_random_on_unlike_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
