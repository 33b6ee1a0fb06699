#include "planner/model/scenario.h"

#include <inttypes.h>
#include <stddef.h>

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

static const char *const MEASURES[VP_MEASURE_COUNT] = {
    [VP_M_WEIGHTS] = "weights_gib",
    [VP_M_ACTIVATION] = "activation_peak_gib",
    [VP_M_NON_TORCH] = "non_torch_gib",
    [VP_M_GRAPHS] = "graph_gib",
    [VP_M_AVAILABLE_KV] = "available_kv_cache_gib",
    [VP_M_BLOCKS] = "num_gpu_blocks",
    [VP_M_BLOCK_SIZE] = "block_size",
};

const struct vp_field_info *vp_field_info(enum vp_field field) { return &FIELDS[field]; }

enum vp_field vp_field_find(const char *path) {
    for (int i = 0; i < VP_FIELD_COUNT; i++)
        if (vp_text_eq(FIELDS[i].path, path))
            return (enum vp_field)i;
    return VP_FIELD_COUNT;
}

const char *vp_origin_name(enum vp_origin origin) { return ORIGINS[origin]; }

const char *vp_measure_name(enum vp_measure measure) { return MEASURES[measure]; }

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
    return vp_arena_printf(arena, "%" PRIu64, bytes);
}

/* Parts per billion as a decimal: 900000000 -> "0.9". */
static const char *format_share(struct vp_arena *arena, uint64_t ppb) {
    enum { BILLION = 1000000000, DECIMALS = 9 };
    uint64_t part = ppb % BILLION;
    int decimals = DECIMALS;
    if (part == 0)
        return vp_arena_printf(arena, "%" PRIu64, ppb / BILLION);
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
        return vp_arena_printf(arena, "%" PRIu64, *(const uint64_t *)member);
    case VP_KIND_SIZE:
        return format_size(arena, *(const uint64_t *)member);
    case VP_KIND_REAL:
        return vp_format_real(arena, *(const double *)member);
    case VP_KIND_SHARE:
        return format_share(arena, *(const uint64_t *)member);
    case VP_KIND_BOOL:
        return *(const bool *)member ? "true" : "false";
    case VP_KIND_DTYPE: {
        enum vp_dtype dtype = *(const enum vp_dtype *)member;
        return dtype == VP_DTYPE_UNSET ? "auto" : vp_dtype_name(dtype);
    }
    }
    return "null";
}
