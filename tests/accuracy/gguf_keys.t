#!/usr/bin/env python3
"""Published config.json files, and the GGUF keys that llama.cpp's converter writes for them: both
describe the same model."""
import json
import os
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "cli"))
from tap import DIR, Run, finish, ok, same  # noqa: E402

FOLDER = os.path.join(TOP, "..", "shared", "data", "hf-configs")
SAME = ("layers", "kv_bytes_per_token")


def plain(config):
    return {}


def window(config):
    return {"attention.sliding_window": config["sliding_window"]}


def latent(config):
    return {
        "attention.kv_lora_rank": config["kv_lora_rank"],
        "attention.q_lora_rank": config["q_lora_rank"],
        "attention.head_count_kv": 1,
        "attention.key_length": config["kv_lora_rank"] + config["qk_rope_head_dim"],
        "attention.value_length": config["kv_lora_rank"],
        "attention.key_length_mla": config["qk_nope_head_dim"] + config["qk_rope_head_dim"],
        "attention.value_length_mla": config["v_head_dim"],
        "attention.indexer.head_count": config.get("index_n_heads"),
        "attention.indexer.key_length": config.get("index_head_dim"),
        "rope.dimension_count": config["qk_rope_head_dim"],
        "leading_dense_block_count": config["first_k_dense_replace"],
        "expert_shared_count": config["n_shared_experts"],
        "expert_gating_func": 2,
    }


def delta(config):
    values = config["linear_num_value_heads"]
    return {
        "ssm.conv_kernel": config["linear_conv_kernel_dim"],
        "ssm.inner_size": values * config["linear_value_head_dim"],
        "ssm.state_size": config["linear_key_head_dim"],
        "ssm.time_step_rank": values,
        "ssm.group_count": config["linear_num_key_heads"],
        "full_attention_interval": config.get("full_attention_interval"),
        "expert_shared_feed_forward_length": config.get("shared_expert_intermediate_size"),
    }


def nemotron(config):
    codes = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E"}
    pattern = config.get("hybrid_override_pattern") or "".join(
        codes[kind] for kind in config["layers_block_type"])
    widths = {"M": 0, "*": 0, "-": config.get("intermediate_size"),
              "E": config.get("moe_intermediate_size")}
    return {
        "block_count": len(pattern),
        "attention.head_count_kv": [config["num_key_value_heads"] if c == "*" else 0
                                    for c in pattern],
        "feed_forward_length": [widths[c] for c in pattern],
        "ssm.conv_kernel": config["conv_kernel"],
        "ssm.inner_size": config["mamba_num_heads"] * config["mamba_head_dim"],
        "ssm.state_size": config["ssm_state_size"],
        "ssm.time_step_rank": config["mamba_num_heads"],
        "ssm.group_count": config["n_groups"],
        "expert_shared_feed_forward_length": config.get("moe_shared_expert_intermediate_size"),
        "moe_latent_size": config.get("moe_latent_size"),
    }


def scout(config):
    return {"feed_forward_length": config["intermediate_size_mlp"],
            "expert_feed_forward_length": config["intermediate_size"],
            "expert_shared_count": 1,
            "interleave_moe_layer_step": config["interleave_moe_layer_step"]}


# config, architecture, keys of its own, and whether an image encoder is counted with the config
CASES = [
    ("meta-llama--Meta-Llama-3.1-8B", "llama", plain, False),
    ("meta-llama--Meta-Llama-3.1-70B", "llama", plain, False),
    ("mistralai--Mixtral-8x7B-v0.1", "llama", plain, False),
    ("Qwen--Qwen3-0.6B", "qwen3", plain, False),
    ("Qwen--Qwen3-8B", "qwen3", plain, False),
    ("Qwen--Qwen3-30B-A3B", "qwen3moe", plain, False),
    ("Qwen--Qwen3-235B-A22B", "qwen3moe", plain, False),
    ("Qwen--Qwen3.5-27B", "qwen35", delta, True),
    ("Qwen--Qwen3.5-35B-A3B", "qwen35moe", delta, True),
    ("openai--gpt-oss-20b", "gpt-oss", window, False),
    ("openai--gpt-oss-120b", "gpt-oss", window, False),
    ("MiniMaxAI--MiniMax-M2.5", "minimax-m2", plain, False),
    ("meta-llama--Llama-4-Scout-17B-16E-Instruct", "llama4", scout, False),
    ("deepseek-ai--DeepSeek-V3", "deepseek2", latent, False),
    ("deepseek-ai--DeepSeek-V3.2", "deepseek32", latent, False),
    ("moonshotai--Kimi-K2-Instruct", "deepseek2", latent, False),
    ("zai-org--GLM-5", "glm-dsa", latent, False),
    ("nvidia--Nemotron-H-56B-Base-8K", "nemotron_h", nemotron, False),
    ("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron_h_moe", nemotron, False),
    ("nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", "nemotron_h_moe", nemotron, False),
]


def keys(whole, arch, own):
    """The model map: what all architectures share, and the keys of its own."""
    config = whole.get("text_config", whole)
    common = {
        "block_count": config.get("num_hidden_layers"),
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config.get("intermediate_size"),
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config.get("num_key_value_heads"),
        "attention.key_length": config.get("head_dim"),
        "attention.value_length": config.get("head_dim"),
        "vocab_size": config["vocab_size"],
        "context_length": config.get("max_position_embeddings"),
        "expert_count": (config.get("num_experts") or config.get("num_local_experts") or
                         config.get("n_routed_experts")),
        "expert_used_count": config.get("num_experts_per_tok"),
        "expert_feed_forward_length": config.get("moe_intermediate_size"),
    }
    common.update(own(config))
    gguf = {"%s.%s" % (arch, key): value for key, value in common.items() if value is not None}
    tied = config.get("tie_word_embeddings", whole.get("tie_word_embeddings", False))
    return {"gguf": dict(gguf, **{"general.architecture": arch}), "tie_word_embeddings": tied}


def described(path):
    run = Run("import", path, "--format", "json")
    return run.json() if ok(run.code == 0, "%s is read" % os.path.basename(path), run) else None


def main():
    if not os.path.isdir(FOLDER):
        print("1..0 # SKIP no %s" % os.path.relpath(FOLDER, TOP))
        return
    for name, arch, own, encoder in CASES:
        path = os.path.join(FOLDER, name + ".json")
        with open(path) as f:
            model = keys(json.load(f), arch, own)
        written = os.path.join(DIR, name + ".keys.json")
        with open(written, "w") as f:
            json.dump(model, f)
        want, got = described(path), described(written)
        if not want or not got:
            continue
        same([got[k] for k in SAME], [want[k] for k in SAME], "%s: the same cache" % name)
        if encoder:
            ok(got["params_total"] < want["params_total"], "%s: less its encoder" % name)
        else:
            same(got["params_total"], want["params_total"], "%s: the same parameters" % name)
    finish()


main()
