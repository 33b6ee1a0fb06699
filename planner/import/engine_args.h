/* engine.args: the engine's own flags onto fields (engine_args.def, engine_fields.def). All of them
 * are kept in the scenario as text; those that are not modelled are listed as ignored. */
#ifndef VP_IMPORT_ENGINE_ARGS_H
#define VP_IMPORT_ENGINE_ARGS_H

#include "planner/import/scenario_parts.h"

/* What decides on the meaning of others; the engine's kind must be set. The first map that says it
 * holds: call with the command line's, then with the file's (either may be NULL). */
void vp_engine_args_scan(struct vp_reading *r, const struct vp_node *args);
void vp_engine_args_read(struct vp_reading *r, const struct vp_node *args);
void vp_engine_env_read(struct vp_reading *r, const struct vp_node *env);
/* What `quantization` means for this model; call when the model is read (NULL: it is faulty). */
void vp_engine_args_settle(struct vp_reading *r);
/* What follows an argument on a command line. */
enum vp_arg_takes { VP_ARG_VALUE, VP_ARG_SWITCH, VP_ARG_UNKNOWN };
enum vp_arg_takes vp_engine_arg_takes(struct vp_ctx *ctx, enum vp_engine_kind engine,
                                      const char *key);
/* The argument that says a field ("tensor_parallel_size"); NULL: the engine has none. */
const char *vp_engine_arg_word(enum vp_engine_kind engine, enum vp_field field);
/* The field that an argument says; VP_FIELD_COUNT: none. */
enum vp_field vp_engine_arg_field(struct vp_ctx *ctx, enum vp_engine_kind engine, const char *key);
/* What `quantization` has to be for weights of this format, NULL: no word does that. */
const char *vp_engine_quantization(const struct vp_scenario *scenario, const char *format);
/* The value of an argument, NULL when it was not given. */
const char *vp_engine_arg(const struct vp_engine *engine, const char *key);
const char *vp_engine_env(const struct vp_engine *engine, const char *name);
/* VP_D_ARG_IGNORED once for each argument and variable that was not used. */
void vp_engine_args_report(struct vp_ctx *ctx, const struct vp_engine *engine);

#endif
