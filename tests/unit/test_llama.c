/* Buffers of llama.cpp: figures of public logs and of the library's own allocation without memory,
 * and what must hold for all settings. */
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

/* Qwen3.5 27B: three recurrent layers for one with attention, whose queries carry a gate. */
static void qwen27b(void) {
    struct vp_block state = {.norms = 2,
                             .attention = {.kind = VP_ATTENTION_LINEAR,
                                           .linear = VP_LINEAR_GATED_DELTA,
                                           .key_heads = 16,
                                           .key_dim = 128,
                                           .value_heads = 48,
                                           .value_dim = 128,
                                           .conv_kernel = 4,
                                           .conv_channels = 10240,
                                           .state_elements = 128 * 6144},
                             .mlp = {.kind = VP_MLP_GATED, .intermediate = 17408}};
    struct vp_block full = rig_gqa(24, 4, 256, 17408);
    full.attention.output_gate = true;
    rig_begin(&rig, 5120, 248320);
    rig_layers(&rig, 64, state, full, 4);
    rig_ends(&rig, VP_DTYPE_Q8_0, false);
}

/* DeepSeek R1: 61 layers with a latent of 512 + 64. */
static void r1(void) {
    struct vp_block mla = {.norms = 2,
                           .attention = {.kind = VP_ATTENTION_MLA,
                                         .heads = 128,
                                         .kv_heads = 128,
                                         .head_dim = 192,
                                         .v_head_dim = 128,
                                         .q_lora_rank = 1536,
                                         .kv_lora_rank = 512,
                                         .qk_nope_head_dim = 128,
                                         .qk_rope_head_dim = 64},
                           .mlp = {.kind = VP_MLP_GATED, .intermediate = 18432}};
    rig_begin(&rig, 7168, 129280);
    rig_layers(&rig, 61, mla, none(), 0);
    rig_ends(&rig, VP_DTYPE_Q4_K, false);
    rig.scenario.llama.context = 8192;
}

/* gpt-oss-120b: 36 layers, every other one with a window of 128. */
static void gpt_oss(void) {
    struct vp_block window = rig_gqa(64, 8, 64, 2880);
    window.attention.window = 128;
    rig_begin(&rig, 2880, 201088);
    rig_layers(&rig, 36, window, rig_gqa(64, 8, 64, 2880), 2);
    rig_ends(&rig, VP_DTYPE_Q8_0, false);
    rig.scenario.llama.context = 8192;
}

static void llama8b(void) { rig_llama8b(&rig); }

/* ---- cache and states ---- */

static void a_cache_is_cells_times_widths(void **state) {
    (void)state;
    rig_llama8b(&rig);
    rig_plan(&rig);
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), MIB(512));
    assert_int_equal(rig.plan.token_bytes, 131072);
    rig.scenario.llama.context = 5000; /* rounded up to 5120 */
    assert_int_equal(rig_plan(&rig)->n_ctx, 5120);
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), MIB(640));
    rig.scenario.llama.type_k = rig.scenario.llama.type_v = VP_DTYPE_Q8_0;
    rig.scenario.llama.context = 32768;
    rig_plan(&rig);
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), MIB(2176));
}

static void slots_of_their_own_are_rounded_up_each(void **state) {
    (void)state;
    rig_llama8b(&rig);
    rig.scenario.llama.context = 10000;
    rig.scenario.llama.slots = 3;
    rig_plan(&rig);
    assert_int_equal(rig.plan.cells, 3584);
    assert_int_equal(rig.plan.streams, 3);
    assert_int_equal(rig.plan.n_ctx, 3 * 3584);
    rig.scenario.llama.unified = true;
    rig_plan(&rig);
    assert_int_equal(rig.plan.n_ctx, 10240);
}

static void older_builds_round_otherwise(void **state) {
    (void)state;
    rig_llama8b(&rig);
    rig.scenario.engine.rules.llama.cells_multiple = 32;
    rig.scenario.llama.flash = VP_FLASH_OFF;
    rig.scenario.llama.context = 5000;
    assert_int_equal(rig_plan(&rig)->n_ctx, 5024);
}

static void narrow_quantised_rows_are_padded(void **state) {
    (void)state;
    rig_begin(&rig, 896, 151936); /* Qwen2.5 0.5B */
    rig_layers(&rig, 24, rig_gqa(14, 2, 64, 4864), none(), 0);
    rig_ends(&rig, VP_DTYPE_Q8_0, true);
    rig.scenario.llama.context = 32768;
    rig.scenario.llama.type_k = rig.scenario.llama.type_v = VP_DTYPE_Q8_0;
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), 20402);
}

static void recurrent_states_are_per_sequence_and_copy(void **state) {
    (void)state;
    qwen27b();
    rig.scenario.llama.context = 262144;
    rig.scenario.llama.outputs_max = 1;
    rig_plan(&rig);
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), MIB(16384));
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_STATE), 14962);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_COMPUTE), 37802);
    assert_mib(rig_buffer(&rig, "GPU_Host", VP_LLAMA_COMPUTE), 27602);
    assert_mib(rig_buffer(&rig, "GPU_Host", VP_LLAMA_OUTPUT), 95);
    rig.scenario.llama.slots = 4;
    rig.scenario.llama.unified = true;
    rig.scenario.llama.rollback = 12;
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_STATE), 778050);
    assert_mib(rig.plan.state_bytes, 14962);
}

static void mamba_has_states_only(void **state) {
    struct vp_block mamba = {.norms = 1,
                             .attention = {.kind = VP_ATTENTION_LINEAR,
                                           .linear = VP_LINEAR_MAMBA1,
                                           .value_heads = 1,
                                           .value_dim = 5120,
                                           .conv_kernel = 4,
                                           .conv_channels = 5120,
                                           .state_elements = 16 * 5120}};
    (void)state;
    rig_begin(&rig, 2560, 50280); /* Mamba 2.8B */
    rig_layers(&rig, 64, mamba, none(), 0);
    rig_ends(&rig, VP_DTYPE_FP16, true);
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_STATE), 2375);
    assert_false(rig_has(&rig, "GPU0", VP_LLAMA_KV));
}

static void a_latent_cache_has_keys_only(void **state) {
    (void)state;
    r1();
    rig_plan(&rig);
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), MIB(549));
    rig.scenario.engine.rules.llama.latent = false; /* before, and in files made before */
    rig_plan(&rig);
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), MIB(39040));
}

static void windows_keep_a_batch_beside_them(void **state) {
    (void)state;
    gpt_oss();
    rig_plan(&rig);
    assert_int_equal(rig.plan.window_cells, 768);
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), MIB(315));
    rig.scenario.llama.ubatch = 2048;
    rig_plan(&rig);
    assert_int_equal(rig.plan.window_cells, 2304);
    rig.scenario.llama.ubatch = 512;
    rig.scenario.llama.slots = 4;
    rig.scenario.llama.unified = true;
    rig_plan(&rig);
    assert_int_equal(rig.plan.window_cells, 1024); /* four windows and a batch */
    rig.scenario.llama.swa_full = true;
    rig_plan(&rig);
    assert_int_equal(rig.plan.window_cells, 8192);
}

static void ollamas_former_engine_kept_4096(void **state) {
    (void)state;
    gpt_oss();
    rig.scenario.engine.rules.llama.window_kept = 4096;
    rig_plan(&rig);
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), MIB(450));
}

static void a_window_in_all_layers_is_no_window(void **state) {
    struct vp_block window = rig_gqa(32, 8, 128, 14336);
    (void)state;
    window.attention.window = 1024;
    rig_begin(&rig, 4096, 32000);
    rig_layers(&rig, 32, window, none(), 0);
    rig_ends(&rig, VP_DTYPE_Q8_0, false);
    rig_plan(&rig);
    assert_int_equal(rig.plan.window_cells, 0);
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), MIB(512));
}

/* ---- compute ---- */

static void the_largest_phase_wins(void **state) {
    struct vp_llama *l = &rig.scenario.llama;
    (void)state;
    rig_llama8b(&rig);
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_COMPUTE), 25850);
    assert_int_equal(rig.plan.place[0].phase, VP_LLAMA_PHASE_LOGITS);
    assert_mib(rig_buffer(&rig, "GPU_Host", VP_LLAMA_COMPUTE), 2001);
    l->context = 16384;
    l->outputs_max = 4;
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_COMPUTE), 12401);
    assert_int_equal(rig.plan.place[0].phase, VP_LLAMA_PHASE_FEED_FORWARD);
    l->context = 32768;
    l->flash = VP_FLASH_OFF;
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_COMPUTE), 214801);
    assert_int_equal(rig.plan.place[0].phase, VP_LLAMA_PHASE_ATTENTION);
    assert_mib(rig_buffer(&rig, "GPU_Host", VP_LLAMA_COMPUTE), 8401);
}

static void logits_do_not_fill_every_gap(void **state) {
    (void)state;
    rig_begin(&rig, 2560, 151936); /* Qwen1.5 4B: as many heads for keys as for queries */
    rig_layers(&rig, 40, rig_gqa(20, 20, 128, 6912), none(), 0);
    rig_ends(&rig, VP_DTYPE_Q4_0, false);
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_COMPUTE), 32076);
    rig.scenario.llama.context = 8192;
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_COMPUTE), 30175);
}

static void the_processor_alone_has_one_buffer(void **state) {
    (void)state;
    rig_llama8b(&rig);
    rig.scenario.hardware.count = 0;
    rig_plan(&rig);
    assert_int_equal(rig.plan.gpus, 0);
    assert_mib(rig_buffer(&rig, "CPU", VP_LLAMA_COMPUTE), 26650);
    assert_int_equal(rig_buffer(&rig, "CPU", VP_LLAMA_KV), MIB(512));
    assert_false(rig_has(&rig, "GPU_Host", VP_LLAMA_COMPUTE));
}

static void without_layers_on_the_gpu_weights_are_copied_over(void **state) {
    (void)state;
    rig_llama8b(&rig);
    rig.scenario.llama.gpu_layers = 0;
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_COMPUTE), 79081);
    assert_int_equal(rig.plan.place[0].phase, VP_LLAMA_PHASE_COPY);
    assert_false(rig_has(&rig, "GPU0", VP_LLAMA_MODEL));
    rig.scenario.llama.no_op_offload = true;
    rig_plan(&rig);
    assert_false(rig_has(&rig, "GPU0", VP_LLAMA_COMPUTE));
}

static void several_gpus_copy_their_inputs(void **state) {
    (void)state;
    rig_llama8b(&rig);
    rig.scenario.hardware.count = 2;
    rig.scenario.llama.context = 8192;
    rig_plan(&rig);
    assert_true(rig.plan.pipeline);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_COMPUTE), 17204);
    assert_mib(rig_buffer(&rig, "GPU1", VP_LLAMA_COMPUTE), 35455);
    assert_mib(rig_buffer(&rig, "GPU_Host", VP_LLAMA_COMPUTE), 4805);
    rig.scenario.llama.split = VP_SPLIT_NONE;
    rig_plan(&rig);
    assert_false(rig.plan.pipeline);
    assert_false(rig_has(&rig, "GPU1", VP_LLAMA_COMPUTE));
}

/* Granite 8B in a log of May 2026, Mistral 22B in one of 2024. */
static void older_builds_convert_the_mask(void **state) {
    struct vp_llama_rules *rules = &rig.scenario.engine.rules.llama;
    (void)state;
    rig_begin(&rig, 4096, 100352);
    rig_layers(&rig, 40, rig_gqa(32, 8, 128, 12800), none(), 0);
    rig_ends(&rig, VP_DTYPE_Q8_0, false);
    rig.scenario.llama.context = 131072;
    rules->mask_cast = true;
    rig_plan(&rig);
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_COMPUTE), 41601);
    assert_int_equal(rig.plan.place[0].phase, VP_LLAMA_PHASE_MASK_CAST);
    assert_mib(rig_buffer(&rig, "GPU_Host", VP_LLAMA_COMPUTE), 27201);
    rig_end(&rig);

    rig_begin(&rig, 6144, 32768);
    rig_layers(&rig, 56, rig_gqa(48, 8, 128, 16384), none(), 0);
    rig_ends(&rig, VP_DTYPE_Q6_K, false);
    rig.scenario.llama.context = 49152;
    rig.scenario.llama.type_k = rig.scenario.llama.type_v = VP_DTYPE_Q8_0;
    rig.scenario.llama.embeddings = true;
    rules->mask_cast = true;
    rules->scratch_counted = rules->index_tensors = rules->rotated = false;
    rules->host_inputs = 1;
    rig_plan(&rig);
    assert_int_equal(rig_buffer(&rig, "GPU0", VP_LLAMA_KV), MIB(5712));
    assert_mib(rig_buffer(&rig, "GPU0", VP_LLAMA_COMPUTE), 19200);
    assert_mib(rig_buffer(&rig, "GPU_Host", VP_LLAMA_COMPUTE), 10801);
    assert_mib(rig_buffer(&rig, "GPU_Host", VP_LLAMA_OUTPUT), 15);
}

/* ---- what must hold ---- */

static uint64_t total(void) {
    uint64_t sum = 0;
    rig_plan(&rig);
    for (uint32_t p = 0; p < rig.plan.places; p++)
        for (int b = 0; b < VP_LLAMA_BUFFERS; b++)
            sum += rig.plan.place[p].buffer[b].likely;
    return sum;
}

static void rows_add_up_to_the_buffers(void **state) {
    static void (*const MODELS[])(void) = {llama8b, qwen27b, r1, gpt_oss};
    (void)state;
    for (size_t m = 0; m < sizeof MODELS / sizeof *MODELS; m++) {
        if (m > 0)
            rig_end(&rig);
        MODELS[m]();
        rig.scenario.hardware.count = 3;
        rig.scenario.llama.gpu_layers = 20;
        uint64_t buffers = total(), rows = 0;
        for (uint32_t i = 0; i < rig.ledger.count; i++)
            if (rig.ledger.rows[i].component != VP_C_RUNTIME)
                rows += rig.ledger.rows[i].bytes.likely;
        assert_int_equal(rows, buffers);
    }
}

static void more_work_never_takes_less(void **state) {
    static void (*const MODELS[])(void) = {llama8b, qwen27b, r1, gpt_oss};
    (void)state;
    for (size_t m = 0; m < sizeof MODELS / sizeof *MODELS; m++) {
        if (m > 0)
            rig_end(&rig);
        MODELS[m]();
        for (int flash = 0; flash < 2; flash++) {
            struct vp_llama *l = &rig.scenario.llama;
            l->flash = flash ? VP_FLASH_ON : VP_FLASH_OFF;
            uint64_t before = 0;
            for (l->context = 512; l->context <= 65536; l->context += 3000) {
                uint64_t now = total();
                assert_true(now >= before);
                before = now;
            }
            l->context = 65536;
            before = 0;
            for (l->ubatch = 32; l->ubatch <= 2048; l->ubatch *= 2) {
                uint64_t now = total();
                assert_true(now >= before);
                before = now;
            }
            l->ubatch = 512;
            before = 0;
            for (l->slots = 1; l->slots <= 16; l->slots++) { /* of 4096 tokens each */
                l->context = 4096 * l->slots;
                uint64_t now = total();
                assert_true(now >= before);
                before = now;
            }
            l->slots = 1;
        }
    }
}

static void more_layers_on_the_gpu_leave_less_on_the_host(void **state) {
    (void)state;
    rig_llama8b(&rig);
    uint64_t gpu = 0, host = UINT64_MAX;
    for (uint64_t n = 1; n <= 33; n++) {
        rig.scenario.llama.gpu_layers = n;
        rig_plan(&rig);
        uint64_t now = rig_buffer(&rig, "GPU0", VP_LLAMA_MODEL);
        uint64_t left = rig_buffer(&rig, "GPU_Host", VP_LLAMA_MODEL);
        assert_true(now > gpu);
        assert_true(left < host);
        gpu = now;
        host = left;
    }
}

static void huge_sizes_are_told(void **state) {
    (void)state;
    rig_llama8b(&rig);
    rig.scenario.llama.context = UINT64_MAX - 5;
    vp_llama_make(&rig.f.arena, &rig.plan, NULL, &rig.scenario);
    assert_true(rig.plan.overflow);
    rig.scenario.llama.context = 4096;
    rig.block[0].attention.heads = UINT64_MAX / 2;
    vp_llama_make(&rig.f.arena, &rig.plan, NULL, &rig.scenario);
    assert_true(rig.plan.overflow);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_cache_is_cells_times_widths),
        T(slots_of_their_own_are_rounded_up_each),
        T(older_builds_round_otherwise),
        T(narrow_quantised_rows_are_padded),
        T(recurrent_states_are_per_sequence_and_copy),
        T(mamba_has_states_only),
        T(a_latent_cache_has_keys_only),
        T(windows_keep_a_batch_beside_them),
        T(ollamas_former_engine_kept_4096),
        T(a_window_in_all_layers_is_no_window),
        T(the_largest_phase_wins),
        T(logits_do_not_fill_every_gap),
        T(the_processor_alone_has_one_buffer),
        T(without_layers_on_the_gpu_weights_are_copied_over),
        T(several_gpus_copy_their_inputs),
        T(older_builds_convert_the_mask),
        T(rows_add_up_to_the_buffers),
        T(more_work_never_takes_less),
        T(more_layers_on_the_gpu_leave_less_on_the_host),
        T(huge_sizes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
