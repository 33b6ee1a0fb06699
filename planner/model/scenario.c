#include "planner/model/scenario.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/base/units.h"

static const struct vp_field_info FIELDS[VP_FIELD_COUNT] = {
#define X(name, path, kind, member, modelled, meaning)                                             \
    [VP_F_##name] = {path, VP_KIND_##kind, (uint32_t)offsetof(struct vp_scenario, member),         \
                     modelled, meaning},
#include "planner/model/fields.def"
#undef X
};

static const char *const ORIGINS[] = {
    [VP_ORIGIN_UNSET] = "unset",     [VP_ORIGIN_DEFAULT] = "default",
    [VP_ORIGIN_DERIVED] = "derived", [VP_ORIGIN_PROFILE] = "profile",
    [VP_ORIGIN_FILE] = "file",       [VP_ORIGIN_ARGS] = "args",
    [VP_ORIGIN_FLAG] = "flag",       [VP_ORIGIN_MEASURED] = "measured",
};

static const char *const ENGINES[VP_ENGINE_KINDS] = {
    [VP_ENGINE_VLLM] = "vllm",
    [VP_ENGINE_SGLANG] = "sglang",
    [VP_ENGINE_TRANSFORMERS] = "transformers",
    [VP_ENGINE_LLAMA_CPP] = "llama.cpp",
    [VP_ENGINE_OLLAMA] = "ollama",
    [VP_ENGINE_PYTORCH] = "pytorch",
    [VP_ENGINE_MEGATRON] = "megatron",
    [VP_ENGINE_DEEPSPEED] = "deepspeed",
};

/* Settings that have another name than in FIELDS, or none, under an engine. */
static const struct renamed {
    enum vp_engine_kind engine;
    enum vp_field field;
    const char *path;
    bool negated;
} RENAMED[] = {
#define X(engine, field, path, negated) {VP_ENGINE_##engine, VP_F_##field, path, negated},
#include "planner/model/engine_fields.def"
#undef X
};

static const char *const MEASURES[VP_MEASURE_COUNT][VP_ENGINE_KINDS] = {
    [VP_M_WEIGHTS] = {"weights_gib", "weights_gib", "weights_gib"},
    [VP_M_ACTIVATION] = {"activation_peak_gib", NULL, "activation_peak_gib"},
    [VP_M_NON_TORCH] = {"non_torch_gib", NULL, "non_torch_gib"},
    [VP_M_GRAPHS] = {"graph_gib", NULL, NULL},
    [VP_M_AVAILABLE_KV] = {"available_kv_cache_gib", "kv_gib", NULL},
    [VP_M_BLOCKS] = {"num_gpu_blocks", "max_total_num_tokens", NULL},
    [VP_M_BLOCK_SIZE] = {"block_size", NULL, NULL},
};

const struct vp_field_info *vp_field_info(enum vp_field field) { return &FIELDS[field]; }

/* Lengths of the paths: many begin alike, so that comparing their texts is slow. */
static const uint8_t LENGTHS[VP_FIELD_COUNT] = {
#define X(name, path, kind, member, modelled, meaning) [VP_F_##name] = sizeof path - 1,
#include "planner/model/fields.def"
#undef X
};

enum vp_field vp_field_find(const char *path) {
    size_t n = path ? strlen(path) : 0;
    for (int i = 0; n && i < VP_FIELD_COUNT; i++)
        if (LENGTHS[i] == n && FIELDS[i].path[n - 1] == path[n - 1] &&
            memcmp(FIELDS[i].path, path, n) == 0)
            return (enum vp_field)i;
    return VP_FIELD_COUNT;
}

static const struct renamed *renamed(enum vp_engine_kind engine, enum vp_field field) {
    for (size_t i = 0; i < sizeof RENAMED / sizeof *RENAMED; i++)
        if (RENAMED[i].engine == engine && RENAMED[i].field == field)
            return &RENAMED[i];
    return NULL;
}

/* The settings of llama.cpp stand together in fields.def under their own names. */
static bool is_llama_field(enum vp_field field) {
    return field >= VP_F_CTX_SIZE && field <= VP_F_MMPROJ;
}

const char *vp_field_path_for(enum vp_engine_kind engine, enum vp_field field) {
    const struct renamed *other = renamed(engine, field);
    const char *path = FIELDS[field].path;
    if (other)
        return other->path;
    if (!vp_text_starts(path, "engine.args."))
        return path;
    bool own = is_llama_field(field) ? vp_engine_is_llama(engine) : engine == VP_ENGINE_VLLM;
    return own ? path : NULL;
}

enum vp_field vp_field_find_for(enum vp_engine_kind engine, const char *path) {
    enum vp_field field = vp_field_find(path);
    if (field < VP_FIELD_COUNT && !vp_text_eq(vp_field_path_for(engine, field), path))
        field = VP_FIELD_COUNT;
    for (size_t i = 0; path && i < sizeof RENAMED / sizeof *RENAMED; i++)
        if (RENAMED[i].engine == engine && RENAMED[i].field < field &&
            vp_text_eq(RENAMED[i].path, path))
            field = RENAMED[i].field;
    return field;
}

bool vp_field_is_negated(enum vp_engine_kind engine, enum vp_field field) {
    const struct renamed *other = renamed(engine, field);
    return other && other->negated;
}

const char *vp_field_label(enum vp_engine_kind engine, enum vp_field field) {
    const char *path = vp_field_path_for(engine, field);
    return path ? path : FIELDS[field].meaning;
}

const char *vp_engine_name(enum vp_engine_kind engine) { return ENGINES[engine]; }

bool vp_engine_is_llama(enum vp_engine_kind engine) {
    return engine == VP_ENGINE_LLAMA_CPP || engine == VP_ENGINE_OLLAMA;
}

enum vp_accounting vp_scenario_accounting(const struct vp_scenario *scenario) {
    if (scenario->training)
        return VP_ACCOUNT_TRAIN;
    return vp_engine_is_llama(scenario->engine.kind) ? VP_ACCOUNT_LLAMA : VP_ACCOUNT_POOL;
}

const char *vp_origin_name(enum vp_origin origin) { return ORIGINS[origin]; }

const char *vp_measure_name(enum vp_engine_kind engine, enum vp_measure measure) {
    return MEASURES[measure][engine];
}

const char *vp_train_measure_name(enum vp_train_measure measure) {
    static const char *const KEYS[VP_TRAIN_MEASURES] = {
#define X(name, key) key,
#include "planner/model/train_measures.def"
#undef X
    };
    return KEYS[measure];
}

uint64_t vp_expert_ranks(const struct vp_scenario *scenario) {
    bool vllm = scenario->engine.kind == VP_ENGINE_VLLM;
    struct vp_sum ranks =
        vp_sum_mul(vp_sum(scenario->parallel.tensor), vllm ? scenario->parallel.data : 1);
    return ranks.overflow ? UINT64_MAX : ranks.v;
}

uint64_t vp_sequence_ranks(const struct vp_scenario *scenario) {
    const struct vp_parallel *p = &scenario->parallel;
    bool sglang = scenario->engine.kind == VP_ENGINE_SGLANG;
    struct vp_sum ranks =
        vp_sum_mul(vp_sum(vp_max(p->data, 1)), sglang ? vp_max(p->attention_data, 1) : 1);
    return ranks.overflow ? UINT64_MAX : ranks.v;
}

uint64_t vp_rank_sequences(const struct vp_scenario *scenario) {
    return vp_ceil_div(scenario->serve.concurrency, vp_sequence_ranks(scenario));
}

uint64_t vp_generate_tokens(const struct vp_scenario *scenario) {
    const struct vp_serve *serve = &scenario->serve;
    uint64_t prompt = serve->context;
    if (serve->prompt_tokens > 0)
        prompt = vp_min(serve->prompt_tokens, prompt);
    struct vp_sum tokens = vp_sum_mul(vp_sum(serve->concurrency), prompt);
    return tokens.overflow ? UINT64_MAX : tokens.v;
}

/* The shortest spelling that reads back as exactly these bytes. */
static const char *format_size(struct vp_arena *arena, uint64_t bytes) {
    static const struct {
        uint64_t factor;
        const char *unit;
    } UNITS[] = {{UINT64_C(1) << 30, " GiB"},
                 {UINT64_C(1000000000), " GB"},
                 {UINT64_C(1) << 20, " MiB"},
                 {UINT64_C(1) << 10, " KiB"}};
    for (size_t i = 0; bytes && i < sizeof UNITS / sizeof *UNITS; i++)
        if (bytes % UNITS[i].factor == 0)
            return vp_arena_printf(arena, "%" PRIu64 "%s", bytes / UNITS[i].factor, UNITS[i].unit);
    return vp_format_u64(arena, bytes);
}

/* Parts per billion as a decimal: 900000000 -> "0.9". */
static const char *format_share(struct vp_arena *arena, uint64_t ppb) {
    enum { BILLION = 1000000000, DECIMALS = 9 };
    uint64_t part = ppb % BILLION;
    int decimals = DECIMALS;
    if (part == 0)
        return vp_format_u64(arena, ppb / BILLION);
    for (; part % 10 == 0; part /= 10)
        decimals--;
    return vp_arena_printf(arena, "%" PRIu64 ".%0*" PRIu64, ppb / BILLION, decimals, part);
}

const char *vp_field_value(struct vp_arena *arena, const struct vp_scenario *scenario,
                           enum vp_field field) {
    const struct vp_field_info *info = &FIELDS[field];
    const void *member = (const char *)scenario + info->offset;
    if (!info->modelled) /* the member only stands in for one that does not exist yet */
        return "null";
    switch (info->kind) {
    case VP_KIND_TEXT:
    case VP_KIND_WEIGHTS: {
        const char *text = *(const char *const *)member;
        return text ? text : "null";
    }
    case VP_KIND_COUNT:
    case VP_KIND_NUMBER:
    case VP_KIND_TOKENS:
        return vp_format_u64(arena, *(const uint64_t *)member);
    case VP_KIND_SIZE:
        return format_size(arena, *(const uint64_t *)member);
    case VP_KIND_REAL:
        return vp_format_real(arena, *(const double *)member);
    case VP_KIND_SHARE:
    case VP_KIND_RATIO:
        return format_share(arena, *(const uint64_t *)member);
    case VP_KIND_BOOL:
        return *(const bool *)member != vp_field_is_negated(scenario->engine.kind, field) ? "true"
                                                                                          : "false";
    case VP_KIND_DTYPE: {
        enum vp_dtype dtype = *(const enum vp_dtype *)member;
        return dtype == VP_DTYPE_UNSET ? "auto" : vp_dtype_name(dtype);
    }
    }
    return "null";
}
