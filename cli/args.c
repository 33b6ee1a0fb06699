#include "cli/args.h"

#include <getopt.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"

/* What getopt_long returns for an option: its index, above all characters. */
enum { FIRST_LONG = 256 };

static void bad_option(struct vp_ctx *ctx, const char *message) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "%s", message);
}

/* ---- tables for getopt ---- */

static void make_long_table(struct option table[VP_OPTION_COUNT + 1]) {
    for (int i = 0; i < VP_OPTION_COUNT; i++)
        table[i] = (struct option){.name = vp_options[i].name,
                                   .has_arg = vp_options[i].value ? required_argument : no_argument,
                                   .val = FIRST_LONG + i};
    table[VP_OPTION_COUNT] = (struct option){0};
}

/* "-": operands come in their order, as the argument of an option 1; ":": a missing value is told
 * apart from an unknown option. */
static void make_short_table(char table[2 * VP_OPTION_COUNT + 3]) {
    size_t n = 0;
    table[n++] = '-';
    table[n++] = ':';
    for (int i = 0; i < VP_OPTION_COUNT; i++) {
        if (!vp_options[i].letter)
            continue;
        table[n++] = (char)vp_options[i].letter;
        if (vp_options[i].value)
            table[n++] = ':';
    }
    table[n] = '\0';
}

static enum vp_option option_of_letter(int letter) {
    enum vp_option option = 0;
    while (option < VP_OPTION_COUNT && vp_options[option].letter != letter)
        option++;
    return option;
}

/* ---- settings ---- */

/* Two texts that mean one value of the field: "32k" and "32768". */
static bool same_value(const char *path, const char *a, const char *b) {
    uint64_t x, y;
    if (vp_text_eq(a, b))
        return true;
    enum vp_field field = vp_field_find(path);
    for (int engine = 0; engine < VP_ENGINE_KINDS && field == VP_FIELD_COUNT; engine++)
        field = vp_field_find_for((enum vp_engine_kind)engine, path);
    if (field == VP_FIELD_COUNT)
        return false;
    switch (vp_field_info(field)->kind) {
    case VP_KIND_COUNT:
    case VP_KIND_NUMBER:
    case VP_KIND_TOKENS:
        return vp_parse_tokens(&x, a) && vp_parse_tokens(&y, b) && x == y;
    case VP_KIND_SIZE:
        return vp_parse_size(&x, a) && vp_parse_size(&y, b) && x == y;
    default:
        return false;
    }
}

const struct vp_setting *vp_args_setting(const struct vp_args *args, const char *path) {
    for (size_t i = 0; i < args->setting_count; i++)
        if (vp_text_eq(args->settings[i].path, path))
            return &args->settings[i];
    return NULL;
}

/* The same field given twice with the same value is fine; with another one it is a contradiction,
 * told here because the reader of the scenario sees the first only. */
static void add_setting(struct vp_ctx *ctx, struct vp_args *args, const char *key, const char *path,
                        const char *value) {
    const struct vp_setting *other = vp_args_setting(args, path);
    if (other && !same_value(path, other->value, value))
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, NULL,
                    "%s says %s and %s says %s, both about %s", other->key, other->value, key,
                    value, path);
    if (other)
        return;
    args->settings[args->setting_count++] = (struct vp_setting){path, value, key};
}

static void add_set(struct vp_ctx *ctx, struct vp_args *args, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1]) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--set wants FIELD=VALUE, not '%s'", text);
        vp_diag_hint(ctx->diags, "for example --set serve.context=16384");
        return;
    }
    const char *path = vp_arena_text(ctx->arena, text, (size_t)(equals - text));
    add_setting(ctx, args, vp_arena_printf(ctx->arena, "--set %s", path), path, equals + 1);
}

static void add_engine(struct vp_ctx *ctx, struct vp_args *args, const char *text) {
    const char *at = strchr(text, '@');
    const char *name = at ? vp_arena_text(ctx->arena, text, (size_t)(at - text)) : text;
    if (!*name || (at && !at[1])) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--engine wants NAME[@VERSION], not '%s'",
                    text);
        vp_diag_hint(ctx->diags, "for example --engine vllm@0.19");
        return;
    }
    add_setting(ctx, args, "--engine", "engine.name", name);
    if (at)
        add_setting(ctx, args, "--engine", "engine.version", at + 1);
}

/* ---- options ---- */

/* Index of a word in "one|two|three", -1 when it is none of them. */
static int choice_of(const char *choices, const char *word) {
    size_t n = strlen(word);
    for (int i = 0; n; i++) {
        size_t m = strcspn(choices, "|");
        if (m == n && memcmp(choices, word, n) == 0)
            return i;
        if (!choices[m])
            break;
        choices += m + 1;
    }
    return -1;
}

static int read_choice(struct vp_ctx *ctx, enum vp_option option, const char *value) {
    const struct vp_option_info *info = &vp_options[option];
    int choice = choice_of(info->value, value);
    if (choice < 0) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--%s is %s, not '%s'", info->name,
                    info->value, value);
        return 0;
    }
    return choice;
}

static bool may_repeat(enum vp_option option) {
    const char *value = vp_options[option].value;
    size_t n = value ? strlen(value) : 0;
    return n > 3 && vp_text_eq(value + n - 3, "...");
}

/* Of most options the same value given twice is fine, another one is not. */
static void take_value(struct vp_ctx *ctx, struct vp_args *args, enum vp_option option,
                       const char *value) {
    const char *choices = vp_options[option].value;
    int choice = choices && strchr(choices, '|') ? read_choice(ctx, option, value) : 0;
    const char *before = args->value[option];

    if (before && !vp_text_eq(before, value) && !may_repeat(option))
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--%s is given twice",
                    vp_options[option].name);
    args->value[option] = value;
    args->given[args->given_count++] = (struct vp_given){option, value};
    if (option == VP_OPTION_FORMAT)
        args->format = (enum vp_format)choice;
    if (option == VP_OPTION_GATE_FORMAT && vp_text_eq(value, "json"))
        args->format = VP_FORMAT_JSON;
    if (option == VP_OPTION_COLOR)
        args->colour = (enum vp_colour)choice;
}

const char **vp_args_all(struct vp_ctx *ctx, const struct vp_args *args, enum vp_option option,
                         size_t *count) {
    const char **all = VP_NEW_ARRAY(ctx->arena, args->given_count + 1, const char *);

    *count = 0;
    for (size_t i = 0; i < args->given_count; i++)
        if (args->given[i].option == option)
            all[(*count)++] = args->given[i].value;
    return all;
}

static void take_special(struct vp_ctx *ctx, struct vp_args *args, enum vp_option option,
                         const char *value) {
    if (option == VP_OPTION_ENGINE)
        add_engine(ctx, args, value);
    else if (option == VP_OPTION_SET)
        add_set(ctx, args, value);
    else if (option == VP_OPTION_FROM_COMMAND && args->command == VP_COMMAND_IMPORT_LOG)
        take_value(ctx, args, VP_OPTION_SCENARIO, vp_arena_printf(ctx->arena, "$ %s", value));
    else if (option == VP_OPTION_FROM_COMMAND)
        args->operands[args->operand_count++] = vp_arena_printf(ctx->arena, "$ %s", value);
    else
        take_value(ctx, args, option, value);
}

static void take_option(struct vp_ctx *ctx, struct vp_args *args, enum vp_option option,
                        const char *value) {
    const struct vp_option_info *info = &vp_options[option];
    const char *command = vp_commands[args->command].name;
    if (!vp_option_is_for(option, args->command)) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "'%s' has no option --%s", command,
                    info->name);
        vp_diag_hint(ctx->diags, "its options: vramplan %s --help", command);
    } else if (value && !*value) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--%s needs a value: %s", info->name,
                    info->value);
    } else if (info->field) {
        add_setting(ctx, args, vp_arena_printf(ctx->arena, "--%s", info->name), info->field, value);
    } else {
        take_special(ctx, args, option, value ? value : "");
    }
}

/* ---- faults that getopt finds ---- */

/* The name in "--name" or "--name=value". */
static const char *long_name(struct vp_ctx *ctx, const char *word) {
    return vp_arena_text(ctx->arena, word + 2, strcspn(word + 2, "="));
}

static void unknown_option(struct vp_ctx *ctx, enum vp_command command, const char *word) {
    const char *names[VP_OPTION_COUNT];
    size_t count = 0;
    for (enum vp_option i = 0; i < VP_OPTION_COUNT; i++)
        if (vp_option_is_for(i, command) && vp_options[i].group < VP_GROUP_HIDDEN)
            names[count++] = vp_options[i].name;

    const char *name = long_name(ctx, word);
    const char *nearest = vp_text_nearest(name, names, count);
    for (size_t i = 0; !nearest && i < count; i++) /* an abbreviation */
        if (*name && vp_text_starts(names[i], name))
            nearest = names[i];
    /* An engine's own flag: "--max-model-len" is engine.args.max_model_len. */
    char *field = vp_arena_printf(ctx->arena, "engine.args.%s", name);
    for (char *p = field; *p; p++)
        *p = *p == '-' ? '_' : *p;
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "unknown option --%s", name);
    bool is_setting = false;
    for (int engine = 0; engine < VP_ENGINE_KINDS; engine++)
        is_setting |= vp_field_find_for((enum vp_engine_kind)engine, field) != VP_FIELD_COUNT;
    if (is_setting)
        vp_diag_hint(ctx->diags, "an argument of the engine is given as --set %s=VALUE", field);
    else if (nearest)
        vp_diag_hint(ctx->diags, "did you mean --%s?", nearest);
    else
        vp_diag_hint(ctx->diags, "the options: vramplan %s --help", vp_commands[command].name);
}

/* '?': an unknown option, or a value where none belongs. found: getopt's optopt. */
static void report_unknown(struct vp_ctx *ctx, enum vp_command command, const char *word,
                           int found) {
    if (found >= FIRST_LONG)
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--%s takes no value",
                    vp_options[found - FIRST_LONG].name);
    else if (vp_text_starts(word, "--"))
        unknown_option(ctx, command, word);
    else
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "unknown option -%c in '%s'", found, word);
}

static void report_missing_value(struct vp_ctx *ctx, int found) {
    enum vp_option option =
        found >= FIRST_LONG ? (enum vp_option)(found - FIRST_LONG) : option_of_letter(found);
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--%s needs a value: %s",
                vp_options[option].name, vp_options[option].value);
}

/* Two commands may have an option of one name with other values: --format, --only. */
static enum vp_option option_of_command(enum vp_option found, enum vp_command command) {
    for (enum vp_option i = 0; i < VP_OPTION_COUNT; i++)
        if (vp_option_is_for(i, command) && vp_text_eq(vp_options[i].name, vp_options[found].name))
            return i;
    return found;
}

/* getopt accepts abbreviations; they are refused, because a later version's option would change
 * what a script means. */
static void take_long(struct vp_ctx *ctx, struct vp_args *args, const char *word, int found) {
    enum vp_option option = option_of_command((enum vp_option)(found - FIRST_LONG), args->command);
    if (vp_text_eq(long_name(ctx, word), vp_options[option].name))
        take_option(ctx, args, option, optarg);
    else
        unknown_option(ctx, args->command, word);
}

/* ---- all of it ---- */

static void check_format(struct vp_ctx *ctx, const struct vp_args *args) {
    bool table = args->format == VP_FORMAT_CSV || args->format == VP_FORMAT_MARKDOWN;
    if (args->command == VP_COMMAND_IMPORT && table)
        bad_option(ctx, "'import' writes a scenario file: --format is text or json");
}

/* input: FILE or FILE#NAME */
static bool same_file(const char *output, const char *input) {
    size_t n = strlen(output);
    return strncmp(output, input, n) == 0 && (!input[n] || input[n] == '#') &&
           !vp_text_eq(output, "-");
}

static void check_operands(struct vp_ctx *ctx, const struct vp_args *args) {
    bool stdin_taken = false;
    for (size_t i = 0; i < args->operand_count; i++) {
        if (!*args->operands[i])
            bad_option(ctx, "an argument is empty");
        if (!vp_text_eq(args->operands[i], "-"))
            continue;
        if (stdin_taken)
            bad_option(ctx, "'-' (standard input) is given twice");
        stdin_taken = true;
    }
}

static bool is_output(enum vp_option option) {
    return vp_options[option].group == VP_GROUP_OUTPUT &&
           vp_text_eq(vp_options[option].value, "FILE");
}

static bool is_input(const struct vp_args *args, const char *output) {
    bool found = false;
    for (size_t i = 0; i < args->operand_count; i++)
        found |= same_file(output, args->operands[i]);
    for (size_t i = 0; i < args->setting_count; i++)
        if (vp_text_eq(args->settings[i].path, "serve.trace") ||
            vp_text_eq(args->settings[i].path, "calibration"))
            found |= same_file(output, args->settings[i].value);
    return found;
}

/* No file that is written replaces an input, or another one of the same run. */
static void check_outputs(struct vp_ctx *ctx, const struct vp_args *args) {
    for (size_t i = 0; i < args->given_count; i++) {
        const struct vp_given *a = &args->given[i];
        if (!is_output(a->option))
            continue;
        if (is_input(args, a->value))
            vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "the result would replace the input %s",
                        a->value);
        for (size_t j = 0; j < i; j++) {
            const struct vp_given *b = &args->given[j];
            if (a->option != b->option && is_output(b->option) && same_file(a->value, b->value))
                vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--%s and --%s are both to write %s",
                            vp_options[b->option].name, vp_options[a->option].name, a->value);
        }
    }
}

static void read_words(struct vp_ctx *ctx, struct vp_args *args, int count, char **argv) {
    struct option long_table[VP_OPTION_COUNT + 1];
    char short_table[2 * VP_OPTION_COUNT + 3];
    make_long_table(long_table);
    make_short_table(short_table);
    opterr = 0;
    optind = 0; /* starts anew, at word 1 */
    for (;;) {
        int at = optind ? optind : 1;
        const char *word = at < count ? argv[at] : "";
        int found = getopt_long(count, argv, short_table, long_table, NULL);
        if (found == -1)
            break;
        if (found == 1)
            args->operands[args->operand_count++] = optarg;
        else if (found == '?')
            report_unknown(ctx, args->command, word, optopt);
        else if (found == ':')
            report_missing_value(ctx, optopt);
        else if (found >= FIRST_LONG)
            take_long(ctx, args, word, found);
        else
            take_option(ctx, args, option_of_letter(found), optarg);
    }
    for (; optind < count; optind++) /* after "--" */
        args->operands[args->operand_count++] = argv[optind];
}

enum vp_status vp_args_read(struct vp_ctx *ctx, struct vp_args *out, enum vp_command command,
                            int count, char **words) {
    uint32_t errors = ctx->diags->errors;
    /* getopt skips the first word: the program's name by its convention. */
    char **argv = VP_NEW_ARRAY(ctx->arena, (size_t)count + 2, char *);
    char program[] = "vramplan";
    argv[0] = program;
    if (count)
        memcpy(argv + 1, words, (size_t)count * sizeof *argv);
    *out = (struct vp_args){
        .command = command,
        .operands = VP_NEW_ARRAY(ctx->arena, (size_t)count + 1, const char *),
        .given = VP_NEW_ARRAY(ctx->arena, (size_t)count + 1, struct vp_given),
        .settings = VP_NEW_ARRAY(ctx->arena, 2 * (size_t)count + 1, struct vp_setting),
    };
    read_words(ctx, out, count + 1, argv);
    check_format(ctx, out);
    check_operands(ctx, out);
    check_outputs(ctx, out);
    return ctx->diags->errors == errors ? VP_OK : VP_ERR_INPUT;
}
