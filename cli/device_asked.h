/* What the system says about its GPUs: runs vramplan-probe --facts and reads what it prints. */
#ifndef VP_CLI_DEVICE_ASKED_H
#define VP_CLI_DEVICE_ASKED_H

#include "cli/args.h"
#include "planner/import/gpu_profile.h"
#include "planner/model/device_facts.h"

/* VP_ERR_ENV: the program is missing, or says nothing that can be read. No GPU is VP_OK. */
enum vp_status vp_device_facts(struct vp_ctx *ctx, struct vp_device_facts *out);

/* Profiles that a card may be of. By name where that is one of a profile's; else by architecture,
 * and of those by compute units and memory (of an APU: of the host), as far as these are told. */
struct vp_card_profiles {
    const struct vp_gpu *items[8]; /* sorted by id; none: the card is not known */
    uint32_t count;
    bool exact; /* found by its name */
};
enum vp_status vp_card_profiles(struct vp_ctx *ctx, struct vp_card_profiles *out,
                                const struct vp_device_facts *facts,
                                const struct vp_fact_gpu *card);

#endif
