#include "planner/import/trace_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"

/* ---- columns ---- */

enum meaning { ARRIVAL, PROMPT, OUTPUT, PREFIX, SHARED, MEANINGS };

static const struct {
    enum meaning meaning;
    const char *name;
} NAMES[] = {
#define X(meaning, name) {meaning, name},
#include "planner/import/trace_columns.def"
#undef X
};
enum { NAME_COUNT = sizeof NAMES / sizeof *NAMES };

enum { MAX_COLUMNS = 256, MAX_FAULTS = 5, BUFFER = 4 * VP_TRACE_MAX_LINE };

struct field {
    const char *text;
    size_t size;
};

struct reading {
    struct vp_ctx *ctx;
    const char *path;
    int fd;
    struct vp_trace *out;
    struct vp_trace_piece *last;
    double until_s;
    char *buffer;
    size_t from, filled; /* what of the buffer is still to be read */
    bool at_end;
    uint32_t line;
    uint32_t columns;
    int column[MEANINGS]; /* -1: there is none */
    bool dated;           /* arrivals are dates */
    double origin_s;      /* of the first row: whole seconds, and the rest, which a double of */
    double origin_rest;   /* seconds since 1970 would round */
    double last_s;
    bool any;
    uint32_t faults;
};

static struct vp_pos here(const struct reading *r) { return (struct vp_pos){r->path, r->line, 0}; }

__attribute__((format(printf, 3, 4))) static void fault(struct reading *r, const char *hint,
                                                        const char *format, ...) {
    struct vp_pos pos = here(r);
    va_list args;
    char text[400];

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (r->faults++ >= MAX_FAULTS)
        return;
    vp_diag_add(r->ctx->diags, VP_D_TRACE, &pos, "%s", text);
    if (hint)
        vp_diag_hint(r->ctx->diags, "%s", hint);
}

/* ---- lines ---- */

/* Moves what is left to the front and reads on. */
static enum vp_status fill(struct reading *r) {
    memmove(r->buffer, r->buffer + r->from, r->filled - r->from);
    r->filled -= r->from;
    r->from = 0;
    while (!r->at_end && r->filled < BUFFER) {
        long got = r->ctx->io->read(r->fd, r->buffer + r->filled, BUFFER - r->filled);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            struct vp_pos pos = {.file = r->path};
            vp_diag_add(r->ctx->diags, VP_D_IO, &pos, "reading the trace failed: %s",
                        strerror(errno));
            return VP_ERR_ENV;
        }
        r->at_end = got == 0;
        r->filled += (size_t)got;
    }
    return VP_OK;
}

/* The next line without its end, in the buffer. *out NULL: there is none. */
static enum vp_status next_line(struct reading *r, char **out, size_t *size) {
    char *end = memchr(r->buffer + r->from, '\n', r->filled - r->from);

    *out = NULL;
    if (!end && !r->at_end) {
        enum vp_status status = fill(r);
        if (status != VP_OK)
            return status;
        end = memchr(r->buffer, '\n', r->filled);
    }
    if (!end && r->from == r->filled)
        return VP_OK;
    *out = r->buffer + r->from;
    *size = end ? (size_t)(end - *out) : r->filled - r->from;
    r->from += *size + (end != NULL);
    r->line++;
    if (*size > VP_TRACE_MAX_LINE) {
        struct vp_pos pos = here(r);
        vp_diag_add(r->ctx->diags, VP_D_CAP, &pos,
                    "a line of more than %d bytes, the cap of traces", (int)VP_TRACE_MAX_LINE);
        return VP_ERR_INPUT;
    }
    if (*size > 0 && (*out)[*size - 1] == '\r')
        (*size)--;
    return VP_OK;
}

static char *find(char *from, const char *end, char wanted) {
    while (from < end && *from != wanted)
        from++;
    return from;
}

/* Fields of a line; a quoted one without its quotes. Their number, which may be above MAX_COLUMNS.
 */
static uint32_t split(struct field *out, char *line, size_t size) {
    const char *end = line + size;
    uint32_t count = 0;

    for (char *p = line;; p++) {
        bool quoted = p < end && *p == '"';
        char *from = quoted ? p + 1 : p, *stop = find(from, end, quoted ? '"' : ',');
        p = find(stop, end, ',');
        while (from < stop && *from == ' ')
            from++;
        while (stop > from && stop[-1] == ' ')
            stop--;
        if (count < MAX_COLUMNS)
            out[count] = (struct field){from, (size_t)(stop - from)};
        count++;
        if (p == end)
            return count;
    }
}

/* ---- values ---- */

static const char *text_of(struct reading *r, const struct field *f) {
    return vp_arena_text(r->ctx->arena, f->text, f->size < 100 ? f->size : 100);
}

/* Digits with a point; anything else is left to vp_parse_real. Exact where it says true: at most 15
 * digits, and a power of ten that a double holds. */
static bool plain_number(double *out, const char *text, size_t size) {
    static const double POWER[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t digits = 0;
    size_t decimals = 0, count = 0;
    bool point = false;

    for (size_t i = 0; i < size; i++) {
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || ++count > 15)
            return false;
        digits = digits * 10 + (uint64_t)(text[i] - '0');
        decimals += point;
    }
    if (count == 0 || text[size - 1] == '.')
        return false;
    *out = (double)digits / POWER[decimals];
    return true;
}

static bool number(double *out, const struct field *f) {
    char text[64];

    if (plain_number(out, f->text, f->size))
        return true;
    if (f->size == 0 || f->size >= sizeof text)
        return false;
    memcpy(text, f->text, f->size);
    text[f->size] = '\0';
    return vp_parse_real(out, text);
}

/* Days from 1970-01-01 in the Gregorian calendar. */
static int64_t days_of(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool two_digits(int64_t *out, const char *p) {
    if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9')
        return false;
    *out = (p[0] - '0') * 10 + (p[1] - '0');
    return true;
}

/* "2023-11-16 18:15:46.6805900", "2024-05-10T00:00:00.009+00:00": whole seconds and the rest. */
static bool date(double *seconds, double *rest, const struct field *f) {
    enum { WHOLE = 19 };
    const char *p = f->text;
    int64_t century, year, month, day, hour, minute, second, zone_h = 0, zone_m = 0;
    size_t n = f->size, i = WHOLE;

    if (n < WHOLE || p[4] != '-' || p[7] != '-' || (p[10] != ' ' && p[10] != 'T') || p[13] != ':' ||
        p[16] != ':' || !two_digits(&century, p) || !two_digits(&year, p + 2) ||
        !two_digits(&month, p + 5) || !two_digits(&day, p + 8) || !two_digits(&hour, p + 11) ||
        !two_digits(&minute, p + 14) || !two_digits(&second, p + 17))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60)
        return false;
    *rest = 0;
    if (i < n && p[i] == '.') {
        size_t from = i++;
        while (i < n && p[i] >= '0' && p[i] <= '9')
            i++;
        if (i == from + 1 || !plain_number(rest, p + from, i - from))
            return false;
    }
    if (i < n && p[i] == 'Z')
        i++;
    int64_t sign = i < n && p[i] == '-' ? -1 : 1;
    if (i + 6 == n && (p[i] == '+' || p[i] == '-') && p[i + 3] == ':' &&
        two_digits(&zone_h, p + i + 1) && two_digits(&zone_m, p + i + 4))
        i += 6;
    int64_t days = days_of(century * 100 + year, month, day);
    *seconds =
        (double)(((days * 24 + hour - sign * zone_h) * 60 + minute - sign * zone_m) * 60 + second);
    return i == n;
}

/* ---- the header ---- */

static const char COLUMNS_HINT[] = "arrival_s,prompt_tokens,output_tokens, or Azure's "
                                   "TIMESTAMP,ContextTokens,GeneratedTokens";

static enum vp_status read_header(struct reading *r, struct field *fields) {
    static const char *const WANTED[] = {"arrival_s", "prompt_tokens", "output_tokens"};
    char *line = NULL;
    size_t size = 0;
    enum vp_status status = next_line(r, &line, &size);

    if (status != VP_OK)
        return status;
    if (!line) {
        r->line = 1;
        fault(r, COLUMNS_HINT, "the trace is empty: its first line must name the columns");
        return VP_ERR_INPUT;
    }
    if (size >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        size -= 3;
    }
    r->columns = split(fields, line, size);
    if (r->columns > MAX_COLUMNS) {
        struct vp_pos pos = here(r);
        vp_diag_add(r->ctx->diags, VP_D_CAP, &pos, "more than %d columns, the cap of traces",
                    (int)MAX_COLUMNS);
        return VP_ERR_INPUT;
    }
    for (int m = 0; m < MEANINGS; m++)
        r->column[m] = -1;
    for (int k = 0; k < NAME_COUNT; k++) /* the first names outrank the others */
        for (uint32_t i = 0; i < r->columns; i++)
            if (r->column[NAMES[k].meaning] < 0 &&
                vp_name_eq(text_of(r, &fields[i]), NAMES[k].name))
                r->column[NAMES[k].meaning] = (int)i;
    for (int m = ARRIVAL; m <= OUTPUT; m++)
        if (r->column[m] < 0)
            fault(r, COLUMNS_HINT, "the trace has no column %s", WANTED[m]);
    return r->faults ? VP_ERR_INPUT : VP_OK;
}

/* ---- rows ---- */

/* Seconds from the first row. False: a fault. */
static bool read_arrival(struct reading *r, double *out, const struct field *f) {
    double seconds, rest = 0;
    bool ok = r->dated ? date(&seconds, &rest, f) : number(&seconds, f);

    if (!r->any && !ok && date(&seconds, &rest, f))
        ok = r->dated = true;
    if (!ok || !(fabs(seconds) <= 1e12)) {
        fault(r,
              "seconds such as 12.5, or a date such as 2023-11-16 18:15:46.68, the same in all "
              "rows",
              "'%s' is no time of arrival", text_of(r, f));
        return false;
    }
    if (!r->dated && seconds < 0) {
        fault(r, NULL, "a negative time of arrival, %s", text_of(r, f));
        return false;
    }
    if (!r->any) {
        r->origin_s = seconds;
        r->origin_rest = rest;
    }
    *out = (seconds - r->origin_s) + (rest - r->origin_rest);
    if (r->any && *out < r->last_s) {
        fault(r, "sort the rows by their arrival",
              "requests are not in order: this one came %.6g s before the one above it",
              r->last_s - *out);
        return false;
    }
    return true;
}

static bool read_count(struct reading *r, uint32_t *out, const struct field *f, const char *what) {
    const double most = 1e9; /* tokens: what is more is no request */
    double value;

    if (!number(&value, f)) {
        fault(r, NULL, "'%s' is no number of %s", text_of(r, f), what);
        return false;
    }
    if (value < 0 || value > most || floor(value) < value) {
        fault(r, NULL, "%s is no number of %s: whole numbers from 0 to 10^9", text_of(r, f), what);
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

/* FNV-1a; never 0. Different texts have different numbers but for one chance in 10^7 with a million
 * of them. */
static uint64_t number_of_text(const struct field *f) {
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < f->size; i++)
        hash = (hash ^ (unsigned char)f->text[i]) * UINT64_C(1099511628211);
    return f->size == 0 ? 0 : hash | (hash == 0);
}

static enum vp_status keep(struct reading *r, const struct vp_trace_row *row) {
    struct vp_trace *t = r->out;

    if (t->rows == VP_TRACE_MAX_ROWS) {
        struct vp_pos pos = here(r);
        vp_diag_add(r->ctx->diags, VP_D_CAP, &pos, "more than %d requests, the cap of traces",
                    (int)VP_TRACE_MAX_ROWS);
        vp_diag_hint(r->ctx->diags, "--duration takes the first part of a trace");
        return VP_ERR_INPUT;
    }
    if (!r->last || r->last->count == VP_TRACE_PIECE) {
        struct vp_trace_piece *piece = VP_NEW(r->ctx->arena, struct vp_trace_piece);
        if (r->last)
            r->last->next = piece;
        else
            t->first = piece;
        r->last = piece;
    }
    r->last->row[r->last->count++] = *row;
    uint32_t total = row->prompt + row->output;
    t->rows++;
    t->span_s = row->at_s;
    t->prompt_tokens += row->prompt;
    t->output_tokens += row->output;
    t->longest_prompt = row->prompt > t->longest_prompt ? row->prompt : t->longest_prompt;
    t->longest_total = total > t->longest_total ? total : t->longest_total;
    return VP_OK;
}

static enum vp_status read_row(struct reading *r, const struct field *fields, bool *behind) {
    struct vp_trace_row row = {.line = r->line};
    const struct field *at = &fields[r->column[ARRIVAL]];

    if (!read_arrival(r, &row.at_s, at))
        return VP_OK;
    r->any = true;
    r->last_s = row.at_s;
    if (r->until_s > 0 && row.at_s >= r->until_s) {
        *behind = true;
        return VP_OK;
    }
    bool ok = read_count(r, &row.prompt, &fields[r->column[PROMPT]], "prompt tokens");
    ok &= read_count(r, &row.output, &fields[r->column[OUTPUT]], "output tokens");
    if (r->column[PREFIX] >= 0)
        row.prefix = number_of_text(&fields[r->column[PREFIX]]);
    if (ok && r->column[SHARED] >= 0 && fields[r->column[SHARED]].size > 0)
        ok = read_count(r, &row.shared, &fields[r->column[SHARED]], "shared tokens");
    if (!ok)
        return VP_OK;
    if (row.shared > row.prompt)
        fault(r, NULL, "%" PRIu32 " shared tokens of a prompt of %" PRIu32, row.shared, row.prompt);
    if (row.prompt > 0 && row.output > 0)
        return keep(r, &row);
    if (r->out->dropped++ == 0)
        r->out->dropped_line = r->line;
    return VP_OK;
}

static enum vp_status read_rows(struct reading *r) {
    struct field *fields = VP_NEW_ARRAY(r->ctx->arena, MAX_COLUMNS, struct field);
    enum vp_status status = read_header(r, fields);
    bool behind = false;

    while (status == VP_OK && !behind && r->faults <= MAX_FAULTS) {
        char *line;
        size_t size = 0;
        status = next_line(r, &line, &size);
        if (status != VP_OK || !line)
            break;
        if (size == 0)
            continue;
        uint32_t count = split(fields, line, size);
        if (count == r->columns)
            status = read_row(r, fields, &behind);
        else
            fault(r, NULL, "%" PRIu32 " fields, where the first line names %" PRIu32 " columns",
                  count, r->columns);
    }
    r->out->behind = behind;
    if (r->faults > MAX_FAULTS) {
        struct vp_pos pos = here(r);
        vp_diag_add(r->ctx->diags, VP_D_TRACE, &pos, "further faults of the trace are not told");
    }
    if (status == VP_OK && r->faults == 0 && r->out->rows == 0)
        fault(r, NULL, "the trace holds no request%s",
              r->out->dropped ? " with a prompt and an output" : "");
    return status == VP_OK && r->faults ? VP_ERR_INPUT : status;
}

/* The arena leaves by longjmp when there is no memory: the file must be closed before. */
static enum vp_status read_guarded(struct reading *r) {
    jmp_buf guard, *outer = r->ctx->arena->oom;

    if (setjmp(guard)) {
        r->ctx->arena->oom = outer;
        r->ctx->io->close(r->fd);
        vp_arena_array(r->ctx->arena, SIZE_MAX, 2); /* no memory: goes on to the owner's jump */
    }
    r->ctx->arena->oom = &guard;
    enum vp_status status = read_rows(r);
    r->ctx->arena->oom = outer;
    return status;
}

enum vp_status vp_trace_read(struct vp_ctx *ctx, struct vp_trace *out, const char *path,
                             double until_s) {
    struct reading r = {.ctx = ctx, .path = path, .out = out, .until_s = until_s};
    uint64_t size;

    *out = (struct vp_trace){.path = path};
    r.buffer = vp_arena_alloc(ctx->arena, BUFFER);
    enum vp_status status = vp_io_open(ctx, &r.fd, &size, path);
    if (status != VP_OK)
        return status;
    status = read_guarded(&r);
    ctx->io->close(r.fd);
    return status;
}
