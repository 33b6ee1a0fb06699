/* vramplan: where the bytes of a large model go, and whether they fit. Public C API.
 *
 *     struct vramplan *vp = vramplan_new(NULL);
 *     const char *settings[] = {"hardware.gpu=mi300x", "serve.context=32768"};
 *     const char *json;
 *     int code = vramplan_plan(vp, "path/to/config.json", settings, 2, &json);
 *     ...                          // json: see docs/FORMATS.md, "Result"
 *     vramplan_free(vp);
 *
 * A context is used by one thread at a time; several contexts are independent. Nothing is printed,
 * no network is used, files are only read. */
#ifndef VRAMPLAN_H
#define VRAMPLAN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vramplan;

/* profiles: folder of the profiles, NULL: $VRAMPLAN_PROFILES, beside the executable, or where an
 * installation puts them. Copied. NULL when there is no memory. */
struct vramplan *vramplan_new(const char *profiles);
void vramplan_free(struct vramplan *context);

/* Plans an input as `vramplan plan INPUT --set ... --format json` does. input: a scenario file
 * (FILE#name picks one), a model file or folder, a built-in model. settings: "field=value", each as
 * for --set; NULL when count is 0.
 * *json: the result, one object or a list, NUL-terminated; owned by the context, valid until the
 * next call or vramplan_free; NULL only without memory.
 * Returns the exit code of the command: 0 fits, 1 does not fit, 2 the input is wrong (see
 * `diagnostics` in the JSON), 3 at risk, 4 the environment failed. */
int vramplan_plan(struct vramplan *context, const char *input, const char *const *settings,
                  size_t count, const char **json);

/* "0.1.0" */
const char *vramplan_version(void);

#ifdef __cplusplus
}
#endif

#endif
