#!/usr/bin/env python3
"""What a refit from logs is worth. Every second run of a card goes through import-log
--profile-out; the others are planned with the shipped profile and with the refit one. Other cards'
plans must stay as they are, to the byte.

A figure's score is its interval's width, and ten times what the true value lies outside of it (the
interval score for four true values of five): narrower is better, but only where the truth stays
inside."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import log_writer  # noqa: E402
from tap import DIR, ENV, LONG, TOP, Run, finish, ok  # noqa: E402

SHARED = os.path.join(TOP, "..", "shared")
CASES = os.path.join(SHARED, "score", "cases", "serving.json")
CARDS = ("h100-sxm", "r9700", "rtx4090", "rtx5090", "rtx3090", "a100_40_sxm")
# Two runs learnt, two held out, one of which takes twice the graph memory of any other A100 run.
WORSE = ("a100_40_sxm",)
KEYS = ("weights_gib", "available_kv_cache_gib", "graph_gib", "non_torch_gib")
PROFILE = os.path.join(ENV["HOME"], ".config", "vramplan", "engines", "vllm.yaml")
LOG = os.path.join(DIR, "run.log")


def card(case):
    return str(case["scenario"].get("hardware", {}).get("gpu"))


def plan(case):
    run = Run("plan", "-", "--format", "json", stdin=json.dumps(case["scenario"]), cwd=SHARED)
    doc = run.json()
    return doc.get("engine_report", {}), doc.get("intervals", {})


def score(cases):
    """Sum of scores, figures, right within the case's tolerance, inside the interval."""
    total, n, right, inside = 0.0, 0, 0, 0
    for case in cases:
        report, intervals = plan(case)
        for e in case["expect"]:
            key = e["path"].split(".")[-1]
            if key not in KEYS or key not in intervals or key not in report:
                continue
            low, high = intervals[key]["low"], intervals[key]["high"]
            miss = max(low - e["value"], e["value"] - high, 0)
            total += high - low + 10 * miss
            n += 1
            inside += miss <= 0.005
            right += abs(report[key] - e["value"]) <= max(e.get("abs", 0),
                                                          e.get("rel", 0) * abs(e["value"]))
    return total, n, right, inside


def refit(cases):
    """Runs that said something of what a profile holds."""
    used = 0
    for case in cases:
        with open(LOG, "w") as f:
            f.write("\n".join(log_writer.log(case)[0]) + "\n")
        run = Run("import-log", LOG, "--scenario", "-", "--profile-out", PROFILE,
                  stdin=json.dumps(case["scenario"]), cwd=SHARED)
        ok(run.code == 0 or "nothing of what an engine's profile holds" in run.err,
           "%s: its log is taken" % case["id"], run)
        used += run.code == 0
    return used


if not os.path.exists(CASES):
    print("1..0 # SKIP no ../shared/score/cases")
    sys.exit()
os.makedirs(os.path.dirname(PROFILE))
with open(CASES) as f:
    runs = [c for c in json.load(f)
            if c["scenario"].get("engine", {}).get("name") == "vllm"
            and "measured" not in c["scenario"]
            and any(e["path"].split(".")[-1] in KEYS for e in c["expect"])]
sums = [0, 0]
before_all = {c["id"]: plan(c) for c in runs}
for name in CARDS:
    mine = [c for c in runs if card(c) == name]
    if os.path.exists(PROFILE):
        os.remove(PROFILE)
    learnt, held = mine[0::2], mine[1::2]
    before = score(held)
    used = refit(learnt)
    after = score(held)
    about = "%s, from %d runs: score of %d figures %.2f -> %.2f, right %d -> %d, inside %d -> %d" % (
        name, used, before[1], before[0], after[0], before[2], after[2], before[3], after[3])
    sums = [sums[0] + before[0], sums[1] + after[0]]
    ok(used > 0 and (after[0] < before[0] or name in WORSE), about)
    ok(after[2] >= before[2] - 1, "%s: likely values are as right, but for one at most" % name, about)
    ok(after[3] >= before[3] - 1 - before[1] // 20,
       "%s: true values stay inside, but for one and one in twenty" % name, about)
    watched = [c for c in runs if card(c) != name][:: 1 if LONG else 6]
    others = [c["id"] for c in watched if plan(c) != before_all[c["id"]]]
    ok(not others, "%s: no plan of another card changes" % name, others)
ok(sums[1] < 0.95 * sums[0], "all cards: %.1f -> %.1f" % tuple(sums))
finish()
