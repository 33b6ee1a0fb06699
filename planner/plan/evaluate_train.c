/* A training step: stages, the instants of each, verdict. */
#include "planner/plan/evaluate_parts.h"
#include "planner/plan/train_peaks.h"
#include "planner/plan/train_pins.h"
#include "planner/plan/optimal.h"

/* What rows of a device take from the framework's allocator at a step. */
static struct vp_amount allocated_at(const struct vp_ledger *ledger, uint32_t device,
                                     enum vp_step step) {
    struct vp_amount sum = {0, 0, 0};

    for (uint32_t i = 0; i < ledger->count; i++) {
        const struct vp_row *row = &ledger->rows[i];
        bool outside = row->component == VP_C_RUNTIME || row->component == VP_C_FRAGMENTATION;
        if (row->device == device && !outside && row->from <= step && step <= row->to)
            sum = vp_amount_add(sum, row->bytes);
    }
    return sum;
}

static struct vp_amount scaled(struct vp_amount a, struct vp_amount permille) {
    return (struct vp_amount){vp_mul_div(a.low, permille.low, 1000),
                              vp_mul_div(a.likely, permille.likely, 1000),
                              vp_max(vp_mul_div(a.likely, permille.high, 1000), a.high)};
}

/* What others leave; with torch's per-process fraction also what the allocator may take. */
static uint64_t usable_bytes(const struct vp_scenario *scenario,
                             const struct vp_train_stage *stage) {
    const struct vp_hardware *hardware = &scenario->hardware;
    uint64_t left = vp_above(hardware->memory_bytes, hardware->reserved_bytes);
    uint64_t fraction = scenario->train.memory_fraction_ppb;

    if (fraction == 0)
        return left;
    return vp_min(left,
                  vp_mul_div(hardware->memory_bytes, fraction, 1000000000) + stage->runtime.low);
}

/* Reserved and not allocated. What exceeds the room beside the process's context goes back to the
 * driver before memory runs out, but for segments that something still lies in. */
static uint64_t fragments(uint64_t reserved, uint64_t allocated, uint64_t room, uint64_t pinned) {
    uint64_t stays = vp_max(vp_above(room, allocated), vp_mul_div(allocated, pinned, 1000));
    return vp_min(vp_above(reserved, allocated), stays);
}

static void add_fragments(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                          const struct vp_training_stage *stage, uint32_t device) {
    bool measured = scenario->measured.train_known[VP_TM_RESERVED_PEAK];
    struct vp_row *row = vp_ledger_add(ledger, VP_C_FRAGMENTATION,
                                       measured ? VP_FORMULA_MEASURED : VP_FORMULA_TRAIN_FRAGMENTS,
                                       device, "reserved, not allocated");
    const struct vp_amount *all = &stage->allocated_peak, *reserved = &stage->reserved_peak;
    const struct vp_amount *pinned = &scenario->engine.rules.train.pinned;
    const struct vp_amount *runtime = &stage->numbers.runtime;
    uint64_t usable = usable_bytes(scenario, &stage->numbers);

    row->from = VP_STEP_FORWARD;
    row->to = VP_STEP_OPTIMIZER;
    row->bytes.likely =
        fragments(reserved->likely, all->likely, vp_above(usable, runtime->likely), pinned->likely);
    row->bytes.low = vp_min(vp_above(reserved->low, all->low), row->bytes.likely);
    row->bytes.high =
        vp_max(fragments(reserved->high, all->high, vp_above(usable, runtime->high), pinned->high),
               row->bytes.likely);
}

/* Between two steps: what is there all the time, and gradients where they have a buffer. */
static struct vp_amount resting(const struct vp_train_stage *s) {
    struct vp_amount all =
        vp_exactly(s->static_bytes - s->workspace.likely - s->communication.likely);

    all = vp_amount_add(vp_amount_add(all, s->workspace), s->communication);
    all = vp_amount_add(all, s->between);
    return s->gradients_persist ? vp_amount_add(all, vp_exactly(s->gradient_bytes)) : all;
}

static void fill_instants(struct vp_training_stage *out, const struct vp_ledger *ledger,
                          uint32_t device) {
    const struct vp_train_stage *s = &out->numbers;
    const struct vp_train_moment *peak = vp_train_stage_peak(s);

    for (int i = 0; i < VP_TRAIN_MOMENTS; i++) {
        const struct vp_train_moment *m = &s->moment[i];
        uint64_t first = m->total - (m->step < VP_STEP_OPTIMIZER ? s->optimizer_bytes : 0);
        out->candidate[i] = (struct vp_instant){
            .bytes = allocated_at(ledger, device, m->step), .step = m->step, .layer = m->layer};
        out->first_step_peak_bytes = vp_max(out->first_step_peak_bytes, first);
        if (m == peak)
            out->peak = out->candidate[i];
    }
    out->allocated_peak = out->peak.bytes;
}

static void evaluate_stage(struct vp_arena *arena, struct vp_result *out, uint32_t index) {
    struct vp_training_stage *stage = &out->training.stage[index];
    uint64_t first = 0;

    vp_train_stage_make(arena, &stage->numbers, out->scenario, index);
    bool replayed = vp_train_is_torch(out->scenario, &stage->numbers);
    if (replayed)
        stage->reserved_peak = vp_train_peaks(arena, out->scenario, &stage->numbers, &first);
    uint64_t computed = vp_train_pin(&stage->numbers, out->scenario);
    vp_train_stage_rows(&out->ledger, out->scenario, &stage->numbers, index);
    fill_instants(stage, &out->ledger, index);
    stage->allocated = resting(&stage->numbers);
    if (replayed)
        stage->first_step_peak_bytes = first;
    else
        stage->reserved_peak =
            scaled(stage->allocated_peak, out->scenario->engine.rules.train.reserved);
    stage->reserved_peak = vp_train_pin_reserved(stage->reserved_peak, computed, out->scenario);
    add_fragments(&out->ledger, out->scenario, stage, index);
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        stage->component_at_peak[c] =
            vp_ledger_component(&out->ledger, index, (enum vp_component)c, stage->peak.step).likely;
}

static void fill_device(struct vp_result *out, uint32_t index, uint32_t ranks) {
    struct vp_device *device = &out->devices[index];
    const struct vp_training_stage *stage = &out->training.stage[index];

    vp_device_fold(device, &out->ledger, index);
    device->first_rank = index * ranks;
    device->ranks = ranks;
    device->stage = index;
    device->capacity_bytes = out->scenario->hardware.memory_bytes;
    device->usable_bytes = usable_bytes(out->scenario, &stage->numbers);
    device->reserved_bytes = device->need.likely;
}

/* Offloaded bytes of all ranks of a machine; pinned memory may round each buffer up to a power of
 * two. */
static void add_host(struct vp_result *out, uint32_t stages, uint32_t ranks) {
    const struct vp_hardware *hardware = &out->scenario->hardware;
    struct vp_sum all = vp_sum(0);
    struct vp_device *host = &out->devices[stages];

    for (uint32_t i = 0; i < stages; i++)
        all =
            vp_sum_plus(all, vp_sum_mul(vp_sum(out->training.stage[i].numbers.host_bytes), ranks));
    if (all.v == 0 && !all.overflow)
        return;
    struct vp_row *row = vp_ledger_add(&out->ledger, VP_C_OTHER, VP_FORMULA_HOST_WEIGHTS, stages,
                                       "offloaded by training");
    row->from = VP_STEP_FORWARD;
    row->to = VP_STEP_OPTIMIZER;
    vp_row_input(row, "nodes", hardware->nodes);
    all.v = vp_ceil_div(all.v, vp_max(hardware->nodes, 1));
    vp_row_exact(&out->ledger, row, all);
    struct vp_sum most = vp_sum_mul(all, 2);
    out->ledger.overflow |= most.overflow;
    row->bytes.high = most.v;
    vp_device_fold(host, &out->ledger, stages);
    host->host = true;
    host->capacity_bytes = host->usable_bytes = hardware->host_memory_bytes;
    host->reserved_bytes = host->need.likely;
    out->device_count = stages + 1;
}

static void judge(struct vp_result *out, uint32_t stages) {
    const struct vp_device *last = &out->devices[out->device_count - 1];

    out->verdict = VP_FITS;
    out->reason = VP_REASON_NONE;
    for (uint32_t i = 0; i < stages; i++)
        vp_verdict_settle(out, VP_REASON_PEAK,
                          vp_need_over(out->devices[i].need, out->devices[i].usable_bytes));
    if (last->host && last->capacity_bytes > 0)
        vp_verdict_settle(out, VP_REASON_HOST, vp_need_over(last->need, last->capacity_bytes));
    vp_verdict_budget(out);
}

bool vp_evaluate_train(struct vp_arena *arena, struct vp_result *out) {
    out->scenario = vp_optimal_scenario(arena, out->scenario);
    const struct vp_parallel *p = &out->scenario->parallel;
    uint32_t stages = (uint32_t)vp_max(p->pipeline, 1);
    uint32_t ranks = (uint32_t)(vp_max(p->tensor, 1) * vp_max(p->context, 1) * vp_max(p->data, 1));

    out->training.stage = VP_NEW_ARRAY(arena, stages, struct vp_training_stage);
    out->training.stages = stages;
    out->devices = VP_NEW_ARRAY(arena, (size_t)stages + 1, struct vp_device);
    out->device_count = stages;
    for (uint32_t i = 0; i < stages; i++)
        evaluate_stage(arena, out, i);
    if (out->ledger.overflow || vp_ledger_too_large(&out->ledger))
        return false;
    for (uint32_t i = 0; i < stages; i++) {
        fill_device(out, i, ranks);
        if (vp_device_headroom(&out->devices[i]) < vp_device_headroom(&out->devices[out->worst]))
            out->worst = i;
    }
    out->training.worst = out->worst;
    add_host(out, stages, ranks);
    if (out->ledger.overflow || vp_ledger_too_large(&out->ledger))
        return false;
    out->headroom_bytes = vp_device_headroom(&out->devices[out->worst]);
    judge(out, stages);
    return true;
}
