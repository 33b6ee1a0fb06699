#include "planner/latency/serve_sum.h"

void vp_pass_factors(double out[VP_PASS_TERMS], const struct vp_pass *pass) {
    out[0] = pass->linear.likely + pass->experts.likely + pass->attention.likely +
             pass->other.likely + pass->exchange.likely;
    out[1] = pass->layers;
    out[2] = pass->sequences;
    out[3] = pass->passes;
}

void vp_tpot_factors(double out[VP_PASS_TERMS], const struct vp_serve_terms *terms) {
    double prompt[VP_PASS_TERMS];

    vp_pass_factors(out, &terms->decode);
    vp_pass_factors(prompt, &terms->prompt);
    for (int i = 0; i < VP_PASS_TERMS; i++)
        out[i] += terms->interruptions * prompt[i];
}

static double product(const double factors[VP_PASS_TERMS], const struct vp_serving_fit *fit) {
    return factors[0] * fit->kernel_scale + factors[1] * fit->layer_us +
           factors[2] * fit->sequence_us + factors[3] * fit->step_us;
}

double vp_pass_us(const struct vp_pass *pass, const struct vp_serving_fit *fit) {
    double factors[VP_PASS_TERMS];

    vp_pass_factors(factors, pass);
    return product(factors, fit);
}

double vp_tpot_us(const struct vp_serve_terms *terms, const struct vp_serving_fit *fit) {
    double factors[VP_PASS_TERMS];

    vp_tpot_factors(factors, terms);
    return product(factors, fit);
}

void vp_ttft_factors(double out[VP_FIRST_TERMS], double *known, const struct vp_serve_terms *terms,
                     const struct vp_serve_load *load, const struct vp_serving_fit *fit) {
    double queue = terms->ahead * vp_pass_us(&terms->prompt, fit);

    out[0] = 1;
    out[1] = load->prompt;
    out[2] = load->running * load->data;
    out[3] = load->batch ? 0 : vp_pass_us(&terms->decode, fit);
    out[4] = load->batch ? 0 : queue;
    *known = vp_pass_us(&terms->first, fit) + (load->batch ? queue : 0);
}

double vp_ttft_us(const struct vp_serve_terms *terms, const struct vp_serve_load *load,
                  const struct vp_serving_fit *fit) {
    const double constant[VP_FIRST_TERMS] = {fit->first_us, fit->first_token_us, fit->request_us,
                                             fit->wait_steps, fit->queue_share};
    double factors[VP_FIRST_TERMS], sum;

    vp_ttft_factors(factors, &sum, terms, load, fit);
    for (int i = 0; i < VP_FIRST_TERMS; i++)
        sum += factors[i] * constant[i];
    return sum;
}
