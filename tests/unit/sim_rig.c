#include "sim_rig.h"

#include <stdlib.h>
#include <string.h>

static double iteration_us(void *state, const struct vp_iteration *it) {
    const struct sim_clock *c = state;
    double tokens = it->decodes * (1.0 + it->drafts);
    return c->step + c->sequence * tokens + c->context * it->decode_context +
           c->prompt * it->prompt_tokens + c->pair * it->prompt_pairs;
}

static void decode_run(void *state, const struct vp_iteration *it, struct vp_decode_run *out) {
    const struct sim_clock *c = state;
    *out = (struct vp_decode_run){iteration_us(state, it), c->context * it->decodes, 1000};
}

static double front_us(void *state, uint32_t prompt, uint32_t live) {
    const struct sim_clock *c = state;
    return c->front * (prompt + live);
}

static uint32_t length(struct sim_stream *s, double mean) {
    double at =
        s->exponential ? vp_random_exponential(&s->lengths) : 0.5 + vp_random_unit(&s->lengths);
    double tokens = mean * at + 0.5;
    return tokens < 1 ? 1 : (uint32_t)tokens;
}

static bool next(void *state, struct vp_request *out) {
    struct sim_stream *s = state;

    if (s->given >= s->count)
        return false;
    if (s->fixed) {
        *out = s->fixed[s->given++];
        return true;
    }
    s->given++;
    s->now_us += vp_random_exponential(&s->gaps) * s->mean_gap_us * s->scale;
    *out = (struct vp_request){.arrival_us = s->now_us, .output = 1};
    out->prompt = length(s, s->mean_prompt);
    if (s->mean_output > 1)
        out->output = length(s, s->mean_output);
    if (s->prefixes > 0) {
        out->prefix_id = vp_random_below(&s->kinds, s->prefixes + 1); /* 0: none */
        out->shared_prefix_tokens = out->prompt / 2;
    }
    out->class_id = (uint32_t)vp_random_below(&s->kinds, s->classes);
    out->priority = (int32_t)vp_random_below(&s->kinds, s->priorities);
    return true;
}

static void see_request(void *state, const struct vp_request_record *record) {
    struct sim_seen *seen = state;

    if (seen->count == seen->room) {
        seen->room = seen->room > 0 ? 2 * seen->room : 1024;
        seen->record = realloc(seen->record, seen->room * sizeof *seen->record);
    }
    seen->record[seen->count++] = *record;
    seen->output += record->output;
}

static void see_iteration(void *state, const struct vp_iteration_record *record) {
    ((struct sim_seen *)state)->iterations += (double)record->iterations;
}

void sim_rig_init(struct sim_rig *rig) {
    *rig = (struct sim_rig){
        .clock = {.step = 5000, .sequence = 20, .context = 0.02, .prompt = 40, .pair = 0.001},
        .stream = {.count = 4000,
                   .mean_gap_us = 60000,
                   .scale = 1,
                   .mean_prompt = 400,
                   .mean_output = 100,
                   .classes = 1,
                   .priorities = 1,
                   .seed = 7},
        .settings = {.loop = VP_LOOP_OPEN, .seed = 3, .classes = 1, .serve = {.replicas = 1}},
    };
    rig->settings.serve.cache =
        (struct vp_cache_settings){.units = 4097, /* V1 gives one of them to nobody */
                                   .block_tokens = 16,
                                   .group = {{.kind = VP_PAGES_FULL, .block = 16, .units = 1}},
                                   .groups = 1,
                                   .prefix_caching = true};
    sim_rig_scheduler(rig, VP_SCHED_VLLM_V1);
}

void sim_rig_scheduler(struct sim_rig *rig, enum vp_scheduler_kind kind) {
    struct vp_scheduler_settings *s = &rig->settings.serve.scheduler;
    struct vp_cache_settings *cache = &rig->settings.serve.cache;
    bool by_token = kind == VP_SCHED_SGLANG || kind == VP_SCHED_LLAMA || kind == VP_SCHED_STATIC;

    *s = (struct vp_scheduler_settings){.kind = kind,
                                        .max_running = 64,
                                        .token_budget = 2048,
                                        .chunked = kind == VP_SCHED_VLLM_V1,
                                        .watermark = kind == VP_SCHED_VLLM_V0 ? 0.01 : 0,
                                        .chunk_tokens = 1024,
                                        .new_token_ratio = 0.7,
                                        .min_new_token_ratio = 0.098,
                                        .new_token_ratio_decay = 0.001,
                                        .max_model_len = 4096};
    if (kind == VP_SCHED_LLAMA)
        s->max_running = 16;
    if (by_token && cache->block_tokens == 16) {
        cache->units *= 16;
        cache->block_tokens = cache->group[0].block = 1;
    }
    if (kind == VP_SCHED_STATIC)
        cache->prefix_caching = false;
}

void sim_rig_run(struct sim_rig *rig) {
    struct vp_request_stream requests = {next, &rig->stream};
    struct vp_clock *clock = &rig->settings.serve.clock;

    *clock = (struct vp_clock){&rig->clock, iteration_us, decode_run, front_us};
    rig->settings.prefill.clock = *clock;
    vp_random_seed(&rig->stream.gaps, rig->stream.seed, 1);
    vp_random_seed(&rig->stream.lengths, rig->stream.seed, 2);
    vp_random_seed(&rig->stream.kinds, rig->stream.seed, 3);
    rig->stream.given = 0;
    rig->stream.now_us = 0;
    rig->seen.count = 0;
    rig->seen.output = rig->seen.iterations = 0;
    rig->settings.watch.state = &rig->seen;
    rig->settings.watch.request = rig->quiet ? NULL : see_request;
    rig->settings.watch.iteration = rig->quiet ? NULL : see_iteration;
    vp_simulate(&rig->result, &rig->arena, &rig->settings, &requests);
}

void sim_rig_free(struct sim_rig *rig) {
    free(rig->seen.record);
    vp_arena_free(&rig->arena);
}

double sim_rig_mean(const struct sim_rig *rig, const float *values) {
    return vp_sim_mean(&rig->result.samples, values, -1);
}
