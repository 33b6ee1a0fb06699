#include "reports/pack_report.h"

#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/layout.h"
#include "reports/sections.h"
#include "reports/shell_words.h"
#include "reports/words.h"

enum { NAME = 24, ENGINE = 13, SET = 12, FIGURE = 10, SHARE = 9, INDENT = 2 };

/* ---- words ---- */

/* "0-3,5": the bits of a set of GPUs. */
static const char *set_text(struct vp_arena *arena, uint64_t set) {
    struct vp_buf out = {.arena = arena};

    for (int g = 0; g < VP_PLACING_GPUS; g++) {
        int last = g;
        if (!(set >> g & 1))
            continue;
        while (last + 1 < VP_PLACING_GPUS && set >> (last + 1) & 1)
            last++;
        vp_buf_printf(&out, last > g ? "%s%d-%d" : "%s%d", out.size ? "," : "", g, last);
        g = last;
    }
    return vp_buf_text(&out);
}

static const char *idle_name(enum vp_pack_idle idle) {
    static const char *const NAMES[] = {"never", "resident", "asleep", "between-steps"};
    return NAMES[idle];
}

static const char *phase_name(const struct vp_pack *pack, uint32_t phase) {
    return pack->phase[phase] ? pack->phase[phase] : "together";
}

/* Programs on a GPU: bits. */
static uint64_t programs_on(const struct vp_pack *pack, uint32_t gpu) {
    uint64_t set = 0;

    for (uint32_t i = 0; i < pack->programs; i++)
        set |= (pack->program[i].gpus >> gpu & 1) << i;
    return set;
}

/* ---- for people ---- */

static void program_rows(const struct vp_page *page, const struct vp_pack *pack) {
    struct vp_arena *arena = page->out->arena;

    vp_page_left(page, "program", NAME);
    vp_page_left(page, "engine", ENGINE);
    vp_page_left(page, "GPUs", SET);
    vp_page_right(page, "takes GiB", FIGURE);
    vp_page_right(page, "idle GiB", FIGURE);
    vp_page_right(page, "share", SHARE);
    vp_buf_add(page->out, "\n");
    for (uint32_t i = 0; i < pack->programs; i++) {
        const struct vp_pack_program *of = &pack->program[i];
        bool idles = of->idle != VP_IDLE_NEVER;
        vp_page_left(page, vp_page_shorten(page, of->name, NAME - 1), NAME);
        vp_page_left(page, vp_words_engine(of->plan->scenario->engine.name), ENGINE);
        vp_page_left(page, vp_page_shorten(page, set_text(arena, of->gpus), SET - 1), SET);
        vp_page_right(page, vp_format_gib(arena, of->takes_bytes, 2), FIGURE);
        vp_page_right(page, idles ? vp_format_gib(arena, of->idle_bytes, 2) : "-", FIGURE);
        vp_page_right(page, of->share_to ? of->share_to : "-", SHARE);
        vp_buf_add(page->out, "\n");
    }
}

/* GPUs that carry the same are one line. */
static void gpu_rows(const struct vp_page *page, const struct vp_pack *pack) {
    struct vp_arena *arena = page->out->arena;
    uint64_t room = pack->memory_bytes - pack->reserved_bytes, told = 0;

    vp_buf_add(page->out, "\n");
    for (uint32_t g = 0; g < pack->count; g++) {
        uint64_t set = 0, on = programs_on(pack, g);
        struct vp_buf names = {.arena = arena}, loads = {.arena = arena};
        if (told >> g & 1)
            continue;
        for (uint32_t k = g; k < pack->count; k++)
            if (programs_on(pack, k) == on)
                set |= UINT64_C(1) << k;
        told |= set;
        for (uint32_t i = 0; i < pack->programs; i++)
            if (on >> i & 1)
                vp_buf_printf(&names, "%s%s", names.size ? " + " : "", pack->program[i].name);
        for (uint32_t p = 0; on && p < pack->phases; p++) {
            uint64_t load = pack->placing.load[g][p];
            vp_buf_printf(
                &loads, "%s%s%s GiB, %s to spare", p ? "; " : "",
                pack->phases > 1 ? vp_arena_printf(arena, "%s: ", phase_name(pack, p)) : "",
                vp_format_gib(arena, load, 2), vp_format_gib(arena, vp_above(room, load), 2));
        }
        vp_page_printf(page, 0, 4, "GPU %s: %s%s%s", set_text(arena, set),
                       on ? vp_buf_text(&names) : "free", on ? "; " : "",
                       on ? vp_buf_text(&loads) : "");
    }
}

static void idle_notes(const struct vp_page *page, const struct vp_pack *pack) {
    static const char *const WHY[] = {
        NULL, "gives nothing back while it does not work",
        "sleeps while it does not work: weights and cache leave the card",
        "keeps what lives from step to step while it does not work; its framework has to empty the "
        "allocator's cache between phases"};

    for (uint32_t i = 0; i < pack->programs; i++)
        if (WHY[pack->program[i].idle])
            vp_page_printf(page, 0, 2, "%s %s", pack->program[i].name, WHY[pack->program[i].idle]);
}

static void commands(const struct vp_page *page, const struct vp_pack *pack) {
    struct vp_arena *arena = page->out->arena;

    for (uint32_t i = 0; i < pack->programs; i++) {
        const struct vp_pack_program *of = &pack->program[i];
        vp_buf_add(page->out, "\n");
        if (of->share_to)
            vp_page_printf(page, 0, 2, "%s: %s -> %s", of->name, of->share_field,
                           of->share_from
                               ? vp_arena_printf(arena, "%s (was %s)", of->share_to, of->share_from)
                               : of->share_to);
        else
            vp_page_printf(page, 0, 2, "%s", of->name);
        vp_shell_paste(page, INDENT, of->command);
    }
}

static void answer(const struct vp_page *page, const struct vp_pack *pack) {
    struct vp_arena *arena = page->out->arena;

    program_rows(page, pack);
    gpu_rows(page, pack);
    if (pack->host_bytes > 0)
        vp_page_printf(
            page, 0, 2, "host memory: %s GiB%s", vp_format_gib(arena, pack->host_bytes, 2),
            pack->host_memory_bytes > 0
                ? vp_arena_printf(arena, " of %s", vp_format_gib(arena, pack->host_memory_bytes, 2))
                : "");
    vp_buf_add(page->out, "\n");
    idle_notes(page, pack);
    vp_page_wrap(
        page, 0, 2,
        "shared on a GPU: its memory, its time, its links. Not shared: every process has a "
        "context, weights and a cache of its own, two of the same model too.");
    if (!pack->placing.complete)
        vp_page_wrap(page, 0, 2, "there are too many ways to deal them out: not all were tried");
    commands(page, pack);
}

void vp_pack_text(struct vp_buf *out, const struct vp_pack *pack,
                  const struct vp_report_options *options) {
    static const enum vp_style STYLES[] = {
        [VP_FITS] = VP_STYLE_GOOD, [VP_AT_RISK] = VP_STYLE_WARN, [VP_DOES_NOT_FIT] = VP_STYLE_BAD};
    struct vp_page page = vp_section_page(out, options);

    vp_page_printf(&page, 0, 2, "%s side by side on %" PRIu32 " x %s, %s GiB%s",
                   vp_words_plural(out->arena, pack->programs, "program", "programs"), pack->count,
                   pack->gpu_text, vp_format_gib(out->arena, pack->memory_bytes, 2),
                   pack->count > 1 ? " each" : "");
    vp_buf_add(out, "\n");
    vp_page_styled(&page, STYLES[pack->verdict], vp_words_verdict(pack->verdict));
    vp_buf_add(out, "\n");
    if (pack->short_text)
        vp_page_wrap(&page, 0, 2, pack->short_text);
    else if (pack->verdict == VP_AT_RISK)
        vp_page_wrap(&page, 0, 2, "by the likely figures, not for sure");
    vp_buf_add(out, "\n");
    if (pack->program[0].width > 0)
        answer(&page, pack);
}

/* ---- for programs ---- */

static void share_json(struct vp_json *json, const struct vp_pack_program *of) {
    vp_json_key(json, "share");
    if (!of->share_to) {
        vp_json_null(json);
        return;
    }
    vp_json_map_inline(json);
    vp_json_key_text(json, "field", of->share_field);
    vp_json_key_text(json, "from", of->share_from);
    vp_json_key_text(json, "to", of->share_to);
    vp_json_end(json, '}');
}

static void placed_json(struct vp_json *json, const struct vp_pack_program *of) {
    const struct vp_parallel *layout = &of->plan->scenario->parallel;

    vp_json_key(json, "gpus");
    vp_json_list_inline(json);
    for (uint32_t g = 0; g < VP_PLACING_GPUS; g++)
        if (of->gpus >> g & 1)
            vp_json_u64(json, g);
    vp_json_end(json, ']');
    vp_json_key(json, "parallel");
    vp_json_map_inline(json);
    vp_json_key_u64(json, "tensor", layout->tensor);
    vp_json_key_u64(json, "pipeline", layout->pipeline);
    vp_json_key_u64(json, "data", layout->data);
    vp_json_key_u64(json, "expert", layout->expert);
    vp_json_end(json, '}');
    vp_json_key_u64(json, "takes_bytes", of->takes_bytes);
    vp_json_key_u64(json, "idle_bytes", of->idle_bytes);
    vp_json_key_text(json, "idle", idle_name(of->idle));
    vp_json_key_u64(json, "others_bytes", of->others_bytes);
    vp_json_key_u64(json, "host_bytes", of->host_bytes);
    share_json(json, of);
    vp_json_key(json, "scenario_patch");
    vp_json_map(json);
    for (uint32_t i = 0; i < of->patches; i++)
        vp_json_key_text(json, of->patch[i].field, of->patch[i].value);
    vp_json_end(json, '}');
    vp_json_key_text(json, "command", of->command);
}

static void program_json(struct vp_json *json, const struct vp_pack *pack,
                         const struct vp_pack_program *of) {
    vp_json_map(json);
    vp_json_key_text(json, "input", of->input);
    vp_json_key_text(json, "scenario", of->name);
    vp_json_key_text(json, "engine", of->plan ? of->plan->scenario->engine.name : NULL);
    vp_json_key_text(json, "mode", of->plan ? of->plan->mode : NULL);
    vp_json_key_text(json, "verdict", of->plan ? vp_verdict_name(of->plan->verdict) : NULL);
    vp_json_key(json, "works_in");
    vp_json_list_inline(json);
    for (uint32_t p = 0; p < pack->phases; p++)
        if (of->works >> p & 1)
            vp_json_text(json, phase_name(pack, p));
    vp_json_end(json, ']');
    if (of->width > 0)
        placed_json(json, of);
    vp_json_end(json, '}');
}

static void devices_json(struct vp_json *json, const struct vp_pack *pack) {
    vp_json_key(json, "devices");
    vp_json_list(json);
    for (uint32_t g = 0; pack->program[0].width > 0 && g < pack->count; g++) {
        vp_json_map_inline(json);
        vp_json_key_text(json, "id", vp_arena_printf(json->out->arena, "gpu%" PRIu32, g));
        vp_json_key(json, "load_bytes");
        vp_json_map_inline(json);
        for (uint32_t p = 0; p < pack->phases; p++)
            vp_json_key_u64(json, phase_name(pack, p), pack->placing.load[g][p]);
        vp_json_end(json, '}');
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

void vp_pack_json(struct vp_json *json, const struct vp_pack *pack, const struct vp_diags *diags) {
    vp_json_map(json);
    vp_json_key_text(json, "schema", "vramplan.fit/1");
    vp_json_key_text(json, "question", "pack");
    vp_json_key_text(json, "verdict", vp_verdict_name(pack->verdict));
    vp_json_key_text(json, "gpu", pack->gpu);
    vp_json_key_u64(json, "count", pack->count);
    vp_json_key_u64(json, "memory_bytes", pack->memory_bytes);
    vp_json_key_u64(json, "reserved_bytes", pack->reserved_bytes);
    vp_json_key_u64(json, "host_bytes", pack->host_bytes);
    vp_json_key(json, "phases");
    vp_json_list_inline(json);
    for (uint32_t p = 0; p < pack->phases; p++)
        vp_json_text(json, phase_name(pack, p));
    vp_json_end(json, ']');
    vp_json_key(json, "programs");
    vp_json_list(json);
    for (uint32_t i = 0; i < pack->programs; i++)
        program_json(json, pack, &pack->program[i]);
    vp_json_end(json, ']');
    devices_json(json, pack);
    if (pack->short_text) {
        vp_json_key(json, "short");
        vp_json_map(json);
        vp_json_key_u64(json, "bytes", pack->short_bytes);
        vp_json_key_text(json, "text", pack->short_text);
        vp_json_end(json, '}');
    }
    vp_json_key_u64(json, "tried", pack->tried);
    vp_json_key_bool(json, "complete", pack->placing.complete);
    vp_json_key(json, "diagnostics");
    vp_report_json_diagnostics(json, diags);
    vp_json_end(json, '}');
}
