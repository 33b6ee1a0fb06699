/* What the unit tests share: a context, files in a folder of their own, an io table that fails. */
#ifndef VP_TESTS_FIXTURE_H
#define VP_TESTS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "planner/base/ctx.h"

struct fixture {
    struct vp_arena arena;
    struct vp_diags diags;
    struct vp_ctx ctx;
    char *folder; /* made at the first fixture_file */
};

void fixture_begin(struct fixture *f);
void fixture_end(struct fixture *f);
/* Forgets the diagnostics so far. */
void fixture_clear(struct fixture *f);

/* Writes a file into the test's folder; returns its path. */
const char *fixture_file(struct fixture *f, const char *name, const void *data, size_t n);
const char *fixture_text_file(struct fixture *f, const char *name, const char *text);
const char *fixture_folder(struct fixture *f);

/* The first diagnostic of this id whose message holds `words`; fails the test without one. */
const struct vp_diag *fixture_expect(const struct fixture *f, enum vp_diag_id id,
                                     const char *words);

/* vp_io_posix, except that the n-th call (from 1) fails with EIO; 0: none. */
const struct vp_io *failing_io(int n);
/* Calls since failing_io. */
int failing_io_calls(void);

/* For vp_arena.take: malloc, except that the n-th call (from 1) fails; 0: none. */
void *(*failing_take(int n))(size_t);

#endif
