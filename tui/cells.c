#include "tui/cells.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/utf8.h"
#include "reports/layout.h"

/* ---- the grid ---- */

struct vp_cells *vp_cells_make(struct vp_arena *arena, int width, int height, bool utf8) {
    struct vp_cells *cells = VP_NEW(arena, struct vp_cells);
    bool empty = width < 1 || height < 1;
    *cells =
        (struct vp_cells){.width = empty ? 0 : width, .height = empty ? 0 : height, .utf8 = utf8};
    size_t count = (size_t)cells->width * (size_t)cells->height;
    cells->cell = VP_NEW_ARRAY(arena, count, struct vp_cell);
    for (size_t i = 0; i < count; i++)
        cells->cell[i].code = ' ';
    return cells;
}

static void add_char(struct vp_buf *out, uint32_t c) {
    char bytes[5];
    vp_buf_add_n(out, bytes, vp_utf8_encode(bytes, c));
}

static bool same_look(const struct vp_cell *a, const struct vp_cell *b) {
    return a->style == b->style && a->reverse == b->reverse;
}

static void add_look(struct vp_buf *out, const struct vp_cell *cell, enum vp_theme_name theme) {
    struct vp_look look = vp_theme_look(theme, (enum vp_tui_style)cell->style);
    vp_buf_add(out, "\033[0");
    if (look.bold)
        vp_buf_add(out, ";1");
    if (look.dim)
        vp_buf_add(out, ";2");
    if (look.underline)
        vp_buf_add(out, ";4");
    if (look.reverse != cell->reverse)
        vp_buf_add(out, ";7");
    if (look.colour != VP_COLOUR_DEFAULT)
        vp_buf_printf(out, ";3%d", (int)look.colour);
    vp_buf_add(out, "m");
}

/* Where the line's text ends: blanks that look like nothing are left out. */
static int line_end(const struct vp_cell *line, int width, bool colour) {
    while (width > 0 && line[width - 1].code == ' ' &&
           !(colour && (line[width - 1].reverse || line[width - 1].style != VP_LOOK_PLAIN)))
        width--;
    return width;
}

void vp_cells_print(struct vp_buf *out, const struct vp_cells *cells, bool colour,
                    enum vp_theme_name theme) {
    static const struct vp_cell NOTHING = {.code = ' ', .style = VP_LOOK_PLAIN};
    for (int y = 0; y < cells->height; y++) {
        const struct vp_cell *line = cells->cell + (size_t)y * (size_t)cells->width;
        const struct vp_cell *before = &NOTHING;
        int end = line_end(line, cells->width, colour);
        for (int x = 0; x < end; x++) {
            if (line[x].code == 0)
                continue;
            if (colour && !same_look(before, &line[x]))
                add_look(out, &line[x], theme);
            before = &line[x];
            add_char(out, line[x].code);
        }
        vp_buf_add(out, colour && !same_look(before, &NOTHING) ? "\033[0m\n" : "\n");
    }
}

/* ---- views ---- */

struct vp_view vp_view_all(struct vp_cells *cells) {
    return (struct vp_view){cells, 0, 0, cells->width, cells->height};
}

static int most(int a, int b) { return a > b ? a : b; }
static int least(int a, int b) { return a < b ? a : b; }

struct vp_view vp_view_part(struct vp_view view, int x, int y, int width, int height) {
    int left = most(x, 0), top = most(y, 0);
    int right = least(x + most(width, 0), view.width),
        low = least(y + most(height, 0), view.height);
    return (struct vp_view){view.cells, view.x + least(left, view.width),
                            view.y + least(top, view.height), most(right - left, 0),
                            most(low - top, 0)};
}

static struct vp_cell *cell_at(struct vp_view view, int x, int y) {
    if (x < 0 || y < 0 || x >= view.width || y >= view.height)
        return NULL;
    return view.cells->cell + (size_t)(view.y + y) * (size_t)view.cells->width + (view.x + x);
}

/* What is overwritten may be half of a character of two cells: the other half becomes blank. */
static void put_one(struct vp_view view, int x, int y, enum vp_tui_style style, uint32_t code) {
    struct vp_cell *cell = cell_at(view, x, y);
    if (!cell)
        return;
    int column = view.x + x;
    if (cell->code == 0 && code != 0 && column > 0)
        cell[-1].code = ' ';
    if (cell->code != 0 && column + 1 < view.cells->width && cell[1].code == 0)
        cell[1].code = ' ';
    *cell = (struct vp_cell){.code = code, .style = (uint8_t)style};
}

/* Returns the cells that it takes, seen or not. */
static int put(struct vp_view view, int x, int y, enum vp_tui_style style, uint32_t code) {
    int cells = vp_char_cells(code);
    if (cells == 2 && (!cell_at(view, x, y) || !cell_at(view, x + 1, y))) {
        put_one(view, x, y, style, ' ');
        put_one(view, x + 1, y, style, ' ');
    } else if (cells > 0) {
        put_one(view, x, y, style, code);
        if (cells == 2) {
            struct vp_cell *right = cell_at(view, x + 1, y);
            put_one(view, x + 1, y, style, ' ');
            right->code = 0;
        }
    }
    return cells;
}

/* ---- text ---- */

/* The next character, harmless; marks on the one before are passed by. 0: the end. */
static uint32_t next_char(const char **text, bool utf8) {
    while (**text) {
        size_t n = vp_utf8_length(*text);
        uint32_t c = n ? vp_utf8_decode(*text, n) : 0;
        *text += n ? n : 1;
        if (c == '\n' || c == '\t' || c == '\r')
            return ' ';
        if (n == 0 || vp_char_is_control(c) || (!utf8 && c >= 0x80))
            return '?';
        if (vp_char_cells(c) > 0)
            return c;
    }
    return 0;
}

int vp_cells_of(const char *text) {
    int cells = 0;
    for (uint32_t c; text && (c = next_char(&text, true)) != 0;)
        cells += vp_char_cells(c);
    return cells;
}

/* Cells of a text on this grid: what becomes '?' takes one. */
static int cells_on(struct vp_view view, const char *text) {
    int cells = 0;
    for (uint32_t c; text && (c = next_char(&text, view.cells->utf8)) != 0;)
        cells += vp_char_cells(c);
    return cells;
}

int vp_view_text(struct vp_view view, int x, int y, enum vp_tui_style style, const char *text) {
    for (uint32_t c; text && (c = next_char(&text, view.cells->utf8)) != 0;)
        x += put(view, x, y, style, c);
    return x;
}

int vp_view_printf(struct vp_view view, int x, int y, enum vp_tui_style style, const char *format,
                   ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return vp_view_text(view, x, y, style, text);
}

/* The text from its cell `from` on, at most `cells` cells; returns the column after it. */
static int draw_slice(struct vp_view view, int x, int y, enum vp_tui_style style, const char *text,
                      int from, int cells) {
    int at = 0;
    for (uint32_t c; (c = next_char(&text, view.cells->utf8)) != 0;) {
        int n = vp_char_cells(c);
        if (at >= from && at + n > from + cells)
            break;
        if (at >= from)
            x += put(view, x, y, style, c);
        at += n;
    }
    return x;
}

/* Shortened to `width` cells, at x. */
static void draw_short(struct vp_view view, int x, int y, int width, enum vp_tui_style style,
                       const char *text, int all) {
    int dots = view.cells->utf8 ? 1 : 2, room = width - dots, tail = room / 2;
    if (all <= width) {
        vp_view_text(view, x, y, style, text);
        return;
    }
    if (room < 2) {
        draw_slice(view, x, y, style, text, 0, width);
        return;
    }
    x = draw_slice(view, x, y, style, text, 0, room - tail);
    x = vp_view_text(view, x, y, style, view.cells->utf8 ? "\xE2\x80\xA6" : "..");
    draw_slice(view, x, y, style, text, all - tail, tail);
}

static void draw_field(struct vp_view view, int x, int y, int width, enum vp_tui_style style,
                       const char *text, bool right) {
    int all = cells_on(view, text);
    if (width <= 0)
        return;
    vp_view_fill(view, x, y, width, style, ' ');
    draw_short(view, x + (right && all < width ? width - all : 0), y, width, style,
               text ? text : "", all);
}

void vp_view_left(struct vp_view view, int x, int y, int width, enum vp_tui_style style,
                  const char *text) {
    draw_field(view, x, y, width, style, text, false);
}

void vp_view_right(struct vp_view view, int x, int y, int width, enum vp_tui_style style,
                   const char *text) {
    draw_field(view, x, y, width, style, text, true);
}

/* A word that begins at text: its bytes, and its cells on the grid. */
static size_t word_of(struct vp_view view, const char *text, int *cells) {
    const char *p = text;
    *cells = 0;
    while (*p && *p != ' ' && *p != '\n' && *p != '\t') {
        uint32_t c = next_char(&p, view.cells->utf8);
        *cells += c ? vp_char_cells(c) : 0;
    }
    return (size_t)(p - text);
}

static void draw_bytes(struct vp_view view, int x, int y, enum vp_tui_style style, const char *text,
                       size_t n) {
    const char *end = text + n;
    while (style < VP_LOOK_COUNT && text < end) {
        uint32_t c = next_char(&text, view.cells->utf8);
        if (c)
            x += put(view, x, y, style, c);
    }
}

int vp_view_wrap(struct vp_view view, int x, int y, int width, int lines, enum vp_tui_style style,
                 const char *text) {
    int line = 0, column = 0, cells;
    if (!text || width < 1 || lines < 1)
        return 0;
    for (;;) {
        while (*text == ' ' || *text == '\n' || *text == '\t') {
            if (*text++ == '\n' && line + 1 < lines && column > 0)
                line++, column = 0;
        }
        if (!*text)
            return column > 0 ? line + 1 : line;
        size_t n = word_of(view, text, &cells);
        bool next_line = column > 0 && column + 1 + cells > width;
        if (next_line && line + 1 == lines) {
            if (style < VP_LOOK_COUNT) {
                int dots = view.cells->utf8 ? 1 : 2;
                vp_view_text(view, x + least(column, width - dots), y + line, style,
                             view.cells->utf8 ? "\xE2\x80\xA6" : "..");
            }
            return lines;
        }
        if (next_line)
            line++, column = 0;
        int at = column > 0 ? column + 1 : 0;
        if (cells > width) { /* longer than a line: shortened */
            char word[256];
            size_t kept = n < sizeof word ? n : sizeof word - 1;
            memcpy(word, text, kept);
            word[kept] = '\0';
            if (style < VP_LOOK_COUNT)
                draw_short(view, x, y + line, width, style, word, cells_on(view, word));
            cells = width;
            at = 0;
        } else {
            draw_bytes(view, x + at, y + line, style, text, n);
        }
        column = at + cells;
        text += n;
    }
}

/* ---- lines and fields ---- */

void vp_view_fill(struct vp_view view, int x, int y, int width, enum vp_tui_style style,
                  uint32_t code) {
    for (int i = most(-x, 0); i < width && x + i < view.width; i++)
        put_one(view, x + i, y, style, code);
}

void vp_view_mark(struct vp_view view, int x, int y, int width) {
    for (int i = 0; i < width; i++) {
        struct vp_cell *cell = cell_at(view, x + i, y);
        if (cell)
            cell->reverse = true;
    }
}

enum { LINE, UPRIGHT, TOP_LEFT, TOP_RIGHT, LOW_LEFT, LOW_RIGHT, THUMB, LIMIT, GLYPHS };

static uint32_t glyph(struct vp_view view, int which) {
    static const uint32_t FINE[GLYPHS] = {0x2500, 0x2502, 0x250C, 0x2510,
                                          0x2514, 0x2518, 0x2503, 0x2502};
    static const char COARSE[GLYPHS] = {'-', '|', '+', '+', '+', '+', '#', '|'};
    return view.cells->utf8 ? FINE[which] : (uint32_t)COARSE[which];
}

static void edge_text(struct vp_view view, int x, int y, int room, enum vp_tui_style style,
                      const char *text) {
    int cells = least(cells_on(view, text), room - 2);
    if (!text || cells < 1)
        return;
    vp_view_fill(view, x, y, cells + 2, style, ' ');
    vp_view_left(view, x + 1, y, cells, style, text);
}

struct vp_view vp_view_box(struct vp_view view, enum vp_tui_style edge, const char *title,
                           const char *note, const char *foot) {
    int right = view.width - 1, low = view.height - 1;
    if (view.width < 2 || view.height < 2)
        return vp_view_part(view, 0, 0, 0, 0);
    vp_view_fill(view, 1, 0, right - 1, edge, glyph(view, LINE));
    vp_view_fill(view, 1, low, right - 1, edge, glyph(view, LINE));
    for (int y = 1; y < low; y++) {
        put_one(view, 0, y, edge, glyph(view, UPRIGHT));
        put_one(view, right, y, edge, glyph(view, UPRIGHT));
    }
    put_one(view, 0, 0, edge, glyph(view, TOP_LEFT));
    put_one(view, right, 0, edge, glyph(view, TOP_RIGHT));
    put_one(view, 0, low, edge, glyph(view, LOW_LEFT));
    put_one(view, right, low, edge, glyph(view, LOW_RIGHT));
    int titled = title ? least(cells_on(view, title) + 2, right - 3) : 0;
    int noted = note ? least(cells_on(view, note) + 2, right - 4 - titled) : 0;
    edge_text(view, 2, 0, right - 3, VP_LOOK_STRONG, title);
    edge_text(view, right - 1 - noted, 0, noted, VP_LOOK_DIM, note);
    edge_text(view, 2, low, right - 3, VP_LOOK_DIM, foot);
    return vp_view_part(view, 1, 1, view.width - 2, view.height - 2);
}

void vp_view_scrollbar(struct vp_view view, int first, int all) {
    int height = view.height, x = view.width - 1;
    if (height < 2 || all <= height)
        return;
    int length = most(height * height / all, 1);
    int top = first * (height - length) / (all - height);
    for (int y = 0; y < length; y++)
        put_one(view, x, least(top, height - length) + y, VP_LOOK_EDGE, glyph(view, THUMB));
}

/* ---- bars ---- */

static int share_of(uint64_t amount, uint64_t whole, int width) {
    return (int)((double)amount / (double)whole * width + 0.5);
}

/* Cells of each segment: shares of the whole, and what has anything gets one cell from the longest.
 */
static void lengths(int *length, const struct vp_segment *segment, size_t count, uint64_t whole,
                    int width) {
    uint64_t sum = 0;
    int before = 0;
    for (size_t i = 0; i < count; i++) {
        sum += segment[i].amount;
        int end = share_of(sum, whole, width);
        length[i] = end - before;
        before = end;
    }
    for (size_t i = 0; i < count; i++) {
        size_t longest = 0;
        for (size_t k = 1; k < count; k++)
            longest = length[k] > length[longest] ? k : longest;
        if (segment[i].amount == 0 || length[i] > 0)
            continue;
        if (before < width)
            before++;
        else if (length[longest] > 1)
            length[longest]--;
        else
            continue;
        length[i] = 1;
    }
}

void vp_view_bar(struct vp_view view, int x, int y, int width, const struct vp_segment *segment,
                 size_t count, uint64_t whole, uint64_t limit) {
    enum { SEGMENTS = 24 };
    int length[SEGMENTS], inside = width - 2, at = x + 1;
    uint64_t sum = 0;
    count = count < SEGMENTS ? count : SEGMENTS;
    if (inside < 1)
        return;
    for (size_t i = 0; i < count; i++)
        sum += segment[i].amount;
    whole = whole > sum ? whole : sum;
    whole = whole > 0 ? whole : 1;
    put_one(view, x, y, VP_LOOK_EDGE, '[');
    put_one(view, x + width - 1, y, VP_LOOK_EDGE, ']');
    lengths(length, segment, count, whole, inside);
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < length[i] && at < x + width - 1; k++)
            put_one(view, at++, y, segment[i].style, (unsigned char)segment[i].letter);
    int stop = limit && limit < whole ? x + 1 + share_of(limit, whole, inside) : x + width - 1;
    for (; at < x + width - 1; at++)
        put_one(view, at, y, VP_LOOK_FREE, at < stop ? '.' : ':');
    if (stop < x + width - 1)
        put_one(view, stop, y, sum > limit ? VP_LOOK_BAD : VP_LOOK_STRONG, glyph(view, LIMIT));
}

/* ---- tables ---- */

void vp_view_row(struct vp_view view, int x, int y, enum vp_tui_style style,
                 const struct vp_column *column, size_t count, int gap, const char *const *text) {
    for (size_t i = 0; i < count; i++) {
        if (text[i] && column[i].right)
            vp_view_right(view, x, y, column[i].width, style, text[i]);
        else if (text[i])
            vp_view_left(view, x, y, column[i].width, style, text[i]);
        x += column[i].width + gap;
    }
}

void vp_view_head(struct vp_view view, int x, int y, const struct vp_column *column, size_t count,
                  int gap) {
    for (size_t i = 0; i < count; i++) {
        const char *title = column[i].title ? column[i].title : "";
        if (column[i].right)
            vp_view_right(view, x, y, column[i].width, VP_LOOK_DIM, title);
        else
            vp_view_left(view, x, y, column[i].width, VP_LOOK_DIM, title);
        x += column[i].width + gap;
    }
}
