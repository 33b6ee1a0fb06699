#include "planner/import/command_line.h"

#include <ctype.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/doc/yaml.h"
#include "planner/import/engine_args.h"
#include "planner/import/ollama_store.h"
#include "planner/import/recipe.h"
#include "planner/import/shell_text.h"

static const char NAME[] = "command";
static const char PROMPT[] = "$ ";

static const struct program {
    enum vp_engine_kind engine;
    const char *name, *behind;
} PROGRAMS[] = {
#define X(engine, name, behind) {VP_ENGINE_##engine, name, behind},
#include "planner/import/programs.def"
#undef X
};

static const struct {
    enum vp_engine_kind engine;
    const char *option;
} SWITCHES[] = {
#define X(engine, option) {VP_ENGINE_##engine, option},
#include "planner/import/switches.def"
#undef X
};

struct command {
    struct vp_ctx *ctx;
    struct vp_shell_text text;
    enum vp_engine_kind engine;
    uint32_t at;           /* the next word of the engine's own */
    struct vp_node *root;  /* the scenario */
    struct vp_node *args;  /* engine.args */
    struct vp_node *model; /* NULL: none was named yet */
    bool has_placeholder;  /* the name is still to be filled in: MODEL, MODEL.gguf */
};

/* ---- what it starts ---- */

static const char *word_at(const struct vp_shell_text *text, uint32_t i) {
    return i < text->count ? text->words[i].text : NULL;
}

/* The program that words[i] is; *next: behind it. */
static const struct program *program_at(const struct vp_shell_text *text, uint32_t i,
                                        uint32_t *next) {
    for (size_t p = 0; p < sizeof PROGRAMS / sizeof *PROGRAMS; p++) {
        bool two = *PROGRAMS[p].behind;
        if (!vp_text_eq(vp_text_file_name(text->words[i].text), PROGRAMS[p].name) ||
            (two && !vp_text_eq(word_at(text, i + 1), PROGRAMS[p].behind)))
            continue;
        *next = i + 1 + two;
        return &PROGRAMS[p];
    }
    return NULL;
}

/* An image of a registry whose entry point is the server: "vllm/vllm-openai:v0.9.1". What stands
 * behind it are the server's own options. */
static bool image_at(const struct vp_shell_text *text, uint32_t i, enum vp_engine_kind *engine) {
    static const struct {
        const char *pattern;
        enum vp_engine_kind engine;
    } IMAGES[] = {{"*vllm/vllm-openai*", VP_ENGINE_VLLM},
                  {"*llama.cpp:*server*", VP_ENGINE_LLAMA_CPP}};
    for (size_t k = 0; k < sizeof IMAGES / sizeof *IMAGES; k++) {
        if (!vp_text_glob(IMAGES[k].pattern, text->words[i].text))
            continue;
        *engine = IMAGES[k].engine;
        return true;
    }
    return false;
}

static bool find_program(struct command *c) {
    const struct vp_shell_text *text = &c->text;
    for (uint32_t i = 0; i < text->count; i++) {
        const struct program *program = text->words[i].text ? program_at(text, i, &c->at) : NULL;
        if (!program)
            continue;
        c->engine = program->engine;
        return true;
    }
    for (uint32_t i = 0; i < text->count; i++) {
        if (!text->words[i].text || !image_at(text, i, &c->engine))
            continue;
        c->at = i + 1;
        return true;
    }
    return false;
}

/* A Trainer's script, with the options that Hugging Face's parser makes of TrainingArguments. */
static bool is_trainer(const char *text) {
    return strstr(text, "--per_device_train_batch_size") != NULL ||
           strstr(text, "--per-device-train-batch-size") != NULL;
}

static bool is_recipe(const char *text) {
    struct vp_bytes bytes = {text, strlen(text)};
    return vp_recipe_is_script(&bytes) || is_trainer(text);
}

bool vp_command_line_is(struct vp_ctx *ctx, const char *text) {
    struct command c = {.ctx = ctx};
    if (vp_text_starts(text, PROMPT))
        return true;
    if (!strpbrk(text, " \t\n"))
        return false;
    vp_shell_split(ctx, &c.text, text, strlen(text), NAME, false);
    return find_program(&c) || is_recipe(text);
}

/* ---- values ---- */

/* vLLM's numbers of tokens: 1k is 1000, 1K is 1024. */
static const char *human_number(struct vp_ctx *ctx, const char *text) {
    static const char SUFFIXES[] = "kKmMgG";
    static const uint64_t FACTORS[] = {1000, 1024, 1000000, 1048576, 1000000000, 1073741824};
    size_t n = strlen(text);
    const char *suffix = n > 1 ? strchr(SUFFIXES, text[n - 1]) : NULL;
    double number;
    if (!suffix || !*suffix || !vp_parse_real(&number, vp_arena_text(ctx->arena, text, n - 1)) ||
        number < 0)
        return text;
    double tokens = number * (double)FACTORS[suffix - SUFFIXES];
    return tokens < 1e15 ? vp_arena_printf(ctx->arena, "%.0f", tokens) : text;
}

static bool is_human(const char *key) {
    return vp_text_eq(key, "max_model_len") || vp_text_eq(key, "max_num_batched_tokens");
}

static struct vp_node *scalar(struct command *c, const char *key, const char *text,
                              struct vp_pos pos) {
    struct vp_node *node;
    if (*text == '{' || *text == '[') {
        struct vp_bytes bytes = {text, strlen(text)};
        if (vp_yaml_read(c->ctx, &node, bytes, NAME) == VP_OK)
            return node;
        return vp_node_scalar(c->ctx, VP_NODE_TEXT, text, pos); /* reported by the reader */
    }
    if (c->engine == VP_ENGINE_VLLM && is_human(key))
        text = human_number(c->ctx, text);
    return vp_node_scalar(c->ctx, vp_yaml_scalar_kind(text), text, pos);
}

/* ---- options ---- */

/* "--x", "-x", but not the number -1 and not a lone dash. */
static bool is_option(const char *word) {
    return word && word[0] == '-' && word[1] && !isdigit((unsigned char)word[1]) && word[1] != '.';
}

static char *key_of(struct command *c, const char *word, size_t length) {
    while (*word == '-') {
        word++;
        length--;
    }
    char *key = vp_arena_text(c->ctx->arena, word, length);
    for (char *p = key; *p; p++)
        if (*p == '-')
            *p = '_';
    return key;
}

static bool is_switch(const struct command *c, const char *key) {
    for (size_t i = 0; i < sizeof SWITCHES / sizeof *SWITCHES; i++)
        if (SWITCHES[i].engine == c->engine && vp_text_eq(SWITCHES[i].option, key))
            return true;
    return vp_engine_arg_takes(c->ctx, c->engine, key) == VP_ARG_SWITCH;
}

/* "speculative_config.num_speculative_tokens": a value inside a map. */
static void put_arg(struct command *c, const char *key, struct vp_node *value) {
    struct vp_node *map = c->args;
    const char *dot = strchr(key, '.');
    if (dot && c->engine == VP_ENGINE_VLLM) {
        const char *outer = vp_arena_text(c->ctx->arena, key, (size_t)(dot - key));
        struct vp_node *inner = vp_node_get(map, outer);
        if (!inner || inner->kind != VP_NODE_MAP) {
            inner = vp_node_new(c->ctx, VP_NODE_MAP, value->pos);
            vp_node_set(c->ctx, map, outer, value->pos, inner);
        }
        map = inner;
        key = dot + 1;
    }
    vp_node_set(c->ctx, map, key, value->pos, value);
}

static bool names_model(enum vp_engine_kind engine, const char *key) {
    switch (engine) {
    case VP_ENGINE_SGLANG:
        return vp_text_eq(key, "model_path") || vp_text_eq(key, "model");
    case VP_ENGINE_LLAMA_CPP:
        return vp_text_eq(key, "m") || vp_text_eq(key, "model") || vp_text_eq(key, "hf") ||
               vp_text_eq(key, "hfr") || vp_text_eq(key, "hf_repo");
    default:
        return vp_text_eq(key, "model");
    }
}

/* What --emit writes for a model without a name: settings say which it is. */
static bool is_placeholder(const char *text) {
    return vp_text_eq(text, "MODEL") || vp_text_eq(text, "MODEL.gguf");
}

static void set_model(struct command *c, const char *text, struct vp_pos pos) {
    if (is_placeholder(text)) {
        c->has_placeholder = true;
        return;
    }
    if (c->engine == VP_ENGINE_OLLAMA)
        text = vp_ollama_file(c->ctx, text, vp_shell_variable(&c->text, "OLLAMA_MODELS"));
    c->model = vp_node_scalar(c->ctx, VP_NODE_TEXT, text, pos);
}

static void put_value(struct command *c, const char *key, struct vp_node *value) {
    if (names_model(c->engine, key) && vp_node_text(value))
        set_model(c, value->text, value->pos);
    else
        put_arg(c, key, value);
}

/* Of a field, and of what names the model: one word. Of what is not known: all up to the next
 * option. */
static struct vp_node *value_behind(struct command *c, const char *key, struct vp_pos pos) {
    const struct vp_shell_word *words = c->text.words;
    bool one =
        names_model(c->engine, key) || vp_engine_arg_takes(c->ctx, c->engine, key) == VP_ARG_VALUE;
    struct vp_node *list = vp_node_new(c->ctx, VP_NODE_LIST, pos);
    list->items = VP_NEW_ARRAY(c->ctx->arena, c->text.count - c->at + 1, struct vp_node *);
    while (word_at(&c->text, c->at) && !is_option(words[c->at].text) &&
           !(one && list->count == 1)) {
        list->items[list->count++] = scalar(c, key, words[c->at].text, words[c->at].pos);
        c->at++;
    }
    if (list->count == 0)
        return vp_node_new_bool(c->ctx, true, pos);
    return list->count == 1 ? list->items[0] : list;
}

static void read_option(struct command *c) {
    const struct vp_shell_word *word = &c->text.words[c->at++];
    const char *equals = strchr(word->text, '='), *next = word_at(&c->text, c->at);
    size_t length = equals ? (size_t)(equals - word->text) : strlen(word->text);
    const char *key = key_of(c, word->text, length);
    bool says = next && (vp_text_eq(next, "true") || vp_text_eq(next, "false"));
    if (equals)
        put_value(c, key, scalar(c, key, equals + 1, word->pos));
    else if (is_switch(c, key) && !says)
        put_arg(c, key, vp_node_new_bool(c->ctx, true, word->pos));
    else
        put_value(c, key, value_behind(c, key, word->pos));
}

/* The first word that is no option names the model; ollama's prompt and what follows are not read.
 */
static void read_words(struct command *c) {
    while (word_at(&c->text, c->at)) {
        const struct vp_shell_word *word = &c->text.words[c->at];
        if (is_option(word->text)) {
            read_option(c);
            continue;
        }
        if (!c->model && !c->has_placeholder && c->engine != VP_ENGINE_LLAMA_CPP)
            set_model(c, word->text, word->pos);
        c->at++;
    }
}

/* ---- what stands around it ---- */

/* The version in an image's tag: "v0.9.1", "rocm6.4.1_vllm_0.9.1_20250702". */
static const char *version_in(struct vp_ctx *ctx, const char *tag, const char *engine) {
    const char *at = strstr(tag, vp_arena_printf(ctx->arena, "%s_", engine));
    at = at ? at + strlen(engine) + 1 : tag;
    at += *at == 'v' && isdigit((unsigned char)at[1]);
    size_t length = strspn(at, "0123456789.");
    while (length > 0 && at[length - 1] == '.')
        length--;
    const char *version = vp_arena_text(ctx->arena, at, length);
    return isdigit((unsigned char)*version) && strchr(version, '.') ? version : NULL;
}

static void read_image(struct command *c) {
    const char *engine = vp_engine_name(c->engine);
    for (uint32_t i = 0; i < c->at && i < c->text.count; i++) {
        const struct vp_shell_word *word = &c->text.words[i];
        const char *colon = word->text ? strrchr(word->text, ':') : NULL;
        const char *name = word->text ? strstr(word->text, engine) : NULL;
        const char *version =
            colon && name && !is_option(word->text) ? version_in(c->ctx, colon + 1, engine) : NULL;
        if (version)
            vp_recipe_set(c->ctx, c->root, "engine.version",
                          vp_node_scalar(c->ctx, VP_NODE_TEXT, version, word->pos));
    }
}

/* Devices that the process sees; servers with a layout of their own take as many as that says. */
static void read_variables(struct command *c) {
    bool all = vp_engine_is_llama(c->engine);
    struct vp_node *env = vp_node_new(c->ctx, VP_NODE_MAP, (struct vp_pos){.file = NAME});
    for (uint32_t i = 0; i < c->text.variable_count; i++) {
        const struct vp_shell_variable *v = &c->text.variables[i];
        if (!vp_text_ends(v->name, "_VISIBLE_DEVICES")) {
            vp_node_set(c->ctx, env, v->name, v->pos,
                        vp_node_scalar(c->ctx, vp_yaml_scalar_kind(v->value), v->value, v->pos));
            continue;
        }
        uint32_t count = 1;
        for (const char *p = v->value; *p; p++)
            count += *p == ',';
        if (all)
            vp_recipe_set(c->ctx, c->root, "hardware.count",
                          vp_node_new_u64(c->ctx, count, v->pos));
    }
    if (env->count > 0)
        vp_recipe_set(c->ctx, c->root, "engine.env", env);
}

/* ---- the whole ---- */

static enum vp_status read_engine(struct command *c) {
    struct vp_pos pos = {.file = NAME, .line = 1, .column = 1};
    vp_recipe_set(c->ctx, c->root, "engine.name",
                  vp_node_scalar(c->ctx, VP_NODE_TEXT, vp_engine_name(c->engine), pos));
    read_image(c);
    read_variables(c);
    read_words(c);
    if (c->args->count > 0)
        vp_recipe_set(c->ctx, c->root, "engine.args", c->args);
    if (c->has_placeholder)
        return VP_OK;
    if (!c->model) {
        vp_diag_add(c->ctx->diags, VP_D_MISSING_VALUE, &pos, "the command names no model");
        vp_diag_hint(c->ctx->diags, c->engine == VP_ENGINE_LLAMA_CPP
                                        ? "it follows -m (a GGUF file)"
                                        : "it stands right behind the program, or follows --model");
        return VP_ERR_INPUT;
    }
    vp_node_set(c->ctx, c->root, "model", c->model->pos, c->model);
    return VP_OK;
}

/* The Trainer's options are the keys of its configuration. */
static enum vp_status read_trainer(struct command *c) {
    struct vp_recipe recipe;
    struct vp_node *document = vp_node_new(c->ctx, VP_NODE_MAP, (struct vp_pos){.file = NAME});
    c->engine = VP_ENGINE_TRANSFORMERS;
    c->args = document;
    while (c->at < c->text.count)
        if (is_option(word_at(&c->text, c->at)))
            read_option(c);
        else
            c->at++;
    if (c->model)
        vp_node_set(c->ctx, document, "model_name_or_path", c->model->pos, c->model);
    enum vp_status status = vp_recipe_from_document(c->ctx, &recipe, document);
    c->root = recipe.scenario;
    return status;
}

static enum vp_status read_recipe(struct command *c, const char *text) {
    struct vp_recipe recipe;
    struct vp_bytes bytes = {text, strlen(text)};
    if (!vp_recipe_is_script(&bytes))
        return read_trainer(c);
    enum vp_status status = vp_recipe_from_script(c->ctx, &recipe, &bytes, NAME);
    c->root = recipe.scenario;
    return status;
}

static enum vp_status unknown(struct command *c) {
    struct vp_buf names = {.arena = c->ctx->arena};
    struct vp_pos pos = {.file = NAME, .line = 1, .column = 1};
    for (size_t i = 0; i < sizeof PROGRAMS / sizeof *PROGRAMS; i++)
        vp_buf_printf(&names, "%s%s%s%s", i > 0 ? ", " : "", PROGRAMS[i].name,
                      *PROGRAMS[i].behind ? " " : "", PROGRAMS[i].behind);
    vp_diag_add(c->ctx->diags, VP_D_BAD_VALUE, &pos, "this command starts no engine that is known");
    vp_diag_hint(c->ctx->diags,
                 "known are %s, Megatron's and the Trainer's scripts with their options",
                 vp_buf_text(&names));
    return VP_ERR_INPUT;
}

enum vp_status vp_command_line_read(struct vp_ctx *ctx, struct vp_node **out, const char *text) {
    struct command c = {.ctx = ctx};
    if (vp_text_starts(text, PROMPT))
        text += strlen(PROMPT);
    c.root = vp_node_new(ctx, VP_NODE_MAP, (struct vp_pos){.file = NAME});
    c.args = vp_node_new(ctx, VP_NODE_MAP, (struct vp_pos){.file = NAME});
    vp_shell_split(ctx, &c.text, text, strlen(text), NAME, false);
    enum vp_status status = find_program(&c)  ? read_engine(&c)
                            : is_recipe(text) ? read_recipe(&c, text)
                                              : unknown(&c);
    *out = c.root;
    return status;
}
