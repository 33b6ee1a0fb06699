#include "tui/entry.h"

#include <string.h>

#include "planner/base/utf8.h"
#include "reports/layout.h"

static bool continues(char byte) { return ((unsigned char)byte & 0xC0) == 0x80; }

static size_t before(const struct vp_entry *entry, size_t at) {
    while (at > 0 && continues(entry->text[--at]))
        ;
    return at;
}

static size_t after(const struct vp_entry *entry, size_t at) {
    if (at < entry->size)
        at++;
    while (at < entry->size && continues(entry->text[at]))
        at++;
    return at;
}

static void take(struct vp_entry *entry, size_t from, size_t to) {
    memmove(entry->text + from, entry->text + to, entry->size - to + 1);
    entry->size -= to - from;
    entry->cursor = from;
}

static void insert(struct vp_entry *entry, uint32_t code) {
    char bytes[5];
    size_t n = vp_utf8_encode(bytes, code);
    if (entry->size + n >= sizeof entry->text)
        return;
    memmove(entry->text + entry->cursor + n, entry->text + entry->cursor,
            entry->size - entry->cursor + 1);
    memcpy(entry->text + entry->cursor, bytes, n);
    entry->size += n;
    entry->cursor += n;
}

void vp_entry_set(struct vp_entry *entry, const char *text) {
    *entry = (struct vp_entry){0};
    for (size_t n; text && *text && (n = vp_utf8_length(text)) > 0; text += n)
        insert(entry, vp_utf8_decode(text, n));
}

static size_t word_start(const struct vp_entry *entry) {
    size_t at = entry->cursor;
    while (at > 0 && entry->text[at - 1] == ' ')
        at--;
    while (at > 0 && entry->text[at - 1] != ' ')
        at--;
    return at;
}

bool vp_entry_key(struct vp_entry *entry, uint32_t code) {
    switch (code) {
    case VP_KEY_LEFT:
        entry->cursor = before(entry, entry->cursor);
        return true;
    case VP_KEY_RIGHT:
        entry->cursor = after(entry, entry->cursor);
        return true;
    case VP_KEY_HOME:
    case VP_KEY_CTRL('a'):
        entry->cursor = 0;
        return true;
    case VP_KEY_END:
    case VP_KEY_CTRL('e'):
        entry->cursor = entry->size;
        return true;
    case VP_KEY_BACKSPACE:
        take(entry, before(entry, entry->cursor), entry->cursor);
        return true;
    case VP_KEY_DELETE:
        take(entry, entry->cursor, after(entry, entry->cursor));
        return true;
    case VP_KEY_CTRL('w'):
        take(entry, word_start(entry), entry->cursor);
        return true;
    case VP_KEY_CTRL('u'):
        take(entry, 0, entry->cursor);
        return true;
    case VP_KEY_CTRL('k'):
        take(entry, entry->cursor, entry->size);
        return true;
    default:
        if (code >= 0x110000 || (code >= 0xD800 && code <= 0xDFFF) || vp_char_is_control(code))
            return false;
        insert(entry, code);
        return true;
    }
}
