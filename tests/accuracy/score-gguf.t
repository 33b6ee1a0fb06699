#!/usr/bin/env python3
"""llama.cpp's own buffer sizes and public logs: the share of figures that are right."""
import sys

sys.dont_write_bytecode = True
from scoring import hold  # noqa: E402

LOCAL = ("llamacpp-local",)
LOGS = ("llamacpp-rocm", "llamacpp-cuda", "ollama")
ALL = LOCAL + LOGS + ("llamacpp-cpu", "llamacpp-other", "llamacpp-verdict")
hold("gguf.json", {
    # arithmetic
    "kv": (100, ALL),
    "state": (100, ALL),
    "weights": (98, ALL),
    "host-weights": (98, ALL),
    "params": (98, ALL),
    "output": (95, LOCAL + ("llamacpp-rocm", "ollama", "llamacpp-cpu", "llamacpp-other")),
    # formulas over the phases of a graph, by the age of the build
    "compute": (85, ALL),
    "host-compute": (85, ALL),
    "verdict": (90, ALL),
    "fit": (90, ALL),
    "total": (90, ALL),
}, fewest=1500, inside=85)
