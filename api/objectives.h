/* What is best among many plans, by several measures at once: which columns of a sweep are
 * compared, and the front of lines that no other line beats, kept up to date as lines come in. */
#ifndef VP_API_OBJECTIVES_H
#define VP_API_OBJECTIVES_H

#include "planner/base/ctx.h"

enum { VP_OBJECTIVES = 8 };

struct vp_objectives {
    struct {
        const char *column;
        bool most; /* wanted large */
    } item[VP_OBJECTIVES];
    size_t count;
};

/* text: "devices,headroom:max,serve.context" of --objectives; NULL: of price, devices, headroom,
 * the lengths and numbers of sequences that vary, and the time of a step, those that are columns.
 * A name may leave out its section or its unit where that is enough. Without :min or :max it goes
 * by the name: room, tokens, sequences and rates are to be large, all else small. Faults are
 * VP_D_BAD_OPTION with their place in the text. */
enum vp_status vp_objectives_read(struct vp_ctx *ctx, struct vp_objectives *out, const char *text,
                                  const char *const *columns, size_t column_count);

struct vp_front_point {
    double value[VP_OBJECTIVES]; /* of the columns; NaN: not known, the worst of all */
    const char *line;
    size_t size;
};

struct vp_front {
    const struct vp_objectives *objectives;
    struct vp_front_point *points; /* in the order in which they came */
    size_t count;
    struct vp_arena arena[2]; /* where the points are, and the next ones will be */
    int at;
};

/* Adds points and drops those that are beaten; lines are copied. arena: for the time of the call.
 */
void vp_front_add(struct vp_front *front, struct vp_arena *arena,
                  const struct vp_front_point *points, size_t count);
void vp_front_free(struct vp_front *front);

#endif
