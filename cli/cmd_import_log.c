/* import-log: what an engine's log says, beside the plan of what was run; a scenario with those
 * figures pinned; the engine's profile with what they say of this card. */
#include <inttypes.h>
#include <string.h>

#include "cli/args.h"
#include "cli/log_report.h"
#include "cli/output.h"
#include "api/yaml_writer.h"
#include "planner/doc/yaml.h"
#include "planner/import/input.h"
#include "planner/import/log_reader.h"

struct work {
    struct vp_ctx *ctx;
    const struct vp_args *args;
    struct vp_run_log *log;
    struct vp_log_comparison comparison;
    struct vp_refit_result refit;
    const char *scenario; /* NULL: none */
};

static enum vp_status check_options(const struct work *w) {
    static const enum vp_option NEEDS[] = {VP_OPTION_MEASURED_OUT, VP_OPTION_PROFILE_OUT};
    enum vp_status status = VP_OK;
    for (size_t i = 0; i < sizeof NEEDS / sizeof *NEEDS; i++)
        if (w->args->value[NEEDS[i]] && !w->scenario) {
            vp_diag_add(w->ctx->diags, VP_D_BAD_OPTION, NULL, "--%s needs --scenario",
                        vp_options[NEEDS[i]].name);
            status = VP_ERR_INPUT;
        }
    const char *log = w->args->operands[0];
    if (vp_text_eq(w->scenario, "-") &&
        (vp_text_eq(log, "-") || w->args->value[VP_OPTION_MEASURED_OUT])) {
        vp_diag_add(w->ctx->diags, VP_D_BAD_OPTION, NULL, "%s",
                    vp_text_eq(log, "-") ? "the log and the scenario cannot both be standard input"
                                         : "--measured-out needs the scenario as a file");
        status = VP_ERR_INPUT;
    }
    if (w->args->setting_count > 0 && !w->scenario) {
        vp_diag_add(w->ctx->diags, VP_D_BAD_OPTION, NULL, "%s changes a scenario; there is none",
                    w->args->settings[0].key);
        vp_diag_hint(w->ctx->diags, "--scenario FILE is what was run");
        status = VP_ERR_INPUT;
    }
    return status;
}

/* Where a file was written, and from what: its first lines. No time, host or folder. */
static void add_provenance(const struct work *w, struct vp_buf *out) {
    const struct vp_run_log *log = w->log;
    const char *name = vp_text_eq(log->path, "-") ? "standard input" : vp_text_file_name(log->path);
    vp_buf_printf(out, "# measured: %s\n",
                  vp_text_clean(out->arena, vp_log_report_subject(out->arena, log), true));
    vp_buf_printf(out, "# from %s, line %" PRIu64 " on, by vramplan import-log\n",
                  vp_text_clean(out->arena, name, true), log->start.line);
}

/* A relative model path starts at the scenario's folder, and would no longer. */
static void warn_of_paths(const struct work *w, const struct vp_node *root) {
    const char *model = vp_node_text(vp_node_get(root, "model"));
    bool path = model && strchr(model, '/') && model[0] != '/' && model[0] != '~';
    const char *from = vp_io_dirname(w->ctx, w->scenario);
    const char *to = vp_io_dirname(w->ctx, w->args->value[VP_OPTION_MEASURED_OUT]);
    if (path && !vp_text_eq(from, to))
        vp_diag_add(w->ctx->diags, VP_D_LOG_DISAGREES, NULL,
                    "the model's path %.100s starts at %s; the new file is in %s", model, from, to);
}

/* "engine.args.max_num_seqs" into nested maps; the value as YAML reads it. */
static void put_setting(struct vp_ctx *ctx, struct vp_node *map, const char *path,
                        const char *value) {
    const struct vp_pos none = {0};
    struct vp_bytes bytes = {value, strlen(value)};
    struct vp_diags *diags = VP_NEW(ctx->arena, struct vp_diags);
    struct vp_ctx own = *ctx;
    struct vp_node *node;
    own.diags = diags;
    diags->arena = ctx->arena;
    for (const char *dot = strchr(path, '.'); dot; dot = strchr(path, '.')) {
        const char *key = vp_arena_text(ctx->arena, path, (size_t)(dot - path));
        struct vp_node *inner = vp_node_get(map, key);
        if (!inner || inner->kind != VP_NODE_MAP) {
            inner = vp_node_new(ctx, VP_NODE_MAP, none);
            vp_node_set(ctx, map, key, none, inner);
        }
        map = inner;
        path = dot + 1;
    }
    if (vp_yaml_read(&own, &node, bytes, "") != VP_OK || !node)
        node = vp_node_scalar(ctx, VP_NODE_TEXT, value, none);
    vp_node_set(ctx, map, path, none, node);
}

/* What was planned beside the file: settings of the command line, and of the log where neither says
 * anything. Without them the measured figures would stand beside another run's settings. */
static void put_settings(const struct work *w, struct vp_node *over) {
    const struct vp_log_comparison *c = &w->comparison;
    for (size_t i = 0; i < w->args->setting_count; i++)
        put_setting(w->ctx, over, w->args->settings[i].path, w->args->settings[i].value);
    for (size_t i = 0; i < c->checked_count; i++)
        if (c->checked[i].use == VP_LOG_SETTING_FILLED)
            put_setting(w->ctx, over, c->checked[i].setting.path, c->checked[i].setting.value);
}

static enum vp_status write_measured(struct work *w) {
    const char *path = w->args->value[VP_OPTION_MEASURED_OUT];
    struct vp_ctx *ctx = w->ctx;
    struct vp_buf out = {.arena = ctx->arena};
    struct vp_found found;
    if (!path)
        return VP_OK;
    enum vp_status status = vp_input_find(ctx, &found, w->scenario);
    if (status != VP_OK || found.count != 1)
        return status == VP_OK ? VP_ERR_INPUT : status;
    struct vp_node *head = vp_node_new(ctx, VP_NODE_MAP, (struct vp_pos){0});
    struct vp_node *over = vp_node_new(ctx, VP_NODE_MAP, (struct vp_pos){0});
    put_setting(ctx, head, "vramplan", "1"); /* a model alone becomes a scenario */
    put_settings(w, over);
    vp_node_set(ctx, over, "measured", (struct vp_pos){0},
                vp_log_report_measured(ctx, &w->comparison));
    const struct vp_node *root =
        vp_node_merge(ctx, vp_node_merge(ctx, head, found.items[0].root), over);
    warn_of_paths(w, root);
    add_provenance(w, &out);
    vp_yaml_write_map(&out, root, 0);
    return vp_output_write(ctx, &out, path);
}

static enum vp_status write_profile(struct work *w) {
    const char *path = w->args->value[VP_OPTION_PROFILE_OUT];
    struct vp_buf out = {.arena = w->ctx->arena};
    if (!path)
        return VP_OK;
    if (!w->refit.profile) {
        vp_diag_add(w->ctx->diags, VP_D_BAD_VALUE, &(struct vp_pos){.file = w->log->path},
                    "the log says nothing of what an engine's profile holds");
        return VP_ERR_INPUT;
    }
    add_provenance(w, &out);
    vp_buf_printf(&out, "# In ~/.config/vramplan/engines/ it replaces the built-in profile.\n");
    vp_yaml_write_map(&out, w->refit.profile, 0);
    return vp_output_write(w->ctx, &out, path);
}

static void render(const struct work *w, struct vp_buf *out) {
    struct vp_page page = vp_output_page(w->args, out);
    switch (w->args->format) {
    case VP_FORMAT_JSON:
        vp_log_report_json(out, &w->comparison, &w->refit, w->ctx->diags);
        break;
    case VP_FORMAT_CSV:
        vp_log_report_csv(out, &w->comparison);
        break;
    case VP_FORMAT_MARKDOWN:
        vp_log_report_markdown(out, &w->comparison);
        break;
    case VP_FORMAT_TEXT:
        vp_log_report_text(&page, &w->comparison, &w->refit, w->args->value[VP_OPTION_VERBOSE]);
        break;
    }
}

static void tell_gaps(const struct work *w) {
    const struct vp_run_log *log = w->log;
    struct vp_pos pos = {.file = log->path};
    if (log->matched == 0) {
        vp_diag_add(w->ctx->diags, VP_D_LOG_UNKNOWN, &pos,
                    "none of its %" PRIu64 " lines is one that is known", log->lines);
        vp_diag_hint(w->ctx->diags, "llama.cpp prints its buffers from --verbosity 4 on; vLLM its "
                                    "memory with VLLM_LOGGING_LEVEL=DEBUG");
    } else if (log->earlier) {
        vp_diag_add(w->ctx->diags, VP_D_LOG_PARTIAL, &pos,
                    "the last start-up, from line %" PRIu64 " on, did not come to its cache; "
                    "figures are of the one from line %" PRIu64 " on",
                    log->last_line, log->start.line);
    } else if (log->start.known && !log->start.complete) {
        vp_diag_add(w->ctx->diags, VP_D_LOG_PARTIAL, &pos,
                    "the engine did not come to sizing its cache");
        if (log->messages > 0)
            vp_diag_hint(w->ctx->diags, "why: vramplan doctor %s", log->path);
    }
}

static enum vp_status compare(struct work *w) {
    if (!w->scenario) {
        vp_log_compare_none(w->ctx, &w->comparison, w->log);
        return VP_OK;
    }
    enum vp_status status = vp_log_compare(w->ctx, &w->comparison, w->log, w->scenario,
                                           w->args->settings, w->args->setting_count);
    enum vp_engine_kind engine = w->comparison.engine;
    if (status == VP_OK && (engine == VP_ENGINE_VLLM || engine == VP_ENGINE_SGLANG ||
                            w->args->value[VP_OPTION_PROFILE_OUT]))
        status = vp_engine_refit(w->ctx, &w->refit, w->comparison.result->scenario,
                                 &w->comparison.refit);
    return status;
}

int vp_cmd_import_log(struct vp_ctx *ctx, const struct vp_args *args) {
    struct work w = {.ctx = ctx, .args = args, .scenario = args->value[VP_OPTION_SCENARIO]};
    struct vp_buf out = {.arena = ctx->arena};
    enum vp_status status = check_options(&w);
    if (status == VP_OK)
        status = vp_log_read(ctx, &w.log, args->operands[0]);
    if (status == VP_OK) {
        tell_gaps(&w);
        status = compare(&w);
    }
    if (status == VP_OK)
        status = write_measured(&w);
    if (status == VP_OK)
        status = write_profile(&w);
    if (status != VP_OK)
        return vp_output_failure(ctx, args, status);
    render(&w, &out);
    status = vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]);
    if (status == VP_OK && w.log->matched == 0)
        return VP_EXIT_INCONCLUSIVE;
    return (int)vp_exit_of_status(status);
}
