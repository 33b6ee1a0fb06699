#include "api/plan_command.h"

#include "planner/base/text.h"
#include "reports/shell_words.h"

/* The same names as in cli/options.def; tests/unit/test_plan_command.c holds them to that. */
static const struct {
    const char *path, *option;
} NAMED[] = {{"hardware.gpu", "--gpu"},          {"hardware.count", "--count"},
             {"parallel.tensor", "--tp"},        {"parallel.pipeline", "--pp"},
             {"precision.weights", "--weights"}, {"precision.kv_cache", "--kv-cache"},
             {"serve.context", "--context"},     {"serve.concurrency", "--concurrency"},
             {"train.sequence_length", "--seq"}, {"calibration", "--calibration"}};

const char *vp_plan_option(const char *path) {
    for (size_t i = 0; i < sizeof NAMED / sizeof *NAMED; i++)
        if (vp_text_eq(NAMED[i].path, path))
            return NAMED[i].option;
    return NULL;
}

static const struct vp_setting *last_of(const struct vp_setting *settings, size_t count,
                                        const char *path) {
    for (size_t i = count; i-- > 0;)
        if (vp_text_eq(settings[i].path, path))
            return &settings[i];
    return NULL;
}

static void add_engine(struct vp_buf *out, const struct vp_setting *name,
                       const struct vp_setting *version) {
    struct vp_arena *arena = out->arena;
    vp_buf_printf(
        out, " --engine %s",
        vp_shell_word(arena, version ? vp_arena_printf(arena, "%s@%s", name->value, version->value)
                                     : name->value));
}

const char *vp_plan_command(struct vp_arena *arena, const char *input,
                            const struct vp_setting *settings, size_t count) {
    struct vp_buf out = {.arena = arena};
    const struct vp_setting *engine = last_of(settings, count, "engine.name");
    const struct vp_setting *version = last_of(settings, count, "engine.version");

    bool command = vp_text_starts(input, "$ "); /* --from-command */
    vp_buf_printf(&out, "vramplan plan %s%s", command ? "--from-command " : "",
                  vp_shell_word(arena, input + (command ? 2 : 0)));
    for (size_t i = 0; i < count; i++) {
        const struct vp_setting *set = &settings[i];
        const char *option = vp_plan_option(set->path);
        if (set != last_of(settings, count, set->path) || (engine && set == version))
            continue;
        if (set == engine)
            add_engine(&out, engine, version);
        else if (option)
            vp_buf_printf(&out, " %s %s", option, vp_shell_word(arena, set->value));
        else
            vp_buf_printf(
                &out, " --set %s",
                vp_shell_word(arena, vp_arena_printf(arena, "%s=%s", set->path, set->value)));
    }
    return vp_buf_text(&out);
}
