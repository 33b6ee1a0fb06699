#include "reports/overview.h"

#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/words.h"

const char *const vp_overview_heads[VP_OVERVIEW_COLUMNS] = {
    [VP_OVERVIEW_NAME] = "plan",
    [VP_OVERVIEW_VERDICT] = "verdict",
    [VP_OVERVIEW_DEVICES] = "devices",
    [VP_OVERVIEW_NEED] = "#need, GiB",
    [VP_OVERVIEW_USABLE] = "#usable, GiB",
    [VP_OVERVIEW_SPARE] = "#spare, GiB",
    [VP_OVERVIEW_CONTEXT] = "#longest context",
    [VP_OVERVIEW_CONCURRENCY] = "#most sequences",
};

void vp_overview_row(struct vp_arena *arena, const char *out[VP_OVERVIEW_COLUMNS], const char *name,
                     const struct vp_result *result) {
    for (int i = 0; i < VP_OVERVIEW_COLUMNS; i++)
        out[i] = "";
    out[VP_OVERVIEW_NAME] = name;
    out[VP_OVERVIEW_VERDICT] = "not planned";
    if (!result)
        return;
    const struct vp_hardware *hardware = &result->scenario->hardware;
    const struct vp_device *worst = &result->devices[result->worst];
    out[VP_OVERVIEW_VERDICT] = vp_words_verdict(result->verdict);
    out[VP_OVERVIEW_DEVICES] =
        hardware->count == 0 ? "the processor"
                             : vp_arena_printf(arena, "%" PRIu64 " x %s", hardware->count,
                                               hardware->gpu.name ? hardware->gpu.name : "GPU");
    out[VP_OVERVIEW_NEED] = vp_format_gib(arena, worst->need.likely, 2);
    out[VP_OVERVIEW_USABLE] = vp_format_gib(arena, worst->usable_bytes, 2);
    out[VP_OVERVIEW_SPARE] = vp_words_signed_gib(arena, vp_words_headroom(worst));
    if (result->prices.max_context > 0)
        out[VP_OVERVIEW_CONTEXT] = vp_format_count(arena, result->prices.max_context);
    if (result->prices.max_concurrency > 0)
        out[VP_OVERVIEW_CONCURRENCY] = vp_format_count(arena, result->prices.max_concurrency);
}
