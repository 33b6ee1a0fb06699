/* `measured` of a scenario: figures of a real run. */
#include "planner/import/scenario_parts.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/document.h"

/* ---- measured ---- */

/* What vLLM's log also prints: it follows from the others, so it pins nothing. */
static const char *const DERIVED[] = {"kv_cache_tokens", "max_concurrency",
                                      "estimated_max_model_len"};

static bool is_count(enum vp_measure what) {
    return what == VP_M_BLOCKS || what == VP_M_BLOCK_SIZE;
}

static void read_measure(struct vp_reading *r, enum vp_measure what, const struct vp_node *node,
                         const char *label) {
    struct vp_measured *measured = &r->out->measured;
    uint64_t value = 0;
    double gib;
    if (measured->known[what] || vp_node_is_null(node))
        return; /* said on the command line already */
    bool ok = is_count(what) ? vp_node_u64(&value, node) && value > 0
                             : vp_node_real(&gib, node) && vp_gib_to_bytes(&value, gib);
    if (!ok) {
        vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s must be %s, not %.100s", label,
                    is_count(what) ? "a whole number, 1 or more"
                                   : "a number of GiB as the log prints it, 0 or more",
                    vp_node_is_scalar(node) ? node->text : vp_node_kind_name(node->kind));
        return;
    }
    measured->known[what] = true;
    measured->value[what] = value;
    measured->pos[what] = node->pos;
}

/* mem_fraction_static is a setting that the log shows too. */
static bool read_setting(struct vp_reading *r, const char *key, const struct vp_node *node,
                         const char *label) {
    struct vp_value value;
    if (r->out->engine.kind != VP_ENGINE_SGLANG || strcmp(key, "mem_fraction_static") != 0)
        return false;
    if (vp_node_is_null(node) || !vp_value_parse(r, &value, VP_F_UTILIZATION, node, label))
        return true;
    struct vp_source source = {.origin = VP_ORIGIN_MEASURED, .pos = node->pos, .key = label};
    if (r->from_flags)
        source.origin = VP_ORIGIN_FLAG;
    vp_value_assign(r, VP_F_UTILIZATION, &value, &source);
    return true;
}

static void read_key(struct vp_reading *r, const char *key, const struct vp_pos *key_pos,
                     const struct vp_node *node, const char *const names[VP_MEASURE_COUNT]) {
    const char *path = vp_arena_printf(r->ctx->arena, "measured.%s", key);
    const char *label = vp_reading_label(r, path), *known[VP_MEASURE_COUNT];
    bool vllm = r->out->engine.kind == VP_ENGINE_VLLM;
    size_t derived = 0, count = 0;
    for (int i = 0; i < VP_MEASURE_COUNT; i++) {
        if (names[i] && strcmp(names[i], key) == 0) {
            read_measure(r, (enum vp_measure)i, node, label);
            return;
        }
        if (names[i])
            known[count++] = names[i];
    }
    if (read_setting(r, key, node, label))
        return;
    while (derived < sizeof DERIVED / sizeof *DERIVED && strcmp(DERIVED[derived], key) != 0)
        derived++;
    if (vllm && derived < sizeof DERIVED / sizeof *DERIVED)
        vp_diag_add(r->ctx->diags, VP_D_MEASURED_UNUSED, key_pos,
                    "%s is computed from the other figures; the measured value is not used", path);
    else
        vp_reading_unknown(r, "measured", key, key_pos, known, count);
}

/* ---- measured buffers of llama.cpp ---- */

static const char *const BUFFER_KEYS[VP_LLAMA_BUFFERS] = {"model_mib", "kv_mib", "state_mib",
                                                          "compute_mib", "output_mib"};

/* "GPU0" ... "GPU15", "GPU_Host", "CPU" */
static bool is_place(const char *name) {
    uint64_t index;
    if (vp_text_eq(name, "GPU_Host") || vp_text_eq(name, "CPU"))
        return true;
    return vp_text_starts(name, "GPU") && vp_parse_u64(&index, name + 3) &&
           index < VP_LLAMA_MAX_DEVICES;
}

static bool is_pinned(const struct vp_measured *m, enum vp_llama_buffer buffer, const char *place) {
    for (uint32_t i = 0; i < m->buffer_count; i++)
        if (m->buffers[i].buffer == buffer && vp_text_eq(m->buffers[i].place, place))
            return true;
    return false;
}

static void read_buffer(struct vp_reading *r, enum vp_llama_buffer buffer, const char *place,
                        const struct vp_node *node) {
    const uint64_t mib = UINT64_C(1) << 20, most_mib = UINT64_C(1) << 32;
    struct vp_measured *m = &r->out->measured;
    const char *path = vp_arena_printf(r->ctx->arena, "measured.%s.%s", BUFFER_KEYS[buffer], place);
    double value;
    if (is_pinned(m, buffer, place) || vp_node_is_null(node))
        return; /* said on the command line already */
    if (!is_place(place) || !vp_node_real(&value, node) ||
        !(value >= 0 && value < (double)most_mib)) {
        vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos,
                    "%s must be MiB of GPU0, GPU1, ..., GPU_Host or CPU as the log prints them",
                    vp_reading_label(r, path));
        return;
    }
    struct vp_measured_buffer *all =
        VP_NEW_ARRAY(r->ctx->arena, m->buffer_count + 1, struct vp_measured_buffer);
    if (m->buffer_count)
        memcpy(all, m->buffers, m->buffer_count * sizeof *all);
    all[m->buffer_count++] =
        (struct vp_measured_buffer){buffer, place, (uint64_t)(value * (double)mib + 0.5)};
    m->buffers = all;
}

/* A map keyed by place; a single number is that of the first GPU. */
static void read_buffers(struct vp_reading *r, const char *key, const struct vp_pos *key_pos,
                         const struct vp_node *node) {
    int b = 0;
    while (b < VP_LLAMA_BUFFERS && strcmp(BUFFER_KEYS[b], key) != 0)
        b++;
    if (b == VP_LLAMA_BUFFERS) {
        if (strcmp(key, "n_ctx") == 0)
            vp_diag_add(r->ctx->diags, VP_D_MEASURED_UNUSED, key_pos,
                        "measured.n_ctx follows from ctx_size; the measured value is not used");
        else
            vp_reading_unknown(r, "measured", key, key_pos, BUFFER_KEYS, VP_LLAMA_BUFFERS);
        return;
    }
    if (vp_node_is_scalar(node))
        read_buffer(r, (enum vp_llama_buffer)b, "GPU0", node);
    else if (vp_reading_is_map(r, node, vp_arena_printf(r->ctx->arena, "measured.%s", key)))
        for (uint32_t i = 0; i < node->count; i++)
            read_buffer(r, (enum vp_llama_buffer)b, node->keys[i], node->items[i]);
}

/* ---- measured bytes of a training run ---- */

static void read_train_measure(struct vp_reading *r, const char *key, const struct vp_pos *key_pos,
                               const struct vp_node *node) {
    struct vp_measured *measured = &r->out->measured;
    const char *names[VP_TRAIN_MEASURES];
    int m = 0;
    for (int i = 0; i < VP_TRAIN_MEASURES; i++)
        names[i] = vp_train_measure_name((enum vp_train_measure)i);
    while (m < VP_TRAIN_MEASURES && strcmp(names[m], key) != 0)
        m++;
    if (m == VP_TRAIN_MEASURES) {
        vp_reading_unknown(r, "measured", key, key_pos, names, VP_TRAIN_MEASURES);
        return;
    }
    if (measured->train_known[m] || vp_node_is_null(node))
        return; /* said on the command line already */
    if (!vp_node_is_scalar(node) || !vp_parse_size(&measured->train_bytes[m], node->text)) {
        const char *path = vp_arena_printf(r->ctx->arena, "measured.%s", key);
        vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos,
                    "%s must be a size (bytes, or \"57.3 GiB\"), not %.100s",
                    vp_reading_label(r, path),
                    vp_node_is_scalar(node) ? node->text : vp_node_kind_name(node->kind));
        return;
    }
    measured->train_known[m] = true;
    measured->train_pos[m] = node->pos;
}

void vp_scenario_read_measured(struct vp_reading *r, const struct vp_node *node) {
    const char *names[VP_MEASURE_COUNT];
    if (!vp_reading_is_map(r, node, "measured"))
        return;
    for (int i = 0; i < VP_MEASURE_COUNT; i++)
        names[i] = vp_measure_name(r->out->engine.kind, (enum vp_measure)i);
    bool llama = vp_engine_is_llama(r->out->engine.kind);
    for (uint32_t i = 0; i < node->count; i++)
        if (r->out->training)
            read_train_measure(r, node->keys[i], &node->key_pos[i], node->items[i]);
        else if (llama)
            read_buffers(r, node->keys[i], &node->key_pos[i], node->items[i]);
        else
            read_key(r, node->keys[i], &node->key_pos[i], node->items[i], names);
}
