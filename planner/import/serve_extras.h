/* What stands beside the plain workload of a scenario: adapters, speculative decoding, images and
 * what is kept in host memory. From `serve`, from the engine's own arguments, and the draft's
 * model. Defaults and what must hold: finish_extras.c. */
#ifndef VP_IMPORT_SERVE_EXTRAS_H
#define VP_IMPORT_SERVE_EXTRAS_H

#include "planner/import/scenario_parts.h"

/* A key of `serve` that is more than a field; true when it was read. */
bool vp_serve_key(struct vp_reading *r, const char *key, const struct vp_node *node);
/* An engine argument of these; false: it is none of them. `used`: the engine computes with it. */
bool vp_extra_arg(struct vp_reading *r, bool *used, const char *key, const char *as_written,
                  const struct vp_node *node);
enum { VP_EXTRA_ARGS = 32 };
/* Their names for "did you mean". Returns how many. */
size_t vp_extra_arg_names(const char *out[VP_EXTRA_ARGS], enum vp_engine_kind kind);
/* The argument that says a field and the field that an argument says; NULL, VP_FIELD_COUNT: none. */
const char *vp_extra_arg_word(enum vp_engine_kind kind, enum vp_field field);
enum vp_field vp_extra_arg_field(enum vp_engine_kind kind, const char *key);
/* Reads the draft's model; call when all places have been read. base: of the file's paths. */
enum vp_status vp_draft_read(struct vp_reading *r, const char *base);

#endif
