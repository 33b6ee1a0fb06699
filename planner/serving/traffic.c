#include "planner/serving/traffic.h"

#include <math.h>

#include "planner/base/random.h"

enum { ARRIVALS, CLASSES, PROMPTS, OUTPUTS, PREFIXES, COPIES, STREAMS };

struct vp_traffic_source {
    struct vp_traffic_settings settings;
    struct vp_random random[STREAMS];
    struct vp_request_class whole;        /* where the scenario has no classes */
    const struct vp_request_class *class; /* of requests */
    uint32_t classes;
    double now_s; /* of the last arrival, before time_scale */
    uint64_t drawn, cut;
    /* a ramp: the stretch that the next arrival lies in */
    uint32_t stretch;
    /* a trace: the next row, and copies of the last that are still to come */
    const struct vp_trace_piece *piece;
    uint32_t row;
    const struct vp_trace_row *repeated;
    uint32_t copies;
    double until_s;
};

/* ---- lengths ---- */

static uint32_t whole(double tokens, double most) {
    const double cap = 1e9;

    if (most > 0)
        tokens = fmin(tokens, most);
    return (uint32_t)fmin(fmax(floor(tokens + 0.5), 1), cap);
}

/* unit in [0, 1), normal with mean 0 and deviation 1. At least 1. */
static uint32_t length_of(const struct vp_lengths *l, double unit, double normal) {
    switch (l->kind) {
    case VP_LENGTH_FIXED:
        break;
    case VP_LENGTH_UNIFORM:
        return whole(l->low + floor(unit * (l->high - l->low + 1)), l->most);
    case VP_LENGTH_EXPONENTIAL:
        return whole(-log1p(-unit) * l->mean, l->most);
    case VP_LENGTH_LOGNORMAL: /* its mean is exp(mu + sigma^2 / 2) */
        return whole(l->mean * exp(l->sigma * normal - l->sigma * l->sigma / 2), l->most);
    }
    return whole(l->mean, l->most);
}

/* Both numbers of a stream, whichever the distribution wants: the next request's are then the same
 * under all of them. */
static uint32_t draw_length(struct vp_random *random, const struct vp_lengths *lengths) {
    double unit = vp_random_unit(random);
    random->has_spare = 0;
    return length_of(lengths, unit, vp_random_normal(random));
}

static const struct vp_request_class *draw_class(struct vp_traffic_source *s) {
    double unit = vp_random_unit(&s->random[CLASSES]);
    uint32_t i = 0;

    while (i + 1 < s->classes && unit >= s->class[i].share)
        unit -= s->class[i++].share;
    return &s->class[i];
}

static void draw_request(struct vp_traffic_source *s, struct vp_request *out) {
    const struct vp_request_class *class = draw_class(s);
    uint32_t id = (uint32_t)(class - s->class);
    uint64_t group = vp_random_below(&s->random[PREFIXES], class->prefix.groups);

    *out = (struct vp_request){.prompt = draw_length(&s->random[PROMPTS], &class->prompt),
                               .output = draw_length(&s->random[OUTPUTS], &class->output),
                               .class_id = id,
                               .priority = (int32_t) class->priority};
    if (class->prefix.tokens == 0)
        return;
    uint32_t shared = whole((double)class->prefix.tokens, 0);
    out->prefix_id = ((uint64_t)id << 32) + group + 1;
    out->shared_prefix_tokens = shared;
    if (out->prompt <= shared) /* every prompt begins with it, and goes on */
        out->prompt = shared + 1;
}

/* ---- processes ---- */

/* The time at which an exponential share of arrivals `left` has come since now, where the rate goes
 * straight from `from` at now to `to` after `span`. False: it has not by then; left is less. */
static bool within(double *at, double *left, double span, double from, double to) {
    double area = span * (from + to) / 2, slope = span > 0 ? (to - from) / span : 0;

    if (!(area > *left)) {
        *left -= area;
        return false;
    }
    /* from t + slope t^2 / 2 = left, in the form that does not cancel */
    double root = sqrt(fmax(from * from + 2 * slope * *left, 0));
    *at = 2 * *left / (from + root);
    return true;
}

static double rate_at(const struct vp_rate_point *a, const struct vp_rate_point *b, double at_s) {
    double span = b->at_s - a->at_s;
    return span > 0 ? a->per_s + (b->per_s - a->per_s) * (at_s - a->at_s) / span : b->per_s;
}

static bool next_on_ramp(struct vp_traffic_source *s, double left) {
    const struct vp_arrival *a = &s->settings.traffic->arrival;
    double scale = s->settings.rate_scale, at;

    for (; s->stretch + 1 < a->points; s->stretch++) {
        const struct vp_rate_point *p = &a->point[s->stretch];
        double span = p[1].at_s - s->now_s;
        if (within(&at, &left, span, scale * rate_at(p, p + 1, s->now_s), scale * p[1].per_s)) {
            s->now_s += at;
            return true;
        }
        s->now_s = p[1].at_s;
    }
    double last = scale * a->point[a->points - 1].per_s;
    s->now_s += last > 0 ? left / last : 0;
    return last > 0;
}

/* Moves now_s to the next arrival; false: there is none. */
static bool next_arrival(struct vp_traffic_source *s) {
    const struct vp_arrival *a = &s->settings.traffic->arrival;
    struct vp_random *random = &s->random[ARRIVALS];
    double rate = a->per_s * s->settings.rate_scale, square = a->cv * a->cv;

    switch (a->kind) {
    case VP_ARRIVAL_CLOSED:
        return true;
    case VP_ARRIVAL_BATCH:
        return s->drawn < s->settings.batch;
    case VP_ARRIVAL_POISSON:
        s->now_s += vp_random_exponential(random) / rate;
        return true;
    case VP_ARRIVAL_GAMMA:
        s->now_s += vp_random_gamma(random, 1 / square) * square / rate;
        return true;
    case VP_ARRIVAL_RAMP:
        return next_on_ramp(s, vp_random_exponential(random));
    case VP_ARRIVAL_TRACE:
        break;
    }
    return false;
}

/* ---- traces ---- */

static const struct vp_trace_row *next_row(struct vp_traffic_source *s) {
    if (s->piece && s->row == s->piece->count) {
        s->piece = s->piece->next;
        s->row = 0;
    }
    return s->piece && s->row < s->piece->count ? &s->piece->row[s->row++] : NULL;
}

/* When the row behind the one given last arrives; of the last row: a mean gap later. */
static double arrival_behind(const struct vp_traffic_source *s, double at_s) {
    const struct vp_trace_piece *piece = s->piece;
    uint32_t row = s->row;

    if (row == piece->count) {
        piece = piece->next;
        row = 0;
    }
    if (piece && row < piece->count)
        return piece->row[row].at_s;
    return at_s + s->settings.trace->span_s / (double)s->settings.trace->rows;
}

/* The row that comes next, now_s at its arrival: a copy of the last one, or a new one that chance
 * keeps. */
static const struct vp_trace_row *row_or_copy(struct vp_traffic_source *s) {
    double scale = s->settings.rate_scale, whole_times = floor(scale);

    if (s->copies > 0) { /* the smallest of so many even draws between now and the next row */
        double unit = vp_random_unit(&s->random[ARRIVALS]);
        s->now_s += (s->until_s - s->now_s) * (1 - pow(1 - unit, 1.0 / s->copies));
        s->copies--;
        return s->repeated;
    }
    for (;;) {
        const struct vp_trace_row *row = next_row(s);
        if (!row)
            return NULL;
        double unit = vp_random_unit(&s->random[COPIES]);
        uint32_t times = (uint32_t)whole_times + (unit < scale - whole_times);
        if (times == 0)
            continue;
        s->now_s = row->at_s;
        s->repeated = row;
        s->copies = times - 1;
        s->until_s = s->copies ? arrival_behind(s, row->at_s) : row->at_s;
        return row;
    }
}

static bool next_of_trace(struct vp_traffic_source *s, struct vp_request *out) {
    const struct vp_trace_row *row = row_or_copy(s);

    if (!row)
        return false;
    *out = (struct vp_request){.prompt = row->prompt,
                               .output = row->output,
                               .prefix_id = row->shared ? row->prefix : 0,
                               .shared_prefix_tokens = row->shared};
    return true;
}

/* ---- the stream ---- */

static bool next(void *state, struct vp_request *out) {
    struct vp_traffic_source *s = state;
    uint32_t longest = s->settings.longest;

    if (s->settings.traffic->arrival.kind == VP_ARRIVAL_TRACE) {
        if (!next_of_trace(s, out))
            return false;
    } else {
        if (!next_arrival(s))
            return false;
        draw_request(s, out);
    }
    out->arrival_us = s->now_s * s->settings.time_scale * 1e6;
    if (longest > out->prompt && out->output > longest - out->prompt) {
        out->output = longest - out->prompt;
        s->cut++;
    }
    s->drawn++;
    return true;
}

struct vp_traffic_source *vp_traffic_open(struct vp_arena *arena,
                                          const struct vp_traffic_settings *settings) {
    struct vp_traffic_source *s = VP_NEW(arena, struct vp_traffic_source);
    const struct vp_traffic *t = settings->traffic;

    s->settings = *settings;
    for (uint64_t i = 0; i < STREAMS; i++)
        vp_random_seed(&s->random[i], settings->seed, i + 1);
    s->whole = (struct vp_request_class){
        .share = 1, .prompt = t->prompt, .output = t->output, .prefix = t->prefix};
    s->class = t->classes ? t->class : &s->whole;
    s->classes = t->classes ? t->classes : 1;
    s->piece = settings->trace ? settings->trace->first : NULL;
    return s;
}

struct vp_request_stream vp_traffic_stream(struct vp_traffic_source *source) {
    return (struct vp_request_stream){next, source};
}

uint64_t vp_traffic_cut(const struct vp_traffic_source *source) { return source->cut; }

/* ---- figures ---- */

/* Arrivals in the first `seconds` of a ramp. */
static double on_ramp(const struct vp_arrival *a, double seconds) {
    double sum = 0, now = 0;

    for (uint32_t i = 0; i + 1 < a->points && now < seconds; i++) {
        double end = fmin(a->point[i + 1].at_s, seconds);
        sum += (end - now) *
               (rate_at(&a->point[i], &a->point[i + 1], now) +
                rate_at(&a->point[i], &a->point[i + 1], end)) /
               2;
        now = end;
    }
    return sum + fmax(seconds - now, 0) * a->point[a->points - 1].per_s;
}

double vp_traffic_rate(const struct vp_traffic_settings *settings, double seconds) {
    const struct vp_arrival *a = &settings->traffic->arrival;
    double scale = settings->rate_scale / settings->time_scale,
           own = seconds / settings->time_scale;

    switch (a->kind) {
    case VP_ARRIVAL_POISSON:
    case VP_ARRIVAL_GAMMA:
        return a->per_s * scale;
    case VP_ARRIVAL_RAMP:
        return own > 0 ? on_ramp(a, own) / own * scale : 0;
    case VP_ARRIVAL_TRACE:
        return settings->trace->span_s > 0
                   ? (double)settings->trace->rows / settings->trace->span_s * scale
                   : 0;
    case VP_ARRIVAL_CLOSED:
    case VP_ARRIVAL_BATCH:
        break;
    }
    return 0;
}

static double mean_of(const struct vp_lengths *l) {
    return l->most > 0 ? fmin(l->mean, l->most) : l->mean;
}

void vp_traffic_means(const struct vp_traffic_settings *settings, double *prompt, double *output) {
    const struct vp_traffic *t = settings->traffic;
    const struct vp_trace *trace = settings->trace;

    *prompt = t->classes ? 0 : mean_of(&t->prompt);
    *output = t->classes ? 0 : mean_of(&t->output);
    for (uint32_t i = 0; i < t->classes; i++) {
        *prompt += t->class[i].share * mean_of(&t->class[i].prompt);
        *output += t->class[i].share * mean_of(&t->class[i].output);
    }
    if (t->arrival.kind == VP_ARRIVAL_TRACE && trace->rows > 0) {
        *prompt = trace->prompt_tokens / (double)trace->rows;
        *output = trace->output_tokens / (double)trace->rows;
    }
}
