#!/usr/bin/env python3
"""fit for servers: what makes it fit, how far it goes, on how few GPUs, what was promised. Every
proposal is planned again, by its patch and by its command."""
import os
import shlex
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import DIR, Run, finish, ok, same  # noqa: E402

SHAPE = """vramplan: 1
model: %s
hardware: {gpu: %s}
engine: {%s}
serve: {context: %s, concurrency: %s}
"""


def write(name, model="llama-3.1-8b", gpu="mi210", engine='name: vllm, version: "0.19"',
          context="8192", concurrency="16"):
    path = os.path.join(DIR, name)
    with open(path, "w") as f:
        f.write(SHAPE % (model, gpu, engine, context, concurrency))
    return path


def again(p, words):
    """The plan that a proposal's command makes; words: what was typed behind `fit FILE`."""
    command = shlex.split(p["command"])
    same(command[:2], ["vramplan", "plan"], "the command is a plan", p)
    return Run(*command[1:], "--format", "json")


def check(name, words, code=0):
    run = Run("fit", *words, "--format", "json")
    doc = run.json()
    same(run.code, code, "%s: exit code" % name, run)
    for i, p in enumerate(doc["proposals"]):
        plan = again(p, words).json()
        ok(plan["verdict"] == p["verdict"] and plan["summary"]["need_bytes"] == p["need_bytes"] and
           plan["summary"]["headroom_bytes"] == p["headroom_bytes"],
           "%s: proposal %d is the plan of its command" % (name, i + 1), (p, plan["summary"]))
    same([p["verdict"] for p in doc["proposals"]],
         sorted((p["verdict"] for p in doc["proposals"]), reverse=True),
         "%s: what fits for sure comes first" % name)
    text = Run("fit", *words)
    ok(text.code == code and all(len(line) <= 80 or DIR in line for line in text.out.split("\n")),
       "%s: 80 columns" % name, text)
    same(Run("fit", *words).bytes, text.bytes, "%s: the same bytes" % name)
    return doc


def changes():
    big = write("big.yaml", "llama-3.1-70b", "mi300x", context="32768", concurrency="5")
    doc = check("70b", [big])
    same((doc["question"], doc["verdict"], doc["changes_needed"]), ("changes", "fits", 1), "one is enough")
    levers = {p["changes"][0]["lever"] for p in doc["proposals"]}
    ok({"weights", "gpus"} <= levers, "weights in 8 bit or more GPUs would do", levers)
    fp8 = next(p for p in doc["proposals"] if p["changes"][0]["to"] == "fp8")
    risk = fp8["changes"][0]["risk"]
    ok(risk["publishers"] >= 2 and risk["low"] <= risk["likely"] <= risk["high"],
       "the risk of fp8 has two publishers and a range", risk)
    kept = check("70b, the machine stays", [big, "--keep", "gpus,gpu,weights"])
    ok(not {c["lever"] for p in kept["proposals"] for c in p["changes"]} & {"gpus", "gpu", "weights"},
       "--keep: none of those is changed", kept["proposals"])
    fits = check("fits as it is", [write("fits.yaml")])
    same((fits["verdict"], fits["changes_needed"], fits["proposals"]), ("fits", 0, []), "nothing to change")
    ok(fits["max_context"] >= 8192 and fits["max_concurrency"] >= 16, "what it would still allow", fits)
    for field, value, most in (("serve.context", fits["max_context"], 131072),
                               ("serve.concurrency", fits["max_concurrency"], 65536)):
        same(Run("plan", write("fits.yaml"), "--set", "%s=%d" % (field, value)).code, 0,
             "the limit of %s fits" % field)
        if value < most:
            ok(Run("plan", write("fits.yaml"), "--set", "%s=%d" % (field, value + 1)).code != 0,
               "and one more does not")
    moe = write("moe.yaml", "qwen3-235b-a22b", "mi300x", context="16384")
    doc = check("mixture of experts", [moe, "--keep", "weights,gpu"])
    ok(any(p["gpus"] > 1 for p in doc["proposals"]), "more GPUs would do", doc["proposals"])


def engines():
    doc = check("sglang", [write("sglang.yaml", "llama-3.1-70b", "mi300x",
                                 'name: sglang, version: "0.5"', "32768", "64")])
    ok(doc["proposals"], "sglang has proposals", doc)
    hf = write("hf.yaml", "llama-3.1-8b", "r9700", 'name: transformers, version: "4.55"', "4096", "4")
    doc = check("transformers", [hf])
    first = doc["proposals"][0]["changes"][0]
    same((first["lever"], first["to"]), ("compute", "bf16"), "transformers 4 loads fp32 unless told", first)


def nothing():
    words = [write("405b.yaml", "llama-3.1-405b", "r9700", context="65536"), "--keep",
             "gpus,gpu,layout,weights,host-weights"]
    doc = check("nothing does", words, code=1)
    same((doc["verdict"], doc["proposals"]), ("does-not-fit", []), "no proposals")
    ok(doc["short"]["bytes"] > 1 << 36 and "weights" in doc["short"]["text"] and doc["nearest"],
       "which limit, by how much, and what comes nearest", doc["short"])


def most():
    path = write("fits.yaml")
    for goal, flag in (("context", "serve.context"), ("concurrency", "serve.concurrency")):
        doc = check("--maximize %s" % goal, [path, "--maximize", goal])
        same(doc["goal"], goal, "the goal is told")
        for p in doc["proposals"]:
            patch = [w for k, v in p["scenario_patch"].items() if k != flag
                     for w in ("--set", "%s=%s" % (k, v))]
            more = Run("plan", path, *patch, "--set", "%s=%d" % (flag, p[goal] + 1))
            ok(p["limited_by"] == "model" or more.code != 0, "%s %d is the most there is" % (goal, p[goal]), more)
    r = Run("fit", path, "--maximize", "context", "--context", "8k")
    ok(r.code == 2 and "VP104" in r.err, "what is maximised must not be given", r)


def fewest():
    path = write("405b-fp8.yaml", "llama-3.1-405b-fp8", "mi300x", context="32768", concurrency="8")
    gpus = ["--gpu", "mi300x,h200,mi325x"]
    doc = check("--minimize gpus", [path, "--minimize", "gpus", *gpus])
    counts = [p["gpus"] for p in doc["proposals"]]
    same(counts, sorted(counts), "the fewest first", counts)
    best = doc["proposals"][0]
    for n in range(1, best["gpus"]):
        for tensor in (t for t in range(1, n + 1) if n % t == 0):
            r = Run("plan", path, "--gpu", best["gpu"], "--count", str(n), "--tp", str(tensor), "--pp",
                    str(n // tensor))
            ok(r.code != 0, "%d x %s, tensor %d, does not" % (n, best["gpu"], tensor), r)
    doc = check("--minimize cost", [path, "--minimize", "cost", *gpus, "--price", "mi300x=2.5,h200=2"])
    prices = [p["price_per_hour"] for p in doc["proposals"] if p["price_per_hour"]]
    ok(prices and prices == sorted(prices), "the cheapest first", prices)
    ok(all(p["gpu"] != "mi325x" for p in doc["proposals"][:len(prices)]),
       "a card without a price is behind them", doc["proposals"])
    doc = check("no price", [path, "--minimize", "cost", *gpus])
    ok(any("no price is known" in n for n in doc["notes"]), "no price: that is said", doc["notes"])
    told = Run("fit", path, "--minimize", "gpus", *gpus)
    lines = [line for line in told.out.splitlines() if line]
    first = next(n for n, line in enumerate(lines) if "fit" in line.lower())
    ok(first <= 2 and lines[first].startswith("FITS  on %d x %s, the fewest" % (best["gpus"], best["gpu"])),
       "the answer leads", told)
    own = [line for line in lines if "does not fit" in line.lower()]
    ok(len(own) == 1 and own[0].startswith("as it is, 1 x mi300x: does not fit, ") and own[0].endswith(" GiB short"),
       "the scenario as it is takes one line", told)
    told = Run("fit", path, "--minimize", "cost", *gpus, "--price", "mi300x=2.5,h200=2")
    ok("FITS  for %g per hour, the least" % prices[0] in told.out, "the least money leads", told)
    told = Run("fit", "llama-3.1-405b", "--engine", "vllm", "--minimize", "gpus", "--gpu", "rtx3080-10")
    ok(told.code == 1 and "DOES NOT FIT  in no layout that was tried" in told.out, "or that there is none", told)


def promises():
    path = write("slo.yaml", "llama-3.1-70b", "mi300x",
                 'name: vllm, version: "0.19", args: {max_model_len: 8192}', "4096", "16")
    free = Run("fit", path, "--format", "json").json()
    same(free["slo"], None, "nothing was promised")
    doc = check("kept", [path, "--slo", "tpot_p95=10s"])
    ok(doc["slo"]["state"] in ("likely", "open") and doc["slo"]["tpot_p95"] == "10s", "its state is told", doc["slo"])
    r = Run("fit", path, "--slo", "tpot_p95=1us", "--format", "json")
    doc = r.json()
    same((r.code, doc["verdict"]), (1, "does-not-fit"), "no set-up is that fast", r)
    ok("tpot_p95=1us is promised" in doc["short"]["text"] and "at least" in doc["short"]["text"],
       "which promise is broken, and the basis of the figure", doc["short"])
    tight = Run("plan", path, "--format", "json").json()["latency"]["tpot_ms"]
    if tight["basis"] != "bound":
        limit = "tpot=%.3fms" % (tight["likely"] * 0.8)
        r = Run("fit", path, "--slo", limit, "--format", "json")
        for p in r.json()["proposals"]:
            ok(p["slo"] in ("likely", "open"), "proposals keep it", p)
        doc = Run("fit", path, "--maximize", "concurrency", "--slo", limit, "--format", "json").json()
        ok(doc["proposals"][0]["limited_by"] in ("latency", "memory"), "what ends it", doc["proposals"][0])


def largest():
    small, large = write("small.yaml", "llama-3.1-8b"), write("large.yaml", "qwen2.5-14b")
    huge = write("huge.yaml", "llama-3.1-405b")
    r = Run("fit", small, huge, large, "--gpu", "mi300x", "--format", "json")
    doc = r.json()
    same((r.code, doc["question"], doc["verdict"]), (0, "largest", "fits"), "one fits", r)
    same([os.path.basename(m["input"]) for m in doc["ranking"]], ["large.yaml", "small.yaml", "huge.yaml"],
         "the largest that fits first, what does not last")
    change = doc["ranking"][2]["smallest_change"]
    same(again(change, []).code, 0, "with its smallest change it fits", change)
    r = Run("fit", small, huge, large, "--gpu", "mi300x")
    ok("the largest that fits: %s" % large in r.out.replace("\n  ", " "), "the same as text", r)
    r = Run("fit", huge, os.path.join(DIR, "no.yaml"), "--gpu", "mi300x", "--format", "json")
    same((r.code, r.json()["ranking"][1]["verdict"]), (2, None), "one cannot be read", r)


def refused():
    path = write("fits.yaml")
    for words, said in (
            (["--maximize", "context", "--minimize", "gpus"], "ask one"),
            (["--minimize", "gpus", "--count", "4"], "searches layouts"),
            (["--gpu", "mi300x,h200"], "only with --minimize"),
            (["--minimize", "gpus", "--gpu", "mi300x,mi30x"], "VP301"),
            (["--slo", "speed=1s"], "column 1"),
            (["--slo", "ttft_p99=2s,tpot=5"], "column 18"),
            (["--slo", "ttft_p99=-2s"], "no time above 0"),
            (["--minimize", "cost", "--price", "mi300x=2,h200=x"], "column 10"),
            (["--keep", "weights,cards"], "column 9"),
            (["--phase", "a=b"], "belongs to --pack"),
            (["--maximize", "layers"], "hold all layers")):
        r = Run("fit", path, *words)
        ok(r.code == 2 and said in r.err.replace("\n", " ") and not r.out, "refused: %s" % said, r)


def help_text():
    told = " ".join(Run("fit", "--help").out.split())
    ok("--keep CHANGE,... changes that are not to be made" in told and "not for llama.cpp and ollama" in told,
       "--keep says which engines it is not for", told)


help_text()
changes()
engines()
nothing()
most()
fewest()
promises()
largest()
refused()
finish()
