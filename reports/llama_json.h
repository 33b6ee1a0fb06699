/* llama.cpp's buffers in the JSON result: maps keyed by place, MiB as its log counts them. */
#ifndef VP_REPORTS_LLAMA_JSON_H
#define VP_REPORTS_LLAMA_JSON_H

#include "planner/base/json_writer.h"
#include "planner/plan/result.h"

/* The keys "engine_report" and "intervals". result->llama is known. */
void vp_llama_json_report(struct vp_json *json, const struct vp_result *result);

#endif
