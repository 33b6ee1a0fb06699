#include "planner/import/modelfile.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/doc/yaml.h"
#include "planner/import/ollama_store.h"
#include "planner/import/recipe.h"

enum { MAX_BYTES = 1 << 20 };

static const char SPACE[] = " \t\r";

struct modelfile {
    struct vp_ctx *ctx;
    struct vp_node *root;
    const char *path;
    uint32_t line;
    bool has_model;
};

bool vp_modelfile_is(const char *path) {
    const char *name = vp_text_file_name(path);
    return vp_text_eq(name, "Modelfile") || vp_text_starts(name, "Modelfile.") ||
           vp_text_ends(name, ".modelfile") || vp_text_ends(name, ".Modelfile");
}

/* The next word of a line; *at: behind it. "" at its end. */
static const char *word(struct modelfile *m, const char **at) {
    *at += strspn(*at, SPACE);
    size_t length = strcspn(*at, SPACE);
    const char *out = vp_arena_text(m->ctx->arena, *at, length);
    *at += length;
    return out;
}

/* The rest of a line without the blanks and quotes around it. */
static const char *rest(struct modelfile *m, const char *at) {
    at += strspn(at, SPACE);
    size_t length = strlen(at);
    while (length > 0 && strchr(SPACE, at[length - 1]))
        length--;
    if (length >= 2 && at[0] == '"' && at[length - 1] == '"') {
        at++;
        length -= 2;
    }
    return vp_arena_text(m->ctx->arena, at, length);
}

static void fault(struct modelfile *m, const char *message, const char *hint) {
    struct vp_pos pos = {m->path, m->line, 1};
    vp_diag_add(m->ctx->diags, VP_D_BAD_VALUE, &pos, "%s", message);
    vp_diag_hint(m->ctx->diags, "%s", hint);
}

static void put(struct modelfile *m, const char *path, const char *text) {
    struct vp_pos pos = {m->path, m->line, 1};
    vp_recipe_set(m->ctx, m->root, path,
                  vp_node_scalar(m->ctx, vp_yaml_scalar_kind(text), text, pos));
}

static void read_line(struct modelfile *m, const char *line) {
    const char *at = line, *first = word(m, &at);
    if (vp_name_eq(first, "from")) {
        const char *model = vp_ollama_file(m->ctx, rest(m, at), NULL);
        struct vp_pos pos = {m->path, m->line, (uint32_t)(at - line) + 2};
        if (!*model)
            fault(m, "FROM names no model", "for example FROM ./model.gguf");
        if (!vp_text_eq(model, "MODEL.gguf")) /* still to be filled in, as --emit writes it */
            vp_node_set(m->ctx, m->root, "model", pos,
                        vp_node_scalar(m->ctx, VP_NODE_TEXT, model, pos));
        m->has_model = true;
    } else if (vp_name_eq(first, "parameter")) {
        const char *key = word(m, &at), *value = rest(m, at);
        if (!*key || !*value)
            fault(m, "PARAMETER needs a name and a value", "for example PARAMETER num_ctx 8192");
        else
            put(m, vp_arena_printf(m->ctx->arena, "engine.args.%s", key), value);
    } else if (vp_name_eq(first, "adapter")) {
        put(m, "engine.args.lora", rest(m, at));
    }
}

enum vp_status vp_modelfile_read(struct vp_ctx *ctx, struct vp_node **out, const char *path) {
    struct vp_bytes text;
    struct modelfile m = {.ctx = ctx, .path = path};
    uint32_t errors = ctx->diags->errors;
    m.root = *out = vp_node_new(ctx, VP_NODE_MAP, (struct vp_pos){.file = path});
    enum vp_status status = vp_io_read(ctx, &text, path, MAX_BYTES);
    if (status != VP_OK)
        return status;
    put(&m, "engine.name", "ollama");
    bool quoted = false; /* inside """...""" */
    for (const char *at = text.data, *end = text.data + text.size; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            stop = end;
        const char *line = vp_arena_text(ctx->arena, at, (size_t)(stop - at));
        bool inside = quoted;
        for (const char *p = line; (p = strstr(p, "\"\"\"")); p += 3)
            quoted = !quoted;
        m.line++;
        if (!inside && line[strspn(line, SPACE)] != '#')
            read_line(&m, line);
        at = stop + 1;
    }
    if (!m.has_model) {
        m.line = 1;
        fault(&m, "no line FROM: this is no Modelfile", "FROM names the GGUF file or the model");
    }
    return ctx->diags->errors == errors ? VP_OK : VP_ERR_INPUT;
}
