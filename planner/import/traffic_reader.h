/* What `serve` says about requests beside plain fields: lengths as distributions, arrivals, classes
 * of requests, shared prefixes, promises, copies of the set-up. Formats: docs/SIMULATE.md. */
#ifndef VP_IMPORT_TRAFFIC_READER_H
#define VP_IMPORT_TRAFFIC_READER_H

#include "planner/import/scenario_parts.h"

/* Reads a key of `serve` that this file knows; false: it is not one of them. */
bool vp_traffic_key(struct vp_reading *r, const char *key, const struct vp_node *node);
/* When both trees have been read. base: folder that a trace named in the file starts at. Checks
 * what must agree, and derives means from classes. */
void vp_traffic_settle(struct vp_reading *r, const char *base);

#endif
