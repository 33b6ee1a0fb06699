/* fit: what to change so that it fits, how far a quantity goes, on how few GPUs, which models fit
 * side by side. llama.cpp and ollama have a search of their own (planner/plan/fit_llama.h); all
 * else is searched by changes (api/find.h). */
#include <string.h>

#include "api/find.h"
#include "cli/args.h"
#include "cli/emit.h"
#include "cli/fit_deploy.h"
#include "cli/fit_chart.h"
#include "cli/fit_several.h"
#include "cli/output.h"
#include "cli/plot.h"
#include "planner/base/units.h"
#include "planner/plan/fit_llama.h"
#include "reports/changes_report.h"
#include "reports/fit_report.h"

/* ---- the question ---- */

static bool has_gpu(const struct vp_fit_ask *q, const char *name) {
    for (size_t i = 0; i < q->gpu_count; i++)
        if (vp_name_eq(q->gpus[i], name))
            return true;
    return false;
}

/* "mi300x,h200" of --gpu: the names; the setting keeps the first. */
static void split_gpus(struct vp_ctx *ctx, struct vp_fit_ask *q, const struct vp_args *args) {
    for (size_t i = 0; i < q->setting_count; i++) {
        struct vp_setting *set = &q->settings[i];
        if (!vp_text_eq(set->path, "hardware.gpu") || *set->value == '{')
            continue;
        q->gpus = VP_NEW_ARRAY(ctx->arena, strlen(set->value) + 1, const char *);
        for (const char *at = set->value; at;) {
            size_t n = strcspn(at, ",");
            const char *name = vp_arena_text(ctx->arena, at, n);
            if (!has_gpu(q, name))
                q->gpus[q->gpu_count++] = name;
            at = at[n] ? at + n + 1 : NULL;
        }
        for (size_t k = 0; q->gpu_count > 1 && k < q->gpu_count; k++) {
            struct vp_gpu gpu;
            struct vp_pos nowhere = {0};
            vp_gpu_read(ctx, &gpu, vp_node_scalar(ctx, VP_NODE_TEXT, q->gpus[k], nowhere));
        }
        set->value = q->gpus[0];
    }
    if (q->gpu_count > 1 && !args->value[VP_OPTION_MINIMIZE])
        vp_fit_refuse(ctx, "--gpu takes several names only with --minimize", NULL);
}

/* "mi300x=2.1,h200=3.5" or one number for whatever GPU there is. */
static void read_prices(struct vp_ctx *ctx, struct vp_prices_given *out, const char *text) {
    size_t room = text ? strlen(text) + 1 : 0, column = 1;

    out->gpu = VP_NEW_ARRAY(ctx->arena, room, const char *);
    out->price = VP_NEW_ARRAY(ctx->arena, room, double);
    for (const char *at = text; at;) {
        size_t n = strcspn(at, ",");
        const char *item = vp_arena_text(ctx->arena, at, n), *equals = strchr(item, '=');
        double price = 0;
        if (!vp_parse_real(&price, equals ? equals + 1 : item) || !(price > 0))
            vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                        "--price, column %zu: '%s' is no price above 0", column, item);
        out->gpu[out->count] =
            equals ? vp_arena_text(ctx->arena, item, (size_t)(equals - item)) : NULL;
        out->price[out->count++] = price;
        column += n + 1;
        at = at[n] ? at + n + 1 : NULL;
    }
}

static void check_words(struct vp_ctx *ctx, const struct vp_args *args) {
    const char *most = args->value[VP_OPTION_MAXIMIZE], *least = args->value[VP_OPTION_MINIMIZE];
    bool pack = args->value[VP_OPTION_PACK];

    if ((most != NULL) + (least != NULL) + pack > 1)
        vp_fit_refuse(ctx, "--maximize, --minimize and --pack are different questions: ask one",
                      NULL);
    if (pack && (args->value[VP_OPTION_SLO] || args->value[VP_OPTION_KEEP]))
        vp_fit_refuse(ctx, "--slo and --keep are questions about one scenario, not for --pack",
                      NULL);
    if (args->value[VP_OPTION_EMIT] && (pack || args->operand_count > 1))
        vp_fit_refuse(ctx, "--emit takes one input", NULL);
    if (args->value[VP_OPTION_PLOT] &&
        (pack || args->operand_count > 1 || args->value[VP_OPTION_EMIT]))
        vp_fit_refuse(ctx, "--plot draws the answer for one input", NULL);
    vp_plot_check(ctx, args);
    if (args->value[VP_OPTION_PHASE] && !pack)
        vp_fit_refuse(ctx, "--phase belongs to --pack", NULL);
    if (args->operand_count > 1 && !pack && (most || least))
        vp_fit_refuse(
            ctx,
            "several inputs are ranked, or packed with --pack; --maximize and --minimize take one",
            NULL);
    for (size_t i = 0; least && i < args->setting_count; i++) {
        const char *path = args->settings[i].path;
        if (vp_text_eq(path, "hardware.count") || vp_text_starts(path, "parallel."))
            vp_diag_add(ctx->diags, VP_D_CONTRADICTION, NULL,
                        "--minimize %s searches layouts, but %s gives %s", least,
                        args->settings[i].key, path);
    }
}

static void read_question(struct vp_ctx *ctx, struct vp_fit_ask *q, const struct vp_args *args) {
    q->args = args;
    q->settings = VP_NEW_ARRAY(ctx->arena, args->setting_count + 1, struct vp_setting);
    q->setting_count = args->setting_count;
    for (size_t i = 0; i < args->setting_count; i++)
        q->settings[i] = args->settings[i];
    check_words(ctx, args);
    split_gpus(ctx, q, args);
    read_prices(ctx, &q->prices, args->value[VP_OPTION_PRICE]);
    vp_slo_read(ctx, &q->slo, args->value[VP_OPTION_SLO]);
}

/* ---- one input ---- */

static void render(struct vp_buf *out, const struct vp_args *args, const struct vp_fit_found *found,
                   size_t count) {
    struct vp_report_options options = vp_fit_report_options(args);
    struct vp_json json = vp_json_begin(out);
    bool as_json = args->format == VP_FORMAT_JSON;

    options.heading = count > 1;
    if (as_json && count != 1)
        vp_json_list(&json);
    for (size_t i = 0; i < count; i++) {
        const struct vp_fit_found *f = &found[i];
        bool good = f->status == VP_OK;
        if (as_json && !good)
            vp_answers_json_error(&json, "vramplan.fit/1", f->input, f->name, f->diags);
        else if (as_json && f->llama)
            vp_fit_json(&json, f->result, f->llama);
        else if (as_json)
            vp_changes_json(&json, f->outcome);
        else if (good && f->llama)
            vp_fit_text(out, f->result, f->llama, &options);
        else if (good)
            vp_changes_text(out, f->outcome, &options);
        if (!as_json && good && i + 1 < count)
            vp_buf_add(out, "\n");
    }
    if (as_json && count != 1)
        vp_json_end(&json, ']');
    if (as_json)
        vp_buf_add(out, "\n");
}

/* ---- the best answer, ready to paste ---- */

/* The scenario with the settings that llama.cpp's search found. */
static enum vp_status emit_llama(struct vp_ctx *ctx, struct vp_buf *out,
                                 const struct vp_fit_found *f, const char *target) {
    struct vp_scenario best =
        vp_fit_llama_scenario(f->result->scenario, &f->llama->fixed, &f->llama->item[0].set);
    return vp_emit(ctx, out, target, f->search.variants, NULL, 0, &best);
}

/* The scenario with the changes of the best proposal; as it is where it needs none. */
static enum vp_status emit_changes(struct vp_ctx *ctx, struct vp_buf *out,
                                   const struct vp_fit_found *f, const char *target) {
    const struct vp_proposal *best = f->outcome->count > 0 ? &f->outcome->item[0] : NULL;
    size_t patches = best ? best->patches : 0;
    struct vp_setting *changes = VP_NEW_ARRAY(ctx->arena, patches + 1, struct vp_setting);
    for (size_t i = 0; i < patches; i++)
        changes[i] = (struct vp_setting){best->patch[i].field, best->patch[i].value, "fit"};
    return vp_emit(ctx, out, target, f->search.variants, changes, patches, NULL);
}

static int emit_found(struct vp_ctx *ctx, const struct vp_fit_found *f,
                      const struct vp_fit_ask *q) {
    const struct vp_args *args = q->args;
    const char *target = args->value[VP_OPTION_EMIT];
    struct vp_buf out = {.arena = ctx->arena};
    if (f->status != VP_OK)
        return (int)vp_fit_found_exit(f);
    if (f->llama ? f->llama->count == 0 : f->outcome->verdict == VP_DOES_NOT_FIT) {
        vp_fit_refuse(ctx, "nothing that fits was found: there is nothing to emit",
                      "the same without --emit says what is short");
        return VP_EXIT_NO;
    }
    enum vp_status status =
        f->llama ? emit_llama(ctx, &out, f, target) : emit_changes(ctx, &out, f, target);
    if (status != VP_OK)
        return vp_output_failure(ctx, args, status);
    vp_output_own_diagnostics(ctx, VP_INFO, args);
    status = vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]);
    return (int)vp_exit_of_both(vp_fit_found_exit(f), vp_exit_of_status(status));
}

static int fit_emit(struct vp_ctx *ctx, const struct vp_fit_ask *q) {
    struct vp_fit_found *f;
    if (vp_fit_split(ctx, &f, q->args->operands[0]) > 1) {
        vp_fit_refuse(ctx, "--emit takes one scenario: name it as FILE#NAME", NULL);
        return vp_output_failure(ctx, q->args, VP_ERR_INPUT);
    }
    vp_fit_find(ctx, f, q);
    vp_fit_show_diagnostics(ctx, f, 1, q->args);
    int code = emit_found(ctx, f, q);
    vp_search_close(&f->search);
    return code;
}

static enum vp_exit plot(struct vp_ctx *ctx, const struct vp_args *args, struct vp_fit_found *found,
                         size_t count) {
    if (count > 1) {
        vp_fit_refuse(ctx, "--plot draws one scenario: name it as FILE#NAME", NULL);
        return VP_EXIT_INPUT;
    }
    if (found->status != VP_OK || !found->result)
        return VP_EXIT_YES; /* there is no answer to draw, and that was said */
    return vp_exit_of_status(
        vp_plot_draw(ctx, args, vp_fit_chart(ctx, found), args->format != VP_FORMAT_TEXT));
}

static int fit_one(struct vp_ctx *ctx, const struct vp_fit_ask *q) {
    const struct vp_args *args = q->args;
    struct vp_buf out = {.arena = ctx->arena};
    enum vp_exit code = VP_EXIT_YES;
    struct vp_fit_found *found;
    size_t count = vp_fit_split(ctx, &found, args->operands[0]), good = 0;

    for (size_t i = 0; i < count; i++) {
        vp_fit_find(ctx, &found[i], q);
        code = vp_exit_of_both(code, vp_fit_found_exit(&found[i]));
        good += found[i].status == VP_OK;
    }
    vp_fit_show_diagnostics(ctx, found, count, args);
    if (good > 0 || args->format == VP_FORMAT_JSON) {
        render(&out, args, found, count);
        code = vp_exit_of_both(
            code, vp_exit_of_status(vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT])));
    }
    if (args->value[VP_OPTION_PLOT])
        code = vp_exit_of_both(code, plot(ctx, args, found, count));
    for (size_t i = 0; i < count; i++)
        vp_search_close(&found[i].search);
    return (int)code;
}

/* What only a search over traffic takes. */
static void check_no_traffic(struct vp_ctx *ctx, const struct vp_args *args) {
    static const enum vp_option OPTIONS[] = {
        VP_OPTION_DURATION,   VP_OPTION_WARMUP,     VP_OPTION_SEEDS,   VP_OPTION_SEED,
        VP_OPTION_RATE_SCALE, VP_OPTION_TIME_SCALE, VP_OPTION_THREADS, VP_OPTION_SHARD};

    if (args->format == VP_FORMAT_CSV || args->format == VP_FORMAT_MARKDOWN)
        vp_fit_refuse(ctx, "'fit' has --format text and json only", NULL);
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++)
        if (args->value[OPTIONS[i]])
            vp_fit_refuse(ctx,
                          vp_arena_printf(ctx->arena,
                                          "--%s is about traffic, of which nothing is said",
                                          vp_options[OPTIONS[i]].name),
                          "--trace FILE, --arrivals poisson:4/s");
}

int vp_cmd_fit(struct vp_ctx *ctx, const struct vp_args *args) {
    struct vp_fit_ask question = {0};
    uint32_t errors = ctx->diags->errors;

    read_question(ctx, &question, args);
    if (ctx->diags->errors == errors && vp_fit_is_deploy(ctx, &question))
        return vp_fit_deploy(ctx, &question);
    check_no_traffic(ctx, args);
    if (ctx->diags->errors > errors)
        return vp_output_failure(ctx, args, VP_ERR_INPUT);
    if (args->value[VP_OPTION_PACK])
        return vp_fit_pack(ctx, &question);
    if (args->operand_count > 1)
        return vp_fit_largest(ctx, &question);
    return args->value[VP_OPTION_EMIT] ? fit_emit(ctx, &question) : fit_one(ctx, &question);
}
