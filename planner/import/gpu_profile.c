#include "planner/import/gpu_profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/memo.h"
#include "planner/base/text.h"
#include "planner/import/profile.h"

/* All keys of a profile (profiles/gpus/README.md), whether the planner reads them or not. */
static const char *const KEYS[] = {"vramplan_gpu",
                                   "id",
                                   "name",
                                   "aliases",
                                   "vendor",
                                   "arch",
                                   "family",
                                   "memory_gb",
                                   "driver_mib",
                                   "runtime_mib",
                                   "memory_type",
                                   "bandwidth_gbs",
                                   "dense_tflops",
                                   "boost_ghz",
                                   "dense_tflops_interval",
                                   "cus",
                                   "sms",
                                   "last_level_cache_mib",
                                   "link",
                                   "links",
                                   "pcie",
                                   "tdp_w",
                                   "fp8_formats",
                                   "partitions",
                                   "runtime_device",
                                   "unified",
                                   "basis",
                                   "sources",
                                   "notes"};

enum { MAX_MIB = 1 << 30 }; /* a pebibyte: larger totals are typing mistakes */

static bool bad(struct vp_ctx *ctx, const struct vp_node *node, const char *key, const char *want) {
    vp_diag_add(
        ctx->diags, VP_D_BAD_VALUE, &node->pos, "GPU profile: %s must be %s, not %s", key, want,
        vp_node_is_scalar(node) && *node->text ? node->text : vp_node_kind_name(node->kind));
    return false;
}

static bool get_text(struct vp_ctx *ctx, const char **out, const struct vp_node *map,
                     const char *key) {
    const struct vp_node *node = vp_node_get(map, key);
    if (vp_node_is_null(node))
        return true;
    if (!vp_node_is_scalar(node))
        return bad(ctx, node, key, "text");
    *out = node->text;
    return true;
}

static bool get_mib(struct vp_ctx *ctx, uint64_t *out, const struct vp_node *map, const char *key) {
    const struct vp_node *node = vp_node_get(map, key);
    if (vp_node_is_null(node))
        return true;
    if (!vp_node_u64(out, node) || *out == 0 || *out > MAX_MIB)
        return bad(ctx, node, key, "a whole number, 1 or more");
    return true;
}

static bool get_real(struct vp_ctx *ctx, double *out, const struct vp_node *map, const char *key) {
    const struct vp_node *node = vp_node_get(map, key);
    if (vp_node_is_null(node))
        return true;
    if (!vp_node_real(out, node) || !(*out > 0 && *out < 1e12))
        return bad(ctx, node, key, "a number above 0");
    return true;
}

/* {likely, low, high}, or one number for all three. */
static bool get_runtime(struct vp_ctx *ctx, struct vp_gpu *out, const struct vp_node *map) {
    const struct vp_node *node = vp_node_get(map, "runtime_mib");
    if (vp_node_is_null(node))
        return true;
    if (node->kind != VP_NODE_MAP) {
        if (!get_mib(ctx, &out->runtime_mib, map, "runtime_mib"))
            return false;
        out->runtime_mib_low = out->runtime_mib_high = out->runtime_mib;
        return true;
    }
    if (!get_mib(ctx, &out->runtime_mib, node, "likely") ||
        !get_mib(ctx, &out->runtime_mib_low, node, "low") ||
        !get_mib(ctx, &out->runtime_mib_high, node, "high"))
        return false;
    if (!out->runtime_mib)
        return bad(ctx, node, "runtime_mib", "a number or {likely, low, high}");
    if (!out->runtime_mib_low)
        out->runtime_mib_low = out->runtime_mib;
    if (!out->runtime_mib_high)
        out->runtime_mib_high = out->runtime_mib;
    if (out->runtime_mib_low > out->runtime_mib || out->runtime_mib > out->runtime_mib_high)
        return bad(ctx, node, "runtime_mib", "ordered: low <= likely <= high");
    return true;
}

static bool get_fp8(struct vp_ctx *ctx, struct vp_gpu *out, const struct vp_node *map) {
    const struct vp_node *node = vp_node_get(map, "fp8_formats");
    struct vp_buf buf = {.arena = ctx->arena};
    if (vp_node_is_null(node))
        return true;
    if (node->kind != VP_NODE_LIST)
        return bad(ctx, node, "fp8_formats", "a list");
    for (uint32_t i = 0; i < node->count; i++) {
        const char *format = vp_node_text(node->items[i]);
        if (!format)
            return bad(ctx, node->items[i], "fp8_formats", "a list of names");
        vp_buf_printf(&buf, "%s%s", buf.size ? " " : "", format);
        if (vp_text_starts(format, "e4m3") || vp_text_starts(format, "e5m2"))
            out->fp8 = true;
    }
    out->fp8_formats = vp_buf_text(&buf);
    return true;
}

/* A total that the driver does not show (APUs): the profile's own figure for the whole device. */
static bool get_whole_device(struct vp_ctx *ctx, struct vp_gpu *out, const struct vp_node *map) {
    const struct vp_node *modes = vp_node_get(vp_node_get(map, "partitions"), "modes");
    uint64_t devices;
    if (out->driver_mib || out->runtime_mib || !modes || modes->kind != VP_NODE_LIST)
        return true;
    for (uint32_t i = 0; i < modes->count; i++)
        if (vp_node_u64(&devices, vp_node_get(modes->items[i], "devices")) && devices == 1)
            return get_mib(ctx, &out->driver_mib, modes->items[i], "memory_mib");
    return true;
}

static bool check_keys(struct vp_ctx *ctx, const struct vp_node *map) {
    size_t known = sizeof KEYS / sizeof *KEYS;
    bool ok = true;
    for (uint32_t i = 0; i < map->count; i++) {
        size_t k = 0;
        while (k < known && strcmp(KEYS[k], map->keys[i]) != 0)
            k++;
        if (k < known)
            continue;
        const char *nearest = vp_text_nearest(map->keys[i], KEYS, known);
        vp_diag_add(ctx->diags, VP_D_UNKNOWN_KEY, &map->key_pos[i],
                    "unknown key \"%.100s\" in a GPU profile", map->keys[i]);
        if (nearest)
            vp_diag_hint(ctx->diags, "did you mean %s?", nearest);
        ok = false;
    }
    return ok;
}

/* unified: {default_gtt_fraction, note} of APUs */
static bool get_unified(struct vp_ctx *ctx, struct vp_gpu *out, const struct vp_node *map) {
    const struct vp_node *share = vp_node_get(vp_node_get(map, "unified"), "default_gtt_fraction");
    double v;
    if (vp_node_is_null(share))
        return true;
    if (!vp_node_real(&v, share) || !(v > 0 && v <= 1))
        return bad(ctx, share, "unified.default_gtt_fraction", "a number above 0, at most 1");
    out->gtt_ppb = (uint64_t)(v * 1e9 + 0.5);
    return true;
}

static bool get_rates(struct vp_ctx *ctx, struct vp_gpu *out, const struct vp_node *tflops) {
    bool ok = get_real(ctx, &out->tflops_bf16, tflops, "bf16");
    ok &= get_real(ctx, &out->tflops_fp16, tflops, "fp16");
    ok &= get_real(ctx, &out->tflops_fp32, tflops, "fp32");
    ok &= get_real(ctx, &out->tflops_fp8, tflops, "fp8");
    ok &= get_real(ctx, &out->tflops_int8, tflops, "int8");
    return ok & get_real(ctx, &out->tflops_fp4, tflops, "fp4");
}

/* Last-level cache and links; 0 in a profile says that there is none. */
static bool get_links(struct vp_ctx *ctx, struct vp_gpu *out, const struct vp_node *map) {
    const struct vp_node *cache = vp_node_get(map, "last_level_cache_mib");
    const struct vp_node *link = vp_node_get(map, "link");
    double none;
    bool ok = true;
    if (!vp_node_real(&none, cache) || none != 0)
        ok = get_real(ctx, &out->cache_mib, map, "last_level_cache_mib");
    if (link && link->kind == VP_NODE_MAP)
        ok &= get_real(ctx, &out->link_gbs, link, "gbs_total_per_dir");
    return ok;
}

static bool check_vendor(struct vp_ctx *ctx, struct vp_gpu *out, const struct vp_node *map) {
    if (!*out->vendor && vp_text_starts(out->arch, "gfx"))
        out->vendor = "amd";
    if (!*out->vendor && vp_text_starts(out->arch, "sm_"))
        out->vendor = "nvidia";
    static const char *const VENDORS[] = {"amd", "nvidia"};
    for (size_t i = 0; i < sizeof VENDORS / sizeof *VENDORS; i++) {
        if (vp_name_eq(out->vendor, VENDORS[i])) {
            out->vendor = VENDORS[i];
            return true;
        }
    }
    if (*out->vendor)
        return bad(ctx, vp_node_get(map, "vendor"), "vendor", "amd or nvidia");
    vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &map->pos, "GPU profile: vendor is missing");
    vp_diag_hint(ctx->diags, "vendor: amd or vendor: nvidia, or arch: gfx1100, sm_90, ...");
    return false;
}

static bool read_map(struct vp_ctx *ctx, struct vp_gpu *out, const struct vp_node *map) {
    *out = (struct vp_gpu){.vendor = "", .arch = "", .family = "", .fp8_formats = ""};
    bool ok = check_keys(ctx, map);
    ok &= get_text(ctx, &out->id, map, "id");
    ok &= get_text(ctx, &out->name, map, "name");
    ok &= get_text(ctx, &out->vendor, map, "vendor");
    ok &= get_text(ctx, &out->arch, map, "arch");
    ok &= get_text(ctx, &out->family, map, "family");
    ok &= get_text(ctx, &out->runtime_device, map, "runtime_device");
    ok &= get_mib(ctx, &out->driver_mib, map, "driver_mib");
    ok &= get_runtime(ctx, out, map);
    ok &= get_whole_device(ctx, out, map);
    ok &= get_real(ctx, &out->memory_gb, map, "memory_gb");
    ok &= get_real(ctx, &out->bandwidth_gbs, map, "bandwidth_gbs");
    ok &= get_rates(ctx, out, vp_node_get(map, "dense_tflops"));
    ok &= get_links(ctx, out, map);
    ok &= get_mib(ctx, &out->compute_units, map, vp_node_get(map, "cus") ? "cus" : "sms");
    ok &= get_fp8(ctx, out, map);
    ok &= get_unified(ctx, out, map);
    ok &= check_vendor(ctx, out, map);
    if (!out->id)
        out->id = "custom";
    if (!out->name)
        out->name = out->id;
    return ok;
}

static enum vp_status unknown(struct vp_ctx *ctx, const struct vp_node *node) {
    const char *near = vp_profile_suggest(ctx, &VP_PROFILE_GPU, node->text);
    vp_diag_add(ctx->diags, VP_D_GPU_UNKNOWN, &node->pos, "no GPU is called \"%.100s\"",
                node->text);
    vp_diag_hint(ctx->diags,
                 "%s%s`vramplan list gpus` shows all; any other card can be written "
                 "inline: gpu: {id, vendor, arch, runtime_mib}",
                 near ? near : "", near ? " " : "");
    return VP_ERR_INPUT;
}

static enum vp_status find(struct vp_ctx *ctx, struct vp_profile *profile, const char *name) {
    return vp_profile_find(ctx, profile, &VP_PROFILE_GPU, name);
}

static enum vp_status read_profile(struct vp_ctx *ctx, struct vp_gpu *out,
                                   const struct vp_profile *profile) {
    if (read_map(ctx, out, profile->root))
        return VP_OK;
    struct vp_pos pos = {.file = profile->path};
    vp_diag_add(ctx->diags, VP_D_PROFILE_BROKEN, &pos, "the GPU profile %s cannot be used",
                profile->path);
    return VP_ERR_INPUT;
}

static enum vp_status read_named(struct vp_ctx *ctx, const void **out, const void *from) {
    const struct vp_node *node = from;
    struct vp_gpu *gpu = VP_NEW(ctx->arena, struct vp_gpu);
    struct vp_profile profile;
    *out = gpu;
    enum vp_status status = find(ctx, &profile, node->text);
    if (status != VP_OK)
        return status;
    return profile.root ? read_profile(ctx, gpu, &profile) : unknown(ctx, node);
}

/* A name and where it stands, for the messages. */
static const char *key_of(struct vp_ctx *ctx, const struct vp_node *node) {
    return vp_arena_printf(ctx->arena, "gpu %s %" PRIu32 ":%" PRIu32, node->text, node->pos.line,
                           node->pos.column);
}

enum vp_status vp_gpu_read(struct vp_ctx *ctx, struct vp_gpu *out, const struct vp_node *node) {
    const void *found;
    *out = (struct vp_gpu){0};
    if (node->kind == VP_NODE_MAP)
        return read_map(ctx, out, node) ? VP_OK : VP_ERR_INPUT;
    if (!vp_node_is_scalar(node) || node->kind == VP_NODE_NULL) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &node->pos,
                    "hardware.gpu must be a name or a map, not %s", vp_node_kind_name(node->kind));
        return VP_ERR_INPUT;
    }
    enum vp_status status = vp_memo_get(ctx, &found, key_of(ctx, node), read_named, node);
    *out = *(const struct vp_gpu *)found;
    return status;
}

enum vp_status vp_gpu_named(struct vp_ctx *ctx, struct vp_gpu *out, const char *name) {
    return vp_gpu_read(ctx, out, vp_node_scalar(ctx, VP_NODE_TEXT, name, (struct vp_pos){0}));
}

/* ---- partitions ---- */

static const struct vp_node *find_mode(const struct vp_node *modes, const char *mode,
                                       struct vp_buf *known) {
    const struct vp_node *found = NULL;
    uint64_t devices;
    for (uint32_t i = 0; modes && modes->kind == VP_NODE_LIST && i < modes->count; i++) {
        const struct vp_node *item = modes->items[i];
        const char *name = vp_node_text(vp_node_get(item, "mode"));
        bool whole = vp_node_u64(&devices, vp_node_get(item, "devices")) && devices == 1;
        if (!name)
            continue;
        vp_buf_printf(known, "%s%s", known->size ? ", " : "", name);
        if (mode ? vp_name_eq(name, mode) : whole) /* no mode: the device as a whole */
            found = item;
    }
    return found;
}

static bool has_memory_mode(const struct vp_node *mode, const char *memory_mode,
                            struct vp_buf *known) {
    const struct vp_node *nps = vp_node_get(mode, "nps");
    bool found = false;
    for (uint32_t i = 0; nps && nps->kind == VP_NODE_LIST && i < nps->count; i++) {
        const char *name = vp_node_text(nps->items[i]);
        vp_buf_printf(known, "%s%s", known->size ? ", " : "", name ? name : "?");
        found |= name && vp_name_eq(name, memory_mode);
    }
    return found;
}

/* The sizes of one device of the mode in place of the whole card's. */
static bool apply_mode(struct vp_ctx *ctx, struct vp_gpu *gpu, const struct vp_node *mode) {
    uint64_t devices = 0, mib = 0;
    if (!get_mib(ctx, &devices, mode, "devices") || !get_mib(ctx, &mib, mode, "memory_mib") ||
        !get_mib(ctx, &gpu->compute_units, mode, "cus") || !devices || !mib)
        return false;
    if (devices == 1)
        return true;
    gpu->parts = devices;
    gpu->whole_mib = gpu->runtime_mib ? gpu->runtime_mib : gpu->driver_mib;
    gpu->driver_mib = mib;
    if (gpu->runtime_mib)
        gpu->runtime_mib = gpu->runtime_mib_low = gpu->runtime_mib_high = mib;
    gpu->memory_gb /= (double)devices;
    gpu->bandwidth_gbs /= (double)devices; /* with all devices busy */
    gpu->tflops_bf16 /= (double)devices;
    gpu->tflops_fp16 /= (double)devices;
    gpu->tflops_fp32 /= (double)devices;
    gpu->tflops_int8 /= (double)devices;
    gpu->tflops_fp4 /= (double)devices;
    gpu->cache_mib /= (double)devices;
    gpu->tflops_fp8 /= (double)devices;
    return true;
}

enum vp_status vp_gpu_partition(struct vp_ctx *ctx, struct vp_gpu *gpu, const char *mode,
                                const char *memory_mode, const struct vp_pos *pos) {
    struct vp_profile profile;
    struct vp_buf known = {.arena = ctx->arena}, known_memory = {.arena = ctx->arena};
    if (!mode && !memory_mode)
        return VP_OK;
    enum vp_status status = find(ctx, &profile, gpu->id);
    if (status != VP_OK)
        return status;
    const struct vp_node *modes = vp_node_get(vp_node_get(profile.root, "partitions"), "modes");
    const struct vp_node *found = find_mode(modes, mode, &known);
    if (!found) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, pos, "%s has no partition mode %s", gpu->id,
                    mode ? mode : memory_mode);
        if (known.size)
            vp_diag_hint(ctx->diags, "its modes are %s", vp_buf_text(&known));
        else
            vp_diag_hint(ctx->diags, "its profile lists no modes; give the device's total as "
                                     "hardware.memory instead");
        return VP_ERR_INPUT;
    }
    if (memory_mode && !has_memory_mode(found, memory_mode, &known_memory)) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, pos,
                    "%s has no memory mode %s in partition mode %s", gpu->id, memory_mode,
                    vp_node_text(vp_node_get(found, "mode")));
        vp_diag_hint(ctx->diags, "with it goes %s", vp_buf_text(&known_memory));
        return VP_ERR_INPUT;
    }
    return apply_mode(ctx, gpu, found) ? VP_OK : VP_ERR_INPUT;
}

/* ---- list ---- */

static int by_vendor_then_id(const void *a, const void *b) {
    const struct vp_gpu *x = a, *y = b;
    int c = strcmp(x->vendor, y->vendor);
    return c ? c : strcmp(x->id, y->id);
}

enum vp_status vp_gpu_list(struct vp_ctx *ctx, struct vp_gpus *out) {
    char **names;
    size_t count;
    *out = (struct vp_gpus){0};
    enum vp_status status = vp_profile_names(ctx, &names, &count, &VP_PROFILE_GPU);
    if (status != VP_OK)
        return status;
    out->items = VP_NEW_ARRAY(ctx->arena, count, struct vp_gpu);
    for (size_t i = 0; i < count; i++) {
        struct vp_profile profile;
        enum vp_status one = find(ctx, &profile, names[i]);
        if (one == VP_OK && profile.root)
            one = read_profile(ctx, &out->items[out->count], &profile);
        if (one == VP_OK && profile.root)
            out->count++;
        else if (status == VP_OK)
            status = one; /* the others are listed all the same */
    }
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, by_vendor_then_id);
    return status;
}
