#include "cli/fit_several.h"

#include <string.h>

#include "api/pack.h"
#include "cli/output.h"
#include "planner/base/units.h"
#include "reports/pack_report.h"
#include "reports/rank_report.h"

/* All scenarios of all operands. */
static struct vp_fit_found *split_all(struct vp_ctx *ctx, size_t *count,
                                      const struct vp_args *args) {
    struct vp_fit_found **each =
        VP_NEW_ARRAY(ctx->arena, args->operand_count, struct vp_fit_found *);
    size_t *of = VP_NEW_ARRAY(ctx->arena, args->operand_count, size_t);
    size_t n = 0;

    *count = 0;
    for (size_t i = 0; i < args->operand_count; i++)
        *count += of[i] = vp_fit_split(ctx, &each[i], args->operands[i]);
    struct vp_fit_found *all = VP_NEW_ARRAY(ctx->arena, *count, struct vp_fit_found);
    for (size_t i = 0; i < args->operand_count; i++)
        for (size_t k = 0; k < of[i]; k++)
            all[n++] = each[i][k];
    return all;
}

/* ---- the largest that fits ---- */

static struct vp_ranked ranked_of(const struct vp_fit_found *f) {
    struct vp_ranked item = {.input = f->input, .name = f->name, .diags = f->diags};

    if (f->status != VP_OK)
        return item;
    item.plan = f->result;
    item.outcome = f->outcome;
    item.verdict = f->llama ? vp_fit_found_verdict(f) : f->result->verdict;
    return item;
}

int vp_fit_largest(struct vp_ctx *ctx, const struct vp_fit_ask *ask) {
    const struct vp_args *args = ask->args;
    struct vp_buf out = {.arena = ctx->arena};
    struct vp_report_options options = vp_fit_report_options(args);
    enum vp_exit code = VP_EXIT_NO, faults = VP_EXIT_YES;
    size_t count;
    struct vp_fit_found *found = split_all(ctx, &count, args);
    struct vp_ranked *items = VP_NEW_ARRAY(ctx->arena, count, struct vp_ranked);

    for (size_t i = 0; i < count; i++) {
        vp_fit_find(ctx, &found[i], ask);
        items[i] = ranked_of(&found[i]);
        faults = vp_exit_of_both(faults, vp_exit_of_status(found[i].status));
    }
    vp_ranked_sort(items, count);
    if (items[0].plan && items[0].verdict != VP_DOES_NOT_FIT)
        code = items[0].verdict == VP_FITS ? VP_EXIT_YES : VP_EXIT_INCONCLUSIVE;
    vp_fit_show_diagnostics(ctx, found, count, args);
    if (args->format == VP_FORMAT_JSON) {
        struct vp_json json = vp_json_begin(&out);
        vp_rank_json(&json, items, count);
        vp_buf_add(&out, "\n");
    } else if (items[0].plan) {
        vp_rank_text(&out, items, count, &options);
    }
    if (faults != VP_EXIT_YES)
        code = faults;
    if (out.size > 0)
        code = vp_exit_of_both(
            code, vp_exit_of_status(vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT])));
    for (size_t i = 0; i < count; i++)
        vp_search_close(&found[i].search);
    return (int)code;
}

/* ---- side by side ---- */

static bool is_named(const struct vp_fit_found *f, const char *name) {
    return vp_text_eq(f->input, name) || (f->name && vp_text_eq(f->name, name));
}

/* "rollout=engine,reward": the phase, and a bit for each input that works in it. */
static void read_phase(struct vp_ctx *ctx, struct vp_pack_ask *out,
                       const struct vp_fit_found *found, size_t count, const char *text) {
    const char *equals = strchr(text, '=');
    uint64_t *works = &out->works[out->phases];

    if (!equals || equals == text || equals[1] == '\0') {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--phase is NAME=INPUT,INPUT,...: '%s' is not", text);
        return;
    }
    for (const char *at = equals + 1; at;) {
        size_t n = strcspn(at, ",");
        const char *name = vp_arena_text(ctx->arena, at, n);
        bool known = false;
        for (size_t i = 0; i < count; i++) {
            *works |= (uint64_t)is_named(&found[i], name) << i;
            known |= is_named(&found[i], name);
        }
        if (!known)
            vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                        "--phase, column %td: '%s' is none of the inputs", at - text + 1, name);
        at = at[n] ? at + n + 1 : NULL;
    }
    out->phase[out->phases++] = vp_arena_text(ctx->arena, text, (size_t)(equals - text));
}

/* --count is of the node; the inputs have counts of their own. */
static void take_count(struct vp_ctx *ctx, struct vp_pack_ask *out, const struct vp_fit_ask *ask) {
    struct vp_setting *settings =
        VP_NEW_ARRAY(ctx->arena, ask->setting_count + 1, struct vp_setting);
    uint64_t count = 0;

    for (size_t i = 0; i < ask->setting_count; i++) {
        if (!vp_text_eq(ask->settings[i].path, "hardware.count")) {
            settings[out->setting_count++] = ask->settings[i];
            continue;
        }
        if (!vp_parse_u64(&count, ask->settings[i].value) || count == 0 || count > VP_PLACING_GPUS)
            vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                        "--count: a node to pack onto has 1 to %d GPUs, not '%s'", VP_PLACING_GPUS,
                        ask->settings[i].value);
    }
    out->settings = settings;
    out->count = (uint32_t)count;
}

static void read_ask(struct vp_ctx *ctx, struct vp_pack_ask *out, const struct vp_fit_found *found,
                     size_t count, const struct vp_fit_ask *ask) {
    size_t phases;
    const char **phase = vp_args_all(ctx, ask->args, VP_OPTION_PHASE, &phases);
    struct vp_pack_input *input = VP_NEW_ARRAY(ctx->arena, count, struct vp_pack_input);

    if (count > VP_PLACING_PROGRAMS || phases > VP_PLACING_PHASES) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--pack takes %d inputs in %d phases",
                    VP_PLACING_PROGRAMS, VP_PLACING_PHASES);
        return;
    }
    take_count(ctx, out, ask);
    for (size_t i = 0; i < count; i++)
        input[i] =
            (struct vp_pack_input){found[i].input, found[i].name ? found[i].name : found[i].input};
    out->input = input;
    out->inputs = (uint32_t)count;
    for (size_t i = 0; i < phases; i++)
        read_phase(ctx, out, found, count, phase[i]);
}

int vp_fit_pack(struct vp_ctx *ctx, const struct vp_fit_ask *ask) {
    const struct vp_args *args = ask->args;
    struct vp_report_options options = vp_fit_report_options(args);
    struct vp_buf out = {.arena = ctx->arena};
    struct vp_pack_ask pack_ask = {0};
    struct vp_pack *pack = VP_NEW(ctx->arena, struct vp_pack);
    uint32_t errors = ctx->diags->errors;
    size_t count;
    struct vp_fit_found *found = split_all(ctx, &count, args);

    read_ask(ctx, &pack_ask, found, count, ask);
    if (ctx->diags->errors > errors)
        return vp_output_failure(ctx, args, VP_ERR_INPUT);
    struct vp_search *searches = VP_NEW_ARRAY(ctx->arena, count, struct vp_search);
    enum vp_status status = vp_pack_find(ctx, pack, searches, &pack_ask);
    int code = status == VP_OK ? (int)vp_exit_of_verdict(pack->verdict) : 0;
    if (status != VP_OK) {
        code = vp_output_failure(ctx, args, status);
    } else {
        struct vp_json json = vp_json_begin(&out);
        if (args->format == VP_FORMAT_JSON)
            vp_pack_json(&json, pack, ctx->diags);
        else
            vp_pack_text(&out, pack, &options);
        if (args->format == VP_FORMAT_JSON)
            vp_buf_add(&out, "\n");
        code = (int)vp_exit_of_both(
            (enum vp_exit)code,
            vp_exit_of_status(vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT])));
    }
    for (size_t i = 0; i < count; i++)
        vp_search_close(&searches[i]);
    return code;
}
