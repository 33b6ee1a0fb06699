/* LoRA: every class but the first has an adapter, of which a batch holds at most as many as there
 * are slots; those used longest ago make room. */
#include <string.h>

#include "planner/serving/sim_parts.h"

static bool is_used(const struct vp_sim_engine *engine, uint32_t class_id) {
    for (uint32_t i = 0; i < engine->running_count; i++)
        if (engine->running[i]->class_id == class_id)
            return true;
    return false;
}

bool vp_engine_adapter(struct vp_sim_engine *engine, const struct vp_sim_seq *seq) {
    uint32_t slots = engine->settings->scheduler.adapters;

    if (!engine->adapter || seq->class_id == 0)
        return true;
    for (uint32_t i = 0; i < slots; i++)
        if (engine->adapter[i] == seq->class_id || engine->adapter[i] == 0 ||
            !is_used(engine, engine->adapter[i]))
            return true;
    return false;
}

void vp_engine_use_adapter(struct vp_sim_engine *engine, const struct vp_sim_seq *seq) {
    const struct vp_scheduler_settings *s = &engine->settings->scheduler;
    uint32_t chosen = s->adapters;

    if (!engine->adapter || seq->class_id == 0)
        return;
    for (uint32_t i = 0; i < s->adapters; i++)
        if (engine->adapter[i] == seq->class_id)
            chosen = i;
    if (chosen == s->adapters) {
        for (uint32_t i = s->adapters; i-- > 0;)
            if (engine->adapter[i] == 0 || !is_used(engine, engine->adapter[i]))
                chosen = i; /* the one used longest ago */
        engine->extra_us += s->adapter_load_us;
        engine->sim->metrics.out->all.adapter_loads++;
        if (vp_engine_counted(engine))
            vp_engine_counted(engine)->adapter_loads++;
    }
    memmove(&engine->adapter[chosen], &engine->adapter[chosen + 1],
            (s->adapters - chosen - 1) * sizeof *engine->adapter);
    engine->adapter[s->adapters - 1] = seq->class_id;
}
