/* Requests that wait, in order of arrival or of priority. */
#include "planner/serving/sim_parts.h"

#include <string.h>

/* By priority a binary heap; else a list, because those that were preempted come back to its
 * front. */

bool vp_wait_before(const struct vp_sim_seq *a, const struct vp_sim_seq *b) {
    return a->priority != b->priority ? a->priority < b->priority : a->number < b->number;
}

static void heap_push(struct vp_wait_queue *queue, struct vp_arena *arena, struct vp_sim_seq *seq) {
    uint32_t i = queue->count++;

    if (i == queue->room) {
        struct vp_sim_seq **wider;
        queue->room = queue->room > 0 ? 2 * queue->room : 64;
        wider = VP_NEW_ARRAY(arena, queue->room, struct vp_sim_seq *);
        if (i > 0)
            memcpy(wider, queue->heap, i * sizeof *wider);
        queue->heap = wider;
    }
    for (; i > 0 && vp_wait_before(seq, queue->heap[(i - 1) / 2]); i = (i - 1) / 2)
        queue->heap[i] = queue->heap[(i - 1) / 2];
    queue->heap[i] = seq;
}

static struct vp_sim_seq *heap_pop(struct vp_wait_queue *queue) {
    struct vp_sim_seq *first = queue->heap[0], *moved = queue->heap[--queue->count];
    uint32_t i = 0, child;

    for (; (child = 2 * i + 1) < queue->count; i = child) {
        if (child + 1 < queue->count && vp_wait_before(queue->heap[child + 1], queue->heap[child]))
            child++;
        if (!vp_wait_before(queue->heap[child], moved))
            break;
        queue->heap[i] = queue->heap[child];
    }
    queue->heap[i] = moved;
    return first;
}

void vp_wait_push(struct vp_wait_queue *queue, struct vp_arena *arena, struct vp_sim_seq *seq) {
    if (queue->by_priority) {
        heap_push(queue, arena, seq);
        return;
    }
    seq->next = NULL;
    *(queue->newest ? &queue->newest->next : &queue->first) = seq;
    queue->newest = seq;
    queue->count++;
}

void vp_wait_push_front(struct vp_wait_queue *queue, struct vp_arena *arena,
                        struct vp_sim_seq *seq) {
    if (queue->by_priority) {
        heap_push(queue, arena, seq);
        return;
    }
    seq->next = queue->first;
    if (!queue->first)
        queue->newest = seq;
    queue->first = seq;
    queue->count++;
}

struct vp_sim_seq *vp_wait_peek(const struct vp_wait_queue *queue) {
    if (queue->by_priority)
        return queue->count > 0 ? queue->heap[0] : NULL;
    return queue->first;
}

struct vp_sim_seq *vp_wait_pop(struct vp_wait_queue *queue) {
    struct vp_sim_seq *seq = queue->first;

    if (queue->by_priority)
        return heap_pop(queue);
    queue->first = seq->next;
    if (!seq->next)
        queue->newest = NULL;
    queue->count--;
    seq->next = NULL;
    return seq;
}
