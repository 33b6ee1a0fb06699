/* Engine versions as logs print them: "0.13.0rc2.dev112+g763963aa7.d20251213", "b6500", "2025-10",
 * "2026-08-18". Compared by their numbers. */
#ifndef VP_MODEL_VERSION_H
#define VP_MODEL_VERSION_H

#include <stdbool.h>
#include <stdint.h>

enum vp_version_kind { VP_VERSION_NONE, VP_VERSION_RELEASE, VP_VERSION_BUILD, VP_VERSION_DATE };

struct vp_version {
    enum vp_version_kind kind;
    uint32_t part[3]; /* major, minor, patch; build number; year, month, day (0: not given) */
};

bool vp_version_parse(struct vp_version *out, const char *text);
/* <0, 0, >0; only between versions of one kind. */
int vp_version_compare(struct vp_version a, struct vp_version b);

#endif
