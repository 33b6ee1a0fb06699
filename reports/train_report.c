#include "reports/train_report.h"

#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/words.h"

enum { INDENT = 2 };

static const struct vp_training_stage *worst_of(const struct vp_result *result) {
    return &result->training.stage[result->training.worst];
}

static void add_dtype(struct vp_buf *out, enum vp_dtype dtype, const char *what) {
    vp_buf_printf(out, ", %s %s", vp_dtype_name(dtype), what);
}

/* Types are named where they differ from the parameters'. */
const char *vp_train_setup(struct vp_arena *arena, const struct vp_result *result) {
    const struct vp_scenario *scenario = result->scenario;
    const struct vp_train *train = &scenario->train;
    const struct vp_engine *engine = &scenario->engine;
    struct vp_buf out = {.arena = arena};
    if (scenario->precision.weights && !vp_text_eq(scenario->precision.weights, "checkpoint"))
        vp_buf_printf(&out, "%s weights", vp_words_weights(scenario));
    else
        vp_buf_printf(&out, "%s parameters", vp_dtype_name(train->parameters));
    if (train->lora.enabled)
        vp_buf_printf(&out, ", LoRA rank %" PRIu64, train->lora.rank);
    if (train->autocast != VP_DTYPE_UNSET)
        add_dtype(&out, train->autocast, "autocast");
    if (train->gradients != train->parameters)
        add_dtype(&out, train->gradients, "gradients");
    if (train->master != VP_DTYPE_UNSET)
        add_dtype(&out, train->master, "master");
    vp_buf_printf(&out, ", %s", train->optimizer_name);
    vp_buf_printf(&out, ", %s%s%s", vp_words_engine(engine->name), engine->version_text ? " " : "",
                  engine->version_text ? engine->version_text : "");
    vp_buf_printf(&out, ", micro batch %" PRIu64 " x %" PRIu64 " tokens, recompute %s",
                  train->micro_batch, train->sequence, train->recompute_name);
    return vp_buf_text(&out);
}

const char *vp_train_peak(struct vp_arena *arena, const struct vp_result *result) {
    const struct vp_training_stage *stage = worst_of(result);
    return vp_arena_printf(arena, "peak at the %s", stage->peak.cause);
}

static void candidates(const struct vp_page *page, const struct vp_training_stage *stage) {
    enum { NAME = 52, GIB = 9 };
    struct vp_arena *arena = page->out->arena;
    vp_buf_add(page->out, "\n");
    vp_page_left(page, "  when it takes most, allocated", NAME + INDENT);
    vp_page_right(page, "GiB", GIB);
    vp_page_wrap(page, NAME + INDENT + GIB, INDENT, "");
    for (size_t i = 0; i < sizeof stage->candidate / sizeof *stage->candidate; i++) {
        const struct vp_instant *instant = &stage->candidate[i];
        if (!instant->cause)
            continue;
        bool peak = instant->step == stage->peak.step;
        vp_buf_add(page->out, peak ? "> " : "  ");
        vp_page_left(page, instant->cause, NAME);
        vp_page_right(page, vp_format_gib(arena, instant->bytes.likely, 2), GIB);
        vp_page_spaces(page, INDENT);
        vp_page_wrap(page, NAME + 2 * INDENT + GIB, INDENT, peak ? "the peak" : "");
    }
}

static void allocator(const struct vp_page *page, const struct vp_training_stage *stage) {
    struct vp_arena *arena = page->out->arena;
    uint64_t allocated = stage->allocated_peak.likely, reserved = stage->reserved_peak.likely;
    vp_page_spaces(page, INDENT);
    vp_page_printf(page, INDENT, 2 * INDENT,
                   "allocated %s, reserved %s GiB (%s between them); between two steps %s",
                   vp_format_gib(arena, allocated, 2), vp_format_gib(arena, reserved, 2),
                   vp_format_gib(arena, vp_above(reserved, allocated), 2),
                   vp_format_gib(arena, stage->allocated.likely, 2));
    if (stage->first_step_peak_bytes == 0 || stage->first_step_peak_bytes == allocated)
        return;
    vp_page_spaces(page, INDENT);
    vp_page_printf(page, INDENT, 2 * INDENT,
                   "the first step peaks at %s GiB: it begins without optimizer states",
                   vp_format_gib(arena, stage->first_step_peak_bytes, 2));
}

static void stages(const struct vp_page *page, const struct vp_training_report *report) {
    enum { STAGE = 7, FIGURE = 11 };
    static const char *const HEAD[] = {"parameters", "gradients", "optimizer",
                                       "kept",       "allocated", "reserved"};
    struct vp_arena *arena = page->out->arena;
    if (report->stages < 2)
        return;
    vp_buf_add(page->out, "\n");
    vp_page_left(page, "  stage", INDENT + STAGE);
    for (size_t i = 0; i < sizeof HEAD / sizeof *HEAD; i++)
        vp_page_right(page, HEAD[i], FIGURE);
    vp_page_wrap(page, INDENT + STAGE + 6 * FIGURE, INDENT, "");
    for (uint32_t i = 0; i < report->stages; i++) {
        const struct vp_training_stage *stage = &report->stage[i];
        const struct vp_train_stage *n = &stage->numbers;
        uint64_t figures[] = {n->parameter_bytes,
                              n->gradient_bytes,
                              n->optimizer_bytes + n->master_bytes,
                              n->saved_bytes,
                              stage->allocated_peak.likely,
                              stage->reserved_peak.likely};
        vp_buf_add(page->out, i == report->worst ? "> " : "  ");
        vp_page_left(page, vp_arena_printf(arena, "%" PRIu32, i), STAGE);
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
            vp_page_right(page, vp_format_gib(arena, figures[k], 2), FIGURE);
        vp_page_wrap(page, INDENT + STAGE + 6 * FIGURE, INDENT, "");
    }
}

void vp_train_section(const struct vp_page *page, const struct vp_result *result) {
    const struct vp_training_stage *stage = worst_of(result);
    candidates(page, stage);
    allocator(page, stage);
    stages(page, &result->training);
}
