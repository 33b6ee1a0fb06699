#include "planner/plan/train_peaks.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/timeline/step.h"
#include "planner/timeline/torch_step.h"

enum { MOST_IN_FLIGHT = 64 };
static const uint64_t MOST_BYTES = UINT64_C(1) << 50;

bool vp_train_is_torch(const struct vp_scenario *scenario, const struct vp_train_stage *stage) {
    return scenario->engine.kind != VP_ENGINE_MEGATRON && !stage->overflow &&
           stage->in_flight <= MOST_IN_FLIGHT && vp_train_stage_peak(stage)->total <= MOST_BYTES;
}

/* ---- the allocator ---- */

static const char *value_of(const struct vp_engine_arg *list, uint32_t count, const char *key) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i].key, key) == 0)
            return list[i].value;
    return NULL;
}

/* On ROCm expandable segments work from torch 2.11 and ROCm 7 on. */
static bool expandable_works(const struct vp_scenario *scenario) {
    const struct vp_version *torch = &scenario->engine.torch;
    struct vp_version rocm;
    if (!vp_text_eq(scenario->hardware.gpu.vendor, "amd"))
        return true;
    if (scenario->hardware.rocm && vp_version_parse(&rocm, scenario->hardware.rocm) &&
        rocm.part[0] < 7)
        return false;
    return torch->part[0] > 2 || (torch->part[0] == 2 && torch->part[1] >= 11);
}

/* The variable that torch reads: the new name wins. */
static const struct vp_engine_arg *configuration(const struct vp_engine *engine) {
    static const char *const NAMES[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
                                        "PYTORCH_HIP_ALLOC_CONF"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        for (uint32_t k = 0; k < engine->env_count; k++)
            if (strcmp(engine->env[k].key, NAMES[i]) == 0)
                return &engine->env[k];
    return NULL;
}

void vp_train_check_allocator(struct vp_ctx *ctx, const struct vp_scenario *scenario) {
    const struct vp_engine_arg *conf = configuration(&scenario->engine);
    struct vp_allocator_settings set = vp_allocator_defaults();
    struct vp_allocator_notes notes = {.count = 0};
    if (!conf)
        return;
    vp_allocator_parse(ctx->arena, &set, &notes, conf->value, expandable_works(scenario));
    for (uint32_t i = 0; i < notes.count && i < VP_ALLOCATOR_NOTES; i++) {
        const struct vp_allocator_note *note = &notes.item[i];
        bool fatal = note->fault != VP_ALLOC_NO_EFFECT;
        vp_diag_add(ctx->diags, fatal ? VP_D_ALLOCATOR : VP_D_ARG_IGNORED, &conf->pos,
                    "%s: %.100s: %s%s", conf->key, note->key, note->text,
                    fatal ? "; the whole setting is left out of account" : "");
    }
}

struct vp_allocator_settings vp_train_allocator(struct vp_arena *arena,
                                                const struct vp_scenario *scenario,
                                                const struct vp_train_stage *stage) {
    const struct vp_engine *engine = &scenario->engine;
    const struct vp_engine_arg *conf = configuration(engine);
    struct vp_allocator_settings out = vp_allocator_defaults(), set = out;
    struct vp_allocator_notes notes;
    bool works = expandable_works(scenario);

    if (conf && vp_allocator_parse(arena, &set, &notes, conf->value, works))
        out = set;
    if (vp_text_eq(value_of(engine->args, engine->arg_count, "expandable_segments"), "true"))
        out.expandable = works;
    out.device_bytes = scenario->hardware.memory_bytes;
    out.other_bytes = stage->runtime.low + scenario->hardware.reserved_bytes;
    out.fraction_ppb = scenario->train.memory_fraction_ppb;
    return out;
}

/* ---- the replay ---- */

bool vp_train_write(struct vp_arena *arena, const struct vp_scenario *scenario,
                    const struct vp_train_stage *stage, const struct vp_event_sink *sink) {
    return vp_train_is_torch(scenario, stage) ? vp_torch_step(arena, scenario, stage, sink)
                                              : vp_step_write(arena, scenario, stage, sink);
}

static const struct vp_walk *walk_through(struct vp_arena *arena,
                                          const struct vp_scenario *scenario,
                                          struct vp_train_stage *stage,
                                          const struct vp_allocator_settings *settings) {
    struct vp_walk *walk = vp_walk_begin(arena, settings, false);
    struct vp_event_sink sink = vp_walk_sink(walk);

    stage->overflow |= !vp_train_write(arena, scenario, stage, &sink);
    vp_walk_end(walk);
    return walk;
}

/* Splits what was there at an instant into what is there all the time and the rest. */
static void take_moment(struct vp_train_stage *s, const struct vp_walk_instant *from) {
    struct vp_train_moment *m = &s->moment[from->step - VP_STEP_FORWARD];
    const uint64_t *c = from->component;
    uint64_t activations = c[VP_C_ACTIVATIONS];

    m->cause = from->cause;
    m->layer = from->layer;
    m->gradients = vp_min(c[VP_C_GRADIENTS], s->gradient_bytes);
    m->scattered = c[VP_C_GRADIENTS] - m->gradients;
    m->saved = vp_min(m->saved, activations);
    m->temporaries = activations - m->saved;
    m->logits = c[VP_C_LOGITS];
    m->gathered = vp_above(c[VP_C_WEIGHTS] + c[VP_C_ADAPTERS], s->parameter_bytes + s->fp8_bytes);
    m->step_temp = vp_above(c[VP_C_OPTIMIZER], s->optimizer_bytes);
    m->total = s->static_bytes + m->gradients + m->scattered + m->saved + m->temporaries +
               m->logits + m->gathered + m->step_temp;
}

/* Near the limit the cache goes back to the driver, which keeps the reserved peak below it. What
 * does not fit even so is replayed without a limit. */
struct vp_amount vp_train_peaks(struct vp_arena *arena, const struct vp_scenario *scenario,
                                struct vp_train_stage *stage, uint64_t *first_step_peak) {
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct vp_allocator_settings settings = vp_train_allocator(arena, scenario, stage);
    const struct vp_amount *spread = &scenario->engine.rules.train.replayed;
    const struct vp_walk *walk = walk_through(arena, scenario, stage, &settings);
    uint64_t limit = vp_above(settings.device_bytes, settings.other_bytes), reserved;
    bool crowded = walk->out_of_memory;

    if (crowded) {
        settings.device_bytes = settings.fraction_ppb = 0;
        walk = walk_through(arena, scenario, stage, &settings);
    }
    reserved = walk->memory.reserved.peak;
    if (crowded) /* what is only too scattered ends at the limit, or beyond it */
        reserved = vp_min(reserved, vp_max(limit, walk->memory.allocated.peak));
    for (int i = 0; i < VP_TRAIN_MOMENTS; i++)
        if (walk->steady.phase[i].bytes > 0)
            take_moment(stage, &walk->steady.phase[i]);
    reserved = vp_max(reserved, vp_train_stage_peak(stage)->total);
    *first_step_peak = walk->first.peak.bytes;
    vp_arena_rewind(arena, mark);
    return (struct vp_amount){vp_mul_div(reserved, spread->low, 1000),
                              vp_mul_div(reserved, spread->likely, 1000),
                              vp_mul_div(reserved, spread->high, 1000)};
}
