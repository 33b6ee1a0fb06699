/* Training recipes: the rows of recipe_keys.def from the field to the key. */
#include <string.h>

#include "planner/base/text.h"
#include "planner/import/recipe_rows.h"
#include "planner/import/wording_parts.h"

static const struct {
    const char *model, *module, *builder;
} BUILDERS[] = {
#define X(model, module, builder) {model, module, builder},
#include "planner/import/torchtune_builders.def"
#undef X
};

static enum vp_recipe_format format_of(enum vp_target target) {
    switch (target) {
    case VP_TARGET_AXOLOTL:
        return VP_RECIPE_AXOLOTL;
    case VP_TARGET_TORCHTUNE:
        return VP_RECIPE_TORCHTUNE;
    case VP_TARGET_DEEPSPEED:
        return VP_RECIPE_DEEPSPEED;
    default:
        return VP_RECIPE_HF;
    }
}

static struct vp_node *text(struct vp_writing *w, const char *value) {
    return vp_node_scalar(w->ctx, VP_NODE_TEXT, value, (struct vp_pos){0});
}

static struct vp_node *flag(struct vp_writing *w, bool on) {
    return vp_node_new_bool(w->ctx, on, (struct vp_pos){0});
}

static bool says(struct vp_writing *w, const char *path, const char *value) {
    const struct vp_said_leaf *leaf = vp_words_leaf(w, path);
    return leaf && vp_text_eq(vp_words_text(w, leaf), value);
}

static bool has_lora(struct vp_writing *w) { return w->scenario->train.lora.enabled; }

/* ---- values ---- */

static struct vp_node *copied(struct vp_writing *w, const struct vp_said_leaf *leaf) {
    const char *value = vp_words_text(w, leaf);
    if (!value)
        return (struct vp_node *)(uintptr_t)leaf->node;
    return leaf->node->kind == VP_NODE_TEXT && leaf->field == VP_FIELD_COUNT
               ? text(w, value)
               : vp_words_scalar(w, value);
}

static struct vp_node *attention(struct vp_writing *w, const struct vp_recipe_row *row,
                                 const char *value) {
    bool is_switch = vp_text_eq(row->key, "flash_attention");
    if (vp_text_eq(value, "flash"))
        return is_switch ? flag(w, true) : text(w, "flash_attention_2");
    return is_switch ? NULL : text(w, value);
}

static const char *const OPTIMIZERS[][2] = {
    {"adamw", "torch.optim.AdamW"},
    {"adam", "torch.optim.Adam"},
    {"sgd", "torch.optim.SGD"},
    {"adamw_8bit", "bitsandbytes.optim.AdamW8bit"},
    {"paged_adamw_8bit", "bitsandbytes.optim.PagedAdamW8bit"}};

static struct vp_node *optimizer(struct vp_writing *w, const char *value) {
    for (size_t i = 0; i < sizeof OPTIMIZERS / sizeof *OPTIMIZERS; i++) {
        if (!vp_name_eq(value, OPTIMIZERS[i][0]))
            continue;
        const char *full = OPTIMIZERS[i][1];
        if (w->target == VP_TARGET_DEEPSPEED)
            return vp_text_starts(full, "torch.") ? text(w, strrchr(full, '.') + 1) : NULL;
        return text(w, full);
    }
    return NULL;
}

static struct vp_node *builder(struct vp_writing *w) {
    const char *prefix = !has_lora(w)                          ? ""
                         : says(w, "precision.weights", "nf4") ? "qlora_"
                                                               : "lora_";
    for (size_t i = 0; i < sizeof BUILDERS / sizeof *BUILDERS; i++)
        if (vp_text_eq(BUILDERS[i].model, w->scenario->model->name))
            return text(w, vp_arena_printf(w->ctx->arena, "torchtune.models.%s.%s%s",
                                           BUILDERS[i].module, prefix, BUILDERS[i].builder));
    return NULL;
}

static struct vp_node *loss(struct vp_writing *w, const struct vp_recipe_row *row,
                            const char *value) {
    if (w->target != VP_TARGET_TORCHTUNE)
        return vp_text_eq(value, "fused_linear") && !vp_text_starts(row->key, "cut_")
                   ? flag(w, true)
                   : NULL;
    return vp_text_eq(value, "unfused") ? text(w, "torch.nn.CrossEntropyLoss")
           : vp_text_eq(value, "chunked")
               ? text(w, "torchtune.modules.loss.CEWithChunkedOutputLoss")
           : vp_text_eq(value, "fused_linear")
               ? text(w, "torchtune.modules.loss.LinearCrossEntropyLoss")
               : NULL;
}

/* ---- adapters of torchtune ---- */

enum { Q = 1, K = 2, V = 4, O = 8, MLP = 16 + 32 + 64 };

/* The matrices of a list of targets as bits; 0: one of them is none of torchtune's. */
static unsigned targets(struct vp_writing *w) {
    static const char *const NAMES[] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                        "gate_proj", "up_proj", "down_proj"};
    const struct vp_said_leaf *leaf = vp_words_leaf(w, "train.lora.targets");
    unsigned set = 0;
    if (!leaf || leaf->node->kind != VP_NODE_LIST)
        return says(w, "train.lora.targets", "all-linear") ? Q | K | V | O | MLP : 0;
    for (uint32_t i = 0; i < leaf->node->count; i++) {
        size_t k = 0;
        while (k < 7 && !vp_text_eq(vp_node_text(leaf->node->items[i]), NAMES[k]))
            k++;
        if (k == 7)
            return 0;
        set |= 1U << k;
    }
    return (set & MLP) == 0 || (set & MLP) == MLP ? set : 0;
}

static struct vp_node *modules(struct vp_writing *w) {
    static const char *const NAMES[] = {"q_proj", "k_proj", "v_proj", "output_proj"};
    unsigned set = targets(w);
    struct vp_node *list = vp_node_new(w->ctx, VP_NODE_LIST, (struct vp_pos){0});
    list->items = VP_NEW_ARRAY(w->ctx->arena, 4, struct vp_node *);
    for (unsigned k = 0; k < 4; k++)
        if (set & 1U << k)
            list->items[list->count++] = text(w, NAMES[k]);
    return set ? list : NULL;
}

/* ---- fused operators ---- */

/* One switch for three fields. */
static void write_liger(struct vp_writing *w, const struct vp_recipe_row *row) {
    static const char *const PARTS[][2] = {{"train.ops.norm", "fused"},
                                           {"train.ops.mlp", "fused"},
                                           {"train.ops.cross_entropy", "fused_linear"}};
    for (size_t i = 0; i < 3; i++)
        if (!says(w, PARTS[i][0], PARTS[i][1]))
            return;
    for (size_t i = 0; i < 3; i++)
        vp_words_leaf(w, PARTS[i][0])->written = true;
    vp_words_put(w, row->key, flag(w, true));
}

/* ---- rows ---- */

/* NULL: the key cannot say it. */
static struct vp_node *value_of(struct vp_writing *w, const struct vp_recipe_row *row,
                                const struct vp_said_leaf *leaf) {
    const char *value = vp_words_text(w, leaf);
    switch (row->action) {
    case VP_RECIPE_COPY:
        return vp_text_eq(value, "all-linear") && w->target == VP_TARGET_AXOLOTL ? NULL
                                                                                 : copied(w, leaf);
    case VP_RECIPE_FULL:
        return vp_text_eq(value, "full")   ? flag(w, true)
               : vp_text_eq(value, "none") ? flag(w, false)
                                           : NULL;
    case VP_RECIPE_ATTENTION:
        return attention(w, row, value);
    case VP_RECIPE_NF4:
        return vp_text_eq(value, "nf4") ? flag(w, true) : NULL;
    case VP_RECIPE_INT8:
        return vp_text_eq(value, "int8") ? flag(w, true) : NULL;
    case VP_RECIPE_SHARDED:
        return vp_text_eq(value, "true") ? text(w, "full_shard auto_wrap") : NULL;
    case VP_RECIPE_COMPONENT:
        return vp_text_eq(row->field, "model") ? builder(w) : optimizer(w, value);
    case VP_RECIPE_FUSED:
        return vp_text_eq(value, "fused") ? flag(w, true) : NULL;
    case VP_RECIPE_LINEAR:
        return vp_text_eq(value, "all-linear") ? flag(w, true) : NULL;
    case VP_RECIPE_LOSS:
        return loss(w, row, value);
    case VP_RECIPE_MODULES:
        return modules(w);
    case VP_RECIPE_MLP:
        return targets(w) ? flag(w, targets(w) & MLP) : NULL;
    case VP_RECIPE_BITS:
    case VP_RECIPE_HALF:
    case VP_RECIPE_LIGER:
    case VP_RECIPE_ADAPTER:
    case VP_RECIPE_NOTED:
        break;
    }
    return NULL;
}

/* Two keys may say one field together: the modules and the feed-forward of torchtune's adapters. */
static bool joins(const struct vp_recipe_row *row) {
    return row->action == VP_RECIPE_MLP || row->action == VP_RECIPE_NF4;
}

static void write_row(struct vp_writing *w, const struct vp_recipe_row *row) {
    struct vp_said_leaf *leaf = vp_words_leaf(w, row->field);
    if (row->action == VP_RECIPE_LIGER) {
        write_liger(w, row);
        return;
    }
    if (row->action == VP_RECIPE_ADAPTER && has_lora(w))
        vp_words_put(w, row->key, text(w, says(w, row->field, "nf4") ? "qlora" : "lora"));
    bool model = vp_text_eq(row->field, "model");
    if (!leaf || (leaf->written && !joins(row) && !model))
        return;
    struct vp_node *value = model && row->action == VP_RECIPE_COPY
                                ? (w->out->model ? text(w, w->out->model) : NULL)
                                : value_of(w, row, leaf);
    if (model)
        leaf->written = value != NULL;
    if (!value)
        return;
    leaf->written = true;
    vp_words_put(w, row->key, value);
}

/* What a reader of the recipe looks for even when the scenario leaves it to its default. */
static void write_anyway(struct vp_writing *w) {
    static const char *const KEYS[][2] = {
        [VP_TARGET_HF] = {"per_device_train_batch_size", NULL},
        [VP_TARGET_AXOLOTL] = {"micro_batch_size", NULL},
        [VP_TARGET_TORCHTUNE] = {"batch_size", "enable_activation_checkpointing"},
        [VP_TARGET_DEEPSPEED] = {"train_micro_batch_size_per_gpu", NULL},
    };
    const char *batch = KEYS[w->target][0], *recompute = KEYS[w->target][1];
    if (!vp_node_get(w->out->options, batch))
        vp_words_put(w, batch,
                     vp_words_scalar(
                         w, vp_arena_printf(w->ctx->arena, "%llu",
                                            (unsigned long long)w->scenario->train.micro_batch)));
    if (recompute && !vp_node_get(w->out->options, recompute))
        vp_words_put(w, recompute, flag(w, false));
}

/* DeepSpeed keeps its stages in a map of their own. */
static void write_zero(struct vp_writing *w) {
    static const char *const OFFLOADS[][2] = {
        {"train.offload.optimizer", "zero_optimization.offload_optimizer.device"},
        {"train.offload.parameters", "zero_optimization.offload_param.device"}};
    struct vp_said_leaf *zero = vp_words_leaf(w, "parallel.zero");
    if (zero && !vp_node_get(w->out->options, "zero_optimization")) {
        vp_words_put(w, "zero_optimization.stage", vp_words_scalar(w, vp_words_text(w, zero)));
        zero->written = true;
    }
    for (size_t i = 0; i < 2 && zero && zero->written; i++) {
        struct vp_said_leaf *leaf = vp_words_leaf(w, OFFLOADS[i][0]);
        if (!leaf || !says(w, OFFLOADS[i][0], "true"))
            continue;
        vp_words_put(w, OFFLOADS[i][1], text(w, "cpu"));
        leaf->written = true;
    }
}

void vp_words_recipe(struct vp_writing *w) {
    enum vp_recipe_format format = format_of(w->target);
    for (size_t i = 0; i < vp_recipe_row_count; i++)
        if (vp_recipe_rows[i].format == format)
            write_row(w, &vp_recipe_rows[i]);
    if (w->target == VP_TARGET_DEEPSPEED) {
        struct vp_said_leaf *model = vp_words_leaf(w, "model");
        if (model)
            model->written = false; /* the configuration names none */
        write_zero(w);
    }
    write_anyway(w);
}
