/* Requests as a file of them says (a trace): when each came, and how long it was. Plain values, in
 * the arena of the reader (planner/import/trace_reader.h). */
#ifndef VP_MODEL_TRACE_H
#define VP_MODEL_TRACE_H

#include <stdint.h>

struct vp_trace_row {
    double at_s;             /* from the first row's arrival; never falls */
    uint32_t prompt, output; /* tokens, at least 1 */
    uint64_t prefix;         /* rows of one number begin alike; 0: with nothing in common */
    uint32_t shared;         /* tokens of that beginning, at most the prompt */
    uint32_t line;
};

/* Rows in pieces, so that a file need not be read twice to know how many it has. */
enum { VP_TRACE_PIECE = 16384 };

struct vp_trace_piece {
    struct vp_trace_piece *next;
    uint32_t count;
    struct vp_trace_row row[VP_TRACE_PIECE];
};

struct vp_trace {
    const char *path;
    struct vp_trace_piece *first;
    uint64_t rows;
    uint64_t dropped;      /* rows without a prompt or without an output */
    uint32_t dropped_line; /* of the first of them */
    uint64_t behind;       /* 1: rows follow that the window leaves out, and were not read */
    double span_s;         /* arrival of the last row */
    double prompt_tokens, output_tokens; /* sums */
    uint32_t longest_prompt, longest_total;
};

#endif
