#include "planner/latency/roofline.h"

#include "planner/base/sum.h"

bool vp_roofline_known(const struct vp_gpu *gpu) {
    return gpu->tflops_bf16 > 0 && gpu->bandwidth_gbs > 0;
}

/* Tokens that a token attends to, on average over a sequence. */
static double seen(const struct vp_roofline_load *load) {
    double all = (double)load->sequence;
    double mean = load->bidirectional ? all : all / 2;
    if (load->window > 0 && (double)load->window < mean)
        mean = (double)load->window;
    return mean;
}

uint64_t vp_roofline_ns(const struct vp_gpu *gpu, const struct vp_op *op,
                        const struct vp_roofline_load *load) {
    if (!vp_roofline_known(gpu))
        return 0;
    double tokens = (double)load->tokens / (double)vp_max(load->ranks, 1);
    double flops = tokens * ((double)op->flops + (double)op->flops_cached * seen(load));
    double weights =
        (double)op->matrices * (double)op->out * (double)op->in / (double)vp_max(load->ranks, 1);
    double elements = tokens * ((double)op->reads + (double)op->writes) + weights;
    double compute = flops / (gpu->tflops_bf16 * 1e3); /* per nanosecond */
    double memory = elements * (double)load->element_bytes / gpu->bandwidth_gbs;
    double ns = compute > memory ? compute : memory;
    return ns < 1e18 ? (uint64_t)ns + 1 : UINT64_MAX / 4;
}
