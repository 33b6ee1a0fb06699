#include "planner/model/run_log.h"

#include <string.h>

const struct vp_log_quantity_info vp_log_quantities[VP_LOG_QUANTITIES] = {
#define X(name, kind, several, words) {VP_LOG_##kind, VP_LOG_##several, words},
#include "planner/model/log_quantities.def"
#undef X
};

const char *vp_log_message_words(enum vp_log_message_kind kind) {
    static const char *const WORDS[VP_LOG_MESSAGE_KINDS] = {
#define X(name, words) words,
#include "planner/model/log_messages.def"
#undef X
    };
    return WORDS[kind];
}

const struct vp_log_fact *vp_log_find(const struct vp_log_start *start, enum vp_log_quantity what,
                                      const char *place) {
    for (uint32_t i = 0; i < start->facts; i++)
        if (start->fact[i].what == what && strcmp(start->fact[i].place, place ? place : "") == 0)
            return &start->fact[i];
    return NULL;
}
