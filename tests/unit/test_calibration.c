/* Fits of kernel times: constants come back from made-up measurements, outliers do not move them,
 * times grow with shapes, a profile written and read again says the same. */
#include "planner/latency/calibrate.h"

#include <math.h>
#include <string.h>

#include "fixture.h"
#include "planner/base/text.h"
#include "planner/import/anchor_text.h"
#include "planner/import/calibration_reader.h"
#include "planner/latency/anchors.h"
#include "planner/latency/choose_shapes.h"
#include "planner/latency/kernels.h"
#include "planner/latency/least_squares.h"
#include "reports/calibration_yaml.h"

static const struct vp_gpu CARD = {.id = "card",
                                   .vendor = "nvidia",
                                   .bandwidth_gbs = 2000,
                                   .tflops_bf16 = 300,
                                   .tflops_fp8 = 600,
                                   .compute_units = 100,
                                   .cache_mib = 40};

/* ---- least squares ---- */

static void line_model(double *out, const void *data, const double *constants) {
    const double *x = data;
    for (int i = 0; i < 20; i++)
        out[i] = log(constants[0] + constants[1] * x[i]);
}

static void a_line_with_an_outlier(void **state) {
    struct vp_arena arena = {0};
    double x[20], measured[20], found[2];
    const struct vp_lsq_unknown unknown[] = {{1, 1e-3, 1e3, 0}, {1, 1e-3, 1e3, 0}};
    const struct vp_lsq problem = {.unknown = unknown,
                                   .unknowns = 2,
                                   .log_measured = measured,
                                   .rows = 20,
                                   .scale = 0.05,
                                   .steps = 60,
                                   .model = line_model,
                                   .data = x};
    (void)state;
    for (int i = 0; i < 20; i++) {
        x[i] = i;
        measured[i] = log(3 + 0.5 * i);
    }
    vp_lsq_solve(&arena, found, &problem);
    assert_true(fabs(found[0] - 3) < 1e-4);
    assert_true(fabs(found[1] - 0.5) < 1e-4);
    measured[7] += log(5); /* one measurement was disturbed */
    vp_lsq_solve(&arena, found, &problem);
    assert_true(fabs(found[0] - 3) < 0.1);
    assert_true(fabs(found[1] - 0.5) < 0.02);
    vp_arena_free(&arena);
}

static void constants_stay_in_their_range(void **state) {
    struct vp_arena arena = {0};
    double x[20], measured[20], found[2];
    const struct vp_lsq_unknown unknown[] = {{1, 1e-3, 2, 0}, {1, 1e-3, 1e3, 0}};
    const struct vp_lsq problem = {.unknown = unknown,
                                   .unknowns = 2,
                                   .log_measured = measured,
                                   .rows = 20,
                                   .scale = 0.05,
                                   .steps = 60,
                                   .model = line_model,
                                   .data = x};
    (void)state;
    for (int i = 0; i < 20; i++) {
        x[i] = i;
        measured[i] = log(3 + 0.5 * i);
    }
    vp_lsq_solve(&arena, found, &problem);
    assert_true(found[0] <= 2.0000001);
    vp_arena_free(&arena);
}

/* ---- made-up cards ---- */

/* What a card of these constants would show. */
static void make_constants(double *constant, enum vp_form form) {
    memset(constant, 0, VP_FORM_CONSTANT_COUNT * sizeof *constant);
    constant[VP_C_GEMM_LAUNCH] = 4;
    constant[VP_C_GEMM_TFLOPS] = 240;
    constant[VP_C_GEMM_MEMORY] = 1600;
    constant[VP_C_GEMM_CACHE] = 4000;
    constant[VP_C_GEMM_OCCUPANCY] = 4;
    constant[VP_C_GEMM_WAVE] = 0.2;
    constant[VP_C_GEMM_FILL] = 100;
    constant[VP_C_GEMM_SERIAL] = 0.6;
    constant[VP_C_GEMM_NORM] = 3;
    constant[VP_C_GEMM_TILE_M] = constant[VP_C_GEMM_TILE_N] = 128;
    constant[VP_C_PREFILL_LAUNCH] = 8;
    constant[VP_C_PREFILL_TFLOPS] = 180;
    constant[VP_C_PREFILL_MEMORY] = 1300;
    constant[VP_C_PREFILL_TILE] = 0.2;
    constant[VP_C_PREFILL_BLOCK] = 0.8;
    constant[VP_C_PREFILL_SERIAL] = 1;
    constant[VP_C_PREFILL_WAVE] = 0.3;
    constant[VP_C_PREFILL_NORM] = 2;
    constant[VP_C_DECODE_LAUNCH] = 9;
    constant[VP_C_DECODE_MEMORY] = 1700;
    constant[VP_C_DECODE_CACHE] = 3500;
    constant[VP_C_DECODE_OCCUPANCY] = 1.5;
    constant[VP_C_DECODE_BLOCK] = 3;
    constant[VP_C_DECODE_TFLOPS] = 150;
    constant[VP_C_DECODE_SERIAL] = 0.6;
    constant[VP_C_DECODE_NORM] = 1.6;
    for (int c = 0; c < VP_FORM_CONSTANT_COUNT; c++)
        if (vp_constants[c].form != form)
            constant[c] = 0;
}

static struct vp_calibration bare(void) {
    return (struct vp_calibration){
        .gpu = "card", .made = "", .units = 100, .cache_bytes = 40 * 1048576.0};
}

static void add(struct vp_kernel_samples *s, const struct vp_calibration *c, const double *constant,
                struct vp_shape shape) {
    struct vp_kernel_sample *row = &s->items[s->count++];
    *row = (struct vp_kernel_sample){
        .shape = shape, .copies = s->form == VP_FORM_GEMM ? 6 : 1, .at.row = s->count};
    const struct vp_form_case made = vp_fit_case(c, s, row);
    row->us = vp_form_us(&made, constant);
}

/* A few hundred shapes of the form. */
static struct vp_kernel_samples make_samples(struct vp_arena *arena, enum vp_form form) {
    static const double M[] = {1, 4, 16, 48, 128, 512, 1024, 4096};
    static const double N[] = {256, 1024, 2560, 4096, 8192, 28672};
    static const double BATCH[] = {1, 4, 16, 64, 256}, TOKENS[] = {16, 128, 512, 2048, 8192};
    static const double HEADS[] = {8, 32};
    const struct vp_calibration c = bare();
    double constant[VP_FORM_CONSTANT_COUNT];
    struct vp_kernel_samples s = {.form = form, .dtype = "bfloat16"};
    s.items = VP_NEW_ARRAY(arena, 400, struct vp_kernel_sample);
    make_constants(constant, form);
    if (form == VP_FORM_GEMM) {
        for (int m = 0; m < 8; m++)
            for (int n = 0; n < 6; n++)
                for (int k = 0; k < 6; k++)
                    add(&s, &c, constant, (struct vp_shape){{M[m], N[n], N[k]}});
        return s;
    }
    for (int b = 0; b < 5; b++)
        for (int t = 0; t < 5; t++)
            for (int h = 0; h < 2; h++)
                for (double groups = 1; groups <= 8; groups *= 2)
                    add(&s, &c, constant,
                        (struct vp_shape){{BATCH[b], TOKENS[t], HEADS[h], HEADS[h] / groups, 128}});
    return s;
}

static struct vp_form_fit fit_of(struct vp_arena *arena, const struct vp_kernel_samples *samples,
                                 struct vp_fit_outliers *outliers) {
    struct vp_form_fit fit;
    struct vp_calibration c = bare();
    vp_fit_form(arena, &fit, &c, &CARD, samples, outliers);
    return fit;
}

static void assert_near(double a, double b, double share) {
    if (fabs(a / b - 1) > share)
        fail_msg("%g is not within %g %% of %g", a, 100 * share, b);
}

static void constants_come_back(void **state) {
    static const enum vp_form_constant SEEN[] = {
        VP_C_GEMM_LAUNCH,    VP_C_GEMM_TFLOPS,   VP_C_GEMM_MEMORY,   VP_C_PREFILL_LAUNCH,
        VP_C_PREFILL_TFLOPS, VP_C_DECODE_LAUNCH, VP_C_DECODE_MEMORY, VP_C_DECODE_BLOCK};
    struct vp_arena arena = {0};
    (void)state;
    for (int form = 0; form < VP_FORMS; form++) {
        double truth[VP_FORM_CONSTANT_COUNT];
        struct vp_fit_outliers outliers;
        struct vp_kernel_samples samples = make_samples(&arena, (enum vp_form)form);
        struct vp_form_fit fit = fit_of(&arena, &samples, &outliers);
        make_constants(truth, (enum vp_form)form);
        assert_true(fit.known);
        assert_true(fit.quality.p90 < 0.05);
        assert_int_equal(fit.quality.rows, samples.count);
        for (size_t i = 0; i < sizeof SEEN / sizeof *SEEN; i++)
            if (vp_constants[SEEN[i]].form == (enum vp_form)form)
                assert_near(fit.constant[SEEN[i]], truth[SEEN[i]], 0.15);
    }
    vp_arena_free(&arena);
}

static void outliers_are_named_and_move_nothing(void **state) {
    struct vp_arena arena = {0};
    struct vp_fit_outliers outliers;
    struct vp_kernel_samples samples = make_samples(&arena, VP_FORM_GEMM);
    struct vp_form_fit clean = fit_of(&arena, &samples, &outliers);
    (void)state;
    assert_int_equal(outliers.count, 0);
    samples.items[40].us *= 3;
    samples.items[170].us *= 4;
    struct vp_form_fit fit = fit_of(&arena, &samples, &outliers);
    assert_int_equal(outliers.count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t row = outliers.items[i].at.row - 1;
        assert_true(row == 40 || row == 170);
        assert_near(outliers.items[i].ratio, row == 40 ? 3 : 4, 0.1);
    }
    assert_near(fit.constant[VP_C_GEMM_TFLOPS], clean.constant[VP_C_GEMM_TFLOPS], 0.05);
    assert_near(fit.constant[VP_C_GEMM_MEMORY], clean.constant[VP_C_GEMM_MEMORY], 0.05);
    vp_arena_free(&arena);
}

static void order_and_few_rows(void **state) {
    struct vp_arena arena = {0};
    struct vp_fit_outliers outliers;
    struct vp_kernel_samples samples = make_samples(&arena, VP_FORM_DECODE), none = samples;
    (void)state;
    none.count = 0;
    assert_false(fit_of(&arena, &none, &outliers).known);
    none.count = 1; /* what is believed of such cards, moved by one row */
    struct vp_form_fit one = fit_of(&arena, &none, &outliers);
    assert_true(one.known);
    struct vp_calibration c = bare();
    struct vp_form_case first = vp_fit_case(&c, &samples, &samples.items[0]);
    assert_near(vp_fitted_us(&one, &first), samples.items[0].us, 0.1);
    struct vp_form_fit fit = fit_of(&arena, &samples, &outliers);
    struct vp_form_fit again = fit_of(&arena, &samples, &outliers);
    assert_memory_equal(fit.constant, again.constant, sizeof fit.constant);
    vp_arena_free(&arena);
}

/* A bigger shape never takes less time by the form alone. */
static void forms_grow(void **state) {
    static const struct vp_shape SMALL[VP_FORMS] = {
        {{1, 1024, 1024}}, {{1, 64, 8, 8, 64}}, {{1, 64, 8, 8, 64}}};
    double constant[VP_FORM_CONSTANT_COUNT];
    (void)state;
    for (int form = 0; form < VP_FORMS; form++) {
        make_constants(constant, (enum vp_form)form);
        for (uint32_t d = 0; d < vp_shape_sizes((enum vp_form)form); d++) {
            struct vp_form_case c = {
                .form = (enum vp_form)form, .shape = SMALL[form], .units = 100, .weight_bytes = 2};
            if (form != VP_FORM_GEMM && d == 3)
                continue; /* KV heads: fewer rows for each */
            double before = 0;
            for (int i = 0; i < 8; i++, c.shape.size[d] *= 2) {
                double us = vp_form_us(&c, constant);
                /* a full memory rate needs blocks for all units: more of them may be quicker */
                assert_true(us >= before * 0.75);
                before = us;
            }
            assert_true(before > vp_form_us(&(struct vp_form_case){.form = (enum vp_form)form,
                                                                   .shape = SMALL[form],
                                                                   .units = 100,
                                                                   .weight_bytes = 2},
                                            constant));
        }
    }
}

/* ---- anchors ---- */

static void anchors_correct_near_them_only(void **state) {
    struct vp_shape near = {{16, 4096, 4096}}, far = {{8192, 256, 65536}};
    struct vp_anchor anchor = vp_anchor_at(VP_FORM_GEMM, &near, log(1.5));
    struct vp_form_fit fit = {.known = true, .anchors = &anchor, .anchor_count = 1, .reach = 1};
    (void)state;
    assert_near(vp_anchor_factor(&fit, VP_FORM_GEMM, &near), 1.5, 0.01);
    assert_near(vp_anchor_factor(&fit, VP_FORM_GEMM, &far), 1, 0.001);
    fit.anchor_count = 0;
    assert_near(vp_anchor_factor(&fit, VP_FORM_GEMM, &near), 1, 1e-12);
}

static void anchor_lines(void **state) {
    static const char PROFILE[] = "gemm:\n  bf16:\n    anchors: |\n      1 2 4 -10\n"
                                  "      8 16 32 7\n    reach: 2\nmade: x\n";
    struct fixture f;
    struct vp_anchor_texts texts;
    struct vp_anchor anchors[4];
    (void)state;
    fixture_begin(&f);
    struct vp_bytes rest =
        vp_anchor_text_cut(&f.ctx, &texts, (struct vp_bytes){PROFILE, sizeof PROFILE - 1});
    assert_int_equal(texts.count, 1);
    assert_int_equal(texts.items[0].line, 3);
    assert_string_equal(vp_arena_text(&f.arena, rest.data, rest.size),
                        "gemm:\n  bf16:\n    anchors: |\n\n\n    reach: 2\nmade: x\n");
    assert_null(vp_anchor_text_of(&texts, 2));
    const struct vp_anchor_text *text = vp_anchor_text_of(&texts, 3);
    assert_int_equal(vp_anchor_text_lines(text->text), 2);
    assert_int_equal(vp_anchor_text_read(anchors, VP_FORM_GEMM, text->text), 0);
    assert_near(exp2((double)anchors[1].at[2]), 32, 1e-6);
    assert_near((double)anchors[0].log_ratio, -0.01, 1e-6);
    static const struct {
        const char *text;
        uint32_t wrong;
    } BAD[] = {{"1 2 4 -10\n1 2 4\n", 2},
               {"1 2 4 5 6\n", 1},
               {"0 2 4 5\n", 1},
               {"1 2 4 x\n", 1},
               {"1 2 4 -\n", 1},
               {"\n", 1},
               {"1 2 9999999999999 5\n", 1}};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_int_equal(vp_anchor_text_read(anchors, VP_FORM_GEMM,
                                             (struct vp_bytes){BAD[i].text, strlen(BAD[i].text)}),
                         BAD[i].wrong);
    fixture_end(&f);
}

/* ---- shapes ---- */

static void chosen_shapes_are_spread(void **state) {
    struct vp_arena arena = {0};
    uint32_t chosen[400];
    struct vp_kernel_samples samples = make_samples(&arena, VP_FORM_GEMM);
    bool small = false, large = false;
    (void)state;
    assert_int_equal(vp_choose_shapes(&arena, chosen, &samples, 0), 0);
    assert_int_equal(vp_choose_shapes(&arena, chosen, &samples, 1000), samples.count);
    assert_int_equal(vp_choose_shapes(&arena, chosen, &samples, 40), 40);
    for (int i = 0; i < 40; i++) {
        assert_true(i == 0 || chosen[i] > chosen[i - 1]);
        small |= samples.items[chosen[i]].shape.size[0] <= 4;
        large |= samples.items[chosen[i]].shape.size[0] >= 1024;
    }
    assert_true(small && large);
    vp_arena_free(&arena);
}

/* ---- a profile ---- */

static struct vp_calibration everything(struct vp_arena *arena,
                                        struct vp_calibrate_report *report) {
    static struct vp_reduce_sample reduces[] = {{8, true, 1024, 10, {0}},
                                                {8, true, 1048576, 40, {0}},
                                                {8, true, 1048576, 44, {0}},
                                                {2, false, 4096, 20, {0}}};
    static struct vp_figure_sample figures[] = {{"copy", 1700, {0}},
                                                {"read", 1750, {0}},
                                                {"launch", 5.5, {0}},
                                                {"host_to_device", 50, {0}},
                                                {"context", 600000000, {0}}};
    static const struct vp_fit_source SOURCE = {"vLLM 0.19.0", "made up"};
    static struct vp_serving_fit serving;
    struct vp_calibration c = bare();
    struct vp_samples samples = {.reduces = reduces,
                                 .reduce_count = 4,
                                 .figures = figures,
                                 .figure_count = 5,
                                 .kernel_count = VP_FORMS};
    samples.kernels = VP_NEW_ARRAY(arena, VP_FORMS, struct vp_kernel_samples);
    for (int form = 0; form < VP_FORMS; form++)
        samples.kernels[form] = make_samples(arena, (enum vp_form)form);
    vp_calibrate(arena, &c, report, &CARD, &samples, &SOURCE);
    serving = (struct vp_serving_fit){
        .engine = "vllm", .source = SOURCE, .tpot = {10, 0.1, 0.3}, .ttft = {9, 0.2, 0.5}};
    double value = 1.5;
#define X(member, what) serving.member = value++;
#include "planner/model/serving_constants.def"
#undef X
    c.serving = &serving;
    c.serving_count = 1;
    c.made = "vramplan calibrate made-up.csv";
    return c;
}

static void assert_same_fit(const struct vp_form_fit *a, const struct vp_form_fit *b) {
    assert_int_equal(a->known, b->known);
    assert_memory_equal(a->constant, b->constant, sizeof a->constant);
    assert_int_equal(a->anchor_count, b->anchor_count);
    assert_memory_equal(&a->quality, &b->quality, sizeof a->quality);
    assert_memory_equal(&a->least, &b->least, sizeof a->least);
    assert_memory_equal(&a->most, &b->most, sizeof a->most);
    if (!a->known)
        return;
    assert_memory_equal(a->range_p90, b->range_p90, sizeof(double) * 2);
    assert_string_equal(a->source.release, b->source.release);
    assert_string_equal(a->source.origin, b->source.origin);
    for (uint32_t i = 0; i < a->anchor_count; i++) {
        for (int d = 0; d < VP_SHAPE_SIZES; d++)
            assert_float_equal(a->anchors[i].at[d], b->anchors[i].at[d], 1e-5);
        assert_float_equal(a->anchors[i].log_ratio, b->anchors[i].log_ratio, 0.00051);
    }
}

static void a_profile_comes_back(void **state) {
    struct fixture f;
    struct vp_calibrate_report report;
    struct vp_calibration read;
    (void)state;
    fixture_begin(&f);
    struct vp_buf first = {.arena = &f.arena}, second = {.arena = &f.arena};
    struct vp_calibration made = everything(&f.arena, &report);
    assert_int_equal(report.count, VP_FORMS);
    vp_calibration_yaml(&first, &made);
    assert_int_equal(
        vp_calibration_parse(&f.ctx, &read, (struct vp_bytes){first.data, first.size}, "p.yaml"),
        VP_OK);
    assert_string_equal(read.gpu, "card");
    for (int i = 0; i < VP_RATES; i++)
        assert_same_fit(&made.gemm[i], &read.gemm[i]);
    for (int i = 0; i < VP_KV_WIDTHS; i++) {
        assert_same_fit(&made.prefill[i], &read.prefill[i]);
        assert_same_fit(&made.decode[i], &read.decode[i]);
    }
    assert_int_equal(read.reduce_count, 2);
    assert_int_equal(read.reduces[1].gpus, 8);
    assert_int_equal(read.reduces[1].count, 2); /* the same size twice is one */
    assert_near(read.reduces[1].points[1].us, sqrt(40 * 44), 1e-4);
    assert_near(read.copy_gbs, 1700, 1e-9);
    assert_near(read.read_gbs, 1750, 1e-9);
    assert_near(read.launch_us, 5.5, 1e-9);
    assert_int_equal(read.memory.context_bytes, 600000000);
#define X(member, what) assert_near(read.serving[0].member, made.serving[0].member, 1e-12);
#include "planner/model/serving_constants.def"
#undef X
    assert_memory_equal(&read.serving[0].ttft, &made.serving[0].ttft, sizeof made.serving[0].ttft);
    vp_calibration_yaml(&second, &read);
    assert_string_equal(second.data, first.data);
    fixture_end(&f);
}

static void faults_of_profiles(void **state) {
    static const char HEAD[] = "vramplan_calibration: 1\ngpu: card\nunits: 100\n";
    static const struct {
        const char *text;
        enum vp_diag_id id;
        const char *words;
        uint32_t line;
    } CASES[] = {
        {"launch_us: fast\n", VP_D_BAD_VALUE, "launch_us must be a number", 4},
        {"gemms: {}\n", VP_D_UNKNOWN_KEY, "gemms", 4},
        {"gemm: {bf17: {}}\n", VP_D_UNKNOWN_KEY, "bf17", 4},
        {"gemm:\n  bf16: {least: [1, 1, 1], most: [8, 8, 8]}\n", VP_D_MISSING_VALUE, "constants",
         5},
        {"gemm:\n  bf16:\n    least: [1, 1]\n", VP_D_BAD_VALUE, "three sizes", 6},
        {"gemm:\n  bf16:\n    constants: {tflops: -5}\n", VP_D_BAD_VALUE, "tflops", 6},
        {"gemm:\n  bf16:\n    reach: 1\n    anchors: |\n      1 2 4 5\n      1 2 4\n",
         VP_D_BAD_VALUE, "3 sizes and a correction", 9},
        {"allreduce: [{gpus: 8, points: [[1024, 5], [512, 4]]}]\n", VP_D_BAD_VALUE, "ascending", 4},
        {"allreduce: [{gpus: 1, points: [[1024, 5]]}]\n", VP_D_MISSING_VALUE, "2 or more", 4},
        {"serving: [{step_us: 4}]\n", VP_D_MISSING_VALUE, "engine", 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct fixture f;
        struct vp_calibration c;
        fixture_begin(&f);
        const char *text = vp_arena_printf(&f.arena, "%s%s", HEAD, CASES[i].text);
        assert_int_equal(
            vp_calibration_parse(&f.ctx, &c, (struct vp_bytes){text, strlen(text)}, "p.yaml"),
            VP_ERR_INPUT);
        const struct vp_diag *d = fixture_expect(&f, CASES[i].id, CASES[i].words);
        assert_int_equal(d->pos.line, CASES[i].line);
        fixture_end(&f);
    }
}

/* Any part of a profile is read, or refused with a reason. */
static void cut_profiles(void **state) {
    struct vp_arena arena = {0};
    struct vp_calibrate_report report;
    struct vp_buf text = {.arena = &arena};
    (void)state;
    struct vp_calibration made = everything(&arena, &report);
    vp_calibration_yaml(&text, &made);
    for (size_t n = 0; n < text.size; n += text.size / 150) {
        struct fixture f;
        struct vp_calibration read;
        fixture_begin(&f);
        enum vp_status status = vp_calibration_parse(
            &f.ctx, &read, (struct vp_bytes){vp_arena_text(&f.arena, text.data, n), n}, "p.yaml");
        assert_true(status == VP_OK || f.diags.errors > 0);
        fixture_end(&f);
    }
    vp_arena_free(&arena);
}

/* ---- times ---- */

static void intervals_hold_and_widen(void **state) {
    struct vp_arena arena = {0};
    struct vp_calibrate_report report;
    struct vp_calibration c = everything(&arena, &report);
    struct vp_kernels kernels = {.gpu = &CARD, .calibration = &c, .graphs = true};
    struct vp_gemm_shape inside = {VP_RATE_BF16, 64, 4096, 4096, 1, 0}, outside = inside;
    (void)state;
    outside.n = 4 * 28672;
    struct vp_time near = vp_gemm_time(&kernels, &inside), far = vp_gemm_time(&kernels, &outside);
    assert_int_equal(near.basis, VP_BASIS_CALIBRATED);
    assert_true(near.low < near.likely && near.likely < near.high);
    assert_true(far.high / far.likely > near.high / near.likely);
    /* four bits in memory, products in 16: between a quarter and all of the 16-bit time */
    struct vp_gemm_shape packed = {VP_RATE_BF16, 1, 28672, 8192, 1, 28672.0 * 8192 / 2},
                         full = packed;
    full.stored_bytes = 0;
    double quick = vp_gemm_time(&kernels, &packed).likely,
           slow = vp_gemm_time(&kernels, &full).likely;
    assert_true(quick < slow && quick > slow / 5);
    struct vp_time unpacking = vp_gemm_time(&kernels, &packed),
                   as_is = vp_gemm_time(&kernels, &full);
    assert_near(unpacking.high / unpacking.likely, 1.25 * as_is.high / as_is.likely, 1e-9);
    /* a type that was not measured: the memory rate is known, the products are of the class */
    struct vp_gemm_shape fp8 = {VP_RATE_FP8, 4096, 8192, 8192, 1, 0};
    struct vp_time borrowed = vp_gemm_time(&kernels, &fp8);
    assert_int_equal(borrowed.basis, VP_BASIS_CLASS);
    fp8.rate = VP_RATE_BF16;
    assert_true(borrowed.likely < vp_gemm_time(&kernels, &fp8).likely);
    /* another release: 8 bit may be twice as fast */
    c.gemm[VP_RATE_FP8] = c.gemm[VP_RATE_BF16];
    fp8.rate = VP_RATE_FP8;
    struct vp_time same = vp_gemm_time(&kernels, &fp8);
    kernels.other_release[VP_RATE_FP8] = true;
    struct vp_time other = vp_gemm_time(&kernels, &fp8);
    assert_near(other.low, same.low / 2, 1e-9);
    assert_near(other.high, same.high * 1.3, 1e-9);
    vp_arena_free(&arena);
}

static void all_reduces(void **state) {
    struct vp_arena arena = {0};
    struct vp_calibrate_report report;
    struct vp_calibration c = everything(&arena, &report);
    struct vp_kernels kernels = {
        .gpu = &CARD, .calibration = &c, .graphs = true, .node_devices = 8};
    (void)state;
    assert_near(vp_all_reduce_time(&kernels, 8, 1024).likely, 10, 1e-9);
    assert_near(vp_all_reduce_time(&kernels, 8, 32768).likely, sqrt(10 * sqrt(40.0 * 44)), 1e-3);
    assert_near(vp_all_reduce_time(&kernels, 8, 2097152).likely, 2 * sqrt(40.0 * 44), 1e-3);
    assert_int_equal(vp_all_reduce_time(&kernels, 8, 1024).basis, VP_BASIS_CALIBRATED);
    assert_int_equal(vp_all_reduce_time(&kernels, 16, 1024).basis, VP_BASIS_CLASS);
    assert_true(vp_all_reduce_time(&kernels, 1, 1024).likely <= 0);
    vp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_with_an_outlier),
        cmocka_unit_test(constants_stay_in_their_range),
        cmocka_unit_test(constants_come_back),
        cmocka_unit_test(outliers_are_named_and_move_nothing),
        cmocka_unit_test(order_and_few_rows),
        cmocka_unit_test(forms_grow),
        cmocka_unit_test(anchors_correct_near_them_only),
        cmocka_unit_test(anchor_lines),
        cmocka_unit_test(chosen_shapes_are_spread),
        cmocka_unit_test(a_profile_comes_back),
        cmocka_unit_test(faults_of_profiles),
        cmocka_unit_test(cut_profiles),
        cmocka_unit_test(intervals_hold_and_widen),
        cmocka_unit_test(all_reduces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
