#!/usr/bin/env python3
"""`vramplan diff`: which setting moved which bytes, in every form; how scenarios are paired; what is refused."""
import csv
import io
import json
import os
import struct

from tap import DIR, Run, finish, ok, same
import gguf_writer

WORK = os.path.join(DIR, "work")
os.mkdir(WORK)


def write(name, text):
    path = os.path.join(WORK, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def diff(*args):
    return Run("diff", *args, cwd=WORK)


def only(run):
    data = run.json()
    assert len(data["scenarios"]) == 1, run
    return data["scenarios"][0]


OLD = write("old.yaml", """vramplan: 1
name: prod
model: llama-3.1-70b
hardware: {gpu: mi300x, count: 1}
engine: vllm@0.19
precision: {weights: fp8}
serve: {context: 32768, concurrency: 8}
""")
NEW = write("new.yaml", """vramplan: 1
name: prod
model: llama-3.1-70b
hardware: {gpu: mi300x, count: 2}
engine:
  name: vllm
  version: "0.19"
  args: {max_num_batched_tokens: 16384}
precision: {weights: fp8}
parallel: {tensor: 2}
serve:
  context: 40960
  concurrency: 16
""")

# ---- one pair ----
run = diff(OLD, NEW)
same(run.code, 0, "compared: exit 0", run)
ok(max(map(len, run.out.splitlines())) <= 80, "text stays within 80 columns", run)
ok("needs 152.67 -> 140.25 GiB" in run.out and "longest context 41,840 -> 55,120" in run.out,
   "need, headroom and longest context, before and after", run)
ok("parallel.tensor 2, new\n" in run.out and "new.yaml:10: weights -33.83 GiB" in run.out, "a step, its place, its bytes", run)
ok("moved nothing: hardware.count 1 -> 2" in run.out, "what moved nothing is said", run)
item = only(diff(OLD, NEW, "--format", "json"))
same([c["path"] for c in item["changes"]],
     ["serve.context", "serve.concurrency", "hardware.count", "parallel.tensor", "engine.args.max_num_batched_tokens"],
     "the order: context, requests, layout, arguments")
same((item["state"], item["unexplained_bytes"]), ("changed", 0), "JSON: nothing is left unexplained")
same(sum(s["need_bytes"] for s in item["steps"]),
     item["after"]["need_bytes"]["likely"] - item["before"]["need_bytes"]["likely"], "steps add up")
for name in item["after"]["components"]:
    same(sum(s["components"].get(name, 0) for s in item["steps"]),
         item["after"]["components"][name]["likely"] - item["before"]["components"][name]["likely"], "steps of " + name)
same([item[side]["need_bytes"]["likely"] for side in ("before", "after")],
     [Run("plan", f, "--format", "json", cwd=WORK).json()["summary"]["need_bytes"]["likely"] for f in (OLD, NEW)],
     "both ends are what plan says")
rows = list(csv.DictReader(io.StringIO(diff(OLD, NEW, "--format", "csv").out)))
same(sum(int(r["moved_bytes"]) for r in rows), sum(s["need_bytes"] for s in item["steps"]), "CSV: the same bytes")
text = diff(OLD, NEW, "--format", "markdown").out
ok("| KV cache | 80.00 | 100.00 | +20.00 GiB |" in text and "`new.yaml:12`" in text, "Markdown: tables", text)
ok("KV cache, full +20.00 GiB" in diff(OLD, NEW, "-v").out, "-v: rows by owner")
ok("\nno change: 152.67 GiB, FITS" in diff(OLD, OLD).out, "no change is said")
same(only(diff(OLD, OLD, "--format", "json"))["state"], "unchanged", "JSON: unchanged")
item = only(diff(NEW, OLD, "--format", "json"))
same([(c["to"], c["file"], c["line"]) for c in item["changes"] if c["path"] == "parallel.tensor"], [(None, "new.yaml", 10)],
     "taken away: the old place")

# ---- settings for both ----
item = only(diff(OLD, NEW, "--set", "serve.context=8192", "--format", "json"))
same([s["need_bytes"] for s in item["steps"] if item["changes"][s["changes"][0]]["path"] == "serve.context"], [0],
     "--set holds for both, and outranks the files")

# ---- joined ----
same_layout = write("two.yaml", "vramplan: 1\nmodel: llama-3.1-8b\nhardware: {gpu: mi300x, count: 2}\nparallel: {tensor: 2}\n")
one = write("one.yaml", "vramplan: 1\nmodel: llama-3.1-8b\nhardware: {gpu: mi300x, count: 1}\n")
item = only(diff(same_layout, one, "--format", "json"))
same([s["changes"] for s in item["steps"]], [[0, 1]], "one device for two ranks is refused: joined with what comes next")
same(item["unexplained_bytes"], 0, "and adds up")

# ---- several ----
many = "vramplan: 1\ndefaults: {model: llama-3.1-8b, hardware: {gpu: mi300x}}\nscenarios:\n"
write("a.yaml", many + "  x: {serve: {context: 4k}}\n  y: {serve: {context: 4k}}\n  gone: {}\n")
write("b.yaml", many + "  fresh: {}\n  y: {serve: {context: 8k}}\n  x: {serve: {context: 4k}}\n")
run = diff("a.yaml", "b.yaml", "--format", "json")
same({s["scenario"]: s["state"] for s in run.json()["scenarios"]},
     {"x": "unchanged", "y": "changed", "fresh": "added", "gone": "removed"}, "paired by name", run)
ok("== gone ==\ngone: the new input has no scenario of this name" in diff("a.yaml", "b.yaml").out, "text says what is gone")
same(only(diff("a.yaml#x", "b.yaml#y", "--format", "json"))["changes"][0]["path"], "serve.context", "FILE#NAME: one with one")
write("c.yaml", many + "  p: {}\n  q: {}\n")
same(diff("a.yaml", "c.yaml").code, 3, "nothing to compare: exit 3")

# ---- models ----
config = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
          "num_attention_heads": 16, "num_key_value_heads": 4, "max_position_embeddings": 32768, "vocab_size": 32000,
          "torch_dtype": "bfloat16", "transformers_version": "4.50"}
write("m1/config.json", json.dumps(config, indent=1))
write("m2/config.json", json.dumps({**config, "num_hidden_layers": 20, "transformers_version": "4.51"}, indent=1))
item = only(diff("m1", "m2", "--gpu", "mi300x", "--format", "json"))
same([(c["path"], c["file"], c["line"]) for c in item["changes"]],
     [("model.num_hidden_layers", "m2/config.json", 5), ("model.transformers_version", "m2/config.json", 11)],
     "a config.json: its keys, where they stand")


def tensors(name, layers, width):
    """A checkpoint that ends after its header."""
    shapes = {"model.embed_tokens.weight": (32000, 2048), "lm_head.weight": (32000, 2048), "model.norm.weight": (2048,)}
    for i in range(layers):
        p = "model.layers.%d." % i
        shapes.update({p + "self_attn.q_proj.weight": (2048, 2048), p + "self_attn.k_proj.weight": (512, 2048),
                       p + "self_attn.v_proj.weight": (512, 2048), p + "self_attn.o_proj.weight": (2048, 2048),
                       p + "mlp.gate_proj.weight": (width, 2048), p + "mlp.up_proj.weight": (width, 2048),
                       p + "mlp.down_proj.weight": (2048, width), p + "input_layernorm.weight": (2048,),
                       p + "post_attention_layernorm.weight": (2048,)})
    header, at = {}, 0
    for key, shape in shapes.items():
        size = 2
        for n in shape:
            size *= n
        header[key] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(os.path.join(WORK, name, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)


tensors("m1", 16, 8192)
tensors("m2", 20, 8192)
item = only(diff("m1", "m2", "--gpu", "mi300x", "--format", "json"))
same((len(item["steps"]), item["changes"][0]["path"], item["unexplained_bytes"]), (1, "model", 0), "with tensors: one change")
same({c["path"] for c in item["changes"][1:]},
     {"model.num_hidden_layers", "model.transformers_version", "model (tensors)"}, "and what is different in it")
gguf_writer.write(os.path.join(WORK, "a.gguf"), layers=16)
gguf_writer.write(os.path.join(WORK, "b.gguf"), layers=20)
item = only(diff("a.gguf", "b.gguf", "--gpu", "mi300x", "--format", "json"))
same((len(item["steps"]), item["changes"][0]["from"], item["changes"][0]["to"]), (1, "a.gguf", "b.gguf"), "GGUF: one change")
ok("model.gguf.llama.block_count" in {c["path"] for c in item["changes"]}, "and its keys", item)
write("s1.yaml", "vramplan: 1\nmodel: m1\nhardware: {gpu: mi300x}\n")
write("m1/s2.yaml", "vramplan: 1\nmodel: .\nhardware: {gpu: mi300x}\nserve: {concurrency: 2}\n")
item = only(diff("s1.yaml", "m1/s2.yaml", "--format", "json"))
same(([c["path"] for c in item["changes"]][-1], item["unexplained_bytes"]), ("serve.concurrency", 0),
     "paths of each file start at that file")
item = only(diff("vllm serve llama-3.1-8b --max-num-seqs 8", "vllm serve llama-3.1-8b --max-num-seqs 64",
                 "--gpu", "mi300x", "--format", "json"))
same(item["changes"][0]["path"], "engine.args.max_num_seqs", "command lines")

# ---- what is refused ----
write("bad.yaml", "vramplan: 1\nmodel: llama-3.1-8b\nhardware: {gpu: nosuch}\n")
run = diff(one, "bad.yaml")
same(run.code, 2, "a scenario without a plan: exit 2", run)
ok("bad.yaml:3:" in run.err and "the new one could not be planned" in run.out and "hardware.gpu mi300x -> nosuch" in run.out,
   "why, and what differs", run)
run = diff(one, "nosuch.yaml", "--format", "json")
same((run.code, run.json()["scenarios"], [d["id"] for d in run.json()["diagnostics"] if d["severity"] == "error"]),
     (2, [], ["VP001"]), "an input that is not there")
same((diff(one, "nosuch.yaml").out, diff(one).code, diff(one, one, one).code), ("", 2, 2), "no report without a pair; two inputs")
ok("needs two arguments: OLD NEW" in diff(one).err, "how many inputs are wanted")
finish()
