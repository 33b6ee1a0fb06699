#include "reports/recompute_emit.h"

#include <inttypes.h>

#include "planner/base/sum.h"
#include "planner/base/units.h"

/* ---- words ---- */

const char *vp_recompute_percent(struct vp_arena *arena, uint64_t part, uint64_t whole) {
    uint64_t hundredths = whole ? vp_mul_div(part, 20000, whole) : 0;
    hundredths = (hundredths + 1) / 2;
    return vp_arena_printf(arena, "%" PRIu64 ".%02" PRIu64 " %%", hundredths / 100,
                           hundredths % 100);
}

/* Names of a set of regions, with something between. */
static void add_modules(struct vp_buf *out, uint32_t select, const char *quote,
                        const char *between) {
    static const struct {
        uint32_t region;
        const char *name;
    } MODULES[] = {
#define X(region, name, meaning) {VP_SELECT_##region, name},
#include "planner/model/recompute_modules.def"
#undef X
    };
    const char *separator = "";
    for (size_t i = 0; i < sizeof MODULES / sizeof *MODULES; i++) {
        if (!(select & MODULES[i].region))
            continue;
        vp_buf_printf(out, "%s%s%s%s", separator, quote, MODULES[i].name, quote);
        separator = between;
    }
}

const char *vp_recompute_parts(struct vp_arena *arena, uint32_t select) {
    struct vp_buf out = {.arena = arena};
    add_modules(&out, select, "", ", ");
    return vp_buf_text(&out);
}

static bool starts_piece(const struct vp_framework_plan *p, uint32_t i) {
    return p->layer[i].recomputed && p->layer[i].segment == i;
}

/* Behind the last layer of the piece that starts at i. */
static uint32_t piece_end(const struct vp_framework_plan *p, uint32_t i) {
    uint32_t end = i + 1;
    while (end < p->layers && p->layer[end].recomputed && p->layer[end].segment == i)
        end++;
    return end;
}

static uint32_t recomputed(const struct vp_framework_plan *p) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->layers; i++)
        count += p->layer[i].recomputed;
    return count;
}

static uint32_t pieces(const struct vp_framework_plan *p) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->layers; i++)
        count += starts_piece(p, i);
    return count;
}

/* "0-3, 7": the layers that run again */
static void add_layers(struct vp_buf *out, const struct vp_framework_plan *p) {
    const char *separator = "";
    for (uint32_t i = 0, end; i < p->layers; i = end) {
        for (end = i + 1; end < p->layers && p->layer[end].recomputed == p->layer[i].recomputed;)
            end++;
        if (!p->layer[i].recomputed)
            continue;
        vp_buf_printf(out, "%s%" PRIu32, separator, i);
        if (end > i + 1)
            vp_buf_printf(out, "-%" PRIu32, end - 1);
        separator = ", ";
    }
}

static uint32_t partly(const struct vp_framework_plan *p) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->layers; i++)
        count += !p->layer[i].recomputed && p->layer[i].selective != 0;
    return count;
}

static void add_free_words(struct vp_buf *out, const struct vp_framework_plan *p) {
    uint32_t whole = recomputed(p), count = pieces(p), parts = partly(p);
    if (whole == 0 && parts == 0) {
        vp_buf_add(out, "nothing");
        return;
    }
    if (whole > 0) {
        vp_buf_add(out, whole > 1 ? "layers " : "layer ");
        add_layers(out, p);
        if (count < whole)
            vp_buf_printf(out, " in %" PRIu32 " piece%s", count, count > 1 ? "s" : "");
    }
    if (parts > 0)
        vp_buf_printf(out, "%sparts of %" PRIu32 " layer%s", whole > 0 ? ", " : "", parts,
                      parts > 1 ? "s" : "");
}

const char *vp_recompute_setting_words(struct vp_arena *arena, const struct vp_framework_plan *p) {
    struct vp_buf out = {.arena = arena};
    uint32_t n = p->setting.number;
    switch (p->setting.shape) {
    case VP_SHAPE_NONE:
        return "nothing";
    case VP_SHAPE_ALL:
        return "every layer by itself";
    case VP_SHAPE_KTH:
        return n == 1 ? "every layer by itself"
                      : vp_arena_printf(arena, "one of %" PRIu32 " layers", n);
    case VP_SHAPE_UNIFORM:
    case VP_SHAPE_INTERVAL:
        return n == 1 ? "every layer by itself"
                      : vp_arena_printf(arena, "segments of %" PRIu32 " layers", n);
    case VP_SHAPE_BLOCK:
        vp_buf_printf(&out, "the first %" PRIu32 " layers%s", n,
                      p->stages > 1 ? " of each stage" : "");
        break;
    case VP_SHAPE_SELECTIVE:
        vp_buf_add(&out, "of every layer ");
        add_modules(&out, p->setting.select, "", ", ");
        break;
    default:
        add_free_words(&out, p);
        break;
    }
    return vp_buf_text(&out);
}

const char *vp_recompute_setting_brief(struct vp_arena *arena, const struct vp_framework_plan *p) {
    uint32_t whole = recomputed(p), count = pieces(p), parts = partly(p);
    struct vp_buf out = {.arena = arena};
    if (vp_shape_is_enumerated(p->setting.shape) || (whole == 0 && parts == 0))
        return vp_recompute_setting_words(arena, p);
    if (whole > 0)
        vp_buf_printf(&out, "%" PRIu32 " layer%s", whole, whole > 1 ? "s" : "");
    if (count < whole)
        vp_buf_printf(&out, ", %" PRIu32 " piece%s", count, count > 1 ? "s" : "");
    if (parts > 0)
        vp_buf_printf(&out, "%s%" PRIu32 " in part", whole > 0 ? "; " : "", parts);
    return vp_buf_text(&out);
}

/* ---- the comments in front ---- */

static void add_cost(struct vp_buf *out, const struct vp_recompute_problem *problem,
                     const struct vp_framework_plan *p, const struct vp_framework_plan *best) {
    struct vp_arena *arena = out->arena;
    uint64_t base = problem->base_ns;
    vp_buf_printf(out, "# %s more time than without recomputation",
                  vp_recompute_percent(arena, vp_above(p->slowest_ns, base), base));
    if (p->slowest_ns > best->slowest_ns)
        vp_buf_printf(
            out, ", %s more than the best plan",
            vp_recompute_percent(arena, p->slowest_ns - best->slowest_ns, best->slowest_ns));
    else
        vp_buf_add(out, ", as fast as the best plan");
    vp_buf_printf(out, "\n# (times are %s, of forward and backward%s)\n",
                  problem->basis == VP_BASIS_NONE
                      ? "alike for all layers: the card's rates are not known"
                  : problem->basis == VP_BASIS_CALIBRATED ? "by kernels measured on this card"
                                                          : "by what cards of this class reach",
                  problem->stages > 1 ? " of the slowest stage" : "");
    if (p->slowest_ns > best->slowest_ns)
        vp_buf_printf(out, "# the best plan, which this cannot be told: %s\n",
                      vp_recompute_setting_words(arena, best));
}

static void add_head(struct vp_buf *out, const struct vp_recompute_problem *problem,
                     const struct vp_framework_plan *p, const struct vp_framework_plan *best) {
    static const char *const VERDICT[] = {
        [VP_FITS] = "fits", [VP_AT_RISK] = "may not fit", [VP_DOES_NOT_FIT] = "does not fit"};
    struct vp_arena *arena = out->arena;
    const struct vp_stage_chain *tight = &problem->stage[p->tightest];
    vp_buf_printf(out, "# recompute for %s: %s\n", vp_framework_info(p->framework)->title,
                  vp_recompute_setting_words(arena, p));
    vp_buf_printf(out, "# %s: needs %s (%s to %s) of %s per device", VERDICT[p->verdict],
                  vp_format_bytes(arena, p->need.likely), vp_format_bytes(arena, p->need.low),
                  vp_format_bytes(arena, p->need.high),
                  vp_format_bytes(arena, problem->budget_bytes));
    if (problem->stages > 1)
        vp_buf_printf(out,
                      ",\n# tightest on pipeline stage %" PRIu32 " (%" PRIu32
                      " layers from %" PRIu32 " on, %" PRIu64 " micro batches in flight)",
                      p->tightest, tight->chain.layers,
                      tight->chain.layers ? tight->chain.layer[0] : 0, tight->chain.in_flight);
    vp_buf_add(out, "\n");
    add_cost(out, problem, p, best);
}

/* ---- Python ---- */

static void add_segments(struct vp_buf *out, const struct vp_framework_plan *p) {
    const char *separator = "";
    vp_buf_add(out, "# first and last layer, counted from 0, of what runs again as one piece\n"
                    "SEGMENTS = [");
    for (uint32_t i = 0; i < p->layers; i++) {
        if (!starts_piece(p, i))
            continue;
        vp_buf_printf(out, "%s(%" PRIu32 ", %" PRIu32 ")", separator, i, piece_end(p, i) - 1);
        separator = ", ";
    }
    vp_buf_add(out, "]\n");
}

static void add_parts(struct vp_buf *out, const struct vp_framework_plan *p) {
    vp_buf_add(out,
               "# first and last layer: parts of each of them that run again, the rest is kept\n"
               "PARTS = {\n");
    for (uint32_t i = 0, end; i < p->layers; i = end) {
        uint32_t set = p->layer[i].recomputed ? 0 : p->layer[i].selective;
        for (end = i + 1;
             end < p->layers && set && !p->layer[end].recomputed && p->layer[end].selective == set;)
            end++;
        if (!set)
            continue;
        vp_buf_printf(out, "    (%" PRIu32 ", %" PRIu32 "): [", i, end - 1);
        add_modules(out, set, "\"", ", ");
        vp_buf_add(out, "],\n");
    }
    vp_buf_add(out, "}\n");
}

static const char RUN_LAYERS[] = "\n\ndef run_layers(layers, x, *args, first=0, **kwargs):\n"
                                 "    \"\"\"Instead of `for layer in layers: x = layer(x, *args, "
                                 "**kwargs)`; first: index in the\n"
                                 "    model of layers[0].\"\"\"\n"
                                 "    def run(x, begin, end):\n"
                                 "        for layer in layers[begin:end]:\n"
                                 "            x = layer(x, *args, **kwargs)\n"
                                 "            x = x[0] if isinstance(x, tuple) else x\n"
                                 "        return x\n\n"
                                 "    last = dict(SEGMENTS)\n"
                                 "    i = 0\n"
                                 "    while i < len(layers):\n"
                                 "        end = last.get(first + i, first + i) - first + 1\n"
                                 "        if first + i in last:\n"
                                 "            x = checkpoint(run, x, i, end%s)\n"
                                 "        else:\n"
                                 "            x = run(x, i, end)\n"
                                 "        i = end\n"
                                 "    return x\n";

/* Parts whose output alone is worth dropping: what reads it asks for it again. */
static const char RECOMPUTE_PARTS[] =
    "\n\n# submodules of a layer that each part is made of, as Hugging Face names them; attention\n"
    "# without its matrices is no module there: name yours\n"
    "MODULES = {\"core_attn\": [], \"mlp\": [\"mlp\"], \"moe\": [\"mlp\"],\n"
    "           \"layernorm\": [\"input_layernorm\", \"post_attention_layernorm\"],\n"
    "           \"moe_act\": [\"mlp.experts.act_fn\"], \"shared_experts\": "
    "[\"mlp.shared_experts\"],\n"
    "           \"mla_up_proj\": [\"self_attn.q_b_proj\", \"self_attn.kv_b_proj\"]}\n"
    "DROP_OUTPUT = {\"layernorm\", \"moe_act\", \"mla_up_proj\"}\n"
    "\n\n"
    "class Remade:\n"
    "    \"\"\"The output of a module, made again when the backward pass asks for it.\"\"\"\n"
    "    def __init__(self, forward, args, kwargs):\n"
    "        self.call, self.asked, self.value = (forward, args, kwargs), 0, None\n\n"
    "    def get(self):\n"
    "        if self.value is None:\n"
    "            forward, args, kwargs = self.call\n"
    "            with torch.no_grad():\n"
    "                self.value = forward(*args, **kwargs)\n"
    "        value, self.asked = self.value, self.asked - 1\n"
    "        if self.asked == 0:\n"
    "            self.value = None\n"
    "        return value\n"
    "\n\n"
    "def recompute_parts(layers, first=0):\n"
    "    \"\"\"Once, before training; first: index in the model of layers[0].\"\"\"\n"
    "    for (begin, last), parts in PARTS.items():\n"
    "        for i in range(max(begin, first), min(last, first + len(layers) - 1) + 1):\n"
    "            wrap(layers[i - first], parts)\n"
    "\n\n"
    "def wrap(layer, parts):\n"
    "    made = {}  # by address, while the layer runs forward\n\n"
    "    def pack(tensor):\n"
    "        remade = made.get(tensor.data_ptr())\n"
    "        if remade is None:\n"
    "            return tensor\n"
    "        remade.asked += 1\n"
    "        return remade, tensor.shape, tensor.stride()\n\n"
    "    def unpack(packed):\n"
    "        if isinstance(packed, torch.Tensor):\n"
    "            return packed\n"
    "        remade, shape, stride = packed\n"
    "        return remade.get().as_strided(shape, stride)\n\n"
    "    def again(forward, drop):\n"
    "        def run(*args, **kwargs):\n"
    "            # the reentrant kind hands its inputs to pack(), so that they may be remade, too\n"
    "            y = checkpoint(partial(forward, **kwargs), *args, use_reentrant=True)\n"
    "            if drop and torch.is_grad_enabled():\n"
    "                made[y.data_ptr()] = Remade(forward, args, kwargs)\n"
    "                alive.append(y)\n"
    "            return y\n"
    "        return run\n\n"
    "    def run_layer(*args, **kwargs):\n"
    "        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):\n"
    "            try:\n"
    "                return layer_forward(*args, **kwargs)\n"
    "            finally:\n"
    "                made.clear()\n"
    "                alive.clear()\n\n"
    "    alive = []  # so that no other tensor gets the address of one in `made`\n"
    "    for part in parts:\n"
    "        if not MODULES[part]:\n"
    "            raise ValueError(\"MODULES names nothing for \" + part)\n"
    "        for name in MODULES[part]:\n"
    "            module = layer.get_submodule(name)\n"
    "            module.forward = again(module.forward, part in DROP_OUTPUT)\n"
    "    layer_forward, layer.forward = layer.forward, run_layer\n";

static void emit_pytorch(struct vp_buf *out, const struct vp_framework_plan *p) {
    if (partly(p))
        vp_buf_add(out, "from functools import partial\n\n");
    vp_buf_add(out, "import torch\nfrom torch.utils.checkpoint import checkpoint\n\n");
    add_segments(out, p);
    if (partly(p))
        add_parts(out, p);
    vp_buf_printf(out, RUN_LAYERS, ", use_reentrant=False");
    if (partly(p))
        vp_buf_add(out, RECOMPUTE_PARTS);
}

static void emit_hf(struct vp_buf *out, const struct vp_framework_plan *p) {
    bool all = p->setting.shape == VP_SHAPE_ALL;
    vp_buf_printf(out, "TrainingArguments(\n    gradient_checkpointing=%s,\n",
                  all ? "True" : "False");
    if (all)
        vp_buf_add(out, "    gradient_checkpointing_kwargs={\"use_reentrant\": False},\n");
    vp_buf_add(out, ")\n");
}

/* DeepSpeed reads a dictionary as it reads a file. number_checkpoints sizes the buffers of
 * contiguous_memory_optimization; it does not choose layers. */
static void emit_deepspeed(struct vp_buf *out, const struct vp_framework_plan *p, bool pipelined) {
    uint32_t interval = p->setting.shape == VP_SHAPE_NONE ? 0 : 1;
    if (p->setting.shape == VP_SHAPE_INTERVAL)
        interval = p->setting.number;
    if (!pipelined) {
        vp_buf_add(out, "from deepspeed.checkpointing import checkpoint\n\n");
        add_segments(out, p);
        vp_buf_printf(out, RUN_LAYERS, "");
        vp_buf_add(out, "\n\n");
    } else if (interval > 1) {
        vp_buf_add(
            out, "# pieces count from the first entry of each stage's list of layers: what stands\n"
                 "# in front of the blocks there shifts them\n");
    }
    vp_buf_add(out, "ds_config = {\n");
    if (pipelined)
        vp_buf_printf(out, "    \"pipeline\": {\"activation_checkpoint_interval\": %" PRIu32 "},\n",
                      interval);
    vp_buf_printf(out,
                  "    \"activation_checkpointing\": {\"number_checkpoints\": %" PRIu32 "},\n}\n",
                  pieces(p));
}

/* ---- YAML and options ---- */

static void emit_torchtune(struct vp_buf *out, const struct vp_framework_plan *p) {
    if (p->setting.shape != VP_SHAPE_KTH) {
        vp_buf_printf(out, "enable_activation_checkpointing: %s\n",
                      p->setting.shape == VP_SHAPE_ALL ? "True" : "False");
        return;
    }
    vp_buf_printf(out,
                  "# read by full_finetune_distributed and full_finetune_single_device alone\n"
                  "enable_activation_checkpointing: False\nac_mode: selective\n"
                  "ac_option: %" PRIu32 "\n",
                  p->setting.number);
}

/* Megatron's own settings, as options or as YAML. */
static void emit_megatron(struct vp_buf *out, const struct vp_recompute_setting *setting,
                          bool yaml) {
    bool block = setting->shape == VP_SHAPE_BLOCK;
    uint32_t number = setting->shape == VP_SHAPE_ALL ? 1 : setting->number;
    if (setting->shape == VP_SHAPE_NONE) {
        vp_buf_add(out, yaml ? "recompute_granularity: null\nrecompute_layer_ids: null\n"
                             : "# none of the --recompute options\n");
    } else if (setting->shape == VP_SHAPE_SELECTIVE) {
        vp_buf_add(out, yaml ? "recompute_granularity: selective\nrecompute_modules: ["
                             : "--recompute-granularity selective --recompute-modules ");
        add_modules(out, setting->select, "", yaml ? ", " : " ");
        vp_buf_add(out, yaml ? "]\nrecompute_layer_ids: null\n" : "\n");
    } else {
        vp_buf_printf(out,
                      yaml ? "recompute_granularity: full\nrecompute_method: %s\n"
                             "recompute_num_layers: %" PRIu32 "\nrecompute_layer_ids: null\n"
                           : "--recompute-granularity full --recompute-method %s "
                             "--recompute-num-layers %" PRIu32 "\n",
                      block ? "block" : "uniform", number);
    }
}

static void add_list(struct vp_buf *out, const struct vp_framework_plan *p) {
    const char *separator = "";
    for (uint32_t i = 0; i < p->layers; i++) {
        if (!p->layer[i].recomputed)
            continue;
        vp_buf_printf(out, "%s%" PRIu32, separator, i);
        separator = ", ";
    }
}

static void emit_primus(struct vp_buf *out, const struct vp_framework_plan *p) {
    const struct vp_recompute_setting none = {.shape = VP_SHAPE_NONE};
    if (p->setting.shape != VP_SHAPE_LAYERS) {
        emit_megatron(out, &p->setting, true);
        return;
    }
    if (recomputed(p) == 0) { /* Primus refuses an empty list */
        emit_megatron(out, &none, true);
        return;
    }
    vp_buf_add(out, "# layers are counted from 0 over the whole model\n"
                    "recompute_granularity: full\nrecompute_method: null\nrecompute_layer_ids: [");
    add_list(out, p);
    vp_buf_add(out, "]\n");
}

/* Lengths of segments from layer 0 on; what is behind them is kept. */
static void add_lengths(struct vp_buf *out, const struct vp_framework_plan *p) {
    vp_buf_add(out, "{segments: [");
    for (uint32_t i = 0; i < p->layers && p->layer[i].recomputed; i = piece_end(p, i))
        vp_buf_printf(out, "%s%" PRIu32, i ? ", " : "", piece_end(p, i) - i);
    vp_buf_add(out, "]}");
}

const char *vp_recompute_setting_value(struct vp_arena *arena, const struct vp_framework_plan *p) {
    uint32_t whole = recomputed(p);
    struct vp_buf out = {.arena = arena};
    if (whole == 0)
        return "none";
    if (pieces(p) < whole && p->setting.shape == VP_SHAPE_INTERVAL)
        return vp_arena_printf(arena, "{every: %" PRIu32 "}", p->setting.number);
    if (pieces(p) < whole) {
        add_lengths(&out, p);
        return vp_buf_text(&out);
    }
    if (whole == p->layers)
        return "full";
    vp_buf_add(&out, "{layers: [");
    add_list(&out, p);
    vp_buf_add(&out, "]}");
    return vp_buf_text(&out);
}

static void emit_vramplan(struct vp_buf *out, const struct vp_framework_plan *p) {
    vp_buf_printf(out, "train:\n  recompute: %s\n", vp_recompute_setting_value(out->arena, p));
}

void vp_recompute_emit(struct vp_buf *out, const struct vp_recompute_problem *problem,
                       const struct vp_framework_plan *plan, const struct vp_framework_plan *best) {
    add_head(out, problem, plan, best);
    switch (plan->framework) {
    case VP_FRAMEWORK_PYTORCH:
        emit_pytorch(out, plan);
        break;
    case VP_FRAMEWORK_HF:
        emit_hf(out, plan);
        break;
    case VP_FRAMEWORK_TORCHTUNE:
        emit_torchtune(out, plan);
        break;
    case VP_FRAMEWORK_MEGATRON:
        emit_megatron(out, &plan->setting, false);
        break;
    case VP_FRAMEWORK_PRIMUS:
        emit_primus(out, plan);
        break;
    case VP_FRAMEWORK_DEEPSPEED:
        emit_deepspeed(out, plan, problem->stages > 1);
        break;
    case VP_FRAMEWORK_VRAMPLAN:
        emit_vramplan(out, plan);
        break;
    case VP_FRAMEWORK_COUNT:
        break;
    }
}
