#include "reports/llama_text.h"

#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/words.h"

enum { INDENT = 2, PLACE = 10, MIB = 11, LAYERS = 8 };

/* "7605.33": hundredths of a MiB, as the log has them */
static const char *mib(struct vp_arena *arena, uint64_t bytes) {
    const uint64_t one = UINT64_C(1) << 20;
    uint64_t hundredths = vp_mul_div(bytes, 100, one);

    hundredths += bytes % one * 100 % one >= one / 2; /* rounded */

    return vp_arena_printf(arena, "%" PRIu64 ".%02" PRIu64, hundredths / 100, hundredths % 100);
}

static const char *gib(struct vp_arena *arena, uint64_t bytes) {
    return vp_format_gib(arena, bytes, 2);
}

/* ---- the table ---- */

static void table_head(const struct vp_page *page) {
    static const char *const COLUMNS[VP_LLAMA_BUFFERS] = {"model", "KV", "state", "compute",
                                                          "output"};
    vp_page_left(page, "  log, MiB", INDENT + PLACE);
    for (int b = 0; b < VP_LLAMA_BUFFERS; b++)
        vp_page_right(page, COLUMNS[b], MIB);
    vp_page_right(page, "layers", LAYERS);
    vp_page_wrap(page, INDENT + PLACE + VP_LLAMA_BUFFERS * MIB + LAYERS, INDENT, "");
}

static void table_row(const struct vp_page *page, const struct vp_llama_place *place) {
    struct vp_arena *arena = page->out->arena;
    bool layers = place->layers > 0;

    vp_page_spaces(page, INDENT);
    vp_page_left(page, place->id, PLACE);
    for (int b = 0; b < VP_LLAMA_BUFFERS; b++)
        vp_page_right(page, place->has[b] ? mib(arena, place->buffer[b].likely) : "-", MIB);
    vp_page_right(page, layers ? vp_arena_printf(arena, "%" PRIu32, place->layers) : "-", LAYERS);
    vp_page_wrap(page, INDENT + PLACE + VP_LLAMA_BUFFERS * MIB + LAYERS, INDENT, "");
}

/* ---- sentences ---- */

static void say(const struct vp_page *page, const char *text) {
    vp_page_spaces(page, INDENT);
    vp_page_wrap(page, INDENT, 2 * INDENT, text);
}

static const char *settings_text(struct vp_arena *arena, const struct vp_result *result) {
    const struct vp_llama_plan *plan = result->llama;
    const struct vp_llama *set = &result->scenario->llama;
    struct vp_buf out = {.arena = arena};

    vp_buf_printf(&out, "n_ctx %" PRIu64, plan->n_ctx);
    if (set->slots > 1 && plan->streams == 1)
        vp_buf_printf(&out, " shared by %" PRIu64 " slots", set->slots);
    else if (set->slots > 1)
        vp_buf_printf(&out, " = %" PRIu64 " slots of %" PRIu64, plan->streams, plan->cells);
    if (plan->window_cells > 0)
        vp_buf_printf(&out, ", sliding-window layers keep %" PRIu64, plan->window_cells);
    vp_buf_printf(&out, "; %" PRIu64 " of %" PRIu64 " layers on GPUs, the output layer counted",
                  plan->gpu_layers, plan->layer_slots);
    if (plan->host_experts > 0)
        vp_buf_printf(&out, ", experts of %" PRIu64 " of them on the host", plan->host_experts);
    vp_buf_printf(&out, "; flash attention %s", plan->flash ? "on" : "off");
    if (plan->pipeline)
        vp_buf_printf(&out, "; several GPUs overlap, so their inputs exist %" PRIu64 " times",
                      result->scenario->engine.rules.llama.copies);
    if (plan->fitted)
        vp_buf_add(&out, "; chosen by the engine's own fit");
    return vp_buf_text(&out);
}

/* What makes the phase smaller. */
static const char *knobs(enum vp_llama_phase phase) {
    switch (phase) {
    case VP_LLAMA_PHASE_LOGITS:
        return "-ub, or a version that reserves few outputs";
    case VP_LLAMA_PHASE_FEED_FORWARD:
        return "-ub";
    case VP_LLAMA_PHASE_ATTENTION:
        return "-fa on, -ub, -c; a 16-bit cache needs no copies of itself";
    case VP_LLAMA_PHASE_MASK_CAST:
        return "-ub, -c, or a version after May 2026";
    case VP_LLAMA_PHASE_COPY:
        return "more layers or fewer experts on the host, --no-op-offload";
    case VP_LLAMA_PHASE_NONE:
        break;
    }
    return NULL;
}

static void say_compute(const struct vp_page *page, const struct vp_result *result) {
    const struct vp_llama_place *place = &result->llama->place[result->worst];
    const char *knob;

    if (result->llama->gpus == 0)
        place = &result->llama->place[result->llama->places - 1];
    knob = knobs(place->phase);
    if (!place->has[VP_LLAMA_COMPUTE] || !knob)
        return;
    say(page, vp_arena_printf(page->out->arena,
                              "%s's compute buffer is as large as %s need%s it; smaller: %s",
                              place->id, vp_llama_phase_name(place->phase),
                              place->phase == VP_LLAMA_PHASE_FEED_FORWARD ||
                                      place->phase == VP_LLAMA_PHASE_ATTENTION ||
                                      place->phase == VP_LLAMA_PHASE_MASK_CAST
                                  ? "s"
                                  : "",
                              knob));
}

static void say_rest(const struct vp_page *page, const struct vp_result *result) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_llama_place *place = &result->llama->place[result->worst];
    uint64_t buffers = place->encoder.likely;

    if (result->llama->gpus == 0)
        return;
    for (int b = 0; b < VP_LLAMA_BUFFERS; b++)
        if (place->has[b])
            buffers += place->buffer[b].likely;
    uint64_t usable = vp_above(place->total_bytes, place->reserved_bytes);
    say(page, vp_arena_printf(arena,
                              "beside its buffers %s has %s GiB for the runtime, which takes %s; "
                              "the largest single allocation is %s GiB",
                              place->id, gib(arena, vp_above(usable, buffers)),
                              vp_words_interval(arena, place->pool, 2),
                              gib(arena, place->largest_bytes)));
}

static void say_host(const struct vp_page *page, const struct vp_result *result) {
    struct vp_arena *arena = page->out->arena;
    uint64_t mapped = 0, pinned = 0;

    for (uint32_t p = result->llama->gpus; p < result->llama->places; p++) {
        const struct vp_llama_place *place = &result->llama->place[p];
        mapped += place->mapped_bytes;
        for (int b = 0; b < VP_LLAMA_BUFFERS; b++)
            if (place->has[b])
                pinned += place->buffer[b].likely;
    }
    const char *paged = result->llama->paged_bytes > 0
                            ? vp_arena_printf(arena, ", %s GiB more than there is room for",
                                              gib(arena, result->llama->paged_bytes))
                            : "";
    say(page,
        vp_arena_printf(arena, "host memory: %s GiB allocated, %s GiB mapped from the file%s%s",
                        gib(arena, vp_above(pinned, mapped)), gib(arena, mapped), paged,
                        result->scenario->hardware.gpu.gtt_ppb > 0
                            ? "; on an APU it is the same memory as the GPU's"
                            : ""));
}

void vp_llama_section(const struct vp_page *page, const struct vp_result *result) {
    vp_buf_add(page->out, "\n");
    table_head(page);
    for (uint32_t p = 0; p < result->llama->places; p++)
        table_row(page, &result->llama->place[p]);
    say(page, settings_text(page->out->arena, result));
    say_compute(page, result);
    say_rest(page, result);
    say_host(page, result);
}
