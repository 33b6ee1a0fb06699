#include "planner/base/utf8.h"

/* The table of well-formed sequences of the Unicode standard (table 3-7). */
static const struct {
    unsigned char first_low, first_high, second_low, second_high;
    size_t length;
} FORMS[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
    {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
    {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

size_t vp_utf8_length(const char *p) {
    const unsigned char *u = (const unsigned char *)p;
    if (u[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof FORMS / sizeof FORMS[0]; i++) {
        if (u[0] < FORMS[i].first_low || u[0] > FORMS[i].first_high)
            continue;
        if (u[1] < FORMS[i].second_low || u[1] > FORMS[i].second_high)
            return 0;
        for (size_t k = 2; k < FORMS[i].length; k++)
            if (u[k] < 0x80 || u[k] > 0xBF)
                return 0;
        return FORMS[i].length;
    }
    return 0;
}

uint32_t vp_utf8_decode(const char *p, size_t n) {
    static const unsigned char FIRST[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t c = (unsigned char)p[0] & FIRST[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)p[i] & 0x3F);
    return c;
}

size_t vp_utf8_encode(char out[5], uint32_t c) {
    static const unsigned char MARK[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    out[n] = '\0';
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(MARK[n] | c);
    return n;
}
