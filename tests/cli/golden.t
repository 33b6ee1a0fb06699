#!/usr/bin/env python3
"""Whole outputs against tests/golden/. GOLDEN_UPDATE=1 rewrites them; the diff is the review."""
import difflib
import os
import sys

sys.dont_write_bytecode = True
from tap import TOP, Run, finish, ok  # noqa: E402

GOLDEN = os.path.join(TOP, "tests", "golden")
UPDATE = os.environ.get("GOLDEN_UPDATE") == "1"

CASES = {
    "help.txt": ["help"],
    "help-list.txt": ["help", "list"],
    "plan-one.txt": ["plan", "one.yaml"],
    "plan-one-verbose.txt": ["plan", "one.yaml", "-v"],
    "plan-one.json": ["plan", "one.yaml", "--format", "json"],
    "plan-one.md": ["plan", "one.yaml", "--format", "markdown"],
    "explain-one.txt": ["explain", "one.yaml"],
    "plan-several.txt": ["plan", "several.yaml"],
    "plan-several.csv": ["plan", "several.yaml", "--format", "csv"],
    "plan-faults.txt": ["plan", "faults.yaml"],
    "plan-faults.json": ["plan", "faults.yaml", "--format", "json"],
    "plan-moe.txt": ["plan", "tiny-moe.json", "--gpu", "mi300x", "--count", "2", "--tp", "2",
                     "--engine", "vllm@0.19", "--kv-cache", "fp8", "--context", "32k",
                     "--concurrency", "64"],
    "plan-sglang.txt": ["plan", "sglang.yaml", "-v"],
    "plan-sglang.json": ["plan", "sglang.yaml", "--format", "json"],
    "plan-transformers.txt": ["plan", "transformers.yaml", "-v"],
    "plan-transformers.json": ["plan", "transformers.yaml", "--format", "json"],
    "checkpoint-chain.txt": ["checkpoint", "--chain", "chain.json", "--budget", "2GiB"],
    "checkpoint-chain.md": ["checkpoint", "--chain", "chain.json", "--budget", "3GiB", "--inflight",
                            "2", "--format", "markdown"],
    "checkpoint-chain.csv": ["checkpoint", "--chain", "chain.json", "--budget", "2GiB", "--format",
                             "csv"],
    "checkpoint-chain.json": ["checkpoint", "--chain", "chain.json", "--budget", "700MiB", "--class",
                              "c0", "--format", "json"],
    "plan-llama-one.txt": ["plan", "llama.yaml#one", "-v"],
    "plan-llama-split.txt": ["plan", "llama.yaml#split"],
    "plan-llama-split.json": ["plan", "llama.yaml#split", "--format", "json"],
    "plan-llama-part.txt": ["plan", "llama.yaml#part"],
    "plan-llama-short.txt": ["plan", "llama.yaml#short"],
    "plan-llama-processor.txt": ["plan", "llama.yaml#processor"],
    "plan-llama-old.txt": ["plan", "llama.yaml#old"],
    "plan-ollama.txt": ["plan", "llama.yaml#ollama"],
    "explain-llama.txt": ["explain", "llama.yaml#part"],
    "fit-llama.txt": ["fit", "llama.yaml#open"],
    "fit-llama-context.txt": ["fit", "llama.yaml#open", "--context", "16k", "-v"],
    "fit-llama-short.txt": ["fit", "llama.yaml#short"],
    "fit-llama-short.json": ["fit", "llama.yaml#short", "--format", "json"],
    "fit-llama-cards.txt": ["fit", "llama.yaml#cards"],
    "fit-llama-older.txt": ["fit", "llama.yaml#older"],
    "fit-ollama.txt": ["fit", "llama.yaml#ollama"],
    "fit-one.txt": ["fit", "one.yaml"],
    "import-tiny-llama.yaml": ["import", "./tiny-llama"],
    "import-tiny-moe.json": ["import", "tiny-moe.json", "--format", "json"],
    "import-megatron.yaml": ["import", "recipes/megatron.sh"],
    "import-axolotl.yaml": ["import", "recipes/axolotl.yaml"],
    "import-deepspeed.yaml": ["import", "recipes/deepspeed.json"],
    "import-torchtune.yaml": ["import", "recipes/torchtune.yaml"],
    "import-accelerate.yaml": ["import", "recipes/accelerate.yaml"],
    "import-trainer.yaml": ["import", "recipes/trainer.json"],
    "import-trainer.json": ["import", "recipes/trainer.json", "--format", "json"],
}


def shown(run):
    """What a user sees: the result, then the messages and the exit code when there is more."""
    text = run.out
    if run.err or run.code:
        text += "---- standard error, exit %d ----\n%s" % (run.code, run.err)
    return text


for name, args in CASES.items():
    got = shown(Run(*args))
    path = os.path.join(GOLDEN, name)
    if UPDATE:
        os.makedirs(GOLDEN, exist_ok=True)
        with open(path, "w") as f:
            f.write(got)
    want = open(path).read() if os.path.exists(path) else ""
    ok(got == want, name, "".join(difflib.unified_diff(
        want.splitlines(True), got.splitlines(True), "golden/" + name, "now"))[:4000])
finish()
