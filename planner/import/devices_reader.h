/* hardware.devices: like devices in groups, for machines whose devices are not all alike. */
#ifndef VP_IMPORT_DEVICES_READER_H
#define VP_IMPORT_DEVICES_READER_H

#include "planner/import/scenario_parts.h"

/* Reads [{gpu, count, memory, reserved}, ...] into the scenario's groups, and says hardware.gpu and
 * hardware.count by them. Faults are reported. */
void vp_devices_read(struct vp_reading *r, const struct vp_node *node);

#endif
