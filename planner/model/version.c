#include "planner/model/version.h"

#include <stddef.h>
#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Digits at *p; their number, 0 when there are none or they exceed 32 bits. */
static int read_number(uint32_t *out, const char **p) {
    uint32_t v = 0;
    int digits = 0;
    for (; is_digit(**p); (*p)++, digits++)
        if (__builtin_mul_overflow(v, 10U, &v) ||
            __builtin_add_overflow(v, (uint32_t)(**p - '0'), &v))
            return 0;
    *out = v;
    return digits;
}

/* What may follow the numbers: "rc2.dev112+g763963aa7.d20251213", ".post1", "-rocm64". It does not
 * take part in comparisons: a pre-release follows the rules of the release it leads to. */
static bool is_suffix(const char *p) {
    for (; *p; p++)
        if (!is_digit(*p) && !is_letter(*p) && !strchr(".+-_", *p))
            return false;
    return true;
}

/* "2025-10", "2026-08-18": a year of four digits and a dash cannot be a release. */
static bool parse_date(struct vp_version *out, const char *p) {
    struct vp_version v = {.kind = VP_VERSION_DATE};
    if (read_number(&v.part[0], &p) != 4 || *p++ != '-')
        return false;
    int digits = read_number(&v.part[1], &p);
    if (digits < 1 || digits > 2 || v.part[1] < 1 || v.part[1] > 12)
        return false;
    if (*p == '-') {
        p++;
        digits = read_number(&v.part[2], &p);
        if (digits < 1 || digits > 2 || v.part[2] < 1 || v.part[2] > 31)
            return false;
    }
    if (*p)
        return false;
    *out = v;
    return true;
}

/* "b6500" */
static bool parse_build(struct vp_version *out, const char *p) {
    struct vp_version v = {.kind = VP_VERSION_BUILD};
    if (*p++ != 'b' || !read_number(&v.part[0], &p) || !is_suffix(p))
        return false;
    *out = v;
    return true;
}

/* "0.19", "v0.6.3.post1" */
static bool parse_release(struct vp_version *out, const char *p) {
    struct vp_version v = {.kind = VP_VERSION_RELEASE};
    int i;
    if (*p == 'v')
        p++;
    for (i = 0; i < 3; i++) {
        if (!read_number(&v.part[i], &p))
            return false;
        if (*p != '.' || !is_digit(p[1]))
            break;
        p++;
    }
    if (!is_suffix(p) || (i == 0 && *p == '-')) /* "2025-13" is a mistaken date */
        return false;
    *out = v;
    return true;
}

bool vp_version_parse(struct vp_version *out, const char *text) {
    *out = (struct vp_version){0};
    return text && (parse_date(out, text) || parse_build(out, text) || parse_release(out, text));
}

int vp_version_compare(struct vp_version a, struct vp_version b) {
    if (a.kind != b.kind) /* meaningless, but a total order */
        return a.kind < b.kind ? -1 : 1;
    for (int i = 0; i < 3; i++)
        if (a.part[i] != b.part[i])
            return a.part[i] < b.part[i] ? -1 : 1;
    return 0;
}
