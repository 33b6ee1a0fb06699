#!/usr/bin/env python3
"""Checkpoint placement against an independent oracle: the cases with their judge, and the table of
uniform chains row by row. VRAMPLAN_LONG=1 takes every budget of the cases instead of every fourth."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "cli"))
from tap import DIR, ENV, PROGRAM, Run, finish, ok, same  # noqa: E402

FOLDER = os.path.join(TOP, "..", "shared", "score", "checkpoint")
CHECK, CASES, GOLD = (os.path.join(FOLDER, n) for n in ("check.py", "cases.json", "sqrtn_gold.json"))
STEP = 1 if os.environ.get("VRAMPLAN_LONG") else 4


def cases():
    """Different cases take different ones of their budgets."""
    with open(CASES) as f:
        doc = json.load(f)
    for i, case in enumerate(doc["cases"]):
        case["budgets"] = case["budgets"][i % STEP::STEP]
        case["pp"] = case.get("pp", [])[i % STEP::STEP]
    path = os.path.join(DIR, "cases.json")
    with open(path, "w") as f:
        json.dump(doc, f)
    p = subprocess.run([sys.executable, "-B", CHECK, path, "--bin", PROGRAM], text=True, env=ENV,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    lines = p.stdout.splitlines()
    for name in ("a", "b", "d", "e", "c0", "pp"):
        line = [x for x in lines if x.startswith("class %-3s " % name)]
        words = line[0].replace(",", "").split() if line else ["", "", "0", "of", "-1"]
        ok(words[2] == words[4], "class %s: %s of %s right" % (name, words[2], words[4]), p.stdout)
    same(p.returncode, 0, "nothing else is wrong", p.stdout)


def solve(path, name, budget):
    return Run("checkpoint", "--chain", path, "--class", name, "--budget", str(budget), "--format",
               "json").json()


def gold_row(row):
    """The figures that differ from the table."""
    n, x, tape, g = row["N"], row["x"], row["tape"], row["g"]
    chain = {"x": [x] * (n + 1), "g": [g] * (n + 1), "f": [1] * n, "b": [2] * n, "wn": [0] * n,
             "opts": [[{"t": tape, "r": 0, "wf": 0, "wb": 0}]] * n, "body": [0, n]}
    path = os.path.join(DIR, "chain.json")
    with open(path, "w") as f:
        json.dump(chain, f)
    forwards = lambda answer: answer["time"] - 2 * n  # noqa: E731
    a = solve(path, "a", row["best_periodic_peak"])
    got, peaks = {}, {}
    by_k = {(e["k"], e["recompute_last"]): e for e in a["lengths"]}
    got["periodic"] = [{"k": k, "peak": by_k[k, False]["peak_bytes"],
                        "forwards": forwards(by_k[k, False]),
                        "peak_recompute_last": by_k[k, True]["peak_bytes"],
                        "forwards_recompute_last": forwards(by_k[k, True])}
                       for k in range(1, n + 1)]
    peaks = {e["k"]: e["peak"] for e in got["periodic"]}
    got["best_periodic_peak"] = a["least_bytes"]
    got["best_k"] = [k for k in peaks if peaks[k] == a["least_bytes"]]
    got["sqrt_rule_peak"] = peaks[row["sqrt_rule_k"]]
    got["keep_all_peak"] = solve(path, "b", 1 << 50)["peak_bytes"]
    b = solve(path, "b", row["best_periodic_peak"])
    got["forwards_of_best_nonuniform_at_best_periodic_peak"] = forwards(b)
    got["nonuniform_min_peak"] = b["least_bytes"]
    got["nonuniform_forwards_at_min_peak"] = forwards(solve(path, "b", b["least_bytes"]))
    frontier = os.path.join(DIR, "frontier.csv")
    Run("checkpoint", "--chain", path, "--class", "c0", "--frontier", frontier)
    with open(frontier) as f:
        points = [tuple(map(int, line.split(","))) for line in f.read().split()[1:]]
    within = [p for p in points if p[0] <= row["nonuniform_min_peak"]]
    got["multilevel_min_peak"] = points[0][0]
    got["multilevel_forwards_at_min_peak"] = points[0][1] - 2 * n
    got["multilevel_forwards_at_nonuniform_min_peak"] = within[-1][1] - 2 * n
    return {k: (got[k], row[k]) for k in got if k in row and got[k] != row[k]}, len(got)


def gold():
    with open(GOLD) as f:
        rows = json.load(f)["rows"]
    for row in rows if STEP == 1 else [r for r in rows if r["N"] < 80 or r["N"] == 100]:
        wrong, figures = gold_row(row)
        ok(not wrong, "N=%d, a=%s, g=%d: all of %d figures" %
           (row["N"], row["tape_plus_boundary_over_boundary"], row["g"], figures), wrong)


if not all(os.path.exists(p) for p in (CHECK, CASES, GOLD)):
    print("1..0 # SKIP no %s" % os.path.relpath(FOLDER, TOP))
else:
    cases()
    gold()
    finish()
