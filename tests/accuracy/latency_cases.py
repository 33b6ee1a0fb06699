#!/usr/bin/env python3
"""Served requests with known times against plans: errors by card, engine and model, and how many
pairs of configurations are ranked as they were measured. As a program it prints the tables of
docs/ACCURACY.md: latency_cases.py [PROGRAM]. Standard library only."""
import json
import os
import statistics
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.path.join(TOP, "..", "shared")
CASES = os.path.join(SHARED, "score", "cases", "latency.json")
APART = 1.05  # times closer than this are no rank: two machines differ by as much


def plan(program, scenario, env):
    p = subprocess.run([program, "plan", "-", "--format", "json"], input=json.dumps(scenario),
                       capture_output=True, text=True, timeout=60, cwd=SHARED, env=env)
    result = json.loads(p.stdout)
    return result[0] if isinstance(result, list) else result


def collect(program, env=None):
    """One dict per known figure: gpu, engine, model, stage, want, low, likely, high, basis."""
    rows = []
    with open(CASES) as f:
        cases = json.load(f)
    for case in cases:
        scenario = case["scenario"]
        latency = plan(program, scenario, env).get("latency", {})
        model = scenario["model"].get("model_type", "?")
        if model == "llama":
            model = "llama-%d" % scenario["model"]["hidden_size"]
        kind = "static" if case["group"].startswith("static") else "closed loop"
        for e in case["expect"]:
            got = latency.get(e["path"].split(".")[1]) or {}
            rows.append(dict(case=case["id"], gpu=scenario["hardware"]["gpu"], kind=kind,
                             engine=scenario["engine"]["name"], model=model, stage=e["stage"],
                             want=e["value"], weights=scenario["precision"]["weights"],
                             low=got.get("low"), likely=got.get("likely"),
                             high=got.get("high"), basis=got.get("basis")))
    return rows


def error(row):
    return abs(row["likely"] / row["want"] - 1) if row["likely"] else 1.0


def inside(row):
    low, high = row["low"], row["high"]
    return (low is not None and high is not None and
            low <= row["want"] * (1 + 1e-9) and row["want"] <= high * (1 + 1e-9))


def ranks(rows):
    """(right, all) pairs of times between tokens of one card, engine, model and kind."""
    right = pairs = 0
    some = [r for r in rows if r["stage"] == "tpot" and r["likely"]]
    for i, a in enumerate(some):
        for b in some[i + 1:]:
            if any(a[k] != b[k] for k in ("gpu", "engine", "model", "kind")):
                continue
            if max(a["want"], b["want"]) < APART * min(a["want"], b["want"]):
                continue
            pairs += 1
            right += (a["want"] < b["want"]) == (a["likely"] < b["likely"])
    return right, pairs


def groups(rows, keys):
    found = {}
    for r in rows:
        found.setdefault(tuple(r[k] for k in keys), []).append(r)
    return sorted(found.items())


def print_table(rows):
    keys = ("gpu", "kind", "engine", "model", "stage")
    print("| GPU | requests | engine | model | figure | cases | median error | within 25 % "
          "| inside | basis |")
    print("|---|---|---|---|---|---:|---:|---:|---:|---|")
    for key, some in groups(rows, keys):
        basis = "/".join(sorted({r["basis"] or "none" for r in some}))
        print("| %s | %d | %.0f %% | %d | %d | %s |" %
              (" | ".join(key), len(some), 100 * statistics.median(error(r) for r in some),
               sum(error(r) <= 0.25 for r in some), sum(inside(r) for r in some), basis))


def print_sums(rows):
    for stage, some in groups(rows, ("stage",)):
        widths = [(r["high"] - r["low"]) / r["likely"] for r in some if r["likely"]]
        print("%s: %d figures, %d answered, %d within 25 %%, %d inside; median error %.1f %%, "
              "median width of the interval %.0f %% of the likely value" %
              (stage[0], len(some), sum(r["likely"] is not None for r in some),
               sum(error(r) <= 0.25 for r in some), sum(inside(r) for r in some),
               100 * statistics.median(error(r) for r in some),
               100 * statistics.median(widths)))
    print("pairs of one GPU, engine and model ranked right: %d of %d" % ranks(rows))


if __name__ == "__main__":
    found = collect(os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else
                                    os.path.join(TOP, "vramplan")), dict(os.environ))
    print_table(found)
    print()
    print_sums(found)
