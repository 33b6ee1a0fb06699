/* The anchors of a calibration profile, taken out of its text before YAML is read: they are nine
 * tenths of it, and a YAML parser takes fifty times as long for them. The file stays plain YAML;
 * what is found here is what a parser would find. */
#ifndef VP_IMPORT_ANCHOR_TEXT_H
#define VP_IMPORT_ANCHOR_TEXT_H

#include "planner/base/ctx.h"
#include "planner/model/calibration.h"

enum { VP_ANCHOR_TEXT_MOST = 64 }; /* further ones are left to the parser */

/* The lines of one "anchors: |". */
struct vp_anchor_text {
    uint32_t line; /* of its key */
    struct vp_bytes text;
};
struct vp_anchor_texts {
    struct vp_anchor_text *items; /* in the order of the file */
    uint32_t count;
};

/* The profile's text with those lines left empty, so that all others keep their numbers. */
struct vp_bytes vp_anchor_text_cut(struct vp_ctx *ctx, struct vp_anchor_texts *out,
                                   struct vp_bytes profile);
/* NULL: none under that key. */
const struct vp_anchor_text *vp_anchor_text_of(const struct vp_anchor_texts *texts, uint32_t line);

uint32_t vp_anchor_text_lines(struct vp_bytes text);
/* Each line: a form's sizes and a correction in thousandths of a logarithm, whole numbers. Room for
 * all lines in out. 0, or the number of the first line that is nothing of the kind. */
uint32_t vp_anchor_text_read(struct vp_anchor *out, enum vp_form form, struct vp_bytes text);

#endif
