#!/usr/bin/env python3
"""Start-up logs of serving engines: the share of figures that are right, per group and stage."""
import sys

sys.dont_write_bytecode = True
from scoring import hold  # noqa: E402

# Least share of right figures in per cent, by group and stage; raise it when it is beaten for good.
VLLM = ("vllm-nvidia", "vllm-amd", "llm-d")
ENGINES = VLLM + ("sglang",)
hold("serving.json", {
    # given the logged bytes of the cache: arithmetic
    "kv-bytes-to-blocks": (97, ENGINES),
    # the log's budget line from its own parts
    "budget": (97, VLLM),
    "weights": (93, ENGINES),
    # fits over logs, within the tolerance of the case
    "activation": (80, VLLM),
    "non-torch": (80, VLLM),
    "graphs": (80, VLLM),
    "kv-full": (80, VLLM),
    "kv-from-weights": (80, VLLM),
    "verdict": (90, ENGINES),
    # sizes of published models
    "params": (95, ("kv-arith",)),
    "kv-arith": (95, ("kv-arith",)),
    "kv-total": (90, ("kv-arith",)),
    "state": (90, ("kv-arith",)),
}, fewest=400, inside=90, judged=ENGINES)
