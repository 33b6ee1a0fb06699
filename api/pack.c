#include "api/pack.h"

#include <inttypes.h>

#include "api/levers.h"
#include "planner/base/units.h"
#include "planner/plan/sleep.h"

enum { MIB = 1 << 20, PATCHES = VP_PATCHES_MOST };

/* One way to run a program: a layout with a share, and what that takes. */
struct way {
    struct vp_setting set[PATCHES];
    uint32_t sets, width;
    const char *share; /* NULL: the engine has none, or it is not free */
    uint64_t takes;
};

struct packer {
    struct vp_ctx *ctx;
    struct vp_pack *out;
    struct vp_search *searches;
    const struct vp_pack_ask *ask;
    bool (*holds)(const struct vp_trial *); /* for sure, or by the likely figures */
    struct way *ways[VP_PLACING_PROGRAMS];
    struct vp_placing_option *options[VP_PLACING_PROGRAMS];
};

static void put(struct way *way, const char *path, const char *value) {
    if (way->sets < PATCHES)
        way->set[way->sets++] = (struct vp_setting){path, value, path};
}

/* ---- what one way takes ---- */

static bool holds_beside(const struct packer *p, struct vp_search *search, const struct way *way,
                         uint64_t reserved) {
    struct vp_arena_mark mark = vp_arena_mark(p->ctx->arena);
    struct way tried = *way;
    struct vp_trial trial;

    if (reserved > 0)
        put(&tried, "hardware.reserved", vp_format_u64(p->ctx->arena, reserved));
    vp_search_try(search, &trial, tried.set, tried.sets);
    vp_arena_rewind(p->ctx->arena, mark);
    return p->holds(&trial);
}

static bool has_share(const struct vp_scenario *s) {
    bool engine = s->engine.kind == VP_ENGINE_VLLM || s->engine.kind == VP_ENGINE_SGLANG;

    return engine && s->engine.kv_cache_bytes == 0 && s->engine.blocks_override == 0;
}

/* The smallest share in hundredths that the workload fits in. A larger one need not do: what comes
 * on top of it needs room too. */
static bool set_share(const struct packer *p, struct vp_search *search, struct way *way) {
    const char *path = vp_field_path_for(search->base->engine.kind, VP_F_UTILIZATION);
    uint64_t reserved = search->base->hardware.reserved_bytes;

    if (!has_share(search->base) || !path)
        return holds_beside(p, search, way, reserved);
    put(way, path, NULL);
    for (int percent = 1; percent < 100; percent++) {
        way->share = way->set[way->sets - 1].value =
            vp_arena_printf(p->ctx->arena, "0.%02d", percent);
        if (holds_beside(p, search, way, reserved))
            return true;
    }
    return false;
}

/* llama.cpp may choose by itself what it keeps on the host, and beside others would choose less: it
 * counts with what it takes alone. */
static bool measure_llama(const struct packer *p, struct vp_search *search, struct way *way) {
    const struct vp_result *plan = vp_search_plan(search, way->set, way->sets);
    bool sure = p->holds == vp_trial_fits;

    if (!plan || plan->verdict > (sure ? VP_FITS : VP_AT_RISK))
        return false;
    for (uint32_t i = 0; i < plan->device_count; i++)
        if (!plan->devices[i].host)
            way->takes = vp_max(way->takes,
                                sure ? plan->devices[i].need.high : plan->devices[i].need.likely);
    return true;
}

/* False: it does not fit so, even alone. */
static bool measure(const struct packer *p, struct vp_search *search, struct way *way) {
    const struct vp_hardware *hw = &search->base->hardware;
    uint64_t yes = vp_ceil_div(hw->reserved_bytes, MIB), no = hw->memory_bytes / MIB;

    if (vp_engine_is_llama(search->base->engine.kind))
        return measure_llama(p, search, way);
    if (!set_share(p, search, way))
        return false;
    while (no > yes && no - yes > 1) {
        uint64_t middle = yes + (no - yes) / 2;
        if (holds_beside(p, search, way, middle * MIB))
            yes = middle;
        else
            no = middle;
    }
    way->takes = vp_above(hw->memory_bytes, vp_max(yes * MIB, hw->reserved_bytes));
    return true;
}

/* ---- the ways of one program ---- */

static uint64_t world(const struct vp_scenario *s) {
    const struct vp_parallel *p = &s->parallel;
    uint64_t context = s->training ? vp_max(p->context, 1) : 1;

    if (vp_engine_is_llama(s->engine.kind))
        return vp_max(s->hardware.count, 1);
    return vp_max(p->tensor, 1) * vp_max(p->pipeline, 1) * vp_max(p->data, 1) * context;
}

/* Sizes of the layout are given; in training also the devices that data parallelism takes up. */
static bool says_layout(const struct vp_scenario *s) {
    static const enum vp_field FIELDS[] = {VP_F_TENSOR, VP_F_PIPELINE, VP_F_DATA, VP_F_EXPERT};

    if (vp_engine_is_llama(s->engine.kind) || (s->training && vp_scenario_is_given(s, VP_F_COUNT)))
        return true;
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (vp_scenario_is_given(s, FIELDS[i]))
            return true;
    return false;
}

static struct way way_of(const struct vp_lever_value *layout, uint64_t width) {
    struct way way = {.width = (uint32_t)width};

    for (uint32_t i = 0; i < layout->sets; i++)
        put(&way, layout->set[i].path, layout->set[i].value);
    return way;
}

/* Of all layouts of so many GPUs the one that takes least of a card; copies that serve the same
 * requests side by side are no layout of one program. */
static bool best_layout(const struct packer *p, struct vp_search *search, struct way *out,
                        uint64_t width) {
    struct vp_layouts all = vp_layouts_of(p->ctx->arena, search->base, width, true);
    bool any = false;

    for (uint32_t i = 0; i < all.count; i++) {
        const struct vp_lever_value *layout = &all.item[i];
        bool copies = false;
        for (uint32_t k = 0; k < layout->sets; k++)
            copies |= !search->base->training && vp_text_eq(layout->set[k].path, "parallel.data") &&
                      !vp_text_eq(layout->set[k].value, "1");
        struct way way = way_of(layout, width);
        if (copies || !measure(p, search, &way) || (any && way.takes >= out->takes))
            continue;
        *out = way;
        any = true;
    }
    return any;
}

static uint32_t find_ways(const struct packer *p, uint32_t program) {
    struct vp_search *search = &p->searches[program];
    struct way *ways = p->ways[program];
    uint32_t count = 0;

    if (says_layout(search->base)) {
        ways[0] = (struct way){.width = (uint32_t)vp_min(world(search->base), UINT32_MAX)};
        if (!vp_engine_is_llama(search->base->engine.kind) || search->base->hardware.count > 0)
            put(&ways[0], "hardware.count", vp_format_u64(p->ctx->arena, ways[0].width));
        return ways[0].width <= p->out->count && measure(p, search, &ways[0]);
    }
    for (uint32_t n = 1; n <= p->out->count; n++)
        count += best_layout(p, search, &ways[count], n);
    return count;
}

/* ---- idle ---- */

/* Of the plan of a way: what stays on a card in phases in which it does not work. */
static uint64_t idle_bytes(const struct packer *p, enum vp_pack_idle *why,
                           const struct vp_result *plan, uint64_t takes) {
    bool sure = p->holds == vp_trial_fits;
    struct vp_asleep asleep;
    uint64_t most = 0;

    *why = VP_IDLE_RESIDENT;
    if (vp_sleep_asleep(&asleep, plan)) {
        *why = VP_IDLE_ASLEEP;
        return vp_min(takes, sure ? asleep.stays.high : asleep.stays.likely);
    }
    for (uint32_t i = 0; i < plan->training.stages; i++) {
        const struct vp_training_stage *stage = &plan->training.stage[i];
        struct vp_amount left = vp_amount_add(stage->allocated, stage->numbers.runtime);
        *why = VP_IDLE_BETWEEN_STEPS;
        most = vp_max(most, sure ? left.high : left.likely);
    }
    return plan->training.stages > 0 ? vp_min(takes, most) : takes;
}

static void set_options(const struct packer *p, uint32_t program, uint32_t count) {
    struct vp_pack_program *of = &p->out->program[program];
    bool always = of->works == (UINT32_C(1) << p->out->phases) - 1;

    for (uint32_t i = 0; i < count; i++) {
        const struct way *way = &p->ways[program][i];
        struct vp_placing_option *option = &p->options[program][i];
        enum vp_pack_idle why = VP_IDLE_NEVER;
        uint64_t idle = way->takes;
        const struct vp_result *plan =
            always ? NULL : vp_search_plan(&p->searches[program], way->set, way->sets);
        if (plan)
            idle = idle_bytes(p, &why, plan, way->takes);
        option->width = way->width;
        for (uint32_t phase = 0; phase < p->out->phases; phase++)
            option->bytes[phase] = of->works >> phase & 1 ? way->takes : idle;
    }
}

/* ---- the answer ---- */

static void set_patch(const struct packer *p, const struct vp_search *search,
                      struct vp_pack_program *of, const struct way *way) {
    struct vp_arena *arena = p->ctx->arena;
    uint64_t reserved = p->out->reserved_bytes + of->others_bytes;

    of->patch = VP_NEW_ARRAY(arena, way->sets + 1, struct vp_patch);
    for (uint32_t i = 0; i < way->sets; i++)
        if (!vp_search_says(search, &way->set[i]))
            of->patch[of->patches++] = (struct vp_patch){way->set[i].path, way->set[i].value};
    if (of->others_bytes > 0)
        of->patch[of->patches++] =
            (struct vp_patch){"hardware.reserved", vp_format_u64(arena, reserved)};
}

/* Of the way that was chosen, planned again beside the others. */
static void describe(const struct packer *p, uint32_t program) {
    struct vp_search *search = &p->searches[program];
    struct vp_pack_program *of = &p->out->program[program];
    const struct vp_placing *placing = &p->out->placing;
    const struct way *way = &p->ways[program][placing->option[program]];
    struct vp_setting set[PATCHES + 1];
    struct vp_asleep asleep;

    of->width = way->width;
    of->gpus = placing->gpus[program];
    of->takes_bytes = of->idle_bytes = way->takes;
    for (uint32_t g = 0; g < p->out->count; g++)
        for (uint32_t phase = 0; of->gpus >> g & 1 && phase < p->out->phases; phase++)
            if (of->works >> phase & 1)
                of->others_bytes =
                    vp_max(of->others_bytes, placing->load[g][phase] - of->takes_bytes);
    set_patch(p, search, of, way);
    for (uint32_t i = 0; i < of->patches; i++)
        set[i] = (struct vp_setting){of->patch[i].field, of->patch[i].value, of->patch[i].field};
    const struct vp_result *plan = vp_search_plan(search, set, of->patches);
    of->command = vp_search_command(search, of->patch, of->patches);
    if (way->share) {
        of->share_field = vp_field_path_for(search->base->engine.kind, VP_F_UTILIZATION);
        of->share_from = vp_field_value(p->ctx->arena, search->base, VP_F_UTILIZATION);
        of->share_to = way->share;
    }
    if (!plan || plan->verdict > p->out->verdict) /* never said to fit when its own plan does not */
        p->out->verdict = plan ? plan->verdict : VP_DOES_NOT_FIT;
    if (!plan)
        return;
    of->plan = plan;
    if (of->works != (UINT32_C(1) << p->out->phases) - 1)
        of->idle_bytes = idle_bytes(p, &of->idle, plan, of->takes_bytes);
    const struct vp_device *last = &plan->devices[plan->device_count - 1];
    of->host_bytes = last->host ? last->need.high : 0;
    if (of->idle == VP_IDLE_ASLEEP && vp_sleep_asleep(&asleep, plan))
        of->host_bytes += asleep.loaded_bytes * of->width;
}

static void check_host(const struct packer *p) {
    struct vp_pack *out = p->out;

    for (uint32_t i = 0; i < out->programs; i++)
        out->host_bytes += out->program[i].host_bytes;
    if (out->host_memory_bytes == 0 || out->host_bytes <= out->host_memory_bytes)
        return;
    out->verdict = VP_DOES_NOT_FIT;
    out->short_bytes = out->host_bytes - out->host_memory_bytes;
    out->short_text = vp_arena_printf(
        p->ctx->arena, "host memory is %s GiB short: %s GiB are kept there, of %s GiB",
        vp_format_gib(p->ctx->arena, out->short_bytes, 2),
        vp_format_gib(p->ctx->arena, out->host_bytes, 2),
        vp_format_gib(p->ctx->arena, out->host_memory_bytes, 2));
}

/* With figures that are sure, or likely. True: that is the answer. */
static bool try_figures(struct packer *p, enum vp_verdict verdict) {
    struct vp_pack *out = p->out;
    struct vp_placing_program programs[VP_PLACING_PROGRAMS];
    uint64_t room = out->memory_bytes - out->reserved_bytes;
    bool all = true;

    p->holds = verdict == VP_FITS ? vp_trial_fits : vp_trial_may_fit;
    for (uint32_t i = 0; i < out->programs; i++) {
        uint32_t count = find_ways(p, i);
        set_options(p, i, count);
        programs[i] = (struct vp_placing_program){p->options[i], count};
        out->program[i].alone = count > 0;
        all &= count > 0;
    }
    if (all)
        vp_placing_find(&out->placing, programs, out->programs, out->count, out->phases, room);
    if (all && out->placing.found) {
        out->verdict = verdict;
        for (uint32_t i = 0; i < out->programs; i++)
            describe(p, i);
        check_host(p);
        return true;
    }
    if (all && verdict == VP_AT_RISK) { /* how far from it: as even as it gets */
        vp_placing_find(&out->placing, programs, out->programs, out->count, out->phases,
                        UINT64_MAX);
        if (out->placing.found)
            out->short_bytes = vp_above(out->placing.fullest, room);
    }
    return false;
}

static void explain_short(const struct packer *p) {
    struct vp_arena *arena = p->ctx->arena;
    struct vp_pack *out = p->out;
    const struct vp_pack_program *misfit = NULL;

    for (uint32_t i = 0; i < out->programs; i++) {
        struct vp_pack_program *of = &out->program[i];
        of->plan = vp_search_plan(&p->searches[i], NULL, 0);
        if (!of->alone && !misfit)
            misfit = of;
    }
    if (misfit && says_layout(misfit->plan->scenario) &&
        world(misfit->plan->scenario) > out->count) {
        out->short_text =
            vp_arena_printf(arena, "%s is laid out for %" PRIu64 " GPUs, and the node has %" PRIu32,
                            misfit->name, world(misfit->plan->scenario), out->count);
    } else if (misfit) {
        const struct vp_device *worst = &misfit->plan->devices[misfit->plan->worst];
        out->short_bytes = vp_above(worst->need.high, worst->usable_bytes);
        out->short_text =
            vp_arena_printf(arena, "%s does not fit even by itself%s%s", misfit->name,
                            misfit->plan->reason_text ? ": " : "",
                            misfit->plan->reason_text ? misfit->plan->reason_text : "");
    } else {
        out->short_text = vp_arena_printf(
            arena,
            "dealt out as evenly as possible, by likely figures, the fullest GPU is %s GiB short: "
            "%s GiB of %s",
            vp_format_gib(arena, out->short_bytes, 2),
            vp_format_gib(arena, out->placing.fullest, 2),
            vp_format_gib(arena, out->memory_bytes - out->reserved_bytes, 2));
    }
}

/* ---- the question ---- */

static enum vp_status refuse(struct vp_ctx *ctx, const char *hint, const char *message) {
    vp_diag_add(ctx->diags, VP_D_CONTRADICTION, NULL, "%s", message);
    if (hint)
        vp_diag_hint(ctx->diags, "%s", hint);
    return VP_ERR_INPUT;
}

/* One kind of GPU for all. */
static enum vp_status check_alike(const struct packer *p) {
    struct vp_arena *arena = p->ctx->arena;
    const struct vp_hardware *first = &p->searches[0].base->hardware;

    for (uint32_t i = 0; i < p->ask->inputs; i++) {
        const struct vp_hardware *hw = &p->searches[i].base->hardware;
        if (hw->group_count > 0)
            return refuse(p->ctx, "pack onto cards of one kind: --gpu, --count",
                          vp_arena_printf(arena, "%s has unlike cards", p->ask->input[i].name));
        if (!vp_text_eq(hw->gpu.id, first->gpu.id) || hw->memory_bytes != first->memory_bytes)
            return refuse(p->ctx, "--gpu says which card all of them are on",
                          vp_arena_printf(arena, "%s is on %s with %s GiB, %s on %s with %s GiB",
                                          p->ask->input[0].name, first->gpu.id,
                                          vp_format_gib(arena, first->memory_bytes, 2),
                                          p->ask->input[i].name, hw->gpu.id,
                                          vp_format_gib(arena, hw->memory_bytes, 2)));
        if (hw->count == 0)
            return refuse(p->ctx, NULL, "the processor alone has no GPUs to pack onto");
    }
    return VP_OK;
}

static void set_node(const struct packer *p) {
    struct vp_pack *out = p->out;
    const struct vp_hardware *first = &p->searches[0].base->hardware;
    uint64_t count = p->ask->count;

    out->gpu = first->gpu.id;
    out->gpu_text = first->gpu.name;
    out->memory_bytes = first->memory_bytes;
    for (uint32_t i = 0; i < p->ask->inputs; i++) {
        const struct vp_hardware *hw = &p->searches[i].base->hardware;
        out->reserved_bytes = vp_max(out->reserved_bytes, hw->reserved_bytes);
        if (p->ask->count == 0)
            count = vp_max(count, vp_max(hw->count, world(p->searches[i].base)));
        if (hw->host_memory_bytes > 0)
            out->host_memory_bytes = out->host_memory_bytes > 0
                                         ? vp_min(out->host_memory_bytes, hw->host_memory_bytes)
                                         : hw->host_memory_bytes;
    }
    out->count = (uint32_t)vp_min(count, VP_PLACING_GPUS);
}

static void set_programs(const struct packer *p) {
    struct vp_pack *out = p->out;

    out->phases = p->ask->phases > 0 ? p->ask->phases : 1;
    for (uint32_t i = 0; i < p->ask->phases; i++)
        out->phase[i] = p->ask->phase[i];
    for (uint32_t i = 0; i < out->programs; i++) {
        struct vp_pack_program *of = &out->program[i];
        of->input = p->ask->input[i].input;
        of->name = p->ask->input[i].name;
        for (uint32_t phase = 0; phase < p->ask->phases; phase++)
            of->works |= (uint32_t)(p->ask->works[phase] >> i & 1) << phase;
        if (of->works == 0) /* named in none: it works all the time */
            of->works = (UINT32_C(1) << out->phases) - 1;
    }
}

enum vp_status vp_pack_find(struct vp_ctx *ctx, struct vp_pack *out, struct vp_search *searches,
                            const struct vp_pack_ask *ask) {
    struct packer packer = {.ctx = ctx, .out = out, .searches = searches, .ask = ask};
    enum vp_status status = VP_OK;

    *out = (struct vp_pack){.programs = ask->inputs, .verdict = VP_DOES_NOT_FIT};
    out->program = VP_NEW_ARRAY(ctx->arena, ask->inputs, struct vp_pack_program);
    for (uint32_t i = 0; i < ask->inputs; i++) {
        enum vp_status one = vp_search_open(ctx, &searches[i], ask->input[i].input, ask->settings,
                                            ask->setting_count);
        status = status == VP_OK ? one : status;
    }
    if (status == VP_OK)
        status = check_alike(&packer);
    if (status != VP_OK)
        return status;
    set_node(&packer);
    set_programs(&packer);
    for (uint32_t i = 0; i < out->programs; i++) {
        packer.ways[i] = VP_NEW_ARRAY(ctx->arena, out->count, struct way);
        packer.options[i] = VP_NEW_ARRAY(ctx->arena, out->count, struct vp_placing_option);
    }
    if (!try_figures(&packer, VP_FITS) && !try_figures(&packer, VP_AT_RISK))
        explain_short(&packer);
    for (uint32_t i = 0; i < out->programs; i++)
        out->tried += searches[i].tried;
    return VP_OK;
}
