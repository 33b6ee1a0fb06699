#include "cli/fit_found.h"

#include <string.h>

#include "cli/output.h"
#include "reports/fit_report.h"

void vp_fit_refuse(struct vp_ctx *ctx, const char *message, const char *hint) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "%s", message);
    if (hint)
        vp_diag_hint(ctx->diags, "%s", hint);
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
static void check_goal(struct vp_ctx *ctx, const struct vp_fit_ask *q,
                       const struct vp_scenario *s) {
    const char *most = q->args->value[VP_OPTION_MAXIMIZE];
    bool llama = vp_engine_is_llama(s->engine.kind), said;

    if (llama &&
        (q->args->value[VP_OPTION_MINIMIZE] || q->slo.count > 0 || q->args->value[VP_OPTION_KEEP]))
        vp_diag_add(
            ctx->diags, VP_D_UNMODELLED, NULL,
            "%s has a search of its own: --minimize, --slo and --keep are for other engines",
            s->engine.name);
    if (!most)
        return;
    if (!llama && vp_text_eq(most, "layers")) {
        vp_fit_refuse(
            ctx, "--maximize layers is for llama.cpp and ollama: other engines hold all layers",
            "context, concurrency or batch");
        return;
    }
    if (s->training && (vp_text_eq(most, "concurrency") || vp_text_eq(most, "slots"))) {
        vp_fit_refuse(ctx, "training has no sequences at once: --maximize batch or context", NULL);
        return;
    }
    struct vp_fit_fixed fixed = vp_fit_llama_fixed(s);
    enum vp_fit_goal goal = llama_goal(most);
    if (llama)
        said = (goal == VP_FIT_CONTEXT && fixed.context) ||
               (goal == VP_FIT_LAYERS && fixed.layers) ||
               (goal == VP_FIT_SLOTS && (fixed.slots || fixed.total));
    else /* the length of training sequences has no default: given, it is where the search starts */
        said = s->source[field_of(s, most)].origin == VP_ORIGIN_FLAG &&
               field_of(s, most) != VP_F_SEQUENCE_LENGTH;
    if (said)
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, NULL,
                    "--maximize %s, but the %s says how much that is", most,
                    llama ? "scenario" : "command line");
}

/* ---- one scenario ---- */

enum vp_verdict vp_fit_found_verdict(const struct vp_fit_found *f) {
    return f->llama ? vp_fit_verdict(f->llama) : f->outcome->verdict;
}

static enum vp_status ask(struct vp_ctx *ctx, struct vp_fit_found *f, const struct vp_fit_ask *q) {
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

static enum vp_status find(struct vp_ctx *ctx, struct vp_fit_found *f, const struct vp_fit_ask *q) {
    enum vp_status status =
        vp_search_open(ctx, &f->search, f->input, q->settings, q->setting_count);
    if (status != VP_OK)
        return status;
    f->search.slo = q->slo.count ? q->slo : f->search.base->slo;
    f->search.prices = q->prices;
    vp_search_keep(&f->search, q->args->value[VP_OPTION_KEEP]);
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

void vp_fit_find(struct vp_ctx *outer, struct vp_fit_found *f, const struct vp_fit_ask *q) {
    struct vp_ctx *ctx = VP_NEW(outer->arena, struct vp_ctx); /* the search keeps it */

    *ctx = *outer;
    ctx->diags = f->diags = VP_NEW(ctx->arena, struct vp_diags);
    ctx->diags->arena = ctx->arena;
    f->status = find(ctx, f, q);
}

enum vp_exit vp_fit_found_exit(const struct vp_fit_found *f) {
    if (f->status == VP_OK && f->outcome && f->outcome->verdict == VP_FITS &&
        f->outcome->slo_state == VP_SLO_OPEN)
        return VP_EXIT_INCONCLUSIVE; /* it fits, and nobody can say that it is fast enough */
    return f->status == VP_OK ? vp_exit_of_verdict(vp_fit_found_verdict(f))
                              : vp_exit_of_status(f->status);
}

/* ---- all scenarios of an input ---- */

/* FILE, or FILE#name of each where the file holds several; standard input and pipes hold one. */
size_t vp_fit_split(struct vp_ctx *ctx, struct vp_fit_found **out, const char *input) {
    struct vp_ctx quiet = *ctx;
    struct vp_found held = {0};

    quiet.diags = VP_NEW(ctx->arena, struct vp_diags);
    quiet.diags->arena = ctx->arena;
    /* a pipe cannot be read again */
    if (strcmp(input, "-") != 0 && vp_io_kind(&quiet, input) != VP_FILE_OTHER)
        vp_input_find(&quiet, &held, input);
    size_t count = held.count > 1 ? held.count : 1;
    *out = VP_NEW_ARRAY(ctx->arena, count, struct vp_fit_found);
    (*out)[0].input = input;
    if (strchr(input, '#'))
        (*out)[0].name = strchr(input, '#') + 1;
    for (size_t i = 0; count > 1 && i < count; i++) {
        (*out)[i].name = held.items[i].name;
        (*out)[i].input = vp_arena_printf(ctx->arena, "%s#%s", input, held.items[i].name);
    }
    return count;
}

void vp_fit_show_diagnostics(struct vp_ctx *ctx, const struct vp_fit_found *found, size_t count,
                             const struct vp_args *args) {
    struct vp_diags *all = VP_NEW(ctx->arena, struct vp_diags); /* each told once */

    all->arena = ctx->arena;
    for (size_t i = 0; i < count; i++)
        vp_diags_merge(all, found[i].diags);
    vp_output_diagnostics(ctx, all, args->value[VP_OPTION_VERBOSE] ? VP_INFO : VP_ERROR, args);
}

struct vp_report_options vp_fit_report_options(const struct vp_args *args) {
    return (struct vp_report_options){.colour = vp_output_colour(args),
                                      .utf8 = vp_output_utf8(args),
                                      .width = vp_output_width(args),
                                      .verbose = args->value[VP_OPTION_VERBOSE]};
}
