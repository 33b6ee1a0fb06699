#!/usr/bin/env python3
"""checkpoint for a scenario: its report in all forms, what each framework is told, what is refused."""
import csv
import io
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
from tap import DIR, Run, finish, ok, same  # noqa: E402

TORCH, PIPELINE = "train-torch.yaml", "train-pipeline.yaml"
NAMES = ["pytorch", "hf", "torchtune", "megatron", "primus", "deepspeed", "vramplan"]


def check(scenario, *more):
    return Run("checkpoint", scenario, *more)


def reports():
    whole = check(TORCH)
    same((whole.code, whole.err), (0, ""), "a step that fits")
    ok("Best plan: " in whole.out and "Times are shares of forward and backward pass, by " in whole.out, "says what its times are", whole)
    same(check(TORCH).bytes, whole.bytes, "the same input, the same bytes")
    for budget, code in (("4 GiB", 1), ("60 GiB", 0)):
        r = check(TORCH, "--budget", budget)
        same((r.code, r.err), (code, ""), "exit code within %s" % budget)
    ok("No plan fits: " in check(TORCH, "--budget", "4 GiB").out, "no plan is said")
    markdown = check(PIPELINE, "--format", "markdown")
    ok("| stage |" in markdown.out and "| --emit |" in markdown.out, "markdown", markdown)


def figures(scenario, budget):
    r = check(scenario, "--budget", budget, "--format", "json")
    doc = r.json()
    same(doc["schema"], "vramplan.checkpoint/1", "%s: schema" % scenario)
    same(list(doc["frameworks"]), NAMES, "all frameworks")
    told = {name: f for name, f in doc["frameworks"].items() if f}
    best = told["pytorch"]
    ok(all(f["time_ns"] >= best["time_ns"] for f in told.values()
           if f["verdict"] == best["verdict"] != "does-not-fit"), "nothing is faster than the best", doc)
    for name, f in told.items():
        for i, layer in enumerate(f["layers"]):
            if layer["recomputed"] and (layer["segment"] > i or layer["parts"]):
                ok(False, "a layer is recomputed as part of what begins before it", (name, i, layer))
    rows = list(csv.DictReader(io.StringIO(check(scenario, "--budget", budget, "--format", "csv").out)))
    same([r["framework"] for r in rows], NAMES, "CSV has the same frameworks")
    same([r["verdict"] for r in rows if r["verdict"]], [f["verdict"] for f in told.values()],
         "and verdicts")
    same([int(r["need_bytes"]) for r in rows if r["need_bytes"]],
         [f["need_bytes"]["likely"] for f in told.values()], "and needs")
    return doc


def settings(text):
    """key: value lines without comments"""
    lines = [l for l in text.splitlines() if l and not l.startswith("#")]
    return dict(l.split(": ", 1) for l in lines if ": " in l)


def emitted():
    doc = figures(PIPELINE, "27 GiB")
    layers = {name: f["layers"] for name, f in doc["frameworks"].items() if f}
    figures(TORCH, "30 GiB")

    def emit(name, *more):
        r = check(PIPELINE, "--budget", "27 GiB", "--emit", name, *more)
        ok(r.code in (0, 3) and not r.err, "--emit %s" % name, r)
        ok(r.out.startswith("# recompute for "), "begins with what it is", r)
        ok("more time than without recomputation" in r.out and "tightest on pipeline stage" in r.out,
           "and what it costs", r)
        return r.out

    primus = settings(emit("primus"))
    if "recompute_layer_ids" in primus and primus["recompute_layer_ids"] != "null":
        same(json.loads(primus["recompute_layer_ids"]),
             [i for i, l in enumerate(layers["primus"]) if l["recomputed"]], "ids of the plan's layers")
        same((primus["recompute_granularity"], primus["recompute_method"]), ("full", "null"),
             "as Primus wants it")
    else:
        ok(False, "this budget is for a list of layers", primus)
    words = [l for l in emit("megatron").splitlines() if not l.startswith("#")][0].split()
    same(words[0], "--recompute-granularity", "options of Megatron-LM")
    ok(words[1] in ("full", "selective"), "full or selective", words)
    text = emit("deepspeed")
    space = {}
    exec(text, space)
    ok(space["ds_config"]["pipeline"]["activation_checkpoint_interval"] > 0, "DeepSpeed's dictionary", text)
    plan = emit("vramplan")
    ok("train:\n  recompute: " in plan, "a scenario's setting", plan)
    torch = emit("pytorch")
    compile(torch, "plan.py", "exec")
    pieces = [i for i, l in enumerate(layers["pytorch"]) if l["recomputed"] and l["segment"] == i]
    line = [l for l in torch.splitlines() if l.startswith("SEGMENTS = ")][0]
    same([first for first, last in eval(line.split(" = ")[1])], pieces, "pieces of the plan")
    whole = check(TORCH, "--emit", "hf")
    ok("gradient_checkpointing=False" in whole.out and whole.code == 0, "Trainer recomputes nothing", whole)
    tune = check(TORCH, "--emit", "torchtune")
    ok("enable_activation_checkpointing: False" in tune.out, "torchtune neither", tune)


def again():
    """What is printed for scenarios is read back, and needs what was said."""
    text = check(PIPELINE, "--budget", "27 GiB", "--emit", "vramplan").out
    value = text.split("recompute: ")[-1].strip()
    said = check(PIPELINE, "--budget", "27 GiB", "--format", "json").json()
    plan = Run("plan", PIPELINE, "--set", "train.recompute=" + value, "--set", "budget.memory=27 GiB",
               "--format", "json")
    if plan.json().get("devices"):
        need = max(d["peak"]["bytes"] for d in plan.json()["devices"] if d["kind"] == "gpu")
        ok(abs(need - said["frameworks"]["vramplan"]["need_bytes"]["likely"]) < 2 << 30,
           "the plan of the printed setting needs about that", (need, said["frameworks"]["vramplan"]))
    else:
        ok(False, "the printed setting is read", plan)


def files():
    path = os.path.join(DIR, "frontier.csv")
    r = check(PIPELINE, "--budget", "27 GiB", "--frontier", path)
    ok(r.code in (0, 3), "--frontier", r)
    with open(path) as f:
        rows = list(csv.DictReader(f))
    times = [int(row["time"]) for row in rows]
    ok(len(rows) > 2 and times == sorted(times, reverse=True), "more memory, less time", rows[:3])
    if not shutil.which("gnuplot"):
        print("# gnuplot is not here")
        return
    image = os.path.join(DIR, "it's.svg")
    r = check(PIPELINE, "--budget", "27 GiB", "--plot", image)
    ok(r.code in (0, 3) and os.path.getsize(image) > 1000, "--plot", r)


def refused():
    for words, wanted in ((("--emit", "keras"), "keras"), (("--budget", "much"), "--budget is a size"),
                          (("--inflight", "2"), "goes with --chain"),
                          (("--class", "b"), "goes with --frontier")):
        r = check(TORCH, *words)
        ok(r.code == 2 and wanted in r.err, "refused: %s" % " ".join(words), r)
    r = check(PIPELINE, "--emit", "torchtune")
    ok(r.code == 2 and "no pipeline stages" in r.err, "no pipeline in torchtune", r)
    r = check("one.yaml")
    ok(r.code == 2 and "nothing to train" in r.err, "a scenario that serves", r)
    r = Run("checkpoint", "--chain", "x.json", "--budget", "1GiB", "--emit", "hf")
    ok(r.code == 2 and "goes with a scenario" in r.err, "a bare chain has no framework", r)


reports()
emitted()
again()
files()
refused()
finish()
