/* `fit` against enumeration: on random scenarios, all choices of changes that there are. Every
 * choice that fits has to be covered by a proposal, no smaller number of changes may do, every
 * proposal has to fit when its patch alone is applied; and what is bisected has to be monotone.
 * VP_FIND_ROUNDS: how many scenarios; by default few, `make check` stays quick. */
#include "api/find.h"

#include <stdlib.h>
#include <string.h>

#include "planner/base/text.h"
#include "tests/unit/fixture.h"

static uint64_t draw(uint64_t *seed, uint64_t below) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % below;
}

static uint64_t rounds(void) {
    const char *text = getenv("VP_FIND_ROUNDS");
    return text ? strtoull(text, NULL, 10) : 8;
}

/* ---- random scenarios ---- */

static const char *const SERVERS[] = {"vllm, version: \"0.19\"", "vllm, version: \"0.10\"",
                                      "sglang, version: \"0.5\"",
                                      "transformers, version: \"4.55\""};
static const char *const TRAINERS[] = {"pytorch, version: \"2.9\"", "deepspeed, version: \"0.18\"",
                                       "megatron, version: \"0.14\"",
                                       "transformers, version: \"5.0\""};

static const char *model_text(struct vp_arena *arena, uint64_t *seed) {
    uint64_t hidden = UINT64_C(1024) << draw(seed, 3), layers = 4 + 4 * draw(seed, 8);
    uint64_t heads = hidden / 128, kv = heads >> draw(seed, 3);

    return vp_arena_printf(arena,
                           "{model_type: llama, hidden_size: %llu, num_hidden_layers: %llu, "
                           "num_attention_heads: %llu, "
                           "num_key_value_heads: %llu, intermediate_size: %llu, vocab_size: %llu, "
                           "max_position_embeddings: 131072, torch_dtype: bfloat16}",
                           (unsigned long long)hidden, (unsigned long long)layers,
                           (unsigned long long)heads, (unsigned long long)(kv ? kv : 1),
                           (unsigned long long)hidden * 4,
                           (unsigned long long)(32000 + 32000 * draw(seed, 4)));
}

static const char *serve_text(struct vp_arena *arena, uint64_t *seed, const char *memory) {
    const char *engine = SERVERS[draw(seed, 4)];
    bool hf = vp_text_starts(engine, "transformers");
    uint64_t context = UINT64_C(1024) << draw(seed, 5), sequences = 1 + draw(seed, hf ? 8 : 48);
    uint64_t tensor = 1 << draw(seed, 2);

    return vp_arena_printf(
        arena,
        "vramplan: 1\nmodel: %s\nhardware: {gpu: mi300x, count: %llu%s}\n"
        "engine: {name: %s}\nparallel: {tensor: %llu}\n"
        "serve: {context: %llu, concurrency: %llu%s}\n",
        model_text(arena, seed), (unsigned long long)tensor, memory, engine,
        (unsigned long long)tensor, (unsigned long long)context, (unsigned long long)sequences,
        draw(seed, 4) == 0 && vp_text_starts(engine, "vllm") ? ", lora: {slots: 16, rank: 32}"
                                                             : "");
}

static const char *train_text(struct vp_arena *arena, uint64_t *seed, const char *memory) {
    static const char *const OPTIMIZERS[] = {"adamw", "adamw", "sgd", "adamw_8bit"};
    const char *engine = TRAINERS[draw(seed, 4)];
    uint64_t data = 1 << draw(seed, 3), micro = 1 << draw(seed, 4);
    bool megatron = vp_text_starts(engine, "megatron"), lora = !megatron && draw(seed, 4) == 0;

    return vp_arena_printf(
        arena,
        "vramplan: 1\nmodel: %s\nhardware: {gpu: mi300x, count: %llu%s}\n"
        "engine: {name: %s}\nparallel: {data: %llu}\n"
        "train: {micro_batch: %llu, global_batch: %llu, sequence_length: %llu, optimizer: %s%s}\n",
        model_text(arena, seed), (unsigned long long)data, memory, engine, (unsigned long long)data,
        (unsigned long long)micro, (unsigned long long)(micro * data * (1 + draw(seed, 3))),
        (unsigned long long)(UINT64_C(1024) << draw(seed, 3)),
        megatron ? "adamw" : OPTIMIZERS[draw(seed, 4)],
        lora ? ", lora: {rank: 16, targets: all-linear}" : "");
}

/* One scenario, opened; with the memory of a card that is about what it needs, or too little. */
struct subject {
    struct fixture f;
    struct vp_search search;
    const struct vp_result *plan;
    struct vp_outcome found;
};

/* False: refused, such as a card too small for the engine's own defaults. */
static bool open_file(struct subject *s, const char *text) {
    const char *path = fixture_text_file(&s->f, "random.yaml", text);
    bool good = vp_search_open(&s->f.ctx, &s->search, path, NULL, 0) == VP_OK;

    if (good)
        s->plan = vp_search_plan(&s->search, NULL, 0);
    else
        vp_search_close(&s->search);
    return good && s->plan;
}

static void subject_open(struct subject *s, uint64_t number) {
    uint64_t seed = number * 977 + 5;
    bool train = draw(&seed, 3) == 0, good;

    memset(s, 0, sizeof *s);
    fixture_begin(&s->f);
    s->f.ctx.profiles = "profiles";
    const uint64_t begin = seed;
    assert_true(open_file(s, train ? train_text(&s->f.arena, &seed, "")
                                   : serve_text(&s->f.arena, &seed, "")));
    uint64_t need = s->plan->devices[s->plan->worst].need.high, tenths = 1 + draw(&seed, 12);
    vp_search_close(&s->search);
    do {
        const char *memory = vp_arena_printf(&s->f.arena, ", memory: %llu",
                                             (unsigned long long)(need / 10 * tenths++));
        seed = begin;
        good = open_file(s, train ? train_text(&s->f.arena, &seed, memory)
                                  : serve_text(&s->f.arena, &seed, memory));
        fixture_clear(&s->f);
    } while (!good && tenths < 40);
    assert_true(good);
}

static void subject_close(struct subject *s) {
    vp_search_close(&s->search);
    fixture_end(&s->f);
}

/* ---- all choices ---- */

struct choice {
    struct vp_proposal proposal;
    struct vp_pick pick;
};

struct choices {
    struct subject *s;
    struct vp_lever *lever;
    uint32_t levers;
    struct choice *item; /* what fits */
    size_t count, room;
    uint64_t tried;
};

static void consider(struct choices *all, const struct vp_pick *pick) {
    struct vp_setting set[VP_PATCHES_MOST];
    struct vp_trial trial;
    vp_search_try(&all->s->search, &trial, set, vp_pick_settings(set, pick, NULL));
    all->tried++;
    if (!vp_trial_fits(&trial))
        return;
    if (all->count == all->room) {
        all->room = all->room ? 2 * all->room : 64;
        all->item = realloc(all->item, all->room * sizeof *all->item);
        assert_non_null(all->item);
    }
    all->item[all->count].pick = *pick;
    all->item[all->count++].proposal = vp_pick_proposal(&all->s->search, pick, NULL, &trial);
}

/* One lever: its values, and of one with numbers all numbers between. */
static void singles(struct choices *all) {
    for (uint32_t l = 0; l < all->levers; l++) {
        const struct vp_lever *lever = &all->lever[l];
        struct vp_pick pick = {.lever = {lever}, .count = 1};
        for (uint32_t v = 0; v < lever->values; v++) {
            uint64_t before = v ? lever->value[v - 1].number : lever->present;
            uint64_t from = lever->value[v].number;
            pick.value[0] = lever->value[v];
            consider(all, &pick);
            if (lever->how != VP_HOW_HALVES)
                continue;
            for (uint64_t n = from + lever->step; n < before; n += lever->step) {
                pick.value[0] = vp_lever_number(&all->s->f.arena, lever, all->s->search.base, n);
                pick.value[0].grade = lever->value[v].grade;
                consider(all, &pick);
            }
        }
    }
}

static void pairs(struct choices *all) {
    struct vp_pick pick = {.count = 2};
    for (uint32_t a = 0; a < all->levers; a++)
        for (uint32_t b = a + 1; b < all->levers; b++) {
            if (vp_levers_exclude(all->lever[a].id, all->lever[b].id))
                continue;
            pick.lever[0] = &all->lever[a];
            pick.lever[1] = &all->lever[b];
            for (uint32_t i = 0; i < all->lever[a].values; i++)
                for (uint32_t k = 0; k < all->lever[b].values; k++) {
                    pick.value[0] = all->lever[a].value[i];
                    pick.value[1] = all->lever[b].value[k];
                    if (!pick.value[0].alone && !pick.value[1].alone)
                        consider(all, &pick);
                }
        }
}

/* ---- what is better ---- */

static double size_of(const struct vp_proposal *p) {
    double size = 0;
    for (uint32_t i = 0; i < p->changes; i++)
        size += p->change[i].size;
    return size;
}

/* p at least as good as e; loosely: whatever room is left and how long it takes. */
static bool as_good(const struct vp_proposal *p, const struct vp_proposal *e, bool loosely) {
    const struct vp_trial *a = &p->trial, *b = &e->trial;
    bool room = a->headroom_bytes >= b->headroom_bytes;
    bool time = a->time_ms <= b->time_ms || b->time_ms <= 0;
    bool risk = p->risk_known ? !e->risk_known || p->risk <= e->risk : !e->risk_known;

    return a->gpus <= b->gpus && p->kept >= e->kept && size_of(p) <= size_of(e) + 1e-9 && risk &&
           (loosely || (room && time));
}

static bool is_milder(const struct vp_pick *a, const struct vp_pick *b) {
    bool less = false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->lever[i] != b->lever[i] || a->value[i].grade > b->value[i].grade ||
            (a->value[i].grade == b->value[i].grade && a->value[i].number < b->value[i].number))
            return false;
        bool same = vp_text_eq(a->value[i].to, b->value[i].to);
        if (!same && a->value[i].grade == b->value[i].grade && a->value[i].number == 0)
            return false; /* neither replaces the other */
        less |= !same;
    }
    return less;
}

/* The same levers, every value the same or milder. */
static bool is_milder_proposal(const struct vp_proposal *p, const struct vp_proposal *e) {
    if (p->changes != e->changes)
        return false;
    for (uint32_t i = 0; i < p->changes; i++) {
        const struct vp_change *a = &p->change[i], *b = &e->change[i];
        bool same = vp_text_eq(a->to, b->to);
        if (!vp_text_eq(a->lever, b->lever) || !(same || (a->size > 0 && a->size < b->size)))
            return false;
    }
    return true;
}

static bool is_covered(const struct choices *all, const struct choice *e) {
    bool milder = false;
    for (size_t i = 0; i < all->count && !milder; i++)
        milder = is_milder(&all->item[i].pick, &e->pick);
    for (uint32_t i = 0; i < all->s->found.count; i++)
        if (as_good(&all->s->found.item[i], &e->proposal, milder) ||
            is_milder_proposal(&all->s->found.item[i], &e->proposal))
            return true;
    return false;
}

static void show_one(const struct vp_proposal *p) {
    print_message("  gpus %llu kept %g size %g risk %g room %lld time %g: %s\n",
                  (unsigned long long)p->trial.gpus, p->kept, size_of(p), p->risk,
                  (long long)p->trial.headroom_bytes, p->trial.time_ms, p->command);
}

static void show(const struct choices *all, const struct vp_proposal *e) {
    for (uint32_t i = 0; i < all->s->found.count; i++)
        show_one(&all->s->found.item[i]);
    print_message("not covered:\n");
    show_one(e);
}

static void check_covered(const struct choices *all, uint64_t number) {
    for (size_t i = 0; i < all->count; i++)
        if (!is_covered(all, &all->item[i])) {
            show(all, &all->item[i].proposal);
            fail_msg("scenario %llu: nothing covers %s", (unsigned long long)number,
                     all->item[i].proposal.command);
        }
}

/* The patch alone makes the plan that was promised. */
static void check_proposals(struct subject *s, uint64_t number) {
    for (uint32_t i = 0; i < s->found.count; i++) {
        const struct vp_proposal *p = &s->found.item[i];
        struct vp_setting set[VP_PATCHES_MOST];
        struct vp_trial trial;
        for (uint32_t k = 0; k < p->patches; k++)
            set[k] = (struct vp_setting){p->patch[k].field, p->patch[k].value, p->patch[k].field};
        vp_search_try(&s->search, &trial, set, p->patches);
        if (!trial.made || trial.verdict != p->trial.verdict ||
            memcmp(&trial.need, &p->trial.need, sizeof trial.need) != 0 ||
            trial.gpus != p->trial.gpus)
            fail_msg("scenario %llu: not what was promised: %s", (unsigned long long)number,
                     p->command);
    }
}

static void nothing_is_better(void **state) {
    uint64_t of[5] = {0}, tried = 0;
    (void)state;
    for (uint64_t number = 0; number < rounds(); number++) {
        struct subject s;
        struct choices all = {.s = &s};
        subject_open(&s, number);
        if (number % 2 == 1) /* the same machine has to do */
            assert_true(vp_search_keep(&s.search, "gpus,layout,weights"));
        vp_find_changes(&s.search, &s.found, s.plan, NULL);
        check_proposals(&s, number);
        bool none = s.found.verdict != VP_FITS;
        uint32_t needed = none ? 4 : s.found.needed;
        of[needed]++;
        if (needed > 0) {
            all.lever = VP_NEW_ARRAY(&s.f.arena, VP_LEVER_COUNT, struct vp_lever);
            all.levers = vp_find_levers(&s.search, all.lever, NULL);
            singles(&all);
            if (needed > 1)
                assert_int_equal(all.count, 0);
            if (needed > 1)
                pairs(&all);
            if (needed > 2)
                assert_int_equal(all.count, 0);
            check_covered(&all, number);
        }
        tried += all.tried;
        free(all.item);
        subject_close(&s);
    }
    print_message("fits %llu, one change %llu, two %llu, three %llu, none %llu; %llu choices\n",
                  (unsigned long long)of[0], (unsigned long long)of[1], (unsigned long long)of[2],
                  (unsigned long long)of[3], (unsigned long long)of[4], (unsigned long long)tried);
    assert_true(of[0] > 0 && of[1] > 0 && (rounds() < 100 || (of[2] > 0 && of[3] > 0)));
}

/* ---- what is bisected ---- */

static int rank_of(const struct vp_trial *t) {
    return t->made ? (int)t->verdict : (int)VP_DOES_NOT_FIT + 1;
}

/* From small to large: once it does not fit it never does again, and with more sequences no token
 * gets faster. */
static void check_monotone(struct subject *s, enum vp_field field, const uint64_t *numbers,
                           size_t count, uint64_t number) {
    struct vp_trial before = {0};
    for (size_t i = 0; i < count; i++) {
        struct vp_lever_value v = vp_lever_workload(&s->f.arena, s->search.base, field, numbers[i]);
        struct vp_trial trial;
        vp_search_try(&s->search, &trial, v.set, v.sets);
        if (!trial.made)
            continue;
        bool faster = field == VP_F_CONCURRENCY && rank_of(&trial) <= (int)VP_AT_RISK &&
                      (trial.tpot.low < before.tpot.low * 0.999 ||
                       trial.tpot.likely < before.tpot.likely * 0.999);
        if (before.made && (rank_of(&trial) < rank_of(&before) || faster))
            fail_msg("scenario %llu: %s %llu is easier than less of it: need %llu after %llu, %d "
                     "after %d, %g ms after %g",
                     (unsigned long long)number, vp_field_info(field)->path,
                     (unsigned long long)numbers[i], (unsigned long long)trial.need.high,
                     (unsigned long long)before.need.high, rank_of(&trial), rank_of(&before),
                     trial.tpot.likely, before.tpot.likely);
        before = trial;
    }
}

/* With more beside it on the card it never fits again. In training the allocator's cache is emptied
 * where memory is short, so that what is at risk may fit with a little less; what does not fit does
 * not with less either. */
static void check_beside_others(struct subject *s, uint64_t number) {
    bool train = s->search.base->training;
    int before = 0;
    for (int i = 0; i < 24; i++) {
        uint64_t bytes = s->search.base->hardware.memory_bytes / 25 * (uint64_t)i;
        struct vp_setting set = {"hardware.reserved",
                                 vp_arena_printf(&s->f.arena, "%llu", (unsigned long long)bytes),
                                 "reserved"};
        struct vp_trial trial;
        vp_search_try(&s->search, &trial, &set, 1);
        int rank = rank_of(&trial);
        if (rank < before && !(train && before == (int)VP_AT_RISK))
            fail_msg("scenario %llu: more beside it makes it fit", (unsigned long long)number);
        before = rank > before ? rank : before;
    }
}

static void bisected_is_monotone(void **state) {
    static const uint64_t SMALL[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 24, 32, 48, 64, 100, 128};
    static const uint64_t LONG[] = {256,  512,  768,  1024, 1536, 2048,  3072,
                                    4096, 6144, 8192, 8448, 9984, 16384, 32768};
    (void)state;
    for (uint64_t number = 0; number < rounds(); number++) {
        struct subject s;
        subject_open(&s, number + 10000);
        bool train = s.search.base->training;
        check_monotone(&s, train ? VP_F_SEQUENCE_LENGTH : VP_F_CONTEXT, LONG,
                       sizeof LONG / sizeof *LONG, number);
        check_monotone(&s, train ? VP_F_MICRO_BATCH : VP_F_CONCURRENCY, SMALL,
                       sizeof SMALL / sizeof *SMALL, number);
        if (!train && s.search.base->engine.kind != VP_ENGINE_TRANSFORMERS) {
            check_monotone(&s, VP_F_MAX_NUM_SEQS, SMALL, sizeof SMALL / sizeof *SMALL, number);
            check_monotone(&s, VP_F_BATCHED_TOKENS, LONG, sizeof LONG / sizeof *LONG, number);
        }
        if (s.search.base->lora.enabled)
            check_monotone(&s, VP_F_LORA_SLOTS, SMALL, 10, number);
        check_beside_others(&s, number);
        subject_close(&s);
    }
}

/* The maximum is the last number that fits. */
static void most_is_the_last(void **state) {
    (void)state;
    for (uint64_t number = 0; number < rounds(); number++) {
        static const struct vp_pick NONE = {0};
        struct subject s;
        subject_open(&s, number + 20000);
        bool train = s.search.base->training;
        const enum vp_field fields[] = {train ? VP_F_SEQUENCE_LENGTH : VP_F_CONTEXT,
                                        train ? VP_F_MICRO_BATCH : VP_F_CONCURRENCY};
        for (int i = 0; i < 2; i++) {
            struct vp_reach reach = vp_find_reach(&s.search, &NONE, fields[i]);
            for (uint64_t n = reach.sure; n <= reach.sure + 1; n++) {
                struct vp_lever_value v =
                    vp_lever_workload(&s.f.arena, s.search.base, fields[i], n);
                struct vp_trial trial;
                vp_search_try(&s.search, &trial, v.set, v.sets);
                if (n > 0 && !(reach.capped && n > reach.sure))
                    assert_int_equal(vp_trial_fits(&trial), n == reach.sure);
            }
            assert_true(reach.likely >= reach.sure);
        }
        subject_close(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_better),
                                       cmocka_unit_test(bisected_is_monotone),
                                       cmocka_unit_test(most_is_the_last)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
