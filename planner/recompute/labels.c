#include "planner/recompute/labels.h"

#include <stdlib.h>
#include <string.h>

#include "planner/base/sum.h"

struct maker {
    const struct vp_moves *moves;
    const struct vp_dual *dual;
    vp_wide limit;   /* scaled, with the constant part of the bound */
    vp_wide *lowest; /* n + 1: least bound of the labels at p */
    uint32_t cap;
    struct vp_labels *out;
    struct vp_label *list, *other; /* what was gathered at this position, room to merge */
    uint32_t count, room;
    struct vp_arena *arena; /* of the results */
    struct vp_arena scratch;
};

/* No plan with this label at p takes less extra time (scaled, and but for the constant part). */
static vp_wide bound_of(const struct maker *m, uint32_t p, const struct vp_label *label) {
    const struct vp_dual *d = m->dual;
    vp_wide bound = d->before[p] + ((vp_wide)label->low << d->shift) +
                    (vp_wide)d->price[p] * (vp_wide)label->need;
    if (m->moves->others)
        bound += (vp_wide)d->price[0] * (vp_wide)(m->moves->others * label->stored);
    return bound;
}

/* Whether no label after the move can be part of a plan within the limit: a move lengthens the
 * bound of a label by no less than it is longer than the shortest path before it. */
static bool is_move_hopeless(const struct maker *m, uint32_t i) {
    uint32_t next = m->moves->items[i].next;
    const struct vp_dual *d = m->dual;
    if (m->out->at[next].count == 0)
        return true;
    return d && d->through[i] - d->after[next] - d->before[next] + m->lowest[next] > m->limit;
}

static void make_room(struct maker *m, uint32_t more) {
    if (m->count + more <= m->room)
        return;
    struct vp_label *old = m->list;
    m->room = 2 * (m->count + more) + 64;
    m->list = VP_NEW_ARRAY(&m->scratch, m->room, struct vp_label);
    m->other = VP_NEW_ARRAY(&m->scratch, m->room, struct vp_label);
    if (m->count)
        memcpy(m->list, old, m->count * sizeof *old);
}

static struct vp_label before(const struct vp_move *move, uint32_t index,
                              const struct vp_label *then, uint32_t then_index) {
    return (struct vp_label){.need = vp_max(move->need, move->stored + then->need),
                             .stored = move->stored + then->stored,
                             .time = move->time + then->time,
                             .low = move->time + then->low,
                             .move = index,
                             .then = then_index};
}

/* ---- one microbatch: labels are pairs (need, time), lists are merged ---- */

/* Appends a label whose need is at least that of all before. */
static void append(struct vp_label *list, uint32_t *count, const struct vp_label *label) {
    struct vp_label *last = &list[*count - 1];
    if (*count && last->time <= label->time) {
        last->low = vp_min(last->low, label->low);
    } else if (*count && last->need == label->need) {
        uint64_t low = vp_min(last->low, label->low);
        *last = *label;
        last->low = low;
    } else {
        list[(*count)++] = *label;
    }
}

/* Whether what a label of this need and low gives after a move is hopeless. */
struct test {
    vp_wide price, most;
    unsigned shift;
    bool all_hope; /* there are no bounds */
};

static struct test make_test(const struct maker *m, uint32_t p) {
    const struct vp_dual *d = m->dual;
    if (!d)
        return (struct test){.all_hope = true};
    return (struct test){(vp_wide)d->price[p], m->limit - d->before[p], d->shift, false};
}

static bool is_hopeless(const struct test *t, uint64_t need, uint64_t low) {
    return !t->all_hope && ((vp_wide)low << t->shift) + t->price * (vp_wide)need > t->most;
}

static bool beats(const struct vp_label *label, uint64_t time, uint64_t low) {
    return label->time <= time && label->low <= low;
}

/* The old list is read along with the new labels, and copied only from the first one that it does
 * not beat. Blocks without hope, or beaten as a whole, are passed over: the first of a block has
 * the least need. */
static void merge_move(struct maker *m, uint32_t p, uint32_t index) {
    const struct vp_move move = m->moves->items[index];
    const struct vp_label_list from = m->out->at[move.next];
    const struct test test = make_test(m, p);
    make_room(m, from.count);
    struct vp_label *old = m->list, *merged = m->other;
    uint32_t i = 0, count = 0, hopeless = 0;
    bool any = false;
    for (uint32_t j = 0; j < from.count; j++) {
        uint64_t need = vp_max(move.need, move.stored + from.items[j].need);
        if (!vp_moves_fit(m->moves, p, need, 0))
            break;
        for (; i < m->count && old[i].need <= need; i++)
            if (any)
                append(merged, &count, &old[i]);
        struct vp_label *last = any ? &merged[count - 1] : i ? &old[i - 1] : NULL;
        if (j % VP_LABEL_BLOCK == 0) {
            uint64_t low = move.time + from.block_low[j / VP_LABEL_BLOCK];
            if (is_hopeless(&test, need, low) || (last && beats(last, low, low))) {
                j += VP_LABEL_BLOCK - 1;
                continue;
            }
        }
        struct vp_label label = before(&move, index, &from.items[j], j);
        if (is_hopeless(&test, need, label.low)) {
            hopeless++;
        } else if (last && last->time <= label.time) {
            last->low = vp_min(last->low, label.low);
        } else {
            if (!any && i)
                memcpy(merged, old, i * sizeof *old);
            count = any ? count : i;
            any = true;
            append(merged, &count, &label);
        }
    }
    m->out->pruned += hopeless;
    if (!any)
        return;
    while (i < m->count)
        append(merged, &count, &old[i++]);
    m->list = merged;
    m->other = old;
    m->count = count;
}

/* ---- several: triples, sorted, and swept along a skyline ---- */

static void gather_move(struct maker *m, uint32_t p, uint32_t index) {
    const struct vp_move *move = &m->moves->items[index];
    const struct vp_label_list *from = &m->out->at[move->next];
    make_room(m, from->count);
    for (uint32_t j = 0; j < from->count; j++) {
        struct vp_label label = before(move, index, &from->items[j], j);
        if (!vp_moves_fit(m->moves, p, label.need, label.stored))
            continue;
        if (m->dual && bound_of(m, p, &label) > m->limit)
            m->out->pruned++;
        else
            m->list[m->count++] = label;
    }
}

static int by_time(const void *a, const void *b) {
    const struct vp_label *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->need != y->need)
        return x->need < y->need ? -1 : 1;
    return (x->stored > y->stored) - (x->stored < y->stored);
}

static int by_need(const void *a, const void *b) {
    const struct vp_label *x = a, *y = b;
    if (x->need != y->need)
        return x->need < y->need ? -1 : 1;
    return (x->stored > y->stored) - (x->stored < y->stored);
}

/* The skyline holds indices into m->list: rising need, falling stored. The last of those whose need
 * is not above the label's; count: none. */
static uint32_t find_below(const struct vp_label *list, const uint32_t *skyline, uint32_t count,
                           uint64_t need) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (list[skyline[middle]].need <= need)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Takes label i of the list into the skyline, or finds that one of those before beats it. */
static bool enter(struct vp_label *list, uint32_t *skyline, uint32_t *count, uint32_t i) {
    uint32_t at = find_below(list, skyline, *count, list[i].need), end = at;
    if (at && list[skyline[at - 1]].stored <= list[i].stored) {
        struct vp_label *winner = &list[skyline[at - 1]];
        winner->low = vp_min(winner->low, list[i].low);
        return false;
    }
    while (at && list[skyline[at - 1]].need == list[i].need)
        at--;
    while (end < *count && list[skyline[end]].stored >= list[i].stored)
        end++;
    memmove(skyline + at + 1, skyline + end, (*count - end) * sizeof *skyline);
    skyline[at] = i;
    *count = *count - (end - at) + 1;
    return true;
}

/* Drops what is beaten. Times within one grain count as equal: 1 is exact. */
static void sweep(struct maker *m, uint64_t grain) {
    if (m->count == 0)
        return;
    struct vp_arena_mark mark = vp_arena_mark(&m->scratch);
    uint32_t *skyline = VP_NEW_ARRAY(&m->scratch, m->count, uint32_t), count = 0, kept = 0;
    qsort(m->list, m->count, sizeof *m->list, by_time);
    for (uint32_t i = 0, end; grain > 1 && i < m->count; i = end) {
        for (end = i; end < m->count && m->list[end].time / grain == m->list[i].time / grain;)
            end++;
        qsort(m->list + i, end - i, sizeof *m->list, by_need);
    }
    bool *keep = VP_NEW_ARRAY(&m->scratch, m->count, bool);
    for (uint32_t i = 0; i < m->count; i++)
        keep[i] = enter(m->list, skyline, &count, i);
    for (uint32_t i = 0; i < m->count; i++)
        if (keep[i])
            m->list[kept++] = m->list[i];
    m->count = kept;
    vp_arena_rewind(&m->scratch, mark);
}

/* ---- thinning ---- */

/* Of labels whose times are in one grain the one of the least need stays. */
static void thin_pairs(struct maker *m, uint64_t grain) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        struct vp_label *last = &m->list[kept - 1];
        if (kept && last->time / grain == m->list[i].time / grain)
            last->low = vp_min(last->low, m->list[i].low);
        else
            m->list[kept++] = m->list[i];
    }
    m->count = kept;
}

static void thin(struct maker *m) {
    uint64_t least = UINT64_MAX, most = 0;
    if (m->count <= m->cap)
        return;
    m->out->exact = false;
    for (uint32_t i = 0; i < m->count; i++) {
        least = vp_min(least, m->list[i].time);
        most = vp_max(most, m->list[i].time);
    }
    for (uint64_t grain = (most - least) / m->cap + 2; m->count > m->cap; grain *= 2) {
        if (m->moves->others)
            sweep(m, grain);
        else
            thin_pairs(m, grain);
        if (grain > most)
            break;
    }
}

/* ---- all positions ---- */

/* What was gathered becomes the list of p. */
static void keep_list(struct maker *m, uint32_t p) {
    struct vp_label_list *list = &m->out->at[p];
    list->count = m->count;
    list->items = VP_NEW_ARRAY(m->arena, m->count, struct vp_label);
    list->block_low = VP_NEW_ARRAY(m->arena, m->count / VP_LABEL_BLOCK + 1, uint64_t);
    if (m->count)
        memcpy(list->items, m->list, m->count * sizeof *m->list);
    m->out->made += m->count;
    for (uint32_t i = 0; i < m->count; i++) {
        uint64_t *low = &list->block_low[i / VP_LABEL_BLOCK];
        *low = i % VP_LABEL_BLOCK ? vp_min(*low, list->items[i].low) : list->items[i].low;
        vp_wide bound = m->dual ? bound_of(m, p, &list->items[i]) : 0;
        if (m->dual && (i == 0 || bound < m->lowest[p]))
            m->lowest[p] = bound;
    }
}

static void make_list(struct maker *m, uint32_t p) {
    bool several = m->moves->others > 0;
    m->count = 0;
    for (uint32_t i = m->moves->first[p]; i < m->moves->first[p + 1]; i++) {
        if (is_move_hopeless(m, i))
            continue;
        if (several)
            gather_move(m, p, i);
        else
            merge_move(m, p, i);
        if (m->count > 2 * (uint64_t)m->cap + 64) {
            if (several)
                sweep(m, 1);
            thin(m);
        }
    }
    if (several)
        sweep(m, 1);
    thin(m);
    keep_list(m, p);
}

void vp_labels_make(struct vp_arena *arena, struct vp_labels *out, const struct vp_moves *moves,
                    const struct vp_dual *dual, uint64_t limit, uint32_t cap) {
    struct maker m = {.moves = moves, .dual = dual, .cap = cap, .out = out, .arena = arena};
    uint32_t n = moves->n;
    m.scratch.oom = arena->oom;
    m.scratch.take = arena->take;
    if (dual) {
        m.lowest = VP_NEW_ARRAY(arena, n + 1, vp_wide);
        m.lowest[n] = dual->before[n];
        m.limit =
            ((vp_wide)limit << dual->shift) + (vp_wide)dual->price[0] * (vp_wide)moves->budget;
    }
    *out =
        (struct vp_labels){.at = VP_NEW_ARRAY(arena, n + 1, struct vp_label_list), .exact = true};
    out->at[n] = (struct vp_label_list){
        .items = VP_NEW(arena, struct vp_label), .block_low = VP_NEW(arena, uint64_t), .count = 1};
    for (uint32_t p = n; p-- > 0;)
        make_list(&m, p);
    vp_arena_free(&m.scratch);
}

void vp_labels_plan(struct vp_arena *arena, struct vp_recompute_plan *out,
                    const struct vp_labels *labels, const struct vp_moves *moves, uint32_t label) {
    struct vp_plan_item *items = VP_NEW_ARRAY(arena, moves->n, struct vp_plan_item);
    uint32_t count = 0;
    for (uint32_t p = 0; p < moves->n;) {
        const struct vp_label *l = &labels->at[p].items[label];
        const struct vp_move *move = &moves->items[l->move];
        bool segment = move->option == VP_MOVE_SEGMENT;
        items[count++] = (struct vp_plan_item){.first = p,
                                               .last = move->next - 1,
                                               .option = segment ? 0 : move->option,
                                               .recompute = segment};
        label = l->then;
        p = move->next;
    }
    *out = (struct vp_recompute_plan){.items = items, .count = count};
}
