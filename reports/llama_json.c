#include "reports/llama_json.h"

/* MiB with six decimals: a byte, and the shortest text. */
static double mib(uint64_t bytes) {
    unsigned __int128 millionths = ((unsigned __int128)bytes * 1000000 + (1U << 19)) >> 20;
    return (double)(uint64_t)millionths / 1e6;
}

static bool any_has(const struct vp_llama_plan *plan, int buffer) {
    bool any = false;

    for (uint32_t p = 0; p < plan->places; p++)
        any |= plan->place[p].has[buffer];
    return any;
}

static void place_value(struct vp_json *json, const struct vp_amount *amount, bool interval) {
    if (!interval) {
        vp_json_real(json, mib(amount->likely));
        return;
    }
    vp_json_map_inline(json);
    vp_json_key_real(json, "low", mib(amount->low));
    vp_json_key_real(json, "high", mib(amount->high));
    vp_json_end(json, '}');
}

static void buffers(struct vp_json *json, const struct vp_llama_plan *plan, bool intervals) {
    for (int b = 0; b < VP_LLAMA_BUFFERS; b++) {
        if (!any_has(plan, b))
            continue;
        vp_json_key(json, vp_llama_buffer_key((enum vp_llama_buffer)b));
        vp_json_map(json);
        for (uint32_t p = 0; p < plan->places; p++) {
            const struct vp_llama_place *place = &plan->place[p];
            if (!place->has[b])
                continue;
            vp_json_key(json, place->id);
            place_value(json, &place->buffer[b], intervals);
        }
        vp_json_end(json, '}');
    }
}

void vp_llama_json_report(struct vp_json *json, const struct vp_result *result) {
    const struct vp_llama_plan *plan = result->llama;

    vp_json_key(json, "engine_report");
    vp_json_map(json);
    buffers(json, plan, false);
    vp_json_key_u64(json, "n_ctx", plan->n_ctx);
    vp_json_key_u64(json, "n_gpu_layers", plan->gpu_layers);
    vp_json_end(json, '}');
    vp_json_key(json, "intervals");
    vp_json_map(json);
    buffers(json, plan, true);
    vp_json_end(json, '}');
}
