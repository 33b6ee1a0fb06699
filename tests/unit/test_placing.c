#include "planner/plan/placing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---- by brute force: every option and every set of GPUs of every program ---- */

enum { PROGRAMS = 4, GPUS = 4, PHASES = 2 };

struct brute {
    const struct vp_placing_program *programs;
    uint32_t count, gpus, phases;
    uint64_t capacity, load[GPUS][PHASES], ranks, best[3];
    uint32_t residents[GPUS];
    bool found;
};

static uint32_t bits(uint32_t set) {
    uint32_t n = 0;
    for (; set; set >>= 1)
        n += set & 1;
    return n;
}

static void judge(struct brute *b) {
    uint64_t score[3] = {0, b->ranks, 0};
    for (uint32_t g = 0; g < b->gpus; g++) {
        score[0] += b->residents[g] > 1 ? b->residents[g] - 1 : 0;
        for (uint32_t p = 0; p < b->phases; p++) {
            if (b->load[g][p] > b->capacity)
                return;
            if (b->load[g][p] > score[2])
                score[2] = b->load[g][p];
        }
    }
    if (b->capacity == UINT64_MAX) {
        uint64_t fullest = score[2];
        memmove(score + 1, score, 2 * sizeof *score);
        score[0] = fullest;
    }
    for (int i = 0; b->found && i < 3; i++) {
        if (score[i] > b->best[i])
            return;
        if (score[i] < b->best[i])
            break;
    }
    memcpy(b->best, score, sizeof score);
    b->found = true;
}

static void add(struct brute *b, uint32_t set, const struct vp_placing_option *o, bool back) {
    for (uint32_t g = 0; g < b->gpus; g++) {
        if (!(set >> g & 1))
            continue;
        b->residents[g] += back ? -1u : 1u;
        for (uint32_t p = 0; p < b->phases; p++)
            b->load[g][p] += back ? -o->bytes[p] : o->bytes[p];
    }
}

static void all(struct brute *b, uint32_t program) {
    if (program == b->count) {
        judge(b);
        return;
    }
    for (uint32_t i = 0; i < b->programs[program].options; i++) {
        const struct vp_placing_option *o = &b->programs[program].option[i];
        for (uint32_t set = 1; set < 1u << b->gpus; set++) {
            if (bits(set) != o->width)
                continue;
            b->ranks += o->width;
            add(b, set, o, false);
            all(b, program + 1);
            add(b, set, o, true);
            b->ranks -= o->width;
        }
    }
}

static uint64_t draw(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* What is said of the answer holds of it: loads are those of the GPUs given, within the capacity.
 */
static void check_loads(const struct vp_placing *a, const struct brute *b) {
    uint64_t load[GPUS][PHASES] = {{0}};
    for (uint32_t i = 0; i < b->count; i++) {
        const struct vp_placing_option *o = &b->programs[i].option[a->option[i]];
        assert_int_equal(bits((uint32_t)a->gpus[i]), o->width);
        assert_true(a->gpus[i] < UINT64_C(1) << b->gpus);
        for (uint32_t g = 0; g < b->gpus; g++)
            for (uint32_t p = 0; p < b->phases && a->gpus[i] >> g & 1; p++)
                load[g][p] += o->bytes[p];
    }
    for (uint32_t g = 0; g < b->gpus; g++)
        for (uint32_t p = 0; p < b->phases; p++) {
            assert_int_equal(load[g][p], a->load[g][p]);
            assert_true(load[g][p] <= b->capacity);
        }
}

static void against_brute_force(void **state) {
    uint64_t seed = 7;
    int placed = 0, not_placed = 0;
    (void)state;
    for (int round = 0; round < 400; round++) {
        struct vp_placing_option options[PROGRAMS][3] = {{{0}}};
        struct vp_placing_program programs[PROGRAMS];
        struct brute b = {.programs = programs};
        struct vp_placing got;
        b.count = 1 + (uint32_t)(draw(&seed) % PROGRAMS);
        b.gpus = 1 + (uint32_t)(draw(&seed) % GPUS);
        b.phases = 1 + (uint32_t)(draw(&seed) % PHASES);
        b.capacity = round % 5 == 0 ? UINT64_MAX : 100;
        for (uint32_t i = 0; i < b.count; i++) {
            programs[i].option = options[i];
            programs[i].options = 1 + (uint32_t)(draw(&seed) % 3);
            for (uint32_t k = 0; k < programs[i].options; k++) {
                options[i][k].width = 1 + (uint32_t)(draw(&seed) % GPUS);
                for (uint32_t p = 0; p < b.phases; p++)
                    options[i][k].bytes[p] = 5 + draw(&seed) % 70;
            }
        }
        all(&b, 0);
        vp_placing_find(&got, programs, b.count, b.gpus, b.phases, b.capacity);
        assert_true(got.complete);
        assert_int_equal(got.found, b.found);
        placed += b.found;
        not_placed += !b.found;
        if (!b.found)
            continue;
        check_loads(&got, &b);
        uint64_t shared = 0, ranks = 0;
        for (uint32_t g = 0; g < b.gpus; g++) {
            uint32_t on = 0;
            for (uint32_t i = 0; i < b.count; i++)
                on += (uint32_t)(got.gpus[i] >> g & 1);
            shared += on > 1 ? on - 1 : 0;
        }
        for (uint32_t i = 0; i < b.count; i++)
            ranks += options[i][got.option[i]].width;
        bool any = b.capacity == UINT64_MAX;
        assert_int_equal(any ? b.best[1] : b.best[0], shared);
        assert_int_equal(any ? b.best[2] : b.best[1], ranks);
        assert_int_equal(any ? b.best[0] : b.best[2], got.fullest);
    }
    assert_true(placed > 50 && not_placed > 50);
}

static void many_programs_end(void **state) {
    static struct vp_placing_option options[32][8];
    static struct vp_placing_program programs[32];
    struct vp_placing got;
    uint64_t seed = 3;
    (void)state;
    for (int i = 0; i < 32; i++) {
        programs[i] = (struct vp_placing_program){options[i], 8};
        for (uint32_t k = 0; k < 8; k++)
            options[i][k] = (struct vp_placing_option){k + 1, {1 + draw(&seed) % 40 / (k + 1)}};
    }
    vp_placing_find(&got, programs, 32, 64, 1, 100);
    assert_true(got.found); /* the cap ends it, with an answer */
}

static void nothing_to_place(void **state) {
    struct vp_placing_option wide = {5, {1}};
    struct vp_placing_program program = {&wide, 1};
    struct vp_placing got;
    (void)state;
    vp_placing_find(&got, &program, 1, 4, 1, 100);
    assert_false(got.found); /* more GPUs than there are */
    program.options = 0;
    vp_placing_find(&got, &program, 1, 8, 1, 100);
    assert_false(got.found);
    vp_placing_find(&got, &program, 0, 8, 1, 100);
    assert_true(got.found && got.fullest == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_brute_force),
                                       cmocka_unit_test(many_programs_end),
                                       cmocka_unit_test(nothing_to_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
