#include "cli/emit.h"

#include <inttypes.h>
#include <string.h>

#include "cli/json_node.h"
#include "api/yaml_writer.h"
#include "planner/import/document.h"
#include "planner/import/wording.h"
#include "reports/llama_command.h"
#include "reports/shell_words.h"

struct emitting {
    struct vp_ctx *ctx;
    struct vp_buf *out;
    enum vp_target target;
    const struct vp_scenario *scenario;
    struct vp_words words;
};

/* ---- comments ---- */

static void add_heading(struct emitting *e) {
    const struct vp_scenario *s = e->scenario;
    vp_buf_printf(e->out, "# %s: %s %s on %" PRIu64 " x %s\n", s->name, s->engine.name,
                  s->engine.version_text ? s->engine.version_text : "", s->hardware.count,
                  s->hardware.gpu.id);
}

static const char *beside_word(struct emitting *e, const struct vp_setting *set) {
    return vp_shell_word(e->ctx->arena,
                         vp_arena_printf(e->ctx->arena, "%s=%s", set->path, set->value));
}

static void add_beside(struct emitting *e) {
    if (e->words.beside_count == 0)
        return;
    vp_buf_add(e->out, "# not part of it, for vramplan:\n");
    for (size_t i = 0; i < e->words.beside_count; i++)
        vp_buf_printf(e->out, "#   --set %s\n", beside_word(e, &e->words.beside[i]));
}

static void tell_beside(struct emitting *e) {
    struct vp_buf text = {.arena = e->ctx->arena};
    for (size_t i = 0; i < e->words.beside_count; i++)
        vp_buf_printf(&text, " --set %s", beside_word(e, &e->words.beside[i]));
    if (e->words.beside_count > 0)
        vp_diag_add(e->ctx->diags, VP_D_NOT_EMITTED, NULL, "not part of it:%s", vp_buf_text(&text));
}

/* ---- command lines ---- */

static const char *dashed(struct emitting *e, const char *key) {
    char *out = vp_arena_text(e->ctx->arena, key, strlen(key));
    for (char *p = out; *p; p++)
        if (*p == '_')
            *p = '-';
    return out;
}

static void add_option(struct emitting *e, struct vp_buf *line, const char *key,
                       const struct vp_node *value) {
    struct vp_arena *arena = e->ctx->arena;
    const char *option = dashed(e, key);
    bool on = true, is_flag = vp_node_bool(&on, value);
    if (is_flag && !on && e->target != VP_TARGET_VLLM)
        return;
    bool brief = e->target == VP_TARGET_LLAMA_CPP && strlen(key) <= 4;
    vp_buf_printf(line, " %s%s%s", brief ? "-" : "--", is_flag && !on ? "no-" : "", option);
    if (is_flag)
        return;
    if (value->kind != VP_NODE_LIST) {
        vp_buf_printf(line, " %s", vp_shell_word(arena, vp_document_show(e->ctx, value)));
        return;
    }
    for (uint32_t i = 0; i < value->count; i++)
        vp_buf_printf(line, " %s", vp_shell_word(arena, vp_document_show(e->ctx, value->items[i])));
}

static void add_options(struct emitting *e, struct vp_buf *line) {
    const struct vp_node *options = e->words.options;
    for (uint32_t i = 0; i < options->count; i++)
        add_option(e, line, options->keys[i], options->items[i]);
}

static void add_variables(struct emitting *e, struct vp_buf *line) {
    const struct vp_node *env = e->words.environment;
    for (uint32_t i = 0; i < env->count; i++)
        vp_buf_printf(line, "%s=%s ", env->keys[i],
                      vp_shell_word(e->ctx->arena, vp_document_show(e->ctx, env->items[i])));
}

static void paste(struct emitting *e, const struct vp_buf *line) {
    struct vp_page page = {.out = e->out, .width = VP_PAGE_WIDTH, .utf8 = true};
    vp_shell_paste(&page, 0, vp_buf_text(line));
}

static const char *model_word(struct emitting *e) {
    return vp_shell_word(e->ctx->arena, e->words.model ? e->words.model : "MODEL");
}

static void emit_server(struct emitting *e) {
    struct vp_buf line = {.arena = e->ctx->arena};
    add_heading(e);
    add_variables(e, &line);
    if (e->target == VP_TARGET_VLLM)
        vp_buf_printf(&line, "vllm serve %s", model_word(e));
    else
        vp_buf_printf(&line, "python3 -m sglang.launch_server --model-path %s", model_word(e));
    add_options(e, &line);
    paste(e, &line);
    add_beside(e);
}

static void emit_llama(struct emitting *e) {
    struct vp_buf line = {.arena = e->ctx->arena};
    add_heading(e);
    add_variables(e, &line);
    vp_buf_add(&line, vp_llama_command(e->ctx->arena, e->scenario));
    add_options(e, &line);
    paste(e, &line);
    add_beside(e);
}

static void emit_ollama(struct emitting *e) {
    add_heading(e);
    vp_buf_printf(e->out, "# environment of `ollama serve`:\n#   %s\n%s",
                  vp_ollama_environment(e->ctx->arena, e->scenario),
                  vp_ollama_modelfile(e->ctx->arena, e->scenario));
    add_beside(e);
}

static void emit_megatron(struct emitting *e) {
    struct vp_buf line = {.arena = e->ctx->arena};
    const struct vp_hardware *h = &e->scenario->hardware;
    uint64_t nodes = h->nodes > 0 ? h->nodes : 1;
    add_heading(e);
    add_variables(e, &line);
    vp_buf_printf(&line, "torchrun --nproc-per-node %" PRIu64, h->count / nodes);
    if (nodes > 1)
        vp_buf_printf(&line, " --nnodes %" PRIu64, nodes);
    vp_buf_add(&line, " pretrain_gpt.py");
    add_options(e, &line);
    paste(e, &line);
    add_beside(e);
}

/* ---- configurations ---- */

static void emit_json(struct emitting *e) {
    struct vp_json json = vp_json_begin(e->out);
    vp_json_node(&json, e->words.options);
    vp_buf_add(e->out, "\n");
    tell_beside(e);
}

static void emit_yaml(struct emitting *e) {
    add_heading(e);
    vp_yaml_write_map(e->out, e->words.options, 0);
    add_beside(e);
}

static void emit(struct emitting *e) {
    switch (e->target) {
    case VP_TARGET_VLLM:
    case VP_TARGET_SGLANG:
        emit_server(e);
        break;
    case VP_TARGET_LLAMA_CPP:
        emit_llama(e);
        break;
    case VP_TARGET_OLLAMA:
        emit_ollama(e);
        break;
    case VP_TARGET_MEGATRON:
        emit_megatron(e);
        break;
    case VP_TARGET_HF:
    case VP_TARGET_DEEPSPEED:
        emit_json(e);
        break;
    case VP_TARGET_AXOLOTL:
    case VP_TARGET_TORCHTUNE:
    case VP_TARGETS:
        emit_yaml(e);
        break;
    }
}

/* ---- the scenario ---- */

static bool is_recipe(enum vp_target target) {
    return target == VP_TARGET_HF || target == VP_TARGET_AXOLOTL || target == VP_TARGET_TORCHTUNE ||
           target == VP_TARGET_DEEPSPEED || target == VP_TARGET_MEGATRON;
}

static enum vp_status check(struct emitting *e, const char *name) {
    const struct vp_scenario *s = e->scenario;
    if (s->engine.kind != vp_target_engine(e->target)) {
        vp_diag_add(e->ctx->diags, VP_D_BAD_OPTION, NULL, "--emit %s: the scenario is for %s", name,
                    s->engine.name);
        vp_diag_hint(e->ctx->diags, "--engine %s plans it for that",
                     vp_engine_name(vp_target_engine(e->target)));
        return VP_ERR_INPUT;
    }
    if (is_recipe(e->target) == s->training)
        return VP_OK;
    vp_diag_add(e->ctx->diags, VP_D_BAD_OPTION, NULL,
                s->training ? "--emit %s starts a server, but the scenario trains"
                            : "--emit %s writes a training recipe, but the scenario trains nothing",
                name);
    return VP_ERR_INPUT;
}

static enum vp_status no_target(struct vp_ctx *ctx, const char *name) {
    const char *names[VP_TARGETS];
    struct vp_buf all = {.arena = ctx->arena};
    for (enum vp_target t = 0; t < VP_TARGETS; t++) {
        names[t] = vp_target_name(t);
        vp_buf_printf(&all, "%s%s", t > 0 ? ", " : "", names[t]);
    }
    const char *nearest = vp_text_nearest(name, names, VP_TARGETS);
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--emit has no target \"%.100s\" here", name);
    if (nearest)
        vp_diag_hint(ctx->diags, "did you mean %s?", nearest);
    else
        vp_diag_hint(ctx->diags, "it has %s; 'checkpoint' has others", vp_buf_text(&all));
    return VP_ERR_INPUT;
}

enum vp_status vp_emit(struct vp_ctx *ctx, struct vp_buf *out, const char *target,
                       const struct vp_variants *variants, const struct vp_setting *changes,
                       size_t count, const struct vp_scenario *found) {
    struct emitting e = {
        .ctx = ctx, .out = out, .target = vp_target_find(target), .scenario = found};
    struct vp_node *said;
    enum vp_status status = VP_OK;
    if (e.target == VP_TARGETS)
        return no_target(ctx, target);
    if (!found)
        status = vp_variants_make(variants, ctx, &e.scenario, changes, count);
    if (status == VP_OK)
        status = check(&e, target);
    if (status == VP_OK)
        status = vp_variants_said(variants, ctx, &said, changes, count);
    if (status != VP_OK)
        return status;
    vp_words_make(ctx, &e.words, e.target, said, e.scenario);
    emit(&e);
    return VP_OK;
}
