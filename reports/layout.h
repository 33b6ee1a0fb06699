/* Text on a page of fixed width: cells, columns, paragraphs, shortening. Knows nothing of results.
 *
 * Widths are counted in terminal cells. Text that came from outside (names, messages) is made
 * harmless on its way: control characters and malformed UTF-8 become '?'. */
#ifndef VP_REPORTS_LAYOUT_H
#define VP_REPORTS_LAYOUT_H

#include "planner/base/text.h"

enum { VP_PAGE_WIDTH = 80, VP_PAGE_MIN = 80, VP_PAGE_MAX = 160 };

struct vp_page {
    struct vp_buf *out;
    int width;
    bool colour, utf8;
};

enum vp_style { VP_STYLE_GOOD, VP_STYLE_WARN, VP_STYLE_BAD, VP_STYLE_STRONG, VP_STYLE_DIM };

/* Cells that a text takes on a terminal; the text is well-formed UTF-8. */
int vp_text_cells(const char *text);
/* Cells of one character (0: a mark on the one before), and whether it is none that may be shown.
 */
int vp_char_cells(uint32_t c);
bool vp_char_is_control(uint32_t c);
/* A harmless copy on one line; "" for NULL. Without utf8 every other character is '?'. */
const char *vp_text_clean(struct vp_arena *arena, const char *text, bool utf8);
/* A clean copy of at most `cells` cells; what does not fit is left out of the middle. */
const char *vp_page_shorten(const struct vp_page *page, const char *text, int cells);

/* A column: `text`, shortened to `cells` and padded on the right (left aligned) or left. */
void vp_page_left(const struct vp_page *page, const char *text, int cells);
void vp_page_right(const struct vp_page *page, const char *text, int cells);
/* Words of `text` from `column` on, on further lines from `hang` on; ends the line. A word that is
 * longer than a line is broken. */
void vp_page_wrap(const struct vp_page *page, int column, int hang, const char *text);
/* vp_page_wrap of a formatted text. */
void vp_page_printf(const struct vp_page *page, int column, int hang, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void vp_page_spaces(const struct vp_page *page, int count);
/* A line of its own, in bold where there is colour. */
void vp_page_title(const struct vp_page *page, const char *text);
/* Text, coloured where the page has colour. */
void vp_page_styled(const struct vp_page *page, enum vp_style style, const char *text);

#endif
