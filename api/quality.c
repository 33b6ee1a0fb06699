#include "api/quality.h"

#include "planner/base/text.h"
#include "planner/doc/yaml.h"

enum { MAX_BYTES = 1024 * 1024 };

static enum vp_status broken(struct vp_ctx *ctx, const char *path, const char *why) {
    struct vp_pos pos = {.file = path};

    vp_diag_add(ctx->diags, VP_D_PROFILE_BROKEN, &pos, "the table of quality cannot be used: %s",
                why);
    return VP_ERR_INPUT;
}

static bool is_measurement(const struct vp_node *row) {
    double low, high;

    return vp_node_text(vp_node_get(row, "by")) && vp_node_text(vp_node_get(row, "source")) &&
           vp_node_real(&low, vp_node_get(row, "low")) &&
           vp_node_real(&high, vp_node_get(row, "high")) && low <= high;
}

static bool is_part(const struct vp_node *part) {
    for (uint32_t i = 0; part && i < part->count; i++) {
        const struct vp_node *format = part->items[i], *rows = vp_node_get(format, "measured");
        if (!vp_node_text(vp_node_get(format, "unit")) || !rows || rows->kind != VP_NODE_LIST)
            return false;
        for (uint32_t k = 0; k < rows->count; k++)
            if (!is_measurement(rows->items[k]))
                return false;
    }
    return true;
}

enum vp_status vp_quality_read(struct vp_ctx *ctx, struct vp_quality *out) {
    const char *path = vp_arena_printf(ctx->arena, "%s/quality.yaml", ctx->profiles);
    struct vp_bytes text;
    struct vp_node *root = NULL;
    uint64_t version;

    out->root = NULL;
    if (!ctx->profiles || vp_io_kind(ctx, path) != VP_FILE_REGULAR)
        return VP_OK;
    enum vp_status status = vp_io_read(ctx, &text, path, MAX_BYTES);
    if (status == VP_OK)
        status = vp_yaml_read(ctx, &root, text, path);
    if (status != VP_OK)
        return status;
    if (!vp_node_u64(&version, vp_node_get(root, "vramplan_quality")) || version != 1)
        return broken(ctx, path, "vramplan_quality must be 1");
    if (!is_part(vp_node_get(root, "weights")) || !is_part(vp_node_get(root, "kv_cache")))
        return broken(ctx, path, "every measurement has by, low, high (low <= high) and source");
    out->root = root;
    return VP_OK;
}

/* An earlier row is of the same publisher. */
static bool seen(const struct vp_node *rows, uint32_t row) {
    const char *by = vp_node_text(vp_node_get(rows->items[row], "by"));

    for (uint32_t i = 0; i < row; i++)
        if (vp_text_eq(vp_node_text(vp_node_get(rows->items[i], "by")), by))
            return true;
    return false;
}

struct vp_risk vp_quality_risk(struct vp_arena *arena, const struct vp_quality *quality,
                               const char *part, const char *format) {
    const struct vp_node *of = vp_node_get(vp_node_get(quality->root, part), format);
    const struct vp_node *rows = vp_node_get(of, "measured");
    struct vp_risk risk = {.format = vp_arena_printf(arena, "%s %s", part, format)};
    struct vp_buf by = {.arena = arena};
    double middles = 0;

    for (uint32_t i = 0; rows && i < rows->count; i++) {
        double low = 0, high = 0;
        vp_node_real(&low, vp_node_get(rows->items[i], "low"));
        vp_node_real(&high, vp_node_get(rows->items[i], "high"));
        risk.low = i == 0 || low < risk.low ? low : risk.low;
        risk.high = i == 0 || high > risk.high ? high : risk.high;
        middles += (low + high) / 2;
        if (seen(rows, i))
            continue;
        risk.publishers++;
        vp_buf_printf(&by, "%s%s", by.size ? ", " : "",
                      vp_node_text(vp_node_get(rows->items[i], "by")));
    }
    risk.unit = vp_node_text(vp_node_get(of, "unit"));
    risk.by = vp_buf_text(&by);
    risk.known = risk.publishers >= 2;
    if (rows && rows->count > 0)
        risk.likely = middles / rows->count;
    return risk;
}
