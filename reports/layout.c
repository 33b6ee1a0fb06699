#include "reports/layout.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/utf8.h"

struct range {
    uint32_t first, last;
};

static bool within(const struct range *ranges, size_t count, uint32_t c) {
    for (size_t i = 0; i < count; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

#define WITHIN(ranges, c) within(ranges, sizeof(ranges) / sizeof(ranges)[0], c)

/* Cells of one character. wcwidth() would depend on the locale; the ranges are those of East Asian
 * Width W and F (Unicode annex 11) and of combining marks, rounded to whole blocks. */
int vp_char_cells(uint32_t c) {
    static const struct range NONE[] = {{0x0300, 0x036F}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                                        {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
    static const struct range WIDE[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},
                                        {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
                                        {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},
                                        {0x16FE0, 0x1B2FF}, {0x1F000, 0x1FAFF}, {0x20000, 0x3FFFD}};
    if (c < 0x300)
        return 1;
    if (WITHIN(NONE, c))
        return 0;
    return WITHIN(WIDE, c) ? 2 : 1;
}

/* What would move the cursor or turn the writing direction: C0, DEL, C1, marks and overrides. */
bool vp_char_is_control(uint32_t c) {
    static const struct range CONTROL[] = {{0x00, 0x1F},     {0x7F, 0x9F},      {0x061C, 0x061C},
                                           {0x200B, 0x200F}, {0x2028, 0x202E},  {0x2060, 0x206F},
                                           {0xFEFF, 0xFEFF}, {0xE0000, 0xE0FFF}};
    return WITHIN(CONTROL, c);
}

int vp_text_cells(const char *text) {
    int cells = 0;
    for (size_t n; *text; text += n) {
        n = vp_utf8_length(text);
        if (n == 0) {
            n = 1;
            cells++;
        } else
            cells += vp_char_cells(vp_utf8_decode(text, n));
    }
    return cells;
}

const char *vp_text_clean(struct vp_arena *arena, const char *text, bool utf8) {
    struct vp_buf out = {.arena = arena};
    if (!text)
        return "";
    for (size_t n; *text; text += n) {
        n = vp_utf8_length(text);
        uint32_t c = n ? vp_utf8_decode(text, n) : 0;
        if (c == '\n' || c == '\t' || c == '\r')
            vp_buf_add(&out, " ");
        else if (n == 0 || vp_char_is_control(c) || (!utf8 && n > 1))
            vp_buf_add(&out, "?");
        else
            vp_buf_add_n(&out, text, n);
        if (n == 0)
            n = 1;
    }
    return vp_buf_text(&out);
}

/* The bytes of the longest beginning of at most `cells` cells, with the marks that belong to it. */
static size_t prefix_of(const char *text, int cells) {
    size_t size = 0;
    while (text[size]) {
        size_t n = vp_utf8_length(text + size);
        int w = vp_char_cells(vp_utf8_decode(text + size, n));
        if (w > cells)
            break;
        cells -= w;
        size += n;
    }
    return size;
}

const char *vp_page_shorten(const struct vp_page *page, const char *text, int cells) {
    struct vp_arena *arena = page->out->arena;
    const char *dots = page->utf8 ? "\xE2\x80\xA6" : "..";
    text = vp_text_clean(arena, text, page->utf8);
    int all = vp_text_cells(text);
    if (all <= cells)
        return text;
    int room = cells - vp_text_cells(dots);
    if (room < 2)
        return vp_arena_text(arena, text, prefix_of(text, cells));
    int tail = room / 2, head = room - tail;
    size_t skip = prefix_of(text, all - tail);
    while (vp_text_cells(text + skip) > tail) /* a wide character stood across the cut */
        skip += vp_utf8_length(text + skip);
    struct vp_buf out = {.arena = arena};
    vp_buf_add_n(&out, text, prefix_of(text, head));
    vp_buf_add(&out, dots);
    vp_buf_add(&out, text + skip);
    return vp_buf_text(&out);
}

void vp_page_spaces(const struct vp_page *page, int count) {
    vp_buf_printf(page->out, "%*s", count > 0 ? count : 0, "");
}

void vp_page_left(const struct vp_page *page, const char *text, int cells) {
    text = vp_page_shorten(page, text, cells);
    vp_buf_add(page->out, text);
    vp_page_spaces(page, cells - vp_text_cells(text));
}

void vp_page_right(const struct vp_page *page, const char *text, int cells) {
    text = vp_page_shorten(page, text, cells);
    vp_page_spaces(page, cells - vp_text_cells(text));
    vp_buf_add(page->out, text);
}

/* No line ends with spaces. */
static void end_line(const struct vp_page *page) {
    struct vp_buf *out = page->out;
    while (out->size > 0 && out->data[out->size - 1] == ' ')
        out->size--;
    vp_buf_add(out, "\n");
}

void vp_page_wrap(const struct vp_page *page, int column, int hang, const char *text) {
    struct vp_buf *out = page->out;
    bool glue = true; /* nothing stands on this line that a space must follow */
    text = vp_text_clean(out->arena, text, page->utf8);
    for (;;) {
        text += strspn(text, " ");
        size_t n = strcspn(text, " ");
        if (n == 0)
            break;
        const char *word = vp_arena_text(out->arena, text, n);
        int cells = vp_text_cells(word);
        if (column + !glue + cells > page->width && column > hang) {
            end_line(page);
            vp_page_spaces(page, hang);
            column = hang;
            glue = true;
        }
        if (!glue) {
            vp_buf_add(out, " ");
            column++;
        }
        if (cells > page->width - column) { /* longer than a line */
            n = prefix_of(word, page->width - column);
            cells = page->width - column;
        }
        vp_buf_add_n(out, text, n);
        column += cells;
        text += n;
        glue = false;
    }
    end_line(page);
}

void vp_page_printf(const struct vp_page *page, int column, int hang, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = vp_arena_alloc(page->out->arena, n < 0 ? 1 : (size_t)n + 1);
    va_start(args, format);
    if (n > 0)
        vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    vp_page_wrap(page, column, hang, text);
}

void vp_page_styled(const struct vp_page *page, enum vp_style style, const char *text) {
    static const char *const CODES[] = {
        [VP_STYLE_GOOD] = "1;32", [VP_STYLE_WARN] = "1;33", [VP_STYLE_BAD] = "1;31",
        [VP_STYLE_STRONG] = "1",  [VP_STYLE_DIM] = "2",
    };
    if (page->colour)
        vp_buf_printf(page->out, "\033[%sm%s\033[0m", CODES[style], text);
    else
        vp_buf_add(page->out, text);
}

void vp_page_title(const struct vp_page *page, const char *text) {
    vp_page_styled(page, VP_STYLE_STRONG, vp_page_shorten(page, text, page->width));
    vp_buf_add(page->out, "\n");
}
