/* One line that is being typed, with a cursor in it. Knows UTF-8, not what the text is for. */
#ifndef VP_TUI_ENTRY_H
#define VP_TUI_ENTRY_H

#include "tui/keys.h"

enum { VP_ENTRY_BYTES = 512 };

struct vp_entry {
    char text[VP_ENTRY_BYTES]; /* NUL-terminated, well-formed */
    size_t size, cursor;       /* bytes; the cursor stands before that byte */
};

/* Text that does not fit is cut off at a character. */
void vp_entry_set(struct vp_entry *entry, const char *text);
/* Characters go in at the cursor; Left, Right, Home, End, C-a, C-e move; Backspace, Delete, C-w,
 * C-u and C-k take away. False: the key is none of these. */
bool vp_entry_key(struct vp_entry *entry, uint32_t code);

#endif
