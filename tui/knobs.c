#include "tui/knobs.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "reports/words.h"

/* ---- the table ---- */

enum {
    VLLM = 1 << VP_ENGINE_VLLM,
    SGLANG = 1 << VP_ENGINE_SGLANG,
    GENERATE = 1 << VP_ENGINE_TRANSFORMERS, /* its generate */
    LLAMA = 1 << VP_ENGINE_LLAMA_CPP | 1 << VP_ENGINE_OLLAMA,
    TORCH = 1 << VP_ENGINE_PYTORCH,
    MEGATRON = 1 << VP_ENGINE_MEGATRON,
    DEEPSPEED = 1 << VP_ENGINE_DEEPSPEED,
    TRAINER = 1 << VP_ENGINE_KINDS, /* transformers' Trainer, an engine of its own here */
    SERVE = VLLM | SGLANG | GENERATE,
    TRAIN = TORCH | TRAINER | MEGATRON | DEEPSPEED,
    ALL = SERVE | LLAMA | TRAIN
};

/* The model is no field. */
#define VP_F_MODEL VP_FIELD_COUNT

static const struct row {
    const char *label, *unit;
    enum vp_field field;
    enum vp_knob_how how;
    int engines;
    const char *values;
} ROWS[VP_KNOB_COUNT] = {
#define X(name, field, label, unit, how, engines, values)                                          \
    [VP_KNOB_##name] = {label, unit, VP_F_##field, VP_KNOB_##how, engines, values},
#include "tui/knobs.def"
#undef X
};

static int engine_bit(const struct vp_scenario *s) {
    bool trainer = s->training && s->engine.kind == VP_ENGINE_TRANSFORMERS;
    return trainer ? TRAINER : 1 << s->engine.kind;
}

/* ---- what a scenario has ---- */

static uint64_t number_of(const struct vp_scenario *s, enum vp_field field) {
    return *(const uint64_t *)(const void *)((const char *)s + vp_field_info(field)->offset);
}

static const char *path_of(const struct vp_scenario *s, enum vp_field field) {
    return field == VP_F_MODEL ? "model" : vp_field_path_for(s->engine.kind, field);
}

static bool has(const struct vp_scenario *s, enum vp_knob_id id) {
    switch (id) {
    case VP_KNOB_EXPERT:
    case VP_KNOB_CPU_MOE:
        return vp_model_has_experts(s->model);
    case VP_KNOB_LORA_RANK:
        return s->train.lora.enabled;
    case VP_KNOB_DEVICES: /* unlike cards are listed one by one */
    case VP_KNOB_GPU:
        return s->hardware.group_count == 0;
    default:
        return true;
    }
}

static const char *value_of(struct vp_arena *arena, const struct vp_scenario *s,
                            enum vp_field field) {
    return field == VP_F_MODEL ? vp_words_model(s) : vp_field_value(arena, s, field);
}

static const char *shown_of(struct vp_arena *arena, const struct vp_scenario *s,
                            const struct vp_knob *knob, enum vp_field field) {
    switch (knob->how) {
    case VP_KNOB_TOKENS:
    case VP_KNOB_NUMBER:
        return vp_format_count(arena, number_of(s, field));
    case VP_KNOB_SHARE:
        return vp_words_percent(arena, number_of(s, field));
    case VP_KNOB_SWITCH:
        return vp_text_eq(knob->value, "true") ? "on" : "off";
    case VP_KNOB_WORDS:
        break;
    }
    if (field == VP_F_WEIGHTS && vp_text_eq(knob->value, "checkpoint"))
        return vp_arena_printf(arena, "as stored: %s", vp_words_weights(s));
    if (field == VP_F_ENGINE && s->engine.version_text)
        return vp_arena_printf(arena, "%s %s", knob->value, s->engine.version_text);
    return knob->value;
}

bool vp_knob_of(struct vp_arena *arena, struct vp_knob *out, const struct vp_scenario *now,
                enum vp_knob_id id) {
    const struct row *row = &ROWS[id];
    const char *path = path_of(now, row->field);

    if (!(row->engines & engine_bit(now)) || !path || !has(now, id))
        return false;
    *out = (struct vp_knob){
        .id = id, .how = row->how, .label = row->label, .unit = row->unit, .path = path};
    out->value = value_of(arena, now, row->field);
    out->shown = shown_of(arena, now, out, row->field);
    out->origin = row->field == VP_F_MODEL ? VP_ORIGIN_FILE : now->source[row->field].origin;
    return true;
}

uint32_t vp_knobs_of(struct vp_arena *arena, struct vp_knob *out, const struct vp_scenario *now) {
    uint32_t count = 0;

    for (int id = 0; id < VP_KNOB_COUNT; id++)
        count += vp_knob_of(arena, &out[count], now, (enum vp_knob_id)id);
    return count;
}

/* ---- candidates ---- */

/* The settings that may be the answer, best first. */
struct tries {
    struct vp_arena *arena;
    const struct vp_scenario *now;
    struct vp_lever_value *out;
    uint32_t count;
};

enum { SETS = 12 };

static struct vp_lever_value *add(struct tries *t) {
    static struct vp_lever_value none; /* never read */
    if (t->count == VP_KNOB_TRIES)
        return &none;
    struct vp_lever_value *v = &t->out[t->count++];
    *v = (struct vp_lever_value){.set = VP_NEW_ARRAY(t->arena, SETS, struct vp_setting)};
    return v;
}

static void put(struct vp_lever_value *v, const char *path, const char *value) {
    if (v->set)
        v->set[v->sets++] = (struct vp_setting){path, value, path};
}

static void put_number(struct tries *t, struct vp_lever_value *v, const char *path, uint64_t n) {
    put(v, path, vp_format_u64(t->arena, n));
}

static void try_text(struct tries *t, enum vp_field field, const char *value) {
    struct vp_lever_value *v = add(t);
    put(v, path_of(t->now, field), value);
}

/* ---- layouts ---- */

struct layout {
    uint64_t tensor, pipeline, data;
};

static struct layout layout_of(const struct vp_scenario *s) {
    const struct vp_parallel *p = &s->parallel;
    return (struct layout){vp_max(p->tensor, 1), vp_max(p->pipeline, 1), vp_max(p->data, 1)};
}

static uint64_t devices_of(const struct vp_scenario *s, struct layout l) {
    struct vp_sum n = vp_sum_mul(vp_sum_mul(vp_sum(l.tensor), l.pipeline), l.data);
    n = vp_sum_mul(n, s->training ? vp_max(s->parallel.context, 1) : 1);
    return n.overflow ? UINT64_MAX : n.v;
}

/* As many devices per machine as now; nodes of eight where nothing is said. */
static void put_nodes(struct tries *t, struct vp_lever_value *v, uint64_t count) {
    const struct vp_hardware *h = &t->now->hardware;
    bool given = vp_scenario_is_given(t->now, VP_F_NODES) && h->nodes > 0;
    uint64_t each = given && h->nodes > 1 ? vp_max(h->count / h->nodes, 1) : 8;
    uint64_t nodes = count % each == 0 ? count / each : 1;

    if (count < each)
        nodes = 1;
    if (nodes != vp_max(h->nodes, 1))
        put_number(t, v, "hardware.nodes", nodes);
}

/* The global batch stays where the ranks divide it; else every rank keeps what it has. */
static void put_batch(struct tries *t, struct vp_lever_value *v, uint64_t micro, uint64_t data) {
    const struct vp_scenario *s = t->now;
    uint64_t each = micro * data, global = s->train.global_batch;

    if (!s->training || each == 0)
        return;
    if (!vp_scenario_is_given(s, VP_F_GLOBAL_BATCH) || global % each != 0)
        global = each * vp_max(s->train.accumulation, 1);
    if (vp_scenario_is_given(s, VP_F_GLOBAL_BATCH))
        put_number(t, v, "train.global_batch", global);
    if (vp_scenario_is_given(s, VP_F_ACCUMULATION))
        put_number(t, v, "train.gradient_accumulation", global / each);
    if (vp_scenario_is_given(s, VP_F_MICROBATCHES))
        put_number(t, v, "parallel.microbatches", global / each);
}

static void try_layout(struct tries *t, struct layout l) {
    const struct vp_scenario *s = t->now;
    struct layout old = layout_of(s);
    uint64_t count = devices_of(s, l), all = s->engine.kind == VP_ENGINE_VLLM ? l.data : 1;
    struct vp_lever_value *v = add(t);

    if (count != s->hardware.count)
        put_number(t, v, "hardware.count", count);
    if (l.tensor != old.tensor)
        put_number(t, v, "parallel.tensor", l.tensor);
    if (l.pipeline != old.pipeline)
        put_number(t, v, "parallel.pipeline", l.pipeline);
    if (l.data != old.data)
        put_number(t, v, "parallel.data", l.data);
    if (s->parallel.expert > 1 && s->parallel.expert == vp_expert_ranks(s))
        put_number(t, v, "parallel.expert", l.tensor * all);
    put_nodes(t, v, count);
    if (l.data != old.data)
        put_batch(t, v, s->train.micro_batch, l.data);
}

/* n devices: a server divides its matrices further, a training run takes more of the batch. */
static bool grown(const struct vp_scenario *s, struct layout *out, uint64_t n) {
    struct layout l = layout_of(s);
    uint64_t *grows = s->training ? &l.data : &l.tensor;

    *grows = 1;
    uint64_t rest = devices_of(s, l);
    if (n == 0 || rest == 0 || n % rest != 0)
        return false;
    *grows = n / rest;
    *out = l;
    return true;
}

/* Cards of one kind whose ranks are all of them: what the layouts above are about. */
static bool is_divided(const struct vp_scenario *s) {
    return !vp_engine_is_llama(s->engine.kind) && s->parallel.attention_data <= 1 &&
           s->hardware.count > 0;
}

static void try_count(struct tries *t, uint64_t n, bool any) {
    const struct vp_scenario *s = t->now;
    struct layout l;

    if (!is_divided(s)) {
        try_text(t, VP_F_COUNT, vp_format_u64(t->arena, n));
        return;
    }
    if (grown(s, &l, n))
        try_layout(t, l);
    uint64_t context = s->training ? vp_max(s->parallel.context, 1) : 1, rest = n / context;
    enum { MOST = 4096 }; /* devices that layouts are searched for */
    if (!any || n % context != 0 || rest > MOST)
        return;
    for (uint64_t tensor = rest; tensor >= 1; tensor--)
        for (uint64_t data = 1; rest % tensor == 0 && data <= rest / tensor; data++)
            if (rest / tensor % data == 0)
                try_layout(t, (struct layout){tensor, rest / tensor / data, data});
}

static void try_ranks(struct tries *t, enum vp_knob_id id, uint64_t n) {
    struct layout l = layout_of(t->now);

    if (!is_divided(t->now)) {
        try_text(t, ROWS[id].field, vp_format_u64(t->arena, n));
        return;
    }
    if (id == VP_KNOB_TENSOR)
        l.tensor = n;
    else if (id == VP_KNOB_PIPELINE)
        l.pipeline = n;
    else
        l.data = n;
    try_layout(t, l);
}

/* ---- numbers ---- */

/* What one step of a number is worth. */
static uint64_t unit_of(const struct vp_scenario *s, enum vp_knob_id id) {
    if (id == VP_KNOB_GLOBAL_BATCH)
        return vp_max(s->train.micro_batch, 1) * vp_max(s->parallel.data, 1);
    return 1;
}

/* A number beyond which nothing changes any more; 0: none. */
static uint64_t most_of(const struct vp_scenario *s, enum vp_knob_id id) {
    if (id == VP_KNOB_GPU_LAYERS)
        return s->model->layer_count + 1;
    return id == VP_KNOB_CPU_MOE ? s->model->layer_count : 0;
}

static void try_number(struct tries *t, enum vp_knob_id id, uint64_t n) {
    const struct vp_scenario *s = t->now;

    switch (id) {
    case VP_KNOB_CONTEXT:
    case VP_KNOB_CONCURRENCY:
        *add(t) = vp_lever_workload(t->arena, s, ROWS[id].field, n);
        break;
    case VP_KNOB_MICRO_BATCH: {
        struct vp_lever_value *v = add(t);
        put_number(t, v, "train.micro_batch", n);
        put_batch(t, v, n, vp_max(s->parallel.data, 1));
        break;
    }
    case VP_KNOB_GLOBAL_BATCH: {
        struct vp_lever_value *v = add(t);
        uint64_t each = unit_of(s, id);
        put_number(t, v, "train.global_batch", n);
        if (vp_scenario_is_given(s, VP_F_ACCUMULATION))
            put_number(t, v, "train.gradient_accumulation", vp_max(n / each, 1));
        if (vp_scenario_is_given(s, VP_F_MICROBATCHES))
            put_number(t, v, "parallel.microbatches", vp_max(n / each, 1));
        break;
    }
    case VP_KNOB_DEVICES:
        try_count(t, n, false);
        break;
    case VP_KNOB_TENSOR:
    case VP_KNOB_PIPELINE:
    case VP_KNOB_DATA:
        try_ranks(t, id, n);
        break;
    default:
        try_text(t, ROWS[id].field, vp_format_u64(t->arena, n));
        break;
    }
}

static bool is_of_layout(enum vp_knob_id id) {
    return id == VP_KNOB_DEVICES || id == VP_KNOB_TENSOR || id == VP_KNOB_PIPELINE ||
           id == VP_KNOB_DATA || id == VP_KNOB_EXPERT;
}

/* Counts of ranks are walked to the next one that the model can be divided by, up to twice as many
 * or down to one. */
static void step_number(struct tries *t, enum vp_knob_id id, int by) {
    uint64_t now = number_of(t->now, ROWS[id].field), unit = unit_of(t->now, id);
    uint64_t most = most_of(t->now, id), start = most > 0 ? vp_min(now, most) : now;
    enum { STEPS = 64 };
    bool large = by < -1 || by > 1, walks = is_of_layout(id) && !large;

    if (by > 0 && most > 0 && now >= most)
        return;
    for (uint64_t k = 1; k <= (walks ? STEPS : 1); k++) {
        uint64_t n;
        if (by > 0 && (now > UINT64_MAX / 4 || (walks && k > vp_max(now, 1))))
            return;
        if (by > 0)
            n = large ? vp_max(2 * start, unit) : start + k * unit;
        else if (large)
            n = start / 2 / unit * unit;
        else
            n = start >= k * unit ? start - k * unit : 0;
        if (most > 0 && n > most)
            n = most;
        bool none = vp_field_info(ROWS[id].field)->kind == VP_KIND_NUMBER && id != VP_KNOB_DEVICES;
        if (n == now || (n == 0 && !none))
            return;
        try_number(t, id, n);
    }
    if (id == VP_KNOB_DEVICES && large && t->count > 0)
        try_count(t, by > 0 ? 2 * start : start / 2, true);
}

/* To the next multiple of 1024, of 128 below 2048; to the next power of two. */
static void step_tokens(struct tries *t, enum vp_knob_id id, int by) {
    uint64_t now = number_of(t->now, ROWS[id].field), n;
    bool large = by < -1 || by > 1;

    if (now > UINT64_MAX / 4)
        return;
    if (large) {
        uint64_t power = 1;
        while (power <= now / 2)
            power *= 2;
        n = by > 0 ? 2 * power : power < now ? power : power / 2;
    } else {
        uint64_t unit = now >= 2048 || (now >= 1024 && by > 0) ? 1024 : 128;
        n = by > 0 ? (now / unit + 1) * unit : (now - (now > 0)) / unit * unit;
    }
    if (n > 0 && n != now)
        try_number(t, id, n);
}

static void step_share(struct tries *t, enum vp_knob_id id, int by) {
    enum { HUNDREDTH = 10000000, WHOLE = 1000000000 };
    uint64_t now = number_of(t->now, ROWS[id].field), unit = HUNDREDTH;
    uint64_t n = by > 0 ? now / unit + (uint64_t)by : now / unit + (now % unit != 0);

    if (by < 0)
        n = n > (uint64_t)-by ? n - (uint64_t)-by : 1;
    n = vp_min(n, WHOLE / HUNDREDTH);
    if (n * unit != now)
        try_text(t, ROWS[id].field,
                 n == WHOLE / HUNDREDTH ? "1" : vp_arena_printf(t->arena, "0.%02" PRIu64, n));
}

/* ---- words ---- */

static void add_gpus(struct vp_arena *arena, struct vp_knob_choice *out,
                     const struct vp_catalogue *catalogue) {
    for (size_t i = 0; i < catalogue->gpus.count; i++) {
        const struct vp_gpu *gpu = &catalogue->gpus.items[i];
        out[i].value = gpu->id;
        out[i].shown = gpu->gtt_ppb > 0
                           ? vp_arena_printf(arena, "%s, %s", gpu->id, "memory of the host")
                           : vp_arena_printf(arena, "%s, %s GiB", gpu->id,
                                             vp_format_gib(arena, gpu->driver_mib << 20, 0));
    }
}

static uint32_t list_words(struct vp_arena *arena, struct vp_knob_choice **out,
                           const struct vp_catalogue *catalogue, const char *values) {
    bool gpus = vp_text_eq(values, "@gpus"), models = vp_text_eq(values, "@models");
    size_t count = gpus                             ? catalogue->gpus.count
                   : models                         ? catalogue->model_count
                   : vp_text_eq(values, "@engines") ? catalogue->engine_count
                                                    : strlen(values) + 1;
    struct vp_knob_choice *all = VP_NEW_ARRAY(arena, count, struct vp_knob_choice);

    *out = all;
    if (gpus) {
        add_gpus(arena, all, catalogue);
        return (uint32_t)count;
    }
    if (*values == '@') {
        for (size_t i = 0; i < count; i++)
            all[i].value = all[i].shown = models ? catalogue->models[i] : catalogue->engines[i];
        return (uint32_t)count;
    }
    count = 0;
    for (const char *at = values; *at;) {
        size_t n = strcspn(at, "|");
        all[count].value = all[count].shown = vp_arena_text(arena, at, n);
        count++;
        at += n + (at[n] != '\0');
    }
    return (uint32_t)count;
}

static const char *newest(const struct vp_catalogue *catalogue, const char *engine) {
    for (size_t i = 0; i < catalogue->engine_count; i++)
        if (vp_text_eq(catalogue->engines[i], engine))
            return catalogue->newest[i];
    return NULL;
}

/* Another engine's version means nothing to this one. */
static void try_word(struct tries *t, enum vp_knob_id id, const struct vp_catalogue *catalogue,
                     const char *word) {
    const char *version =
        id == VP_KNOB_ENGINE && catalogue && vp_scenario_is_given(t->now, VP_F_VERSION)
            ? newest(catalogue, word)
            : NULL;
    struct vp_lever_value *v = add(t);

    put(v, path_of(t->now, ROWS[id].field), word);
    if (version)
        put(v, "engine.version", version);
}

uint32_t vp_knob_words(struct vp_arena *arena, struct vp_knob_choice **out,
                       const struct vp_scenario *now, const struct vp_catalogue *catalogue,
                       enum vp_knob_id id) {
    struct vp_knob_choice *all = NULL;
    uint32_t count = 0;

    *out = NULL;
    if (ROWS[id].how == VP_KNOB_WORDS) {
        count = list_words(arena, &all, catalogue, ROWS[id].values);
    } else if (ROWS[id].how == VP_KNOB_SWITCH) {
        all = VP_NEW_ARRAY(arena, 2, struct vp_knob_choice);
        all[count++] = (struct vp_knob_choice){.value = "false", .shown = "off"};
        all[count++] = (struct vp_knob_choice){.value = "true", .shown = "on"};
    } else {
        return 0;
    }
    const char *value = value_of(arena, now, ROWS[id].field);
    if (id == VP_KNOB_GPU)
        value = now->hardware.gpu.id; /* it may have been said by an alias */
    for (uint32_t i = 0; i < count; i++)
        all[i].present = vp_name_eq(all[i].value, value);
    *out = all;
    return count;
}

static void step_words(struct tries *t, enum vp_knob_id id, const struct vp_catalogue *catalogue,
                       int by) {
    struct vp_knob_choice *all;
    int count = (int)vp_knob_words(t->arena, &all, t->now, catalogue, id), at = -1;

    for (int i = 0; i < count; i++)
        if (all[i].present)
            at = i;
    if (at < 0 && by < 0)
        at = count;
    for (int i = at + (by > 0 ? 1 : -1); i >= 0 && i<count; i += by> 0 ? 1 : -1)
        try_word(t, id, catalogue, all[i].value);
}

/* ---- steps and typed values ---- */

uint32_t vp_knob_steps(struct vp_arena *arena, struct vp_lever_value out[VP_KNOB_TRIES],
                       const struct vp_scenario *now, const struct vp_catalogue *catalogue,
                       enum vp_knob_id id, int by) {
    struct tries t = {arena, now, out, 0};

    switch (ROWS[id].how) {
    case VP_KNOB_TOKENS:
        step_tokens(&t, id, by);
        break;
    case VP_KNOB_NUMBER:
        step_number(&t, id, by);
        break;
    case VP_KNOB_SHARE:
        step_share(&t, id, by);
        break;
    case VP_KNOB_WORDS:
    case VP_KNOB_SWITCH:
        step_words(&t, id, catalogue, by);
        break;
    }
    return t.count;
}

static const char *switch_word(const char *text) {
    if (vp_text_eq(text, "on") || vp_text_eq(text, "yes"))
        return "true";
    return vp_text_eq(text, "off") || vp_text_eq(text, "no") ? "false" : text;
}

/* "90%" is 0.9 */
static const char *share_text(struct vp_arena *arena, const char *text) {
    size_t n = strlen(text);
    double v;
    if (n < 2 || text[n - 1] != '%' || !vp_parse_real(&v, vp_arena_text(arena, text, n - 1)))
        return text;
    return vp_format_real(arena, v / 100);
}

uint32_t vp_knob_typed(struct vp_arena *arena, struct vp_lever_value out[VP_KNOB_TRIES],
                       const struct vp_scenario *now, const struct vp_catalogue *catalogue,
                       enum vp_knob_id id, const char *text) {
    struct tries t = {arena, now, out, 0};
    uint64_t n = 0;

    switch (ROWS[id].how) {
    case VP_KNOB_TOKENS:
    case VP_KNOB_NUMBER:
        if (!vp_parse_tokens(&n, text) || n == 0)
            try_text(&t, ROWS[id].field, text); /* refused with what is wanted */
        else if (id == VP_KNOB_DEVICES)
            try_count(&t, n, true);
        else
            try_number(&t, id, n);
        break;
    case VP_KNOB_SHARE:
        try_text(&t, ROWS[id].field, share_text(arena, text));
        break;
    case VP_KNOB_SWITCH:
        try_text(&t, ROWS[id].field, switch_word(text));
        break;
    case VP_KNOB_WORDS:
        try_word(&t, id, catalogue, text);
        break;
    }
    return t.count;
}
