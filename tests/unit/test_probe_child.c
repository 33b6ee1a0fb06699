/* A measuring process that ends, crashes, aborts, hangs or talks: what was sent before is kept. */
#include "tests/unit/fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe/child.h"

enum { SENT = 3 };

struct heard {
    uint32_t records;
    uint32_t last;
};

static void receive(void *context, const struct vp_record *record) {
    struct heard *h = context;
    h->records++;
    h->last = record->item;
}

static void send_some(int fd) {
    for (uint32_t i = 0; i < SENT; i++) {
        struct vp_record record = {.kind = VP_RECORD_BEGIN, .item = i + 10};
        vp_child_send(fd, &record);
    }
}

static int ends_well(void *context, int fd) {
    (void)context;
    send_some(fd);
    return 0;
}

static int ends_badly(void *context, int fd) {
    (void)context;
    send_some(fd);
    fprintf(stderr, "first\nlast words");
    return 7;
}

static int crashes(void *context, int fd) {
    (void)context;
    send_some(fd);
    raise(SIGSEGV);
    return 0;
}

static int aborts(void *context, int fd) {
    (void)context;
    send_some(fd);
    fprintf(stderr, "terminate called\x01 without an exception\n");
    signal(SIGABRT, SIG_DFL);
    abort();
}

static _Noreturn void sleep_on(void) {
    for (;;)
        pause();
}

static int hangs(void *context, int fd) {
    (void)context;
    send_some(fd);
    sleep_on();
}

/* Sends all, then does not end. */
static int hangs_at_the_end(void *context, int fd) {
    (void)context;
    send_some(fd);
    close(fd);
    sleep_on();
}

static int half_a_record(void *context, int fd) {
    struct vp_record record = {.kind = VP_RECORD_BEGIN};
    (void)context;
    send_some(fd);
    (void)!write(fd, &record, sizeof record / 2);
    return 0;
}

static int talks(void *context, int fd) {
    (void)context;
    for (int i = 0; i < 20000; i++)
        fprintf(i % 2 ? stderr : stdout, "line %d of a driver that talks a lot\n", i);
    fflush(stdout);
    send_some(fd);
    return 0;
}

static struct vp_child_report run(vp_child_body body, double limit_s) {
    struct heard heard = {0};
    struct vp_child_report report;
    vp_child_run(&report, body, receive, &heard, limit_s);
    assert_int_equal(heard.records, SENT);
    assert_int_equal(heard.last, SENT + 9);
    return report;
}

static void ends(void **state) {
    (void)state;
    struct vp_child_report r = run(ends_well, 20);
    assert_int_equal(r.end, VP_CHILD_DONE);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.last_words, "");
    r = run(ends_badly, 20);
    assert_int_equal(r.end, VP_CHILD_DONE);
    assert_int_equal(r.code, 7);
    assert_string_equal(r.last_words, "last words");
    r = run(half_a_record, 20);
    assert_int_equal(r.end, VP_CHILD_DONE);
}

static void dies(void **state) {
    (void)state;
    struct vp_child_report r = run(aborts, 20);
    assert_int_equal(r.end, VP_CHILD_CRASHED);
    assert_int_equal(r.code, SIGABRT);
    assert_string_equal(r.last_words, "terminate called? without an exception");
    r = run(crashes, 20);
    /* a sanitizer ends the process by itself */
    assert_true(r.end == VP_CHILD_CRASHED ? r.code == SIGSEGV : r.code != 0);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void is_stopped(void **state) {
    (void)state;
    double started = now_s();
    assert_int_equal(run(hangs, 0.2).end, VP_CHILD_HUNG);
    assert_true(now_s() - started < 5);
}

static void is_stopped_at_the_end(void **state) {
    (void)state;
    assert_int_equal(run(hangs_at_the_end, 0.2).end, VP_CHILD_HUNG);
}

static void may_talk(void **state) {
    (void)state;
    struct vp_child_report r = run(talks, 20);
    assert_int_equal(r.end, VP_CHILD_DONE);
    assert_true(strstr(r.last_words, "of a driver that talks a lot") != NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends),       cmocka_unit_test(dies),
        cmocka_unit_test(is_stopped), cmocka_unit_test(is_stopped_at_the_end),
        cmocka_unit_test(may_talk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
