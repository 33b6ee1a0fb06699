/* Every row of the ledger, its formula and its numbers; the legend; where the scenario came from.
 */
#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/latency_text.h"
#include "reports/report.h"
#include "reports/sections.h"
#include "reports/words.h"

enum { INDENT = 2, DEEP = 4 };

/* "72,703,541,248 bytes = 67.71 GiB, class 67.10..68.00" */
static const char *amount_text(struct vp_arena *arena, struct vp_amount amount,
                               enum vp_confidence confidence) {
    struct vp_buf out = {.arena = arena};
    vp_buf_printf(&out, "%s bytes = %s GiB, %s", vp_format_count(arena, amount.likely),
                  vp_format_gib(arena, amount.likely, 2), vp_confidence_name(confidence));
    if (!vp_words_is_exact(amount))
        vp_buf_printf(&out, " %s", vp_words_interval(arena, amount, 2));
    return vp_buf_text(&out);
}

/* A row of all the process, or of all of the training step, needs no mention. */
static const char *lifetime(struct vp_arena *arena, const struct vp_row *row) {
    if ((row->from == VP_STEP_LOAD && row->to == VP_STEP_SERVE) ||
        (row->from == VP_STEP_FORWARD && row->to == VP_STEP_OPTIMIZER))
        return "";
    const char *from = vp_step_name((enum vp_step)row->from);
    if (row->from == row->to)
        return vp_arena_printf(arena, ", only at %s", from);
    return vp_arena_printf(arena, ", from %s to %s", from, vp_step_name((enum vp_step)row->to));
}

static void explain_row(const struct vp_page *page, const struct vp_row *row) {
    struct vp_arena *arena = page->out->arena;
    const char *layers =
        row->layers ? vp_arena_printf(arena, " (%s)",
                                      vp_words_plural(arena, row->layers, "layer", "layers"))
                    : "";
    vp_page_spaces(page, INDENT);
    vp_page_printf(page, INDENT, DEEP, "%s%s: %s%s [%s]", row->owner ? row->owner : "all", layers,
                   amount_text(arena, row->bytes, row->confidence), lifetime(arena, row),
                   vp_formula_id(row->formula));
    vp_page_spaces(page, DEEP);
    vp_page_printf(page, DEEP, DEEP + INDENT, "= %s", vp_formula_expression(row->formula));
    if (row->inputs == 0)
        return;
    struct vp_buf inputs = {.arena = arena};
    for (uint8_t i = 0; i < row->inputs && i < VP_ROW_INPUTS; i++)
        vp_buf_printf(&inputs, "%s%s %s", i ? ", " : "", row->input[i].name,
                      vp_format_count(arena, row->input[i].value));
    vp_page_spaces(page, DEEP);
    vp_page_printf(page, DEEP, DEEP + INDENT, "with %s", vp_buf_text(&inputs));
}

/* The step whose rows make up the figure that is shown for a component: the device's peak, else
 * the one at which the component itself is largest. */
static enum vp_step component_step(const struct vp_result *result, uint32_t device,
                                   enum vp_component component) {
    const struct vp_ledger *ledger = &result->ledger;
    enum vp_step step = result->devices[device].peak_step;
    uint64_t shown = result->devices[device].component[component].likely;
    uint64_t most = vp_ledger_component(ledger, device, component, step).likely;
    if (most == shown)
        return step;
    for (int s = 0; s < VP_STEP_COUNT; s++) {
        struct vp_amount at = vp_ledger_component(ledger, device, component, (enum vp_step)s);
        if (at.likely > most) {
            most = at.likely;
            step = (enum vp_step)s;
        }
    }
    return step;
}

static void explain_component(const struct vp_page *page, const struct vp_result *result,
                              uint32_t index, enum vp_component component) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_ledger *ledger = &result->ledger;
    const struct vp_device *device = &result->devices[index];
    struct vp_amount shown = device->component[component];
    enum vp_step peak = component_step(result, index, component);
    struct vp_amount sum = vp_ledger_component(ledger, index, component, peak);
    uint32_t rows = 0;
    const char *name = vp_words_component(arena, component);
    vp_buf_add(page->out, "\n");
    vp_page_styled(page, VP_STYLE_STRONG, name);
    vp_page_printf(page, vp_text_cells(name), DEEP, ": %s (%s)",
                   amount_text(arena, shown, device->confidence[component]),
                   vp_component_meaning(component));
    for (uint32_t i = 0; i < ledger->count; i++) {
        const struct vp_row *row = &ledger->rows[i];
        if (row->device != index || row->component != component)
            continue;
        explain_row(page, row);
        rows += row->from <= peak && peak <= row->to;
    }
    bool equal = sum.likely == shown.likely;
    vp_page_spaces(page, INDENT);
    vp_page_printf(page, INDENT, DEEP, "sum of %s at %s: %s bytes, %s",
                   vp_words_plural(arena, rows, "row", "rows"), vp_step_name(peak),
                   vp_format_count(arena, sum.likely),
                   equal ? "the component" : "NOT the component: this is a fault of the program");
}

static void explain_total(const struct vp_page *page, const struct vp_result *result,
                          uint32_t index) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_device *device = &result->devices[index];
    struct vp_buf steps = {.arena = arena};
    struct vp_amount peak = vp_ledger_at(&result->ledger, index, device->peak_step);
    vp_buf_add(page->out, "\n");
    vp_page_styled(page, VP_STYLE_STRONG, "total");
    int first = result->scenario->training ? VP_STEP_FORWARD : VP_STEP_LOAD;
    int last = result->scenario->training ? VP_STEP_OPTIMIZER : VP_STEP_SERVE;
    for (int s = first; s <= last; s++)
        vp_buf_printf(
            &steps, "%s%s %s", s > first ? ", " : ": ", vp_step_name((enum vp_step)s),
            vp_format_gib(arena, vp_ledger_at(&result->ledger, index, (enum vp_step)s).likely, 2));
    vp_page_printf(page, 5, DEEP, "%s GiB; largest at %s", vp_buf_text(&steps),
                   vp_step_name(device->peak_step));
    const struct {
        const char *name;
        uint64_t bytes;
    } LINES[] = {{"needed", device->need.likely},
                 {"usable", device->usable_bytes},
                 {"card", device->capacity_bytes},
                 {"engine takes", device->reserved_bytes}};
    size_t count = sizeof LINES / sizeof LINES[0] - !vp_words_has_policy(result->scenario);
    if (device->host)
        count = 1;
    for (size_t i = 0; i < count; i++) {
        vp_page_spaces(page, INDENT);
        vp_page_left(page, LINES[i].name, 14);
        vp_page_right(page, vp_format_count(arena, LINES[i].bytes), 20);
        vp_page_spaces(page, 1);
        vp_page_printf(page, INDENT + 35, INDENT, "bytes = %s GiB",
                       vp_format_gib(arena, LINES[i].bytes, 2));
    }
    if (peak.likely != device->need.likely)
        vp_page_printf(page, 0, DEEP, "the rows sum to %s bytes: this is a fault of the program",
                       vp_format_count(arena, peak.likely));
}

static void explain_device(const struct vp_page *page, const struct vp_result *result,
                           uint32_t index) {
    const struct vp_device *device = &result->devices[index];
    const char *last = device->ranks > 1 ? vp_arena_printf(page->out->arena, " to %" PRIu32,
                                                           device->first_rank + device->ranks - 1)
                                         : "";
    const char *where = device->host ? "memory of one machine" : NULL;
    vp_buf_add(page->out, "\n");
    if (where)
        vp_page_title(page, vp_arena_printf(page->out->arena, "-- %s: %s --", device->id, where));
    else
        vp_page_title(page,
                      vp_arena_printf(
                          page->out->arena, "-- %s: stage %" PRIu32 ", rank %" PRIu32 "%s%s --",
                          device->id, device->stage, device->first_rank, last,
                          index == result->worst && result->device_count > 1 ? ", the worst" : ""));
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        if (device->present[c])
            explain_component(page, result, index, (enum vp_component)c);
    explain_total(page, result, index);
}

static void legend_of(const struct vp_page *page, enum vp_formula formula) {
    vp_page_printf(page, 0, DEEP, "%s (%s) from: %s. Leaves out: %s.", vp_formula_id(formula),
                   vp_confidence_name(vp_formula_kind(formula)), vp_formula_source(formula),
                   vp_formula_leaves_out(formula));
}

/* The formulas that were used, in the order of their list. */
static void legend(const struct vp_page *page, const struct vp_result *result) {
    bool used[VP_FORMULA_COUNT] = {false};
    for (uint32_t i = 0; i < result->ledger.count; i++)
        used[result->ledger.rows[i].formula] = true;
    vp_buf_add(page->out, "\n");
    vp_page_title(page, "-- formulas --");
    for (int f = 0; f < VP_FORMULA_COUNT; f++)
        if (used[f])
            legend_of(page, (enum vp_formula)f);
}

static const char *origin_text(struct vp_arena *arena, const struct vp_source *source) {
    struct vp_buf out = {.arena = arena};
    const char *at = vp_words_position(arena, &source->pos);
    vp_buf_add(&out, vp_origin_name(source->origin));
    if (source->key)
        vp_buf_printf(&out, " %s", source->key);
    if (at)
        vp_buf_printf(&out, ", %s", at);
    if (source->why && *source->why)
        vp_buf_printf(&out, ": %s", source->why);
    return vp_buf_text(&out);
}

static void fields(const struct vp_page *page, const struct vp_result *result) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_scenario *scenario = result->scenario;
    for (int f = 0; f < VP_FIELD_COUNT; f++) {
        const struct vp_source *source = &scenario->source[f];
        if (source->origin == VP_ORIGIN_UNSET)
            continue;
        vp_page_printf(
            page, 0, DEEP, "%s = %s (%s)", vp_field_label(scenario->engine.kind, (enum vp_field)f),
            vp_field_value(arena, scenario, (enum vp_field)f), origin_text(arena, source));
    }
}

static void arguments(const struct vp_page *page, const char *map, const struct vp_engine_arg *args,
                      uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const char *at = vp_words_position(page->out->arena, &args[i].pos);
        if (args[i].used)
            continue; /* listed as a field */
        vp_page_printf(page, 0, DEEP, "%s.%s = %s (%s%smoves no bytes here)", map, args[i].key,
                       args[i].value ? args[i].value : "", at ? at : "", at ? ", " : "");
    }
}

static void measured(const struct vp_page *page, const struct vp_scenario *scenario) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_measured *values = &scenario->measured;
    for (int m = 0; m < VP_MEASURE_COUNT; m++) {
        const char *at = vp_words_position(arena, &values->pos[m]);
        bool count = m == VP_M_BLOCKS || m == VP_M_BLOCK_SIZE;
        if (!values->known[m])
            continue;
        vp_page_printf(page, 0, DEEP, "measured.%s = %s (measured%s%s)",
                       vp_measure_name(scenario->engine.kind, (enum vp_measure)m),
                       count ? vp_format_u64(arena, values->value[m])
                             : vp_format_gib(arena, values->value[m], 2),
                       at ? ", " : "", at ? at : "");
    }
    for (int m = 0; m < VP_TRAIN_MEASURES; m++) {
        const char *at = vp_words_position(arena, &values->train_pos[m]);
        if (values->train_known[m])
            vp_page_printf(page, 0, DEEP, "measured.%s = %s GiB (measured%s%s)",
                           vp_train_measure_name((enum vp_train_measure)m),
                           vp_format_gib(arena, values->train_bytes[m], 2), at ? ", " : "",
                           at ? at : "");
    }
}

static void scenario_table(const struct vp_page *page, const struct vp_result *result) {
    const struct vp_scenario *scenario = result->scenario;
    const char *at =
        scenario->model ? vp_words_position(page->out->arena, &scenario->model->pos) : NULL;
    vp_buf_add(page->out, "\n");
    vp_page_title(page, "-- scenario, and where each value came from --");
    vp_page_printf(page, 0, DEEP, "model = %s%s%s%s", vp_words_model(scenario), at ? " (" : "",
                   at ? at : "", at ? ")" : "");
    fields(page, result);
    arguments(page, "engine.args", scenario->engine.args, scenario->engine.arg_count);
    arguments(page, "engine.env", scenario->engine.env, scenario->engine.env_count);
    measured(page, scenario);
}

void vp_report_explain_component(struct vp_buf *out, const struct vp_result *result,
                                 uint32_t device, enum vp_component component,
                                 const struct vp_report_options *options) {
    struct vp_page page = vp_section_page(out, options);
    explain_component(&page, result, device, component);
}

void vp_report_explain_row(struct vp_buf *out, const struct vp_result *result,
                           const struct vp_row *row, const struct vp_report_options *options) {
    struct vp_page page = vp_section_page(out, options);
    struct vp_arena *arena = out->arena;
    const struct vp_device *device = &result->devices[row->device];
    struct vp_amount all = device->component[row->component];
    const char *name = vp_words_component(arena, row->component);
    if (options && options->width > 0) /* part of something, so it may be narrow */
        page.width = options->width;
    vp_page_printf(&page, 0, DEEP, "%s of %s (%s)", name, device->id,
                   vp_component_meaning(row->component));
    explain_row(&page, row);
    vp_buf_add(out, "\n");
    legend_of(&page, row->formula);
    vp_buf_add(out, "\n");
    vp_page_printf(&page, 0, DEEP, "%s of %s at the peak: %s bytes = %s GiB (%s)", name, device->id,
                   vp_format_count(arena, all.likely), vp_format_gib(arena, all.likely, 2),
                   vp_confidence_name(device->confidence[row->component]));
}

void vp_report_explain(struct vp_buf *out, const struct vp_result *result,
                       const struct vp_report_options *options) {
    struct vp_page page = vp_section_page(out, options);
    vp_section_head(&page, result, options);
    vp_section_devices(&page, result);
    for (uint32_t i = 0; i < result->device_count; i++)
        explain_device(&page, result, i);
    const char *rule = vp_words_first_order(out->arena, result);
    if (rule) {
        vp_buf_add(out, "\n");
        vp_page_wrap(&page, 0, INDENT, rule);
    }
    vp_latency_section(&page, result);
    legend(&page, result);
    scenario_table(&page, result);
    vp_section_notes(&page, result);
}
