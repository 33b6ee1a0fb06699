/* Times of collectives: as measured for the group's size inside a node, else by the links' rates.
 */
#include <math.h>

#include "planner/latency/kernels.h"

static const double LINK_SHARE = 0.65; /* of all links' rate, by a collective of many bytes */
static const double NODE_START_US = 8; /* of a collective inside a node, captured */
static const double NET_START_US = 25; /* across nodes */
static const double PCIE_GBS = 20;     /* per direction, where no link is known */
static const double NET_GBS = 25;      /* per direction and device, where no network is known */
static const double COLLECTIVE_SPREAD = 1.8;

/* lanes: network ports of a node that work for the group at once. */
static struct vp_time moved(const struct vp_kernels *kernels, double ranks, double lanes,
                            double bytes) {
    bool across = kernels->node_devices > 0 && ranks > (double)kernels->node_devices;
    double node = kernels->intranode_gbs > 0   ? kernels->intranode_gbs
                  : kernels->gpu->link_gbs > 0 ? kernels->gpu->link_gbs
                                               : PCIE_GBS;
    double net = kernels->internode_gbs > 0 ? kernels->internode_gbs : NET_GBS;
    double us = (across ? NET_START_US : NODE_START_US) +
                bytes / ((across ? fmin(net * lanes, node) : node) * LINK_SHARE * 1e3);

    if (ranks <= 1)
        return (struct vp_time){.basis = VP_BASIS_CALIBRATED};
    return (struct vp_time){us / COLLECTIVE_SPREAD, us, us * COLLECTIVE_SPREAD, VP_BASIS_CLASS};
}

/* ---- measured all-reduces ---- */

/* Spread of log-log interpolation between measured sizes (docs/CALIBRATION.md), and of what is
 * derived from it for other collectives. */
static const double MEASURED_SPREAD = 1.25, DERIVED_SPREAD = 1.6;

/* Between two measured sizes on the straight line in logarithms; below them as the smallest; above
 * them by the bytes. */
static double interpolated(const struct vp_reduce_fit *fit, double bytes) {
    const struct vp_reduce_point *p = fit->points;
    uint32_t n = fit->count, i = 1;
    if (bytes <= p[0].bytes)
        return p[0].us;
    if (bytes >= p[n - 1].bytes)
        return p[n - 1].us * bytes / p[n - 1].bytes;
    while (bytes > p[i].bytes)
        i++;
    double share = log(bytes / p[i - 1].bytes) / log(p[i].bytes / p[i - 1].bytes);
    return p[i - 1].us * pow(p[i].us / p[i - 1].us, share);
}

/* The measured group of the largest size up to `ranks` (above false), or the smallest from it on;
 * graphs or their absence where both were measured. */
static const struct vp_reduce_fit *group(const struct vp_kernels *kernels, double ranks,
                                         bool above) {
    const struct vp_calibration *c = kernels->calibration;
    const struct vp_reduce_fit *found = NULL;
    for (uint32_t i = 0; i < c->reduce_count; i++) {
        const struct vp_reduce_fit *fit = &c->reduces[i];
        double gpus = (double)fit->gpus;
        if (!fit->count || (above ? gpus < ranks : gpus > ranks))
            continue;
        bool nearer = !found || (above ? fit->gpus < found->gpus : fit->gpus > found->gpus);
        bool fitter = found && fit->gpus == found->gpus && fit->graph == kernels->graphs;
        if (nearer || fitter)
            found = fit;
    }
    return found;
}

/* Microseconds; 0: nothing was measured that says it. Between two group sizes on the line in
 * logarithms. */
static double measured_reduce(const struct vp_kernels *kernels, double ranks, double bytes) {
    bool across = kernels->node_devices > 0 && ranks > (double)kernels->node_devices;
    if (!kernels->calibration || across || ranks < 2)
        return 0;
    const struct vp_reduce_fit *less = group(kernels, ranks, false);
    const struct vp_reduce_fit *more = group(kernels, ranks, true);
    if (!less || !more)
        return 0;
    double low = interpolated(less, bytes), high = interpolated(more, bytes);
    if (kernels->graphs && !less->graph) { /* a graph saves what starting them takes */
        low = fmax(low - fmax(less->points[0].us - NODE_START_US, 0), NODE_START_US / 2);
        high = fmax(high - fmax(more->points[0].us - NODE_START_US, 0), NODE_START_US / 2);
    }
    if (less->gpus == more->gpus)
        return low;
    double share = log2(ranks / (double)less->gpus) / log2((double)more->gpus / (double)less->gpus);
    return low * pow(high / low, share);
}

static struct vp_time of_reduce(double us, double spread) {
    return (struct vp_time){us / spread, us, us * spread, VP_BASIS_CALIBRATED};
}

/* Each rank sends what an all-reduce sends in one of its two halves. */
static struct vp_time half_reduce(const struct vp_kernels *kernels, double ranks, double lanes,
                                  double bytes) {
    double us = measured_reduce(kernels, ranks, bytes), start = measured_reduce(kernels, ranks, 1);
    if (us > 0)
        return of_reduce(start + fmax(us - start, 0) / 2, DERIVED_SPREAD);
    return moved(kernels, ranks, lanes, (ranks - 1) / fmax(ranks, 1) * bytes);
}

/* A ring enters and leaves a node once; members of one node share the way of each of their rings
 * among all their ports. */
static double ring_lanes(const struct vp_kernels *kernels) {
    return fmax((double)kernels->node_devices, 1);
}

struct vp_time vp_all_reduce_time(const struct vp_kernels *kernels, double ranks, double bytes) {
    double us = measured_reduce(kernels, ranks, bytes);
    if (us > 0)
        return of_reduce(us, MEASURED_SPREAD);
    return moved(kernels, ranks, ring_lanes(kernels), 2 * (ranks - 1) / fmax(ranks, 1) * bytes);
}

struct vp_time vp_all_gather_time(const struct vp_kernels *kernels, double ranks, double bytes) {
    return half_reduce(kernels, ranks, ring_lanes(kernels), bytes);
}

struct vp_time vp_all_to_all_time(const struct vp_kernels *kernels, double ranks, double bytes) {
    return half_reduce(kernels, ranks, 1, bytes);
}

struct vp_time vp_send_time(const struct vp_kernels *kernels, bool across_nodes, double bytes) {
    return moved(kernels, across_nodes ? (double)kernels->node_devices + 1 : 2, 1, bytes);
}
