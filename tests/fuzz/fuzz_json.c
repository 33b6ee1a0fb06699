/* Any bytes through the JSON reader. jansson is the judge of what is JSON: both accept the same
 * texts, with the same content, but for what this reader takes or refuses on purpose. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "planner/doc/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(const json_t *json, const struct vp_node *node) {
    static const enum vp_node_kind KINDS[] = {
        [JSON_OBJECT] = VP_NODE_MAP,  [JSON_ARRAY] = VP_NODE_LIST, [JSON_STRING] = VP_NODE_TEXT,
        [JSON_INTEGER] = VP_NODE_INT, [JSON_REAL] = VP_NODE_REAL,  [JSON_TRUE] = VP_NODE_BOOL,
        [JSON_FALSE] = VP_NODE_BOOL,  [JSON_NULL] = VP_NODE_NULL,
    };
    if (KINDS[json_typeof(json)] != node->kind)
        abort();
    if (json_is_string(json) && strcmp(json_string_value(json), node->text) != 0)
        abort();
    if (json_is_integer(json) && json_integer_value(json) != strtoll(node->text, NULL, 10))
        abort();
    if (json_is_array(json)) {
        if (json_array_size(json) != node->count)
            abort();
        for (uint32_t i = 0; i < node->count; i++)
            same(json_array_get(json, i), node->items[i]);
    }
    if (json_is_object(json)) {
        if (json_object_size(json) != node->count)
            abort();
        for (uint32_t i = 0; i < node->count; i++)
            same(json_object_get(json, node->keys[i]), node->items[i]);
    }
}

/* What jansson judges differently: NaN and Infinity, a byte order mark, numbers that are too large
 * for a double, a NUL after a number (it takes it for a space), and the caps. */
static bool is_comparable(const char *text, size_t size, const struct vp_diags *diags,
                          const json_error_t *error) {
    for (uint32_t i = 0; i < diags->count; i++)
        if (diags->items[i].id == VP_D_CAP)
            return false;
    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        return false;
    if (memchr(text, '\0', size) || strstr(text, "NaN") || strstr(text, "Infinity"))
        return false;
    return json_error_code(error) != json_error_numeric_overflow;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vp_arena arena = {0};
    struct vp_diags diags = {.arena = &arena};
    struct vp_ctx ctx = {.arena = &arena, .diags = &diags, .io = &vp_io_posix};
    struct vp_node *node;
    json_error_t error = {.text = ""};
    const char *text = vp_arena_text(&arena, (const char *)data, size);
    enum vp_status status = vp_json_read(&ctx, &node, (struct vp_bytes){text, size}, "fuzz");
    if ((status == VP_OK) != (diags.errors == 0))
        abort();
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (is_comparable(text, size, &diags, &error)) {
        if ((json != NULL) != (status == VP_OK))
            abort();
        if (json)
            same(json, node);
    }
    json_decref(json);
    vp_arena_free(&arena);
    return 0;
}
