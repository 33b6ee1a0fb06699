#include "api/simulate_window.h"

struct recorder {
    struct vp_window *out;
    struct vp_arena *arena;
    uint64_t room;
    double from_us, to_us;
};

static void record(void *state, const struct vp_iteration_record *it) {
    struct recorder *r = state;
    struct vp_window *w = r->out;

    if (it->end_us < r->from_us || it->start_us > r->to_us)
        return;
    if (w->count == VP_WINDOW_MOST) {
        w->cut = true;
        return;
    }
    if (w->count == r->room) {
        uint64_t room = r->room ? r->room * 2 : 1024;
        struct vp_iteration_record *more = VP_NEW_ARRAY(r->arena, room, struct vp_iteration_record);
        for (uint64_t i = 0; i < w->count; i++)
            more[i] = w->item[i];
        w->item = more;
        r->room = room;
    }
    w->item[w->count++] = *it;
}

enum vp_status vp_simulation_window(struct vp_ctx *ctx, struct vp_window *out,
                                    const struct vp_simulation *simulation, double from_s,
                                    double to_s) {
    const struct vp_runs_ask *runs = &simulation->runs;
    struct recorder recorder = {out, ctx->arena, 0, from_s * 1e6, to_s * 1e6};
    struct vp_traffic_settings traffic = runs->traffic;
    struct vp_step_time times[2];
    struct vp_sim_settings sim = vp_serving_at(&simulation->serving, VP_SERVING_LIKELY, times);
    struct vp_sim_result *result = VP_NEW(ctx->arena, struct vp_sim_result);

    *out = (struct vp_window){.count = 0};
    traffic.seed = runs->first_seed;
    sim.loop = runs->loop;
    sim.concurrency = (uint32_t)runs->concurrency;
    sim.seed = runs->first_seed;
    sim.duration_us = runs->duration_s * 1e6;
    sim.horizon_us = to_s * 1e6;
    sim.watch = (struct vp_sim_watch){.state = &recorder, .iteration = record};
    struct vp_traffic_source *source = vp_traffic_open(ctx->arena, &traffic);
    struct vp_request_stream stream = vp_traffic_stream(source);
    vp_simulate(result, ctx->arena, &sim, &stream);
    return VP_OK;
}
