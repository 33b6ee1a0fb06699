#include <inttypes.h>
#include <math.h>

#include "planner/base/units.h"
#include "planner/plan/doctor_parts.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* Less than that in pieces is what every process has. */
#define FEW_PIECES (256 * MIB)

/* Shares of the card from which a figure says something; a CUDA or HIP context with its kernels
 * takes some hundred MiB, so less than GIB held by others is not worth a finding. */
enum { PERCENT_OTHERS = 5, PERCENT_PIECES = 10, PERCENT_POOLS = 5, PERCENT_HUGE = 60 };

static uint64_t percent(uint64_t of, uint64_t share) { return of / 100 * share; }
static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* What PyTorch's allocator asks the driver for (planner/timeline/allocator.h): 2 MiB for small
 * requests, 20 MiB below 10 MiB, else whole 2 MiB. */
static uint64_t segment_of(uint64_t asked) {
    if (asked <= MIB)
        return 2 * MIB;
    if (asked < 10 * MIB)
        return 20 * MIB;
    return (asked + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

/* ---- what the figures are ---- */

static const char *place_of(const struct vp_doctor *d) {
    const struct vp_log_message *m = d->message;
    int64_t index = m->known[VP_LOG_DEVICE_INDEX] ? m->value[VP_LOG_DEVICE_INDEX] : 0;
    return vp_arena_printf(d->arena, "GPU%" PRId64, index);
}

/* llama.cpp prints what was free when it began, and every buffer that it got since. */
static void look_llama(struct vp_doctor *d) {
    static const enum vp_log_quantity OWN[] = {VP_LOG_MODEL, VP_LOG_KV, VP_LOG_STATE,
                                               VP_LOG_COMPUTE, VP_LOG_OUTPUT};
    struct vp_doctor_view *v = &d->view;
    const char *place = place_of(d);
    uint64_t began;
    if (!vp_doctor_fact(&began, d, VP_LOG_DEVICE_FREE, place))
        return;
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++) {
        uint64_t bytes;
        if (vp_doctor_fact(&bytes, d, OWN[i], place))
            v->allocated += bytes;
    }
    v->free = less(began, v->allocated);
    v->free_known = true;
    v->card_known = vp_doctor_fact(&v->card, d, VP_LOG_DEVICE_TOTAL, place);
}

/* Others' memory where the message does not list it. False: it cannot be told. */
static bool find_others(struct vp_doctor *d, uint64_t *out, bool *exact) {
    const struct vp_doctor_view *v = &d->view;
    *exact = v->in_use_known || v->others_known;
    if (!v->card_known || !v->free_known)
        return false;
    uint64_t rest = less(less(v->card, v->free), v->in_use_known ? v->in_use : v->reserved);
    *out = v->others_known && v->others > rest ? v->others : rest;
    return *exact || v->reserved > 0;
}

/* ---- rules ---- */

static void show_asked(struct vp_doctor *d, struct vp_finding *f) {
    const struct vp_doctor_view *v = &d->view;
    if (v->asked && v->free_known)
        vp_doctor_line(d, f, "asked for %s, %s free%s%s", vp_doctor_bytes(d, v->asked),
                       vp_doctor_bytes(d, v->free), v->card_known ? " of " : "",
                       v->card_known ? vp_doctor_bytes(d, v->card) : "");
    else if (v->asked)
        vp_doctor_line(d, f, "asked for %s", vp_doctor_bytes(d, v->asked));
}

static void show_card(struct vp_doctor *d, struct vp_finding *f) {
    const struct vp_doctor_view *v = &d->view;
    uint64_t others;
    bool exact;
    if (v->reserved)
        vp_doctor_line(d, f, "PyTorch: %s in tensors, %s reserved beside them",
                       vp_doctor_bytes(d, v->allocated), vp_doctor_bytes(d, v->unallocated));
    if (v->in_use_known && v->reserved)
        vp_doctor_line(d, f, "outside PyTorch (context, kernels, communication): %s - %s = %s",
                       vp_doctor_bytes(d, v->in_use), vp_doctor_bytes(d, v->reserved),
                       vp_doctor_bytes(d, less(v->in_use, v->reserved)));
    if (find_others(d, &others, &exact) && exact && v->in_use_known)
        vp_doctor_line(d, f, "others: %s - %s free - %s of this process = %s",
                       vp_doctor_bytes(d, v->card), vp_doctor_bytes(d, v->free),
                       vp_doctor_bytes(d, v->in_use), vp_doctor_bytes(d, others));
}

/* The whole card's total, or the largest memory of a machine with that APU; 0: not known. */
static uint64_t whole_bytes(const struct vp_gpu *gpu) {
    if (!gpu)
        return 0;
    if (gpu->gtt_ppb)
        return (uint64_t)gpu->memory_gb * GIB;
    uint64_t mib = gpu->runtime_mib ? gpu->runtime_mib : gpu->driver_mib;
    return (gpu->whole_mib ? gpu->whole_mib : mib) * MIB;
}

/* Tokens whose square is that many scores of 16 bit in 16 heads. */
static uint64_t tokens_of_scores(uint64_t bytes) {
    return (uint64_t)sqrt((double)bytes / (16 * 2));
}

static bool too_large(struct vp_doctor *d) {
    const struct vp_doctor_view *v = &d->view;
    uint64_t whole = whole_bytes(d->in->gpu);
    uint64_t card = whole ? whole : v->card_known ? v->card : 0;
    bool beyond = card && v->asked > card;
    if (!card || !(beyond || v->asked > percent(card, PERCENT_HUGE)) ||
        d->message->kind == VP_LOG_SAYS_LLAMA_ALLOC)
        return false;
    struct vp_finding *f = vp_doctor_add(
        d, VP_CAUSE_TOO_LARGE, beyond ? VP_CERTAIN : VP_LIKELY,
        "A single tensor of that size is seldom meant. Attention scores without a flash kernel "
        "(tokens x tokens for every head, also in vision encoders), logits of all tokens at once, "
        "or a length taken from the data are what grows so.");
    vp_doctor_line(d, f, "asked for %s in one piece; the card has %s", vp_doctor_bytes(d, v->asked),
                   vp_doctor_bytes(d, card));
    vp_doctor_line(d, f, "as attention scores (16 heads, 16 bit) it is %s x %s tokens",
                   vp_format_count(d->arena, tokens_of_scores(v->asked)),
                   vp_format_count(d->arena, tokens_of_scores(v->asked)));
    vp_doctor_step(d, f, vp_arena_printf(d->arena, "vramplan explain %s", d->in->subject),
                   "which row of the plan is of that size");
    vp_doctor_step(d, f, NULL,
                   "use an attention that keeps no scores (flash; in training "
                   "train.ops.attention: flash), or smaller images, batches or chunks");
    return true;
}

static bool process_limit(struct vp_doctor *d) {
    const struct vp_doctor_view *v = &d->view;
    if (!v->allowed_known || !v->card_known || v->allowed >= v->card ||
        v->reserved + segment_of(v->asked) <= v->allowed)
        return false;
    struct vp_finding *f =
        vp_doctor_add(d, VP_CAUSE_PROCESS_LIMIT, VP_CERTAIN,
                      "torch.cuda.set_per_process_memory_fraction, or the setting of a framework "
                      "that calls it, allows this process less than the card has.");
    vp_doctor_line(d, f, "reserved %s + asked %s > allowed %s", vp_doctor_bytes(d, v->reserved),
                   vp_doctor_bytes(d, v->asked), vp_doctor_bytes(d, v->allowed));
    vp_doctor_line(d, f, "allowed %s of %s: a fraction of %.3f", vp_doctor_bytes(d, v->allowed),
                   vp_doctor_bytes(d, v->card), (double)v->allowed / (double)v->card);
    vp_doctor_step(d, f, NULL, "raise the fraction (train.memory_fraction in a scenario)");
    return true;
}

/* The runtime of an APU takes what the driver may map, by default half of the host's memory; three
 * quarters leave enough for a system that does little else. */
static bool apu_limit(struct vp_doctor *d, uint64_t card) {
    const struct vp_gpu *gpu = d->in->gpu;
    uint64_t whole = whole_bytes(gpu), pages = whole / 4 * 3 / 4096, rest;
    bool exact, told = card < percent(whole, 70);
    bool more = find_others(d, &rest, &exact) && !exact && rest > percent(card, 25);
    if (!told && !more)
        return false;
    struct vp_finding *f = vp_doctor_add(
        d, VP_CAUSE_APU_LIMIT, VP_LIKELY,
        "Processor and graphics share one memory. What the runtime may take is the firmware's "
        "carve-out, or what the driver may map (GTT, ttm.pages_limit), not all of it; where the "
        "driver prefers GTT, a large carve-out makes it smaller.");
    if (more)
        vp_doctor_line(d, f, "of %s that the runtime shows %s are neither free nor PyTorch's",
                       vp_doctor_bytes(d, card), vp_doctor_bytes(d, rest));
    vp_doctor_line(d, f, "the runtime sees %s; machines with %s have up to %s",
                   vp_doctor_bytes(d, card), gpu->name, vp_doctor_bytes(d, whole));
    vp_doctor_line(d, f, "3/4 of %s are %" PRIu64 " pages of 4 KiB", vp_doctor_bytes(d, whole),
                   pages);
    vp_doctor_step(d, f, "cat /sys/class/drm/card*/device/mem_info_{vram,gtt}_total",
                   "the carve-out, and what the driver may map, in bytes");
    vp_doctor_step(d, f, vp_arena_printf(d->arena, "ttm.pages_limit=%" PRIu64, pages),
                   "kernel parameter for 3/4, with a small carve-out set in the firmware");
    vp_doctor_step(d, f, "vramplan device", "carve-out, GTT and what is left");
    return true;
}

static const char *partition_in(const struct vp_doctor *d) {
    for (uint32_t i = 0; i < d->in->log->devices; i++) {
        const char *mode = d->in->log->device[i].partition;
        if (mode[0] && !vp_text_eq(mode, "SPX"))
            return mode;
    }
    return NULL;
}

static void add_partition(struct vp_doctor *d, enum vp_surety surety, const char *line) {
    struct vp_finding *f =
        vp_doctor_add(d, VP_CAUSE_PARTITION, surety,
                      "The card is divided: a process gets the memory of one part, though "
                      "rocm-smi may show the whole card's for every part.");
    vp_doctor_line(d, f, "%s", line);
    vp_doctor_step(d, f, "rocm-smi --showcomputepartition --showmemorypartition",
                   "how the card is divided");
    vp_doctor_step(d, f,
                   vp_arena_printf(d->arena, "vramplan plan %s --set hardware.partition=%s",
                                   d->in->subject, partition_in(d) ? partition_in(d) : "CPX"),
                   "plan for a part");
    vp_doctor_step(d, f, "amd-smi set --compute-partition SPX",
                   "one device again, if that is meant");
}

/* A total that is far below the card's. */
static bool partition(struct vp_doctor *d, uint64_t card) {
    const struct vp_gpu *gpu = d->in->gpu;
    uint64_t whole = whole_bytes(gpu) / MIB, mib = card / MIB;
    if (gpu && gpu->gtt_ppb)
        return apu_limit(d, card);
    if (!whole || mib >= percent(whole, 90))
        return false;
    for (uint64_t parts = 2; parts <= 8; parts++) {
        uint64_t one = whole / parts;
        if (mib < percent(one, 98) || mib > percent(one, 102) || !vp_text_eq(gpu->vendor, "amd"))
            continue;
        add_partition(d, VP_CERTAIN,
                      vp_arena_printf(d->arena, "%s is 1/%" PRIu64 " of the %s of %s",
                                      vp_doctor_bytes(d, card), parts,
                                      vp_doctor_bytes(d, whole * MIB), gpu->name));
        return true;
    }
    add_partition(d, VP_POSSIBLE,
                  vp_arena_printf(d->arena, "the process sees %s; %s has %s",
                                  vp_doctor_bytes(d, card), gpu->name,
                                  vp_doctor_bytes(d, whole * MIB)));
    return true;
}

static bool not_capacity(struct vp_doctor *d) {
    const struct vp_doctor_view *v = &d->view;
    uint64_t need = segment_of(v->asked);
    if (!v->asked || !v->free_known || v->free < need + GIB / 2)
        return false;
    bool plenty = v->free >= 4 * need + GIB;
    struct vp_finding *f = vp_doctor_add(
        d, VP_CAUSE_NOT_CAPACITY, plenty ? VP_CERTAIN : VP_LIKELY,
        "The free memory is read after the failure. Either others gave memory back just then, or "
        "the driver ran out of something else: mappings of the process (vm.max_map_count), address "
        "space (ulimit -v), pinned host memory, or a runtime that does not match the driver, which "
        "happens in images that were put together by hand.");
    show_asked(d, f);
    vp_doctor_line(d, f, "the driver is asked for %s; %s would be left", vp_doctor_bytes(d, need),
                   vp_doctor_bytes(d, v->free - need));
    if (v->allocated)
        vp_doctor_line(d, f, "PyTorch holds only %s in tensors", vp_doctor_bytes(d, v->allocated));
    vp_doctor_step(d, f, "sysctl vm.max_map_count; ulimit -v; ulimit -l",
                   "limits of mappings, address space, locked memory");
    vp_doctor_step(d, f, "PYTORCH_ALLOC_CONF=expandable_segments:False",
                   "run again without mapped segments (virtual memory management)");
    vp_doctor_step(d, f, d->hip ? "dmesg | grep -i amdgpu" : "dmesg | grep -i NVRM",
                   "what the driver says to it");
    vp_doctor_step_processes(d, f);
    return true;
}

static bool others(struct vp_doctor *d) {
    const struct vp_doctor_view *v = &d->view;
    uint64_t bytes;
    bool exact;
    if (!find_others(d, &bytes, &exact) || bytes < GIB ||
        bytes < percent(v->card, PERCENT_OTHERS) || (!exact && bytes < 3 * GIB))
        return false;
    bool enough = v->asked && v->free + v->unallocated + bytes >= v->asked;
    struct vp_finding *f = vp_doctor_add(
        d, VP_CAUSE_OTHERS,
        !enough ? VP_POSSIBLE
        : exact ? VP_CERTAIN
                : VP_LIKELY,
        exact ? "Memory of this card is held by another process: an earlier run that did not end, "
                "a second service, a desktop."
              : "More is taken than PyTorch reserved: by another process, or by libraries of this "
                "one (communication, graphs, workspaces).");
    vp_doctor_line(d, f,
                   exact ? "%s - %s free - %s of this process = %s of others"
                         : "%s - %s free - %s reserved by PyTorch = %s that it does not count",
                   vp_doctor_bytes(d, v->card), vp_doctor_bytes(d, v->free),
                   vp_doctor_bytes(d, exact && v->in_use_known ? v->in_use : v->reserved),
                   vp_doctor_bytes(d, bytes));
    if (v->asked)
        vp_doctor_line(d, f, "without it %s would be free; asked was %s",
                       vp_doctor_bytes(d, v->free + bytes), vp_doctor_bytes(d, v->asked));
    vp_doctor_step_processes(d, f);
    vp_doctor_step(d, f,
                   vp_arena_printf(d->arena, "vramplan plan %s --set 'hardware.reserved=%s'",
                                   d->in->subject, vp_doctor_bytes(d, bytes)),
                   "plan beside it");
    return true;
}

static bool fragmentation(struct vp_doctor *d) {
    const struct vp_doctor_view *v = &d->view;
    uint64_t card = v->card_known ? v->card : v->reserved + v->free;
    if (!v->asked || v->unallocated < FEW_PIECES || v->unallocated + v->free < v->asked)
        return false;
    bool alone = v->unallocated >= v->asked, much = v->unallocated >= percent(card, PERCENT_PIECES);
    if (!alone && !much)
        return false;
    struct vp_finding *f = vp_doctor_add(
        d, VP_CAUSE_FRAGMENTATION, alone ? VP_LIKELY : VP_POSSIBLE,
        "PyTorch holds enough memory that no tensor uses, but no piece of it is long enough. Sizes "
        "that change from step to step (lengths, batches) leave such pieces.");
    vp_doctor_line(d, f, "reserved but unallocated: %s%s%s%s", vp_doctor_bytes(d, v->unallocated),
                   alone ? "" : " + ", alone ? "" : vp_doctor_bytes(d, v->free),
                   alone ? "" : " free");
    vp_doctor_line(d, f, "asked: %s", vp_doctor_bytes(d, v->asked));
    vp_doctor_step(d, f, "PYTORCH_ALLOC_CONF=expandable_segments:True",
                   d->hip ? "segments that grow in place; under ROCm from PyTorch 2.11 and ROCm "
                            "7.0 on, ignored before"
                          : "segments that grow in place (before PyTorch 2.9: "
                            "PYTORCH_CUDA_ALLOC_CONF)");
    vp_doctor_step(d, f,
                   "PYTORCH_ALLOC_CONF=max_split_size_mb:512,garbage_collection_threshold:0.8",
                   "where that is not there");
    vp_doctor_step(d, f, vp_arena_printf(d->arena, "vramplan timeline %s", d->in->subject),
                   "training: what a step reserves beside its tensors");
    return true;
}

static bool graphs(struct vp_doctor *d) {
    const struct vp_doctor_view *v = &d->view;
    uint64_t card = v->card_known ? v->card : v->reserved;
    if (v->pools < GIB || v->pools < percent(card, PERCENT_POOLS))
        return false;
    struct vp_finding *f =
        vp_doctor_add(d, VP_CAUSE_GRAPHS, v->pools + v->free >= v->asked ? VP_LIKELY : VP_POSSIBLE,
                      "Captured graphs keep memory of their own, which other tensors cannot use.");
    vp_doctor_line(d, f, "in private pools: %s; free: %s; asked: %s", vp_doctor_bytes(d, v->pools),
                   vp_doctor_bytes(d, v->free), vp_doctor_bytes(d, v->asked));
    vp_doctor_step(d, f, NULL,
                   "capture fewer sizes, or none: vLLM --cuda-graph-sizes, --enforce-eager; SGLang "
                   "--cuda-graph-max-bs, --disable-cuda-graph");
    return true;
}

/* ---- the card is full ---- */

static void serving_steps(struct vp_doctor *d, struct vp_finding *f) {
    const struct vp_doctor_view *v = &d->view;
    uint64_t pool, share;
    bool serves = d->start && d->start->known &&
                  (d->start->engine == VP_ENGINE_VLLM || d->start->engine == VP_ENGINE_SGLANG);
    if (!serves)
        return;
    bool sglang = d->start->engine == VP_ENGINE_SGLANG;
    if (vp_doctor_fact(&pool, d, VP_LOG_AVAILABLE_KV, NULL))
        vp_doctor_line(d, f, "of that the KV cache, taken at the start: %s",
                       vp_doctor_bytes(d, pool));
    bool known = vp_doctor_fact(&share, d, sglang ? VP_LOG_STATIC_SHARE : VP_LOG_UTILIZATION, NULL);
    const char *flag = sglang ? "--mem-fraction-static" : "--gpu-memory-utilization";
    uint64_t more = less(segment_of(v->asked), v->free) + GIB / 4;
    uint64_t off = v->card ? (more * 100 + v->card - 1) / v->card : 0; /* in hundredths */
    uint64_t now = share / 10000000;
    if (known && v->card && now > off)
        flag = vp_arena_printf(d->arena, "%s 0.%02" PRIu64, flag, now - off);
    vp_doctor_step(d, f, flag, "leave more beside the engine's share");
}

static const char *why_full(const struct vp_doctor *d, bool short_of) {
    if (d->message->kind == VP_LOG_SAYS_LLAMA_ALLOC)
        return "The buffer does not fit into what is left of this device.";
    return short_of ? "Even the free and the unused memory together do not hold what was asked for."
                    : "What is free does not hold what was asked for, and the little that PyTorch "
                      "has unused lies in pieces.";
}

static bool capacity(struct vp_doctor *d) {
    const struct vp_doctor_view *v = &d->view;
    uint64_t held = 0, bytes, left = v->free + v->unallocated;
    bool exact, short_of = v->asked > left, tight = segment_of(v->asked) > v->free;
    enum vp_surety surety = VP_LIKELY;
    if (!v->asked || !v->free_known || !(short_of || (tight && v->unallocated < FEW_PIECES)))
        return false;
    if (find_others(d, &bytes, &exact) && bytes >= GIB && bytes >= percent(v->card, PERCENT_OTHERS))
        held = bytes;
    if (v->asked <= left + held && held)
        surety = VP_POSSIBLE;
    else if (short_of && !held)
        surety = VP_CERTAIN;
    struct vp_finding *f = vp_doctor_add(d, VP_CAUSE_CAPACITY, surety, why_full(d, short_of));
    show_asked(d, f);
    show_card(d, f);
    if (d->message->kind == VP_LOG_SAYS_LLAMA_ALLOC && v->allocated)
        vp_doctor_line(d, f, "its buffers so far on %s: %s", place_of(d),
                       vp_doctor_bytes(d, v->allocated));
    if (short_of)
        vp_doctor_line(d, f, "short by %s", vp_doctor_bytes(d, v->asked - left));
    serving_steps(d, f);
    vp_doctor_step_fit(d, f, "", "what to change so that it fits, ranked");
    vp_doctor_step(d, f, vp_arena_printf(d->arena, "vramplan explain %s", d->in->subject),
                   "what takes the memory, row by row");
    return true;
}

/* Figures that no other rule explains: asked for without what was free. */
static void only_asked(struct vp_doctor *d) {
    const struct vp_doctor_view *v = &d->view;
    if (!v->asked || v->free_known)
        return;
    struct vp_finding *f =
        vp_doctor_add(d, VP_CAUSE_CAPACITY, VP_LIKELY,
                      "The message says what was asked for, not what was there; a full card is the "
                      "usual reason.");
    show_asked(d, f);
    vp_doctor_step_fit(d, f, "", "what to change so that it fits, ranked");
    vp_doctor_step_processes(d, f);
}

void vp_doctor_card(struct vp_doctor *d) {
    enum vp_log_message_kind kind = d->message->kind;
    if (kind == VP_LOG_SAYS_LLAMA_ALLOC)
        look_llama(d);
    else if (kind != VP_LOG_SAYS_TORCH_OOM && kind != VP_LOG_SAYS_RAW_OOM)
        return;
    uint32_t before = d->out->findings;
    bool limited = process_limit(d);
    bool large = too_large(d);
    bool part = d->view.card_known && partition(d, d->view.card);
    bool full = !limited && !large && !not_capacity(d);
    if (!part || !d->in->gpu->gtt_ppb)
        others(d);
    if (full) {
        fragmentation(d);
        graphs(d);
        capacity(d);
    }
    if (d->out->findings == before)
        only_asked(d);
}

/* ---- over all of them ---- */

void vp_doctor_growth(struct vp_doctor *d) {
    const struct vp_run_log *log = d->in->log;
    const struct vp_log_message *first = NULL, *last = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < log->messages; i++) {
        const struct vp_log_message *m = &log->message[i];
        if (m->kind != VP_LOG_SAYS_TORCH_OOM || !m->known[VP_LOG_TORCH_ALLOCATED])
            continue;
        if (last && m->value[VP_LOG_DEVICE_INDEX] != last->value[VP_LOG_DEVICE_INDEX])
            continue;
        if (last && m->value[VP_LOG_TORCH_ALLOCATED] < last->value[VP_LOG_TORCH_ALLOCATED])
            return;
        first = first ? first : m;
        last = m;
        count++;
    }
    if (count < 3 ||
        last->value[VP_LOG_TORCH_ALLOCATED] / 21 < first->value[VP_LOG_TORCH_ALLOCATED] / 20)
        return; /* less than 5 % more */
    d->message = last;
    struct vp_finding *f = vp_doctor_add(
        d, VP_CAUSE_GROWTH, count > 3 ? VP_LIKELY : VP_POSSIBLE,
        "Tensors pile up: losses or outputs kept with their graph, a cache that is never cleared, "
        "an exception that holds a frame, or ever longer inputs.");
    vp_doctor_line(
        d, f, "in tensors: %s at line %" PRIu64 ", %s at line %" PRIu64 " (%" PRIu32 " messages)",
        vp_doctor_bytes(d, (uint64_t)first->value[VP_LOG_TORCH_ALLOCATED]), first->line,
        vp_doctor_bytes(d, (uint64_t)last->value[VP_LOG_TORCH_ALLOCATED]), last->line, count);
    vp_doctor_step(d, f, "torch.cuda.memory._record_memory_history()",
                   "and _dump_snapshot(FILE) at two steps: what is there that was not");
    vp_doctor_step(d, f, NULL, "keep numbers, not tensors: loss.item(), output.detach().cpu()");
    vp_doctor_step(d, f, vp_arena_printf(d->arena, "vramplan timeline %s", d->in->subject),
                   "the peak of a step that does not grow");
}

void vp_doctor_tables(struct vp_doctor *d) {
    const struct vp_run_log *log = d->in->log;
    const struct vp_log_device *most = NULL;
    d->message = NULL;
    if (partition_in(d))
        add_partition(
            d, VP_LIKELY,
            vp_arena_printf(d->arena, "the table shows partition mode %s", partition_in(d)));
    for (uint32_t i = 0; i < log->devices; i++) {
        const struct vp_log_device *t = &log->device[i];
        if (t->used_known && t->total_known && (!most || t->used_bytes > most->used_bytes))
            most = t;
    }
    if (!most || log->messages > 0 || most->used_bytes < GIB)
        return;
    struct vp_finding *f = vp_doctor_add(d, VP_CAUSE_OTHERS, VP_POSSIBLE,
                                         "The table shows memory in use. Whose it is, it does not "
                                         "say; before a start none should be.");
    vp_doctor_line(d, f, "%s: %s in use of %s, %s free", most->place,
                   vp_doctor_bytes(d, most->used_bytes), vp_doctor_bytes(d, most->total_bytes),
                   vp_doctor_bytes(d, less(most->total_bytes, most->used_bytes)));
    vp_doctor_step_processes(d, f);
    vp_doctor_step(d, f,
                   vp_arena_printf(d->arena, "vramplan plan %s --set 'hardware.reserved=%s'",
                                   d->in->subject, vp_doctor_bytes(d, most->used_bytes)),
                   "plan beside it");
}
