#include "tests/unit/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static void a_whole_file(void **state) {
    struct fixture *f = *state;
    struct vp_bytes bytes;
    const char *path = fixture_file(f, "a.bin", "ab\0cd", 5);
    assert_int_equal(vp_io_read(&f->ctx, &bytes, path, 5), VP_OK);
    assert_int_equal(bytes.size, 5);
    assert_memory_equal(bytes.data, "ab\0cd", 6);
    assert_int_equal(vp_io_read(&f->ctx, &bytes, path, UINT64_MAX), VP_OK);
    path = fixture_file(f, "empty", "", 0);
    assert_int_equal(vp_io_read(&f->ctx, &bytes, path, 5), VP_OK);
    assert_int_equal(bytes.size, 0);
    assert_string_equal(bytes.data, "");
    assert_int_equal(f->diags.count, 0);
}

static void a_file_above_the_cap(void **state) {
    struct fixture *f = *state;
    struct vp_bytes bytes;
    const char *path = fixture_text_file(f, "a.txt", "123456");
    assert_int_equal(vp_io_read(&f->ctx, &bytes, path, 5), VP_ERR_INPUT);
    fixture_expect(f, VP_D_FILE_TOO_LARGE, "cap of 5 bytes");
    fixture_clear(f); /* a length that the system does not tell */
    assert_int_equal(vp_io_read(&f->ctx, &bytes, "/dev/zero", 200000), VP_ERR_INPUT);
    fixture_expect(f, VP_D_FILE_TOO_LARGE, "cap of 200000 bytes");
}

static void standard_input(void **state) {
    struct fixture *f = *state;
    struct vp_bytes bytes;
    char text[200000];
    memset(text, 'x', sizeof text);
    const char *path = fixture_file(f, "in", text, sizeof text);
    int saved = dup(STDIN_FILENO), fd = open(path, O_RDONLY), pipe_ends[2];
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(vp_io_kind(&f->ctx, "-"), VP_FILE_REGULAR);
    assert_int_equal(vp_io_read(&f->ctx, &bytes, "-", sizeof text), VP_OK);
    assert_int_equal(bytes.size, sizeof text);
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(write(pipe_ends[1], "a: 1\n", 5), 5);
    close(pipe_ends[1]);
    assert_int_equal(dup2(pipe_ends[0], STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(vp_io_read(&f->ctx, &bytes, "-", 100), VP_OK);
    assert_string_equal(bytes.data, "a: 1\n");
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(fd);
    close(pipe_ends[0]);
}

static void names_that_lead_nowhere(void **state) {
    struct fixture *f = *state;
    struct vp_bytes bytes;
    uint64_t size;
    const char *missing = vp_io_join(&f->ctx, fixture_folder(f), "missing");
    assert_int_equal(vp_io_read(&f->ctx, &bytes, missing, 5), VP_ERR_INPUT);
    assert_string_equal(fixture_expect(f, VP_D_FILE_MISSING, "No such file")->pos.file, missing);
    fixture_clear(f);
    assert_int_equal(vp_io_read_head(&f->ctx, &bytes, &size, missing, 5), VP_ERR_INPUT);
    fixture_expect(f, VP_D_FILE_MISSING, "No such file");
    fixture_clear(f);
    assert_int_equal(vp_io_read(&f->ctx, &bytes, fixture_folder(f), 5), VP_ERR_INPUT);
    fixture_expect(f, VP_D_FILE_MISSING, "directory");
}

static void the_head_of_a_file(void **state) {
    struct fixture *f = *state;
    struct vp_bytes bytes;
    uint64_t size;
    const char *path = fixture_text_file(f, "a.txt", "123456");
    assert_int_equal(vp_io_read_head(&f->ctx, &bytes, &size, path, 4), VP_OK);
    assert_string_equal(bytes.data, "1234");
    assert_int_equal(size, 6);
    assert_int_equal(vp_io_read_head(&f->ctx, &bytes, &size, path, 400), VP_OK);
    assert_string_equal(bytes.data, "123456");
}

static void kinds_and_lists(void **state) {
    struct fixture *f = *state;
    char **names;
    size_t count;
    const char *folder = fixture_folder(f);
    assert_int_equal(vp_io_list(&f->ctx, &names, &count, folder), VP_OK);
    assert_int_equal(count, 0);
    for (int i = 0; i < 50; i++)
        fixture_text_file(f, vp_arena_printf(&f->arena, "f%02d", 49 - i), "");
    const char *sub = vp_io_join(&f->ctx, folder, "sub");
    assert_int_equal(mkdir(sub, 0700), 0);
    assert_int_equal(vp_io_list(&f->ctx, &names, &count, folder), VP_OK);
    assert_int_equal(count, 51);
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(names[i - 1], names[i]) < 0);
    assert_int_equal(vp_io_kind(&f->ctx, sub), VP_FILE_DIRECTORY);
    assert_int_equal(vp_io_kind(&f->ctx, vp_io_join(&f->ctx, folder, "f00")), VP_FILE_REGULAR);
    assert_int_equal(vp_io_kind(&f->ctx, vp_io_join(&f->ctx, folder, "g")), VP_FILE_NONE);
    assert_int_equal(vp_io_kind(&f->ctx, "/dev/null"), VP_FILE_OTHER);
    assert_int_equal(f->diags.count, 0);
    assert_int_equal(vp_io_list(&f->ctx, &names, &count, "/nowhere/at/all"), VP_ERR_INPUT);
    assert_int_equal(count, 0);
}

static void paths(void **state) {
    struct fixture *f = *state;
    assert_string_equal(vp_io_join(&f->ctx, "a", "b"), "a/b");
    assert_string_equal(vp_io_join(&f->ctx, "a/", "b"), "a/b");
    assert_string_equal(vp_io_join(&f->ctx, "", "b"), "b");
    assert_string_equal(vp_io_join(&f->ctx, NULL, "b"), "b");
    assert_string_equal(vp_io_join(&f->ctx, "a", "/b"), "/b");
    static const char *const DIRS[][2] = {
        {"a/b", "a"}, {"a/b/", "a"}, {"a", "."},    {"a/", "."},  {"/a", "/"},
        {"/", "/"},   {"", "."},     {"a//b", "a"}, {"//a", "/"}, {"./a", "."},
    };
    for (size_t i = 0; i < sizeof DIRS / sizeof DIRS[0]; i++)
        assert_string_equal(vp_io_dirname(&f->ctx, DIRS[i][0]), DIRS[i][1]);
}

/* Everything this module does, once. */
static enum vp_status use_all(struct fixture *f, const char *path) {
    struct vp_bytes bytes;
    uint64_t size;
    char **names;
    size_t count;
    enum vp_status status = vp_io_read(&f->ctx, &bytes, path, 100);
    if (status == VP_OK)
        status = vp_io_read_head(&f->ctx, &bytes, &size, path, 4);
    if (status == VP_OK)
        status = vp_io_list(&f->ctx, &names, &count, fixture_folder(f));
    if (status == VP_OK && vp_io_kind(&f->ctx, path) == VP_FILE_NONE)
        status = VP_ERR_ENV;
    return status;
}

static void every_call_may_fail(void **state) {
    struct fixture *f = *state;
    const char *path = fixture_text_file(f, "a.txt", "123456");
    int n = 1, failed = 0;
    for (;; n++) {
        f->ctx.io = failing_io(n);
        fixture_clear(f);
        enum vp_status status = use_all(f, path);
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
    assert_true(n > 9);
    assert_int_equal(failed, n - 1 - 2);
}

static int interrupted;

static long interrupted_read(int fd, void *buffer, size_t n) {
    if (interrupted++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return vp_io_posix.read(fd, buffer, n < 3 ? n : 3);
}

static void interrupted_and_short_reads_go_on(void **state) {
    struct fixture *f = *state;
    struct vp_io io = vp_io_posix;
    struct vp_bytes bytes;
    io.read = interrupted_read;
    f->ctx.io = &io;
    const char *path = fixture_text_file(f, "a.txt", "0123456789");
    assert_int_equal(vp_io_read(&f->ctx, &bytes, path, 100), VP_OK);
    assert_string_equal(bytes.data, "0123456789");
}

/* The folder that is being listed is closed when there is no memory (the sanitizer would tell). */
static void listing_without_memory(void **state) {
    struct fixture *f = *state;
    char **names;
    size_t count;
    for (int i = 0; i < 20; i++)
        fixture_text_file(f, vp_arena_printf(&f->arena, "f%02d", i), "");
    jmp_buf oom;
    struct vp_arena arena = {.take = failing_take(1), .oom = &oom};
    struct vp_ctx ctx = f->ctx;
    ctx.arena = &arena;
    if (setjmp(oom) == 0) {
        vp_io_list(&ctx, &names, &count, fixture_folder(f));
        fail();
    }
    assert_ptr_equal(arena.oom, &oom);
    vp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_whole_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_above_the_cap, setup, teardown),
        cmocka_unit_test_setup_teardown(standard_input, setup, teardown),
        cmocka_unit_test_setup_teardown(names_that_lead_nowhere, setup, teardown),
        cmocka_unit_test_setup_teardown(the_head_of_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown(kinds_and_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(paths, setup, teardown),
        cmocka_unit_test_setup_teardown(every_call_may_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(interrupted_and_short_reads_go_on, setup, teardown),
        cmocka_unit_test_setup_teardown(listing_without_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
