#!/usr/bin/env python3
"""Start-up logs of serving engines: the share of figures that are right, per group and stage."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "cli"))
from tap import DIR, ENV, PROGRAM, finish, ok  # noqa: E402

# Least share of right figures in per cent, by group and stage; raise it when it is beaten for good.
VLLM = ("vllm-nvidia", "vllm-amd", "llm-d")
ENGINES = VLLM + ("sglang",)
FLOORS = {
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
}
INSIDE = 90       # least share of true values inside their intervals, over all engines
FEWEST = 400      # figures of the engines: below, the cases are not what this test expects
SECONDS = 100     # of a group

SCORE = os.path.join(TOP, "..", "shared", "score", "score.py")
CASES = os.path.join(TOP, "..", "shared", "score", "cases", "serving.json")


def start(group):
    out = os.path.join(DIR, group + ".json")
    return out, subprocess.Popen([sys.executable, SCORE, CASES, "--only", group, "--bin", PROGRAM,
                                  "--json", out, "--misses", "60"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENV)


def run():
    """All groups side by side: the scores by (group, stage), the false fits, what was printed."""
    groups = sorted({g for _, names in FLOORS.values() for g in names})
    rows, false_fits, printed = {}, [], ""
    for group, (out, p) in [(g, start(g)) for g in groups]:
        text = p.communicate(timeout=SECONDS)[0].decode(errors="replace")
        printed += text
        if not ok(p.returncode == 0 and os.path.exists(out), "the score script runs: %s" % group, text):
            continue
        with open(out) as f:
            score = json.load(f)
        false_fits += score.pop("false_fits")
        rows.update((tuple(k.split("/")), v) for k, v in score.items())
    return rows, false_fits, printed


def main():
    for path in (SCORE, CASES):
        if not os.path.exists(path):
            print("1..0 # SKIP no %s" % os.path.relpath(path, TOP))
            return
    rows, false_fits, text = run()
    for stage, (floor, groups) in FLOORS.items():
        present = [g for g in groups if (g, stage) in rows]
        ok(present, "there are cases of stage %s" % stage, text)
        for group in present:
            row = rows[(group, stage)]
            share = 100.0 * row["right"] / row["n"]
            misses = "\n".join(line for line in text.splitlines()
                               if line.startswith("MISS %s/%s " % (group, stage)))
            ok(share >= floor, "%s, %s: %.1f %% of %d right, at least %d %%"
               % (group, stage, share, row["n"], floor), misses)
    engines = [v for (group, _), v in rows.items() if group in ENGINES]
    figures = sum(v["n"] for v in engines)
    ok(figures >= FEWEST, "%d figures of engines, at least %d" % (figures, FEWEST), text)
    intervals = sum(v["intervals"] for v in engines)
    inside = 100.0 * sum(v["inside"] for v in engines) / max(intervals, 1)
    ok(inside >= INSIDE, "%.1f %% of %d true values are inside their intervals, at least %d %%"
       % (inside, intervals, INSIDE), text)
    ok(false_fits == [], "nothing is said to fit that ran out of memory", false_fits)
    finish()


main()
