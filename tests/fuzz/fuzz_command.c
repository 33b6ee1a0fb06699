/* Any text as a command line and as a Modelfile's line: no fault without a diagnostic, positions
 * inside the text. */
#include <stdlib.h>
#include <string.h>

#include "planner/import/command_line.h"
#include "planner/import/shell_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vp_arena arena = {0};
    struct vp_diags diags = {.arena = &arena};
    struct vp_ctx ctx = {.arena = &arena, .diags = &diags, .io = &vp_io_posix};
    struct vp_shell_text words;
    struct vp_node *root;
    if (size > 4096)
        return -1;
    const char *text = vp_arena_text(&arena, (const char *)data, size);
    vp_shell_split(&ctx, &words, text, strlen(text), "fuzz", size % 2);
    for (uint32_t i = 0; i < words.count; i++)
        if (words.words[i].pos.line == 0 || words.words[i].pos.column == 0)
            abort();
    (void)vp_command_line_is(&ctx, text);
    if (vp_command_line_read(&ctx, &root, text) != VP_OK && diags.errors == 0)
        abort();
    vp_arena_free(&arena);
    return 0;
}
