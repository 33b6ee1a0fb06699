#include "cli/help.h"

#include "reports/layout.h"

const struct vp_help_example vp_help_examples[] = {
    {"vramplan llama-3.1-70b --gpu mi300x --engine vllm@0.19 --weights fp8 --context 32k "
     "--concurrency 16",
     "a built-in model on one card"},
    {"vramplan plan serve.yaml --format json", "a scenario file, for a program"},
    {"vramplan plan serve.yaml#prod --set serve.context=64k",
     "one scenario of a file, one field changed"},
    {"vramplan explain ./my-model --gpu r9700",
     "a folder with config.json, every number explained"},
    {"vramplan fit model.gguf --gpu rx7900xtx --context 32k",
     "layers, cache type and slots that fit, as arguments of llama-server"},
    {"vramplan import qwen3-8b -o qwen3.yaml", "a scenario file to edit"},
    {NULL, NULL},
};

const struct vp_help_pair vp_help_inputs[] = {
    {"FILE.yaml", "a scenario file; FILE#NAME one scenario of it"},
    {"PATH", "a model: config.json, a folder that holds one, a .safetensors file or its index"},
    {"NAME", "a built-in model (\"list models\") or a hub id; nothing is downloaded"},
    {"COMMAND", "the command line that starts an engine, as \"vllm serve MODEL ...\""},
    {"Modelfile", "ollama's, by this name"},
    {"-", "a scenario from standard input"},
    {NULL, NULL},
};

const struct vp_help_pair vp_help_exits[] = {
    {"0", "yes: it fits, or the command is done"},
    {"1", "no: it does not fit"},
    {"2", "the input or the command line is wrong"},
    {"3", "inconclusive: at risk, the estimate's interval straddles the limit"},
    {"4", "the environment failed (files, memory), or an internal error"},
    {NULL, NULL},
};

const struct vp_help_pair vp_help_variables[] = {
    {"VRAMPLAN_PROFILES", "folder of the shipped profiles"},
    {"XDG_CONFIG_HOME", "your own profiles are in vramplan/gpus, vramplan/models and so on, below "
                        "this folder or ~/.config"},
    {"HF_HUB_CACHE, HF_HOME", "local Hugging Face cache, by default ~/.cache/huggingface/hub"},
    {"NO_COLOR", "when not empty, no colour unless --color asks for it"},
    {NULL, NULL},
};

enum { LEFT = 2, GAP = 2, WIDEST_NAME = 26 };

static struct vp_page page_of(struct vp_buf *out) {
    return (struct vp_page){.out = out, .width = VP_PAGE_WIDTH, .utf8 = true};
}

/* "  name   meaning", the meaning from `column` on; on a line of its own below a long name. */
static void add_row(struct vp_buf *out, int column, const char *name, const char *meaning) {
    struct vp_page page = page_of(out);
    int used = LEFT + vp_text_cells(name);
    vp_page_spaces(&page, LEFT);
    vp_buf_add(out, name);
    if (used + GAP > column) {
        vp_buf_add(out, "\n");
        used = 0;
    }
    vp_page_spaces(&page, column - used);
    vp_page_wrap(&page, column, column, meaning);
}

static void add_pairs(struct vp_buf *out, const char *title, int column,
                      const struct vp_help_pair *pairs) {
    vp_buf_printf(out, "\n%s\n", title);
    for (; pairs->name; pairs++)
        add_row(out, column, pairs->name, pairs->meaning);
}

static void add_examples(struct vp_buf *out) {
    struct vp_page page = page_of(out);
    vp_buf_add(out, "\nExamples\n");
    for (const struct vp_help_example *p = vp_help_examples; p->command; p++) {
        vp_page_spaces(&page, LEFT);
        vp_page_wrap(&page, LEFT, 3 * LEFT, p->command);
        vp_page_spaces(&page, 3 * LEFT);
        vp_page_wrap(&page, 3 * LEFT, 3 * LEFT, p->meaning);
    }
}

/* "-o, --output FILE" */
static const char *option_head(struct vp_arena *arena, const struct vp_option_info *info) {
    const char *letter = info->letter ? vp_arena_printf(arena, "-%c, ", info->letter) : "";
    return vp_arena_printf(arena, "%s--%s%s%s", letter, info->name, info->value ? " " : "",
                           info->value ? info->value : "");
}

static void add_options(struct vp_buf *out, const char *title, enum vp_option_group group,
                        enum vp_command command) {
    bool any = false;
    for (enum vp_option i = 0; i < VP_OPTION_COUNT; i++) {
        if (vp_options[i].group != group || !vp_option_is_for(i, command))
            continue;
        if (!any)
            vp_buf_printf(out, "\n%s\n", title);
        any = true;
        add_row(out, LEFT + WIDEST_NAME + GAP, option_head(out->arena, &vp_options[i]),
                vp_options[i].meaning);
    }
}

static void add_all_options(struct vp_buf *out, enum vp_command command) {
    add_options(out, "What it is planned for", VP_GROUP_SCENARIO, command);
    add_options(out, "What comes out", VP_GROUP_OUTPUT, command);
    add_options(out, "General", VP_GROUP_GENERAL, command);
}

void vp_help_overview(struct vp_buf *out) {
    vp_buf_add(out, "vramplan - GPU memory of a model, before anything runs\n\n"
                    "usage: vramplan [plan] INPUT... [options]\n"
                    "       vramplan COMMAND [argument] [options]\n\n"
                    "Commands\n");
    for (enum vp_command i = 0; i < VP_COMMAND_COUNT; i++) {
        const struct vp_command_info *info = &vp_commands[i];
        add_row(out, LEFT + WIDEST_NAME + GAP,
                vp_arena_printf(out->arena, "%s %s", info->name, info->arguments), info->meaning);
    }
    add_pairs(out, "An INPUT is", LEFT + WIDEST_NAME + GAP, vp_help_inputs);
    vp_buf_add(out, "\nOptions of plan and explain");
    add_all_options(out, VP_COMMAND_PLAN);
    add_pairs(out, "Exit status", 2 * LEFT + 1, vp_help_exits);
    add_pairs(out, "Environment", LEFT + WIDEST_NAME + GAP, vp_help_variables);
    add_examples(out);
}

void vp_help_command(struct vp_buf *out, enum vp_command command) {
    const struct vp_command_info *info = &vp_commands[command];
    vp_buf_printf(out, "vramplan %s - %s\n\nusage: vramplan %s %s [options]\n", info->name,
                  info->meaning, info->name, info->arguments);
    if (command == VP_COMMAND_PLAN || command == VP_COMMAND_EXPLAIN)
        add_pairs(out, "An INPUT is", LEFT + WIDEST_NAME + GAP, vp_help_inputs);
    add_all_options(out, command);
    if (command == VP_COMMAND_PLAN || command == VP_COMMAND_EXPLAIN)
        add_pairs(out, "Exit status", 2 * LEFT + 1, vp_help_exits);
}
