#include "planner/import/serve_extras.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/doc/yaml.h"
#include "planner/import/document.h"

enum action { SAME, GIB, SPECULATIVE, DRAFT, NOTED };
enum { VLLM = 1, SGLANG = 2, BOTH = 3 };

static const struct row {
    const char *key;
    enum action action;
    enum vp_field field;
    int engines;
} ROWS[] = {
#define X(key, action, field, engines) {key, action, VP_F_##field, engines},
#include "planner/import/extra_args.def"
#undef X
};

enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS };

static const char CONFIG[] = "speculative_config.";

static int bit_of(enum vp_engine_kind kind) {
    return kind == VP_ENGINE_VLLM ? VLLM : kind == VP_ENGINE_SGLANG ? SGLANG : 0;
}

size_t vp_extra_arg_names(const char *out[VP_EXTRA_ARGS], enum vp_engine_kind kind) {
    size_t n = 0;

    for (size_t i = 0; i < ROW_COUNT && n < VP_EXTRA_ARGS; i++)
        if (ROWS[i].engines & bit_of(kind))
            out[n++] = ROWS[i].key;
    return n;
}

static bool says_field(const struct row *row, enum vp_engine_kind kind) {
    return (row->engines & bit_of(kind)) && (row->action == SAME || row->action == GIB);
}

const char *vp_extra_arg_word(enum vp_engine_kind kind, enum vp_field field) {
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (ROWS[i].field == field && says_field(&ROWS[i], kind))
            return ROWS[i].key;
    return NULL;
}

enum vp_field vp_extra_arg_field(enum vp_engine_kind kind, const char *key) {
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(ROWS[i].key, key) == 0 && says_field(&ROWS[i], kind))
            return ROWS[i].field;
    return VP_FIELD_COUNT;
}

/* ---- values ---- */

/* What messages call a key of the scenario or of engine.args. */
static const char *label_of(const struct vp_reading *r, enum vp_origin origin, const char *key) {
    const char *path =
        origin == VP_ORIGIN_ARGS ? vp_arena_printf(r->ctx->arena, "engine.args.%s", key) : key;
    return vp_reading_label(r, path);
}

static struct vp_source source_of(const struct vp_reading *r, const struct vp_node *node,
                                  enum vp_origin origin, const char *key) {
    struct vp_source source = {.origin = origin, .pos = node->pos, .key = key};

    if (r->from_flags) {
        source.origin = VP_ORIGIN_FLAG;
        source.key = label_of(r, origin, key);
    }
    return source;
}

static void refuse(struct vp_reading *r, const struct vp_node *node, const char *label,
                   const char *want) {
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s must be %s, not %.100s", label, want,
                vp_node_is_scalar(node) && *node->text ? node->text
                                                       : vp_node_kind_name(node->kind));
}

/* A number of GiB without a unit; 0 says nothing. */
static void read_gib(struct vp_reading *r, enum vp_field field, const struct vp_node *node,
                     const char *key) {
    const double gib = 1073741824, most = 1 << 24;
    double number;

    if (vp_node_is_null(node))
        return;
    if (!vp_node_real(&number, node) || !(number >= 0 && number < most)) {
        refuse(r, node, label_of(r, VP_ORIGIN_ARGS, key), "a number of GiB");
        return;
    }
    struct vp_value value = {.number = (uint64_t)(number * gib + 0.5)};
    struct vp_source source = source_of(r, node, VP_ORIGIN_ARGS, key);
    if (value.number > 0)
        vp_value_assign(r, field, &value, &source);
}

/* A model is a text or a description; the node is kept until all places have been read. */
static void read_draft_model(struct vp_reading *r, const struct vp_node *node,
                             enum vp_origin origin, const char *key) {
    if (vp_node_is_null(node))
        return;
    if (node->kind != VP_NODE_MAP && (!vp_node_is_scalar(node) || !*node->text)) {
        refuse(r, node, label_of(r, origin, key), "a model");
        return;
    }
    struct vp_value value = {.text = vp_document_show(r->ctx, node)};
    struct vp_source source = source_of(r, node, origin, key);
    vp_value_assign(r, VP_F_DRAFT_MODEL, &value, &source);
    if (r->out->draft.name != value.text)
        return;
    r->draft_node = node;
    r->draft_from_flags = r->from_flags;
}

/* ---- serve ---- */

static void unknown(struct vp_reading *r, const char *section, const struct vp_node *map,
                    uint32_t i, const char *const *names, size_t count) {
    vp_reading_unknown(r, section, map->keys[i], &map->key_pos[i], names, count);
}

static void read_lora(struct vp_reading *r, const struct vp_node *node) {
    static const char *const NAMES[] = {"slots", "rank"};
    static const enum vp_field FIELDS[] = {VP_F_LORA_SLOTS, VP_F_LORA_RANK};

    if (!vp_reading_is_map(r, node, "serve.lora"))
        return;
    r->lora_given |= node->count > 0;
    for (uint32_t i = 0; i < node->count; i++) {
        size_t k = 0;
        while (k < 2 && strcmp(NAMES[k], node->keys[i]) != 0)
            k++;
        if (k == 2)
            unknown(r, "serve.lora", node, i, NAMES, 2);
        else
            vp_value_read(r, FIELDS[k], node->items[i], VP_ORIGIN_FILE,
                          vp_field_info(FIELDS[k])->path);
    }
}

static void read_draft(struct vp_reading *r, const struct vp_node *node) {
    static const char *const NAMES[] = {"model", "method", "tokens", "tensor", "acceptance"};
    static const enum vp_field FIELDS[] = {VP_F_DRAFT_MODEL, VP_F_DRAFT_METHOD, VP_F_DRAFT_TOKENS,
                                           VP_F_DRAFT_TENSOR, VP_F_DRAFT_ACCEPTANCE};
    enum { COUNT = sizeof NAMES / sizeof *NAMES };

    if (!vp_reading_is_map(r, node, "serve.draft"))
        return;
    r->draft_given |= node->count > 0;
    for (uint32_t i = 0; i < node->count; i++) {
        size_t k = 0;
        while (k < COUNT && strcmp(NAMES[k], node->keys[i]) != 0)
            k++;
        if (k == COUNT)
            unknown(r, "serve.draft", node, i, NAMES, COUNT);
        else if (FIELDS[k] == VP_F_DRAFT_MODEL)
            read_draft_model(r, node->items[i], VP_ORIGIN_FILE, "serve.draft.model");
        else
            vp_value_read(r, FIELDS[k], node->items[i], VP_ORIGIN_FILE,
                          vp_field_info(FIELDS[k])->path);
    }
}

/* A size, or a share of what there is ("0.4"). */
static void read_weights(struct vp_reading *r, const struct vp_node *node) {
    double share;
    bool plain = vp_node_real(&share, node) && share > 0 && share <= 1;

    vp_value_read(r, plain ? VP_F_OFFLOAD_SHARE : VP_F_OFFLOAD_WEIGHTS, node, VP_ORIGIN_FILE,
                  "serve.offload.weights");
}

static void read_offload(struct vp_reading *r, const struct vp_node *node) {
    static const char *const NAMES[] = {"weights", "kv", "experts"};

    if (!vp_reading_is_map(r, node, "serve.offload"))
        return;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct vp_node *value = node->items[i];
        size_t k = 0;
        while (k < 3 && strcmp(NAMES[k], node->keys[i]) != 0)
            k++;
        if (k == 3) {
            unknown(r, "serve.offload", node, i, NAMES, 3);
        } else if (k < 2 && vp_value_is_harmless(value)) {
            continue; /* nothing is offloaded */
        } else if (k == 0) {
            read_weights(r, value);
        } else if (k == 1) {
            vp_value_read(r, VP_F_OFFLOAD_KV, value, VP_ORIGIN_FILE, "serve.offload.kv");
        } else if (!vp_value_is_harmless(value)) {
            vp_diag_add(r->ctx->diags, VP_D_UNMODELLED, &value->pos,
                        "serve.offload.experts is not modelled for this engine");
            vp_diag_hint(r->ctx->diags,
                         "serve.offload.weights takes a size or a share of the layers");
        }
    }
}

/* A number of images, or {count, tokens}. */
static void read_images(struct vp_reading *r, const struct vp_node *node) {
    static const char *const NAMES[] = {"count", "tokens"};
    static const enum vp_field FIELDS[] = {VP_F_IMAGES, VP_F_IMAGE_TOKENS};

    if (node->kind != VP_NODE_MAP) {
        vp_value_read(r, VP_F_IMAGES, node, VP_ORIGIN_FILE, "serve.images");
        return;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        size_t k = 0;
        while (k < 2 && strcmp(NAMES[k], node->keys[i]) != 0)
            k++;
        if (k == 2)
            unknown(r, "serve.images", node, i, NAMES, 2);
        else
            vp_value_read(r, FIELDS[k], node->items[i], VP_ORIGIN_FILE,
                          k ? "serve.images.tokens" : "serve.images");
    }
}

bool vp_serve_key(struct vp_reading *r, const char *key, const struct vp_node *node) {
    static const struct {
        const char *key;
        void (*read)(struct vp_reading *, const struct vp_node *);
    } KEYS[] = {{"lora", read_lora},
                {"draft", read_draft},
                {"images", read_images},
                {"offload", read_offload}};

    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        if (strcmp(KEYS[i].key, key) != 0)
            continue;
        if (strcmp(key, "images") == 0 || !vp_value_is_harmless(node))
            KEYS[i].read(r, node);
        return true;
    }
    return false;
}

/* ---- engine.args ---- */

/* One key of speculative_config. Those that move no bytes are passed over. */
static void read_config_key(struct vp_reading *r, const char *key, const char *as_written,
                            const struct vp_node *node) {
    static const struct {
        const char *key;
        enum vp_field field;
    } FIELDS[] = {{"method", VP_F_DRAFT_METHOD},
                  {"num_speculative_tokens", VP_F_DRAFT_TOKENS},
                  {"draft_tensor_parallel_size", VP_F_DRAFT_TENSOR}};
    static const char *const REFUSED[] = {"quantization", "kv_cache_dtype"};

    if (strcmp(key, "model") == 0) {
        read_draft_model(r, node, VP_ORIGIN_ARGS, as_written);
        return;
    }
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (strcmp(FIELDS[i].key, key) == 0)
            vp_value_read(r, FIELDS[i].field, node, VP_ORIGIN_ARGS, as_written);
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++)
        if (strcmp(REFUSED[i], key) == 0 && !vp_value_is_harmless(node))
            vp_diag_add(r->ctx->diags, VP_D_UNMODELLED, &node->pos,
                        "%s: a draft of another type than its description's and the target's cache "
                        "is not modelled",
                        label_of(r, VP_ORIGIN_ARGS, as_written));
}

/* A map, or its text as the command line takes it. */
static void read_config(struct vp_reading *r, const char *as_written, const struct vp_node *node) {
    struct vp_node *map = NULL;

    if (vp_node_is_null(node))
        return;
    if (node->kind == VP_NODE_TEXT && node->text[0] == '{') {
        struct vp_bytes text = {node->text, strlen(node->text)};
        if (vp_yaml_read(r->ctx, &map, text, as_written) != VP_OK)
            return;
        node = map;
    }
    if (node->kind != VP_NODE_MAP) {
        refuse(r, node, label_of(r, VP_ORIGIN_ARGS, as_written), "a map, or its text in JSON");
        return;
    }
    r->draft_given |= node->count > 0;
    for (uint32_t i = 0; i < node->count; i++) {
        if (map) /* positions inside a text say nothing */
            node->items[i]->pos = (struct vp_pos){0};
        read_config_key(r, node->keys[i],
                        vp_arena_printf(r->ctx->arena, "%s.%s", as_written, node->keys[i]),
                        node->items[i]);
    }
}

bool vp_extra_arg(struct vp_reading *r, bool *used, const char *key, const char *as_written,
                  const struct vp_node *node) {
    const struct row *row = NULL;
    int bit = bit_of(r->out->engine.kind);

    *used = true;
    if (vp_text_starts(key, CONFIG) && r->out->engine.kind == VP_ENGINE_VLLM) {
        r->draft_given = true;
        read_config_key(r, key + sizeof CONFIG - 1, as_written, node);
        return true;
    }
    for (size_t i = 0; i < ROW_COUNT && !row; i++)
        if (strcmp(ROWS[i].key, key) == 0 && (ROWS[i].engines & bit))
            row = &ROWS[i];
    if (!row)
        return false;
    switch (row->action) {
    case SAME:
        r->draft_given |= row->field == VP_F_DRAFT_TOKENS;
        vp_value_read(r, row->field, node, VP_ORIGIN_ARGS, as_written);
        break;
    case GIB:
        read_gib(r, row->field, node, as_written);
        break;
    case SPECULATIVE:
        read_config(r, as_written, node);
        break;
    case DRAFT:
        r->draft_given |= !vp_node_is_null(node);
        read_draft_model(r, node, VP_ORIGIN_ARGS, as_written);
        break;
    case NOTED:
        break;
    }
    return true;
}
