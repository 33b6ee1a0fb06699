#include "planner/doc/gguf_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/sum.h"
#include "planner/doc/gguf.h"

void vp_gguf_fault(struct vp_gguf_stream *s, enum vp_diag_id id, const char *format, ...) {
    struct vp_pos pos = {.file = s->path};
    char text[512];
    va_list args;
    if (s->status != VP_OK)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    vp_diag_add(s->ctx->diags, id, &pos, "%s (at byte %" PRIu64 ")", text, s->at);
    if (id == VP_D_GGUF)
        vp_diag_hint(s->ctx->diags, "the header is damaged or not one of GGUF: get the file again");
    s->status = id == VP_D_IO ? VP_ERR_ENV : VP_ERR_INPUT;
}

static void truncated(struct vp_gguf_stream *s, const char *what) {
    vp_gguf_fault(s, VP_D_GGUF, "truncated: the end of the file comes before the end of %s", what);
    vp_diag_hint(s->ctx->diags,
                 "the file may be the start of a download; its size is %" PRIu64 " bytes",
                 s->file_bytes);
}

/* False, with a fault, when the file or the cap ends before n more bytes. */
static bool has(struct vp_gguf_stream *s, uint64_t n, const char *what) {
    if (s->status != VP_OK)
        return false;
    if (n > s->file_bytes - s->at) {
        truncated(s, what);
        return false;
    }
    if (s->at + n > VP_GGUF_MAX_HEADER_BYTES) {
        vp_gguf_fault(s, VP_D_CAP, "the header is longer than the cap of %d bytes",
                      VP_GGUF_MAX_HEADER_BYTES);
        return false;
    }
    return true;
}

/* At least one more byte into the empty buffer. */
static bool fill(struct vp_gguf_stream *s, const char *what) {
    long got;
    do {
        got = s->ctx->io->read(s->fd, s->buffer, VP_GGUF_BUFFER_BYTES);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        vp_gguf_fault(s, VP_D_IO, "reading failed: %s", strerror(errno));
        return false;
    }
    if (got == 0) { /* it became shorter meanwhile */
        truncated(s, what);
        return false;
    }
    s->next = 0;
    s->end = (size_t)got;
    return true;
}

/* Takes n bytes, into out unless that is NULL. */
static bool take(struct vp_gguf_stream *s, unsigned char *out, uint64_t n, const char *what) {
    if (!has(s, n, what))
        return false;
    while (n > 0) {
        if (s->next == s->end && !fill(s, what))
            return false;
        size_t part = (size_t)vp_min(n, s->end - s->next);
        if (out) {
            memcpy(out, s->buffer + s->next, part);
            out += part;
        }
        s->next += part;
        s->at += part;
        n -= part;
    }
    return true;
}

bool vp_gguf_bytes(struct vp_gguf_stream *s, void *out, size_t n, const char *what) {
    if (take(s, out, n, what))
        return true;
    memset(out, 0, n);
    return false;
}

bool vp_gguf_skip(struct vp_gguf_stream *s, uint64_t n, const char *what) {
    return take(s, NULL, n, what);
}

static uint64_t number(const struct vp_gguf_stream *s, const unsigned char *bytes, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | bytes[s->swap ? i : n - 1 - i];
    return v;
}

uint32_t vp_gguf_u32(struct vp_gguf_stream *s, const char *what) {
    unsigned char bytes[4];
    vp_gguf_bytes(s, bytes, sizeof bytes, what);
    return (uint32_t)number(s, bytes, sizeof bytes);
}

uint64_t vp_gguf_u64(struct vp_gguf_stream *s, const char *what) {
    unsigned char bytes[8];
    vp_gguf_bytes(s, bytes, sizeof bytes, what);
    return number(s, bytes, sizeof bytes);
}

const char *vp_gguf_text(struct vp_gguf_stream *s, size_t keep, const char *what) {
    uint64_t length = vp_gguf_u64(s, what);
    if (!has(s, length, what))
        return NULL;
    size_t kept = (size_t)vp_min(length, keep);
    char *text = vp_arena_alloc(s->ctx->arena, kept + 1);
    if (!vp_gguf_bytes(s, text, kept, what) || !vp_gguf_skip(s, length - kept, what))
        return NULL;
    return text;
}

/* A text that lies in the buffer as a whole; what does not is left to the general way, which also
 * holds the cap. Tokenizers have hundreds of thousands. */
static bool skip_buffered(struct vp_gguf_stream *s) {
    enum { LENGTH_BYTES = 8 };
    size_t left = s->end - s->next;
    if (left < LENGTH_BYTES)
        return false;
    uint64_t n = number(s, s->buffer + s->next, LENGTH_BYTES);
    if (n > left - LENGTH_BYTES)
        return false;
    s->next += LENGTH_BYTES + (size_t)n;
    s->at += LENGTH_BYTES + n;
    return true;
}

bool vp_gguf_skip_texts(struct vp_gguf_stream *s, uint64_t count, const char *what) {
    for (uint64_t i = 0; i < count && s->status == VP_OK; i++)
        if (!skip_buffered(s))
            vp_gguf_skip(s, vp_gguf_u64(s, what), what);
    return s->status == VP_OK;
}
