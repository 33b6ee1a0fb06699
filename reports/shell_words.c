#include "reports/shell_words.h"

#include <string.h>

const char *vp_shell_word(struct vp_arena *arena, const char *word) {
    static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_";
    struct vp_buf out = {.arena = arena};

    if (*word && word[strspn(word, PLAIN)] == '\0')
        return word;
    vp_buf_add(&out, "'");
    for (; *word; word++)
        vp_buf_add_n(&out, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    vp_buf_add(&out, "'");
    return vp_buf_text(&out);
}

const char *vp_gnuplot_word(struct vp_arena *arena, const char *word) {
    struct vp_buf out = {.arena = arena};
    vp_buf_add(&out, "'");
    for (; *word; word++)
        vp_buf_add_n(&out, *word == '\'' ? "''" : word, *word == '\'' ? 2 : 1);
    vp_buf_add(&out, "'");
    return vp_buf_text(&out);
}

/* Length of the next piece that stays on one line: a flag with its value, else a word. Quotes are
 * not broken. */
static size_t piece(const char *text) {
    size_t n = 0;

    for (bool inside = false, flag = *text == '-'; text[n]; n++) {
        if (!inside && text[n] == '\\' && text[n + 1]) {
            n++; /* a quote that is meant */
            continue;
        }
        inside ^= text[n] == '\'';
        if (inside || text[n] != ' ')
            continue;
        if (!flag || text[n + 1] == '-')
            break;
        flag = false; /* its value follows */
    }
    return n;
}

void vp_shell_paste(const struct vp_page *page, int indent, const char *text) {
    int used = indent;

    vp_page_spaces(page, indent);
    while (*text) {
        size_t n = piece(text);
        if (used > indent && used + 1 + (int)n > page->width - 2) {
            vp_buf_add(page->out, " \\\n");
            vp_page_spaces(page, indent + 2);
            used = indent + 2;
        } else if (used > indent) {
            vp_buf_add(page->out, " ");
            used++;
        }
        vp_buf_add_n(page->out, text, n);
        used += (int)n;
        text += n + (text[n] == ' ');
    }
    vp_buf_add(page->out, "\n");
}
