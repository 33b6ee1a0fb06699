/* A table of text cells, and its forms: aligned columns, CSV, Markdown, JSON. People and machines
 * may get different columns of the same rows: "192 GiB" and 196592 MiB. */
#ifndef VP_CLI_LISTING_H
#define VP_CLI_LISTING_H

#include "planner/base/json_writer.h"
#include "planner/doc/node.h"

enum vp_cell_kind {
    VP_CELL_TEXT,
    VP_CELL_NUMBER, /* its digits as text; right-aligned */
    VP_CELL_LIST    /* of texts */
};

enum { VP_FOR_PEOPLE = 1, VP_FOR_MACHINES = 2, VP_FOR_ALL = 3, VP_FOR_VERBOSE = 4 };

struct vp_column {
    const char *key;   /* in JSON and CSV */
    const char *title; /* in text and Markdown */
    enum vp_cell_kind kind;
    unsigned audience; /* VERBOSE: people who ask for more, on a line of its own below the row */
};

struct vp_cell {
    const char *text;           /* NULL: not known */
    const struct vp_node *list; /* LIST; its scalars */
};

struct vp_listing {
    const struct vp_column *columns;
    size_t column_count;
    struct vp_cell *cells; /* row after row */
    size_t row_count;
};

void vp_listing_text(struct vp_buf *out, const struct vp_listing *listing, bool verbose);
void vp_listing_markdown(struct vp_buf *out, const struct vp_listing *listing);
void vp_listing_csv(struct vp_buf *out, const struct vp_listing *listing);
/* A list of maps, the next value of the writer. */
void vp_listing_json(struct vp_json *json, const struct vp_listing *listing);

#endif
