#!/usr/bin/env python3
"""list: the same rows in every format, and what they promise to other commands."""
import csv
import io
import os
import sys

sys.dont_write_bytecode = True
from tap import DIR, ENV, TOP, Run, finish, ok, same  # noqa: E402

for topic in ("gpus", "models", "engines"):
    r = Run("list", topic, "--format", "json")
    same((r.code, r.err), (0, ""), "list %s" % topic, r)
    doc = r.json()
    same(doc["schema"], "vramplan.list/1", "%s: schema" % topic)
    ids = [row["id"] for row in doc[topic]]
    ok(ids and len(ids) == len(set(ids)), "%s: each once" % topic, ids)
    rows = list(csv.DictReader(io.StringIO(Run("list", topic, "--format", "csv").out)))
    same([row["id"] for row in rows], ids, "%s: CSV has the same rows" % topic)
    same(set(rows[0]), set(doc[topic][0]), "%s: and the same columns" % topic)
    text = Run("list", topic).out.split("\n\n")[0].splitlines()
    same([line.split()[0] for line in text[1:]], ids, "%s: text has the same rows" % topic)
    table = Run("list", topic, "--format", "markdown").out.splitlines()
    same([line.split("|")[1].strip() for line in table[2:]], ids, "%s: Markdown too" % topic)
    same({line.count("|") for line in table}, {table[0].count("|")}, "%s: a whole table" % topic)

gpus = {row["id"]: row for row in Run("list", "gpus", "--format", "json").json()["gpus"]}
files = {n[:-5] for n in os.listdir(os.path.join(TOP, "profiles", "gpus")) if n.endswith(".yaml")}
same(set(gpus), files, "every GPU profile is listed")
same(gpus["mi300x"]["runtime_mib"], 196592, "MI300X: total")
same(gpus["mi300x"]["memory_gb"], 192, "MI300X: as sold")
ok("e4m3fnuz" in gpus["mi300x"]["fp8_formats"], "MI300X: FP8 formats")
ok("191.98" in Run("list", "gpus").out, "text shows GiB")
ok("Instinct MI300X" not in Run("list", "gpus").out, "aliases only with -v")
ok("Instinct MI300X" in Run("list", "gpus", "-v").out, "-v shows aliases")
models = {row["id"]: row for row in Run("list", "models", "--format", "json").json()["models"]}
files = {n[:-5] for n in os.listdir(os.path.join(TOP, "profiles", "models")) if n.endswith(".yaml")}
same(set(models), files, "every model profile is listed")
same(models["llama-3.1-8b"]["params"], 8030261248, "parameters")
ok("vllm" in Run("list", "engines").out, "vLLM is an engine")

# list models --fits-on: the same answers as plan gives, sorted by parameters.
def fits(*args, **kw):
    return Run("list", "models", "--fits-on", *args, **kw)


r = fits("mi210", "--format", "json")
doc = r.json()
same((r.code, r.err, doc["schema"]), (0, "", "vramplan.list/1"), "fits-on", r)
same(doc["fits_on"]["gpu"], "mi210", "fits-on: the card")
same((doc["fits_on"]["count"], doc["fits_on"]["concurrency"]), (1, 1), "fits-on: one of each")
same({row["id"] for row in doc["models"]}, files, "fits-on: every model")
sizes = [row["params"] for row in doc["models"]]
same(sizes, sorted(sizes), "fits-on: sorted by parameters")
same({row["verdict"] for row in doc["models"]}, {"fits", "at-risk", "does-not-fit"},
     "fits-on: some fit this card and some do not")
rows = {row["id"]: row for row in doc["models"]}
for name, context in (("llama-3.1-8b", "8192"), ("llama-3.1-70b", "8192"), ("llama-2-7b", "4096")):
    plan = Run("plan", name, "--gpu", "mi210", "--context", context, "--format", "json").json()
    row = rows[name]
    same((row["verdict"], row["headroom_bytes"], row["weights_bytes"], row["context"]),
         (plan["verdict"], plan["summary"]["headroom_bytes"],
          plan["devices"][0]["components"]["weights"]["likely"], int(context)),
         "fits-on: %s as plan says" % name)
ok(rows["llama-3.1-70b"]["headroom_bytes"] < 0 and rows["llama-3.1-70b"]["max_context"] is None and
   "131.45 GiB" not in r.out and rows["llama-3.1-70b"]["reason"], "fits-on: one that does not fit")
ok(rows["llama-3.1-8b"]["max_context"] == 131072 and rows["llama-3.1-8b"]["reason"] is None,
   "fits-on: one that fits")
table = list(csv.DictReader(io.StringIO(fits("mi210", "--format", "csv").out)))
same([row["id"] for row in table], [row["id"] for row in doc["models"]], "fits-on: CSV, same rows")
same(set(table[0]), set(doc["models"][0]), "fits-on: CSV, same columns")
text = fits("mi210").out
same([line.split()[0] for line in text.split("\n\n")[0].splitlines()[1:]],
     [row["id"] for row in doc["models"]], "fits-on: text, same rows")
ok("1 x AMD Instinct MI210, vLLM" in text and "1 sequence of 8192 tokens" in text,
   "fits-on: what it was planned for", text[-400:])
ok(max(map(len, text.splitlines())) <= 80, "fits-on: 80 columns")
ok("DOES" not in text and "leave nothing" in fits("mi210", "-v").out, "fits-on: -v says why not")

r = fits("mi300x", "--count", "8", "--context", "32k", "--concurrency", "16", "--format", "json")
rows = {row["id"]: row for row in r.json()["models"]}
plan = Run("plan", "llama-3.1-70b", "--gpu", "mi300x", "--count", "8", "--tp", "8", "--context",
           "32k", "--concurrency", "16", "--format", "json").json()
same(rows["llama-3.1-70b"]["headroom_bytes"], plan["summary"]["headroom_bytes"],
     "fits-on: count is tensor parallelism")
ok(rows["qwen2.5-7b"]["verdict"] is None and "28 over 8" in rows["qwen2.5-7b"]["reason"],
   "fits-on: one that cannot be divided is listed with its reason", rows["qwen2.5-7b"])
ok(rows["llama-2-7b"]["verdict"] is None and "trained for 4096" in rows["llama-2-7b"]["reason"],
   "fits-on: one that was not trained for it", rows["llama-2-7b"])
text = fits("mi300x", "--count", "8", "--context", "32k").out
ok("not planned: it was trained for 4096 tokens" in text and "llama-2-7b" in
   text.split("trained for 4096")[1], "fits-on: text tells the reasons below", text[-900:])
ok("(or what" not in text, "fits-on: a context that was given holds for all")
same(rows["llama-3.1-8b"]["context"], 32768, "fits-on: the context given")
four = {row["id"]: row for row in
        fits("r9700", "--weights", "int4", "--format", "json").json()["models"]}
ok(four["qwen3-30b-a3b"]["verdict"] == "fits" and "weights in int4" in
   fits("r9700", "--weights", "int4").out, "fits-on: in another format", four["qwen3-30b-a3b"])
on_card = ("--engine", "llama.cpp", "--count", "2", "--weights", "q4_k", "--format", "json")
rows = {row["id"]: row for row in fits("rtx4090", *on_card).json()["models"]}
plan = Run("plan", "llama-3.1-70b", "--gpu", "rtx4090", "--set", "engine.args.n_gpu_layers=99",
           "--context", "8192", *on_card).json()
same(rows["llama-3.1-70b"]["headroom_bytes"], plan["summary"]["headroom_bytes"],
     "fits-on: llama.cpp divides layers over the devices")
same(rows["deepseek-v3"]["verdict"], "does-not-fit", "fits-on: none of them spills to the host")
r = fits("mi300x", "--engine", "vllm@0.13", "--format", "json")
same(r.json()["fits_on"]["version"], "0.13", "fits-on: another version", r)

for args, words in ((["mi30"], "mi300"), (["mi300x", "--count", "0"], "--count"),
                    (["mi300x", "--context", "lots"], "--context"),
                    (["strix-halo"], "hardware.memory")):
    r = fits(*args)
    ok(r.code == 2 and r.out == "" and words in r.err and r.err.count("error") == 1,
       "fits-on: what is wrong for all is told once: %s" % " ".join(args), r)
r = fits("strix-halo", "--set", "hardware.memory=96 GiB")
ok(r.code == 0 and "Ryzen" in r.out, "fits-on: with the total that is missing", r)
for args in (["gpus", "--fits-on", "mi300x"], ["models", "--context", "8k"], ["engines", "--count", "2"]):
    r = Run("list", *args)
    ok(r.code == 2 and "list models --fits-on" in r.err, "list %s is refused" % " ".join(args), r)
r = fits("mi30", "--format", "json")
ok(r.code == 2 and r.json()["diagnostics"][0]["id"] == "VP301", "fits-on: faults as JSON", r)

# No built-in model is mistaken for a mistyped command.
wrong = []
for name in list(models) + [a for m in models.values() for a in m["aliases"]]:
    r = Run(name, "--gpu", "no-such-gpu")
    if "unknown command" in r.err:
        wrong.append(name)
same(wrong, [], "models can be named without a command")

# The user's own profiles.
own = os.path.join(ENV["HOME"], ".config", "vramplan", "gpus")
os.makedirs(own)
with open(os.path.join(own, "my-card.yaml"), "w") as f:
    f.write("vramplan_gpu: 1\nid: my-card\naliases: [Mine, 'a|b', 'x, \"y\"']\nvendor: amd\n"
            "arch: gfx1100\nmemory_gb: 24\nruntime_mib: 24560\n")
with open(os.path.join(own, "mi300x.yaml"), "w") as f:
    f.write("vramplan_gpu: 1\nid: mi300x\nvendor: amd\narch: gfx942\nruntime_mib: 100\n")
doc = {row["id"]: row for row in Run("list", "gpus", "--format", "json").json()["gpus"]}
same(doc["my-card"]["runtime_mib"], 24560, "a profile in ~/.config/vramplan")
same(doc["my-card"]["aliases"], ["Mine", "a|b", 'x, "y"'], "its aliases")
same(doc["mi300x"]["runtime_mib"], 100, "one's own replaces the built-in")
rows = {row["id"]: row for row in
        csv.DictReader(io.StringIO(Run("list", "gpus", "--format", "csv").out))}
same(rows["my-card"]["aliases"], 'Mine; a|b; x, "y"', "CSV quotes what needs it")
other = os.path.join(DIR, "config")
os.makedirs(os.path.join(other, "vramplan", "gpus"))
env = {"XDG_CONFIG_HOME": other}
ok("my-card" not in Run("list", "gpus", env=env).out, "XDG_CONFIG_HOME is looked at instead")
ok("my-card" in Run("list", "gpus", env={"XDG_CONFIG_HOME": "config"}, cwd=DIR).out,
   "a relative XDG_CONFIG_HOME is ignored")
with open(os.path.join(own, "broken.yaml"), "w") as f:
    f.write("vramplan_gpu: 1\nid: broken\nvendor: [\n")
r = Run("list", "gpus")
ok(r.code == 2 and "broken.yaml" in r.err, "a broken profile is told", r)
ok("my-card" in r.out and "mi210" in r.out, "the others are listed")
finish()
