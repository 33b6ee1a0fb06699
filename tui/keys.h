/* Keys: their names, what they do on which screen (keys.def), and scripts of them. */
#ifndef VP_TUI_KEYS_H
#define VP_TUI_KEYS_H

#include "planner/base/ctx.h"
#include "planner/base/text.h"

enum vp_screen {
#define X(name, stem, text, panes, meaning) VP_SCREEN_##name,
#include "tui/screens.def"
#undef X
    VP_SCREEN_COUNT
};

enum vp_action {
    VP_ACT_NONE,
#define G(title)
#define X(name, screens, keys, hint, meaning) VP_ACT_##name,
#include "tui/keys.def"
#undef X
#undef G
    VP_ACT_COUNT
};

/* A key is a character, or one of these above all characters. */
enum {
    VP_KEY_NONE = 0,
    VP_KEY_TAB = 9,
    VP_KEY_ENTER = 13,
    VP_KEY_ESC = 27,
    VP_KEY_BACKSPACE = 127,
    VP_KEY_UP = 0x110000,
    VP_KEY_DOWN,
    VP_KEY_LEFT,
    VP_KEY_RIGHT,
    VP_KEY_HOME,
    VP_KEY_END,
    VP_KEY_PAGE_UP,
    VP_KEY_PAGE_DOWN,
    VP_KEY_INSERT,
    VP_KEY_DELETE,
    VP_KEY_BACKTAB,
    VP_KEY_CLICK,       /* of the left button, at x and y */
    VP_KEY_WHEEL_UP,    /* at x and y */
    VP_KEY_WHEEL_DOWN,  /* at x and y */
    VP_KEY_RESIZE,      /* to x columns and y lines */
    VP_KEY_PASTE_BEGIN, /* what is pasted are characters, not commands */
    VP_KEY_PASTE_END,
    VP_KEY_OTHER,         /* a key that has no name here */
    VP_KEY_F1 = 0x110100, /* F12 is 11 further */
    VP_KEY_LAST = VP_KEY_F1 + 11
};

struct vp_key {
    uint32_t code;
    int x, y; /* of the mouse; new size */
};

/* Control and a letter: C-l is VP_KEY_CTRL('l'). */
#define VP_KEY_CTRL(letter) ((uint32_t)(letter)&0x1f)

/* The key of a name: "j", "Up", "Enter", "Space", "C-l", "F1"; VP_KEY_NONE: no such name. */
uint32_t vp_key_find(const char *name);
/* The name of a key, in the arena. */
const char *vp_key_name(struct vp_arena *arena, uint32_t code);

/* What a key does on a screen; VP_ACT_NONE: nothing. */
enum vp_action vp_key_action(enum vp_screen screen, uint32_t code);

/* A row of keys.def, for the help screen and docs/TUI.md; a group's title has no keys. */
struct vp_binding {
    const char *group; /* "move", "change"; NULL in rows of keys */
    enum vp_action action;
    uint32_t screens; /* bits by enum vp_screen */
    const char *keys; /* names with spaces between them */
    const char *hint, *meaning;
};
const struct vp_binding *vp_bindings(size_t *count);

/* "120x40", "10,5": two numbers up to 1000 with a character between them. */
bool vp_parse_pair(const char *text, char between, int *a, int *b);

/* A script: words between blanks and line ends. A word is a key by its name ("j", "Enter", "C-l",
 * "F1"); "size 120x40" changes the size, "click 10,5" clicks; any other word is typed character by
 * character, as is "text with blanks" in double quotes. '#' at the beginning of a word begins a
 * comment (the key is "Hash"). Faults are diagnostics with a position in `file`. */
struct vp_key_script {
    struct vp_key *key;
    size_t count;
};
enum vp_status vp_keys_parse(struct vp_ctx *ctx, struct vp_key_script *out, const char *file,
                             const char *text);

#endif
