#include "tests/unit/fixture.h"

#include <stdio.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/doc/safetensors.h"

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

/* A file with this header and so many bytes of data. */
static const char *make(struct fixture *f, const char *name, const char *header, size_t data) {
    size_t n = strlen(header);
    char *bytes = vp_arena_alloc(&f->arena, 8 + n + data);
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (char)(n >> (8 * i) & 0xFF);
    memcpy(bytes + 8, header, n);
    return fixture_file(f, name, bytes, 8 + n + data);
}

static enum vp_status read_one(struct fixture *f, struct vp_tensors *out, const char *header,
                               size_t data) {
    const char *path = make(f, "model.safetensors", header, data);
    fixture_clear(f);
    return vp_safetensors_read(&f->ctx, out, path);
}

static void bad(struct fixture *f, const char *header, size_t data, const char *words) {
    struct vp_tensors out;
    assert_int_equal(read_one(f, &out, header, data), VP_ERR_INPUT);
    assert_int_equal(f->diags.count, 1);
    const struct vp_diag *diag = fixture_expect(f, VP_D_SAFETENSORS, words);
    assert_non_null(strstr(diag->pos.file, "model.safetensors"));
}

static void one_file(void **state) {
    struct fixture *f = *state;
    struct vp_tensors out;
    assert_int_equal(read_one(f, &out,
                              "{\"__metadata__\": {\"format\": \"pt\"},"
                              "\"b\": {\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
                              "\"a\": {\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                              "\"e\": {\"dtype\":\"U8\",\"shape\":[0,9],\"data_offsets\":[4,4],"
                              "\"note\":1}}   ",
                              16),
                     VP_OK);
    assert_int_equal(f->diags.count, 0);
    assert_int_equal(out.count, 3);
    assert_int_equal(out.total_bytes, 16);
    assert_false(out.header_only);
    assert_string_equal(out.items[0].name, "b");
    assert_string_equal(out.items[0].dtype, "BF16");
    assert_int_equal(out.items[0].elements, 6);
    assert_int_equal(out.items[0].bytes, 12);
    assert_int_equal(out.items[0].dims, 2);
    assert_int_equal(out.items[0].shape[1], 3);
    assert_int_equal(out.items[1].elements, 1); /* a scalar */
    assert_int_equal(out.items[1].dims, 0);
    assert_int_equal(out.items[2].bytes, 0);
    assert_non_null(strstr(out.source, "model.safetensors"));
    assert_int_equal(read_one(f, &out, "{}", 0), VP_OK);
    assert_int_equal(out.count, 0);
    assert_false(out.header_only);
}

static void every_dtype(void **state) {
    struct fixture *f = *state;
    static const struct {
        const char *name;
        unsigned bytes_of_8;
    } DTYPES[] = {
        {"BOOL", 8},    {"U8", 8},          {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8},
        {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F4", 4},      {"F6_E2M3", 6},
        {"F6_E3M2", 6}, {"I16", 16},        {"U16", 16},        {"F16", 16},    {"BF16", 16},
        {"I32", 32},    {"U32", 32},        {"F32", 32},        {"F64", 64},    {"I64", 64},
        {"U64", 64},    {"C64", 64},
    };
    for (size_t i = 0; i < sizeof DTYPES / sizeof DTYPES[0]; i++) {
        struct vp_tensors out;
        unsigned n = DTYPES[i].bytes_of_8;
        const char *header = vp_arena_printf(
            &f->arena, "{\"x\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%u]}}",
            DTYPES[i].name, n);
        assert_int_equal(read_one(f, &out, header, n), VP_OK);
        assert_int_equal(out.items[0].bytes, n);
        assert_int_equal(out.items[0].elements, 8);
    }
    bad(f, "{\"x\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 2, "takes 2 bytes");
}

static void a_header_without_its_data(void **state) {
    struct fixture *f = *state;
    struct vp_tensors out;
    const char *header = "{\"x\":{\"dtype\":\"F16\",\"shape\":[1024],\"data_offsets\":[0,2048]}}";
    assert_int_equal(read_one(f, &out, header, 0), VP_OK);
    assert_true(out.header_only);
    assert_int_equal(out.total_bytes, 2048);
    fixture_expect(f, VP_D_HEADER_ONLY, "ends after its header");
    bad(f, header, 2047, "beyond the end of the file");
    bad(f, header, 1, "beyond the end of the file");
}

#define TENSOR(dtype, shape, offsets)                                                              \
    "{\"x\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void faults_of_a_tensor(void **state) {
    struct fixture *f = *state;
    static const struct {
        const char *header, *words;
    } CASES[] = {
        {"[]", "must be a map"},
        {"{\"x\": 1}", "is not a map"},
        {"{\"x\": {\"shape\":[1],\"data_offsets\":[0,1]}}", "no dtype"},
        {"{\"x\": {\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", "no shape"},
        {"{\"x\": {\"dtype\":\"U8\",\"shape\":[1]}}", "data_offsets"},
        {TENSOR("8", "[1]", "[0,1]"), "no dtype"},
        {TENSOR("\"F13\"", "[1]", "[0,1]"), "unknown dtype F13"},
        {TENSOR("\"U8\"", "[-1]", "[0,1]"), "negative"},
        {TENSOR("\"U8\"", "[1.0]", "[0,1]"), "no integer"},
        {TENSOR("\"U8\"", "[\"1\"]", "[0,1]"), "no integer"},
        {TENSOR("\"U8\"", "1", "[0,1]"), "no shape"},
        {TENSOR("\"U8\"", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), "more than 8 dimensions"},
        {TENSOR("\"U8\"", "[4294967296,4294967296]", "[0,1]"), "overflows"},
        {TENSOR("\"F64\"", "[9223372036854775807]", "[0,1]"), "takes"},
        {TENSOR("\"U8\"", "[1]", "[0]"), "two integers"},
        {TENSOR("\"U8\"", "[1]", "[1,0]"), "ascending"},
        {TENSOR("\"U8\"", "[1]", "[-1,0]"), "two integers"},
        {TENSOR("\"U8\"", "[1]", "[0,1.0]"), "two integers"},
        {TENSOR("\"U8\"", "[1]", "{}"), "two integers"},
        {TENSOR("\"U8\"", "[1]", "[0,9]"), "beyond the end"},
        {TENSOR("\"U8\"", "[1]", "[8,9]"), "beyond the end"},
        {TENSOR("\"U16\"", "[4]", "[0,7]"), "takes 8 bytes, but data_offsets span 7"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}",
         "overlap"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]},"
         "\"y\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[5,7]}}",
         "overlap"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        bad(f, CASES[i].header, 8, CASES[i].words);
}

static void all_faults_are_told_in_one_run(void **state) {
    struct fixture *f = *state;
    struct vp_tensors out;
    assert_int_equal(read_one(f, &out,
                              "{\"x\":{\"dtype\":\"F13\",\"shape\":[-1],\"data_offsets\":[0,9]},"
                              "\"y\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}",
                              8),
                     VP_ERR_INPUT);
    assert_int_equal(f->diags.count, 4);
}

static void faults_of_the_header(void **state) {
    struct fixture *f = *state;
    struct vp_tensors out;
    assert_int_equal(read_one(f, &out, "{\"x\": [", 8), VP_ERR_INPUT);
    assert_non_null(strstr(fixture_expect(f, VP_D_SYNTAX, "JSON")->hint, "header"));
    assert_int_equal(read_one(f, &out, "", 8), VP_ERR_INPUT);
    fixture_expect(f, VP_D_SYNTAX, "empty");
    assert_int_equal(read_one(f, &out, "{\"x\":{},\"x\":{}}", 8), VP_ERR_INPUT);
    fixture_expect(f, VP_D_DUPLICATE_KEY, "\"x\"");

    static const struct {
        const char *bytes;
        size_t n;
        enum vp_diag_id id;
        const char *words;
    } FILES[] = {
        {"", 0, VP_D_SAFETENSORS, "truncated"},
        {"1234567", 7, VP_D_SAFETENSORS, "too short"},
        {"\x03\0\0\0\0\0\0\0{}", 10, VP_D_SAFETENSORS, "header length 3 goes beyond"},
        {"\x01\xE1\xF5\x05\0\0\0\0{}", 10, VP_D_CAP, "cap of 100000000 bytes"},
        {"\0\xE1\xF5\x05\0\0\0\0{}", 10, VP_D_SAFETENSORS, "goes beyond"},
        {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10, VP_D_CAP, "18446744073709551615"},
    };
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        const char *path = fixture_file(f, "raw.safetensors", FILES[i].bytes, FILES[i].n);
        fixture_clear(f);
        assert_int_equal(vp_safetensors_read(&f->ctx, &out, path), VP_ERR_INPUT);
        fixture_expect(f, FILES[i].id, FILES[i].words);
    }
    fixture_clear(f);
    assert_int_equal(vp_safetensors_read(&f->ctx, &out, "/nowhere.safetensors"), VP_ERR_INPUT);
    fixture_expect(f, VP_D_FILE_MISSING, "/nowhere.safetensors");
}

#define U8(name, begin, end)                                                                       \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[" #begin "," #end "]}"

/* Two parts with the tensors b, a and c. */
static void make_parts(struct fixture *f, size_t data) {
    make(f, "p1.safetensors", "{" U8("b", 0, 2) "," U8("a", 2, 4) "}", 2 * data);
    make(f, "p2.safetensors", "{" U8("c", 0, 2) "}", data);
}

static enum vp_status read_index(struct fixture *f, struct vp_tensors *out, const char *text) {
    const char *path = fixture_text_file(f, "index.json", text);
    fixture_clear(f);
    return vp_safetensors_read_index(&f->ctx, out, path);
}

static const char GOOD_MAP[] = "{\"metadata\": {\"total_size\": 6.0}, \"weight_map\": {"
                               "\"c\": \"p2.safetensors\", \"a\": \"p1.safetensors\","
                               "\"b\": \"p1.safetensors\"}}";

static void an_index(void **state) {
    struct fixture *f = *state;
    struct vp_tensors out;
    make_parts(f, 2);
    assert_int_equal(read_index(f, &out, GOOD_MAP), VP_OK);
    assert_int_equal(f->diags.count, 0);
    assert_int_equal(out.count, 3);
    assert_int_equal(out.total_bytes, 6);
    assert_string_equal(out.items[0].name, "a");
    assert_string_equal(out.items[1].name, "b");
    assert_string_equal(out.items[2].name, "c");
    assert_non_null(strstr(out.source, "index.json"));
    assert_int_equal(read_index(f, &out, "{\"weight_map\": {}}"), VP_OK);
    assert_int_equal(out.count, 0);
}

static void an_index_of_headers(void **state) {
    struct fixture *f = *state;
    struct vp_tensors out;
    make_parts(f, 0);
    assert_int_equal(read_index(f, &out, GOOD_MAP), VP_OK);
    assert_true(out.header_only);
    assert_int_equal(f->diags.count, 1); /* not one for each part */
    assert_non_null(
        strstr(fixture_expect(f, VP_D_HEADER_ONLY, "2 files")->pos.file, "p1.safetensors"));
}

static void a_total_that_disagrees(void **state) {
    struct fixture *f = *state;
    struct vp_tensors out;
    make_parts(f, 2);
    static const char *const TOTALS[] = {"7", "\"6\"", "{}", "-6"};
    for (size_t i = 0; i < sizeof TOTALS / sizeof TOTALS[0]; i++) {
        const char *text = vp_arena_printf(&f->arena,
                                           "{\"metadata\": {\"total_size\": %s}, \"weight_map\": {"
                                           "\"c\": \"p2.safetensors\", \"a\": \"p1.safetensors\","
                                           "\"b\": \"p1.safetensors\"}}",
                                           TOTALS[i]);
        assert_int_equal(read_index(f, &out, text), VP_OK);
        fixture_expect(f, VP_D_WEIGHTS_DISAGREE, "the tensors have 6");
    }
}

static void faults_of_an_index(void **state) {
    struct fixture *f = *state;
    struct vp_tensors out;
    make_parts(f, 2);
    static const struct {
        const char *text;
        enum vp_diag_id id;
        const char *words;
    } CASES[] = {
        {"{", VP_D_SYNTAX, "end of file"},
        {"{\"metadata\": {}}", VP_D_SAFETENSORS, "no weight_map"},
        {"[]", VP_D_SAFETENSORS, "no weight_map"},
        {"{\"weight_map\": [\"a\"]}", VP_D_SAFETENSORS, "no weight_map"},
        {"{\"weight_map\": {\"a\": 7}}", VP_D_SAFETENSORS, "a: the file name must be text"},
        {"{\"weight_map\": {\"a\": \"/etc/hostname\"}}", VP_D_SAFETENSORS, "paths outside"},
        {"{\"weight_map\": {\"a\": \"../p1.safetensors\"}}", VP_D_SAFETENSORS, "paths outside"},
        {"{\"weight_map\": {\"a\": \"x/p1.safetensors\"}}", VP_D_SAFETENSORS, "paths outside"},
        {"{\"weight_map\": {\"a\": \"\"}}", VP_D_SAFETENSORS, "paths outside"},
        {"{\"weight_map\": {\"a\": \".\"}}", VP_D_SAFETENSORS, "paths outside"},
        {"{\"weight_map\": {\"a\": \"p3.safetensors\"}}", VP_D_FILE_MISSING,
         "p3.safetensors is missing"},
        {"{\"weight_map\": {\"a\": \"p4\", \"b\": \"p3\", \"c\": \"p3\"}}", VP_D_FILE_MISSING,
         "p3 and 1 more"},
        {"{\"weight_map\": {\"a\": \"p1.safetensors\"}}", VP_D_SAFETENSORS,
         "tensor b is in this file"},
        {"{\"weight_map\": {\"b\": \"p1.safetensors\"}}", VP_D_SAFETENSORS,
         "tensor a is in this file"},
        {"{\"weight_map\": {\"a\": \"p1.safetensors\", \"b\": \"p1.safetensors\","
         "\"z\": \"p1.safetensors\"}}",
         VP_D_SAFETENSORS, "tensor z is not in p1.safetensors"},
        {"{\"weight_map\": {\"bb\": \"p2.safetensors\", \"c\": \"p2.safetensors\"}}",
         VP_D_SAFETENSORS, "tensor bb is not in p2.safetensors"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        assert_int_equal(read_index(f, &out, CASES[i].text), VP_ERR_INPUT);
        assert_int_equal(f->diags.count, 1);
        fixture_expect(f, CASES[i].id, CASES[i].words);
    }
}

static void faults_in_several_parts(void **state) {
    struct fixture *f = *state;
    struct vp_tensors out;
    make(f, "p1.safetensors", "{", 0);
    make(f, "p2.safetensors", "[]", 0);
    assert_int_equal(read_index(f, &out, GOOD_MAP), VP_ERR_INPUT);
    assert_int_equal(f->diags.count, 2);
}

static void every_io_call_may_fail(void **state) {
    struct fixture *f = *state;
    make_parts(f, 2);
    const char *path = fixture_text_file(f, "index.json", GOOD_MAP);
    int n = 1, failed = 0;
    for (;; n++) {
        struct vp_tensors out;
        f->ctx.io = failing_io(n);
        fixture_clear(f);
        enum vp_status status = vp_safetensors_read_index(&f->ctx, &out, path);
        if (failing_io_calls() < n) {
            assert_int_equal(status, VP_OK);
            break;
        }
        if (status == VP_OK) /* a failing close loses nothing */
            continue;
        failed++;
        assert_int_equal(status, VP_ERR_ENV);
        fixture_expect(f, VP_D_IO, "");
    }
    assert_true(failed > 12);
}

/* Whatever allocation fails, the scratch memory is freed (the sanitizer would tell). */
static void without_memory(void **state) {
    struct fixture *f = *state;
    make_parts(f, 2);
    const char *path = fixture_text_file(f, "index.json", GOOD_MAP);
    for (volatile int n = 1, done = 0; !done; n++) {
        jmp_buf oom;
        struct vp_tensors out;
        struct vp_arena arena = {.take = failing_take(n), .oom = &oom};
        struct vp_ctx ctx = f->ctx;
        ctx.arena = &arena;
        if (setjmp(oom) == 0) {
            assert_int_equal(vp_safetensors_read_index(&ctx, &out, path), VP_OK);
            assert_true(n > 2);
            done = 1;
        }
        assert_ptr_equal(arena.oom, &oom);
        vp_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_file, setup, teardown),
        cmocka_unit_test_setup_teardown(every_dtype, setup, teardown),
        cmocka_unit_test_setup_teardown(a_header_without_its_data, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_of_a_tensor, setup, teardown),
        cmocka_unit_test_setup_teardown(all_faults_are_told_in_one_run, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_of_the_header, setup, teardown),
        cmocka_unit_test_setup_teardown(an_index, setup, teardown),
        cmocka_unit_test_setup_teardown(an_index_of_headers, setup, teardown),
        cmocka_unit_test_setup_teardown(a_total_that_disagrees, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_of_an_index, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_in_several_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(every_io_call_may_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(without_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
