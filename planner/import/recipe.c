#include "planner/import/recipe.h"

#include <ctype.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/import/recipe_rows.h"

const struct vp_recipe_row vp_recipe_rows[] = {
#define X(format, key, field, action) {VP_RECIPE_##format, key, field, VP_RECIPE_##action},
#include "planner/import/recipe_keys.def"
#undef X
};
const size_t vp_recipe_row_count = sizeof vp_recipe_rows / sizeof *vp_recipe_rows;

/* What a recipe is told by, most telling first; its engine; what reports call it. */
static const struct {
    enum vp_recipe_format format;
    const char *key;
    const char *engine, *kind;
} SIGNS[] = {
    {VP_RECIPE_DEEPSPEED, "train_micro_batch_size_per_gpu", "deepspeed", "DeepSpeed configuration"},
    {VP_RECIPE_DEEPSPEED, "zero_optimization", "deepspeed", "DeepSpeed configuration"},
    {VP_RECIPE_ACCELERATE, "distributed_type", "transformers", "accelerate configuration"},
    {VP_RECIPE_AXOLOTL, "base_model", "transformers", "axolotl configuration"},
    {VP_RECIPE_HF, "per_device_train_batch_size", "transformers",
     "Hugging Face training arguments"},
    {VP_RECIPE_TORCHTUNE, "enable_activation_checkpointing", "pytorch", "torchtune recipe"},
};

static int sign_of(const struct vp_node *document) {
    for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++)
        if (vp_node_get(document, SIGNS[i].key))
            return (int)i;
    return -1;
}

bool vp_recipe_is_document(const struct vp_node *document) {
    return document && document->kind == VP_NODE_MAP && !vp_node_get(document, "vramplan") &&
           sign_of(document) >= 0;
}

/* ---- building ---- */

void vp_recipe_set(struct vp_ctx *ctx, struct vp_node *scenario, const char *path,
                   struct vp_node *value) {
    struct vp_node *map = scenario;
    const char *dot;
    /* names of engine arguments may hold dots of their own */
    for (int depth = 0; depth < 2 && (dot = strchr(path, '.')); depth++, path = dot + 1) {
        const char *key = vp_arena_text(ctx->arena, path, (size_t)(dot - path));
        struct vp_node *inner = vp_node_get(map, key);
        if (!inner) {
            inner = vp_node_new(ctx, VP_NODE_MAP, value->pos);
            vp_node_set(ctx, map, key, value->pos, inner);
        }
        map = inner;
    }
    vp_node_set(ctx, map, path, value->pos, value);
}

static void ignore(struct vp_ctx *ctx, struct vp_recipe *recipe, const char *key) {
    if (!recipe->ignored)
        recipe->ignored = VP_NEW_ARRAY(ctx->arena, VP_RECIPE_MAX_IGNORED, const char *);
    if (recipe->ignored_count < VP_RECIPE_MAX_IGNORED)
        recipe->ignored[recipe->ignored_count++] = key;
}

static void set_text(struct vp_ctx *ctx, struct vp_recipe *out, const char *field, const char *text,
                     struct vp_pos pos) {
    vp_recipe_set(ctx, out->scenario, field, vp_node_scalar(ctx, VP_NODE_TEXT, text, pos));
}

static bool is_on(const struct vp_node *node) {
    bool flag;
    if (vp_node_is_null(node))
        return false;
    if (vp_node_bool(&flag, node))
        return flag;
    if (!vp_node_is_scalar(node))
        return node->count > 0;
    return *node->text && !vp_text_eq(node->text, "no") && !vp_text_eq(node->text, "auto") &&
           !vp_text_eq(node->text, "none");
}

/* ---- actions ---- */

/* "torch.optim.AdamW" -> "adamw", with room for what a framework adds. */
static const char *component(struct vp_ctx *ctx, const char *text) {
    const char *dot = strrchr(text, '.');
    char *out = vp_arena_text(ctx->arena, dot ? dot + 1 : text, strlen(dot ? dot + 1 : text));
    for (char *p = out; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return out;
}

/* "llama3_1_8b" -> "llama3.1_8b": a version within a Python name. */
static const char *with_dots(struct vp_ctx *ctx, const char *name) {
    char *out = vp_arena_text(ctx->arena, name, strlen(name));
    for (char *p = out; *p; p++) {
        char *q = p + 1;
        while (*p == '_' && isdigit((unsigned char)*q))
            q++;
        if (*p == '_' && p > out && isdigit((unsigned char)p[-1]) && q > p + 1 && *q == '_')
            *p = '.';
    }
    return out;
}

/* "torchtune.models.llama3_1.qlora_llama3_1_8b" names size and method. */
static void set_component(struct vp_ctx *ctx, struct vp_recipe *out,
                          const struct vp_recipe_row *row, const struct vp_node *node) {
    const char *name = component(ctx, vp_node_text(node) ? node->text : "");
    bool model = vp_text_eq(row->field, "model");
    if (model && vp_text_starts(name, "qlora_")) {
        set_text(ctx, out, "precision.weights", "nf4", node->pos);
        name += strlen("qlora_");
    } else if (model && vp_text_starts(name, "lora_")) {
        name += strlen("lora_");
    } else if (vp_text_eq(name, "adamw8bit") || vp_text_eq(name, "pagedadamw8bit")) {
        name = vp_text_eq(name, "adamw8bit") ? "adamw_8bit" : "paged_adamw_8bit";
    } else if (vp_text_eq(name, "pagedadamw")) {
        name = "adamw";
    }
    set_text(ctx, out, row->field, model ? with_dots(ctx, name) : name, node->pos);
}

static void set_attention(struct vp_ctx *ctx, struct vp_recipe *out,
                          const struct vp_recipe_row *row, const struct vp_node *node) {
    const char *text = vp_node_text(node);
    bool flag;
    if (vp_node_bool(&flag, node) && !flag)
        return;
    if (text && (vp_text_eq(text, "sdpa") || vp_text_eq(text, "eager")))
        set_text(ctx, out, row->field, text, node->pos);
    else if (text && !vp_text_eq(text, "auto") && !vp_text_eq(text, "disabled"))
        set_text(ctx, out, row->field, "flash", node->pos);
}

static void set_loss(struct vp_ctx *ctx, struct vp_recipe *out, const struct vp_recipe_row *row,
                     const struct vp_node *node) {
    const char *text = vp_node_text(node) ? node->text : "";
    bool flag = false;
    if (vp_node_bool(&flag, node)) {
        if (flag)
            set_text(ctx, out, row->field, "fused_linear", node->pos);
    } else if (strstr(text, "Linear")) {
        set_text(ctx, out, row->field, "fused_linear", node->pos);
    } else if (strstr(text, "Chunked")) {
        set_text(ctx, out, row->field, "chunked", node->pos);
    } else {
        set_text(ctx, out, row->field, "unfused", node->pos);
    }
}

/* torchtune calls the output projection output_proj. */
static void set_modules(struct vp_ctx *ctx, struct vp_recipe *out, const struct vp_recipe_row *row,
                        const struct vp_node *node) {
    struct vp_node *list = vp_node_new(ctx, VP_NODE_LIST, node->pos);
    list->items = VP_NEW_ARRAY(ctx->arena, node->count + 1, struct vp_node *);
    for (uint32_t i = 0; node->kind == VP_NODE_LIST && i < node->count; i++) {
        const char *text = vp_node_text(node->items[i]);
        bool output = text && vp_text_eq(text, "output_proj");
        list->items[list->count++] =
            output ? vp_node_scalar(ctx, VP_NODE_TEXT, "o_proj", node->items[i]->pos)
                   : node->items[i];
    }
    vp_recipe_set(ctx, out->scenario, row->field, list);
}

/* Beside the attention's modules, which stand before it in every recipe. */
static void add_mlp(struct vp_ctx *ctx, struct vp_recipe *out, const struct vp_recipe_row *row,
                    const struct vp_node *node) {
    static const char *const NAMES[] = {"gate_proj", "up_proj", "down_proj"};
    const struct vp_node *lora = vp_node_get(vp_node_get(out->scenario, "train"), "lora");
    const struct vp_node *before = vp_node_get(lora, "targets");
    struct vp_node *list = vp_node_new(ctx, VP_NODE_LIST, node->pos);
    if (!is_on(node))
        return;
    list->items = VP_NEW_ARRAY(ctx->arena, (before ? before->count : 0) + 3, struct vp_node *);
    for (uint32_t i = 0; before && i < before->count; i++)
        list->items[list->count++] = before->items[i];
    for (size_t i = 0; i < 3; i++)
        list->items[list->count++] = vp_node_scalar(ctx, VP_NODE_TEXT, NAMES[i], node->pos);
    vp_recipe_set(ctx, out->scenario, row->field, list);
}

static void set_bits(struct vp_ctx *ctx, struct vp_recipe *out, const struct vp_recipe_row *row,
                     const struct vp_node *node) {
    uint64_t bits = 0;
    vp_node_u64(&bits, node);
    if (row->action == VP_RECIPE_BITS ? bits == 4 : row->action == VP_RECIPE_NF4 && is_on(node))
        set_text(ctx, out, row->field, "nf4", node->pos);
    else if (row->action == VP_RECIPE_BITS ? bits == 8
                                           : row->action == VP_RECIPE_INT8 && is_on(node))
        set_text(ctx, out, row->field, "int8", node->pos);
}

static void set_liger(struct vp_ctx *ctx, struct vp_recipe *out, const struct vp_node *node) {
    if (!is_on(node))
        return;
    set_text(ctx, out, "train.ops.norm", "fused", node->pos);
    set_text(ctx, out, "train.ops.mlp", "fused", node->pos);
    set_text(ctx, out, "train.ops.cross_entropy", "fused_linear", node->pos);
}

static void apply(struct vp_ctx *ctx, struct vp_recipe *out, const struct vp_recipe_row *row,
                  struct vp_node *node) {
    const char *text = vp_node_text(node);
    if (vp_node_is_null(node) || (text && vp_text_eq(text, "auto")))
        return; /* says nothing */
    switch (row->action) {
    case VP_RECIPE_COPY:
        vp_recipe_set(ctx, out->scenario, row->field, node);
        break;
    case VP_RECIPE_FULL:
        set_text(ctx, out, row->field, is_on(node) ? "full" : "none", node->pos);
        break;
    case VP_RECIPE_ATTENTION:
        set_attention(ctx, out, row, node);
        break;
    case VP_RECIPE_BITS:
    case VP_RECIPE_NF4:
    case VP_RECIPE_INT8:
        set_bits(ctx, out, row, node);
        break;
    case VP_RECIPE_SHARDED:
        if (is_on(node))
            vp_recipe_set(ctx, out->scenario, row->field, vp_node_new_bool(ctx, true, node->pos));
        break;
    case VP_RECIPE_COMPONENT:
        set_component(ctx, out, row, node);
        break;
    case VP_RECIPE_FUSED:
        if (is_on(node))
            set_text(ctx, out, row->field, "fused", node->pos);
        break;
    case VP_RECIPE_HALF:
        if (is_on(node))
            vp_recipe_set(ctx, out->scenario, row->field, node);
        break;
    case VP_RECIPE_LIGER:
        set_liger(ctx, out, node);
        break;
    case VP_RECIPE_LINEAR:
        if (is_on(node))
            set_text(ctx, out, row->field, "all-linear", node->pos);
        break;
    case VP_RECIPE_ADAPTER:
        if (text && vp_text_eq(text, "qlora"))
            set_text(ctx, out, row->field, "nf4", node->pos);
        break;
    case VP_RECIPE_LOSS:
        set_loss(ctx, out, row, node);
        break;
    case VP_RECIPE_MODULES:
        set_modules(ctx, out, row, node);
        break;
    case VP_RECIPE_MLP:
        add_mlp(ctx, out, row, node);
        break;
    case VP_RECIPE_NOTED:
        break;
    }
}

/* ---- the walk ---- */

static const struct vp_recipe_row *find_row(enum vp_recipe_format format, const char *key) {
    for (size_t i = 0; i < vp_recipe_row_count; i++)
        if (vp_recipe_rows[i].format == format && vp_text_eq(vp_recipe_rows[i].key, key))
            return &vp_recipe_rows[i];
    return NULL;
}

/* Some row is about a key inside this map. */
static bool has_rows_below(enum vp_recipe_format format, const char *key) {
    size_t n = strlen(key);
    for (size_t i = 0; i < vp_recipe_row_count; i++)
        if (vp_recipe_rows[i].format == format && strncmp(vp_recipe_rows[i].key, key, n) == 0 &&
            vp_recipe_rows[i].key[n] == '.')
            return true;
    return false;
}

static void walk(struct vp_ctx *ctx, struct vp_recipe *out, enum vp_recipe_format format,
                 const char *prefix, const struct vp_node *map) {
    for (uint32_t i = 0; i < map->count; i++) {
        const char *key =
            *prefix ? vp_arena_printf(ctx->arena, "%s.%s", prefix, map->keys[i]) : map->keys[i];
        const struct vp_recipe_row *row = find_row(format, key);
        if (row)
            apply(ctx, out, row, map->items[i]);
        else if (map->items[i]->kind == VP_NODE_MAP && has_rows_below(format, key))
            walk(ctx, out, format, key, map->items[i]);
        else
            ignore(ctx, out, key);
    }
}

/* accelerate says in words what is divided. */
static void set_distribution(struct vp_ctx *ctx, struct vp_recipe *out,
                             const struct vp_node *document) {
    const struct vp_node *type = vp_node_get(document, "distributed_type");
    if (vp_text_eq(vp_node_text(type), "FSDP"))
        vp_recipe_set(ctx, out->scenario, "parallel.fsdp", vp_node_new_bool(ctx, true, type->pos));
}

enum vp_status vp_recipe_from_document(struct vp_ctx *ctx, struct vp_recipe *out,
                                       const struct vp_node *document) {
    int sign = sign_of(document);
    *out = (struct vp_recipe){.kind = SIGNS[sign].kind,
                              .scenario = vp_node_new(ctx, VP_NODE_MAP, document->pos)};
    set_text(ctx, out, "engine.name", SIGNS[sign].engine, document->pos);
    walk(ctx, out, SIGNS[sign].format, "", document);
    if (SIGNS[sign].format == VP_RECIPE_ACCELERATE)
        set_distribution(ctx, out, document);
    return VP_OK;
}
