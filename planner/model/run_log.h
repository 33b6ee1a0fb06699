/* What the log of a run says, as plain values: figures of one start-up, the engine's settings as it
 * echoes them, messages about memory, tables of devices. Filled by planner/import/log_reader.h,
 * used by comparisons and planner/plan/doctor.h.
 *
 * Everything has a cap, so that a log of any length takes the same memory; what goes beyond is
 * counted. Texts are copies. Bytes are integers: engines that print "GB" for 2^30 (vLLM, SGLang,
 * PyTorch) and those that print GiB are the same here. */
#ifndef VP_MODEL_RUN_LOG_H
#define VP_MODEL_RUN_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/model/scenario.h"

enum vp_log_quantity {
#define X(name, kind, several, words) VP_LOG_##name,
#include "planner/model/log_quantities.def"
#undef X
    VP_LOG_QUANTITIES
};

enum vp_log_kind { VP_LOG_GIB, VP_LOG_MIB, VP_LOG_COUNT, VP_LOG_MILLI, VP_LOG_SHARE };
enum vp_log_several { VP_LOG_MOST, VP_LOG_LEAST, VP_LOG_LAST, VP_LOG_SUM };

struct vp_log_quantity_info {
    enum vp_log_kind kind;
    enum vp_log_several several;
    const char *words;
};

extern const struct vp_log_quantity_info vp_log_quantities[VP_LOG_QUANTITIES];

enum vp_log_message_kind {
#define X(name, words) VP_LOG_SAYS_##name,
#include "planner/model/log_messages.def"
#undef X
    VP_LOG_MESSAGE_KINDS
};

const char *vp_log_message_words(enum vp_log_message_kind kind);

enum {
    VP_LOG_PLACE = 12,      /* "GPU0", "GPU_Host", "CPU"; "" for what has no place */
    VP_LOG_MAX_FACTS = 192, /* of one start-up */
    VP_LOG_MAX_MESSAGES = 48,
    VP_LOG_MAX_DEVICES = 64,
    VP_LOG_MAX_ARGS = 24 * 1024 /* bytes of echoed settings */
};

struct vp_log_fact {
    enum vp_log_quantity what;
    char place[VP_LOG_PLACE];
    int64_t value; /* bytes, count, thousandths, 1e-9; below 0: memory given back, or missing */
    int64_t least, most; /* over the lines that print it */
    uint32_t seen;       /* such lines */
    uint32_t priority;   /* of the kind of line: the more exact one counts */
    int64_t step;        /* what one in the last printed place is worth */
    uint64_t line;
};

/* From an engine's first line to the next start or the end of the file. */
struct vp_log_start {
    bool known; /* the log says which engine */
    enum vp_engine_kind engine;
    char version[80];
    char model[256];
    char gpu[96];
    uint64_t line; /* its first */
    bool complete; /* as far as sizing its cache */
    bool serving;  /* ready for requests: later lines are no start-up */
    struct vp_log_fact fact[VP_LOG_MAX_FACTS];
    uint32_t facts, facts_dropped;
    uint32_t contexts, models;  /* llama.cpp: those after the first are drafts, and left out */
    char args[VP_LOG_MAX_ARGS]; /* as echoed, NUL-terminated; "" none */
};

struct vp_log_message {
    enum vp_log_message_kind kind;
    bool hip;
    uint64_t line;
    uint32_t times; /* said again with the same figures */
    bool known[VP_LOG_QUANTITIES];
    int64_t value[VP_LOG_QUANTITIES];
};

/* One line of rocm-smi's, amd-smi's or nvidia-smi's tables. */
struct vp_log_device {
    char place[VP_LOG_PLACE];
    char partition[8]; /* "CPX"; "" not said */
    bool total_known, used_known, gtt_known;
    uint64_t total_bytes, used_bytes, gtt_bytes;
};

struct vp_run_log {
    const char *path;
    uint64_t bytes, lines, matched; /* matched: lines that said something */
    uint32_t starts;
    bool earlier;              /* the last start-up was not complete; `start` is one before it */
    uint64_t last_line;        /* of the last start-up */
    struct vp_log_start start; /* the last complete one, else the last one */
    const struct vp_log_start *last; /* the one that the file ends with; messages may be its */
    struct vp_log_message message[VP_LOG_MAX_MESSAGES]; /* in the order of the file */
    uint32_t messages;
    uint64_t messages_dropped; /* between the first and the last ones */
    struct vp_log_device device[VP_LOG_MAX_DEVICES];
    uint32_t devices;
};

/* NULL: the log does not say. place: NULL or "" for what has none. */
const struct vp_log_fact *vp_log_find(const struct vp_log_start *start, enum vp_log_quantity what,
                                      const char *place);

#endif
