/* Static batches, as transformers' generate makes them: as many waiting requests as the batch and
 * the memory take, their prompts padded to the longest, all of them in every step until the longest
 * output is written; then all are returned. Nobody joins under way.
 *
 * Source: transformers, generation/utils.py. */
#include "planner/serving/sim_parts.h"

/* How many of the waiting fit when all are as long as the longest of them. */
static uint32_t gather(struct vp_sim_engine *engine, uint32_t *longest_prompt,
                       uint32_t *longest_output) {
    uint32_t count = 0;

    while (count < engine->room && engine->waiting.count > 0) {
        struct vp_sim_seq *seq = vp_wait_peek(&engine->waiting);
        uint32_t prompt = (uint32_t)vp_max(*longest_prompt, seq->prompt);
        uint32_t output = (uint32_t)vp_max(*longest_output, seq->output);
        uint64_t each = vp_pool_units(engine->pool, 0, prompt + output);
        if (each * (count + 1) > vp_pool_available(engine->pool)) {
            engine->blocked = VP_BLOCKED_MEMORY;
            break;
        }
        *longest_prompt = prompt;
        *longest_output = output;
        engine->spare[count++] = vp_wait_pop(&engine->waiting);
    }
    if (engine->waiting.count > 0 && engine->blocked == VP_BLOCKED_NOT)
        engine->blocked = VP_BLOCKED_SLOTS;
    return count;
}

static void start_batch(struct vp_sim_engine *engine) {
    const struct vp_cache_hit none = {0};
    uint32_t prompt = 0, output = 0, count = gather(engine, &prompt, &output);

    for (uint32_t i = count; i-- > 0;)
        vp_wait_push_front(&engine->waiting, engine->sim->arena, engine->spare[i]);
    for (uint32_t i = 0; i < count; i++) {
        struct vp_sim_seq *seq = vp_wait_peek(&engine->waiting);
        vp_pool_admit(engine->pool, &seq->cache, 0, &none, 0, prompt + output, 0);
        vp_engine_admit(engine, seq, 0, &none);
        vp_engine_add(engine, seq, prompt);
    }
}

static void plan(struct vp_sim_engine *engine) {
    if (engine->running_count == 0) {
        start_batch(engine);
        return;
    }
    for (uint32_t i = 0; i < engine->running_count; i++)
        vp_engine_add(engine, engine->running[i], 1);
    if (engine->waiting.count > 0)
        engine->blocked = VP_BLOCKED_SLOTS;
    engine->steady = true;
}

static bool hears(const struct vp_sim_engine *engine) {
    return engine->waiting.count == 0; /* the limit changes, nothing else */
}

const struct vp_scheduler VP_SCHEDULER_STATIC = {
    .plan = plan, .hears = hears, .whole_batches = true};
