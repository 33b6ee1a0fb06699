/* Pseudo-random numbers: xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number
 * generators", 2021), its state filled by splitmix64. One seed gives as many streams as there are
 * purposes (arrivals, lengths, ...), so that drawing more of one kind does not shift the others.
 * The same seed and stream give the same numbers on every machine. Not for secrets. */
#ifndef VP_BASE_RANDOM_H
#define VP_BASE_RANDOM_H

#include <stdint.h>

struct vp_random {
    uint64_t state[4];
    double spare; /* of the normal pairs; valid where has_spare */
    int has_spare;
};

void vp_random_seed(struct vp_random *out, uint64_t seed, uint64_t stream);
uint64_t vp_random_bits(struct vp_random *random);
double vp_random_unit(struct vp_random *random);                    /* [0, 1), 53 bits */
uint64_t vp_random_below(struct vp_random *random, uint64_t limit); /* [0, limit), unbiased */
double vp_random_exponential(struct vp_random *random);             /* mean 1 */
double vp_random_normal(struct vp_random *random);                  /* mean 0, deviation 1 */
double vp_random_gamma(struct vp_random *random, double shape);     /* scale 1, shape > 0 */

#endif
