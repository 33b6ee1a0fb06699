#include "planner/import/record_reader.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/document.h"

/* ---- values ---- */

/* What one of the key's unit is worth: GiB and MiB in bytes, max_concurrency in thousandths. */
static uint64_t unit_of(const char *key) {
    static const struct {
        const char *end;
        uint64_t unit;
    } UNITS[] = {{"_gib", UINT64_C(1) << 30},
                 {"_mib", UINT64_C(1) << 20},
                 {"max_concurrency", 1000},
                 {"mem_fraction_static", 1000000000}};
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (vp_text_ends(key, UNITS[i].end))
            return UNITS[i].unit;
    return 1;
}

/* The value of one in the last place that a number was written with. */
static uint64_t step_of(const char *text, uint64_t unit) {
    const char *point = strchr(text, '.');
    size_t decimals = point ? strspn(point + 1, "0123456789") : 0;
    while (decimals-- > 0)
        unit /= 10;
    return unit;
}

static bool parse_value(struct vp_record_value *out, const char *key, const char *text) {
    const double most = 9e18; /* below 2^63, which checks count in */
    uint64_t unit = unit_of(key);
    double number;
    out->step = step_of(text, unit);
    if (vp_text_ends(key, "_bytes")) {
        out->step = 0; /* the framework says bytes; what is written in GiB is meant so */
        return vp_parse_size(&out->value, text) && out->value <= INT64_MAX;
    }
    if (!vp_parse_real(&number, text) || !(number >= 0 && number * (double)unit < most))
        return false;
    out->value = (uint64_t)(number * (double)unit + 0.5);
    return true;
}

static void add_value(struct vp_ctx *ctx, struct vp_record *out, const char *key, const char *place,
                      const struct vp_node *node) {
    struct vp_record_value value = {.key = key, .place = place, .pos = node->pos};
    if (vp_node_is_null(node))
        return;
    if (vp_node_is_scalar(node) && parse_value(&value, key, node->text)) {
        out->values[out->value_count++] = value;
        return;
    }
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &node->pos,
                "measured %s must be a number as the log prints it, not %.100s", key,
                vp_node_is_scalar(node) ? node->text : vp_node_kind_name(node->kind));
}

void vp_record_values(struct vp_ctx *ctx, struct vp_record *out, const struct vp_node *node) {
    size_t count = 0;
    if (node->kind != VP_NODE_MAP) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &node->pos,
                    "measured values must be a map ({weights_gib: 14.99}), not %s",
                    vp_node_kind_name(node->kind));
        return;
    }
    for (uint32_t i = 0; i < node->count; i++)
        count += node->items[i]->kind == VP_NODE_MAP ? node->items[i]->count : 1;
    out->values = VP_NEW_ARRAY(ctx->arena, count, struct vp_record_value);
    for (uint32_t i = 0; i < node->count; i++) {
        const struct vp_node *value = node->items[i];
        if (value->kind != VP_NODE_MAP)
            add_value(ctx, out, node->keys[i], NULL, value);
        for (uint32_t k = 0; value->kind == VP_NODE_MAP && k < value->count; k++)
            add_value(ctx, out, node->keys[i], value->keys[k], value->items[k]);
    }
}

/* ---- which engine ---- */

void vp_record_engine(struct vp_ctx *ctx, struct vp_record *out, const struct vp_node *node) {
    const char *text = vp_node_text(node);
    if (vp_node_is_null(node))
        return;
    if (node->kind == VP_NODE_MAP) {
        out->engine = vp_node_text(vp_node_get(node, "name"));
        out->engine_version = vp_node_text(vp_node_get(node, "version"));
        return;
    }
    if (!text || !*text) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &node->pos,
                    "a record's engine must be like vllm@0.19, not %s",
                    vp_node_kind_name(node->kind));
        return;
    }
    const char *at = strchr(text, '@');
    out->engine = at ? vp_arena_text(ctx->arena, text, (size_t)(at - text)) : text;
    out->engine_version = at && at[1] ? at + 1 : NULL;
}

/* ---- a record in a file ---- */

enum vp_status vp_record_load(struct vp_ctx *ctx, struct vp_record *record) {
    uint32_t errors = ctx->diags->errors;
    struct vp_node *root;
    if (!record->path)
        return VP_OK;
    enum vp_status status = vp_document_read(ctx, &root, record->path);
    if (status != VP_OK)
        return status;
    const struct vp_node *measured = vp_node_get(root, "measured");
    if (vp_node_is_null(measured)) {
        struct vp_pos pos = {.file = record->path};
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &pos, "there is no measured: in this record");
        vp_diag_hint(ctx->diags, "vramplan import-log LOG --scenario FILE --measured-out RECORD "
                                 "makes one");
        return VP_ERR_INPUT;
    }
    vp_record_values(ctx, record, measured);
    if (!record->engine)
        vp_record_engine(ctx, record, vp_node_get(root, "engine"));
    return ctx->diags->errors > errors ? VP_ERR_INPUT : VP_OK;
}
