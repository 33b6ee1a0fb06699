/* Numbers, rates and durations of the fields of traffic, with their faults. */
#include "planner/import/traffic_parts.h"

#include <math.h>
#include <string.h>

#include "planner/base/units.h"
#include "planner/import/document.h"

/* More is a typing error, and would overflow what is simulated. */
static const double MOST_TOKENS = 1e9;

static const char *shown(struct vp_reading *r, const struct vp_node *node) {
    return vp_node_is_scalar(node) && *node->text ? node->text
           : node->count > 0                      ? vp_document_show(r->ctx, node)
                                                  : vp_node_kind_name(node->kind);
}

void vp_traffic_refuse(struct vp_reading *r, const struct vp_node *node, const char *path,
                       const char *want, const char *hint) {
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s must be %s, not %.100s",
                vp_reading_label(r, path), want, shown(r, node));
    if (hint)
        vp_diag_hint(r->ctx->diags, "%s", hint);
}

bool vp_traffic_is_said(const struct vp_reading *r, enum vp_field field) {
    return r->out->source[field].origin == VP_ORIGIN_FLAG && !r->from_flags;
}

bool vp_traffic_takes(struct vp_reading *r, enum vp_field field, const struct vp_node *node) {
    struct vp_source *source = &r->out->source[field];
    const char *path = vp_field_info(field)->path;

    if (vp_node_is_null(node) || vp_traffic_is_said(r, field))
        return false;
    *source = (struct vp_source){.origin = r->from_flags ? VP_ORIGIN_FLAG : VP_ORIGIN_FILE,
                                 .pos = node->pos,
                                 .key = vp_reading_label(r, path)};
    return true;
}

void vp_traffic_keep_text(struct vp_reading *r, enum vp_field field, const char **member,
                          const struct vp_node *node) {
    if (vp_traffic_takes(r, field, node))
        *member = vp_document_show(r->ctx, node);
}

bool vp_traffic_read_tokens(double *out, const struct vp_node *node) {
    uint64_t whole;

    if (!vp_node_is_scalar(node))
        return false;
    if (vp_node_real(out, node))
        return isfinite(*out) && *out > 0 && *out <= MOST_TOKENS;
    if (!vp_parse_tokens(&whole, node->text))
        return false;
    *out = (double)whole;
    return whole > 0 && *out <= MOST_TOKENS;
}

bool vp_traffic_read_number(double *out, const struct vp_node *node, double least, double most) {
    return vp_node_is_scalar(node) && vp_parse_real(out, node->text) && *out >= least &&
           *out <= most;
}

int vp_traffic_key_of(struct vp_reading *r, const char *section, const struct vp_node *map,
                      uint32_t i, const char *const *names, int count) {
    for (int k = 0; k < count; k++)
        if (strcmp(names[k], map->keys[i]) == 0)
            return k;
    vp_reading_unknown(r, section, map->keys[i], &map->key_pos[i], names, (size_t)count);
    return -1;
}
