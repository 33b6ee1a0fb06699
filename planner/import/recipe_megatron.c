/* A Megatron command line, alone or in a shell script for a batch system. */
#include <ctype.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/recipe.h"
#include "planner/import/recipe_rows.h"
#include "planner/import/shell_text.h"

const char VP_MEGATRON_MODEL[] = "model", VP_MEGATRON_LAUNCH[] = "launch";

#define MODEL VP_MEGATRON_MODEL
#define LAUNCH VP_MEGATRON_LAUNCH
const struct vp_megatron_option vp_megatron_options[] = {
#define X(option, field) {option, field},
#include "planner/import/megatron_args.def"
#undef X
};
const size_t vp_megatron_option_count = sizeof vp_megatron_options / sizeof *vp_megatron_options;

struct option {
    const char *name; /* with dashes, without the leading ones */
    const struct vp_shell_word *values;
    uint32_t count;
};

struct script {
    struct vp_ctx *ctx;
    struct vp_pos pos;
    struct vp_shell_text text;
    uint64_t nodes, gpus_per_node; /* of #SBATCH lines and the launcher; 0: not said */
};

/* ---- batch systems ---- */

/* The number behind an option of a batch system: "--nodes=8", "-N 8", "--gres=gpu:8". */
static uint64_t number_behind(const char *line, const char *option) {
    const char *text = strstr(line, option);
    uint64_t v = 0;
    if (!text)
        return 0;
    for (text += strlen(option); *text && !isdigit((unsigned char)*text); text++)
        if (text[0] == ' ' && text[1] == '-')
            return 0; /* the next option */
    for (; isdigit((unsigned char)*text) && v < 1000000; text++)
        v = 10 * v + (uint64_t)(*text - '0');
    return v;
}

static void batch_line(struct script *s, const char *line) {
    static const char *const NODES[] = {"--nodes", "-N "};
    static const char *const GPUS[] = {"--gpus-per-node", "--gres", "--ntasks-per-node"};
    for (size_t i = 0; i < 2 && s->nodes == 0; i++)
        s->nodes = number_behind(line, NODES[i]);
    for (size_t i = 0; i < 3; i++) {
        uint64_t gpus = number_behind(line, GPUS[i]);
        if (gpus > s->gpus_per_node)
            s->gpus_per_node = gpus;
    }
}

/* ---- options ---- */

static bool is_option(const char *word) { return word[0] == '-' && word[1] == '-' && word[2]; }

/* "--name value", "--name=value"; dashes and underscores are the same. */
static struct option next_option(struct script *s, uint32_t *i) {
    const struct vp_shell_word *words = s->text.words;
    const char *word = words[(*i)++].text + 2, *equals = strchr(word, '=');
    struct option option = {.values = &words[*i]};
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    char *name = vp_arena_text(s->ctx->arena, word, length);
    for (char *p = name; *p; p++)
        if (*p == '_')
            *p = '-';
    option.name = name;
    if (equals) {
        struct vp_shell_word *value = VP_NEW(s->ctx->arena, struct vp_shell_word);
        *value = (struct vp_shell_word){equals + 1, words[*i - 1].pos};
        option.values = value;
        option.count = 1;
        return option;
    }
    while (*i < s->text.count && words[*i].text && !is_option(words[*i].text)) {
        (*i)++;
        option.count++;
    }
    return option;
}

static const char *field_of(const char *option) {
    for (size_t i = 0; i < vp_megatron_option_count; i++)
        if (vp_text_eq(vp_megatron_options[i].option, option))
            return vp_megatron_options[i].field;
    return NULL;
}

static struct vp_node *scalar(struct script *s, const struct vp_shell_word *word) {
    const char *text = word->text;
    uint64_t v;
    double real;
    enum vp_node_kind kind = vp_parse_u64(&v, text)       ? VP_NODE_INT
                             : vp_parse_real(&real, text) ? VP_NODE_REAL
                                                          : VP_NODE_TEXT;
    return vp_node_scalar(s->ctx, kind, text, word->pos);
}

static struct vp_node *value_of(struct script *s, const struct option *option) {
    if (option->count == 0)
        return vp_node_new_bool(s->ctx, true, s->pos);
    if (option->count == 1)
        return scalar(s, &option->values[0]);
    struct vp_node *list = vp_node_new(s->ctx, VP_NODE_LIST, s->pos);
    list->items = VP_NEW_ARRAY(s->ctx->arena, option->count, struct vp_node *);
    for (uint32_t i = 0; i < option->count; i++)
        list->items[list->count++] = scalar(s, &option->values[i]);
    return list;
}

/* ---- the model ---- */

static uint64_t number(const struct vp_node *args, const char *key, uint64_t usual) {
    uint64_t v = usual;
    vp_node_u64(&v, vp_node_get(args, key));
    return v;
}

static bool on(const struct vp_node *args, const char *key) {
    bool flag = false;
    return vp_node_bool(&flag, vp_node_get(args, key)) && flag;
}

static void put_number(struct script *s, struct vp_node *map, const char *key, uint64_t v) {
    vp_node_set(s->ctx, map, key, s->pos, vp_node_new_u64(s->ctx, v, s->pos));
}

static void put_text(struct script *s, struct vp_node *map, const char *key, const char *text) {
    vp_node_set(s->ctx, map, key, s->pos, vp_node_scalar(s->ctx, VP_NODE_TEXT, text, s->pos));
}

static void put_flag(struct script *s, struct vp_node *map, const char *key, bool flag) {
    vp_node_set(s->ctx, map, key, s->pos, vp_node_new_bool(s->ctx, flag, s->pos));
}

static struct vp_node *attention(struct script *s, const struct vp_node *args) {
    struct vp_node *out = vp_node_new(s->ctx, VP_NODE_MAP, s->pos);
    uint64_t heads = number(args, "num-attention-heads", 0);
    uint64_t hidden = number(args, "hidden-size", 0);
    uint64_t width = number(args, "kv-channels", heads > 0 ? hidden / heads : 0);
    if (on(args, "multi-latent-attention")) {
        put_text(s, out, "kind", "mla");
        put_number(s, out, "heads", heads);
        put_number(s, out, "q_lora_rank", number(args, "q-lora-rank", 0));
        put_number(s, out, "kv_lora_rank", number(args, "kv-lora-rank", 32));
        put_number(s, out, "qk_nope_head_dim", number(args, "qk-head-dim", 128));
        put_number(s, out, "qk_rope_head_dim", number(args, "qk-pos-emb-head-dim", 64));
        put_number(s, out, "v_head_dim", number(args, "v-head-dim", 128));
        return out;
    }
    bool grouped = on(args, "group-query-attention");
    put_text(s, out, "kind", "gqa");
    put_number(s, out, "heads", heads);
    put_number(s, out, "kv_heads", grouped ? number(args, "num-query-groups", 1) : heads);
    put_number(s, out, "head_dim", width);
    put_flag(s, out, "bias", !on(args, "disable-bias-linear"));
    put_flag(s, out, "qk_norm", on(args, "qk-layernorm"));
    if (vp_text_eq(vp_node_text(vp_node_get(args, "position-embedding-type")), "rope"))
        put_number(s, out, "rotary_dim", width);
    return out;
}

/* Megatron's default width: 4 x hidden, two thirds of it in multiples of 64 for SwiGLU. */
static struct vp_node *feed_forward(struct script *s, const struct vp_node *args) {
    struct vp_node *out = vp_node_new(s->ctx, VP_NODE_MAP, s->pos);
    bool gated = on(args, "swiglu");
    uint64_t wide = 4 * number(args, "hidden-size", 0);
    uint64_t width = number(args, "ffn-hidden-size", gated ? wide * 2 / 3 / 64 * 64 : wide);
    uint64_t experts = number(args, "num-experts", 0);
    put_text(s, out, "kind", gated ? "gated" : "plain");
    if (experts > 0) {
        put_number(s, out, "experts", experts);
        put_number(s, out, "top_k", number(args, "moe-router-topk", 2));
        put_number(s, out, "intermediate_size", number(args, "moe-ffn-hidden-size", width));
        put_number(s, out, "shared_intermediate_size",
                   number(args, "moe-shared-expert-intermediate-size", 0));
        return out;
    }
    put_number(s, out, "intermediate_size", width);
    put_flag(s, out, "bias", !on(args, "disable-bias-linear"));
    return out;
}

static struct vp_node *model(struct script *s, const struct vp_node *args) {
    struct vp_node *out = vp_node_new(s->ctx, VP_NODE_MAP, s->pos);
    struct vp_node *blocks = vp_node_new(s->ctx, VP_NODE_LIST, s->pos);
    struct vp_node *block = vp_node_new(s->ctx, VP_NODE_MAP, s->pos);
    const char *norm = vp_node_text(vp_node_get(args, "normalization"));
    const char *positions = vp_node_text(vp_node_get(args, "position-embedding-type"));
    uint64_t vocab = number(args, "padded-vocab-size", number(args, "vocab-size", 0));
    bool rms = vp_text_eq(norm, "RMSNorm");
    put_number(s, out, "hidden_size", number(args, "hidden-size", 0));
    if (vocab > 0)
        put_number(s, out, "vocab_size", vocab);
    put_flag(s, out, "embedding", true);
    put_flag(s, out, "lm_head", true);
    put_flag(s, out, "tie_word_embeddings", !on(args, "untie-embeddings-and-output-weights"));
    put_flag(s, out, "final_norm", true);
    if (!positions || vp_text_eq(positions, "learned_absolute"))
        put_number(s, out, "position_embeddings", number(args, "max-position-embeddings", 0));
    put_number(s, block, "repeat", number(args, "num-layers", 0));
    put_number(s, block, "norms", 2);
    put_text(s, block, "norm", rms ? "rmsnorm" : "layernorm");
    vp_node_set(s->ctx, block, "attention", s->pos, attention(s, args));
    vp_node_set(s->ctx, block, number(args, "num-experts", 0) > 0 ? "moe" : "mlp", s->pos,
                feed_forward(s, args));
    blocks->items = VP_NEW_ARRAY(s->ctx->arena, 1, struct vp_node *);
    blocks->items[blocks->count++] = block;
    vp_node_set(s->ctx, out, "blocks", s->pos, blocks);
    return out;
}

/* ---- the whole ---- */

bool vp_recipe_is_script(const struct vp_bytes *text) {
    return strstr(text->data, "--tensor-model-parallel-size") || strstr(text->data, "--num-layers");
}

static void launch(struct script *s, const struct option *option) {
    uint64_t v;
    if (option->count != 1 || !vp_parse_u64(&v, option->values[0].text))
        return;
    if (vp_text_eq(option->name, "nproc-per-node"))
        s->gpus_per_node = v;
    if (vp_text_eq(option->name, "nnodes"))
        s->nodes = v;
}

static void set_hardware(struct script *s, struct vp_recipe *out) {
    uint64_t nodes = s->nodes > 0 ? s->nodes : 1;
    struct vp_node *hardware = vp_node_new(s->ctx, VP_NODE_MAP, s->pos);
    if (s->gpus_per_node == 0)
        return;
    put_number(s, hardware, "count", nodes * s->gpus_per_node);
    if (nodes > 1)
        put_number(s, hardware, "nodes", nodes);
    vp_node_set(s->ctx, out->scenario, "hardware", s->pos, hardware);
}

/* Without --bf16 and --fp16 Megatron trains in fp32. */
static void set_type(struct script *s, struct vp_recipe *out) {
    const struct vp_node *args = vp_node_get(vp_node_get(out->scenario, "engine"), "args");
    if (!on(args, "bf16") && !on(args, "fp16"))
        vp_recipe_set(s->ctx, out->scenario, "train.dtype.parameters",
                      vp_node_scalar(s->ctx, VP_NODE_TEXT, "fp32", s->pos));
}

enum vp_status vp_recipe_from_script(struct vp_ctx *ctx, struct vp_recipe *out,
                                     const struct vp_bytes *text, const char *name) {
    struct script *s = VP_NEW(ctx->arena, struct script);
    struct vp_node *args = vp_node_new(ctx, VP_NODE_MAP, (struct vp_pos){.file = name});
    *s = (struct script){.ctx = ctx, .pos = {.file = name}};
    *out = (struct vp_recipe){.kind = "Megatron command line",
                              .scenario = vp_node_new(ctx, VP_NODE_MAP, s->pos)};
    vp_shell_split(ctx, &s->text, text->data, text->size, name, true);
    for (uint32_t i = 0; i < s->text.comment_count; i++)
        if (vp_text_starts(s->text.comments[i], "#SBATCH"))
            batch_line(s, s->text.comments[i]);
    vp_recipe_set(ctx, out->scenario, "engine.name",
                  vp_node_scalar(ctx, VP_NODE_TEXT, "megatron", s->pos));
    for (uint32_t i = 0; i < s->text.count;) {
        if (!s->text.words[i].text || !is_option(s->text.words[i].text)) {
            i++;
            continue;
        }
        struct option option = next_option(s, &i);
        const char *field = field_of(option.name);
        if (field == LAUNCH)
            launch(s, &option);
        else if (field == MODEL)
            vp_node_set(ctx, args, option.name, s->pos, value_of(s, &option));
        else
            vp_recipe_set(ctx, out->scenario,
                          field ? field
                                : vp_arena_printf(ctx->arena, "engine.args.%s", option.name),
                          value_of(s, &option));
    }
    if (!vp_node_get(args, "num-layers") || !vp_node_get(args, "hidden-size")) {
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &s->pos,
                    "the command line names no --num-layers or no --hidden-size");
        vp_diag_hint(ctx->diags, "values that come from outside the script (an environment, an "
                                 "argument) have to be put in");
        return VP_ERR_INPUT;
    }
    vp_node_set(ctx, out->scenario, "model", s->pos, model(s, args));
    set_type(s, out);
    set_hardware(s, out);
    return VP_OK;
}
