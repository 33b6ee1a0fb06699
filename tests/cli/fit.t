#!/usr/bin/env python3
"""fit: every proposal holds when it is planned again, its command says the same, and what is
refused. llama.cpp and ollama are searched; other engines show the plan's suggestions."""
import os
import shlex
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gguf_writer  # noqa: E402
from tap import DIR, Run, finish, ok, same  # noqa: E402

DENSE, MOE = os.path.join(DIR, "dense.gguf"), os.path.join(DIR, "it's a moe.gguf")
gguf_writer.write(DENSE, layers=32, hidden=4096, width=14336, heads=32, kv_heads=8)
gguf_writer.write(MOE, layers=24, hidden=2048, width=1024, experts=32)
GPU = ["--gpu", "rx7900xtx"]
FIELDS = {"-ngl": "n_gpu_layers", "-c": "ctx_size", "-np": "parallel", "-fa": "flash_attn",
          "-ctk": "cache_type_k", "-ctv": "cache_type_v", "-ub": "ubatch_size",
          "--n-cpu-moe": "n_cpu_moe", "-ts": "tensor_split"}


def settings(patch):
    return [w for k, v in patch.items() for w in ("--set", "%s=%s" % (k, v))]


def check(name, words, keep=()):
    """Plans every proposal again, by its patch and by its command. keep: settings given."""
    run = Run("fit", *words, *keep, "--format", "json")
    doc = run.json()
    hardware = [w for w in words[1:] if w not in ("--maximize", "context", "layers", "slots")]
    ok(doc["proposals"] and not run.err, "%s: there are proposals" % name, run)
    for i, p in enumerate(doc["proposals"]):
        again = Run("plan", words[0], *hardware, *settings(p["scenario_patch"]), "--format",
                    "json")
        plan = again.json()
        at = plan["summary"]["need_bytes"]
        good = plan["verdict"] == "fits" if p["verdict"] == "fits" else \
            plan["verdict"] in ("fits", "at-risk")
        ok(good and (at == p["need_bytes"] or plan["summary"]["worst_device"] == "host"),
           "%s: proposal %d, planned again" % (name, i + 1), (p, again))
        if "command" in p:
            words_of = shlex.split(p["command"])
            same(words_of[:3], ["llama-server", "-m", words[0]], "its command names the file")
            said = dict(zip(words_of[3::2], words_of[4::2]))
            want = {k.split(".")[-1]: str(v) for k, v in p["scenario_patch"].items()}
            said = {FIELDS.get(k, k): v.replace("f16", "fp16") for k, v in said.items()}
            same({k: said.get(k) for k in want}, want, "and says what the patch says", p)
    same([p["verdict"] for p in doc["proposals"]],
         sorted((p["verdict"] for p in doc["proposals"]), reverse=True),
         "%s: what fits for sure comes first" % name)
    same(run.code, 0 if doc["verdict"] == "fits" else 3, "%s: exit code" % name, run)
    return doc


def searches():
    doc = check("dense", [DENSE, *GPU])
    best = doc["proposals"][0]
    same((best["n_gpu_layers"], doc["layers"]), (33, 33), "a card of 24 GB holds all layers")
    same(best["context"], 32768, "with the model's context")
    same(doc["given"], ["experts"], "nothing was given: a dense model has no experts to move")
    doc = check("small card", [DENSE, *GPU, "--set", "hardware.memory=6GiB"])
    ok(0 < doc["proposals"][0]["n_gpu_layers"] < 33, "a card of 6 GiB holds a part", doc)
    doc = check("at a context", [DENSE, *GPU, "--set", "hardware.memory=6GiB", "--context", "16k"])
    same({p["context"] for p in doc["proposals"]}, {16384}, "a context that is given stays")
    ok("context" in doc["given"] and "layers" in doc["open"], "and is named", doc["given"])
    doc = check("experts", [MOE, *GPU, "--set", "hardware.memory=4GiB"])
    best = doc["proposals"][0]
    ok(best["n_gpu_layers"] == doc["layers"] and 0 < best["n_cpu_moe"] < 24,
       "experts of some layers go to the host first", best)
    check("two cards", [DENSE, *GPU, "--count", "2", "--set", "hardware.memory=4GiB"])
    doc = check("experts on two cards", [MOE, *GPU, "--count", "2", "--context", "8k", "--set",
                                         "hardware.memory=2GiB"])
    best = doc["proposals"][0]
    shares = best["scenario_patch"].get("engine.args.tensor_split", "").split(",")
    ok(len(shares) == 2 and sum(map(int, shares)) == best["n_gpu_layers"],
       "where the cards' own shares do not fit, layers are divided one by one", best)
    for goal, key in (("context", "context"), ("layers", "n_gpu_layers"), ("slots", "slots")):
        doc = check(goal, [DENSE, *GPU, "--set", "hardware.memory=9GiB", "--maximize", goal])
        sure = [p for p in doc["proposals"] if p["verdict"] == "fits"]
        whole = [p for p in sure if p["n_gpu_layers"] == doc["layers"]]
        same(max(p[key] for p in whole), sure[0][key], "--maximize %s: the most comes first" % goal)
    doc = check("ollama", [DENSE, *GPU, "--engine", "ollama", "--set", "hardware.memory=6GiB"])
    best = doc["proposals"][0]
    for line in ("FROM " + DENSE, "PARAMETER num_ctx %d" % best["context"],
                 "PARAMETER num_gpu %d" % best["n_gpu_layers"]):
        ok(line in best["modelfile"].split("\n"), "the Modelfile says %s" % line, best)
    ok("OLLAMA_KV_CACHE_TYPE=" in best["environment"], "and the environment the cache", best)
    margins = [Run("fit", DENSE, *GPU, "--set", "hardware.memory=9GiB", "--fit-target", m,
                   "--maximize", "context", "--format", "json").json()
               for m in ("512", "1024", "1536")]
    same([d["margin_bytes"] >> 20 for d in margins], [512, 1024, 1536], "--fit-target")
    ok(margins[2]["proposals"][0]["context"] < margins[1]["proposals"][0]["context"],
       "a larger margin leaves less context", margins[2]["proposals"][0])


def texts():
    for words in ([DENSE, *GPU], [MOE, *GPU, "--set", "hardware.memory=4GiB"],
                  [DENSE, *GPU, "--engine", "ollama", "--context", "8k"], ["one.yaml"]):
        r = Run("fit", *words)
        ok(r.code in (0, 3) and all(len(line) <= 80 or DIR in line for line in r.out.split("\n")),
           "80 columns: %s" % " ".join(words[1:]), r)
        same(Run("fit", *words).bytes, r.bytes, "the same input, the same bytes")
    r = Run("fit", MOE, *GPU, "--set", "hardware.memory=4GiB")
    lines = r.out.split("\n")
    first = next(i for i, line in enumerate(lines) if "llama-server" in line)
    command = lines[first]
    while command.endswith("\\"):
        first += 1
        command = command[:-1] + lines[first]
    want = Run("fit", MOE, *GPU, "--set", "hardware.memory=4GiB", "--format", "json").json()
    same(shlex.split(command), shlex.split(want["proposals"][0]["command"]),
         "the command over several lines is that of the JSON")
    kept = ["--set", "engine.args.mmap=false", "--set", "engine.args.tensor_split=3,1", "--set",
            "engine.args.swa_full=true"]
    r = Run("fit", DENSE, *GPU, "--count", "2", *kept, "--format", "json")
    for flag in ("--no-mmap", "-ts 3,1", "--swa-full"):
        ok(flag in r.json()["proposals"][0]["command"], "given and kept: %s" % flag, r)


def nothing_fits():
    words = [DENSE, *GPU, "--set", "hardware.memory=4GiB", "--set", "engine.args.n_gpu_layers=33",
             "--context", "16k"]
    r = Run("fit", *words, "--format", "json")
    doc = r.json()
    same((r.code, doc["verdict"], doc["proposals"]), (1, "does-not-fit", []), "infeasible ends with 1")
    ok(doc["short"]["device"] == "GPU0" and doc["short"]["bytes"] > 1 << 30 and
       "GPU0 is" in doc["short"]["text"], "what is short, and by how much", doc["short"])
    same([c["of"] for c in doc["changes"]], ["layers"], "what would have to give way")
    again = Run("plan", *words[:-4], *settings(doc["changes"][0]["scenario_patch"]))
    same(again.code, 0, "which then fits", again)
    r = Run("fit", *words)
    ok("DOES NOT FIT" in r.out and "with fewer layers on the GPUs:" in r.out, "the same as text", r)
    r = Run("fit", DENSE, *GPU, "--set", "engine.args.flash_attn=off", "--kv-cache", "q8_0")
    ok(r.code == 1 and "needs flash" in r.out.replace("\n", " ") and "another type of cache" in r.out,
       "what llama.cpp refuses", r)


def others():
    r = Run("fit", "one.yaml", "--format", "json")
    doc = r.json()
    same((doc["schema"], doc["engine"]), ("vramplan.fit/1", "vllm"), "another engine: the plan's")
    plan = Run("plan", "one.yaml", "--format", "json").json()
    same(doc["suggestions"], plan["suggestions"], "suggestions")
    r = Run("fit", "several.yaml", "--format", "json")
    ok(isinstance(r.json(), list) and len(r.json()) > 1, "several scenarios are a list", r)
    for words, code, said in (
            (["one.yaml", "--maximize", "layers"], 2, "hold all layers"),
            ([DENSE, *GPU, "--context", "8k", "--maximize", "context"], 2, "VP104"),
            ([DENSE, *GPU, "--maximize", "speed"], 2, "VP107"),
            ([DENSE, *GPU, "--format", "csv"], 2, "text and json only"),
            ([os.path.join(DIR, "none.gguf"), *GPU], 2, "none.gguf"),
            ([], 2, "needs an argument"),
            (["one.yaml", "several.yaml", "--maximize", "context"], 2, "take one")):
        r = Run("fit", *words)
        ok(r.code == code and said in r.err and not r.out, "refused: %s" % said, r)
    r = Run("fit", os.path.join(DIR, "none.gguf"), "--format", "json")
    same((r.code, r.json()["schema"]), (2, "vramplan.fit/1"), "refused in JSON", r)


searches()
texts()
nothing_fits()
others()
finish()
