#!/usr/bin/env python3
"""timeline: its text, JSON, table, trace and drawing, and what it refuses."""
import csv
import io
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
from tap import DIR, Run, finish, ok, same  # noqa: E402

TORCH, PIPELINE = "train-torch.yaml", "train-pipeline.yaml"


def path(name):
    return os.path.join(DIR, name)


def content(name):
    with open(path(name)) as f:
        return f.read()


def texts():
    for scenario in (TORCH, PIPELINE):
        r = Run("timeline", scenario)
        same((r.code, r.err), (0, ""), "%s: text" % scenario)
        ok(all(len(line) <= 80 for line in r.out.splitlines()), "in 80 columns", r)
        ok(r.out.count("  the peak") == 1 and "slice by slice" in r.out and "at the peak" in r.out,
           "phases, slices, components", r)
        same(Run("timeline", scenario).bytes, r.bytes, "the same input, the same bytes")
    ok("micro batches repeat those before" in Run("timeline", PIPELINE).out,
       "what is left out is said", r)


def figures(scenario, *options):
    """JSON and table say the same, and agree with the plan."""
    doc = Run("timeline", scenario, "--format", "json", *options)
    step = doc.json()["step"]
    peak = step["peak"]
    same(doc.json()["schema"], "vramplan.timeline/1", "%s: schema" % scenario)
    same(sum(peak["components"].values()), peak["bytes"], "components add up to the peak", doc)
    same(max(p["bytes"] for p in step["phases"]), peak["bytes"], "the peak is one of the phases")
    table = Run("timeline", scenario, "--format", "csv", *options)
    rows = list(csv.DictReader(io.StringIO(table.out)))
    parts = [c for c in rows[0] if c.endswith("_bytes") and
             c not in ("total_bytes", "kept_bytes", "reserved_bytes")]
    ok(all(sum(int(r[c]) for c in parts) == int(r["total_bytes"]) for r in rows),
       "the columns of a row add up", table)
    same(max(int(r["total_bytes"]) for r in rows if r["step"] == "2"), peak["bytes"],
         "the highest row is the peak")
    ok(all(int(r["reserved_bytes"]) >= int(r["total_bytes"]) for r in rows),
       "reserved is never less than allocated")
    ends = [int(r["event"]) + int(r["events"]) for r in rows]
    gaps = [int(r["event"]) - end for r, end in zip(rows[1:], ends)]
    ok(set(gaps) <= {0, 1}, "each row begins where the last one ends, or a mark behind it", gaps)
    first = doc.json()["first_step"]["phases"]
    ok("optimizer" not in first[0]["components"] and "optimizer" in step["phases"][0]["components"],
       "the first step begins without optimizer states", doc)
    ok(doc.json()["allocator"]["reserved_peak_bytes"] >= peak["bytes"], "reserved peak", doc)
    return doc.json(), rows


def exports():
    r = Run("timeline", TORCH, "--csv", path("t.csv"), "--chrome-trace", path("t.json"), "-o",
            path("t.txt"))
    same((r.code, r.out, r.err), (0, "", ""), "several files at once")
    same(content("t.csv"), Run("timeline", TORCH, "--format", "csv").out, "--csv is the table")
    same(content("t.txt"), Run("timeline", TORCH).out, "-o is the text")
    events = json.loads(content("t.json"))["traceEvents"]
    bars = [e for e in events if e["ph"] == "X"]
    ok(all(e["dur"] >= 0 and e["pid"] == 0 and e["name"] for e in bars), "bars of the trace", bars)
    ok({"forward", "backward", "optimizer"} <= {e["name"] for e in bars if e["tid"] == 2},
       "phases are bars")
    peak = Run("timeline", TORCH, "--format", "json").json()["step"]["peak"]["bytes"]
    same(max(sum(e["args"].values()) for e in events if e["name"] == "allocated"), peak,
         "the counters reach the peak")


def drawing():
    r = Run("timeline", TORCH, "--plot", path("none.png"), env={"PATH": "/nonexistent"})
    same(r.code, 4, "without gnuplot it ends with 4")
    ok("[VP904]" in r.err and "gnuplot-nox" in r.err and "none.gp" in r.err, "and says so", r)
    ok("at the peak" in r.out, "the text is there all the same")
    ok(content("none.dat").count("\n") > 50 and "plot" in content("none.gp"),
       "script and data are kept")
    if not shutil.which("gnuplot"):
        ok(True, "drawing # SKIP no gnuplot")
        return
    for name, begins in (("it's a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
        r = Run("timeline", PIPELINE, "--plot", path(name))
        same((r.code, r.err), (0, ""), "--plot %s" % name)
        with open(path(name), "rb") as f:
            ok(f.read(5).startswith(begins), "is such a file")
    os.mkdir(path("folder.png"))
    r = Run("timeline", TORCH, "--plot", path("folder.png"))
    ok(r.code == 4 and "gnuplot failed" in r.err, "a gnuplot that fails", r)
    os.mkdir(path("data.dat"))
    r = Run("timeline", TORCH, "--plot", path("data.png"))
    ok(r.code == 4 and "data.dat" in r.err, "data that cannot be written", r)


def refused():
    for words, said in (
            (["one.yaml"], "has nothing to train"),
            (["several.yaml"], "wants one scenario"),
            ([PIPELINE, "--stage", "4"], "from 0 to 3"),
            ([PIPELINE, "--stage", "x"], "from 0 to 3"),
            ([TORCH, "--plot", "a.gif"], ".png, .svg, .pdf or .txt"),
            ([TORCH, "--format", "markdown"], "no --format markdown"),
            (["nowhere.yaml"], "nowhere.yaml"),
            ([TORCH, PIPELINE], "takes one argument")):
        r = Run("timeline", *words)
        ok(r.code == 2 and said in r.err and not r.out, "refused: %s" % " ".join(words), r)
    r = Run("timeline", "one.yaml", "--format", "json")
    ok(r.code == 2 and r.json()["diagnostics"], "refused in JSON", r)


texts()
figures(TORCH)
for stage in "0", "3":
    doc, rows = figures(PIPELINE, "--stage", stage)
    same(doc["stage"], int(stage), "--stage %s" % stage)
    left = sum(int(r["left_out"]) for r in rows if r["step"] == "2")
    same(left, doc["left_out_micro_batches"], "micro batches left out")
    ok(left > 10, "there are some", doc)
plan = Run("plan", PIPELINE, "--format", "json").json()["training"]["stages"]
for stage, said in enumerate(plan):
    peak = Run("timeline", PIPELINE, "--stage", str(stage), "--format", "json").json()["step"]["peak"]
    likely = said["allocated_peak_bytes"]
    likely = likely["likely"] if isinstance(likely, dict) else likely
    ok(abs(peak["bytes"] - likely) <= likely / 200, "stage %d peaks where the plan says" % stage,
       (said, peak))
settings = ["--set", "engine.env.PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"]
plain, grown = (Run("timeline", TORCH, "--format", "json", *s).json()["allocator"]
                for s in ([], settings))
ok(grown["segments_peak"] < plain["segments_peak"], "the allocator's settings count", grown)
exports()
drawing()
refused()
finish()
