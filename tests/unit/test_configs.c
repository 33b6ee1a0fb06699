/* Real config.json files: every one is planned or refused with a reason, and what is changed in
 * one keeps the invariants of the ledger. The files are not part of this tree; without them the
 * tests are skipped. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "planner/doc/json.h"
#include "planner/import/input.h"
#include "tests/unit/model_builder.h"

static const char FOLDER[] = "../shared/data/hf-configs";

/* Plans a file with `change` laid over it (a flow map, or NULL); NULL when it is refused. */
static const struct vp_result *plan_file(struct fixture *f, const char *file, const char *change) {
    struct vp_scenarios scenarios;
    struct vp_result *result = VP_NEW(&f->arena, struct vp_result);
    char folder[4096];

    assert_non_null(getcwd(folder, sizeof folder));
    const char *yaml = vp_arena_printf(
        &f->arena,
        "vramplan: 1\nmodel: {from: \"%s/%s/%s\"%s%s}\n"
        "hardware: {gpu: h200, memory: 8192 GiB}\nserve: {context: 8192, concurrency: 4}\n",
        folder, FOLDER, file, change ? ", " : "", change ? change : "");
    f->ctx.profiles = "profiles";
    fixture_clear(f);
    const char *path = fixture_text_file(f, "scenario.yaml", yaml);
    if (vp_input_read(&f->ctx, &scenarios, path, NULL, 0) == VP_OK && scenarios.count == 1 &&
        vp_plan_run(&f->ctx, result, scenarios.items[0]) == VP_OK)
        return result;
    if (f->diags.errors == 0)
        fail_msg("%s (%s) is refused without a reason", file, change ? change : "as it is");
    for (uint32_t i = 0; i < f->diags.count; i++)
        assert_true(f->diags.items[i].message && *f->diags.items[i].message);
    return NULL;
}

static void ordered(const struct vp_amount *a, const char *what) {
    if (a->low > a->likely || a->likely > a->high)
        fail_msg("%s: %" PRIu64 " <= %" PRIu64 " <= %" PRIu64 " does not hold", what, a->low,
                 a->likely, a->high);
}

/* Rows add up to components and these to the need; every interval is in order. */
static void check_sums(const struct vp_result *result) {
    const struct vp_ledger *ledger = &result->ledger;

    assert_false(ledger->overflow);
    for (uint32_t d = 0; d < result->device_count; d++) {
        const struct vp_device *device = &result->devices[d];
        struct vp_amount rows = {0, 0, 0}, parts = {0, 0, 0};
        for (uint32_t i = 0; i < ledger->count; i++) {
            const struct vp_row *row = &ledger->rows[i];
            ordered(&row->bytes, row->owner);
            if (row->device == d && row->from <= device->peak_step && device->peak_step <= row->to)
                rows = vp_amount_add(rows, row->bytes);
        }
        for (int c = 0; c < VP_COMPONENT_COUNT; c++)
            if (device->present[c])
                parts = vp_amount_add(parts, device->component[c]);
        ordered(&device->need, device->id);
        assert_int_equal(rows.likely, device->need.likely);
        assert_int_equal(rows.high, device->need.high);
        assert_int_equal(parts.likely, device->need.likely);
        for (int s = 0; s < VP_STEP_COUNT; s++)
            assert_true(vp_ledger_at(ledger, d, (enum vp_step)s).likely <= device->need.likely);
    }
}

struct figures {
    uint64_t weights, cache, params, active;
};

static struct figures figures_of(const struct vp_result *result) {
    const struct vp_ledger *ledger = &result->ledger;
    struct figures out = {ledger_likely(ledger, 0, VP_C_WEIGHTS),
                          ledger_likely(ledger, 0, VP_C_KV_CACHE) +
                              ledger_likely(ledger, 0, VP_C_RECURRENT_STATE),
                          result->params_total, result->params_active};
    return out;
}

static char **files(struct fixture *f, size_t *count) {
    char **names = NULL;

    if (vp_io_kind(&f->ctx, FOLDER) != VP_FILE_DIRECTORY)
        return NULL;
    assert_int_equal(vp_io_list(&f->ctx, &names, count, FOLDER), VP_OK);
    return names;
}

static void every_file_plans(void **state) {
    struct fixture f;
    size_t count = 0, planned = 0;

    (void)state;
    fixture_begin(&f);
    char **names = files(&f, &count);
    if (!names) {
        print_message("%s is not there\n", FOLDER);
        fixture_end(&f);
        skip();
    }
    for (size_t i = 0; i < count; i++) {
        const struct vp_result *result = plan_file(&f, names[i], NULL);
        if (!result)
            continue;
        planned++;
        check_sums(result);
        assert_true(result->params_active <= result->params_total);
        assert_true(result->params_total > 500000000);
    }
    assert_int_equal(planned, count);
    fixture_end(&f);
}

/* A size of the text part, wherever it stands. */
static const char *set(struct fixture *f, bool nested, const char *key, uint64_t value) {
    return vp_arena_printf(&f->arena, nested ? "text_config: {%s: %" PRIu64 "}" : "%s: %" PRIu64,
                           key, value);
}

/* What may grow with a key: bits of more(). */
enum { WEIGHTS = 1, CACHE = 2 };

static void more(struct fixture *f, const char *file, bool nested, const char *key, uint64_t value,
                 const struct figures *before, int grows) {
    const struct vp_result *result = plan_file(f, file, set(f, nested, key, value));

    if (!result)
        return; /* the reason was checked */
    check_sums(result);
    struct figures after = figures_of(result);
    if (after.weights < before->weights || after.cache < before->cache ||
        after.params < before->params)
        fail_msg("%s: %s %" PRIu64 " takes less", file, key, value);
    if (!(grows & WEIGHTS) && after.weights != before->weights)
        fail_msg("%s: %s changes the weights", file, key);
    if (!(grows & CACHE) && after.cache != before->cache)
        fail_msg("%s: %s changes the cache", file, key);
}

/* The value of a key as the reader sees it, 0 when it has none. */
static uint64_t value_of(const struct vp_node *config, const char *key, bool *nested) {
    const struct vp_node *text = vp_node_get(config, "text_config");
    uint64_t value = 0;

    *nested = text && vp_node_get(text, key);
    vp_node_u64(&value, vp_node_get(*nested ? text : config, key));
    return value;
}

/* with: a key that must be there, else a head's size follows from the number of heads. */
static const struct {
    const char *key, *with;
    uint64_t times, plus;
    int grows;
} CHANGES[] = {{"num_hidden_layers", NULL, 1, 1, WEIGHTS | CACHE},
               {"num_attention_heads", "head_dim", 2, 0, WEIGHTS | CACHE},
               {"num_attention_heads", "kv_lora_rank", 2, 0, WEIGHTS | CACHE},
               {"num_key_value_heads", NULL, 2, 0, WEIGHTS | CACHE},
               {"intermediate_size", NULL, 2, 0, WEIGHTS},
               {"moe_intermediate_size", NULL, 2, 0, WEIGHTS},
               {"n_routed_experts", NULL, 2, 0, WEIGHTS},
               {"num_experts", NULL, 2, 0, WEIGHTS},
               {"num_local_experts", NULL, 2, 0, WEIGHTS},
               {"sliding_window", NULL, 2, 0, CACHE},
               {"vocab_size", NULL, 2, 0, WEIGHTS}};

static void changed_files_keep_the_invariants(void **state) {
    struct fixture f;
    size_t count = 0;

    (void)state;
    fixture_begin(&f);
    char **names = files(&f, &count);
    if (!names) {
        print_message("%s is not there\n", FOLDER);
        fixture_end(&f);
        skip();
    }
    for (size_t i = 0; i < count; i++) {
        const struct vp_result *result = plan_file(&f, names[i], NULL);
        struct vp_node *config;
        struct vp_bytes bytes;
        const char *path = vp_arena_printf(&f.arena, "%s/%s", FOLDER, names[i]);
        assert_non_null(result);
        struct figures before = figures_of(result);
        assert_int_equal(vp_io_read(&f.ctx, &bytes, path, 1 << 24), VP_OK);
        assert_int_equal(vp_json_read(&f.ctx, &config, bytes, path), VP_OK);
        for (size_t k = 0; k < sizeof CHANGES / sizeof CHANGES[0]; k++) {
            bool nested, beside;
            uint64_t value = value_of(config, CHANGES[k].key, &nested);
            const char *with = CHANGES[k].with;
            if (value > 0 && (!with || value_of(config, with, &beside) > 0))
                more(&f, names[i], nested, CHANGES[k].key,
                     value * CHANGES[k].times + CHANGES[k].plus, &before, CHANGES[k].grows);
        }
    }
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_plans),
        cmocka_unit_test(changed_files_keep_the_invariants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
