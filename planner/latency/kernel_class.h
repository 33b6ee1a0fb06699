/* Times of single kernels of cards that nobody measured: the data sheet's rates times the share
 * that kernels reach on cards of their class (classes.def). Basis CLASS; without the sheet's rates
 * a time has no figures and basis NONE. Used by kernels.h, which knows calibrations too. */
#ifndef VP_LATENCY_KERNEL_CLASS_H
#define VP_LATENCY_KERNEL_CLASS_H

#include "planner/latency/kernels.h"

/* 10^12 FLOP/s that products of a rate reach; what a card has no units for runs in 16 bit. */
double vp_class_tflops(const struct vp_gpu *gpu, enum vp_rate rate);
struct vp_time vp_class_gemm(const struct vp_gpu *gpu, const struct vp_gemm_shape *gemm);
struct vp_time vp_class_attention(const struct vp_gpu *gpu, const struct vp_attention_shape *a);
struct vp_time vp_class_stream(const struct vp_gpu *gpu, bool graphs, double bytes);
struct vp_time vp_class_launch(const struct vp_gpu *gpu);
struct vp_time vp_class_host_copy(const struct vp_gpu *gpu, double bytes);

#endif
