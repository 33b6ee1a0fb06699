/* Regular expressions as checkpoint descriptions use them for module names: Python's syntax and
 * the meaning of re.match (anchored at the start, free at the end). Yes or no only, no captures.
 * PCRE2 does the work. Descriptions are foreign input, so the size of a pattern and the steps of a
 * match are bounded. */
#ifndef VP_IMPORT_REGEX_H
#define VP_IMPORT_REGEX_H

#include <stdbool.h>

#include "planner/base/arena.h"

enum {
    VP_REGEX_MAX_LENGTH = 4096,  /* bytes of a pattern */
    VP_REGEX_MAX_STEPS = 200000, /* of one match; beyond, it does not match */
    VP_REGEX_MAX_NESTING = 32    /* groups in groups */
};

struct vp_regex; /* in the arena, with all that PCRE2 allocates for it */

/* False: *out is NULL and *why says what is wrong with the pattern. */
bool vp_regex_compile(struct vp_arena *arena, const struct vp_regex **out, const char **why,
                      const char *pattern);
bool vp_regex_match(const struct vp_regex *regex, const char *text);

#endif
