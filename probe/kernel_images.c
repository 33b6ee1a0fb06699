#include "probe/kernel_images.h"

#include <string.h>

const struct vp_kernel_image *vp_kernel_image_find(const char *arch) {
    static const struct vp_kernel_image *const ALL[] = {
        &vp_kernel_image_gfx90a, &vp_kernel_image_gfx942, &vp_kernel_image_gfx950,
        &vp_kernel_image_gfx1100, &vp_kernel_image_gfx1201};

    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
        if (!strcmp(ALL[i]->arch, arch))
            return ALL[i];
    return NULL;
}

const char *vp_kernel_text(struct vp_arena *arena) {
    size_t length = 0, at = 0;

    for (size_t i = 0; vp_kernel_lines[i]; i++)
        length += strlen(vp_kernel_lines[i]);
    char *text = VP_NEW_ARRAY(arena, length + 1, char);
    for (size_t i = 0; vp_kernel_lines[i]; i++) {
        size_t line = strlen(vp_kernel_lines[i]);
        memcpy(text + at, vp_kernel_lines[i], line);
        at += line;
    }
    text[at] = '\0';
    return text;
}
