#include "planner/import/log_measured.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"

/* ---- figures ---- */

enum engines { E_VLLM = 1, E_SGLANG = 2, E_LLAMA = 4, E_TRAIN = 8 };

struct key_row {
    unsigned engines;
    enum vp_log_quantity what;
    const char *key;
    bool pins, places;
};

static const struct key_row KEYS[] = {
    {E_VLLM | E_SGLANG, VP_LOG_WEIGHTS, "weights_gib", true, false},
    {E_VLLM, VP_LOG_ACTIVATION, "activation_peak_gib", true, false},
    {E_VLLM, VP_LOG_NON_TORCH, "non_torch_gib", true, false},
    {E_VLLM, VP_LOG_GRAPHS, "graph_gib", true, false},
    {E_VLLM, VP_LOG_AVAILABLE_KV, "available_kv_cache_gib", true, false},
    {E_SGLANG, VP_LOG_AVAILABLE_KV, "kv_gib", true, false},
    {E_VLLM, VP_LOG_BLOCKS, "num_gpu_blocks", true, false},
    {E_VLLM, VP_LOG_BLOCK_SIZE, "block_size", true, false},
    {E_VLLM, VP_LOG_KV_TOKENS, "kv_cache_tokens", false, false},
    {E_VLLM, VP_LOG_CONCURRENCY, "max_concurrency", false, false},
    {E_VLLM, VP_LOG_ESTIMATED_LENGTH, "estimated_max_model_len", false, false},
    {E_SGLANG, VP_LOG_KV_TOKENS, "max_total_num_tokens", true, false},
    {E_SGLANG, VP_LOG_STATIC_SHARE, "mem_fraction_static", true, false},
    {E_LLAMA, VP_LOG_MODEL, "model_mib", true, true},
    {E_LLAMA, VP_LOG_KV, "kv_mib", true, true},
    {E_LLAMA, VP_LOG_STATE, "state_mib", true, true},
    {E_LLAMA, VP_LOG_COMPUTE, "compute_mib", true, true},
    {E_LLAMA, VP_LOG_OUTPUT, "output_mib", true, true},
    {E_LLAMA, VP_LOG_N_CTX, "n_ctx", false, false},
    {E_TRAIN, VP_LOG_ALLOCATED, "allocated_bytes", true, false},
    {E_TRAIN, VP_LOG_ALLOCATED_PEAK, "allocated_peak_bytes", true, false},
    {E_TRAIN, VP_LOG_RESERVED_PEAK, "reserved_peak_bytes", true, false},
};

static unsigned engine_bit(enum vp_engine_kind engine) {
    if (engine == VP_ENGINE_VLLM)
        return E_VLLM;
    if (engine == VP_ENGINE_SGLANG)
        return E_SGLANG;
    return vp_engine_is_llama(engine) ? E_LLAMA : E_TRAIN;
}

struct list {
    struct vp_arena *arena;
    const struct vp_log_start *start;
    struct vp_log_figure *items;
    size_t count;
};

static const struct vp_log_fact *find(const struct list *l, enum vp_log_quantity what) {
    return vp_log_find(l->start, what, NULL);
}

static int64_t value_of(const struct list *l, enum vp_log_quantity what) {
    const struct vp_log_fact *fact = find(l, what);
    return fact ? fact->value : 0;
}

static void add_fact(struct list *l, const struct key_row *row, const struct vp_log_fact *fact) {
    struct vp_log_figure *f = &l->items[l->count++];
    *f = (struct vp_log_figure){.key = row->key,
                                .place = row->places ? fact->place : NULL,
                                .kind = vp_log_quantities[row->what].kind,
                                .value = fact->value,
                                .least = fact->least,
                                .most = fact->most,
                                .step = fact->step,
                                .seen = fact->seen,
                                .line = fact->line,
                                .pins = row->pins};
    if (f->value < 0)
        f->pins = false; /* memory that was given back, or is missing: nothing to compute with */
}

static void add_derived(struct list *l, const struct key_row *row, int64_t value, const char *how) {
    l->items[l->count++] = (struct vp_log_figure){.key = row->key,
                                                  .kind = vp_log_quantities[row->what].kind,
                                                  .value = value,
                                                  .least = value,
                                                  .most = value,
                                                  .step = (INT64_C(1) << 30) / 100,
                                                  .how = how,
                                                  .pins = row->pins && value >= 0};
}

/* vLLM 0.26 and later print weights and what is outside torch as one number, beside a peak that may
 * hold the graphs' estimate: then the terms leave exactly what is free for the cache. */
static bool peak_has_graphs(const struct list *l) {
    int64_t left = value_of(l, VP_LOG_REQUESTED) - value_of(l, VP_LOG_CONSUMED) -
                   value_of(l, VP_LOG_ACTIVATION) - value_of(l, VP_LOG_AVAILABLE_KV);
    const int64_t rounding = INT64_C(3) << 24; /* 0.047 GiB: four figures of two decimals */
    bool all = find(l, VP_LOG_REQUESTED) && find(l, VP_LOG_CONSUMED) &&
               find(l, VP_LOG_ACTIVATION) && find(l, VP_LOG_AVAILABLE_KV);
    return all && left > -rounding && left < rounding && value_of(l, VP_LOG_GRAPHS) > rounding;
}

/* Quantities that some versions print as a sum. True: done. */
static bool derive(struct list *l, const struct key_row *row) {
    int64_t weights = value_of(l, VP_LOG_WEIGHTS);
    if (row->what == VP_LOG_ACTIVATION && peak_has_graphs(l)) {
        int64_t rest = value_of(l, VP_LOG_ACTIVATION) - value_of(l, VP_LOG_GRAPHS);
        add_derived(l, row, rest > 0 ? rest : 0, "the printed peak less graphs, which it includes");
        return true;
    }
    if (find(l, row->what))
        return false;
    if (row->what == VP_LOG_ACTIVATION && find(l, VP_LOG_TORCH_PEAK) && weights > 0)
        add_derived(l, row, value_of(l, VP_LOG_TORCH_PEAK) - weights, "torch's peak less weights");
    else if (row->what == VP_LOG_NON_TORCH && find(l, VP_LOG_CONSUMED) && weights > 0)
        add_derived(l, row, value_of(l, VP_LOG_CONSUMED) - weights, "consumed less weights");
    else if (row->what == VP_LOG_AVAILABLE_KV && find(l, VP_LOG_K_BYTES))
        add_derived(l, row, value_of(l, VP_LOG_K_BYTES) + value_of(l, VP_LOG_V_BYTES),
                    "keys and values");
    else
        return false;
    return true;
}

size_t vp_log_measured(struct vp_arena *arena, struct vp_log_figure **out,
                       const struct vp_log_start *start, enum vp_engine_kind engine) {
    enum { KEY_COUNT = sizeof KEYS / sizeof *KEYS };
    unsigned bit = engine_bit(start->known ? start->engine : engine);
    struct list l = {.arena = arena, .start = start};
    l.items = VP_NEW_ARRAY(arena, VP_LOG_MAX_FACTS + KEY_COUNT, struct vp_log_figure);
    for (size_t k = 0; k < KEY_COUNT; k++) {
        if (!(KEYS[k].engines & bit) || (!KEYS[k].places && derive(&l, &KEYS[k])))
            continue;
        for (uint32_t i = 0; i < start->facts; i++) {
            bool placed = start->fact[i].place[0] != '\0';
            if (start->fact[i].what == KEYS[k].what && placed == KEYS[k].places)
                add_fact(&l, &KEYS[k], &start->fact[i]);
        }
    }
    *out = l.items;
    return l.count;
}

/* Digits behind the point that a figure was printed with. */
static int decimals_of(int64_t step, int64_t unit) {
    int n = 0;
    for (int64_t s = unit; s > step + step / 2 && n < 6; n++)
        s /= 10;
    return n;
}

const char *vp_log_figure_text(struct vp_arena *arena, const struct vp_log_figure *f) {
    static const int64_t UNITS[] = {[VP_LOG_GIB] = INT64_C(1) << 30,
                                    [VP_LOG_MIB] = INT64_C(1) << 20,
                                    [VP_LOG_COUNT] = 1,
                                    [VP_LOG_MILLI] = 1000,
                                    [VP_LOG_SHARE] = 1000000000};
    int64_t unit = vp_text_ends(f->key, "_bytes") ? 1 : UNITS[f->kind], scale = 1;
    int decimals = decimals_of(f->step, unit);
    uint64_t magnitude = f->value < 0 ? 0 - (uint64_t)f->value : (uint64_t)f->value;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    unsigned __int128 scaled =
        ((unsigned __int128)magnitude * (uint64_t)scale + (uint64_t)unit / 2) / (uint64_t)unit;
    uint64_t digits = (uint64_t)scaled;
    const char *sign = f->value < 0 ? "-" : "";
    if (decimals == 0)
        return vp_arena_printf(arena, "%s%" PRIu64, sign, digits);
    return vp_arena_printf(arena, "%s%" PRIu64 ".%0*" PRIu64, sign, digits / (uint64_t)scale,
                           decimals, digits % (uint64_t)scale);
}

/* ---- settings ---- */

/* Arguments whose field has another name. */
static const struct {
    const char *name, *path;
} OTHER_NAMES[] = {
    {"tensor_parallel_size", "parallel.tensor"},
    {"tp_size", "parallel.tensor"},
    {"pipeline_parallel_size", "parallel.pipeline"},
    {"pp_size", "parallel.pipeline"},
    {"ep_size", "parallel.expert"},
    {"max_seq_len", "engine.args.max_model_len"},
    {"kv_cache_dtype", "precision.kv_cache"},
};

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* One "name=value" or "'name': value" of a Python call or dict; nested values are passed over. */
struct argument {
    const char *name, *value;
    size_t name_n, value_n;
    bool scalar;
};

/* Past a value that begins at p; what is inside of brackets and quotes belongs to it. */
static const char *value_end(const char *p) {
    int depth = 0;
    char quote = 0;
    for (; *p && *p != '\n'; p++) {
        if (quote) {
            if (*p == '\\' && p[1])
                p++;
            else if (*p == quote)
                quote = 0;
        } else if (*p == '\'' || *p == '"') {
            quote = *p;
        } else if (strchr("([{", *p)) {
            depth++;
        } else if (strchr(")]}", *p)) {
            if (depth-- == 0)
                break;
        } else if (*p == ',' && depth == 0) {
            break;
        }
    }
    return p;
}

static bool next_argument(struct argument *out, const char **at) {
    for (const char *p = *at; *p; p++) {
        const char *name = p;
        if (!is_name(*p) || (p > *at && is_name(p[-1])))
            continue;
        while (is_name(*p))
            p++;
        size_t n = (size_t)(p - name);
        bool quoted = (*p == '\'' || *p == '"') && p[1] == ':';
        if (*p != '=' && !quoted) {
            p--;
            continue;
        }
        p += quoted ? 2 : 1;
        while (*p == ' ')
            p++;
        const char *end = value_end(p);
        *out = (struct argument){name, p, n, (size_t)(end - p), true};
        out->scalar = out->value_n > 0 && !strchr("([{<", *p);
        if (out->value_n >= 2 && (*p == '\'' || *p == '"')) {
            out->value++;
            out->value_n -= 2;
        }
        *at = end;
        return true;
    }
    return false;
}

static const char *argument_value(struct vp_arena *arena, const struct argument *a) {
    const char *text = vp_arena_text(arena, a->value, a->value_n);
    if (!a->scalar || a->value_n == 0 || vp_text_eq(text, "None"))
        return NULL;
    if (vp_text_eq(text, "True") || vp_text_eq(text, "False"))
        return text[0] == 'T' ? "true" : "false";
    return vp_text_starts(text, "torch.") ? text + 6 : text;
}

const char *vp_log_argument(struct vp_arena *arena, const struct vp_log_start *start,
                            const char *name) {
    const char *at = start->args;
    struct argument a;
    while (next_argument(&a, &at))
        if (a.name_n == strlen(name) && memcmp(a.name, name, a.name_n) == 0)
            return argument_value(arena, &a);
    return NULL;
}

struct settings {
    struct vp_ctx *ctx;
    struct vp_log_setting *items;
    size_t count, capacity;
};

/* The first one that says a field counts: arguments that were given stand before all of them. */
static void add_setting(struct settings *s, const char *path, const char *value, uint64_t line) {
    if (!value || s->count == s->capacity)
        return;
    for (size_t i = 0; i < s->count; i++)
        if (vp_text_eq(s->items[i].path, path))
            return;
    s->items[s->count++] = (struct vp_log_setting){path, value, line};
}

static const char *path_of(struct settings *s, enum vp_engine_kind engine, const char *name) {
    for (size_t i = 0; i < sizeof OTHER_NAMES / sizeof *OTHER_NAMES; i++)
        if (vp_text_eq(OTHER_NAMES[i].name, name))
            return OTHER_NAMES[i].path;
    const char *path = vp_arena_printf(s->ctx->arena, "engine.args.%s", name);
    return vp_field_find_for(engine, path) < VP_FIELD_COUNT ? path : NULL;
}

static void add_arguments(struct settings *s, const struct vp_log_start *start,
                          enum vp_engine_kind engine) {
    const char *at = start->args;
    struct argument a;
    while (next_argument(&a, &at) && s->count < s->capacity) {
        struct vp_arena_mark mark = vp_arena_mark(s->ctx->arena);
        const char *name = vp_arena_text(s->ctx->arena, a.name, a.name_n);
        const char *path = path_of(s, engine, name);
        const char *value = path ? argument_value(s->ctx->arena, &a) : NULL;
        if (value)
            add_setting(s, path, value, 0);
        else
            vp_arena_rewind(s->ctx->arena, mark);
    }
}

/* A figure of the log that is a setting. */
static void add_figure(struct settings *s, const struct vp_log_start *start,
                       enum vp_log_quantity what, const char *path) {
    const struct vp_log_fact *fact = vp_log_find(start, what, NULL);
    struct vp_log_figure f;
    if (!fact || fact->value <= 0)
        return;
    f = (struct vp_log_figure){
        .key = "", .kind = vp_log_quantities[what].kind, .value = fact->value, .step = fact->step};
    const char *text = vp_log_figure_text(s->ctx->arena, &f);
    if (f.kind == VP_LOG_GIB)
        text = vp_arena_printf(s->ctx->arena, "%s GiB", text);
    add_setting(s, path, text, fact->line);
}

size_t vp_log_settings(struct vp_ctx *ctx, struct vp_log_setting **out,
                       const struct vp_log_start *start, enum vp_engine_kind engine) {
    enum { MOST = 96 };
    struct settings s = {.ctx = ctx, .capacity = MOST};
    s.items = VP_NEW_ARRAY(ctx->arena, MOST, struct vp_log_setting);
    engine = start->known ? start->engine : engine;
    if (start->version[0])
        add_setting(&s, "engine.version", start->version, 0);
    add_arguments(&s, start, engine);
    if (engine == VP_ENGINE_VLLM) {
        add_figure(&s, start, VP_LOG_UTILIZATION, "engine.args.gpu_memory_utilization");
        add_figure(&s, start, VP_LOG_BATCHED_TOKENS, "engine.args.max_num_batched_tokens");
        add_figure(&s, start, VP_LOG_TOTAL, "hardware.memory");
    }
    if (vp_engine_is_llama(engine)) {
        add_figure(&s, start, VP_LOG_N_CTX, "engine.args.ctx_size");
        add_figure(&s, start, VP_LOG_N_UBATCH, "engine.args.ubatch_size");
        add_figure(&s, start, VP_LOG_N_SEQ_MAX, "engine.args.parallel");
        add_figure(&s, start, VP_LOG_GPU_LAYERS, "engine.args.n_gpu_layers");
    }
    *out = s.items;
    return s.count;
}
