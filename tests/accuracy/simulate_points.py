#!/usr/bin/env python3
"""Closed loops simulated and measured: every aggregated row of the public table without drafts, with
a certain layout, on a card whose calibration is shipped, through `vramplan simulate`. As a program
it prints the tables of docs/ACCURACY.md: simulate_points.py [PROGRAM [EVERY_NTH]]; with --held-out
each model by constants of its class that it had no part in, with --mi300x the published rows of that
card. Standard library only; some minutes for all rows."""
import concurrent.futures
import csv
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import latency_held_out as held_out

TOP = held_out.TOP
ROWS = os.path.join(held_out.ROWS, "points.csv")
PUBLISHED = os.path.join(held_out.ROWS, "published.csv")
APART = 1.05  # rates closer than this are no rank: two machines differ by as much
LIVES = 9     # all slots start at once, and so long do requests follow: ten each, as the public runs


def points():
    with open(ROWS, newline="") as f:
        rows = list(csv.DictReader(f))
    cards = {name[:-5].replace("-", "_") for name in
             os.listdir(os.path.join(TOP, "profiles", "calibration")) if name.endswith(".yaml")}
    return [r for r in rows if held_out.usable(r) and r["engine"] in ("vllm", "sglang") and
            r["gpu"] in cards and r["ttft_ms"]]


def measured(r):
    """Seconds of one request, output tokens per second of all."""
    share = 0.9 if r["length_sampling"] else 1
    output = round(int(r["output_tokens"]) * share)
    life = (float(r["ttft_ms"]) + (output - 1) * float(r["tpot_ms"])) / 1e3
    return life, int(r["concurrency"]) * output / life


def lengths(r):
    """The settings of both lengths, and the longest request."""
    low, high = (float(x) for x in (r["length_sampling"] or "1-1").split("-"))
    found, longest = [], 0
    for key, column in (("serve.prompt_tokens", "input_tokens"),
                        ("serve.output_tokens", "output_tokens")):
        least, most = (round(int(r[column]) * share) for share in (low, high))
        longest += most
        found += ["--set", "%s=%s" % (key, most if least == most else
                                      "{uniform: [%d, %d]}" % (least, most))]
    return found, longest


def arguments(r):
    args, skip = [r["model"]], 0
    for word, following in zip(held_out.settings(r), held_out.settings(r)[1:] + [""]):
        if word == "--context" or following.startswith(("serve.prompt_", "serve.output_")):
            skip = 2 # said by lengths()
        if skip:
            skip -= 1
        else:
            args.append(word)
    life, _ = measured(r)
    said, longest = lengths(r)
    return args + said + ["--context", str(longest), "--duration", "%.3fs" % (LIVES * life), "--warmup", "0s", "--seeds", "1"]


def simulate(program, row, env=None):
    p = subprocess.run([program, "simulate", *arguments(row)], capture_output=True, text=True,
                       cwd=TOP, env=env)
    try:
        out = json.loads(p.stdout)
        tpot, ttft = (out["latency"][k]["mean"] for k in ("tpot_ms", "ttft_ms"))
        rate = out["throughput"]["output_tokens_per_s"]
    except (ValueError, KeyError):
        return {"row": row, "why": (p.stderr or p.stdout)[:200]}
    return {"row": row, "why": None, "basis": out["basis"], "analytic": out.get("analytic", {}),
            "preemptions": out["totals"]["preemptions"],
            "tpot": (tpot["low"], tpot["likely"], tpot["high"], float(row["tpot_ms"])),
            "ttft": (ttft["low"], ttft["likely"], ttft["high"], float(row["ttft_ms"])),
            "rate": (rate["low"], rate["likely"], rate["high"], measured(row)[1])}


# ---- MI300X: static batches of vLLM, closed loops of SGLang ----

NAMES = {"Llama-3.1-70B": "llama-3.1-70b", "Llama-3.1-405B": "llama-3.1-405b",
         "Llama-3.1-8B": "llama-3.1-8b", "MiniMax-M2.7": "minimax-m2.7"}


def published():
    with open(PUBLISHED, newline="") as f:
        for r in csv.DictReader(f):
            name = [n for n in NAMES if r["model"].startswith(n)]
            engine = re.match(r"(vllm|sglang) ([\d.]+\d)", r["engine"].lower())
            kind = (r["metric"] == "e2e_latency" and r["batch"] or
                    r["metric"] == "serving" and r["concurrency"])
            if r["gpu"] == "mi300x" and name and engine and kind and r["tensor"]:
                yield dict(r, model=NAMES[name[0]], engine=engine.group(1),
                           engine_version=engine.group(2))


def simulate_published(program, r, env=None):
    prompt, output = int(r["input_tokens"]), int(r["output_tokens"])
    args = [r["model"], "--gpu", "mi300x", "--count", r["gpus"], "--tp", r["tensor"], "--engine",
            r["engine"] + "@" + r["engine_version"], "--weights", r["precision"].split()[0],
            "--concurrency", r["batch"] or r["concurrency"], "--context", str(prompt + output),
            "--set", "serve.prompt_tokens=%d" % prompt, "--set", "serve.output_tokens=%d" % output,
            "--seeds", "1", "--warmup", "0s", "--format", "json"]
    if "fp8 kv" in r["precision"]:
        args += ["--kv-cache", "fp8"]
    if r["expert"]:
        args += ["--set", "parallel.expert=" + r["expert"]]
    value = float(r["value"])
    if r["batch"]:
        args += ["--arrivals", "batch"]
    else:
        args += ["--duration", "%.0fs" % (LIVES * int(r["concurrency"]) * output / value)]
    p = subprocess.run([program, "simulate", *args], capture_output=True, text=True, cwd=TOP,
                       env=env)
    try:
        out = json.loads(p.stdout)
        got = (out["latency"]["e2e_ms"]["mean"] if r["batch"] else
               out["throughput"]["output_tokens_per_s"])
    except (ValueError, KeyError):
        return {"row": r, "why": " ".join(args) + ": " + (p.stderr or p.stdout)[:200]}
    if r["batch"]:
        value *= {"s": 1e3, "ms": 1}[r["unit"]]
    return {"row": r, "why": None, "figure": (got["low"], got["likely"], got["high"], value)}


def print_published(found):
    print("| engine | model | GPUs | requests | rows | median error | within 25 % | inside |")
    print("|---|---|---:|---|---:|---:|---:|---:|")
    groups = {}
    for f in found:
        r = f["row"]
        kind = "static, whole request" if r["batch"] else "closed loop, tokens/s"
        key = ("%s %s" % (r["engine"], ".".join(r["engine_version"].split(".")[:2])), r["model"],
               r["gpus"], kind)
        groups.setdefault(key, []).append(f["figure"])
    for key, some in sorted(groups.items()):
        errors = [error(f) for f in some]
        print("| %s | %d | %.0f %% | %d | %d |" %
              (" | ".join(key), len(some), 100 * statistics.median(errors),
               sum(e <= 0.25 for e in errors), sum(inside(f) for f in some)))
    errors = [error(f["figure"]) for f in found]
    print("median of all %d: %.0f %%" % (len(found), 100 * statistics.median(errors)))


# ---- all of them ----


def collect(program, rows, env=None, one=simulate):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda r: one(program, r, env), rows))


def held_out_of(program, rows):
    """Every model simulated with constants of the class that it had no part in, no card measured."""
    folder, found = tempfile.mkdtemp(), []
    with open(ROWS, newline="") as f:
        everything = list(csv.DictReader(f))
    for engine, what in (("vllm", "vllm:nvidia"), ("sglang", "sglang")):
        for model in sorted({r["model"] for r in rows if r["engine"] == engine}):
            env = held_out.without(program, folder, everything, engine, what, model)
            found += collect(program, [r for r in rows if r["engine"] == engine and
                                       r["model"] == model], env)
    shutil.rmtree(folder)
    return found


def error(figure):
    return abs(figure[1] / figure[3] - 1)


def inside(figure):
    return figure[0] <= figure[3] <= figure[2]


def ranks(found, equal=()):
    """(right, all) pairs of configurations of one model and GPU under requests of one size, by
    output tokens per second of a GPU, that differ by more than the noise; equal: columns that must
    be the same, too."""
    right = pairs = 0
    groups = {}
    for f in found:
        r = f["row"]
        gpus = float(r["gpus"] or 1)
        # the same requests: how they are served differs, or how many of them are in flight
        key = tuple(r[k] for k in ("model", "gpu", "input_tokens", "output_tokens",
                                   "length_sampling", *equal))
        groups.setdefault(key, []).append((f["rate"][3] / gpus, f["rate"][1] / gpus))
    for some in groups.values():
        for i, a in enumerate(some):
            for b in some[i + 1:]:
                if max(a[0], b[0]) < APART * min(a[0], b[0]):
                    continue
                pairs += 1
                right += (a[0] < b[0]) == (a[1] < b[1])
    return right, pairs


def line(found):
    cells = []
    for key in ("tpot", "rate", "ttft"):
        errors = [error(f[key]) for f in found]
        cells.append("%.0f %%" % (100 * statistics.median(errors)))
        cells.append("%.0f %%" % (100 * sum(e <= 0.25 for e in errors) / len(errors)))
    cells.append("%.0f %%" % (100 * sum(inside(f["tpot"]) for f in found) / len(found)))
    return " | ".join(cells)


def print_tables(found):
    print("| engine | GPU | model | weights | rows | TPOT median error | within 25 % "
          "| tokens/s median error | within 25 % | TTFT median error | within 25 % | TPOT inside |")
    print("|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    groups = {}
    for f in found:
        key = tuple(f["row"][k] for k in ("engine", "gpu", "model", "weights"))
        groups.setdefault(key, []).append(f)
    for key, some in sorted(groups.items()):
        print("| %s | %d | %s |" % (" | ".join(key), len(some), line(some)))
    print("| **all** | | | | %d | %s |" % (len(found), line(found)))
    print()
    print("pairs of configurations of one model and GPU ranked right by output tokens per second of "
          "a GPU: %d of %d; of those with as many requests in flight %d of %d" %
          (ranks(found) + ranks(found, ("concurrency",))))


def main(argv):
    words = [w for w in argv[1:] if not w.startswith("--")]
    program = os.path.abspath(words[0] if words else os.path.join(TOP, "vramplan"))
    rows = points()[::int(words[1]) if len(words) > 1 else 1]
    if "--mi300x" in argv:
        found = collect(program, list(published()), one=simulate_published)
    elif "--held-out" in argv:
        found = held_out_of(program, rows)
    else:
        found = collect(program, rows)
    for f in (f for f in found if f["why"]):
        print("refused:", f["why"], file=sys.stderr)
    found = [f for f in found if not f["why"]]
    if os.environ.get("DUMP"):
        with open(os.environ["DUMP"], "w") as out:
            json.dump(found, out)
    (print_published if "--mi300x" in argv else print_tables)(found)


if __name__ == "__main__":
    main(sys.argv)
