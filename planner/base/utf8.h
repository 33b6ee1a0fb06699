/* UTF-8: what is well-formed. */
#ifndef VP_BASE_UTF8_H
#define VP_BASE_UTF8_H

#include <stddef.h>

/* Bytes (1 to 4) of the well-formed sequence that begins at p, 0 when there is none: overlong
 * forms, surrogates and what is beyond U+10FFFF are not well-formed. Never looks past a NUL. */
size_t vp_utf8_length(const char *p);

#endif
