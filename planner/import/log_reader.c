#include "planner/import/log_reader.h"

#include <errno.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/import/log_match.h"

enum {
    CHUNK = 256 * 1024,
    MAX_ROWS = 32,           /* patterns of one line */
    MESSAGE_TEXT = 4 * 1024, /* of a message and what follows it */
    MESSAGE_LINES = 8
};

/* ---- the table ---- */

enum action { FACT, START, BEGIN, TEXT, LOADING, CONTEXT, SERVING, DEVICE, MESSAGE, DETAIL };
enum target { TARGET_NONE, TARGET_VERSION, TARGET_BUILD, TARGET_NAME, TARGET_CARD, TARGET_ARGS };
enum { ENGINE_ANY = -1 };

struct line_row {
    int engine;
    enum action action;
    int target; /* enum target, or of a message enum vp_log_message_kind */
    uint32_t priority;
    const char *pattern;
    enum vp_log_quantity what[VP_LOG_CAPTURES];
};

#define VP_ENGINE_ANY ENGINE_ANY
#define TEXT(target) TARGET_##target
#define SAYS(kind) VP_LOG_SAYS_##kind
#define Q(quantity) VP_LOG_##quantity
static const struct line_row ROWS[] = {
#define X(engine, action, target, priority, ...)                                                   \
    X_(engine, action, target, priority, __VA_ARGS__, 0)
#define X_(engine, action, target, priority, pattern, ...)                                         \
    {VP_ENGINE_##engine, action, target, priority, pattern, {__VA_ARGS__}},
#include "planner/import/log_lines.def"
#undef X_
#undef X
};
#undef Q
#undef SAYS
#undef TEXT
#undef VP_ENGINE_ANY

enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS };

struct reader {
    struct vp_ctx *ctx;
    struct vp_run_log *log;
    struct vp_log_start *now, *kept; /* kept: complete */
    bool kept_known, strong;         /* strong: `now` began with a START line */
    struct vp_log_matcher *matcher;
    char text[MESSAGE_TEXT]; /* of the message that is open */
    size_t text_n;
    int text_lines; /* 0: none is open */
    int device;     /* index of the next row of a table without one */
};

/* ---- facts ---- */

static bool has(const struct vp_log_start *start, enum vp_log_quantity what) {
    for (uint32_t i = 0; i < start->facts; i++)
        if (start->fact[i].what == what)
            return true;
    return false;
}

/* Something was allocated: a start line after that is another start. */
static bool is_sized(const struct vp_log_start *start) {
    static const enum vp_log_quantity SIZES[] = {
        VP_LOG_WEIGHTS, VP_LOG_AVAILABLE_KV, VP_LOG_KV_TOKENS, VP_LOG_MODEL,
        VP_LOG_KV,      VP_LOG_COMPUTE,      VP_LOG_ALLOCATED, VP_LOG_RESERVED_PEAK};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        if (has(start, SIZES[i]))
            return true;
    return false;
}

/* As far as sizing its cache. */
static bool is_complete(const struct vp_log_start *start) {
    const struct vp_log_fact *room = vp_log_find(start, VP_LOG_AVAILABLE_KV, NULL);
    if (has(start, VP_LOG_BLOCKS) || has(start, VP_LOG_KV_TOKENS) || has(start, VP_LOG_COMPUTE))
        return true;
    if (has(start, VP_LOG_ALLOCATED_PEAK) || has(start, VP_LOG_RESERVED_PEAK))
        return true;
    return room && room->value > 0;
}

static void set_fact(struct vp_log_fact *fact, const struct vp_log_capture *c, uint32_t priority,
                     uint64_t line) {
    fact->value = fact->least = fact->most = c->value;
    fact->step = c->step;
    fact->seen = 1;
    fact->priority = priority;
    fact->line = line;
}

static void join_fact(struct vp_log_fact *fact, const struct vp_log_capture *c, uint64_t line) {
    enum vp_log_several several = vp_log_quantities[fact->what].several;
    bool more = c->value > fact->value, less = c->value < fact->value;
    if (fact->priority == 0)
        several = VP_LOG_LAST;
    fact->seen++;
    fact->least = c->value < fact->least ? c->value : fact->least;
    fact->most = c->value > fact->most ? c->value : fact->most;
    if (several == VP_LOG_SUM && c->value <= INT64_MAX - fact->value)
        fact->value += c->value;
    if (several == VP_LOG_LAST || (several == VP_LOG_MOST && more) ||
        (several == VP_LOG_LEAST && less)) {
        fact->value = c->value;
        fact->step = c->step;
        fact->line = line;
    }
}

static void add_fact(struct reader *r, const struct line_row *row, enum vp_log_quantity what,
                     const char *place, const struct vp_log_capture *c) {
    struct vp_log_start *start = r->now;
    struct vp_log_fact *old = NULL;
    struct vp_log_capture scaled = *c;
    if (vp_log_quantities[what].kind == VP_LOG_MILLI) {
        scaled.value /= 1000000;
        scaled.step /= 1000000;
    }
    for (uint32_t i = 0; i < start->facts && !old; i++)
        if (start->fact[i].what == what && strcmp(start->fact[i].place, place) == 0)
            old = &start->fact[i];
    if (!old && start->facts == VP_LOG_MAX_FACTS) {
        start->facts_dropped++;
        return;
    }
    if (!old) {
        old = &start->fact[start->facts++];
        *old = (struct vp_log_fact){.what = what};
        memcpy(old->place, place, strlen(place) + 1);
        set_fact(old, &scaled, row->priority, r->log->lines);
    } else if (row->priority > old->priority) {
        set_fact(old, &scaled, row->priority, r->log->lines);
    } else if (row->priority == old->priority) {
        join_fact(old, &scaled, r->log->lines);
    }
}

static void forget(struct vp_log_start *start, bool model) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < start->facts; i++) {
        enum vp_log_quantity what = start->fact[i].what;
        bool context = what == VP_LOG_KV || what == VP_LOG_STATE || what == VP_LOG_COMPUTE ||
                       what == VP_LOG_OUTPUT;
        if (!context && !(model && what == VP_LOG_MODEL))
            start->fact[kept++] = start->fact[i];
    }
    start->facts = kept;
}

/* ---- starts ---- */

static void begin_start(struct reader *r, bool strong) {
    struct vp_log_start *old = r->now;
    char version[sizeof old->version];
    bool same = old->known && old->engine == VP_ENGINE_OLLAMA; /* one server, many runners */
    r->strong = strong || r->strong;
    if (!is_sized(old))
        return;
    memcpy(version, old->version, sizeof version);
    if (is_complete(old)) {
        r->now = r->kept;
        r->kept = old;
        r->kept_known = true;
    }
    *r->now = (struct vp_log_start){.line = r->log->lines};
    if (same) {
        r->now->known = true;
        r->now->engine = VP_ENGINE_OLLAMA;
        memcpy(r->now->version, version, sizeof version);
    }
    r->strong = strong;
    r->log->starts++;
}

/* Another model or context of the process: what was read before is of a trial, or complete. */
static void begin_part(struct vp_log_start *start, bool model) {
    uint32_t *count = model ? &start->models : &start->contexts;
    if (*count > 0 && has(start, VP_LOG_COMPUTE)) {
        ++*count;
        return;
    }
    forget(start, model);
    *count = 1;
}

static void see_engine(struct vp_log_start *start, int engine) {
    if (engine == ENGINE_ANY ||
        (start->known && (start->engine == VP_ENGINE_OLLAMA || engine == VP_ENGINE_PYTORCH)))
        return;
    start->known = true;
    start->engine = (enum vp_engine_kind)engine;
}

/* ---- texts ---- */

static void copy_text(char *out, size_t size, const char *text, size_t n) {
    n = n < size - 1 ? n : size - 1;
    memcpy(out, text, n);
    out[n] = '\0';
}

static void add_args(struct vp_log_start *start, const char *text, size_t n) {
    size_t used = strlen(start->args);
    if (n + 2 > sizeof start->args - used)
        return;
    memcpy(start->args + used, text, n);
    memcpy(start->args + used + n, "\n", 2);
}

static void set_text(struct vp_log_start *start, int target, const struct vp_log_capture *c) {
    const char *comma = memchr(c->text, ',', c->n);
    char build[16];
    switch (target) {
    case TARGET_VERSION:
        copy_text(start->version, sizeof start->version, c->text, c->n);
        break;
    case TARGET_BUILD:
        copy_text(build, sizeof build, c->text, c->n);
        start->version[0] = 'b';
        copy_text(start->version + 1, sizeof start->version - 1, build, strlen(build));
        break;
    case TARGET_NAME:
        if (start->models <= 1)
            copy_text(start->model, sizeof start->model, c->text, c->n);
        break;
    case TARGET_CARD:
        copy_text(start->gpu, sizeof start->gpu, c->text, comma ? (size_t)(comma - c->text) : c->n);
        break;
    default:
        break;
    }
}

/* "ROCm0" -> GPU0, "CUDA_Host" -> GPU_Host, "CPU_Mapped" -> CPU; "" for what is not known. */
static void find_place(char out[VP_LOG_PLACE], const char *name, size_t n) {
    static const char *const BACKENDS[] = {"ROCm", "CUDA", "HIP",  "Vulkan", "SYCL",
                                           "MUSA", "MTL",  "cuda", "rocm",   "CANN"};
    out[0] = '\0';
    if (n >= 3 && memcmp(name, "CPU", 3) == 0)
        copy_text(out, VP_LOG_PLACE, "CPU", 3);
    else if (n == 5 && memcmp(name, "Metal", 5) == 0)
        copy_text(out, VP_LOG_PLACE, "GPU0", 4);
    for (size_t i = 0; i < sizeof BACKENDS / sizeof *BACKENDS && !out[0]; i++) {
        size_t k = strlen(BACKENDS[i]), digits = k;
        if (n <= k || memcmp(name, BACKENDS[i], k) != 0)
            continue;
        while (digits < n && name[digits] >= '0' && name[digits] <= '9')
            digits++;
        if (n - k == 5 && memcmp(name + k, "_Host", 5) == 0) {
            copy_text(out, VP_LOG_PLACE, "GPU_Host", 8);
        } else if (digits > k && digits - k <= 3) {
            copy_text(out, VP_LOG_PLACE, "GPU", 3);
            copy_text(out + 3, VP_LOG_PLACE - 3, name + k, digits - k);
        }
    }
}

static void index_place(char out[VP_LOG_PLACE], int64_t index) {
    unsigned i = index >= 0 && index < 1000 ? (unsigned)index : 999;
    char digits[4] = {(char)('0' + i / 100), (char)('0' + i / 10 % 10), (char)('0' + i % 10), 0};
    const char *p = i >= 100 ? digits : i >= 10 ? digits + 1 : digits + 2;
    copy_text(out, VP_LOG_PLACE, "GPU", 3);
    copy_text(out + 3, VP_LOG_PLACE - 3, p, strlen(p));
}

/* ---- messages ---- */

static void set_detail(struct vp_log_message *m, enum vp_log_quantity what, int64_t value) {
    bool sum = vp_log_quantities[what].several == VP_LOG_SUM;
    if (m->known[what] && !sum)
        return; /* the first one is the message's own */
    if (m->value[what] > INT64_MAX - value && value > 0)
        return;
    m->known[what] = true;
    m->value[what] = sum ? m->value[what] + value : value;
}

/* "ROCm1" -> 1 */
static void set_device(struct vp_log_message *m, const char *name, size_t n) {
    char place[VP_LOG_PLACE];
    int64_t index = 0;
    find_place(place, name, n);
    if (!vp_text_starts(place, "GPU") || place[3] < '0' || place[3] > '9')
        return;
    for (const char *p = place + 3; *p; p++)
        index = index * 10 + (*p - '0');
    set_detail(m, VP_LOG_DEVICE_INDEX, index);
}

/* The same again: the same kind, and no figure that differs by more than the two forms round. */
static bool repeats(const struct vp_log_message *a, const struct vp_log_message *b) {
    for (int i = 0; i < VP_LOG_QUANTITIES; i++) {
        int64_t off =
            a->value[i] > b->value[i] ? a->value[i] - b->value[i] : b->value[i] - a->value[i];
        if (i != VP_LOG_DEVICE_INDEX && a->known[i] && b->known[i] && off > 8192)
            return false;
    }
    return a->kind == b->kind;
}

static void merge_message(struct vp_log_message *into, const struct vp_log_message *from) {
    into->hip |= from->hip;
    for (int i = 0; i < VP_LOG_QUANTITIES; i++)
        if (from->known[i] && !into->known[i]) {
            into->known[i] = true;
            into->value[i] = from->value[i];
        }
}

static void close_message(struct reader *r) {
    struct vp_run_log *log = r->log;
    if (r->text_lines == 0)
        return;
    struct vp_log_message *m = &log->message[log->messages - 1];
    r->text_lines = 0;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        struct vp_log_capture c[VP_LOG_CAPTURES];
        size_t count, end, at = 0;
        while (ROWS[i].action == DETAIL && at < r->text_n &&
               vp_log_match(c, &count, &end, ROWS[i].pattern, r->text + at, r->text_n - at)) {
            set_detail(m, ROWS[i].what[0], c[0].value);
            at += end;
        }
    }
    if (log->messages > 1 && repeats(m - 1, m)) {
        merge_message(m - 1, m);
        (m - 1)->times += m->times;
        log->messages--;
    }
}

static void open_message(struct reader *r, const struct line_row *row,
                         const struct vp_log_capture *c, size_t count, const char *line, size_t n) {
    struct vp_run_log *log = r->log;
    close_message(r);
    if (log->messages == VP_LOG_MAX_MESSAGES) { /* the first half and the newest ones stay */
        enum { HALF = VP_LOG_MAX_MESSAGES / 2 };
        memmove(&log->message[HALF], &log->message[HALF + 1], (HALF - 1) * sizeof log->message[0]);
        log->messages--;
        log->messages_dropped++;
    }
    struct vp_log_message *m = &log->message[log->messages++];
    *m = (struct vp_log_message){
        .kind = (enum vp_log_message_kind)row->target, .line = log->lines, .times = 1};
    for (size_t i = 0, q = 0; i < count; i++)
        if (c[i].kind == 'p')
            set_device(m, c[i].text, c[i].n);
        else if (c[i].kind != 'w')
            set_detail(m, row->what[q++], c[i].value);
    for (size_t i = 0; i + 3 <= n && !m->hip; i++)
        m->hip = memcmp(line + i, "HIP", 3) == 0 || memcmp(line + i, "hip", 3) == 0 ||
                 memcmp(line + i, "ROC", 3) == 0;
    r->text_n = n < MESSAGE_TEXT ? n : MESSAGE_TEXT;
    memcpy(r->text, line, r->text_n);
    r->text_lines = 1;
}

/* Pasted messages are often broken over lines. */
static void extend_message(struct reader *r, const char *line, size_t n) {
    if (r->text_lines > MESSAGE_LINES || n + 1 > MESSAGE_TEXT - r->text_n) {
        close_message(r);
        return;
    }
    r->text[r->text_n++] = ' ';
    memcpy(r->text + r->text_n, line, n);
    r->text_n += n;
    r->text_lines++;
}

/* ---- devices ---- */

static void add_device(struct reader *r, const struct line_row *row, const char *place,
                       const struct vp_log_capture *c, size_t count) {
    struct vp_run_log *log = r->log;
    struct vp_log_device *d = NULL;
    char own[VP_LOG_PLACE];
    if (count == 0 || (place[0] && count == 1 && c[0].kind == 'i')) {
        r->device = count ? (int)c[0].value : 0; /* a heading */
        return;
    }
    index_place(own, r->device);
    if (!place[0])
        place = own;
    for (uint32_t i = 0; i < log->devices && !d; i++)
        if (strcmp(log->device[i].place, place) == 0)
            d = &log->device[i];
    if (!d && log->devices == VP_LOG_MAX_DEVICES)
        return;
    if (!d) {
        d = &log->device[log->devices++];
        copy_text(d->place, VP_LOG_PLACE, place, strlen(place));
    }
    size_t q = 0;
    for (size_t i = 0; i < count; i++) {
        if (c[i].kind == 'a')
            copy_text(d->partition, sizeof d->partition, c[i].text, c[i].n);
        if (c[i].kind != 'b' || c[i].value < 0)
            continue;
        enum vp_log_quantity what = row->what[q++];
        uint64_t bytes = (uint64_t)c[i].value;
        bool total = what == VP_LOG_DEVICE_TOTAL, used = what == VP_LOG_DEVICE_USED;
        d->total_known |= total;
        d->used_known |= used;
        d->gtt_known |= !total && !used;
        *(total ? &d->total_bytes : used ? &d->used_bytes : &d->gtt_bytes) = bytes;
    }
    if (q == 2)
        r->device++; /* a row of a table without indices */
}

/* ---- lines ---- */

static void take_captures(struct reader *r, const struct line_row *row, const char *place,
                          const struct vp_log_capture *c, size_t count) {
    struct vp_log_start *start = r->now;
    /* a draft model or a second context of llama.cpp is not the model's */
    bool part = row->engine == VP_ENGINE_LLAMA_CPP && (start->models > 1 || start->contexts > 1);
    size_t q = 0;
    for (size_t i = 0; i < count; i++) {
        if (c[i].kind == 'r' && row->target != TARGET_NAME && row->target != TARGET_CARD)
            add_args(start, c[i].text, c[i].n);
        else if (c[i].kind == 'w' || c[i].kind == 'r')
            set_text(start, row->target, &c[i]);
        else if (c[i].kind != 'p' && c[i].kind != 'i' && row->action == FACT) {
            enum vp_log_quantity what = row->what[q++];
            if (!(part && (row->priority > 0)) && !(start->serving && row->priority > 0))
                add_fact(r, row, what, place, &c[i]);
        }
    }
}

static void use_row(struct reader *r, const struct line_row *row, const struct vp_log_capture *c,
                    size_t count) {
    char place[VP_LOG_PLACE] = "";
    bool placed = false;
    for (size_t i = 0; i < count; i++) {
        if (c[i].kind == 'p')
            find_place(place, c[i].text, c[i].n);
        else if (c[i].kind == 'i')
            index_place(place, c[i].value);
        placed |= c[i].kind == 'p';
    }
    if (placed && !place[0])
        return; /* a device that is not known */
    if (row->action == DEVICE) {
        add_device(r, row, place, c, count);
        return;
    }
    if (row->action == START || (row->action == BEGIN && !r->strong))
        begin_start(r, row->action == START);
    see_engine(r->now, row->engine);
    if (row->action == LOADING || row->action == CONTEXT)
        begin_part(r->now, row->action == LOADING);
    if (row->action == SERVING)
        r->now->serving = true;
    take_captures(r, row, place, c, count);
}

/* Colours: ESC [ ... letter. In place. */
static size_t without_colours(char *line, size_t n) {
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        if (line[i] != '\033') {
            line[out++] = line[i];
            continue;
        }
        if (i + 1 < n && line[i + 1] == '[')
            for (i += 2; i < n && !(line[i] >= '@' && line[i] <= '~');)
                i++;
    }
    return out;
}

static void read_line(struct reader *r, char *line, size_t n) {
    size_t rows[MAX_ROWS];
    bool said = false, matched = false;
    r->log->lines++;
    n = n < VP_LOG_MAX_LINE ? n : VP_LOG_MAX_LINE;
    if (memchr(line, '\033', n))
        n = without_colours(line, n);
    while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' '))
        n--;
    size_t count = vp_log_matcher_find(r->matcher, rows, MAX_ROWS, line, n);
    for (size_t i = 0; i < count; i++) {
        const struct line_row *row = &ROWS[rows[i]];
        struct vp_log_capture c[VP_LOG_CAPTURES];
        size_t captures, end;
        if (row->action == DETAIL || (row->action == MESSAGE && said))
            continue;
        if (!vp_log_match(c, &captures, &end, row->pattern, line, n))
            continue;
        matched = true;
        said |= row->action == MESSAGE;
        if (row->action == MESSAGE)
            open_message(r, row, c, captures, line, n);
        else
            use_row(r, row, c, captures);
    }
    r->log->matched += matched;
    if (!said && r->text_lines > 0)
        extend_message(r, line, n);
}

/* ---- the file ---- */

static enum vp_status report_read(struct reader *r, const char *path) {
    vp_diag_add(r->ctx->diags, VP_D_IO, &(struct vp_pos){.file = path}, "reading failed: %s",
                strerror(errno));
    return VP_ERR_ENV;
}

/* Lines of the buffer; returns how many bytes of a line that goes on are left at its front. */
static size_t read_lines(struct reader *r, char *buffer, size_t n, bool *skipping) {
    size_t at = 0;
    for (;;) {
        char *newline = memchr(buffer + at, '\n', n - at);
        if (!newline)
            break;
        size_t length = (size_t)(newline - (buffer + at));
        if (!*skipping)
            read_line(r, buffer + at, length);
        *skipping = false;
        at += length + 1;
    }
    memmove(buffer, buffer + at, n - at);
    return n - at;
}

static enum vp_status read_file(struct reader *r, int fd, const char *path) {
    char *buffer = vp_arena_alloc(r->ctx->arena, CHUNK + 1);
    size_t have = 0;
    bool skipping = false;
    for (;;) {
        long got = r->ctx->io->read(fd, buffer + have, CHUNK - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return report_read(r, path);
        if (got == 0)
            break;
        r->log->bytes += (uint64_t)got;
        have = read_lines(r, buffer, have + (size_t)got, &skipping);
        if (have > VP_LOG_MAX_LINE) { /* its beginning says what it is */
            if (!skipping)
                read_line(r, buffer, have);
            skipping = true;
            have = 0;
        }
    }
    if (have > 0 && !skipping)
        read_line(r, buffer, have);
    close_message(r);
    return VP_OK;
}

static void finish(struct reader *r) {
    struct vp_run_log *log = r->log;
    r->now->complete = is_complete(r->now);
    r->kept->complete = r->kept_known;
    log->last_line = r->now->line;
    log->last = r->now;
    log->earlier = r->kept_known && !r->now->complete;
    log->start = log->earlier ? *r->kept : *r->now;
}

enum vp_status vp_log_read(struct vp_ctx *ctx, struct vp_run_log **out, const char *path) {
    struct vp_arena *arena = ctx->arena;
    const char *patterns[ROW_COUNT];
    struct reader *r = VP_NEW(arena, struct reader);
    uint64_t size;
    int fd;
    for (size_t i = 0; i < ROW_COUNT; i++)
        patterns[i] = ROWS[i].pattern;
    *r = (struct reader){.ctx = ctx,
                         .log = VP_NEW(arena, struct vp_run_log),
                         .now = VP_NEW(arena, struct vp_log_start),
                         .kept = VP_NEW(arena, struct vp_log_start),
                         .matcher = vp_log_matcher_make(arena, patterns, ROW_COUNT)};
    r->now->line = 1;
    r->log->path = path;
    r->log->starts = 1;
    *out = r->log;
    enum vp_status status = vp_io_open(ctx, &fd, &size, path);
    if (status != VP_OK)
        return status;
    status = read_file(r, fd, path);
    ctx->io->close(fd);
    finish(r);
    return status;
}
