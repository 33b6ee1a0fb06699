/* Regular expressions as checkpoint descriptions use them for module names: Python's syntax and
 * the meaning of re.match (anchored at the start, free at the end). Yes or no only, no captures.
 *
 * Descriptions are foreign input: time is at most text length x program length, whatever the
 * pattern (times the text length again for each level of look-ahead). Not supported, and said so:
 * look-behind, back-references, flags, possessive quantifiers, counts above VP_REGEX_MAX_COUNT. */
#ifndef VP_IMPORT_REGEX_H
#define VP_IMPORT_REGEX_H

#include <stdbool.h>

#include "planner/base/arena.h"

enum {
    VP_REGEX_MAX_COUNT = 100, /* in {m,n} */
    VP_REGEX_MAX_CODE = 2048, /* instructions; about one per character of the pattern */
    VP_REGEX_MAX_NESTING = 32 /* groups in groups */
};

struct vp_regex; /* in the arena */

/* False: *out is NULL and *why says what is wrong or not supported. */
bool vp_regex_compile(struct vp_arena *arena, const struct vp_regex **out, const char **why,
                      const char *pattern);
bool vp_regex_match(const struct vp_regex *regex, const char *text);

#endif
