#!/usr/bin/env python3
"""calibrate: samples to a profile and back, shapes to measure, what is said of wrong input, and the
profile in a plan."""
import os
import sys

sys.dont_write_bytecode = True
from tap import DIR, FIXTURES, Run, finish, ok, same  # noqa: E402

HERE = os.path.join(FIXTURES, "calibration")
FILES = ["gemm.csv", "attention.csv", "allreduce.csv", "bandwidth.csv", "memory.csv"]
PROFILE = os.path.join(DIR, "card.yaml")


def run(*args, **kw):
    return Run("calibrate", *args, cwd=HERE, **kw)


# A fit.
r = run(*FILES, "--gpu", "a100", "--release", "vLLM 0.19.0", "--release", "gemm.fp8=vLLM 0.20.0",
        "--release", "prefill_attention=vLLM 0.18.0", "--source", "made up", "-o", PROFILE)
same((r.code, r.err), (0, ""), "a fit", r)
ok(all(len(line) <= 80 for line in r.out.splitlines()), "the report is 80 cells wide", r)
for words in ("gemm bfloat16", "gemm fp8", "decode_attention bfloat16", "prefill_attention",
              "all-reduce over 8 GPUs, in a graph: 5 sizes", "memory streams at 1550 GB/s"):
    ok(words in r.out, "the report names: %s" % words, r)
with open(PROFILE) as f:
    text = f.read()
for words in ("vramplan_calibration: 1", 'gpu: "a100-80-sxm"', 'release: "vLLM 0.20.0"',
              'release: "vLLM 0.18.0"', 'origin: "gemm.csv (made up)"',
              'origin: "attention.csv (made up)"', "copy_gbs: 1550", "read_gbs: 1620",
              "host_to_device_gbs: 24", "context_bytes: 450000000"):
    ok(words in text, "the profile says: %s" % words, text[:2000])
same(text.count('release: "vLLM 0.20.0"'), 1, "a release of one type is that type's only")
ok(HERE not in text and DIR not in text, "no folder stands in a profile")
run(*FILES, "--gpu", "a100", "--release", "vLLM 0.19.0", "--release", "gemm.fp8=vLLM 0.20.0",
    "--release", "prefill_attention=vLLM 0.18.0", "--source", "made up", "-o", PROFILE + "2")
with open(PROFILE + "2") as f:
    same(f.read(), text, "the same samples give the same bytes")
r = run("gemm.csv", "--gpu", "a100")
ok(r.code == 0 and r.out.startswith("vramplan_calibration: 1\n"), "without -o: to standard output", r)
r = run("gemm.csv", "--gpu", "a100", "--format", "json", "-o", PROFILE + "2")
doc = r.json()
same((r.code, doc["schema"], doc["gpu"], [k["dtype"] for k in doc["kernels"]]),
     (0, "vramplan.calibrate/1", "a100-80-sxm", ["bfloat16", "fp8"]), "the report as JSON", r)

# Added to a profile: what was there stays.
r = run("allreduce.csv", "--profile", PROFILE + "2", "-o", PROFILE + "3")
with open(PROFILE + "3") as f:
    added = f.read()
ok(r.code == 0 and "gemm:" in added and "allreduce:" in added, "samples added to a profile", r)
r = run("gemm.csv", "--profile", PROFILE, "--gpu", "h200")
ok(r.code == 2 and "--gpu says h200" in r.err, "a profile of another card", r)

# A check.
r = run("--profile", PROFILE, "--check", "gemm.csv", "--check", "attention.csv", "allreduce.csv",
        "--format", "json")
doc = r.json()
same(r.code, 0, "a check", r)
same(list(doc), ["schema", "gpu", "gemm", "prefill_attention", "decode_attention", "allreduce",
                 "diagnostics"], "its keys")
same(list(doc["gemm"]["fp8"]), ["all", "m<=16", "16<m<512", "m>=512"], "ranges of a product")
same(list(doc["decode_attention"]["bfloat16"]), ["all", "tokens<512", "tokens>=512"],
     "ranges of attention")
same((doc["gemm"]["fp8"]["all"]["n"], doc["gemm"]["fp8"]["m<=16"]["n"]), (30, 12), "rows")
for kind in ("gemm", "prefill_attention", "decode_attention", "allreduce"):
    for dtype, ranges in doc[kind].items():
        v = ranges["all"]
        ok(0 <= v["median_abs_rel_error"] <= v["p90_abs_rel_error"] < 0.05
           and v["inside_interval"] == 1, "rows that it was fitted to: %s %s" % (kind, dtype), v)
r = run("--profile", PROFILE, "--check", "gemm.csv")
ok(r.code == 0 and "16<m<512" in r.out and all(len(x) <= 80 for x in r.out.splitlines()),
   "a check as text", r)
run("attention.csv", "--gpu", "a100", "-o", PROFILE + "4")
r = run("--profile", PROFILE + "4", "--check", "gemm.csv")
ok(r.code == 3 and "says nothing of it" in r.out, "nothing to compare ends with 3", r)

# Shapes.
r = run("gemm.csv", "--choose-shapes", "4")
lines = r.out.splitlines()
with open(os.path.join(HERE, "gemm.csv")) as f:
    rows = f.read().splitlines()
same((r.code, r.err, lines[0], len(lines)), (0, "", rows[0], 9), "four rows of each type", r)
ok(all(line in rows for line in lines), "whole rows of the file", r)
same([line.split(",")[0] for line in lines[1:]], 4 * ["bfloat16"] + 4 * ["fp8"], "of each type")
same(run("gemm.csv", "--choose-shapes", "1000").out.splitlines(), rows, "all where there are fewer")
same(len(run("allreduce.csv", "--choose-shapes", "2").out.splitlines()), 5, "of each group")
same(len(run("attention.csv", "--choose-shapes", "3").out.splitlines()), 7, "prefill and decode")
r = run("--choose-shapes", "6", "--gpu", "mi300x")
same((r.code, r.out.splitlines()[0], len(r.out.splitlines())), (0, "dtype,m,n,k", 13),
     "free shapes: for both types of the card", r)
same(len(run("--choose-shapes", "6").out.splitlines()), 7, "free shapes without a card: 16 bit")
r = run("gemm.csv", "attention.csv", "--choose-shapes", "3")
ok(r.code == 2 and "other columns" in r.err, "two kinds of files at once", r)

# Wrong input: every row is named, nothing is written.
r = run("faults.csv", "--gpu", "a100", "-o", os.path.join(DIR, "none.yaml"))
same(r.code, 2, "faults end with 2", r)
for line, words in ((3, '"bf17"'), (4, 'm is "0"'), (5, "k is empty"), (6, '"-3"'), (7, '"nan"'),
                    (8, "4 fields")):
    ok("faults.csv:%d: error: " % line in r.err and words in r.err, "line %d" % line, r)
ok(not os.path.exists(os.path.join(DIR, "none.yaml")), "no profile is written")
for args, words in (
        ([], "no samples are given"),
        (["gemm.csv"], "--gpu NAME must say"),
        (["gemm.csv", "--gpu", "zorro"], 'no GPU is called "zorro"'),
        (["none.csv", "--gpu", "a100"], "none.csv"),
        (["--check", "gemm.csv"], "--profile PROFILE.yaml says which"),
        (["gemm.csv", "--choose-shapes", "0"], "wants a count"),
        (["gemm.csv", "--choose-shapes", "4", "--check", "gemm.csv"], "two questions"),
        (["gemm.csv", "--gpu", "a100", "--format", "csv"], "text or json"),
        (["bandwidth.csv", "--choose-shapes", "4"], "no shapes to choose from"),
        (["gemm.csv", "--gpu", "a100", "--release", "gem=x"], "no such kind"),
        (["../one.yaml", "--gpu", "a100"], "no kind of samples"),
        (["-", "--gpu", "a100"], "name the columns")):
    r = run(*args)
    ok(r.code == 2 and words in r.err and not r.out, "calibrate %s" % " ".join(args), r)
r = run("--profile", "gemm.csv", "--check", "gemm.csv", "--format", "json")
ok(r.code == 2 and r.json()["diagnostics"], "a table as a profile, with JSON", r)
same(run("-", "--gpu", "a100", stdin="operation,gb_per_s\ncopy,900\n").code, 0, "standard input")
r = run("-", "--gpu", "a100", "-o", PROFILE + "5",
        stdin="dtype,m,n,k,latency_us,noisy\nfp8,1,512,512,5,0\nfp8,1,512,1024,900,1\n")
ok(r.code == 0 and "1 rows marked as noisy" in r.out, "noisy rows are left out", r)

# In a plan.
PLAN = ["plan", "llama-3.1-8b", "--engine", "vllm@0.19", "--format", "json"]
r = Run(*PLAN, "--gpu", "a100", "--calibration", PROFILE)
same(r.code, 0, "a plan with the profile", r)
r = Run(*PLAN, "--gpu", "h200", "--calibration", PROFILE)
ok(r.code == 2 and "is of a100-80-sxm, the scenario plans for h200" in r.out + r.err,
   "the profile of another card", r)
r = Run(*PLAN, "--gpu", "a100", "--calibration", os.path.join(HERE, "gemm.csv"))
same(r.code, 2, "no profile at all", r)


def basis(run):
    return run.json()["latency"]["tpot_ms"]["basis"]


r = Run(*PLAN, "--gpu", "h100")
same((r.code, basis(r)), (0, "calibrated"), "the shipped profile of the card is used", r)
r = Run(*PLAN, "--gpu", "a10", "--context", "8192")
same((r.code, basis(r)), (0, "class"), "a card without one: its class", r)
own = os.path.join(DIR, "home", ".config", "vramplan", "calibration")
os.makedirs(own)
with open(os.path.join(own, "h100-sxm.yaml"), "w") as f:
    f.write("vramplan_calibration: 1\ngpu: h100-sxm\nunits: none\n")
r = Run(*PLAN, "--gpu", "h100")
ok(r.code == 2 and "h100-sxm.yaml:3:" in r.err and "units" in r.err,
   "the user's own goes first; a fault in it is told with its place", r)
finish()
