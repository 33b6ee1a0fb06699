/* Traffic as a scenario describes it (planner/model/traffic_settings.h), as a stream of requests
 * for the simulation: drawn one by one, so that any number of them takes no memory. The same
 * settings and seed give the same requests.
 *
 * Arrivals, classes, lengths and prefixes are drawn from streams of their own: with another rate
 * the same requests come, faster or slower; with another distribution of lengths they come when
 * they did.
 *
 * Scaling. A trace at `rate_scale` x has every row so many times on average: a row is left out, or
 * comes again somewhere before the next row's arrival, by chance; what comes at a rate comes at a
 * rate above, too. A process has x times its rate. `time_scale` stretches all times of arrival.
 *
 * Left out: requests that depend on the answer to others (conversations), users who give up. */
#ifndef VP_SERVING_TRAFFIC_H
#define VP_SERVING_TRAFFIC_H

#include "planner/base/arena.h"
#include "planner/model/trace.h"
#include "planner/model/traffic_settings.h"
#include "planner/serving/simulator.h"

struct vp_traffic_settings {
    const struct vp_traffic *traffic;
    const struct vp_trace *trace; /* of VP_ARRIVAL_TRACE */
    uint64_t seed;
    double rate_scale, time_scale; /* above 0; 1: as it is */
    uint64_t batch;                /* requests of VP_ARRIVAL_BATCH */
    /* Tokens of prompt and output together that the engine takes: what an answer would have beyond
     * them it does not write. 0: no limit. */
    uint32_t longest;
};

struct vp_traffic_source;

/* Lives in the arena, as what settings point to has to. */
struct vp_traffic_source *vp_traffic_open(struct vp_arena *arena,
                                          const struct vp_traffic_settings *settings);
struct vp_request_stream vp_traffic_stream(struct vp_traffic_source *source);
/* Requests so far whose answer was cut to `longest`. */
uint64_t vp_traffic_cut(const struct vp_traffic_source *source);

/* Mean arrivals per second over the first so many seconds; 0 where there is no rate (closed loop,
 * batch). */
double vp_traffic_rate(const struct vp_traffic_settings *settings, double seconds);
/* Mean tokens of a request. */
void vp_traffic_means(const struct vp_traffic_settings *settings, double *prompt, double *output);

#endif
