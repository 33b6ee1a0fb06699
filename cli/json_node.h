/* A node tree as JSON: numbers as numbers, lists on one line. */
#ifndef VP_CLI_JSON_NODE_H
#define VP_CLI_JSON_NODE_H

#include "planner/base/json_writer.h"
#include "planner/doc/node.h"

void vp_json_node(struct vp_json *json, const struct vp_node *node);

#endif
