#include "api/served_rows.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/import/profile.h"

/* ---- cells ---- */

struct reading {
    struct vp_ctx *ctx;
    const struct vp_csv *table;
    uint32_t row;
};

/* "": no such column, or nothing in it. */
static const char *cell(const struct reading *r, const char *name) {
    int column = vp_csv_column(r->table, name);
    const char *text = column < 0 ? NULL : vp_csv_cell(r->table, r->row, column);
    return text ? text : "";
}

static double number(const struct reading *r, const char *name) {
    double v = strtod(cell(r, name), NULL);
    return isfinite(v) && v > 0 && v < 1e15 ? v : 0;
}

/* ---- names ---- */

/* "Llama-3.1-405B FP8" -> the id of llama-3.1-405b: the format is said elsewhere. NULL: none. */
static const char *model_of(struct vp_ctx *ctx, const char *text) {
    static const char *const TAILS[] = {"-KV", "-FP8", " FP8", " ", "-"};
    char *name = vp_arena_text(ctx->arena, text, strlen(text));
    struct vp_profile profile = {0};
    bool shorter = true;

    if (strchr(name, '('))
        *strchr(name, '(') = '\0';
    while (shorter) {
        if (vp_profile_find(ctx, &profile, &VP_PROFILE_MODEL, name) == VP_OK && profile.root)
            break;
        shorter = false;
        for (size_t i = 0; i < sizeof TAILS / sizeof *TAILS && !shorter; i++)
            if (vp_text_ends(name, TAILS[i])) {
                name[strlen(name) - strlen(TAILS[i])] = '\0';
                shorter = true;
            }
    }
    return profile.root ? profile.id : NULL;
}

static const char *gpu_of(struct vp_ctx *ctx, const char *text) {
    struct vp_profile profile = {0};

    if (vp_profile_find(ctx, &profile, &VP_PROFILE_GPU, text) != VP_OK || !profile.root)
        return NULL;
    return profile.id;
}

/* "vLLM 0.10.0, ROCm 6.4.1" -> "vllm" and "0.10.0"; NULL: another engine. Where only a year is
 * said, the release of its autumn. */
static const char *engine_of(struct vp_ctx *ctx, const char **version, const char *text,
                             const char *version_text) {
    static const struct {
        const char *year, *release;
    } YEARS[] = {{"2023", "0.2"}, {"2024", "0.6"}, {"2025", "0.10"}};
    static const char *const NAMES[] = {"vllm", "sglang"};
    const char *name = NULL;

    for (size_t i = 0; i < 2 && !name; i++) {
        size_t n = strlen(NAMES[i]);
        bool same = strlen(text) >= n;
        for (size_t k = 0; k < n && same; k++)
            same = tolower((unsigned char)text[k]) == NAMES[i][k];
        if (same && (text[n] == '\0' || text[n] == ' '))
            name = NAMES[i];
    }
    const char *start = *version_text ? version_text : text;
    while (*start && !isdigit((unsigned char)*start))
        start++;
    size_t n = strspn(start, "0123456789.");
    while (n > 0 && start[n - 1] == '.')
        n--;
    *version = n > 0 ? vp_arena_text(ctx->arena, start, n) : NULL;
    if (*version_text && !isdigit((unsigned char)*version_text))
        *version = NULL; /* a nightly build: the newest rules */
    for (size_t i = 0; *version && i < sizeof YEARS / sizeof *YEARS; i++)
        if (strcmp(*version, YEARS[i].year) == 0)
            *version = vp_text_eq(name, "vllm") ? YEARS[i].release : NULL;
    return name;
}

/* ---- a row ---- */

static void set(struct vp_served_row *out, const char *path, const char *value) {
    out->setting[out->settings++] = (struct vp_setting){path, value, path};
}

static void set_count(struct vp_ctx *ctx, struct vp_served_row *out, const char *path, double n) {
    set(out, path, vp_arena_printf(ctx->arena, "%.0f", n));
}

/* Mean share of the nominal length: "0.8-1.0" is drawn evenly between the two. */
static double mean_share(const char *sampling) {
    char *end;
    double low = strtod(sampling, &end);
    if (end == sampling || *end != '-')
        return 1;
    return (low + strtod(end + 1, NULL)) / 2;
}

static bool is_wanted_kind(const struct reading *r) {
    const char *mode = cell(r, "mode"), *metric = cell(r, "metric");
    const char *spec = cell(r, "speculative");

    if (*mode && strcmp(mode, "aggregated") != 0)
        return false;
    if (strcmp(cell(r, "layout"), "uncertain") == 0 || (*spec && strcmp(spec, "none") != 0))
        return false;
    if (*metric && strcmp(metric, "e2e_latency") != 0 && strcmp(metric, "ttft_tpot") != 0 &&
        strcmp(metric, "serving") != 0)
        return false;
    return (number(r, "concurrency") > 0 || number(r, "batch") > 0) &&
           number(r, "input_tokens") > 0 && number(r, "output_tokens") > 0 &&
           (number(r, "tpot_ms") > 0 || strcmp(metric, "e2e_latency") == 0);
}

static void set_layout(const struct reading *r, struct vp_served_row *out) {
    double tensor = fmax(number(r, "tensor"), 1), data = fmax(number(r, "attention_data"), 1);
    double expert = number(r, "expert"), gpus = number(r, "gpus");
    bool sglang = strcmp(out->engine, "sglang") == 0;

    /* in SGLang the attention's data ranks are a part of the tensor ranks */
    set_count(r->ctx, out, "parallel.tensor", sglang ? tensor * data : tensor);
    if (data > 1)
        set_count(r->ctx, out, "parallel.attention_data", data);
    if (expert > 1)
        set_count(r->ctx, out, "parallel.expert", expert);
    set_count(r->ctx, out, "hardware.count", gpus > 0 ? gpus : tensor * data);
}

static void set_requests(const struct reading *r, struct vp_served_row *out) {
    double share = mean_share(cell(r, "length_sampling"));
    double prompt = round(number(r, "input_tokens") * share);
    double output = round(number(r, "output_tokens") * share);
    double batch = number(r, "batch");

    set_count(r->ctx, out, "serve.prompt_tokens", prompt);
    set_count(r->ctx, out, "serve.output_tokens", output);
    set_count(r->ctx, out, "serve.context", prompt + output);
    set_count(r->ctx, out, "serve.concurrency", batch > 0 ? batch : number(r, "concurrency"));
    if (batch > 0)
        set(out, "serve.arrival", "batch");
}

static void set_measured(const struct reading *r, struct vp_served_row *out) {
    out->tpot_us = number(r, "tpot_ms") * 1e3;
    out->ttft_us = number(r, "ttft_ms") * 1e3;
    if (strcmp(cell(r, "metric"), "e2e_latency") == 0)
        out->total_us = number(r, "value") * (strcmp(cell(r, "unit"), "ms") == 0 ? 1e3 : 1e6);
}

enum vp_status vp_served_row_read(struct vp_ctx *ctx, struct vp_served_row *out,
                                  enum vp_served_skip *skip, const struct vp_csv *table,
                                  uint32_t row, const char *gpu) {
    struct reading r = {ctx, table, row};
    const char *precision = cell(&r, "precision");

    *out = (struct vp_served_row){0};
    *skip = VP_SERVED_KIND;
    if (!is_wanted_kind(&r))
        return VP_OK;
    *skip = VP_SERVED_ENGINE;
    out->engine = engine_of(ctx, &out->version, cell(&r, "engine"), cell(&r, "engine_version"));
    if (!out->engine)
        return VP_OK;
    *skip = VP_SERVED_GPU;
    out->gpu = gpu_of(ctx, cell(&r, "gpu"));
    if (!out->gpu || (gpu && strcmp(gpu, out->gpu) != 0))
        return VP_OK;
    *skip = VP_SERVED_REFUSED;
    out->model = model_of(ctx, cell(&r, "model"));
    if (!out->model)
        return VP_OK;
    *skip = VP_SERVED_USED;
    const char *weights = *precision ? precision : cell(&r, "weights");
    out->weights = vp_arena_text(ctx->arena, weights, strcspn(weights, " ,/"));
    set(out, "hardware.gpu", out->gpu);
    set(out, "engine.name", out->engine);
    if (out->version)
        set(out, "engine.version", out->version);
    if (vp_text_glob("*fp8 kv*", precision))
        set(out, "precision.kv_cache", "fp8");
    set_layout(&r, out);
    set_requests(&r, out);
    set_measured(&r, out);
    return VP_OK;
}
