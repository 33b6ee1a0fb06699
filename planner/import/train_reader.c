#include "planner/import/train_reader.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/document.h"

enum action { SAME, FULL, SHARDS, STRATEGY, ZERO, NOTED };
enum { TORCH = 1, HF = 2, MEGATRON = 4, DEEPSPEED = 8 };

static const struct row {
    const char *key;
    int engines;
    enum action action;
    enum vp_field field;
} ROWS[] = {
#define X(key, engines, action, field) {key, engines, action, VP_F_##field},
#include "planner/import/train_args.def"
#undef X
};

static int bit_of(enum vp_engine_kind kind) {
    switch (kind) {
    case VP_ENGINE_PYTORCH:
        return TORCH;
    case VP_ENGINE_TRANSFORMERS:
        return HF;
    case VP_ENGINE_MEGATRON:
        return MEGATRON;
    case VP_ENGINE_DEEPSPEED:
        return DEEPSPEED;
    case VP_ENGINE_VLLM:
    case VP_ENGINE_SGLANG:
    case VP_ENGINE_LLAMA_CPP:
    case VP_ENGINE_OLLAMA:
        break;
    }
    return 0;
}

static const char *shown(const struct vp_node *node) {
    return vp_node_is_scalar(node) && *node->text ? node->text : vp_node_kind_name(node->kind);
}

static void refuse(struct vp_reading *r, const struct vp_node *node, const char *path,
                   const char *want) {
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s must be %s, not %.100s",
                vp_reading_label(r, path), want, shown(node));
}

/* The command line was read first and stays. */
static bool is_said(const struct vp_reading *r, enum vp_field field) {
    return r->out->source[field].origin == VP_ORIGIN_FLAG && !r->from_flags;
}

static void note(struct vp_reading *r, enum vp_field field, const struct vp_node *node) {
    const char *path = vp_field_info(field)->path;
    r->out->source[field] =
        (struct vp_source){.origin = r->from_flags ? VP_ORIGIN_FLAG : VP_ORIGIN_FILE,
                           .pos = node->pos,
                           .key = vp_reading_label(r, path)};
}

/* ---- maps of fields ---- */

/* "none" for a type: said, and there is none. */
static bool read_none(struct vp_reading *r, enum vp_field field, const struct vp_node *node) {
    if (vp_field_info(field)->kind != VP_KIND_DTYPE || !vp_node_is_scalar(node) ||
        !(vp_name_eq(node->text, "none") || vp_name_eq(node->text, "auto")))
        return false;
    if (vp_name_eq(node->text, "none") && !is_said(r, field))
        note(r, field, node);
    return true;
}

/* Dropout may be 0, which no other share may. */
static bool read_zero(struct vp_reading *r, enum vp_field field, const struct vp_node *node) {
    double v;
    if (vp_field_info(field)->kind != VP_KIND_SHARE || !vp_node_real(&v, node) || v > 0 || v < 0)
        return false;
    if (!is_said(r, field))
        note(r, field, node);
    return true;
}

static void read_value(struct vp_reading *r, enum vp_field field, const struct vp_node *node) {
    if (read_none(r, field, node) || read_zero(r, field, node))
        return;
    vp_value_read(r, field, node, VP_ORIGIN_FILE, NULL);
}

/* A map whose keys are the fields "train.SECTION.KEY". special: reads a key that is more. */
static void read_fields_of(struct vp_reading *r, const char *section, const struct vp_node *map,
                           bool (*special)(struct vp_reading *r, const char *key,
                                           const struct vp_node *node),
                           const char *const *more, size_t more_count) {
    const char *names[VP_FIELD_COUNT + 4];
    size_t count = 0, length = strlen(section);
    if (!vp_reading_is_map(r, map, section))
        return;
    for (int i = 0; i < VP_FIELD_COUNT; i++) {
        const char *path = vp_field_info((enum vp_field)i)->path;
        if (strncmp(path, section, length) == 0 && path[length] == '.')
            names[count++] = path + length + 1;
    }
    for (size_t i = 0; i < more_count; i++)
        names[count++] = more[i];
    for (uint32_t i = 0; i < map->count; i++) {
        const char *key = map->keys[i];
        enum vp_field field = vp_field_find(vp_arena_printf(r->ctx->arena, "%s.%s", section, key));
        if (special && special(r, key, map->items[i]))
            continue;
        if (field < VP_FIELD_COUNT)
            read_value(r, field, map->items[i]);
        else
            vp_reading_unknown(r, section, key, &map->key_pos[i], names, count);
    }
}

/* ---- adapters ---- */

/* A module name ends with the target: "q_proj" of "self_attn.q_proj". */
static bool ends_with_module(const char *name, size_t length, const char *target) {
    size_t n = strlen(target);
    return n > 0 && n <= length && memcmp(name + length - n, target, n) == 0 &&
           (n == length || name[length - n - 1] == '.');
}

static bool is_of_role(enum vp_role role, const char *target) {
    const char *names = vp_role_names(role);
    while (*names) {
        size_t length = strcspn(names, " ");
        if (ends_with_module(names, length, target))
            return true;
        names += length;
        names += strspn(names, " ");
    }
    return false;
}

static bool is_expert(enum vp_role role) { return vp_role_class(role) == VP_CLASS_EXPERT; }

/* Matrices of the layers that an adapter can stand beside. */
static bool is_matrix(enum vp_role role) {
    switch (vp_role_class(role)) {
    case VP_CLASS_ATTENTION:
        return role != VP_ROLE_SINKS;
    case VP_CLASS_LINEAR:
    case VP_CLASS_MLP:
    case VP_CLASS_EXPERT:
    case VP_CLASS_SHARED:
        return true;
    default:
        return role == VP_ROLE_ROUTER || role == VP_ROLE_LM_HEAD || role == VP_ROLE_EMBEDDING;
    }
}

/* Names under which frameworks keep several matrices as one module. */
static const struct {
    const char *target;
    enum vp_role role[3];
    int roles;
} JOINT[] = {{"qkv_proj", {VP_ROLE_Q, VP_ROLE_K, VP_ROLE_V}, 3},
             {"query_key_value", {VP_ROLE_Q, VP_ROLE_K, VP_ROLE_V}, 3},
             {"linear_qkv", {VP_ROLE_Q, VP_ROLE_K, VP_ROLE_V}, 3},
             {"c_attn", {VP_ROLE_Q, VP_ROLE_K, VP_ROLE_V}, 3},
             {"Wqkv", {VP_ROLE_Q, VP_ROLE_K, VP_ROLE_V}, 3},
             {"linear_proj", {VP_ROLE_O}, 1},
             {"output_proj", {VP_ROLE_O}, 1},
             {"gate_up_proj", {VP_ROLE_GATE, VP_ROLE_UP}, 2},
             {"linear_fc1", {VP_ROLE_GATE, VP_ROLE_UP}, 2},
             {"linear_fc2", {VP_ROLE_DOWN}, 1}};

static bool add_target(struct vp_train_lora *lora, const char *target) {
    bool all = vp_name_eq(target, "all-linear") || vp_name_eq(target, "all_linear");
    bool experts = strcmp(target, "experts") == 0, found = experts;
    for (size_t i = 0; i < sizeof JOINT / sizeof *JOINT; i++)
        for (int k = 0; k < JOINT[i].roles; k++)
            if (strcmp(JOINT[i].target, target) == 0)
                lora->roles[JOINT[i].role[k]] = found = true;
    for (int i = 0; i < VP_ROLE_COUNT; i++) {
        enum vp_role role = (enum vp_role)i;
        bool table = role == VP_ROLE_LM_HEAD || role == VP_ROLE_EMBEDDING;
        bool meant = experts ? is_expert(role)
                     : all   ? !table
                             : !is_expert(role) && is_of_role(role, target);
        if (!is_matrix(role) || !meant)
            continue;
        lora->roles[role] = found = true;
    }
    return found;
}

static void read_target(struct vp_reading *r, const struct vp_node *node) {
    static const char *const NAMES[] = {"all-linear", "q_proj",  "k_proj",    "v_proj", "o_proj",
                                        "gate_proj",  "up_proj", "down_proj", "experts"};
    const char *target = vp_node_text(node);
    if (target && add_target(&r->out->train.lora, target))
        return;
    const char *nearest =
        target ? vp_text_nearest(target, NAMES, sizeof NAMES / sizeof *NAMES) : NULL;
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos,
                "train.lora.targets: no matrix of a layer is called %.100s", shown(node));
    if (nearest)
        vp_diag_hint(r->ctx->diags, "did you mean %s?", nearest);
    else
        vp_diag_hint(r->ctx->diags, "names as in the checkpoint: q_proj, v_proj, gate_proj, ...; "
                                    "all-linear; experts");
}

static bool read_lora_key(struct vp_reading *r, const char *key, const struct vp_node *node) {
    if (strcmp(key, "alpha") == 0) /* scales, moves no bytes */
        return true;
    if (strcmp(key, "targets") != 0)
        return false;
    if (r->train_targets_from_flags && !r->from_flags)
        return true;
    memset(r->out->train.lora.roles, 0, sizeof r->out->train.lora.roles);
    r->train_targets = true;
    r->train_targets_from_flags = r->from_flags;
    if (node->kind != VP_NODE_LIST)
        read_target(r, node);
    for (uint32_t i = 0; node->kind == VP_NODE_LIST && i < node->count; i++)
        read_target(r, node->items[i]);
    return true;
}

/* ---- recomputation ---- */

static const struct {
    const char *name;
    enum vp_recompute_kind kind;
} KINDS[] = {{"none", VP_RECOMPUTE_NONE},
             {"full", VP_RECOMPUTE_FULL},
             {"selective", VP_RECOMPUTE_SELECTIVE},
             {"sqrt", VP_RECOMPUTE_SQRT},
             {"optimal", VP_RECOMPUTE_OPTIMAL}};
static const char RECOMPUTE_FORMS[] =
    "none, full, selective, sqrt, optimal, {every: K}, {segments: [...]}, {first: M} or "
    "{layers: [...]}";

static bool read_list(struct vp_reading *r, const struct vp_node *node, uint64_t least) {
    struct vp_recompute *out = &r->out->train.recompute;
    if (node->kind != VP_NODE_LIST || node->count > VP_MAX_LAYERS)
        return false;
    out->list = VP_NEW_ARRAY(r->ctx->arena, node->count + 1, uint64_t);
    out->list_count = node->count;
    for (uint32_t i = 0; i < node->count; i++)
        if (!vp_node_u64(&out->list[i], node->items[i]) || out->list[i] < least)
            return false;
    return true;
}

static bool read_recompute_map(struct vp_reading *r, const struct vp_node *node) {
    struct vp_recompute *out = &r->out->train.recompute;
    const struct vp_node *value = node->count == 1 ? node->items[0] : NULL;
    const char *key = value ? node->keys[0] : "";
    if (strcmp(key, "every") == 0) {
        out->kind = VP_RECOMPUTE_EVERY;
        return vp_node_u64(&out->every, value) && out->every > 0;
    }
    if (strcmp(key, "first") == 0) {
        out->kind = VP_RECOMPUTE_FIRST;
        return vp_node_u64(&out->first, value);
    }
    if (strcmp(key, "segments") == 0) {
        out->kind = VP_RECOMPUTE_SEGMENTS;
        return read_list(r, value, 1);
    }
    if (strcmp(key, "layers") == 0) {
        out->kind = VP_RECOMPUTE_LAYERS;
        return read_list(r, value, 0);
    }
    return false;
}

static bool read_recompute_name(struct vp_reading *r, const struct vp_node *node) {
    bool flag;
    if (vp_node_bool(&flag, node)) {
        r->out->train.recompute.kind = flag ? VP_RECOMPUTE_FULL : VP_RECOMPUTE_NONE;
        return true;
    }
    for (size_t i = 0; vp_node_is_scalar(node) && i < sizeof KINDS / sizeof *KINDS; i++)
        if (vp_name_eq(node->text, KINDS[i].name)) {
            r->out->train.recompute.kind = KINDS[i].kind;
            return true;
        }
    return false;
}

static void read_recompute(struct vp_reading *r, const struct vp_node *node) {
    if (vp_node_is_null(node) || is_said(r, VP_F_RECOMPUTE))
        return;
    r->out->train.recompute = (struct vp_recompute){0};
    bool ok =
        node->kind == VP_NODE_MAP ? read_recompute_map(r, node) : read_recompute_name(r, node);
    if (!ok) {
        refuse(r, node, "train.recompute", RECOMPUTE_FORMS);
        return;
    }
    r->out->train.recompute_name = vp_document_show(r->ctx, node);
    note(r, VP_F_RECOMPUTE, node);
}

/* ---- frozen parts ---- */

static void read_frozen(struct vp_reading *r, const struct vp_node *node) {
    struct vp_train *train = &r->out->train;
    bool flag;
    if (vp_node_bool(&flag, node)) {
        train->frozen = flag;
        return;
    }
    if (node->kind != VP_NODE_LIST) {
        refuse(r, node, "train.frozen", "true, false or a list of matrix names");
        return;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        const char *text = vp_node_text(node->items[i]);
        bool found = false;
        for (int role = 0; text && role < VP_ROLE_COUNT; role++)
            if (is_of_role((enum vp_role)role, text) ||
                vp_name_eq(vp_class_name(vp_role_class((enum vp_role)role)), text))
                train->frozen_roles[role] = found = true;
        if (!found)
            refuse(r, node->items[i], "train.frozen",
                   "names of matrices (q_proj) or tensor classes (embedding, attention)");
    }
}

/* ---- the section ---- */

static bool is_training(const struct vp_node *root) {
    const struct vp_node *train = vp_node_get(root, "train");
    return train && !vp_node_is_null(train) && (train->kind != VP_NODE_MAP || train->count > 0);
}

void vp_train_scan(struct vp_reading *r, const struct vp_node *root) {
    r->out->training |= is_training(root);
}

bool vp_train_key(struct vp_reading *r, const char *key, const struct vp_node *node) {
    static const char *const LORA[] = {"alpha", "targets"};
    if (strcmp(key, "dtype") == 0) {
        read_fields_of(r, "train.dtype", node, NULL, NULL, 0);
    } else if (strcmp(key, "lora") == 0) {
        r->out->train.lora.enabled |= node->kind == VP_NODE_MAP;
        read_fields_of(r, "train.lora", node, read_lora_key, LORA, 2);
    } else if (strcmp(key, "ops") == 0) {
        read_fields_of(r, "train.ops", node, NULL, NULL, 0);
    } else if (strcmp(key, "offload") == 0) {
        read_fields_of(r, "train.offload", node, NULL, NULL, 0);
    } else if (strcmp(key, "recompute") == 0) {
        read_recompute(r, node);
    } else if (strcmp(key, "frozen") == 0) {
        read_frozen(r, node);
    } else {
        return false;
    }
    return true;
}

/* ---- arguments of frameworks ---- */

static const struct row *find_row(enum vp_engine_kind kind, const char *key) {
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if ((ROWS[i].engines & bit_of(kind)) && strcmp(ROWS[i].key, key) == 0)
            return &ROWS[i];
    return NULL;
}

/* A switch that stands for a value of the field; the field itself, where it was said, holds. */
static void read_switch(struct vp_reading *r, enum vp_field field, const char *value,
                        const char *as_written, const struct vp_node *node) {
    bool on;
    if (!vp_node_bool(&on, node)) {
        refuse(r, node, vp_arena_printf(r->ctx->arena, "engine.args.%s", as_written),
               "true or false");
        return;
    }
    if (!on || vp_scenario_is_given(r->out, field))
        return;
    if (field == VP_F_RECOMPUTE) {
        r->out->train.recompute = (struct vp_recompute){.kind = VP_RECOMPUTE_FULL};
        r->out->train.recompute_name = value;
        note(r, field, node);
    } else {
        const struct vp_node *said = vp_node_scalar(r->ctx, VP_NODE_INT, value, node->pos);
        vp_value_read(r, field, said, VP_ORIGIN_ARGS, as_written);
    }
}

static void read_strategy(struct vp_reading *r, const char *as_written,
                          const struct vp_node *node) {
    const char *text = vp_node_text(node);
    bool sharded = text && (vp_name_eq(text, "full_shard") || vp_name_eq(text, "hybrid_shard"));
    if (!sharded)
        return; /* ddp, no_shard: nothing is divided; shard_grad_op is kept as an argument */
    vp_value_read(r, VP_F_FSDP, vp_node_new_bool(r->ctx, true, node->pos), VP_ORIGIN_ARGS,
                  as_written);
}

/* {stage: 2, offload_optimizer: {device: cpu}, ...} */
static void read_zero_map(struct vp_reading *r, const char *as_written,
                          const struct vp_node *node) {
    const struct vp_node *optimizer = vp_node_get(node, "offload_optimizer");
    const struct vp_node *parameters = vp_node_get(node, "offload_param");
    const struct vp_node *stage = vp_node_get(node, "stage");
    struct vp_node *yes = vp_node_new_bool(r->ctx, true, node->pos);
    if (stage)
        vp_value_read(r, VP_F_ZERO, stage, VP_ORIGIN_ARGS,
                      vp_arena_printf(r->ctx->arena, "%s.stage", as_written));
    if (optimizer && !vp_text_eq(vp_node_text(vp_node_get(optimizer, "device")), "none"))
        vp_value_read(r, VP_F_TRAIN_OFFLOAD_OPT, yes, VP_ORIGIN_ARGS, as_written);
    if (parameters && !vp_text_eq(vp_node_text(vp_node_get(parameters, "device")), "none"))
        vp_value_read(r, VP_F_TRAIN_OFFLOAD_PAR, yes, VP_ORIGIN_ARGS, as_written);
}

bool vp_train_arg(struct vp_reading *r, const char *key, const char *as_written,
                  const struct vp_node *node) {
    const struct row *row = r->out->training ? find_row(r->out->engine.kind, key) : NULL;
    if (!row)
        return false;
    switch (row->action) {
    case SAME:
        vp_value_read(r, row->field, node, VP_ORIGIN_ARGS, as_written);
        break;
    case FULL:
        read_switch(r, row->field, "full", as_written, node);
        break;
    case SHARDS:
        read_switch(r, row->field, "1", as_written, node);
        break;
    case STRATEGY:
        read_strategy(r, as_written, node);
        break;
    case ZERO:
        read_zero_map(r, as_written, node);
        break;
    case NOTED:
        break;
    }
    return true;
}
