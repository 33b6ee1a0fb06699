#include "api/vary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"

struct reading {
    struct vp_ctx *ctx;
    const char *option, *text; /* of the axis that is being read */
    struct vp_axis *axis;
    size_t capacity; /* of axis->values, in rows */
};

/* ---- faults ---- */

/* Columns count in the option's value. */
static struct vp_pos place(const struct reading *r, const char *at) {
    return (struct vp_pos){vp_arena_printf(r->ctx->arena, "%s %s", r->option, r->text), 1,
                           (uint32_t)(at - r->text) + 1};
}

static bool fault(const struct reading *r, const char *at, const char *message) {
    struct vp_pos pos = place(r, at);
    vp_diag_add(r->ctx->diags, VP_D_BAD_OPTION, &pos, "%s", message);
    return false;
}

static bool fault_hint(const struct reading *r, const char *at, const char *message,
                       const char *hint) {
    fault(r, at, message);
    vp_diag_hint(r->ctx->diags, "%s", hint);
    return false;
}

/* ---- words ---- */

/* The end of the item that begins at `at`: the next divider outside quotes and brackets. */
static const char *item_end(const char *at, const char *dividers) {
    int depth = 0;
    for (; *at; at++) {
        if (*at == '"')
            for (at++; *at && *at != '"'; at++)
                ;
        if (!*at)
            break;
        depth += (*at == '[' || *at == '{') - (*at == ']' || *at == '}');
        if (depth <= 0 && strchr(dividers, *at))
            break;
    }
    return at;
}

/* Without blanks around it. */
static const char *trimmed(const struct reading *r, const char *begin, const char *end) {
    while (begin < end && *begin == ' ')
        begin++;
    while (end > begin && end[-1] == ' ')
        end--;
    return vp_arena_text(r->ctx->arena, begin, (size_t)(end - begin));
}

/* ---- values ---- */

static const char **new_row(struct reading *r, const char *at) {
    struct vp_axis *axis = r->axis;
    if (axis->count == VP_AXIS_VALUES) {
        fault(r, at, "more than a million values of one field");
        return NULL;
    }
    if (axis->count == r->capacity) {
        size_t more = r->capacity ? 2 * r->capacity : 8;
        const char **values = VP_NEW_ARRAY(r->ctx->arena, more * axis->path_count, const char *);
        uint32_t *columns = VP_NEW_ARRAY(r->ctx->arena, more, uint32_t);
        if (axis->count) {
            memcpy(values, axis->values, axis->count * axis->path_count * sizeof *values);
            memcpy(columns, axis->columns, axis->count * sizeof *columns);
        }
        axis->values = values;
        axis->columns = columns;
        r->capacity = more;
    }
    axis->columns[axis->count] = (uint32_t)(at - r->text) + 1;
    return &axis->values[axis->count++ * axis->path_count];
}

static bool add_tuple(struct reading *r, const char *begin, const char *end) {
    const char **row = new_row(r, begin);
    const char *at = begin;
    if (!row)
        return false;
    for (size_t i = 0; i < r->axis->path_count; i++) {
        const char *stop = r->axis->path_count > 1 ? item_end(at, ":,") : end;
        row[i] = trimmed(r, at, stop);
        if (!*row[i])
            return fault(r, at, "a value is missing");
        bool last = i + 1 == r->axis->path_count;
        if (last != (stop == end))
            return fault_hint(r, stop,
                              last ? "more values than fields that vary together"
                                   : "fewer values than fields that vary together",
                              "as many values as fields, with ':' between them: a,b=1:2,3:4");
        at = stop + 1;
    }
    return true;
}

/* ---- ranges ---- */

/* A decimal number: value / 10^decimals. */
struct number {
    uint64_t value;
    int decimals;
};

static bool scale(struct number *n, int decimals) {
    for (; n->decimals < decimals; n->decimals++)
        if (__builtin_mul_overflow(n->value, UINT64_C(10), &n->value))
            return false;
    return true;
}

static bool read_decimal(struct number *out, const char *text) {
    enum { MOST_DECIMALS = 9 };
    bool point = false, digits = false;
    *out = (struct number){0, 0};
    for (; *text; text++) {
        if (*text == '.' && !point) {
            point = true;
            continue;
        }
        if (*text < '0' || *text > '9' || out->decimals == MOST_DECIMALS ||
            __builtin_mul_overflow(out->value, UINT64_C(10), &out->value) ||
            __builtin_add_overflow(out->value, (uint64_t)(*text - '0'), &out->value))
            return false;
        out->decimals += point;
        digits = true;
    }
    return digits;
}

/* "8", "0.85", "8k", "16 GiB" */
static bool read_number(struct number *out, const char *text) {
    *out = (struct number){0, 0};
    return read_decimal(out, text) || vp_parse_tokens(&out->value, text) ||
           vp_parse_size(&out->value, text);
}

static const char *show_number(struct vp_arena *arena, struct number n) {
    for (; n.decimals > 0 && n.value % 10 == 0; n.decimals--)
        n.value /= 10;
    uint64_t unit = 1;
    for (int i = 0; i < n.decimals; i++)
        unit *= 10;
    if (n.decimals == 0)
        return vp_format_u64(arena, n.value);
    return vp_arena_printf(arena, "%" PRIu64 ".%0*" PRIu64, n.value / unit, n.decimals,
                           n.value % unit);
}

/* ".." of a range that begins with a digit; NULL: it is none. */
static const char *dots_of(const char *begin, const char *end) {
    if (*begin < '0' || *begin > '9')
        return NULL;
    for (const char *p = begin; p + 1 < end; p++)
        if (p[0] == '.' && p[1] == '.')
            return p;
    return NULL;
}

static bool next_of_range(struct number *at, struct number step, bool times) {
    if (times)
        return !__builtin_mul_overflow(at->value, step.value, &at->value);
    return !__builtin_add_overflow(at->value, step.value, &at->value);
}

static bool add_range(struct reading *r, const char *begin, const char *dots, const char *end) {
    static const char HINT[] = "a..b*2 doubles from a to b, a..b+1 counts; numbers, token counts "
                               "(8k) or sizes (16 GiB)";
    struct number from, to, step;
    const char *sign = dots + 2;
    while (sign < end && *sign != '*' && *sign != '+')
        sign++;
    if (sign == end)
        return fault_hint(r, sign, "the range has no step", HINT);
    bool times = *sign == '*';
    if (!read_number(&from, trimmed(r, begin, dots)))
        return fault_hint(r, begin, "the range begins with no number", HINT);
    if (!read_number(&to, trimmed(r, dots + 2, sign)))
        return fault_hint(r, dots + 2, "the range ends with no number", HINT);
    if (!read_number(&step, trimmed(r, sign + 1, end)))
        return fault_hint(r, sign + 1, "the step of the range is no number", HINT);
    int decimals = from.decimals > to.decimals ? from.decimals : to.decimals;
    if (!times && step.decimals > decimals)
        decimals = step.decimals;
    if (!scale(&from, decimals) || !scale(&to, decimals) || (!times && !scale(&step, decimals)))
        return fault(r, begin, "a number of the range is too large");
    if (from.value > to.value)
        return fault_hint(r, dots + 2, "the range ends before it begins", HINT);
    if (times && (step.decimals > 0 || step.value < 2 || from.value == 0))
        return fault_hint(r, from.value == 0 ? begin : sign + 1,
                          from.value == 0 ? "nothing grows from 0 by a factor"
                                          : "the factor of a range is a whole number from 2 on",
                          HINT);
    if (!times && step.value == 0)
        return fault_hint(r, sign + 1, "the step of the range is 0", HINT);
    do {
        const char **row = new_row(r, begin);
        if (!row)
            return false;
        row[0] = show_number(r->ctx->arena, from);
    } while (next_of_range(&from, step, times) && from.value <= to.value);
    return true;
}

/* ---- axes ---- */

static bool read_paths(struct reading *r, const char *equals) {
    struct vp_axis *axis = r->axis;
    axis->paths = VP_NEW_ARRAY(r->ctx->arena, VP_GRID_FIELDS, const char *);
    for (const char *at = r->text;; at++) {
        const char *stop = at + strcspn(at, ",=");
        if (axis->path_count == VP_GRID_FIELDS)
            return fault(r, at, "more than 32 fields vary");
        const char *path = trimmed(r, at, stop);
        if (!*path)
            return fault_hint(r, at, "a field is missing", "FIELD=VALUE,...");
        axis->paths[axis->path_count++] = path;
        if (stop == equals)
            return true;
        at = stop;
    }
}

static bool read_axis(struct reading *r) {
    const char *equals = strchr(r->text, '=');
    if (!equals)
        return fault_hint(r, r->text + strlen(r->text), "no '=' and no values",
                          "FIELD=VALUE,... or FIELD=8k..256k*2");
    if (!read_paths(r, equals))
        return false;
    for (const char *at = equals + 1;; at++) {
        const char *end = item_end(at, ","), *dots = dots_of(at, end);
        if (end == at)
            return fault(r, at, "a value is missing");
        if (dots && r->axis->path_count == 1 ? !add_range(r, at, dots, end)
                                             : !add_tuple(r, at, end))
            return false;
        if (!*end)
            return true;
        at = end;
    }
}

static bool is_known(const struct vp_grid *grid, const char *path) {
    for (size_t i = 0; i < grid->field_count; i++)
        if (vp_text_eq(vp_grid_path(grid, i), path))
            return true;
    return false;
}

/* Counts it in, unless it repeats a field or makes too many combinations. */
static bool multiply(struct reading *r, struct vp_grid *out) {
    struct vp_axis *axis = r->axis;
    for (size_t i = 0; i < axis->path_count; i++) {
        bool twice = is_known(out, axis->paths[i]);
        for (size_t k = 0; k < i; k++)
            twice |= vp_text_eq(axis->paths[i], axis->paths[k]);
        if (twice)
            return fault(r, r->text,
                         vp_arena_printf(r->ctx->arena, "%s varies in two places", axis->paths[i]));
    }
    if (axis->path_count + out->field_count > VP_GRID_FIELDS)
        return fault(r, r->text, "more than 32 fields vary");
    if (__builtin_mul_overflow(out->total, (uint64_t)axis->count, &out->total) ||
        out->total > VP_GRID_TOTAL)
        return fault_hint(r, r->text, "more than 10^9 combinations in all",
                          "divide the values over several sweeps; a search does not need them "
                          "all: vramplan fit");
    out->field_count += axis->path_count;
    out->axis_count++;
    return true;
}

enum vp_status vp_grid_read(struct vp_ctx *ctx, struct vp_grid *out, const char *option,
                            const char *const *texts, size_t count) {
    bool ok = true;
    *out =
        (struct vp_grid){.axes = VP_NEW_ARRAY(ctx->arena, count + 1, struct vp_axis), .total = 1};
    for (size_t i = 0; i < count; i++) {
        struct reading r = {
            .ctx = ctx, .option = option, .text = texts[i], .axis = &out->axes[out->axis_count]};
        *r.axis = (struct vp_axis){.option = option, .text = texts[i]};
        ok &= read_axis(&r) && multiply(&r, out);
    }
    return ok ? VP_OK : VP_ERR_INPUT;
}

/* ---- combinations ---- */

void vp_grid_settings(const struct vp_grid *grid, struct vp_setting *out, uint64_t index) {
    size_t at = grid->field_count;
    for (size_t a = grid->axis_count; a-- > 0;) {
        const struct vp_axis *axis = &grid->axes[a];
        const char **row = &axis->values[index % axis->count * axis->path_count];
        index /= axis->count;
        at -= axis->path_count;
        for (size_t i = 0; i < axis->path_count; i++)
            out[at + i] = (struct vp_setting){.path = axis->paths[i], .value = row[i]};
    }
}

const char *vp_grid_path(const struct vp_grid *grid, size_t field) {
    for (size_t a = 0; a < grid->axis_count; a++) {
        if (field < grid->axes[a].path_count)
            return grid->axes[a].paths[field];
        field -= grid->axes[a].path_count;
    }
    return "";
}

struct vp_pos vp_axis_pos(struct vp_arena *arena, const struct vp_axis *axis, size_t row) {
    return (struct vp_pos){vp_arena_printf(arena, "%s %s", axis->option, axis->text), 1,
                           axis->columns[row]};
}

double vp_grid_number(const char *value) {
    uint64_t n;
    double real;
    if (vp_parse_tokens(&n, value))
        return (double)n;
    if (vp_parse_real(&real, value))
        return real;
    return vp_parse_size(&n, value) ? (double)n : (double)NAN;
}
