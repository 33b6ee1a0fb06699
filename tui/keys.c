#include "tui/keys.h"

#include <stdlib.h>
#include <string.h>

#include "planner/base/units.h"
#include "planner/base/utf8.h"

/* ---- names ---- */

static const struct {
    const char *name;
    uint32_t code;
} NAMES[] = {
    {"Up", VP_KEY_UP},
    {"Down", VP_KEY_DOWN},
    {"Left", VP_KEY_LEFT},
    {"Right", VP_KEY_RIGHT},
    {"Home", VP_KEY_HOME},
    {"End", VP_KEY_END},
    {"PageUp", VP_KEY_PAGE_UP},
    {"PageDown", VP_KEY_PAGE_DOWN},
    {"Insert", VP_KEY_INSERT},
    {"Delete", VP_KEY_DELETE},
    {"BackTab", VP_KEY_BACKTAB},
    {"Tab", VP_KEY_TAB},
    {"Enter", VP_KEY_ENTER},
    {"Esc", VP_KEY_ESC},
    {"Backspace", VP_KEY_BACKSPACE},
    {"Space", ' '},
    {"Hash", '#'},
    {"Quote", '"'},
    {"WheelUp", VP_KEY_WHEEL_UP},
    {"WheelDown", VP_KEY_WHEEL_DOWN},
    {"PasteBegin", VP_KEY_PASTE_BEGIN},
    {"PasteEnd", VP_KEY_PASTE_END},
};
enum { NAME_COUNT = sizeof NAMES / sizeof NAMES[0], FUNCTION_KEYS = 12 };

/* "F1" to "F12" */
static uint32_t function_key(const char *name) {
    uint64_t n;
    if (name[0] != 'F' || !vp_parse_u64(&n, name + 1) || n < 1 || n > FUNCTION_KEYS)
        return VP_KEY_NONE;
    return VP_KEY_F1 + (uint32_t)n - 1;
}

uint32_t vp_key_find(const char *name) {
    size_t n = vp_utf8_length(name);
    if (n > 0 && name[0] && !name[n])
        return vp_utf8_decode(name, n);
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (vp_text_eq(name, NAMES[i].name))
            return NAMES[i].code;
    if (name[0] == 'C' && name[1] == '-' && name[2] >= 'a' && name[2] <= 'z' && !name[3])
        return VP_KEY_CTRL(name[2]);
    return function_key(name);
}

const char *vp_key_name(struct vp_arena *arena, uint32_t code) {
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (code == NAMES[i].code)
            return NAMES[i].name;
    if (code >= VP_KEY_F1 && code <= VP_KEY_LAST)
        return vp_arena_printf(arena, "F%u", (unsigned)(code - VP_KEY_F1 + 1));
    if (code < ' ')
        return vp_arena_printf(arena, "C-%c", (char)('a' + (int)code - 1));
    if (code < 0x7F)
        return vp_arena_printf(arena, "%c", (char)code);
    return vp_arena_printf(arena, "U+%04X", (unsigned)code);
}

/* ---- bindings ---- */

#define S(name) (UINT32_C(1) << VP_SCREEN_##name)
#define ALL UINT32_MAX

static const struct vp_binding ROWS[] = {
#define G(title) {.group = title},
#define X(name, screens, keys, hint, meaning) {NULL, VP_ACT_##name, screens, keys, hint, meaning},
#include "tui/keys.def"
#undef X
#undef G
};

const struct vp_binding *vp_bindings(size_t *count) {
    *count = sizeof ROWS / sizeof ROWS[0];
    return ROWS;
}

/* Whether one of the names in `keys` is that key's. */
static bool names_key(const char *keys, uint32_t code) {
    char name[16];
    while (*keys) {
        size_t n = strcspn(keys, " ");
        if (n < sizeof name) {
            memcpy(name, keys, n);
            name[n] = '\0';
            if (n > 0 && vp_key_find(name) == code)
                return true;
        }
        keys += n;
        keys += strspn(keys, " ");
    }
    return false;
}

enum vp_action vp_key_action(enum vp_screen screen, uint32_t code) {
    enum vp_action found = VP_ACT_NONE;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const struct vp_binding *row = &ROWS[i];
        if (!row->keys || !(row->screens >> screen & 1) || !names_key(row->keys, code))
            continue;
        if (row->screens != ALL)
            return row->action;
        if (!found)
            found = row->action;
    }
    return found;
}

/* ---- scripts ---- */

struct reader {
    struct vp_ctx *ctx;
    struct vp_key_script *out;
    size_t capacity;
    const char *file, *p;
    uint32_t line;
};

static void add_key(struct reader *r, struct vp_key key) {
    struct vp_key_script *out = r->out;
    if (out->count == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 64;
        struct vp_key *grown = VP_NEW_ARRAY(r->ctx->arena, r->capacity, struct vp_key);
        if (out->count)
            memcpy(grown, out->key, out->count * sizeof *grown);
        out->key = grown;
    }
    out->key[out->count++] = key;
}

static void add_text(struct reader *r, const char *text, size_t size) {
    for (size_t i = 0, n; i < size; i += n) {
        n = vp_utf8_length(text + i);
        uint32_t c = n ? vp_utf8_decode(text + i, n) : '?';
        n = n ? n : 1;
        add_key(r, (struct vp_key){.code = c});
    }
}

/* Blanks, line ends and comments; false: the end. */
static bool skip_blanks(struct reader *r) {
    for (;; r->p++) {
        if (*r->p == '#')
            r->p += strcspn(r->p, "\n");
        if (*r->p == '\n')
            r->line++;
        else if (*r->p != ' ' && *r->p != '\t' && *r->p != '\r')
            return *r->p != '\0';
    }
}

static const char *next_word(struct reader *r) {
    if (!skip_blanks(r))
        return NULL;
    size_t n = strcspn(r->p, " \t\r\n");
    const char *word = vp_arena_text(r->ctx->arena, r->p, n);
    r->p += n;
    return word;
}

static void fault(struct reader *r, const char *what, const char *hint) {
    struct vp_pos pos = {.file = r->file, .line = r->line};
    vp_diag_add(r->ctx->diags, VP_D_BAD_OPTION, &pos, "%s", what);
    vp_diag_hint(r->ctx->diags, "%s", hint);
}

/* "120x40", "10,5" */
bool vp_parse_pair(const char *text, char between, int *a, int *b) {
    enum { MOST = 1000 };
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    long first = strtol(text, &end, 10);
    if (*end != between || end[1] < '0' || end[1] > '9' || first > MOST)
        return false;
    long second = strtol(end + 1, &end, 10);
    *a = (int)first, *b = (int)second;
    return !*end && second <= MOST;
}

static bool read_pair(struct reader *r, uint32_t code, char between, const char *what,
                      const char *hint) {
    const char *word = next_word(r);
    struct vp_key key = {.code = code};
    if (!word || !vp_parse_pair(word, between, &key.x, &key.y)) {
        fault(r, what, hint);
        return false;
    }
    add_key(r, key);
    return true;
}

/* Text in double quotes, on one line; p is behind the opening one. */
static bool read_quoted(struct reader *r) {
    size_t n = strcspn(r->p, "\"\n");
    if (r->p[n] != '"') {
        fault(r, "a text has no closing quote", "\"text with blanks\"; the key itself is Quote");
        return false;
    }
    add_text(r, r->p, n);
    r->p += n + 1;
    return true;
}

enum vp_status vp_keys_parse(struct vp_ctx *ctx, struct vp_key_script *out, const char *file,
                             const char *text) {
    struct reader r = {.ctx = ctx, .out = out, .file = file, .p = text, .line = 1};
    bool good = true;
    *out = (struct vp_key_script){0};
    while (good && skip_blanks(&r)) {
        if (*r.p == '"') {
            r.p++;
            good = read_quoted(&r);
            continue;
        }
        const char *word = next_word(&r);
        uint32_t code = vp_key_find(word);
        if (vp_text_eq(word, "size"))
            good = read_pair(&r, VP_KEY_RESIZE, 'x', "'size' needs columns and lines",
                             "size 120x40, each at most 1000");
        else if (vp_text_eq(word, "click"))
            good = read_pair(&r, VP_KEY_CLICK, ',', "'click' needs a column and a line, from 0",
                             "click 10,5");
        else if (code)
            add_key(&r, (struct vp_key){.code = code});
        else
            add_text(&r, word, strlen(word));
    }
    return good ? VP_OK : VP_ERR_INPUT;
}
