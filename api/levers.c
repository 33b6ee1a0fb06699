#include "api/levers.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/model/requantise.h"

enum {
    VLLM = 1 << VP_ENGINE_VLLM,
    SGLANG = 1 << VP_ENGINE_SGLANG,
    HF = 1 << VP_ENGINE_TRANSFORMERS, /* its generate */
    TORCH = 1 << VP_ENGINE_PYTORCH,
    MEGATRON = 1 << VP_ENGINE_MEGATRON,
    DEEPSPEED = 1 << VP_ENGINE_DEEPSPEED,
    TRAINER = 1 << VP_ENGINE_KINDS, /* transformers' Trainer, an engine of its own here */
    SERVE = VLLM | SGLANG | HF,
    TRAIN = TORCH | TRAINER | MEGATRON | DEEPSPEED
};

static const struct row {
    const char *name;
    uint32_t engines;
    enum vp_field field;
    enum vp_lever_how how;
    const char *values, *quality, *speed, *money, *what;
} ROWS[VP_LEVER_COUNT] = {
#define X(name, text, engines, field, how, values, quality, speed, money, what)                    \
    [VP_LEVER_##                                                                                   \
        name] = {text, engines, VP_F_##field, VP_HOW_##how, values, quality, speed, money, what},
#include "api/levers.def"
#undef X
};

static uint32_t engine_bit(const struct vp_scenario *s) {
    bool trainer = s->training && s->engine.kind == VP_ENGINE_TRANSFORMERS;
    return trainer ? TRAINER : 1U << s->engine.kind;
}

static const char *path_of(const struct vp_scenario *s, enum vp_field field) {
    return vp_field_path_for(s->engine.kind, field);
}

static uint64_t present_number(const struct vp_scenario *s, enum vp_field field) {
    return *(const uint64_t *)(const void *)((const char *)s + vp_field_info(field)->offset);
}

/* ---- making values ---- */

enum { SETS = 8 };

static struct vp_lever_value value_new(struct vp_arena *arena) {
    return (struct vp_lever_value){.set = VP_NEW_ARRAY(arena, SETS, struct vp_setting)};
}

static void put(struct vp_lever_value *v, const char *path, const char *text) {
    v->set[v->sets++] = (struct vp_setting){.path = path, .value = text, .key = path};
}

/* A value may be added while the lever's list has room. */
enum { VALUES = 512 };

static void add(struct vp_lever *lever, struct vp_lever_value v) {
    if (lever->values < VALUES)
        lever->value[lever->values++] = v;
}

static void add_word(struct vp_arena *arena, struct vp_lever *lever, const struct vp_scenario *s,
                     const char *word) {
    struct vp_lever_value v = value_new(arena);

    v.from = vp_field_value(arena, s, ROWS[lever->id].field);
    v.to = word;
    put(&v, lever->field, word);
    if (!vp_text_eq(v.from, v.to))
        add(lever, v);
}

/* Numbers are graded by how far they are from the present one, words behind '<' by their order. */
static void add_words(struct vp_arena *arena, struct vp_lever *lever, const struct vp_scenario *s) {
    double now = 0, n = 0;
    bool numbers = vp_parse_real(&now, vp_field_value(arena, s, ROWS[lever->id].field));

    for (const char *at = ROWS[lever->id].values; *at;) {
        size_t length = strcspn(at, "|<");
        uint32_t before = lever->values;
        add_word(arena, lever, s, vp_arena_text(arena, at, length));
        at += length;
        if (lever->values > before && numbers && vp_parse_real(&n, lever->value[before].to)) {
            lever->value[before].size = fabs(n - now);
            lever->value[before].grade = 1 + (uint32_t)lround(1000 * fabs(n - now));
        } else if (lever->values > before && (*at == '<' || (at > ROWS[lever->id].values + length &&
                                                             at[-(ptrdiff_t)length - 1] == '<'))) {
            lever->value[before].grade = lever->values;
            lever->value[before].size = lever->values;
        }
        if (lever->values > before)
            lever->value[before].alone = vp_text_eq(lever->value[before].to, "optimal");
        at += *at != '\0';
    }
}

struct vp_lever_value vp_lever_workload(struct vp_arena *arena, const struct vp_scenario *base,
                                        enum vp_field field, uint64_t n) {
    struct vp_lever_value v = value_new(arena);
    const char *longest = path_of(base, VP_F_MAX_MODEL_LEN);
    const char *sequences = path_of(base, VP_F_MAX_NUM_SEQS);

    v.from = vp_field_value(arena, base, field);
    v.to = vp_format_u64(arena, n);
    v.number = n;
    put(&v, path_of(base, field), v.to);
    if (field == VP_F_MICRO_BATCH)
        put(&v, "train.global_batch",
            vp_format_u64(arena, n * vp_max(base->parallel.data, 1) *
                                     vp_max(base->train.accumulation, 1)));
    if (field == VP_F_CONTEXT && longest && vp_scenario_is_given(base, VP_F_MAX_MODEL_LEN))
        put(&v, longest, v.to);
    if (field == VP_F_CONCURRENCY && sequences && base->engine.kind == VP_ENGINE_VLLM &&
        n > base->engine.max_num_seqs * vp_sequence_ranks(base))
        put(&v, sequences, vp_format_u64(arena, vp_ceil_div(n, vp_sequence_ranks(base))));
    return v;
}

struct vp_lever_value vp_lever_number(struct vp_arena *arena, const struct vp_lever *lever,
                                      const struct vp_scenario *base, uint64_t n) {
    struct vp_lever_value v = vp_lever_workload(arena, base, ROWS[lever->id].field, n);

    v.size = log2((double)lever->present / (double)n);
    return v;
}

static void add_halves(struct vp_arena *arena, struct vp_lever *lever, const struct vp_scenario *s,
                       uint64_t least) {
    for (uint64_t n = lever->present / 2; n >= least && n > 0; n /= 2) {
        uint64_t whole = n - n % lever->step;
        if (whole == 0)
            break;
        struct vp_lever_value v = vp_lever_number(arena, lever, s, whole);
        v.grade = lever->values + 1;
        add(lever, v);
    }
}

/* ---- layouts ---- */

/* Passes of a step that keep the global batch on so many data-parallel ranks; 0: there are none. */
static uint64_t passes(const struct vp_scenario *s, uint64_t micro, uint64_t data) {
    uint64_t each = micro * data;

    return each > 0 && s->train.global_batch % each == 0 ? s->train.global_batch / each : 0;
}

/* The global batch is said, and the number of passes where the scenario says one. */
static bool put_batch(struct vp_arena *arena, struct vp_lever_value *v, const struct vp_scenario *s,
                      uint64_t micro, uint64_t data) {
    uint64_t each = passes(s, micro, data);

    if (each == 0)
        return false;
    put(v, "train.global_batch", vp_format_u64(arena, s->train.global_batch));
    if (vp_scenario_is_given(s, VP_F_ACCUMULATION))
        put(v, "train.gradient_accumulation", vp_format_u64(arena, each));
    if (vp_scenario_is_given(s, VP_F_MICROBATCHES))
        put(v, "parallel.microbatches", vp_format_u64(arena, each));
    return true;
}

static const char *layout_text(struct vp_arena *arena, uint64_t t, uint64_t p, uint64_t d,
                               uint64_t expert) {
    const char *ranks = vp_arena_printf(
        arena, "tensor %" PRIu64 " x pipeline %" PRIu64 " x data %" PRIu64, t, p, d);

    return expert > 1 ? vp_arena_printf(arena, "%s, expert %" PRIu64, ranks, expert) : ranks;
}

static void add_layout(struct vp_arena *arena, struct vp_layouts *out, const struct vp_scenario *s,
                       const uint64_t divide[3], uint64_t expert, bool same_too) {
    const struct vp_parallel *now = &s->parallel;
    uint64_t t = divide[0], p = divide[1], d = divide[2];
    uint64_t count = t * p * d * (s->training ? vp_max(now->context, 1) : 1);
    bool same = t == now->tensor && p == now->pipeline && d == now->data &&
                count == s->hardware.count && (expert == 0 || expert == now->expert);
    struct vp_lever_value v = value_new(arena);

    if (same && !same_too)
        return;
    put(&v, "hardware.count", vp_format_u64(arena, count));
    put(&v, "parallel.tensor", vp_format_u64(arena, t));
    put(&v, "parallel.pipeline", vp_format_u64(arena, p));
    put(&v, "parallel.data", vp_format_u64(arena, d));
    if (expert > 0)
        put(&v, "parallel.expert", vp_format_u64(arena, expert));
    if (!s->training && count > 8 && count % 8 == 0 && !vp_scenario_is_given(s, VP_F_NODES))
        put(&v, "hardware.nodes", vp_format_u64(arena, count / 8));
    if (s->training && !put_batch(arena, &v, s, s->train.micro_batch, d))
        return;
    v.from = layout_text(arena, now->tensor, now->pipeline, now->data, now->expert);
    v.to = layout_text(arena, t, p, d, expert);
    out->item[out->count++] = v;
}

/* Trainer and DeepSpeed copy or shard a model over their ranks; dividing its matrices or layers is
 * another set-up, proposed only where the scenario has it. */
static bool is_data_only(const struct vp_scenario *s) {
    bool ranks = s->engine.kind == VP_ENGINE_TRANSFORMERS || s->engine.kind == VP_ENGINE_DEEPSPEED;
    return s->training && ranks && s->parallel.tensor == 1 && s->parallel.pipeline == 1;
}

struct vp_layouts vp_layouts_of(struct vp_arena *arena, const struct vp_scenario *s, uint64_t count,
                                bool all_of_them) {
    struct vp_layouts out = {.item = VP_NEW_ARRAY(arena, VALUES, struct vp_lever_value)};
    uint64_t rest = count / (s->training ? vp_max(s->parallel.context, 1) : 1);
    bool free_experts =
        vp_model_has_experts(s->model) && !s->training && !vp_scenario_is_given(s, VP_F_EXPERT) &&
        !vp_scenario_is_given(s, VP_F_EXPERT_PARALLEL) && s->engine.kind != VP_ENGINE_TRANSFORMERS;

    if (s->hardware.group_count > 0 || s->parallel.attention_data > 1)
        return out; /* unlike cards are dealt by hand; ranks of the attention are part of tensor */
    for (uint64_t t = 1; t <= rest; t++)
        for (uint64_t p = 1; rest % t == 0 && p <= rest / t; p++) {
            bool divided = t > 1 || p > 1;
            if (rest / t % p != 0 || out.count + 2 > VALUES || (divided && is_data_only(s)))
                continue;
            const uint64_t divide[3] = {t, p, rest / t / p};
            bool vllm = s->engine.kind == VP_ENGINE_VLLM;
            uint64_t all = vllm ? t * divide[2] : t;
            add_layout(arena, &out, s, divide, free_experts ? 1 : 0, all_of_them);
            if (free_experts && all > 1)
                add_layout(arena, &out, s, divide, all, all_of_them);
        }
    return out;
}

static void make_layouts(struct vp_arena *arena, struct vp_lever *lever,
                         const struct vp_scenario *s) {
    struct vp_layouts all = vp_layouts_of(arena, s, s->hardware.count, false);

    for (uint32_t i = 0; i < all.count; i++)
        add(lever, all.item[i]);
}

/* The next counts: up to eight one by one, then whole nodes of eight, up to eight times as many. */
static void make_gpus(struct vp_arena *arena, struct vp_lever *lever, const struct vp_scenario *s) {
    uint64_t most = s->hardware.count * 8;

    if (s->hardware.count == 0)
        return;
    for (uint64_t n = s->hardware.count + 1, grade = 1; n <= vp_min(most, 64); n++) {
        if (n > 8 && n % 8 != 0)
            continue;
        struct vp_layouts all = vp_layouts_of(arena, s, n, false);
        for (uint32_t i = 0; i < all.count; i++) {
            all.item[i].grade = (uint32_t)grade;
            all.item[i].from = vp_format_u64(arena, s->hardware.count);
            all.item[i].to = vp_arena_printf(arena, "%" PRIu64 ": %s", n, all.item[i].to);
            add(lever, all.item[i]);
        }
        grade++;
    }
}

/* ---- other values that are made ---- */

static void make_gpu(struct vp_arena *arena, struct vp_lever *lever, const struct vp_scenario *s,
                     const struct vp_gpus *gpus) {
    uint64_t now = s->hardware.memory_bytes, last = now;
    bool fixed = vp_scenario_is_given(s, VP_F_MEMORY) || vp_scenario_is_given(s, VP_F_PARTITION) ||
                 vp_scenario_is_given(s, VP_F_MEMORY_PARTITION) || s->hardware.group_count > 0;

    for (uint32_t grade = 1; gpus && !fixed; grade++) { /* by memory, the smallest first */
        uint64_t next = UINT64_MAX;
        for (size_t i = 0; i < gpus->count; i++) {
            const struct vp_gpu *g = &gpus->items[i];
            uint64_t bytes = (g->runtime_mib ? g->runtime_mib : g->driver_mib) << 20;
            bool other = vp_text_eq(g->vendor, s->hardware.gpu.vendor) && !g->runtime_device &&
                         g->gtt_ppb == 0 && g->parts <= 1;
            if (other && bytes > last && bytes < next)
                next = bytes;
        }
        if (next == UINT64_MAX)
            return;
        for (size_t i = 0; i < gpus->count; i++) {
            const struct vp_gpu *g = &gpus->items[i];
            uint64_t bytes = (g->runtime_mib ? g->runtime_mib : g->driver_mib) << 20;
            if (bytes != next || !vp_text_eq(g->vendor, s->hardware.gpu.vendor) ||
                g->runtime_device || g->gtt_ppb > 0)
                continue;
            uint32_t before = lever->values;
            add_word(arena, lever, s, g->id);
            if (lever->values > before)
                lever->value[before].grade = grade;
        }
        last = next;
    }
}

/* The workload's longest sequence, when more is admitted. */
static void make_admission(struct vp_arena *arena, struct vp_lever *lever,
                           const struct vp_scenario *s) {
    if (s->engine.max_model_len > s->serve.context)
        add_word(arena, lever, s, vp_format_u64(arena, s->serve.context));
}

/* Down to the workload's own sequences; SGLang derives its share from them unless it is given. */
static void make_sequences(struct vp_arena *arena, struct vp_lever *lever,
                           const struct vp_scenario *s) {
    uint64_t least = vp_max(vp_rank_sequences(s), 16);

    lever->present = s->engine.max_num_seqs;
    lever->step = 1;
    for (uint64_t n = lever->present; n > least;) {
        n = vp_max(n / 2, least);
        struct vp_lever_value v = vp_lever_number(arena, lever, s, n);
        v.grade = lever->values + 1;
        add(lever, v);
    }
}

static void make_compute(struct vp_arena *arena, struct vp_lever *lever,
                         const struct vp_scenario *s) {
    enum vp_dtype model = s->model->dtype;

    if (s->engine.rules.loads_fp32 && !vp_scenario_is_given(s, VP_F_COMPUTE) &&
        s->precision.compute == VP_DTYPE_FP32 && model != VP_DTYPE_FP32)
        add_word(arena, lever, s, vp_dtype_name(model));
}

static void make_zero(struct vp_arena *arena, struct vp_lever *lever, const struct vp_scenario *s) {
    uint64_t most = s->engine.kind == VP_ENGINE_MEGATRON ? 1 : 3;

    for (uint64_t z = s->parallel.zero + 1; s->parallel.data > 1 && z <= most; z++) {
        add_word(arena, lever, s, vp_format_u64(arena, z));
        lever->value[lever->values - 1].grade = (uint32_t)z;
        lever->value[lever->values - 1].size = (double)z;
    }
}

/* Divisors of the sequences that a rank has in a step, the largest first. */
static void make_micro(struct vp_arena *arena, struct vp_lever *lever,
                       const struct vp_scenario *s) {
    uint64_t now = s->train.micro_batch;

    lever->present = now;
    lever->step = 1;
    for (uint64_t n = now - 1; n >= 1 && now > 1; n--) {
        struct vp_lever_value v = value_new(arena);
        v.from = vp_format_u64(arena, now);
        v.to = vp_format_u64(arena, n);
        v.number = n;
        put(&v, lever->field, v.to);
        if (!put_batch(arena, &v, s, n, vp_max(s->parallel.data, 1)))
            continue;
        v.grade = lever->values + 1;
        v.size = log2((double)now / (double)n);
        add(lever, v);
    }
}

static void make_eager(struct vp_arena *arena, struct vp_lever *lever,
                       const struct vp_scenario *s) {
    if (!s->engine.enforce_eager)
        add_word(arena, lever, s, "true");
}

static void make_optimizer(struct vp_arena *arena, struct vp_lever *lever,
                           const struct vp_scenario *s) {
    if (s->train.optimizer != VP_OPTIMIZER_ADAMW)
        return;
    add_word(arena, lever, s, "adamw_8bit");
    add_word(arena, lever, s, "paged_adamw_8bit");
}

static void make_values(struct vp_arena *arena, struct vp_lever *lever, const struct vp_scenario *s,
                        const struct vp_gpus *gpus) {
    switch (lever->id) {
    case VP_LEVER_ADMISSION:
        make_admission(arena, lever, s);
        break;
    case VP_LEVER_SEQUENCES:
        make_sequences(arena, lever, s);
        break;
    case VP_LEVER_COMPUTE:
        make_compute(arena, lever, s);
        break;
    case VP_LEVER_LAYOUT:
        make_layouts(arena, lever, s);
        break;
    case VP_LEVER_EAGER:
        make_eager(arena, lever, s);
        break;
    case VP_LEVER_FSDP:
        if (s->parallel.data > 1 && !s->parallel.fsdp && s->parallel.zero == 0)
            add_word(arena, lever, s, "true");
        break;
    case VP_LEVER_ZERO:
        make_zero(arena, lever, s);
        break;
    case VP_LEVER_MICRO:
        make_micro(arena, lever, s);
        break;
    case VP_LEVER_OPTIMIZER:
        make_optimizer(arena, lever, s);
        break;
    case VP_LEVER_BASE: /* QLoRA: what is trained are adapters only */
        if (s->train.lora.enabled)
            add_word(arena, lever, s, "nf4");
        break;
    case VP_LEVER_GPUS:
        make_gpus(arena, lever, s);
        break;
    case VP_LEVER_GPU:
        make_gpu(arena, lever, s, gpus);
        break;
    default:
        break;
    }
}

/* ---- which levers there are ---- */

static bool is_plain(const struct vp_scenario *s) {
    static const char *const PLAIN[] = {"checkpoint", "bf16", "fp16", "fp32"};

    for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++)
        if (vp_text_eq(s->precision.weights, PLAIN[i]))
            return !vp_model_is_quantised(s->model);
    return false;
}

static bool applies(enum vp_lever_id id, const struct vp_scenario *s) {
    switch (id) {
    case VP_LEVER_WEIGHTS:
    case VP_LEVER_WEIGHTS_HF:
    case VP_LEVER_BASE:
        return is_plain(s);
    case VP_LEVER_KV_CACHE:
        return vp_dtype_bytes(s->precision.kv_cache, vp_sum(2)).v > 2;
    case VP_LEVER_SHARE: /* a pool of a given size has no share */
        return s->engine.kv_cache_bytes == 0 && s->engine.blocks_override == 0;
    case VP_LEVER_OFFLOAD:
        return s->offload.weights_bytes == 0 && s->offload.weights_ppb == 0;
    case VP_LEVER_LORA_SLOTS:
        return s->lora.enabled;
    case VP_LEVER_BLOCK:
        return s->engine.block_size > 16;
    case VP_LEVER_LOSS:
        return s->model->lm_head && s->train.ops.loss != VP_LOSS_FUSED_LINEAR;
    case VP_LEVER_ATTENTION:
        return s->train.ops.attention == VP_IMPL_EAGER;
    case VP_LEVER_SEQUENCE:
        return s->parallel.tensor > 1 && !s->parallel.sequence;
    case VP_LEVER_RECOMPUTE:
        return s->train.recompute.kind != VP_RECOMPUTE_FULL;
    case VP_LEVER_HOST_STATES:
        return !s->train.offload_optimizer;
    case VP_LEVER_HOST_TAPES:
        return !s->train.offload_activations;
    case VP_LEVER_HOST_PARAMS:
        return !s->train.offload_parameters;
    default:
        return true;
    }
}

uint32_t vp_levers_of(struct vp_arena *arena, struct vp_lever *out, const struct vp_scenario *s,
                      const struct vp_gpus *gpus) {
    uint32_t count = 0, bit = engine_bit(s);

    for (int id = 0; id < VP_LEVER_COUNT; id++) {
        const struct row *row = &ROWS[id];
        struct vp_lever *lever = &out[count];
        uint64_t least = 0;
        *lever = (struct vp_lever){.id = (enum vp_lever_id)id,
                                   .name = row->name,
                                   .what = row->what,
                                   .quality = row->quality,
                                   .speed = row->speed,
                                   .money = row->money,
                                   .field = path_of(s, row->field),
                                   .how = row->how};
        if (!(row->engines & bit) || !lever->field || !applies(lever->id, s))
            continue;
        lever->value = VP_NEW_ARRAY(arena, VALUES, struct vp_lever_value);
        if (row->how == VP_HOW_WORDS) {
            add_words(arena, lever, s);
        } else if (row->how == VP_HOW_HALVES && vp_parse_u64(&least, row->values)) {
            lever->present = present_number(s, row->field);
            lever->step = least >= 512 ? 256 : 1;
            add_halves(arena, lever, s, least);
        } else {
            make_values(arena, lever, s, gpus);
        }
        count += lever->values > 0;
    }
    return count;
}

bool vp_levers_exclude(enum vp_lever_id a, enum vp_lever_id b) {
    /* both say how many devices and which layout, or how the batch is cut into passes */
    static const enum vp_lever_id SAME[] = {VP_LEVER_LAYOUT, VP_LEVER_GPUS, VP_LEVER_MICRO};
    bool has_a = a == b, has_b = a == b;

    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        has_a |= SAME[i] == a;
        has_b |= SAME[i] == b;
    }
    return has_a && has_b;
}

bool vp_lever_is(const char *name) {
    for (int i = 0; i < VP_LEVER_COUNT; i++)
        if (vp_text_eq(ROWS[i].name, name))
            return true;
    return false;
}

const char *vp_lever_names(struct vp_arena *arena) {
    struct vp_buf out = {.arena = arena};

    for (int i = 0; i < VP_LEVER_COUNT; i++) {
        bool seen = false; /* engines share names */
        for (int k = 0; k < i; k++)
            seen |= vp_text_eq(ROWS[k].name, ROWS[i].name);
        if (!seen)
            vp_buf_printf(&out, "%s%s", out.size ? ", " : "", ROWS[i].name);
    }
    return vp_buf_text(&out);
}
