/* What the files of the scenario reader share: where the reading stands, and how a value gets into
 * its field. Private to scenario_reader.c, scenario_value.c, scenario_limits.c, budget_reader.c and
 * engine_args.c.
 */
#ifndef VP_IMPORT_SCENARIO_PARTS_H
#define VP_IMPORT_SCENARIO_PARTS_H

#include "planner/doc/node.h"
#include "planner/import/input.h"

/* Something the user said that only later can be turned into a field's value. */
struct vp_said {
    const char *text; /* NULL: not said */
    struct vp_source source;
};

/* Parts of a budget that are taken whole from the command line or from the file. */
enum vp_budget_part {
    VP_BUDGET_AT_RISK,
    VP_BUDGET_WARN_ONLY,
    VP_BUDGET_WAIVERS,
    VP_BUDGET_MEASURED,
    VP_BUDGET_PARTS
};

/* The command line's tree is read first, then the file's: what is set by then stays. */
struct vp_reading {
    struct vp_ctx *ctx;
    struct vp_scenario *out;
    const struct vp_setting *settings;
    size_t setting_count;
    bool from_flags; /* the tree being read is the command line's */
    bool keep_given;
    const char *base; /* folder that paths of the file start at; NULL: the current one */
    bool budget_given[VP_BUDGET_PARTS];
    bool train_targets, train_targets_from_flags; /* train.lora.targets was said */
    bool lora_given, draft_given;                 /* by `serve`, or by the engine's arguments */
    const struct vp_node *draft_node;             /* the draft's model, NULL: none */
    bool draft_from_flags;
    bool attention_said, attention_data; /* SGLang: dp_size is of the attention layers */
    struct vp_said quantization;
    struct vp_said auto_dtype[2]; /* "auto" said for the KV cache, for the compute type */
};

/* One value of any field kind. */
struct vp_value {
    uint64_t number; /* COUNT, NUMBER, TOKENS, SIZE; SHARE, RATIO (parts per billion) */
    double real;
    bool flag;
    enum vp_dtype dtype;
    const char *text;
};

/* The value of a node for a field; label: what messages call it. Faults are reported. */
bool vp_value_parse(struct vp_reading *r, struct vp_value *out, enum vp_field field,
                    const struct vp_node *node, const char *label);
/* Keeps the value unless the command line has said something else; a contradiction between two
 * places the user wrote is reported. */
void vp_value_assign(struct vp_reading *r, enum vp_field field, const struct vp_value *value,
                     const struct vp_source *source);
/* Parse and assign; a null node is as if it were not there. */
void vp_value_read(struct vp_reading *r, enum vp_field field, const struct vp_node *node,
                   enum vp_origin origin, const char *key);
/* What `auto` said in one place and a format in another amount to. */
void vp_value_check_auto(struct vp_reading *r);
/* false, 0, 1 rank, empty, null: a field that is not modelled but says nothing either. */
bool vp_value_is_harmless(const struct vp_node *node);

/* How messages name a place: "engine.args.tensor_parallel_size (line 7)", "--tp". */
const char *vp_source_show(struct vp_ctx *ctx, const struct vp_source *source);
/* The command-line option that gave a path ("--context"), the path itself in a file. */
const char *vp_reading_label(const struct vp_reading *r, const char *path);
/* VP_D_UNKNOWN_KEY with the nearest of the names, or else all of them. */
void vp_reading_unknown(struct vp_reading *r, const char *section, const char *key,
                        const struct vp_pos *pos, const char *const *names, size_t count);
/* True for a map; a null node is quietly skipped, anything else is reported. */
bool vp_reading_is_map(struct vp_reading *r, const struct vp_node *node, const char *path);

void vp_scenario_read_measured(struct vp_reading *r, const struct vp_node *node);
void vp_scenario_read_budget(struct vp_reading *r, const struct vp_node *node);

#endif
