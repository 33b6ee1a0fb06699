/* Names of keys, the table of what they do, scripts; the line that is typed. */
#include "tui/keys.h"

#include <string.h>

#include "tests/unit/fixture.h"
#include "tui/entry.h"

static void names_there_and_back(void **state) {
    (void)state;
    static const char *const NAMES[] = {"Up", "Enter", "Tab",   "BackTab", "F1", "F12", "C-l",
                                        "j",  "?",     "Space", "Hash",    "%",  "Esc", "PageDown"};
    struct vp_arena arena = {0};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        uint32_t code = vp_key_find(NAMES[i]);
        assert_int_not_equal(code, VP_KEY_NONE);
        assert_string_equal(vp_key_name(&arena, code), NAMES[i]);
    }
    assert_int_equal(vp_key_find("F13"), VP_KEY_NONE);
    assert_int_equal(vp_key_find("Upp"), VP_KEY_NONE);
    assert_int_equal(vp_key_find(""), VP_KEY_NONE);
    vp_arena_free(&arena);
}

/* Every key of the table has a name that is known, and means one thing on each screen. */
static void the_table_is_sound(void **state) {
    (void)state;
    size_t count;
    const struct vp_binding *row = vp_bindings(&count);
    for (size_t i = 0; i < count; i++) {
        char keys[64], *rest = keys;
        if (!row[i].keys)
            continue;
        assert_true(strlen(row[i].keys) < sizeof keys);
        assert_true(row[i].screens != 0 && row[i].meaning[0]);
        strcpy(keys, row[i].keys);
        for (char *name; (name = strtok_r(rest, " ", &rest)) != NULL;) {
            uint32_t code = vp_key_find(name);
            assert_int_not_equal(code, VP_KEY_NONE);
            for (size_t k = i + 1; k < count; k++) {
                char other[64], *more = other;
                if (!row[k].keys || row[k].screens == UINT32_MAX || row[i].screens == UINT32_MAX ||
                    !(row[k].screens & row[i].screens))
                    continue;
                strcpy(other, row[k].keys);
                for (char *n; (n = strtok_r(more, " ", &more)) != NULL;)
                    assert_int_not_equal(vp_key_find(n), code);
            }
        }
    }
}

static void screens_may_have_their_own_keys(void **state) {
    (void)state;
    assert_int_equal(vp_key_action(VP_SCREEN_SERVE, '+'), VP_ACT_MORE);
    assert_int_equal(vp_key_action(VP_SCREEN_LEDGER, 'q'), VP_ACT_QUIT);
    assert_int_equal(vp_key_action(VP_SCREEN_SERVE, '~'), VP_ACT_NONE);
}

static void scripts(void **state) {
    struct fixture *f = *state;
    struct vp_key_script script;
    static const char TEXT[] = "j Down 65536 Enter # a comment\n/ \"kv cache\" Enter\nsize 120x40\n"
                               "click 3,7 Hash\n";
    static const uint32_t WANT[] = {
        'j', VP_KEY_DOWN, '6', '5', '5', '3', '6',          VP_KEY_ENTER,  '/',          'k', 'v',
        ' ', 'c',         'a', 'c', 'h', 'e', VP_KEY_ENTER, VP_KEY_RESIZE, VP_KEY_CLICK, '#'};
    assert_int_equal(vp_keys_parse(&f->ctx, &script, "keys", TEXT), VP_OK);
    assert_int_equal(script.count, sizeof WANT / sizeof WANT[0]);
    for (size_t i = 0; i < script.count; i++)
        assert_int_equal(script.key[i].code, WANT[i]);
    assert_int_equal(script.key[18].x, 120);
    assert_int_equal(script.key[19].y, 7);
    assert_int_equal(vp_keys_parse(&f->ctx, &script, "keys", ""), VP_OK);
    assert_int_equal(script.count, 0);
}

static void faults_of_scripts_have_a_place(void **state) {
    struct fixture *f = *state;
    struct vp_key_script script;
    static const char *const BAD[] = {"j\nsize 80", "\n\"open",    "size 80x",
                                      "click 1",    "size 9999x9", "size x"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        fixture_clear(f);
        assert_int_equal(vp_keys_parse(&f->ctx, &script, "keys", BAD[i]), VP_ERR_INPUT);
        assert_int_equal(f->diags.count, 1);
        assert_non_null(f->diags.items[0].hint);
    }
    fixture_clear(f);
    vp_keys_parse(&f->ctx, &script, "keys", BAD[0]);
    assert_int_equal(f->diags.items[0].pos.line, 2);
}

static void type(struct vp_entry *entry, const char *keys) {
    char buffer[128], *rest = buffer;
    strcpy(buffer, keys);
    for (char *name; (name = strtok_r(rest, " ", &rest)) != NULL;)
        vp_entry_key(entry, vp_key_find(name));
}

static void a_line_is_edited(void **state) {
    (void)state;
    struct vp_entry entry;
    vp_entry_set(&entry, "abc");
    type(&entry, "Left Left X End Y Home Z");
    assert_string_equal(entry.text, "ZaXbcY");
    type(&entry, "Delete End Backspace Backspace");
    assert_string_equal(entry.text, "ZXb");
    vp_entry_set(&entry, "set serve.context \xE6\xA8\xA1\xE5\x9E\x8B");
    type(&entry, "Left Backspace");
    assert_string_equal(entry.text, "set serve.context \xE5\x9E\x8B");
    type(&entry, "End C-w C-w");
    assert_string_equal(entry.text, "set ");
    type(&entry, "C-u Backspace Left Right Delete C-k");
    assert_string_equal(entry.text, "");
    assert_false(vp_entry_key(&entry, VP_KEY_UP));
    assert_false(vp_entry_key(&entry, 0xD800));
    assert_false(vp_entry_key(&entry, 7));
}

static void a_line_has_an_end(void **state) {
    (void)state;
    struct vp_entry entry;
    vp_entry_set(&entry, NULL);
    for (int i = 0; i < 2 * VP_ENTRY_BYTES; i++)
        vp_entry_key(&entry, 0x6A21);
    assert_true(entry.size < VP_ENTRY_BYTES);
    assert_int_equal(entry.size % 3, 0);
    assert_int_equal(strlen(entry.text), entry.size);
}

static int setup(void **state) {
    static struct fixture f;
    fixture_begin(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture_end(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_there_and_back),
        cmocka_unit_test(the_table_is_sound),
        cmocka_unit_test(screens_may_have_their_own_keys),
        cmocka_unit_test_setup_teardown(scripts, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_of_scripts_have_a_place, setup, teardown),
        cmocka_unit_test(a_line_is_edited),
        cmocka_unit_test(a_line_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
