/* Text for a shell -> its words, as a shell takes it apart: quotes, comments, continued lines,
 * variables that the text itself sets. Nothing is executed. */
#ifndef VP_IMPORT_SHELL_TEXT_H
#define VP_IMPORT_SHELL_TEXT_H

#include "planner/base/ctx.h"

enum { VP_SHELL_MAX_WORDS = 8192, VP_SHELL_MAX_VARIABLES = 512 };

struct vp_shell_word {
    const char *text; /* NULL: a command or a list in parentheses ends here */
    struct vp_pos pos;
};

struct vp_shell_variable {
    const char *name, *value;
    struct vp_pos pos;
};

struct vp_shell_text {
    struct vp_shell_word *words;
    uint32_t count;
    struct vp_shell_variable *variables; /* NAME=VALUE in front of a command, `export`, `-e`; in
                                            order, a later one of the same name holds */
    uint32_t variable_count;
    const char **comments; /* each from its '#' on */
    uint32_t comment_count;
};

/* name: what positions call the text. quoted_words: a quoted text is taken apart as well, as where
 * a whole command stands in quotes. Caps above: what is beyond them is left out. */
void vp_shell_split(struct vp_ctx *ctx, struct vp_shell_text *out, const char *text, size_t size,
                    const char *name, bool quoted_words);
/* The value that holds, NULL when the text does not set it. */
const char *vp_shell_variable(const struct vp_shell_text *text, const char *name);

#endif
