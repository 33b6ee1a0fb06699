#include "reports/llama_command.h"

#include <inttypes.h>

#include "planner/base/text.h"
#include "reports/shell_words.h"

const char *vp_llama_type_name(enum vp_dtype type) {
    switch (type) {
    case VP_DTYPE_FP32:
        return "f32";
    case VP_DTYPE_FP16:
        return "f16";
    default:
        return vp_dtype_name(type);
    }
}

static const char *file_of(struct vp_arena *arena, const struct vp_scenario *s) {
    const struct vp_gguf_table *table = s->model->gguf;

    return table && table->source ? vp_shell_word(arena, table->source) : "MODEL.gguf";
}

/* Settings that a search does not choose: passed on as they were given. */
static const struct {
    enum vp_field field;
    const char *flag;
    const char *off; /* of switches: when it is false; NULL: nothing */
} PASSED[] = {
    {VP_F_LLAMA_BATCH, "-b", NULL},
    {VP_F_KV_UNIFIED, "--kv-unified", "--no-kv-unified"},
    {VP_F_SPLIT_MODE, "-sm", NULL},
    {VP_F_MAIN_GPU, "-mg", NULL},
    {VP_F_SWA_FULL, "--swa-full", NULL},
    {VP_F_NO_KV_OFFLOAD, "--no-kv-offload", NULL},
    {VP_F_NO_OP_OFFLOAD, "--no-op-offload", NULL},
    {VP_F_LLAMA_MMAP, NULL, "--no-mmap"},
    {VP_F_EMBEDDINGS, "--embeddings", NULL},
    {VP_F_CPU_MOE, "--cpu-moe", NULL},
    {VP_F_OVERRIDE_TENSOR, "-ot", NULL},
    {VP_F_MMPROJ, "--mmproj", NULL},
};

static void pass_on(struct vp_buf *out, const struct vp_scenario *s) {
    for (size_t i = 0; i < sizeof PASSED / sizeof *PASSED; i++) {
        enum vp_field field = PASSED[i].field;
        const char *value = vp_field_value(out->arena, s, field);
        const char *flag = PASSED[i].flag;
        if (!vp_scenario_is_given(s, field))
            continue;
        if (vp_field_info(field)->kind != VP_KIND_BOOL)
            vp_buf_printf(out, " %s %s", flag, vp_shell_word(out->arena, value));
        else if (vp_text_eq(value, "true") ? flag != NULL : PASSED[i].off != NULL)
            vp_buf_printf(out, " %s", vp_text_eq(value, "true") ? flag : PASSED[i].off);
    }
}

const char *vp_llama_shares(struct vp_arena *arena, const struct vp_llama *l) {
    const uint64_t one = 1000000000;
    struct vp_buf out = {.arena = arena};

    for (uint32_t g = 0; g < l->shares; g++) {
        vp_buf_printf(&out, "%s%" PRIu64, g > 0 ? "," : "", l->share_ppb[g] / one);
        if (l->share_ppb[g] % one > 0)
            vp_buf_printf(&out, ".%09" PRIu64, l->share_ppb[g] % one);
    }
    return vp_buf_text(&out);
}

const char *vp_llama_command(struct vp_arena *arena, const struct vp_scenario *s) {
    const struct vp_llama *l = &s->llama;
    struct vp_buf out = {.arena = arena};

    vp_buf_printf(&out, "llama-server -m %s -ngl %" PRIu64 " -c %" PRIu64 " -np %" PRIu64,
                  file_of(arena, s), l->gpu_layers, l->context, l->slots);
    /* the versions before it was the default knew a switch only */
    if (s->engine.rules.llama.default_flash)
        vp_buf_printf(&out, " -fa %s", l->flash == VP_FLASH_OFF ? "off" : "on");
    else if (l->flash != VP_FLASH_OFF)
        vp_buf_add(&out, " -fa");
    vp_buf_printf(&out, " -ctk %s -ctv %s", vp_llama_type_name(l->type_k),
                  vp_llama_type_name(l->type_v));
    vp_buf_printf(&out, " -ub %" PRIu64, l->ubatch);
    if (l->cpu_moe_layers > 0)
        vp_buf_printf(&out, " --n-cpu-moe %" PRIu64, l->cpu_moe_layers);
    if (l->shares > 0)
        vp_buf_printf(&out, " -ts %s", vp_llama_shares(arena, l));
    /* a number of slots that is given divides the cache among them, unless this stands beside it */
    if (l->unified && l->slots > 1 && !s->engine.rules.llama.always_unified &&
        !vp_scenario_is_given(s, VP_F_KV_UNIFIED))
        vp_buf_add(&out, " --kv-unified");
    pass_on(&out, s);
    return vp_buf_text(&out);
}

const char *vp_ollama_modelfile(struct vp_arena *arena, const struct vp_scenario *s) {
    const struct vp_llama *l = &s->llama;

    return vp_arena_printf(arena,
                           "FROM %s\nPARAMETER num_ctx %" PRIu64 "\nPARAMETER num_gpu %" PRIu64
                           "\nPARAMETER num_batch %" PRIu64 "\n",
                           file_of(arena, s), s->serve.context, l->gpu_layers, l->batch);
}

const char *vp_ollama_environment(struct vp_arena *arena, const struct vp_scenario *s) {
    const struct vp_llama *l = &s->llama;

    return vp_arena_printf(arena,
                           "OLLAMA_FLASH_ATTENTION=%d OLLAMA_KV_CACHE_TYPE=%s "
                           "OLLAMA_NUM_PARALLEL=%" PRIu64,
                           l->flash != VP_FLASH_OFF, vp_llama_type_name(l->type_k), l->slots);
}
