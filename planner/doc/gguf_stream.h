/* A GGUF header read from front to back through one buffer: numbers in the file's byte order,
 * texts, and skipping. Nothing is read twice and nothing beyond what is asked for by more than a
 * buffer. Internal to planner/doc. */
#ifndef VP_DOC_GGUF_STREAM_H
#define VP_DOC_GGUF_STREAM_H

#include "planner/base/ctx.h"

enum { VP_GGUF_BUFFER_BYTES = 128 * 1024 };

struct vp_gguf_stream {
    struct vp_ctx *ctx;
    const char *path;
    int fd;
    uint64_t file_bytes;
    uint64_t at;           /* offset in the file of the next byte */
    bool swap;             /* the writer's byte order is not that of little-endian machines */
    enum vp_status status; /* VP_OK until something failed; sticky, reads then give zeros */
    unsigned char *buffer;
    size_t next, end; /* in the buffer */
};

/* A fault at the stream's place, which ends it. */
void vp_gguf_fault(struct vp_gguf_stream *s, enum vp_diag_id id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool vp_gguf_ok(const struct vp_gguf_stream *s) { return s->status == VP_OK; }

/* n bytes; a fault that names `what` when the file ends before. */
bool vp_gguf_bytes(struct vp_gguf_stream *s, void *out, size_t n, const char *what);
bool vp_gguf_skip(struct vp_gguf_stream *s, uint64_t n, const char *what);
uint32_t vp_gguf_u32(struct vp_gguf_stream *s, const char *what);
uint64_t vp_gguf_u64(struct vp_gguf_stream *s, const char *what);
/* A length and as many bytes. Only the first `keep` of them are kept. NULL after a fault. */
const char *vp_gguf_text(struct vp_gguf_stream *s, size_t keep, const char *what);
/* Reads over `count` texts. */
bool vp_gguf_skip_texts(struct vp_gguf_stream *s, uint64_t count, const char *what);

#endif
