/* The reader of GGUF headers: what it gives, and what it refuses. */
#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/doc/gguf.h"
#include "tests/unit/gguf_builder.h"

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

static const char *save(struct fixture *f, const char *name, const struct gguf_builder *b) {
    return fixture_file(f, name, b->data, b->size);
}

static enum vp_status read_it(struct fixture *f, struct vp_gguf *out,
                              const struct gguf_builder *b) {
    const char *path = save(f, "m.gguf", b);
    fixture_clear(f);
    return vp_gguf_read(&f->ctx, out, path);
}

/* One key of each type, two tensors. */
static struct gguf_builder sample(struct fixture *f, uint32_t version, bool big, bool data) {
    static const uint32_t heads[] = {8, 0, 8};
    struct gguf_builder b = gguf_begin(&f->arena, version, big);
    gguf_key_text(&b, "general.architecture", "llama");
    gguf_key(&b, "u8", GGUF_U8), gguf_number(&b, 200, 1);
    gguf_key(&b, "i8", GGUF_I8), gguf_number(&b, 0xFE, 1);
    gguf_key(&b, "u16", GGUF_U16), gguf_number(&b, 65535, 2);
    gguf_key(&b, "i16", GGUF_I16), gguf_number(&b, 0x8000, 2);
    gguf_key(&b, "u32", GGUF_U32), gguf_number(&b, 4000000000, 4);
    gguf_key(&b, "i32", GGUF_I32), gguf_number(&b, 0xFFFFFFFF, 4);
    gguf_key(&b, "f32", GGUF_F32), gguf_number(&b, 0x3FC00000, 4);
    gguf_key(&b, "bool", GGUF_BOOL), gguf_number(&b, 1, 1);
    gguf_key(&b, "u64", GGUF_U64), gguf_number(&b, UINT64_MAX, 8);
    gguf_key(&b, "i64", GGUF_I64), gguf_number(&b, UINT64_MAX - 1, 8);
    gguf_key(&b, "f64", GGUF_F64), gguf_number(&b, 0xC000000000000000, 8);
    gguf_key(&b, "nan", GGUF_F32), gguf_number(&b, 0x7FC00000, 4);
    gguf_key_list(&b, "heads", heads, 3);
    gguf_key(&b, "tokenizer.ggml.tokens", GGUF_ARRAY);
    gguf_number(&b, GGUF_TEXT, 4);
    gguf_number(&b, 2, 8);
    gguf_string(&b, "a"), gguf_string(&b, "bc");
    gguf_tensor(&b, "token_embd.weight", 8, 10 * 34, 32, 10, 0);
    gguf_tensor(&b, "blk.0.ffn_up_exps.weight", 12, 3 * 144, 256, 1, 3);
    gguf_end(&b, data);
    return b;
}

static const char *text_of(const struct vp_gguf *g, const char *key, enum vp_node_kind kind) {
    const struct vp_node *node = vp_node_get(g->metadata, key);
    assert_non_null(node);
    assert_int_equal(node->kind, kind);
    return node->text;
}

static void check_sample(const struct vp_gguf *g) {
    assert_string_equal(text_of(g, "general.architecture", VP_NODE_TEXT), "llama");
    assert_string_equal(text_of(g, "u8", VP_NODE_INT), "200");
    assert_string_equal(text_of(g, "i8", VP_NODE_INT), "-2");
    assert_string_equal(text_of(g, "u16", VP_NODE_INT), "65535");
    assert_string_equal(text_of(g, "i16", VP_NODE_INT), "-32768");
    assert_string_equal(text_of(g, "u32", VP_NODE_INT), "4000000000");
    assert_string_equal(text_of(g, "i32", VP_NODE_INT), "-1");
    assert_string_equal(text_of(g, "f32", VP_NODE_REAL), "1.5");
    assert_string_equal(text_of(g, "bool", VP_NODE_BOOL), "true");
    assert_string_equal(text_of(g, "u64", VP_NODE_INT), "18446744073709551615");
    assert_string_equal(text_of(g, "i64", VP_NODE_INT), "-2");
    assert_string_equal(text_of(g, "f64", VP_NODE_REAL), "-2");
    assert_string_equal(text_of(g, "nan", VP_NODE_REAL), "NaN");
    const struct vp_node *heads = vp_node_get(g->metadata, "heads");
    assert_int_equal(heads->count, 3);
    assert_string_equal(heads->items[1]->text, "0");
    assert_null(vp_node_get(g->metadata, "tokenizer.ggml.tokens"));
    assert_string_equal(vp_node_get(g->counts, "tokenizer.ggml.tokens")->text, "2");
    assert_string_equal(vp_node_get(g->counts, "heads")->text, "3");
    assert_int_equal(g->tensor_count, 2);
    const struct vp_gguf_entry *t = g->tensors;
    assert_string_equal(t[0].name, "token_embd.weight");
    assert_string_equal(t[0].type->name, "q8_0");
    assert_int_equal(t[0].dims, 2);
    assert_int_equal(t[0].elements, 320);
    assert_int_equal(t[0].bytes, 340);
    assert_int_equal(t[0].ne[3], 1);
    assert_int_equal(t[1].dims, 3);
    assert_int_equal(t[1].bytes, 432);
    assert_int_equal(t[1].offset, 352);
    assert_int_equal(g->alignment, 32);
}

static void both_versions_and_byte_orders(void **state) {
    struct fixture *f = *state;
    for (uint32_t version = 2; version <= 3; version++) {
        for (int big = 0; big < 2; big++) {
            struct gguf_builder b = sample(f, version, big, true);
            struct vp_gguf g;
            assert_int_equal(read_it(f, &g, &b), VP_OK);
            assert_int_equal(f->diags.count, 0);
            check_sample(&g);
            assert_int_equal(g.version, version);
            assert_int_equal(g.big_endian, big);
            assert_false(g.header_only);
            assert_int_equal(g.parts, 1);
        }
    }
}

static void header_alone(void **state) {
    struct fixture *f = *state;
    struct gguf_builder b = sample(f, 3, false, false);
    struct vp_gguf g;
    assert_int_equal(read_it(f, &g, &b), VP_OK);
    check_sample(&g);
    assert_true(g.header_only);
    /* the padding may be missing, too */
    while (b.data[b.size - 1] == 0)
        b.size--;
    b.size += 8; /* the last offset ends in zeros */
    assert_int_equal(read_it(f, &g, &b), VP_OK);
    assert_true(g.header_only);
    /* no tensors: nothing is missing */
    b = gguf_begin(&f->arena, 3, false);
    gguf_end(&b, false);
    assert_int_equal(read_it(f, &g, &b), VP_OK);
    assert_false(g.header_only);
}

static void alignment(void **state) {
    struct fixture *f = *state;
    struct gguf_builder b = gguf_begin(&f->arena, 3, false);
    struct vp_gguf g;
    gguf_key_u32(&b, "general.alignment", 64);
    gguf_tensor(&b, "a", 0, 64, 16, 0, 0);
    gguf_tensor(&b, "b", 0, 64, 16, 0, 0);
    gguf_end(&b, false);
    assert_int_equal(read_it(f, &g, &b), VP_OK);
    assert_int_equal(g.alignment, 64);
}

/* Files of every length that ends within the header are refused, and nothing else happens. */
static void cut_anywhere(void **state) {
    struct fixture *f = *state;
    struct gguf_builder b = sample(f, 3, true, true);
    uint64_t whole = b.size - 16; /* the padding behind the last tensor is no loss */
    struct vp_gguf g;
    for (size_t n = 0; n < whole; n += n < 700 ? 1 : 37) {
        b.size = n;
        enum vp_status status = read_it(f, &g, &b);
        if (status == VP_OK) { /* right behind the header */
            assert_true(g.header_only);
            continue;
        }
        assert_int_equal(status, VP_ERR_INPUT);
        assert_int_equal(f->diags.count, 1);
        assert_int_equal(f->diags.items[0].id, VP_D_GGUF);
        assert_non_null(f->diags.items[0].hint);
        assert_non_null(strstr(f->diags.items[0].message, "at byte"));
    }
}

static void bad(struct fixture *f, const struct gguf_builder *b, enum vp_diag_id id,
                const char *words) {
    struct vp_gguf g;
    assert_int_equal(read_it(f, &g, b), VP_ERR_INPUT);
    assert_int_equal(f->diags.count, 1);
    const struct vp_diag *diag = fixture_expect(f, id, words);
    assert_non_null(strstr(diag->pos.file, "m.gguf"));
}

static void wrong_starts(void **state) {
    struct fixture *f = *state;
    struct gguf_builder b = gguf_begin(&f->arena, 1, false);
    gguf_end(&b, false);
    bad(f, &b, VP_D_GGUF, "version 1 ");
    b = gguf_begin(&f->arena, 99, true);
    gguf_end(&b, false);
    bad(f, &b, VP_D_GGUF, "version 99 ");
    b.data[0] = 'X';
    bad(f, &b, VP_D_GGUF, "magic");
    b.size = 0;
    bad(f, &b, VP_D_GGUF, "empty");
    b = gguf_begin(&f->arena, 3, false);
    gguf_end(&b, false);
    memset(b.data + 8, 0x3F, 8); /* tensors */
    bad(f, &b, VP_D_GGUF, "tensors goes beyond");
    memset(b.data + 8, 0, 8);
    memset(b.data + 16, 0xFF, 8);
    bad(f, &b, VP_D_GGUF, "metadata keys goes beyond");
}

static void wrong_keys(void **state) {
    struct fixture *f = *state;
    struct gguf_builder b = gguf_begin(&f->arena, 3, false);
    gguf_key_u32(&b, "twice", 1);
    gguf_key_u32(&b, "once", 1);
    gguf_key_u32(&b, "twice", 1);
    gguf_end(&b, false);
    bad(f, &b, VP_D_GGUF, "duplicate metadata key twice");

    b = gguf_begin(&f->arena, 3, false);
    gguf_key(&b, "x", 13), gguf_number(&b, 1, 8);
    gguf_end(&b, false);
    bad(f, &b, VP_D_GGUF, "unknown value type 13");

    b = gguf_begin(&f->arena, 3, false);
    gguf_key(&b, "x", GGUF_ARRAY), gguf_number(&b, GGUF_ARRAY, 4), gguf_number(&b, 1, 8);
    gguf_end(&b, false);
    bad(f, &b, VP_D_GGUF, "array of arrays");

    b = gguf_begin(&f->arena, 3, false);
    gguf_key(&b, "x", GGUF_ARRAY), gguf_number(&b, GGUF_U8, 4), gguf_number(&b, 1 << 30, 8);
    gguf_end(&b, false);
    bad(f, &b, VP_D_GGUF, "items goes beyond");

    char name[VP_GGUF_MAX_NAME_BYTES + 2];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    b = gguf_begin(&f->arena, 3, false);
    gguf_key_u32(&b, name, 1);
    gguf_end(&b, false);
    bad(f, &b, VP_D_CAP, "longer than the cap of 1024");
    name[sizeof name - 2] = '\0'; /* exactly at the cap */
    b = gguf_begin(&f->arena, 3, false);
    gguf_key_u32(&b, name, 1);
    gguf_end(&b, false);
    struct vp_gguf g;
    assert_int_equal(read_it(f, &g, &b), VP_OK);

    static const uint32_t values[] = {0, 3, 48, 1 << 21};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        b = gguf_begin(&f->arena, 3, false);
        gguf_key_u32(&b, "general.alignment", values[i]);
        gguf_end(&b, false);
        bad(f, &b, VP_D_GGUF, "general.alignment");
    }
    b = gguf_begin(&f->arena, 3, false);
    gguf_key_text(&b, "general.alignment", "32");
    gguf_end(&b, false);
    bad(f, &b, VP_D_GGUF, "whole number");
}

/* A tensor with every field given. */
static struct gguf_builder one_tensor(struct fixture *f, uint32_t dims, const uint64_t *ne,
                                      uint32_t type, uint64_t offset) {
    struct gguf_builder b = gguf_begin(&f->arena, 3, false);
    gguf_string(&b, "t");
    gguf_number(&b, dims, 4);
    for (uint32_t i = 0; i < dims; i++)
        gguf_number(&b, ne[i], 8);
    gguf_number(&b, type, 4);
    gguf_number(&b, offset, 8);
    b.tensors = 1;
    b.offset = 4096; /* bytes of data */
    gguf_end(&b, true);
    return b;
}

static void wrong_tensors(void **state) {
    struct fixture *f = *state;
    static const struct {
        uint32_t dims;
        uint64_t ne[5];
        uint32_t type;
        uint64_t offset;
        const char *words;
    } CASES[] = {
        {5, {1, 1, 1, 1, 1}, 0, 0, "at most 4"},
        {2, {4, 0}, 0, 0, "ne1 is 0"},
        {1, {UINT64_MAX}, 0, 0, "ne0 is -1"},
        {3, {1 << 30, 1 << 30, 1 << 30}, 0, 0, "overflows"},
        {2, {UINT64_C(1) << 31, UINT64_C(1) << 31}, 28, 0, "size overflows"},
        {1, {256}, 4, 0, "type 4 is unknown or retired"},
        {1, {256}, 5, 0, "type 5 "},
        {1, {256}, 31, 0, "type 31 "},
        {1, {256}, 38, 0, "type 38 "},
        {1, {256}, 43, 0, "type 43 "},
        {1, {288}, 12, 0, "not a multiple of the block of 256 of type q4_k"},
        {1, {32}, 0, 16, "not aligned"},
        {1, {32}, 0, UINT64_MAX - 31, "overflows"},
        {1, {32}, 0, 1 << 20, "beyond the end of the file"},
        {1, {2048}, 0, 0, "beyond the end of the file"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct gguf_builder b =
            one_tensor(f, CASES[i].dims, CASES[i].ne, CASES[i].type, CASES[i].offset);
        bad(f, &b, VP_D_GGUF, CASES[i].words);
    }
    struct gguf_builder b = gguf_begin(&f->arena, 3, false);
    gguf_tensor(&b, "same", 0, 4, 1, 0, 0);
    gguf_tensor(&b, "other", 0, 4, 1, 0, 0);
    gguf_tensor(&b, "same", 0, 4, 1, 0, 0);
    gguf_end(&b, true);
    bad(f, &b, VP_D_GGUF, "duplicate tensor same");
}

/* ---- splits ---- */

static void put_part(struct fixture *f, const char *name, uint32_t no, uint32_t count,
                     uint32_t tensors, const char *tensor) {
    struct gguf_builder b = gguf_begin(&f->arena, 3, no == 1);
    gguf_key(&b, "split.no", GGUF_U16), gguf_number(&b, no, 2);
    gguf_key(&b, "split.count", GGUF_U16), gguf_number(&b, count, 2);
    gguf_key(&b, "split.tensors.count", GGUF_I32), gguf_number(&b, tensors, 4);
    if (no == 0)
        gguf_key_text(&b, "general.architecture", "llama");
    gguf_tensor(&b, tensor, 0, 128, 32, 0, 0);
    gguf_end(&b, no != 2);
    save(f, name, &b);
}

static enum vp_status read_part(struct fixture *f, struct vp_gguf *g, const char *name) {
    fixture_clear(f);
    return vp_gguf_read(&f->ctx, g, vp_arena_printf(&f->arena, "%s/%s", fixture_folder(f), name));
}

static void any_part_stands_for_all(void **state) {
    struct fixture *f = *state;
    static const char *const NAMES[] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                                        "m-00003-of-00003.gguf"};
    static const char *const TENSORS[] = {"a", "b", "c"};
    struct vp_gguf g;
    for (uint32_t i = 0; i < 3; i++)
        put_part(f, NAMES[i], i, 3, 3, TENSORS[i]);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(read_part(f, &g, NAMES[i]), VP_OK);
        assert_int_equal(g.parts, 3);
        assert_int_equal(g.tensor_count, 3);
        assert_string_equal(vp_node_get(g.metadata, "general.architecture")->text, "llama");
        assert_true(vp_text_ends(g.source, NAMES[0]));
        assert_true(g.header_only); /* the last one is */
        for (uint32_t t = 0; t < 3; t++) {
            assert_string_equal(g.tensors[t].name, TENSORS[t]);
            assert_int_equal(g.tensors[t].part, t);
        }
    }
}

static void wrong_splits(void **state) {
    struct fixture *f = *state;
    struct vp_gguf g;
    put_part(f, "m-00001-of-00003.gguf", 0, 3, 3, "a");
    put_part(f, "m-00003-of-00003.gguf", 2, 3, 3, "c");
    assert_int_equal(read_part(f, &g, "m-00001-of-00003.gguf"), VP_ERR_INPUT);
    fixture_expect(f, VP_D_FILE_MISSING, "m-00002-of-00003.gguf of a split model is missing");
    put_part(f, "m-00002-of-00003.gguf", 0, 3, 3, "b");
    assert_int_equal(read_part(f, &g, "m-00003-of-00003.gguf"), VP_ERR_INPUT);
    fixture_expect(f, VP_D_GGUF, "split.no 0");
    put_part(f, "m-00002-of-00003.gguf", 1, 3, 3, "a");
    assert_int_equal(read_part(f, &g, "m-00001-of-00003.gguf"), VP_ERR_INPUT);
    fixture_expect(f, VP_D_GGUF, "duplicate tensor a");
    put_part(f, "m-00002-of-00003.gguf", 1, 3, 3, "b");
    put_part(f, "m-00001-of-00003.gguf", 0, 3, 4, "a");
    assert_int_equal(read_part(f, &g, "m-00001-of-00003.gguf"), VP_ERR_INPUT);
    fixture_expect(f, VP_D_GGUF, "split.tensors.count is 4");
    put_part(f, "renamed.gguf", 0, 3, 3, "a");
    assert_int_equal(read_part(f, &g, "renamed.gguf"), VP_ERR_INPUT);
    fixture_expect(f, VP_D_GGUF, "not the name of a split file");
    put_part(f, "m-00009-of-00003.gguf", 0, 3, 3, "a");
    assert_int_equal(read_part(f, &g, "m-00009-of-00003.gguf"), VP_ERR_INPUT);
    fixture_expect(f, VP_D_GGUF, "not the name of a split file");
    put_part(f, "m-00001-of-60000.gguf", 0, 60000, 3, "a");
    assert_int_equal(read_part(f, &g, "m-00001-of-60000.gguf"), VP_ERR_INPUT);
    fixture_expect(f, VP_D_CAP, "split.count");
}

/* ---- the environment ---- */

static void no_file(void **state) {
    struct fixture *f = *state;
    struct vp_gguf g;
    assert_int_equal(read_part(f, &g, "none.gguf"), VP_ERR_INPUT);
    fixture_expect(f, VP_D_FILE_MISSING, "none.gguf");
}

static void every_failing_call(void **state) {
    struct fixture *f = *state;
    struct vp_gguf g;
    put_part(f, "m-00001-of-00002.gguf", 0, 2, 2, "a");
    put_part(f, "m-00002-of-00002.gguf", 1, 2, 2, "b");
    for (int n = 1;; n++) {
        f->ctx.io = failing_io(n);
        enum vp_status status = read_part(f, &g, "m-00001-of-00002.gguf");
        int calls = failing_io_calls();
        f->ctx.io = &vp_io_posix;
        if (calls < n) {
            assert_int_equal(status, VP_OK);
            break;
        }
        if (status != VP_OK) /* a failing close loses nothing */
            assert_int_equal(status, VP_ERR_ENV);
        assert_int_equal(status == VP_OK, f->diags.errors == 0);
    }
}

static void no_memory(void **state) {
    struct fixture *f = *state;
    struct gguf_builder b = sample(f, 3, false, true);
    const char *path = save(f, "m.gguf", &b);
    for (int n = 1;; n++) {
        struct vp_arena arena = {.take = failing_take(n)};
        struct vp_ctx ctx = f->ctx;
        struct vp_gguf g;
        jmp_buf oom;
        ctx.arena = &arena;
        arena.oom = &oom;
        volatile bool failed = false;
        if (setjmp(oom) == 0)
            assert_int_equal(vp_gguf_read(&ctx, &g, path), VP_OK);
        else
            failed = true;
        vp_arena_free(&arena);
        if (!failed) {
            assert_true(n > 1);
            return;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_versions_and_byte_orders, setup, teardown),
        cmocka_unit_test_setup_teardown(header_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(alignment, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_anywhere, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_starts, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_tensors, setup, teardown),
        cmocka_unit_test_setup_teardown(any_part_stands_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_splits, setup, teardown),
        cmocka_unit_test_setup_teardown(no_file, setup, teardown),
        cmocka_unit_test_setup_teardown(every_failing_call, setup, teardown),
        cmocka_unit_test_setup_teardown(no_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
