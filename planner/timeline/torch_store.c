/* Storages of a PyTorch step: holders, the tape, events. */
#include "planner/timeline/torch_parts.h"

#include <string.h>

static void tell(struct vp_torch *t, enum vp_event_kind kind, uint32_t id) {
    const struct vp_torch_holder *h = &t->holder[id];
    bool kept = t->stamp || (t->keeps && h->ordinal < VP_TORCH_TAKES && t->keeps[h->ordinal]);
    if (t->trial)
        return;
    struct vp_event event = {.kind = (uint8_t)kind,
                             .stream = h->stream,
                             .component = h->component,
                             .step = t->step,
                             .id = id,
                             .bytes = h->bytes,
                             .layer = t->layer,
                             .micro_batch = t->micro_batch,
                             .cause = t->cause,
                             .kept = kind == VP_EVENT_TAKE && kept};
    t->sink.event(t->sink.user, &event);
}

static void *grown(struct vp_torch *t, const void *old, uint32_t *capacity, size_t size) {
    uint32_t wanted = *capacity ? *capacity * 2 : 256;
    char *array = vp_arena_array(t->arena, wanted, size);
    if (*capacity)
        memcpy(array, old, *capacity * size);
    *capacity = wanted;
    return array;
}

uint32_t vp_torch_take_on(struct vp_torch *t, uint64_t bytes, uint8_t stream,
                          enum vp_component component) {
    uint32_t id = t->unused;
    if (id != VP_NO_STORAGE) {
        t->unused = t->holder[id].next;
    } else {
        if (t->holders == t->capacity)
            t->holder = grown(t, t->holder, &t->capacity, sizeof *t->holder);
        id = t->holders++;
    }
    t->holder[id] = (struct vp_torch_holder){.holders = 1,
                                             .bytes = bytes,
                                             .ordinal = t->ordinal++,
                                             .component = (uint8_t)component,
                                             .stream = stream};
    tell(t, VP_EVENT_TAKE, id);
    return id;
}

uint32_t vp_torch_take(struct vp_torch *t, uint64_t rows, uint64_t width, uint64_t bytes) {
    struct vp_sum size = vp_sum_mul(vp_sum_mul(vp_sum(rows), width), bytes);
    t->overflow |= size.overflow;
    return vp_torch_take_on(t, size.overflow ? 0 : size.v, VP_STREAM_WORK,
                            (enum vp_component)t->component);
}

uint32_t vp_torch_take_weight(struct vp_torch *t, uint64_t elements, uint64_t bytes) {
    uint8_t component = t->component;
    t->component = VP_C_WEIGHTS;
    uint32_t id = vp_torch_take(t, elements, bytes, 1);
    t->component = component;
    return id;
}

uint32_t vp_torch_share(struct vp_torch *t, uint32_t id) {
    t->holder[id].holders++;
    return id;
}

void vp_torch_drop(struct vp_torch *t, uint32_t id) {
    struct vp_torch_holder *h = &t->holder[id];
    if (--h->holders > 0)
        return;
    tell(t, VP_EVENT_GIVE, id);
    h->next = t->unused;
    t->unused = id;
}

uint32_t vp_torch_become(struct vp_torch *t, uint32_t old, uint32_t new_id) {
    vp_torch_drop(t, old);
    return new_id;
}

void vp_torch_push(struct vp_torch *t, struct vp_torch_stack *stack, uint32_t id) {
    if (stack->depth == stack->capacity)
        stack->id = grown(t, stack->id, &stack->capacity, sizeof *stack->id);
    stack->id[stack->depth++] = id;
}

void vp_torch_keep(struct vp_torch *t, uint32_t id) {
    if (t->recording)
        vp_torch_push(t, t->tape, id);
    else
        vp_torch_drop(t, id);
}

void vp_torch_keep_shared(struct vp_torch *t, uint32_t id) {
    if (t->recording)
        vp_torch_push(t, t->tape, vp_torch_share(t, id));
}

uint32_t vp_torch_pop(struct vp_torch *t) { return t->tape->id[--t->tape->depth]; }

void vp_torch_drop_kept(struct vp_torch *t, uint32_t count) {
    while (count-- > 0)
        vp_torch_drop(t, vp_torch_pop(t));
}

void vp_torch_gradient(struct vp_torch *t, uint32_t node, uint32_t slot, uint64_t elements,
                       uint64_t bytes) {
    uint32_t *place = &t->gradient[t->row][node * VP_TORCH_SLOTS + slot];
    uint8_t component = t->component;
    t->component = VP_C_GRADIENTS;
    uint32_t id = vp_torch_take(t, elements, bytes, 1);
    t->component = component;
    if (*place == VP_NO_STORAGE)
        *place = id;
    else /* added to what earlier micro batches left */
        vp_torch_drop(t, id);
}

void vp_torch_end_autocast(struct vp_torch *t) {
    while (t->casts > 0)
        vp_torch_drop(t, t->cast[--t->casts]);
}
