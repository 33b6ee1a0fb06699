/* What the stand-ins for drivers do besides their work: FAKE_GPU holds words "name=value",
 * separated by blanks. Each library has its own copy of the functions below.
 *
 *   fail=CALL, crash=CALL, abort=CALL, hang=CALL   that function ends with an error (719, or
 *                 code=N), kills the process or never comes back; after=N: from the N-th call on,
 *                 upto=N: up to that one
 *   devices=N     how many GPUs there are (1)
 *   memory=BYTES  of one GPU (8589934592)
 *   arch=NAME     "gfx942:sramecc+:xnack-", or "90" for a compute capability of 9.0
 *   wrong=1       products give wrong numbers */
#ifndef VP_TESTS_FAKE_SCRIPT_H
#define VP_TESTS_FAKE_SCRIPT_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Value of a word, or what is to hold without it. */
static const char *script_word(const char *name, const char *otherwise) {
    static char value[8][128];
    static unsigned next;
    const char *at = getenv("FAKE_GPU");
    size_t length = strlen(name);

    while (at && *at) {
        size_t n = strcspn(at, " ");
        if (n > length && !strncmp(at, name, length) && at[length] == '=') {
            char *out = value[next++ % 8];
            snprintf(out, sizeof *value, "%.*s", (int)(n - length - 1), at + length + 1);
            return out;
        }
        at += n + strspn(at + n, " ");
    }
    return otherwise;
}

static double script_number(const char *name, double otherwise) {
    const char *text = script_word(name, "");
    return *text ? strtod(text, NULL) : otherwise;
}

/* Every function asks this first: 0, or the error to end with. */
static int script_trouble(const char *call) {
    static const char *const KINDS[] = {"fail", "crash", "abort", "hang"};
    static unsigned calls;
    unsigned kind = 0;

    while (kind < 4 && strcmp(script_word(KINDS[kind], ""), call) != 0)
        kind++;
    if (kind == 4 || ++calls < script_number("after", 1) || calls > script_number("upto", 1e9))
        return 0;
    if (kind == 1)
        raise(SIGSEGV);
    if (kind == 2) {
        fprintf(stderr, "LLVM ERROR: Cannot select\n");
        abort();
    }
    while (kind == 3)
        pause();
    return (int)script_number("code", 719);
}

#endif
