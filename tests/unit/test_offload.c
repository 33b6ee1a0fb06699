/* Weights and a second cache in host memory. By hand: layers of 256 with 8 heads of 32 and 2 for
 * the cache, a feed-forward of 512, all in 16 bit:
 *
 *   layer    (2 x 256 x 256 + 2 x 256 x 64 + 3 x 256 x 512 + 2 x 256) x 2   1,115,136 bytes
 *   largest parameter, gate and up in one: 2 x 256 x 512 x 2                  524,288
 *   embedding, head and norm: 2 x 1024 x 256 x 2 + 256 x 2                  1,049,088 */
#include "planner/memory/offload.h"

#include <string.h>

#include "planner/base/units.h"
#include "tests/unit/model_builder.h"

enum { LAYER = 1115136, LARGEST = 524288, ENDS = 1049088 };

static struct builder b;
static struct vp_offload *offload;

static int begin(void **state) {
    (void)state;
    builder_begin(&b);
    b.model.hidden = 256;
    struct vp_block block = block_gqa(8, 2, 32);
    block.mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = 512};
    builder_layer(&b, block, 4);
    builder_ends(&b, 1000, false);
    offload = &b.scenario.offload;
    return 0;
}

static int end(void **state) {
    (void)state;
    builder_end(&b);
    return 0;
}

static struct vp_amount weights(uint32_t stage) {
    struct vp_ledger ledger = builder_ledger(&b);
    return builder_stage(&b, &ledger, stage).weights;
}

static void expect(const struct vp_amount *a, uint64_t low, uint64_t likely, uint64_t high) {
    assert_int_equal(a->low, low);
    assert_int_equal(a->likely, likely);
    assert_int_equal(a->high, high);
}

/* ---- the device ---- */

static void layers_leave_the_device(void **state) {
    (void)state;
    struct vp_amount a = weights(0);
    expect(&a, 4 * LAYER + ENDS, 4 * LAYER + ENDS, 4 * LAYER + ENDS);
    offload->weights_bytes = 2000000; /* stops behind the parameter that reaches it */
    a = weights(0);
    expect(&a, 4 * LAYER + ENDS - 2000000 - LARGEST, 4 * LAYER + ENDS - 2000000 - LARGEST / 2,
           4 * LAYER + ENDS - 2000000);
    offload->weights_bytes = 0;
    offload->weights_ppb = 250000000; /* of the layers */
    a = weights(0);
    assert_int_equal(a.high, 3 * LAYER + ENDS);
    assert_int_equal(a.low, 3 * LAYER + ENDS - LARGEST);
}

static void the_ends_stay(void **state) {
    (void)state;
    offload->weights_bytes = GIB(10);
    struct vp_amount a = weights(0);
    expect(&a, ENDS, ENDS, ENDS); /* exact: there is no parameter left to go */
    offload->weights_bytes = 0;
    offload->weights_ppb = 1000000000;
    a = weights(0);
    expect(&a, ENDS, ENDS, ENDS);
    offload->weights_ppb = 0;
    offload->weights_bytes = 4 * LAYER - 1000; /* not more than the layers */
    a = weights(0);
    expect(&a, ENDS, ENDS + 500, ENDS + 1000);
}

static void rows_say_what_left(void **state) {
    (void)state;
    struct vp_ledger ledger = builder_ledger(&b);
    uint64_t moved = 0;

    offload->weights_bytes = 2000000;
    builder_stage(&b, &ledger, 0);
    for (uint32_t i = 0; i < ledger.count; i++)
        for (uint8_t k = 0; k < ledger.rows[i].inputs; k++)
            if (strcmp(ledger.rows[i].input[k].name, "on_host") == 0)
                moved += ledger.rows[i].input[k].value;
    assert_int_equal(moved, 2000000);
}

static void of_each_rank_and_stage(void **state) {
    (void)state;
    b.scenario.parallel.tensor = 2;
    offload->weights_bytes = 1000000;
    struct vp_amount whole = weights(0);
    offload->weights_bytes = 0;
    struct vp_amount before = weights(0);
    assert_int_equal(before.likely - whole.high, 1000000);
    assert_int_equal(whole.high - whole.low, LARGEST / 2); /* a rank's half of the parameter */
    b.scenario.parallel.tensor = 1;
    b.scenario.parallel.pipeline = 2;
    offload->weights_bytes = GIB(1);
    assert_int_equal(weights(0).likely + weights(1).likely, ENDS);
}

/* ---- the host ---- */

static const struct vp_device *host_of(const struct vp_result *r) {
    const struct vp_device *last = &r->devices[r->device_count - 1];
    assert_true(last->host);
    return last;
}

static void the_host_is_a_device(void **state) {
    (void)state;
    const struct vp_result *r = builder_evaluate(&b);
    assert_int_equal(r->device_count, 1);
    assert_false(r->devices[0].host);
    offload->weights_bytes = 2000000;
    r = builder_evaluate(&b);
    assert_int_equal(r->device_count, 2);
    assert_int_equal(r->worst, 0);
    const struct vp_device *host = host_of(r);
    /* as much as left the card; every tensor may take the next power of two */
    assert_int_equal(host->need.low, 2000000);
    assert_int_equal(host->need.high, 2 * (2000000 + LARGEST));
    assert_int_equal(host->component[VP_C_WEIGHTS].likely, (2000000 + LARGEST / 2) / 3 * 4);
    assert_int_equal(host->capacity_bytes, 0); /* not told */
    const struct vp_row *row = ledger_row(&r->ledger, 1, "offloaded layers");
    assert_int_equal(row->formula, VP_FORMULA_HOST_WEIGHTS);
    assert_int_equal(row_input(row, "of_one_rank"), 2000000 + LARGEST / 2);
    /* the card's sums are its own */
    assert_true(r->devices[0].need.high > host->need.high);
    assert_int_equal(r->report.weights.high, 4 * LAYER + ENDS - 2000000);
}

static void all_ranks_share_it(void **state) {
    (void)state;
    offload->weights_bytes = GIB(1); /* all layers, an exact size */
    b.scenario.parallel.data = 2;
    b.scenario.parallel.pipeline = 2;
    b.scenario.hardware.count = 4;
    const struct vp_result *r = builder_evaluate(&b);
    assert_int_equal(r->device_count, 3);
    assert_int_equal(host_of(r)->need.low, 2 * 4 * LAYER);
    b.scenario.hardware.nodes = 2;
    assert_int_equal(host_of(builder_evaluate(&b))->need.low, 4 * LAYER);
}

static void a_second_cache(void **state) {
    (void)state;
    const struct vp_result *without = builder_evaluate(&b);
    offload->kv_bytes = GIB(6);
    const struct vp_result *r = builder_evaluate(&b);
    const struct vp_row *row = ledger_row(&r->ledger, 1, "second cache");
    assert_int_equal(row->formula, VP_FORMULA_HOST_KV);
    assert_int_equal(row->component, VP_C_KV_CACHE);
    expect(&row->bytes, GIB(6), GIB(6), GIB(8));
    assert_int_equal(r->report.available_kv.likely, without->report.available_kv.likely);
    b.scenario.parallel.tensor = 2; /* the size is that of all ranks, each pins a half */
    r = builder_evaluate(&b);
    row = ledger_row(&r->ledger, 1, "second cache");
    expect(&row->bytes, GIB(6), GIB(6), GIB(8));
    b.scenario.parallel.data = 3; /* of each replica */
    r = builder_evaluate(&b);
    assert_int_equal(ledger_row(&r->ledger, 1, "second cache")->bytes.likely, GIB(18));
}

static void what_the_host_has(void **state) {
    (void)state;
    offload->kv_bytes = GIB(6);
    b.scenario.hardware.host_memory_bytes = GIB(16);
    const struct vp_result *r = builder_evaluate(&b);
    assert_int_equal(r->verdict, VP_FITS);
    assert_int_equal(host_of(r)->capacity_bytes, GIB(16));
    b.scenario.hardware.host_memory_bytes = GIB(7);
    r = builder_evaluate(&b);
    assert_int_equal(r->verdict, VP_AT_RISK);
    assert_int_equal(r->reason, VP_REASON_HOST);
    b.scenario.hardware.host_memory_bytes = GIB(5);
    r = builder_evaluate(&b);
    assert_int_equal(r->verdict, VP_DOES_NOT_FIT);
    assert_int_equal(r->reason, VP_REASON_HOST);
    offload->kv_bytes = UINT64_MAX / 2; /* no 64-bit sum */
    b.scenario.parallel.data = 4;
    struct vp_result out;
    assert_false(vp_plan_evaluate(&b.f.arena, &out, &b.scenario));
}

/* More in host memory never takes more of the card, nor less of the host. */
static void more_is_never_less(void **state) {
    (void)state;
    uint64_t card = UINT64_MAX, host = 0;

    for (uint64_t bytes = 100000; bytes < 6000000; bytes += 130000) {
        offload->weights_bytes = bytes;
        const struct vp_result *r = builder_evaluate(&b);
        const struct vp_amount *a = &r->report.weights;
        assert_true(a->low <= a->likely && a->likely <= a->high);
        assert_true(a->high <= card && host_of(r)->need.low >= host);
        assert_true(a->low >= ENDS);
        card = a->high;
        host = host_of(r)->need.low;
    }
    assert_int_equal(card, ENDS);
    assert_int_equal(host, 4 * LAYER);
}

/* ---- as asked for ---- */

#define RUN                                                                                        \
    "model: qwen3-8b\nhardware: {gpu: rtx4090}\n"                                                  \
    "serve: {context: 4096, concurrency: 1}\nengine: {name: vllm, version: "

static void ways_to_ask(void **state) {
    (void)state;
    fixture_clear(&b.f);
    const struct vp_result *r =
        plan_yaml_with(&b.f, RUN "'0.20', args: {cpu_offload_gb: 4}}\n", NULL, NULL);
    const struct vp_result *plain = plan_yaml(&b.f, RUN "'0.20'}\n");
    uint64_t moved = plain->report.weights.high - r->report.weights.high;
    assert_int_equal(moved, GIB(4));
    assert_true(r->kv.max_context > plain->kv.max_context);
    const struct vp_result *size =
        plan_yaml_with(&b.f, RUN "'0.20'}\n", "serve.offload", "{weights: 4 GiB}");
    assert_int_equal(size->report.weights.low, r->report.weights.low);
    const struct vp_result *share =
        plan_yaml_with(&b.f, RUN "'0.20'}\n", "serve.offload", "{weights: 0.5}");
    assert_int_equal(share->scenario->offload.weights_ppb, 500000000);
    assert_true(share->report.weights.high < size->report.weights.high);
    assert_true(share->report.weights.low > 2 * 151936 * UINT64_C(4096) * 2); /* both ends */
}

/* The V0 engine swapped sequences out to host memory; later ones ignore the option. */
static void swap_space(void **state) {
    (void)state;
    const struct vp_result *r =
        plan_yaml(&b.f, "model: qwen2.5-7b\nhardware: {gpu: rtx4090, count: 2}\n"
                        "serve: {context: 4096}\nparallel: {tensor: 2}\n"
                        "engine: {name: vllm, version: '0.7.3', args: {swap_space: 4}}\n");
    assert_int_equal(ledger_row(&r->ledger, 1, "second cache")->bytes.low, GIB(8));
    r = plan_yaml(&b.f, RUN "'0.20', args: {swap_space: 4}}\n");
    assert_int_equal(r->device_count, 1);
}

static void sleeping(void **state) {
    (void)state;
    fixture_clear(&b.f);
    plan_yaml(&b.f, RUN "'0.13'}\n");
    for (uint32_t i = 0; i < b.f.diags.count; i++)
        assert_int_not_equal(b.f.diags.items[i].id, VP_D_SLEEP_MODE);
    const struct vp_result *r = plan_yaml(&b.f, RUN "'0.13', args: {enable_sleep_mode: true}}\n");
    const struct vp_diag *note = fixture_expect(&b.f, VP_D_SLEEP_MODE, "asleep, each card");
    const char *loaded = vp_format_gib(&b.f.arena, r->report.weights.likely, 2);
    assert_non_null(strstr(note->message, loaded));
    assert_non_null(strstr(note->hint, loaded));
    assert_non_null(
        strstr(note->message, vp_format_gib(&b.f.arena, r->report.available_kv.likely, 2)));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(layers_leave_the_device),
        T(the_ends_stay),
        T(rows_say_what_left),
        T(of_each_rank_and_stage),
        T(the_host_is_a_device),
        T(all_ranks_share_it),
        T(a_second_cache),
        T(what_the_host_has),
        T(more_is_never_less),
        T(ways_to_ask),
        T(swap_space),
        T(sleeping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
