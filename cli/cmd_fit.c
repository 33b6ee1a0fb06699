/* fit: what to change so that it fits, how far a quantity goes, on how few GPUs, which models fit
 * side by side. llama.cpp and ollama have a search of their own (planner/plan/fit_llama.h); all
 * else is searched by changes (api/find.h). */
#include <string.h>

#include "api/find.h"
#include "cli/args.h"
#include "cli/fit_several.h"
#include "cli/output.h"
#include "planner/base/units.h"
#include "planner/plan/fit_llama.h"
#include "reports/changes_report.h"
#include "reports/fit_report.h"

static void wrong(struct vp_ctx *ctx, const char *message, const char *hint) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "%s", message);
    if (hint)
        vp_diag_hint(ctx->diags, "%s", hint);
}

/* ---- the question ---- */

/* "mi300x,h200" of --gpu: the names; the setting keeps the first. */
static void split_gpus(struct vp_ctx *ctx, struct vp_fit_question_asked *q,
                       const struct vp_args *args) {
    for (size_t i = 0; i < q->setting_count; i++) {
        struct vp_setting *set = &q->settings[i];
        if (!vp_text_eq(set->path, "hardware.gpu") || *set->value == '{')
            continue;
        q->gpus = VP_NEW_ARRAY(ctx->arena, strlen(set->value) + 1, const char *);
        for (const char *at = set->value; at;) {
            size_t n = strcspn(at, ",");
            q->gpus[q->gpu_count++] = vp_arena_text(ctx->arena, at, n);
            at = at[n] ? at + n + 1 : NULL;
        }
        set->value = q->gpus[0];
    }
    if (q->gpu_count > 1 && !args->value[VP_OPTION_MINIMIZE])
        wrong(ctx, "--gpu takes several names only with --minimize", NULL);
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

    if (args->format == VP_FORMAT_CSV || args->format == VP_FORMAT_MARKDOWN)
        wrong(ctx, "'fit' has --format text and json only", NULL);
    if ((most != NULL) + (least != NULL) + pack > 1)
        wrong(ctx, "--maximize, --minimize and --pack are different questions: ask one", NULL);
    if (args->value[VP_OPTION_PHASE] && !pack)
        wrong(ctx, "--phase belongs to --pack", NULL);
    if (args->operand_count > 1 && !pack && (most || least))
        wrong(
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

static void read_question(struct vp_ctx *ctx, struct vp_fit_question_asked *q,
                          const struct vp_args *args) {
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

/* ---- what is driven as far as it goes ---- */

static enum vp_fit_goal llama_goal(const char *most) {
    if (!most)
        return VP_FIT_BALANCED;
    if (vp_text_eq(most, "context"))
        return VP_FIT_CONTEXT;
    return vp_text_eq(most, "layers") ? VP_FIT_LAYERS : VP_FIT_SLOTS;
}

static enum vp_field field_of(const struct vp_scenario *s, const char *most) {
    if (vp_text_eq(most, "context"))
        return s->training ? VP_F_SEQUENCE_LENGTH : VP_F_CONTEXT;
    return s->training ? VP_F_MICRO_BATCH : VP_F_CONCURRENCY;
}

/* A quantity that is to be driven as far as it goes must not be given: by the command line, or for
 * the search of llama.cpp by the scenario. */
static void check_goal(struct vp_ctx *ctx, const struct vp_fit_question_asked *q,
                       const struct vp_scenario *s) {
    const char *most = q->args->value[VP_OPTION_MAXIMIZE];
    bool llama = vp_engine_is_llama(s->engine.kind), said;

    if (llama && (q->args->value[VP_OPTION_MINIMIZE] || q->slo.count > 0))
        vp_diag_add(ctx->diags, VP_D_UNMODELLED, NULL,
                    "%s has a search of its own: --minimize and --slo are for other engines",
                    s->engine.name);
    if (!most)
        return;
    if (!llama && vp_text_eq(most, "layers")) {
        wrong(ctx, "--maximize layers is for llama.cpp and ollama: other engines hold all layers",
              "context, concurrency or batch");
        return;
    }
    if (s->training && (vp_text_eq(most, "concurrency") || vp_text_eq(most, "slots"))) {
        wrong(ctx, "training has no sequences at once: --maximize batch or context", NULL);
        return;
    }
    struct vp_fit_fixed fixed = vp_fit_llama_fixed(s);
    enum vp_fit_goal goal = llama_goal(most);
    if (llama)
        said = (goal == VP_FIT_CONTEXT && fixed.context) ||
               (goal == VP_FIT_LAYERS && fixed.layers) ||
               (goal == VP_FIT_SLOTS && (fixed.slots || fixed.total));
    else
        said = s->source[field_of(s, most)].origin == VP_ORIGIN_FLAG;
    if (said)
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, NULL,
                    "--maximize %s, but the %s says how much that is", most,
                    llama ? "scenario" : "command line");
}

/* ---- one scenario ---- */

struct found {
    const char *input, *name;
    struct vp_diags *diags;
    enum vp_status status;
    struct vp_search search;
    struct vp_result *result;   /* as it is; NULL: none */
    struct vp_fit_llama *llama; /* of llama.cpp and ollama */
    struct vp_outcome *outcome; /* of the others */
};

static enum vp_verdict verdict_of(const struct found *f) {
    return f->llama ? vp_fit_verdict(f->llama) : f->outcome->verdict;
}

static enum vp_status ask(struct vp_ctx *ctx, struct found *f,
                          const struct vp_fit_question_asked *q) {
    const char *most = q->args->value[VP_OPTION_MAXIMIZE];
    const char *least = q->args->value[VP_OPTION_MINIMIZE];
    struct vp_gpus gpus = {0};

    f->outcome = VP_NEW(ctx->arena, struct vp_outcome);
    if (most) {
        vp_find_most(&f->search, f->outcome, f->result, field_of(f->search.base, most));
    } else if (least) {
        const char *none = NULL;
        vp_find_fewest(&f->search, f->outcome, f->result, q->gpu_count ? q->gpus : &none,
                       q->gpu_count ? q->gpu_count : 1, vp_text_eq(least, "cost"));
    } else {
        enum vp_status status = vp_gpu_list(ctx, &gpus);
        if (status != VP_OK)
            return status;
        vp_find_changes(&f->search, f->outcome, f->result, &gpus);
    }
    return VP_OK;
}

static enum vp_status find(struct vp_ctx *outer, struct found *f,
                           const struct vp_fit_question_asked *q) {
    struct vp_ctx *ctx = VP_NEW(outer->arena, struct vp_ctx);

    *ctx = *outer;
    ctx->diags = f->diags = VP_NEW(ctx->arena, struct vp_diags);
    ctx->diags->arena = ctx->arena;
    enum vp_status status =
        vp_search_open(ctx, &f->search, f->input, q->settings, q->setting_count);
    if (status != VP_OK)
        return status;
    f->search.slo = q->slo;
    f->search.prices = q->prices;
    check_goal(ctx, q, f->search.base);
    if (ctx->diags->errors > 0)
        return VP_ERR_INPUT;
    struct vp_result *result = VP_NEW(ctx->arena, struct vp_result);
    status = vp_plan_run(ctx, result, f->search.base);
    if (status != VP_OK)
        return status;
    f->result = result;
    if (!result->llama)
        return ask(ctx, f, q);
    f->llama = VP_NEW(ctx->arena, struct vp_fit_llama);
    return vp_fit_llama_find(ctx->arena, f->llama, result->scenario,
                             llama_goal(q->args->value[VP_OPTION_MAXIMIZE]))
               ? VP_OK
               : VP_ERR_INPUT;
}

static enum vp_exit exit_of(const struct found *f) {
    static const enum vp_exit CODES[] = {[VP_FITS] = VP_EXIT_YES,
                                         [VP_AT_RISK] = VP_EXIT_INCONCLUSIVE,
                                         [VP_DOES_NOT_FIT] = VP_EXIT_NO};

    return f->status == VP_OK ? CODES[verdict_of(f)] : vp_exit_of_status(f->status);
}

/* ---- all scenarios of an input ---- */

/* FILE, or FILE#name of each where the file holds several; standard input holds one. */
static size_t split_input(struct vp_ctx *ctx, struct found **out, const char *input) {
    struct vp_ctx quiet = *ctx;
    struct vp_found held = {0};

    quiet.diags = VP_NEW(ctx->arena, struct vp_diags);
    quiet.diags->arena = ctx->arena;
    if (strcmp(input, "-") != 0)
        vp_input_find(&quiet, &held, input);
    size_t count = held.count > 1 ? held.count : 1;
    *out = VP_NEW_ARRAY(ctx->arena, count, struct found);
    (*out)[0].input = input;
    for (size_t i = 0; count > 1 && i < count; i++) {
        (*out)[i].name = held.items[i].name;
        (*out)[i].input = vp_arena_printf(ctx->arena, "%s#%s", input, held.items[i].name);
    }
    return count;
}

static void show_diagnostics(struct vp_ctx *ctx, const struct found *found, size_t count,
                             const struct vp_args *args) {
    struct vp_diags *all = VP_NEW(ctx->arena, struct vp_diags); /* each told once */

    all->arena = ctx->arena;
    for (size_t i = 0; i < count; i++)
        vp_diags_merge(all, found[i].diags);
    vp_output_diagnostics(ctx, all, args->value[VP_OPTION_VERBOSE] ? VP_INFO : VP_ERROR, args);
}

static void render(struct vp_buf *out, const struct vp_args *args, const struct found *found,
                   size_t count) {
    struct vp_report_options options = {.colour = vp_output_colour(args),
                                        .utf8 = vp_output_utf8(args),
                                        .width = vp_output_width(args),
                                        .verbose = args->value[VP_OPTION_VERBOSE],
                                        .heading = count > 1};
    struct vp_json json = vp_json_begin(out);
    bool as_json = args->format == VP_FORMAT_JSON;

    if (as_json && count != 1)
        vp_json_list(&json);
    for (size_t i = 0; i < count; i++) {
        const struct found *f = &found[i];
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

static int fit_one(struct vp_ctx *ctx, const struct vp_fit_question_asked *q) {
    const struct vp_args *args = q->args;
    struct vp_buf out = {.arena = ctx->arena};
    enum vp_exit code = VP_EXIT_YES;
    struct found *found;
    size_t count = split_input(ctx, &found, args->operands[0]), good = 0;

    for (size_t i = 0; i < count; i++) {
        found[i].status = find(ctx, &found[i], q);
        code = vp_exit_of_both(code, exit_of(&found[i]));
        good += found[i].status == VP_OK;
    }
    show_diagnostics(ctx, found, count, args);
    if (good > 0 || args->format == VP_FORMAT_JSON) {
        render(&out, args, found, count);
        code = vp_exit_of_both(
            code, vp_exit_of_status(vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT])));
    }
    for (size_t i = 0; i < count; i++)
        vp_search_close(&found[i].search);
    return (int)code;
}

int vp_cmd_fit(struct vp_ctx *ctx, const struct vp_args *args) {
    struct vp_fit_question_asked question = {0};
    uint32_t errors = ctx->diags->errors;

    read_question(ctx, &question, args);
    if (ctx->diags->errors > errors)
        return vp_output_failure(ctx, args, VP_ERR_INPUT);
    if (args->value[VP_OPTION_PACK])
        return vp_fit_pack(ctx, &question);
    return args->operand_count > 1 ? vp_fit_rank(ctx, &question) : fit_one(ctx, &question);
}
