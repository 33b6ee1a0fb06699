#include "planner/import/scenario_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/document.h"

/* ---- messages ---- */

const char *vp_source_show(struct vp_ctx *ctx, const struct vp_source *source) {
    const char *prefix = source->origin == VP_ORIGIN_ARGS ? "engine.args." : "";
    const char *key = source->key ? source->key : "a default";
    if (!source->pos.line)
        return vp_arena_printf(ctx->arena, "%s%s", prefix, key);
    return vp_arena_printf(ctx->arena, "%s%s (line %" PRIu32 ")", prefix, key, source->pos.line);
}

/* "--set" says nothing about the field: the path does. */
const char *vp_reading_label(const struct vp_reading *r, const char *path) {
    if (!r->from_flags)
        return path;
    for (size_t i = r->setting_count; i-- > 0;) { /* the last one wins */
        const char *key = r->settings[i].key;
        if (vp_text_eq(r->settings[i].path, path) && key && !vp_text_starts(key, "--set"))
            return key;
    }
    return path;
}

static const char *wanted(enum vp_field field) {
    if (field == VP_F_KV_DTYPE)
        return "auto, bf16, fp16 or fp8";
    switch (vp_field_info(field)->kind) {
    case VP_KIND_COUNT:
        return "a whole number, 1 or more";
    case VP_KIND_NUMBER:
        return "a whole number";
    case VP_KIND_TOKENS:
        return "a number of tokens (32768 or 32k)";
    case VP_KIND_SIZE:
        return "a size: bytes, or text with a unit (\"16 GiB\")";
    case VP_KIND_REAL:
        return "a number, 0 or more";
    case VP_KIND_SHARE:
        return "a number above 0, at most 1";
    case VP_KIND_RATIO:
        return "a number above 0, at most 1000";
    case VP_KIND_BOOL:
        return "true or false";
    case VP_KIND_DTYPE:
        return "auto, bf16, fp16 or fp32";
    case VP_KIND_TEXT:
    case VP_KIND_WEIGHTS:
        break;
    }
    return "text";
}

static bool refuse(struct vp_reading *r, enum vp_field field, const struct vp_node *node,
                   const char *label) {
    const char *shown =
        vp_node_is_scalar(node) && *node->text ? node->text : vp_node_kind_name(node->kind);
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s must be %s, not %.100s", label,
                wanted(field), shown);
    return false;
}

/* ---- one value ---- */

/* The text of a share or ratio as parts per billion, exact for up to nine decimals. */
static bool parse_share(uint64_t *out, const char *text, double most) {
    double v;
    if (!vp_parse_real(&v, text) || !(v > 0 && v <= most))
        return false;
    *out = (uint64_t)(v * 1e9 + 0.5);
    return *out > 0;
}

static bool parse_bool(bool *out, const char *text) {
    bool yes = vp_name_eq(text, "true");
    *out = yes;
    return yes || vp_name_eq(text, "false");
}

static bool parse_number(uint64_t *out, enum vp_field_kind kind, const struct vp_node *node) {
    if (kind == VP_KIND_SIZE)
        return vp_parse_size(out, node->text);
    if (kind == VP_KIND_SHARE || kind == VP_KIND_RATIO)
        return parse_share(out, node->text, kind == VP_KIND_SHARE ? 1 : 1000);
    if (!vp_node_u64(out, node) && !vp_parse_u64(out, node->text) &&
        (kind != VP_KIND_TOKENS || !vp_parse_tokens(out, node->text)))
        return false;
    return *out > 0 || kind == VP_KIND_NUMBER;
}

/* Formats that exist for the field but not in this version's formulas. */
static bool refuse_dtype(struct vp_reading *r, enum vp_field field, enum vp_dtype dtype,
                         const struct vp_node *node, const char *label) {
    bool cache = field == VP_F_KV_DTYPE;
    bool later = dtype == VP_DTYPE_INT8 || dtype == VP_DTYPE_INT4 || dtype == VP_DTYPE_FP4 ||
                 dtype == VP_DTYPE_NVFP4;
    if (!cache || !later)
        return refuse(r, field, node, label);
    vp_diag_add(r->ctx->diags, VP_D_UNMODELLED, &node->pos,
                "%s: a KV cache of type %s is not modelled yet", label, node->text);
    vp_diag_hint(r->ctx->diags, "modelled are %s", wanted(field));
    return false;
}

static bool parse_dtype(struct vp_reading *r, struct vp_value *out, enum vp_field field,
                        const struct vp_node *node, const char *label) {
    bool cache = field == VP_F_KV_DTYPE;
    out->dtype = VP_DTYPE_UNSET;
    if (vp_name_eq(node->text, "auto"))
        return true;
    /* vLLM's name for FP8 in the layout of sparse MLA; the layout follows from the model */
    out->dtype =
        cache && vp_name_eq(node->text, "fp8_ds_mla") ? VP_DTYPE_FP8 : vp_dtype_parse(node->text);
    bool plain = out->dtype == VP_DTYPE_BF16 || out->dtype == VP_DTYPE_FP16;
    if (plain || out->dtype == (cache ? VP_DTYPE_FP8 : VP_DTYPE_FP32))
        return true;
    /* which of them llama.cpp's cache has is told when its settings are finished */
    bool ggml = cache || field == VP_F_CACHE_TYPE_K || field == VP_F_CACHE_TYPE_V;
    if (ggml && vp_engine_is_llama(r->out->engine.kind) && out->dtype != VP_DTYPE_UNSET)
        return true;
    return refuse_dtype(r, field, out->dtype, node, label);
}

/* What the field takes; max_num_batched_tokens is a count of tokens and may be written "8k". */
static enum vp_field_kind kind_of(enum vp_field field) {
    return field == VP_F_BATCHED_TOKENS ? VP_KIND_TOKENS : vp_field_info(field)->kind;
}

static bool parse_text(struct vp_reading *r, struct vp_value *out, const struct vp_node *node) {
    if (!vp_node_is_scalar(node) || !*node->text)
        return false;
    out->text = vp_document_show(r->ctx, node);
    return true;
}

bool vp_value_parse(struct vp_reading *r, struct vp_value *out, enum vp_field field,
                    const struct vp_node *node, const char *label) {
    enum vp_field_kind kind = kind_of(field);
    bool ok;
    *out = (struct vp_value){0};
    if (kind == VP_KIND_TEXT || kind == VP_KIND_WEIGHTS)
        ok = parse_text(r, out, node);
    else if (!vp_node_is_scalar(node))
        ok = false;
    else if (kind == VP_KIND_DTYPE)
        return parse_dtype(r, out, field, node, label);
    else if (kind == VP_KIND_BOOL)
        ok = parse_bool(&out->flag, node->text);
    else if (kind == VP_KIND_REAL)
        ok = (vp_node_real(&out->real, node) || vp_parse_real(&out->real, node->text)) &&
             isfinite(out->real) && out->real >= 0;
    else
        ok = parse_number(&out->number, kind, node);
    return ok || refuse(r, field, node, label);
}

/* ---- into the scenario ---- */

static void store(struct vp_scenario *out, enum vp_field field, const struct vp_value *value) {
    const struct vp_field_info *info = vp_field_info(field);
    void *member = (char *)out + info->offset;
    switch (info->kind) {
    case VP_KIND_TEXT:
    case VP_KIND_WEIGHTS:
        *(const char **)member = value->text;
        break;
    case VP_KIND_REAL:
        *(double *)member = value->real;
        break;
    case VP_KIND_BOOL:
        *(bool *)member = value->flag;
        break;
    case VP_KIND_DTYPE:
        *(enum vp_dtype *)member = value->dtype;
        break;
    case VP_KIND_COUNT:
    case VP_KIND_NUMBER:
    case VP_KIND_TOKENS:
    case VP_KIND_SIZE:
    case VP_KIND_SHARE:
    case VP_KIND_RATIO:
        *(uint64_t *)member = value->number;
        break;
    }
}

static bool is_same(const struct vp_scenario *scenario, enum vp_field field,
                    const struct vp_value *value) {
    const struct vp_field_info *info = vp_field_info(field);
    const void *member = (const char *)scenario + info->offset;
    switch (info->kind) {
    case VP_KIND_TEXT:
    case VP_KIND_WEIGHTS:
        return vp_name_eq(*(const char *const *)member, value->text);
    case VP_KIND_REAL:
        return !(*(const double *)member < value->real || *(const double *)member > value->real);
    case VP_KIND_BOOL:
        return *(const bool *)member == value->flag;
    case VP_KIND_DTYPE:
        return *(const enum vp_dtype *)member == value->dtype;
    case VP_KIND_COUNT:
    case VP_KIND_NUMBER:
    case VP_KIND_TOKENS:
    case VP_KIND_SIZE:
    case VP_KIND_SHARE:
    case VP_KIND_RATIO:
        break;
    }
    return *(const uint64_t *)member == value->number;
}

static void contradict(struct vp_reading *r, const char *earlier_value,
                       const struct vp_source *earlier, const char *value,
                       const struct vp_source *source) {
    vp_diag_add(r->ctx->diags, VP_D_CONTRADICTION, &source->pos, "%s says %s, but %s says %s",
                vp_source_show(r->ctx, source), value, vp_source_show(r->ctx, earlier),
                earlier_value);
    vp_diag_hint(r->ctx->diags, "both mean the same fact: keep one of the two");
}

void vp_value_assign(struct vp_reading *r, enum vp_field field, const struct vp_value *value,
                     const struct vp_source *source) {
    struct vp_source *present = &r->out->source[field];
    bool said = present->origin >= VP_ORIGIN_FILE; /* by the user */
    if (present->origin == VP_ORIGIN_FLAG && source->origin != VP_ORIGIN_FLAG)
        return; /* the command line wins without a word */
    if (vp_field_info(field)->kind == VP_KIND_DTYPE && value->dtype == VP_DTYPE_UNSET) {
        struct vp_said *other = &r->auto_dtype[field == VP_F_COMPUTE];
        if (!other->text)
            *other = (struct vp_said){"auto", *source};
        if (said)
            return; /* whether they agree is known when the model is */
    } else if (said && !is_same(r->out, field, value) &&
               !(vp_field_info(field)->kind == VP_KIND_DTYPE &&
                 is_same(r->out, field, &(struct vp_value){0}))) {
        struct vp_scenario other = *r->out;
        store(&other, field, value);
        contradict(r, vp_field_value(r->ctx->arena, r->out, field), present,
                   vp_field_value(r->ctx->arena, &other, field), source);
        return;
    }
    store(r->out, field, value);
    *present = *source;
}

void vp_value_read(struct vp_reading *r, enum vp_field field, const struct vp_node *node,
                   enum vp_origin origin, const char *key) {
    struct vp_value value;
    const char *path = vp_field_info(field)->path;
    const char *label = origin == VP_ORIGIN_ARGS
                            ? vp_arena_printf(r->ctx->arena, "engine.args.%s", key)
                            : vp_reading_label(r, key ? key : path);
    if (vp_node_is_null(node) || !vp_value_parse(r, &value, field, node, label))
        return;
    struct vp_source source = {.origin = origin, .pos = node->pos, .key = key ? key : path};
    if (r->from_flags) {
        source.origin = VP_ORIGIN_FLAG;
        source.key = vp_reading_label(r, origin == VP_ORIGIN_ARGS ? label : source.key);
    }
    vp_value_assign(r, field, &value, &source);
}

/* `auto` beside a format is the same fact when the format is what auto leads to: 16 bit. */
void vp_value_check_auto(struct vp_reading *r) {
    static const enum vp_field FIELDS[2] = {VP_F_KV_DTYPE, VP_F_COMPUTE};
    for (int i = 0; i < 2; i++) {
        const struct vp_said *said = &r->auto_dtype[i];
        const struct vp_source *other = &r->out->source[FIELDS[i]];
        enum vp_dtype dtype = i ? r->out->precision.compute : r->out->precision.kv_cache;
        bool both = said->text && other->origin >= VP_ORIGIN_FILE && dtype != VP_DTYPE_UNSET;
        bool flag = (said->source.origin == VP_ORIGIN_FLAG) != (other->origin == VP_ORIGIN_FLAG);
        if (both && !flag && dtype != VP_DTYPE_BF16 && dtype != VP_DTYPE_FP16)
            contradict(r, vp_dtype_name(dtype), other, "auto", &said->source);
    }
}

bool vp_value_is_harmless(const struct vp_node *node) {
    uint64_t v;
    bool flag;
    if (vp_node_is_null(node))
        return true;
    if (!vp_node_is_scalar(node))
        return node->count == 0;
    if (vp_node_bool(&flag, node))
        return !flag;
    if (vp_node_u64(&v, node))
        return v == 0;
    return !*node->text || vp_name_eq(node->text, "none") || vp_name_eq(node->text, "auto");
}

/* ---- keys ---- */

/* A key of another section: "context" at the top is serve.context. */
static const char *elsewhere(enum vp_engine_kind engine, const char *section, const char *key) {
    for (int i = 0; i < VP_FIELD_COUNT; i++) {
        const char *path = vp_field_path_for(engine, (enum vp_field)i);
        const char *dot = path ? strrchr(path, '.') : NULL;
        if (!dot || !vp_name_eq(dot + 1, key))
            continue;
        size_t n = (size_t)(dot - path);
        if (strlen(section) != n || memcmp(section, path, n) != 0)
            return path;
    }
    return NULL;
}

void vp_reading_unknown(struct vp_reading *r, const char *section, const char *key,
                        const struct vp_pos *pos, const char *const *names, size_t count) {
    struct vp_buf known = {.arena = r->ctx->arena};
    const char *path = *section ? vp_arena_printf(r->ctx->arena, "%s.%s", section, key) : key;
    const char *nearest = vp_text_nearest(key, names, count);
    const char *other = nearest ? NULL : elsewhere(r->out->engine.kind, section, key);
    if (r->from_flags)
        vp_diag_add(r->ctx->diags, VP_D_UNKNOWN_KEY, NULL,
                    "the command line sets %.200s, which no scenario has", path);
    else
        vp_diag_add(r->ctx->diags, VP_D_UNKNOWN_KEY, pos, "unknown key \"%.100s\"%s%s", key,
                    *section ? " in " : "", section);
    if (nearest || other) {
        vp_diag_hint(r->ctx->diags, "did you mean %s?", nearest ? nearest : other);
        return;
    }
    for (size_t i = 0; i < count; i++)
        vp_buf_printf(&known, "%s%s", i ? ", " : "", names[i]);
    vp_diag_hint(r->ctx->diags, "known are %s", vp_buf_text(&known));
}

bool vp_reading_is_map(struct vp_reading *r, const struct vp_node *node, const char *path) {
    if (vp_node_is_null(node))
        return false;
    if (node->kind == VP_NODE_MAP)
        return true;
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s must be a map, not %s",
                vp_reading_label(r, path), vp_node_kind_name(node->kind));
    return false;
}
