/* Times of single kernels on one GPU: by its calibration where that covers them, else by the card's
 * class (what share of the data sheet's rates kernels reach, planner/latency/classes.def), with an
 * interval either way.
 *
 * All sizes are those of one rank. Times are microseconds; they may be 0 where nothing is to be
 * done. A time whose rates are not known at all has basis NONE and no figures. */
#ifndef VP_LATENCY_KERNELS_H
#define VP_LATENCY_KERNELS_H

#include "planner/model/calibration.h"
#include "planner/model/scenario.h"

/* From the least known to the best known: a sum has the basis of its weakest part that matters. */
enum vp_basis { VP_BASIS_NONE, VP_BASIS_BOUND, VP_BASIS_CLASS, VP_BASIS_CALIBRATED };
const char *vp_basis_name(enum vp_basis basis); /* "bound", "class", "calibrated" */

struct vp_time {
    double low, likely, high; /* microseconds */
    enum vp_basis basis;
};

/* Sum; the weaker basis, unless a part is below a hundredth of the sum. */
struct vp_time vp_time_add(struct vp_time a, struct vp_time b);
struct vp_time vp_time_scale(struct vp_time a, double factor);
/* The longer of two that run side by side. */
struct vp_time vp_time_max(struct vp_time a, struct vp_time b);

struct vp_kernels {
    const struct vp_gpu *gpu;
    const struct vp_calibration *calibration; /* NULL: none */
    double intranode_gbs;                     /* per direction and device */
    double internode_gbs;
    double host_gbs; /* to the host and back, per direction; 0: not said */
    uint64_t node_devices;
    bool graphs;                  /* kernels run from a captured graph */
    bool casts_apart;             /* products do not contain the making of their 8-bit operands */
    bool other_release[VP_RATES]; /* products were measured with another release of the engine */
};

/* The kernels of a scenario's worst card, with its links. */
struct vp_kernels vp_kernels_of(const struct vp_scenario *scenario);

/* [m, k] x [k, n], `batch` of them side by side (the experts at work); stored_bytes: all n x k
 * weights that are read, as stored, 0: those of the rate's own width. */
struct vp_gemm_shape {
    enum vp_rate rate;
    double m, n, k;
    double batch; /* 1: one */
    double stored_bytes;
};
struct vp_time vp_gemm_time(const struct vp_kernels *kernels, const struct vp_gemm_shape *gemm);

/* A measured kind of kernel at a shape: the form, its anchors and the interval that the fit's
 * errors give. What products and attention below come from where they are as measured. */
struct vp_form_case;
struct vp_time vp_fitted_time(const struct vp_form_fit *fit, const struct vp_form_case *c);

/* Attention of one layer over `batch` sequences: `fresh` query tokens each, after `past` cached
 * ones. */
struct vp_attention_shape {
    double batch, fresh, past;
    double heads, kv_heads, head_dim, v_head_dim;
    enum vp_kv_width kv;
    double window;      /* tokens that a query looks back at most; 0: all */
    bool bidirectional; /* every token sees all fresh ones */
    bool latent;        /* one cached vector of head_dim for all heads (MLA, absorbed) */
};
struct vp_time vp_attention_time(const struct vp_kernels *kernels,
                                 const struct vp_attention_shape *a);

/* A kernel that streams: norms, activations, residuals, copies. */
struct vp_time vp_stream_time(const struct vp_kernels *kernels, double bytes_read,
                              double bytes_written);
/* An empty kernel. */
struct vp_time vp_launch_time(const struct vp_kernels *kernels);
/* Bytes of one rank's buffer, over `ranks` devices; across nodes when they are more than a node
 * has. */
struct vp_time vp_all_reduce_time(const struct vp_kernels *kernels, double ranks, double bytes);
struct vp_time vp_all_gather_time(const struct vp_kernels *kernels, double ranks, double bytes);
struct vp_time vp_all_to_all_time(const struct vp_kernels *kernels, double ranks, double bytes);
struct vp_time vp_send_time(const struct vp_kernels *kernels, bool across_nodes, double bytes);
/* Host and device, one way: at the rate that the scenario says, else as measured, else by class. */
struct vp_time vp_host_copy_time(const struct vp_kernels *kernels, double bytes);

#endif
