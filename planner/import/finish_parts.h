/* What the parts of finish.c share. Private to finish*.c. Each part reports its own faults; later
 * parts that need what an earlier one could not resolve are left out by finish.c. */
#ifndef VP_IMPORT_FINISH_PARTS_H
#define VP_IMPORT_FINISH_PARTS_H

#include "planner/import/engine_profile.h"
#include "planner/model/scenario.h"

/* Says where a value comes from that was just set. */
static inline void vp_finish_note(struct vp_scenario *scenario, enum vp_field field,
                                  enum vp_origin origin, const char *why) {
    scenario->source[field] = (struct vp_source){.origin = origin, .why = why};
}

/* A number that the user did not give; true when it was set. */
static inline bool vp_finish_number(struct vp_scenario *scenario, enum vp_field field,
                                    uint64_t *member, uint64_t value, enum vp_origin origin,
                                    const char *why) {
    if (vp_scenario_is_given(scenario, field))
        return false;
    *member = value;
    vp_finish_note(scenario, field, origin, why);
    return true;
}

/* The same for a switch, by default. */
static inline void vp_finish_flag(struct vp_scenario *scenario, enum vp_field field, bool *member,
                                  bool value, const char *why) {
    if (vp_scenario_is_given(scenario, field))
        return;
    *member = value;
    vp_finish_note(scenario, field, VP_ORIGIN_DEFAULT, why);
}

void vp_finish_parallel(struct vp_ctx *ctx, struct vp_scenario *scenario);
void vp_finish_layout(struct vp_ctx *ctx, const struct vp_scenario *scenario);
enum vp_status vp_finish_hardware(struct vp_ctx *ctx, struct vp_scenario *scenario);
/* What measurements of its GPU say: the file that the scenario names, else the profile of the GPU
 * where there is one; needs hardware. */
enum vp_status vp_finish_calibration(struct vp_ctx *ctx, struct vp_scenario *scenario);
/* After the engine's rules: a class interval of context and libraries is at least the bare context
 * that was measured on this card. A framework loads more into it, never less. */
void vp_finish_measured_memory(struct vp_ctx *ctx, struct vp_scenario *s);
enum vp_status vp_finish_precision(struct vp_ctx *ctx, struct vp_scenario *scenario);
enum vp_status vp_finish_version(struct vp_ctx *ctx, struct vp_engine_profile *profile,
                                 struct vp_scenario *scenario);
/* The engine's settings: needs hardware, rules, precision and lengths. */
void vp_finish_engine(struct vp_ctx *ctx, struct vp_scenario *scenario);
/* Adapters, speculative decoding, images, host memory; needs all of the above. */
void vp_finish_extras(struct vp_ctx *ctx, struct vp_scenario *scenario);
/* llama.cpp and ollama: settings, devices, cache types. resolved: hardware, version and rules are
 * there; false: only faults of its own are looked for. */
enum vp_status vp_finish_llama(struct vp_ctx *ctx, struct vp_scenario *scenario, bool resolved);
/* Training: types, batch sizes, implementations, what is recomputed; likewise. */
enum vp_status vp_finish_train(struct vp_ctx *ctx, struct vp_scenario *scenario, bool resolved);
/* Its ranks, before hardware is resolved; batches and what cannot be, after. */
void vp_finish_train_parallel(struct vp_scenario *scenario);
void vp_finish_train_layout(struct vp_ctx *ctx, struct vp_scenario *scenario);
/* The lengths need the model only. */
void vp_finish_lengths(struct vp_ctx *ctx, struct vp_scenario *scenario);

#endif
