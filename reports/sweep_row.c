#include "reports/sweep_row.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/report.h"
#include "reports/words.h"

enum { MOST_COLUMNS = 64 };

/* The columns are written down once, in `results`, and gone through for each of these. */
enum mode { HEAD, ROW, PICK, LIST };

struct writer {
    enum mode mode;
    struct vp_buf *out;
    const struct vp_sweep_form *form;
    bool some;          /* something stands in the line */
    const char *wanted; /* PICK */
    double found;
    bool has;
    const char **names; /* LIST: of numbers */
    struct vp_arena *arena;
    size_t count;
};

static bool is_json(const struct writer *w) { return w->form->style == VP_SWEEP_JSON; }

/* ---- cells ---- */

static void json_text(struct vp_buf *out, const char *text) {
    struct vp_json json = vp_json_begin(out);
    vp_json_text(&json, text);
}

/* Begins a cell; false when nothing is to be written into it. */
static bool begin(struct writer *w, const char *name, bool known) {
    if (w->mode == PICK || w->mode == LIST)
        return false;
    if (is_json(w) && !known)
        return false;
    if (w->some)
        vp_buf_add_n(w->out, ",", 1);
    w->some = true;
    if (w->mode == HEAD)
        vp_report_csv_cell(w->out, name);
    if (is_json(w)) {
        json_text(w->out, name);
        vp_buf_add_n(w->out, ":", 1);
    }
    return known && w->mode == ROW;
}

/* Made harmless: a line holds no line break. */
static void text(struct writer *w, const char *name, const char *value) {
    if (!begin(w, name, value != NULL))
        return;
    if (is_json(w)) {
        json_text(w->out, value);
        return;
    }
    size_t n = strcspn(value, "\r\n");
    if (value[n]) {
        char *flat = vp_arena_text(w->out->arena, value, strlen(value));
        for (char *p = flat; *p; p++)
            *p = *p == '\n' || *p == '\r' ? ' ' : *p;
        value = flat;
    }
    vp_report_csv_cell(w->out, value);
}

static void pick(struct writer *w, const char *name, double value, bool known) {
    if (w->mode == LIST)
        w->names[w->count++] = vp_arena_text(w->arena, name, strlen(name));
    if (w->mode != PICK || strcmp(name, w->wanted) != 0)
        return;
    w->has = true;
    w->found = known ? value : (double)NAN;
}

static void digits(struct vp_buf *out, uint64_t v) {
    char text[20];
    size_t at = sizeof text;
    do
        text[--at] = (char)('0' + v % 10);
    while (v /= 10);
    vp_buf_add_n(out, text + at, sizeof text - at);
}

static void count(struct writer *w, const char *name, uint64_t value, bool known) {
    pick(w, name, (double)value, known);
    if (begin(w, name, known))
        digits(w->out, value);
}

static void signed_count(struct writer *w, const char *name, int64_t value, bool known) {
    pick(w, name, (double)value, known);
    if (!begin(w, name, known))
        return;
    if (value < 0)
        vp_buf_add_n(w->out, "-", 1);
    digits(w->out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Six digits that count. */
static void real(struct writer *w, const char *name, double value, bool known) {
    char shown[32];
    known = known && isfinite(value);
    pick(w, name, value, known);
    if (!begin(w, name, known))
        return;
    snprintf(shown, sizeof shown, "%.6g", value);
    vp_buf_add(w->out, shown);
}

/* "15.365", "512.25", "3" */
static void thousandths(struct writer *w, const char *name, uint64_t milli, bool known) {
    pick(w, name, (double)milli / 1000, known);
    if (!begin(w, name, known))
        return;
    digits(w->out, milli / 1000);
    uint64_t rest = milli % 1000;
    char text[] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                   (char)('0' + rest % 10)};
    vp_buf_add_n(w->out, text, rest == 0 ? 0 : rest % 100 == 0 ? 2 : rest % 10 == 0 ? 3 : 4);
}

/* ---- columns ---- */

static void estimate(struct writer *w, const char *const names[3], const struct vp_estimate *e,
                     bool is_rate) {
    bool known = e->basis != VP_BASIS_NONE, bound = e->basis == VP_BASIS_BOUND;
    real(w, names[0], e->low, known && (!bound || !is_rate));
    real(w, names[1], e->likely, known && !bound);
    real(w, names[2], e->high, known && (!bound || is_rate));
}

static void latency(struct writer *w, const struct vp_latency *l, bool there) {
    static const char *const TTFT[3] = {"ttft_low_ms", "ttft_likely_ms", "ttft_high_ms"};
    static const char *const TPOT[3] = {"tpot_low_ms", "tpot_likely_ms", "tpot_high_ms"};
    static const char *const STEP[3] = {"step_low_ms", "step_likely_ms", "step_high_ms"};
    static const char *const PREFILL[3] = {
        "prefill_low_tokens_per_s", "prefill_likely_tokens_per_s", "prefill_high_tokens_per_s"};
    static const char *const DECODE[3] = {"decode_low_tokens_per_s", "decode_likely_tokens_per_s",
                                          "decode_high_tokens_per_s"};
    const struct vp_estimate *step = &l->step_ms;
    estimate(w, TTFT, &l->ttft_ms, false);
    estimate(w, TPOT, &l->tpot_ms, false);
    estimate(w, STEP, step, false);
    estimate(w, PREFILL, &l->prefill_tokens_per_s, true);
    estimate(w, DECODE, &l->decode_tokens_per_s, true);
    text(w, "latency_basis",
         there && step->basis != VP_BASIS_NONE ? vp_basis_name(step->basis) : NULL);
}

static const char *device_id(struct vp_device *device) {
    if (device->host)
        snprintf(device->id, sizeof device->id, "host");
    else
        snprintf(device->id, sizeof device->id, "gpu%" PRIu32, device->first_rank);
    return device->id;
}

/* "weights_bytes" */
static void component(struct writer *w, enum vp_component c, uint64_t bytes, bool known) {
    char name[40];
    const char *text = vp_component_name(c);
    size_t n = strlen(text);
    memcpy(name, text, n);
    memcpy(name + n, "_bytes", sizeof "_bytes");
    count(w, name, bytes, known);
}

/* result NULL: no column is known. */
static void results(struct writer *w, const struct vp_result *result, bool with_latency) {
    static const struct vp_result NOTHING = {.mode = NULL};
    static const struct vp_scenario NO_SCENARIO = {.name = NULL};
    const struct vp_result *r = result ? result : &NOTHING;
    const struct vp_scenario *s = result ? result->scenario : &NO_SCENARIO;
    bool there = result != NULL, pool = r->kv.known;
    struct vp_device worst = {.host = false};
    double price = s->hardware.price_per_hour;

    if (there)
        worst = r->devices[r->worst];
    text(w, "device", there ? device_id(&worst) : NULL);
    count(w, "devices", s->hardware.count, there);
    count(w, "capacity_bytes", worst.capacity_bytes, there);
    count(w, "usable_bytes", worst.usable_bytes, there);
    count(w, "need_low_bytes", worst.need.low, there);
    count(w, "need_likely_bytes", worst.need.likely, there);
    count(w, "need_high_bytes", worst.need.high, there);
    signed_count(w, "headroom_bytes", r->headroom_bytes, there);
    count(w, "reserved_bytes", worst.reserved_bytes, there);
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        component(w, (enum vp_component)c, worst.component[c].likely, there && worst.present[c]);
    count(w, "kv_tokens", r->kv.tokens, pool);
    thousandths(w, "max_concurrency", r->kv.max_concurrency_milli, pool);
    count(w, "max_context", r->kv.max_context, pool);
    real(w, "price_per_hour", price * (double)s->hardware.count, there && price > 0);
    if (with_latency)
        latency(w, &r->latency, there);
}

static void fields(struct writer *w, const char *const *values) {
    for (size_t i = 0; i < w->form->field_count; i++) {
        double n;
        const char *value = values ? values[i] : NULL;
        if (w->mode == ROW && is_json(w) && vp_parse_real(&n, value)) {
            begin(w, w->form->fields[i], true);
            vp_buf_add(w->out, vp_format_real(w->out->arena, n));
        } else {
            text(w, w->form->fields[i], value);
        }
    }
}

static void line_of(struct writer *w, const struct vp_sweep_line *line) {
    const struct vp_result *result = line ? line->result : NULL;
    const struct vp_diag *refusal = line ? line->refusal : NULL;
    const char *reason = NULL, *message = NULL;

    if (is_json(w))
        text(w, "schema", "vramplan.sweep/1");
    count(w, "row", line ? line->row : 0, true);
    fields(w, line ? line->values : NULL);
    if (result && result->reason != VP_REASON_NONE)
        reason = vp_words_reason(result->reason);
    if (line && !result) {
        reason = vp_diag_code(refusal ? refusal->id : VP_D_OVERFLOW);
        message = refusal ? refusal->message : "a size exceeds 64 bits";
    }
    text(w, "verdict", !line ? NULL : result ? vp_verdict_name(result->verdict) : "refused");
    text(w, "reason", reason);
    results(w, result, w->form->latency);
    text(w, "message", message);
    text(w, "sweep", w->form->sweep);
}

void vp_sweep_head(struct vp_buf *out, const struct vp_sweep_form *form) {
    struct writer w = {.mode = HEAD, .out = out, .form = form};
    if (form->style != VP_SWEEP_CSV)
        return;
    line_of(&w, NULL);
    vp_buf_add_n(out, "\n", 1);
}

void vp_sweep_row(struct vp_buf *out, const struct vp_sweep_form *form,
                  const struct vp_sweep_line *line) {
    struct writer w = {.mode = ROW, .out = out, .form = form};
    bool json = form->style == VP_SWEEP_JSON;
    if (json)
        vp_buf_add_n(out, "{", 1);
    line_of(&w, line);
    vp_buf_add(out, json ? "}\n" : "\n");
}

bool vp_sweep_value(double *out, const char *column, const struct vp_result *result,
                    bool with_latency) {
    struct writer w = {.mode = PICK, .wanted = column};
    results(&w, result, with_latency);
    *out = w.found;
    return w.has;
}

size_t vp_sweep_columns(struct vp_arena *arena, const char ***out, bool with_latency) {
    struct writer w = {
        .mode = LIST, .arena = arena, .names = VP_NEW_ARRAY(arena, MOST_COLUMNS, const char *)};
    results(&w, NULL, with_latency);
    *out = w.names;
    return w.count;
}
