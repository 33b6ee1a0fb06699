#include "tests/unit/sample_result.h"

#include <stdio.h>
#include <string.h>

#include "reports/words.h"

uint64_t mib(uint64_t n) { return n << 20; }

void sample_add(struct sample *f, enum vp_component component, enum vp_formula formula,
                uint32_t device, struct vp_amount bytes) {
    struct vp_row *row = vp_ledger_add(&f->result.ledger, component, formula, device, "a part");
    row->bytes = bytes;
    row->layers = 80;
    row->confidence = vp_formula_kind(formula);
    vp_row_input(row, "hidden", 8192);
    vp_row_input(row, "layers", 80);
}

void sample_settle(struct sample *f, uint32_t devices, uint64_t capacity, uint64_t usable) {
    struct vp_result *r = &f->result;
    r->devices = f->devices;
    r->device_count = devices;
    for (uint32_t i = 0; i < devices; i++) {
        struct vp_device *d = &f->devices[i];
        *d = (struct vp_device){.first_rank = i, .ranks = 1, .stage = i};
        snprintf(d->id, sizeof d->id, "gpu%u", (unsigned)i);
        d->peak_step = vp_ledger_peak(&r->ledger, i);
        for (uint32_t k = 0; k < r->ledger.count; k++)
            if (r->ledger.rows[k].device == i)
                d->present[r->ledger.rows[k].component] = true;
        for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
            d->component[c] =
                vp_ledger_component(&r->ledger, i, (enum vp_component)c, d->peak_step);
            d->confidence[c] = vp_ledger_confidence(&r->ledger, i, (enum vp_component)c);
        }
        d->need = vp_ledger_at(&r->ledger, i, d->peak_step);
        d->capacity_bytes = capacity;
        d->usable_bytes = usable;
        d->reserved_bytes = usable;
        if (vp_words_headroom(d) < vp_words_headroom(&f->devices[r->worst]))
            r->worst = i;
    }
    r->headroom_bytes = vp_words_headroom(&f->devices[r->worst]);
    r->report.requested_bytes = usable;
    f->scenario.hardware.memory_bytes = capacity;
    f->scenario.hardware.memory = vp_exactly(capacity);
}

static void name_scenario(struct sample *f) {
    struct vp_scenario *s = &f->scenario;
    f->model.name = "llama-3.1-70b";
    f->model.dtype = VP_DTYPE_BF16;
    s->name = "llama3-70b-mi300x";
    s->model = &f->model;
    s->hardware.gpu.name = "AMD Instinct MI300X";
    s->hardware.count = 1;
    s->engine.name = "vllm";
    s->engine.version_text = "0.19";
    s->engine.utilization_ppb = 900000000;
    s->engine.max_model_len = 32768;
    s->parallel = (struct vp_parallel){
        .tensor = 1, .pipeline = 1, .data = 1, .expert = 1, .context = 1, .attention_data = 1};
    s->precision.weights = "fp8";
    s->precision.kv_cache = VP_DTYPE_FP8;
    s->serve = (struct vp_serve){.context = 32768, .concurrency = 16};
    s->source[VP_F_CONTEXT] = (struct vp_source){
        .origin = VP_ORIGIN_FILE, .pos = {"plan.yaml", 7, 12}, .key = "serve.context"};
    s->source[VP_F_TENSOR] = (struct vp_source){.origin = VP_ORIGIN_DEFAULT, .why = "one rank"};
}

static void fill_figures(struct sample *f) {
    struct vp_result *r = &f->result;
    r->params_total = r->params_active = UINT64_C(70553706496);
    r->kv = (struct vp_kv_report){.known = true,
                                  .bytes_per_token = 163840,
                                  .block_size = 16,
                                  .blocks = 40420,
                                  .tokens = 646720,
                                  .page_bytes = 2621440,
                                  .max_concurrency_milli = 19736,
                                  .max_context = 646720,
                                  .group_count = 1};
    r->kv.group[0] = (struct vp_kv_group){.kind = "full",
                                          .layers = 80,
                                          .groups = 1,
                                          .bytes_per_token = 2048,
                                          .pages_per_sequence = 2048};
    r->report.weights = vp_exactly(mib(69335));
    r->report.activation_peak = (struct vp_amount){mib(1500), mib(1946), mib(2300)};
    r->report.non_torch = (struct vp_amount){mib(400), mib(676), mib(900)};
    r->report.graph = (struct vp_amount){mib(500), mib(1065), mib(1700)};
    r->report.available_kv = (struct vp_amount){mib(100000), mib(101069), mib(102000)};
    r->report.num_gpu_blocks = (struct vp_amount){40000, 40420, 40800};
    r->report.kv_cache_tokens = (struct vp_amount){640000, 646720, 652800};
    r->report.block_size = 16;
    r->report.max_concurrency_milli = (struct vp_amount){19531, 19736, 19921};
    r->report.estimated_max_model_len = vp_exactly(131072);
    r->prices = (struct vp_prices){mib(2560), mib(5120), 40384, 19, false};
    r->first_order =
        (struct vp_first_order){mib(67285), mib(81920), 0, mib(149205), (int64_t)mib(3687)};
}

static void fill_lists(struct sample *f) {
    f->assumptions[0] =
        (struct vp_assumption){"engine.args.max_num_batched_tokens", "8192",
                               "vLLM's default for cards of 70 GiB and more", VP_ORIGIN_DEFAULT};
    f->assumptions[1] =
        (struct vp_assumption){"hardware.memory", "191.98 GiB",
                               "profile mi300x, as hipMemGetInfo reports it", VP_ORIGIN_PROFILE};
    f->suggestions[0] = (struct vp_suggestion){"context",
                                               "32768",
                                               "16384",
                                               mib(112000),
                                               (int64_t)mib(64940),
                                               NULL,
                                               "shorter prompts only",
                                               NULL,
                                               "serve.context",
                                               "16384",
                                               0};
    f->suggestions[1] = (struct vp_suggestion){"weights",
                                               "fp8",
                                               "int4",
                                               mib(90000),
                                               (int64_t)mib(86940),
                                               "measurable loss",
                                               "about the same",
                                               NULL,
                                               "precision.weights",
                                               "int4",
                                               0};
    f->result.assumptions = f->assumptions;
    f->result.assumption_count = 2;
    f->result.suggestions = f->suggestions;
    f->result.suggestion_count = 2;
    vp_diag_add(&f->diags, VP_D_MEMORY_ASSUMED, NULL, "the device total is the driver's");
    vp_diag_add(&f->diags, VP_D_CONTEXT_BEYOND, &(struct vp_pos){"plan.yaml", 7, 12},
                "context 262144 is beyond the 131072 of the model");
    vp_diag_hint(&f->diags, "add rope_scaling or shorten the context");
    f->result.diags = &f->diags;
}

void sample_make(struct sample *f) {
    memset(f, 0, sizeof *f);
    f->diags.arena = f->result.ledger.arena = &f->arena;
    f->result.scenario = &f->scenario;
    f->result.mode = "serve";
    name_scenario(f);
    fill_figures(f);
    fill_lists(f);
    sample_add(f, VP_C_WEIGHTS, VP_FORMULA_W_MATRIX, 0, vp_exactly(mib(65259)));
    sample_add(f, VP_C_WEIGHTS, VP_FORMULA_W_VOCAB, 0, vp_exactly(mib(4076)));
    sample_add(f, VP_C_KV_CACHE, VP_FORMULA_KV_NEED, 0, vp_exactly(mib(81920)));
    sample_add(f, VP_C_ACTIVATIONS, VP_FORMULA_ACT_SAMPLER, 0, f->result.report.activation_peak);
    sample_add(f, VP_C_GRAPHS, VP_FORMULA_GRAPHS, 0, f->result.report.graph);
    sample_add(f, VP_C_RUNTIME, VP_FORMULA_NON_TORCH, 0, f->result.report.non_torch);
    sample_settle(f, 1, mib(196592), mib(176932));
}

void sample_make_short(struct sample *f) {
    f->result.verdict = VP_DOES_NOT_FIT;
    f->result.reason = VP_REASON_WEIGHTS;
    f->result.reason_text = "weights and overheads take 71.18 GiB, vLLM may take 57.60";
    sample_settle(f, 1, mib(65536), mib(58982));
}
