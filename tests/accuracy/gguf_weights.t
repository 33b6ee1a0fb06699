#!/usr/bin/env python3
"""GGUF files: parameters and bytes are the sums over their tensor tables, and the keys alone, as
`import` writes them, describe the same model."""
import glob
import json
import os
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tests", "cli"), os.path.join(TOP, "tests", "accuracy")]
from tap import DIR, Run, finish, ok, same  # noqa: E402
import gguf_file  # noqa: E402

FOLDER = os.path.join(TOP, "..", "shared", "data", "gguf")
SHARED = ("kv_bytes_per_token", "state_bytes_per_sequence", "layers")


def check(path):
    name = os.path.basename(path)
    run = Run("import", path, "--format", "json")
    if not ok(run.code == 0, "%s is read" % name, run):
        return
    got = run.json()
    _, tensors = gguf_file.read(path)
    same(got["params_total"], gguf_file.elements(tensors), "%s: parameters" % name)
    same(got["tensor_bytes"], sum(t[3] for t in tensors), "%s: bytes" % name)
    ok(any(d["id"] == "VP207" for d in got["diagnostics"]), "%s: says that the data is missing" % name)

    keys = os.path.join(DIR, "keys.json")
    with open(keys, "w") as f:
        json.dump(got["scenario"]["model"], f)
    alone = Run("import", keys, "--format", "json")
    if not ok(alone.code == 0, "%s: its keys are read" % name, alone):
        return
    frequencies = gguf_file.elements([t for t in tensors if t[0] == "rope_freqs.weight"])
    same(alone.json()["params_total"], got["params_total"] - frequencies,
         "%s: its keys tell its parameters" % name)
    same([alone.json()[k] for k in SHARED], [got[k] for k in SHARED], "%s: and its cache" % name)


def main():
    files = sorted(glob.glob(os.path.join(FOLDER, "*.gguf")))
    if not files:
        print("1..0 # SKIP no %s" % os.path.relpath(FOLDER, TOP))
        return
    for path in files:
        check(path)
    ok(len(files) >= 20, "%d files, at least 20" % len(files))
    finish()


main()
