#include "planner/memory/llama.h"

void vp_llama_make(struct vp_arena *arena, struct vp_llama_plan *out, struct vp_ledger *ledger,
                   const struct vp_scenario *scenario) {
    (void)arena;
    (void)ledger;
    (void)scenario;
    *out = (struct vp_llama_plan){.refused = "not built yet"};
}
const char *vp_llama_phase_name(enum vp_llama_phase phase) { return phase ? "phase" : ""; }
const char *vp_llama_buffer_key(enum vp_llama_buffer buffer) {
    static const char *const KEYS[VP_LLAMA_BUFFERS] = {"model_mib", "kv_mib", "state_mib",
                                                       "compute_mib", "output_mib"};
    return KEYS[buffer];
}
