#!/usr/bin/env python3
"""import: what it writes reads back as the same model and gives the same plan."""
import json
import os
import sys

sys.dont_write_bytecode = True
from tap import DIR, FIXTURES, TOP, Run, finish, ok, same  # noqa: E402

WORKLOAD = ["--gpu", "mi300x", "--count", "8", "--tp", "2", "--pp", "4", "--engine", "vllm",
            "--context", "2k", "--concurrency", "4", "--format", "json"]
FIGURES = ("verdict", "mode", "params", "summary", "devices", "kv_cache", "engine_report")


def built_in_models():
    names = sorted(n[:-5] for n in os.listdir(os.path.join(TOP, "profiles", "models"))
                   if n.endswith(".yaml"))
    ok(len(names) > 20, "there are built-in models", names)
    return names


def figures(run):
    doc = run.json()
    return {key: doc.get(key) for key in FIGURES}


def round_trip(model, name):
    path = os.path.join(DIR, "imported.yaml")
    r = Run("import", model, "-o", path)
    if r.code or r.out or r.err:
        return ok(False, name, r)
    text = open(path).read()
    if max(map(len, text.splitlines())) > 100:
        return ok(False, name, "longer than 100 columns:\n" + text)
    direct, back = Run("plan", model, *WORKLOAD), Run("plan", path, *WORKLOAD)
    if direct.code not in (0, 1, 3):
        return ok(False, name, direct)
    return same(figures(back), figures(direct), name, back)


for model in built_in_models():
    round_trip(model, "round trip: " + model)
round_trip("./tiny-llama", "round trip: a folder")
round_trip("tiny-moe.json", "round trip: a config.json")

r = Run("import", "./tiny-llama")
same(r.code, 0, "import ends with 0", r)
same(r.err, "", "nothing on standard error")
ok("# " in r.out.splitlines()[0] and "10 layers" in r.out, "the header says what was read", r)
kv_bytes = 10 * 2 * 4 * 64 * 2  # layers x (keys, values) x heads x width x 2 bytes
ok("KV cache: %s bytes per token in bf16" % format(kv_bytes, ",") in r.out, "and the KV cache", r)
ok("\nvramplan: 1\n" in r.out and "\nmodel:\n" in r.out, "it is a scenario", r)
ok("\n# hardware:" in r.out and "\n# engine:" in r.out and "\n# serve:" in r.out,
   "with lines to fill in", r)
ok(TOP not in Run("import", "llama-3.2-1b").out, "no path of the installation")
filled = "".join(line[2:] if line.startswith(("# hardware:", "# engine:", "# parallel:",
                                              "# precision:", "# serve:")) else line
                 for line in r.out.splitlines(True))
p = Run("plan", "-", "--format", "json", stdin=filled)
ok(p.code in (0, 1, 3), "the lines to fill in are right as they stand", p)

config = open(os.path.join(FIXTURES, "tiny-llama", "config.json")).read()
r = Run("import", "-", stdin=config)
ok(r.code == 0 and "hidden_size: 768" in r.out, "config.json from standard input", r)

# Keys and texts that YAML would take for something else, or that need care.
odd = dict(json.loads(config))
odd.update({"transformers_version": "4.57.1", "yes": "no", "a: b": "x # y", "null": "null",
            "date": "2026-01-01", "empty": "", "text": "1e5", "dash": "- a", "tilde": "~",
            "star": "*x", "line": "one\ntwo\ttab", "unicode": "caf\u00e9 \u2028 \ufeff \u0085 \u007f",
            "quote": "\"'\\", "big": 1e300, "small": 1e-05, "whole": 1e6, "minus": -3,
            "nothing": None, "no": False, "id2label": {"0": "a", "1": "b"},
            "nested": {"list": [[1, 2], [], {}, [{"x": [1], "y": {"z": {}}}]], "map": {}},
            "long": "x" * 150, "many": ["model.layers.%d.mlp" % i for i in range(40)],
            "k" * 1500: 1})
path = os.path.join(DIR, "odd.json")
with open(path, "w") as f:
    json.dump(odd, f)
r = Run("import", path, "--format", "json")
same(r.code, 0, "import --format json", r)
doc = r.json()
same(doc["schema"], "vramplan.import/1", "its schema")
same(doc["scenario"]["model"], odd, "it holds the description")
same(list(doc["scenario"]["model"]), list(odd), "in its order")
same((doc["layers"], doc["kv_bytes_per_token"]), (10, kv_bytes), "and the figures")
yaml_path = os.path.join(DIR, "odd.yaml")
same(Run("import", path, "-o", yaml_path).code, 0, "the same as YAML")
with open(yaml_path) as f:
    text = f.read()
model = "\n".join(line[2:] for line in text.split("\nmodel:\n", 1)[1].split("\n\n")[0].split("\n"))
with open(os.path.join(DIR, "model.yaml"), "w") as f:
    f.write(model + "\n")
again = Run("import", os.path.join(DIR, "model.yaml"), "--format", "json")
same(again.code, 0, "it reads back", again)
if again.code == 0:
    same(again.json()["scenario"]["model"], odd, "as the same description")

r = Run("import", "no-such-model-anywhere")
ok(r.code == 2 and r.out == "" and "no-such-model-anywhere" in r.err, "an unknown model", r)
r = Run("import", "no-such-model-anywhere", "--format", "json")
ok(r.code == 2 and r.json()["schema"] == "vramplan.import/1" and r.json()["diagnostics"],
   "an unknown model, in JSON", r)
r = Run("import", "one.yaml")
ok(r.code == 2 and "scenario" in r.err, "a scenario is no model", r)
r = Run("import", "-", stdin="vramplan: 1\nmodel: x\n")
ok(r.code == 2 and "scenario" in r.err, "a scenario from standard input neither", r)
deep = json.dumps({**json.loads(config), "deep": json.loads("[" * 40 + "]" * 40)})
r = Run("import", "-", "--format", "json", stdin=deep)
ok(r.code == 2 and "VP005" in r.err, "too deep for JSON output", r)
same(Run("import", "-", stdin=deep).code, 0, "not too deep for YAML")
finish()
