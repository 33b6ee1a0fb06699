/* A validated scenario: the model, the hardware and what is to be done on it, as plain values, and
 * beside them a table that says where each value came from. Evaluation reads the values only. */
#ifndef VP_MODEL_SCENARIO_H
#define VP_MODEL_SCENARIO_H

#include "planner/model/budget.h"
#include "planner/model/calibration.h"
#include "planner/model/llama_settings.h"
#include "planner/model/model.h"
#include "planner/model/rules.h"
#include "planner/model/slo_limits.h"
#include "planner/model/traffic_settings.h"
#include "planner/model/train_settings.h"
#include "planner/model/version.h"

enum vp_field {
#define X(name, path, kind, member, modelled, meaning) VP_F_##name,
#include "planner/model/fields.def"
#undef X
    VP_FIELD_COUNT
};

enum vp_field_kind {
    VP_KIND_TEXT,
    VP_KIND_COUNT,
    VP_KIND_NUMBER,
    VP_KIND_TOKENS,
    VP_KIND_SIZE,
    VP_KIND_REAL,
    VP_KIND_SHARE,
    VP_KIND_RATIO,
    VP_KIND_BOOL,
    VP_KIND_DTYPE,
    VP_KIND_WEIGHTS
};

/* In the order of precedence among what was not written by the user, then what was. */
enum vp_origin {
    VP_ORIGIN_UNSET,
    VP_ORIGIN_DEFAULT, /* the engine's or our own default */
    VP_ORIGIN_DERIVED, /* computed from other values */
    VP_ORIGIN_PROFILE, /* a shipped or user profile */
    VP_ORIGIN_FILE,    /* neutral field of the scenario */
    VP_ORIGIN_ARGS,    /* engine.args of the scenario */
    VP_ORIGIN_FLAG,    /* command line */
    VP_ORIGIN_MEASURED
};

struct vp_source {
    enum vp_origin origin;
    struct vp_pos pos;
    const char *key; /* as the user wrote it: "tensor_parallel_size", "--tp", NULL */
    const char *why; /* for defaults and derived values */
};

struct vp_gpu {
    const char *id, *name, *vendor, *arch, *family;
    uint64_t driver_mib;
    uint64_t runtime_mib, runtime_mib_low, runtime_mib_high; /* 0: not known */
    double memory_gb, bandwidth_gbs;
    bool fp8;                /* has FP8 matrix units */
    const char *fp8_formats; /* "e4m3fnuz e5m2fnuz", "" */
    /* dense; 0: not known, or there are no such units */
    double tflops_bf16, tflops_fp16, tflops_fp32, tflops_fp8, tflops_int8, tflops_fp4;
    double cache_mib; /* last level; 0: not known */
    double link_gbs;  /* to the other cards of its node, all links, per direction; 0: not known */
    const char *runtime_device; /* id of what the runtime lists instead of this package; NULL */
    uint64_t compute_units;
    uint64_t gtt_ppb; /* an APU: share of the host's memory that its driver maps by default; 0: it
                         has memory of its own */
    uint64_t parts, whole_mib; /* one of so many partitions of a card of this total; 0: a card */
};

/* Like devices of a machine whose devices are not all alike, in the order of the runtime. */
struct vp_device_group {
    struct vp_gpu gpu;
    uint64_t count;
    uint64_t memory_bytes;   /* total of one device */
    struct vp_amount memory; /* the same as an interval */
    uint64_t reserved_bytes; /* taken by others on each */
    struct vp_pos pos;
};

enum { VP_MAX_DEVICE_GROUPS = 16 };

struct vp_hardware {
    const char *gpu_name; /* as the user wrote it */
    const char *package;  /* id of the package that this names, of which gpu is one device; NULL */
    struct vp_gpu gpu;
    uint64_t count, nodes;
    uint64_t memory_bytes;   /* total of one device */
    struct vp_amount memory; /* the same as an interval; equal numbers when given or known */
    uint64_t reserved_bytes;
    uint64_t host_memory_bytes;
    double host_link_gbs, intranode_gbs, internode_gbs, price_per_hour;
    const char *partition, *memory_partition, *rocm, *driver;
    /* hardware.devices; group_count 0: all alike, as above. gpu, memory and reserved above are
     * then those of the first group, count is the sum. */
    struct vp_device_group *groups;
    uint32_t group_count;
    /* APUs: memory set aside by the firmware, and what the driver may map beyond it */
    uint64_t carve_out_bytes, gtt_bytes;
};

struct vp_parallel {
    uint64_t tensor, pipeline, data, expert, context, attention_data;
    bool sequence;             /* training: norms and dropout between divided halves, too */
    uint64_t zero;             /* ZeRO stage, 0..3; Megatron: 1 is the distributed optimizer */
    bool fsdp;                 /* fully sharded data parallelism */
    uint64_t virtual_pipeline; /* chunks of layers per stage of an interleaved schedule; 1: none */
    uint64_t microbatches;     /* per optimizer step and data-parallel rank; 0: not said */
};

enum { VP_KEEP_COUNT = VP_CLASS_COUNT };

struct vp_precision {
    const char *weights; /* "checkpoint" or the name of a format */
    uint64_t group_size; /* 0: the format's default */
    bool double_quant;
    enum vp_dtype kv_cache; /* resolved: never UNSET in a finished scenario */
    enum vp_dtype compute;
    bool keep[VP_KEEP_COUNT]; /* classes left in 16 bit when weights are re-quantised */
};

struct vp_engine_arg {
    const char *key, *value; /* value as text; lists and maps as JSON */
    struct vp_pos pos;
    bool used;
};

enum vp_engine_kind {
    VP_ENGINE_VLLM,
    VP_ENGINE_SGLANG,
    VP_ENGINE_TRANSFORMERS, /* generate; Trainer when there is something to train */
    VP_ENGINE_LLAMA_CPP,
    VP_ENGINE_OLLAMA,
    VP_ENGINE_PYTORCH, /* an own loop, FSDP, torchtune, torchtitan */
    VP_ENGINE_MEGATRON,
    VP_ENGINE_DEEPSPEED
};
enum { VP_ENGINE_KINDS = 8 };

/* How the memory of a scenario is accounted for. */
enum vp_accounting {
    VP_ACCOUNT_POOL,  /* a server or a process with a cache pool */
    VP_ACCOUNT_LLAMA, /* buffers per device, as llama.cpp allocates them */
    VP_ACCOUNT_TRAIN  /* a training step */
};

struct vp_engine {
    const char *name; /* "vllm" */
    enum vp_engine_kind kind;
    const char *version_text;
    struct vp_version version;
    /* libraries beside the engine that matter for training; NULL: not said */
    const char *torch_text, *transformers_text, *peft_text, *trl_text;
    struct vp_version torch;
    struct vp_rules rules;
    uint64_t max_model_len, max_num_seqs, max_batched_tokens, utilization_ppb, block_size;
    uint64_t kv_cache_bytes, blocks_override;   /* 0: not given */
    uint64_t max_running;                       /* SGLang: max_running_requests; 0: not given */
    uint64_t window_share_ppb, state_share_ppb; /* SGLang's pools; the rules' when not given */
    bool enforce_eager, prefix_caching, chunked_prefill, hybrid_off, expert_parallel;
    bool sleep_mode;
    struct vp_engine_arg *args; /* all of engine.args, modelled or not */
    uint32_t arg_count;
    struct vp_engine_arg *env;
    uint32_t env_count;
};

struct vp_serve {
    uint64_t context, concurrency, prompt_tokens, output_tokens, replicas;
    const char *arrival; /* as the user wrote it; what it means: traffic.arrival */
    const char *routing; /* round_robin, least_requests, least_tokens, prefix_affinity; NULL */
    /* maps, as text: what they mean stands in traffic and slo */
    const char *slo_text, *prefix_text, *classes_text, *disaggregated_text;
    double expert_imbalance; /* tokens of the busiest expert rank over the mean; 0: not said */
};

/* Adapters that an engine keeps room for beside its weights. */
struct vp_lora {
    bool enabled;
    uint64_t slots, rank; /* adapters usable at once, the largest rank */
    enum vp_dtype dtype;  /* resolved: never UNSET in a finished scenario with slots */
    bool sharded;         /* both halves of a pair are divided, not one */
};

enum vp_draft_method {
    VP_DRAFT_NONE,
    VP_DRAFT_NGRAM,  /* looked up in the text: no model */
    VP_DRAFT_MODEL,  /* a model of its own */
    VP_DRAFT_EAGLE,  /* a head over the target's last hidden state and embedding */
    VP_DRAFT_EAGLE3, /* over three of its hidden states, with a vocabulary of its own */
    VP_DRAFT_MTP     /* the model's own layers for the tokens after next */
};

/* Speculative decoding. */
struct vp_draft {
    const char *name;        /* as the user wrote it: a model, NULL */
    const char *method_name; /* as the user wrote it, NULL */
    enum vp_draft_method method;
    struct vp_model *model;  /* MODEL, EAGLE, EAGLE3: the draft's; NULL otherwise */
    uint64_t tokens;         /* proposed per step */
    uint64_t acceptance_ppb; /* share of proposed tokens that are right where those before them
                                are; 0: not said */
    uint64_t tensor;         /* ranks that divide the draft */
    uint64_t fused_inputs;   /* width of the vectors that a head joins; 0: it joins none */
    uint64_t head_vocab;     /* rows of the head's own output matrix; 0: the target's is used */
    bool wide_first;         /* its first layer reads embedding and hidden state side by side */
};

/* What requests bring beside text. */
struct vp_images {
    uint64_t per_request;
    uint64_t tokens; /* of one of them; 0: not known */
    uint64_t limit;  /* most images of one prompt; 0: no limit */
    bool off; /* the engine was told to take none: its encoder is neither profiled nor used */
    bool unprofiled; /* its profile run leaves the encoder out (skip_mm_profiling) */
};

/* Kept in host memory instead of the device's. */
struct vp_offload {
    uint64_t weights_bytes; /* of one device's layers; or */
    uint64_t weights_ppb;   /* a share of them */
    uint64_t kv_bytes;      /* a second cache in host memory, over all ranks of a replica */
};

/* One buffer of llama.cpp's log that was measured: "model_mib: {GPU0: 4096}". */
struct vp_measured_buffer {
    enum vp_llama_buffer buffer;
    const char *place; /* "GPU0", "CPU", "GPU_Host" */
    uint64_t bytes;
};

/* Figures of a real run that replace estimates. 0 with known[] false: not measured. */
enum vp_measure {
    VP_M_WEIGHTS,
    VP_M_ACTIVATION,
    VP_M_NON_TORCH,
    VP_M_GRAPHS,
    VP_M_AVAILABLE_KV,
    VP_M_BLOCKS,
    VP_M_BLOCK_SIZE,
    VP_MEASURE_COUNT
};

/* The same of a training run. */
enum vp_train_measure {
#define X(name, key) VP_TM_##name,
#include "planner/model/train_measures.def"
#undef X
    VP_TRAIN_MEASURES
};

struct vp_measured {
    bool known[VP_MEASURE_COUNT];
    uint64_t value[VP_MEASURE_COUNT]; /* bytes, blocks or tokens */
    struct vp_pos pos[VP_MEASURE_COUNT];
    struct vp_measured_buffer *buffers; /* llama.cpp */
    uint32_t buffer_count;
    bool train_known[VP_TRAIN_MEASURES]; /* training */
    uint64_t train_bytes[VP_TRAIN_MEASURES];
    struct vp_pos train_pos[VP_TRAIN_MEASURES];
};

struct vp_scenario {
    const char *name;
    const char *calibration;      /* path, as given */
    const char *calibration_path; /* the same, from the current directory; NULL: not given */
    const struct vp_calibration
        *measured_gpu; /* what it says, or the shipped one of this GPU; NULL */
    struct vp_model *model;
    struct vp_hardware hardware;
    struct vp_engine engine;
    struct vp_parallel parallel;
    struct vp_precision precision;
    struct vp_serve serve;
    const char *trace; /* file of requests, as the user wrote it; NULL: none */
    struct vp_traffic traffic;
    struct vp_slo slo;
    struct vp_lora lora;
    struct vp_draft draft;
    struct vp_images images;
    struct vp_offload offload;
    struct vp_llama llama; /* llama.cpp and ollama */
    bool training;         /* there is a `train:` block */
    struct vp_train train;
    struct vp_measured measured;
    struct vp_budget budget;
    struct vp_source source[VP_FIELD_COUNT];
};

struct vp_field_info {
    const char *path;
    enum vp_field_kind kind;
    uint32_t offset; /* of the member in struct vp_scenario */
    bool modelled;
    const char *meaning;
};

const struct vp_field_info *vp_field_info(enum vp_field field);
/* VP_FIELD_COUNT when there is none. */
enum vp_field vp_field_find(const char *path);
/* The path of a field in a scenario of this engine: a setting of the engine has the engine's own
 * name ("engine.args.context_length"). NULL: the engine has no such setting. */
const char *vp_field_path_for(enum vp_engine_kind engine, enum vp_field field);
/* The field that has this path there; VP_FIELD_COUNT when there is none. */
enum vp_field vp_field_find_for(enum vp_engine_kind engine, const char *path);
/* The engine's argument says the opposite of the field (disable_radix_cache). */
bool vp_field_is_negated(enum vp_engine_kind engine, enum vp_field field);
/* What reports call a field: its path, or in words what has no setting in the engine. */
const char *vp_field_label(enum vp_engine_kind engine, enum vp_field field);
const char *vp_engine_name(enum vp_engine_kind engine); /* "vllm", as a scenario says it */
/* llama.cpp or ollama */
bool vp_engine_is_llama(enum vp_engine_kind engine);
enum vp_accounting vp_scenario_accounting(const struct vp_scenario *scenario);
const char *vp_origin_name(enum vp_origin origin); /* as in the result: "default", "profile", ... */
/* Key in `measured` and the engine report; NULL: not a quantity of this engine. */
const char *vp_measure_name(enum vp_engine_kind engine, enum vp_measure measure);
const char *vp_train_measure_name(enum vp_train_measure measure);
/* Ranks that an expert is divided over, whole or by its width: vLLM's data-parallel ranks take
 * part, those of the others are copies. UINT64_MAX at overflow. */
uint64_t vp_expert_ranks(const struct vp_scenario *scenario);
/* Ranks whose caches hold different sequences: data-parallel ones, in SGLang those of the attention
 * too. At least 1. */
uint64_t vp_sequence_ranks(const struct vp_scenario *scenario);
/* serve.concurrency on the rank that has most of them. */
uint64_t vp_rank_sequences(const struct vp_scenario *scenario);
/* Tokens that transformers `generate` takes at once: the prompts of all sequences are one batch. */
uint64_t vp_generate_tokens(const struct vp_scenario *scenario);
/* The field's present value as a user would write it ("16 GiB", "fp8", "32768"), in the sense of
 * the engine's argument: "true" for disable_radix_cache when prefixes are not cached. */
const char *vp_field_value(struct vp_arena *arena, const struct vp_scenario *scenario,
                           enum vp_field field);

/* Written by the user, in the file or on the command line. */
static inline bool vp_scenario_is_given(const struct vp_scenario *scenario, enum vp_field field) {
    return scenario->source[field].origin >= VP_ORIGIN_FILE;
}

#endif
