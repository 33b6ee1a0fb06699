/* A training step as events: the peaks that follow from a stage's numbers, against figures worked
 * out by hand and against the instants of train_stage.h; schedules; that leaving out repeated micro
 * batches changes nothing. */
#include "tests/unit/fixture.h"

#include <stdlib.h>

#include "planner/timeline/step.h"
#include "planner/timeline/walk.h"

static const uint64_t MIB = 1 << 20;

enum { LAYERS = 6 };

/* A stage whose numbers are round: a layer keeps its input (4 MiB) and 3 tensors of 10, 20 and 2.
 */
struct bed {
    struct vp_arena arena;
    struct vp_scenario scenario;
    struct vp_model model;
    struct vp_train_stage stage;
    struct vp_train_layer layer[64];
    struct vp_tape tape;
    uint64_t flights[8];
};

static void set_layer(struct bed *bed, uint32_t i) {
    bed->layer[i] = (struct vp_train_layer){.layer = i,
                                            .segment = i,
                                            .tape = &bed->tape,
                                            .saved_bytes = 36 * MIB,
                                            .gradient_bytes = 7 * MIB};
}

static void begin(struct bed *bed, uint32_t layers) {
    struct vp_train_stage *s = &bed->stage;
    *bed = (struct bed){.flights = {1}};
    bed->scenario.model = &bed->model;
    bed->tape = (struct vp_tape){
        .item = {{.name = "input", .bytes = 4 * MIB, .on_input = true},
                 {.name = "a", .bytes = 10 * MIB},
                 {.name = "b", .bytes = 20 * MIB, .selective = VP_SELECT_CORE_ATTENTION},
                 {.name = "c", .bytes = 2 * MIB}},
        .count = 4,
        .saved_bytes = 36 * MIB,
        .input_bytes = 4 * MIB,
        .input_on_tape = true,
        .output_bytes = 4 * MIB,
        .forward_temp_bytes = 6 * MIB,
        .backward_temp_bytes = 15 * MIB,
    };
    for (uint32_t i = 0; i < layers; i++)
        set_layer(bed, i);
    s->count = s->chunks = 1;
    s->layer = bed->layer;
    s->layers = layers;
    s->first = s->last = true;
    s->embedding.saved_bytes = 1 * MIB;
    s->embedding.output_bytes = 4 * MIB;
    s->head.tape = (struct vp_tape){
        .item = {{.name = "input", .bytes = 4 * MIB, .on_input = true},
                 {.name = "norm", .bytes = 5 * MIB, .group = VP_TAPE_NORM},
                 {.name = "read", .bytes = 4 * MIB, .group = VP_TAPE_PROJECTION},
                 {.name = "scores", .bytes = 30 * MIB, .group = VP_TAPE_LOSS}},
        .count = 4,
        .saved_bytes = 43 * MIB,
        .input_bytes = 4 * MIB,
        .input_on_tape = true,
    };
    s->logits_peak_bytes = s->head.logits_peak_bytes = 90 * MIB;
    s->head.logits_bytes = 15 * MIB;
    s->head.peak_tape_bytes = 34 * MIB; /* what was read, scores */
    s->head_gradient_bytes = s->embedding_gradient_bytes = 8 * MIB;
    s->parameter_bytes = 58 * MIB;
    s->gradient_bytes = 7 * layers * MIB + 16 * MIB;
    s->optimizer_bytes = 116 * MIB;
    s->step_temp_bytes = 20 * MIB;
    s->gradients_grow = true;
    s->micro_batches = s->in_flight = 1;
    s->chunk_in_flight = bed->flights;
    s->workspace = vp_exactly(3 * MIB);
    bed->scenario.engine.rules.train.gathered_layers = 1;
    bed->scenario.engine.rules.train.scattered_layers = 1;
}

/* Sums, as train_stage.c makes them, and the instants. */
static void finish(struct bed *bed) {
    struct vp_train_stage *s = &bed->stage;
    s->saved_bytes = 0;
    for (uint32_t i = 0; i < s->layers; i++)
        s->saved_bytes += bed->layer[i].saved_bytes * bed->flights[bed->layer[i].chunk];
    if (s->first)
        s->saved_bytes += s->embedding.saved_bytes * bed->flights[0];
    if (s->last)
        s->saved_bytes += s->head.tape.saved_bytes * bed->flights[s->chunks - 1];
    s->static_bytes = s->parameter_bytes + s->optimizer_bytes + s->master_bytes + s->fp8_bytes +
                      s->workspace.likely + s->communication.likely;
    vp_train_stage_moments(s, &bed->scenario);
    assert_false(s->overflow);
}

static struct vp_walk *walk_with(struct bed *bed, bool tells, bool skips) {
    struct vp_allocator_settings settings = vp_allocator_defaults();
    struct vp_walk *walk = vp_walk_begin(&bed->arena, &settings, tells);
    struct vp_event_sink sink = vp_walk_sink(walk);
    if (!skips)
        sink.driver_calls = NULL;
    assert_true(vp_step_write(&bed->arena, &bed->scenario, &bed->stage, &sink));
    assert_true(vp_walk_end(walk));
    return walk;
}

static struct vp_walk *walk(struct bed *bed) { return walk_with(bed, false, true); }

static void end(struct bed *bed) { vp_arena_free(&bed->arena); }

static uint64_t phase(const struct vp_walk *w, enum vp_step step) {
    return w->steady.phase[step - VP_STEP_FORWARD].bytes;
}

/* What stays between two steps is there, nothing else. */
static void check_left(const struct bed *bed, const struct vp_walk *w) {
    uint64_t left = bed->stage.static_bytes;
    if (bed->stage.gradients_persist)
        left += bed->stage.gradient_bytes;
    assert_int_equal(w->now.bytes, left);
    assert_int_equal(w->now.kept, 0);
    assert_true(w->memory.allocated.now >= left);
}

static void check_moment(const struct bed *bed, const struct vp_walk *w, enum vp_step step) {
    const struct vp_walk_instant *walked = &w->steady.phase[step - VP_STEP_FORWARD];
    const struct vp_train_moment *said = &bed->stage.moment[step - VP_STEP_FORWARD];
    assert_int_equal(walked->bytes, said->total);
    assert_int_equal(walked->cause, said->cause);
    assert_int_equal(walked->layer, said->layer);
}

static void check_moments(const struct bed *bed, const struct vp_walk *w) {
    for (int i = 0; i < VP_TRAIN_MOMENTS; i++)
        check_moment(bed, w, (enum vp_step)(VP_STEP_FORWARD + i));
}

/* ---- one stage ---- */

static void a_plain_step(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, LAYERS);
    finish(&bed);
    struct vp_walk *w = walk(&bed);
    const uint64_t fixed = 58 + 116 + 3;
    /* all tapes, the head's norm, the loss */
    assert_int_equal(phase(w, VP_STEP_FORWARD), (fixed + 6 * 36 + 1 + 4 + 5 + 90) * MIB);
    assert_int_equal(w->steady.phase[0].cause, VP_CAUSE_LOSS);
    assert_int_equal(w->steady.phase[0].component[VP_C_LOGITS], 90 * MIB);
    /* the head's backward pass: logits, what the matrix read, its gradient */
    assert_int_equal(phase(w, VP_STEP_BACKWARD), (fixed + 6 * 36 + 1 + 4 + 5 + 4 + 15 + 8) * MIB);
    assert_int_equal(w->steady.phase[1].cause, VP_CAUSE_HEAD);
    /* all gradients, the embedding's included, and the gradient that came to it */
    assert_int_equal(phase(w, VP_STEP_BACKWARD_END), (fixed + 6 * 7 + 16 + 1 + 4) * MIB);
    assert_int_equal(phase(w, VP_STEP_OPTIMIZER), (fixed + 6 * 7 + 16 + 20) * MIB);
    assert_int_equal(w->steady.peak.bytes, phase(w, VP_STEP_FORWARD));
    /* the first step begins without optimizer states; its own step has them */
    assert_int_equal(w->first.peak.bytes, (fixed - 116 + 6 * 36 + 1 + 4 + 5 + 90) * MIB);
    assert_int_equal(w->first.phase[3].bytes, phase(w, VP_STEP_OPTIMIZER));
    assert_int_equal(w->steady.kept_peak, (6 * 36 + 1 + 4 + 5 + 4) * MIB);
    check_moments(&bed, w);
    check_left(&bed, w);
    end(&bed);
}

static void recomputed_layers(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, LAYERS);
    for (uint32_t i = 0; i < LAYERS; i++) {
        bed.layer[i].recomputed = true;
        bed.layer[i].saved_bytes = 4 * MIB;
        bed.layer[i].rebuilt_bytes = 32 * MIB;
    }
    bed.stage.logits_peak_bytes = 10 * MIB;
    finish(&bed);
    struct vp_walk *w = walk(&bed);
    /* gradients (7) come faster than inputs (4) go: the first layer's backward pass, one tape, its
     * temporaries, the gradients of all others and of the head */
    assert_int_equal(phase(w, VP_STEP_BACKWARD), (177 + 4 + 32 + 1 + 15 + 8 + 5 * 7) * MIB);
    assert_int_equal(w->steady.phase[1].cause, VP_CAUSE_REBUILT);
    assert_int_equal(w->steady.phase[1].layer, 0);
    check_moments(&bed, w);
    check_left(&bed, w);
    end(&bed);
}

static void segments_are_rebuilt_together(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, LAYERS);
    for (uint32_t i = 0; i < LAYERS; i++) {
        bool inner = i % 3 > 0;
        bed.layer[i].recomputed = true;
        bed.layer[i].segment = i - i % 3;
        bed.layer[i].saved_bytes = inner ? 0 : 4 * MIB;
        bed.layer[i].rebuilt_bytes = inner ? 36 * MIB : 32 * MIB;
    }
    bed.stage.logits_peak_bytes = 10 * MIB;
    finish(&bed);
    struct vp_walk *w = walk(&bed);
    assert_int_equal(phase(w, VP_STEP_BACKWARD),
                     (177 + 4 + 32 + 36 + 36 + 1 + 15 + 8 + 3 * 7) * MIB);
    assert_int_equal(w->steady.phase[1].layer, 2);
    check_moments(&bed, w);
    check_left(&bed, w);
    end(&bed);
}

static void selective_recomputation(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, LAYERS);
    bed.scenario.train.recompute = (struct vp_recompute){.kind = VP_RECOMPUTE_SELECTIVE,
                                                         .selective = VP_SELECT_CORE_ATTENTION};
    for (uint32_t i = 0; i < LAYERS; i++) {
        bed.layer[i].saved_bytes = 16 * MIB;
        bed.layer[i].rebuilt_bytes = 20 * MIB;
    }
    finish(&bed);
    struct vp_walk *w = walk(&bed);
    assert_int_equal(w->steady.kept_peak, (6 * 16 + 20 + 1) * MIB);
    check_moments(&bed, w);
    check_left(&bed, w);
    end(&bed);
}

static void gathered_weights_and_whole_gradients(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, LAYERS);
    bed.scenario.engine.rules.train.gathered_layers = 2;
    bed.scenario.engine.rules.train.scattered_layers = 2;
    for (uint32_t i = 0; i < LAYERS; i++) {
        bed.layer[i].gathered_bytes = (20 + i) * MIB;
        bed.layer[i].scattered_bytes = (30 + i) * MIB;
        bed.layer[i].recomputed = true;
        bed.layer[i].saved_bytes = 4 * MIB;
        bed.layer[i].rebuilt_bytes = 32 * MIB;
    }
    bed.stage.embedding_gathered_bytes = 11 * MIB;
    bed.stage.head_gathered_bytes = 12 * MIB;
    bed.stage.logits_peak_bytes = 10 * MIB;
    finish(&bed);
    struct vp_walk *w = walk(&bed);
    /* layer 4: its own and the next one's weights, two layers' gradients on their way */
    assert_int_equal(phase(w, VP_STEP_BACKWARD),
                     (177 + 23 + 5 * 4 + 32 + 1 + 15 + 8 + 7 + 24 + 23 + 34 + 35) * MIB);
    assert_int_equal(w->steady.phase[1].layer, 4);
    assert_int_equal(w->steady.phase[1].bytes, bed.stage.moment[1].total);
    check_left(&bed, w);
    end(&bed);
}

static void accumulated_gradients(void **state) {
    (void)state;
    struct bed bed;
    begin(&bed, LAYERS);
    bed.stage.micro_batches = 5;
    bed.stage.gradients_grow = false;
    bed.stage.accumulation_temp_bytes = 9 * MIB;
    for (uint32_t i = 0; i < LAYERS; i++)
        bed.layer[i].gradient_temp_bytes = 3 * MIB;
    finish(&bed);
    struct vp_walk *w = walk(&bed);
    /* from the second micro batch on all gradients are there at the loss */
    assert_int_equal(phase(w, VP_STEP_FORWARD), (177 + 6 * 36 + 1 + 4 + 5 + 90 + 6 * 7 + 16) * MIB);
    assert_int_equal(w->steady.phase[0].micro_batch, 1);
    assert_int_equal(w->steady.phase[1].bytes, bed.stage.moment[1].total);
    check_left(&bed, w);
    end(&bed);
    begin(&bed, LAYERS); /* a buffer that is always there */
    bed.stage.micro_batches = 5;
    bed.stage.gradients_grow = false;
    bed.stage.gradients_persist = true;
    finish(&bed);
    w = walk(&bed);
    assert_int_equal(w->steady.phase[0].micro_batch, 0);
    check_moment(&bed, w, VP_STEP_FORWARD);
    check_moment(&bed, w, VP_STEP_BACKWARD);
    check_moment(&bed, w, VP_STEP_OPTIMIZER);
    check_left(&bed, w);
    end(&bed);
}

/* ---- pipelines ---- */

static void set_pipeline(struct bed *bed, uint32_t index, uint32_t count, uint64_t micro_batches) {
    struct vp_train_stage *s = &bed->stage;
    s->index = index;
    s->count = count;
    s->first = index == 0;
    s->last = index + 1 == count;
    s->micro_batches = micro_batches;
    s->in_flight = vp_min(micro_batches, count - index);
    bed->flights[0] = s->in_flight;
    s->gradients_grow = micro_batches == 1;
    if (!s->first)
        s->embedding_gradient_bytes = 0;
    if (!s->last) {
        s->head = (struct vp_head_tape){0};
        s->logits_peak_bytes = s->head_gradient_bytes = 0;
    }
    s->gradient_bytes = 7 * s->layers * MIB + s->embedding_gradient_bytes + s->head_gradient_bytes;
}

static void micro_batches_in_flight(void **state) {
    (void)state;
    for (uint32_t index = 0; index < 4; index++) {
        struct bed bed;
        begin(&bed, LAYERS);
        set_pipeline(&bed, index, 4, 16);
        finish(&bed);
        struct vp_walk *w = walk(&bed);
        uint64_t kept = (4 - index) * 6 * 36 * MIB;
        if (index == 0)
            kept += 4 * MIB;
        if (index == 3)
            kept += (4 + 5 + 4) * MIB;
        assert_int_equal(w->steady.kept_peak, kept);
        check_moment(&bed, w, VP_STEP_FORWARD);
        check_moment(&bed, w, VP_STEP_BACKWARD);
        check_moment(&bed, w, VP_STEP_OPTIMIZER);
        check_left(&bed, w);
        end(&bed);
    }
}

/* The same instants, whether repeats are left out or not. What is reserved depends on where things
 * lie and may come out lower, but seldom: true when it does. */
static bool check_same(const struct vp_walk *some, const struct vp_walk *all) {
    for (int i = 0; i < VP_TRAIN_MOMENTS; i++) {
        assert_int_equal(some->first.phase[i].bytes, all->first.phase[i].bytes);
        assert_int_equal(some->steady.phase[i].bytes, all->steady.phase[i].bytes);
        assert_memory_equal(some->steady.phase[i].component, all->steady.phase[i].component,
                            sizeof all->steady.phase[i].component);
    }
    assert_int_equal(some->steady.kept_peak, all->steady.kept_peak);
    assert_int_equal(some->memory.requested.peak, all->memory.requested.peak);
    assert_int_equal(some->memory.requested.now, all->memory.requested.now);
    assert_true(some->memory.reserved.peak <= all->memory.reserved.peak);
    assert_true(some->memory.reserved.peak * 10 >= all->memory.reserved.peak * 9);
    return some->memory.reserved.peak < all->memory.reserved.peak;
}

static uint64_t left_out(const struct vp_walk *w) {
    uint64_t n = 0;
    for (size_t i = 0; i < w->spans; i++)
        n += w->span[i].left_out;
    return n;
}

static void repeated_micro_batches_are_left_out(void **state) {
    (void)state;
    for (uint32_t index = 0; index < 4; index++) {
        struct bed bed;
        begin(&bed, LAYERS);
        set_pipeline(&bed, index, 4, 61);
        finish(&bed);
        struct vp_walk *some = walk_with(&bed, true, true), *all = walk_with(&bed, true, false);
        assert_false(check_same(some, all));
        assert_int_equal(left_out(all), 0);
        assert_true(left_out(some) >= 2 * 30); /* of both steps */
        end(&bed);
    }
}

static void virtual_stages_take_turns(void **state) {
    (void)state;
    for (uint64_t micro_batches = 1; micro_batches < 40; micro_batches += 3) {
        struct bed bed;
        begin(&bed, LAYERS);
        set_pipeline(&bed, 1, 4, micro_batches);
        bed.stage.chunks = 2;
        for (uint32_t i = LAYERS / 2; i < LAYERS; i++)
            bed.layer[i].chunk = 1;
        uint64_t flight = vp_min(2 * 2 + 4 + 1, 2 * micro_batches);
        bed.stage.in_flight = flight;
        bed.flights[0] = bed.flights[1] = 0;
        for (uint64_t k = 0; k < flight; k++)
            bed.flights[k % 8 / 4]++;
        finish(&bed);
        struct vp_walk *some = walk_with(&bed, true, true), *all = walk_with(&bed, false, false);
        assert_false(check_same(some, all));
        check_left(&bed, some);
        if (micro_batches >= 16) {
            assert_int_equal(some->steady.kept_peak, flight * 3 * 36 * MIB);
            assert_int_equal(some->steady.phase[1].bytes, bed.stage.moment[1].total);
        }
        if (micro_batches >= 32)
            assert_true(left_out(some) > 0);
        end(&bed);
    }
}

/* ---- any stage ---- */

static uint64_t pick(uint32_t *seed, uint64_t n) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static void any_stage(void **state) {
    (void)state;
    int lower = 0;
    for (uint32_t seed = 1; seed <= 300; seed++) {
        struct bed bed;
        uint32_t r = seed, layers = 1 + (uint32_t)pick(&r, 9);
        begin(&bed, layers);
        uint32_t count = 1 + (uint32_t)pick(&r, 4);
        set_pipeline(&bed, (uint32_t)pick(&r, count), count, 1 + pick(&r, 30));
        bed.tape.input_on_tape = bed.tape.item[0].on_input = pick(&r, 2) > 0;
        uint32_t recompute = (uint32_t)pick(&r, 3), length = 1 + (uint32_t)pick(&r, 3);
        for (uint32_t i = 0; i < layers; i++) {
            struct vp_train_layer *l = &bed.layer[i];
            l->gathered_bytes = count == 2 ? pick(&r, 30) * MIB : 0;
            l->scattered_bytes = count == 2 ? pick(&r, 30) * MIB : 0;
            l->weight_temp_bytes = count == 3 ? 2 * MIB : 0;
            l->gradient_temp_bytes = pick(&r, 2) * MIB;
            l->recomputed = recompute == 1 || (recompute == 2 && i < layers / 2);
            if (!l->recomputed)
                continue;
            l->segment = i - i % length;
            bool inner = i % length > 0;
            l->saved_bytes = inner ? 0 : 4 * MIB;
            l->rebuilt_bytes = bed.tape.input_on_tape && !inner ? 32 * MIB : 36 * MIB;
        }
        struct vp_train_rules *rules = &bed.scenario.engine.rules.train;
        rules->gathered_layers = 1 + pick(&r, 3);
        rules->scattered_layers = pick(&r, 3);
        rules->gathered_stay = pick(&r, 4) == 0;
        rules->optimizer_in_backward = pick(&r, 5) == 0;
        bed.model.tied = pick(&r, 3) == 0;
        bed.stage.gradients_persist = !rules->optimizer_in_backward && pick(&r, 3) == 0;
        bed.stage.accumulation_temp_bytes = pick(&r, 3) * MIB;
        finish(&bed);
        struct vp_walk *some = walk_with(&bed, true, true), *all = walk_with(&bed, false, false);
        lower += check_same(some, all);
        check_left(&bed, some);
        assert_true(some->steady.peak.bytes >= some->first.peak.bytes);
        uint64_t highest = 0;
        for (size_t i = 0; i < some->spans; i++)
            if (some->span[i].second && some->span[i].left_out == 0)
                highest = vp_max(highest, some->span[i].most.bytes);
        assert_true(highest == some->steady.peak.bytes);
        for (int i = 0; i < VP_TRAIN_MOMENTS; i++) {
            uint64_t sum = 0;
            for (int c = 0; c < VP_COMPONENT_COUNT; c++)
                sum += some->steady.phase[i].component[c];
            assert_int_equal(sum, some->steady.phase[i].bytes);
            assert_true(sum <= some->steady.peak.bytes);
        }
        end(&bed);
    }
    assert_true(lower <= 6); /* of 300 */
}

static void wrong_events_break_a_walk(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    struct vp_allocator_settings settings = vp_allocator_defaults();
    struct vp_walk *w = vp_walk_begin(&arena, &settings, true);
    struct vp_event_sink sink = vp_walk_sink(w);
    sink.event(sink.user, &(struct vp_event){.kind = VP_EVENT_TAKE, .id = 3, .bytes = 5});
    sink.event(sink.user, &(struct vp_event){.kind = VP_EVENT_GIVE, .id = 4});
    sink.event(sink.user, &(struct vp_event){.kind = VP_EVENT_GIVE, .id = 3});
    assert_false(vp_walk_end(w));
    assert_int_equal(w->now.bytes, 5);
    vp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_step),
        cmocka_unit_test(recomputed_layers),
        cmocka_unit_test(segments_are_rebuilt_together),
        cmocka_unit_test(selective_recomputation),
        cmocka_unit_test(gathered_weights_and_whole_gradients),
        cmocka_unit_test(accumulated_gradients),
        cmocka_unit_test(micro_batches_in_flight),
        cmocka_unit_test(repeated_micro_batches_are_left_out),
        cmocka_unit_test(virtual_stages_take_turns),
        cmocka_unit_test(any_stage),
        cmocka_unit_test(wrong_events_break_a_walk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
