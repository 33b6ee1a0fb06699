#include "cli/listing.h"

#include <string.h>

#include "planner/base/units.h"
#include "reports/layout.h"

static const struct vp_cell *cell_at(const struct vp_listing *listing, size_t row, size_t column) {
    return &listing->cells[row * listing->column_count + column];
}

/* "a; b; c"; "" for what is not known. */
static const char *cell_text(struct vp_arena *arena, const struct vp_column *column,
                             const struct vp_cell *cell, const char *between) {
    struct vp_buf text = {.arena = arena};
    if (column->kind != VP_CELL_LIST)
        return cell->text ? cell->text : "";
    for (uint32_t i = 0; cell->list && i < cell->list->count; i++) {
        const char *item = vp_node_text(cell->list->items[i]);
        vp_buf_printf(&text, "%s%s", text.size ? between : "", item ? item : "");
    }
    return vp_buf_text(&text);
}

/* ---- text ---- */

static const char *shown(struct vp_buf *out, const struct vp_listing *listing, size_t row,
                         size_t column) {
    const char *text =
        cell_text(out->arena, &listing->columns[column], cell_at(listing, row, column), ", ");
    return vp_text_clean(out->arena, *text ? text : "-", true);
}

static int width_of(struct vp_buf *out, const struct vp_listing *listing, size_t column) {
    int width = vp_text_cells(listing->columns[column].title);
    for (size_t row = 0; row < listing->row_count; row++) {
        int cells = vp_text_cells(shown(out, listing, row, column));
        width = cells > width ? cells : width;
    }
    return width;
}

/* One column of a line; nothing follows the last one, and no spaces either. */
static void add_cell(struct vp_buf *out, const struct vp_column *column, const char *text,
                     int width, bool first) {
    int fill = width - vp_text_cells(text);
    if (!first)
        vp_buf_add(out, "  ");
    if (column->kind == VP_CELL_NUMBER)
        vp_buf_printf(out, "%*s%s", fill, "", text);
    else
        vp_buf_printf(out, "%s%*s", text, fill, "");
}

static void end_line(struct vp_buf *out) {
    while (out->size && out->data[out->size - 1] == ' ')
        out->data[--out->size] = '\0';
    vp_buf_add(out, "\n");
}

static void add_details(struct vp_buf *out, const struct vp_listing *listing, size_t row) {
    struct vp_page page = {.out = out, .width = VP_PAGE_WIDTH, .utf8 = true};
    for (size_t c = 0; c < listing->column_count; c++) {
        const struct vp_column *column = &listing->columns[c];
        const char *text = cell_text(out->arena, column, cell_at(listing, row, c), ", ");
        if (!(column->audience & VP_FOR_VERBOSE) || !*text)
            continue;
        vp_buf_add(out, "    ");
        vp_page_printf(&page, 4, 6, "%s: %s", column->title, text);
    }
}

void vp_listing_text(struct vp_buf *out, const struct vp_listing *listing, bool verbose) {
    int *widths = VP_NEW_ARRAY(out->arena, listing->column_count, int);
    bool first = true;
    for (size_t c = 0; c < listing->column_count; c++) {
        if (!(listing->columns[c].audience & VP_FOR_PEOPLE))
            continue;
        widths[c] = width_of(out, listing, c);
        add_cell(out, &listing->columns[c], listing->columns[c].title, widths[c], first);
        first = false;
    }
    end_line(out);
    for (size_t row = 0; row < listing->row_count; row++) {
        first = true;
        for (size_t c = 0; c < listing->column_count; c++) {
            if (!(listing->columns[c].audience & VP_FOR_PEOPLE))
                continue;
            add_cell(out, &listing->columns[c], shown(out, listing, row, c), widths[c], first);
            first = false;
        }
        end_line(out);
        if (verbose)
            add_details(out, listing, row);
    }
}

/* ---- Markdown ---- */

static void add_markdown_cell(struct vp_buf *out, const char *text) {
    vp_buf_add(out, " ");
    for (const char *p = text; *p; p++)
        vp_buf_printf(out, *p == '|' ? "\\%c" : "%c", *p);
    vp_buf_add(out, " |");
}

void vp_listing_markdown(struct vp_buf *out, const struct vp_listing *listing) {
    vp_buf_add(out, "|");
    for (size_t c = 0; c < listing->column_count; c++)
        if (listing->columns[c].audience & VP_FOR_PEOPLE)
            add_markdown_cell(out, listing->columns[c].title);
    vp_buf_add(out, "\n|");
    for (size_t c = 0; c < listing->column_count; c++)
        if (listing->columns[c].audience & VP_FOR_PEOPLE)
            vp_buf_add(out, listing->columns[c].kind == VP_CELL_NUMBER ? "---:|" : "---|");
    vp_buf_add(out, "\n");
    for (size_t row = 0; row < listing->row_count; row++) {
        vp_buf_add(out, "|");
        for (size_t c = 0; c < listing->column_count; c++)
            if (listing->columns[c].audience & VP_FOR_PEOPLE)
                add_markdown_cell(out, shown(out, listing, row, c));
        vp_buf_add(out, "\n");
    }
}

/* ---- CSV ---- */

static void add_csv_cell(struct vp_buf *out, const char *text, bool first) {
    if (!first)
        vp_buf_add(out, ",");
    if (!strpbrk(text, ",\"\r\n")) {
        vp_buf_add(out, text);
        return;
    }
    vp_buf_add(out, "\"");
    for (const char *p = text; *p; p++)
        vp_buf_add_n(out, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
    vp_buf_add(out, "\"");
}

void vp_listing_csv(struct vp_buf *out, const struct vp_listing *listing) {
    bool first = true;
    for (size_t c = 0; c < listing->column_count; c++) {
        if (!(listing->columns[c].audience & VP_FOR_MACHINES))
            continue;
        add_csv_cell(out, listing->columns[c].key, first);
        first = false;
    }
    vp_buf_add(out, "\n");
    for (size_t row = 0; row < listing->row_count; row++) {
        first = true;
        for (size_t c = 0; c < listing->column_count; c++) {
            const struct vp_column *column = &listing->columns[c];
            if (!(column->audience & VP_FOR_MACHINES))
                continue;
            add_csv_cell(out, cell_text(out->arena, column, cell_at(listing, row, c), "; "), first);
            first = false;
        }
        vp_buf_add(out, "\n");
    }
}

/* ---- JSON ---- */

static void add_json_number(struct vp_json *json, const char *text) {
    uint64_t whole;
    double real;
    if (text && vp_parse_u64(&whole, text))
        vp_json_u64(json, whole);
    else if (text && *text == '-' && vp_parse_u64(&whole, text + 1) && whole <= INT64_MAX)
        vp_json_i64(json, -(int64_t)whole);
    else if (text && vp_parse_real(&real, text))
        vp_json_real(json, real);
    else
        vp_json_null(json);
}

static void add_json_cell(struct vp_json *json, const struct vp_column *column,
                          const struct vp_cell *cell) {
    switch (column->kind) {
    case VP_CELL_TEXT:
        vp_json_text(json, cell->text);
        break;
    case VP_CELL_NUMBER:
        add_json_number(json, cell->text);
        break;
    case VP_CELL_LIST:
        vp_json_list_inline(json);
        for (uint32_t i = 0; cell->list && i < cell->list->count; i++)
            vp_json_text(json, vp_node_text(cell->list->items[i]));
        vp_json_end(json, ']');
        break;
    }
}

void vp_listing_json(struct vp_json *json, const struct vp_listing *listing) {
    vp_json_list(json);
    for (size_t row = 0; row < listing->row_count; row++) {
        vp_json_map(json);
        for (size_t c = 0; c < listing->column_count; c++) {
            if (!(listing->columns[c].audience & VP_FOR_MACHINES))
                continue;
            vp_json_key(json, listing->columns[c].key);
            add_json_cell(json, &listing->columns[c], cell_at(listing, row, c));
        }
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}
