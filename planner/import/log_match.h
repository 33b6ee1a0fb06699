/* Patterns of log lines, and finding which of them a line matches. Simpler than regular expressions
 * and as fast as reading: a pattern's longest word decides whether it is tried at all.
 *
 *   other characters   themselves
 *   a space            one or more blanks
 *   ^ (first), $ (last) the beginning and the end of the line
 *   %b   an amount with its unit ("14.99 GiB", "24077MiB", "0 bytes"); GB and MB are taken as 2^30
 *        and 2^20, which is what vLLM, SGLang, PyTorch and the smi tools mean by them
 *   %g %m %k %B   the same in GiB, MiB, KiB, bytes where the line has no unit
 *   %n   a whole number, with or without commas
 *   %d   a decimal
 *   %p   the name of a device ("ROCm0", "CUDA_Host", "CPU_Mapped")
 *   %i   the index of a GPU
 *   %w   a word: up to a blank or one of , ; ( ) [ ] " ' |
 *   %a   letters and digits
 *   %r   the rest of the line
 *   %*   anything, as little as possible, at most 240 characters */
#ifndef VP_IMPORT_LOG_MATCH_H
#define VP_IMPORT_LOG_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/base/arena.h"

enum { VP_LOG_CAPTURES = 8 };

struct vp_log_capture {
    char kind;        /* the letter of the pattern: 'b' for all amounts of bytes */
    int64_t value;    /* bytes, a whole number, an index; 'd': thousandths of a millionth (1e-9) */
    int64_t step;     /* what one in the last digit is worth */
    const char *text; /* 'w', 'a', 'p', 'r' */
    size_t n;
};

struct vp_log_matcher;

/* patterns: count texts that outlive the matcher. Each holds a word of three characters or more. */
struct vp_log_matcher *vp_log_matcher_make(struct vp_arena *arena, const char *const *patterns,
                                           size_t count);
/* The patterns that occur in the line, in order, at most `most` of them. */
size_t vp_log_matcher_find(const struct vp_log_matcher *matcher, size_t *rows, size_t most,
                           const char *line, size_t n);
/* Captures of a pattern where it first matches, and where that ends; false: nowhere. */
bool vp_log_match(struct vp_log_capture out[VP_LOG_CAPTURES], size_t *count, size_t *end,
                  const char *pattern, const char *line, size_t n);

#endif
