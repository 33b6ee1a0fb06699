#include "planner/latency/serve_sum.h"

double *vp_pass_constant(struct vp_serving_fit *fit, int term) {
    double *const constants[VP_PASS_TERMS] = {&fit->kernel_scale, &fit->layer_us,
                                              &fit->expert_layer_us, &fit->sequence_us,
                                              &fit->step_us};
    return constants[term];
}

double *vp_first_constant(struct vp_serving_fit *fit, int term) {
    double *const constants[VP_FIRST_TERMS] = {&fit->first_us, &fit->first_token_us,
                                               &fit->request_us, &fit->wait_steps,
                                               &fit->queue_share};
    return constants[term];
}

void vp_pass_factors(double out[VP_PASS_TERMS], const struct vp_pass *pass) {
    out[0] = pass->linear.likely + pass->experts.likely + pass->attention.likely +
             pass->other.likely + pass->exchange.likely;
    out[1] = pass->layers;
    out[2] = pass->expert_layers;
    out[3] = pass->sequences;
    out[4] = pass->passes;
}

void vp_tpot_factors(double out[VP_PASS_TERMS], const struct vp_serve_terms *terms) {
    double prompt[VP_PASS_TERMS];

    vp_pass_factors(out, &terms->decode);
    vp_pass_factors(prompt, &terms->prompt);
    for (int i = 0; i < VP_PASS_TERMS; i++)
        out[i] += terms->interruptions * prompt[i];
}

static double of_pass(const double factors[VP_PASS_TERMS], const struct vp_serving_fit *fit) {
    struct vp_serving_fit constants = *fit;
    double sum = 0;

    for (int i = 0; i < VP_PASS_TERMS; i++)
        sum += factors[i] * *vp_pass_constant(&constants, i);
    return sum;
}

double vp_pass_us(const struct vp_pass *pass, const struct vp_serving_fit *fit) {
    double factors[VP_PASS_TERMS];

    vp_pass_factors(factors, pass);
    return of_pass(factors, fit);
}

double vp_tpot_us(const struct vp_serve_terms *terms, const struct vp_serving_fit *fit) {
    double factors[VP_PASS_TERMS];

    vp_tpot_factors(factors, terms);
    return of_pass(factors, fit);
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
    struct vp_serving_fit constants = *fit;
    double factors[VP_FIRST_TERMS], sum;

    vp_ttft_factors(factors, &sum, terms, load, fit);
    for (int i = 0; i < VP_FIRST_TERMS; i++)
        sum += factors[i] * *vp_first_constant(&constants, i);
    return sum;
}

double vp_waiting_us(const struct vp_serve_terms *terms, const struct vp_serve_load *load,
                     const struct vp_serving_fit *fit) {
    double life = vp_ttft_us(terms, load, fit) + (load->output - 1) * vp_tpot_us(terms, fit);

    return terms->waiting * life * (load->batch ? 0.5 : 1);
}
