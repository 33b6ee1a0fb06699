/* list: the GPUs, models and engines that have a profile, shipped or the user's own. */
#include <inttypes.h>

#include "cli/args.h"
#include "cli/list_fits.h"
#include "cli/listing.h"
#include "cli/output.h"
#include "planner/base/units.h"
#include "planner/import/engine_profile.h"
#include "planner/import/gpu_profile.h"
#include "planner/import/model_reader.h"
#include "planner/import/profile.h"
#include "reports/report.h"

static const char *number(struct vp_arena *arena, uint64_t n) {
    return n ? vp_format_u64(arena, n) : NULL;
}

static const char *real(struct vp_arena *arena, double v) {
    return v > 0 ? vp_format_real(arena, v) : NULL;
}

static struct vp_cell *begin(struct vp_ctx *ctx, struct vp_listing *listing, size_t rows) {
    listing->cells = VP_NEW_ARRAY(ctx->arena, rows * listing->column_count, struct vp_cell);
    return listing->cells;
}

/* ---- gpus ---- */

enum {
    GPU_ID,
    GPU_NAME,
    GPU_VENDOR,
    GPU_ARCH,
    GPU_SOLD,
    GPU_GIB,
    GPU_RUNTIME,
    GPU_DRIVER,
    GPU_BANDWIDTH,
    GPU_FP8,
    GPU_ALIASES,
    GPU_COLUMNS
};

static const struct vp_column GPU_COLUMN[GPU_COLUMNS] = {
    [GPU_ID] = {"id", "GPU", VP_CELL_TEXT, VP_FOR_ALL},
    [GPU_NAME] = {"name", "name", VP_CELL_TEXT, VP_FOR_MACHINES | VP_FOR_VERBOSE},
    [GPU_VENDOR] = {"vendor", "vendor", VP_CELL_TEXT, VP_FOR_MACHINES},
    [GPU_ARCH] = {"arch", "arch", VP_CELL_TEXT, VP_FOR_ALL},
    [GPU_SOLD] = {"memory_gb", "sold as GB", VP_CELL_NUMBER, VP_FOR_ALL},
    [GPU_GIB] = {"", "total GiB", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [GPU_RUNTIME] = {"runtime_mib", "", VP_CELL_NUMBER, VP_FOR_MACHINES},
    [GPU_DRIVER] = {"driver_mib", "", VP_CELL_NUMBER, VP_FOR_MACHINES},
    [GPU_BANDWIDTH] = {"bandwidth_gbs", "GB/s", VP_CELL_NUMBER, VP_FOR_ALL},
    [GPU_FP8] = {"fp8_formats", "FP8 and smaller", VP_CELL_LIST, VP_FOR_ALL},
    [GPU_ALIASES] = {"aliases", "also", VP_CELL_LIST, VP_FOR_MACHINES | VP_FOR_VERBOSE},
};

/* Total as the runtime reports it; "<=191.98" where only the driver's, an upper end, is known. */
static const char *total_gib(struct vp_arena *arena, const struct vp_gpu *gpu) {
    enum { MIB_SHIFT = 20 };
    if (gpu->runtime_mib)
        return vp_format_gib(arena, gpu->runtime_mib << MIB_SHIFT, 2);
    if (gpu->driver_mib)
        return vp_arena_printf(arena, "<=%s",
                               vp_format_gib(arena, gpu->driver_mib << MIB_SHIFT, 2));
    return NULL;
}

static enum vp_status add_gpu(struct vp_ctx *ctx, struct vp_cell *row, const struct vp_gpu *gpu) {
    struct vp_profile profile;
    enum vp_status status = vp_profile_find(ctx, &profile, &VP_PROFILE_GPU, gpu->id);
    row[GPU_ID].text = gpu->id;
    row[GPU_NAME].text = gpu->name;
    row[GPU_VENDOR].text = gpu->vendor;
    row[GPU_ARCH].text = gpu->arch && *gpu->arch ? gpu->arch : NULL;
    row[GPU_SOLD].text = real(ctx->arena, gpu->memory_gb);
    row[GPU_GIB].text = total_gib(ctx->arena, gpu);
    row[GPU_RUNTIME].text = number(ctx->arena, gpu->runtime_mib);
    row[GPU_DRIVER].text = number(ctx->arena, gpu->driver_mib);
    row[GPU_BANDWIDTH].text = real(ctx->arena, gpu->bandwidth_gbs);
    row[GPU_FP8].list = vp_node_get(profile.root, "fp8_formats");
    row[GPU_ALIASES].list = vp_node_get(profile.root, "aliases");
    return status;
}

static enum vp_status list_gpus(struct vp_ctx *ctx, struct vp_listing *out) {
    struct vp_gpus gpus;
    *out = (struct vp_listing){.columns = GPU_COLUMN, .column_count = GPU_COLUMNS};
    enum vp_status status = vp_gpu_list(ctx, &gpus);
    struct vp_cell *row = begin(ctx, out, gpus.count);
    for (size_t i = 0; i < gpus.count; i++, row += GPU_COLUMNS) {
        enum vp_status one = add_gpu(ctx, row, &gpus.items[i]);
        status = status == VP_OK ? one : status;
        out->row_count++;
    }
    return status;
}

/* ---- models ---- */

enum {
    MODEL_ID,
    MODEL_BILLIONS,
    MODEL_PARAMS,
    MODEL_TYPE,
    MODEL_STORED,
    MODEL_CONTEXT,
    MODEL_ALIASES,
    MODEL_COLUMNS
};

static const struct vp_column MODEL_COLUMN[MODEL_COLUMNS] = {
    [MODEL_ID] = {"id", "model", VP_CELL_TEXT, VP_FOR_ALL},
    [MODEL_BILLIONS] = {"", "10^9 params", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [MODEL_PARAMS] = {"params", "", VP_CELL_NUMBER, VP_FOR_MACHINES},
    [MODEL_TYPE] = {"model_type", "type", VP_CELL_TEXT, VP_FOR_ALL},
    [MODEL_STORED] = {"stored", "stored as", VP_CELL_TEXT, VP_FOR_ALL},
    [MODEL_CONTEXT] = {"max_position_embeddings", "context", VP_CELL_NUMBER, VP_FOR_ALL},
    [MODEL_ALIASES] = {"aliases", "also", VP_CELL_LIST, VP_FOR_MACHINES | VP_FOR_VERBOSE},
};

/* "70.55" */
static const char *billions(struct vp_arena *arena, uint64_t params) {
    enum { SHARES = 100, PER_SHARE = 10000000 };
    uint64_t shares = params / PER_SHARE + (params % PER_SHARE >= PER_SHARE / 2);
    return vp_arena_printf(arena, "%" PRIu64 ".%02" PRIu64, shares / SHARES, shares % SHARES);
}

/* A key of the description, or of its text part where a model has several. */
static const char *config_text(const struct vp_node *config, const char *key) {
    const struct vp_node *node = vp_node_get(config, key);
    if (vp_node_is_null(node))
        node = vp_node_get(vp_node_get(config, "text_config"), key);
    return vp_node_text(node);
}

static const char *stored_as(const struct vp_node *config) {
    const struct vp_node *quantization = vp_node_get(config, "quantization_config");
    const char *method = vp_node_text(vp_node_get(quantization, "quant_method"));
    const char *dtype = config_text(config, "torch_dtype");
    if (!dtype)
        dtype = config_text(config, "dtype");
    return method ? method : dtype;
}

static enum vp_status add_model(struct vp_ctx *ctx, struct vp_cell *row, const char *id) {
    struct vp_profile profile;
    uint64_t params;
    enum vp_status status = vp_profile_find(ctx, &profile, &VP_PROFILE_MODEL, id);
    const struct vp_node *config = vp_node_get(profile.root, "config");
    row[MODEL_ID].text = id;
    if (vp_node_u64(&params, vp_node_get(profile.root, "params"))) {
        row[MODEL_BILLIONS].text = billions(ctx->arena, params);
        row[MODEL_PARAMS].text = number(ctx->arena, params);
    }
    row[MODEL_TYPE].text = config_text(config, "model_type");
    row[MODEL_STORED].text = stored_as(config);
    row[MODEL_CONTEXT].text = config_text(config, "max_position_embeddings");
    row[MODEL_ALIASES].list = vp_node_get(profile.root, "aliases");
    return status;
}

static enum vp_status list_models(struct vp_ctx *ctx, struct vp_listing *out) {
    char **names;
    size_t count;
    *out = (struct vp_listing){.columns = MODEL_COLUMN, .column_count = MODEL_COLUMNS};
    enum vp_status status = vp_model_profiles(ctx, &names, &count);
    if (status != VP_OK)
        return status;
    struct vp_cell *row = begin(ctx, out, count);
    for (size_t i = 0; i < count; i++, row += MODEL_COLUMNS) {
        enum vp_status one = add_model(ctx, row, names[i]);
        status = status == VP_OK ? one : status;
        out->row_count++;
    }
    return status;
}

/* ---- engines ---- */

enum { ENGINE_NAME, ENGINE_NEWEST, ENGINE_COLUMNS };

static const struct vp_column ENGINE_COLUMN[ENGINE_COLUMNS] = {
    [ENGINE_NAME] = {"id", "engine", VP_CELL_TEXT, VP_FOR_ALL},
    [ENGINE_NEWEST] = {"newest", "newest version known", VP_CELL_TEXT, VP_FOR_ALL},
};

static enum vp_status list_engines(struct vp_ctx *ctx, struct vp_listing *out) {
    char **names;
    size_t count;
    *out = (struct vp_listing){.columns = ENGINE_COLUMN, .column_count = ENGINE_COLUMNS};
    enum vp_status status = vp_engine_list(ctx, &names, &count);
    if (status != VP_OK)
        return status;
    struct vp_cell *row = begin(ctx, out, count);
    for (size_t i = 0; i < count; i++, row += ENGINE_COLUMNS) {
        struct vp_engine_profile profile = {.root = NULL};
        row[ENGINE_NAME].text = names[i];
        enum vp_status one = vp_engine_newest(ctx, &row[ENGINE_NEWEST].text, &profile, names[i]);
        status = status == VP_OK ? one : status;
        out->row_count++;
    }
    return status;
}

/* ---- the command ---- */

static const struct topic {
    const char *name;
    enum vp_status (*list)(struct vp_ctx *ctx, struct vp_listing *out);
    const char *note; /* below the table that people read */
} TOPICS[] = {
    {"gpus", list_gpus,
     "\ntotal: as hipMemGetInfo or cudaMemGetInfo report it; <= the driver's total, an upper "
     "end\n"},
    {"models", list_models, ""},
    {"engines", list_engines, ""},
};

enum { TOPIC_COUNT = sizeof TOPICS / sizeof *TOPICS };

static const struct topic *find_topic(struct vp_ctx *ctx, const char *name) {
    const char *names[TOPIC_COUNT];
    for (size_t i = 0; i < TOPIC_COUNT; i++) {
        names[i] = TOPICS[i].name;
        if (vp_text_eq(name, TOPICS[i].name))
            return &TOPICS[i];
    }
    const char *nearest = vp_text_nearest(name, names, TOPIC_COUNT);
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "'list' shows gpus, models or engines, not '%s'",
                name);
    if (nearest)
        vp_diag_hint(ctx->diags, "did you mean '%s'?", nearest);
    return NULL;
}

/* set: what the models were planned for; NULL: they were not. */
static void add_set_up(struct vp_json *json, const struct vp_scenario *set) {
    vp_json_key(json, "fits_on");
    vp_json_map(json);
    vp_json_key_text(json, "gpu", set->hardware.gpu.id);
    vp_json_key_u64(json, "count", set->hardware.count);
    vp_json_key_text(json, "engine", set->engine.name);
    vp_json_key_text(json, "version", set->engine.version_text);
    vp_json_key_u64(json, "concurrency", set->serve.concurrency);
    vp_json_end(json, '}');
}

static void render_json(struct vp_ctx *ctx, struct vp_buf *out, const struct topic *topic,
                        const struct vp_listing *listing, const struct vp_scenario *set) {
    struct vp_json json = vp_json_begin(out);
    vp_json_map(&json);
    vp_json_key_text(&json, "schema", "vramplan.list/1");
    if (set)
        add_set_up(&json, set);
    vp_json_key(&json, topic->name);
    vp_listing_json(&json, listing);
    vp_json_key(&json, "diagnostics");
    vp_report_json_diagnostics(&json, ctx->diags);
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
}

int vp_cmd_list(struct vp_ctx *ctx, const struct vp_args *args) {
    struct vp_buf out = {.arena = ctx->arena};
    struct vp_listing listing = {0};
    struct vp_buf note = {.arena = ctx->arena};
    const struct vp_scenario *set = NULL;
    bool fits;
    const struct topic *topic = find_topic(ctx, args->operands[0]);
    if (!topic || vp_list_fits_asked(ctx, &fits, args, topic->name) != VP_OK)
        return vp_output_failure(ctx, args, VP_ERR_INPUT);
    if (!fits)
        vp_buf_add(&note, topic->note);
    enum vp_status status =
        fits ? vp_list_fits(ctx, &listing, &set, &note, args) : topic->list(ctx, &listing);
    if (fits && listing.row_count == 0)
        return vp_output_failure(ctx, args, status);
    switch (args->format) {
    case VP_FORMAT_JSON:
        render_json(ctx, &out, topic, &listing, set);
        break;
    case VP_FORMAT_CSV:
        vp_listing_csv(&out, &listing);
        break;
    case VP_FORMAT_MARKDOWN:
        vp_listing_markdown(&out, &listing);
        vp_buf_add(&out, fits ? vp_buf_text(&note) : "");
        break;
    case VP_FORMAT_TEXT:
        vp_listing_text(&out, &listing, args->value[VP_OPTION_VERBOSE]);
        vp_buf_add(&out, vp_buf_text(&note));
        break;
    }
    /* What can be used is listed all the same when a profile is broken. */
    enum vp_status written = vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]);
    return (int)vp_exit_of_both(vp_exit_of_status(status), vp_exit_of_status(written));
}
