#include "planner/base/units.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit SIZE_UNITS[] = {
    {"B", 1},
    {"kB", 1000},
    {"KiB", 1024},
    {"MB", 1000000},
    {"MiB", 1024 * 1024},
    {"GB", 1000000000},
    {"GiB", 1024 * 1024 * 1024},
    {"TB", 1000000000000},
    {"TiB", 1099511627776},
    {NULL, 0},
};

static const struct unit TOKEN_UNITS[] = {{"k", 1024}, {"K", 1024}, {"M", 1024 * 1024}, {NULL, 0}};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool same_letters(const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((a[i] | 0x20) != (b[i] | 0x20))
            return false;
    return true;
}

/* Digits at *p; false when there are none or they exceed 64 bits. */
static bool read_digits(uint64_t *out, const char **p) {
    uint64_t v = 0;
    if (!is_digit(**p))
        return false;
    for (; is_digit(**p); (*p)++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(**p - '0'), &v))
            return false;
    *out = v;
    return true;
}

/* A decimal number as whole + part / scale. Digits after the 18th decimal are checked and left
 * out: with the largest unit they stand for less than a millionth of a byte. */
struct decimal {
    uint64_t whole, part, scale;
    bool has_point;
};

static bool read_decimal(struct decimal *out, const char **p) {
    *out = (struct decimal){.scale = 1};
    if (!read_digits(&out->whole, p))
        return false;
    if (**p != '.')
        return true;
    out->has_point = true;
    (*p)++;
    if (!is_digit(**p))
        return false;
    for (int i = 0; is_digit(**p); (*p)++, i++) {
        if (i < 18) {
            out->part = out->part * 10 + (uint64_t)(**p - '0');
            out->scale *= 10;
        }
    }
    return true;
}

static bool scale_up(uint64_t *out, const struct decimal *d, uint64_t factor) {
    unsigned __int128 v = (unsigned __int128)d->whole * factor;
    v += ((unsigned __int128)d->part * factor + d->scale / 2) / d->scale;
    if (v > UINT64_MAX)
        return false;
    *out = (uint64_t)v;
    return true;
}

static const char *skip_spaces(const char *p) {
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

/* The text after a number: spaces, then a unit of the table or nothing. */
static bool read_unit(uint64_t *out_factor, const char *p, const struct unit *units,
                      bool any_case) {
    p = skip_spaces(p);
    size_t n = strcspn(p, " \t");
    *out_factor = 1;
    if (*skip_spaces(p + n))
        return false;
    if (n == 0)
        return true;
    for (; units->name; units++) {
        if (strlen(units->name) != n)
            continue;
        if (any_case ? same_letters(p, units->name, n) : memcmp(p, units->name, n) == 0) {
            *out_factor = units->factor;
            return true;
        }
    }
    return false;
}

bool vp_parse_size(uint64_t *out_bytes, const char *text) {
    struct decimal d;
    uint64_t factor;
    const char *p = skip_spaces(text);
    if (!read_decimal(&d, &p) || !read_unit(&factor, p, SIZE_UNITS, true))
        return false;
    if (d.has_point && factor == 1)
        return false; /* there are no parts of a byte */
    return scale_up(out_bytes, &d, factor);
}

bool vp_parse_tokens(uint64_t *out_tokens, const char *text) {
    struct decimal d;
    uint64_t factor;
    const char *p = skip_spaces(text);
    if (!read_decimal(&d, &p) || !read_unit(&factor, p, TOKEN_UNITS, false))
        return false;
    if ((unsigned __int128)d.part * factor % d.scale != 0)
        return false; /* "1.5k" is a count, "1.3k" is not */
    return scale_up(out_tokens, &d, factor);
}

bool vp_parse_u64(uint64_t *out, const char *text) { return read_digits(out, &text) && !*text; }

/* [+-] digits [. digits] [e [+-] digits], with a digit before or after the point */
static bool is_decimal_number(const char *p) {
    if (*p == '+' || *p == '-')
        p++;
    size_t digits = strspn(p, "0123456789");
    p += digits;
    if (*p == '.') {
        size_t decimals = strspn(++p, "0123456789");
        p += decimals;
        digits += decimals;
    }
    if (digits == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '+' || *p == '-')
            p++;
        size_t exponent = strspn(p, "0123456789");
        if (exponent == 0)
            return false;
        p += exponent;
    }
    return !*p;
}

bool vp_parse_real(double *out, const char *text) {
    enum { MAX_LENGTH = 500 };
    char copy[MAX_LENGTH + 16];
    if (!is_decimal_number(text) || strlen(text) > MAX_LENGTH)
        return false;
    /* strtod wants the decimal point of the current locale, which may have several bytes. */
    const char *point = strchr(text, '.');
    if (point)
        snprintf(copy, sizeof copy, "%.*s%.8s%s", (int)(point - text), text,
                 localeconv()->decimal_point, point + 1);
    else
        snprintf(copy, sizeof copy, "%s", text);
    double v = strtod(copy, NULL);
    if (!isfinite(v))
        return false;
    *out = v;
    return true;
}

static const struct {
    const char *name;
    double seconds;
} TIME_UNITS[] = {{"us", 1e-6}, {"ms", 1e-3}, {"min", 60}, {"s", 1}, {"h", 3600}};
enum { TIME_UNIT_COUNT = sizeof TIME_UNITS / sizeof *TIME_UNITS };

/* The first n bytes, without spaces around them, as a finite number that is 0 or more. */
static bool parse_part(double *out, const char *text, size_t n) {
    char part[64];
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    if (n == 0 || n >= sizeof part)
        return false;
    memcpy(part, text, n);
    part[n] = '\0';
    return vp_parse_real(out, part) && *out >= 0;
}

bool vp_parse_duration(double *out_s, const char *text) {
    size_t n = strlen(text);
    for (size_t u = 0; u < TIME_UNIT_COUNT; u++) {
        size_t m = strlen(TIME_UNITS[u].name);
        if (n <= m || strcmp(text + n - m, TIME_UNITS[u].name) != 0)
            continue;
        if (!parse_part(out_s, text, n - m))
            return false;
        *out_s *= TIME_UNITS[u].seconds;
        return true;
    }
    return false;
}

bool vp_parse_seconds(double *out_s, const char *text) {
    return vp_parse_duration(out_s, text) || parse_part(out_s, text, strlen(text));
}

bool vp_parse_rate(double *out_per_s, const char *text) {
    const char *slash = strchr(text, '/');
    if (!slash)
        return parse_part(out_per_s, text, strlen(text));
    const char *unit = skip_spaces(slash + 1);
    for (size_t u = 0; u < TIME_UNIT_COUNT; u++) {
        if (strcmp(unit, TIME_UNITS[u].name) != 0)
            continue;
        if (!parse_part(out_per_s, text, (size_t)(slash - text)))
            return false;
        *out_per_s /= TIME_UNITS[u].seconds;
        return true;
    }
    return false;
}

bool vp_gib_to_bytes(uint64_t *out_bytes, double gib) {
    double bytes = gib * 0x1p30; /* exact: a power of two */
    if (!(bytes >= 0 && bytes < 0x1p64))
        return false;
    uint64_t whole = (uint64_t)bytes;
    if (bytes - (double)whole >= 0.5) /* a double with a fraction is below 2^53: exact */
        whole++;
    *out_bytes = whole;
    return true;
}

/* bytes / 2^shift with `decimals` digits, rounded half up */
static const char *format_scaled(struct vp_arena *arena, uint64_t bytes, unsigned shift,
                                 int decimals, const char *unit) {
    uint64_t scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    unsigned __int128 half = (unsigned __int128)1 << (shift - 1);
    uint64_t v = (uint64_t)(((unsigned __int128)bytes * scale + half) >> shift);
    if (decimals == 0)
        return vp_arena_printf(arena, "%" PRIu64 "%s", v, unit);
    return vp_arena_printf(arena, "%" PRIu64 ".%0*" PRIu64 "%s", v / scale, decimals, v % scale,
                           unit);
}

const char *vp_format_gib(struct vp_arena *arena, uint64_t bytes, int decimals) {
    return format_scaled(arena, bytes, 30, decimals, "");
}

/* Small amounts that are no whole number of the unit get one decimal: "1.5 MiB", not "2 MiB". */
static int decimals_for(uint64_t bytes, unsigned shift) {
    bool whole = (bytes & ((UINT64_C(1) << shift) - 1)) == 0;
    return !whole && bytes >> shift < 10 ? 1 : 0;
}

const char *vp_format_bytes(struct vp_arena *arena, uint64_t bytes) {
    if (bytes >> 30)
        return format_scaled(arena, bytes, 30, 2, " GiB");
    if (bytes >> 20)
        return format_scaled(arena, bytes, 20, decimals_for(bytes, 20), " MiB");
    if (bytes >> 10)
        return format_scaled(arena, bytes, 10, decimals_for(bytes, 10), " KiB");
    return vp_arena_printf(arena, "%" PRIu64 " B", bytes);
}

const char *vp_format_u64(struct vp_arena *arena, uint64_t n) {
    return vp_arena_printf(arena, "%" PRIu64, n);
}

const char *vp_format_count(struct vp_arena *arena, uint64_t n) {
    char digits[24], out[32];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, n);
    size_t used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    return vp_arena_text(arena, out, used);
}

/* The fewest significant digits that read back as v (v > 0, finite); returns the decimal exponent
 * of the first one. */
static int shortest_digits(char digits[20], double v) {
    char text[64];
    for (int precision = 0; precision <= 16; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, v);
        if (strtod(text, NULL) == v)
            break;
    }
    size_t n = 0;
    const char *p = text;
    for (; *p && *p != 'e'; p++) /* the locale's decimal point is left out */
        if (is_digit(*p) && n < 17)
            digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    return *p ? (int)strtol(p + 1, NULL, 10) : 0;
}

const char *vp_format_real(struct vp_arena *arena, double v) {
    enum { MIN_PLAIN_EXPONENT = -5, MAX_PLAIN_EXPONENT = 16 }; /* beyond: "1e-6", "1e17" */
    static const char ZEROS[] = "0000000000000000";
    char digits[20];
    const char *sign = signbit(v) ? "-" : "";
    if (!isfinite(v))
        return "null";
    if (v == 0)
        return "0";
    int exponent = shortest_digits(digits, fabs(v));
    int n = (int)strlen(digits);
    if (exponent < MIN_PLAIN_EXPONENT || exponent > MAX_PLAIN_EXPONENT)
        return vp_arena_printf(arena, "%s%c%s%se%d", sign, digits[0], n > 1 ? "." : "", digits + 1,
                               exponent);
    if (exponent < 0)
        return vp_arena_printf(arena, "%s0.%.*s%s", sign, -exponent - 1, ZEROS, digits);
    if (exponent >= n - 1)
        return vp_arena_printf(arena, "%s%s%.*s", sign, digits, exponent - n + 1, ZEROS);
    return vp_arena_printf(arena, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
}
