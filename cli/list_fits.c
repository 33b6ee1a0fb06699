#include "cli/list_fits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/units.h"
#include "planner/import/model_reader.h"
#include "planner/import/profile.h"
#include "planner/plan/plan.h"
#include "reports/layout.h"
#include "reports/words.h"

/* What the table shows; text and Markdown for people, bytes for machines. */
enum {
    FIT_ID,
    FIT_BILLIONS,
    FIT_PARAMS,
    FIT_WEIGHTS_GIB,
    FIT_WEIGHTS,
    FIT_WORDS,
    FIT_VERDICT,
    FIT_SPARE_GIB,
    FIT_HEADROOM,
    FIT_CONTEXT,
    FIT_PLANNED_FOR,
    FIT_REASON,
    FIT_COLUMNS
};

static const struct vp_column COLUMN[FIT_COLUMNS] = {
    [FIT_ID] = {"id", "model", VP_CELL_TEXT, VP_FOR_ALL},
    [FIT_BILLIONS] = {"", "10^9 params", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [FIT_PARAMS] = {"params", "", VP_CELL_NUMBER, VP_FOR_MACHINES},
    [FIT_WEIGHTS_GIB] = {"", "weights", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [FIT_WEIGHTS] = {"weights_bytes", "", VP_CELL_NUMBER, VP_FOR_MACHINES},
    [FIT_WORDS] = {"", "verdict", VP_CELL_TEXT, VP_FOR_PEOPLE},
    [FIT_VERDICT] = {"verdict", "", VP_CELL_TEXT, VP_FOR_MACHINES},
    [FIT_SPARE_GIB] = {"", "spare", VP_CELL_NUMBER, VP_FOR_PEOPLE},
    [FIT_HEADROOM] = {"headroom_bytes", "", VP_CELL_NUMBER, VP_FOR_MACHINES},
    [FIT_CONTEXT] = {"max_context", "longest", VP_CELL_NUMBER, VP_FOR_ALL},
    [FIT_PLANNED_FOR] = {"context", "", VP_CELL_NUMBER, VP_FOR_MACHINES},
    [FIT_REASON] = {"reason", "why", VP_CELL_TEXT, VP_FOR_MACHINES | VP_FOR_VERBOSE},
};

struct entry {
    const char *id;
    uint64_t params;                /* 0: not known */
    const struct vp_result *result; /* NULL: not planned */
    struct vp_diag fault;           /* why not */
    bool failed;
};

struct fits {
    struct vp_ctx *ctx;
    struct vp_setting *setting;
    size_t settings;
    bool context_given;
};

enum { USUAL_CONTEXT = 8192 }; /* as `plan` assumes */

/* ---- the set-up ---- */

enum vp_status vp_list_fits_asked(struct vp_ctx *ctx, bool *out, const struct vp_args *args,
                                  const char *topic) {
    const struct vp_setting *gpu = vp_args_setting(args, "hardware.gpu");
    *out = gpu != NULL;
    if (args->setting_count == 0 || (gpu && vp_text_eq(topic, "models")))
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "%s goes with 'list models --fits-on GPU' only",
                args->settings[0].key);
    return VP_ERR_INPUT;
}

static void set(struct fits *fits, const char *path, const char *value, const char *key) {
    fits->setting[fits->settings++] = (struct vp_setting){path, value, key};
}

/* Engines that would put what does not fit into host memory, and run. */
static bool spills(const struct vp_setting *engine) {
    static const char *const NAMES[] = {"llama.cpp", "ollama"};
    for (size_t i = 0; engine && i < sizeof NAMES / sizeof *NAMES; i++) {
        size_t n = strlen(NAMES[i]);
        if (strncmp(engine->value, NAMES[i], n) == 0 && strchr("@", engine->value[n]))
            return true; /* "", or a version follows */
    }
    return false;
}

/* What the command line says; beyond it the newest rules of vLLM, the usual context, and as many
 * tensor-parallel ranks as devices, or all layers on the devices. */
static void set_up(struct fits *fits, const struct vp_args *args) {
    enum { OWN = 4 };
    static const char OURS[] = "list models", CONTEXT[] = "serve.context";
    static const char TENSOR[] = "parallel.tensor", ENGINE[] = "engine.name";
    static const char LAYERS[] = "engine.args.n_gpu_layers";
    const struct vp_setting *count = vp_args_setting(args, "hardware.count");
    struct vp_arena *arena = fits->ctx->arena;
    fits->setting = VP_NEW_ARRAY(arena, args->setting_count + OWN, struct vp_setting);
    fits->context_given = vp_args_setting(args, CONTEXT) != NULL;
    if (!fits->context_given) /* the first one: read_in_range changes it */
        set(fits, CONTEXT, vp_arena_printf(arena, "%d", USUAL_CONTEXT), OURS);
    for (size_t i = 0; i < args->setting_count; i++)
        set(fits, args->settings[i].path, args->settings[i].value, args->settings[i].key);
    if (!vp_args_setting(args, ENGINE))
        set(fits, ENGINE, "vllm", OURS);
    if (!spills(vp_args_setting(args, ENGINE))) {
        if (count && !vp_args_setting(args, TENSOR))
            set(fits, TENSOR, count->value, count->key);
    } else if (!vp_args_setting(args, LAYERS) && !vp_args_setting(args, "engine.args.num_gpu")) {
        set(fits, LAYERS, "999", OURS);
    }
}

/* ---- one model ---- */

static void fail(struct entry *entry, const struct vp_diags *diags) {
    entry->failed = true;
    for (uint32_t i = 0; i < diags->count; i++) {
        if (vp_diag_severity(diags->items[i].id) != VP_ERROR)
            continue;
        entry->fault = diags->items[i];
        return;
    }
}

static enum vp_status read_one(struct vp_ctx *ctx, struct vp_scenario **out,
                               const struct fits *fits, const char *path) {
    struct vp_scenarios scenarios;
    enum vp_status status = vp_input_read(ctx, &scenarios, path, fits->setting, fits->settings);
    *out = status == VP_OK && scenarios.count ? scenarios.items[0] : NULL;
    return status;
}

/* A model trained for less than the usual context is planned at what it was trained for; when a
 * longer one is asked for it is not, because the engine refuses that. */
static enum vp_status read_in_range(struct vp_ctx *ctx, struct vp_scenario **out,
                                    const struct fits *fits, const char *path) {
    enum vp_status status = read_one(ctx, out, fits, path);
    if (!*out || (*out)->model->max_position == 0 ||
        (*out)->serve.context <= (*out)->model->max_position)
        return status;
    uint64_t trained = (*out)->model->max_position;
    if (fits->context_given) {
        *out = NULL;
        vp_diag_add(ctx->diags, VP_D_LAYOUT, NULL,
                    "it was trained for %" PRIu64 " tokens, fewer than asked for", trained);
        return VP_ERR_INPUT;
    }
    const char *usual = fits->setting[0].value;
    fits->setting[0].value = vp_format_u64(ctx->arena, trained);
    status = read_one(ctx, out, fits, path);
    fits->setting[0].value = usual;
    return status;
}

static enum vp_status plan_one(struct fits *fits, struct entry *entry, const char *id) {
    struct vp_ctx ctx = *fits->ctx; /* faults of a model are its own */
    struct vp_profile profile;
    struct vp_scenario *scenario = NULL;
    ctx.diags = VP_NEW(ctx.arena, struct vp_diags);
    ctx.diags->arena = ctx.arena;
    *entry = (struct entry){.id = id};
    enum vp_status status = vp_profile_find(&ctx, &profile, &VP_PROFILE_MODEL, id);
    if (status == VP_OK && profile.root) {
        vp_node_u64(&entry->params, vp_node_get(profile.root, "params"));
        status = read_in_range(&ctx, &scenario, fits, profile.path);
    }
    struct vp_result *result = VP_NEW(ctx.arena, struct vp_result);
    if (status == VP_OK && scenario)
        status = vp_plan_run(&ctx, result, scenario);
    if (status != VP_OK || !scenario) {
        fail(entry, ctx.diags);
        return status == VP_ERR_ENV ? VP_ERR_ENV : VP_OK;
    }
    entry->result = result;
    if (entry->params == 0)
        entry->params = result->params_total;
    return VP_OK;
}

/* ---- the table ---- */

static int by_params(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->params != y->params)
        return x->params < y->params ? -1 : 1;
    return strcmp(x->id, y->id);
}

static void fill_row(struct vp_arena *arena, struct vp_cell *row, const struct entry *entry) {
    enum { SHARES = 100, PER_SHARE = 10000000 };
    uint64_t shares = entry->params / PER_SHARE + (entry->params % PER_SHARE >= PER_SHARE / 2);
    row[FIT_ID].text = entry->id;
    if (entry->params) {
        row[FIT_BILLIONS].text =
            vp_arena_printf(arena, "%" PRIu64 ".%02" PRIu64, shares / SHARES, shares % SHARES);
        row[FIT_PARAMS].text = vp_format_u64(arena, entry->params);
    }
    if (!entry->result) {
        row[FIT_WORDS].text = "not planned";
        row[FIT_REASON].text = entry->fault.message;
        return;
    }
    const struct vp_result *r = entry->result;
    uint64_t weights = r->devices[r->worst].component[VP_C_WEIGHTS].likely;
    row[FIT_WEIGHTS_GIB].text = vp_format_gib(arena, weights, 2);
    row[FIT_WEIGHTS].text = vp_format_u64(arena, weights);
    row[FIT_WORDS].text = row[FIT_VERDICT].text = vp_verdict_name(r->verdict);
    row[FIT_SPARE_GIB].text = vp_words_signed_gib(arena, r->headroom_bytes);
    row[FIT_HEADROOM].text = vp_arena_printf(arena, "%" PRId64, r->headroom_bytes);
    row[FIT_CONTEXT].text =
        r->prices.max_context ? vp_format_u64(arena, r->prices.max_context) : NULL;
    row[FIT_PLANNED_FOR].text = vp_format_u64(arena, r->scenario->serve.context);
    row[FIT_REASON].text = *r->reason_text ? r->reason_text : NULL;
}

/* ---- what stands below it ---- */

static void set_up_note(struct vp_buf *note, const struct vp_scenario *s, bool fixed) {
    struct vp_page page = {.out = note, .width = VP_PAGE_WIDTH, .utf8 = true};
    vp_buf_add(note, "\n");
    bool stored = vp_text_eq(s->precision.weights, "checkpoint");
    vp_page_printf(&page, 0, 0,
                   "%" PRIu64 " x %s, %s %s, %s of %s tokens%s; weights %s%s, spare: GiB per card; "
                   "longest: tokens of a sequence at that many",
                   s->hardware.count, s->hardware.gpu.name, vp_words_engine(s->engine.name),
                   s->engine.version_text,
                   vp_words_plural(note->arena, s->serve.concurrency, "sequence", "sequences"),
                   vp_field_value(note->arena, s, VP_F_CONTEXT),
                   fixed ? "" : " (or what the model was trained for)",
                   stored ? "as stored" : "in ", stored ? "" : s->precision.weights);
}

static bool same_fault(const struct entry *a, const struct entry *b) {
    return a->failed && b->failed && a->fault.id == b->fault.id &&
           vp_text_eq(a->fault.message, b->fault.message);
}

/* Each reason once, with the models that have it; n is the number of profiles, a few dozen. */
static void fault_notes(struct vp_buf *note, const struct entry *entries, size_t count) {
    struct vp_page page = {.out = note, .width = VP_PAGE_WIDTH, .utf8 = true};
    bool first = true;
    for (size_t i = 0; i < count; i++) {
        struct vp_buf models = {.arena = note->arena};
        size_t k = 0;
        while (k < i && !same_fault(&entries[k], &entries[i]))
            k++;
        if (!entries[i].failed || k < i)
            continue;
        for (k = i; k < count; k++)
            if (same_fault(&entries[i], &entries[k]))
                vp_buf_printf(&models, "%s%s", k > i ? ", " : "", entries[k].id);
        vp_buf_add(note, first ? "\n" : "");
        first = false;
        vp_page_printf(&page, 0, 2, "not planned: %s: %s",
                       entries[i].fault.message ? entries[i].fault.message : "unknown",
                       vp_buf_text(&models));
    }
}

/* ---- all of them ---- */

/* The fault that every model has; NULL when there is none. */
static const struct vp_diag *common_fault(const struct entry *entries, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!same_fault(&entries[0], &entries[i]))
            return NULL;
    return count ? &entries[0].fault : NULL;
}

/* The set-up as most models have it: with the longest context. */
static const struct vp_scenario *common_set_up(const struct entry *entries, size_t count) {
    const struct vp_scenario *found = NULL;
    for (size_t i = 0; i < count; i++)
        if (entries[i].result &&
            (!found || entries[i].result->scenario->serve.context > found->serve.context))
            found = entries[i].result->scenario;
    return found;
}

/* Every entry filled and sorted; a fault that all have is told. */
static enum vp_status plan_all(struct fits *fits, struct entry *entries, char **names,
                               size_t count) {
    struct vp_diags *diags = fits->ctx->diags;
    enum vp_status status = VP_OK;
    for (size_t i = 0; i < count && status == VP_OK; i++)
        status = plan_one(fits, &entries[i], names[i]);
    const struct vp_diag *fault = common_fault(entries, count);
    if (fault) {
        vp_diag_add(diags, fault->id, &fault->pos, "%s", fault->message);
        if (fault->hint)
            vp_diag_hint(diags, "%s", fault->hint);
        return status == VP_OK ? VP_ERR_INPUT : status;
    }
    qsort(entries, count, sizeof *entries, by_params);
    return status;
}

enum vp_status vp_list_fits(struct vp_ctx *ctx, struct vp_listing *out,
                            const struct vp_scenario **set, struct vp_buf *note,
                            const struct vp_args *args) {
    struct fits fits = {.ctx = ctx};
    char **names;
    size_t count;
    *out = (struct vp_listing){.columns = COLUMN, .column_count = FIT_COLUMNS};
    *set = NULL;
    enum vp_status status = vp_model_profiles(ctx, &names, &count);
    if (status != VP_OK)
        return status;
    set_up(&fits, args);
    struct entry *entries = VP_NEW_ARRAY(ctx->arena, count, struct entry);
    status = plan_all(&fits, entries, names, count);
    if (status != VP_OK)
        return status;
    out->cells = VP_NEW_ARRAY(ctx->arena, count * FIT_COLUMNS, struct vp_cell);
    out->row_count = count;
    for (size_t i = 0; i < count; i++)
        fill_row(ctx->arena, &out->cells[i * FIT_COLUMNS], &entries[i]);
    *set = common_set_up(entries, count);
    if (*set)
        set_up_note(note, *set, fits.context_given);
    fault_notes(note, entries, count);
    return VP_OK;
}
