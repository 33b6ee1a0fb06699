/* What 8-bit formats do to numbers, on seeded data: the same figures on every machine. Two sets,
 * 256 channels of 1024 values: `weights`, normal with a deviation of 0.02 that differs between
 * channels by up to eight times (log-uniform), as trained matrices have it; `activations`, normal
 * with deviation 1, one channel in 128 twenty times as large, as hidden states of large models have
 * it (outlier channels: Dettmers et al., "LLM.int8()", 2022). Scales are symmetric: largest size
 * over largest code, per tensor or per channel. */
#ifndef VP_PROBE_QUANT_ERROR_H
#define VP_PROBE_QUANT_ERROR_H

#include "probe/record.h"

enum { VP_QUANT_CHANNELS = 256, VP_QUANT_VALUES = 1024 };

/* Number `i` of the VP_BENCH_ERROR_CASES. Takes scratch from the arena. */
void vp_quant_errors(struct vp_quant_errors *out, struct vp_arena *arena, uint32_t i);

#endif
