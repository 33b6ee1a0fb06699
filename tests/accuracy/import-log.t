#!/usr/bin/env python3
"""Logs rebuilt from the figures of the score cases, in each engine's own lines: import-log finds
every figure again, whatever stands around it."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import log_writer  # noqa: E402
from tap import LONG, TOP, Run, finish, ok  # noqa: E402

CASES = os.path.join(TOP, "..", "shared", "score", "cases")
FILES = ("serving.json", "gguf.json", "training.json")
NOISE = ["", "Traceback (most recent call last):", "\x1b[31mWARNING\x1b[0m something about 3.14 GiB",
         "Loading safetensors checkpoint shards: 100% Completed | 4/4 [00:03<00:00, 1.2it/s]\r"]


def plain(lines):
    return lines


def coloured(lines):
    return ["\x1b[1;36m(EngineCore_DP0 pid=%d)\x1b[0;0m %s" % (400 + i, line)
            for i, line in enumerate(lines)]


def docker(lines):
    return ["2026-01-01T10:00:00.123456789Z stderr F " + line + "\r" for line in lines]


def noisy(lines):
    return [x for i, line in enumerate(lines) for x in (NOISE[i % len(NOISE)], line)]


def twice(lines):
    """A start-up that failed before its cache comes first."""
    return lines[:2] + ["ValueError: something else"] + lines


FORMS = {"plain": plain, "coloured": coloured, "docker": docker, "noisy": noisy, "twice": twice}


def found_in(lines):
    run = Run("import-log", "-", "--format", "json", stdin="\n".join(lines) + "\n")
    if run.code not in (0, 3):
        return run, {}
    doc = run.json()
    return run, {f["key"] + ("." + f["place"] if f["place"] else ""): f["logged"]
                 for f in doc["figures"]}


def check(name, form, cases):
    misses, figures, logs = [], 0, 0
    for case in cases:
        lines, want = log_writer.log(case)
        if not want:
            continue
        logs += 1
        engine = case["scenario"]["engine"]["name"]
        if form == "twice" and engine not in ("vllm", "sglang"):
            continue
        run, got = found_in(FORMS[form](lines))
        for key, value in want.items():
            figures += 1
            near = abs(got.get(key, -1e30) - value) <= (1 if key.endswith("_bytes") else 1e-6)
            if not near:
                misses.append("%s %s: want %r got %r" % (case["id"], key, value, got.get(key)))
    if not figures:
        return
    ok(not misses, "%s, %s: all of %d figures in %d logs" % (name, form, figures, logs),
       "\n".join(misses[:20]))


if not os.path.isdir(CASES):
    print("1..0 # SKIP no ../shared/score/cases")
    sys.exit()
for name in FILES:
    with open(os.path.join(CASES, name)) as f:
        cases = json.load(f)
    for n, form in enumerate(FORMS):
        # each case in its plain form, a part of them in every other one; LONG=1 takes more of both
        every = (1 if form == "plain" else 7) * (1 if LONG else 3)
        check(name, form, cases[n % every::every])
finish()
