#include "planner/base/random.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

static uint64_t rotate_left(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void vp_random_seed(struct vp_random *out, uint64_t seed, uint64_t stream) {
    uint64_t mixed = stream;
    uint64_t state = seed ^ splitmix(&mixed);

    *out = (struct vp_random){{0}, 0, 0};
    for (int i = 0; i < 4; i++)
        out->state[i] = splitmix(&state);
}

uint64_t vp_random_bits(struct vp_random *random) {
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9, shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double vp_random_unit(struct vp_random *random) {
    return (double)(vp_random_bits(random) >> 11) * 0x1p-53;
}

/* What lies beyond the last whole multiple of the limit is drawn again. */
uint64_t vp_random_below(struct vp_random *random, uint64_t limit) {
    uint64_t excess, bits;

    if (limit == 0)
        return 0;
    excess = (UINT64_MAX % limit + 1) % limit;
    do
        bits = vp_random_bits(random);
    while (bits > UINT64_MAX - excess);
    return bits % limit;
}

double vp_random_exponential(struct vp_random *random) { return -log1p(-vp_random_unit(random)); }

/* Box and Muller's two at a time. */
double vp_random_normal(struct vp_random *random) {
    if (random->has_spare) {
        random->has_spare = 0;
        return random->spare;
    }
    double radius = sqrt(2 * vp_random_exponential(random));
    double angle = 2 * PI * vp_random_unit(random);
    random->spare = radius * sin(angle);
    random->has_spare = 1;
    return radius * cos(angle);
}

/* Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; below shape 1 that
 * of shape + 1 times a power of a uniform number. */
double vp_random_gamma(struct vp_random *random, double shape) {
    double boost = 1;

    if (shape < 1) {
        boost = pow(1 - vp_random_unit(random), 1 / shape);
        shape += 1;
    }
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = vp_random_normal(random), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        double u = 1 - vp_random_unit(random);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v * boost;
    }
}
