/* Where llama.cpp's tensors go, what it refuses, what was measured, and its own fit. */
#include <string.h>

#include "tests/unit/llama_rig.h"

#define MIB(n) ((uint64_t)(n) << 20)

static struct llama_rig rig;

static int begin(void **state) {
    (void)state;
    return 0;
}

static int end(void **state) {
    (void)state;
    rig_end(&rig);
    return 0;
}

static struct vp_block none(void) { return (struct vp_block){.norms = 0}; }

/* ---- placement ---- */

static void the_output_layer_counts_and_goes_first(void **state) {
    (void)state;
    rig_llama8b(&rig);
    rig.scenario.hardware.count = 4;
    rig_plan(&rig);
    assert_int_equal(rig.plan.place[0].layers, 9);
    assert_int_equal(rig.plan.place[1].layers, 8);
    assert_int_equal(rig.plan.place[2].layers, 8);
    assert_int_equal(rig.plan.place[3].layers, 7);
    rig.scenario.hardware.count = 1;
    rig.scenario.llama.gpu_layers = 10;
    rig_plan(&rig);
    assert_int_equal(rig.plan.place[0].layers, 9); /* and the output */
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_MODEL), 53231 + 9 * 5950);
    rig.scenario.llama.gpu_layers = 33;
    assert_int_equal(rig_plan(&rig)->gpu_layers, 33);
    assert_int_equal(rig.plan.place[0].layers, 32);
}

static void shares_divide_the_layers(void **state) {
    (void)state;
    rig_llama8b(&rig);
    rig.scenario.hardware.count = 2;
    rig.scenario.llama.share_ppb[0] = 3000000000;
    rig.scenario.llama.share_ppb[1] = 1000000000;
    rig.scenario.llama.shares = 2;
    rig_plan(&rig);
    assert_int_equal(rig.plan.place[0].layers, 25); /* slots below 0.75 x 33 */
    assert_int_equal(rig.plan.place[1].layers, 7);
}

static void a_tied_output_is_a_second_copy(void **state) {
    (void)state;
    rig_begin(&rig, 2048, 128256); /* Llama 3.2 1B */
    rig_layers(&rig, 16, rig_gqa(32, 8, 64, 8192), none(), 0);
    rig_ends(&rig, VP_DTYPE_Q8_0, true);
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_MODEL), 26616);
    assert_mib(rig_buffer(&rig, "GPU_Host", VP_LLAMA_MODEL), 26616);
    rig.scenario.llama.gpu_layers = 0;
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU_Host", VP_LLAMA_MODEL), 26616);
    rig.scenario.llama.mmap = true;
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "CPU", VP_LLAMA_MODEL), 26616);
    assert_int_equal(rig.plan.place[rig.plan.places - 1].mapped_bytes,
                     rig_buffer(&rig, "CPU", VP_LLAMA_MODEL));
}

static void a_mapped_range_spans_what_lies_between(void **state) {
    (void)state;
    rig_llama8b(&rig);
    rig.table.made_up = false;
    rig.scenario.llama.mmap = true;
    rig.scenario.llama.gpu_layers = 32; /* layer 0 and the embedding stay */
    for (uint32_t i = 0, at = 0; i < rig.table.count; i++) {
        rig.tensor[i].offset = at;
        at += (uint32_t)(rig.tensor[i].bytes >> 8); /* in steps of 256 bytes */
    }
    for (uint32_t i = 0; i < rig.table.count; i++)
        rig.tensor[i].offset <<= 8;
    rig_plan(&rig); /* embedding, output (on the GPU), blk.0 */
    assert_mib(rig_buffer(&rig, "CPU", VP_LLAMA_MODEL), 53231 + 53231 + 5950);
}

static bool begins_with(const void *prefix, const char *name) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static void single_tensors_can_be_placed(void **state) {
    struct vp_llama *l = &rig.scenario.llama;
    (void)state;
    rig_llama8b(&rig);
    rig_plan(&rig);
    uint64_t before = rig_buffer(&rig, "GPU0", VP_LLAMA_MODEL);
    uint64_t cache = rig_buffer(&rig, "GPU0", VP_LLAMA_KV);
    l->override_matches = begins_with;
    l->override[0] = (struct vp_llama_override){"", "blk.3.", 0}; /* the first one holds */
    l->override[1] = (struct vp_llama_override){"", "blk.3", VP_LLAMA_HOST};
    l->overrides = 2;
    rig_plan(&rig);
    assert_mib(before - rig_buffer(&rig, "GPU0", VP_LLAMA_MODEL), 2 * 5950); /* 30 and 31 */
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), cache);
}

static void experts_can_stay_on_the_host(void **state) {
    (void)state;
    rig_llama8b(&rig);
    for (uint32_t i = 0; i < rig.table.count; i++)
        if (rig.tensor[i].kind == VP_GGUF_FFN)
            rig.tensor[i].kind = VP_GGUF_EXPERT;
    rig.scenario.llama.cpu_moe_layers = 30;
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_MODEL), 53231 + 2 * 5950);
    rig.scenario.llama.cpu_moe = true;
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_MODEL), 53231);
}

/* ---- refusals, measurements, fit ---- */

static void quantised_values_need_flash_attention(void **state) {
    (void)state;
    rig_llama8b(&rig);
    rig.scenario.llama.type_k = VP_DTYPE_Q8_0;
    rig.scenario.llama.flash = VP_FLASH_OFF;
    assert_null(rig_plan(&rig)->refused);
    rig.scenario.llama.type_v = VP_DTYPE_Q8_0;
    assert_non_null(rig_plan(&rig)->refused);
    rig.scenario.llama.flash = VP_FLASH_AUTO;
    assert_null(rig_plan(&rig)->refused);
    rig.block[0].attention.head_dim = 80; /* no whole blocks of 32 */
    assert_non_null(rig_plan(&rig)->refused);
}

static void a_measured_buffer_replaces_the_estimate(void **state) {
    struct vp_measured_buffer measured = {VP_LLAMA_COMPUTE, "GPU0", MIB(1000)};
    (void)state;
    rig_llama8b(&rig);
    rig.scenario.engine.rules.llama.pool_permille = (struct vp_amount){100, 100, 100};
    rig.scenario.measured.buffers = &measured;
    rig.scenario.measured.buffer_count = 1;
    rig_plan(&rig);
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_COMPUTE), MIB(1000));
    assert_int_equal(rig.plan.place[0].pool.likely, MIB(100)); /* follows */
}

/* granite 8B on a card of 16304 MiB of which 164 are taken: the log of May 2026 says 4920 MiB. */
static void the_fit_interpolates_the_context(void **state) {
    struct vp_measured_buffer measured = {VP_LLAMA_MODEL, "GPU0", MIB(9938)};
    struct vp_llama *l = &rig.scenario.llama;
    (void)state;
    rig_begin(&rig, 4096, 100352);
    rig_layers(&rig, 40, rig_gqa(32, 8, 128, 12800), none(), 0);
    rig_ends(&rig, VP_DTYPE_Q8_0, false);
    rig.scenario.hardware.memory_bytes = MIB(16304);
    rig.scenario.hardware.reserved_bytes = MIB(164);
    rig.scenario.measured.buffers = &measured;
    rig.scenario.measured.buffer_count = 1;
    rig.scenario.engine.rules.llama.mask_cast = true;
    l->context = 131072;
    l->slots = 4;
    l->unified = true;
    l->fit_context = l->fit_layers = true;
    l->fit_margin_mib = 1024;
    l->fit_context_least = 4096;
    rig_plan(&rig);
    assert_true(rig.plan.fitted);
    assert_int_equal(rig.plan.n_ctx, 31488);
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), MIB(4920));
}

static void the_fit_lowers_layers_last(void **state) {
    struct vp_llama *l = &rig.scenario.llama;
    (void)state;
    rig_llama8b(&rig);
    rig.scenario.hardware.memory_bytes = MIB(2900); /* half of the model */
    l->context = 131072;
    l->fit_context = l->fit_layers = true;
    l->fit_margin_mib = 256;
    l->fit_context_least = 4096;
    rig_plan(&rig);
    assert_int_equal(rig.plan.n_ctx, 4096);
    assert_in_range(rig.plan.gpu_layers, 1, 32);
    uint64_t used = rig_buffer(&rig, "GPU0", VP_LLAMA_MODEL) +
                    rig_buffer(&rig, "GPU0", VP_LLAMA_KV) +
                    rig_buffer(&rig, "GPU0", VP_LLAMA_COMPUTE);
    assert_true(used <= MIB(2900 - 256));
}

static void the_fit_moves_experts_first(void **state) {
    struct vp_llama *l = &rig.scenario.llama;
    (void)state;
    rig_llama8b(&rig);
    rig.block[0].moe =
        (struct vp_moe){.kind = VP_MLP_GATED, .experts = 8, .top_k = 2, .intermediate = 14336};
    for (uint32_t i = 0; i < rig.table.count; i++)
        if (rig.tensor[i].kind == VP_GGUF_FFN)
            rig.tensor[i].kind = VP_GGUF_EXPERT;
    rig.scenario.hardware.count = 2;
    rig.scenario.hardware.memory_bytes = MIB(2000);
    l->context = 4096;
    l->fit_layers = true;
    l->fit_margin_mib = 100;
    rig_plan(&rig);
    assert_true(rig.plan.fitted);
    assert_int_equal(rig.plan.gpu_layers, 33);
    assert_true(rig.plan.host_experts > 0);
    for (uint32_t g = 0; g < 2; g++) { /* one more layer's experts would not fit */
        uint64_t used = 0;
        for (int b = 0; b < VP_LLAMA_BUFFERS; b++)
            used += rig.plan.place[g].buffer[b].likely;
        assert_true(used <= MIB(1900));
        assert_true(used + MIB(60) > MIB(1900) || rig.plan.gpu_host_experts[g] == 0);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(the_output_layer_counts_and_goes_first),
        T(shares_divide_the_layers),
        T(a_tied_output_is_a_second_copy),
        T(a_mapped_range_spans_what_lies_between),
        T(single_tensors_can_be_placed),
        T(experts_can_stay_on_the_host),
        T(quantised_values_need_flash_attention),
        T(a_measured_buffer_replaces_the_estimate),
        T(the_fit_interpolates_the_context),
        T(the_fit_lowers_layers_last),
        T(the_fit_moves_experts_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
