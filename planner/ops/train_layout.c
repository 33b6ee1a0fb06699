#include "planner/ops/train_layout.h"

static uint64_t product(uint64_t a, uint64_t b) {
    struct vp_sum p = vp_sum_mul(vp_sum(vp_max(a, 1)), vp_max(b, 1));
    return p.overflow ? UINT64_MAX : p.v;
}

struct vp_layout vp_train_layout(const struct vp_scenario *scenario) {
    uint64_t tensor = vp_max(scenario->parallel.tensor, 1);
    uint64_t width = scenario->engine.rules.train.expert_tensor;
    return (struct vp_layout){.tensor = tensor,
                              .attention = tensor,
                              .vocab = tensor,
                              .expert_ranks = vp_max(scenario->parallel.expert, 1),
                              .expert_width = width > 0 ? width : tensor,
                              .vocab_pad =
                                  scenario->engine.rules.train.vocab_pad > 1
                                      ? product(scenario->engine.rules.train.vocab_pad, tensor)
                                      : 1};
}

uint64_t vp_train_copies(const struct vp_scenario *scenario) {
    return product(scenario->parallel.data, scenario->parallel.context);
}

uint64_t vp_train_expert_copies(const struct vp_scenario *scenario) {
    uint64_t all = product(vp_train_copies(scenario), scenario->parallel.tensor);
    uint64_t divided = product(scenario->parallel.expert, vp_train_layout(scenario).expert_width);
    return vp_max(all / divided, 1);
}

uint64_t vp_train_micro_batches(const struct vp_scenario *scenario) {
    const struct vp_train *train = &scenario->train;
    uint64_t at_once = product(train->micro_batch, scenario->parallel.data);

    if (scenario->parallel.microbatches > 0)
        return scenario->parallel.microbatches;
    if (train->accumulation > 0)
        return train->accumulation;
    return train->global_batch > at_once ? vp_ceil_div(train->global_batch, at_once) : 1;
}
