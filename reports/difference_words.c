#include "reports/difference_words.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/words.h"

/* ---- words ---- */

int64_t vp_words_need_moved(const struct vp_result *before, const struct vp_result *after) {
    return vp_words_minus(vp_words_worst(after)->need.likely, vp_words_worst(before)->need.likely);
}

const char *vp_words_moved(struct vp_arena *arena, int64_t bytes) {
    uint64_t apart = bytes < 0 ? (uint64_t)(-(bytes + 1)) + 1 : (uint64_t)bytes;

    if (bytes == 0)
        return "0";
    return vp_arena_printf(arena, "%s%s", bytes < 0 ? "-" : "+", vp_format_bytes(arena, apart));
}

const char *vp_words_cause(struct vp_arena *arena, const struct vp_cause *cause) {
    if (cause->from && cause->to && vp_text_eq(cause->from, cause->to))
        return vp_arena_printf(arena, "%s %s, other contents", cause->path, cause->to);
    if (cause->from && cause->to)
        return vp_arena_printf(arena, "%s %s -> %s", cause->path, cause->from, cause->to);
    if (cause->to)
        return vp_arena_printf(arena, "%s %s, new", cause->path, cause->to);
    if (cause->from)
        return vp_arena_printf(arena, "%s %s, taken away", cause->path, cause->from);
    return cause->path;
}

const char *vp_words_causes(struct vp_arena *arena, const struct vp_difference_step *step,
                            uint32_t most) {
    struct vp_buf out = {.arena = arena};
    uint32_t named = step->causes < most ? step->causes : most;

    for (uint32_t i = 0; i < named; i++)
        vp_buf_printf(&out, "%s%s",
                      i == 0                        ? ""
                      : step->whole_model && i == 1 ? ": "
                                                    : "; ",
                      vp_words_cause(arena, &step->cause[i]));
    if (named < step->causes)
        vp_buf_printf(&out, "; and %" PRIu32 " more", step->causes - named);
    return vp_buf_text(&out);
}

const char *vp_words_changes(struct vp_arena *arena, const struct vp_difference *difference,
                             uint32_t most) {
    struct vp_buf out = {.arena = arena};
    uint32_t count = difference ? difference->causes : 0;

    for (uint32_t i = 0; i < count && i < most; i++) {
        const char *place = vp_words_place(arena, &difference->cause[i].pos);
        vp_buf_printf(&out, "%s%s%s%s%s", i ? "; " : "",
                      vp_words_cause(arena, &difference->cause[i]), place ? " (" : "",
                      place ? place : "", place ? ")" : "");
    }
    if (count > most)
        vp_buf_printf(&out, "; and %" PRIu32 " more", count - most);
    return count > 0 ? vp_buf_text(&out) : NULL;
}

const char *vp_words_file(struct vp_arena *arena, const char *file) {
    struct vp_buf out = {.arena = arena};
    size_t folders = 0; /* at the end of `out`, that a ".." may take back */

    if (!file || *file == '/')
        return file;
    while (*file) {
        size_t n = strcspn(file, "/"), step = n + (file[n] == '/');
        bool up = n == 2 && vp_text_starts(file, "..");
        if (up && folders > 0) {
            do
                out.data[--out.size] = '\0';
            while (out.size > 0 && out.data[out.size - 1] != '/');
            folders--;
        } else if (n != 1 || *file != '.') {
            vp_buf_add_n(&out, file, step);
            folders = up ? 0 : folders + 1;
        }
        file += step;
    }
    return vp_buf_text(&out);
}

const char *vp_words_place(struct vp_arena *arena, const struct vp_pos *pos) {
    const char *file = pos ? vp_words_file(arena, pos->file) : NULL;

    if (!file || !*file)
        return NULL;
    return pos->line ? vp_arena_printf(arena, "%s:%" PRIu32, file, pos->line) : file;
}

const struct vp_pos *vp_step_place(const struct vp_difference_step *step) {
    for (uint32_t i = 0; i < (step->whole_model ? 1 : step->causes); i++)
        if (step->cause[i].pos.file)
            return &step->cause[i].pos;
    return NULL;
}

const char *vp_words_step(struct vp_arena *arena, const struct vp_difference_step *step) {
    struct vp_buf out = {.arena = arena};

    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        if (step->component[c] != 0)
            vp_buf_printf(&out, "%s%s %s", out.size ? ", " : "",
                          vp_words_component(arena, (enum vp_component)c),
                          vp_words_moved(arena, step->component[c]));
    if (step->usable_bytes != 0)
        vp_buf_printf(&out, "%susable %s", out.size ? "; " : "",
                      vp_words_moved(arena, step->usable_bytes));
    return out.size ? vp_buf_text(&out) : "nothing";
}

/* ---- JSON ---- */

void vp_difference_json_place(struct vp_json *json, const struct vp_pos *pos) {
    vp_json_key_text(json, "file", vp_words_file(json->out->arena, pos->file));
    vp_json_key(json, "line");
    if (pos->file && pos->line)
        vp_json_u64(json, pos->line);
    else
        vp_json_null(json);
}

static void json_cause(struct vp_json *json, const struct vp_cause *cause) {
    vp_json_map(json);
    vp_json_key_text(json, "path", cause->path);
    vp_json_key_text(json, "from", cause->from);
    vp_json_key_text(json, "to", cause->to);
    vp_json_key_text(json, "group", vp_cause_group_name(cause->group));
    vp_difference_json_place(json, &cause->pos);
    vp_json_end(json, '}');
}

static void json_step(struct vp_json *json, const struct vp_difference *difference,
                      const struct vp_difference_step *step) {
    uint32_t first = (uint32_t)(step->cause - difference->cause);

    vp_json_map(json);
    vp_json_key(json, "changes");
    vp_json_list_inline(json);
    for (uint32_t i = 0; i < step->causes; i++)
        vp_json_u64(json, first + i);
    vp_json_end(json, ']');
    vp_json_key_i64(json, "need_bytes", step->need_bytes);
    vp_json_key_i64(json, "usable_bytes", step->usable_bytes);
    vp_json_key_text(json, "verdict", vp_verdict_name(step->verdict));
    vp_json_key(json, "components");
    vp_json_map(json);
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        if (step->component[c] != 0)
            vp_json_key_i64(json, vp_component_name((enum vp_component)c), step->component[c]);
    vp_json_end(json, '}');
    vp_json_key(json, "rows");
    vp_json_list(json);
    for (uint32_t i = 0; i < step->moved_count; i++) {
        vp_json_map_inline(json);
        vp_json_key_text(json, "component", vp_component_name(step->moved[i].component));
        vp_json_key_text(json, "owner", step->moved[i].owner);
        vp_json_key_i64(json, "bytes", step->moved[i].bytes);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
    vp_json_end(json, '}');
}

/* What the steps leave over: a check that readers can make themselves. */
static int64_t unexplained(const struct vp_difference *difference) {
    int64_t left = vp_words_minus(difference->after.need.likely, difference->before.need.likely);

    for (uint32_t i = 0; i < difference->steps; i++)
        left -= difference->step[i].need_bytes;
    return left;
}

void vp_difference_json(struct vp_json *json, const struct vp_difference *difference) {
    vp_json_key(json, "changes");
    vp_json_list(json);
    for (uint32_t i = 0; difference && i < difference->causes; i++)
        json_cause(json, &difference->cause[i]);
    vp_json_end(json, ']');
    vp_json_key(json, "steps");
    vp_json_list(json);
    for (uint32_t i = 0; difference && i < difference->steps; i++)
        json_step(json, difference, &difference->step[i]);
    vp_json_end(json, ']');
    vp_json_key(json, "unexplained_bytes");
    if (difference && difference->planned)
        vp_json_i64(json, unexplained(difference));
    else
        vp_json_null(json);
}

void vp_difference_json_side(struct vp_json *json, const struct vp_result *result) {
    if (!result) {
        vp_json_null(json);
        return;
    }
    const struct vp_device *worst = vp_words_worst(result);
    vp_json_map(json);
    vp_json_key_text(json, "verdict", vp_verdict_name(result->verdict));
    vp_json_key_text(json, "worst_device", worst->id);
    vp_json_key_amount(json, "need_bytes", worst->need);
    vp_json_key_u64(json, "usable_bytes", worst->usable_bytes);
    vp_json_key_i64(json, "headroom_bytes", result->headroom_bytes);
    vp_json_key(json, "max_context");
    if (result->prices.max_context > 0)
        vp_json_u64(json, result->prices.max_context);
    else
        vp_json_null(json);
    vp_json_key(json, "components");
    vp_json_map(json);
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        if (worst->present[c])
            vp_json_key_amount(json, vp_component_name((enum vp_component)c), worst->component[c]);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}
