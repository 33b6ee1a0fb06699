#include "planner/import/devices_reader.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/gpu_profile.h"

enum { MOST_DEVICES = 1 << 20 };

static const char *const NAMES[] = {"gpu", "count", "memory", "reserved"};
enum { NAME_COUNT = sizeof NAMES / sizeof *NAMES };

static bool read_size(struct vp_reading *r, uint64_t *out, const struct vp_node *node,
                      const char *key) {
    if (vp_node_is_scalar(node) && vp_parse_size(out, node->text))
        return true;
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos,
                "hardware.devices: %s must be a size: bytes, or text with a unit (\"16 GiB\")",
                key);
    return false;
}

static bool read_count(struct vp_reading *r, uint64_t *out, const struct vp_node *node) {
    if (vp_node_u64(out, node) && *out > 0 && *out <= MOST_DEVICES)
        return true;
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos,
                "hardware.devices: count must be a whole number, 1 or more");
    return false;
}

static bool read_group(struct vp_reading *r, struct vp_device_group *out,
                       const struct vp_node *node) {
    const struct vp_node *gpu = vp_node_get(node, "gpu");
    const struct vp_node *count = vp_node_get(node, "count");
    const struct vp_node *memory = vp_node_get(node, "memory");
    const struct vp_node *reserved = vp_node_get(node, "reserved");
    bool ok = true;

    *out = (struct vp_device_group){.count = 1, .pos = node->pos};
    for (uint32_t i = 0; i < node->count; i++) {
        size_t k = 0;
        while (k < NAME_COUNT && strcmp(NAMES[k], node->keys[i]) != 0)
            k++;
        if (k == NAME_COUNT) {
            vp_reading_unknown(r, "hardware.devices", node->keys[i], &node->key_pos[i], NAMES,
                               NAME_COUNT);
            ok = false;
        }
    }
    if (vp_node_is_null(gpu)) {
        vp_diag_add(r->ctx->diags, VP_D_MISSING_VALUE, &node->pos,
                    "hardware.devices: an entry without gpu");
        return false;
    }
    ok = vp_gpu_read(r->ctx, &out->gpu, gpu) == VP_OK && ok;
    if (count)
        ok = read_count(r, &out->count, count) && ok;
    if (!vp_node_is_null(memory))
        ok = read_size(r, &out->memory_bytes, memory, "memory") && ok;
    if (!vp_node_is_null(reserved))
        ok = read_size(r, &out->reserved_bytes, reserved, "reserved") && ok;
    return ok;
}

/* The sum of the groups is hardware.count, as if it had been written there. */
static void say_totals(struct vp_reading *r, const struct vp_node *node) {
    struct vp_hardware *hw = &r->out->hardware;
    struct vp_source source = {.origin = r->from_flags ? VP_ORIGIN_FLAG : VP_ORIGIN_FILE,
                               .pos = node->pos,
                               .key = vp_reading_label(r, "hardware.devices")};
    struct vp_value count = {.number = 0};

    for (uint32_t i = 0; i < hw->group_count; i++)
        count.number += hw->groups[i].count;
    vp_value_assign(r, VP_F_COUNT, &count, &source);
    if (vp_scenario_is_given(r->out, VP_F_GPU)) {
        vp_diag_add(r->ctx->diags, VP_D_CONTRADICTION, &node->pos,
                    "hardware.gpu and hardware.devices both say which devices there are");
        vp_diag_hint(r->ctx->diags, "keep one of the two");
        return;
    }
    hw->gpu_name = hw->groups[0].gpu.id;
    r->out->source[VP_F_GPU] = source;
}

void vp_devices_read(struct vp_reading *r, const struct vp_node *node) {
    struct vp_hardware *hw = &r->out->hardware;

    if (hw->group_count > 0 || vp_node_is_null(node))
        return; /* said on the command line already */
    if (node->kind == VP_NODE_LIST && node->count == 0)
        return;
    if (node->kind != VP_NODE_LIST || node->count > VP_MAX_DEVICE_GROUPS) {
        vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos,
                    "hardware.devices must be a list of 1 to %d entries {gpu, count, memory, "
                    "reserved}",
                    VP_MAX_DEVICE_GROUPS);
        return;
    }
    struct vp_device_group *groups =
        VP_NEW_ARRAY(r->ctx->arena, node->count, struct vp_device_group);
    for (uint32_t i = 0; i < node->count; i++) {
        if (!vp_reading_is_map(r, node->items[i], "hardware.devices") ||
            !read_group(r, &groups[i], node->items[i]))
            return;
    }
    hw->groups = groups;
    hw->group_count = node->count;
    say_totals(r, node);
}
