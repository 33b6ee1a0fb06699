#!/usr/bin/env python3
"""fit for training: proposals of every framework planned again, the global batch is kept, adapters
are a task of their own and never proposed, how far batch and length go, packs with phases."""
import os
import shlex
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import DIR, Run, finish, ok, same  # noqa: E402

ENGINES = {"pytorch": '{name: pytorch, version: "2.9"}', "deepspeed": '{name: deepspeed, version: "0.18"}',
           "megatron": '{name: megatron, version: "0.14"}', "trainer": '{name: transformers, version: "5.0"}'}
SHAPE = """vramplan: 1
model: %s
hardware: {gpu: mi300x, count: %d}
engine: %s
parallel: {data: %d}
train: {micro_batch: %d, global_batch: %d, sequence_length: %d, optimizer: adamw}
"""


def write(name, engine, model="llama-3.1-8b", data=8, micro=4, batch=64, length=4096):
    path = os.path.join(DIR, name)
    with open(path, "w") as f:
        f.write(SHAPE % (model, data, ENGINES[engine], data, micro, batch, length))
    return path


def check(name, words, code=0):
    run = Run("fit", *words, "--format", "json")
    doc = run.json()
    same(run.code, code, "%s: exit code" % name, run)
    for i, p in enumerate(doc["proposals"]):
        plan = Run(*shlex.split(p["command"])[1:], "--format", "json").json()
        ok(plan["verdict"] == p["verdict"] and plan["summary"]["need_bytes"] == p["need_bytes"],
           "%s: proposal %d is the plan of its command" % (name, i + 1), (p, plan["summary"]))
    if name not in ("pytorch", "--maximize batch"):
        return doc
    text = Run("fit", *words)
    ok(text.code == code and all(len(line) <= 80 or DIR in line for line in text.out.split("\n")),
       "%s: 80 columns" % name, text)
    return doc


def frameworks():
    for engine in ENGINES:
        path = write("%s.yaml" % engine, engine, micro=8)
        doc = check(engine, [path, "--set", "hardware.memory=60GiB"])
        ok(doc["verdict"] in ("fits", "does-not-fit") and (doc["proposals"] or doc.get("nearest")),
           "%s: an answer" % engine, doc)
        for p in doc["proposals"]:
            changed = {c["lever"] for c in p["changes"]}
            ok("lora" not in " ".join(p["scenario_patch"]), "%s: no adapters" % engine, p)
            if "micro-batch" in changed:
                same(p["scenario_patch"].get("train.global_batch", "64"), "64",
                     "%s: the global batch is kept" % engine, p)
            ok(("sequence-length" in changed) or p["workload_kept"] == 1,
               "%s: nothing but the length takes of the workload" % engine, p)


def one_lever():
    path = write("loss.yaml", "pytorch", data=1, micro=4, batch=8)
    keep = "gpus,gpu,layout,micro-batch,recompute,optimizer,sequence-length,host-optimizer," \
           "host-activations,host-parameters"
    doc = check("loss", [path, "--keep", keep, "--set", "train.recompute=full"])
    ok(doc["verdict"] == "fits" or doc["short"]["bytes"] > 0, "either it fits or it says what is missing", doc)
    shard = check("shard", [write("shard.yaml", "pytorch", micro=1, batch=8), "--keep",
                            "gpus,gpu,layout,optimizer,recompute,host-optimizer,host-parameters,loss"])
    if shard["changes_needed"] == 1:
        ok(any(p["changes"][0]["lever"] == "shard" for p in shard["proposals"]), "shards do", shard["proposals"])


def most():
    path = write("batch.yaml", "pytorch", model="llama-3.2-1b", micro=1, batch=8)
    words = [path, "--set", "parallel.fsdp=true", "--set", "train.recompute=full"]
    doc = check("--maximize batch", [*words, "--maximize", "batch"])
    first = doc["proposals"][0]
    same((doc["goal"], first["changes"]), ("batch", []), "as it is, first")
    more = first["batch"] + 1
    r = Run("plan", *words, "--set", "train.micro_batch=%d" % more, "--set", "train.global_batch=%d" % (8 * more))
    ok(r.code != 0, "one more does not fit", r)
    doc = check("--maximize context", [*words, "--maximize", "context"])
    ok(doc["proposals"][0]["context"] >= 4096, "and the longest sequence", doc["proposals"][0])
    doc = check("--maximize context from --seq", [*words, "--seq", "1k", "--maximize", "context"])
    ok(doc["proposals"][0]["context"] >= 4096, "a length given is where the search starts", doc["proposals"][0])
    r = Run("fit", *words, "--maximize", "concurrency")
    ok(r.code == 2 and "no sequences at once" in r.err, "training has none", r)


frameworks()
one_lever()
most()
finish()
