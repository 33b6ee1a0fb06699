/* The search for settings that fit: every proposal holds when it is planned again, nothing that a
 * full enumeration finds is better, and what is bisected grows as it must. */
#include <string.h>

#include "planner/plan/fit_llama.h"
#include "tests/unit/llama_rig.h"

#define MIB(n) ((uint64_t)(n) << 20)

static struct llama_rig rig;
static struct vp_fit_llama fit;
static struct vp_device_group groups[2];
static uint64_t seed;

static uint64_t below(uint64_t n) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % n;
}

static void give(enum vp_field field) { rig.scenario.source[field].origin = VP_ORIGIN_FILE; }

static void set_memory(uint64_t bytes) {
    rig.scenario.hardware.memory_bytes = bytes;
    rig.scenario.hardware.memory = vp_exactly(bytes);
}

/* Layers of 32 heads over 8, with experts or without, in q8_0. */
static void model(uint32_t layers, uint64_t hidden, uint64_t width, uint64_t experts) {
    struct vp_block block = rig_gqa(hidden / 128, hidden / 512, 128, experts ? 0 : width);
    const uint64_t mib = UINT64_C(1) << 20;

    rig_begin(&rig, hidden, 32000);
    if (experts > 0)
        block.moe = (struct vp_moe){
            .kind = VP_MLP_GATED, .experts = experts, .top_k = 2, .intermediate = width};
    rig_layers(&rig, layers, block, block, 0);
    rig_ends(&rig, VP_DTYPE_Q8_0, false);
    rig_matrices(&rig, VP_DTYPE_Q8_0, width);
    for (uint32_t i = 0; experts > 0 && i < layers; i++)
        for (int m = 0; m < 3; m++)
            rig_tensor(&rig, vp_arena_printf(&rig.f.arena, "blk.%u.ffn_%d_exps.weight", i, m),
                       VP_GGUF_EXPERT, (int32_t)i, VP_DTYPE_Q8_0, hidden, width * experts);
    rig.model.max_position = 32768;
    rig.scenario.engine.rules.llama.pool_base = (struct vp_amount){200 * mib, 260 * mib, 420 * mib};
    rig.scenario.engine.rules.llama.pool_permille = (struct vp_amount){0, 300, 1800};
    rig.scenario.engine.rules.llama.spread_copies = (struct vp_amount){900, 1000, 1400};
    rig.scenario.llama.slots = 4;
    rig.scenario.serve.concurrency = 4;
    rig.scenario.serve.context = 4096;
}

static void find(enum vp_fit_goal goal) {
    assert_true(vp_fit_llama_find(&rig.f.arena, &fit, &rig.scenario, goal));
}

/* ---- an own judgement of a candidate ---- */

struct verdict {
    bool sure, likely;
    struct vp_result plan;
};

static struct verdict judge(const struct vp_fit_fixed *fixed, const struct vp_fit_settings *set) {
    struct vp_scenario *s = VP_NEW(&rig.f.arena, struct vp_scenario);
    struct verdict v;

    *s = vp_fit_llama_scenario(&rig.scenario, fixed, set);
    assert_true(vp_plan_evaluate(&rig.f.arena, &v.plan, s));
    v.sure = v.plan.verdict == VP_FITS;
    v.likely = v.plan.verdict != VP_DOES_NOT_FIT;
    for (uint32_t g = 0; g < v.plan.llama->gpus; g++) {
        const struct vp_device *d = &v.plan.devices[g];
        uint64_t buffers = d->need.high - v.plan.llama->place[g].pool.high;
        v.likely &= d->need.likely <= d->usable_bytes;
        v.sure &= d->need.high <= d->usable_bytes;
        v.sure &= d->need.high == 0 || buffers + fit.margin_bytes <= d->usable_bytes;
    }
    return v;
}

/* What is left of the margin and of each GPU, at least. */
static int64_t judge_spare(const struct vp_fit_fixed *fixed, const struct vp_fit_settings *set) {
    struct verdict v = judge(fixed, set);
    int64_t least = INT64_MAX;

    for (uint32_t g = 0; g < v.plan.llama->gpus; g++) {
        const struct vp_device *d = &v.plan.devices[g];
        uint64_t buffers = d->need.high - v.plan.llama->place[g].pool.high;
        uint64_t need = vp_max(d->need.high, d->need.high ? buffers + fit.margin_bytes : 0);
        int64_t spare = (int64_t)d->usable_bytes - (int64_t)need;
        least = spare < least ? spare : least;
    }
    return least;
}

static void check_proposal(const struct vp_fit_fixed *fixed, const struct vp_fit_proposal *p) {
    struct verdict v = judge(fixed, &p->set);
    const struct vp_llama *given = &rig.scenario.llama, *now = &v.plan.scenario->llama;

    assert_true(p->sure ? v.sure : v.likely);
    assert_int_equal(v.plan.devices[p->worst].need.high, p->need.high);
    assert_int_equal(v.plan.devices[v.plan.llama->gpus].need.likely, p->host_bytes);
    if (fixed->total)
        assert_int_equal(now->context, given->context);
    else if (fixed->context)
        assert_int_equal(p->set.context, rig.scenario.serve.context);
    if (fixed->layers)
        assert_int_equal(p->set.gpu_layers, vp_min(given->gpu_layers, fit.layer_slots));
    if (fixed->cache)
        assert_true(now->type_k == given->type_k && now->type_v == given->type_v);
    if (fixed->slots)
        assert_int_equal(now->slots, given->slots);
    if (fixed->batch)
        assert_int_equal(now->ubatch, given->ubatch);
}

/* ---- many scenarios ---- */

static void random_scenario(uint64_t n) {
    static const uint64_t HIDDEN[] = {1024, 2048, 4096};
    struct vp_scenario *s = &rig.scenario;
    seed = n * 7919 + 13;
    uint64_t experts = below(3) == 0 ? 8 : 0;
    model((uint32_t)(2 + below(40)), HIDDEN[below(3)], 512 * (1 + below(56)), experts);
    s->hardware.count = 1 + below(3);
    set_memory(MIB(900 + below(UINT64_C(400) << below(6))));
    s->hardware.reserved_bytes = MIB(below(500));
    if (s->hardware.count == 2 && below(2)) {
        for (int g = 0; g < 2; g++) {
            groups[g] =
                (struct vp_device_group){.count = 1, .memory_bytes = MIB(900 + below(5000))};
            groups[g].memory = vp_exactly(groups[g].memory_bytes);
        }
        s->hardware.groups = groups;
        s->hardware.group_count = 2;
    }
    if (below(2) == 0) {
        give(VP_F_N_GPU_LAYERS);
        s->llama.gpu_layers = below(80);
    }
    if (below(2) == 0) {
        give(VP_F_CONTEXT);
        s->serve.context = 256 * (1 + below(400));
        s->llama.context = s->serve.context * s->llama.slots;
    } else if (below(4) == 0) {
        give(VP_F_CTX_SIZE);
        s->llama.context = 1000 + below(60000);
        s->serve.context = s->llama.context / s->llama.slots;
    }
    if (below(4) == 0) {
        give(VP_F_CACHE_TYPE_K);
        s->llama.type_k = below(2) ? VP_DTYPE_Q8_0 : VP_DTYPE_FP16;
    }
    if (below(4) == 0)
        give(VP_F_LLAMA_SLOTS);
    s->llama.unified = below(2) == 0;
    if (below(4) == 0)
        give(VP_F_LLAMA_UBATCH);
    if (below(5) == 0) {
        give(VP_F_FLASH_ATTN);
        s->llama.flash = VP_FLASH_OFF;
    }
    if (s->llama.flash == VP_FLASH_OFF)
        s->llama.type_v = VP_DTYPE_FP16;
}

static void every_proposal_fits_when_planned_again(void **state) {
    enum { SCENARIOS = 300 };
    uint32_t with = 0, without = 0, changes = 0, risky = 0;

    (void)state;
    for (uint64_t n = 0; n < SCENARIOS; n++) {
        random_scenario(n);
        find((enum vp_fit_goal)(n % 4));
        for (uint32_t i = 0; i < fit.count; i++) {
            check_proposal(&fit.fixed, &fit.item[i]);
            assert_int_equal(fit.item[i].sure, i < fit.sure);
            risky += !fit.item[i].sure;
        }
        for (int f = 0; f < VP_FIT_FREED; f++) {
            struct vp_fit_fixed fixed = vp_fit_llama_freed(&fit.fixed, (enum vp_fit_freed)f);
            if (!fit.has_freed[f])
                continue;
            assert_int_equal(fit.count, 0);
            assert_true(fit.freed[f].sure);
            check_proposal(&fixed, &fit.freed[f]);
            changes++;
        }
        with += fit.count > 0;
        without += fit.count == 0;
        rig_end(&rig);
    }
    /* all of it was exercised */
    print_message("%u with, %u without, %u changes, %u at risk\n", with, without, changes, risky);
    assert_true(with > 50 && without > 10 && changes > 10 && risky > 10);
}

/* ---- enumeration ---- */

static bool is_fine(const struct vp_fit_settings *set) { return set->type_k != VP_DTYPE_Q4_0; }

static int bits(const struct vp_fit_settings *set) {
    return set->type_k == VP_DTYPE_FP16 ? 16 : set->type_k == VP_DTYPE_Q8_0 ? 8 : 4;
}

/* At least as good in everything, better in something. */
static bool is_better(const struct vp_fit_settings *a, const struct vp_fit_settings *b) {
    bool least = a->gpu_layers >= b->gpu_layers && a->host_experts <= b->host_experts &&
                 a->context >= b->context && a->ubatch >= b->ubatch && bits(a) >= bits(b);
    return least && (a->gpu_layers > b->gpu_layers || a->host_experts < b->host_experts ||
                     a->context > b->context || a->ubatch > b->ubatch || bits(a) > bits(b));
}

/* The order of the balanced goal. */
static bool ranks_before(const struct vp_fit_settings *a, const struct vp_fit_settings *b) {
    const uint64_t x[] = {is_fine(a),
                          a->gpu_layers == fit.layer_slots && a->host_experts == 0,
                          a->ubatch,
                          a->gpu_layers,
                          100 - a->host_experts,
                          a->context,
                          (uint64_t)bits(a)};
    const uint64_t y[] = {is_fine(b),
                          b->gpu_layers == fit.layer_slots && b->host_experts == 0,
                          b->ubatch,
                          b->gpu_layers,
                          100 - b->host_experts,
                          b->context,
                          (uint64_t)bits(b)};

    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] != y[i])
            return x[i] > y[i];
    return false;
}

struct space {
    uint64_t contexts[40];
    uint32_t count;
    uint64_t ubatch_least;
    bool experts; /* of layers go to the host while all layers are on the GPU */
    bool divided; /* over two GPUs, in every way beside the engine's own */
};

/* What fits for sure is no better than any proposal, and does not rank before the first. */
static uint32_t hold_against(const struct vp_fit_settings *set) {
    struct vp_arena_mark mark = vp_arena_mark(&rig.f.arena);
    bool sure = judge(&fit.fixed, set).sure;

    vp_arena_rewind(&rig.f.arena, mark);
    for (uint32_t i = 0; sure && i < fit.sure; i++)
        if (fit.item[i].question != VP_FIT_Q_SLOTS)
            assert_false(is_better(set, &fit.item[i].set));
    assert_true(!sure || fit.sure > 0);
    assert_false(sure && ranks_before(set, &fit.item[0].set));
    return sure;
}

static uint32_t divide(struct vp_fit_settings set) {
    uint32_t all = 0;

    set.shares = 2;
    for (set.share[0] = 0; set.share[0] <= set.gpu_layers && set.gpu_layers > 0; set.share[0]++) {
        set.share[1] = (uint16_t)(set.gpu_layers - set.share[0]);
        all += hold_against(&set);
    }
    return all;
}

/* Everything in the space. Returns how much of it fits. */
static uint32_t enumerate(const struct space *space) {
    static const enum vp_dtype TYPES[] = {VP_DTYPE_FP16, VP_DTYPE_Q8_0, VP_DTYPE_Q4_0};
    uint32_t all = 0, layers = rig.model.layer_count;

    for (uint64_t ub = 512; ub >= space->ubatch_least; ub /= 2)
        for (int t = 0; t < 3; t++)
            for (uint32_t c = 0; c < space->count; c++)
                for (uint64_t n = 0; n <= layers + (space->experts ? 0 : 1); n++) {
                    struct vp_fit_settings set = {.gpu_layers = space->experts ? layers + 1 : n,
                                                  .host_experts = space->experts ? n : 0,
                                                  .context = space->contexts[c],
                                                  .slots = 1,
                                                  .ubatch = ub,
                                                  .type_k = TYPES[t],
                                                  .type_v = TYPES[t]};
                    all += hold_against(&set);
                    if (space->divided)
                        all += divide(set);
                }
    return all;
}

static void nothing_better_is_found_with_the_context_open(void **state) {
    struct space space = {.ubatch_least = 512};
    uint32_t found = 0;

    (void)state;
    for (uint64_t memory = 1500; memory < 4500; memory += 250) {
        model(8, 4096, 14336, 0);
        rig.model.max_position = 8192;
        rig.scenario.llama.fit_context_least = 256;
        space.count = 0;
        for (uint64_t c = 256; c <= 8192; c += 256)
            space.contexts[space.count++] = c;
        set_memory(MIB(memory));
        find(VP_FIT_BALANCED);
        found += enumerate(&space);
        rig_end(&rig);
    }
    assert_true(found > 500);
}

static void nothing_better_is_found_at_a_context(void **state) {
    struct space space = {.ubatch_least = 128, .count = 1};
    uint32_t found = 0;

    (void)state;
    for (uint64_t memory = 1300; memory < 4500; memory += 100) {
        model(12, 4096, 14336, 0);
        give(VP_F_CONTEXT);
        rig.scenario.serve.context = space.contexts[0] = 16384;
        set_memory(MIB(memory));
        find(VP_FIT_BALANCED);
        found += enumerate(&space);
        rig_end(&rig);
    }
    assert_true(found > 100);
}

static void the_fewest_experts_go_to_the_host(void **state) {
    struct space space = {.ubatch_least = 512, .count = 1, .experts = true};
    uint32_t found = 0;

    (void)state;
    for (uint64_t memory = 1500; memory < 6000; memory += 250) {
        model(10, 2048, 1024, 64);
        give(VP_F_CONTEXT);
        give(VP_F_LLAMA_UBATCH);
        rig.scenario.serve.context = space.contexts[0] = 8192;
        set_memory(MIB(memory));
        find(VP_FIT_BALANCED);
        found += enumerate(&space);
        rig_end(&rig);
    }
    assert_true(found > 50);
}

static void two_cards(uint64_t first, uint64_t second) {
    const uint64_t sizes[] = {first, second};

    rig.scenario.hardware.count = 2;
    set_memory(MIB(first));
    for (int g = 0; g < 2; g++)
        groups[g] = (struct vp_device_group){
            .count = 1, .memory_bytes = MIB(sizes[g]), .memory = vp_exactly(MIB(sizes[g]))};
    rig.scenario.hardware.groups = groups;
    rig.scenario.hardware.group_count = 2;
}

static void no_division_over_two_cards_is_better(void **state) {
    struct space space = {.ubatch_least = 512, .count = 1, .divided = true};
    uint32_t found = 0, divided = 0;

    (void)state;
    for (uint64_t memory = 1400; memory < 4000; memory += 250)
        for (int experts = 0; experts < 2; experts++) {
            model(9, 2048, experts ? 1024 : 14336, experts ? 64 : 0);
            give(VP_F_CONTEXT);
            give(VP_F_LLAMA_UBATCH);
            rig.scenario.serve.context = space.contexts[0] = 16384;
            two_cards(memory, memory - memory / 4);
            space.experts = experts;
            find(VP_FIT_BALANCED);
            for (uint32_t i = 0; i < fit.count; i++)
                divided += fit.item[i].set.shares > 0;
            found += enumerate(&space);
            rig_end(&rig);
        }
    assert_true(found > 500 && divided > 5);
}

static void a_division_leaves_as_much_as_it_can(void **state) {
    uint32_t seen = 0;

    (void)state;
    for (uint64_t memory = 1400; memory < 4000; memory += 200) {
        model(9, 2048, 1024, 64);
        give(VP_F_CONTEXT);
        rig.scenario.serve.context = 16384;
        two_cards(memory, memory - memory / 4);
        find(VP_FIT_BALANCED);
        for (uint32_t i = 0; i < fit.sure; i++) {
            struct vp_fit_settings set = fit.item[i].set;
            if (set.shares == 0)
                continue;
            int64_t best = judge_spare(&fit.fixed, &set);
            uint64_t layers = set.gpu_layers;
            for (uint64_t n = 0; n <= layers; n++) {
                set.share[0] = (uint16_t)n;
                set.share[1] = (uint16_t)(layers - n);
                assert_true(judge_spare(&fit.fixed, &set) <= best + (int64_t)MIB(4));
            }
            seen++;
        }
        rig_end(&rig);
    }
    assert_true(seen > 3);
}

static void one_sequence_more_does_not_fit(void **state) {
    uint32_t seen = 0;

    (void)state;
    for (uint64_t memory = 3000; memory < 9000; memory += 500) {
        model(16, 2048, 5632, 0);
        give(VP_F_CONTEXT);
        rig.scenario.serve.context = 8192;
        set_memory(MIB(memory));
        find(VP_FIT_SLOTS);
        for (uint32_t i = 0; i < fit.count; i++) {
            struct vp_fit_proposal *p = &fit.item[i];
            if (p->question != VP_FIT_Q_SLOTS)
                continue;
            p->set.slots++;
            assert_false(judge(&fit.fixed, &p->set).sure);
            seen++;
        }
        assert_true(fit.sure < 2 || fit.item[0].set.slots >= fit.item[1].set.slots);
        rig_end(&rig);
    }
    assert_true(seen > 10);
}

static void how_far_it_goes_at_risk(void **state) {
    (void)state;
    model(16, 2048, 5632, 0);
    rig.model.max_position = 1 << 20;
    set_memory(MIB(4000));
    find(VP_FIT_CONTEXT);
    struct vp_fit_settings set = fit.item[0].set;
    assert_int_equal(fit.item[0].question, VP_FIT_Q_CONTEXT);
    assert_true(fit.item[0].further && fit.item[0].further_to > set.context);
    set.context += 256;
    assert_false(judge(&fit.fixed, &set).sure);
    set.context = fit.item[0].further_to;
    assert_true(judge(&fit.fixed, &set).likely);
    set.context += 256;
    assert_false(judge(&fit.fixed, &set).likely);
    rig_end(&rig);
}

/* ---- what is bisected ---- */

static uint64_t resident(const struct vp_result *plan) {
    uint64_t sum = 0;

    for (uint32_t g = 0; g < plan->llama->gpus; g++)
        sum += plan->llama->place[g].buffer[VP_LLAMA_MODEL].low +
               plan->llama->place[g].buffer[VP_LLAMA_KV].low +
               plan->llama->place[g].buffer[VP_LLAMA_STATE].low;
    return sum;
}

static void a_need_never_falls_with_context_and_sequences(void **state) {
    struct vp_fit_fixed none = {.context = false};

    (void)state;
    for (uint64_t n = 0; n < 100; n++) {
        random_scenario(n);
        const struct vp_llama *l = &rig.scenario.llama;
        struct vp_fit_settings set = {.gpu_layers = below(42),
                                      .context = 256,
                                      .slots = 1,
                                      .ubatch = 512,
                                      .type_k = l->type_k,
                                      .type_v = l->type_v};
        struct verdict before = judge(&none, &set);
        for (int step = 0; step < 12; step++) {
            if (step % 2)
                set.context += 256 * (1 + below(16));
            else
                set.slots += 1 + below(3);
            struct verdict now = judge(&none, &set);
            for (uint32_t g = 0; g <= now.plan.llama->gpus; g++) {
                assert_true(now.plan.devices[g].need.high >= before.plan.devices[g].need.high);
                assert_true(now.plan.devices[g].need.likely >= before.plan.devices[g].need.likely);
            }
            before = now;
        }
        rig_end(&rig);
    }
}

static void what_stays_on_the_gpus_grows_with_their_layers(void **state) {
    struct vp_fit_fixed none = {.context = false};

    (void)state;
    for (uint64_t n = 0; n < 60; n++) {
        random_scenario(n);
        struct vp_fit_settings set = {.context = 4096,
                                      .slots = 2,
                                      .ubatch = 512,
                                      .type_k = VP_DTYPE_FP16,
                                      .type_v = VP_DTYPE_FP16};
        uint64_t before = 0, layers = rig.model.layer_count;
        for (set.gpu_layers = 0; set.gpu_layers <= layers + 1; set.gpu_layers++) {
            struct verdict now = judge(&none, &set);
            assert_true(resident(&now.plan) >= before);
            before = resident(&now.plan);
        }
        set.gpu_layers = layers + 1;
        for (set.host_experts = 0; set.host_experts <= layers; set.host_experts++) {
            struct verdict now = judge(&none, &set);
            assert_true(resident(&now.plan) <= before);
            before = resident(&now.plan);
        }
        rig_end(&rig);
    }
}

/* Why layers are tried one by one: the whole need falls when the last layer comes to the GPU,
 * because nothing has to be copied over any more. */
static void a_whole_need_may_fall_with_a_layer_more(void **state) {
    struct vp_fit_fixed none = {.context = false};
    struct vp_fit_settings set = {.gpu_layers = 8,
                                  .context = 512,
                                  .slots = 1,
                                  .ubatch = 512,
                                  .type_k = VP_DTYPE_FP16,
                                  .type_v = VP_DTYPE_FP16};

    (void)state;
    model(8, 4096, 14336, 0);
    set_memory(MIB(24000));
    struct verdict part = judge(&none, &set);
    set.gpu_layers = 9;
    struct verdict whole = judge(&none, &set);
    assert_true(whole.plan.devices[0].need.high < part.plan.devices[0].need.high);
    rig_end(&rig);
}

/* ---- nothing fits ---- */

static void a_shortage_is_what_is_missing(void **state) {
    (void)state;
    model(16, 4096, 14336, 0);
    give(VP_F_CONTEXT);
    give(VP_F_N_GPU_LAYERS);
    rig.scenario.serve.context = 16384;
    set_memory(MIB(1500));
    find(VP_FIT_BALANCED);
    assert_int_equal(fit.count, 0);
    assert_non_null(fit.nearest_plan);
    assert_true(fit.short_bytes > 0);
    struct vp_fit_settings nearest = fit.nearest;
    uint64_t enough = MIB(1500) + fit.short_bytes;
    set_memory(enough - 1);
    assert_false(judge(&fit.fixed, &nearest).sure);
    set_memory(enough);
    assert_true(judge(&fit.fixed, &nearest).sure);
    /* less of one of the two that were given, each by itself */
    assert_true(fit.has_freed[VP_FIT_NGL]);
    assert_false(fit.has_freed[VP_FIT_CTX]);
    rig_end(&rig);
}

static void quantised_values_need_flash_attention(void **state) {
    (void)state;
    model(8, 2048, 5632, 0);
    rig.scenario.llama.flash = VP_FLASH_OFF; /* an older version's default */
    set_memory(MIB(3000));
    find(VP_FIT_BALANCED);
    bool any = false;
    for (uint32_t i = 0; i < fit.count; i++)
        any |= fit.item[i].set.type_v != VP_DTYPE_FP16;
    assert_true(any);
    give(VP_F_FLASH_ATTN);
    find(VP_FIT_BALANCED);
    assert_true(fit.count > 0);
    for (uint32_t i = 0; i < fit.count; i++)
        assert_int_equal(fit.item[i].set.type_v, VP_DTYPE_FP16);
    rig.scenario.llama.type_v = VP_DTYPE_Q8_0;
    give(VP_F_CACHE_TYPE_V);
    find(VP_FIT_BALANCED);
    assert_int_equal(fit.count, 0);
    assert_int_equal(fit.short_bytes, 0);
    assert_non_null(fit.nearest_plan->llama->refused);
    assert_true(fit.has_freed[VP_FIT_CACHE]);
    rig_end(&rig);
}

static void a_margin_is_kept(void **state) {
    uint64_t contexts[2];

    (void)state;
    model(16, 2048, 5632, 0);
    rig.model.max_position = 1 << 20;
    give(VP_F_FIT_TARGET);
    give(VP_F_CACHE_TYPE_K);
    set_memory(MIB(4500));
    for (uint64_t i = 0; i < 2; i++) {
        rig.scenario.llama.fit_margin_mib = i * 2048;
        find(VP_FIT_CONTEXT);
        assert_int_equal(fit.margin_bytes, MIB(i * 2048));
        contexts[i] = fit.item[0].set.context;
    }
    assert_true(contexts[1] < contexts[0]);
    rig_end(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_proposal_fits_when_planned_again),
        cmocka_unit_test(nothing_better_is_found_with_the_context_open),
        cmocka_unit_test(nothing_better_is_found_at_a_context),
        cmocka_unit_test(the_fewest_experts_go_to_the_host),
        cmocka_unit_test(no_division_over_two_cards_is_better),
        cmocka_unit_test(a_division_leaves_as_much_as_it_can),
        cmocka_unit_test(one_sequence_more_does_not_fit),
        cmocka_unit_test(how_far_it_goes_at_risk),
        cmocka_unit_test(a_need_never_falls_with_context_and_sequences),
        cmocka_unit_test(what_stays_on_the_gpus_grows_with_their_layers),
        cmocka_unit_test(a_whole_need_may_fall_with_a_layer_more),
        cmocka_unit_test(a_shortage_is_what_is_missing),
        cmocka_unit_test(quantised_values_need_flash_attention),
        cmocka_unit_test(a_margin_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
