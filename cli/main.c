/* vramplan: finds the command, reads its options, runs it. What a command has to say goes to
 * standard output through output.c, everything else to standard error. */
#include <string.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/device_local.h"
#include "cli/help.h"
#include "cli/output.h"
#include "api/places.h"
#include "planner/base/text.h"

/* The words of the command line: the command, and what belongs to it. */
struct line {
    enum vp_command command;
    bool named; /* the command was typed; else it is the default */
    int count;
    char **words;
};

/* A word that can only be an input: a path, a hub id, standard input, a scenario in a file. */
static bool looks_like_input(struct vp_ctx *ctx, const char *word) {
    return word[0] == '-' || strpbrk(word, "/.#") || vp_io_kind(ctx, word) != VP_FILE_NONE;
}

static enum vp_status refuse_unknown(struct vp_ctx *ctx, const char *word,
                                     enum vp_command nearest) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "unknown command '%s'", word);
    vp_diag_hint(ctx->diags, "did you mean '%s'? A model or file of that name: vramplan plan %s",
                 vp_commands[nearest].name, word);
    return VP_ERR_INPUT;
}

/* The first word decides: a command, or an input for the default one. A word near to a command is
 * taken for a typing mistake, unless it can only be an input. */
static enum vp_status find_command(struct vp_ctx *ctx, struct line *out, int argc, char **argv) {
    *out = (struct line){.command = VP_COMMAND_PLAN, .count = argc - 1, .words = argv + 1};
    if (argc < 2)
        return VP_OK;
    enum vp_command command = vp_command_find(argv[1]);
    if (command == VP_COMMAND_COUNT) {
        command = looks_like_input(ctx, argv[1]) ? command : vp_command_nearest(argv[1]);
        return command == VP_COMMAND_COUNT ? VP_OK : refuse_unknown(ctx, argv[1], command);
    }
    *out = (struct line){command, true, argc - 2, argv + 2};
    return VP_OK;
}

/* Operands of a row without "..." and brackets. */
static size_t count_words(const char *arguments) {
    size_t words = *arguments != '\0';
    for (; *arguments; arguments++)
        words += *arguments == ' ';
    return words;
}

/* How many operands a command takes stands in its row: "INPUT", "INPUT...", "[INPUT]", "OLD NEW",
 * "". */
static enum vp_status check_arguments(struct vp_ctx *ctx, const struct vp_args *args) {
    const struct vp_command_info *info = &vp_commands[args->command];
    bool optional = info->arguments[0] == '[' || args->value[VP_OPTION_CHAIN];
    size_t words = count_words(info->arguments);
    size_t least = optional ? 0 : words;
    size_t most = strstr(info->arguments, "...") ? SIZE_MAX : words;
    if (args->operand_count < least)
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    least > 1 ? "'%s' needs two arguments: %s" : "'%s' needs an argument: %s",
                    info->name, info->arguments);
    else if (args->operand_count > most)
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    most > 1 ? "'%s' takes two arguments: %s"
                    : most   ? "'%s' takes one argument: %s"
                             : "'%s' takes no argument%s",
                    info->name, info->arguments);
    else
        return VP_OK;
    vp_diag_hint(ctx->diags, "how to use it: vramplan %s --help", info->name);
    return VP_ERR_INPUT;
}

/* "vramplan -v list gpus": the default command would take `list` for a model. */
static enum vp_status check_order(struct vp_ctx *ctx, const struct vp_args *args, bool named) {
    for (size_t i = 0; !named && i < args->operand_count; i++) {
        const char *word = args->operands[i];
        if (vp_command_find(word) == VP_COMMAND_COUNT || vp_io_kind(ctx, word) != VP_FILE_NONE)
            continue;
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "the command comes first: vramplan %s ...",
                    word);
        return VP_ERR_INPUT;
    }
    return VP_OK;
}

static int print_help(struct vp_ctx *ctx, const struct vp_args *args, bool named) {
    struct vp_buf out = {.arena = ctx->arena};
    if (args->value[VP_OPTION_VERSION])
        vp_buf_add(&out, "vramplan " VP_VERSION "\n");
    else if (named)
        vp_help_command(&out, args->command);
    else
        vp_help_overview(&out);
    return (int)vp_exit_of_status(vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]));
}

static int run_command(struct vp_ctx *ctx, struct vp_args *args, const struct line *line) {
    enum vp_status status = vp_args_read(ctx, args, line->command, line->count, line->words);
    if (args->value[VP_OPTION_HELP] || args->value[VP_OPTION_VERSION]) {
        ctx->diags->count = 0; /* who asks for help is not told what else is wrong */
        return print_help(ctx, args, line->named);
    }
    if (status == VP_OK)
        status = check_arguments(ctx, args);
    if (status == VP_OK)
        status = check_order(ctx, args, line->named);
    if (status == VP_OK && args->command != VP_COMMAND_HELP)
        status = vp_places_find(ctx);
    if (status == VP_OK && vp_option_is_for(VP_OPTION_SET, line->command)) /* it has a scenario */
        status = vp_device_local(ctx, args);
    if (status != VP_OK)
        return vp_output_failure(ctx, args, status);
    return vp_commands[args->command].run(ctx, args);
}

static int run(struct vp_ctx *ctx, int argc, char **argv) {
    struct vp_args args = {0};
    struct line line;
    int code;
    if (argc < 2) {
        struct vp_buf help = {.arena = ctx->arena};
        vp_help_overview(&help);
        (void)!write(STDERR_FILENO, vp_buf_text(&help), help.size);
        return VP_EXIT_INPUT;
    }
    if (find_command(ctx, &line, argc, argv) != VP_OK)
        code = VP_EXIT_INPUT;
    else
        code = run_command(ctx, &args, &line);
    vp_output_diagnostics(ctx, ctx->diags, args.value[VP_OPTION_VERBOSE] ? VP_INFO : VP_WARNING,
                          &args);
    return code;
}

/* The arena is the caller's, so that it is well defined after a jump. */
static int run_guarded(struct vp_arena *arena, int argc, char **argv) {
    static const char NO_MEMORY[] = "error: the system has no memory left [VP903]\n";
    jmp_buf out_of_memory;
    if (setjmp(out_of_memory)) {
        (void)!write(STDERR_FILENO, NO_MEMORY, sizeof NO_MEMORY - 1);
        return VP_EXIT_ENV;
    }
    arena->oom = &out_of_memory;
    struct vp_diags *diags = VP_NEW(arena, struct vp_diags);
    diags->arena = arena;
    struct vp_ctx ctx = {.arena = arena, .diags = diags, .io = &vp_io_posix};
    int code = run(&ctx, argc, argv);
    arena->oom = NULL; /* the jump ends with this function */
    return code;
}

int main(int argc, char **argv) {
    struct vp_arena arena = {0};
    if (!vp_output_prepare())
        return VP_EXIT_ENV;
    int code = run_guarded(&arena, argc, argv);
    vp_arena_free(&arena);
    return code;
}
