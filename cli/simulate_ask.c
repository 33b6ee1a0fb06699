#include "cli/simulate_ask.h"

#include <inttypes.h>
#include <unistd.h>

#include "api/slo.h"
#include "planner/base/units.h"

static void bad(struct vp_ctx *ctx, const char *option, const char *want, const char *text) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--%s is %s, not '%s'", option, want, text);
}

static void read_scale(struct vp_ctx *ctx, double *out, const struct vp_args *args,
                       enum vp_option option) {
    const double least = 1e-3, most = 1e3;
    const char *text = args->value[option];

    *out = 1;
    if (text && (!vp_parse_real(out, text) || !(*out >= least && *out <= most)))
        bad(ctx, vp_options[option].name, "a number from 0.001 to 1000", text);
}

static void read_count(struct vp_ctx *ctx, uint64_t *out, const struct vp_args *args,
                       enum vp_option option, uint64_t most) {
    const char *text = args->value[option];

    if (text && (!vp_parse_u64(out, text) || *out == 0 || *out > most))
        bad(ctx, vp_options[option].name,
            vp_arena_printf(ctx->arena, "a whole number from 1 to %" PRIu64, most), text);
}

static void read_times(struct vp_ctx *ctx, struct vp_simulate_ask *ask,
                       const struct vp_args *args) {
    const double longest = 1e9;
    const char *duration = args->value[VP_OPTION_DURATION], *warmup = args->value[VP_OPTION_WARMUP];

    ask->warmup_s = -1;
    if (duration && (!vp_parse_seconds(&ask->duration_s, duration) ||
                     !(ask->duration_s > 0 && ask->duration_s <= longest)))
        bad(ctx, "duration", "a time above 0, as 600s", duration);
    if (warmup && (!vp_parse_seconds(&ask->warmup_s, warmup) || ask->warmup_s > longest))
        bad(ctx, "warmup", "a time, as 60s", warmup);
    if (duration && warmup && ask->warmup_s >= ask->duration_s)
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--warmup %s leaves nothing of --duration %s to count", warmup, duration);
}

void vp_simulate_ask_read(struct vp_ctx *ctx, struct vp_simulate_ask *ask, struct vp_slo *slo,
                          const struct vp_args *args) {
    enum { MOST_SEEDS = 10000, MOST_THREADS = 64 };
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t seeds = 0, threads = processors > 0 ? (uint64_t)processors : 1;

    ask->first_seed = 1;
    read_times(ctx, ask, args);
    read_scale(ctx, &ask->rate_scale, args, VP_OPTION_RATE_SCALE);
    read_scale(ctx, &ask->time_scale, args, VP_OPTION_TIME_SCALE);
    read_count(ctx, &seeds, args, VP_OPTION_SEEDS, MOST_SEEDS);
    read_count(ctx, &ask->first_seed, args, VP_OPTION_SEED, UINT32_MAX);
    read_count(ctx, &threads, args, VP_OPTION_THREADS, MOST_THREADS);
    ask->seeds = (uint32_t)seeds;
    ask->threads = (unsigned)(threads < MOST_THREADS ? threads : MOST_THREADS);
    vp_slo_read(ctx, slo, args->value[VP_OPTION_SLO]);
    if (args->value[VP_OPTION_SLO])
        ask->slo = slo;
}
