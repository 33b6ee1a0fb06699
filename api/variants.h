/* One scenario in many variants: read once, finished again for each set of changed fields. What
 * sweeps, `fit` and the what-if screen are made of. */
#ifndef VP_API_VARIANTS_H
#define VP_API_VARIANTS_H

#include "api/answers.h"

struct vp_variants;

/* settings: those of the command line, in every variant. The input must be one scenario; faults of
 * it are in the context's diagnostics. The handle lives in the context's arena. */
enum vp_status vp_variants_open(struct vp_ctx *ctx, struct vp_variants **out, const char *input,
                                const struct vp_setting *settings, size_t setting_count);
/* The same input, which is not read again, with other settings in every variant. `variants` must
 * stay open; closing the new handle gives nothing back. settings are kept, not copied. */
enum vp_status vp_variants_over(struct vp_ctx *ctx, struct vp_variants **out,
                                const struct vp_variants *variants,
                                const struct vp_setting *settings, size_t setting_count);
/* Whether the input could be read and is one scenario, though that may be refused as it stands:
 * variants of it may be good. */
bool vp_variants_readable(const struct vp_variants *variants);
/* What is wrong with single changes as such, before it is asked what they lead to: an unknown
 * field, a value of the wrong kind. VP_OK, or scratch's diagnostics say it. */
enum vp_status vp_variants_check(const struct vp_variants *variants, struct vp_ctx *scratch,
                                 const struct vp_setting *changes, size_t change_count);
/* All that the input says, as one line of text, and nothing of files that it names. */
const char *vp_variants_text(const struct vp_variants *variants, struct vp_ctx *scratch);
/* Gives back what was read (the memory of the memo; base and variants must not be used any more).
 * NULL is allowed. */
void vp_variants_close(struct vp_variants *variants);
/* The scenario with `changes` on top, later ones first; finished, in scratch's arena. Not VP_OK:
 * the variant is refused, and scratch's diagnostics say why. May be called from several threads,
 * each with a scratch of its own. */
enum vp_status vp_variants_make(const struct vp_variants *variants, struct vp_ctx *scratch,
                                const struct vp_scenario **out, const struct vp_setting *changes,
                                size_t change_count);
/* All that is said in a variant: the input's tree with settings and changes laid over it. */
enum vp_status vp_variants_said(const struct vp_variants *variants, struct vp_ctx *scratch,
                                struct vp_node **out, const struct vp_setting *changes,
                                size_t change_count);
/* Where relative paths in the input start; NULL: the current folder. */
const char *vp_variants_folder(const struct vp_variants *variants);
/* The scenario without changes; NULL: it is refused as it stands. */
const struct vp_scenario *vp_variants_base(const struct vp_variants *variants);

#endif
