/* A grid of character cells, and drawing into it: what every screen is drawn on, whether it is
 * shown on a terminal (curses.c) or printed (vp_cells_print). Knows nothing of plans and keys.
 *
 * Everything is drawn through a view: a rectangle of the grid with its own origin. What lies
 * outside of the view is not drawn, whatever the coordinates, so that no caller needs to clip. Text
 * that came from outside is harmless: control characters and malformed UTF-8 become '?', and so
 * does what is not ASCII on a grid that is ASCII. A character of two cells stands in one cell and
 * blanks the next. */
#ifndef VP_TUI_CELLS_H
#define VP_TUI_CELLS_H

#include "planner/base/text.h"
#include "tui/theme.h"

struct vp_cell {
    uint32_t code; /* 0: the right half of a character of two cells */
    uint8_t style; /* enum vp_tui_style */
    bool reverse;  /* marked: where the cursor stands */
};

struct vp_cells {
    int width, height;
    bool utf8; /* lines, blocks and text beyond ASCII may be used */
    struct vp_cell *cell;
};

struct vp_view {
    struct vp_cells *cells;
    int x, y, width, height; /* in cells of the grid; may be empty, never outside of it */
};

/* A blank grid; sizes below 1 give an empty one. */
struct vp_cells *vp_cells_make(struct vp_arena *arena, int width, int height, bool utf8);
/* As lines of text, without spaces at their ends; with escape sequences where it is to be coloured.
 */
void vp_cells_print(struct vp_buf *out, const struct vp_cells *cells, bool colour,
                    enum vp_theme_name theme);

struct vp_view vp_view_all(struct vp_cells *cells);
/* A part, in coordinates of the view; what is outside of it is cut off. */
struct vp_view vp_view_part(struct vp_view view, int x, int y, int width, int height);

/* ---- text: x and y within the view; returns the column after the text ---- */

int vp_view_text(struct vp_view view, int x, int y, enum vp_tui_style style, const char *text);
int vp_view_printf(struct vp_view view, int x, int y, enum vp_tui_style style, const char *format,
                   ...) __attribute__((format(printf, 5, 6)));
/* A field of `width` cells: the text, shortened in its middle where it is longer. */
void vp_view_left(struct vp_view view, int x, int y, int width, enum vp_tui_style style,
                  const char *text);
void vp_view_right(struct vp_view view, int x, int y, int width, enum vp_tui_style style,
                   const char *text);
/* Words over at most `lines` lines of `width` cells; returns how many it took. The last of them
 * ends with dots where more would follow. Draws nothing with style VP_LOOK_COUNT: how many would it
 * take? */
int vp_view_wrap(struct vp_view view, int x, int y, int width, int lines, enum vp_tui_style style,
                 const char *text);
/* Cells of a text. */
int vp_cells_of(const char *text);

/* ---- lines and fields ---- */

void vp_view_fill(struct vp_view view, int x, int y, int width, enum vp_tui_style style,
                  uint32_t code);
/* Marks a stretch: reverse video, and where there is no colour that is all that shows it. */
void vp_view_mark(struct vp_view view, int x, int y, int width);
/* A frame around the whole view, with a title in its upper edge, a note at the right end of that,
 * and a line in its lower edge; each may be NULL. Returns what is inside. A view that is too small
 * for a frame has an empty inside. */
struct vp_view vp_view_box(struct vp_view view, enum vp_tui_style edge, const char *title,
                           const char *note, const char *foot);
/* At the right edge of a list of `all` rows of which those from `first` on are seen. */
void vp_view_scrollbar(struct vp_view view, int first, int all);

/* ---- bars ---- */

struct vp_segment {
    uint64_t amount;
    char letter; /* what the bar is made of: says the same as the colour */
    enum vp_tui_style style;
};

/* A stacked bar in brackets, in one line: [WWWWWKKKAA...|:]. It stands for `whole`, or for the sum
 * where that is more. A segment that has anything is at least one cell long, as long as there is
 * room. Free cells are dots, those beyond `limit` colons, and a stroke stands at the limit; 0:
 * none. */
void vp_view_bar(struct vp_view view, int x, int y, int width, const struct vp_segment *segment,
                 size_t count, uint64_t whole, uint64_t limit);

/* ---- tables ---- */

struct vp_column {
    const char *title;
    int width;
    bool right; /* right aligned, for figures */
};

/* One line of cells, columns divided by `gap` blanks. text: one per column, NULL: empty. */
void vp_view_row(struct vp_view view, int x, int y, enum vp_tui_style style,
                 const struct vp_column *column, size_t count, int gap, const char *const *text);
/* The titles. */
void vp_view_head(struct vp_view view, int x, int y, const struct vp_column *column, size_t count,
                  int gap);

#endif
