#include "planner/latency/engine_constants.h"

#include <math.h>
#include <string.h>

#include "planner/base/text.h"

/* ---- generations ---- */

static const struct generation {
    const char *engine, *since;
} GENERATIONS[] = {
#define X(engine, since, why) {#engine, since},
#include "planner/latency/serving_generations.def"
#undef X
};
enum { GENERATION_COUNT = sizeof GENERATIONS / sizeof *GENERATIONS };

int vp_serving_generation(const char *engine, const struct vp_version *version) {
    int generation = 0;

    for (int i = 0; i < GENERATION_COUNT; i++) {
        struct vp_version since;
        if (!vp_text_eq(engine, GENERATIONS[i].engine) ||
            !vp_version_parse(&since, GENERATIONS[i].since))
            continue;
        if (version->kind != since.kind || vp_version_compare(*version, since) >= 0)
            generation++;
    }
    return generation;
}

void vp_serving_generation_span(const char *engine, int generation, const char **from,
                                const char **until) {
    *from = *until = NULL;
    for (int i = 0, begun = 0; i < GENERATION_COUNT; i++) {
        if (!vp_text_eq(engine, GENERATIONS[i].engine))
            continue;
        if (++begun == generation)
            *from = GENERATIONS[i].since;
        else if (begun == generation + 1)
            *until = GENERATIONS[i].since;
    }
}

/* ---- the choice ---- */

/* Those of this card, of this engine, of the scenario's generation; NULL: none. */
static const struct vp_serving_fit *fit_of_card(const struct vp_scenario *s) {
    const struct vp_calibration *measured = s->measured_gpu;
    int wanted = vp_serving_generation(s->engine.name, &s->engine.version);

    for (uint32_t i = 0; measured && i < measured->serving_count; i++) {
        const struct vp_serving_fit *fit = &measured->serving[i];
        const char *release = fit->source.release ? strchr(fit->source.release, ' ') : NULL;
        struct vp_version version = {0};
        if (release)
            vp_version_parse(&version, release + 1);
        if (vp_text_eq(fit->engine, s->engine.name) &&
            vp_serving_generation(fit->engine, &version) == wanted)
            return fit;
    }
    return NULL;
}

void vp_engine_constants_of(struct vp_arena *arena, struct vp_engine_constants *out,
                            const struct vp_scenario *s) {
    const struct vp_serving_fit *card = fit_of_card(s), *kind = &s->engine.rules.latency;

    if (card)
        *out = (struct vp_engine_constants){card, VP_BASIS_CALIBRATED,
                                            vp_arena_printf(arena, "%s on this card (%s)",
                                                            card->source.release,
                                                            card->source.origin)};
    else if (kind->engine)
        *out = (struct vp_engine_constants){
            kind, VP_BASIS_CLASS, vp_arena_printf(arena, "%s on other cards", s->engine.name)};
    else
        *out = (struct vp_engine_constants){
            NULL, VP_BASIS_BOUND,
            vp_arena_printf(arena, "what %s adds to the kernels is not known", s->engine.name)};
}

/* Constants of other cards beside kernels of the card's class: both may be off. The share that the
 * kernels have in a pass is as unsure as they are. */
double vp_engine_spread(const struct vp_engine_constants *constants, double spread,
                        const struct vp_pass *pass) {
    double factors[VP_PASS_TERMS];
    double likely = pass->linear.likely + pass->experts.likely + pass->attention.likely;
    double high = pass->linear.high + pass->experts.high + pass->attention.high;

    if (constants->basis != VP_BASIS_CLASS)
        return spread;
    double us = vp_pass_us(pass, constants->fit);
    vp_pass_factors(factors, pass);
    double share = us > 0 ? constants->fit->kernel_scale * factors[0] / us : 0;
    double kernels = likely > 0 ? share * log(high / likely) : 0;
    return exp(sqrt(log(spread) * log(spread) + kernels * kernels));
}
