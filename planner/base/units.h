/* Sizes and counts as people write them, and back. Bytes are integers everywhere else; GB (10^9)
 * and GiB (2^30) exist only here and in the renderers. Locale-independent. */
#ifndef VP_BASE_UNITS_H
#define VP_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/arena.h"

/* "17179869184", "16 GiB", "80GB", "512 MiB", "31.86 GiB" (rounded to the nearest byte).
 * Units: B, kB, KiB, MB, MiB, GB, GiB, TB, TiB. False: not a size, negative, or beyond 64 bits. */
bool vp_parse_size(uint64_t *out_bytes, const char *text);
/* "32768", "32k" and "32K" (= 32 * 1024), "1M" (= 1024 * 1024). */
bool vp_parse_tokens(uint64_t *out_tokens, const char *text);
bool vp_parse_u64(uint64_t *out, const char *text);
/* A finite decimal number, locale-independent: "0.9", "1e-5". */
bool vp_parse_real(double *out, const char *text);
/* "a finite decimal number of GiB" -> bytes, rounded to nearest. */
bool vp_gib_to_bytes(uint64_t *out_bytes, double gib);

/* A time with a unit (us, ms, s, min, h): "50 ms", "600s", "1.5min". At least 0. */
bool vp_parse_duration(double *out_s, const char *text);
/* The same; a bare number is seconds: "600". */
bool vp_parse_seconds(double *out_s, const char *text);
/* So many per second: "4/s", "240 / min", "1000/h", "4" (per second). At least 0. */
bool vp_parse_rate(double *out_per_s, const char *text);

/* "12.35" : bytes / 2^30 with `decimals` (0..6) digits, rounded half up in integers. */
const char *vp_format_gib(struct vp_arena *arena, uint64_t bytes, int decimals);
/* "12.35 GiB", "640 MiB", "17 KiB", "12 B": the unit by size. */
const char *vp_format_bytes(struct vp_arena *arena, uint64_t bytes);
/* "1234567" */
const char *vp_format_u64(struct vp_arena *arena, uint64_t n);
/* "1,234,567" */
const char *vp_format_count(struct vp_arena *arena, uint64_t n);
/* Shortest decimal text that reads back as the same double; never "nan" or "inf". '.' always. */
const char *vp_format_real(struct vp_arena *arena, double v);

#endif
