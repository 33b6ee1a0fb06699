#include "cli/fit_deploy.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "api/deploy.h"
#include "cli/deploy_report.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/simulate_ask.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "reports/shell_words.h"

struct job {
    struct vp_ctx *ctx;
    const struct vp_fit_ask *ask;
    const struct vp_args *args;
    struct vp_deploy_ask deploy;
    struct vp_slo slo;
    struct vp_search search;
    struct vp_progress progress;
};

/* ---- the question ---- */

static bool says_traffic(const struct vp_args *args) {
    for (size_t i = 0; i < args->setting_count; i++)
        if (vp_text_eq(args->settings[i].path, "serve.trace") ||
            vp_text_eq(args->settings[i].path, "serve.arrival"))
            return true;
    return false;
}

bool vp_fit_is_deploy(struct vp_ctx *ctx, const struct vp_fit_ask *ask) {
    const struct vp_args *args = ask->args;
    struct vp_ctx quiet = *ctx;
    struct vp_variants *variants = NULL;
    bool open = false;

    if (says_traffic(args))
        return true;
    if (!args->value[VP_OPTION_MINIMIZE] || args->operand_count != 1 ||
        strcmp(args->operands[0], "-") == 0 ||
        vp_io_kind(&quiet, args->operands[0]) != VP_FILE_REGULAR)
        return false;
    quiet.diags = VP_NEW(ctx->arena, struct vp_diags);
    quiet.diags->arena = ctx->arena;
    if (vp_variants_open(&quiet, &variants, args->operands[0], ask->settings, ask->setting_count) ==
        VP_OK) {
        const struct vp_scenario *s = vp_variants_base(variants);
        open = !s->training && s->traffic.arrival.kind >= VP_ARRIVAL_POISSON &&
               (s->slo.count > 0 || args->value[VP_OPTION_SLO]);
    }
    vp_variants_close(variants);
    return open;
}

static void read_shard(struct job *job, const char *text) {
    const char *slash = text ? strchr(text, '/') : NULL;
    struct vp_deploy_ask *d = &job->deploy;

    if (!text)
        return;
    const char *first = slash ? vp_arena_text(job->ctx->arena, text, (size_t)(slash - text)) : text;
    if (!slash || !vp_parse_u64(&d->shard, first) || !vp_parse_u64(&d->shards, slash + 1) ||
        d->shard == 0 || d->shard > d->shards)
        vp_fit_refuse(job->ctx, "--shard is I/N, the I-th of N parts, I from 1 to N",
                      "for example --shard 3/8");
    if (job->args->format != VP_FORMAT_CSV)
        vp_fit_refuse(job->ctx, "parts of a search are tables: --shard takes --format csv", NULL);
}

static void read_question(struct job *job) {
    const struct vp_args *args = job->args;
    static const char *NONE[] = {NULL};

    job->deploy.gpus = job->ask->gpu_count ? job->ask->gpus : NONE;
    job->deploy.gpu_count = job->ask->gpu_count ? job->ask->gpu_count : 1;
    job->deploy.every = args->format == VP_FORMAT_CSV;
    vp_simulate_ask_read(job->ctx, &job->deploy.simulate, &job->slo, args);
    read_shard(job, args->value[VP_OPTION_SHARD]);
    if (!args->value[VP_OPTION_MINIMIZE])
        vp_fit_refuse(job->ctx, "traffic asks for a smallest deployment: --minimize gpus, or cost",
                      "`vramplan simulate` takes the set-up as it is");
    if (args->operand_count > 1 || args->value[VP_OPTION_EMIT] || args->value[VP_OPTION_KEEP])
        vp_fit_refuse(job->ctx, "with traffic, 'fit' takes one input, no --emit and no --keep",
                      NULL);
    if (args->format == VP_FORMAT_MARKDOWN)
        vp_fit_refuse(job->ctx, "with traffic, 'fit' has --format text, json and csv", NULL);
}

static void show_progress(void *state, uint32_t done, uint32_t all) {
    struct job *job = state;

    if (!job->progress.shown)
        vp_progress_begin(&job->progress, true, 0, all);
    vp_progress_step(&job->progress, done);
}

/* ---- the answer ---- */

/* Which search a row is of: everything that decides about rows. FNV-1a over texts. */
static uint64_t mix(uint64_t hash, const char *text) {
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

static const char *search_id(struct job *job) {
    static const enum vp_option OPTIONS[] = {
        VP_OPTION_SLO,  VP_OPTION_DURATION,   VP_OPTION_WARMUP,     VP_OPTION_SEEDS,
        VP_OPTION_SEED, VP_OPTION_RATE_SCALE, VP_OPTION_TIME_SCALE, VP_OPTION_PRICE};
    uint64_t hash = mix(UINT64_C(0xcbf29ce484222325), VP_VERSION);

    hash = mix(hash, vp_variants_text(job->search.variants, job->ctx));
    for (size_t i = 0; i < job->args->setting_count; i++)
        hash = mix(mix(hash, job->args->settings[i].path), job->args->settings[i].value);
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++)
        hash = mix(hash, job->args->value[OPTIONS[i]] ? job->args->value[OPTIONS[i]] : "");
    if (!job->deploy.shards)
        return vp_arena_printf(job->ctx->arena, "%016" PRIx64, hash);
    return vp_arena_printf(job->ctx->arena, "%016" PRIx64 ":%" PRIu64 "/%" PRIu64, hash,
                           job->deploy.shard, job->deploy.shards);
}

/* The traffic in words, without simulating anything. */
static const char *traffic_text(struct job *job) {
    const struct vp_scenario *s = job->search.base;
    const char *duration = job->args->value[VP_OPTION_DURATION];
    const char *rate = job->args->value[VP_OPTION_RATE_SCALE];

    return vp_arena_printf(job->ctx->arena, "%s%s%s%s%s", s->trace ? s->trace : s->serve.arrival,
                           duration ? " over " : "", duration ? duration : "",
                           rate ? ", rate x " : "", rate ? rate : "");
}

static void render(struct job *job, struct vp_buf *out, const struct vp_deployments *found) {
    const struct vp_args *args = job->args;
    struct vp_report_options options = vp_fit_report_options(args);
    struct vp_deploy_report report = {.found = found,
                                      .scenario = job->search.base,
                                      .goal = args->value[VP_OPTION_MINIMIZE],
                                      .traffic = traffic_text(job),
                                      .input = args->operands[0],
                                      .set = job->ask->settings,
                                      .sets = job->ask->setting_count,
                                      .slo = args->value[VP_OPTION_SLO]};
    struct vp_json json = vp_json_begin(out);

    if (args->format == VP_FORMAT_CSV) {
        vp_deploy_csv(out, &report, search_id(job));
    } else if (args->format == VP_FORMAT_JSON) {
        vp_deploy_json(&json, &report, job->ctx->diags);
        vp_buf_add(out, "\n");
    } else {
        vp_deploy_text(out, &report, &options);
    }
}

static enum vp_exit exit_of(const struct vp_deployments *found) {
    if (found->best_count == 0)
        return VP_EXIT_NO;
    return found->item[found->best[0]].state == VP_DEPLOY_KEPT ? VP_EXIT_YES : VP_EXIT_INCONCLUSIVE;
}

int vp_fit_deploy(struct vp_ctx *ctx, const struct vp_fit_ask *ask) {
    struct job *job = VP_NEW(ctx->arena, struct job);
    struct vp_buf out = {.arena = ctx->arena};
    struct vp_deployments found;
    uint32_t errors = ctx->diags->errors;

    *job = (struct job){.ctx = ctx, .ask = ask, .args = ask->args};
    read_question(job);
    enum vp_status status = ctx->diags->errors > errors ? VP_ERR_INPUT : VP_OK;
    if (status == VP_OK)
        status = vp_search_open(ctx, &job->search, ask->args->operands[0], ask->settings,
                                ask->setting_count);
    if (status != VP_OK) {
        vp_search_close(&job->search);
        return vp_output_failure(ctx, ask->args, status);
    }
    job->search.prices = ask->prices;
    if (isatty(STDERR_FILENO)) {
        job->deploy.progress = show_progress;
        job->deploy.progress_state = job;
    }
    status = vp_deploy_find(&job->search, &found, &job->deploy,
                            vp_text_eq(ask->args->value[VP_OPTION_MINIMIZE], "cost"));
    vp_progress_end(&job->progress);
    if (status != VP_OK) {
        vp_search_close(&job->search);
        return vp_output_failure(ctx, ask->args, status);
    }
    render(job, &out, &found);
    enum vp_exit code = job->deploy.shards ? VP_EXIT_YES : exit_of(&found);
    vp_output_own_diagnostics(ctx, VP_ERROR, ask->args);
    status = vp_output_write(ctx, &out, ask->args->value[VP_OPTION_OUTPUT]);
    vp_search_close(&job->search);
    return (int)vp_exit_of_both(code, vp_exit_of_status(status));
}
