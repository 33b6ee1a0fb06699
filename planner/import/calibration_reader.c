#include "planner/import/calibration_reader.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/doc/yaml.h"
#include "planner/import/anchor_text.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* A profile's document, and what was taken out of it. */
struct parts {
    struct vp_node *root;
    struct vp_anchor_texts anchors;
};

/* ---- values ---- */

static void bad(struct vp_ctx *ctx, const struct vp_node *node, const char *key, const char *want) {
    vp_diag_add(
        ctx->diags, VP_D_BAD_VALUE, &node->pos, "calibration: %s must be %s, not %s", key, want,
        vp_node_is_scalar(node) && *node->text ? vp_arena_printf(ctx->arena, "%.60s", node->text)
                                               : vp_node_kind_name(node->kind));
}

static void check_keys(struct vp_ctx *ctx, const struct vp_node *map, const char *what,
                       const char *const *keys, size_t count) {
    for (uint32_t i = 0; i < map->count; i++) {
        size_t k = 0;
        while (k < count && strcmp(keys[k], map->keys[i]) != 0)
            k++;
        if (k < count)
            continue;
        const char *nearest = vp_text_nearest(map->keys[i], keys, count);
        vp_diag_add(ctx->diags, VP_D_UNKNOWN_KEY, &map->key_pos[i],
                    "calibration: unknown key \"%.100s\" in %s", map->keys[i], what);
        if (nearest)
            vp_diag_hint(ctx->diags, "did you mean %s?", nearest);
    }
}

/* A part that may be missing; NULL then, or when it is of another kind, which is a fault. */
static const struct vp_node *part(struct vp_ctx *ctx, const struct vp_node *map, const char *key,
                                  enum vp_node_kind kind) {
    const struct vp_node *node = vp_node_get(map, key);
    if (vp_node_is_null(node))
        return NULL;
    if (node->kind == kind)
        return node;
    bad(ctx, node, key, kind == VP_NODE_MAP ? "a map" : "a list");
    return NULL;
}

static void get_text(struct vp_ctx *ctx, const char **out, const struct vp_node *map,
                     const char *key) {
    const struct vp_node *node = vp_node_get(map, key);
    *out = "";
    if (vp_node_is_null(node))
        return;
    if (vp_node_is_scalar(node))
        *out = node->text;
    else
        bad(ctx, node, key, "text");
}

static bool get_real(struct vp_ctx *ctx, double *out, const struct vp_node *map, const char *key,
                     double least, double most) {
    const struct vp_node *node = vp_node_get(map, key);
    double v;
    if (vp_node_is_null(node))
        return false;
    if (!vp_node_real(&v, node) || !(v >= least && v <= most)) {
        bad(ctx, node, key, vp_arena_printf(ctx->arena, "a number from %g to %g", least, most));
        return false;
    }
    *out = v;
    return true;
}

static void get_count(struct vp_ctx *ctx, uint64_t *out, const struct vp_node *map,
                      const char *key) {
    const struct vp_node *node = vp_node_get(map, key);
    if (!vp_node_is_null(node) && !vp_node_u64(out, node))
        bad(ctx, node, key, "a whole number");
}

static void missing(struct vp_ctx *ctx, const struct vp_node *map, const char *what,
                    const char *key) {
    vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &map->pos, "calibration: %s has no %s", what, key);
}

/* ---- kernels ---- */

static void get_quality(struct vp_ctx *ctx, struct vp_fit_quality *out, const struct vp_node *map,
                        const char *rows, const char *median, const char *p90) {
    uint64_t count = 0;
    get_count(ctx, &count, map, rows);
    out->rows = (uint32_t)vp_min(count, UINT32_MAX);
    get_real(ctx, &out->median, map, median, 0, 1e6);
    get_real(ctx, &out->p90, map, p90, 0, 1e6);
}

static void get_source(struct vp_ctx *ctx, struct vp_fit_source *out, const struct vp_node *map) {
    get_text(ctx, &out->release, map, "release");
    get_text(ctx, &out->origin, map, "origin");
}

static void get_constants(struct vp_ctx *ctx, struct vp_form_fit *out, enum vp_form form,
                          const struct vp_node *fit) {
    const struct vp_node *map = part(ctx, fit, "constants", VP_NODE_MAP);
    const char *keys[VP_FORM_CONSTANT_COUNT];
    size_t count = 0;
    if (!map) {
        missing(ctx, fit, "a form", "constants");
        return;
    }
    for (int c = 0; c < VP_FORM_CONSTANT_COUNT; c++) {
        const struct vp_constant_info *info = &vp_constants[c];
        if (info->form != form)
            continue;
        keys[count++] = info->name;
        bool there = get_real(ctx, &out->constant[c], map, info->name, info->least, info->most);
        bool may_lack =
            c == VP_C_GEMM_QUANTISE || c == VP_C_GEMM_QUANTISE_FAR || c == VP_C_GEMM_FILL;
        if (!there && vp_node_is_null(vp_node_get(map, info->name)) && !may_lack)
            missing(ctx, map, "constants", info->name);
    }
    check_keys(ctx, map, "constants", keys, count);
}

static void get_shape(struct vp_ctx *ctx, struct vp_shape *out, enum vp_form form,
                      const struct vp_node *fit, const char *key) {
    const struct vp_node *list = part(ctx, fit, key, VP_NODE_LIST);
    if (!list) {
        missing(ctx, fit, "a form", key);
        return;
    }
    if (list->count != vp_shape_sizes(form)) {
        bad(ctx, list, key, form == VP_FORM_GEMM ? "three sizes" : "five sizes");
        return;
    }
    for (uint32_t i = 0; i < list->count; i++)
        if (!vp_node_real(&out->size[i], list->items[i]) || !(out->size[i] >= 1))
            bad(ctx, list->items[i], key, "sizes from 1 on");
}

static void get_anchors(struct vp_ctx *ctx, struct vp_form_fit *out, enum vp_form form,
                        const struct vp_node *fit, const struct vp_anchor_texts *texts) {
    const struct vp_node *node = vp_node_get(fit, "anchors");
    if (vp_node_is_null(node))
        return;
    if (!vp_node_is_scalar(node)) {
        bad(ctx, node, "anchors", "a text of lines");
        return;
    }
    const struct vp_anchor_text *cut = vp_anchor_text_of(texts, node->pos.line);
    struct vp_bytes text = cut ? cut->text : (struct vp_bytes){node->text, strlen(node->text)};
    uint32_t lines = vp_anchor_text_lines(text);
    if (lines > VP_CALIBRATION_MAX_ANCHORS) {
        vp_diag_add(ctx->diags, VP_D_CAP, &node->pos, "%" PRIu32 " anchors, the cap is %d", lines,
                    (int)VP_CALIBRATION_MAX_ANCHORS);
        return;
    }
    out->anchors = VP_NEW_ARRAY(ctx->arena, lines + 1, struct vp_anchor);
    uint32_t wrong = vp_anchor_text_read(out->anchors, form, text);
    out->anchor_count = wrong ? 0 : lines;
    if (wrong) {
        struct vp_pos pos = node->pos;
        pos.line += wrong;
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &pos,
                    "calibration: the anchor is not %" PRIu32
                    " sizes and a correction, all whole numbers",
                    vp_shape_sizes(form));
    }
}

/* Missing: that of all rows. */
static void get_range_p90(struct vp_ctx *ctx, struct vp_form_fit *out, const struct vp_node *fit) {
    const struct vp_node *list = part(ctx, fit, "range_p90", VP_NODE_LIST);
    for (uint32_t r = 0; r < VP_FORM_RANGES; r++)
        out->range_p90[r] = out->quality.p90;
    if (list && list->count > VP_FORM_RANGES) {
        bad(ctx, list, "range_p90", "at most three shares");
        return;
    }
    for (uint32_t r = 0; list && r < list->count; r++)
        if (!vp_node_real(&out->range_p90[r], list->items[r]) ||
            !(out->range_p90[r] >= 0 && out->range_p90[r] <= 1e6))
            bad(ctx, list->items[r], "range_p90", "shares, 0 or more");
}

static void get_fit(struct vp_ctx *ctx, struct vp_form_fit *out, enum vp_form form,
                    const struct vp_node *fit, const struct vp_anchor_texts *texts) {
    static const char *const KEYS[] = {"release",   "origin",    "rows",   "median",
                                       "p90",       "range_p90", "least",  "most",
                                       "constants", "reach",     "anchors"};
    if (fit->kind != VP_NODE_MAP) {
        bad(ctx, fit, "a form", "a map");
        return;
    }
    check_keys(ctx, fit, "a form", KEYS, COUNT(KEYS));
    out->known = true;
    get_source(ctx, &out->source, fit);
    get_quality(ctx, &out->quality, fit, "rows", "median", "p90");
    get_range_p90(ctx, out, fit);
    get_constants(ctx, out, form, fit);
    get_shape(ctx, &out->least, form, fit, "least");
    get_shape(ctx, &out->most, form, fit, "most");
    get_real(ctx, &out->reach, fit, "reach", 0.01, 100);
    get_anchors(ctx, out, form, fit, texts);
    if (out->anchor_count && !(out->reach > 0))
        missing(ctx, fit, "a form with anchors", "reach");
}

static void get_fits(struct vp_ctx *ctx, struct vp_form_fit *out, enum vp_form form,
                     const struct parts *from, const char *key, const char *const *names,
                     size_t count) {
    const struct vp_node *map = part(ctx, from->root, key, VP_NODE_MAP);
    if (!map)
        return;
    check_keys(ctx, map, key, names, count);
    for (size_t i = 0; i < count; i++) {
        const struct vp_node *fit = vp_node_get(map, names[i]);
        if (!vp_node_is_null(fit))
            get_fit(ctx, &out[i], form, fit, &from->anchors);
    }
}

static void get_kernels(struct vp_ctx *ctx, struct vp_calibration *out, const struct parts *from) {
    const char *rates[VP_RATES], *widths[VP_KV_WIDTHS];
    for (int i = 0; i < VP_RATES; i++)
        rates[i] = vp_rate_name((enum vp_rate)i);
    for (int i = 0; i < VP_KV_WIDTHS; i++)
        widths[i] = vp_kv_name((enum vp_kv_width)i);
    get_fits(ctx, out->gemm, VP_FORM_GEMM, from, "gemm", rates, VP_RATES);
    get_fits(ctx, out->prefill, VP_FORM_PREFILL, from, "prefill_attention", widths, VP_KV_WIDTHS);
    get_fits(ctx, out->decode, VP_FORM_DECODE, from, "decode_attention", widths, VP_KV_WIDTHS);
}

/* ---- the rest ---- */

static void get_point(struct vp_ctx *ctx, struct vp_reduce_fit *out, const struct vp_node *node) {
    struct vp_reduce_point *point = &out->points[out->count];
    if (node->kind != VP_NODE_LIST || node->count != 2 ||
        !vp_node_real(&point->bytes, node->items[0]) || !vp_node_real(&point->us, node->items[1]) ||
        !(point->bytes >= 1 && point->bytes < 1e15 && point->us > 0 && point->us < 1e12))
        bad(ctx, node, "a point", "[bytes, microseconds]");
    else if (out->count && point->bytes <= point[-1].bytes)
        bad(ctx, node, "points", "in ascending order of their bytes");
    else
        out->count++;
}

static void get_reduce(struct vp_ctx *ctx, struct vp_reduce_fit *out, const struct vp_node *node) {
    static const char *const KEYS[] = {"gpus", "graph", "release", "origin", "points"};
    const struct vp_node *graph = vp_node_get(node, "graph");
    if (node->kind != VP_NODE_MAP) {
        bad(ctx, node, "allreduce", "a list of maps");
        return;
    }
    check_keys(ctx, node, "allreduce", KEYS, COUNT(KEYS));
    get_count(ctx, &out->gpus, node, "gpus");
    if (out->gpus < 2)
        missing(ctx, node, "allreduce", "gpus, 2 or more");
    if (!vp_node_is_null(graph) && !vp_node_bool(&out->graph, graph))
        bad(ctx, graph, "graph", "true or false");
    get_source(ctx, &out->source, node);
    const struct vp_node *points = part(ctx, node, "points", VP_NODE_LIST);
    if (!points || points->count == 0) {
        missing(ctx, node, "allreduce", "points");
        return;
    }
    if (points->count > VP_CALIBRATION_MAX_POINTS) {
        vp_diag_add(ctx->diags, VP_D_CAP, &points->pos, "%" PRIu32 " points, the cap is %d",
                    points->count, (int)VP_CALIBRATION_MAX_POINTS);
        return;
    }
    out->points = VP_NEW_ARRAY(ctx->arena, points->count, struct vp_reduce_point);
    for (uint32_t i = 0; i < points->count; i++)
        get_point(ctx, out, points->items[i]);
}

static const struct vp_node *get_list(struct vp_ctx *ctx, const struct vp_node *root,
                                      const char *key) {
    const struct vp_node *list = part(ctx, root, key, VP_NODE_LIST);
    if (!list || list->count <= VP_CALIBRATION_MAX_FITS)
        return list;
    vp_diag_add(ctx->diags, VP_D_CAP, &list->pos, "%" PRIu32 " entries of %s, the cap is %d",
                list->count, key, (int)VP_CALIBRATION_MAX_FITS);
    return NULL;
}

static void get_reduces(struct vp_ctx *ctx, struct vp_calibration *out,
                        const struct vp_node *root) {
    const struct vp_node *list = get_list(ctx, root, "allreduce");
    if (!list)
        return;
    out->reduces = VP_NEW_ARRAY(ctx->arena, list->count, struct vp_reduce_fit);
    out->reduce_count = list->count;
    for (uint32_t i = 0; i < list->count; i++)
        get_reduce(ctx, &out->reduces[i], list->items[i]);
}

static void get_serving(struct vp_ctx *ctx, struct vp_calibration *out,
                        const struct vp_node *root) {
    static const char *const KEYS[] = {
#define X(member, what) #member,
#include "planner/model/serving_constants.def"
#undef X
        "engine",   "release",   "origin",      "tpot_rows", "tpot_median",
        "tpot_p90", "ttft_rows", "ttft_median", "ttft_p90"};
    const struct vp_node *list = get_list(ctx, root, "serving");
    if (!list)
        return;
    out->serving = VP_NEW_ARRAY(ctx->arena, list->count, struct vp_serving_fit);
    out->serving_count = list->count;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct vp_node *node = list->items[i];
        struct vp_serving_fit *fit = &out->serving[i];
        if (node->kind != VP_NODE_MAP) {
            bad(ctx, node, "serving", "a list of maps");
            continue;
        }
        check_keys(ctx, node, "serving", KEYS, COUNT(KEYS));
        get_text(ctx, &fit->engine, node, "engine");
        if (!*fit->engine)
            missing(ctx, node, "serving", "engine");
        get_source(ctx, &fit->source, node);
#define X(member, what) get_real(ctx, &fit->member, node, #member, 0, 1e9);
#include "planner/model/serving_constants.def"
#undef X
        get_quality(ctx, &fit->tpot, node, "tpot_rows", "tpot_median", "tpot_p90");
        get_quality(ctx, &fit->ttft, node, "ttft_rows", "ttft_median", "ttft_p90");
    }
}

static void get_figures(struct vp_ctx *ctx, struct vp_calibration *out,
                        const struct vp_node *root) {
    static const char *const BANDWIDTH[] = {"read_gbs", "copy_gbs", "host_to_device_gbs",
                                            "device_to_host_gbs"};
    static const char *const MEMORY[] = {
#define X(member, text, what) #member,
#include "planner/model/memory_constants.def"
#undef X
    };
    const struct vp_node *map = part(ctx, root, "bandwidth", VP_NODE_MAP);
    if (map) {
        check_keys(ctx, map, "bandwidth", BANDWIDTH, COUNT(BANDWIDTH));
        get_real(ctx, &out->read_gbs, map, "read_gbs", 0, 1e6);
        get_real(ctx, &out->copy_gbs, map, "copy_gbs", 0, 1e6);
        get_real(ctx, &out->host_to_device_gbs, map, "host_to_device_gbs", 0, 1e6);
        get_real(ctx, &out->device_to_host_gbs, map, "device_to_host_gbs", 0, 1e6);
    }
    get_real(ctx, &out->launch_us, root, "launch_us", 0, 1e6);
    map = part(ctx, root, "memory", VP_NODE_MAP);
    if (map) {
        check_keys(ctx, map, "memory", MEMORY, COUNT(MEMORY));
#define X(member, text, what) get_count(ctx, &out->memory.member, map, #member);
#include "planner/model/memory_constants.def"
#undef X
    }
}

static void get_all(struct vp_ctx *ctx, struct vp_calibration *out, const struct parts *from) {
    static const char *const KEYS[] = {"vramplan_calibration",
                                       "gpu",
                                       "made",
                                       "units",
                                       "cache_bytes",
                                       "gemm",
                                       "prefill_attention",
                                       "decode_attention",
                                       "allreduce",
                                       "bandwidth",
                                       "launch_us",
                                       "serving",
                                       "memory",
                                       "notes"};
    const struct vp_node *root = from->root;
    uint64_t version = 0;
    check_keys(ctx, root, "a calibration profile", KEYS, COUNT(KEYS));
    if (!vp_node_u64(&version, vp_node_get(root, "vramplan_calibration")) || version != 1)
        missing(ctx, root, "the profile", "vramplan_calibration: 1");
    get_text(ctx, &out->gpu, root, "gpu");
    if (!*out->gpu)
        missing(ctx, root, "the profile", "gpu");
    get_text(ctx, &out->made, root, "made");
    if (!get_real(ctx, &out->units, root, "units", 1, 1e6))
        missing(ctx, root, "the profile", "units");
    get_real(ctx, &out->cache_bytes, root, "cache_bytes", 0, 1e12);
    get_kernels(ctx, out, from);
    get_reduces(ctx, out, root);
    get_figures(ctx, out, root);
    get_serving(ctx, out, root);
}

enum vp_status vp_calibration_parse(struct vp_ctx *ctx, struct vp_calibration *out,
                                    struct vp_bytes text, const char *name) {
    uint32_t errors = ctx->diags->errors;
    struct parts parts;
    *out = (struct vp_calibration){.path = name};
    text = vp_anchor_text_cut(ctx, &parts.anchors, text);
    enum vp_status status = vp_yaml_read(ctx, &parts.root, text, name);
    if (status != VP_OK)
        return status;
    if (parts.root->kind != VP_NODE_MAP) {
        bad(ctx, parts.root, "a profile", "a map with vramplan_calibration: 1");
        return VP_ERR_INPUT;
    }
    get_all(ctx, out, &parts);
    return ctx->diags->errors > errors ? VP_ERR_INPUT : VP_OK;
}

enum vp_status vp_calibration_read(struct vp_ctx *ctx, struct vp_calibration *out,
                                   const char *path) {
    struct vp_bytes text;
    const char *name = vp_arena_text(ctx->arena, path, strlen(path));
    enum vp_status status = vp_io_read(ctx, &text, name, VP_CALIBRATION_MAX_BYTES);
    return status == VP_OK ? vp_calibration_parse(ctx, out, text, name) : status;
}

enum vp_status vp_calibration_find(struct vp_ctx *ctx, struct vp_calibration **out,
                                   const char *gpu) {
    const char *roots[] = {ctx->user_profiles, ctx->profiles};
    uint32_t errors = ctx->diags->errors;
    *out = NULL;
    if (strchr(gpu, '/') || gpu[0] == '.')
        return VP_OK;
    for (size_t i = 0; i < COUNT(roots) && !*out; i++) {
        if (!roots[i])
            continue;
        const char *folder = vp_io_join(ctx, roots[i], "calibration");
        const char *path = vp_io_join(ctx, folder, vp_arena_printf(ctx->arena, "%s.yaml", gpu));
        if (vp_io_kind(ctx, path) != VP_FILE_REGULAR)
            continue;
        *out = VP_NEW(ctx->arena, struct vp_calibration);
        enum vp_status status = vp_calibration_read(ctx, *out, path);
        if (status != VP_OK)
            return status;
    }
    return ctx->diags->errors > errors ? VP_ERR_ENV : VP_OK;
}
