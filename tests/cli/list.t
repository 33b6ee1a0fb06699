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
