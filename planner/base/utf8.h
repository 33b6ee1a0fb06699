/* UTF-8: what is well-formed. */
#ifndef VP_BASE_UTF8_H
#define VP_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes (1 to 4) of the well-formed sequence that begins at p, 0 when there is none: overlong
 * forms, surrogates and what is beyond U+10FFFF are not well-formed. Never looks past a NUL. */
size_t vp_utf8_length(const char *p);

/* The character that the n bytes at p encode; n is what vp_utf8_length gave (1 to 4). */
uint32_t vp_utf8_decode(const char *p, size_t n);
/* The bytes of a character (up to U+10FFFF), with a NUL behind them; returns how many. */
size_t vp_utf8_encode(char out[5], uint32_t c);

#endif
