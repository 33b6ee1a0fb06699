/* What the user names on the command line -> finished scenarios. An input is
 *   - a scenario file (YAML or JSON with `vramplan:`), FILE or FILE#name, "-" for standard input;
 *   - a model: config.json, a folder with one, .safetensors, an index, .gguf, a YAML model
 *     description, a built-in name, a hub id (profile, then local cache);
 *   - the command line that starts an engine: "vllm serve MODEL ...", "$ ..." (command_line.h);
 *   - ollama's Modelfile, by its name.
 * Relative paths inside a scenario start at its file, or at the current directory for "-". */
#ifndef VP_IMPORT_INPUT_H
#define VP_IMPORT_INPUT_H

#include "planner/doc/node.h"
#include "planner/model/scenario.h"

/* One field given on the command line; it outranks everything. */
struct vp_setting {
    const char
        *path; /* "serve.context", "engine.args.block_size", "model", "measured.weights_gib" */
    const char *value; /* YAML scalar or flow text */
    const char *key;   /* as typed, for messages: "--context" */
};

/* One scenario of an input, good or not. */
struct vp_scenario_read_result {
    const char *name;
    struct vp_scenario *scenario; /* finished; NULL when it has faults */
    struct vp_diags *diags;       /* its own, with those of what it shares with others */
    enum vp_status status;
};

struct vp_scenarios {
    struct vp_scenario **items; /* the good ones */
    size_t count;
    struct vp_scenario_read_result *each; /* all; none when the input itself cannot be read */
    size_t each_count;
    struct vp_diags *shared; /* of the input itself */
};

/* What an input holds, before any scenario of it is read. */
struct vp_found_item {
    const struct vp_node *root; /* one scenario, `defaults:` merged in */
    const char *name;           /* what it is called when it does not say; NULL: like its model */
};
struct vp_found {
    struct vp_found_item *items;
    size_t count;
    const char *base;       /* folder for relative paths; NULL: the current one */
    struct vp_diags *diags; /* of the input itself */
    enum vp_status status;  /* of the input itself; not VP_OK: items may be there all the same */
};

/* FILE#name -> FILE, and the name in *name, unless a file of the whole name exists; NULL: none. */
const char *vp_input_split(struct vp_ctx *ctx, const char **name, const char *input);
/* Whether an input is in an engine's own words: a command line, a Modelfile; then *out is the
 * scenario that it asks for, and *status says whether it could be read. */
bool vp_input_in_words(struct vp_ctx *ctx, struct vp_node **out, enum vp_status *status,
                       const char *input);
/* The first half of vp_input_read: reads the files that the input itself is made of. Faults are in
 * out->diags only. */
enum vp_status vp_input_find(struct vp_ctx *ctx, struct vp_found *out, const char *input);
/* The second half; may be repeated with other settings, by several threads. */
enum vp_status vp_input_finish(struct vp_ctx *ctx, struct vp_scenarios *out,
                               const struct vp_found *input, const struct vp_setting *settings,
                               size_t setting_count);
/* Faults of all scenarios, each told once, are in the context's diagnostics; on VP_OK every
 * scenario is finished (all defaults resolved, model frozen). */
enum vp_status vp_input_read(struct vp_ctx *ctx, struct vp_scenarios *out, const char *input,
                             const struct vp_setting *settings, size_t setting_count);

#endif
