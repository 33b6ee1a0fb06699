/* Rows and order of a step: what each layer keeps, storage by storage, and which pass comes when.
 */

#include "planner/timeline/step_parts.h"

/* Tensors below this size are told as one: together they are a small part of a tape. */
static const uint64_t SMALL = 1 << 20;

/* Fills `out` with the bytes of the chosen items; what they lack of `bytes` becomes one more. When
 * they exceed it (fused or compiled tapes), they are told as one storage. */
static void split(struct vp_row_items *out, const struct vp_tape *tape, uint64_t bytes,
                  uint32_t left_out) {
    struct vp_sum sum = vp_sum(0);
    uint64_t small = 0;

    out->count = 1;
    for (uint32_t i = 0; i < tape->count; i++) {
        const struct vp_tape_item *item = &tape->item[i];
        if (item->on_input || item->bytes == 0 || item->selective & left_out)
            continue;
        sum = vp_sum_add(sum, item->bytes);
        if (item->bytes < SMALL || out->count + 2 >= VP_ROW_ITEMS)
            small += item->bytes;
        else
            out->bytes[out->count++] = item->bytes;
    }
    if (sum.overflow || sum.v > bytes) {
        out->count = 1;
        small = bytes;
        sum = vp_sum(bytes);
    }
    if (small > 0)
        out->bytes[out->count++] = small;
    if (bytes > sum.v)
        out->bytes[out->count++] = bytes - sum.v;
}

/* The storage of the input, when it is on the tape. */
static uint64_t kept_input(const struct vp_tape *tape, uint32_t left_out) {
    for (uint32_t i = 0; i < tape->count; i++)
        if (tape->item[i].on_input && !(tape->item[i].selective & left_out))
            return tape->item[i].bytes;
    return 0;
}

static void make_layer(struct vp_step_row *row, const struct vp_train_layer *l, uint32_t left_out) {
    const struct vp_tape *tape = l->tape;
    uint64_t input = l->recomputed ? tape->input_bytes : kept_input(tape, left_out);

    row->input_bytes = tape->input_bytes;
    row->output_bytes = tape->output_bytes;
    row->keeps_input = input > 0 && l->saved_bytes >= input;
    uint64_t rest = l->saved_bytes - (row->keeps_input ? input : 0);
    if (l->recomputed) {
        row->saved.count = 1;
        if (rest > 0)
            row->saved.bytes[row->saved.count++] = rest;
        split(&row->rebuilt, tape, l->rebuilt_bytes, 0);
    } else {
        split(&row->saved, tape, rest, left_out);
        row->rebuilt.count = 1;
        if (l->rebuilt_bytes > 0)
            row->rebuilt.bytes[row->rebuilt.count++] = l->rebuilt_bytes;
    }
}

/* saved: what stays while the loss is at work; rebuilt: what the backward pass of the head's matrix
 * reads, which the peak of the loss holds already. */
static void make_head(struct vp_step_row *row, const struct vp_head_tape *head) {
    const struct vp_tape *tape = &head->tape;
    uint64_t loss = 0, input = kept_input(tape, 0);

    for (uint32_t i = 0; i < tape->count; i++)
        if (tape->item[i].group == VP_TAPE_LOSS)
            loss += tape->item[i].bytes;
    uint64_t stays = vp_above(vp_above(tape->saved_bytes, head->peak_tape_bytes), input);
    uint64_t read = vp_above(vp_above(vp_above(tape->saved_bytes, loss), input), stays);
    row->input_bytes = tape->input_bytes;
    row->keeps_input = input > 0;
    row->saved.count = row->rebuilt.count = 1;
    if (stays > 0)
        row->saved.bytes[row->saved.count++] = stays;
    if (read > 0)
        row->rebuilt.bytes[row->rebuilt.count++] = read;
}

struct vp_step_row *vp_step_rows(struct vp_arena *arena, const struct vp_scenario *scenario,
                                 const struct vp_train_stage *stage) {
    struct vp_step_row *rows = VP_NEW_ARRAY(arena, (size_t)stage->layers + 2, struct vp_step_row);
    const struct vp_recompute *how = &scenario->train.recompute;
    uint32_t left_out = how->kind == VP_RECOMPUTE_SELECTIVE ? how->selective : 0;

    for (uint32_t i = 0; i < stage->layers; i++)
        make_layer(&rows[i], &stage->layer[i], left_out);
    split(&rows[stage->layers].saved, &stage->embedding, stage->embedding.saved_bytes, 0);
    rows[stage->layers].rebuilt.count = 1;
    make_head(&rows[stage->layers + 1], &stage->head);
    return rows;
}

/* Virtual stages take turns: each runs as many micro batches as there are stages, forward from the
 * first on, backward from the last. What is left over at the end makes a shorter turn. */
struct vp_step_schedule vp_step_schedule_make(struct vp_arena *arena,
                                              const struct vp_train_stage *stage) {
    struct vp_step_schedule out = {0};
    uint64_t n = vp_max(stage->micro_batches, 1), chunks = vp_max(stage->chunks, 1), at = 0;
    uint64_t turn = chunks > 1 ? vp_max(stage->count, 1) : 1;

    out.count = n * chunks;
    out.forward = VP_NEW_ARRAY(arena, out.count, struct vp_step_pass);
    out.backward = VP_NEW_ARRAY(arena, out.count, struct vp_step_pass);
    for (uint64_t first = 0; first < n; first += turn) {
        for (uint64_t c = 0; c < chunks; c++) {
            for (uint64_t i = first; i < vp_min(first + turn, n); i++, at++) {
                out.forward[at] = (struct vp_step_pass){(uint32_t)i, (uint32_t)c};
                out.backward[at] = (struct vp_step_pass){(uint32_t)i, (uint32_t)(chunks - 1 - c)};
            }
        }
    }
    /* the first backward pass is the last chunk's: its forward pass must have been */
    out.ahead = vp_max(stage->in_flight, vp_min(turn, n) * (chunks - 1) + 1);
    out.ahead = vp_min(out.ahead, out.count);
    out.slots = chunks > 1 ? (vp_ceil_div(out.ahead, turn * chunks) + 1) * turn : out.ahead;
    out.period = out.slots * chunks;
    out.regular = n / turn * turn * chunks;
    return out;
}
