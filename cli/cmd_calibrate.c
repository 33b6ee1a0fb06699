/* calibrate: samples -> a profile; a profile against samples; which shapes a probe should measure.
 */
#include <string.h>

#include "api/fit_serving.h"
#include "cli/args.h"
#include "cli/calibrate_report.h"
#include "cli/output.h"
#include "cli/serving_class.h"
#include "cli/shape_rows.h"
#include "planner/base/units.h"
#include "planner/import/calibration_reader.h"
#include "planner/import/gpu_profile.h"
#include "planner/import/samples_reader.h"
#include "reports/calibration_yaml.h"

struct work {
    struct vp_ctx *ctx;
    const struct vp_args *args;
    struct vp_samples samples;
    struct vp_calibration calibration;
    struct vp_gpu gpu;
    struct vp_calibrate_result result;
};

static enum vp_status bad_option(struct vp_ctx *ctx, const char *message, const char *hint) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "%s", message);
    if (hint)
        vp_diag_hint(ctx->diags, "%s", hint);
    return VP_ERR_INPUT;
}

/* ---- the card ---- */

static const char *card_option(const struct vp_args *args) {
    const struct vp_setting *gpu = vp_args_setting(args, "hardware.gpu");
    return gpu ? gpu->value : NULL;
}

static enum vp_status find_card(struct work *w, const char *name) {
    return vp_gpu_named(w->ctx, &w->gpu, name);
}

/* The profile of --profile, if any, and the card that it or --gpu names. */
static enum vp_status read_base(struct work *w) {
    const char *path = w->args->value[VP_OPTION_PROFILE], *card = card_option(w->args);
    enum vp_status status = path ? vp_calibration_read(w->ctx, &w->calibration, path) : VP_OK;
    if (status != VP_OK)
        return status;
    if (!card && !path)
        return bad_option(w->ctx, "--gpu NAME must say which card was measured",
                          "the names: vramplan list gpus");
    status = find_card(w, card ? card : w->calibration.gpu);
    if (status == VP_OK && path && !vp_text_eq(w->gpu.id, w->calibration.gpu)) {
        vp_diag_add(w->ctx->diags, VP_D_CONTRADICTION, NULL,
                    "--gpu says %s, the profile %s is of %s", w->gpu.id, path, w->calibration.gpu);
        status = VP_ERR_INPUT;
    }
    return status;
}

/* ---- where the samples are from ---- */

/* The files' names; which folder they were in says nothing to others. */
static const char *made_by(struct work *w) {
    struct vp_buf text = {.arena = w->ctx->arena};
    vp_buf_add(&text, "vramplan calibrate");
    if (w->args->value[VP_OPTION_PROFILE])
        vp_buf_printf(&text, " --profile %s", vp_text_file_name(w->args->value[VP_OPTION_PROFILE]));
    for (uint32_t i = 0; i < w->samples.file_count; i++)
        vp_buf_printf(&text, " %s", vp_text_file_name(w->samples.files[i].path));
    vp_buf_printf(&text, " --gpu %s", w->gpu.id);
    return vp_buf_text(&text);
}

/* "gemm.csv (who measured)": the files that the marked ones of the samples are from. */
static const char *origin_of(struct work *w, const bool *used) {
    struct vp_buf text = {.arena = w->ctx->arena};
    for (uint32_t i = 0; i < w->samples.file_count; i++)
        if (used[i])
            vp_buf_printf(&text, "%s%s", text.size ? ", " : "",
                          vp_text_file_name(w->samples.files[i].path));
    if (w->args->value[VP_OPTION_SOURCE])
        vp_buf_printf(&text, " (%s)", w->args->value[VP_OPTION_SOURCE]);
    return vp_buf_text(&text);
}

/* "vLLM 0.19.0" for all, "gemm=..." for a kind, "gemm.fp8=..." for a type: the one that says most
 * precisely what it is of. */
static const char *release_of(struct work *w, const char *kind, const char *dtype) {
    size_t count;
    const char **all = vp_args_all(w->ctx, w->args, VP_OPTION_RELEASE, &count);
    const char *key = vp_arena_printf(w->ctx->arena, "%s.%s", kind, dtype);
    const char *found = "";
    int best = -1;
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(all[i], '=');
        size_t n = equals ? (size_t)(equals - all[i]) : 0;
        int precision = !equals                                             ? 0
                        : n == strlen(kind) && memcmp(all[i], kind, n) == 0 ? 1
                        : n == strlen(key) && memcmp(all[i], key, n) == 0   ? 2
                                                                            : -1;
        if (precision > best) {
            best = precision;
            found = equals ? equals + 1 : all[i];
        }
    }
    return found;
}

static enum vp_status check_releases(struct work *w) {
    size_t count;
    const char **all = vp_args_all(w->ctx, w->args, VP_OPTION_RELEASE, &count);
    static const char *const KINDS[] = {"gemm", "prefill_attention", "decode_attention",
                                        "allreduce"};
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(all[i], '=');
        size_t n = equals ? strcspn(all[i], ".=") : 0, k = 0;
        while (equals && k < 4 && (strlen(KINDS[k]) != n || memcmp(KINDS[k], all[i], n) != 0))
            k++;
        if (k == 4)
            return bad_option(w->ctx,
                              vp_arena_printf(w->ctx->arena, "--release %s: no such kind", all[i]),
                              "kinds are gemm, prefill_attention, decode_attention, allreduce, "
                              "each also with a type: gemm.fp8=TEXT");
    }
    return VP_OK;
}

static void set_sources(struct work *w) {
    struct vp_calibration *c = &w->calibration;
    const struct vp_samples *s = &w->samples;
    for (uint32_t i = 0; i < w->result.kernels.count; i++) {
        const struct vp_calibrated *item = &w->result.kernels.items[i];
        const struct vp_kernel_samples *kind = &s->kernels[i];
        bool used[VP_SAMPLES_MAX_FILES] = {false};
        for (uint32_t k = 0; k < kind->count; k++)
            used[kind->items[k].at.file] = true;
        vp_calibration_fit(c, item->form, item->variant)->source = (struct vp_fit_source){
            release_of(w, vp_form_name(item->form), item->dtype), origin_of(w, used)};
    }
    bool used[VP_SAMPLES_MAX_FILES] = {false};
    for (uint32_t i = 0; i < s->reduce_count; i++)
        used[s->reduces[i].at.file] = true;
    for (uint32_t i = 0; s->reduce_count && i < c->reduce_count; i++)
        c->reduces[i].source =
            (struct vp_fit_source){release_of(w, "allreduce", ""), origin_of(w, used)};
}

/* ---- a fit ---- */

/* As short as the others. */
static void round_served(struct vp_serving_fit *fit) {
#define X(member, what) fit->member = vp_fit_rounded(fit->member);
#include "planner/model/serving_constants.def"
#undef X
    struct vp_fit_quality *const qualities[] = {&fit->tpot, &fit->ttft};
    for (int i = 0; i < 2; i++) {
        qualities[i]->median = vp_fit_rounded(qualities[i]->median);
        qualities[i]->p90 = vp_fit_rounded(qualities[i]->p90);
    }
}

static enum vp_status fit_served(struct work *w) {
    const struct vp_csv **tables =
        VP_NEW_ARRAY(w->ctx->arena, w->samples.file_count + 1, const struct vp_csv *);
    size_t count = 0;
    for (uint32_t i = 0; i < w->samples.file_count; i++)
        if (w->samples.files[i].serving)
            tables[count++] = w->samples.files[i].table;
    w->result.served = count > 0;
    if (!count)
        return VP_OK;
    enum vp_status status =
        vp_fit_serving(w->ctx, &w->calibration, &w->result.serving, tables, count);
    for (uint32_t i = 0; i < w->calibration.serving_count; i++)
        round_served(&w->calibration.serving[i]);
    return status;
}

static enum vp_status fit(struct work *w) {
    const struct vp_samples *s = &w->samples;
    bool nothing = s->kernel_count == 0 && s->reduce_count == 0 && s->figure_count == 0;
    enum vp_status status = check_releases(w);
    if (status != VP_OK)
        return status;
    static const struct vp_fit_source LATER = {"", ""}; /* set_sources */
    vp_calibrate(w->ctx->arena, &w->calibration, &w->result.kernels, &w->gpu, s, &LATER);
    set_sources(w);
    w->calibration.made = made_by(w);
    status = fit_served(w);
    if (status == VP_OK && nothing && !w->calibration.serving_count) {
        vp_diag_add(w->ctx->diags, VP_D_MISSING_VALUE, NULL,
                    "the samples hold no row that anything can be fitted to");
        status = VP_ERR_INPUT;
    }
    return status;
}

static int write_profile(struct work *w) {
    struct vp_buf profile = {.arena = w->ctx->arena}, report = {.arena = w->ctx->arena};
    const char *path = w->args->value[VP_OPTION_OUTPUT];
    struct vp_page page = vp_output_page(w->args, &report);
    vp_calibration_yaml(&profile, &w->calibration);
    enum vp_status status = vp_output_write(w->ctx, &profile, path);
    if (status == VP_OK && path && strcmp(path, "-") != 0) {
        w->result.calibration = &w->calibration;
        w->result.samples = &w->samples;
        w->result.written = path;
        if (w->args->format == VP_FORMAT_JSON)
            vp_calibrate_report_json(&report, &w->result, w->ctx->diags);
        else
            vp_calibrate_report_text(&page, &w->result, w->args->value[VP_OPTION_VERBOSE]);
        status = vp_output_write(w->ctx, &report, NULL);
    }
    return (int)vp_exit_of_status(status);
}

static int run_fit(struct work *w) {
    const struct vp_args *args = w->args;
    if (args->operand_count == 0)
        return vp_output_failure(
            w->ctx, args,
            bad_option(w->ctx, "no samples are given",
                       "vramplan calibrate SAMPLES.csv --gpu NAME -o PROFILE.yaml"));
    enum vp_status status = read_base(w);
    enum vp_status read = vp_samples_read(w->ctx, &w->samples, args->operands, args->operand_count);
    status = read > status ? read : status;
    if (status == VP_OK)
        status = fit(w);
    return status == VP_OK ? write_profile(w) : vp_output_failure(w->ctx, args, status);
}

/* ---- a check ---- */

static enum vp_status read_checked(struct work *w) {
    size_t count;
    const char **named = vp_args_all(w->ctx, w->args, VP_OPTION_CHECK, &count);
    const char **paths =
        VP_NEW_ARRAY(w->ctx->arena, count + w->args->operand_count + 1, const char *);
    memcpy(paths, named, count * sizeof *paths);
    for (size_t i = 0; i < w->args->operand_count; i++)
        paths[count++] = w->args->operands[i];
    return vp_samples_read(w->ctx, &w->samples, paths, count);
}

/* In the order of the kinds, and in that of the files within one. */
static uint32_t check_all(struct work *w, struct vp_check *checks) {
    struct vp_arena *arena = w->ctx->arena;
    uint32_t n = 0;
    for (int form = 0; form < VP_FORMS; form++)
        for (uint32_t i = 0; i < w->samples.kernel_count; i++)
            if (w->samples.kernels[i].form == (enum vp_form)form)
                vp_calibration_check(arena, &checks[n++], &w->calibration, &w->samples.kernels[i]);
    if (w->samples.reduce_count)
        vp_calibration_check_reduce(arena, &checks[n++], &w->calibration, &w->samples);
    return n;
}

static int run_check(struct work *w) {
    const char *path = w->args->value[VP_OPTION_PROFILE];
    struct vp_buf out = {.arena = w->ctx->arena};
    struct vp_page page = vp_output_page(w->args, &out);
    enum vp_status status = path ? VP_OK
                                 : bad_option(w->ctx, "--check compares samples with a profile",
                                              "--profile PROFILE.yaml says which");
    if (status == VP_OK)
        status = vp_calibration_read(w->ctx, &w->calibration, path);
    enum vp_status read = read_checked(w);
    status = read > status ? read : status;
    if (status != VP_OK)
        return vp_output_failure(w->ctx, w->args, status);
    struct vp_check *checks =
        VP_NEW_ARRAY(w->ctx->arena, w->samples.kernel_count + 1, struct vp_check);
    uint32_t count = check_all(w, checks), known = 0;
    for (uint32_t i = 0; i < count; i++)
        known += checks[i].known;
    if (w->args->format == VP_FORMAT_JSON)
        vp_calibrate_check_json(&out, &w->calibration, checks, count, w->ctx->diags);
    else
        vp_calibrate_check_text(&page, &w->calibration, checks, count);
    status = vp_output_write(w->ctx, &out, w->args->value[VP_OPTION_OUTPUT]);
    if (status == VP_OK && known == 0)
        return VP_EXIT_INCONCLUSIVE;
    return (int)vp_exit_of_status(status);
}

/* ---- shapes ---- */

static int run_choose(struct work *w) {
    struct vp_buf out = {.arena = w->ctx->arena};
    const char *text = w->args->value[VP_OPTION_CHOOSE_SHAPES], *card = card_option(w->args);
    enum { MOST = 1000000 };
    uint64_t wanted = 0;
    enum vp_status status = VP_OK;
    if (!vp_parse_u64(&wanted, text) || wanted == 0 || wanted > MOST)
        status = bad_option(
            w->ctx, vp_arena_printf(w->ctx->arena, "--choose-shapes wants a count, not '%s'", text),
            NULL);
    if (status == VP_OK && card)
        status = find_card(w, card);
    if (status == VP_OK && w->args->operand_count)
        status = vp_samples_read(w->ctx, &w->samples, w->args->operands, w->args->operand_count);
    if (status == VP_OK)
        status = w->args->operand_count
                     ? vp_shape_rows_chosen(w->ctx, &out, &w->samples, (uint32_t)wanted)
                     : vp_shape_rows_free(w->ctx, &out, card ? &w->gpu : NULL, (uint32_t)wanted);
    if (status != VP_OK)
        return vp_output_failure(w->ctx, w->args, status);
    return (int)vp_exit_of_status(vp_output_write(w->ctx, &out, w->args->value[VP_OPTION_OUTPUT]));
}

/* ---- a class of cards ---- */

static int run_class(struct work *w) {
    struct vp_buf out = {.arena = w->ctx->arena};
    enum vp_status status =
        vp_samples_read(w->ctx, &w->samples, w->args->operands, w->args->operand_count);
    if (status == VP_OK)
        status = vp_serving_class_row(w->ctx, &out, &w->samples,
                                      w->args->value[VP_OPTION_SERVING_CLASS]);
    if (status != VP_OK)
        return vp_output_failure(w->ctx, w->args, status);
    return (int)vp_exit_of_status(vp_output_write(w->ctx, &out, w->args->value[VP_OPTION_OUTPUT]));
}

int vp_cmd_calibrate(struct vp_ctx *ctx, const struct vp_args *args) {
    struct work w = {.ctx = ctx, .args = args};
    bool check = args->value[VP_OPTION_CHECK], choose = args->value[VP_OPTION_CHOOSE_SHAPES];
    bool table = args->format == VP_FORMAT_CSV || args->format == VP_FORMAT_MARKDOWN;
    if (table && !choose) /* whose rows are CSV always */
        return vp_output_failure(ctx, args,
                                 bad_option(ctx, "'calibrate' reports in text or json", NULL));
    if (check && choose)
        return vp_output_failure(
            ctx, args, bad_option(ctx, "--check and --choose-shapes are two questions", NULL));
    if (choose)
        return run_choose(&w);
    if (args->value[VP_OPTION_SERVING_CLASS])
        return run_class(&w);
    return check ? run_check(&w) : run_fit(&w);
}
