#!/usr/bin/env python3
"""Training steps that others published, predicted: how far off, and whether the interval holds.

None of them is a case that the program is scored by, and no constant belongs to one of them: the
shares of planner/latency/train_classes.def are those of whole groups. With -v every row is shown.
"""
import json
import os
import statistics
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("VRAMPLAN") or os.path.join(TOP, "vramplan")
ENV = {**os.environ, "VRAMPLAN_PROFILES": os.path.join(TOP, "profiles")}


def step_ms(scenario):
    p = subprocess.run([PROGRAM, "plan", "-", "--format", "json"], input=json.dumps(scenario),
                       capture_output=True, text=True, env=ENV, timeout=60)
    try:
        return json.loads(p.stdout)["latency"]["step_ms"]
    except (ValueError, KeyError):
        sys.exit("no step time: %s\n%s" % (scenario["name"], p.stderr[:500]))


# ---- MPT with fully sharded data parallelism ----
# llm-foundry, scripts/train/benchmarking/README.md: card, model, sequence, GPUs, micro batch,
# accumulation, every layer recomputed, tokens per second and GPU. Sequences up to 4096: the longer
# ones are attention by a kernel that nothing uses any more.
MPT = {"125m": (768, 12, 12), "350m": (1024, 16, 24), "760m": (1536, 12, 24),
       "1b": (2048, 16, 24), "3b": (2560, 20, 32), "7b": (4096, 32, 32), "13b": (5120, 40, 40),
       "30b": (7168, 56, 48), "70b": (8192, 64, 80)}
FOUNDRY = """
h100 70b 2048 64 8 4 1 1039
h100 70b 2048 32 2 16 1 882
h100 30b 4096 8 1 21 1 1802
h100 30b 2048 32 14 3 1 2308
h100 30b 2048 8 3 21 1 2002
h100 30b 1024 8 6 21 1 2084
h100 13b 4096 8 10 3 1 4717
h100 13b 2048 64 2 1 0 4800
h100 13b 2048 8 2 1 0 4792
h100 13b 1024 8 40 3 1 5502
h100 7b 4096 8 16 2 1 8611
h100 7b 2048 8 6 1 0 10643
h100 7b 1024 8 64 2 1 10203
h100 3b 4096 8 5 6 0 20964
h100 3b 2048 64 6 3 0 22525
h100 3b 512 8 40 6 0 27965
h100 1b 4096 8 7 4 0 38535
h100 1b 2048 8 14 1 0 45455
h100 1b 512 8 56 4 0 52275
h100 760m 2048 16 24 1 0 68551
a100 70b 2048 64 8 4 1 410
a100 70b 2048 32 2 16 1 373
a100 30b 4096 8 1 21 1 814
a100 30b 1024 8 6 21 1 946
a100 13b 4096 8 10 3 1 2060
a100 13b 2048 8 2 3 0 2262
a100 7b 4096 8 16 2 1 3684
a100 7b 2048 8 6 2 0 4641
a100 7b 1024 8 64 2 1 4357
a100 3b 4096 8 5 6 0 9457
a100 3b 2048 8 10 2 0 10811
a100 1b 4096 8 7 4 0 17807
a100 1b 512 8 56 4 0 23148
a100 760m 4096 8 12 2 0 27351
a100 350m 4096 8 16 2 0 49555
a100 125m 4096 8 16 2 0 118396
a100_40 70b 2048 128 4 1 1 376
a100_40 30b 2048 32 4 1 1 857
a100_40 13b 2048 8 4 16 1 1668
a100_40 7b 2048 128 18 1 1 3623
a100_40 7b 2048 8 12 4 1 3679
a100_40 3b 2048 8 5 8 0 10065
"""


def foundry(row):
    card, model, *numbers, rate = row.split()
    seq, gpus, batch, accumulation, again = map(int, numbers)
    width, heads, layers = MPT[model]
    pure = card == "a100_40" or (card, model) == ("a100", "70b")
    scenario = {
        "vramplan": 1, "name": row,
        "model": {"model_type": "mpt", "d_model": width, "n_heads": heads, "n_layers": layers,
                  "expansion_ratio": 4, "max_seq_len": seq, "vocab_size": 50368, "no_bias": True,
                  "torch_dtype": "bfloat16", "attn_config": {"alibi": True, "attn_impl": "flash"}},
        "hardware": {"gpu": {"h100": "h100-sxm", "a100": "a100-80-sxm",
                             "a100_40": "a100-40-sxm"}[card],
                     "count": gpus, "nodes": max(1, gpus // 8),
                     "internode_gbs": 50 if card == "h100" else 25},
        "engine": {"name": "pytorch", "version": "2.0", "args": {"sharding_strategy": "FULL_SHARD"}},
        "precision": {"compute": "bf16"}, "parallel": {"fsdp": True},
        "train": {"micro_batch": batch, "gradient_accumulation": accumulation,
                  "sequence_length": seq, "optimizer": "adamw",
                  "dtype": {"parameters": "bf16" if pure else "fp32"},
                  "recompute": "full" if again else "none", "ops": {"attention": "flash"}}}
    return card + " foundry", scenario, seq * batch * accumulation / float(rate) * 1e3


# ---- Llama with FSDP2 on 64 A100 ----
# torchtitan, docs/performance.md: model, micro batch, sequence, recomputation, tokens per second.
TITAN = """
llama-3-8b 1 8192 selective 2973
llama-3.1-70b 1 8192 full 331
llama-2-70b 1 4096 selective 355
llama-2-70b 2 4096 full 353
"""


def titan(row):
    model, batch, seq, again, rate = row.split()
    scenario = {
        "vramplan": 1, "name": row, "model": model,
        "hardware": {"gpu": "a100-80-sxm", "count": 64, "nodes": 8, "internode_gbs": 25},
        "engine": {"name": "pytorch", "version": "2.4"},
        "precision": {"compute": "bf16"}, "parallel": {"fsdp": True},
        "train": {"micro_batch": int(batch), "sequence_length": int(seq), "optimizer": "adamw",
                  "optimizer_implementation": "fused", "dtype": {"parameters": "fp32"},
                  "compile": True, "recompute": again, "ops": {"attention": "flash"}}}
    return "a100 torchtitan", scenario, int(batch) * int(seq) / float(rate) * 1e3


# ---- Megatron on A100, before fused attention ----
# arXiv 2205.05198, table 5: hidden size, heads, layers, pipeline, chunks, micro batches, their size,
# seconds with every layer recomputed, and with attention recomputed and sequence parallelism.
KORTHIKANTI = """
6144 64 48 1 1 1 4 1.42 1.10
12288 96 96 8 3 64 1 18.13 13.75
20480 128 105 35 3 280 1 49.05 37.83
25600 160 128 64 1 512 1 94.42 71.49
"""


def korthikanti(row, full):
    *numbers, slow, fast = row.split()
    hidden, heads, layers, stages, chunks, micro, batch = map(int, numbers)
    args = {"fp16": True, "transformer_impl": "local",
            "recompute_granularity": "full" if full else "selective"}
    if full:
        args.update(recompute_method="uniform", recompute_num_layers=1)
    parallel = {"tensor": 8, "pipeline": stages, "data": 1, "sequence": not full, "zero": 0,
                "microbatches": micro}
    if chunks > 1:
        parallel["virtual_pipeline"] = chunks
    scenario = {
        "vramplan": 1, "name": row,
        "model": {"model_type": "gpt2", "n_embd": hidden, "n_head": heads, "n_layer": layers,
                  "n_positions": 2048, "vocab_size": 51200, "n_inner": 4 * hidden,
                  "activation_function": "gelu_new", "tie_word_embeddings": True,
                  "torch_dtype": "float16"},
        "hardware": {"gpu": "a100-80-sxm", "count": 8 * stages, "nodes": stages,
                     "internode_gbs": 25},
        "engine": {"name": "megatron", "version": "0.3", "args": args}, "parallel": parallel,
        "train": {"micro_batch": batch, "global_batch": micro * batch, "sequence_length": 2048,
                  "optimizer": "adamw",
                  "dtype": {"parameters": "fp16", "gradients": "fp32", "master": "fp32",
                            "optimizer_states": "fp32", "autocast": "none"},
                  "ops": {"attention": "eager", "norm": "fused", "mlp": "fused", "dropout": 0.1},
                  "recompute": "full" if full else "selective"}}
    return "a100 megatron", scenario, float(slow if full else fast) * 1e3


# ---- Megatron-Bridge ----
# docs/performance-summary.md, 25.11: card, model, GPUs, precision, micro batch, sequence, fully
# sharded, tensor, pipeline, context, chunks, experts, micro batches, tokens per second and GPU.
BRIDGE = """
b200 llama-3.1-8b 8 fp8 2 8192 0 1 1 1 1 1 8 30624
b200 llama-3.1-405b 128 fp8 1 8192 0 4 8 2 8 1 32 661
h100-sxm llama-3.1-8b 8 fp8 1 8192 1 1 1 1 1 1 16 14451
h100-sxm llama-3.1-70b 64 fp8 1 8192 0 4 8 1 5 1 64 1602
h100-sxm llama-3.1-405b 1024 fp8 1 8192 0 8 8 2 8 1 64 292
b200 deepseek-v3 256 fp8 1 4096 0 1 16 1 1 8 128 2139
b200 gpt-oss-120b 64 bf16 4 4096 0 1 1 1 1 8 2 8213
b200 qwen3-30b-a3b 8 fp8 1 4096 0 1 1 1 1 8 64 9299
b200 qwen3-235b-a22b 64 fp8 1 4096 0 1 8 1 2 8 128 3269
h100-sxm gpt-oss-120b 64 bf16 4 4096 0 1 4 1 1 8 2 5630
h100-sxm qwen3-30b-a3b 16 fp8 2 4096 0 1 2 1 24 8 32 5275
"""


def bridge(row):
    card, model, gpus, precision, *numbers = row.split()
    batch, seq, sharded, tensor, stages, context, chunks, experts, micro, rate = map(int, numbers)
    gpus = int(gpus)
    data = gpus // (tensor * stages * context)
    args = {"bf16": True, "use_distributed_optimizer": True, "overlap_grad_reduce": True,
            "overlap_param_gather": True, "cross_entropy_loss_fusion": True}
    if precision == "fp8":
        args["fp8_format"] = "hybrid"
    if tensor > 1:
        args["tp_comm_overlap"] = True
    parallel = {"tensor": tensor, "pipeline": stages, "data": data, "context_parallel": context,
                "expert": experts, "sequence": tensor > 1, "zero": 3 if sharded else 1,
                "microbatches": micro}
    if chunks > 1:
        parallel["virtual_pipeline"] = chunks
    scenario = {
        "vramplan": 1, "name": row, "model": model,
        "hardware": {"gpu": card, "count": gpus, "nodes": max(1, gpus // 8), "internode_gbs": 50},
        "engine": {"name": "megatron", "version": "2026-04", "args": args},
        "precision": {"weights": "bf16"}, "parallel": parallel,
        "train": {"micro_batch": batch, "global_batch": batch * micro * data,
                  "sequence_length": seq, "optimizer": "adamw",
                  "dtype": {"parameters": "bf16", "gradients": "fp32", "master": "fp32",
                            "optimizer_states": "fp32", "autocast": "none"},
                  "ops": {"attention": "flash", "norm": "fused", "mlp": "fused"},
                  "recompute": "none"}}
    group = "Megatron-Bridge, experts" if experts > 1 else "Megatron-Bridge, dense"
    return group, scenario, batch * micro * data * seq / rate / gpus * 1e3


# ---- judged ----

# By group: the median error may be at most so many per cent, the share inside at least.
FLOORS = {"h100 foundry": (13, 95), "a100 foundry": (9, 95), "a100_40 foundry": (13, 95),
          "a100 torchtitan": (15, 75), "a100 megatron": (14, 100),
          "Megatron-Bridge, dense": (14, 100), "Megatron-Bridge, experts": (50, 60)}


def rows_of(text):
    return text.strip().splitlines()


cases = [foundry(r) for r in rows_of(FOUNDRY)] + [titan(r) for r in rows_of(TITAN)]
cases += [korthikanti(r, full) for r in rows_of(KORTHIKANTI) for full in (True, False)]
cases += [bridge(r) for r in rows_of(BRIDGE)]
groups = {}
for group, scenario, want in cases:
    got = step_ms(scenario)
    groups.setdefault(group, []).append((got["likely"] / want - 1,
                                         got["low"] <= want <= got["high"]))
    if "-v" in sys.argv:
        print("# %-26s %-58s %9.0f ms %+6.1f %% [%.2f, %.2f]"
              % (group, scenario["name"], want, 100 * (got["likely"] / want - 1),
                 got["low"] / want, got["high"] / want))
number, failed = 0, 0
for group, found in groups.items():
    errors = [abs(e) for e, _ in found]
    median = 100 * statistics.median(errors)
    inside = 100 * sum(i for _, i in found) / len(found)
    most, least = FLOORS[group]
    right = median <= most and inside >= least
    number += 1
    failed += not right
    print("%sok %d - %s: %d steps, median error %.1f %% (at most %d), mean %.1f, inside %.0f %% "
          "(at least %d)" % ("" if right else "not ", number, group, len(found), median, most,
                             100 * statistics.mean(errors), inside, least))
print("1..%d" % number)
sys.exit(1 if failed else 0)
