#include "planner/model/budget.h"

#include <string.h>

const char *vp_bound_name(enum vp_bound bound) {
    static const char *const NAMES[] = {"memory", "headroom", "host_memory", "min_context",
                                        "min_concurrency"};
    return NAMES[bound];
}

bool vp_bound_is_upper(enum vp_bound bound) {
    return bound == VP_BOUND_MEMORY || bound == VP_BOUND_HOST;
}

bool vp_at_risk_parse(enum vp_at_risk *out, const char *text) {
    static const char *const NAMES[] = {"inconclusive", "fail", "warn", "likely"};
    for (int i = 0; i <= VP_AT_RISK_LIKELY; i++)
        if (strcmp(NAMES[i], text) == 0) {
            *out = (enum vp_at_risk)i;
            return true;
        }
    return false;
}

static uint32_t days_in(uint32_t year, uint32_t month) {
    static const uint8_t DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : DAYS[month - 1];
}

bool vp_parse_day(uint32_t *out, const char *text) {
    uint32_t number = 0;
    if (strlen(text) != strlen("2026-11-30"))
        return false;
    for (int i = 0; text[i]; i++) {
        bool dash = i == 4 || i == 7;
        if (dash ? text[i] != '-' : text[i] < '0' || text[i] > '9')
            return false;
        if (!dash)
            number = number * 10 + (uint32_t)(text[i] - '0');
    }
    uint32_t year = number / 10000, month = number / 100 % 100, day = number % 100;
    *out = number;
    return year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= days_in(year, month);
}
