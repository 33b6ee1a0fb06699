#include "planner/base/memo.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Entries are added under the lock and never changed or taken away, so that they can be read
 * without it. A run has some tens of them: a list will do. */
struct entry {
    struct entry *next;
    const char *key;
    uint64_t hash;
    const void *value;
    enum vp_status status;
    struct vp_diags *diags; /* NULL: none */
};

struct vp_memo {
    _Atomic(struct entry *) head;
    pthread_mutex_t lock;
    struct vp_arena arena;
};

struct vp_memo *vp_memo_new(void) {
    struct vp_memo *memo = calloc(1, sizeof *memo);
    if (!memo)
        return NULL;
    if (pthread_mutex_init(&memo->lock, NULL) != 0) {
        free(memo);
        return NULL;
    }
    return memo;
}

void vp_memo_free(struct vp_memo *memo) {
    if (!memo)
        return;
    vp_arena_free(&memo->arena);
    pthread_mutex_destroy(&memo->lock);
    free(memo);
}

/* FNV-1a */
static uint64_t hash_of(const char *key) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *p = key; *p; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    return hash;
}

static const struct entry *find(struct vp_memo *memo, const char *key, uint64_t hash) {
    const struct entry *e = atomic_load_explicit(&memo->head, memory_order_acquire);
    while (e && (e->hash != hash || strcmp(e->key, key) != 0))
        e = e->next;
    return e;
}

typedef enum vp_status maker(struct vp_ctx *ctx, const void **out, const void *from);

/* Under the lock, in the memo's arena. */
static void fill(struct vp_ctx *ctx, struct entry *entry, const char *key, maker *make,
                 const void *from) {
    struct vp_arena *arena = &ctx->memo->arena;
    struct vp_ctx own = *ctx;
    own.arena = arena;
    own.memo = NULL; /* the lock is held; what is made of parts keeps the whole */
    own.diags = VP_NEW(arena, struct vp_diags);
    own.diags->arena = arena;
    entry->key = vp_arena_text(arena, key, strlen(key));
    entry->hash = hash_of(key);
    entry->status = make(&own, &entry->value, from);
    if (own.diags->count > 0 || own.diags->errors > 0)
        entry->diags = own.diags;
}

/* The memo's arena leaves by longjmp when there is no memory: the lock must be given back first. */
static const struct entry *add_locked(struct vp_ctx *ctx, struct entry **kept, const char *key,
                                      maker *make, const void *from) {
    struct vp_memo *memo = ctx->memo;
    jmp_buf guard;
    const struct entry *e = find(memo, key, hash_of(key)); /* another thread was first */
    if (e)
        return e;
    if (setjmp(guard)) {
        memo->arena.oom = NULL;
        return NULL;
    }
    memo->arena.oom = &guard;
    *kept = VP_NEW(&memo->arena, struct entry);
    fill(ctx, *kept, key, make, from);
    memo->arena.oom = NULL;
    return *kept;
}

static const struct entry *add(struct vp_ctx *ctx, const char *key, maker *make, const void *from) {
    struct vp_memo *memo = ctx->memo;
    struct entry *made = NULL;
    pthread_mutex_lock(&memo->lock);
    const struct entry *e = add_locked(ctx, &made, key, make, from);
    if (e && e == made && e->status != VP_ERR_ENV) {
        made->next = atomic_load_explicit(&memo->head, memory_order_relaxed);
        atomic_store_explicit(&memo->head, made, memory_order_release);
    }
    pthread_mutex_unlock(&memo->lock);
    if (!e)
        vp_arena_array(ctx->arena, SIZE_MAX, 2); /* no memory: goes on to the owner's jump */
    return e;
}

static const char *copy_text(struct vp_arena *arena, const char *text) {
    return text ? vp_arena_text(arena, text, strlen(text)) : NULL;
}

/* Diagnostics may outlive the memo. */
static void tell(struct vp_diags *out, const struct vp_diags *made) {
    struct vp_diags *copy = VP_NEW(out->arena, struct vp_diags);
    *copy = *made;
    for (uint32_t i = 0; i < copy->count; i++) {
        struct vp_diag *diag = &copy->items[i];
        diag->message = copy_text(out->arena, diag->message);
        diag->hint = copy_text(out->arena, diag->hint);
        diag->pos.file = copy_text(out->arena, diag->pos.file);
    }
    vp_diags_merge(out, copy);
}

enum vp_status vp_memo_get(struct vp_ctx *ctx, const void **out, const char *key, maker *make,
                           const void *from) {
    if (!ctx->memo)
        return make(ctx, out, from);
    const struct entry *e = find(ctx->memo, key, hash_of(key));
    if (!e)
        e = add(ctx, key, make, from);
    if (e->diags)
        tell(ctx->diags, e->diags);
    *out = e->value;
    return e->status;
}
