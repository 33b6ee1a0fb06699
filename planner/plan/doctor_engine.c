#include <inttypes.h>

#include "planner/base/units.h"
#include "planner/plan/doctor_parts.h"

#define GIB (UINT64_C(1) << 30)

static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

static bool value(uint64_t *out, const struct vp_doctor *d, enum vp_log_quantity what) {
    bool known = d->message->known[what] && d->message->value[what] >= 0;
    *out = known ? (uint64_t)d->message->value[what] : 0;
    return known;
}

/* A share of the card that holds `bytes`, in hundredths, rounded up; 0: more than all of it. */
static uint64_t share_of(uint64_t bytes, uint64_t card) {
    uint64_t share = card ? (bytes * 100 + card - 1) / card : 0;
    return share < 100 ? share : 0;
}

static const char *flag(struct vp_doctor *d, const char *name, uint64_t hundredths) {
    return hundredths ? vp_arena_printf(d->arena, "%s 0.%02" PRIu64, name, hundredths) : name;
}

/* ---- vLLM ---- */

/* What the start-up took before its cache: weights, activations, outside torch, graphs. */
static uint64_t taken(struct vp_doctor *d, struct vp_finding *f) {
    uint64_t consumed, weights, peak, torch, non_torch, graphs;
    bool joint = vp_doctor_fact(&consumed, d, VP_LOG_CONSUMED, NULL);
    bool weighed = vp_doctor_fact(&weights, d, VP_LOG_WEIGHTS, NULL);
    bool all = vp_doctor_fact(&torch, d, VP_LOG_TORCH_PEAK, NULL);
    vp_doctor_fact(&peak, d, VP_LOG_ACTIVATION, NULL);
    vp_doctor_fact(&non_torch, d, VP_LOG_NON_TORCH, NULL);
    vp_doctor_fact(&graphs, d, VP_LOG_GRAPHS_ESTIMATED, NULL);
    if (!joint && !weighed)
        return 0;
    if (all && torch >= weights)
        peak = torch - weights;
    if (joint)
        vp_doctor_line(d, f, "weights and outside torch %s, activations %s",
                       vp_doctor_bytes(d, consumed), vp_doctor_bytes(d, peak));
    else
        vp_doctor_line(d, f, "weights %s, activations %s, outside torch %s",
                       vp_doctor_bytes(d, weights), vp_doctor_bytes(d, peak),
                       vp_doctor_bytes(d, non_torch));
    return (joint ? consumed : weights + non_torch) + peak + graphs;
}

static void vllm_no_blocks(struct vp_doctor *d) {
    uint64_t total, share, requested;
    struct vp_finding *f =
        vp_doctor_add(d, VP_CAUSE_SHARE, VP_CERTAIN,
                      "Weights, the peak of the profile run and what is outside torch take all of "
                      "the engine's share; no cache is left.");
    bool known = vp_doctor_fact(&total, d, VP_LOG_TOTAL, NULL);
    bool shared = vp_doctor_fact(&share, d, VP_LOG_UTILIZATION, NULL);
    uint64_t bytes = taken(d, f);
    if (!vp_doctor_fact(&requested, d, VP_LOG_REQUESTED, NULL) && known && shared)
        requested = (uint64_t)((double)total * (double)share / 1e9);
    if (requested)
        vp_doctor_line(d, f, "the engine's share: %s of %s", vp_doctor_bytes(d, requested),
                       vp_doctor_bytes(d, total));
    if (bytes > requested && requested)
        vp_doctor_line(d, f, "short by %s before any cache", vp_doctor_bytes(d, bytes - requested));
    if (bytes && known && bytes + GIB < total)
        vp_doctor_step(d, f, flag(d, "--gpu-memory-utilization", share_of(bytes + GIB, total)),
                       "that and 1 GiB of cache");
    else
        vp_doctor_step(d, f, "--gpu-memory-utilization", "more of the card, if more is free");
    vp_doctor_step(d, f, NULL,
                   "a smaller --max-num-seqs or --max-num-batched-tokens makes the profile run's "
                   "peak smaller");
    vp_doctor_step_fit(d, f, "", "what else would fit: formats, more cards");
}

static void vllm_length(struct vp_doctor *d) {
    uint64_t length, tokens, needed, available, estimated;
    struct vp_finding *f = vp_doctor_add(
        d, VP_CAUSE_LENGTH, VP_CERTAIN,
        "The engine starts only when one request of max_model_len fits. The model's own length is "
        "taken where none is given.");
    value(&length, d, VP_LOG_LENGTH);
    if (value(&needed, d, VP_LOG_NEEDED) && value(&available, d, VP_LOG_AVAILABLE)) {
        vp_doctor_line(d, f, "a request of %s tokens needs %s, there is %s",
                       vp_format_count(d->arena, length), vp_doctor_bytes(d, needed),
                       vp_doctor_bytes(d, available));
        vp_doctor_line(d, f, "short by %s", vp_doctor_bytes(d, less(needed, available)));
    }
    if (value(&tokens, d, VP_LOG_KV_TOKENS))
        vp_doctor_line(d, f, "a request of %s tokens, a cache of %s",
                       vp_format_count(d->arena, length), vp_format_count(d->arena, tokens));
    if (value(&estimated, d, VP_LOG_ESTIMATED_LENGTH))
        tokens = estimated;
    if (tokens)
        vp_doctor_step(d, f, vp_arena_printf(d->arena, "--max-model-len %" PRIu64, tokens),
                       "the longest that fits now");
    vp_doctor_step(d, f, "--kv-cache-dtype fp8", "half the bytes of a token, where the card can");
    vp_doctor_step_fit(d, f, " --maximize context", "how far it goes, with which settings");
}

static void vllm_free(struct vp_doctor *d) {
    uint64_t free, card, wanted;
    value(&free, d, VP_LOG_FREE);
    value(&card, d, VP_LOG_CARD);
    value(&wanted, d, VP_LOG_NEEDED);
    uint64_t held = less(card, free);
    struct vp_finding *f = vp_doctor_add(
        d, VP_CAUSE_OTHERS, held >= GIB ? VP_CERTAIN : VP_LIKELY,
        "vLLM takes its share of the whole card, not of what is free, and refuses to "
        "start when less is free. Something holds memory already: another process, or "
        "one that has not ended yet.");
    vp_doctor_line(d, f, "%s - %s free = %s held by others", vp_doctor_bytes(d, card),
                   vp_doctor_bytes(d, free), vp_doctor_bytes(d, held));
    vp_doctor_line(d, f, "wanted %s, short by %s", vp_doctor_bytes(d, wanted),
                   vp_doctor_bytes(d, less(wanted, free)));
    vp_doctor_step_processes(d, f);
    if (card && free * 100 / card > 1)
        vp_doctor_step(d, f,
                       vp_arena_printf(d->arena, "--gpu-memory-utilization 0.%02" PRIu64,
                                       free * 100 / card < 99 ? free * 100 / card : 99),
                       "a share that is free");
    vp_doctor_step(d, f,
                   vp_arena_printf(d->arena, "vramplan plan %s --set 'hardware.reserved=%s'",
                                   d->in->subject, vp_doctor_bytes(d, held)),
                   "plan beside it");
}

static void vllm_profile(struct vp_doctor *d) {
    struct vp_finding *f =
        vp_doctor_add(d, VP_CAUSE_OTHERS, VP_CERTAIN,
                      "More was free after the profile run than before it: another process gave "
                      "memory back meanwhile, so the measurement means nothing.");
    vp_doctor_step_processes(d, f);
    vp_doctor_step(d, f, NULL, "start engines of one card one after the other");
}

static void vllm_warm_up(struct vp_doctor *d) {
    uint64_t sequences;
    struct vp_finding *f = vp_doctor_add(
        d, VP_CAUSE_WARM_UP, VP_CERTAIN,
        "The sampler's first run makes logits of max_num_seqs sequences and their sorted copies, "
        "beside the cache that is already taken.");
    if (value(&sequences, d, VP_LOG_SEQUENCES))
        vp_doctor_line(d, f, "sequences: %s", vp_format_count(d->arena, sequences));
    if (sequences > 1)
        vp_doctor_step(d, f, vp_arena_printf(d->arena, "--max-num-seqs %" PRIu64, sequences / 2),
                       "half of the logits");
    vp_doctor_step(d, f, "--gpu-memory-utilization", "a smaller one leaves more beside the cache");
    vp_doctor_step_fit(d, f, "", "what to change so that it fits, ranked");
}

/* ---- SGLang ---- */

static void sglang_static(struct vp_doctor *d) {
    uint64_t before, after, share;
    struct vp_finding *f = vp_doctor_add(
        d, VP_CAUSE_SHARE, VP_CERTAIN,
        "SGLang's cache gets what is free after loading, less the part of the card that is not "
        "static. Nothing is left.");
    bool known = vp_doctor_fact(&before, d, VP_LOG_FREE_BEFORE_LOAD, NULL) &&
                 vp_doctor_fact(&after, d, VP_LOG_FREE_AFTER_LOAD, NULL);
    vp_doctor_fact(&share, d, VP_LOG_STATIC_SHARE, NULL);
    uint64_t kept = known ? (uint64_t)((double)before * (1 - (double)share / 1e9)) : 0;
    if (known && share > 0)
        vp_doctor_line(d, f, "free after loading %s, to be kept free %s x (1 - %.3f) = %s",
                       vp_doctor_bytes(d, after), vp_doctor_bytes(d, before), (double)share / 1e9,
                       vp_doctor_bytes(d, kept));
    if (known && after < kept + GIB)
        vp_doctor_step(
            d, f, flag(d, "--mem-fraction-static", share_of(less(before, after) + GIB, before)),
            "the weights and 1 GiB of cache");
    else
        vp_doctor_step(d, f, "--mem-fraction-static", "a larger one");
    vp_doctor_step_fit(d, f, "", "what else would fit: formats, more cards");
}

static void sglang_capture(struct vp_doctor *d) {
    uint64_t left;
    struct vp_finding *f =
        vp_doctor_add(d, VP_CAUSE_GRAPHS, VP_LIKELY,
                      "Graphs are captured after the cache was taken, in what is left beside it.");
    if (vp_doctor_fact(&left, d, VP_LOG_FREE_AFTER_POOL, NULL))
        vp_doctor_line(d, f, "left beside weights and cache: %s", vp_doctor_bytes(d, left));
    vp_doctor_step(d, f, "--mem-fraction-static", "a smaller one leaves more");
    vp_doctor_step(d, f, "--cuda-graph-max-bs 8",
                   "few captured batches; --disable-cuda-graph: none");
    vp_doctor_step_fit(d, f, "", "what to change so that it fits, ranked");
}

/* ---- others ---- */

static void llama_retry(struct vp_doctor *d) {
    struct vp_finding *f =
        vp_doctor_add(d, VP_CAUSE_RETRIED, VP_CERTAIN,
                      "With several GPUs llama.cpp first asks for copies of its inputs, to overlap "
                      "them; without them it went on.");
    vp_doctor_step_fit(d, f, "", "settings that leave room for them");
}

static void nccl(struct vp_doctor *d) {
    struct vp_finding *f = vp_doctor_add(
        d, VP_CAUSE_COMMUNICATION, VP_LIKELY,
        "Communicators take their buffers from the driver, outside PyTorch, often after an engine "
        "has taken its share.");
    vp_doctor_step(d, f, NULL,
                   "a smaller --gpu-memory-utilization (vLLM) or --mem-fraction-static (SGLang) "
                   "leaves memory for them");
    vp_doctor_step(d, f, "NCCL_BUFFSIZE=1048576 NCCL_MAX_NCHANNELS=8",
                   "smaller and fewer buffers (RCCL reads the same names)");
    vp_doctor_step(d, f, "NCCL_DEBUG=INFO ...", "which call fails, and on which rank");
    vp_doctor_step_processes(d, f);
}

static void host_memory(struct vp_doctor *d) {
    uint64_t asked, needed, available;
    struct vp_finding *f = vp_doctor_add(
        d, VP_CAUSE_HOST_MEMORY, VP_CERTAIN,
        d->message->kind == VP_LOG_SAYS_HOST_KILLED
            ? "The system or the container ended the process, because host memory (or the "
              "container's limit of it) ran out; the card has nothing to do with it."
            : "The request was for memory of the host: weights while they are loaded, offloaded "
              "layers or states, pinned copies.");
    if (value(&asked, d, VP_LOG_ASKED))
        vp_doctor_line(d, f, "asked for %s of host memory", vp_doctor_bytes(d, asked));
    if (value(&needed, d, VP_LOG_NEEDED) && value(&available, d, VP_LOG_AVAILABLE))
        vp_doctor_line(d, f, "needs %s, there is %s: short by %s", vp_doctor_bytes(d, needed),
                       vp_doctor_bytes(d, available), vp_doctor_bytes(d, less(needed, available)));
    vp_doctor_step(d, f, "free -h; dmesg | grep -i oom", "what the host had, and who was ended");
    vp_doctor_step(d, f, "cat /sys/fs/cgroup/memory.max", "the container's limit");
    vp_doctor_step(d, f, NULL,
                   "load fewer files at once, less offload, mmap left on (llama.cpp), safetensors "
                   "instead of pickled files, fewer data-loader workers");
    vp_doctor_step(d, f,
                   vp_arena_printf(d->arena, "vramplan plan %s --set hardware.host_memory=SIZE",
                                   d->in->subject),
                   "what the host needs");
}

static void host_lock(struct vp_doctor *d) {
    uint64_t asked;
    struct vp_finding *f = vp_doctor_add(d, VP_CAUSE_HOST_LIMIT, VP_CERTAIN,
                                         "Locking memory is limited by the shell, not by what is "
                                         "there. The engine goes on without.");
    if (value(&asked, d, VP_LOG_ASKED))
        vp_doctor_line(d, f, "to lock: %s", vp_doctor_bytes(d, asked));
    vp_doctor_step(d, f, "ulimit -l unlimited", "or leave --mlock out");
}

static void host_shm(struct vp_doctor *d) {
    struct vp_finding *f =
        vp_doctor_add(d, VP_CAUSE_HOST_LIMIT, VP_CERTAIN,
                      "Shared memory (/dev/shm) of a container is 64 MiB unless it is given more; "
                      "workers and collectives exchange data there.");
    vp_doctor_step(d, f, "docker run --ipc=host ...", "or --shm-size=16g");
    vp_doctor_step(d, f, "df -h /dev/shm", "what there is");
}

void vp_doctor_engine(struct vp_doctor *d) {
    static void (*const RULES[VP_LOG_MESSAGE_KINDS])(struct vp_doctor *) = {
        [VP_LOG_SAYS_VLLM_NO_BLOCKS] = vllm_no_blocks,
        [VP_LOG_SAYS_VLLM_LENGTH] = vllm_length,
        [VP_LOG_SAYS_VLLM_FREE] = vllm_free,
        [VP_LOG_SAYS_VLLM_PROFILE] = vllm_profile,
        [VP_LOG_SAYS_VLLM_WARM_UP] = vllm_warm_up,
        [VP_LOG_SAYS_SGLANG_STATIC] = sglang_static,
        [VP_LOG_SAYS_SGLANG_CAPTURE] = sglang_capture,
        [VP_LOG_SAYS_LLAMA_RETRY] = llama_retry,
        [VP_LOG_SAYS_NCCL_OOM] = nccl,
        [VP_LOG_SAYS_HOST_ALLOC] = host_memory,
        [VP_LOG_SAYS_HOST_KILLED] = host_memory,
        [VP_LOG_SAYS_OLLAMA_HOST] = host_memory,
        [VP_LOG_SAYS_HOST_LOCK] = host_lock,
        [VP_LOG_SAYS_HOST_SHM] = host_shm,
    };
    if (RULES[d->message->kind])
        RULES[d->message->kind](d);
}
