#!/usr/bin/env python3
"""fit --pack: several programs on one node. Every program is planned again beside the others; what
is said of GPUs and phases has to add up; what does not fit says by how much."""
import os
import shlex
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import DIR, TOP, Run, finish, ok, same  # noqa: E402

SERVE = """vramplan: 1
model: %s
engine: {name: vllm, version: "0.19", args: {gpu_memory_utilization: 0.9, max_model_len: 8192}}
serve: {context: 8192, concurrency: 16}
"""
GROUP = os.path.join(TOP, "docs", "group.yaml")
PHASES = ["--phase", "generate=rollout", "--phase", "score=reference,reward", "--phase", "update=actor"]


def write(name, text):
    path = os.path.join(DIR, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def check(name, words, code=0):
    run = Run("fit", *words, "--pack", "--format", "json")
    doc = run.json()
    same((run.code, doc["question"]), (code, "pack"), "%s: exit code" % name, run)
    text = Run("fit", *words, "--pack")
    ok(text.code == code and all(len(line) <= 80 or DIR in line for line in text.out.split("\n")),
       "%s: 80 columns" % name, text)
    same(Run("fit", *words, "--pack").bytes, text.bytes, "%s: the same bytes" % name)
    if code == 1:
        return doc
    room = doc["memory_bytes"] - doc["reserved_bytes"]
    for g, device in enumerate(doc["devices"]):
        for phase in doc["phases"]:
            load = sum(p["takes_bytes"] if phase in p["works_in"] else p["idle_bytes"]
                       for p in doc["programs"] if g in p["gpus"])
            if load != device["load_bytes"][phase] or load > room:
                ok(False, "%s: gpu %d, %s: loads add up" % (name, g, phase), (load, device))
    for p in doc["programs"]:
        again = Run(*shlex.split(p["command"])[1:], "--format", "json")
        plan = again.json()
        rank = ["fits", "at-risk", "does-not-fit"].index
        ok(rank(plan["verdict"]) <= rank(doc["verdict"]), "%s: %s, planned again beside the others" %
           (name, p["scenario"]), again)
        others = [doc["devices"][g]["load_bytes"][phase] - p["takes_bytes"]
                  for g in p["gpus"] for phase in p["works_in"]]
        same(max(others), p["others_bytes"], "%s: %s, what others take" % (name, p["scenario"]))
        same(len(p["gpus"]), p["parallel"]["tensor"] * p["parallel"]["pipeline"] * p["parallel"]["data"],
             "%s: %s, as many GPUs as ranks" % (name, p["scenario"]))
    return doc


def servers():
    files = [write(m + ".yaml", SERVE % m) for m in ("llama-3.1-70b", "llama-3-8b", "qwen3-30b-a3b")]
    doc = check("a node", [*files, "--gpu", "mi300x", "--count", "8"])
    used = [g for p in doc["programs"] for g in p["gpus"]]
    same(len(used), len(set(used)), "none is shared where there are enough", used)
    ok(all(p["share"]["field"] == "engine.args.gpu_memory_utilization" for p in doc["programs"]),
       "the share to set", doc["programs"])
    doc = check("two cards", [*files, "--gpu", "mi300x", "--count", "2"])
    used = [g for p in doc["programs"] for g in p["gpus"]]
    same((len(used), set(used)), (3, {0, 1}), "two small ones share a card", used)
    for p in doc["programs"]:  # the smallest share: a hundredth less does not do
        share = "%.2f" % (float(p["share"]["to"]) - 0.01)
        r = Run(*shlex.split(p["command"])[1:], "--set", "engine.args.gpu_memory_utilization=%s" % share)
        ok(r.code != 0, "%s with a share of %s does not" % (p["scenario"], share), r)
    doc = check("one card", [*files, "--gpu", "mi300x", "--count", "1"], code=1)
    ok(doc["short"]["bytes"] > 1 << 33 and "fullest GPU" in doc["short"]["text"], "by how much", doc["short"])
    doc = check("small cards", [*files, "--gpu", "mi210", "--count", "2"], code=1)
    ok("does not fit even by itself" in doc["short"]["text"], "which one", doc["short"])
    doc = check("the same twice", [files[1], files[1], "--gpu", "mi300x"])
    same([p["gpus"] for p in doc["programs"]], [[0], [0]], "two of a model on one card")


def group():
    path = GROUP
    apart = check("together", [path, "--count", "8"])
    doc = check("in phases", [path, "--count", "8", *PHASES])
    same(doc["phases"], ["generate", "score", "update"], "phases")
    idle = {p["scenario"]: p["idle"] for p in doc["programs"]}
    same(idle, {"actor": "between-steps", "reference": "asleep", "rollout": "asleep", "reward": "resident"},
         "what each leaves while it does not work")
    most = [max(max(d["load_bytes"].values()) for d in x["devices"]) for x in (doc, apart)]
    ok(most[0] < most[1], "in phases the fullest GPU has more room", most)
    ok(doc["host_bytes"] > 0, "sleeping weights are in host memory", doc["host_bytes"])
    short = check("little host memory", [path, "--count", "8", *PHASES, "--set", "hardware.host_memory=64GiB"], code=1)
    ok("host memory" in short["short"]["text"], "host memory is counted over all", short["short"])
    doc = check("tight", [path, "--count", "8", *PHASES, "--set", "hardware.memory=60GiB"],
                code=Run("fit", path, "--pack", "--count", "8", *PHASES, "--set", "hardware.memory=60GiB").code)
    doc = check("a small node", [path, "--count", "4"], code=1)
    ok("laid out for 8 GPUs" in doc["short"]["text"], "a layout that is larger than the node", doc["short"])


def refused():
    path = GROUP
    a, b = write("a.yaml", SERVE % "llama-3-8b"), write("b.yaml", (SERVE % "llama-3-8b") + "hardware: {gpu: h200}\n")
    for words, said in (
            ([path, "--count", "0"], "1 to 64"), ([path, "--count", "many"], "1 to 64"),
            ([path, "--phase", "x=nobody"], "column 3"), ([path, "--phase", "=actor"], "--phase is NAME="),
            ([path, "--maximize", "context"], "ask one"), ([path, "--slo", "tpot=1s"], "--pack"),
            ([a, b, "--set", "hardware.memory=none"], "memory"),
            ([write("c.yaml", (SERVE % "llama-3-8b") + "hardware: {gpu: mi300x}\n"), b], "VP104"),
            ([os.path.join(DIR, "no.yaml")], "no.yaml")):
        r = Run("fit", *words, "--pack")
        ok(r.code == 2 and said in r.err.replace("\n", " ") and not r.out, "refused: %s" % said, r)


servers()
group()
refused()
finish()
